"""Results of EvalPlus: ``*_eval_results.json``, with the scores `base`, and `plus`: base and further tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentic_bayes.errors import EvidenceError
from agentic_bayes.evidence.results.base import ResultsContent, ResultsFormat, ResultTrial, each
from agentic_bayes.records.base import short

_ENDING = "eval_results.json"
_PASSED, _STATUSES = ("pass", "success"), ("pass", "fail", "timeout", "success", "failed", "timed out")


def _recognises(content: ResultsContent) -> bool:
    return content.object_with("hash", "eval") and isinstance(content.value["eval"], dict)


def _trials(content: ResultsContent) -> Iterator[ResultTrial]:
    path = Path(content.source)
    agent = path.name.removesuffix(_ENDING).rstrip("_") or path.resolve().parent.name
    for task, samples in content.value["eval"].items():
        for where, sample in each(_samples(samples), f"eval[{task!r}]"):
            base = _passed(sample, "base_status", where)
            scores = {"base": base}
            # as EvalPlus counts: the further tests only count with the first ones
            if sample.get("plus_status") is not None:
                scores["plus"] = _passed(sample, "plus_status", where) and base
            yield ResultTrial(
                agent=agent if path.name.endswith(_ENDING) else None,
                task=task,
                scores=scores,
                reasons={name: str(sample[f"{name}_status"]) for name in scores},
                place=where,
                raw=sample,
            )


def _samples(found: Any) -> Any:
    """The samples of a task; before version 0.2.1 their verdicts stood in a list for each score."""
    if not isinstance(found, dict) or not isinstance(found.get("base"), list):
        return found
    lists = {f"{name}_status": found.get(name) or [] for name in ("base", "plus")}
    first = {
        status: [pair[0] if isinstance(pair, list) and pair else pair for pair in listed]
        for status, listed in lists.items()
    }
    return [
        {status: statuses[i] for status, statuses in first.items() if i < len(statuses)}
        for i in range(len(found["base"]))
    ]


def _passed(sample: dict[str, Any], status: str, where: str) -> bool:
    if sample.get(status) not in _STATUSES:
        allowed = ", ".join(_STATUSES[:3])
        raise EvidenceError(f"{where}.{status} must be one of {allowed}, got {short(sample.get(status))}")
    return sample[status] in _PASSED


FORMAT = ResultsFormat(
    name="evalplus",
    recognises=_recognises,
    trials=_trials,
    taken={
        "agent": "the file's name before _eval_results.json",
        "task": "task_id",
        "trial": "samples of one task, in order",
        "error": "none: a timeout is a failure",
    },
)
