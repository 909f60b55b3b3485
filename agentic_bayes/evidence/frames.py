"""Opens tables in memory or in an engine, and takes the requested columns out of them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from agentic_bayes.errors import AgenticBayesError, MissingPackage, described
from agentic_bayes.formatting import plural
from agentic_bayes.redaction import Secrets, keys_in, secrets_in

if TYPE_CHECKING:
    import pandas as pd

FORMS = (
    "a data frame (pandas, polars, pyarrow, DuckDB, Dask, …), a path, a list of dicts, a structured NumPy array or an "
    "xarray Dataset"
)


class OpenTable(Protocol):
    """A table whose columns are known and whose cells are read when they are asked for."""

    @property
    def source(self) -> str:
        """What messages call it."""

    @property
    def names(self) -> Sequence[str]:
        """Its columns; those without a name are left out."""

    def holds(self, name: str) -> bool:
        """Whether there is such a column, or such a field of a nested one ("testCase.description")."""

    def take(self, names: Sequence[str]) -> pd.DataFrame:
        """These columns, each called as it was asked for."""

    @property
    def decimal_comma(self) -> bool:
        """Whether numbers may have a decimal comma: fields are separated by semicolons, as Excel does there."""

    def place(self, row: int) -> str:
        """Where a row stands: "line 3" of a file, else "row 2"."""

    def careful(self) -> OpenTable | None:
        """The same table read slowly, with lines and every check; None if this is it."""


@dataclass(frozen=True)
class LocalTable:
    """A table in memory, column by column."""

    source: str
    columns: Mapping[str, Any]  # name → cells: a list, or a Series or Index of pandas
    lines: Sequence[int] = ()  # of a file: where each row begins
    delimiter: str = ""  # of a CSV or TSV file
    note: str = ""  # what to do if a column is missing

    @classmethod
    def of_records(cls, source: str, records: Sequence[Mapping[str, Any]], lines: Sequence[int] = ()) -> Self:
        """A table with one row per record; what a record lacks is None."""
        names = dict.fromkeys(name for record in records for name in record)
        return cls(source, {str(name): [record.get(name) for record in records] for name in names}, lines)

    @property
    def names(self) -> Sequence[str]:
        """Its columns."""
        return [name for name in self.columns if name.strip()]

    @property
    def decimal_comma(self) -> bool:
        """Whether numbers may have a decimal comma."""
        return self.delimiter == ";"

    @property
    def by_pandas(self) -> str:
        """How pandas reads it, with lines; "" if it is not a file with lines."""
        if not len(self.lines):
            return "pandas.DataFrame(table)" if self.source == "records" else ""
        if not self.delimiter:
            return f"pandas.read_json({self.source!r}, lines=True)"
        return f"pandas.read_csv({self.source!r}" + f", sep={self.delimiter!r})".replace(", sep=','", "")

    def holds(self, name: str) -> bool:
        """Whether there is such a column or field."""
        head, parts = _split(name, self.columns)
        return bool(head.strip()) and (not parts or any(_has(cell, parts) for cell in self.columns[head]))

    def take(self, names: Sequence[str]) -> pd.DataFrame:
        """These columns."""
        import pandas as pd

        return pd.DataFrame({name: self._column(name) for name in names}, columns=list(names))

    def _column(self, name: str) -> Any:
        import pandas as pd

        head, parts = _split(name, self.columns)
        cells = self.columns[head]
        if parts and hasattr(cells, "struct") and getattr(cells.dtype, "kind", "") == "O" and _is_struct(cells.dtype):
            return cells.struct.field(parts).array
        if parts:
            cells = [_dig(cell, parts) for cell in cells]
        return pd.Series(cells, dtype=object) if isinstance(cells, list) else cells.array

    def cells(self, name: str) -> list[Any]:
        """The cells of one column or field of a table that is held in lists."""
        head, parts = _split(name, self.columns)
        return [_dig(cell, parts) for cell in self.columns[head]]

    def place(self, row: int) -> str:
        """Where a row stands."""
        return f"line {self.lines[row]}" if len(self.lines) else f"row {row + 1}"

    def careful(self) -> None:
        """Read already."""


@dataclass(frozen=True)
class EngineTable:
    """A frame that narwhals knows; a lazy one is counted where it is."""

    source: str
    frame: Any  # narwhals.DataFrame or narwhals.LazyFrame
    schema: Mapping[str, Any]
    error: type[AgenticBayesError]
    decimal_comma: ClassVar[bool] = False

    @property
    def names(self) -> Sequence[str]:
        """Its columns."""
        return list(self.schema)

    @property
    def lazy(self) -> bool:
        """Whether rows stay in the engine."""
        return not hasattr(self.frame, "to_pandas")

    def holds(self, name: str) -> bool:
        """Whether there is such a column, or such a field of a struct."""
        return self.kind(name) is not None

    def kind(self, name: str) -> Any:
        """The type of a column or field, or None."""
        head, parts = _split(name, self.schema)
        kind = self.schema.get(head)
        for part in parts:
            kind = {field.name: field.dtype for field in getattr(kind, "fields", ())}.get(part)
        return kind() if isinstance(kind, type) else kind

    def cells(self, name: str) -> Any:
        """The expression for a column or field."""
        import narwhals as nw

        head, parts = _split(name, self.schema)
        column = nw.col(f"`{head}`" if "." in head and self.frame.implementation.is_spark_like() else head)
        for part in parts:
            column = column.struct.field(part)
        return column.cast(nw.String) if self.kind(name) == nw.Date else column  # polars makes it a time of day

    def take(self, names: Sequence[str]) -> pd.DataFrame:
        """These columns, collected."""
        chosen = {name: self.cells(name) for name in names}
        return self.collected(self.selected(chosen), chosen)

    def collected(self, frame: Any, names: Iterable[str]) -> pd.DataFrame:
        """A narwhals frame made of this one as a pandas one, its columns called by these names."""
        with _engine(self.source, self.error):
            return _collected(frame, names)

    def selected(self, columns: Mapping[str, Any]) -> Any:
        """A frame of these expressions, called c0, c1, …: engines take dots in names for fields."""
        with _engine(self.source, self.error):
            return self.frame.select(*(cells.alias(f"c{i}") for i, cells in enumerate(columns.values())))

    def place(self, row: int) -> str:
        """Where a row stands."""
        return f"row {row + 1}"

    def careful(self) -> None:
        """There is no other way to read it."""


@contextmanager
def _engine(source: str, error: type[AgenticBayesError]) -> Iterator[None]:
    """What an engine raises (a file is gone, a connection is closed, a cast fails) as an error of the table."""
    try:
        yield
    except (AgenticBayesError, MemoryError):
        raise
    except Exception as cause:
        text = described(cause).strip().splitlines()[0]
        addresses = [word.strip("'\"(),;") for word in text.split()]  # which may hold a password
        text = Secrets(keys_in(os.environ) | secrets_in(addresses)).in_text(text)
        raise error(f"{source}: its engine could not read it ({text})") from cause


SORTED = 100_000  # rows, so that sorting costs nothing


def in_order(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows that an engine grouped, in an order that does not depend on the engine: messages name the first."""
    if len(frame) > SORTED:
        return frame
    return frame.sort_values(
        list(frame.columns),
        key=lambda cells: cells if cells.dtype.kind in "iuf" else cells.astype(object).map(str),
        ignore_index=True,
    )


def _collected(frame: Any, names: Iterable[str]) -> pd.DataFrame:
    import pandas as pd

    whole = frame
    if hasattr(frame, "collect"):
        streaming = {"engine": "streaming"} if frame.implementation.is_polars() else {}
        whole = frame.collect(**streaming)
    try:
        made: pd.DataFrame = whole.to_pandas().reset_index(drop=True)
    except ImportError:  # polars converts by pyarrow
        made = pd.DataFrame({name: whole[name].to_list() for name in whole.columns}, dtype=object)
    return made.set_axis(list(names), axis=1)


def open_frame(table: Any, *, error: type[AgenticBayesError]) -> LocalTable | EngineTable:
    """A table that is not a path: a frame of any library, records, a structured array or a Dataset of xarray."""
    name, origin = type(table).__name__, type(table).__module__.partition(".")[0]
    if origin == "pandas" and name == "DataFrame":
        return LocalTable("DataFrame", _pandas_columns(table, error), note=_index_note(table))
    if origin == "xarray" and name in ("Dataset", "DataArray"):
        named = table if name == "Dataset" else table.to_dataset(name=table.name or "correct")
        return LocalTable(name, _pandas_columns(named.to_dataframe().reset_index(), error))
    if origin == "numpy" and getattr(getattr(table, "dtype", None), "names", None):
        return LocalTable("array", {column: table[column].ravel().tolist() for column in table.dtype.names})
    if isinstance(table, (list, tuple)) and table and all(isinstance(record, Mapping) for record in table):
        return LocalTable.of_records("records", table)
    if hasattr(table, "read") or origin in ("builtins", "numpy"):
        raise error(f"table must be {FORMS}, got {name}{_advice(table)}")
    import narwhals as nw

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # that Dask will need a package of its own
        try:
            frame = nw.from_native(table)
        except TypeError:
            raise error(f"table must be {FORMS}, got {name}{_advice(table)}") from None
        except ImportError as cause:
            raise MissingPackage(f"reading a {name} needs another package: {cause}") from None
    with _engine(name, error):
        return EngineTable(name, frame, dict(frame.collect_schema()), error)


def _index_note(frame: pd.DataFrame) -> str:
    """What to do with an index of text without a name."""
    unnamed = frame.index.nlevels == 1 and frame.index.name is None and frame.index.dtype.kind not in "iuf"
    return 'If the index holds the tasks, name it: table = table.rename_axis("task")' if unnamed else ""


def _advice(table: Any) -> str:
    if isinstance(table, Mapping):
        return "; make one: pandas.DataFrame(table)"
    if isinstance(table, (list, tuple)):
        if not table:
            return " without rows"
        if all(hasattr(part, "columns") for part in table):
            return "; join them: pandas.concat(table)"
        return "; make one: pandas.DataFrame(table, columns=['task', 'correct'])"
    if hasattr(table, "to_table"):  # a Dataset of PyArrow's
        return "; read it lazily: polars.scan_pyarrow_dataset(table), or whole: table.to_table()"
    if type(table).__name__ == "RecordBatchReader":
        return "; read it whole: table.read_all()"
    if hasattr(table, "execute"):
        return "; give what a query of it selects: table.sql('select …')"
    if type(table).__name__ == "RecordBatch":
        return "; make a table of it: pyarrow.Table.from_batches([table])"
    if hasattr(table, "__next__"):
        return "; make a list of it: list(table)"
    if type(table).__name__ == "Series":
        return "; with tasks in the index: table.to_frame('correct')"
    if hasattr(table, "dtype"):
        return "; name its columns: pandas.DataFrame(table, columns=['task', 'correct'])"
    return ""


def _pandas_columns(frame: pd.DataFrame, error: type[AgenticBayesError]) -> dict[str, Any]:
    """Columns, and the levels of the index that have names."""
    if frame.columns.nlevels > 1:
        raise error(
            f"DataFrame: its columns have {frame.columns.nlevels} levels (two header lines?), they must have one: "
            'table.columns = table.columns.map(" ".join).str.strip(), or read the file with '
            "pandas.read_csv(path, header=0)"
        )
    repeated = sorted({str(name) for name in frame.columns[frame.columns.duplicated()]})
    if repeated:
        raise error(f"DataFrame: {twice(repeated)}")
    levels = {str(name): frame.index.get_level_values(i) for i, name in enumerate(frame.index.names) if name}
    return levels | {str(name): frame[name] for name in frame.columns}


def twice(names: Sequence[str]) -> str:
    """The message that columns share a name."""
    shared = plural(len(names), "name").replace("1 name", "this name")
    return f"columns occur twice: {', '.join(map(repr, names))}; rename or drop all but one column of {shared}"


def _split(name: str, columns: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The column that a name begins with, and the fields below it; ("", []) if there is none."""
    parts = name.split(".")
    for i in range(len(parts), 0, -1):
        if (head := ".".join(parts[:i])) in columns:
            return head, parts[i:]
    return "", []


def _has(cell: Any, parts: Sequence[str]) -> bool:
    for part in parts:
        if not isinstance(cell, Mapping) or part not in cell:
            return False
        cell = cell[part]
    return True


def _dig(cell: Any, parts: Sequence[str]) -> Any:
    for part in parts:
        cell = cell.get(part) if isinstance(cell, Mapping) else None
    return cell


def _is_struct(dtype: Any) -> bool:
    kind = getattr(dtype, "pyarrow_dtype", None)
    return kind is not None and str(kind).startswith("struct")
