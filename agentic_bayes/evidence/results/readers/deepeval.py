"""Results of DeepEval: an ``EvaluationResult`` as JSON, or the test run that DeepEval keeps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from agentic_bayes.evidence.results.base import (
    ResultsContent,
    ResultsFormat,
    ResultTrial,
    each,
    first_text,
    needed,
    part,
)

_LISTS = ("test_results", "testCases", "conversationalTestCases")
_NUMBERED = re.compile(r"test_case_\d+")  # the name of a test case that was given none


def _run(value: Any) -> dict[str, Any]:
    """The test run, which DeepEval's cache wraps."""
    return part(part(value).get("testRunData")) or part(value)


def _recognises(content: ResultsContent) -> bool:
    run = _run(content.value)
    return "test_results" in run or ("metricsScores" in run and any(key in run for key in _LISTS))


def _trials(content: ResultsContent) -> Iterator[ResultTrial]:
    run = _run(content.value)
    found = [one for key in _LISTS if run.get(key) is not None for one in each(run[key], key)]
    cases = [(where, case, _metrics(case, where)) for where, case in found]
    # of some metrics, such as bias, a low score is good: their verdict is the score
    low = {name for _, _, metrics in cases for name, metric in metrics.items() if _contradicts(metric)}
    for where, case, metrics in cases:
        name = first_text(case.get("name"))
        asked = first_text(case.get("input"))
        task = asked if asked and (name is None or _NUMBERED.fullmatch(name)) else name
        faults = [text for metric in metrics.values() if (text := first_text(metric.get("error")))]
        failed = any(metric.get("success") is False and not metric.get("error") for metric in metrics.values())
        yield ResultTrial(
            task=needed(task, "name, nor an input", where),
            scores={"success": case.get("success") if failed or not faults else None}
            | {
                name: None if metric.get("error") else metric.get("success" if name in low else "score")
                for name, metric in metrics.items()
            },
            thresholds={
                name: float(bar)
                for name, metric in metrics.items()
                if isinstance(bar := metric.get("threshold"), (int, float)) and 0 <= bar <= 1 and name not in low
            },
            reasons={name: text for name, metric in metrics.items() if (text := first_text(metric.get("reason")))},
            unscored=f"a metric failed: {faults[0]}" if faults else None,
            metadata=part(case.get("metadata") or case.get("additional_metadata")),
            place=where,
            raw=case,
            asks=asked,
        )


def _metrics(case: dict[str, Any], where: str) -> dict[str, dict[str, Any]]:
    data = case.get("metrics_data") or case.get("metricsData") or []
    return {str(metric.get("name")): metric for _, metric in each(data, f"{where}.metrics_data")}


def _contradicts(metric: dict[str, Any]) -> bool:
    """Whether the verdict is not that the score reaches the threshold."""
    score, bar = metric.get("score"), metric.get("threshold")
    if not isinstance(score, (int, float)) or not isinstance(bar, (int, float)) or metric.get("error"):
        return False
    return isinstance(metric.get("success"), bool) and metric["success"] != (score >= bar)


FORMAT = ResultsFormat(
    name="deepeval",
    recognises=_recognises,
    trials=_trials,
    taken={
        "task": "name, or input where it has no name of its own",
        "trial": "test cases of one name, in order",
        "error": "none",
    },
    verdict="success",
)
