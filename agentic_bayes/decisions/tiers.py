"""Deployment tiers: the paper's table and Gaussia's, as probabilities instead of a label.

=====================  ===========  ============================
paper: pass@1          pass^3       tier
=====================  ===========  ============================
> .90                  > .70        production-ready
> .90                  .30 - .70    functional but inconsistent
.70 - .90              any          needs improvement
< .70                  any          not ready
=====================  ===========  ============================

=====================  ===========  ============================
Gaussia: pass@K        pass^K       tier
=====================  ===========  ============================
> .95                  > .70        reliable
> .95                  < .50        inconsistent
< .70                  any          needs improvement
anything else                       unclassified
=====================  ===========  ============================

From one set of trials pass^3 ≥ 3·pass@1 - 2, so pass@1 > .90 implies pass^3 > .70: the paper's second tier can only be
reached by typed-in pairs, and pass@1 > .90 with pass^3 < .30 is refused as inconsistent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, assert_never

import numpy as np

from agentic_bayes.checks import check_choice, check_count, check_probability, check_type
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.distribution import Distribution
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.posterior import Estimand
from agentic_bayes.formatting import Metric, format_number, format_share, indicator_words, json_ready, one_line
from agentic_bayes.outcomes.missing import TrialCounts
from agentic_bayes.result_table import Table, Tabular

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TierProbabilities", "classify"]

TierTable = Literal["paper", "gaussia"]

TIERS: dict[TierTable, tuple[str, ...]] = {
    "paper": ("production-ready", "functional but inconsistent", "needs improvement", "not ready"),
    "gaussia": ("reliable", "inconsistent", "needs improvement", "unclassified"),
}


@dataclass(frozen=True)
class TierProbabilities(Tabular, Mapping[str, float]):
    """Tier → probability, best tier first.

    Attributes
    ----------
    name : {"paper", "gaussia"}
        Whose table of tiers.
    probabilities : dict
        Tier → probability; they sum to 1.
    about : str
        Whose tier, by which metrics of which estimate; or the typed-in pair.
    trials : TrialCounts or None
        The agent's trials: scored, unscored, and of these errored; None for a typed-in pair.
    """

    name: TierTable
    probabilities: dict[str, float]
    about: str = ""
    trials: TrialCounts | None = None

    @property
    def most_probable(self) -> str:
        """The tier with the highest probability (the better one of equals)."""
        return max(self.probabilities, key=self.probabilities.__getitem__)

    def __getitem__(self, tier: str) -> float:
        return self.probabilities[tier]

    def __iter__(self) -> Iterator[str]:
        return iter(self.probabilities)

    def __len__(self) -> int:
        return len(self.probabilities)

    def __str__(self) -> str:
        tiers = ", ".join(map(" ".join, self._shown))
        return f"{tiers}; {self._missing}" if self._missing else tiers

    @property
    def _shown(self) -> list[list[str]]:
        """Each tier with its probability: "<0.001" where no draw of an estimate reached a tier that one can reach."""
        known = TIERS[self.name] if self.trials is None else ("functional but inconsistent",)  # no estimate can be that
        return [[tier, (format_number if tier in known else format_share)(p)] for tier, p in self.probabilities.items()]

    @property
    def _missing(self) -> str:
        return "" if self.trials is None else self.trials.words

    def __repr__(self) -> str:
        about = f" ({self.about})" if self.about else ""
        return one_line(f"TierProbabilities: {self}; {self.name} table{about}")

    def table(self) -> Table:
        """One row per tier, best first."""
        notes = [f"by the {self.name} table", self.about, self._missing]
        title = f"Most probable tier: {self.most_probable} ({dict(self._shown)[self.most_probable]})"
        return Table(title=title, header=["tier", "probability"], rows=self._shown, notes=notes)

    def to_pandas(self) -> pd.DataFrame:
        """One row per tier, best first.

        Returns
        -------
        pandas.DataFrame
            Columns tier, probability.
        """
        import pandas as pd

        return pd.DataFrame({"tier": list(self.probabilities), "probability": list(self.probabilities.values())})

    def to_dict(self) -> dict[str, Any]:
        """The probabilities as plain JSON values.

        Returns
        -------
        dict
        """
        trials = None if self.trials is None else self.trials.to_dict()
        values = {"table": self.name, "probabilities": self.probabilities, "about": self.about, "trials": trials}
        return dict(json_ready(values | {"most_probable": self.most_probable}))


def classify(
    est: Estimate | None = None,
    agent: str | None = None,
    *,
    table: TierTable = "paper",
    k: int = 3,
    estimand: Estimand = "population",
    pass_at_1: float | None = None,
    pass_pow_3: float | None = None,
    pass_at: float | None = None,
    pass_pow: float | None = None,
) -> TierProbabilities:
    """Probability of each deployment tier.

    Parameters
    ----------
    est : Estimate, optional
        An estimate with a posterior, which is integrated over the tiers: exactly where `gate` is exact, with the same
        probability at the same bar; else every draw is classified.
    agent : str, optional
        Whose tier; may be left out where there is only one agent.
    table : {"paper", "gaussia"}
        Which table; both are in this module's docstring.
    k : int
        K of Gaussia's table; the paper's is fixed (1 and 3).
    estimand : {"population", "tasks"}
        On new tasks of this kind, or on the observed tasks.
    pass_at_1, pass_pow_3 : float, optional
        A typed-in pair for the paper's table, instead of `est`.
    pass_at, pass_pow : float, optional
        A typed-in pair (pass@K, pass^K) for Gaussia's table, instead of `est`.

    Returns
    -------
    TierProbabilities

    Raises
    ------
    InvalidArgument
        If arguments are not valid or do not fit together, or a typed-in pair contradicts itself.
    EstimateError
        If the estimate has no posterior.
    """
    if est is not None:
        check_type("est", est, Estimate, "estimate() makes one")
    check_choice("table", table, TIERS)
    k = check_count(k, "k")
    names = ("pass_at_1", "pass_pow_3") if table == "paper" else ("pass_at", "pass_pow")
    typed = {"pass_at_1": pass_at_1, "pass_pow_3": pass_pow_3, "pass_at": pass_at, "pass_pow": pass_pow}
    given = {name: value for name, value in typed.items() if value is not None}
    if est is not None:
        if given:
            raise InvalidArgument(f"give an estimate or values, not both (got {', '.join(given)})")
        at_k, pow_k = (1, 3) if table == "paper" else (k, k)
        at_metric, pow_metric = Metric(f"pass@{at_k}"), Metric(f"pass^{pow_k}")
        name, attrs = est.agents[est.agent_index(agent)], est.outcomes.attrs
        flags = dict.fromkeys(
            flag for m in (at_metric, pow_metric) for flag in est.flags(name, estimand=estimand, metric=m)
        )
        about = (
            f"{name}'s {at_metric} and {pow_metric} ({estimand}); {est.method.name}; unit {attrs['unit']}, "
            f"indicator {indicator_words(attrs)}" + (f" [{', '.join(flags)}]" if flags else "")
        )
        shares = _integrated(
            est.distribution(name, metric=at_metric, estimand=estimand),
            est.distribution(name, metric=pow_metric, estimand=estimand),
            table,
        )
        return TierProbabilities(
            table, dict(zip(TIERS[table], shares, strict=True)), about, TrialCounts.of(est.outcomes, name)
        )
    if agent is not None:
        raise InvalidArgument(f"an agent needs an estimate, got agent {agent!r} without one")
    if set(given) != set(names):
        raise InvalidArgument(
            f"table {table!r} needs an estimate, or {names[0]} and {names[1]}; got {', '.join(given) or 'neither'}"
        )
    at, power = (check_probability(given[name], name) for name in names)
    if table == "paper" and at > 0.9 and power < 0.3:
        raise InvalidArgument(
            f"pass_at_1 {at:g} and pass_pow_3 {power:g} contradict each other: "
            "from one set of trials pass^3 is at least 3·pass@1 - 2"
        )
    about = f"typed in: {names[0]} {at:g}, {names[1]} {power:g}"
    index = _tier_index(at, power, table)
    return TierProbabilities(table, {tier: float(i == index) for i, tier in enumerate(TIERS[table])}, about)


def _integrated(at: Distribution, power: Distribution, table: TierTable) -> tuple[float, ...]:
    """The probability of each tier, from the posterior of both metrics together."""
    if table == "paper":
        high, not_low = at.at_least(0.9), at.at_least(0.7)
        return high, 0.0, not_low - high, 1 - not_low  # pass@1 > .90 implies pass^3 > .70
    edge, low = at.below_in_parts(0.95), at.below_in_parts(0.7)
    missed = float(edge.sum())  # pass@K ≤ .95; a maximum adds those that reach it and miss the bar of pass^K
    unreliable, inconsistent = (float(np.maximum(edge, power.below_in_parts(bar)).sum()) for bar in (0.7, 0.5))
    shares = 1 - unreliable, inconsistent - missed, float(low.sum()), unreliable - inconsistent + missed - low.sum()
    reliable, inconsistent, needs, rest = (float(np.clip(share, 0, 1)) for share in shares)
    return reliable, inconsistent, needs, rest


def _tier_index(at: float, power: float, table: TierTable) -> int:
    """Index of a pair's tier in TIERS[table]."""
    match table:
        case "paper":
            # .70 ≤ pass@1 ≤ .90 needs improvement; pass^3 ≤ .70 above it is the second tier
            return (0 if power > 0.7 else 1) if at > 0.9 else 2 if at >= 0.7 else 3
        case "gaussia":
            high = 0 if power > 0.7 else 1 if power < 0.5 else 3
            return high if at > 0.95 else 2 if at < 0.7 else 3
        case _:
            assert_never(table)
