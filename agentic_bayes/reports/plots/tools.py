"""Tools by dimension, and a judge compared with people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from agentic_bayes.checks import check_choice, check_type
from agentic_bayes.errors import EvidenceError
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.formatting import exact_percent, format_number, plural
from agentic_bayes.judges.calibration import JudgeCalibration
from agentic_bayes.reports.plots import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["plot_judge_calibration", "plot_tools"]

DIMENSIONS = ("selection", "parameters", "sequence", "utilization")
MOST_GROUPS = 20  # of bars; more would be too narrow to tell apart
JUDGE_SIZE = (8.0, 5.8)


def tools_size(groups: int, *, turned: bool) -> tuple[float, float]:
    """Inches that `plot_tools` takes for so many groups of bars, more where their names are turned."""
    return min(16.0, max(8.0, 2.0 * groups + 1.5)), 6.8 if turned else 5.0


def plot_tools(evidence: Evidence, *, agent: str | None = None, ax: Axes | None = None) -> Axes:
    """Four bars per conversation: mean selection, parameters, sequence and utilization of its tool calls.

    Parameters
    ----------
    evidence : Evidence
        Scored interactions.
    agent : str, optional
        Agent whose conversations are drawn; all by default.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on.

    Returns
    -------
    matplotlib.axes.Axes
        With more than 20 conversations, one group of bars per agent instead; of more than 20 agents, the 20 with the
        lowest scores. "n/a" is a dimension that was never scored.

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
    groups = frame.groupby(["agent", "session_id"], sort=False)[list(DIMENSIONS)].mean()
    below = f"{plural(len(groups), 'conversation')}, {plural(len(frame), 'interaction')} with a tool verdict"
    if len(groups) <= MOST_GROUPS:
        agents, sessions = (_briefs(groups.index.get_level_values(level)) for level in (0, 1))
        several = len(agents) > 1
        labels = [f"{agents[one]}\n{sessions[own]}" if several else sessions[own] for one, own in groups.index]
    else:
        groups = frame.groupby("agent", sort=False)[list(DIMENSIONS)].mean()
        if len(groups) > MOST_GROUPS:
            below += f"; of {len(groups):,} agents the {MOST_GROUPS} with the lowest scores"
            worst = groups.mean(axis=1).sort_values(kind="stable").index[:MOST_GROUPS]
            groups = groups[groups.index.isin(worst)]
        labels = style.distinct_names(list(groups.index))
    line = max(style.letters(part) for label in labels for part in label.split("\n"))
    width, _ = tools_size(len(groups), turned=False)
    turned = line * 0.09 * len(groups) > width - 1.5  # a letter is about .09 inches wide
    ax = style.axes_for(ax, tools_size(len(groups), turned=turned))
    entries = _bars(ax, groups)
    style.quiet(ax)
    look: dict[str, Any] = {"rotation": 45, "ha": "right"} if turned else {"rotation": 0, "ha": "center"}
    ax.set_xticks(range(len(groups)), labels, **look, **style.LITERAL)
    ax.set(ylim=(0, 1.12), yticks=np.linspace(0, 1, 6))
    style.name_axes(ax, y="mean score, 0 to 1")
    of = "" if agent is None else f": {style.shortened(agent, 40)}"
    style.heading(ax, f"Tool correctness by dimension{of}", below=below, entries=entries, ncols=4)
    return ax


def _briefs(names: Iterable[str]) -> dict[str, str]:
    unique = list(dict.fromkeys(names))
    return dict(zip(unique, style.distinct_names(unique), strict=True))


def _bars(ax: Axes, groups: pd.DataFrame) -> list[style.LegendEntry]:
    """Four bars per row of `groups`; a dimension that was never scored is "n/a", not a bar of height 0."""
    width = 0.2
    small = len(groups) > 8
    look: dict[str, Any] = {"fontsize": style.TEXT - (4 if small else 2), "rotation": 90 if small else 0}
    entries: list[style.LegendEntry] = []
    for i, name in enumerate(DIMENSIONS):
        places = np.arange(len(groups)) + (i - 1.5) * width
        heights = groups[name].to_numpy(dtype=float)
        bars = ax.bar(places, heights, width * 0.92, color=style.COLOURS[i], hatch=style.HATCHES[i], edgecolor="white")
        entries.append((bars, name))
        for place, height in zip(places, heights, strict=True):
            text = "n/a" if np.isnan(height) else f"{height:.2f}"
            ax.text(place, np.nan_to_num(height) + 0.01, text, ha="center", va="bottom", color=style.GREY, **look)
    return entries


def plot_judge_calibration(result: JudgeCalibration, *, ax: Axes | None = None) -> Axes:
    """Share of answers that people passed against the judge's score, with Wilson intervals.

    Parameters
    ----------
    result : JudgeCalibration
        What `calibrate_judge` gave.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on.

    Returns
    -------
    matplotlib.axes.Axes
        One point per tenth of the scores, with its number of labels; the threshold; and, dashed, where a score would be
        the share of right answers, which a good judge need not reach.

    Raises
    ------
    InvalidArgument
        If `result` is not a JudgeCalibration.
    EvidenceError
        If no labelled answer has a score.
    """
    check_type("result", result, JudgeCalibration, "calibrate_judge() makes one")
    table = result.reliability()
    if table.empty:
        raise EvidenceError("no labelled answer has a score at every turn: there is nothing to draw")
    ax = style.axes_for(ax, JUDGE_SIZE)
    share = table["human_pass"]
    (diagonal,) = ax.plot([0, 1], [0, 1], linestyle="--", linewidth=1, color=style.GREY)
    threshold = ax.axvline(result.threshold, linewidth=1.5, linestyle="-.", color=style.COLOURS[1])
    points = ax.errorbar(
        table["mean_score"],
        share,
        # rounding may leave an end on the wrong side by the last bit
        yerr=np.clip([share - table["lower"], table["upper"] - share], 0, None),
        fmt="o",
        markersize=7,
        color=style.COLOURS[0],
        capsize=3,
    )
    for row in table.to_dict("records"):
        at = row["mean_score"], row["human_pass"]
        style.annotate(ax, f"{row['labels']:,}", at, (6, -4), color=style.GREY)
    style.quiet(ax)
    ax.set(xlim=(-0.03, 1.06), ylim=(-0.03, 1.06))
    x = "score of the judge" + (", of an attempt's worst turn" if result.unit == "attempt" else "")
    style.name_axes(ax, x=x, y="share that people passed (with the number of labels)")
    sensitivity, specificity = (
        f"{format_number(rate.value, 2)} ({rate.successes}/{rate.total})"
        for rate in (result.sensitivity, result.specificity)
    )
    entries: list[style.LegendEntry] = [
        (points, f"people's labels, {exact_percent(result.ci_prob)} Wilson intervals"),
        (threshold, f"threshold {result.threshold:g}"),
        (diagonal, "score = share"),
    ]
    below = f"{plural(result.labels, 'label')}; sensitivity {sensitivity}, specificity {specificity}"
    style.heading(ax, f"Judge and people: {style.shortened(result.judge, 40)}", below=below, entries=entries, ncols=3)
    return ax
