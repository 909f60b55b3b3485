"""Results of MLflow's GenAI evaluation: the table ``result_df`` of ``mlflow.genai.evaluate``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from agentic_bayes.evidence.results.base import ResultsContent, ResultsFormat, ResultTrial, first_text, needed, part
from agentic_bayes.evidence.table import is_blank

_VALUE = "/value"


def _trials(content: ResultsContent) -> Iterator[ResultTrial]:
    names = [str(name).removesuffix(_VALUE) for name in content.rows[0] if str(name).endswith(_VALUE)]
    for i, row in enumerate(content.rows):
        where = f"row {i + 1}"
        expected = _expectations(row)
        scores = {name: row.get(name + _VALUE) for name in names if name not in expected}
        request = row.get("request")
        request = str(request) if isinstance(request, (dict, list)) else request  # as pandas writes it to a CSV
        failed = str(row.get("state")).upper().endswith("ERROR")
        yield ResultTrial(
            task=needed(first_text(request), "request", where),
            scores={name: None if is_blank(value) else value for name, value in scores.items()},
            error="the trace ended in an error" if failed else None,
            place=where,
            raw=row,
            uid=first_text(row.get("trace_id")),
        )


def _expectations(row: Mapping[str, Any]) -> set[str]:
    """Names of the assessments that say what is expected, which are no scores."""
    trace = row.get("trace")
    if isinstance(trace, str):
        try:
            trace = json.loads(trace)
        except (ValueError, RecursionError):
            trace = None
    assessments = part(part(trace).get("info")).get("assessments") or row.get("assessments")
    return {
        str(assessment.get("assessment_name"))
        for assessment in (assessments if isinstance(assessments, list) else ())
        if isinstance(assessment, Mapping) and "expectation" in assessment
    }


FORMAT = ResultsFormat(
    name="mlflow",
    recognises=lambda content: (
        content.has("trace_id", "request", "state") and any(name.endswith(_VALUE) for name in content.columns)
    ),
    trials=_trials,
    taken={"task": "request", "trial": "rows with one request, in order", "error": "state ERROR"},
)
