"""Tables of Inspect: ``samples_df``, one row per sample; ``evals_df``, one row per run with its accuracy."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from agentic_bayes.errors import DoubtfulRecords, EvidenceError
from agentic_bayes.evidence.results.base import ResultsContent, ResultsFormat, ResultTrial, first_text, needed
from agentic_bayes.evidence.table import is_blank, label, number, whole_number
from agentic_bayes.records.base import short

_SCORE, _METADATA, _ENDS = "score_", "metadata_", ("accuracy", "mean")
_AVERAGE = re.compile(rf"{_SCORE}(?!headline_)(.+)_(?:{'|'.join(_ENDS)})")
_MOST = 1_000_000  # samples of a run
_WITH_MODEL = "samples_df(logs, columns=EvalModel + EvalTask + SampleSummary)"
_ONE_TASK = (
    "evals_df has one row per run, so each benchmark is one task and its samples are attempts at it: pass@1 is its "
    f"accuracy, but a larger k says nothing about its samples; for that, write the samples: {_WITH_MODEL}"
)


def _samples(content: ResultsContent) -> Iterator[ResultTrial]:
    rows = content.rows
    if not content.has("model") and len({row.get("eval_id") for row in rows}) > 1:
        raise EvidenceError(f"several runs and no column model, which tells agents apart: write it with {_WITH_MODEL}")
    several = len({row.get("task_name") for row in rows}) > 1
    places = [tuple(str(row.get(name)) for name in ("model", "task_name", "id", "epoch")) for row in rows]
    once = len(set(places)) == len(rows)  # else runs that were repeated, each with its own epoch 1
    for i, row in enumerate(rows):
        where = f"row {i + 1}"
        name = needed(None if is_blank(row.get("id")) else label(row["id"]), "id", where)
        yield ResultTrial(
            agent=first_text(row.get("model")),
            task=f"{row.get('task_name')}/{name}" if several else name,
            trial=whole_number(row.get("epoch")) if once else None,
            scores={key.removeprefix(_SCORE): _cell(value) for key, value in row.items() if key.startswith(_SCORE)},
            error=None if is_blank(row.get("error")) else first_text(row["error"]),
            metadata={
                key.removeprefix(_METADATA): value
                for key, value in row.items()
                if key.startswith(_METADATA) and not is_blank(value)
            },
            place=where,
            raw=row,
            asks=None if is_blank(row.get("input")) else str(row["input"]),
            uid=first_text(row.get("sample_id")),
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
    """The trials behind averages of 0 and 1: as many right as make the average."""
    names = dict.fromkeys(match[1] for name in content.rows[0] if (match := _AVERAGE.fullmatch(str(name))))
    rows = [(f"row {i + 1}", row, *_sizes(row, f"row {i + 1}")) for i, row in enumerate(content.rows)]
    whole = [name for name in names if all(_right(row, name, n) is not None for _, row, n, _ in rows)]
    if not whole:
        raise EvidenceError(
            "evals_df has one row per run, and its averages are not those of right and wrong samples. "
            f"Write the samples: {_WITH_MODEL}.to_csv(…)"
        )
    warnings.warn(_ONE_TASK, DoubtfulRecords, stacklevel=2)
    for where, row, completed, total in rows:
        right = {name: _right(row, name, completed) or 0 for name in whole}
        for sample in range(total):
            yield ResultTrial(
                agent=needed(first_text(row.get("model")), "model", where),
                task=needed(first_text(row.get("task_name")), "task_name", where),
                scores={name: sample < right[name] for name in whole} if sample < completed else {},
                error=None if sample < completed else first_text(row.get("error_message")) or "it did not complete",
                place=where,
                raw=row,
            )


def _sizes(row: Mapping[str, Any], where: str) -> tuple[int, int]:
    """How many samples of a run were completed, and how many there are; a run that broke off has no totals."""
    if is_blank(row.get("total_samples")):
        total = (whole_number(row.get("dataset_samples")) or 0) * (whole_number(row.get("epochs")) or 1)
        completed: int | None = 0
    else:
        total, completed = whole_number(row["total_samples"]) or 0, whole_number(row.get("completed_samples"))
    if completed is None or not completed <= total <= _MOST:
        numbers = f"{short(row.get('completed_samples'))} of {short(row.get('total_samples'))}"
        raise EvidenceError(f"{where}: completed_samples of total_samples must be whole numbers, got {numbers}")
    return completed, total


def _right(row: Mapping[str, Any], name: str, completed: int) -> int | None:
    """How many samples are right, if the average is that of right and wrong ones."""
    average = next((value for end in _ENDS if (value := number(row.get(f"{_SCORE}{name}_{end}"))) is not None), None)
    if completed == 0:
        return 0
    right = -1.0 if average is None else average * completed
    return round(right) if -1e-6 < right < completed + 1e-6 and abs(right - round(right)) < 1e-6 else None


SAMPLES = ResultsFormat(
    name="inspect samples_df",
    recognises=lambda content: content.has("sample_id", "eval_id", "id", "epoch"),
    trials=_samples,
    taken={"agent": "model", "task": "id", "trial": "epoch; runs of one model, in order", "error": "error"},
)
EVALS = ResultsFormat(
    name="inspect evals_df",
    recognises=lambda content: content.has("eval_id", "task_name", "total_samples", "completed_samples"),
    trials=_evals,
    taken={
        "agent": "model",
        "task": "task_name, the whole benchmark",
        "trial": "its samples, as if they were attempts at one task (samples_df tells them apart)",
        "error": "samples that did not complete",
    },
)
