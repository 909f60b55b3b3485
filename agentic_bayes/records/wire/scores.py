"""The score that counts among the scores of a record: chosen by name, on its scale, as a number in [0, 1]."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agentic_bayes.formatting import first_few
from agentic_bayes.records.base import is_number, short
from agentic_bayes.records.wire.options import NOTHING, ReadOptions, at_path

NOT_SCORED = "not_scored"
"""Key in the metadata of a turn or conversation: why it has no recorded score."""

RECORDED_METRICS = "recorded_metrics"
"""Key in the metadata of a conversation: name of a further score → its value in [0, 1], or null if it is missing."""

LABELS = {
    **dict.fromkeys(("c", "correct", "yes", "true", "pass", "passed"), 1.0),
    **dict.fromkeys(("i", "incorrect", "n", "no", "false", "fail", "failed"), 0.0),
    "p": 0.5,
    "partial": 0.5,
}
"""What text stands for, whatever its case: C, P, I and N (correct, partial, incorrect, no answer), and usual pairs."""

GIVE_ENDS = "give the ends of its scale"
"""Advice in every message about a score that is off its scale."""

_SHOWN = 8


@dataclass(frozen=True, slots=True)
class ChosenScore:
    """The score that counts, or why there is none."""

    value: float | None = None  # in [0, 1]
    reason: str | None = None  # why the record is unscored, for `NOT_SCORED`
    fault: str | None = None  # why the record must be refused: its score is off the scale
    name: str | None = None  # of the score that was looked for


def chosen_score(scores: Mapping[str, Any], options: ReadOptions, *, default: str | None = None) -> ChosenScore:
    """The score that counts among `scores` (name → number, label or null; an object or list of these).

    It is the one that ``options.scorer`` names, where ``checks.exact`` reaches into an object and ``checks.0`` into a
    list; else `default`, which the format or the file names; else the only one. A record that lacks it is unscored.
    """
    name = options.scorer or default
    if name is None:
        if not scores:
            return ChosenScore()
        if len(scores) > 1:
            return ChosenScore(
                reason=f"several scores, {_names(scores)}: choose one by name, {_ways(next(iter(scores)))}"
            )
        name = next(iter(scores))
    value = scores.get(name, NOTHING)
    if value is NOTHING:
        value = at_path(scores, name)
    if value is NOTHING:
        there = f"it has {_names(scores)}" if scores else "it has none"
        return ChosenScore(reason=f"no score {short(name)} in this record; {there}", name=name)
    return rated(value, name, options)


def rated(value: Any, name: str, options: ReadOptions) -> ChosenScore:
    """A score as a number in [0, 1]: its place between the ends of its scale."""
    if isinstance(value, (Mapping, list, tuple)) and value:
        first = next(iter(value)) if isinstance(value, Mapping) else 0
        parts = _names(value) if isinstance(value, Mapping) else f"a list of {len(value)}"
        ways = _ways(f"{name}.{first}")
        return ChosenScore(reason=f"score {short(name)} has several values ({parts}): choose one, {ways}", name=name)
    number = as_number(value)
    if number is None or math.isnan(number):
        given = value is not None and value != ""
        wrong = f"is not a number or a label: {short(value)}" if given and number is None else "is null or NaN"
        return ChosenScore(reason=f"score {short(name)} {wrong}", name=name)
    if is_label(value):
        return ChosenScore(number, name=name)
    low, high = options.scale or (0.0, 1.0)
    if low <= number <= high:
        return ChosenScore((number - low) / (high - low), name=name)
    ways = f"{GIVE_ENDS}, for example scale=(1, 10) (--scale 1,10); a threshold then cuts between 0 and 1"
    wrong = f"must be a number in [{low:g}, {high:g}], got {number:g}: {ways}"
    return ChosenScore(fault=f"score {short(name)} {wrong}" if name else wrong, name=name)


def is_label(value: Any) -> bool:
    """Whether a score is a boolean or a text of `LABELS`, which are in [0, 1] on any scale."""
    return isinstance(value, bool) or (isinstance(value, str) and value.strip().lower() in LABELS)


def as_number(value: Any) -> float | None:
    """A number, a boolean, a label, or a number as text; None for anything else."""
    if isinstance(value, str):
        text = value.strip().lower()
        if text in LABELS:
            return LABELS[text]
    elif not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _names(scores: Mapping[str, Any]) -> str:
    return first_few([short(name, 30) for name in scores], _SHOWN)


def _ways(name: object) -> str:
    return f"scorer={short(name, 40)} (--scorer)"


def named_scores(raw: Iterable[Any], scorer: str) -> dict[str, Any]:
    """The scores in the member `scores` of a record or of its metadata, and the value at the path `scorer`, by name."""
    found: dict[str, Any] = {}
    for one in raw:
        if (value := at_path(one, scorer)) is not NOTHING:
            found.setdefault(scorer, _value(value))
        for path in ("scores", "metadata.scores"):
            scores = at_path(one, path)
            if isinstance(scores, list):
                pairs = [(item.get("name", item.get("key")), item) for item in scores if isinstance(item, Mapping)]
                scores = {name: item for name, item in pairs if isinstance(name, str)}
            for name, value in scores.items() if isinstance(scores, Mapping) else ():
                found.setdefault(name, _value(value))
    return found


def _value(score: Any) -> Any:
    """The value of a score that is an object with its value and, perhaps, a comment."""
    if isinstance(score, Mapping):
        return next((score[key] for key in ("value", "score") if key in score), score)
    return score


def rescored(record: Any, raw: Iterable[Any], options: ReadOptions) -> tuple[Any, list[tuple[str, str]]]:
    """A native record whose recorded scores are on `options.scale`, or are those that `options.scorer` names."""
    if not isinstance(record, Mapping):
        return record, []
    faults: list[tuple[str, str]] = []
    changed = _rescored(record, [*raw, record], options, "", faults)
    turns = record.get("conversation")
    if isinstance(turns, list):
        scored = [
            _rescored(turn, [turn], options, f"conversation[{position}].", faults)
            for position, turn in enumerate(turns)
        ]
        if any(turn is not old for turn, old in zip(scored, turns, strict=True)):
            changed = {**changed, "conversation": scored}
    return changed, faults


def _rescored(place: Any, raw: list[Any], options: ReadOptions, path: str, faults: list[tuple[str, str]]) -> Any:
    if not isinstance(place, Mapping):
        return place
    value = place.get("recorded_score")
    if options.scorer is not None:
        scores = named_scores(raw, options.scorer)
        if not scores and path:  # the turn has no scores of its own, except one of another name
            return place if value is None else {**place, "recorded_score": None}
        chosen = chosen_score(scores, options)
    elif is_number(value) and math.isfinite(value):
        if options.scale is None and 0 <= value <= 1:
            return place
        chosen = rated(value, "", options)
    else:
        return place
    if chosen.fault:
        faults.append((f"{path}recorded_score", chosen.fault))
    changed = {**place, "recorded_score": chosen.value}
    metadata = place.get("metadata", {})
    if chosen.reason and isinstance(metadata, Mapping):
        changed["metadata"] = {**metadata, NOT_SCORED: chosen.reason}
    return changed
