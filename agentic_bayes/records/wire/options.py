"""What the caller tells a reader: where to find the identity, which score counts, and on what scale."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentic_bayes.errors import InvalidArgument, did_you_mean
from agentic_bayes.formatting import first_few
from agentic_bayes.records.base import is_number, short
from agentic_bayes.records.wire.unpacking import RATIO

IDENTITY = {
    "agent": "assistant_id",
    "task": "task_id",
    "trial": "trial",
    "session": "session_id",
    "reference": "ground_truth_assistant",
}
"""What `ReadOptions.fields` may name, and the member of a record that it becomes."""

NOTHING = object()
"""Stands for a value that is not there."""

_MOST_KEYS = 8


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What the caller said about the files, for every reader (``Origin.options``)."""

    fields: Mapping[str, str] = field(default_factory=dict)  # a name of `IDENTITY` → dotted path in the raw record
    scorer: str | None = None  # the score that counts, where a record has several
    scale: tuple[float, float] | None = None  # the lowest and the highest score; None: scores are in [0, 1]
    max_ratio: float = RATIO  # how far packed data may unpack

    def __post_init__(self) -> None:
        if not isinstance(self.fields, Mapping):
            raise InvalidArgument(
                f"fields must map names to paths, {{'task': 'metadata.task'}}, got {short(self.fields)}"
            )
        for name, path in self.fields.items():
            if name not in IDENTITY:
                raise InvalidArgument(f"unknown name {short(name)} in fields: {did_you_mean(str(name), IDENTITY)}")
            if not isinstance(path, str) or not all(path.split(".")):
                raise InvalidArgument(f"fields[{name!r}] must be a path like metadata.task, got {short(path)}")
        if self.scorer is not None and (not isinstance(self.scorer, str) or not self.scorer.strip()):
            raise InvalidArgument(f"scorer must be the name of a score, or None, got {short(self.scorer)}")
        if self.scale is not None:
            ends = tuple(self.scale) if isinstance(self.scale, (tuple, list)) else ()
            numbers = list(filter(is_number, ends))
            if len(ends) != 2 or len(numbers) != 2 or not -1e300 < numbers[0] < numbers[1] < 1e300:
                raise InvalidArgument(
                    f"scale must be the lowest and the highest score, (1, 10), got {short(self.scale)}"
                )
            object.__setattr__(self, "scale", ends)
        if not is_number(self.max_ratio) or not self.max_ratio >= 1:
            raise InvalidArgument(f"max_ratio must be a number ≥ 1, got {short(self.max_ratio)}")


NO_OPTIONS = ReadOptions()
"""Nothing beyond the file."""


def at_path(value: Any, path: str) -> Any:
    """What a dotted path leads to, or `NOTHING`; keys may hold dots themselves, and a number is a place in a list."""
    if not path:
        return value
    if isinstance(value, (list, tuple)):
        first, _, rest = path.partition(".")
        return at_path(value[int(first)], rest) if first.isdecimal() and int(first) < len(value) else NOTHING
    if not isinstance(value, Mapping):
        return NOTHING
    parts = path.split(".")
    for length in range(len(parts), 0, -1):  # the longest key first: gen_ai.agent.name is one key
        key = ".".join(parts[:length])
        if key in value:
            found = at_path(value[key], ".".join(parts[length:]))
            if found is not NOTHING:
                return found
    return NOTHING


def identity_from(raw: Iterable[Any], fields: Mapping[str, str]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The values that `fields` lead to in the raw objects of a record, the first that has one; and the faults."""
    objects = list(raw)
    found: dict[str, Any] = {}
    faults: list[tuple[str, str]] = []
    for name, path in fields.items():
        values = (at_path(one, path) for one in objects)
        value = next((value for value in values if value is not NOTHING and value is not None), None)
        if value is not None:
            found[name] = value
        elif name != "trial" or not any(at_path(one, path) is None for one in objects):
            faults.append(
                (path, f"fields takes the {name} from here, but this record has {_what_is_there(objects, path)}")
            )
    return found, faults


def _what_is_there(objects: list[Any], path: str) -> str:
    """The members next to where a path ends."""
    parts = path.split(".")
    for length in range(len(parts) - 1, -1, -1):
        place = ".".join(parts[:length])
        for one in objects:
            value = at_path(one, place)
            if isinstance(value, Mapping):
                keys = first_few([short(key, 30) for key in value], _MOST_KEYS)
                return f"in {place} {keys or 'nothing'}" if place else keys or "nothing"
            if value is not NOTHING and place:
                return f"{short(value)} at {place}"
    return "nothing"


def with_identity(record: Any, raw: Iterable[Any], fields: Mapping[str, str]) -> tuple[Any, list[tuple[str, str]]]:
    """A record in the native format with the identity that `fields` say; and the faults."""
    if not fields or not isinstance(record, Mapping):
        return record, []
    found, faults = identity_from([*raw, record], fields)
    changed = dict(record)
    for name in ("agent", "task", "session"):
        if name in found:
            changed[IDENTITY[name]] = found[name]
    if "trial" in found:
        trial = found["trial"]
        changed["trial"] = int(trial) if isinstance(trial, str) and trial.strip().isdecimal() else trial
    turns = record.get("conversation")
    if "reference" in found and isinstance(turns, (list, tuple)) and turns:
        references = found["reference"]
        if not isinstance(references, list):
            references = [None] * (len(turns) - 1) + [references]
        if len(references) == len(turns):
            changed["conversation"] = [
                turn if text is None or not isinstance(turn, Mapping) else {**turn, "ground_truth_assistant": text}
                for turn, text in zip(turns, references, strict=True)
            ]
        else:
            several = f"must be one text or one per turn ({len(turns)}), got a list of {len(references)}"
            faults.append((fields["reference"], several))
    return changed, faults
