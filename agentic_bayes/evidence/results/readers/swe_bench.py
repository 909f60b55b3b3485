"""Results of SWE-bench: the report of a run, ``<model>.<run_id>.json``, or of instances, ``report.json``.

Also what its leaderboard publishes: ``per_instance_details.json``, and ``results.json`` of 2024, a list for each stage.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from agentic_bayes.errors import EvidenceError
from agentic_bayes.evidence.results.base import ResultsContent, ResultsFormat, ResultTrial, an_object, first_text, part
from agentic_bayes.records.base import short

_LISTS: dict[str, dict[str, Any]] = {
    "resolved_ids": {"scores": {"resolved": True}},
    "unresolved_ids": {"scores": {"resolved": False}},
    "empty_patch_ids": {"scores": {"resolved": False}, "reasons": {"resolved": "the patch is empty"}},
    "error_ids": {"error": "the evaluation did not end"},
    "incomplete_ids": {"unscored": "no prediction was submitted"},
}
"""The lists of a run's report, and what they say of an instance."""

_STAGES: dict[str, dict[str, Any]] = {
    "resolved": {"scores": {"resolved": True}},
    "no_generation": {"scores": {"resolved": False}, "reasons": {"resolved": "no patch was generated"}},
    "no_apply": {"scores": {"resolved": False}, "reasons": {"resolved": "the patch does not apply"}},
    **{
        name: {"error": f"the evaluation did not end: {name}"}
        for name in ("no_logs", "install_fail", "reset_failed", "test_errored", "test_timeout")
    },
    "applied": {"scores": {"resolved": False}},
    "with_logs": {"scores": {"resolved": False}},
    "generated": {"error": "the evaluation left no log"},
}
"""The lists of the leaderboard's old reports; an instance is in several, and the first of these is its verdict."""


def _recognises(content: ResultsContent) -> bool:
    of_run = content.object_with("resolved_ids", "error_ids") or content.object_with("resolved", "no_generation")
    return of_run or _of_instances(content.value)


def _of_instances(value: Any) -> bool:
    entries = list(value.values()) if isinstance(value, dict) else []
    return bool(entries) and all(
        isinstance(entry, dict)
        and ({"resolved", "patch_successfully_applied"} <= entry.keys() or {"resolved", "api_calls"} <= entry.keys())
        for entry in entries
    )


def _trials(content: ResultsContent) -> Iterator[ResultTrial]:
    path = Path(content.source)
    folder = path.resolve().parent
    if not _of_instances(content.value):
        if "resolved_ids" in content.value:
            yield from _of_run(content.value, agent=path.name.removesuffix(".json").rpartition(".")[0] or None)
        else:
            yield from _of_stages(content.value, agent=(folder.parent if folder.name == "results" else folder).name)
        return
    for instance, entry in content.value.items():
        agent = folder.name if path.name == "per_instance_details.json" else None
        if path.name == "report.json" and folder.name == instance:
            agent = folder.parent.name
        applied = entry.get("patch_successfully_applied")
        yield ResultTrial(
            agent=agent,
            task=instance,
            scores={"resolved": entry["resolved"]} | ({} if applied is None else {"patch applied": applied}),
            reasons={"resolved": str(entry.get("infra_failure_reason") or "")},
            metadata=_repository(instance),
            place=instance,
            raw=entry,
        )


def _of_stages(report: dict[str, Any], *, agent: str) -> Iterator[ResultTrial]:
    if "generated" not in report:
        raise EvidenceError(
            "lists what was resolved and not what was tried: every other instance of the benchmark failed. With their "
            "ids: table = pandas.DataFrame({'task': ids}); table['correct'] = table['task'].isin(report['resolved']), "
            "and outcomes_from_table(table)"
        )
    first: dict[str, str] = {}
    for name in _STAGES:
        for instance in _instances(report, name):
            first.setdefault(instance, name)
    for instance, name in first.items():
        place = f"{name}: {instance}"
        yield ResultTrial(agent=agent, task=instance, metadata=_repository(instance), place=place, **_STAGES[name])


def _instances(report: dict[str, Any], name: str) -> list[str]:
    instances = report.get(name, [])
    if not isinstance(instances, list) or not all(isinstance(instance, str) for instance in instances):
        raise EvidenceError(f"{name} must be a list of instances, got {short(instances)}")
    return instances


def _of_run(report: dict[str, Any], *, agent: str | None) -> Iterator[ResultTrial]:
    why = part(report.get("failure_reasons"))
    places: dict[str, str] = {}
    for name, found in _LISTS.items():
        for instance in _instances(report, name):
            if instance in places:
                raise EvidenceError(f"{name}: {instance} is in {places[instance]} already")
            places[instance] = name
            reason = first_text(why.get(instance))
            told: dict[str, Any] = {"reasons": {"resolved": reason}} if reason and "scores" in found else {}
            told |= {"error": f"{found['error']}: {reason}"} if reason and "error" in found else {}
            place = f"{name}: {instance}"
            yield ResultTrial(agent=agent, task=instance, metadata=_repository(instance), place=place, **(found | told))
    total = an_object(report, "report").get("total_instances")
    if "incomplete_ids" not in report:  # what was not submitted is not listed
        total = report.get("submitted_instances", total)
    if isinstance(total, int) and total != len(places):
        raise EvidenceError(f"total_instances is {total}, but {len(places)} are listed in {', '.join(_LISTS)}")


def _in_runs(files: Collection[Path]) -> set[Path]:
    """The reports of instances, ``RUN/MODEL/INSTANCE/report.json``, that the report of their run repeats."""
    runs = {path.name for path in files}
    return {path for path in files if len(path.parts) > 3 and f"{path.parts[-3]}.{path.parts[-4]}.json" in runs}


def _repository(instance: str) -> dict[str, str]:
    return {"repository": instance.rpartition("-")[0].replace("__", "/")}


FORMAT = ResultsFormat(
    name="swe-bench",
    recognises=_recognises,
    trials=_trials,
    taken={
        "agent": "the model in the name of the file or of its folder",
        "task": "instance_id",
        "trial": "one",
        "error": "error_ids; an empty patch is a failure, and what was not submitted (incomplete_ids) is unscored",
    },
    verdict="resolved",
    repeated=_in_runs,
)
