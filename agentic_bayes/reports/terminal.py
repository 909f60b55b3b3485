"""Tables on a terminal: they fit its width, and a number is never cut."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from agentic_bayes.formatting import plain_text
from agentic_bayes.result_table import Table, is_number

if TYPE_CHECKING:
    from rich.console import Console as Screen

WIDEST_NAME = 24  # of a first column that is kept on one line
NARROW_NAME = 12  # of any other column of names
FEWEST = 2  # columns of a table that is not cut into parts
FRAME = 2  # columns of the screen between two of the table


def print_table(console: Screen, table: Table) -> None:
    """Print a table and its notes.

    A table that is too wide for the screen is narrowed where that costs least: columns without an entry are left out,
    headers and names take more lines, and intervals go below their values. If that is not enough the columns follow
    each other in several parts; one that is wider than the screen stays so, since a number that is cut reads as another
    number. All rows are printed, whereas a notebook shows the first 20.
    """
    from rich.padding import Padding
    from rich.text import Text

    header = [plain_text(name) for name in table.header]
    rows = [[plain_text(cell) for cell in row] for row in table.rows]
    if rows and sum(max(map(_cells, column)) + FRAME for column in zip(header, *rows, strict=True)) > console.width:
        filled = [i for i in range(len(header)) if any(row[i] for row in rows)]
        header, rows = [header[i] for i in filled], [[row[i] for i in filled] for row in rows]
    console.print(Text(plain_text(table.title), "bold"), Text(plain_text(table.text)), sep="")
    _print_columns(console, header, rows, whole=table.whole)
    for note in filter(None, table.notes):
        console.print(Padding(Text(plain_text(note)), (0, 0, 0, 2)))
    console.print()


def _print_columns(console: Screen, header: list[str], rows: list[list[str]], *, whole: bool) -> None:
    """Print columns next to each other, or in parts that begin with the first one."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    columns = [[row[i] for row in rows] for i in range(len(header))]
    numeric = [i > 0 and all(map(is_number, cells)) for i, cells in enumerate(columns)]
    widths = _widths(header, columns, numeric, console.width - FRAME * len(header), whole=whole)
    needed = sum(widths) + FRAME * len(header)
    if needed > console.width and len(header) > FEWEST and not whole:
        cut, room = 1, console.width - FRAME - widths[0]
        while cut < len(header) - 1 and room >= (most := max(map(_cells, [header[cut], *columns[cut]])) + FRAME):
            cut, room = cut + 1, room - most
        for kept in (range(max(cut, 2)), [0, *range(max(cut, 2), len(header))]):
            _print_columns(console, [header[i] for i in kept], [[row[i] for i in kept] for row in rows], whole=whole)
        return
    rich = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name, width, number in zip(header, widths, numeric, strict=True):
        rich.add_column(name, width=width, justify="right" if number else "left", overflow="fold")
    for row in rows:
        cells = [_folded(cell) if _cells(cell) > width else cell for cell, width in zip(row, widths, strict=True)]
        rich.add_row(*map(Text, cells))
    (console if needed <= console.width else Console(highlight=False, width=needed, file=console.file)).print(rich)


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
    names = [i for i, number in enumerate(numeric) if not number]

    def narrow(least: Mapping[int, int]) -> None:
        for i, width in least.items():
            widths[i] = max(width, widths[i] - max(0, sum(widths) - screen))

    narrow({i: max(words[i], longest[i]) for i in range(len(header))})
    if sum(widths) > screen:  # of all columns, so that the numbers of a row stand on one line
        for i in set(range(len(header))) - set(names):
            widths[i] = max([words[i], *map(_cells, map(_folded, columns[i]))])
    kept = {i: math.inf if whole and i == 0 else WIDEST_NAME if i == 0 else NARROW_NAME for i in names}
    narrow({i: max(words[i], longest[i] if longest[i] <= kept[i] else NARROW_NAME) for i in names})
    return widths
