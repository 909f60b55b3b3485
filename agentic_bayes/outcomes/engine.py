"""Counts the rows of a lazy table in its engine, so that only counts come back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentic_bayes.evidence import table as tables
from agentic_bayes.evidence.frames import EngineTable, collected

if TYPE_CHECKING:
    import pandas as pd

COUNTED = "rows counted in the engine"  # a column that no table has


def count_in_engine(
    table: EngineTable,
    labels: Sequence[str],
    correct: str,
    *,
    error: str | None,
    trial: str | None,
    threshold: float | None,
) -> pd.DataFrame:
    """The distinct rows of these columns, and in `COUNTED` how many there are of each.

    Instead of errors there is whether there was one, instead of trials whether they are blank, and instead of scores
    within [0, 1] which side of the threshold they are on.
    """
    import narwhals as nw

    columns = {name: table.cells(name) for name in labels}
    columns[correct] = table.cells(correct)
    kind: Any = table.kind(correct)
    if threshold is not None and kind.is_numeric():
        score = columns[correct]
        within = (score >= 0) & (score <= 1)
        reached = nw.when(score >= threshold).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
        columns[correct] = nw.when(within).then(reached).otherwise(score.cast(nw.Float64))
    if error is not None and table.kind(error) != nw.Boolean:
        text = table.cells(error).cast(nw.String).str.strip_chars().str.to_lowercase()
        columns[error] = ~(text.is_null() | text.is_in([*tables.BLANK, *tables.NO_ERROR]))
    if trial is not None:
        columns[trial] = nw.when(~table.cells(trial).is_null()).then(nw.lit("given"))
    return _grouped(table, columns)


def repeated_in_engine(table: EngineTable, names: Sequence[str]) -> pd.DataFrame:
    """Some of the combinations of labels that occur more than once, and how often."""
    import narwhals as nw

    texts = {name: table.cells(name) for name in names}
    for name in names:
        if table.kind(name) == nw.String:
            texts[name] = texts[name].str.strip_chars()  # as labels are read
    return _grouped(table, texts, repeated=True)


def _grouped(table: EngineTable, columns: Mapping[str, Any], *, repeated: bool = False) -> pd.DataFrame:
    """The distinct rows and their numbers; of the `repeated` ones only the first few."""
    import narwhals as nw

    chosen = table.selected(columns)
    counts = chosen.group_by(*chosen.collect_schema().names()).agg(nw.len().alias("rows"))
    if repeated:
        counts = counts.filter(nw.col("rows") > 1).head(tables.SHOWN + 1)
    return collected(counts, [*columns, COUNTED])
