"""Pictures, with matplotlib, the same on both ArviZ stacks. Every function takes `ax` (or makes one) and returns it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from agentic_bayes.errors import EvidenceError, InvalidArgument
from agentic_bayes.estimation.estimate import METRICS, Estimate
from agentic_bayes.estimation.posterior import Estimand, interval_of_draws
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.formatting import Metric, format_interval, format_number, metric_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_pass_curves", "plot_posterior", "plot_tools"]

# Okabe and Ito's colours, told apart by colour-blind readers too
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GREY = "#666666"
DIMENSIONS = ("selection", "parameters", "sequence", "utilization")
HATCHES = ("", "//", "..", "xx")
MOST_BARS = 40
WORDS: dict[Estimand, str] = {
    "population": "on a new task of this kind",
    "tasks": "mean over the observed tasks",
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
    if ref_val is not None and not 0 <= ref_val <= 1:
        raise InvalidArgument(f"ref_val must be a number in [0, 1], got {ref_val!r}")
    if rope is not None and not 0 <= rope[0] < rope[1] <= 1:
        raise InvalidArgument(f"rope must be (lower, upper) with 0 ≤ lower < upper ≤ 1, got {rope!r}")
    chosen = est.agents if agents is None else tuple(agents)
    drawn = {agent: est.metric_draws(agent, metric=metric, k=k, estimand=estimand) for agent in chosen}
    ax = _axes(ax, (7, 4))
    if rope is not None:
        ax.axvspan(*rope, color=GREY, alpha=0.15, linewidth=0, label=f"region {format_interval(*rope, digits=2)}")
    curves = {agent: density(draws) for agent, draws in drawn.items()}
    top = max(float(y.max()) for _, y in curves.values()) or 1.0
    for i, (agent, draws) in enumerate(drawn.items()):
        colour = COLOURS[i % len(COLOURS)]
        x, y = curves[agent]
        lower, upper = interval_of_draws(draws, est.settings.ci_prob, est.settings.ci_kind)
        text = f"{agent}: {format_number(float(draws.mean()))} {format_interval(lower, upper)}"
        if ref_val is not None:
            text += f", P(> {ref_val:g}) = {format_number(float(np.mean(draws > ref_val)))}"
        ax.plot(x, y, color=colour, linewidth=2, label=text)
        ax.fill_between(x, y, color=colour, alpha=0.15, linewidth=0)
        height = -top * 0.05 * (i + 1)  # intervals hang below the densities, one line each
        ax.plot([lower, upper], [height, height], color=colour, linewidth=4, solid_capstyle="butt")
        ax.plot(draws.mean(), height, "o", color=colour, markersize=7, markeredgecolor="white")
    if ref_val is not None:
        ax.axvline(ref_val, color=GREY, linestyle="--", linewidth=1.2)
    _quiet(ax)
    ax.grid(visible=False)
    ax.spines["left"].set_visible(False)
    ax.set(yticks=[], ylim=(-top * 0.05 * (len(drawn) + 1.2), top * 1.08))
    ax.set_xlabel(f"{metric_name(metric, k)}: probability {WORDS[estimand]}")
    ax.set_title(f"Posterior of {metric_name(metric, k)} ({est.settings.method}, {_interval_words(est)})", fontsize=11)
    # below the picture, so that no curve is hidden
    ax.legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.2))
    return ax


def _interval_words(est: Estimate) -> str:
    kind = "equal-tailed" if est.settings.ci_kind == "eti" else "highest-density"
    return f"{est.settings.ci_prob * 100:.4g} % {kind} interval"


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
    """
    ks = tuple(range(1, max(5, max(est.settings.k)) + 1)) if k is None else tuple(k)
    if estimand not in est.posterior.estimands:
        estimand = "tasks"
    name = est.agents[est.agent_index(agent)]
    wide = est.with_k(ks)
    frame = wide.summary(tasks=False)
    frame = frame[(frame["agent"] == name) & (frame["estimand"] == estimand)]
    plain = wide.baseline()
    plain = plain[(plain["agent"] == name) & (plain["estimand"] == estimand) & (plain["estimator"] == "plugin")]
    ax = _axes(ax, (7, 4.2))
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
    ax.set_xlabel("k (attempts)")
    ax.set_ylabel(f"probability {WORDS[estimand]}")
    ax.set_title(f"{name}: pass@k and pass^k, {_interval_words(est)}", fontsize=11)
    ax.legend(frameon=False, fontsize=9, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.16))
    return ax


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
        With more than 40 conversations, one group of bars per agent instead.

    Raises
    ------
    EvidenceError
        If no interaction has a tool verdict.
    """
    frame = evidence.to_pandas()
    if agent is not None:
        frame = frame[frame["agent"] == agent]
    frame = frame[frame["tool_overall"].notna()]
    if frame.empty:
        raise EvidenceError("no interaction has a tool verdict: ground_truth_agentic was given nowhere")
    groups = frame.groupby(["agent", "session_id"], sort=False)[list(DIMENSIONS)].mean()
    single = frame["agent"].nunique() == 1
    labels = [session if single else f"{name}\n{session}" for name, session in groups.index]
    if len(groups) > MOST_BARS:
        groups = frame.groupby("agent", sort=False)[list(DIMENSIONS)].mean()
        labels = list(groups.index)
    ax = _axes(ax, (max(6.0, 1.2 * len(groups) + 2), 4.2))
    width = 0.2
    for i, name in enumerate(DIMENSIONS):
        places = np.arange(len(groups)) + (i - 1.5) * width
        heights = groups[name].to_numpy(dtype=float)
        ax.bar(
            *(places, np.nan_to_num(heights)),
            width * 0.92,
            color=COLOURS[i],
            hatch=HATCHES[i],
            edgecolor="white",
            label=name,
        )
        for place, height in zip(places, heights, strict=True):
            text = "n/a" if np.isnan(height) else f"{height:.2f}"
            ax.text(place, np.nan_to_num(height) + 0.01, text, ha="center", va="bottom", fontsize=7, color=GREY)
    _quiet(ax)
    rotation = 0 if max(map(len, labels)) * len(labels) < 90 else 30
    ax.set_xticks(range(len(groups)), labels, rotation=rotation, ha="right" if rotation else "center", fontsize=9)
    ax.set(ylim=(0, 1.1))
    ax.set_ylabel("mean score of the interactions with a tool verdict")
    ax.set_title("Tool correctness by dimension", fontsize=11)
    ax.legend(
        frameon=False,
        fontsize=9,
        ncols=4,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.12 if not rotation else -0.3),
    )
    return ax
