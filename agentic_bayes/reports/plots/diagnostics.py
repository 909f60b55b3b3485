"""Can the numbers be trusted? The sampler's diagnostics, and the model next to the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from agentic_bayes.checks import check_type
from agentic_bayes.errors import EstimateError, InvalidArgument
from agentic_bayes.estimation.engines import diagnostics
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.io import stacks as _arviz
from agentic_bayes.estimation.methods.options import Conjugate, Frequentist
from agentic_bayes.estimation.predictive import Replicated
from agentic_bayes.formatting import format_number, plural
from agentic_bayes.numerics import Array
from agentic_bayes.reports.plots import style

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

__all__ = ["plot_diagnostics"]

PANEL = (7.0, 4.8)  # inches of one panel
BINS = 20  # of ranks
MOST_PARAMETERS = 16  # on one panel
MOST_CHECKED = 4  # agents whose counts are shown
MOST_BARS = 11  # of a histogram of counts: larger numbers of trials are shown as shares
SHARES = ("none", "< 20 %", "20–40 %", "40–60 %", "60–80 %", "≥ 80 %", "all")
WIDE = 0.95  # probability of the intervals of replicated counts

DrawPanel = Callable[["Axes"], None]


def plot_diagnostics(est: Estimate, *, ax: Sequence[Axes] | Array | None = None) -> Array:
    """A page of checks: the sampler's diagnostics, replicated counts against the data, influential tasks.

    Parameters
    ----------
    est : Estimate
        An estimate of a method that models how tasks differ (hierarchical or crossed).
    ax : array of matplotlib.axes.Axes, optional
        Where to draw: as many as there are panels, or more.

    Returns
    -------
    ndarray of matplotlib.axes.Axes
        One per panel. NUTS: ranks and trace of the parameter that mixed worst, and effective sample sizes of all.
        Importance sampling: Pareto k and effective sample size against their limits. The exact engine sampled nothing
        and has no panel of its own. Every engine: counts replicated from the model against the observed ones, for each
        agent (of more than four, those that fit worst), and Pareto k of leaving out each task.

    Raises
    ------
    EstimateError
        If the method has no model of how tasks differ.
    InvalidArgument
        If `est` is not an Estimate, or `ax` holds too few axes.

    References
    ----------
    Vehtari et al. (2021), Bayesian Analysis 16, 667-718, doi:10.1214/20-BA1221 (ranks).
    Vehtari, Gelman and Gabry (2017), Statistics and Computing 27, 1413-1432, doi:10.1007/s11222-016-9696-4 (LOO).
    """
    check_type("est", est, Estimate, "estimate() makes one")
    if isinstance(est.method, Frequentist | Conjugate):
        raise EstimateError(f"method {est.method.name!r} has no model of how tasks differ: nothing to check")
    panels: list[DrawPanel] = [*_engine_panels(est), *_count_panels(est), partial(_leave_one_out, est=est)]
    axes = _axes_of(ax, len(panels))
    for draw, one in zip(panels, axes, strict=True):
        draw(one)
    return axes


def _axes_of(given: Any, count: int) -> Array:
    """As many axes as there are panels."""
    if given is not None:
        axes = np.asarray(given, dtype=object).ravel()
        if axes.size < count:
            raise InvalidArgument(f"ax must hold {count} axes, one per panel of this estimate, got {axes.size}")
        return axes[:count]
    import matplotlib.pyplot as plt

    rows = -(-count // 2)
    figure = plt.figure(figsize=(2 * PANEL[0], rows * PANEL[1]), layout="constrained")
    style.set_margins(figure)
    grid = figure.add_gridspec(rows, 2)
    wide = count - 1 if count % 2 else None  # the last one, where there is nothing next to it
    places = (grid[i // 2, :] if i == wide else grid[i // 2, i % 2] for i in range(count))
    axes = np.empty(count, dtype=object)
    axes[:] = [figure.add_subplot(place) for place in places]
    return axes


def _engine_panels(est: Estimate) -> list[DrawPanel]:
    match est.diagnostics:
        case diagnostics.Diagnostics() if est.draws is not None:
            sizes = _arviz.by_parameter(est.draws, "bulk")
            worst = min(sizes, key=sizes.__getitem__)
            return [
                partial(_ranks, draws=est.draws, name=worst),
                partial(_trace, est=est, draws=est.draws, name=worst),
                partial(_sample_sizes, draws=est.draws),
            ]
        case diagnostics.ImportanceDiagnostics():
            return [partial(_weights, account=est.diagnostics)]
        case _:
            return []


# -- NUTS -------------------------------------------------------------------------------------------------------------


def _chains(draws: xr.Dataset, label: str) -> Array:
    """Draws of one parameter, shape (chains, draws)."""
    for name, variable in draws.data_vars.items():
        arranged = variable.transpose("chain", "draw", ...)
        for index, found in zip(np.ndindex(arranged.shape[2:]), _labels(str(name), arranged), strict=True):
            if found == label:
                return np.asarray(arranged.values[(slice(None), slice(None), *index)])
    raise AssertionError(label)


def _labels(name: str, variable: xr.DataArray) -> list[str]:
    dims = variable.dims[2:]
    found = []
    for index in np.ndindex(variable.shape[2:]):
        parts = [str(variable[dim].values[i]) for dim, i in zip(dims, index, strict=True)]
        found.append(f"{name}[{', '.join(parts)}]" if parts else name)
    return found


def _ranks(ax: Axes, *, draws: xr.Dataset, name: str) -> None:
    """Ranks of one parameter's draws among all, chain by chain: level where the chains agree."""
    values = _chains(draws, name)
    ranks = np.argsort(np.argsort(values, axis=None, kind="stable"), kind="stable").reshape(values.shape)
    edges = np.linspace(0, values.size, BINS + 1)
    expected = values.shape[1] / BINS
    for i, chain in enumerate(ranks):
        height = 0.6 * np.histogram(chain, bins=edges)[0] / expected
        look: dict[str, Any] = {"color": style.COLOURS[i % len(style.COLOURS)], "edgecolor": "white"}
        ax.bar(edges[:-1], height, np.diff(edges), bottom=i, align="edge", **look)
        ax.axhline(i + 0.6, color=style.GREY, linestyle="--", linewidth=1)
    style.quiet(ax, grid="")
    ax.set_yticks(range(len(ranks)), [f"chain {i + 1}" for i in range(len(ranks))])
    style.name_axes(ax, x=f"rank among all {values.size:,} draws")
    rhat = _arviz.by_parameter(draws, "rhat")[name]
    below = f"R-hat {rhat:.3f} (must be < {diagnostics.MAX_RHAT}); dashed: what equal chains would give"
    style.heading(ax, f"Ranks of {style.shortened(name, 40)}, which mixed worst", below=below)


def _trace(ax: Axes, *, est: Estimate, draws: xr.Dataset, name: str) -> None:
    """Draws of one parameter in order, with divergences below."""
    values = _chains(draws, name)
    for i, chain in enumerate(values):
        ax.plot(chain, color=style.COLOURS[i % len(style.COLOURS)], linewidth=0.5, alpha=0.7)
    style.quiet(ax)
    style.name_axes(ax, x="draw", y=style.shortened(name, 40))
    count = 0
    if est.sample_stats is not None and "diverging" in est.sample_stats:
        diverging = est.sample_stats["diverging"].transpose("chain", "draw").values
        count = int(diverging.sum())
        low = ax.get_ylim()[0]
        ax.plot(np.nonzero(diverging)[1], np.full(count, low), "|", color="black", markersize=10)
    below = f"{plural(len(values), 'chain')}, {plural(count, 'divergence')}"
    style.heading(ax, f"Trace of {style.shortened(name, 40)}", below=below)


def _sample_sizes(ax: Axes, *, draws: xr.Dataset) -> None:
    """Bulk and tail effective sample sizes against what is required."""
    bulk, tail = (_arviz.by_parameter(draws, one) for one in ("bulk", "tail"))
    names = sorted(bulk, key=lambda name: min(bulk[name], tail[name]))[:MOST_PARAMETERS]
    entries: list[style.LegendEntry] = []
    for i, (word, sizes) in enumerate((("bulk", bulk), ("tail", tail))):
        drawn = [sizes[name] for name in names], np.arange(len(names)) + 0.15 * (2 * i - 1)
        (mark,) = ax.plot(*drawn, style.MARKERS[i], color=style.COLOURS[i], markersize=7)
        entries.append((mark, word))
    limit = ax.axvline(diagnostics.MIN_ESS, color=style.GREY, linestyle="--", linewidth=1.5)
    entries.append((limit, f"required: > {diagnostics.MIN_ESS:.0f}"))
    style.quiet(ax, grid="x")
    ax.set_yticks(range(len(names)), style.distinct_names(names), **style.LITERAL)
    ax.set(xlim=(0, None), ylim=(len(names) - 0.5, -0.5))
    style.name_axes(ax, x=f"effective draws of {draws.sizes['chain'] * draws.sizes['draw']:,}")
    shown = "" if len(names) == len(bulk) else f"the {len(names)} smallest of {len(bulk)} parameters"
    style.heading(ax, "Effective sample size", below=shown, entries=entries, ncols=3)


# -- importance sampling ----------------------------------------------------------------------------------------------


def _weights(ax: Axes, *, account: diagnostics.ImportanceDiagnostics) -> None:
    """Pareto k and effective sample size as shares of their limits."""
    found = (
        (
            f"Pareto k {account.pareto_k:.2f}\n(at most {diagnostics.MAX_PARETO_K})",
            max(account.pareto_k, 0.0) / diagnostics.MAX_PARETO_K,
        ),
        (f"ESS {account.ess:,.0f}\n(at least {diagnostics.MIN_ESS:.0f})", diagnostics.MIN_ESS / max(account.ess, 1e-9)),
    )
    for i, (_, share) in enumerate(found):
        over = int(share > 1)
        ax.barh(i, min(share, 2.0), height=0.45, color=style.COLOURS[over], hatch=style.HATCHES[over])
    ax.axvline(1, color=style.GREY, linestyle="--", linewidth=1.5)
    style.write(ax, 1.02, 0.5, "limit", color=style.GREY)
    style.quiet(ax, grid="")
    ax.set_yticks(range(2), [label for label, _ in found])
    ax.set(xlim=(0, 2.05), ylim=(1.6, -0.6), xticks=[0, 0.5, 1, 1.5, 2])
    style.name_axes(ax, x="used of what is allowed (cut at 2)")
    title = "Importance sampling: " + ("reliable" if account.passed else "NOT RELIABLE")
    style.heading(ax, title, below=f"{account.draws:,} proposals")


# -- the model against the data ----------------------------------------------------------------------------------------


def _count_panels(est: Estimate) -> list[DrawPanel]:
    """One per agent; of many agents, those that fit worst."""
    indices = list(range(len(est.agents)))
    if len(indices) > MOST_CHECKED:
        fit = [min((one.p for one in est.checks.predictive(i)), default=2.0) for i in indices]
        indices = sorted(sorted(indices, key=fit.__getitem__)[:MOST_CHECKED])
    return [partial(_counts, est=est, agent=i) for i in indices]


def _counts(ax: Axes, *, est: Estimate, agent: int) -> None:
    """Tasks by successes: observed, and replicated from the fitted model."""
    from matplotlib.ticker import MaxNLocator

    title = f"Counts under the model: {style.agent_name(est, agent, style.LONGEST_NAME)}"
    parts = est.checks.replicated(agent)
    if not parts:
        note = est.checks.not_checked(agent)
        if est.settings.judge is not None:
            note = "not checked: the model describes true successes, not the judge's counts"
        _nothing(ax, title=title, why=note)
        return
    labels, observed, replicated = _histogram(parts)
    places = np.arange(len(labels))
    low, high = np.quantile(replicated, [(1 - WIDE) / 2, (1 + WIDE) / 2], axis=0)
    bars = ax.bar(places, observed, 0.8, color=style.PALE, edgecolor=style.GREY, linewidth=0.8)
    (colour,) = style.agent_colours(est, [est.agents[agent]]).values()
    band = ax.vlines(places, low, high, color=colour, linewidth=3)
    ax.plot(places, replicated.mean(axis=0), "o", color=colour, markersize=7, markeredgecolor="white")
    style.quiet(ax)
    ax.set_xticks(places, labels)
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_ylim(0, 1.12 * max(float(high.max()), float(observed.max()), 1.0))
    one = parts[0].trials if len(parts) == 1 and len(labels) == parts[0].trials + 1 else None
    x = "trials that passed" if one is None else f"trials that passed, of {one}"
    style.name_axes(ax, x=x, y="tasks")
    p = {check.statistic: format_number(check.p, 2) for check in est.checks.predictive(agent)}
    below = f"p: histogram {p['histogram']}, all pass {p['all_pass']}, never pass {p['never_pass']}"
    tasks = plural(int(observed.sum()), "task")
    entries = [(bars, f"observed, {tasks} tried twice or more"), (band, f"replicated, {WIDE * 100:.0f} %")]
    style.heading(ax, title, below=below, entries=entries, ncols=2)


def _histogram(parts: Sequence[Replicated]) -> tuple[list[str], Array, Array]:
    """Labels, observed and replicated numbers of tasks; by share of trials where the numbers of trials differ."""
    if len(parts) == 1 and parts[0].trials < MOST_BARS:
        return [str(c) for c in range(parts[0].trials + 1)], parts[0].observed, parts[0].replicated
    observed, possible = np.zeros((2, len(SHARES)), dtype=np.int64)
    replicated = np.zeros((parts[0].replicated.shape[0], len(SHARES)), dtype=np.int64)
    for part in parts:
        c = np.arange(part.trials + 1)
        place = np.where(c == 0, 0, np.where(c == part.trials, len(SHARES) - 1, 1 + 5 * c // part.trials))
        for j in range(len(SHARES)):
            observed[j] += part.observed[place == j].sum()
            replicated[:, j] += part.replicated[:, place == j].sum(axis=1)
            possible[j] += np.count_nonzero(place == j)
    kept = possible > 0  # 1 of 4 trials is never less than 20 %
    return [SHARES[j] for j in np.flatnonzero(kept)], observed[kept], replicated[:, kept]


def _leave_one_out(ax: Axes, *, est: Estimate) -> None:
    """Pareto k of leaving out each cell: which tasks the posterior hangs on."""
    from matplotlib.ticker import MaxNLocator

    title = "Influence of single tasks (LOO)"
    try:
        data = est.to_arviz()
    except EstimateError:
        size = f"{plural(len(est.agents), 'agent')} × {plural(len(est.counts.tasks), 'task')}"
        _nothing(ax, title=title, why=f"not computed: the draws of {size} would be too many")
        return
    if "log_likelihood" not in _group_names(data):
        _nothing(ax, title=title, why="not computed: the model has no likelihood of the counts as they were judged")
        return
    values = _arviz.pareto_k(data)
    labels = _arviz.group(data, "log_likelihood")["cell"].values
    high = values > diagnostics.MAX_PARETO_K
    entries: list[style.LegendEntry] = []
    (mark,) = ax.plot(np.flatnonzero(~high), values[~high], "o", color=style.COLOURS[0], markersize=4, alpha=0.7)
    entries.append((mark, "cell (agent, task)"))
    if high.any():
        (mark,) = ax.plot(np.flatnonzero(high), values[high], "D", color=style.COLOURS[1], markersize=7)
        entries.append((mark, f"influential: {int(high.sum()):,}"))
        worst = int(np.argmax(values))
        shift, side = (-8, "right") if worst > values.size / 2 else (8, "left")
        name = style.shortened(str(labels[worst]), 40)
        style.annotate(ax, name, (worst, values[worst]), (shift, 0), ha=side, va="center")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    limit = ax.axhline(diagnostics.MAX_PARETO_K, color=style.GREY, linestyle="--", linewidth=1.5)
    entries.append((limit, f"limit {diagnostics.MAX_PARETO_K}"))
    style.quiet(ax)
    ax.set_ylim(min(0.0, float(values.min())) - 0.05, max(1.0, float(values.max()) + 0.1))
    style.name_axes(ax, x=f"{plural(values.size, 'cell')}, agent by agent", y="Pareto k of leaving it out")
    exact = est.diagnostics is None
    below = "exact engine: nothing was sampled, so there is no convergence to check" if exact else ""
    style.heading(ax, title, below=below, entries=entries, ncols=3)


def _group_names(data: Any) -> set[str]:
    return {str(name) for name in (data.children if hasattr(data, "children") else data.groups())}


def _nothing(ax: Axes, *, title: str, why: str) -> None:
    """A panel that says why it is empty."""
    ax.set_axis_off()
    style.write(ax, 0.5, 0.5, fill(style.legible(why), 48), ha="center", color=style.GREY)
    style.heading(ax, title)
