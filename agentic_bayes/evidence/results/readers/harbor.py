"""Results of Harbor: ``result.json`` of a trial, or of a job with the folders of its trials next to it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from agentic_bayes.errors import EvidenceError
from agentic_bayes.evidence.results.base import (
    ResultsContent,
    ResultsFormat,
    ResultTrial,
    an_object,
    each,
    first_text,
    needed,
    part,
)
from agentic_bayes.evidence.table import read_json
from agentic_bayes.records.agents import with_model


def _recognises(content: ResultsContent) -> bool:
    of_trial = content.object_with("task_name", "trial_name", "agent_info")
    return of_trial or content.object_with("n_total_trials", "stats")


def _trials(content: ResultsContent) -> Iterator[ResultTrial]:
    value = content.value
    if "task_name" in value:
        yield _trial(value, "")
    elif value.get("trial_results"):
        for where, found in each(value["trial_results"], "trial_results"):
            yield _trial(found, where)
    else:
        files = sorted(Path(content.source).parent.glob("*/result.json"))
        if not files:
            raise EvidenceError("is the result of a job: its trials (result.json in folders next to it) are missing")
        for file in files:
            yield _trial(an_object(read_json(file, error=EvidenceError), str(file)), f"{file.parent.name}/{file.name}")


def _trial(value: dict[str, Any], where: str) -> ResultTrial:
    info = part(value.get("agent_info"))
    judged = part(value.get("verifier_result"))
    rewards = part(judged.get("rewards"))
    if not rewards and judged.get("reward") is not None:  # as the first versions wrote it
        rewards = {"reward": judged["reward"]}
    steps = [step for _, step in each(value.get("step_results") or (), f"{where}step_results")]
    raised = [found for step in (value, *steps) if (found := part(step.get("exception_info")))]
    # an exception may leave what was done to be judged, such as an agent out of time: Harbor says which
    spoilt = any(part(found.get("policy")).get("has_valid_reward") is False for found in raised)
    what = next((_words(found) for found in raised), "no reward was recorded")
    return ResultTrial(
        agent=with_model(first_text(info.get("name")), first_text(part(info.get("model_info")).get("name"))),
        task=needed(first_text(value.get("task_name")), "task_name", where),
        scores=rewards,
        error=what if spoilt or not rewards else None,
        metadata={"source": value.get("source"), "exception": what if raised else None},
        place=where,
        raw=value,
        uid=first_text(value.get("id")),
    )


def _in_jobs(files: Collection[Path]) -> set[Path]:
    """The trials that are read with their job."""
    return {path for path in files if path.parent.with_name(path.name) in files}


def _words(exception: dict[str, Any]) -> str:
    message = (first_text(exception.get("exception_message")) or "").partition("\n")[0]
    return ": ".join(filter(None, (first_text(exception.get("exception_type")), message))) or "an exception"


FORMAT = ResultsFormat(
    name="harbor",
    recognises=_recognises,
    trials=_trials,
    taken={
        "agent": "agent_info.name with its model",
        "task": "task_name",
        "trial": "trials of one task, in the order of their folders",
        "error": "exception_info that leaves no valid reward, or no reward",
    },
    verdict="reward",
    repeated=_in_jobs,
)
