"""Results as JUnit XML, of pytest and many others: each test case is a task with one trial, unless it says otherwise.

It says so in the files of this package: ``test_x[trial2/5]`` by the pytest plugin, ``task [2]`` by suites.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NoReturn
from xml.etree import ElementTree

from agentic_bayes.errors import EvidenceError
from agentic_bayes.evidence.results.base import ResultsContent, ResultsFormat, ResultTrial, needed

_HEAD = 10_000
_ROOT = re.compile(r"<(?![?!])(?P<name>[^\s/>]+)")
_OF_PLUGIN = re.compile(r"(?P<task>.*)(?P<before>[\[-])trial(?P<trial>\d+)/\d+\]", re.DOTALL)
_OF_SUITE = re.compile(r"(?P<task>.+) \[(?P<trial>\d+)\]", re.DOTALL)
_ERRORED, _FAILED = "trial errored: ", "trial failed: "  # how the plugin begins the reasons of skipped trials
_AFTERWARDS = "failed on teardown"  # pytest's second case of a test that failed already


class _Safe(ElementTree.TreeBuilder):
    """A file of results declares no document type: only there could entities grow or lead to other files."""

    def doctype(self, name: str, *_: Any) -> NoReturn:
        raise EvidenceError(f"declares a document type, {name}, which files of results do not: it is not read")


def _recognises(content: ResultsContent) -> bool:
    head = re.sub(r"<!--.*?-->", "", content.text[:_HEAD], flags=re.DOTALL)
    root = _ROOT.search(head)
    return root is not None and root["name"] in ("testsuites", "testsuite")


def _trials(content: ResultsContent) -> Iterator[ResultTrial]:
    try:
        root = ElementTree.fromstring(content.text, parser=ElementTree.XMLParser(target=_Safe()))
    except ElementTree.ParseError as cause:
        raise EvidenceError(f"not complete XML ({cause})") from None
    if root.get("name") == "agentic-bayes":
        raise EvidenceError("holds the verdicts of agentic-bayes gate, not trials: give the file that was judged")
    cases = list(root.iter("testcase"))
    names = [needed(case.get("name"), "name", f"testcase {i}") for i, case in enumerate(cases, start=1)]
    marked = [_OF_PLUGIN.fullmatch(name) for name in names]
    own = [_OF_SUITE.fullmatch(name) for name in names]
    of_suite = root.tag == "testsuite" and all(own) and all(case.get("classname") for case in cases)
    of_plugin, seen = any(marked), set()
    for i, (case, name) in enumerate(zip(cases, names, strict=True)):
        where, group = f"testcase {i + 1} ({name})", case.get("classname")
        found = own[i] if of_suite else marked[i]
        if found is None and of_plugin:
            continue  # the verdict on the trials of a test, or a test that has none
        verdict = _verdict(case)
        if (group, name) in seen and (verdict.get("error") or "").startswith(_AFTERWARDS):
            continue
        seen.add((group, name))
        task = found["task"] + ("]" if found.groupdict().get("before") == "-" else "") if found else name
        yield ResultTrial(
            agent=group if of_suite else None,
            task=task if of_suite or not group else f"{group}::{task}",
            trial=int(found["trial"]) if found else None,
            metadata={} if of_suite or not group else {"class": group},
            place=where,
            raw={**case.attrib, "properties": _properties(case)},
            **verdict,
        )


def _verdict(case: ElementTree.Element) -> dict[str, Any]:
    """What a case says of its trial: a failure was judged, an error was not."""
    if (why := _reason(case, "failure")) is not None:
        return {"scores": {"passed": False}, "reasons": {"passed": why}}
    if (why := _reason(case, "error")) is not None:
        return {"error": why or "error"}
    if (why := _reason(case, "skipped")) is None:
        return {"scores": {"passed": True}}
    if why.startswith(_FAILED):
        return {"scores": {"passed": False}, "reasons": {"passed": why.removeprefix(_FAILED)}}
    if why.startswith(_ERRORED):
        return {"error": why.removeprefix(_ERRORED)}
    return {"unscored": f"skipped: {why}" if why else "skipped"}


def _properties(case: ElementTree.Element) -> dict[str, str | None]:
    """What a case says of itself beyond its verdict."""
    return {one.get("name", ""): one.get("value") for one in case.iterfind("properties/property")}


def _reason(case: ElementTree.Element, tag: str) -> str | None:
    """The first line of what an element of a case says, if there is one."""
    found = case.find(tag)
    text = None if found is None else (found.get("message") or found.text or "").strip()
    return text.partition("\n")[0] if text else text


FORMAT = ResultsFormat(
    name="junit",
    recognises=_recognises,
    trials=_trials,
    taken={
        "task": "classname::name",
        "trial": "cases of one name, in order; trialN of the pytest plugin",
        "error": "error; what was skipped is unscored",
    },
)
