"""Pictures as files, without a display and without pyplot's state."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agentic_bayes.decisions.plan import Plan
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.methods.options import Frequentist
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.formatting import plural
from agentic_bayes.reports.plots.curves import CURVES_SIZE, plot_pass_curves
from agentic_bayes.reports.plots.forest import forest_size, plot_forest
from agentic_bayes.reports.plots.planning import PLAN_SIZE, plot_plan
from agentic_bayes.reports.plots.posterior import MOST_RIDGES, plot_posterior, posterior_size
from agentic_bayes.reports.plots.style import TITLE, defined_estimand, set_margins
from agentic_bayes.reports.plots.tasks import plot_shrinkage, shrinkage_size
from agentic_bayes.reports.plots.tools import plot_tools, tools_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS, COLUMNS = 12, 3  # of pictures that have one panel per agent
METRIC = "pass^3"  # of the posteriors and the forest: large enough to show what one success hides
DPI = 150


def save_pictures(est: Estimate, evidence: Evidence | None, folder: Path) -> list[str]:
    """Posteriors, curves, forest, shrinkage and tool bars as PNG."""
    written = ["curves.png", "forest.png"]
    scored = [agent for i, agent in enumerate(est.agents) if est.counts.scored[i].any()]
    if not isinstance(est.method, Frequentist):
        estimand = defined_estimand(est, "population")
        shown = (est.agents if estimand == "population" else scored)[:MOST_RIDGES]
        if shown:
            figure, ax = _single()
            plot_posterior(est, metric=METRIC, estimand=estimand, agents=shown, ax=ax)
            _save(figure, posterior_size(len(shown)), folder / "posterior.png")
            written.append("posterior.png")
        if scored:
            figure, panels = _per_agent(scored, shrinkage_size())
            for agent, ax in panels.items():
                plot_shrinkage(est, agent=agent, ax=ax)
            figure.savefig(folder / "shrinkage.png", dpi=DPI)
            written.append("shrinkage.png")
    figure, ax = _single()
    lines = plot_forest(est, metric=METRIC, ax=ax)
    _save(figure, forest_size(len(lines.get_yticks())), folder / "forest.png")
    figure, panels = _per_agent(est.agents, CURVES_SIZE)
    for agent, ax in panels.items():
        plot_pass_curves(est, agent=agent, ax=ax)
    figure.savefig(folder / "curves.png", dpi=DPI)
    if evidence is not None:
        figure, ax = _single()
        bars = plot_tools(evidence, ax=ax)
        _save(figure, tools_size(len(bars.get_xticks())), folder / "tools.png")
        written.append("tools.png")
    return written


def save_plan_picture(plan: Plan, path: Path) -> None:
    """`plot_plan` as a picture file."""
    figure, ax = _single()
    plot_plan(plan, ax=ax)
    _save(figure, PLAN_SIZE, path)


def _single() -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    set_margins(figure)
    return figure, figure.subplots()


def _save(figure: Figure, size: tuple[float, float], path: Path) -> None:
    figure.set_size_inches(size)
    figure.savefig(path, dpi=DPI)


def _per_agent(agents: Sequence[str], size: tuple[float, float]) -> tuple[Figure, dict[str, Axes]]:
    """A figure with one panel per agent, in rows of up to three."""
    from matplotlib.figure import Figure

    shown = agents[:MOST_PANELS]
    columns = min(COLUMNS, len(shown))
    rows = -(-len(shown) // columns)
    figure = Figure(layout="constrained", figsize=(size[0] * columns, size[1] * rows))
    set_margins(figure)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax in panels[len(shown) :]:
        ax.remove()
    if len(shown) < len(agents):
        figure.suptitle(f"the first {len(shown)} of {plural(len(agents), 'agent')}", fontsize=TITLE)
    return figure, dict(zip(shown, panels, strict=False))
