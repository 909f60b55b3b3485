"""Cost or latency against reliability, where recorded: which agents are beaten on both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.formatting import brief_names, format_percent, format_percent_range, plain_text
from agentic_bayes.records.spent import Spent
from agentic_bayes.reports.html.opening import rate_words
from agentic_bayes.reports.html.question import ReportQuestion
from agentic_bayes.reports.html.text import LONGEST_BESIDE
from agentic_bayes.reports.html.trials import ReportTrial

FEWEST = 2  # agents between which there is a choice
ENOUGH = 0.5  # share of an agent's conversations from which a mean stands for all of them
WORDS: dict[Spent, str] = {"cost": "cost per conversation", "seconds": "seconds per conversation"}
LEFT, RIGHT, TOP, BOTTOM, WIDTH, HEIGHT = 48.0, 20.0, 10.0, 40.0, 460.0, 280.0
TICKS = 5
MOST_NAMED = 25  # agents of which not only those on the frontier are named
LETTER, LINE = 6.6, 14.0  # width of a letter of a label, and its height


@dataclass(frozen=True, slots=True)
class FrontierLabel:
    """A name above a mark, on the side where no agent can be, or on the other if it would leave the picture."""

    text: str
    x: float
    y: float
    anchor: str


@dataclass(frozen=True, slots=True)
class FrontierAgent:
    """One agent: what it spent on average, and its rate."""

    agent: int
    mean: float
    spent: str
    recorded: str
    """In how many of its conversations it was recorded."""
    percent: str
    interval: str
    best: bool
    """Whether no other agent spends as little and has as high a rate."""
    x: float
    y: tuple[float, float, float]
    """Positions of the lower end, the mean and the upper end."""
    label: FrontierLabel | None = None
    """The name, if there is room."""


@dataclass(frozen=True, slots=True)
class Frontier:
    """Agents by what they spend and how reliable they are."""

    what: str
    rate: str
    agents: tuple[FrontierAgent, ...]
    """The cheapest first."""
    unknown: tuple[int, ...]
    """Agents of which nothing was recorded, or too little."""
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    line: str
    """SVG path: the highest rate that each expense buys."""
    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT
    right: float = WIDTH - RIGHT
    top: float = TOP
    bottom: float = HEIGHT - BOTTOM


def frontiers(est: Estimate, asked: ReportQuestion, trials: Sequence[ReportTrial]) -> list[Frontier]:
    """Of cost and of seconds, each only where two agents or more have recorded values."""
    made = [_frontier(est, asked, trials, what) for what in WORDS]
    return [one for one in made if one is not None]


def _frontier(est: Estimate, asked: ReportQuestion, trials: Sequence[ReportTrial], what: Spent) -> Frontier | None:
    values: dict[str, list[float]] = {}
    counted: dict[str, int] = {}
    for one in trials:
        counted[one.agent] = counted.get(one.agent, 0) + 1
        value = one.spent.get(what)
        if value is not None:
            values.setdefault(one.agent, []).append(value)
    values = {agent: own for agent, own in values.items() if len(own) >= ENOUGH * counted[agent]}
    s = est.settings
    known = []
    for index, agent in enumerate(est.agents):
        stats = est.posterior.stats(index, asked.estimand, asked.metric, s.ci_prob, s.ci_kind)
        if agent in values and not math.isnan(stats.mean):
            known.append((sum(values[agent]) / len(values[agent]), index, stats))
    if len(known) < FEWEST:
        return None
    known.sort(key=lambda one: (one[0], -float(one[2].mean)))
    ticks = _ticks(known[-1][0])
    highest, agents, corners = -1.0, list[FrontierAgent](), list[str]()
    for mean, index, stats in known:
        rate = float(stats.mean)
        best, highest = rate > highest, max(rate, highest)
        ends = [rate if math.isnan(end) else min(max(end, 0.0), 1.0) for end in (stats.lower, rate, stats.upper)]
        name = est.agents[index]
        agents.append(
            FrontierAgent(
                agent=index,
                mean=mean,
                spent=_amount(mean),
                recorded=f"{len(values[name]):,} of {counted[name]:,}",
                percent=format_percent(rate),
                interval=format_percent_range(stats.lower, stats.upper),
                best=best,
                x=_place(mean, ticks),
                y=(_height(ends[0]), _height(ends[1]), _height(ends[2])),
            )
        )
        if best:
            corners.append(
                f"H{agents[-1].x:g}V{agents[-1].y[1]:g}" if corners else f"M{agents[-1].x:g} {agents[-1].y[1]:g}"
            )
    unknown = tuple(i for i, agent in enumerate(est.agents) if agent not in values)
    x_ticks = tuple((_place(tick, ticks), _amount(tick)) for tick in ticks)
    y_ticks = tuple((_height(share), f"{share:.0%}".replace("%", " %")) for share in (0, 0.25, 0.5, 0.75, 1))
    line = f"{''.join(corners)}H{WIDTH - RIGHT:g}"
    return Frontier(WORDS[what], rate_words(asked.metric), _labelled(est, agents), unknown, x_ticks, y_ticks, line)


def _labelled(est: Estimate, agents: Sequence[FrontierAgent]) -> tuple[FrontierAgent, ...]:
    """The agents with names as far as none lies on another or on a mark: those on the frontier, the best first; then
    the others where they are not too many.
    """
    briefs = brief_names([plain_text(agent) for agent in est.agents], LONGEST_BESIDE)
    taken = [(own.x - 4, own.x + 4, own.y[1]) for own in agents]  # left and right end, and height
    labelled = list(agents)
    named = [i for i, own in enumerate(agents) if own.best or len(agents) <= MOST_NAMED]
    for i in sorted(named, key=lambda i: (not agents[i].best, -i)):
        own = agents[i]
        text, y = briefs[own.agent], max(own.y[1] - 9, LINE)
        width = LETTER * len(text)
        for left, x, anchor in ((own.x - 7 - width, own.x - 7, "end"), (own.x + 7, own.x + 7, "start")):
            right = left + width
            inside = left >= LEFT and right <= WIDTH
            free = all(abs(y - 4 - height) >= LINE or right <= start or end <= left for start, end, height in taken)
            if inside and free:
                taken.append((left, right, y - 4))
                labelled[i] = replace(own, label=FrontierLabel(text, round(x, 1), round(y, 1), anchor))
                break
    return tuple(labelled)


def _place(value: float, ticks: Sequence[float]) -> float:
    return round(LEFT + (WIDTH - LEFT - RIGHT) * value / ticks[-1], 1)


def _height(share: float) -> float:
    return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - share), 1)


def _ticks(most: float) -> list[float]:
    """From 0 to a round number that is not below the largest value."""
    if most <= 0:
        return [0.0, 1.0]
    power = 10.0 ** math.floor(math.log10(most / TICKS))
    step = next(step for step in (power, 2 * power, 5 * power, 10 * power) if step * TICKS >= most)
    return [step * i for i in range(math.ceil(most / step - 1e-9) + 1)]


def _amount(value: float) -> str:
    """Three digits, and thousands apart."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
