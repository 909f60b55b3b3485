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

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from agentic_bayes.errors import EstimateError
from agentic_bayes.estimation.engines.grid.agent_grid import STEP, AgentGrid, AgentLikelihood
from agentic_bayes.estimation.engines.grid.axes import (
    FARTHEST,
    Axis,
    Concentration,
    RhoAxis,
    kept_range,
    legendre_nodes,
    logsumexp,
    softplus,
    widened_range,
)
from agentic_bayes.estimation.engines.grid.betabinomial import log_likelihood_table, mean_power
from agentic_bayes.estimation.engines.grid.exact import ExactPosterior, of_tail
from agentic_bayes.estimation.engines.grid.quadrature import GridFit, log_prior_theta
from agentic_bayes.estimation.judge_labels import JudgeLabels
from agentic_bayes.estimation.posterior import (
    CHAINS,
    DRAWS,
    LARGE_GROUP,
    Array,
    CIKind,
    Counts,
    Estimand,
    Stats,
    apply_metric,
    interval_of_draws,
    mean_of_metric,
)
from agentic_bayes.estimation.prior import LogDensity, Prior
from agentic_bayes.formatting import Metric, format_interval, format_number, plural

__all__ = ["JudgedFit", "JudgedPosterior", "describe", "fit_judged"]

MOST_TRIALS = 200  # of a task: sums over z take time with their square
COARSE = (12, 8)  # nodes of ρ and of each error rate while looking for the range
NODES = (20, 12)  # and finally
THETA_NODES = 33
TAIL = 1e-8  # of the labels' own posterior of an error rate, beyond which nothing is looked at
PRIOR = (2.0, 1.0)  # Beta, of both rates: an error rate above one half is not the rule
CHANCE_WORDS = "; this judge may be no better than chance, so that its verdicts say next to nothing"
CHANCE = 0.05  # probability of s₁ + s₀ ≤ 1 from which the judge counts as no better than chance


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

    def __init__(
        self, labels: JudgeLabels, ranges: tuple[tuple[float, float], tuple[float, float]], nodes: int
    ) -> None:
        from scipy.special import xlog1py, xlogy

        self.shape: tuple[int, int] = (nodes, nodes)
        if labels.sensitivity is not None and labels.specificity is not None:
            self.shape = (1, 1)
            axes, logs = [np.array([labels.sensitivity]), np.array([labels.specificity])], [np.zeros(1), np.zeros(1)]
        else:
            x, w = legendre_nodes(nodes)
            axes = [(low + high) / 2 + (high - low) / 2 * x for low, high in ranges]
            logs = [
                np.log(w * (high - low) / 2) + xlogy(PRIOR[0] - 1, rate) + xlog1py(PRIOR[1] - 1, -rate) + seen
                for (low, high), rate, seen in zip(ranges, axes, labels.log_likelihood(axes[0], axes[1]), strict=True)
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

    def __init__(self, kinds: Kinds, prior: Prior) -> None:
        self.kinds = kinds
        # in terms of what is known at best: for placing and scaling of θ
        self.c, self.n, self.size = kinds.c + kinds.right, kinds.n + kinds.labelled, kinds.size
        self.concentration = Concentration(int(self.n.max(initial=1)), prior)

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


def fit_judged(counts: Counts, labels: JudgeLabels, *, prior: Prior, fine: float = 1.0) -> JudgedFit:
    """Posterior grids of agents that do not share strength, and of the judge's error rates, which they share."""
    if int(counts.trials.max(initial=0)) > MOST_TRIALS:
        raise EstimateError(
            f"judge errors are corrected for tasks with at most {MOST_TRIALS} trials, "
            f"the largest has {int(counts.trials.max())}"
        )
    log_prior = log_prior_theta(prior)
    likelihoods = [JudgedLikelihood(Kinds.of(counts, a, labels), prior) for a in range(len(counts.agents))]
    places, rates = _placed(likelihoods, labels, log_prior)
    final = Rates(labels, rates, int(NODES[1] * fine))
    axes, rhos, tables = [], [], []
    for likelihood, (theta_range, v_range) in zip(likelihoods, places, strict=True):
        nodes = max(NODES[0], int(5 * (v_range[1] - v_range[0])))
        rho = likelihood.concentration.over(*v_range, int(nodes * fine))
        centre, scale = likelihood.sharpest_scale(float(rho.rho[0]))
        axis = Axis.over(*theta_range, float(np.clip(centre, *theta_range)), scale, step=STEP / fine)
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


Range = tuple[float, float]


def _placed(
    likelihoods: list[JudgedLikelihood], labels: JudgeLabels, log_prior: LogDensity
) -> tuple[list[tuple[Range, Range]], tuple[Range, Range]]:
    """Ranges of θ and of ρ's coordinate for every agent, and of both rates, outside of which there is no mass."""
    weight = labels.least_weight
    ends = (
        _label_range(weight * labels.hits, weight * labels.misses),
        _label_range(weight * labels.rejections, weight * labels.false_alarms),
    )
    rates, places = ends, [((-FARTHEST, FARTHEST), part.concentration.ends) for part in likelihoods]
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
            wide = widened_range(by_theta, theta_range, (-FARTHEST, FARTHEST))
            new_theta = wide if wide != theta_range else kept_range(theta, by_theta, theta_range)
            # until θ is resolved, its nodes say nothing of ρ
            resolved = wide == theta_range and _share(new_theta, theta_range) > 0.25
            new_v = kept_range(rho.v, by_v, v_range) if resolved else v_range
            moved |= not resolved or min(_share(new_theta, theta_range), _share(new_v, v_range)) < 0.6
            places[a] = new_theta, new_v
        if not moved and labels.sensitivity is None:
            table = evidence.reshape(nodes.shape)
            new = tuple(
                kept_range(axis, logsumexp(table, axis=1 - i), now)
                for i, (axis, now) in enumerate(zip(nodes.axes, rates, strict=True))
            )
            moved = any(_share(after, now) < 0.6 for after, now in zip(new, rates, strict=True))
            rates = new[0], new[1]
        if not moved:
            break
    return places, rates


def _difference(log_a: Array, log_b: Array) -> Array:
    """log_a - log_b; -inf where both are."""
    return np.asarray(np.subtract(log_a, log_b, out=np.full(log_a.shape, -np.inf), where=np.isfinite(log_b)))


def _share(part: Range, whole: Range) -> float:
    return (part[1] - part[0]) / (whole[1] - whole[0])


def _label_range(good: float, bad: float) -> Range:
    """Where the labels alone allow an error rate to lie."""
    from scipy.special import betaincinv

    a, b = good + PRIOR[0], bad + PRIOR[1]
    return float(betaincinv(a, b, TAIL)), float(1 - betaincinv(b, a, TAIL))


@dataclass(frozen=True)
class JudgedPosterior(ExactPosterior):
    """Posterior of every estimand through a judge that errs."""

    judged: JudgedFit = field(kw_only=True)  # the grids with the error rates

    @classmethod
    def of(
        cls,
        counts: Counts,
        labels: JudgeLabels,
        prior: Prior,
        ci_prob: float,
        ci_kind: CIKind,
        random_seed: int,
        wanted: tuple[tuple[Metric, int], ...],
    ) -> JudgedPosterior:
        """From counts and labels."""
        fit = fit_judged(counts, labels, prior=prior)
        return cls(counts, ci_prob, ci_kind, random_seed, fit.grids, wanted, judged=fit)

    def _likelihood(self, agent: int) -> JudgedLikelihood:
        part = self.fit.likelihoods[agent]
        assert isinstance(part, JudgedLikelihood)
        return part

    # -- the judge ----------------------------------------------------------------------------------------------

    def rate_draws(self) -> tuple[Array, Array]:
        """Draws of sensitivity and specificity, shape (draws,); all agents share them."""
        rates = self.judged.rates
        return rates.sensitivity[self._rate_node], rates.specificity[self._rate_node]

    def rate_stats(self) -> tuple[Stats, Stats]:
        """Mean and interval of sensitivity and specificity."""
        mass = np.exp(self.judged.log_rates)
        rates, tail = self.judged.rates, (1 - self.ci_prob) / 2
        found = []
        for values, axis, other in zip((rates.sensitivity, rates.specificity), rates.axes, (1, 0), strict=True):
            mean = float(mass @ values)
            sd = float(np.sqrt(max(mass @ values**2 - mean**2, 0)))
            marginal = mass.reshape(rates.shape).sum(axis=other)
            lower, median, upper = _legendre_quantiles(axis, marginal, np.array([tail, 0.5, 1 - tail]))
            found.append(Stats(mean, sd, median, lower, upper))
        return found[0], found[1]

    @property
    def at_chance(self) -> bool:
        """Whether the judge may be no better than chance: P(s₁ + s₀ ≤ 1) is above .05."""
        rates = self.judged.rates
        below = np.exp(self.judged.log_rates)[rates.sensitivity + rates.specificity <= 1 + 1e-9]
        return float(below.sum()) > CHANCE

    # -- tasks --------------------------------------------------------------------------------------------------

    def _kind_power(self, agent: int, metric: Metric, kind: int, k: int) -> Array:
        """E t of a task of one kind (see `ExactPosterior._power`), averaged over its truths, at every node."""
        grid, part = self.fit.agents[agent], self._likelihood(agent)
        kinds, rho = part.kinds, grid.rho
        n, labelled, right = (int(values[kind]) for values in (kinds.n, kinds.labelled, kinds.right))
        logs = part.truths(kind, grid.axis.theta, rho)
        share = np.exp(logs - logs.max(axis=0))
        mu, total = (grid.mu if metric == "pass_pow_k" else grid.one_minus_mu), n + labelled
        powers = []
        for z in range(n + 1):
            c = z + right if metric == "pass_pow_k" else total - z - right
            powers.append(mean_power(mu, rho.rho, rho.one_minus_rho, c, total, k))
        confusion = self.judged.rates.confusion(int(kinds.c[kind]), n)
        weight = np.tensordot(share, confusion, axes=(0, 1))
        above = np.tensordot(share * np.stack(powers), confusion, axes=(0, 1))
        return np.asarray(np.divide(above, weight, out=np.zeros(above.shape), where=weight > 0))

    def _mass(self, agent: int) -> Array:
        """Posterior mass of θ, ρ and the rates, shape (θ nodes, ρ nodes, rates)."""
        return np.asarray(np.exp(self.judged.tables[agent] + self.judged.log_rates))

    def _tasks_moments(self, agent: int, metric: Metric, k: int) -> tuple[float, float]:
        mass = self._mass(agent)
        centre, within = np.zeros(mass.shape), np.zeros(mass.shape)
        sizes = self._likelihood(agent).kinds.size.tolist()
        for kind, size in enumerate(sizes):
            first, second = (self._kind_power(agent, metric, kind, power) for power in (k, 2 * k))
            centre += size * first
            within += size * np.maximum(second - first**2, 0)
        total = sum(sizes)
        centre /= total
        mean = float(np.sum(mass * centre))
        variance = float(np.sum(mass * ((centre - mean) ** 2 + within / total**2)))
        return float(of_tail(mean, metric)), float(np.sqrt(variance))

    def per_task(self, agent: int, metric: Metric, k: int) -> Stats:
        """Statistics of every task, arrays of shape (tasks,); a task without data has the population's."""
        kinds, mass = self._likelihood(agent).kinds, self._mass(agent)
        columns = []
        for kind in range(kinds.size.size):
            first, second = (float(np.sum(mass * self._kind_power(agent, metric, kind, j))) for j in (k, 2 * k))
            values = apply_metric(self._kind_draws(agent, kind, 1)[:, 0], metric, k)
            ends = interval_of_draws(values, self.ci_prob, self.ci_kind)
            sd = float(np.sqrt(max(second - first**2, 0)))
            columns.append((float(of_tail(first, metric)), sd, float(np.median(values)), *ends))
        new = apply_metric(self._kind_draws(agent, -1, 1)[:, 0], metric, k)
        ends = interval_of_draws(new, self.ci_prob, self.ci_kind)
        columns.append((float(new.mean()), float(new.std()), float(np.median(new)), *ends))
        table = np.array(columns)[kinds.place]  # -1 is the last row: a task of which nothing is known
        return Stats(*table.T)

    # -- draws --------------------------------------------------------------------------------------------------

    @cached_property
    def _rate_node(self) -> Array:
        """Node of the error rates of every draw."""
        rng = np.random.default_rng([self.random_seed, 0])
        mass = np.exp(self.judged.log_rates)
        return np.asarray(rng.choice(mass.size, size=CHAINS * DRAWS, p=mass / mass.sum()))

    @cached_property
    def _hyper(self) -> tuple[Array, Array]:
        """Draws of θ and ρ, shape (draws, agents), given each draw of the error rates."""
        count = CHAINS * DRAWS
        theta, rho = np.empty((2, count, len(self.fit.agents)))
        for agent, grid in enumerate(self.fit.agents):
            rng = np.random.default_rng([self.random_seed, 1, self.counts.streams[agent]])
            uniform, jitter = rng.random(count), rng.random(count) - 0.5
            table, axis = self.judged.tables[agent], grid.axis
            for node in np.unique(self._rate_node):
                here = self._rate_node == node
                mass = np.cumsum(np.exp(table[:, :, node]).ravel())
                cell = np.minimum(np.searchsorted(mass, uniform[here] * mass[-1]), mass.size - 1)
                row, column = np.divmod(cell, grid.rho.rho.size)
                theta[here, agent] = axis.centre + axis.scale * np.sinh(axis.x[row] + axis.step * jitter[here])
                rho[here, agent] = grid.rho.rho[column]
        return theta, np.clip(rho, 1e-12, 1 - 1e-12)

    def _kind_draws(self, agent: int, kind: int, count: int) -> Array:
        """Draws of p for `count` tasks of one kind (-1: a new task), shape (draws, count)."""
        rng = np.random.default_rng([self.random_seed, 2, self.counts.streams[agent], kind + 1])
        theta, rho = (part[:, agent, None] for part in self._hyper)
        kappa = 1 / rho - 1
        alpha, beta = np.exp(-softplus(-theta)) * kappa, np.exp(-softplus(theta)) * kappa
        if kind < 0:
            return _beta(rng, np.repeat(alpha, count, axis=1), np.repeat(beta, count, axis=1))
        passed, failed, weight = self._truth_weights(agent, kind, alpha, beta)
        cumulative = np.cumsum(weight, axis=1)
        uniform = rng.random((alpha.size, count)) * cumulative[:, -1:]
        drawn = np.minimum((cumulative[:, None, :] < uniform[:, :, None]).sum(axis=2), passed.size - 1)
        return _beta(rng, alpha + passed[drawn], beta + failed[drawn])

    def _truth_weights(self, agent: int, kind: int, alpha: Array, beta: Array) -> tuple[Array, Array, Array]:
        """True successes and failures that a task of this kind may have, and their probabilities, draw by draw."""
        from scipy.special import gammaln

        kinds = self._likelihood(agent).kinds
        c, n, right, labelled = (int(part[kind]) for part in (kinds.c, kinds.n, kinds.right, kinds.labelled))
        z = np.arange(n + 1)
        passed, failed = z + right, n - z + labelled - right
        logs = gammaln(alpha + passed) + gammaln(beta + failed) - gammaln(z + 1) - gammaln(n - z + 1)
        with np.errstate(divide="ignore"):
            logs = logs + np.log(self.judged.rates.confusion(c, n))[self._rate_node]
        weight = np.exp(logs - logs.max(axis=1, keepdims=True))
        return passed, failed, weight / weight.sum(axis=1, keepdims=True)

    def _kind_mean(self, agent: int, kind: int, metric: Metric, k: int) -> Array:
        """E f(p) of a task of this kind given each draw of the hyperparameters, shape (draws,)."""
        theta, rho = (part[:, agent, None] for part in self._hyper)
        kappa = 1 / rho - 1
        alpha, beta = np.exp(-softplus(-theta)) * kappa, np.exp(-softplus(theta)) * kappa
        passed, failed, weight = self._truth_weights(agent, kind, alpha, beta)
        return np.asarray(np.sum(weight * mean_of_metric(alpha + passed, beta + failed, metric, k), axis=1))

    def draws(self, agent: int, estimand: Estimand, metric: Metric, k: int) -> Array:
        """Posterior draws of `population` or `tasks`, shape (chains × draws,)."""
        if estimand == "population":
            return super().draws(agent, estimand, metric, k)
        key = agent, estimand, metric, k
        if key not in self._cache:
            kinds = self._likelihood(agent).kinds
            total = np.zeros(CHAINS * DRAWS)
            for kind, size in enumerate(kinds.size.tolist()):
                count = min(size, LARGE_GROUP)
                mean = apply_metric(self._kept_draws(agent, kind, count), metric, k).mean(axis=1)
                if size > count:  # the deviation of a mean over more tasks than were drawn is smaller
                    centre = self._kind_mean(agent, kind, metric, k)
                    mean = centre + np.sqrt(count / size) * (mean - centre)
                total += size * mean
            self._cache[key] = total / kinds.size.sum()
        drawn: Array = self._cache[key]
        return drawn

    def _kept_draws(self, agent: int, kind: int, count: int) -> Array:
        key = agent, "kind", kind
        if key not in self._cache:
            self._cache[key] = self._kind_draws(agent, kind, count)
        drawn: Array = self._cache[key]
        return drawn

    def task_draws(self, agent: int, tasks: Array | None = None) -> Array:
        """Posterior draws of p of all tasks, or of those with these indices, shape (chains × draws, tasks)."""
        place = self._likelihood(agent).kinds.place
        place = place if tasks is None else place[tasks]
        out = np.empty((CHAINS * DRAWS, place.size))
        for kind in np.unique(place):
            here = place == kind
            out[:, here] = self._kind_draws(agent, int(kind), int(here.sum()))
        return out


def _legendre_quantiles(nodes: Array, mass: Array, q: Array) -> tuple[float, ...]:
    """Quantiles of a distribution given by its masses at Gauss-Legendre nodes: its Legendre series, integrated."""
    if nodes.size == 1:
        return tuple(float(nodes[0]) for _ in q)
    x, _ = legendre_nodes(nodes.size)
    series = np.polynomial.legendre.legvander(x, x.size - 1).T @ mass * (np.arange(x.size) + 0.5)
    fine = np.linspace(-1, 1, 2001)
    cumulative = np.maximum.accumulate(np.polynomial.legendre.Legendre(series).integ(lbnd=-1)(fine))
    middle, half = (nodes[0] + nodes[-1]) / 2, (nodes[-1] - nodes[0]) / (x[-1] - x[0])
    return tuple(float(value) for value in middle + half * np.interp(q, cumulative / cumulative[-1], fine))


def _beta(rng: np.random.Generator, a: Array, b: Array) -> Array:
    return np.asarray(rng.beta(np.maximum(a, 1e-300), np.maximum(b, 1e-300)))


def describe(posterior: JudgedPosterior | None, labels: JudgeLabels) -> str:
    """How the judge's errors were taken into account, in words; without a posterior the judge makes none."""
    if posterior is None or labels.calibration == "fixed":
        text = f"judge error fixed: sensitivity {labels.sensitivity:g}, specificity {labels.specificity:g}"
        return text + (CHANCE_WORDS if posterior is not None and posterior.at_chance else "")
    sure = [
        f"{name} {format_number(stats.mean)} {format_interval(stats.lower, stats.upper)}"
        for name, stats in zip(("sensitivity", "specificity"), posterior.rate_stats(), strict=True)
    ]
    text = f"judge error estimated from {plural(labels.n_labels, 'label')}: {', '.join(sure)}"
    if labels.clustering:
        text += f"; errors cluster by task, most likely with an intraclass correlation of {labels.clustering:g}"
    return text + (CHANCE_WORDS if posterior.at_chance else "")
