"""Reports of pydantic-evals: an ``EvaluationReport`` as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from agentic_bayes.evidence.results.base import (
    ResultsContent,
    ResultsFormat,
    ResultTrial,
    as_text,
    each,
    first_text,
    needed,
    part,
)
from agentic_bayes.records.wire.scores import LABELS

_REPEAT = re.compile(r"(.*) \[(\d{1,9})/\d{1,9}\]", re.DOTALL)


def _trials(content: ResultsContent) -> Iterator[ResultTrial]:
    report = content.value
    for where, case in each(report["cases"], "cases"):
        verdicts = {name: label for name, label in part(case.get("labels")).items() if _is_verdict(label)}
        results = part(case.get("assertions")) | part(case.get("scores")) | verdicts
        failed = [failure for _, failure in each(case.get("evaluator_failures") or (), f"{where}.evaluator_failures")]
        yield ResultTrial(
            **_identity(report, case, where),
            scores={name: part(result).get("value") for name, result in results.items()}
            | {str(failure.get("name")): None for failure in failed},
            reasons={
                name: text for name, result in results.items() if (text := first_text(part(result).get("reason")))
            },
        )
    for where, case in each(report.get("failures") or [], "failures"):
        yield ResultTrial(**_identity(report, case, where), error=first_text(case.get("error_message")) or "it failed")


def _recognises(content: ResultsContent) -> bool:
    """Reports of old versions have no failures."""
    cases = content.value["cases"] if content.object_with("cases", "name") else None
    first = part(cases[0]) if isinstance(cases, list) and cases else {}
    return content.object_with("cases", "name", "failures") or {"assertions", "scores", "labels"} <= first.keys()


def _is_verdict(label: Any) -> bool:
    """Whether a label is one like yes or pass, which is a score."""
    return str(part(label).get("value")).strip().lower() in LABELS


def _identity(report: dict[str, Any], case: dict[str, Any], where: str) -> dict[str, Any]:
    name = first_text(case.get("name"), case.get("source_case_name"))
    repeat = _REPEAT.fullmatch(name or "")
    return {
        "agent": first_text(report.get("name")),
        "task": needed(first_text(case.get("source_case_name"), repeat[1] if repeat else name), "name", where),
        "trial": int(repeat[2]) if repeat else None,
        "metadata": part(case.get("metadata")),
        "place": where,
        "raw": case,
        "asks": as_text(case.get("inputs")),
    }


FORMAT = ResultsFormat(
    name="pydantic-evals",
    recognises=_recognises,
    trials=_trials,
    taken={
        "agent": "the report's name",
        "task": "source_case_name, else name",
        "trial": "[i/n] in name",
        "error": "failures",
    },
)
