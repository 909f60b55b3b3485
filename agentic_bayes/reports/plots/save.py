"""Pictures as files, without a display and without pyplot's state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
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
            draw = partial(plot_posterior, est, metric=METRIC, estimand=estimand, agents=shown)
            _save(folder / "posterior.png", draw, lambda _: posterior_size(len(shown)))
            written.append("posterior.png")
        if scored:
            _save_per_agent(folder / "shrinkage.png", partial(plot_shrinkage, est), scored, shrinkage_size())
            written.append("shrinkage.png")
    forest = partial(plot_forest, est, metric=METRIC)
    _save(folder / "forest.png", forest, lambda ax: forest_size(len(ax.get_yticks())))
    _save_per_agent(folder / "curves.png", partial(plot_pass_curves, est), est.agents, CURVES_SIZE)
    if evidence is not None:
        _save(folder / "tools.png", partial(plot_tools, evidence), lambda ax: tools_size(len(ax.get_xticks())))
        written.append("tools.png")
    return written


def save_plan_picture(plan: Plan, path: Path) -> None:
    """`plot_plan` as a picture file."""
    _save(path, partial(plot_plan, plan), lambda _: PLAN_SIZE)


def _save(path: Path, draw: Callable[..., Axes], size: Callable[[Axes], tuple[float, float]]) -> None:
    """Draw on a figure of its own, give it the size that the drawing needs, and save it."""
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    set_margins(figure)
    ax = draw(ax=figure.subplots())
    figure.set_size_inches(size(ax))
    figure.savefig(path, dpi=DPI)


def _save_per_agent(path: Path, draw: Callable[..., Axes], agents: Sequence[str], size: tuple[float, float]) -> None:
    """Save one panel per agent, in rows of up to three."""
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
    for agent, ax in zip(shown, panels, strict=False):
        draw(agent=agent, ax=ax)
    figure.savefig(path, dpi=DPI)
