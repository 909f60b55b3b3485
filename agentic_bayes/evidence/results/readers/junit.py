"""Results as JUnit XML, of pytest and many others: each test case is a task with one trial, unless it says otherwise.

It says so in the files of this package: ``test_x[trial2/5]`` by the pytest plugin, ``task [2]`` by suites.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any, NoReturn
from xml.etree import ElementTree

from agentic_bayes.errors import DoubtfulRecords, EvidenceError
from agentic_bayes.evidence.results.base import ResultsContent, ResultsFormat, ResultTrial, needed

_HEAD = 10_000
_ROOT = re.compile(r"<(?![?!])(?P<name>[^\s/>]+)")
_OF_PLUGIN = re.compile(r"(?P<task>.*)(?P<before>[\[-])trial(?P<trial>\d+)/\d+\]", re.DOTALL)
_OF_SUITE = re.compile(r"(?P<task>.+) \[(?P<trial>\d+)\]", re.DOTALL)
_ERRORED, _FAILED = "trial errored: ", "trial failed: "  # how the plugin begins the reasons of skipped trials
_REPEATED = {  # of Maven's Surefire, nextest and others: an attempt before the last one
    **dict.fromkeys(("flakyFailure", "rerunFailure", "rerun"), "failure"),
    **dict.fromkeys(("flakyError", "rerunError"), "error"),
}
_FAILURES, _ERRORS = {"fail", "failed", "failure"}, {"error", "errored"}  # attributes status and result
_NOT_RUN = {"notrun", "disabled", "skipped", "ignored", "suppressed"}  # as GoogleTest and CTest write it
_AFTERWARDS = "failed on teardown"  # pytest's second case of a test that failed already


class _Safe(ElementTree.TreeBuilder):
    """A file of results declares no document type: only there could entities grow or lead to other files."""

    def start(self, tag: str, attrs: dict[str, str]) -> ElementTree.Element:
        return super().start(tag.rpartition("}")[2], attrs)  # a namespace says nothing

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
    for doubt in _doubts(root):
        warnings.warn(f"{content.source}: {doubt}", DoubtfulRecords, stacklevel=2)
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
        attempts = list(_attempts(case))
        if (group, name) in seen and (attempts[0].get("error") or "").startswith(_AFTERWARDS):
            continue
        seen.add((group, name))
        task = found["task"] + ("]" if found.groupdict().get("before") == "-" else "") if found else name
        for verdict in attempts:
            yield ResultTrial(
                agent=group if of_suite else None,
                task=task if of_suite or not group else f"{group}::{task}",
                trial=int(found["trial"]) if found and len(attempts) == 1 else None,
                metadata={} if of_suite or not group else {"class": group},
                place=where,
                raw={**case.attrib, "properties": _properties(case)},
                **verdict,
            )


def _doubts(root: ElementTree.Element) -> Iterator[str]:
    """What may be wrong with the file: cases that are missing, and different tests that share a name."""
    homes: dict[tuple[str | None, str | None], set[str]] = {}
    for suite in root.iter("testsuite"):
        cases, count = len(list(suite.iter("testcase"))), suite.get("tests", "")
        if cases and count.isdecimal() and cases < int(count):
            yield f"suite {suite.get('name')!r} had {count} tests, and {cases} are in the file"
        for case in suite.findall("testcase"):
            home = case.get("file") or suite.get("file") or suite.get("name") or ""
            homes.setdefault((case.get("classname"), case.get("name")), set()).add(home)
    for (_, name), found in homes.items():
        if len(found) > 1:
            yield (
                f"test {name!r} is in {' and '.join(map(repr, sorted(found)[:3]))} and counts as one task; if "
                "these are different tests, give them class names that tell them apart"
            )
            return


def _attempts(case: ElementTree.Element) -> Iterator[dict[str, Any]]:
    """The verdicts on a case: runners that repeat what failed write the other attempts, which all failed, into it."""
    for one in case:
        if (kind := _REPEATED.get(one.tag)) is not None:
            yield _failure(_line(one)) if kind == "failure" else {"error": _line(one) or "error"}
    yield _verdict(case)


def _verdict(case: ElementTree.Element) -> dict[str, Any]:
    """What a case says of its trial: a failure was judged, an error was not."""
    status = {str(case.get(name)).lower() for name in ("status", "result")}
    if (why := _reason(case, "failure")) is not None or status & _FAILURES:
        return _failure(why or "")
    if (why := _reason(case, "error")) is not None or status & _ERRORS:
        return {"error": why or "error"}
    why = next((text for tag in ("skipped", "disabled") if (text := _reason(case, tag)) is not None), None)
    if why is None:
        return {"unscored": "not run"} if status & _NOT_RUN else {"scores": {"passed": True}}
    if why.startswith(_FAILED):
        return _failure(why.removeprefix(_FAILED))
    if why.startswith(_ERRORED):
        return {"error": why.removeprefix(_ERRORED)}
    return {"unscored": f"skipped: {why}" if why else "skipped"}


def _failure(why: str) -> dict[str, Any]:
    return {"scores": {"passed": False}, "reasons": {"passed": why}}


def _properties(case: ElementTree.Element) -> dict[str, str | None]:
    """What a case says of itself beyond its verdict."""
    return {one.get("name", ""): one.get("value") for one in case.iterfind("properties/property")}


def _reason(case: ElementTree.Element, tag: str) -> str | None:
    """The first line of what an element of a case says, if there is one."""
    found = case.find(tag)
    return None if found is None else _line(found)


def _line(element: ElementTree.Element) -> str:
    return (element.get("message") or element.text or "").strip().partition("\n")[0]


FORMAT = ResultsFormat(
    name="junit",
    recognises=_recognises,
    trials=_trials,
    taken={
        "task": "classname::name",
        "trial": "cases of one name and repeated attempts, in order; trialN of the pytest plugin",
        "error": "error; what was skipped is unscored",
    },
)
