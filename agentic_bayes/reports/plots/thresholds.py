"""One metric over the threshold of the judge's score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentic_bayes.formatting import interval_kind, plural
from agentic_bayes.reports.colours import GREY, PALETTE, emphasised
from agentic_bayes.reports.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE = (7.0, 4.6)  # inches


def draw_threshold_curve(curve: Any, ax: Axes | None) -> Axes:
    """One metric of every agent over the threshold, with bands for the intervals."""
    ax = style.axes_for(ax, SIZE)
    entries: list[style.LegendEntry] = []
    points = [[point for point in curve.points if point.agent == agent] for agent in curve.agents]
    colours = emphasised([sum(point.mean for point in own) / len(own) for own in points])
    for own, name, colour in zip(points, style.distinct_names(curve.agents), colours, strict=True):
        x, mean = [point.threshold for point in own], [point.mean for point in own]
        look: dict[str, Any] = {"color": PALETTE[colour]}
        if colour == GREY:  # what the others do, without names
            ax.plot(x, mean, linewidth=1, alpha=0.6, zorder=1, **look)
            continue
        ends = [point.lower for point in own], [point.upper for point in own]
        ax.fill_between(x, *ends, alpha=0.15, linewidth=0, **look)
        (line,) = ax.plot(x, mean, marker=style.MARKERS[colour], linewidth=2, **look)
        entries.append((line, name))
    if others := colours.count(GREY):
        entries.append((ax.lines[colours.index(GREY)], plural(others, "other agent")))
    style.quiet(ax)
    ax.set(ylim=(-0.02, 1.02), xticks=sorted({point.threshold for point in curve.points}))
    where = "on a new task" if curve.estimand == "population" else "on these tasks"
    style.name_axes(ax, x="threshold of the judge's score", y=f"{curve.metric} {where}")
    below = f"bands: {interval_kind(curve.method, curve.ci_prob, curve.ci_kind)}, {curve.method}"
    style.heading(ax, f"{curve.metric} by threshold", below=below, entries=entries, ncols=2)
    return ax
