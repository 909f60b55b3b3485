"""Results of LangSmith experiments: what ``evaluate(…).to_pandas()`` gives, as CSV, JSON or JSON lines."""

from __future__ import annotations

from collections.abc import Iterator

from agentic_bayes.evidence.results.base import ResultsContent, ResultsFormat, ResultTrial, each, first_text, needed
from agentic_bayes.evidence.table import is_blank

_SCORE, _INPUT = "feedback.", "inputs."


def _recognises(content: ResultsContent) -> bool:
    return content.has("example_id", "execution_time", "error")


def _trials(content: ResultsContent) -> Iterator[ResultTrial]:
    for where, row in each(content.rows, "rows"):
        yield ResultTrial(
            task=needed(first_text(row.get("example_id")), "example_id", where),
            scores={name.removeprefix(_SCORE): row[name] for name in row if name.startswith(_SCORE)},
            error=None if is_blank(row.get("error")) else str(row.get("error")).partition("\n")[0],
            metadata={name: value for name, value in row.items() if name.startswith(_INPUT) and not is_blank(value)},
            place=where,
            raw=row,
            uid=first_text(row.get("id")),
        )


FORMAT = ResultsFormat(
    name="langsmith",
    recognises=_recognises,
    trials=_trials,
    taken={"task": "example_id", "trial": "repetitions of one example, in order", "error": "error"},
)
