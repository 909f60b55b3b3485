"""Writes CSV that is safe in a spreadsheet: no text becomes a formula, and our readers undo the escaping."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_CODE = r"u00(?:[01][0-9a-f]|22|5b|5c|7b|7f|[89][0-9a-f])"  # a control character, or one of "[\{
_TO_ESCAPE = re.compile(rf"[\x00-\x1f\x7f-\x9f]|\\(?={_CODE})")
_ESCAPED = re.compile(rf"\\{_CODE}")
_JSON = ("{", "[", '"')  # JSON has the same escapes, so a cell that begins like it is never unescaped


def csv_text(table: pd.DataFrame) -> str:
    """A table as CSV: a ' before text that begins like a formula, and control characters escaped; numbers stay."""
    import pandas as pd

    cell = cache(to_cell)

    def written(column: pd.Series) -> pd.Series:
        if column.dtype.kind != "O":
            return column
        cells = [cell(value) if isinstance(value, str) else value for value in column]
        return pd.Series(cells, column.index, dtype=object)

    header = [cell(str(name)) for name in table.columns]
    text: str = table.apply(written).to_csv(index=False, header=header, lineterminator="\n")
    return text


def to_cell(text: str) -> str:
    """A text as a cell of CSV holds it."""
    safe = f"'{text}" if _FORMULA.match(text) else text
    cell = _TO_ESCAPE.sub(lambda match: _escape(match[0]), safe)
    return cell if cell == safe or not cell.startswith(_JSON) else _escape(cell[0]) + cell[1:]


def from_cell(cell: str) -> str:
    """The text that a cell of CSV holds; one that was not written by `to_cell` is nearly always itself."""
    text = cell if cell.startswith(_JSON) else _ESCAPED.sub(lambda match: chr(int(match[0][2:], 16)), cell)
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def _escape(character: str) -> str:
    return f"\\u{ord(character):04x}"
