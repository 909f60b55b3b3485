"""Pictures, with matplotlib, the same on both ArviZ stacks. Every function takes `ax` (or makes one) and returns it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from agentic_bayes import numerics
from agentic_bayes.decisions.plan import Plan
from agentic_bayes.errors import EvidenceError, InvalidArgument, check_choice, check_type
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.exact import ExactPosterior
from agentic_bayes.estimation.posterior import Estimand
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.judge_calibration import JudgeCalibration
from agentic_bayes.formatting import METRICS, Metric, format_interval, format_number, metric_name, plural

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = [
    "plot_judge_calibration",
    "plot_pass_curves",
    "plot_plan",
    "plot_posterior",
    "plot_tools",
    "save_pictures",
    "save_plan_picture",
]

# Okabe and Ito's colours, told apart by colour-blind readers too
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GREY = "#666666"
DIMENSIONS = ("selection", "parameters", "sequence", "utilization")
HATCHES = ("", "//", "..", "xx")
MOST_KS = 30  # on the axis of curves
MOST_GROUPS = 20  # of bars; more would be too narrow to tell apart
LONGEST_LABEL = 28  # characters of a line under the bars
TEXT, TITLE = 11, 13  # points, to be read when projected
CURVES_SIZE = (8.0, 5.0)  # inches, as all sizes
JUDGE_SIZE = (8.0, 5.5)
WORDS: dict[Estimand, str] = {
    "population": "on a new task of this kind",
    "tasks": "averaged over the observed tasks",
    "task": "on one task",
}


def _axes(ax: Axes | None, figsize: tuple[float, float]) -> Axes:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=figsize, layout="constrained")[1]


def _quiet(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", alpha=0.25, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(labelsize=TEXT)


def _title_and_legend(ax: Axes, title: str, *, ncols: int = 1) -> None:
    """The legend stands between title and picture, where no label of an axis can be. A figure without a layout
    engine has no room to count on outside the axes, so there it goes where it hides least.
    """
    if ax.figure.get_layout_engine() is None:
        ax.set_title(title, fontsize=TITLE)
        ax.legend(fontsize=TEXT - 2, loc="best")
        return
    rows = -(-len(ax.get_legend_handles_labels()[0]) // ncols)
    ax.set_title(title, fontsize=TITLE, pad=TEXT * (1.5 * rows + 1.2))
    ax.legend(frameon=False, fontsize=TEXT, ncols=ncols, loc="lower center", bbox_to_anchor=(0.5, 1.0))


def _check_region(rope: Any) -> tuple[float, float]:
    try:
        lower, upper = (numerics.check_probability(bound, "rope") for bound in rope)
    except (TypeError, ValueError):
        lower = upper = 0.0
    if not lower < upper:
        raise InvalidArgument(f"rope must be (lower, upper) with 0 ≤ lower < upper ≤ 1, got {rope!r}")
    return lower, upper


def _check_agents(est: Estimate, agents: Sequence[str] | None) -> tuple[str, ...]:
    if agents is None:
        return est.agents
    if isinstance(agents, str) or not agents:
        raise InvalidArgument(f"agents must be a sequence of one or more names, got {agents!r}")
    return tuple(est.agents[est.agent_index(agent)] for agent in agents)


def density(draws: Any, points: int = 400) -> tuple[Any, Any]:
    """Kernel density of draws in [0, 1], reflected at both ends so that no mass leaks out.

    Parameters
    ----------
    draws : ndarray, shape (draws,)
        Values in [0, 1].
    points : int
        Size of the grid.

    Returns
    -------
    x, y : ndarray, shape (points,)
    """
    from scipy.stats import gaussian_kde

    spread = max(float(np.ptp(draws)), 1e-6)
    x = np.linspace(max(0.0, draws.min() - 0.15 * spread), min(1.0, draws.max() + 0.15 * spread), points)
    if np.std(draws) < 1e-12:
        return x, np.zeros(points)
    kernel = gaussian_kde(draws)
    return x, kernel(x) + kernel(-x) + kernel(2 - x)


def _posterior_size(agents: int) -> tuple[float, float]:
    return 8.0, 4.4 + 0.3 * agents


def _curve(est: Estimate, agent: str, metric: Metric, k: int, estimand: Estimand, draws: Any) -> tuple[Any, Any]:
    """The density to draw: exact where the engine has it, else of the draws."""
    if estimand == "population" and isinstance(est.posterior, ExactPosterior) and not est.settings.inflate:
        return est.posterior.density(est.agent_index(agent), metric, k)
    return density(draws)


def plot_posterior(
    est: Estimate,
    *,
    metric: Metric = "pass_pow_k",
    k: int = 1,
    estimand: Estimand = "population",
    agents: Sequence[str] | None = None,
    ref_val: float | None = None,
    rope: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Posterior density of one metric, one curve per agent, with mean and interval.

    Parameters
    ----------
    est : Estimate
        An estimate with a posterior.
    metric : {"pass_pow_k", "pass_at_k"}
        Which metric.
    k : int
        Attempts, ≥ 1.
    estimand : {"population", "tasks"}
        Of which population.
    agents : sequence of str, optional
        Whom to show; all by default.
    ref_val : float, optional
        A bar to clear, in [0, 1]; the legend gives the probability above it.
    rope : tuple of float, optional
        (lower, upper) of a region to shade.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    EstimateError, UnknownName, InvalidArgument
        As `Estimate.metric_draws`, or if `ref_val` or `rope` is not valid.
    """
    check_type("est", est, Estimate, "estimate() makes one")
    if ref_val is not None:
        ref_val = numerics.check_probability(ref_val, "ref_val")
    if rope is not None:
        rope = _check_region(rope)
    chosen = _check_agents(est, agents)
    drawn = {agent: est.metric_draws(agent, metric=metric, k=k, estimand=estimand) for agent in chosen}
    ax = _axes(ax, _posterior_size(len(chosen)))
    if rope is not None:
        ax.axvspan(*rope, color=GREY, alpha=0.15, linewidth=0, label=f"region {format_interval(*rope, digits=2)}")
    curves = {agent: _curve(est, agent, metric, k, estimand, draws) for agent, draws in drawn.items()}
    top = max(float(y.max()) for _, y in curves.values()) or 1.0
    for i, (agent, draws) in enumerate(drawn.items()):
        colour = COLOURS[i % len(COLOURS)]
        x, y = curves[agent]
        stats = est.posterior.aggregate(est.agent_index(agent), estimand, metric, k)  # the numbers of `summary`
        text = f"{agent}: {format_number(stats.mean)} {format_interval(stats.lower, stats.upper)}"
        if ref_val is not None:
            text += f", P(> {ref_val:g}) = {format_number(float(np.mean(draws > ref_val)))}"
        ax.plot(x, y, color=colour, linewidth=2, label=text)
        ax.fill_between(x, y, color=colour, alpha=0.15, linewidth=0)
        height = -top * 0.05 * (i + 1)  # intervals hang below the densities, one line each
        ax.plot([stats.lower, stats.upper], [height, height], color=colour, linewidth=4, solid_capstyle="butt")
        ax.plot(stats.mean, height, "o", color=colour, markersize=7, markeredgecolor="white")
    if ref_val is not None:
        ax.axvline(ref_val, color=GREY, linestyle="--", linewidth=1.5, label=f"reference {ref_val:g}")
    _quiet(ax)
    ax.grid(visible=False)
    ax.spines["left"].set_visible(False)
    ax.set(yticks=[], ylim=(-top * 0.05 * (len(drawn) + 1.2), top * 1.08))
    ax.set_xlabel(f"{metric_name(metric, k)}: probability {WORDS[estimand]}", fontsize=TEXT + 1)
    title = f"Posterior of {metric_name(metric, k)} ({est.settings.method}, {_interval_words(est)})"
    _title_and_legend(ax, title)
    return ax


def _interval_words(est: Estimate) -> str:
    kind = "equal-tailed" if est.settings.ci_kind == "eti" else "highest-density"
    return f"{est.settings.ci_prob * 100:.4g} % {kind} interval"


def _curve_ks(asked: Sequence[int]) -> Sequence[int]:
    """Every k up to the largest that was asked for, and at least 5; where that is far away, some on the way."""
    last = max(5, *asked)
    if last <= MOST_KS:
        return range(1, last + 1)
    return sorted({*asked, *np.geomspace(1, last, MOST_KS).round().astype(int).tolist()})


def plot_pass_curves(
    est: Estimate,
    *,
    k: Sequence[int] | None = None,
    agent: str | None = None,
    estimand: Estimand = "population",
    ax: Axes | None = None,
) -> Axes:
    """pass@k (rising) and pass^k (falling) over k with their intervals, and the plug-in curves dashed.

    Parameters
    ----------
    est : Estimate
        Any estimate.
    k : sequence of int, optional
        Attempts; 1 to the estimate's largest k (at least 5) by default.
    agent : str, optional
        Whose curves; may be left out where there is only one agent.
    estimand : {"population", "tasks"}
        Of which population; "tasks" where the method defines no population.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    UnknownName, InvalidArgument
        If an argument is not valid.
    """
    check_type("est", est, Estimate, "estimate() makes one")
    check_choice("estimand", estimand, ("population", "tasks"))
    if estimand not in est.posterior.estimands:
        estimand = "tasks"
    name = est.agents[est.agent_index(agent)]
    wide = est.with_k(_curve_ks(est.settings.k) if k is None else k)
    ks = wide.settings.k
    frame = wide.summary(tasks=False)
    frame = frame[(frame["agent"] == name) & (frame["estimand"] == estimand)]
    plain = wide.baseline()
    plain = plain[(plain["agent"] == name) & (plain["estimand"] == estimand) & (plain["estimator"] == "plugin")]
    ax = _axes(ax, CURVES_SIZE)
    for metric, colour, marker in zip(METRICS, COLOURS[:2], "os", strict=True):
        rows, dashed = frame[frame["metric"] == metric], plain[plain["metric"] == metric]
        ax.fill_between(rows["k"], rows["lower"], rows["upper"], color=colour, alpha=0.18, linewidth=0)
        label = f"{metric_name(metric, 'k')} ({est.settings.method})"
        ax.plot(rows["k"], rows["mean"], color=colour, marker=marker, linewidth=2, label=label)
        ax.plot(
            *(dashed["k"], dashed["mean"]),
            color=colour,
            linestyle="--",
            linewidth=1.3,
            label=f"{metric_name(metric, 'k')} plug-in",
        )
    _quiet(ax)
    ax.set(ylim=(-0.02, 1.02), xticks=ks if len(ks) <= 15 else ks[:: len(ks) // 10])
    ax.set_xlabel("k (attempts)", fontsize=TEXT + 1)
    ax.set_ylabel(f"probability {WORDS[estimand]}", fontsize=TEXT + 1)
    _title_and_legend(ax, f"{name}: pass@k and pass^k, {_interval_words(est)}", ncols=2)
    return ax


def _tools_size(groups: int) -> tuple[float, float]:
    return min(16.0, max(8.0, 2.0 * groups + 1.5)), 5.0


def plot_tools(evidence: Evidence, *, agent: str | None = None, ax: Axes | None = None) -> Axes:
    """Four bars per conversation: mean selection, parameters, sequence and utilization of its tool calls.

    Parameters
    ----------
    evidence : Evidence
        Scored interactions.
    agent : str, optional
        Whose conversations; all by default.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        With more than 20 conversations, one group of bars per agent instead.

    Raises
    ------
    UnknownName
        If there is no such agent.
    EvidenceError
        If no interaction has a tool verdict.
    """
    check_type("evidence", evidence, Evidence, "assess() makes one")
    frame = evidence.to_pandas()
    if agent is not None:
        check_choice("agent", agent, dict.fromkeys(frame["agent"]))
        frame = frame[frame["agent"] == agent]
    frame = frame[frame["tool_overall"].notna()]
    if frame.empty:
        raise EvidenceError("no interaction has a tool verdict: ground_truth_agentic was given nowhere")
    single = frame["agent"].nunique() == 1
    title = "Tool correctness by dimension"
    groups = frame.groupby(["agent", "session_id"], sort=False)[list(DIMENSIONS)].mean()
    labels = [_short(session) if single else f"{_short(name)}\n{_short(session)}" for name, session in groups.index]
    if len(groups) > MOST_GROUPS:
        title += f", {plural(len(groups), 'conversation')}"
        groups = frame.groupby("agent", sort=False)[list(DIMENSIONS)].mean()
        labels = [_short(name) for name in groups.index]
    size = _tools_size(len(groups))
    ax = _axes(ax, size)
    _bars(ax, groups)
    _quiet(ax)
    line = max(len(part) for label in labels for part in label.split("\n"))
    flat = line * 0.09 * len(groups) < size[0] - 1.5  # a character is about .09 inches wide
    ax.set_xticks(range(len(groups)), labels, rotation=0 if flat else 45, ha="center" if flat else "right")
    ax.set(ylim=(0, 1.12), yticks=np.linspace(0, 1, 6))
    ax.set_ylabel("mean score", fontsize=TEXT + 1)
    _title_and_legend(ax, title, ncols=4)
    return ax


def _short(label: str) -> str:
    return label if len(label) <= LONGEST_LABEL else label[: LONGEST_LABEL - 1] + "…"


def _bars(ax: Axes, groups: pd.DataFrame) -> None:
    """Four bars per row of `groups`; a dimension that was never scored is "n/a", not a bar of height 0."""
    width = 0.2
    for i, name in enumerate(DIMENSIONS):
        places = np.arange(len(groups)) + (i - 1.5) * width
        heights = groups[name].to_numpy(dtype=float)
        ax.bar(places, heights, width * 0.92, color=COLOURS[i], hatch=HATCHES[i], edgecolor="white", label=name)
        for place, height in zip(places, heights, strict=True):
            text = "n/a" if np.isnan(height) else f"{height:.2f}"
            small = len(groups) > 8
            ax.text(
                *(place, np.nan_to_num(height) + 0.01, text),
                ha="center",
                va="bottom",
                fontsize=TEXT - 4 if small else TEXT - 2,
                rotation=90 if small else 0,
                color=GREY,
            )


def save_pictures(est: Estimate, evidence: Evidence, folder: Path) -> None:
    """Posteriors, curves and tool bars as PNG, without a display and without pyplot's state.

    Parameters
    ----------
    est : Estimate
        An estimate with a posterior.
    evidence : Evidence
        What it was made from.
    folder : Path
        An existing folder; gets ``posterior.png``, ``curves.png`` (side by side, one per agent) and ``tools.png``.
    """
    from matplotlib.figure import Figure

    pictures = {name: Figure(layout="constrained") for name in ("posterior", "curves", "tools")}
    plot_posterior(est, k=3, ax=pictures["posterior"].subplots())
    for agent, ax in zip(est.agents, pictures["curves"].subplots(1, len(est.agents), squeeze=False)[0], strict=True):
        plot_pass_curves(est, agent=agent, ax=ax)
    bars = plot_tools(evidence, ax=pictures["tools"].subplots())
    sizes = {
        "posterior": _posterior_size(len(est.agents)),
        "curves": (CURVES_SIZE[0] * len(est.agents), CURVES_SIZE[1]),
        "tools": _tools_size(len(bars.get_xticks())),
    }
    for name, figure in pictures.items():
        figure.set_size_inches(sizes[name])
        figure.savefig(folder / f"{name}.png", dpi=150)


MARKERS = "osD^vPX*"


def plot_plan(plan: Plan, *, ax: Axes | None = None) -> Axes:
    """What money buys: mean width of the interval (or the probability that is wanted) against cost, by trials per task.

    Parameters
    ----------
    plan : Plan
        From `agentic_bayes.plan`.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    check_type("plan", plan, Plan, "plan() makes one")
    ax = _axes(ax, CURVES_SIZE)
    value = "width" if plan.goal == "width" else plan.goal
    options = sorted({one.trials for one in plan.designs})
    for i, trials in enumerate(options):
        own = [one for one in plan.designs if one.trials == trials]
        ax.plot(
            [one.cost for one in own],
            [getattr(one, value) for one in own],
            color=COLOURS[i % len(COLOURS)],
            marker=MARKERS[i % len(MARKERS)],
            linewidth=2,
            label=f"{plural(trials, 'trial')} per task",
        )
    if plan.target is not None:
        ax.axhline(plan.target, color=GREY, linestyle="--", linewidth=1.5, label=f"wanted: {plan.target:g}")
    if plan.budget is not None:
        ax.axvline(plan.budget, color=GREY, linestyle=":", linewidth=1.5, label=f"budget: {plan.budget:,.6g}")
    if plan.best is not None:
        place = plan.best.cost, getattr(plan.best, value)
        label = f"recommended: {plan.best.tasks:,} × {plan.best.trials}"
        ax.plot(*place, "o", markersize=16, markerfacecolor="none", markeredgecolor="black", linestyle="", label=label)
    _quiet(ax)
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda cost, _: f"{cost:,.6g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel("cost", fontsize=TEXT + 1)
    name = metric_name(plan.metric, plan.k)
    words = {
        "width": f"mean width of the {plan.ci_prob * 100:.4g} % interval",
        "conclusive": "probability that the gate passes or fails",
        "detected": "probability that the agents are told apart",
    }
    ax.set_ylabel(words[plan.goal], fontsize=TEXT + 1)
    ax.set_ylim(bottom=0)
    _title_and_legend(ax, f"{name}: what more data buy", ncols=3)
    return ax


def save_plan_picture(plan: Plan, path: Path) -> None:
    """`plot_plan` as a picture file, without a display and without pyplot's state.

    Parameters
    ----------
    plan : Plan
        From `agentic_bayes.plan`.
    path : Path
        Ends in a format that matplotlib writes, such as ``.png`` or ``.svg``.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=CURVES_SIZE, layout="constrained")
    plot_plan(plan, ax=figure.subplots())
    figure.savefig(path, dpi=150)


def plot_judge_calibration(result: JudgeCalibration, *, ax: Axes | None = None) -> Axes:
    """Share of answers that people passed against the judge's score, with Wilson intervals.

    Parameters
    ----------
    result : JudgeCalibration
        What `calibrate_judge` gave.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        One point per tenth of the scores, with its number of labels; the threshold; and, dashed, where a score would be
        the share of right answers, which a good judge need not reach.

    Raises
    ------
    InvalidArgument
        If `result` is something else.
    EvidenceError
        If no labelled answer has a score.
    """
    check_type("result", result, JudgeCalibration, "calibrate_judge() makes one")
    table = result.reliability()
    if table.empty:
        raise EvidenceError("no labelled answer has a score at every turn: there is nothing to draw")
    ax = _axes(ax, JUDGE_SIZE)
    share = table["human_pass"]
    ax.plot([0, 1], [0, 1], linestyle="--", linewidth=1, color=GREY, label="score = share")
    ax.axvline(result.threshold, linewidth=1.5, color=COLOURS[1], label=f"threshold {result.threshold:g}")
    ax.errorbar(
        table["mean_score"],
        share,
        # rounding may leave an end on the wrong side by the last bit
        yerr=np.clip([share - table["lower"], table["upper"] - share], 0, None),
        fmt="o",
        color=COLOURS[0],
        capsize=3,
        label=f"people's labels, {100 * result.ci_prob:g} % intervals",
    )
    for row in table.itertuples():
        ax.annotate(
            f"{row.labels:,}",
            (row.mean_score, row.human_pass),
            xytext=(6, -4),
            textcoords="offset points",
            fontsize=TEXT - 2,
            color=GREY,
        )
    _quiet(ax)
    ax.set(xlim=(-0.03, 1.06), ylim=(-0.03, 1.06))
    of_attempts = result.unit == "attempt"
    ax.set_xlabel("score of the judge" + (", of an attempt's worst turn" if of_attempts else ""), fontsize=TEXT + 1)
    ax.set_ylabel("share that people passed", fontsize=TEXT + 1)
    sensitivity, specificity = (format_number(rate.value, 2) for rate in (result.sensitivity, result.specificity))
    rates = f"sensitivity {sensitivity}, specificity {specificity}"
    _title_and_legend(ax, f"Judge and people, {plural(result.labels, 'label')}: {rates}", ncols=3)
    return ax
