"""Means and intervals, one line per agent or task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from agentic_bayes.checks import check_choice, check_probability, check_type
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.posterior import Estimand
from agentic_bayes.estimation.summary import overall_rows
from agentic_bayes.formatting import Metric, format_estimate, format_number, plural
from agentic_bayes.reports.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_forest"]

MOST_LINES = 200  # that anybody would read


@dataclass(frozen=True, slots=True)
class ForestLine:
    """One line: a name, its numbers, what they rest on, and what makes them doubtful."""

    name: str
    colour: str  # of its agent
    mean: float
    lower: float
    upper: float
    data: str
    flags: tuple[str, ...]
    note: str


def forest_size(lines: int) -> tuple[float, float]:
    """Inches that `plot_forest` takes for so many lines."""
    return 9.0, 2.4 + 0.3 * lines


def plot_forest(
    est: Estimate,
    *,
    of: Literal["agents", "tasks", "groups"] = "agents",
    agent: str | None = None,
    metric: str = "pass^1",
    estimand: Estimand = "population",
    ref_val: float | None = None,
    most: int = 40,
    ax: Axes | None = None,
) -> Axes:
    """Mean and interval of every agent, of every task of one agent, or of every group of its tasks, best first.

    Two agents stand in the order of the data.

    Parameters
    ----------
    est : Estimate
        Any estimate.
    of : {"agents", "tasks", "groups"}
        What each line stands for. Groups are those of `estimate(..., by=…)`; without `agent`, of every agent.
    agent : str, optional
        Agent whose tasks or groups are drawn; not needed if there is only one.
    metric : str
        "pass@k" or "pass^k" with a number, for example "pass^3".
    estimand : {"population", "tasks"}
        Of agents: a new task of this kind, or the mean over the observed tasks ("tasks" where the method defines no
        population). Not used with ``of="tasks"``.
    ref_val : float, optional
        A bar to clear, in [0, 1].
    most : int
        Maximum number of lines, 2 to 200. Beyond it the picture has the most and the least reliable, and says how many
        it leaves out.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on.

    Returns
    -------
    matplotlib.axes.Axes
        A mark is hollow where a number has no data of its own or k exceeds the trials. Lines without a mark, at the
        foot, are undefined.

    Raises
    ------
    UnknownName, InvalidArgument
        If an argument is not valid.
    """
    check_type("est", est, Estimate, "estimate() makes one")
    check_choice("of", of, ("agents", "tasks", "groups"))
    wanted = Metric(metric)
    check_choice("estimand", estimand, ("population", "tasks"))
    if isinstance(most, bool) or not isinstance(most, int) or not 2 <= most <= MOST_LINES:
        raise InvalidArgument(f"most must be an integer from 2 to {MOST_LINES}, got {most!r}")
    if ref_val is not None:
        ref_val = check_probability(ref_val, "ref_val")
    if of == "agents" and agent is not None:
        raise InvalidArgument(f"agent needs of='tasks', got agent={agent!r} with of='agents'")
    title = str(wanted)
    if of == "agents":
        shown: Estimand = style.defined_estimand(est, estimand)
        lines = _agents(est, wanted, shown)
        title += " by agent"
    elif of == "groups":
        shown = "population" if est.posterior.group_labels(estimand) and estimand == "population" else "tasks"
        lines = _groups(est, agent, wanted, shown)
        title += f" by {est.settings.by}"
    else:
        shown = "task"
        index = est.agent_index(agent)
        lines = _tasks(est, index, wanted)
        title += f" by task: {style.agent_name(est, index)}"
    if of != "agents" or len(lines) >= style.FEWEST_RANKED:
        lines.sort(key=lambda line: -np.inf if np.isnan(line.mean) else line.mean, reverse=True)
    top, rest = _cut(lines, most)
    places = [-float(i) for i in range(len(top))] + [-float(i) for i in range(len(top) + 1, len(top) + 1 + len(rest))]
    ax = style.axes_for(ax, forest_size(-int(places[-1]) + 1))
    entries = _draw(ax, [*top, *rest], places)
    if rest:
        left_out = len(lines) - len(top) - len(rest)
        text = f"… {plural(left_out, of[:-1])} in between left out …"
        look: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "ha": "center"}
        look["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
        style.write(ax, 0.5, -len(top), text, size=style.TEXT - 1, **look)
    if ref_val is not None:
        bar = ax.axvline(ref_val, color=style.GREY, linestyle="--", linewidth=1.5)
        entries.append((bar, f"reference {ref_val:g}"))
    if shown == "task":
        entries += _mean_of_tasks(ax, est, index, wanted)
    ax.set(xlim=(-0.02, 1.02), ylim=(places[-1] - 0.7, 0.7))
    style.name_axes(ax, x=f"{wanted}: probability {style.WORDS[shown]}")
    style.heading(ax, title, below=style.described(est), entries=entries, ncols=2)
    return ax


def _agents(est: Estimate, metric: Metric, estimand: Estimand) -> list[ForestLine]:
    frame = est.with_k(metric.k).to_pandas()
    frame = overall_rows(frame[(frame["metric"] == metric) & (frame["estimand"] == estimand)])
    rows: Iterator[Any] = frame.itertuples()
    colours = style.agent_colours(est, est.agents)
    return [
        _line(colours, row, name, plural(int(row.n_tasks), "task"))
        for row, name in zip(rows, style.distinct_names(est.agents), strict=True)
    ]


def _groups(est: Estimate, agent: str | None, metric: Metric, estimand: Estimand) -> list[ForestLine]:
    """The groups of one agent's tasks, or of all agents'."""
    if not est.posterior.group_labels(estimand):
        raise InvalidArgument("of='groups' needs an estimate with groups of tasks: estimate(..., by=…)")
    frame = est.with_k(metric.k).to_pandas()
    frame = frame[(frame["metric"] == metric) & (frame["estimand"] == estimand) & (frame["group"] != "")]
    if agent is not None:
        frame = frame[frame["agent"] == est.agents[est.agent_index(agent)]]
    several = frame["agent"].nunique() > 1
    names = [f"{row.agent}: {row.group}" if several else str(row.group) for row in frame.itertuples()]
    rows: Iterator[Any] = frame.itertuples()
    colours = style.agent_colours(est, est.agents)
    return [
        _line(colours, row, name, plural(int(row.n_tasks), "task"))
        for row, name in zip(rows, style.distinct_names(names), strict=True)
    ]


def _tasks(est: Estimate, agent: int, metric: Metric) -> list[ForestLine]:
    frame = est.with_k(metric.k).summary(columns="all", tasks=True)
    frame = frame[(frame["agent"] == est.agents[agent]) & (frame["metric"] == metric) & (frame["estimand"] == "task")]
    c, n, unscored = (part[agent] for part in (est.counts.successes, est.counts.trials, est.counts.unscored))
    names = style.distinct_names(list(frame["task"]))
    colours, lines = style.agent_colours(est, [est.agents[agent]]), []
    for row, name, j in zip(frame.itertuples(), names, np.flatnonzero(est.counts.attempted[agent]), strict=True):
        lines.append(_line(colours, row, name, f"{c[j]}/{n[j]}" if n[j] else f"{unscored[j]} unscored"))
    return lines


def _line(colours: Mapping[str, str], row: Any, name: str, data: str) -> ForestLine:
    flags = tuple(filter(None, row.flags.split(", ")))
    return ForestLine(name, colours[row.agent], row.mean, row.lower, row.upper, data, flags, row.note)


def _cut(lines: list[ForestLine], most: int) -> tuple[list[ForestLine], list[ForestLine]]:
    """All, or the first and the last of them."""
    if len(lines) <= most:
        return lines, []
    half = most // 2
    return lines[: most - half], lines[-half:]


def _draw(ax: Axes, lines: list[ForestLine], places: list[float]) -> list[style.LegendEntry]:
    """Marks, intervals, names on the left and numbers on the right; what is drawn hollow is explained."""
    entries: dict[str, Any] = {}
    for line, place in zip(lines, places, strict=True):
        why = "no data: the model's prediction" if "no_data" in line.flags else ""
        if "extrapolated" in line.flags:
            why = "extrapolated: k exceeds the trials"
        if np.isnan(line.mean):
            why = ""
        look: dict[str, Any] = {"linestyle": ":" if why else "-", "linewidth": 2.2, "color": line.colour}
        ax.plot([line.lower, line.upper], [place, place], **look, solid_capstyle="butt")
        face = "white" if why else line.colour
        (mark,) = ax.plot(line.mean, place, "o", color=line.colour, markerfacecolor=face, markersize=7)
        if why:
            entries.setdefault(why, mark)
        if np.isnan(line.mean):
            text = f"undefined: {line.note}" if line.note else "undefined"
            style.write(ax, 0.5, place, text, size=style.TEXT - 2, ha="center", color=style.GREY)
        if style.has_room(ax):
            numbers = f"{format_estimate(line.mean, line.lower, line.upper, 2)}   {line.data}"
            style.write(ax, 1.02, place, numbers, size=style.TEXT - 1, transform=ax.get_yaxis_transform())
    if style.has_room(ax):
        look = {"xycoords": "axes fraction", "va": "top", "color": style.GREY}
        style.annotate(ax, "mean, interval, data", (1.02, 0), (6, -8), **look)
    style.quiet(ax, grid="x")
    ax.set_yticks(places, [line.name for line in lines], **style.LITERAL)
    ax.tick_params(axis="y", length=0)
    return [(mark, why) for why, mark in entries.items()]


def _mean_of_tasks(ax: Axes, est: Estimate, agent: int, metric: Metric) -> list[style.LegendEntry]:
    """A line at the mean over the observed tasks, of which the single tasks are parts."""
    mean = est.posterior.distribution(agent, "tasks", metric).mean
    if np.isnan(mean):
        return []
    line = ax.axvline(mean, color="black", linestyle="-.", linewidth=1.3, zorder=1)
    return [(line, f"mean over the observed tasks {format_number(mean, 2)}")]
