"""Opens tables in files (CSV, TSV, JSONL, JSON, Parquet) and knows the line on which each row begins."""

from __future__ import annotations

import csv
import gzip
import itertools
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentic_bayes.checks import no_such_file
from agentic_bayes.errors import AgenticBayesError, MissingPackage
from agentic_bayes.evidence.csv_text import from_cell
from agentic_bayes.evidence.frames import EngineTable, LocalTable, OpenTable, open_frame, twice
from agentic_bayes.formatting import plural
from agentic_bayes.records.base import short
from agentic_bayes.records.wire.strict_json import strict_json

if TYPE_CHECKING:
    import pandas as pd

_GZIP = b"\x1f\x8b"
_WORKBOOK = "an Excel workbook, not a CSV or TSV table; read it with pandas.read_excel(path)"
_NO_TEXT = {
    b"PK\x03\x04": _WORKBOOK,
    b"\xd0\xcf\x11\xe0": _WORKBOOK,
    b"%PDF": "a PDF file, not a table; export the table itself, as CSV",
    b"\x89PNG": "a picture, not a table",
    b"SQLite format 3": "a SQLite database, not a table; read it with pandas.read_sql(query, connection)",
    b"ARROW1": "an Arrow file; read it with pandas.read_feather(path)",
    **{
        bytes((0x80, protocol)): "a pickle of Python; if you trust it, read it with pandas.read_pickle(path)"
        for protocol in range(2, 6)
    },
    b"\x28\xb5\x2f\xfd": "packed by zstd; read it with pandas.read_csv(path, compression='zstd')",
    b"BZh": "packed by bzip2; read it with pandas.read_csv(path, compression='bz2')",
    b"\xfd7zXZ": "packed by xz; read it with pandas.read_csv(path, compression='xz')",
}
_TOGETHER = {
    ".parquet": "polars.scan_parquet('{}/*.parquet')",
    ".csv": "polars.scan_csv('{}/*.csv')",
    ".jsonl": "polars.scan_ndjson('{}/*.jsonl')",
}
QUOTED = re.compile(r'"[^"]*("|$)')
LARGE = 1 << 21  # bytes from which a CSV file is first tried with pyarrow's reader

Refusal = type[AgenticBayesError]


def open_file(path: Path, *, error: Refusal) -> OpenTable:
    """The table in a file."""
    if path.is_dir():
        way = next(
            (f"; read its files together: {way}" for end, way in _TOGETHER.items() if any(path.glob(f"*{end}"))), ""
        )
        raise error(no_such_file(path) + way.format(path))
    if not path.is_file():
        raise error(no_such_file(path))
    suffix = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    with path.open("rb") as stream:
        head = stream.read(512)
    if kind := next((kind for mark, kind in _NO_TEXT.items() if head.startswith(mark)), ""):
        if kind is _WORKBOOK and zipfile.is_zipfile(path) and not _is_workbook(path):
            kind = "a zip archive, not a table; unpack it first"
        raise error(f"{path}: {kind}")
    if suffix == ".parquet" or head.startswith(b"PAR1"):
        return ParquetFile.opened(path, error=error)
    if suffix not in (".jsonl", ".ndjson", ".json"):
        return CsvFile.opened(path, error=error)
    with _text(path, error) as stream:
        if suffix != ".json":
            return _read_jsonl(stream, str(path), error=error)
        text = stream.read()
    first, *others = text.strip().split("\n", maxsplit=1)
    if others and first.startswith("{") and first.rstrip().endswith("}"):
        return _read_jsonl(text.split("\n"), str(path), error=error)
    if others and first[:1] not in ("{", "[") and re.search("[,;\t]", first):  # whatever its name says
        return CsvFile.opened(path, error=error)
    return _read_array(text, str(path), error=error)


def _is_workbook(path: Path) -> bool:
    with zipfile.ZipFile(path) as archive:
        return any(name.startswith(("xl/", "content.xml")) for name in archive.namelist())


@dataclass(frozen=True)
class CsvFile:
    """A CSV file that is large: read in columns by pyarrow if it is flawless, else line by line."""

    path: Path
    names: Sequence[str]
    delimiter: str
    error: Refusal

    @classmethod
    def opened(cls, path: Path, *, error: Refusal) -> OpenTable:
        """The file; a small one is read at once."""
        if path.stat().st_size < LARGE:
            return _read_csv(path, error=error)
        with _text(path, error) as stream:
            head = next(stream, "")
        try:
            import pyarrow.csv  # noqa: F401
        except ImportError:
            return _read_csv(path, error=error)
        delimiter = _delimiter(path, head)
        header = _names(next(csv.reader([head], delimiter=delimiter), []))
        if head.count('"') % 2 or "\r" in head[:-2] or not all(header) or len(set(header)) < len(header):
            return _read_csv(path, error=error)
        return cls(path, header, delimiter, error)

    @property
    def source(self) -> str:
        """The path."""
        return str(self.path)

    @property
    def decimal_comma(self) -> bool:
        """Whether numbers may have a decimal comma."""
        return self.delimiter == ";"

    def holds(self, name: str) -> bool:
        """Whether there is such a column."""
        return name in self.names

    def place(self, row: int) -> str:
        """Where a row stands; the careful reader knows its line."""
        return f"row {row + 1}"

    def careful(self) -> OpenTable:
        """The file, read line by line."""
        return _read_csv(self.path, error=self.error)

    def take(self, names: Sequence[str]) -> pd.DataFrame:
        """These columns, as text."""
        import pyarrow as pa
        from pyarrow import csv as arrow

        wanted = list(dict.fromkeys(names))
        try:
            table = arrow.read_csv(
                self.path,
                read_options=arrow.ReadOptions(column_names=self.names, skip_rows=1),
                parse_options=arrow.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
                convert_options=arrow.ConvertOptions(
                    include_columns=wanted, column_types=dict.fromkeys(wanted, pa.string()), strings_can_be_null=False
                ),
            )
        except (pa.ArrowInvalid, pa.ArrowKeyError, OSError):
            return self.careful().take(names)
        if any(_may_be_escaped(table[name]) for name in wanted):
            return self.careful().take(names)
        frame: pd.DataFrame = table.to_pandas()
        return frame


def _may_be_escaped(column: Any) -> bool:
    """Whether a cell looks as `csv_text` writes some: all begin with an apostrophe or hold an escape."""
    from pyarrow import compute

    return bool(
        compute.any(compute.starts_with(column, "'")).as_py()
        or compute.any(compute.match_substring(column, "\\u00")).as_py()
    )


@dataclass(frozen=True)
class ParquetFile(EngineTable):
    """A Parquet file: the schema is known, and only columns that are asked for are read."""

    @classmethod
    def opened(cls, path: Path, *, error: Refusal) -> ParquetFile:
        """The file."""
        with _parquet(path, error):
            from pyarrow import parquet

            found: Any = open_frame(parquet.read_schema(path).empty_table(), error=error)
        return cls(str(path), found.frame, found.schema, error)

    def take(self, names: Sequence[str]) -> pd.DataFrame:
        """These columns."""
        import pandas as pd

        heads = [name for name in self.schema if any(n == name or n.startswith(f"{name}.") for n in names)]
        with _parquet(Path(self.source), self.error):
            frame = pd.read_parquet(self.source, columns=heads, dtype_backend="pyarrow")
        return open_frame(frame, error=self.error).take(names)


@contextmanager
def _parquet(path: Path, error: Refusal) -> Iterator[None]:
    try:
        yield
    except ImportError:
        raise MissingPackage("reading Parquet needs pyarrow: pip install 'agentic-bayes[parquet]'") from None
    except (OSError, ValueError) as cause:
        raise error(f"{path}: not a readable Parquet file ({cause})") from None


@contextmanager
def _text(path: Path, error: Refusal) -> Iterator[Any]:
    """The lines of a file; a file that is not text is refused with advice."""
    try:
        with path.open("rb") as packed:
            opened: Any = gzip.open if path.suffix == ".gz" or packed.read(2) == _GZIP else open
        with opened(path, "rt", encoding="utf-8-sig", newline="") as stream:
            yield stream
    except UnicodeDecodeError as cause:
        first = cause.object[cause.start]
        if bytes(cause.object[:2]) == _GZIP:
            raise error(f"{path}: packed by gzip twice; unpack it once") from None
        encoding = "'utf-16', sep=None, engine='python'" if first in (0xFE, 0xFF) else "'cp1252'"
        raise error(
            f"{path}: must be UTF-8, got byte {first:#04x}; if it came from Excel, save it as CSV UTF-8, or read it "
            f"with pandas.read_csv(path, encoding={encoding})"
        ) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as cause:
        raise error(f"{path}: not a complete gzip file ({cause})") from None


def _delimiter(path: Path, head: str) -> str:
    if path.name.endswith((".tsv", ".tsv.gz")):
        return "\t"
    return max(",\t;", key=QUOTED.sub("", head).count)


def _names(header: Sequence[str]) -> list[str]:
    """The names of columns as a header has them."""
    return [from_cell(name).strip() for name in header]


def _read_csv(path: Path, *, error: Refusal) -> LocalTable:
    """A CSV file, line by line; columns without a name are left out, and so are rows that hold nothing."""
    with _text(path, error) as stream:
        lines = iter(stream)
        head = next(lines, "")
        if ("\0" in head[:40:2]) != ("\0" in head[1:40:2]) and head[:40].count("\0") > 3:
            raise error(f"{path}: text of two bytes a letter; read it with pandas.read_csv(path, encoding='utf-16-le')")
        if head.lstrip()[:1] == "<":
            raise error(
                f"{path}: HTML or XML, not a CSV or TSV table; of HTML, pandas.read_html(path) reads the tables"
            )
        if "\0" in head or head.lstrip()[:1] in ("{", "["):
            raise error(f"{path}: not a CSV or TSV table (JSONL is read from files named .jsonl)")
        if (first := head.strip().lower()).startswith("sep=") and len(first) == len("sep=,"):  # a line of Excel's
            head, begun, delimiter = next(lines, ""), 1, first[-1]
        else:
            begun, delimiter = 0, _delimiter(path, head)
        rows = csv.reader(itertools.chain([head], lines), delimiter=delimiter, strict=True)
        try:
            header = _names(next(rows, []))
            if not any(header):
                raise error(f"{path}: the file is empty" + (" or its first line is" if next(rows, None) else ""))
            if repeated := sorted({name for name in header if name and header.count(name) > 1}):
                headless = any(re.fullmatch("[0-9.]+|true|false|pass|fail|yes|no", name.lower()) for name in repeated)
                missing = "; or the header is missing: pandas.read_csv(path, names=['task', 'correct', …])"
                raise error(f"{path}: {twice(repeated)}{missing if headless else ''}")
            columns: list[list[str]] = [[] for _ in header]
            numbers: list[int] = []
            text = cache(from_cell)  # one object for each text
            before = rows.line_num
            for row in rows:
                line, before = begun + before + 1, rows.line_num
                if not any(map(str.strip, row)):
                    continue  # spreadsheets leave rows of nothing but delimiters
                if len(row) > len(header) and not any(map(str.strip, row[len(header) :])):
                    row = row[: len(header)]
                if len(row) != len(header):
                    raise error(f"{path}: {_ragged(line, header, row, delimiter, first=not numbers)}")
                numbers.append(line)
                for cells, value in zip(columns, row, strict=True):
                    cells.append(text(value))
        except csv.Error as cause:
            raise error(f"{path}: not a readable table ({cause} in line {begun + rows.line_num})") from None
    keys = [name or " " * (i + 1) for i, name in enumerate(header)]  # blank, and told apart
    return LocalTable(str(path), dict(zip(keys, columns, strict=True)), numbers, delimiter)


def _ragged(line: int, header: Sequence[str], row: Sequence[str], delimiter: str, *, first: bool) -> str:
    """The message that a row has more or fewer fields than the header."""
    advice = ""
    if header[0].startswith("#"):
        advice = "; if lines that begin with # are comments, read it with pandas.read_csv(path, comment='#')"
    elif first and len(header) == 1:
        advice = f"; if line {line} is the header, read it with pandas.read_csv(path, header={line - 1})"
    elif len(row) > len(header):
        advice = f"; put quotes around text that contains {delimiter!r}"
        if delimiter == "," and any(re.fullmatch(r"[0-9]+", cell.strip()) for cell in row):
            advice += ", and write decimals with a point"
    else:
        advice = f"; a field that is blank still has its {delimiter!r}. Was the file cut off, or is this line a note?"
    return f"line {line} must have {plural(len(header), 'field')} as the header, got {len(row)}{advice}"


def _read_jsonl(stream: Any, source: str, *, error: Refusal) -> LocalTable:
    rows, numbers = [], []
    for number, line in enumerate(stream, start=1):
        if not line.strip():
            continue
        try:
            row = strict_json(line, finite=False)
        except ValueError as cause:
            hints = {
                "{'": "; it looks printed by Python: write it with json.dumps",
                "[": "; a JSON array is read from a file named .json",
                "{": "; each line must be one object, without commas between lines",
            }
            hint = next((hint for begin, hint in hints.items() if line.strip().startswith(begin)), "")
            raise error(f"{source}: line {number} is not JSON ({cause}){hint}") from None
        if not isinstance(row, dict):
            raise error(f"{source}: line {number} must be an object, got {type(row).__name__}")
        rows.append(row)
        numbers.append(number)
    if not rows:
        raise error(f"{source}: the file is empty")
    return LocalTable.of_records(source, rows, numbers)


def _within(value: Mapping[str, Any]) -> str:
    """Where in one object the rows may be, and how pandas reads them."""
    read = "json.load(open(path))"
    if {"columns", "data"} <= value.keys():
        return "; it looks written by pandas: pandas.read_json(path, orient='split')"
    lists = [key for key, inner in value.items() if isinstance(inner, list)]
    if value and (all(isinstance(v, Mapping) for v in value.values()) or len(lists) == len(value) > 1):
        for key, inner in value.items():
            for name, rows in inner.items() if isinstance(inner, Mapping) else ():
                if isinstance(rows, list) and rows and isinstance(rows[0], Mapping):
                    return f"; the rows may be in it: pandas.DataFrame({read}[{key!r}][{name!r}])"
            if len(value) > 1 and inner and isinstance(inner, Mapping) and all(map(_is_record, inner.values())):
                rows = f"pandas.DataFrame.from_dict({read}[{key!r}], orient='index').rename_axis('task').reset_index()"
                return f"; the rows may be in it: {rows}"
        within = "; it looks like columns: pandas.read_json(path)"
        return within + (
            "" if {"task", "correct"} & value.keys() else ", or one row for each key, .T.rename_axis('task')"
        )
    if lists:
        return f"; the rows may be in it: pandas.DataFrame({read}[{lists[0]!r}])"
    if len(value) > 1 and all(isinstance(inner, (int, float)) for inner in value.values()):
        return f"; one row for each key: pandas.Series({read}).rename_axis('task').reset_index(name='correct')"
    return "; write one row as [{…}]" if value else ""


def _is_record(value: Any) -> bool:
    return isinstance(value, Mapping) and len(value) > 1


def _read_array(text: str, source: str, *, error: Refusal) -> LocalTable:
    try:
        rows = strict_json(text, finite=False)
    except ValueError as cause:
        raise error(f"{source}: must be JSON ({cause})") from None
    if not isinstance(rows, (list, Mapping)):
        raise error(f"{source}: must be an array of objects, got {short(rows)}")
    if isinstance(rows, Mapping):
        raise error(f"{source}: must be an array of objects, got one object{_within(rows)}")
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, Mapping):
            raise error(f"{source}: row {number} must be an object, got {type(row).__name__}")
    if not rows:
        raise error(f"{source}: the file is empty")
    return LocalTable.of_records(source, rows)
