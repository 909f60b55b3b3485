"""The difference of two agents, or of one and a fixed value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentic_bayes.checks import check_type
from agentic_bayes.decisions.compare import Comparison
from agentic_bayes.decisions.decision import rope_words
from agentic_bayes.formatting import format_number, format_share, interval_words, signed
from agentic_bayes.reports.plots import style
from agentic_bayes.reports.plots.posterior import density

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_comparison"]

COMPARISON_SIZE = (8.0, 5.4)


def plot_comparison(comparison: Comparison, *, ax: Axes | None = None) -> Axes:
    """Posterior of a difference, with both tails shaded: how probably one is better, and by how much.

    Parameters
    ----------
    comparison : Comparison
        From `compare`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on.

    Returns
    -------
    matplotlib.axes.Axes
        The share of the area above 0 is the probability of being better; the grey band is the region of practical
        equivalence; mean and interval are drawn below.

    Raises
    ------
    InvalidArgument
        If `comparison` is not a Comparison.
    """
    check_type("comparison", comparison, Comparison, "compare() makes one")
    one = comparison
    possible = (-1.0, 1.0) if isinstance(one.baseline, str) else (-one.baseline, 1.0 - one.baseline)
    x, y = density(one.draws, 600, within=possible)
    top = float(y.max()) or 1.0
    agent, higher, lower = style.shortened(one.agent), "higher", "lower"
    if isinstance(one.baseline, str):
        agent, baseline = style.distinct_names([one.agent, one.baseline])
    else:
        baseline = format_number(one.baseline)
        higher, lower = f"above {baseline}", f"below {baseline}"
    ax = style.axes_for(ax, COMPARISON_SIZE)
    entries: list[style.LegendEntry] = []
    tails = (
        (x >= 0, "#8c8c8c", "", f"P({agent} {higher}): {format_share(one.prob_better)}"),
        (x <= 0, "white", style.HATCHES[1], f"P({agent} {lower}): {format_share(1 - one.prob_better)}"),
    )
    look: dict[str, Any] = {"edgecolor": style.GREY, "linewidth": 0}  # no agent's colour: a difference is of two
    for where, colour, hatch, words in tails:
        tail = ax.fill_between(x, y, where=where, facecolor=colour, hatch=hatch, **look)
        entries.append((tail, words))
    ax.plot(x, y, color="black", linewidth=1.5)
    if one.rope[0] < one.rope[1]:
        band = ax.axvspan(*one.rope, color=style.GREY, alpha=0.22, linewidth=0, zorder=0)
        entries.append((band, f"P(within {rope_words(one.rope)}): {format_share(one.prob_rope)}"))
    ax.axvline(0, color=style.GREY, linestyle="--", linewidth=1.5)
    height = -top * 0.07
    ax.plot([one.lower, one.upper], [height, height], color="black", linewidth=4, solid_capstyle="butt")
    (mark,) = ax.plot(one.mean, height, "o", color="black", markersize=8, markeredgecolor="white")
    interval = f"{format_number(one.lower)} to {format_number(one.upper)}"
    entries.append((mark, signed(f"difference {format_number(one.mean)}, {interval}")))
    sides = (f"{baseline} better", f"{agent} better") if isinstance(one.baseline, str) else (lower, higher)
    look = {"transform": ax.transAxes, "color": style.GREY}
    look["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
    style.write(ax, 0.0, 0.97, f"← {sides[0]}", ha="left", **look)
    style.write(ax, 1.0, 0.97, f"{sides[1]} →", ha="right", **look)
    style.quiet(ax, grid="")
    ax.spines["left"].set_visible(False)
    ax.set(yticks=[], ylim=(-top * 0.14, top * 1.15))
    # 0 is what everything is compared with: it is always in sight
    low, high = min(float(x[0]), one.rope[0], 0.0), max(float(x[-1]), one.rope[1], 0.0)
    ax.set_xlim(low - 0.04 * (high - low), high + 0.04 * (high - low))
    style.name_axes(ax, x=f"difference of {one.metric}, {style.WORDS[one.estimand]}")
    title = f"{one.metric}, {agent} − {baseline}: {one.verdict}"
    style.heading(ax, title, below=_basis(one), entries=entries, ncols=2)
    return ax


def _basis(one: Comparison) -> str:
    pairing = f", pairing {one.pairing}" if isinstance(one.baseline, str) else ""
    flags = f" ({', '.join(one.flags)})" if one.flags else ""
    left_out = f"\n{one.n_shared_tasks:,} shared tasks, {one.n_left_out:,} left out" if one.n_left_out else ""
    return (
        f"{one.method}{pairing}, {interval_words(one.ci_prob, one.ci_kind)}; "
        f"unit {one.unit}, indicator {style.legible(one.indicator)}{flags}{left_out}"
    )
