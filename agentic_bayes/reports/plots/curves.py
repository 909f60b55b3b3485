"""Both metrics over the number of attempts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from agentic_bayes.checks import check_choice, check_type
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.posterior import Estimand
from agentic_bayes.estimation.summary import overall_rows
from agentic_bayes.formatting import plural
from agentic_bayes.reports.colours import GREY as NOBODYS
from agentic_bayes.reports.colours import agent_colours
from agentic_bayes.reports.plots import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["plot_pass_curves"]

CURVES_SIZE = (8.0, 5.2)  # inches, as all sizes
MOST_KS = 30  # on the axis
MOST_BANDS = 2  # agents whose intervals can be told apart
LONGEST_NAME = 26  # at the end of a curve


def _curve_ks(asked: Sequence[int]) -> Sequence[int]:
    """Every k up to the largest that was asked for, and at least 5; where that is far away, some on the way."""
    last = max(5, *asked)
    if last <= MOST_KS:
        return range(1, last + 1)
    return sorted({*asked, *np.geomspace(1, last, MOST_KS).round().astype(int).tolist()})


def plot_pass_curves(
    est: Estimate,
    agents: Sequence[str] | None = None,
    *,
    k: Sequence[int] | None = None,
    agent: str | None = None,
    estimand: Estimand = "population",
    ax: Axes | None = None,
) -> Axes:
    """pass@k (rising) and pass^k (falling) over k with their intervals; of one agent with the plug-in curves dashed.

    Of more than two agents only the best has an interval, and names stand at the ends of the falling curves.

    Parameters
    ----------
    est : Estimate
        Any estimate.
    agents : sequence of str, optional
        Agents to show, at most seven. Default: all, or the six that have a colour of their own.
    k : sequence of int, optional
        Numbers of attempts; by default 1 to the estimate's largest k (at least 5).
    agent : str, optional
        The only agent to show, instead of `agents`.
    estimand : {"population", "tasks"}
        A new task of this kind, or the mean over the observed tasks ("tasks" where the method defines no population).
    ax : matplotlib.axes.Axes, optional
        Axes to draw on.

    Returns
    -------
    matplotlib.axes.Axes
        Where k exceeds the trials of every task the ground is grey and the markers are hollow: there a model
        extrapolates.

    Raises
    ------
    UnknownName, InvalidArgument
        If an argument is not valid.
    """
    check_type("est", est, Estimate, "estimate() makes one")
    check_choice("estimand", estimand, ("population", "tasks"))
    estimand = style.defined_estimand(est, estimand)
    if agent is not None and agents is not None:
        raise InvalidArgument(f"give agent or agents, not both: got {agent!r} and {agents!r}")
    chosen = style.chosen_agents(est, agents if agent is None else [agent])
    if agent is None and agents is None:
        chosen = tuple(name for name, colour in zip(chosen, agent_colours(est), strict=True) if colour != NOBODYS)
    wide = est.with_k(_curve_ks(est.settings.k) if k is None else k)
    ks = wide.settings.k
    frame = overall_rows(wide.to_pandas())
    frame = frame[frame["estimand"] == estimand]
    if len(chosen) > 1:
        if agent is None and agents is None:
            chosen = style.best_first(chosen, _at_first(frame, chosen))
        return _of_several(wide, frame, chosen, ax, estimand)
    (name,) = chosen
    index = est.agent_index(name)
    frame = frame[frame["agent"] == name]
    plain = wide.baseline(columns="all")
    plain = plain[(plain["agent"] == name) & (plain["estimand"] == estimand) & (plain["estimator"] == "plugin")]
    most = int(est.counts.trials[index].max(initial=0))
    ax = style.axes_for(ax, CURVES_SIZE)
    entries: list[style.LegendEntry] = []
    colour = style.agent_colours(est, chosen)[name]
    for name_of_k, marker in zip(("pass@k", "pass^k"), "os", strict=True):
        rows, dashed = (one[one["metric"].str.startswith(name_of_k[:-1])] for one in (frame, plain))
        ax.fill_between(rows["k"], rows["lower"], rows["upper"], color=colour, alpha=0.18, linewidth=0)
        (solid,) = ax.plot(rows["k"], rows["mean"], color=colour, marker=marker, linewidth=2)
        (line,) = ax.plot(dashed["k"], dashed["mean"], color=colour, linestyle="--", linewidth=1.3)
        entries.append((solid, f"{name_of_k} ({est.method.name})"))
        entries.append((line, f"{name_of_k} plug-in"))
        beyond = rows[rows["k"] > most]
        if not beyond.empty:
            ax.plot(beyond["k"], beyond["mean"], marker, color=colour, markerfacecolor="white", markeredgewidth=1.5)
    entries += _finished(ax, ks, most, estimand)
    title = f"{style.agent_name(est, index)}: pass@k and pass^k"
    style.heading(ax, title, below=f"bands: {style.described(est)}", entries=entries, ncols=2)
    return ax


def _of_several(est: Estimate, frame: pd.DataFrame, chosen: Sequence[str], ax: Axes | None, estimand: Estimand) -> Axes:
    """The curves of several agents, each in its colour; of two that share one, the second is dashed."""
    from matplotlib.lines import Line2D

    if len(chosen) > len(style.COLOURS):
        raise InvalidArgument(
            f"curves of at most {len(style.COLOURS)} agents can be told apart, got {len(chosen)}: name some, agents=[…]"
        )
    ax = style.axes_for(ax, (CURVES_SIZE[0], CURVES_SIZE[1] + 0.25 * len(chosen)))
    colours, names = list(style.agent_colours(est, chosen).values()), style.distinct_names(chosen, LONGEST_NAME)
    crowded = len(chosen) > MOST_BANDS
    rates = _at_first(frame, chosen)
    best = max(chosen, key=lambda agent: -1.0 if np.isnan(rates[agent]) else rates[agent])
    entries: list[style.LegendEntry] = []
    ends: list[tuple[float, str, str]] = []
    for i, (agent, name) in enumerate(zip(chosen, names, strict=True)):
        look: dict[str, Any] = {"color": colours[i], "linestyle": style.LINES[colours[:i].count(colours[i])]}
        for name_of_k, marker in zip(("pass@k", "pass^k"), "os", strict=True):
            rows = frame[(frame["agent"] == agent) & frame["metric"].str.startswith(name_of_k[:-1])]
            if agent == best or not crowded:
                ax.fill_between(rows["k"], rows["lower"], rows["upper"], color=colours[i], alpha=0.12, linewidth=0)
            thin = {"linewidth": 1.2, "alpha": 0.6} if crowded and marker == "o" else {"linewidth": 2}
            ax.plot(rows["k"], rows["mean"], marker=marker, markersize=4 if crowded else 6, **look, **thin)
        ends.append((float(rows["mean"].iloc[-1]), name, colours[i]))
        entries.append((Line2D([], [], **look, linewidth=2), name))
    most = int(est.counts.trials[[est.agent_index(agent) for agent in chosen]].max(initial=0))
    ground = _finished(ax, est.settings.k, most, estimand)
    if crowded and style.has_room(ax):
        _name_ends(ax, est.settings.k[-1], ends)
        entries = []
    below = f"rising (round): pass@k, falling (square): pass^k; {'band of the best' if crowded else 'bands'}: "
    left_out = len(est.agents) - len(chosen)
    title = "pass@k and pass^k" + (f", {len(chosen)} of {plural(len(est.agents), 'agent')}" if left_out else "")
    style.heading(ax, title, below=f"{below}{style.described(est)}", entries=entries + ground, ncols=2)
    return ax


def _at_first(frame: pd.DataFrame, agents: Sequence[str]) -> dict[str, float]:
    """Each agent's rate at the smallest k."""
    first = frame[(frame["k"] == frame["k"].min()) & frame["metric"].str.startswith("pass^")].set_index("agent")
    return {agent: float(first.loc[agent, "mean"]) for agent in agents}


def _name_ends(ax: Axes, last: int, ends: Sequence[tuple[float, str, str]]) -> None:
    """Names at the right of the falling curves, moved apart where these are close, each tied to its curve."""
    known = sorted((end for end in ends if not np.isnan(end[0])), reverse=True)
    inches = 0.6 * ax.figure.bbox.height / ax.figure.dpi  # what heading and axis leave to the picture, at least
    gap = 1.3 * style.TEXT / 72 / inches
    place = np.inf
    for below, (end, name, colour) in zip(reversed(range(len(known))), known, strict=True):
        place = max(min(end, place - gap), gap * below)
        tie = {"arrowstyle": "-", "color": colour, "linewidth": 1.2, "shrinkA": 0, "shrinkB": 5}
        right = ax.get_yaxis_transform()
        ax.annotate("", (last, end), (1.03, place), textcoords=right, arrowprops=tie, annotation_clip=False)
        style.write(ax, 1.04, place, name, transform=right)


def _finished(ax: Axes, ks: Sequence[int], most: int, estimand: Estimand) -> list[style.LegendEntry]:
    """Ticks, names of the axes, and the ground where k exceeds the trials."""
    style.quiet(ax)
    entries = _beyond_the_data(ax, ks, most)
    ax.set(ylim=(-0.02, 1.02), xticks=ks if len(ks) <= 15 else ks[:: len(ks) // 10])
    style.name_axes(ax, x="k (attempts)", y=f"probability {style.WORDS[estimand]}")
    return entries


def _beyond_the_data(ax: Axes, ks: Sequence[int], most: int) -> list[style.LegendEntry]:
    """Grey ground where k exceeds the trials of every task."""
    if max(ks) <= most:
        return []
    below = [k for k in ks if k <= most]
    start = (max(below) + min(k for k in ks if k > most)) / 2 if below else min(ks) - 0.5
    end = max(ks) + 0.5
    ground = ax.axvspan(start, end, color=style.PALE, alpha=0.6, linewidth=0, zorder=0)
    ax.set_xlim(min(ks) - 0.5, end)
    words = f"extrapolated: k > {plural(most, 'trial')}" if most else "nothing was scored"
    return [(ground, words)]
