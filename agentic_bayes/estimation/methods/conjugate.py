"""Each cell on its own: p | c, n ~ Beta(a + c, b + n - c), in closed form."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from agentic_bayes.estimation.arithmetic import apply_metric, mean_of_metric, mean_over_tasks
from agentic_bayes.estimation.distribution import Distribution, Drawn, OfBeta
from agentic_bayes.estimation.methods.options import Conjugate
from agentic_bayes.estimation.population import log_binomial
from agentic_bayes.estimation.posterior import CHAINS, DRAWS, Estimand, Posterior
from agentic_bayes.formatting import Metric
from agentic_bayes.numerics import Array


@dataclass(frozen=True, kw_only=True, eq=False)
class ConjugatePosterior(Posterior):
    """Independent Beta posteriors, one per task, or one per agent when tasks are pooled."""

    method: Conjugate = field(default_factory=Conjugate)

    @property
    def estimands(self) -> tuple[Estimand, ...]:
        """Separate tasks say nothing about a new one."""
        return ("population", "tasks", "task") if self.method.pool_tasks else ("tasks", "task")

    @cached_property
    def _parameters(self) -> tuple[Array, Array]:
        """Beta parameters, shape (agents, tasks)."""
        successes, trials = self.counts.successes, self.counts.trials
        if self.method.pool_tasks:
            shape = successes.shape
            successes = np.broadcast_to(successes.sum(axis=1, keepdims=True), shape)
            trials = np.broadcast_to(trials.sum(axis=1, keepdims=True), shape)
        a, b = self.method.prior
        return a + successes, b + trials - successes

    def _distribution(self, agent: int, estimand: Estimand, metric: Metric) -> Distribution:
        scored = self.counts.scored[agent]
        a, b = (parameter[agent] for parameter in self._parameters)
        if estimand == "task":
            return OfBeta.of(metric, a, b, lambda: apply_metric(self.task_draws(agent), metric))
        n_tasks = int(scored.sum())
        if self.method.pool_tasks or n_tasks == 1:  # one Beta distribution
            one = 0 if self.method.pool_tasks else int(np.argmax(scored))
            return OfBeta.of(metric, a[one], b[one], lambda: self._draws(agent, metric), n_tasks=n_tasks)
        mean = float(mean_of_metric(a[scored], b[scored], metric).mean())
        return Drawn.of(self._draws(agent, metric), mean=mean, n_tasks=n_tasks)

    def mean_under(self, power: float, agent: int, metric: Metric) -> float:
        """The mean over the scored tasks, or of the pooled p, if the prior had this power on the logit scale."""
        scored = self.counts.scored[agent]
        if self.method.pool_tasks or not scored.any():
            scored = np.arange(scored.size) == 0
        extra = [(power - 1) * part for part in self.method.prior]
        a, b = (parameter[agent, scored] + more for parameter, more in zip(self._parameters, extra, strict=True))
        return float(mean_of_metric(a, b, metric).mean())

    def _draws(self, agent: int, metric: Metric) -> Array:
        """Draws of the mean over the scored tasks, or of the pooled success probability."""
        if self.method.pool_tasks:
            return apply_metric(self.task_draws(agent)[:, 0], metric)
        c, n, sizes = self.counts.groups(agent)
        shape, (a, b) = (CHAINS * DRAWS, c.size), self.method.prior
        given = np.broadcast_to(a + c, shape), np.broadcast_to(b + n - c, shape)
        return mean_over_tasks(*given, sizes, [metric], self.rng(self.counts.streams[agent]))[0]

    def task_draws(self, agent: int, tasks: Array | None = None) -> Array:
        """Draws of p of all tasks, or of those with these indices, shape (4,000, tasks)."""
        rng = self.rng(self.counts.streams[agent], 1)
        a, b = (parameter[agent][slice(None) if tasks is None else tasks] for parameter in self._parameters)
        size = CHAINS * DRAWS
        if self.method.pool_tasks:
            return np.broadcast_to(rng.beta(a[0], b[0], size=(size, 1)), (size, a.size))
        return rng.beta(a, b, size=(size, a.size))

    @cached_property
    def _pooled(self) -> Array:
        """Draws of each agent's pooled p, inside (0, 1), shape (draws, agents)."""
        p = np.stack([self.task_draws(agent)[:, 0] for agent in range(len(self.counts.agents))], axis=1)
        return np.asarray(np.clip(p, 1e-300, 1 - 1e-16))

    def _log_pmf(self, agent: int, c: Array, n: Array) -> Array | None:
        """Given the pooled p; None for separate tasks, which share nothing."""
        if not self.method.pool_tasks:
            return None
        p = self._pooled[:, agent]
        return np.asarray(c[:, None] * np.log(p) + (n - c)[:, None] * np.log1p(-p) + log_binomial(n, c)[:, None])

    def log_priors(self) -> dict[str, Array]:
        """Of the logit of the pooled p, shape (draws, agents): the prior raised to α is then Beta(αa, αb)."""
        if not self.method.pool_tasks:
            return {}
        a, b = self.method.prior
        return {"logit_p": a * np.log(self._pooled) + b * np.log1p(-self._pooled)}
