"""Tables of Inspect: ``samples_df``, one row per sample; ``evals_df``, one row per run, is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agentic_bayes.errors import EvidenceError
from agentic_bayes.evidence.results.base import ResultsContent, ResultsFormat, ResultTrial, first_text, needed
from agentic_bayes.evidence.table import is_blank, label, whole_number

_SCORE, _METADATA = "score_", "metadata_"
_WITH_MODEL = "samples_df(logs, columns=EvalModel + EvalTask + SampleSummary)"


def _samples(content: ResultsContent) -> Iterator[ResultTrial]:
    rows = content.rows
    if not content.has("model") and len({row.get("eval_id") for row in rows}) > 1:
        raise EvidenceError(f"several runs and no column model, which tells agents apart: write it with {_WITH_MODEL}")
    several = len({row.get("task_name") for row in rows}) > 1
    for i, row in enumerate(rows):
        where = f"row {i + 1}"
        name = needed(None if is_blank(row.get("id")) else label(row["id"]), "id", where)
        yield ResultTrial(
            agent=first_text(row.get("model")),
            task=f"{row.get('task_name')}/{name}" if several else name,
            trial=whole_number(row.get("epoch")),
            scores={key.removeprefix(_SCORE): _cell(value) for key, value in row.items() if key.startswith(_SCORE)},
            error=None if is_blank(row.get("error")) else first_text(row["error"]),
            metadata={
                key.removeprefix(_METADATA): value
                for key, value in row.items()
                if key.startswith(_METADATA) and not is_blank(value)
            },
            place=where,
        )


def _cell(value: Any) -> Any:
    """A score; one with several values is written as JSON."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return None if not isinstance(value, (dict, list)) and is_blank(value) else value


def _evals(content: ResultsContent) -> Iterator[ResultTrial]:
    raise EvidenceError(
        "evals_df has one row per run, with averages from which single trials cannot be told. "
        f"Write the samples: {_WITH_MODEL}.to_csv(…)"
    )


SAMPLES = ResultsFormat(
    name="inspect samples_df",
    recognises=lambda content: content.has("sample_id", "eval_id", "id", "epoch"),
    trials=_samples,
    taken={"agent": "model", "task": "id", "trial": "epoch", "error": "error"},
)
EVALS = ResultsFormat(
    name="inspect evals_df",
    recognises=lambda content: content.has("eval_id", "task_name", "total_samples", "completed_samples"),
    trials=_evals,
    taken={},
)
