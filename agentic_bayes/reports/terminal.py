"""Tables on a terminal: they fit its width, and a number is never cut."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentic_bayes.formatting import plain_text
from agentic_bayes.result_table import Table, is_number

if TYPE_CHECKING:
    from rich.console import Console as Screen

WIDEST_NAME = 24  # of a first column that is kept on one line
NARROW_NAME = 12  # of any other column of names
FRAME = 2  # columns of the screen between two of the table


def print_table(console: Screen, table: Table) -> None:
    """Print a table and its notes.

    A table that is too wide for the screen is narrowed where that costs least: columns without an entry are left out,
    headers and names take more lines, and intervals go below their values. If that is not enough the table stays wider
    than the screen, since a number that is cut reads as another number. All rows are printed, whereas a notebook shows
    the first 20.
    """
    from rich import box
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table as RichTable
    from rich.text import Text

    header = [plain_text(name) for name in table.header]
    rows = [[plain_text(cell) for cell in row] for row in table.rows]
    if rows and sum(max(map(_cells, column)) + FRAME for column in zip(header, *rows, strict=True)) > console.width:
        filled = [i for i in range(len(header)) if any(row[i] for row in rows)]
        header, rows = [header[i] for i in filled], [[row[i] for i in filled] for row in rows]
    columns = [[row[i] for row in rows] for i in range(len(header))]
    numeric = [i > 0 and all(map(is_number, cells)) for i, cells in enumerate(columns)]
    widths = _widths(header, columns, numeric, console.width - FRAME * len(header), whole=table.whole)
    console.print(Text(plain_text(table.title), "bold"), Text(plain_text(table.text)), sep="")
    rich = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name, width, number in zip(header, widths, numeric, strict=True):
        rich.add_column(name, width=width, justify="right" if number else "left", overflow="fold")
    for row in rows:
        cells = [_folded(cell) if _cells(cell) > width else cell for cell, width in zip(row, widths, strict=True)]
        rich.add_row(*map(Text, cells))
    needed = sum(widths) + FRAME * len(header)
    (console if needed <= console.width else Console(highlight=False, width=needed, file=console.file)).print(rich)
    for note in filter(None, table.notes):
        console.print(Padding(Text(plain_text(note)), (0, 0, 0, 2)))
    console.print()


def _folded(cell: str) -> str:
    """The interval of a value on a line of its own."""
    return cell.replace(" [", "\n[")


def _cells(text: str) -> int:
    """Columns of the screen that the widest line of a text takes."""
    from rich.cells import cell_len

    return max(map(cell_len, text.split("\n")))


def _widths(
    header: Sequence[str], columns: Sequence[Sequence[str]], numeric: Sequence[bool], screen: int, *, whole: bool
) -> list[int]:
    """How wide each column is: as its contents are, or narrowed in steps until all fit or none can be narrower.

    Headers take more lines first, which costs nothing; then intervals go below their values; then names are folded.
    """
    longest = [max(map(_cells, cells), default=0) for cells in columns]
    words = [max(map(_cells, name.split() or [""])) for name in header]
    widths = [max(_cells(name), most) for name, most in zip(header, longest, strict=True)]
    steps = [(i, max(words[i], longest[i]), False) for i in range(len(header))]
    for i in (i for i, number in enumerate(numeric) if number):
        steps.append((i, max(words[i], max(map(_cells, map(_folded, columns[i])), default=0)), True))
    for i in (i for i, number in enumerate(numeric) if not number):
        kept = math.inf if whole and i == 0 else WIDEST_NAME if i == 0 else NARROW_NAME
        steps.append((i, max(words[i], longest[i] if longest[i] <= kept else NARROW_NAME), False))
    for i, least, at_once in steps:
        excess = sum(widths) - screen
        if excess > 0:
            widths[i] = least if at_once else max(least, widths[i] - excess)
    return widths
