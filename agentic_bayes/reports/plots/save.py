"""Pictures as files, without a display and without pyplot's state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from agentic_bayes.decisions.plan import Plan
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.methods.options import Frequentist
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.formatting import plural
from agentic_bayes.reports.html.question import ask
from agentic_bayes.reports.plots.comparison import COMPARISON_SIZE, plot_comparison
from agentic_bayes.reports.plots.curves import CURVES_SIZE, plot_pass_curves
from agentic_bayes.reports.plots.forest import forest_size, plot_forest
from agentic_bayes.reports.plots.planning import PLAN_SIZE, plot_plan
from agentic_bayes.reports.plots.posterior import MOST_RIDGES, plot_posterior, posterior_size
from agentic_bayes.reports.plots.style import TITLE, defined_estimand, set_margins
from agentic_bayes.reports.plots.tasks import plot_shrinkage, shrinkage_size
from agentic_bayes.reports.plots.tools import plot_tools, tools_size
from agentic_bayes.whole_files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS, COLUMNS = 12, 3  # of pictures that have one panel per agent
MOST_DIFFERENCES = 2  # numbers of attempts at which two agents are compared
METRIC = "pass^3"  # of the posteriors and the forest: large enough to show what one success hides
DPI = 150


def save_pictures(est: Estimate, evidence: Evidence | None, folder: Path) -> list[str]:
    """Posteriors, the report's comparison, curves, forest, shrinkage and tool bars as PNG."""
    written = ["curves.png", "forest.png"]
    scored = [agent for i, agent in enumerate(est.agents) if est.counts.scored[i].any()]
    if not isinstance(est.method, Frequentist):
        estimand = defined_estimand(est, "population")
        shown = (est.agents if estimand == "population" else scored)[:MOST_RIDGES]
        if shown:
            some = shown if len(shown) < len(est.agents) else None
            draw = partial(plot_posterior, est, metric=METRIC, estimand=estimand, agents=some)
            _save(folder / "posterior.png", draw, lambda _: posterior_size(len(shown)))
            written.append("posterior.png")
        if scored:
            _save_per_agent(folder / "shrinkage.png", partial(plot_shrinkage, est), scored, shrinkage_size())
            written.append("shrinkage.png")
        if differences := ask(est, None, None, "pass^1", None).comparisons[:MOST_DIFFERENCES]:
            panels = [partial(plot_comparison, one) for one in differences]
            _save_panels(folder / "difference.png", panels, COMPARISON_SIZE)
            written.append("difference.png")
    forest = partial(plot_forest, est, metric=METRIC)
    _save(folder / "forest.png", forest, lambda ax: forest_size(len(ax.get_yticks())))
    _save_per_agent(folder / "curves.png", partial(plot_pass_curves, est), est.agents, CURVES_SIZE)
    if evidence is not None:
        _save(folder / "tools.png", partial(plot_tools, evidence), _tools_size)
        written.append("tools.png")
    return written


def _tools_size(ax: Axes) -> tuple[float, float]:
    labels = ax.get_xticklabels()
    return tools_size(len(labels), turned=labels[0].get_rotation() > 0)


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
    _write(figure, path)


def _write(figure: Figure, path: Path) -> None:
    with replacing(str(path)) as file:
        figure.savefig(cast("IO[bytes]", file), dpi=DPI, format=path.suffix.removeprefix("."))


def _save_per_agent(path: Path, draw: Callable[..., Axes], agents: Sequence[str], size: tuple[float, float]) -> None:
    """Save one panel per agent."""
    shown = agents[:MOST_PANELS]
    title = f"the first {len(shown)} of {plural(len(agents), 'agent')}" if len(shown) < len(agents) else ""
    _save_panels(path, [partial(draw, agent=agent) for agent in shown], size, title)


def _save_panels(path: Path, draws: Sequence[Callable[..., Axes]], size: tuple[float, float], title: str = "") -> None:
    """Save panels of this size, in rows of up to three."""
    from matplotlib.figure import Figure

    columns = min(COLUMNS, len(draws))
    rows = -(-len(draws) // columns)
    figure = Figure(layout="constrained", figsize=(size[0] * columns, size[1] * rows))
    set_margins(figure)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax in panels[len(draws) :]:
        ax.remove()
    if title:
        figure.suptitle(title, fontsize=TITLE)
    for draw, ax in zip(draws, panels, strict=False):
        draw(ax=ax)
    _write(figure, path)
