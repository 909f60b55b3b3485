"""The grouped hierarchical model: groups of an agent's tasks share strength (`engines/grid/grouped.py` states it).

It answers three questions of each metric: the mean over the observed tasks of a group, a new task of that group, and a
new task of a new group. Agents share nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.distribution import Distribution, Drawn, NoDistribution
from agentic_bayes.estimation.engines.grid.agent_grid import AgentGrid
from agentic_bayes.estimation.engines.grid.axes import RhoAxis
from agentic_bayes.estimation.engines.grid.exact import GridPosterior, draw_theta
from agentic_bayes.estimation.engines.grid.grouped import GroupedFit, fit_groups
from agentic_bayes.estimation.engines.grid.quadrature import GridFit
from agentic_bayes.estimation.groups import NEW, WEIGHTED, Grouping
from agentic_bayes.estimation.methods.options import Hierarchical
from agentic_bayes.estimation.population import Population
from agentic_bayes.estimation.posterior import CHAINS, DRAWS, Estimand, Posterior
from agentic_bayes.formatting import Metric, plural
from agentic_bayes.numerics import Array

FEW_GROUPS = 5  # below, the spread between groups is mostly the prior's


@dataclass(frozen=True, kw_only=True, eq=False)
class AgentGroups(GridPosterior):
    """The posterior of one agent, its groups taking the place of agents; the last of them is a new group."""

    grouped: GroupedFit
    stream: int  # number of the agent's random stream

    def rng(self, *key: int) -> np.random.Generator:
        """The random stream of this agent and key."""
        return super().rng(6, self.stream, *key)

    @cached_property
    def _joint(self) -> tuple[Array, Array, Array, Array]:
        """Draws of m, τ and ρ, shape (draws,), and the node of ρ that θ is drawn at."""
        rng, count, fit = self.rng(0), CHAINS * DRAWS, self.grouped
        mass = np.exp(fit.log_rho)
        node = rng.choice(mass.size, size=count, p=mass / mass.sum())
        v, (low, high) = fit.rho.v, fit.likelihoods[0].concentration.ends
        middle = (v[1:] + v[:-1]) / 2
        edges = np.concatenate([[max(2 * v[0] - middle[0], low)], middle, [min(2 * v[-1] - middle[-1], high)]])
        drawn = edges[node] + rng.random(count) * (edges[node + 1] - edges[node])
        rho = fit.likelihoods[0].concentration.at(drawn, np.zeros(count)).rho
        m, tau = np.empty((2, count))
        pool, uniform, jitter = fit.pool, rng.random(count), rng.random(count) - 0.5
        first = np.cumsum([0, *(axis.size for axis in pool.m)])
        for r in np.unique(node).tolist():
            here = np.flatnonzero(node == r)
            below = np.cumsum(np.exp(np.concatenate([part[:, r] for part in pool.log_mass]) - fit.log_rho[r]))
            at = np.minimum(np.searchsorted(below, uniform[here] * below[-1]), below.size - 1)
            k = np.searchsorted(first, at, side="right") - 1
            tau[here] = pool.tau[k]
            for index in np.unique(k).tolist():
                some = k == index
                m[here[some]] = pool.m[index].near(at[some] - first[index], jitter[here[some]])
        return m, tau, np.clip(rho, 1e-12, 1 - 1e-12), node

    @cached_property
    def pool_draws(self) -> tuple[Array, Array]:
        """Draws of m and τ, shape (draws,)."""
        return self._joint[:2]

    def _draw_hyper(self, agent: int) -> tuple[Array, Array]:
        """Draws of θ of a group, and of ρ, which all groups share."""
        m, tau, rho, node = self._joint
        grid, rng, theta = self.grouped.groups[agent], self.rng(1, self.counts.streams[agent]), np.empty(rho.size)
        one = RhoAxis(*(np.zeros(1),) * 4)
        for r in np.unique(node).tolist():
            here = node == r
            given = AgentGrid(grid.axis, one, grid.loglik[:, [r]], np.zeros(grid.axis.size))
            theta[here] = draw_theta(given, rng, int(here.sum()), m[here], tau[here])
        return theta, rho


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupedPosterior(Posterior):
    """Posterior of every estimand overall, by group, and for a new group."""

    parts: tuple[AgentGroups, ...]  # one per agent

    @classmethod
    def of(
        cls, counts: Counts, method: Hierarchical, grouping: Grouping, metrics: tuple[Metric, ...], random_seed: int
    ) -> Self:
        """Fitted to these counts, agent by agent."""
        inside = np.arange(len(grouping.names) + 1)[:, None] == grouping.place
        parts = []
        for agent, stream in enumerate(map(int, counts.streams)):
            cells = (part[agent] * inside for part in (counts.successes, counts.trials, counts.unscored))
            own = Counts((*grouping.names, NEW), counts.tasks, *cells)
            fit = fit_groups(own, method)
            grids = GridFit(list(fit.groups), None, list(fit.likelihoods))
            both = {"counts": own, "random_seed": random_seed}
            parts.append(AgentGroups(**both, fit=grids, metrics=metrics, grouped=fit, stream=stream))  # type: ignore[arg-type]
        return cls(counts=counts, random_seed=random_seed, grouping=grouping, parts=tuple(parts))

    def with_metrics(self, metrics: tuple[Metric, ...]) -> Self:
        """The same grids, prepared to be asked for these metrics."""
        return replace(self, parts=tuple(part.with_metrics(metrics) for part in self.parts))

    @property
    def _groups(self) -> Grouping:
        assert self.grouping is not None
        return self.grouping

    def _shares(self, agent: int, estimand: Estimand) -> Array:
        """Share of each group in the overall number: of its scored tasks, or for new tasks of all its tasks."""
        place = self._groups.place
        chosen = place if estimand == "population" else place[self.counts.scored[agent]]
        sizes = np.bincount(chosen, minlength=len(self._groups.names))
        return np.asarray(sizes / sizes.sum())

    def group_labels(self, estimand: Estimand) -> tuple[str, ...]:
        """The groups, a new group for new tasks, and the weighted mean where there are weights."""
        if estimand == "task":
            return ()
        new = (NEW,) if estimand == "population" else ()
        return (*self._groups.names, *new, *self._groups.labels[len(self._groups.names) :])

    def _distribution(self, agent: int, estimand: Estimand, metric: Metric) -> Distribution:
        if estimand == "task":
            return self._by_task(agent, metric)
        found = self._mixed(agent, estimand, metric, self._shares(agent, estimand))
        if estimand == "population":
            return replace(found, note="a new task of these groups, in the proportions of their tasks")
        return found

    def _group_distribution(self, agent: int, estimand: Estimand, metric: Metric, label: str) -> Distribution:
        part, names = self.parts[agent], self._groups.names
        if label == WEIGHTED:
            if estimand == "tasks":
                weights = self._groups.task_weights(label, self.counts.scored[agent])
                if isinstance(weights, str) or self._groups.per_task is not None:
                    return super()._group_distribution(agent, estimand, metric, label)
            assert self._groups.per_group is not None
            return replace(self._mixed(agent, estimand, metric, self._groups.per_group), note=self._groups.words)
        found = part.distribution(len(names) if label == NEW else names.index(label), estimand, metric)
        seen = int((part.counts.trials.sum(axis=1) > 0).sum())
        if label == NEW:
            few = f"{plural(seen, 'group')} say little about how groups differ" if seen < FEW_GROUPS else ""
            return replace(found, n_tasks=int(self.counts.scored[agent].sum()), note=few)
        if isinstance(found, NoDistribution):
            return replace(found, note="nothing was scored in this group")
        return found

    def _mixed(self, agent: int, estimand: Estimand, metric: Metric, shares: Array) -> Drawn:
        """A weighted mean over groups."""
        part = self.parts[agent]
        chosen = [(w, part.distribution(g, estimand, metric)) for g, w in enumerate(shares.tolist()) if w > 0]
        values = sum(w * one.draws() for w, one in chosen)
        mean = sum(w * float(one.mean) for w, one in chosen)
        n_tasks = sum(one.n_tasks for _, one in chosen)
        return Drawn.of(np.asarray(values), mean=mean, n_tasks=n_tasks)

    def _by_task(self, agent: int, metric: Metric) -> Distribution:
        """Every task, from its group; computed once per distinct (c, n) of a group."""
        mean, sd = np.empty((2, len(self.counts.tasks)))
        place, values, offset = np.empty(mean.size, dtype=np.int64), [], 0
        for group in range(len(self._groups.names)):
            here = self._groups.place == group
            found = self.parts[agent].distribution(group, "task", metric)
            assert isinstance(found, Drawn)
            assert found.place is not None
            mean[here], sd[here] = found.mean[here], found.sd[here]
            place[here] = found.place[here] + offset
            values.append(found.values)
            offset += found.values.shape[1]
        return Drawn(mean=mean, sd=sd, values=np.concatenate(values, axis=1), place=place)

    def task_draws(self, agent: int, tasks: Array | None = None) -> Array:
        """Draws of p of all tasks, or of those with these indices, shape (chains × draws, tasks)."""
        which = np.arange(len(self.counts.tasks)) if tasks is None else np.asarray(tasks)
        out = np.empty((CHAINS * DRAWS, which.size))
        for group in range(len(self._groups.names)):
            here = self._groups.place[which] == group
            if here.any():
                out[:, here] = self.parts[agent].task_draws(group, which[here])
        return out

    def hyper_draws(self) -> dict[str, Array]:
        """μ (draws, agents, groups); m, τ and ρ (draws, agents)."""
        drawn = [part.hyper_draws() for part in self.parts]
        mu, rho, m, tau = (np.stack([own[name] for own in drawn], axis=1) for name in ("mu", "rho", "m", "tau"))
        return {"mu": mu[:, :, :-1], "rho": rho[:, :, 0], "m": m, "tau": tau}

    def population(self, agent: int, draws: int) -> Population | None:
        """A Beta distribution of every group per draw, in the proportions of the scored tasks."""
        drawn = self.parts[agent].hyper_draws()
        shares = self._shares(agent, "tasks" if self.counts.scored[agent].any() else "population")
        mu, rho = drawn["mu"][:, :-1], drawn["rho"][:, :1]
        return Population(mu, 1 - mu, rho, shares[None]).thinned(draws)

    def log_likelihood(self) -> Array:
        """Log probability of every scored cell given its group, shape (draws, cells), agent by agent."""
        columns: list[Array] = []
        for agent, part in enumerate(self.parts):
            own = np.empty((len(self.counts.tasks), CHAINS * DRAWS))
            for group in range(len(self._groups.names)):
                c, n, place = part.counts.pairs(group)
                by_pair = part._log_pmf(group, c, n)
                assert by_pair is not None
                here = self._groups.place == group
                own[here] = by_pair[place[here]]
            columns.append(own[self.counts.scored[agent]])
        return np.concatenate(columns).T
