"""Results of promptfoo: ``promptfoo eval -o results.json`` or ``.jsonl``."""

from __future__ import annotations

import json
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
from agentic_bayes.records.base import short

_ERROR = 2  # ResultFailureReason: 0 none, 1 an assertion failed, 2 the provider or the run failed


def _recognises(content: ResultsContent) -> bool:
    if content.object_with("evalId", "results"):
        return "results" in part(content.value["results"])
    return content.has("promptIdx", "testIdx", "success")


def _trials(content: ResultsContent) -> Iterator[ResultTrial]:
    document = content.object_with("evalId", "results")
    results = content.value["results"]["results"] if document else content.rows
    for where, result in each(results, "results.results" if document else "rows"):
        test, prompt, provider = (part(result.get(key)) for key in ("testCase", "prompt", "provider"))
        task = first_text(test.get("description"), _variables(result.get("vars") or test.get("vars")))
        names = (
            first_text(provider.get("label"), provider.get("id"), result.get("provider")),
            first_text(prompt.get("label"), prompt.get("raw"), result.get("promptId")),
        )
        graded = part(result.get("gradingResult"))
        reason = first_text(graded.get("reason"), result.get("error")) or ""
        crashed = result.get("failureReason") == _ERROR
        yield ResultTrial(
            agent=" | ".join(name for name in names if name is not None) or None,
            task=needed(task, "testCase.description, nor vars that name the test", where),
            scores={"success": result.get("success")} | part(result.get("namedScores")),
            reasons={"success": reason},
            error=(first_text(result.get("error")) or "the provider failed") if crashed else None,
            metadata=part(test.get("metadata")),
            place=where,
        )


def _variables(values: Any) -> str | None:
    """The variables of a test without a description, which name it."""
    given = isinstance(values, dict) and values
    return short(json.dumps(values, sort_keys=True, ensure_ascii=False), 200) if given else None


FORMAT = ResultsFormat(
    name="promptfoo",
    recognises=_recognises,
    trials=_trials,
    taken={
        "agent": "provider.label and prompt.label",
        "task": "testCase.description, else vars",
        "trial": "repeats of one test, in order",
        "score": "success",
        "error": "failureReason 2",
    },
    verdict="success",
)
