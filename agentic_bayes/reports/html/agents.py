"""Many agents at a glance: the ranking as dots with intervals, and agents × tasks as a heat map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from agentic_bayes.decisions.rank import Ranking
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.formatting import Metric, brief_names, format_percent, format_percent_range, plain_text
from agentic_bayes.numerics import Array
from agentic_bayes.reports.html.figures import IntervalBar, interval_bar
from agentic_bayes.reports.html.opening import standing_words, success_words
from agentic_bayes.reports.html.question import ReportQuestion
from agentic_bayes.reports.html.text import LONGEST_BESIDE
from agentic_bayes.result_table import Table

FEWEST = 3  # agents from which there is something to rank and to map
MOST_RANKED = 25  # agents of a ranking that are shown unfolded
MOST_COLUMNS = 120  # of a heat map; more tasks share columns
MOST_NAMED = 40  # agents whose rows of a heat map are high enough for a name
MOST_LABELLED = 48  # tasks whose columns are wide enough for one
NAMED_HEIGHT, LOW_HEIGHT = 20, 6  # pixels of a row with and without a name
MOST_PIXELS = 600  # of all rows without names
LEVELS = 8  # shades


@dataclass(frozen=True, slots=True)
class RankedAgent:
    """One line of a ranking."""

    agent: int
    percent: str
    interval: str
    bar: IntervalBar | None
    prob_best: str
    places: str
    """The interval of its rank."""


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Shares of trials passed, agents from best to worst by tasks from easiest to hardest."""

    shades: tuple[tuple[float, str], ...]
    """Opacity and SVG path of the cells of each shade, a cell being a unit wide and high."""
    unscored: str
    """SVG path of a line through every cell of which nothing was scored."""
    agents: tuple[int, ...]
    tasks: tuple[int, ...]
    """Positions in the table of tasks, the easiest first."""
    columns: tuple[int, ...]
    """Where in `tasks` each column begins, and the last one ends."""
    height: int
    """Pixels of a row."""
    labels: tuple[str, ...]
    """The names of the columns, where there is room for them."""
    ends: tuple[str, ...]
    """The names of the easiest and of the hardest task, where they have columns of their own but no labels."""

    @property
    def named(self) -> bool:
        """Whether rows are high enough for names."""
        return self.height == NAMED_HEIGHT

    @property
    def together(self) -> int:
        """The most tasks that share a column."""
        return int(np.diff(self.columns).max())


def agent_order(est: Estimate, asked: ReportQuestion) -> list[int]:
    """The agents by rank, two as the data have them; without a ranking those of the verdict first."""
    if asked.ranking is not None:
        return [est.agent_index(row["agent"]) for row in asked.ranking.rows]
    if len(est.agents) < FEWEST:
        return list(range(len(est.agents)))
    compared = [asked.agent, *(one.baseline for one in asked.comparisons[:1] if isinstance(one.baseline, str))]
    return [est.agent_index(name) for name in dict.fromkeys([*compared, *est.agents])]


def ranked_agents(est: Estimate, ranking: Ranking) -> list[RankedAgent]:
    """The ranking's lines, best first."""
    return [_ranked(est.agent_index(row["agent"]), row) for row in ranking.rows]


def ranking_table(asked: ReportQuestion, ranking: Ranking) -> Table:
    """The ranking's own table, headed by what it ranks by; with who may be best, unless the verdict says so."""
    table = ranking.table()
    _, *further = table.notes  # how ranks were made is in the page's line on its method
    said_above = ranking is asked.verdict_ranking
    notes = [*([] if said_above else [standing_words(ranking)]), *further]
    title = f"Ranking by {success_words(Metric(ranking.metric), ranking.estimand)}"
    return replace(table, title=title, text="", notes=notes)


def _ranked(agent: int, row: dict[str, Any]) -> RankedAgent:
    numbers = row["mean"], row["lower"], row["upper"]
    low, high = row["lower_rank"], row["upper_rank"]
    return RankedAgent(
        agent=agent,
        percent=format_percent(numbers[0]),
        interval=format_percent_range(*numbers[1:]),
        bar=interval_bar(*numbers),
        prob_best=format_percent(row["prob_best"]),
        places=f"{low:,}" if low == high else f"{low:,} to {high:,}",
    )


def tasks_by_difficulty(est: Estimate) -> Array:
    """Positions of the tasks that anybody tried, the easiest first: by the model's mean over agents."""
    means = [np.asarray(est.posterior.distribution(i, "task", Metric("pass^1")).mean) for i in range(len(est.agents))]
    known = np.where(est.counts.scored, np.asarray(means), np.nan)
    tried = np.flatnonzero(est.counts.scored.any(axis=0))
    return tried[np.argsort(-np.nanmean(known[:, tried], axis=0), kind="stable")]


def heat_map(est: Estimate, agents: Sequence[int]) -> HeatMap | None:
    """Agents in this order × tasks by difficulty; None where there is little to see."""
    tasks = tasks_by_difficulty(est)
    if len(agents) < FEWEST or tasks.size < 2:
        return None
    parts = np.array_split(tasks, min(tasks.size, MOST_COLUMNS))
    cuts = np.concatenate([[0], np.cumsum([part.size for part in parts])])
    passed, scored = (
        np.add.reduceat(counts[list(agents)][:, tasks], cuts[:-1], axis=1)
        for counts in (est.counts.successes, est.counts.trials)
    )
    shade = np.where(scored > 0, np.round(LEVELS * passed / np.maximum(scored, 1)), -1)
    shades = []
    for level in range(LEVELS + 1):
        rows, columns = np.nonzero(shade == level)
        cells = (f"M{x} {y}h.94v.9h-.94z" for y, x in zip(rows.tolist(), columns.tolist(), strict=True))
        shades.append((round(0.08 + 0.92 * level / LEVELS, 3), "".join(cells)))
    gaps = np.argwhere(shade < 0).tolist()
    unscored = "".join(f"M{x} {y + 0.9:g}l.94-.9" for y, x in gaps)
    height = NAMED_HEIGHT if len(agents) <= MOST_NAMED else max(2, min(LOW_HEIGHT, MOST_PIXELS // len(agents)))
    names = brief_names([plain_text(est.counts.tasks[i]) for i in tasks.tolist()], LONGEST_BESIDE)
    labels = tuple(names) if tasks.size <= MOST_LABELLED else ()
    return HeatMap(
        shades=tuple(shades),
        unscored=unscored,
        agents=tuple(agents),
        tasks=tuple(tasks.tolist()),
        columns=tuple(cuts.tolist()),
        height=height,
        labels=labels,
        ends=() if labels or tasks.size > MOST_COLUMNS else (names[0], names[-1]),
    )
