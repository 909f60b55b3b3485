"""Tasks: how the model shrinks their raw rates, and how hard they are for every agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from agentic_bayes import numerics
from agentic_bayes.checks import check_type
from agentic_bayes.errors import EstimateError, InvalidArgument
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.methods.options import Frequentist
from agentic_bayes.formatting import Metric, format_number, plural
from agentic_bayes.numerics import Array
from agentic_bayes.reports.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_heatmap", "plot_shrinkage"]

MOST_AGENTS = 100  # columns of a heat map
MOST_COUNTED = 10  # columns whose cells have room for counts
MOST_NAMED = 60  # tasks of a heat map whose names can be read
MOST_BARS = 60  # intervals of the shrinkage plot that can be told apart
SLIGHTEST = 1e-9  # difference of two estimates that are one


def _task_values(est: Estimate, agent: int, metric: Metric) -> Array:
    """The estimate of every task of one agent; NaN where nothing was scored."""
    return np.where(est.counts.scored[agent], est.posterior.distribution(agent, "task", metric).mean, np.nan)


def shrinkage_size() -> tuple[float, float]:
    """Inches that `plot_shrinkage` takes."""
    return 7.5, 7.0


def plot_shrinkage(est: Estimate, *, agent: str | None = None, metric: str = "pass^1", ax: Axes | None = None) -> Axes:
    """How the model shrinks each task's raw rate: posterior against raw, with intervals.

    Parameters
    ----------
    est : Estimate
        An estimate with a posterior.
    agent : str, optional
        Agent whose tasks are drawn; not needed if there is only one.
    metric : str
        "pass@k" or "pass^k" with a number, for example "pass^3".
    ax : matplotlib.axes.Axes, optional
        Axes to draw on.

    Returns
    -------
    matplotlib.axes.Axes
        One mark per distinct pair of raw and posterior; its area grows with the number of tasks that have it, which
        is written next to it. Raw is the unbiased estimate of the task alone: c/n for k = 1.

    Raises
    ------
    UnknownName, InvalidArgument
        If an argument is not valid.
    EstimateError
        If there is no posterior, or no task with k scored trials.
    """
    check_type("est", est, Estimate, "estimate() makes one")
    wanted = Metric(metric)
    if isinstance(est.method, Frequentist):
        raise EstimateError("the frequentist method has no posterior: raw rates are not shrunk")
    index = est.agent_index(agent)
    c, n, k = est.counts.successes[index], est.counts.trials[index], wanted.k
    enough = n >= k
    if not enough.any():
        raise EstimateError(f"no task of {est.agents[index]!r} has {plural(k, 'scored trial')}: there is no raw rate")
    formula = numerics.pass_pow_k if wanted.power else numerics.pass_at_k
    raw = np.asarray(formula(n[enough], c[enough], k), dtype=float)
    stats = est.posterior.distribution(index, "task", wanted).stats(est.settings.ci_prob, est.settings.ci_kind)
    table = np.stack([raw, n[enough], *(part[enough] for part in (stats.mean, stats.lower, stats.upper))])
    _, first, size = np.unique(np.round(table / SLIGHTEST), axis=1, return_index=True, return_counts=True)
    ax = style.axes_for(ax, shrinkage_size())
    (colour,) = style.agent_colours(est, [est.agents[index]]).values()
    entries = _marks(ax, table[:, first], size, colour)
    (diagonal,) = ax.plot([0, 1], [0, 1], color=style.GREY, linestyle="--", linewidth=1.2, zorder=1)
    entries.append((diagonal, "no shrinkage"))
    if "population" in est.posterior.estimands:
        mean = est.posterior.distribution(index, "population", wanted).mean
        centre = ax.axhline(mean, color=style.GREY, linestyle="-.", linewidth=1.2, zorder=1)
        entries.append((centre, f"mean of a new task {format_number(mean, 2)}"))
    style.quiet(ax, grid="both")
    ax.set(xlim=(-0.04, 1.06), ylim=(-0.04, 1.06), aspect="equal")
    x, y = f"{wanted} of the task alone (unbiased)", f"{wanted} of the task, posterior mean and interval"
    style.name_axes(ax, x=x, y=y)
    left_out = int((est.counts.attempted[index] & ~enough).sum())
    below = plural(int(enough.sum()), "task")
    if left_out:
        below += f", {left_out:,} with fewer than {plural(k, 'scored trial')} left out"
    title = f"Shrinkage by task: {style.agent_name(est, index, 32)}"
    style.heading(ax, title, below=f"{below}\n{style.described(est)}", entries=entries, ncols=2)
    return ax


def _marks(ax: Axes, table: Array, size: Array, colour: str) -> list[style.LegendEntry]:
    """Marks by number of trials, in at most four groups that differ in shape."""
    raw, trials, mean, lower, upper = table
    cuts = np.unique(trials)[:-1]
    if cuts.size > 3:
        cuts = np.unique(np.quantile(trials, [0.25, 0.5, 0.75], method="lower"))
    group = np.searchsorted(cuts, trials)
    entries: list[style.LegendEntry] = []
    few = size.size <= MOST_BARS
    for i in np.unique(group).tolist():
        here = group == i
        if few:
            # groups of trials stand a little apart, so that no interval hides another
            places = raw[here] + 0.004 * (i - len(cuts) / 2)
            ax.vlines(places, lower[here], upper[here], color=colour, alpha=0.5, linewidth=1.8)
        area = 40 * np.sqrt(size[here])
        look: dict[str, Any] = {"color": colour, "edgecolors": "white", "linewidths": 0.8, "zorder": 3}
        mark = ax.scatter(raw[here], mean[here], area, marker=style.MARKERS[i], alpha=1.0 if few else 0.7, **look)
        low, high = int(trials[here].min()), int(trials[here].max())
        entries.append((mark, plural(low, "trial") if low == high else f"{low:,} to {high:,} trials"))
    if few:
        _say_counts(ax, raw, mean, size)
    return entries


def _say_counts(ax: Axes, raw: Array, mean: Array, size: Array) -> None:
    """How many tasks are in one place, where there are several; marks that lie on each other are counted together."""
    from matplotlib.patheffects import withStroke

    places = np.stack([np.round(raw / 0.05), np.round(mean / 0.05)])
    _, place = np.unique(places, axis=1, return_inverse=True)
    for i in range(int(place.max()) + 1):
        here = place.reshape(-1) == i
        count = int(size[here].sum())
        if count > 1:
            top = np.argmax(np.where(here, mean, -1))
            spot = float(raw[top]), float(mean[top])
            clear = [withStroke(linewidth=3, foreground="white")]
            style.annotate(ax, f"{count:,}", spot, (8, 5), color=style.GREY, path_effects=clear)


def heatmap_width(agents: int) -> float:
    """Inches that `plot_heatmap` takes for so many agents."""
    return min(16.0, 5.5 + 0.75 * agents)


def plot_heatmap(est: Estimate, *, metric: str = "pass^1", ax: Axes | None = None) -> Axes:
    """Agents × tasks, the hardest task at the top: which tasks fail everywhere, and which only for some.

    Parameters
    ----------
    est : Estimate
        Any estimate.
    metric : str
        "pass@k" or "pass^k" with a number, for example "pass^3".
    ax : matplotlib.axes.Axes, optional
        Axes to draw on.

    Returns
    -------
    matplotlib.axes.Axes
        Colour is the estimate of the cell; successes/trials stand in it where there is room. Of more than two agents
        the best stands first, on the left. Tasks are ordered by the mean over agents. Up to 60 of them are named; of
        more every line is a task without a name.

    Raises
    ------
    UnknownName, InvalidArgument
        If an argument is not valid, or there are more than 100 agents.
    """
    check_type("est", est, Estimate, "estimate() makes one")
    wanted = Metric(metric)
    if len(est.agents) > MOST_AGENTS:
        raise InvalidArgument(f"at most {MOST_AGENTS} agents fit side by side, got {len(est.agents)}")
    by_agent = {agent: _task_values(est, i, wanted) for i, agent in enumerate(est.agents)}
    means = {
        agent: float(own[~np.isnan(own)].mean()) if (own == own).any() else np.nan for agent, own in by_agent.items()
    }
    agents = [est.agent_index(agent) for agent in style.best_first(est.agents, means)]
    values = np.stack([by_agent[est.agents[agent]] for agent in agents], axis=1)
    known = ~np.isnan(values)
    difficulty = np.where(known, values, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    order = np.argsort(np.where(known.any(axis=1), difficulty, np.inf), kind="stable")
    values = values[order]
    named = len(order) <= MOST_NAMED
    height = max(5.2, 2.6 + 0.27 * len(order)) if named else 9.6  # labels at the sides need some
    ax = style.axes_for(ax, (heatmap_width(len(est.agents)), height))
    image = ax.imshow(values, cmap="cividis", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    entries = _empty_cells(ax, est, agents, order, values)
    counts = named and len(est.agents) <= MOST_COUNTED
    if counts:
        _cell_counts(ax, est, agents, order, values)
    _name_cells(ax, est, agents, order, named=named)
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.06, pad=0.02)
    kind = "estimate" if isinstance(est.method, Frequentist) else "posterior mean"
    bar.set_label(f"{wanted} of the task, {kind}", fontsize=style.TEXT)
    bar.ax.tick_params(labelsize=style.TEXT - 1)
    bar.outline.set_visible(False)
    _, _, counted = style.described(est).partition("; ")
    below = f"{est.method.name}; {counted}"
    if counts:
        below += "\nin the cells: passed/scored trials"
    style.heading(ax, f"{wanted} by task and agent", below=below, entries=entries, ncols=2)
    return ax


def _empty_cells(
    ax: Axes, est: Estimate, agents: Sequence[int], order: Array, values: Array
) -> list[style.LegendEntry]:
    """Cells without a number, each kind with a pattern of its own: none of them is a zero."""
    from matplotlib.collections import PolyCollection

    attempted, scored = (part[agents][:, order].T for part in (est.counts.attempted, est.counts.scored))
    kinds = (
        ("never attempted", ~attempted, "", "white"),
        ("nothing scored", attempted & ~scored, style.CELL_HATCH, "white"),
        ("undefined: trials < k", scored & np.isnan(values), "....", style.PALE),
    )
    around = 0.5 * np.array([[-1, 1, 1, -1], [-1, -1, 1, 1]])  # of the middle of a cell
    entries: list[style.LegendEntry] = []
    for words, where, hatch, face in kinds:
        if not where.any():
            continue
        rows, columns = np.nonzero(where)
        corners = np.stack([columns[:, None] + around[0], rows[:, None] + around[1]], axis=2)
        cells = PolyCollection(list(corners), facecolor=face, hatch=hatch, edgecolor=style.GREY, linewidth=0)
        ax.add_collection(cells, autolim=False)
        entries.append((cells_patch(face, hatch), words))
    return entries


def cells_patch(face: str, hatch: str) -> Any:
    """A sample of cells, for a legend."""
    from matplotlib.patches import Patch

    return Patch(facecolor=face, hatch=hatch, edgecolor=style.GREY, linewidth=0.5)


def _cell_counts(ax: Axes, est: Estimate, agents: Sequence[int], order: Array, values: Array) -> None:
    """Passed/scored in each cell, in white on what is dark."""
    for row, task in enumerate(order.tolist()):
        for column, agent in enumerate(agents):
            n = int(est.counts.trials[agent, task])
            if n:
                colour = "white" if values[row, column] < 0.55 else "black"
                text = f"{est.counts.successes[agent, task]}/{n}"
                ax.text(column, row, text, ha="center", va="center", fontsize=style.TEXT - 1, color=colour)


def _name_cells(ax: Axes, est: Estimate, shown: Sequence[int], order: Array, *, named: bool) -> None:
    """Agents below, tasks on the left, or how many there are."""
    agents = style.distinct_names([est.agents[agent] for agent in shown], 20)
    room = (heatmap_width(len(agents)) - 3.2) / len(agents)  # inches of a column
    flat = max(map(len, agents)) * 0.1 < room
    turned: dict[str, Any] = {"rotation": 0, "ha": "center"} if flat else {"rotation": 40, "ha": "right"}
    ax.set_xticks(range(len(agents)), agents, rotation_mode="anchor", **turned, **style.LITERAL)
    if named:
        ax.set_yticks(range(len(order)), style.distinct_names([est.counts.tasks[i] for i in order]), **style.LITERAL)
    else:
        ax.set_yticks([])
    style.quiet(ax, grid="")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    style.name_axes(ax, x="agent", y=f"{plural(len(order), 'task')}, the hardest at the top")
