"""One metric over the threshold of the judge's score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentic_bayes.formatting import interval_kind
from agentic_bayes.reports.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE = (7.0, 4.6)  # inches


def draw_threshold_curve(curve: Any, ax: Axes | None) -> Axes:
    """One metric of every agent over the threshold, with bands for the intervals."""
    ax = style.axes_for(ax, SIZE)
    entries: list[style.LegendEntry] = []
    for index, (agent, name) in enumerate(zip(curve.agents, style.distinct_names(curve.agents), strict=True)):
        own = [point for point in curve.points if point.agent == agent]
        x, colour = [point.threshold for point in own], style.COLOURS[index % len(style.COLOURS)]
        ax.fill_between(
            x, [point.lower for point in own], [point.upper for point in own], color=colour, alpha=0.15, linewidth=0
        )
        marker = style.MARKERS[index % len(style.MARKERS)]
        (line,) = ax.plot(x, [point.mean for point in own], color=colour, marker=marker, linewidth=2)
        entries.append((line, name))
    style.quiet(ax)
    ax.set(ylim=(-0.02, 1.02), xticks=sorted({point.threshold for point in curve.points}))
    where = "on a new task" if curve.estimand == "population" else "on these tasks"
    style.name_axes(ax, x="threshold of the judge's score", y=f"{curve.metric} {where}")
    below = f"bands: {interval_kind(curve.method, curve.ci_prob, curve.ci_kind)}, {curve.method}"
    style.heading(ax, f"{curve.metric} by threshold", below=below, entries=entries, ncols=2)
    return ax
