"""The pictures of a page as geometry: curves over k, intervals in tables, a difference against zero."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentic_bayes.decisions.compare import Comparison
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.formatting import Metric, format_interval, format_number, format_points, format_points_range

MOST_K = 10  # attempts up to which curves are drawn, unless more were asked for
WIDE_RANGE = 20  # from here on the axis of k is logarithmic
LEFT, RIGHT, TOP, BOTTOM = 40.0, 12.0, 12.0, 34.0
WIDTH, HEIGHT = 460.0, 280.0
DIGIT = 8.0  # width of a digit of a label
BAR = 100.0  # width of an interval in a table
CURVES = ("pass@k", "pass^k")
MOST_BANDS = 2  # agents whose curves all have a band and a dashed curve


@dataclass(frozen=True, slots=True)
class IntervalBar:
    """An interval and its middle, as positions between 0 and 100."""

    lower: float
    middle: float
    upper: float


@dataclass(frozen=True, slots=True)
class DifferenceBar:
    """One line of the picture of a difference."""

    metric: Metric
    bar: IntervalBar
    points: str
    interval: str
    ahead: str | float | None
    """Whom the verdict finds ahead; None where it finds nobody."""


@dataclass(frozen=True, slots=True)
class DifferencePicture:
    """A difference at several numbers of attempts, with 0 in the middle."""

    bars: tuple[DifferenceBar, ...]
    rope: tuple[float, float]
    """Where differences that are too small to matter begin, and how far they go."""
    low: str
    high: str
    """The ends of the axis, in points."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One agent in a panel: SVG paths, and where its points are."""

    agent: int
    line: str
    band: str
    plugin: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class CurvePanel:
    """One metric over k."""

    metric: str
    curves: tuple[Curve, ...]
    x_ticks: tuple[tuple[float, str], ...]
    """Where each k is, and its label; empty where there is no room for one."""
    y_ticks: tuple[tuple[float, str], ...]
    beyond: float | None
    """Where k exceeds every number of trials, as a position; None where it never does."""
    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT
    right: float = WIDTH - RIGHT
    top: float = TOP
    bottom: float = HEIGHT - BOTTOM


def attempts(est: Estimate, k: int) -> tuple[int, ...]:
    """The k of the curves: 1, 2, … and those that were asked for; before a large one also 10, 20, 50, 100, …."""
    most_trials = int(est.counts.trials.max(initial=1))
    asked = {*est.settings.k, k}
    end = max(5, min(MOST_K, most_trials), *(k for k in asked if k <= MOST_K))
    between = {step * 10**power for power in range(1, 7) for step in (1, 2, 5)}
    return tuple(sorted({*range(1, end + 1), *asked, *(k for k in between if end < k < max(asked))}))


def interval_bar(mean: float, lower: float, upper: float) -> IntervalBar | None:
    """An interval of probabilities for a table; None where there is none."""
    if math.isnan(lower) or math.isnan(upper) or math.isnan(mean):
        return None
    return IntervalBar(*(round(BAR * min(max(value, 0.0), 1.0), 2) for value in (lower, mean, upper)))


def difference_picture(comparisons: Sequence[Comparison]) -> DifferencePicture:
    """Intervals of differences on one axis that has 0 in its middle."""
    furthest = max(abs(end) for one in comparisons for end in (one.lower, one.upper, *one.rope))
    edge = math.ceil(furthest * 10 + 1e-9) / 10

    def place(value: float) -> float:
        return round(BAR * (value + edge) / (2 * edge), 2)

    ahead = {"better": comparisons[0].agent, "worse": comparisons[0].baseline}
    bars = tuple(
        DifferenceBar(
            metric=Metric(one.metric),
            bar=IntervalBar(place(one.lower), place(one.mean), place(one.upper)),
            points=format_points(one.mean),
            interval=format_points_range(one.lower, one.upper),
            ahead=ahead.get(one.verdict),
        )
        for one in comparisons
    )
    low, high = map(place, comparisons[0].rope)
    return DifferencePicture(bars, (low, round(high - low, 2)), format_points(-edge), format_points(edge))


def curve_panels(est: Estimate, agents: Sequence[int], own: Any, plugin: Any) -> list[CurvePanel]:
    """pass@k and pass^k over k, agent by agent, the best first; of more than two only the best has a band."""
    ks = est.settings.k
    most = int(est.counts.trials.max(initial=0))
    place = _k_axis(ks)
    beyond = None
    if most < ks[-1]:
        inside = [k for k in ks if k <= most]
        beyond = LEFT if not inside else round((place(inside[-1]) + place(ks[len(inside)])) / 2, 1)
    ticks = _labelled([round(place(k), 1) for k in ks], ks)
    heights = tuple((round(_height(value), 1), f"{value:.1f}") for value in (0, 0.2, 0.4, 0.6, 0.8, 1))
    panels = []
    for metric in CURVES:
        curves = tuple(
            _curve(
                i,
                [place(k) for k in ks],
                *(_values(frame, est.agents[i], metric) for frame in (own, plugin)),
                plain=len(agents) > MOST_BANDS,
                banded=len(agents) <= MOST_BANDS or i == agents[0],
            )
            for i in agents
        )
        panels.append(CurvePanel(metric, curves, ticks, heights, beyond))
    return panels


def curve_numbers(est: Estimate, agents: Sequence[int], own: Any, plugin: Any) -> list[dict[str, Any]]:
    """The texts of the slider at every k."""
    texts = {}
    for metric in CURVES:
        for agent in (names := [est.agents[i] for i in agents]):
            texts[agent, metric] = [
                [
                    row["metric"],
                    format_number(row["mean"]),
                    format_interval(row["lower"], row["upper"]),
                    format_number(other["mean"]),
                    row["flags"],
                ]
                for row, other in zip(_values(own, agent, metric), _values(plugin, agent, metric), strict=True)
            ]
    return [
        {"k": k, "rows": [texts[agent, metric][i] for agent in names for metric in CURVES]}
        for i, k in enumerate(est.settings.k)
    ]


def _values(frame: Any, agent: str, metric: str) -> list[dict[str, Any]]:
    """The rows of one curve, by k."""
    rows = frame[(frame["agent"] == agent) & frame["metric"].str.startswith(metric[:-1])].sort_values("k")
    return list(rows[["metric", "mean", "lower", "upper", "flags"]].to_dict("records"))


def _k_axis(ks: Sequence[int]) -> Any:
    """From k to its position."""
    scale = math.log if ks[-1] > WIDE_RANGE else float
    first, last = scale(ks[0]), scale(ks[-1])
    # half a step of room, so that the first and the last mark lie inside
    room = 14.0
    length = WIDTH - LEFT - RIGHT - 2 * room
    return lambda k: LEFT + room + length * ((scale(k) - first) / (last - first) if last > first else 0.5)


def _labelled(places: Sequence[float], ks: Sequence[int]) -> tuple[tuple[float, str], ...]:
    """Positions and labels, the last one always, others where they do not run into each other."""
    room = [DIGIT * (len(str(k)) + 1) for k in ks]
    labels = [(places[-1], str(ks[-1]))]
    free = places[-1] - room[-1]
    end = -math.inf
    for x, k, width in list(zip(places, ks, room, strict=True))[:-1]:
        fits = x - width / 2 >= end and x + width / 2 <= free
        labels.insert(-1, (x, str(k) if fits else ""))
        end = x + width / 2 if fits else end
    return tuple(labels)


def _height(value: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value)


def _curve(
    agent: int,
    places: Sequence[float],
    own: Sequence[dict[str, Any]],
    plugin: Sequence[dict[str, Any]],
    *,
    plain: bool,
    banded: bool,
) -> Curve:
    points = _points(places, own, "mean")
    upper, lower = _points(places, own, "upper"), _points(places, own, "lower")
    band = _path([*upper, *reversed(lower)]) + "Z" if banded and len(upper) > 1 else ""
    return Curve(
        agent=agent,
        line=_path(points),
        band=band,
        plugin="" if plain else _path(_points(places, plugin, "mean")),
        points=tuple(points),
    )


def _points(places: Sequence[float], rows: Sequence[dict[str, Any]], name: str) -> list[tuple[float, float]]:
    """Positions of the values that are defined."""
    return [
        (round(x, 1), round(_height(row[name]), 1))
        for x, row in zip(places, rows, strict=True)
        if not math.isnan(row[name])
    ]


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points) if points else ""
