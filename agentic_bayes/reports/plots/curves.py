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
from agentic_bayes.reports.plots import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["plot_pass_curves"]

CURVES_SIZE = (8.0, 5.2)  # inches, as all sizes
MOST_KS = 30  # on the axis


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

    Parameters
    ----------
    est : Estimate
        Any estimate.
    agents : sequence of str, optional
        Agents to show, at most seven; all by default.
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
    wide = est.with_k(_curve_ks(est.settings.k) if k is None else k)
    ks = wide.settings.k
    frame = overall_rows(wide.to_pandas())
    frame = frame[frame["estimand"] == estimand]
    if len(chosen) > 1:
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
    entries: list[style.LegendEntry] = []
    colours, band = list(style.agent_colours(est, chosen).values()), 0.12 if len(chosen) < 4 else 0.05
    for i, (agent, name) in enumerate(zip(chosen, style.distinct_names(chosen, 30), strict=True)):
        look: dict[str, Any] = {
            "color": colours[i],
            "linestyle": style.LINES[colours[:i].count(colours[i])],
            "linewidth": 2,
        }
        for name_of_k, marker in zip(("pass@k", "pass^k"), "os", strict=True):
            rows = frame[(frame["agent"] == agent) & frame["metric"].str.startswith(name_of_k[:-1])]
            ax.fill_between(rows["k"], rows["lower"], rows["upper"], color=colours[i], alpha=band, linewidth=0)
            ax.plot(rows["k"], rows["mean"], marker=marker, **look)
        entries.append((Line2D([], [], **look), name))
    most = int(est.counts.trials[[est.agent_index(agent) for agent in chosen]].max(initial=0))
    entries += _finished(ax, est.settings.k, most, estimand)
    below = f"rising (round): pass@k, falling (square): pass^k; bands: {style.described(est)}"
    style.heading(ax, "pass@k and pass^k", below=below, entries=entries, ncols=2)
    return ax


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
