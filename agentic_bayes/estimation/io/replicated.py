"""Replicated counts of every scored cell, from the posterior and from the prior: ArviZ's predictive groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from agentic_bayes.estimation.arithmetic import apply_metric
from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.engines.grid.betabinomial import TINY
from agentic_bayes.estimation.engines.importance.target import SIGMA_SCALE
from agentic_bayes.estimation.methods.conjugate import ConjugatePosterior
from agentic_bayes.estimation.methods.crossed import CrossedPosterior
from agentic_bayes.estimation.methods.hierarchical import HierarchicalPosterior
from agentic_bayes.estimation.methods.options import Conjugate, Crossed, Hierarchical, Method
from agentic_bayes.estimation.population import Population
from agentic_bayes.estimation.posterior import CHAINS, DRAWS, Posterior
from agentic_bayes.estimation.predictive import draw_prior, draw_prior_hyper
from agentic_bayes.formatting import FAMILIES, Metric
from agentic_bayes.numerics import Array

if TYPE_CHECKING:
    import xarray as xr

COUNT = CHAINS * DRAWS
RATES = ("sensitivity", "specificity")  # of the judge, in `hyper_draws`
KEY = 6  # of the random streams of this module


def cell_labels(counts: Counts) -> list[str]:
    """The scored cells, agent by agent: "agent / task"."""
    return [f"{counts.agents[a]} / {counts.tasks[i]}" for a, i in np.argwhere(counts.scored).tolist()]


def by_cell(values: Array, counts: Counts) -> xr.Dataset:
    """Counts of every scored cell as variable ``successes``, of shape (cells,) or (draws, cells)."""
    import xarray as xr

    labels = cell_labels(counts)
    if values.ndim == 1:
        return xr.Dataset({"successes": ("cell", values)}, coords={"cell": labels})
    return xr.Dataset(
        {"successes": (("chain", "draw", "cell"), values.reshape(CHAINS, DRAWS, len(labels)))},
        coords={"chain": np.arange(CHAINS), "draw": np.arange(DRAWS), "cell": labels},
    )


def count_groups(posterior: Posterior, outcomes: xr.Dataset) -> dict[str, xr.Dataset]:
    """ArviZ's groups ``observed_data``, one count per scored cell, and ``constant_data``, the trials and the rest."""
    counts = posterior.counts
    other = outcomes.drop_vars(["successes", "trials"])
    constant = other.assign(trials=("cell", counts.trials[counts.scored])).assign_coords(cell=cell_labels(counts))
    return {"observed_data": by_cell(counts.successes[counts.scored], counts), "constant_data": constant}


def replicated_cells(posterior: Posterior) -> Array:
    """Replicated counts of every scored cell, shape (draws, cells).

    As for the log likelihood, the success probability of a cell is a new one: that of a new task, or in the crossed
    model of a task on which the other agents have the counts that they have. Where cells share nothing (the conjugate
    method), it is the cell's own.
    """
    counts, hyper = posterior.counts, posterior.hyper_draws()
    if isinstance(posterior, CrossedPosterior):
        return _left_out_cells(posterior)
    columns = []
    for agent in range(len(counts.agents)):
        rng = posterior.rng(KEY, counts.streams[agent])
        n = counts.trials[agent, counts.scored[agent]]
        population = _population(posterior, agent, hyper)
        if population is None:
            p = posterior.task_draws(agent)[:, counts.scored[agent]]
        else:
            p = _new_tasks(population, n.size, rng)
        columns.append(_through_judge(rng.binomial(n, p), n, agent, hyper, rng))
    return np.concatenate(columns, axis=1)


def _population(posterior: Posterior, agent: int, hyper: Mapping[str, Array]) -> Population | None:
    """All draws of the distribution of p; also where the posterior does not check it."""
    population = posterior.population(agent, COUNT)
    mu, rho = hyper.get("mu"), hyper.get("rho")
    if population is None and mu is not None and rho is not None and "theta" not in hyper and mu.ndim == 2:
        mu, rho = mu[:, agent, None], rho[:, agent, None]
        return Population(mu, 1 - mu, rho, np.ones((1, 1)))
    return population


def _new_tasks(population: Population, count: int, rng: np.random.Generator) -> Array:
    """P of `count` new tasks of every draw, shape (draws, count)."""
    shape = (population.rho.size, count)
    kappa = (1 - population.rho) / np.maximum(population.rho, 1e-12)
    weight = np.broadcast_to(population.weight, (shape[0], population.weight.shape[1]))
    if weight.shape[1] == 1:
        mu, nu = (np.broadcast_to(part, shape) for part in (population.mu, population.one_minus_mu))
    else:
        cumulative = np.cumsum(weight, axis=1)
        uniform = rng.random(shape) * cumulative[:, -1:]
        component = (cumulative[:, None, :-1] < uniform[:, :, None]).sum(axis=2)
        mu, nu = (np.take_along_axis(part, component, axis=1) for part in (population.mu, population.one_minus_mu))
    p = rng.beta(np.maximum(mu * kappa, TINY), np.maximum(nu * kappa, TINY))
    return np.where(mu == 0, 0.0, np.where(nu == 0, 1.0, p))


def _through_judge(
    passed: Array, n: Array | int, agent: int, hyper: Mapping[str, Array], rng: np.random.Generator
) -> Array:
    """What a judge that errs makes of true passes; the passes themselves where verdicts count as they are."""
    if not all(name in hyper for name in RATES):
        return passed
    sensitivity, specificity = (hyper[name] if hyper[name].ndim == 1 else hyper[name][:, agent] for name in RATES)
    return rng.binomial(passed, sensitivity[:, None]) + rng.binomial(n - passed, 1 - specificity[:, None])


def _left_out_cells(posterior: CrossedPosterior) -> Array:
    """Replicated counts in the crossed model, δ of every task drawn given the other agents' counts only."""
    likelihood, counts = posterior.likelihood, posterior.counts
    arguments = [values[posterior.picked] for values in posterior.arguments]
    theta, sigma, rho = arguments[:3]
    hyper = posterior.hyper_draws()
    found = np.zeros((sigma.size, *counts.scored.shape), dtype=np.int64)
    rngs = [posterior.rng(KEY, counts.streams[agent]) for agent in range(len(counts.agents))]
    for start in range(0, sigma.size, 512):
        part = slice(start, start + 512)
        tables = likelihood.agent_tables(*(values[part] for values in arguments))
        kappa = 1 / rho[part] - 1
        for index, pattern in enumerate(likelihood.patterns.tolist()):
            own = [table[:, pair] for table, pair in zip(tables, pattern, strict=True)]
            joint = likelihood.log_weight + sum(own)
            tasks = np.flatnonzero(likelihood.place == index)
            for agent, table in enumerate(own):
                n = int(likelihood.pairs[agent][1][pattern[agent]])
                if n == 0:
                    continue
                rest = joint - table
                cumulative = np.cumsum(np.exp(rest - rest.max(axis=1, keepdims=True)), axis=1)
                uniform, jitter = rngs[agent].random((2, len(rest), tasks.size))
                node = (cumulative[:, :-1, None] < (uniform * cumulative[:, -1:])[:, None, :]).sum(axis=1)
                delta = likelihood.delta[node] + likelihood.step * (jitter - 0.5)
                mu = 1 / (1 + np.exp(-(theta[part, agent, None] + sigma[part, None] * delta)))
                alpha, beta = mu * kappa[:, agent, None], (1 - mu) * kappa[:, agent, None]
                p = rngs[agent].beta(np.maximum(alpha, TINY), np.maximum(beta, TINY))
                passed = rngs[agent].binomial(n, p)
                own_rates = {name: hyper[name][part] for name in RATES if name in hyper}
                found[part, agent][:, tasks] = _through_judge(passed, n, agent, own_rates, rngs[agent])
    return found[:, counts.scored]


def prior_groups(
    posterior: Posterior, method: Method, ks: tuple[int, ...], *, tasks: bool
) -> dict[str, dict[str, Array]]:
    """Draws from the prior: what the group ``posterior`` has, and replicated counts of every scored cell.

    The posterior of no trials is the prior: the same code gives both.
    """
    counts, rng = posterior.counts, posterior.rng(KEY, 2)
    drawn = _prior(posterior, method, rng)
    if drawn is None:
        return {}
    prior, hyper, masses = drawn
    agents = len(counts.agents)
    p = np.stack([prior.task_draws(agent) for agent in range(agents)], axis=1)
    if masses is not None:
        uniform = rng.random(p.shape)
        p = np.where(uniform < masses[:, :, :1], 0.0, np.where(uniform < masses[:, :, :2].sum(-1, keepdims=True), 1, p))
    estimands = [estimand for estimand in posterior.estimands if estimand != "task"]
    variables: dict[str, Array] = dict(hyper)
    for family in FAMILIES:
        values = np.full((COUNT, agents, len(estimands), len(ks)), np.nan)
        for a, e, i in np.ndindex(agents, len(estimands), len(ks)):
            metric = Metric.of(family, ks[i])
            if estimands[e] == "population":
                values[:, a, e, i] = prior.distribution(a, "population", metric).draws()
                if masses is not None:
                    values[:, a, e, i] = masses[:, a, 1] + masses[:, a, 2] * values[:, a, e, i]
            elif counts.scored[a].any():
                values[:, a, e, i] = apply_metric(p[:, a, counts.scored[a]], metric).mean(axis=1)
        variables[family] = values
    if not tasks:
        return {"prior": variables}
    columns = []
    for agent in range(agents):
        n = counts.trials[agent, counts.scored[agent]]
        passed = rng.binomial(n, p[:, agent, counts.scored[agent]])
        columns.append(_through_judge(passed, n, agent, hyper, rng))
    return {"prior": {**variables, "p": p}, "prior_predictive": {"successes": np.concatenate(columns, axis=1)}}


def _prior(
    posterior: Posterior, method: Method, rng: np.random.Generator
) -> tuple[Posterior, dict[str, Array], Array | None] | None:
    """The posterior of no trials, draws of its hyperparameters and of the weights of point masses, if there are any."""
    counts, agents = posterior.counts, len(posterior.counts.agents)
    none = np.zeros_like(counts.trials)
    untried = replace(counts, successes=none, trials=none, unscored=none)
    both: dict[str, Any] = {"counts": untried, "random_seed": posterior.random_seed + 1}
    match method:
        case Conjugate():
            return ConjugatePosterior(method=method, **both), {}, None
        case Crossed():
            shape = COUNT, agents
            rho = np.clip(draw_prior(method, "rho", rng, shape), 1e-12, 1 - 1e-12)
            if method.sigma is None:
                sigma = SIGMA_SCALE * np.abs(rng.standard_normal(COUNT))
            else:
                sigma = draw_prior(method, "sigma", rng, (COUNT,))
            if method.pool_agents and agents > 1:
                spread = np.abs(rng.standard_normal(COUNT))[:, None]
                theta = rng.logistic(size=COUNT)[:, None] + spread * rng.standard_normal(shape)
            else:
                theta = rng.logistic(size=shape) if method.theta is None else draw_prior(method, "theta", rng, shape)
            crossed = CrossedPosterior(theta=theta, sigma=sigma, rho=rho, **both)
            return crossed, {**crossed.hyper_draws(), **_prior_rates(posterior, rng)}, None
        case Hierarchical():
            hyper = draw_prior_hyper(method, rng, COUNT, agents)
            masses = rng.dirichlet([1, 1, 4], size=(COUNT, agents)) if method.inflate else None
            hierarchical = HierarchicalPosterior(hyper=hyper, **both)
            return hierarchical, {**hyper, **_prior_rates(posterior, rng)}, masses
    return None


def _prior_rates(posterior: Posterior, rng: np.random.Generator) -> dict[str, Array]:
    """Error rates of a judge: Beta(2, 1), or what they were fixed at."""
    hyper = posterior.hyper_draws()
    known = {name: hyper[name] for name in RATES if name in hyper}
    return {
        name: values if np.ptp(values) == 0 else np.asarray(rng.beta(2, 1, size=values.shape))
        for name, values in known.items()
    }
