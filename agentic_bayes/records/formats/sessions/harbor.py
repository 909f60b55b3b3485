"""Read the run folders of Harbor: ``result.json`` of each trial, with the trajectory of its agent.

A trial is a conversation: its agent is the agent with its model, its task is ``task_name``, its score is the reward. If
the agent left a trajectory (ATIF), that is the dialogue; else only the score is known.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any

from agentic_bayes.records.agents import with_model
from agentic_bayes.records.formats.sessions import atif
from agentic_bayes.records.formats.sessions.session_log import SessionLog
from agentic_bayes.records.wire.chat import Message
from agentic_bayes.records.wire.fields import Fields, fitting
from agentic_bayes.records.wire.json_text import Parsed, broken
from agentic_bayes.records.wire.layout import Origin, Shape, beginning_of, documents
from agentic_bayes.records.wire.scores import NOT_SCORED, RECORDED_METRICS, as_number, chosen_score

NAME = "harbor"
RESULT = "result.json"
"""The file with the result of a trial, and with that of a job above it."""

_REWARD = "reward"
_NO_DIALOGUE = "the agent left no trajectory: neither its calls nor its answer are known"


def recognises(shape: Shape) -> bool:
    """Whether a file of this shape is in this format."""
    keys = shape.keys
    trial = {"task_name", "trial_name"} <= keys and bool(keys & {"agent_info", "trial_uri", "task_checksum"})
    return trial or {"n_total_trials", "stats"} <= keys


def read(stream: BufferedReader, origin: Origin) -> Iterator[Parsed]:
    """The trial of a file or, for the result of a job, the trials in the folders next to it."""
    for line in documents(stream):
        session = SessionLog(NAME, origin)
        value = session.line(line)
        if value is None:
            yield from session.finish(line.where)
        elif "task_name" in value:
            yield from _trial(value, session, Path(origin.name).parent)
        else:
            yield from _trials_below(origin)


def _trials_below(origin: Origin) -> Iterator[Parsed]:
    found = sorted(Path(origin.name).parent.glob(f"*/{RESULT}"))
    if not found:
        yield broken("", f"is the result of a job: its trials ({RESULT} in the folders next to it) are not there")
    for path in found:
        session = SessionLog(NAME, origin)
        value = session.object_in(path)
        if value is not None and "task_name" in value:
            yield from _trial(value, session, path.parent)
        else:
            yield from session.broken or [Parsed("", faults=(("", "must be the result of a trial"),), file=str(path))]


def _trial(value: Mapping[str, Any], session: SessionLog, folder: Path) -> Iterator[Parsed]:
    """One trial in the native format."""
    trial = Fields(value, (), session.faults)
    steps = [folder / "steps" / str(step.raw("step_name")) for step in trial.mappings("step_results")]
    logs = [home / "agent" / "trajectory.json" for home in (steps or [folder])]
    found = [path for path in logs if path.is_file()]
    for path in found:
        if (trajectory := session.object_in(path)) is not None:
            atif.take(trajectory, session, path.parent)
    info = trial.mapping("agent_info")
    session.agent = with_model(info.name("name"), info.mapping("model_info").name("name")) or session.agent
    session.session = trial.name("trial_name", required=True)
    session.task = trial.name("task_name", required=True)
    session.raw = [value, *session.raw]
    session.about |= {
        "version": info.raw("version"),
        "source": trial.name("source"),
        "started": trial.raw("started_at"),
    }
    _score(trial, session)
    if not found:
        session.add(Message("user", ""))
        session.add(Message("assistant", error=session.error))
        session.log.doubt((), _NO_DIALOGUE)
    for parsed in session.finish(session.session or ""):
        yield _judged(parsed, bool(found)) if isinstance(parsed.value, dict) else parsed


def _judged(parsed: Parsed, has_dialogue: bool) -> Parsed:
    """A trial that was judged counts, even if its agent ran out of time before it answered."""
    *_, last = turns = parsed.value["conversation"]
    for turn in () if has_dialogue else turns:
        del turn["agentic"]
    if parsed.value["recorded_score"] is not None and "error" in last:
        parsed.value["metadata"]["ended"] = last.pop("error")
        last["assistant"] = last["assistant"] or ""
    return parsed


def _score(trial: Fields, session: SessionLog) -> None:
    """The reward, the further rewards as metrics, and why the trial cannot be judged."""
    failed = trial.mapping("exception_info")
    judged = trial.mapping("verifier_result")
    rewards: dict[str, Any] = fitting(judged.mapping("rewards").value, (), session.faults)
    if not rewards and judged.raw("reward") is not None:  # as the first versions wrote it
        rewards = {_REWARD: judged.raw("reward")}
    what = ": ".join(filter(None, (failed.text("exception_type"), failed.text("exception_message"))))
    policy = failed.mapping("policy")
    if what and rewards and policy.raw("has_valid_reward") is not False:
        session.about["exception"] = what  # it ended the run, but what was done is judged
    elif what or not rewards:
        session.error = f"infrastructure: {what.splitlines()[0] if what else 'no reward was recorded'}"
        return
    default = _REWARD if _REWARD in rewards else None
    chosen = chosen_score(rewards, session.origin.options, default=default)
    if chosen.fault:
        session.faults.add(("verifier_result", "rewards"), chosen.fault)
    session.score = chosen.value
    session.about[NOT_SCORED] = chosen.reason
    others = {name: as_number(reward) for name, reward in rewards.items() if name != chosen.name}
    session.about[RECORDED_METRICS] = {
        name: number for name, number in others.items() if number is not None and 0 <= number <= 1
    }


def parts_of(names: list[str]) -> set[str]:
    """Those of these files that are read with the result of a trial, or that only sum up trials."""
    known = {os.path.abspath(name): name for name in names}
    homes = {os.path.dirname(path) for path in known if os.path.basename(path) == RESULT and _is_trial(path)}
    jobs = {os.path.dirname(home) for home in homes}
    left_out = set()
    for path, name in known.items():
        folder, file = os.path.split(path)
        above = folder
        while len(above) > 1 and above not in homes:
            above = os.path.dirname(above)
        inside = above in homes and not (folder == above and file == RESULT)
        if inside or (folder in jobs and file in (RESULT, "config.json", "lock.json")):
            left_out.add(name)
    return left_out


def _is_trial(path: str) -> bool:
    """Whether a file begins like the result of a trial."""
    beginning = beginning_of(path)
    return b'"task_name"' in beginning and b'"trial_name"' in beginning
