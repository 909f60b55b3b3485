"""The crossed model seen through a judge that errs: tasks are paired, and true passes are summed over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from agentic_bayes.estimation.distribution import Stats
from agentic_bayes.estimation.engines.grid.betabinomial import TINY, mean_powers
from agentic_bayes.estimation.methods.crossed import CHUNK, CrossedPosterior
from agentic_bayes.estimation.methods.judge_labels import JudgeLabels
from agentic_bayes.estimation.methods.judged import CHANCE
from agentic_bayes.estimation.methods.judged_likelihood import JudgedCrossedLikelihood
from agentic_bayes.estimation.population import Population
from agentic_bayes.numerics import Array


@dataclass(frozen=True, kw_only=True, eq=False)
class JudgedCrossedPosterior(CrossedPosterior):
    """Posterior of every estimand from weighted points of (θ, σ, ρ) and the judge's error rates."""

    labels: JudgeLabels
    sensitivity: Array | None = None  # shape (points,), or (points, agents); None where it is fixed
    specificity: Array | None = None

    def _new_likelihood(self) -> JudgedCrossedLikelihood:
        return JudgedCrossedLikelihood(self.counts, self.labels)

    @cached_property
    def _rates(self) -> Array:
        """Sensitivity and specificity, shape (2, points, 1 or agents)."""
        given = self.sensitivity, self.specificity
        fixed = self.labels.sensitivity, self.labels.specificity
        points = self.sigma.size
        return np.stack(
            [
                np.full((points, 1), known) if own is None else own.reshape(points, -1)
                for own, known in zip(given, fixed, strict=True)
            ]
        )

    @cached_property
    def _confusions(self) -> tuple[Array, ...]:
        likelihood = self.likelihood
        assert isinstance(likelihood, JudgedCrossedLikelihood)
        return likelihood.confusions(*self._rates)

    @cached_property
    def arguments(self) -> tuple[Array, ...]:
        """What the likelihood takes, at every point."""
        return *super().arguments, *self._confusions

    def _confusion(self, agent: int, kind: int) -> Array:
        """C(n, z) p(c | z) for z = 0, …, n true passes of a cell of this kind, shape (points, n + 1)."""
        likelihood = self.likelihood
        assert isinstance(likelihood, JudgedCrossedLikelihood)
        row = likelihood.first[agent] + kind
        for block, confusion in zip(likelihood.blocks, self._confusions, strict=True):
            if block.agent == agent and row in block.kinds:
                return confusion[:, int(np.searchsorted(block.kinds, row))]
        raise LookupError(kind)

    def _truths(self, agent: int, kind: int, alpha: Array, beta: Array, part: slice) -> Array:
        """Weights of z = 0, …, n true passes given Beta parameters of p, shape (n + 1, points, …)."""
        confusion = self._confusion(agent, kind)[part].T
        n = len(confusion) - 1
        logs = np.zeros((n + 1, *alpha.shape))
        for z in range(n):
            np.divide(np.maximum(alpha + z, TINY), np.maximum(beta + (n - 1 - z), TINY), out=logs[z + 1])
        np.log(logs[1:], out=logs[1:])
        np.cumsum(logs, axis=0, out=logs)
        with np.errstate(divide="ignore"):
            logs += np.log(confusion)[:, :, None]
        logs -= logs.max(axis=0)
        return np.exp(logs, out=logs)

    def _p_of(self, agent: int, pattern: Array, delta: Array, *key: int) -> Array:
        kinds = self.likelihood.patterns[pattern, agent]
        half = np.tanh((self.theta[:, agent, None] + self.sigma[:, None] * delta) / 2) / 2
        kappa = (1 / self.rho[:, agent] - 1)[:, None]
        passed, failed = (0.5 + half) * kappa, (0.5 - half) * kappa
        own = self.rng(2, self.counts.stream, *key, self.counts.streams[agent])
        uniform = np.asarray(own.random(delta.shape))
        for kind in np.unique(kinds).tolist():
            here = np.flatnonzero(kinds == kind)
            n = int(self.likelihood.pairs[agent][1][kind])
            for start in range(0, len(delta), CHUNK):
                part = slice(start, start + CHUNK)
                weight = np.cumsum(self._truths(agent, kind, passed[part, here], failed[part, here], part), axis=0)
                z = np.count_nonzero(weight[:-1] < uniform[part, here] * weight[-1], axis=0)
                passed[part, here] += z
                failed[part, here] += n - z
        return np.asarray(own.beta(np.maximum(passed, TINY), np.maximum(failed, TINY)))

    def _mean_powers(
        self, agent: int, shares: tuple[Array, Array], ks: tuple[int, ...], part: slice
    ) -> Iterator[Iterator[Array]]:
        rho, trials = self.rho[part, agent, None], self.likelihood.pairs[agent][1].tolist()
        found = np.empty((2, len(ks), len(trials), *shares[0].shape))
        alpha, beta = (share * (1 / rho - 1) for share in shares)
        for kind, n in enumerate(trials):
            truths = self._truths(agent, kind, alpha, beta, part)
            truths /= truths.sum(axis=0)
            right = np.arange(n + 1)[:, None, None]
            for own, share, count in zip(found, shares, (right, n - right), strict=True):
                for out, (_, power) in zip(own, mean_powers(share, rho, 1 - rho, count, n, ks), strict=True):
                    np.einsum("zdn,zdn->dn", truths, power, out=out[kind])
        yield from map(iter, found)

    # -- the judge ----------------------------------------------------------------------------------------------

    def hyper_draws(self) -> dict[str, Array]:
        """θ, σ, ρ and μ, and the judge's error rates, with an axis of agents where they differ by agent."""
        sensitivity, specificity = (own[self.picked] for own in self._rates)
        both = {"sensitivity": sensitivity, "specificity": specificity}
        return {
            **super().hyper_draws(),
            **{name: own[:, 0] if own.shape[1] == 1 else own for name, own in both.items()},
        }

    def population(self, agent: int, draws: int) -> Population | None:
        """Nothing to check: true successes say little about the counts that a judge made of them."""
        return None

    def log_likelihood(self) -> Array | None:
        """None: a cell's verdicts say something of the judge, whose rates other cells share."""
        return None

    def judge_rates(self, ci_prob: float) -> dict[str, tuple[Stats, Stats]]:
        """Mean and interval of sensitivity and specificity, by agent; under an empty name where they are the same."""
        names = [""] if self._rates.shape[2] == 1 else self.counts.agents
        found = {}
        for column, name in enumerate(names):
            first, second = (self._weighted(own[:, column]).stats(ci_prob, "eti") for own in self._rates)
            found[name] = first, second
        return found

    @property
    def flags(self) -> tuple[str, ...]:
        """What makes the numbers of any agent doubtful."""
        return tuple(dict.fromkeys(flag for agent in range(len(self.counts.agents)) for flag in self.flags_of(agent)))

    def flags_of(self, agent: int) -> tuple[str, ...]:
        """Whether the judge may be no better than chance, P(s₁ + s₀ ≤ 1) > .05, or no label tells of a rate."""
        rates = self._rates[:, :, agent if self._rates.shape[2] > 1 else 0]
        below = self._mean((rates.sum(axis=0) <= 1 + 1e-9).astype(np.float64))
        chance = ("chance_level_judge",) if float(below) > CHANCE else ()
        return (*chance, "judge_rate_prior") if self.labels.unseen else chance
