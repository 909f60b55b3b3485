"""Results of DeepEval: an ``EvaluationResult`` as JSON, or the test run that DeepEval keeps."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentic_bayes.evidence.results.base import (
    ResultsContent,
    ResultsFormat,
    ResultTrial,
    each,
    first_text,
    needed,
    part,
)

_NUMBERED = re.compile(r"test_case_\d+")  # the name of a test case that was given none


def _trials(content: ResultsContent) -> Iterator[ResultTrial]:
    key = "test_results" if "test_results" in content.value else "testCases"
    for where, case in each(content.value[key], key):
        data = case.get("metrics_data") or case.get("metricsData") or []
        metrics = {str(metric.get("name")): metric for _, metric in each(data, f"{where}.metrics_data")}
        name = first_text(case.get("name"))
        asked = first_text(case.get("input"))
        task = asked if asked and (name is None or _NUMBERED.fullmatch(name)) else name
        faults = [text for metric in metrics.values() if (text := first_text(metric.get("error")))]
        yield ResultTrial(
            task=needed(task, "name, nor an input", where),
            scores={"success": case.get("success")} | {name: metric.get("score") for name, metric in metrics.items()},
            thresholds={
                name: float(bar)
                for name, metric in metrics.items()
                if isinstance(bar := metric.get("threshold"), (int, float)) and 0 <= bar <= 1
            },
            reasons={name: text for name, metric in metrics.items() if (text := first_text(metric.get("reason")))},
            unscored=f"a metric failed: {faults[0]}" if faults else None,
            metadata=part(case.get("metadata") or case.get("additional_metadata")),
            place=where,
        )


FORMAT = ResultsFormat(
    name="deepeval",
    recognises=lambda content: content.object_with("test_results") or content.object_with("testCases", "metricsScores"),
    trials=_trials,
    taken={
        "task": "name, or input where it has no name of its own",
        "trial": "test cases of one name, in order",
        "error": "none",
    },
    verdict="success",
)
