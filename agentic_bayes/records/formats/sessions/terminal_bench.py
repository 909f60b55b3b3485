"""Read the run folders of Terminal-Bench: ``results.json`` of a run or of one trial.

A trial is a conversation: its query is the instruction, its score is whether it was resolved. What the agent said and
called is not in these files. The agent and its model are in ``run_metadata.json`` next to the results of the run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any

from agentic_bayes.records.agents import with_model
from agentic_bayes.records.formats.sessions.session_log import SessionLog
from agentic_bayes.records.wire.fields import Faults, Fields
from agentic_bayes.records.wire.json_text import Parsed
from agentic_bayes.records.wire.layout import STREAMED, Origin, Shape, converted, documents

NAME = "terminal-bench"
RESULTS, RUN = "results.json", "run_metadata.json"
"""The file with the results of a run or a trial, and the file about the run."""

_OF_A_TRIAL = frozenset({"trial_name", "is_resolved", "failure_mode"})
# what ended a trial without saying anything about the agent
_NOT_THE_AGENT = frozenset(
    {"unknown", "unknown_agent_error", "test_timeout", "parse_error", "agent_installation_failed"}
)
_NUMBER = re.compile(r"\.(\d+)-of-(\d+)\.")


def recognises(shape: Shape) -> bool:
    """Whether a file of this shape is in this format."""
    results = shape.values.get("results")
    first = results[0] if isinstance(results, list) and results else None
    return shape.keys >= _OF_A_TRIAL or (isinstance(first, dict) and first.keys() >= _OF_A_TRIAL)


def read(stream: BufferedReader, origin: Origin) -> Iterator[Parsed]:
    """The trials of a file."""
    session = SessionLog(NAME, origin)
    agent = _agent(Path(origin.name), session) or origin.agent
    for line in documents(stream, STREAMED - {"output", "input"}):
        value = session.line(line)
        trials = value.get("results") if value is not None else None
        if value is None:
            continue
        listed = trials if isinstance(trials, list) else [value]
        for number, trial in enumerate(listed):
            where = f"results[{number}]" if listed is trials else line.where
            yield converted(where, trial, (), lambda value, faults: _conversation(value, faults, agent))
    yield from session.broken


def _agent(path: Path, session: SessionLog) -> str | None:
    """The agent of a run, as the file about the run names it."""
    given = session.origin.given_agent
    homes = (path.parent, *path.parent.parents[:2])
    run = next((home / RUN for home in homes if (home / RUN).is_file()), None)
    about = session.object_in(run) if run and not given else None
    if about is None:
        return given
    fields = Fields(about, (), Faults())
    return with_model(fields.name("agent_name"), fields.name("model_name"))


def _conversation(value: Any, faults: Faults, agent: str) -> Mapping[str, Any]:
    trial = Fields(value, (), faults)
    task, name = trial.name("task_id", required=True), trial.name("trial_name", required=True)
    mode = trial.text("failure_mode")
    resolved = trial.raw("is_resolved")
    if resolved not in (None, True, False):
        faults.add(("is_resolved",), f"must be true, false or null, got {resolved!r}")
    error = None
    if resolved is not True and (mode in _NOT_THE_AGENT or resolved is None):
        error = f"infrastructure: {mode or 'the trial was not judged'}"
    number = _NUMBER.search(name or "")
    tokens = {side: trial.whole(f"total_{side}_tokens") for side in ("input", "output")}
    tests = trial.mapping("parser_results").value
    metadata = {
        "format": NAME,
        "failure_mode": mode if mode not in ("unset", "none") else None,
        "tests": tests,
        "tokens": {side: count for side, count in tokens.items() if count is not None},
        "started": trial.text("trial_started_at"),
    }
    turn = {"qa_id": f"task {task}", "query": trial.text("instruction") or "", "assistant": None if error else ""}
    return {
        "session_id": name,
        "assistant_id": agent,
        "task_id": task,
        "trial": int(number[1]) - 1 if number else None,
        "conversation": [{**turn, "error": error} if error else turn],
        "recorded_score": None if error else float(resolved is True),
        "metadata": {key: content for key, content in metadata.items() if content not in (None, {}, "")},
    }


def parts_of(names: list[str]) -> set[str]:
    """Those of these files whose trials are also in the results of the run, and the files about runs."""
    known = {os.path.abspath(name): name for name in names}
    runs = {os.path.dirname(path) for path in known if os.path.basename(path) == RUN}
    whole = {run for run in runs if os.path.join(run, RESULTS) in known}
    left_out = {known[os.path.join(run, RUN)] for run in runs}
    for path, name in known.items():
        folder = os.path.dirname(path)
        for run in whole:
            if folder.startswith(run + os.sep):
                left_out.add(name)
    return left_out
