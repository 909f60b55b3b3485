"""The data of a page's table of tasks and of its conversations: compact columns, each fact once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from agentic_bayes.decisions.compare import LIKELY, Comparison, TaskDifference
from agentic_bayes.decisions.gate import shown_beside
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.formatting import (
    Metric,
    format_estimate,
    format_number,
    metrics_at,
    signed,
)
from agentic_bayes.reports.html.opening import short_name
from agentic_bayes.reports.html.text import brief_or_none, cut, json_block
from agentic_bayes.reports.html.trials import PARTS, ReportTrial

if TYPE_CHECKING:
    from markupsafe import Markup

LONGEST = 10_000  # characters of one thing that was said, called or given as a reason
LONGEST_TASK = 300
MOST_KS = 2  # columns of pass@k and of pass^k
MOST_BYTES = 10_000_000  # of all conversations in a page


def task_columns(est: Estimate, metric: Metric, comparison: Comparison | None) -> dict[str, Any]:
    """The table of tasks, column by column; agents and their difference in one metric."""
    agents, s = [], est.settings
    errored = est.outcomes["errored"].values
    for index, name in enumerate(est.agents):
        stats = est.posterior.distribution(index, "task", metric).stats(s.ci_prob, s.ci_kind)
        attempted = est.counts.attempted[index]
        known = [bool(tried) and mean == mean for tried, mean in zip(attempted, stats.mean.tolist(), strict=True)]
        parts = [getattr(stats, part).tolist() for part in ("mean", "lower", "upper")]
        agents.append(
            {
                "name": cut(name),
                "passed": est.counts.successes[index].tolist(),
                "scored": est.counts.trials[index].tolist(),
                "unscored": est.counts.unscored[index].tolist(),
                "errored": errored[index].tolist(),
                "mean": [round(mean, 6) if is_known else None for mean, is_known in zip(parts[0], known, strict=True)],
                "text": [
                    format_estimate(mean, lower, upper) if is_known else "–"
                    for mean, lower, upper, is_known in zip(*parts, known, strict=True)
                ],
            }
        )
    if len(agents) == 1:  # with several, a column each would be too many
        agents[0]["more"] = {str(one): _task_metric(est, one) for one in metrics_at(_larger(s.k)) if one != metric}
    tasks = est.counts.tasks
    columns: dict[str, Any] = {"names": [cut(task, LONGEST_TASK) for task in tasks], "agents": agents}
    columns["briefs"] = {i: brief for i, brief in enumerate(brief_or_none(tasks)) if brief}
    if comparison is not None and comparison.tasks:
        by_task = {one.task: one for one in comparison.tasks}
        won, lost = ({one.task for one in found} for found in (comparison.won, comparison.lost))
        differences = [by_task.get(task) for task in est.counts.tasks]
        pair = comparison.agent, str(comparison.baseline)
        name, other = short_name(*pair), short_name(*pair[::-1])
        columns["difference"] = {
            "head": [f"{name} − {other}", f"chance {name} is better"],
            "lead": [0 if one is None else (one.task in won) - (one.task in lost) for one in differences],
            "better": [None if one is None else round(one.prob_better, 6) for one in differences],
            "mean": [None if one is None else round(one.mean, 6) for one in differences],
            "text": [
                "–" if one is None else signed(format_estimate(one.mean, one.lower, one.upper)) for one in differences
            ],
            "share": ["–" if one is None else _lead_words(one) for one in differences],
        }
    return columns


def _lead_words(one: TaskDifference) -> str:
    """The probability of a higher rate; equal shares of trials are no lead, whatever other tasks say of the agents."""
    if not one.lead:
        return "even"
    chance = shown_beside(one.prob_better, LIKELY)
    if one.prob_better <= 1 - LIKELY and one.lead < 0:
        return f"{chance}\nlost"
    return f"{chance}\nwon" if one.prob_better >= LIKELY and one.lead > 0 else chance


def sure_words(one: TaskDifference) -> str:
    """How sure it is which agent is better on a task: "94 % sure"."""
    return f"{shown_beside(max(one.prob_better, 1 - one.prob_better), LIKELY)} sure"


def _larger(ks: Sequence[int]) -> list[int]:
    """The largest values of k that have a column of their own."""
    return [k for k in ks if k > 1][-MOST_KS:]


def _task_metric(est: Estimate, metric: Metric) -> dict[str, list[Any]]:
    """The only agent's pass@k or pass^k of every task, as numbers to sort by and as text."""
    stats = est.posterior.distribution(0, "task", metric).stats(est.settings.ci_prob, est.settings.ci_kind)
    rows = list(zip(*(getattr(stats, part).tolist() for part in ("mean", "lower", "upper")), strict=True))
    known = [bool(tried) and row[0] == row[0] for tried, row in zip(est.counts.attempted[0], rows, strict=True)]
    return {
        "mean": [round(row[0], 6) if is_known else None for row, is_known in zip(rows, known, strict=True)],
        "text": [format_estimate(*row) if is_known else "–" for row, is_known in zip(rows, known, strict=True)],
    }


def trial_records(est: Estimate, trials: Sequence[ReportTrial]) -> tuple[list[Markup], int]:
    """The attempts as compact records in JSON, those that did not pass first where not all fit."""
    places = _places(est, trials)
    chosen = sorted(range(len(trials)), key=lambda i: (trials[i].verdict == "pass", i))
    kept: dict[int, Markup] = {}
    size = 0
    for i in chosen:
        if i not in places:
            continue
        one = trials[i]
        agent, tasks = places[i]
        record = [agent, tasks, one.attempt, cut(one.session), one.verdict, cut(one.agent), list(_turns(one))]
        kept[i] = json_block(record)
        size += len(kept[i].encode())
        if size > MOST_BYTES:
            del kept[i]
            break
    return [kept[i] for i in sorted(kept)], len(places) - len(kept)


def _places(est: Estimate, trials: Sequence[ReportTrial]) -> dict[int, tuple[int, list[int]]]:
    """In which rows of the table of tasks an attempt is counted, and for which agent."""
    agents = {name: i for i, name in enumerate(est.agents)}
    tasks = {name: i for i, name in enumerate(est.counts.tasks)}
    unit = est.outcomes.attrs["unit"]
    places = {}
    for i, one in enumerate(trials):
        agent = agents.get(one.agent, 0)
        match unit:
            case "interaction":
                names = [one.session, f"{one.agent}/{one.session}"]
            case "question":
                names = list(one.questions.values())
            case _:
                names = [one.task]
        rows = sorted({tasks[name] for name in names if name in tasks})
        if rows:
            places[i] = (agent, rows)
    return places


def _turns(trial: ReportTrial) -> Iterator[list[Any]]:
    said = iter(trial.said or ())
    for position, qa_id in trial.questions.items():
        parts = [[PARTS.index(kind), cut(text, LONGEST), *map(cut, who)] for kind, text, *who in next(said, ())]
        scores = [
            [cut(name), "unscored" if value is None else format_number(value), cut(why, LONGEST)]
            for name, value, why in trial.scores.get(position, ())
        ]
        yield [cut(qa_id), parts, scores, trial.turns.get(position, "")]
