"""The value of more data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentic_bayes.checks import check_type
from agentic_bayes.decisions.plan import Plan
from agentic_bayes.errors import EstimateError
from agentic_bayes.formatting import interval_words, plural
from agentic_bayes.reports.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_plan"]

PLAN_SIZE = (8.0, 5.2)


def plot_plan(plan: Plan, *, ax: Axes | None = None) -> Axes:
    """Mean width of the interval, or the probability of reaching the goal, against cost, by trials per task.

    Parameters
    ----------
    plan : Plan
        From `agentic_bayes.plan`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on.

    Returns
    -------
    matplotlib.axes.Axes
        Every mark is a design that was simulated; the recommended one is ringed.

    Raises
    ------
    InvalidArgument
        If `plan` is not a Plan.
    EstimateError
        If the budget buys no design, so that there is nothing to draw.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    check_type("plan", plan, Plan, "plan() makes one")
    if not plan.designs:
        raise EstimateError("the budget buys no design: there is nothing to draw")
    ax = style.axes_for(ax, PLAN_SIZE)
    entries: list[style.LegendEntry] = []
    for i, trials in enumerate(sorted({one.trials for one in plan.designs})):
        own = [one for one in plan.designs if one.trials == trials]
        (line,) = ax.plot(
            [one.cost for one in own],
            [getattr(one, plan.goal) for one in own],
            color=style.COLOURS[i % len(style.COLOURS)],
            linestyle=style.LINES[i % len(style.LINES)],
            marker=style.MARKERS[i % len(style.MARKERS)],
            linewidth=2,
        )
        entries.append((line, f"{plural(trials, 'trial')} per task"))
    if plan.target is not None:
        wanted = ax.axhline(plan.target, color=style.GREY, linestyle="--", linewidth=1.5)
        entries.append((wanted, f"wanted: {plan.target:g}"))
    if plan.budget is not None:
        budget = ax.axvline(plan.budget, color=style.GREY, linestyle=":", linewidth=1.5)
        entries.append((budget, f"budget: {plan.budget:,.6g}"))
    if plan.best is not None:
        place = plan.best.cost, getattr(plan.best, plan.goal)
        (ring,) = ax.plot(*place, "o", markersize=16, markerfacecolor="none", markeredgecolor="black", linestyle="")
        design = f"{plural(plan.best.tasks, 'task')} × {plural(plan.best.trials, 'trial')}"
        entries.append((ring, f"recommended: {design}"))
    style.quiet(ax)
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda cost, _: f"{cost:,.6g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_ylim(0, None if plan.goal == "width" else 1.03)
    style.name_axes(ax, x="cost of the new data, in the currency of the prices (log scale)", y=_worth(plan))
    below = f"simulated at μ {plan.mu:.2f}, ρ {plan.rho:.2f}, {plan.simulations:,} times per design"
    title = f"{plan.metric} on a new task: what more data buy"
    style.heading(ax, title, below=below, entries=entries, ncols=3)
    return ax


def _worth(plan: Plan) -> str:
    """The label of the y axis."""
    interval = interval_words(plan.ci_prob, plan.ci_kind)
    return {
        "width": f"mean width of the {interval}\nof {plan.metric} (smaller is better)",
        "conclusive": f"probability that the gate\non {plan.metric} passes or fails",
        "detected": f"probability that the {interval}\nof the difference of {plan.metric} excludes 0",
    }[plan.goal]
