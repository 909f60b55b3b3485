"""Which score counts if the samples of an Inspect log have several, and which of the others become metrics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentic_bayes.errors import did_you_mean
from agentic_bayes.formatting import first_few
from agentic_bayes.records.base import short
from agentic_bayes.records.wire.scores import GIVE_ENDS, as_number, is_label

_SHOWN = 6


@dataclass(frozen=True, slots=True)
class RecordScore:
    """The scores of one record."""

    score: float | None  # the one that counts, in [0, 1]
    why_not: str | None  # why there is none
    metrics: dict[str, float | None]  # the others that are in [0, 1] wherever the log has them


@dataclass(slots=True)
class _Beyond:
    """The values of a score that are not on a scale."""

    count: int = 0
    where: str = ""  # where the first one is
    value: Any = None  # the first one

    def add(self, where: str, value: Any) -> None:
        if not self.count:
            self.where, self.value = where, value
        self.count += 1


@dataclass(slots=True)
class _Known:
    """What the log's records say about one score."""

    numbers: int = 0  # records in which it is a number
    beyond_unit: _Beyond = field(default_factory=_Beyond)
    beyond_scale: _Beyond = field(default_factory=_Beyond)

    @property
    def fits(self) -> bool:
        """Whether it is a score in [0, 1] wherever it is a number."""
        return self.numbers > 0 and not self.beyond_unit.count


@dataclass(slots=True)
class LogScores:
    """The scores of a log by name: which one counts depends on all records, which `learn` sees before `of` is asked."""

    scorer: str | None = None  # the score that the caller named
    scale: tuple[float, float] | None = None  # the lowest and the highest score
    known: dict[str, _Known] = field(default_factory=dict)

    def learn(self, scores: Mapping[str, Any], where: str) -> None:
        """Take in the scores of a record."""
        for name, value in leaves(scores):
            known = self.known.setdefault(name, _Known())
            number = _finite(value)
            if number is None:
                continue
            known.numbers += 1
            low, high = self._ends(value)
            if not 0 <= number <= 1:
                known.beyond_unit.add(where, value)
            if not low <= number <= high:
                known.beyond_scale.add(where, value)

    def _ends(self, value: Any) -> tuple[float, float]:
        """The scale of a value of the score that counts; labels and booleans are in [0, 1] on any scale."""
        if self.scale is None or is_label(value):
            return 0.0, 1.0
        return self.scale

    @property
    def _candidates(self) -> list[str]:
        """The scores that may be the one that counts."""
        numeric = [name for name, known in self.known.items() if known.numbers]
        fitting = [name for name in numeric if self.known[name].fits]
        return (fitting if self.scale is None else numeric) or numeric or list(self.known)

    @property
    def chosen(self) -> str | None:
        """The score that counts: the one that was named or, without a name, the only one."""
        if self.scorer is not None:
            return self.scorer
        candidates = self._candidates
        return candidates[0] if len(candidates) == 1 else None

    def faults(self) -> Iterator[str]:
        """Why the log cannot be read with what was asked."""
        chosen = self.chosen
        if self.scorer is not None and self.known and chosen not in self.known:
            inner = [name for name in self.known if name.startswith(f"{self.scorer}.")]
            if inner:
                yield f"the score {short(self.scorer)} holds several values: choose scorer={_any_of(inner)}"
            else:
                yield f"no record has a score {short(self.scorer)}: {did_you_mean(self.scorer, list(self.known))}"
        known = self.known.get(chosen or "")
        if known and known.beyond_scale.count:
            beyond = known.beyond_scale
            low, high = self.scale or (0, 1)
            more = f" (and {beyond.count - 1:,} more)" if beyond.count > 1 else ""
            advice = "scale gives these ends"
            if self.scale is None:
                advice = f"{GIVE_ENDS}, scale=(1, 10) (--scale 1,10), or read the scores as a table and give threshold="
            got = f"{short(beyond.value)} at {beyond.where}{more}"
            yield f"the score {short(chosen)} must be in [{low:g}, {high:g}], got {got}: {advice}"

    def doubts(self) -> Iterator[str]:
        """What the caller should know of the scores."""
        if self.chosen is None and len(self.known) > 1:
            yield f"{self._several()}; without a choice no score counts, and each is a metric"

    def _several(self) -> str:
        return f"the log has several scores: choose scorer={_any_of(self._candidates)}"

    def of(self, scores: Mapping[str, Any], *, reasons: Mapping[str, str] | None = None) -> RecordScore:
        """The scores of a record; `reasons` may say of a scorer why it gave none."""
        found = dict(leaves(scores))
        chosen = self.chosen
        metrics = {
            name: _finite(found.get(name)) for name, known in self.known.items() if name != chosen and known.fits
        }
        if not found and not self.known:
            return RecordScore(None, None, metrics)
        if chosen is None:
            return RecordScore(None, self._several(), metrics)
        value = found.get(chosen)
        number = _finite(value)
        low, high = self._ends(value)
        if number is not None and low <= number <= high:
            return RecordScore((number - low) / (high - low), None, metrics)
        if chosen not in found:
            why = f"scorer {short(chosen)} scored other records, but not this one"
        elif value is None or isinstance(value, float):
            why = f"scorer {short(chosen)} gave no score (null or NaN)"
        else:
            why = f"the score of scorer {short(chosen)} is not a number in [{low:g}, {high:g}]: {short(value)}"
        given = (reasons or {}).get(chosen.split(".")[0])
        return RecordScore(None, f"{why}: {short(given, 200)}" if given and value is None else why, metrics)


def _any_of(names: Iterable[str]) -> str:
    return first_few(list(map(repr, names)), _SHOWN, between=" or ", rest=" or one of {}")


def leaves(scores: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Scores by name; those that are objects or lists become several, ``name.key``."""
    for name, value in scores.items():
        if isinstance(value, (dict, list)) and value:
            inner = value.items() if isinstance(value, dict) else enumerate(value)
            yield from leaves({f"{name}.{key}": one for key, one in inner})
        else:
            yield name, value


def _finite(value: Any) -> float | None:
    """A score as a number; None if it is not a finite one."""
    number = as_number(value)
    return number if number is not None and math.isfinite(number) else None
