"""The hierarchical model seen through a judge that errs.

An attempt that is right is judged right with probability s₁ (sensitivity), one that is wrong is judged wrong with
probability s₀ (specificity). Of n attempts of a task the judge passed c; z of them are truly right:

    p(c | z) = Σ_k Binomial(k; z, s₁) Binomial(c - k; n - z, 1 - s₀),     z ~ BetaBinomial(n, μκ, (1-μ)κ)
    s₁, s₀ ~ Beta(2, 1), labelled attempts: right ones are hits with probability s₁, wrong ones rejections with s₀

z is summed over. Where the labels say that the judge's errors cluster by task (`judge_labels`), both Binomials are
Beta-Binomials with the correlation found there. Attempts that a human labelled are true outcomes of their task.
Everything is tabulated on a product of nodes of θ = logit μ, ρ, s₁ and s₀; agents are independent given (s₁, s₀), which
they share. Nothing divides by s₁ + s₀ - 1: a judge no better than chance leaves what the labelled attempts say.
"""

from __future__ import annotations

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
    legendre_between,
    logsumexp,
    share_of,
    softplus,
    widened_range,
)
from agentic_bayes.estimation.engines.grid.betabinomial import log_likelihood_table
from agentic_bayes.estimation.engines.grid.quadrature import GridFit
from agentic_bayes.estimation.judge_labels import JudgeLabels
from agentic_bayes.estimation.methods.options import Hierarchical, LogDensity
from agentic_bayes.numerics import Array

MOST_TRIALS = 200  # of a task: sums over z take time with their square
COARSE = (12, 8)  # nodes of ρ and of each error rate while looking for the range
NODES = (20, 12)  # and finally
THETA_NODES = 33
TAIL = 1e-8  # of the labels' own posterior of an error rate, beyond which nothing is looked at
PRIOR = (2.0, 1.0)  # Beta, of both rates: an error rate above one half is not the rule


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
    def of(cls, counts: Counts, agent: int, labels: JudgeLabels) -> Kinds:
        """Of the counts, with labelled attempts taken out of the judge's."""
        labelled, right, passed = (table[agent] for table in labels.cells(counts))
        rows = np.stack([counts.successes[agent] - passed, counts.trials[agent] - labelled, right, labelled])
        scored = counts.scored[agent]
        distinct, where, size = np.unique(rows[:, scored], axis=1, return_inverse=True, return_counts=True)
        place = np.full(scored.size, -1)
        place[scored] = where.reshape(-1)
        c, n, right, total = distinct
        return cls(c, n, right, total, size, place)


class Rates:
    """Nodes of (s₁, s₀), flattened, with the log of their prior mass and of the labels' likelihood."""

    def __init__(self, labels: JudgeLabels, ranges: tuple[Range, Range], nodes: int) -> None:
        from scipy.special import xlog1py, xlogy

        self.shape: tuple[int, int] = (nodes, nodes)
        axes: list[Array]
        logs: list[Array]
        if labels.sensitivity is not None and labels.specificity is not None:
            self.shape = (1, 1)
            axes, logs = [np.array([labels.sensitivity]), np.array([labels.specificity])], [np.zeros(1), np.zeros(1)]
        else:
            between = [legendre_between(*ends, nodes) for ends in ranges]
            axes = [rate for rate, _ in between]
            logs = [
                log_width + xlogy(PRIOR[0] - 1, rate) + xlog1py(PRIOR[1] - 1, -rate) + seen
                for (rate, log_width), seen in zip(between, labels.log_likelihood(axes[0], axes[1]), strict=True)
            ]
        self.axes = axes
        self.clustering = labels.clustering
        self.sensitivity, self.specificity = (part.ravel() for part in np.meshgrid(*axes, indexing="ij"))
        self.log_weight = (logs[0][:, None] + logs[1]).ravel()

    def confusion(self, c: int, n: int) -> Array:
        """p(c | z) for z = 0, …, n, shape (rates, n + 1)."""
        found = np.empty((self.log_weight.size, n + 1))
        k = np.arange(c + 1)
        for z in range(n + 1):
            passed = _verdicts(k, z, self.axes[0], self.clustering)  # truly right ones that were passed
            slipped = _verdicts(c - k, n - z, 1 - self.axes[1], self.clustering)  # wrong ones that were
            found[:, z] = (passed @ slipped.T).ravel()
        return found


def _verdicts(k: Array, n: int, p: Array, clustering: float) -> Array:
    """Probabilities of k of n, shape (p, k), 0 where k > n: Binomial, Beta-Binomial where verdicts cluster."""
    from scipy.special import betaln, gammaln, xlog1py, xlogy

    inside, p = np.clip(k, 0, n), p[:, None]
    log_choose = gammaln(n + 1) - gammaln(inside + 1) - gammaln(n - inside + 1)
    if clustering:
        a, b = p * (1 / clustering - 1), (1 - p) * (1 / clustering - 1)
        logs = betaln(inside + a, n - inside + b) - betaln(a, b)
    else:
        logs = xlogy(inside, p) + xlog1py(n - inside, -p)
    return np.where(k <= n, np.exp(log_choose + logs), 0.0)


class JudgedLikelihood(AgentLikelihood):
    """The likelihood of one agent's judged counts on nodes of θ, ρ and the error rates."""

    def __init__(self, kinds: Kinds, method: Hierarchical) -> None:
        self.kinds = kinds
        # in terms of what is known at best: for placing and scaling of θ
        self.c, self.n, self.size = kinds.c + kinds.right, kinds.n + kinds.labelled, kinds.size
        self.concentration = Concentration(int(self.n.max(initial=1)), method)

    def truths(self, kind: int, theta: Array, rho: RhoAxis) -> Array:
        """Log of [C(n, z) × Beta-Binomial likelihood of z more successes], shape (n + 1, θ nodes, ρ nodes)."""
        from scipy.special import gammaln

        n, right, labelled = (int(part[kind]) for part in (self.kinds.n, self.kinds.right, self.kinds.labelled))
        log_shares = -softplus(-theta), -softplus(theta)
        z = np.arange(n + 1)
        log_choose = gammaln(n + 1) - gammaln(z + 1) - gammaln(n - z + 1)
        one, total = np.array([1]), np.array([n + labelled])
        tables = [
            log_likelihood_table(np.array([zi + right]), total, one, *log_shares, rho.rho, rho.one_minus_rho)
            for zi in z.tolist()
        ]
        return np.stack(tables) + log_choose[:, None, None]

    def table(self, theta: Array, rho: RhoAxis, rates: Rates) -> Array:
        """Log likelihood, shape (θ nodes, ρ nodes, rates)."""
        out = np.zeros((theta.size, rho.rho.size, rates.log_weight.size))
        for kind, size in enumerate(self.kinds.size.tolist()):
            logs = self.truths(kind, theta, rho)
            top = logs.max(axis=0)
            share = np.exp(logs - top)
            confusion = rates.confusion(int(self.kinds.c[kind]), int(self.kinds.n[kind]))
            with np.errstate(divide="ignore"):
                out += size * (np.log(np.tensordot(share, confusion, axes=(0, 1))) + top[:, :, None])
        return out


@dataclass(frozen=True)
class JudgedFit:
    """Posterior grids of all agents through a judge that errs."""

    grids: GridFit  # θ and ρ of every agent with the error rates integrated out, as the exact engine takes them
    rates: Rates  # nodes of the error rates
    log_rates: Array  # shape (rates,); log of their posterior mass
    tables: list[Array]  # shape (θ nodes, ρ nodes, rates); log posterior mass of θ and ρ given the rates, one per agent


def fit_judged(counts: Counts, labels: JudgeLabels, method: Hierarchical, *, fine: float = 1.0) -> JudgedFit:
    """Posterior grids of agents that do not share strength, and of the judge's error rates, which they share."""
    if int(counts.trials.max(initial=0)) > MOST_TRIALS:
        raise EstimateError(
            f"judge errors are corrected for tasks with at most {MOST_TRIALS} trials, "
            f"the largest has {int(counts.trials.max())}"
        )
    log_prior = LogitPrior(method, "mu")
    likelihoods = [JudgedLikelihood(Kinds.of(counts, a, labels), method) for a in range(len(counts.agents))]
    places, rates = _placed(likelihoods, labels, log_prior)
    final = Rates(labels, rates, int(NODES[1] * fine))
    axes, rhos, tables = [], [], []
    cut = theta_limits(log_prior) != (-FARTHEST, FARTHEST)
    for likelihood, (theta_range, v_range) in zip(likelihoods, places, strict=True):
        nodes = max(NODES[0], int(5 * (v_range[1] - v_range[0])))
        rho = likelihood.concentration.over(*v_range, int(nodes * fine))
        centre, scale = likelihood.sharpest_scale(float(rho.rho[0]))
        axis = Axis.over(*theta_range, float(np.clip(centre, *theta_range)), scale, step=STEP / fine, cut=cut)
        axes.append(axis)
        rhos.append(rho)
        mass = likelihood.table(axis.theta, rho, final) + rho.log_weight[:, None]
        tables.append(mass + (log_prior(axis.theta) + np.log(axis.spacing))[:, None, None])
    evidence = [logsumexp(table.reshape(-1, table.shape[2]), axis=0) for table in tables]
    log_rates = final.log_weight + sum(evidence)
    log_rates = np.asarray(log_rates - logsumexp(log_rates))
    given = [_difference(table, part) for table, part in zip(tables, evidence, strict=True)]
    grids = []
    for axis, rho, table in zip(axes, rhos, given, strict=True):
        # what `AgentGrid` multiplies by again is left out
        mixed = logsumexp(table + log_rates, axis=2) - rho.log_weight - np.log(axis.spacing)[:, None]
        grids.append(AgentGrid(axis, rho, mixed, np.zeros(axis.size)))
    return JudgedFit(GridFit(grids, None, list(likelihoods)), final, log_rates, given)


def _placed(
    likelihoods: list[JudgedLikelihood], labels: JudgeLabels, log_prior: LogDensity
) -> tuple[list[tuple[Range, Range]], tuple[Range, Range]]:
    """Ranges of θ and of ρ's coordinate for every agent, and of both rates, outside of which there is no mass."""
    weight = labels.least_weight
    ends = (
        _label_range(weight * labels.hits, weight * labels.misses),
        _label_range(weight * labels.rejections, weight * labels.false_alarms),
    )
    rates, places = ends, [(theta_limits(log_prior), part.concentration.ends) for part in likelihoods]
    for _ in range(30):
        nodes = Rates(labels, rates, COARSE[1])
        found, evidence, moved = [], nodes.log_weight.copy(), False
        for part, (theta_range, v_range) in zip(likelihoods, places, strict=True):
            theta, rho = np.linspace(*theta_range, THETA_NODES), part.concentration.over(*v_range, COARSE[0])
            mass = part.table(theta, rho, nodes) + rho.log_weight[:, None] + log_prior(theta)[:, None, None]
            found.append((theta, rho, mass))
            evidence += logsumexp(mass.reshape(-1, mass.shape[2]), axis=0)
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
            # until θ is resolved, its nodes say nothing of ρ
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
