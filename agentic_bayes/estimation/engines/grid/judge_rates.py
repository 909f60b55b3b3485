"""Nodes of a judge's error rates; and the rates of several agents, which differ but share strength.

Where human labels say which agent they are of, a judge may be stricter with one agent than with another:

    logit s_a = M + τ z_a,   z_a ~ N(0, 1),   expit M ~ Beta(2, 1),   τ ~ HalfNormal(2)

for sensitivity and specificity alike, each with an M and a τ of its own. What every agent's counts and labels say of
its rates is tabulated on uniform axes of their logits; given both (M, τ) agents are independent: everything is a
few small matrix products.
"""

from __future__ import annotations

import numpy as np

from agentic_bayes.estimation.engines.grid.axes import Range, legendre_between, logsumexp
from agentic_bayes.estimation.methods.judge_labels import JudgeLabels
from agentic_bayes.numerics import Array

PRIOR = (2.0, 1.0)  # Beta, of both rates: an error rate above one half is not the rule
SPREAD_SCALE = 2.0  # of the HalfNormal prior of τ
SPREAD_NODES, WIDEST = 10, 8.0  # of τ
FEWEST, MOST = 16, 96  # nodes of a logit: so many over the narrowest agent's range, and at most
COMMON = (-2.0, 5.0)  # logits between which a judge's M is looked for at least


class Rates:
    """Nodes of (s₁, s₀), flattened, with the log of their prior mass and of the labels' likelihood."""

    def __init__(self, labels: JudgeLabels, ranges: tuple[Range, Range], nodes: int) -> None:
        from scipy.special import xlog1py, xlogy

        self.shape: tuple[int, int] = (nodes, nodes)
        if labels.sensitivity is not None and labels.specificity is not None:
            self.shape = (1, 1)
            self.axes = [np.array([labels.sensitivity]), np.array([labels.specificity])]
            widths, seen, prior = [np.zeros(1)] * 2, [np.zeros(1)] * 2, [np.zeros(1)] * 2
        else:
            between = [legendre_between(*ends, nodes) for ends in ranges]
            self.axes, widths = [rate for rate, _ in between], [width for _, width in between]
            seen = list(labels.log_likelihood(*self.axes))
            prior = [xlogy(PRIOR[0] - 1, rate) + xlog1py(PRIOR[1] - 1, -rate) for rate in self.axes]
        self.clustering = labels.clustering
        self._made: dict[tuple[int, ...], Array] = {}
        self.sensitivity, self.specificity = (part.ravel() for part in np.meshgrid(*self.axes, indexing="ij"))
        self.log_width, self.log_seen, self.log_prior = (
            (one[:, None] + other).ravel() for one, other in (widths, seen, prior)
        )
        self.log_weight = self.log_width + self.log_seen + self.log_prior

    def confusion(self, c: int, n: int) -> Array:
        """p(c | z) for z = 0, …, n, shape (rates, n + 1)."""
        return self._confusion(c, n, rightly=False)

    def passed_rightly(self, c: int, n: int) -> Array:
        """The expected number of right attempts among the c times p(c | z), shape (rates, n + 1)."""
        return self._confusion(c, n, rightly=True)

    def _confusion(self, c: int, n: int, *, rightly: bool) -> Array:
        key = (c, n, rightly)
        if key not in self._made:
            found = np.zeros((*self.shape, n + 1))
            for z in range(n + 1):
                k = np.arange(max(c - n + z, 0), min(c, z) + 1)
                passed = self._verdicts(0, z)[:, k]  # truly right ones that were passed
                slipped = self._verdicts(1, n - z)[:, c - k]  # wrong ones that were
                found[:, :, z] = (passed * k if rightly else passed) @ slipped.T
            self._made[key] = found.reshape(-1, n + 1)
        return self._made[key]

    def _verdicts(self, axis: int, n: int) -> Array:
        """Probabilities that k of n are passed, of right ones (0) or wrong ones (1), shape (nodes, n + 1)."""
        key = (axis, n)
        if key not in self._made:
            self._made[key] = pmf(n, 1 - self.axes[1] if axis else self.axes[0], self.clustering)
        return self._made[key]


def pmf(n: int, p: Array, clustering: float) -> Array:
    """Binomial probabilities of 0, …, n, shape (p, n + 1); Beta-Binomial where verdicts cluster."""
    from scipy.special import betaln, gammaln, xlog1py, xlogy

    k, p = np.arange(n + 1), p[:, None]
    log_choose = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    if clustering:
        a, b = p * (1 / clustering - 1), (1 - p) * (1 / clustering - 1)
        logs = betaln(k + a, n - k + b) - betaln(a, b)
    else:
        logs = xlogy(k, p) + xlog1py(n - k, -p)
    return np.asarray(np.exp(log_choose + logs))


class _LogitAxis:
    """Uniform nodes of the logit of one rate, and its distribution at all agents' nodes given M and τ."""

    def __init__(self, axes: list[Array]) -> None:
        logits = [_logit(axis) for axis in axes]
        low, high = min(COMMON[0], *(x[0] for x in logits)), max(COMMON[1], *(x[-1] for x in logits))
        narrowest = min(x[-1] - x[0] for x in logits) / FEWEST
        self.x = np.linspace(low, high, int(np.clip(np.ceil((high - low) / narrowest), FEWEST, MOST)) + 1)
        tau, log_width = legendre_between(0, WIDEST, SPREAD_NODES)
        kernel = np.exp(-0.5 * ((self.x - self.x[:, None]) / tau[:, None, None]) ** 2)
        self.kernel = (kernel / kernel.sum(axis=2, keepdims=True)).reshape(-1, self.x.size)  # shape ((τ, M), nodes)
        # Beta(2, 1) of expit M, as a density of M
        log_m = -PRIOR[0] * np.logaddexp(0, -self.x) - PRIOR[1] * np.logaddexp(0, self.x)
        self.log_prior = ((log_width - (tau / SPREAD_SCALE) ** 2 / 2)[:, None] + log_m).ravel()


class SharedRates:
    """Rates that every agent has of its own, given what each agent's counts and labels say of them."""

    def __init__(self, rates: list[Rates], log_likelihoods: list[Array]) -> None:
        self.rates = rates
        self.axes = [_LogitAxis([one.axes[i] for one in rates]) for i in (0, 1)]
        self._said = [self._on_axes(one, table) for one, table in zip(rates, log_likelihoods, strict=True)]
        first, second = (axis.kernel for axis in self.axes)
        logs = [np.log(np.maximum(first @ said @ second.T, 1e-300)) for said in self._said]
        self.log_mass = self.axes[0].log_prior[:, None] + self.axes[1].log_prior + sum(logs)  # of both (M, τ)
        self.log_mass -= logsumexp(self.log_mass.ravel())
        # of an agent's rates, what the others and the prior say
        self._others = [first.T @ np.exp(_scaled(self.log_mass - own)) @ second for own in logs]
        self.log_masses = [self._at_nodes(*parts) for parts in zip(rates, log_likelihoods, self._others, strict=True)]

    def _on_axes(self, rates: Rates, table: Array) -> Array:
        """An agent's likelihood of its rates on the uniform axes, at most 1."""
        finite = np.maximum(table, table.max() - 500).reshape(rates.shape)
        return np.exp(_scaled(_spline([_logit(axis) for axis in rates.axes], finite, [a.x for a in self.axes])))

    def _at_nodes(self, rates: Rates, table: Array, others: Array) -> Array:
        """Log posterior mass of an agent's own nodes."""
        logits = [_logit(axis) for axis in rates.axes]
        prior = _spline([axis.x for axis in self.axes], np.log(np.maximum(others, 1e-300)), logits)
        slopes = [np.log(axis) + np.log1p(-axis) for axis in rates.axes]  # of a rate in its logit
        log_mass = table + (prior - slopes[0][:, None] - slopes[1]).ravel() + rates.log_width
        return np.asarray(log_mass - logsumexp(log_mass))

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Nodes of every agent's rates, drawn together, shape (agents, draws)."""
        mass = np.cumsum(np.exp(self.log_mass).ravel())
        drawn = np.searchsorted(mass, rng.random(count) * mass[-1])
        given = np.divmod(np.minimum(drawn, mass.size - 1), self.log_mass.shape[1])
        first, second = (axis.kernel[one] for axis, one in zip(self.axes, given, strict=True))
        return np.stack([self._nodes(agent, first, second, rng) for agent in range(len(self.rates))])

    def _nodes(self, agent: int, first: Array, second: Array, rng: np.random.Generator) -> Array:
        """An agent's nodes, given both rates' distributions, shapes (draws, axis).

        A draw from the uniform axes gives the ranks with which nodes are taken from their own distribution.
        """
        said, both = self._said[agent], self._said[agent] * self._others[agent]
        i, _ = _pick(first * (second @ said.T), rng)
        j, _ = _pick(said[i] * second, rng)
        jitter = rng.random((2, i.size))
        alone = both.sum(axis=1)
        rank = (np.cumsum(alone)[i] - alone[i] * jitter[0]) / alone.sum()
        within = (np.cumsum(both, axis=1)[i, j] - both[i, j] * jitter[1]) / alone[i]
        mass = np.exp(self.log_masses[agent]).reshape(self.rates[agent].shape)
        by_first = np.cumsum(mass.sum(axis=1))
        row = np.minimum(np.searchsorted(by_first, rank * by_first[-1]), by_first.size - 1)
        by_second = np.cumsum(mass, axis=1)[row]
        column = np.minimum((by_second < (within * by_second[:, -1])[:, None]).sum(axis=1), mass.shape[1] - 1)
        return np.asarray(row * mass.shape[1] + column)


def _pick(mass: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """A column for every row, by its mass, and the masses added up."""
    total = np.cumsum(mass, axis=1)
    column = (total < (rng.random(len(mass)) * total[:, -1])[:, None]).sum(axis=1)
    return np.minimum(column, mass.shape[1] - 1), total


def _logit(rate: Array) -> Array:
    return np.asarray(np.log(rate) - np.log1p(-rate))


def _scaled(logs: Array) -> Array:
    return np.asarray(logs - logs.max())


def _spline(nodes: list[Array], values: Array, at: list[Array]) -> Array:
    """A table on other nodes; beyond the outermost as at the outermost."""
    from scipy.interpolate import RectBivariateSpline

    return np.asarray(RectBivariateSpline(nodes[0], nodes[1], values)(at[0], at[1]))
