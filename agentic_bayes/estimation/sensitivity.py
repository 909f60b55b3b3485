"""How much an estimate depends on its prior, and beyond the data on the shape that the model assumes.

Prior and likelihood are raised to a power and what there is (points or draws) is weighted again: nothing is refitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from agentic_bayes.estimation.bounds import pass_bounds
from agentic_bayes.estimation.distribution import Weighted
from agentic_bayes.estimation.engines.importance.pareto import smoothed
from agentic_bayes.estimation.engines.mixture import mixture_draws
from agentic_bayes.estimation.io.log_density import log_prior_densities
from agentic_bayes.estimation.methods.conjugate import ConjugatePosterior
from agentic_bayes.estimation.methods.crossed import CrossedPosterior
from agentic_bayes.estimation.methods.options import Frequentist, Method
from agentic_bayes.estimation.posterior import Estimand, Posterior
from agentic_bayes.estimation.settings import Settings
from agentic_bayes.formatting import Metric, format_interval, format_number, interval_words, metrics_at
from agentic_bayes.numerics import Array
from agentic_bayes.result_table import Table, Tabular

if TYPE_CHECKING:
    import pandas as pd

PRIOR_POWERS = (0.5, 2.0)
LIKELIHOOD_POWERS = (0.8, 1.25)  # weights of half the likelihood would have no variance
FLAGGED = 0.25  # of the interval's width
MIXTURE_KEY = 7  # of the random stream


@dataclass(frozen=True, slots=True)
class Moves:
    """How far a mean moves when the prior, or the likelihood, counts less and more."""

    less: float  # NaN where it is not known
    more: float
    pareto_k: float  # the larger; above .7 the moves are not to be trusted

    @property
    def largest(self) -> float:
        """The larger of both, without sign."""
        return max(abs(self.less), abs(self.more))


UNKNOWN = Moves(float("nan"), float("nan"), float("nan"))


def prior_moves(posterior: Posterior, method: Method, agent: int, estimand: Estimand, metric: Metric) -> Moves:
    """How far the mean moves if the prior of an agent, and of what agents share, gets half or double weight.

    References
    ----------
    Kallioinen et al. (2024), Statistics and Computing 34, 57, doi:10.1007/s11222-023-10366-5.
    """
    if isinstance(method, Frequentist):
        return UNKNOWN
    if isinstance(posterior, ConjugatePosterior):  # on the logit scale Beta(a, b) to the power α is Beta(αa, αb)
        less, base, more = (
            posterior.mean_under(power, agent, metric) for power in (PRIOR_POWERS[0], 1.0, PRIOR_POWERS[1])
        )
        return Moves(less - base, more - base, 0.0)
    logs = posterior.once(("log prior", agent), lambda: _log_prior(posterior, method, agent))
    return _moves(posterior, agent, estimand, metric, logs, ("prior", agent), PRIOR_POWERS)


def likelihood_moves(posterior: Posterior, agent: int, estimand: Estimand, metric: Metric) -> Moves:
    """How far the mean moves when the likelihood counts .8 and 1.25 times."""
    logs = posterior.once(("log likelihood", agent), lambda: _log_likelihood(posterior, agent))
    if logs is None:
        return UNKNOWN
    return _moves(posterior, agent, estimand, metric, logs, ("likelihood", agent), LIKELIHOOD_POWERS)


def _moves(
    posterior: Posterior,
    agent: int,
    estimand: Estimand,
    metric: Metric,
    logs: Array,
    key: tuple[str, int],
    powers: tuple[float, float],
) -> Moves:
    distribution = posterior.distribution(agent, estimand, metric)
    base = posterior.weight if isinstance(posterior, CrossedPosterior) else None
    values = distribution.values if isinstance(distribution, Weighted) else distribution.draws()

    def weights() -> list[tuple[Array, float]]:
        # a weighted point counts by the product: where the power weighs most, the posterior may have next to nothing
        held = np.ones(logs.shape, dtype=bool) if base is None else base > 0
        start = 0.0 if base is None else np.log(base[held])
        found = []
        for power in powers:
            log_weight, k = smoothed(start + (power - 1) * logs[held])
            weight = np.zeros(logs.shape)
            weight[held] = np.exp(log_weight)
            found.append((weight / weight.sum(), k))
        return found

    (less, k_less), (more, k_more) = posterior.once(("power", *key), weights)
    centre = values.mean() if base is None else base @ values
    return Moves(float(less @ values - centre), float(more @ values - centre), max(k_less, k_more))


def _log_prior(posterior: Posterior, method: Method, agent: int) -> Array:
    """Log prior density of an agent's parameters and of the shared ones, at every point or draw."""
    logs = posterior.once(("log priors",), lambda: _log_priors(posterior, method))
    return np.asarray(sum(_own(values, agent, len(posterior.counts.agents)) for values in logs.values()))


def _log_priors(posterior: Posterior, method: Method) -> dict[str, Array]:
    """Log prior densities of all parameters, at every point or draw."""
    if isinstance(posterior, CrossedPosterior):
        drawn = {"theta": posterior.theta, "sigma": posterior.sigma, "rho": posterior.rho}
    else:
        drawn = posterior.hyper_draws()
    return {**log_prior_densities(drawn, method), **posterior.log_priors()}


def _own(values: Array, agent: int, agents: int) -> Array:
    """The agent's column of values by agent; values that agents share as they are."""
    if values.ndim == 1:
        return values
    own = values[:, agent] if values.shape[1] == agents else values
    return own if own.ndim == 1 else np.asarray(own.reshape(len(own), -1).sum(axis=1))


def _log_likelihood(posterior: Posterior, agent: int) -> Array | None:
    """Log likelihood at every point or draw: of the agent's cells, or of all where agents share difficulty."""
    if isinstance(posterior, CrossedPosterior):
        return posterior.likelihood(*posterior.arguments)
    sums = posterior.once(("log likelihoods",), lambda: _log_likelihoods(posterior))
    return None if sums is None else sums[agent]


def _log_likelihoods(posterior: Posterior) -> list[Array] | None:
    """Log likelihood of every agent's cells, at every point or draw."""
    cells = posterior.log_likelihood()
    if cells is None:
        return None
    of = np.argwhere(posterior.counts.scored)[:, 0]
    return [cells[:, of == agent].sum(axis=1) for agent in range(len(posterior.counts.agents))]


@dataclass(frozen=True, slots=True, kw_only=True)
class SensitivityRow:
    """What one number of an estimate depends on."""

    agent: str
    estimand: str
    metric: str
    mean: float
    lower: float
    upper: float
    prior_half: float  # how far the mean moves if the prior's weight is halved, and doubled
    prior_double: float
    prior_share: float  # the larger of these moves, as a share of the interval's width
    likelihood_down: float  # how far it moves when the data count .8 times, and 1.25 times
    likelihood_up: float
    band_lower: float  # where k exceeds every n: hull of the model's interval and the mixture's; else NaN
    band_upper: float
    bounds_lower: float  # distribution-free bounds; else NaN
    bounds_upper: float
    note: str = ""


@dataclass(frozen=True, kw_only=True, repr=False)
class Sensitivity(Tabular):
    """What the numbers of an estimate depend on: the prior, the data and the assumed shape.

    Attributes
    ----------
    rows : tuple of SensitivityRow
        One per agent, estimand and metric.
    ci_prob, ci_kind : float, str
        Of every interval.
    """

    rows: tuple[SensitivityRow, ...]
    ci_prob: float
    ci_kind: str

    @property
    def worst(self) -> SensitivityRow | None:
        """The row whose prior moves it most, relative to its interval."""
        known = [row for row in self.rows if not np.isnan(row.prior_share)]
        return max(known, key=lambda row: row.prior_share, default=None)

    def to_pandas(self) -> pd.DataFrame:
        """One row per agent, estimand and metric.

        Returns
        -------
        pandas.DataFrame
            Columns agent, estimand, metric, mean, lower, upper; ``prior_half``, ``prior_double``: how far the mean
            moves if the prior's weight is halved, or doubled; ``prior_share``: the larger move as a share of the
            interval; ``likelihood_down``, ``likelihood_up``: when the data count .8 or 1.25 times; ``band_lower``,
            ``band_upper``: sensitivity band and ``bounds_lower``, ``bounds_upper``: distribution-free bounds where k
            exceeds every number of trials; note.
        """
        import pandas as pd

        return pd.DataFrame([asdict(row) for row in self.rows], columns=list(SensitivityRow.__annotations__))

    def __repr__(self) -> str:
        return f"Sensitivity: {words(self.worst)}" if self.worst else "Sensitivity: there is no prior"

    def _headline(self) -> str:
        worst = self.worst
        if worst is None:
            return repr(self)
        largest = max(abs(worst.prior_half), abs(worst.prior_double))
        where = "new" if worst.estimand == "population" else "these"
        return (
            f"Sensitivity: the prior moves {worst.metric} of {worst.agent} on {where} tasks most, as a share of its "
            f"interval: by {largest:.3f} when it counts half or double, {100 * worst.prior_share:.0f} % of the interval"
        )

    def table(self) -> Table:
        """The moves of every mean; the band and the bounds where the model extrapolates."""
        beyond = any(not np.isnan(row.band_lower) for row in self.rows)
        lines = []
        for row in self.rows:
            line = [row.agent, row.estimand, row.metric, format_number(row.mean), format_interval(row.lower, row.upper)]
            moves = (row.prior_half, row.prior_double, row.likelihood_down, row.likelihood_up)
            line += map(_move, moves)
            if beyond:
                line += [_ends(row.band_lower, row.band_upper), _ends(row.bounds_lower, row.bounds_upper)]
            lines.append(line)
        header = ["agent", "estimand", "metric", "mean", "interval", "prior ×½", "prior ×2", "data ×0.8", "data ×1.25"]
        notes = [
            f"{interval_words(self.ci_prob, self.ci_kind)}; the other columns show how far the mean moves if "
            "the prior or the data get less or more weight",
            "band: k exceeds every number of trials, so the data cannot check the model's shape; the band also covers "
            "what a model of any shape says (a mixture of binomials), the bounds hold for any shape"
            if beyond
            else "",
            *dict.fromkeys(row.note for row in self.rows),
        ]
        header += ["band", "bounds"] if beyond else []
        return Table(title=self._headline(), header=header, rows=lines, notes=notes)


def _move(move: float) -> str:
    """A shift with its sign; none where it is nothing."""
    text = f"{move:+.3f}"
    return "–" if np.isnan(move) else text.lstrip("+-") if float(text) == 0 else text


def _ends(lower: float, upper: float) -> str:
    return "–" if np.isnan(lower) else format_interval(lower, upper)


def words(row: SensitivityRow) -> str:
    """The move of one mean with the prior, in a sentence."""
    return move_words(row.metric, max(abs(row.prior_half), abs(row.prior_double)), row.prior_share, agent=row.agent)


def move_words(metric: str, move: float, share: float, *, agent: str = "") -> str:
    """The move of one mean with the prior, in a sentence."""
    whose, much = f" of {agent}" if agent else "", f", {100 * share:.0f} % of its interval" if share > FLAGGED else ""
    return f"prior: halving or doubling its weight moves {metric}{whose} by up to {move:.3f}{much}"


def sensitivity_of(posterior: Posterior, settings: Settings, agents: Sequence[int] | None = None) -> Sensitivity:
    """Of the numbers of a summary, or of those of some agents."""
    chosen = range(len(posterior.counts.agents)) if agents is None else agents
    return Sensitivity(rows=_rows(posterior, settings, chosen), ci_prob=settings.ci_prob, ci_kind=settings.ci_kind)


def _rows(posterior: Posterior, settings: Settings, agents: Sequence[int]) -> tuple[SensitivityRow, ...]:
    """One row per agent, estimand and metric of a summary."""
    prob, found = settings.ci_prob, list[SensitivityRow]()
    metrics = metrics_at(settings.k)
    for index in agents:
        agent = posterior.counts.agents[index]
        most = int(posterior.counts.trials[index].max(initial=0))
        beyond = [metric for metric in metrics if most and metric.k > most]
        judged = settings.corrects_judge
        mixture = _mixture(posterior, index, beyond, prob) if beyond and not judged else {}
        for estimand in (name for name in posterior.estimands if name != "task"):
            for metric in metrics:
                stats = posterior.distribution(index, estimand, metric).stats(prob, settings.ci_kind)
                lower, upper = float(stats.lower), float(stats.upper)
                defined = not np.isnan(stats.mean)
                prior = prior_moves(posterior, settings.method, index, estimand, metric) if defined else UNKNOWN
                likelihood = likelihood_moves(posterior, index, estimand, metric) if defined else UNKNOWN
                band = bounds = (float("nan"),) * 2
                if metric in mixture and estimand == "population":
                    band = (min(lower, mixture[metric][0]), max(upper, mixture[metric][1]))
                    bounds = pass_bounds(*posterior.counts.groups(index), metric, prob=prob)
                notes = []
                if max(prior.pareto_k, likelihood.pareto_k) > 0.7:
                    notes.append(f"{agent}: its moves are approximate, since some draws count for many (Pareto k > .7)")
                if beyond and judged:
                    notes.append("no band: it would be about the judge's verdicts, not about true successes")
                found.append(
                    SensitivityRow(
                        agent=agent,
                        estimand=estimand,
                        metric=str(metric),
                        mean=float(stats.mean),
                        lower=lower,
                        upper=upper,
                        prior_half=prior.less,
                        prior_double=prior.more,
                        prior_share=prior.largest / (upper - lower) if upper > lower else float("nan"),
                        likelihood_down=likelihood.less,
                        likelihood_up=likelihood.more,
                        band_lower=band[0],
                        band_upper=band[1],
                        bounds_lower=bounds[0],
                        bounds_upper=bounds[1],
                        note="; ".join(notes),
                    )
                )
    return tuple(found)


def _mixture(posterior: Posterior, agent: int, metrics: list[Metric], prob: float) -> dict[Metric, tuple[float, float]]:
    """Equal-tailed intervals of the metrics of a new task by the mixture."""
    rng = posterior.rng(MIXTURE_KEY, posterior.counts.streams[agent])
    draws = mixture_draws(*posterior.counts.groups(agent), metrics, rng)
    tail = (1 - prob) / 2
    ends = {metric: np.quantile(values, [tail, 1 - tail]).tolist() for metric, values in draws.items()}
    return {metric: (lower, upper) for metric, (lower, upper) in ends.items()}
