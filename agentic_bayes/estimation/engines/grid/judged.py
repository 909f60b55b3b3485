"""The hierarchical model seen through a judge that errs.

An attempt that is right is judged right with probability s₁ (sensitivity), one that is wrong is judged wrong with
probability s₀ (specificity). Of n attempts of a task the judge passed c; z of them are truly right:

    p(c | z) = Σ_k Binomial(k; z, s₁) Binomial(c - k; n - z, 1 - s₀),     z ~ BetaBinomial(n, μκ, (1-μ)κ)
    s₁, s₀ ~ Beta(2, 1), labelled attempts: right ones are hits with probability s₁, wrong ones rejections with s₀
    labels whose attempt is not known: p(human | verdict), see `judge_labels`

z is summed over. Where the labels say that the judge's errors cluster by task (`judge_labels`), both Binomials are
Beta-Binomials with the correlation found there. Attempts that a human labelled are true outcomes of their task.
Everything is tabulated on a product of nodes of θ = logit μ, ρ, s₁ and s₀. Agents are independent given (s₁, s₀), which
they share; where labels say whose attempt they are of, every agent has its own (`judge_rates`). Nothing divides by
s₁ + s₀ - 1: a judge no better than chance leaves what the labelled attempts say.

An attempt of which nothing is known but that the judge passed it is right with probability E(right ones among the
passed | all verdicts, μ, ρ, s₁, s₀) / passed: s₁ q / (s₁ q + (1 - s₀)(1 - q)) with the share q of right attempts
among those that were judged. With q = μ, labels would tell of all tasks what they tell of these tasks only
(measured: coverage .89 for .95). One attempt of a new task is added, so that it is defined where nothing was passed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from agentic_bayes.errors import EstimateError
from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.engines.grid.agent_grid import STEP, AgentGrid, AgentLikelihood, theta_limits
from agentic_bayes.estimation.engines.grid.axes import (
    FARTHEST,
    Axis,
    Concentration,
    LogitPrior,
    Range,
    RhoAxis,
    kept_range,
    logsumexp,
    share_of,
    softplus,
    widened_range,
)
from agentic_bayes.estimation.engines.grid.betabinomial import log_likelihood_table
from agentic_bayes.estimation.engines.grid.judge_rates import PRIOR, Rates, SharedRates
from agentic_bayes.estimation.engines.grid.quadrature import GridFit
from agentic_bayes.estimation.methods.judge_labels import JudgeLabels
from agentic_bayes.estimation.methods.options import Hierarchical, LogDensity
from agentic_bayes.numerics import Array

MOST_TRIALS = 200  # of a task: sums over z take time with their square
COARSE = (12, 8)  # nodes of ρ and of each error rate while looking for the range
NODES = (20, 12)  # and finally
THETA_NODES = 33
TAIL = 1e-8  # of the labels' own posterior of an error rate, beyond which nothing is looked at
MIXED = 5  # Gauss-Hermite nodes of the shares of right attempts of several agents


@dataclass(frozen=True)
class Kinds:
    """The distinct tasks of one agent, and how many there are of each."""

    c: Array  # shape (kinds,); attempts judged right, of those that no human labelled
    n: Array
    right: Array  # shape (kinds,); truly right attempts, of those that were labelled
    labelled: Array
    size: Array  # shape (kinds,); tasks
    place: Array  # shape (tasks,); kind of every task; -1 where nothing is known of it

    @classmethod
    def of(cls, counts: Counts, agent: int, labels: JudgeLabels, *, nothing: bool = False) -> Kinds:
        """Of the counts, with labelled attempts taken out of the judge's; `nothing` known of a task may be a kind."""
        labelled, right, passed = (table[agent] for table in labels.cells(counts))
        rows = np.stack([counts.successes[agent] - passed, counts.trials[agent] - labelled, right, labelled])
        held = counts.scored[agent] | nothing
        distinct, where, size = np.unique(rows[:, held], axis=1, return_inverse=True, return_counts=True)
        place = np.full(held.size, -1)
        place[held] = where.reshape(-1)
        c, n, right, total = distinct
        return cls(c, n, right, total, size, place)


class JudgedLikelihood(AgentLikelihood):
    """The likelihood of one agent's judged counts on nodes of θ, ρ and the error rates."""

    def __init__(self, kinds: Kinds, method: Hierarchical) -> None:
        self.kinds = kinds
        # in terms of what is known at best: for placing and scaling of θ
        self.c, self.n, self.size = kinds.c + kinds.right, kinds.n + kinds.labelled, kinds.size
        self.concentration = Concentration(int(self.n.max(initial=1)), method)

    def truths(self, kind: int, theta: Array, rho: RhoAxis, made: dict[tuple[int, int], Array] | None = None) -> Array:
        """Log of [C(n, z) × Beta-Binomial likelihood of z more successes], shape (n + 1, θ nodes, ρ nodes)."""
        from scipy.special import gammaln

        n, right, labelled = (int(part[kind]) for part in (self.kinds.n, self.kinds.right, self.kinds.labelled))
        log_shares = -softplus(-theta), -softplus(theta)
        z, one, made = np.arange(n + 1), np.array([1]), {} if made is None else made
        for passed in range(right, right + n + 1):  # kinds have many of these in common
            if (passed, n + labelled) not in made:
                pair = np.array([passed]), np.array([n + labelled])
                made[passed, n + labelled] = log_likelihood_table(*pair, one, *log_shares, rho.rho, rho.one_minus_rho)
        log_choose = gammaln(n + 1) - gammaln(z + 1) - gammaln(n - z + 1)
        return np.stack([made[right + zi, n + labelled] for zi in z.tolist()]) + log_choose[:, None, None]

    def _shares(self, theta: Array, rho: RhoAxis) -> Iterator[tuple[int, int, int, Array, Array]]:
        """Of every kind: tasks, c and n, and exp of its truths with the largest taken out, which is the last."""
        made: dict[tuple[int, int], Array] = {}
        for kind, (size, c, n) in enumerate(zip(self.kinds.size, self.kinds.c, self.kinds.n, strict=True)):
            logs = self.truths(kind, theta, rho, made)
            top = logs.max(axis=0)
            yield int(size), int(c), int(n), np.exp(logs - top), top

    def table(self, theta: Array, rho: RhoAxis, rates: Rates) -> Array:
        """Log likelihood, shape (θ nodes, ρ nodes, rates)."""
        out = np.zeros((theta.size, rho.rho.size, rates.log_weight.size))
        scale = np.zeros(out.shape[:2])
        for size, c, n, share, top in self._shares(theta, rho):
            scale += size * top
            seen = np.tensordot(share, rates.confusion(c, n), axes=(0, 1))
            with np.errstate(divide="ignore"):
                np.log(seen, out=seen)
            seen *= size
            out += seen
        return out + scale[:, :, None]

    def right(self, theta: Array, rho: RhoAxis, rates: Rates) -> Array:
        """Expected right attempts among the passed and among the failed, shape (2, θ nodes, ρ nodes, rates)."""
        out = np.zeros((2, theta.size, rho.rho.size, rates.log_weight.size))
        for size, c, n, share, _ in self._shares(theta, rho):
            confusion, passed = rates.confusion(c, n), rates.passed_rightly(c, n)
            seen = np.maximum(np.tensordot(share, confusion, axes=(0, 1)), 1e-300)
            for place, part in enumerate((passed, np.arange(n + 1) * confusion - passed)):
                out[place] += size * np.tensordot(share, part, axes=(0, 1)) / seen
        return out

    def verdicts(self) -> Array:
        """How many unlabelled attempts were passed, and how many failed."""
        passed = int(self.kinds.size @ self.kinds.c)
        return np.array([passed, int(self.kinds.size @ self.kinds.n) - passed])


@dataclass(frozen=True)
class JudgedFit:
    """Posterior grids of all agents through a judge that errs."""

    grids: GridFit  # θ and ρ of every agent with the error rates integrated out, as the exact engine takes them
    rates: list[Rates]  # nodes of each agent's error rates; one and the same where agents share them
    log_rates: list[Array]  # shape (rates,); log of their posterior mass
    tables: list[Array]  # shape (θ nodes, ρ nodes, rates); log posterior mass of θ and ρ given the rates, one per agent
    shared: SharedRates | None = None  # where each agent has rates of its own


@dataclass(frozen=True)
class _Agents:
    """Agents with the same error rates."""

    axes: list[Axis]
    rhos: list[RhoAxis]
    tables: list[Array]  # shape (θ nodes, ρ nodes, rates); log posterior mass given the rates
    rates: Rates
    log_seen: Array  # shape (rates,); log likelihood of the rates


def fit_judged(counts: Counts, labels: JudgeLabels, method: Hierarchical, *, fine: float = 1.0) -> JudgedFit:
    """Posterior grids of agents and of the judge's error rates; of the agents' successes none tells of another's."""
    if int(counts.trials.max(initial=0)) > MOST_TRIALS:
        raise EstimateError(
            f"judge errors are corrected for tasks with at most {MOST_TRIALS} trials, "
            f"the largest has {int(counts.trials.max())}"
        )
    likelihoods = [JudgedLikelihood(Kinds.of(counts, a, labels), method) for a in range(len(counts.agents))]
    if labels.per_agent(counts.agents):
        by_agent = zip(counts.agents, likelihoods, strict=True)
        fits = [_fit([part], labels.of_agent(agent), method, fine) for agent, part in by_agent]
        shared = SharedRates([one.rates for one in fits], [one.log_seen for one in fits])
        rates, log_rates = shared.rates, shared.log_masses
    else:
        fits, shared = [_fit(likelihoods, labels, method, fine)], None
        mass = fits[0].rates.log_width + fits[0].rates.log_prior + fits[0].log_seen
        rates, log_rates = [fits[0].rates] * len(likelihoods), [mass - logsumexp(mass)] * len(likelihoods)
    axes, rhos, tables = ([one for fit in fits for one in getattr(fit, name)] for name in ("axes", "rhos", "tables"))
    grids = []
    for axis, rho, table, log_mass in zip(axes, rhos, tables, log_rates, strict=True):
        # what `AgentGrid` multiplies by again is left out
        mixed = logsumexp(table + log_mass, axis=2) - rho.log_weight - np.log(axis.spacing)[:, None]
        grids.append(AgentGrid(axis, rho, mixed, np.zeros(axis.size)))
    return JudgedFit(GridFit(grids, None, list(likelihoods)), rates, log_rates, tables, shared)


def _fit(likelihoods: list[JudgedLikelihood], labels: JudgeLabels, method: Hierarchical, fine: float) -> _Agents:
    """Agents with the same error rates, of which the labels tell."""
    log_prior = LogitPrior(method, "mu")
    places, ranges = _placed(likelihoods, labels, log_prior)
    rates = Rates(labels, ranges, int(NODES[1] * fine))
    axes, rhos, tables = [], [], []
    cut = theta_limits(log_prior) != (-FARTHEST, FARTHEST)
    for likelihood, (theta_range, v_range) in zip(likelihoods, places, strict=True):
        nodes = max(NODES[0], int(5 * (v_range[1] - v_range[0])))
        rho = likelihood.concentration.over(*v_range, int(nodes * fine))
        centre, scale = likelihood.sharpest_scale(float(rho.rho[0]))
        axis = Axis.over(*theta_range, float(np.clip(centre, *theta_range)), scale, step=STEP / fine, cut=cut)
        axes.append(axis)
        rhos.append(rho)
        mass = likelihood.table(axis.theta, rho, rates) + rho.log_weight[:, None]
        tables.append(mass + (log_prior(axis.theta) + np.log(axis.spacing))[:, None, None])
    thetas = [axis.theta for axis in axes]
    found = list(zip(likelihoods, thetas, rhos, tables, strict=True))
    log_seen = rates.log_seen + _add_loose(found, labels, rates)
    given = []
    for table in tables:
        own = logsumexp(table.reshape(-1, table.shape[2]), axis=0)
        log_seen = log_seen + own
        given.append(_difference(table, own))
    return _Agents(axes, rhos, given, rates, log_seen)


def _add_loose(found: list[tuple[JudgedLikelihood, Array, RhoAxis, Array]], labels: JudgeLabels, rates: Rates) -> Array:
    """What labels whose attempt is not known say: of one agent to its table, of several to the rates, shape (rates,).

    Of several agents the right attempts given the rates are taken as normal, and agents are left as they are.
    """
    nothing = np.zeros(rates.log_weight.size)
    if not any(labels.loose):
        return nothing
    verdicts = np.sum([part.verdicts() for part, *_ in found], axis=0)
    mean, covariance = np.zeros((nothing.size, 2)), np.zeros((nothing.size, 2, 2))
    for part, theta, rho, table in found:
        mu = np.exp(-softplus(-theta))[:, None, None]
        added = np.stack([rates.sensitivity * mu, (1 - rates.sensitivity) * mu])
        passed = added[0] + (1 - rates.specificity) * (1 - mu)
        share = (part.right(theta, rho, rates) + added / len(found)) / (
            np.stack([passed, 1 - passed]) + verdicts[:, None, None, None]
        )
        if len(found) == 1:
            table += labels.log_predictive(*np.clip(share, 1e-300, 1 - 1e-16))
            return nothing
        flat = table.reshape(-1, nothing.size)
        mass = np.exp(_difference(flat, logsumexp(flat, axis=0)))
        own = share.reshape(2, *flat.shape)
        centre = np.einsum("vnr,nr->rv", own, mass)
        mean += centre
        covariance += np.einsum("vnr,wnr,nr->rvw", own, own, mass) - centre[:, :, None] * centre[:, None]
    node, weight = np.polynomial.hermite_e.hermegauss(MIXED)
    log_weight = np.log(weight / weight.sum())
    values, vectors = np.linalg.eigh(covariance)
    along = vectors * np.sqrt(np.maximum(values, 0))[:, None]
    first, second = (part.ravel() for part in np.meshgrid(node, node))
    shares = np.clip(mean[:, :, None] + along @ np.stack([first, second]), 1e-9, 1 - 1e-9)
    said = labels.log_predictive(shares[:, 0], shares[:, 1]) + (log_weight[:, None] + log_weight).ravel()
    return np.asarray(logsumexp(said, axis=1))


def _placed(
    likelihoods: list[JudgedLikelihood], labels: JudgeLabels, log_prior: LogDensity
) -> tuple[list[tuple[Range, Range]], tuple[Range, Range]]:
    """Ranges of θ and of ρ's coordinate for every agent, and of both rates, outside of which there is no mass."""
    hits, misses, rejections, alarms = (labels.least_weight * part for part in labels.whole)
    ends = _label_range(hits, misses), _label_range(rejections, alarms)
    rates, places = ends, [(theta_limits(log_prior), part.concentration.ends) for part in likelihoods]
    for _ in range(30):
        nodes = Rates(labels, rates, COARSE[1])
        found, evidence, moved = [], nodes.log_weight.copy(), False
        for part, (theta_range, v_range) in zip(likelihoods, places, strict=True):
            theta, rho = np.linspace(*theta_range, THETA_NODES), part.concentration.over(*v_range, COARSE[0])
            mass = part.table(theta, rho, nodes) + rho.log_weight[:, None] + log_prior(theta)[:, None, None]
            found.append((theta, rho, mass))
        evidence += _add_loose([(part, *one) for part, one in zip(likelihoods, found, strict=True)], labels, nodes)
        evidence += sum(logsumexp(mass.reshape(-1, mass.shape[2]), axis=0) for *_, mass in found)
        if not np.isfinite(evidence).any():  # only fixed rates can rule something out
            raise EstimateError(
                f"sensitivity {labels.sensitivity:g} and specificity {labels.specificity:g} cannot give these counts"
            )
        for a, (theta, rho, mass) in enumerate(found):
            theta_range, v_range = places[a]
            own = logsumexp(mass.reshape(-1, mass.shape[2]), axis=0)
            weighted = mass + _difference(evidence, own)
            by_theta = logsumexp(weighted.reshape(theta.size, -1), axis=1)
            by_v = logsumexp(np.moveaxis(weighted, 1, 0).reshape(rho.v.size, -1), axis=1)
            wide = widened_range(by_theta, theta_range, theta_limits(log_prior))
            new_theta = wide if wide != theta_range else kept_range(theta, by_theta, theta_range)
            # until θ is resolved, its nodes say nothing about ρ
            resolved = wide == theta_range and share_of(new_theta, theta_range) > 0.25
            new_v = kept_range(rho.v, by_v, v_range) if resolved else v_range
            moved |= not resolved or min(share_of(new_theta, theta_range), share_of(new_v, v_range)) < 0.6
            places[a] = new_theta, new_v
        if not moved and labels.sensitivity is None:
            table = evidence.reshape(nodes.shape)
            new = tuple(
                kept_range(axis, logsumexp(table, axis=1 - i), now)
                for i, (axis, now) in enumerate(zip(nodes.axes, rates, strict=True))
            )
            moved = any(share_of(after, now) < 0.6 for after, now in zip(new, rates, strict=True))
            rates = new[0], new[1]
        if not moved:
            break
    return places, rates


def _difference(log_a: Array, log_b: Array) -> Array:
    """log_a - log_b; -inf where both are."""
    return np.asarray(np.subtract(log_a, log_b, out=np.full(log_a.shape, -np.inf), where=np.isfinite(log_b)))


def _label_range(good: float, bad: float) -> Range:
    """Where the labels alone allow an error rate to lie."""
    from scipy.special import betaincinv

    a, b = good + PRIOR[0], bad + PRIOR[1]
    return float(betaincinv(a, b, TAIL)), float(1 - betaincinv(b, a, TAIL))
