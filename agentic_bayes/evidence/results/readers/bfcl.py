"""Results of BFCL (the function-calling leaderboard): ``BFCL_v4_<category>_score.json``, totals and the failures.

What passed is not listed in it. Its names are those of the result file, or, as BFCL numbers the entries of a category
from 0, the numbers that did not fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentic_bayes.errors import EvidenceError
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
from agentic_bayes.records.wire.strict_json import strict_json

_FILE = re.compile(r"BFCL_v\d+_(?P<category>\w+)_score\.json")
_ID = re.compile(r"(?P<task>(?P<category>.+?)_(?P<number>\d+))(-[^:]*)?")  # simple_python_3, live_simple_3-2-0
_LARGEST = 100_000  # entries of a category: the largest has 1,053
_CRASHED = "Error during inference"


def _recognises(content: ResultsContent) -> bool:
    second = content.rows[1:2]
    of_score = content.has("accuracy", "correct_count", "total_count") and bool(content.rows)
    return of_score and (not second or {"id", "valid"} <= part(second[0]).keys())


def _trials(content: ResultsContent) -> Iterator[ResultTrial]:
    path = Path(content.source)
    (_, header), *entries = each(content.rows, "rows")
    failed = {_task(needed(first_text(entry.get("id")), "id", where)): (where, entry) for where, entry in entries}
    total, passed = header["total_count"], header["correct_count"]
    known = type(total) is int and type(passed) is int and passed >= 0 and total <= _LARGEST
    if not known or not total - passed == len(failed) == len(entries):
        raise EvidenceError(
            f"{short(passed)} of {short(total)} are right according to the first line, which does not fit the "
            f"{len(failed)} different failures that follow"
        )
    category = next((entry.get("test_category") for _, entry in entries), None)
    name = _FILE.fullmatch(path.name)
    category = first_text(category) or (name["category"] if name else path.stem)
    agent = next((first_text(entry.get("model_name")) for _, entry in entries), None) or _folder(path)
    tasks = _listed(path, total) or [f"{category}_{number}" for number in range(total)]
    if strange := failed.keys() - set(tasks):
        raise EvidenceError(
            f"a score file does not list what passed, and {min(strange)} is not one of {tasks[0]} to "
            f"{tasks[-1]}, so it is unclear which passed: put the result file next to it as "
            f"{_result(path).name}"
        )
    for task in tasks:
        where, entry = failed.get(task, ("the first line", {}))
        inner = part(entry.get("error"))
        kind = first_text(entry.get("error_type"), inner.get("error_type")) or ""
        raw = entry.get("model_result_raw", entry.get("model_result"))
        crashed = isinstance(raw, str) and raw.startswith(_CRASHED)
        yield ResultTrial(
            agent=agent,
            task=task,
            scores={"valid": not entry},
            reasons={"valid": kind},
            error=str(raw).partition("\n")[0] if crashed else None,
            metadata={"category": category},
            place=where,
            raw=entry,
        )


def _task(entry: str) -> str:
    """The id without what follows its number, which is unique: so that it is the same with and without result file."""
    found = _ID.fullmatch(entry)
    return found["task"] if found else entry


def _listed(score: Path, total: int) -> list[str]:
    """The ids in the result file that was scored, if it is there."""
    path = _result(score)
    if not path.is_file():
        return []
    try:
        rows: list[Any] = [strict_json(line, finite=False) for line in path.read_text("utf-8").splitlines() if line]
    except ValueError as cause:
        raise EvidenceError(f"{path}: must be JSON lines ({cause})") from None
    tasks = {_task(str(row.get("id"))): None for _, row in each(rows, str(path)) if "prereq" not in str(row.get("id"))}
    if len(tasks) != total:
        raise EvidenceError(f"{path} has {len(tasks)} entries, but {total} were scored: it is of another run")
    return list(tasks)


def _result(score: Path) -> Path:
    """The result file of a score file: next to it, or in ``result/`` as it is in ``score/``."""
    name = score.name.replace("_score.json", "_result.json")
    name = name if name != score.name else f"{score.stem}_result.json"
    parts = list(score.with_name(name).parts)
    if "score" in parts and not score.with_name(name).is_file():
        parts[len(parts) - 1 - parts[::-1].index("score")] = "result"
    return Path(*parts)


def _folder(path: Path) -> str | None:
    """The model of a run without failures: ``score/<model>/…``."""
    parts = path.resolve().parts[:-1]
    return parts[parts.index("score") + 1] if "score" in parts[:-1] else None


FORMAT = ResultsFormat(
    name="bfcl",
    recognises=_recognises,
    trials=_trials,
    taken={
        "agent": "model_name",
        "task": "id up to its number; what passed: the ids of the result file, else the numbers that did not fail",
        "trial": "one",
        "error": "an error during inference",
    },
    verdict="valid",
)
