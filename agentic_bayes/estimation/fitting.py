"""From counts and settings to a posterior: what `auto` means, which engine runs, and what happens when one fails."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np

from agentic_bayes.errors import EstimateError, InvalidArgument
from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.engines.diagnostics import Fit
from agentic_bayes.estimation.groups import Grouping
from agentic_bayes.estimation.methods.judge_labels import RATE_NAMES, JudgeLabels
from agentic_bayes.estimation.methods.options import Conjugate, Crossed, Frequentist, Hierarchical, Method, method_of
from agentic_bayes.estimation.posterior import Posterior, labelled
from agentic_bayes.estimation.settings import Settings
from agentic_bayes.formatting import in_notebook, metrics_at
from agentic_bayes.numerics import Array
from agentic_bayes.outcomes.coordinates import plain_variable, text_index

if TYPE_CHECKING:
    import xarray as xr

    from agentic_bayes.estimation.engines.importance.sampler import ImportanceFit

EXACT = "method='hierarchical' is exact, without pairing by task"
_LOGGER = logging.getLogger("agentic_bayes")

SHARED_SHARE = 0.5  # `auto` takes the crossed model where two agents or more tried this share of the tasks
MOST_WITH_OWN_RATES = 3  # agents up to which it does where each has error rates of its own; with more, points fail
MOST_CROSSED = 25  # agents up to which it does; importance sampling is untried with more


def method_for(
    method: object, counts: Counts, *, judge: JudgeLabels | None, engine: str = "auto", by: str | None = None
) -> tuple[Method, str]:
    """The method that fits these counts, and why it was taken where that was left to the program."""
    if by is not None:
        return _grouped_method(method, by)
    if isinstance(method, str) and method == "auto":
        value, reason = choose_method(counts, engine=engine, judge=judge)
    else:
        value, reason = method_of(method), ""
    if not isinstance(value, Hierarchical):
        return value, reason
    pooled = " and ".join(name for name in ("m", "tau") if name in value.given_priors)
    separate = "use Hierarchical(mu=…, pool_agents=False)"
    if pooled and len(counts.agents) == 1:
        raise InvalidArgument(f"a prior of {pooled} needs two agents or more, there is one: {separate}")
    if judge is not None:
        if pooled:
            raise InvalidArgument(
                f"with judge_labels agents do not share strength, so a prior of {pooled} has no use: {separate}"
            )
        value = replace(value, pool_agents=False)
    return value, reason


def _grouped_method(method: object, by: str) -> tuple[Method, str]:
    """The method for groups of tasks; `auto` takes the hierarchical model, in which groups share strength."""
    if isinstance(method, str) and method == "auto":
        return Hierarchical(), f"groups of {by!r} share strength, agents do not: differences of new tasks are unpaired"
    return method_of(method), ""


def choose_method(counts: Counts, *, engine: str = "auto", judge: JudgeLabels | None = None) -> tuple[Method, str]:
    """What ``method="auto"`` means for these counts, and why."""
    agents = len(counts.agents)
    if agents < 2:
        return Hierarchical(), "there is one agent"
    if agents > MOST_CROSSED:
        return Hierarchical(), f"there are {agents:,} agents, more than {MOST_CROSSED}"
    if engine == "quadrature":
        return Hierarchical(), "engine 'quadrature' was asked for"
    if judge is not None:
        from agentic_bayes.estimation.methods.judged_likelihood import MOST_TRIALS

        if int(counts.trials.max(initial=0)) > MOST_TRIALS:
            return Hierarchical(), f"the judge's errors are corrected, and a task has more than {MOST_TRIALS} trials"
        if judge.per_agent(counts.agents) and agents > MOST_WITH_OWN_RATES:
            return Hierarchical(), f"each of {agents:,} agents has its own judge error rates"
    shared, total = int((counts.attempted.sum(axis=0) >= 2).sum()), len(counts.tasks)
    reason = f"{shared} of {total} tasks were attempted by two agents or more"
    return (Crossed() if shared >= SHARED_SHARE * total else Hierarchical()), reason


def needs_draws(settings: Settings) -> bool:
    """Whether the posterior is known by a sampler's draws only."""
    return isinstance(settings.method, Crossed) or settings.engine == "pymc"


def posterior_of(counts: Counts, settings: Settings, draws: xr.Dataset | None) -> Posterior:
    """The posterior of these counts, from a sampler's draws where there are any; no other method is imported."""
    method = settings.method
    grouping = Grouping.of(counts, settings.by, settings.weights)
    metrics = metrics_at(settings.k)
    judge = settings.judge if settings.corrects_judge else None
    both: dict[str, Any] = {
        "counts": counts,
        "random_seed": settings.random_seed,
        "metrics": metrics,
        "grouping": grouping,
    }
    match method:
        case Frequentist():
            from agentic_bayes.estimation.methods.frequentist import FrequentistEstimate

            return FrequentistEstimate(method=method, **both)
        case Conjugate():
            from agentic_bayes.estimation.methods.conjugate import ConjugatePosterior

            return ConjugatePosterior(method=method, **both)
        case Crossed():
            if draws is None:
                raise EstimateError("a crossed estimate needs draws of theta, sigma and rho")
            flat = _flat(draws)
            points: dict[str, Any] = {name: flat.get(name) for name in ("theta", "sigma", "rho", "weight")}
            if judge is not None:
                from agentic_bayes.estimation.methods.judged_crossed import JudgedCrossedPosterior

                points |= {name: flat.get(name) for name in RATE_NAMES}
                return JudgedCrossedPosterior(labels=judge, **points, **both)
            from agentic_bayes.estimation.methods.crossed import CrossedPosterior

            return CrossedPosterior(**points, **both)
        case Hierarchical() if grouping is not None and grouping.names:
            from agentic_bayes.estimation.methods.grouped import GroupedPosterior

            return GroupedPosterior.of(counts, method, grouping, metrics, settings.random_seed)
        case Hierarchical() if draws is not None:
            from agentic_bayes.estimation.methods.hierarchical import HierarchicalPosterior

            return HierarchicalPosterior(hyper=_flat(draws), **both)
        case Hierarchical() if judge is not None:
            from agentic_bayes.estimation.engines.grid.judged import fit_judged
            from agentic_bayes.estimation.methods.judged import JudgedPosterior

            judged = fit_judged(counts, judge, method)
            return JudgedPosterior(fit=judged.grids, judged=judged, labels=judge, **both)
        case Hierarchical():
            from agentic_bayes.estimation.engines.grid.exact import GridPosterior
            from agentic_bayes.estimation.engines.grid.quadrature import fit_agents
            from agentic_bayes.estimation.methods.inflated import InflatedPosterior

            kind = InflatedPosterior if method.inflate else GridPosterior
            return kind(fit=fit_agents(counts, method), **both)
        case _:
            assert_never(method)


def kept_draws(draws: xr.Dataset | None, posterior: Posterior) -> xr.Dataset | None:
    """What a file keeps: a sampler's draws or weighted points, else draws of the hyperparameters, if there are any."""
    hyper = posterior.hyper_draws() if draws is None else {}
    groups = () if posterior.grouping is None else posterior.grouping.names
    return labelled(hyper, np.asarray(posterior.counts.agents, dtype=object), groups) if hyper else draws


def sample(outcomes: xr.Dataset, settings: Settings) -> Fit:
    """Draws for a method that is not exact."""
    method, counts, note = settings.method, Counts.of(outcomes), ""
    Grouping.of(counts, settings.by, settings.weights)  # check first, pay later
    assert isinstance(method, Hierarchical | Crossed)
    # agents and tasks in the order of their counts, and a seed of these counts: names change no draw, and estimates of
    # other counts are independent
    order, seed = counts.order, counts.seed(settings.random_seed)
    back = np.argsort(order)
    if isinstance(method, Crossed) and settings.engine != "pymc":
        from agentic_bayes.estimation.engines.importance.sampler import fit_crossed

        judge = settings.judge if settings.corrects_judge else None
        fitted = fit_crossed(
            counts.of_agents(order.tolist()).of_tasks(counts.task_order), method, judge, random_seed=seed
        )
        if fitted.diagnostics.passed or settings.engine == "importance" or judge is not None:
            points = _weighted_points(fitted, back, counts.agents)
            if judge is not None and not fitted.diagnostics.passed:
                note = f"importance sampling was {fitted.diagnostics}, and NUTS cannot allow for judge errors: {EXACT}"
            return Fit(points, None, fitted.diagnostics, note)
        note = f"importance sampling was {fitted.diagnostics}: sampled by NUTS instead"
        _LOGGER.warning("importance sampling was %s: NUTS takes over, which may take minutes", fitted.diagnostics)
    from agentic_bayes.estimation.engines import nuts

    # in a notebook the sampler's bar stays, so it is for a wait that nobody asked for
    progress = (bool(note) and in_notebook()) or (sys.stderr is not None and sys.stderr.isatty())
    drawn = nuts.fit(outcomes.isel(agent=order, task=counts.task_order), method, random_seed=seed, progress=progress)
    return replace(drawn, posterior=drawn.posterior.isel(agent=back), note=note)


def _flat(draws: xr.Dataset) -> dict[str, Any]:
    """Draws by name, chains one after another, or weighted points; shape (draws,) or (draws, agents)."""
    if "point" in draws.dims:
        return {str(name): draws[name].transpose("point", ...).values for name in draws.data_vars}
    flat = draws.stack(sample=("chain", "draw"), create_index=False).transpose("sample", ...)
    return {str(name): flat[name].values for name in flat.data_vars}


def _weighted_points(fitted: ImportanceFit, order: Array, agents: Sequence[str]) -> xr.Dataset:
    """The points, of its agents in this order."""
    import xarray as xr

    points = {"theta": fitted.theta, "rho": fitted.rho, **fitted.rates}
    by_agent = {name: own[:, order] if own.ndim == 2 else own for name, own in points.items()}
    shared = {"sigma": fitted.sigma, "weight": fitted.weight}
    variables = {name: plain_variable(("point", "agent")[: own.ndim], own) for name, own in (by_agent | shared).items()}
    return xr.Dataset(variables, coords={"agent": text_index(agents)})
