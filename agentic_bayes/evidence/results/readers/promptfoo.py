"""Results of promptfoo: ``promptfoo eval -o results.json`` or ``.jsonl``, or what its ``evaluate()`` gives as JSON."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
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

_LONGEST = 100  # characters of variables in the name of a task; beyond, a hash tells them apart
_ASSERT, _ERROR = 1, 2  # ResultFailureReason: 0 none, 1 an assertion failed, 2 the provider or the run failed
_EMPTY = "No output"  # promptfoo's error for an answer of nothing, which was judged: it is wrong


def _recognises(content: ResultsContent) -> bool:
    return content.has("promptIdx", "testIdx", "success") or _document(content) is not None


def _document(content: ResultsContent) -> tuple[str, Any] | None:
    """The results of a whole evaluation and their place; old versions have no `evalId`."""
    if not content.object_with("results"):
        return None
    whole, inner = content.value, part(content.value["results"])
    if "results" in inner and ("evalId" in whole or "stats" in inner):
        return "results.results", inner["results"]
    return ("results", whole["results"]) if {"version", "stats"} <= whole.keys() and not inner else None


def _trials(content: ResultsContent) -> Iterator[ResultTrial]:
    place, results = _document(content) or ("rows", content.rows)
    found = list(each(results, place))
    described = defaultdict(set)  # tests of one description but different variables are different tests
    for description, variables in (_name(result) for _, result in found):
        described[description].add(variables)
    columns = defaultdict(set)  # as are providers of one name: each with a prompt is a column of its own
    for _, result in found:
        columns[_agent(result)].add(result.get("promptIdx"))
    for where, result in found:
        test, agent = part(result.get("testCase")), _agent(result)
        if agent is not None and len(columns[agent]) > 1:
            agent = f"{agent} (column {result.get('promptIdx')})"
        description, variables = _name(result)
        both = len(described[description]) > 1 and variables is not None
        task = f"{description} {variables}" if description and both else description or variables
        graded = part(result.get("gradingResult"))
        reason = first_text(graded.get("reason"), result.get("error")) or ""
        yield ResultTrial(
            agent=agent,
            task=needed(task, "testCase.description, nor vars that name the test", where),
            scores={"success": result.get("success"), "score": result.get("score")} | part(result.get("namedScores")),
            reasons={"success": reason},
            error=(first_text(result.get("error")) or "the provider failed") if _crashed(result) else None,
            metadata=part(test.get("metadata")),
            place=where,
            raw=result,
            asks=as_text(test.get("assert")),
            uid=first_text(result.get("id")),
        )


def _crashed(result: dict[str, Any]) -> bool:
    """Whether the provider failed; old versions gave no reason, but then nothing was graded."""
    if result.get("failureReason") in (_ASSERT, _ERROR):
        return bool(result["failureReason"] == _ERROR)
    ungraded = "namedScores" in result and result.get("gradingResult") is None
    return ungraded and result.get("success") is False and result.get("error") not in (None, "", _EMPTY)


def _agent(result: dict[str, Any]) -> str | None:
    """The provider and its prompt."""
    provider, prompt = part(result.get("provider")), part(result.get("prompt"))
    names = (
        first_text(provider.get("label"), provider.get("id"), result.get("provider")),
        first_text(prompt.get("label"), prompt.get("raw"), result.get("promptId")),
    )
    return " | ".join(name for name in names if name is not None) or None


def _name(result: dict[str, Any]) -> tuple[str | None, str | None]:
    """The description of a test, and its variables."""
    test = part(result.get("testCase"))
    return first_text(test.get("description")), _variables(result.get("vars") or test.get("vars"))


def _variables(values: Any) -> str | None:
    """The variables of a test without a description, which name it."""
    if not isinstance(values, dict) or not values:
        return None
    text = json.dumps(values, sort_keys=True, ensure_ascii=False)
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}… {hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:8]}"


FORMAT = ResultsFormat(
    name="promptfoo",
    recognises=_recognises,
    trials=_trials,
    taken={
        "agent": "provider.label and prompt.label, and promptIdx where several share these",
        "task": "testCase.description, and vars where it has none or one of several",
        "trial": "repeats of one test, in order",
        "score": "success",
        "error": "failureReason 2; in old versions an error of what was not graded",
    },
    verdict="success",
)
