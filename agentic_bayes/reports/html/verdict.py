"""The top of a page: the verdict, and answers to the five questions of a reader in a hurry."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from agentic_bayes.decisions.compare import Comparison
from agentic_bayes.decisions.gate import Gate, shown_beside
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.methods.options import Frequentist
from agentic_bayes.estimation.model_checks import FLAGS
from agentic_bayes.formatting import Metric, format_number, format_percent, format_points, indicator_words, plural
from agentic_bayes.reports.html.question import ReportQuestion
from agentic_bayes.reports.html.text import cut
from agentic_bayes.reports.tables import ESTIMANDS, rows_by_key

MOST_NAMED = 3
MANY_UNSCORED = 0.05  # share of unscored trials above which the first advice is to find out why


@dataclass(frozen=True)
class Answer:
    """An answer to one question."""

    question: str  # as a reader asks it
    lines: tuple[str, ...]  # the answer
    command: str = ""  # what to type next, or empty


def headline(est: Estimate, asked: ReportQuestion) -> tuple[str, str]:
    """The verdict in a few words, and its kind for the colour."""
    if asked.lead is not None:
        return asked.lead.title, asked.lead.kind
    if (gate := asked.gate) is not None:
        kind = {"pass": "good", "fail": "bad", "inconclusive": "open"}[gate.verdict]
        text = {
            "pass": f"{cut(gate.agent)} passes the gate",
            "fail": f"{cut(gate.agent)} fails the gate",
            "inconclusive": f"The gate is inconclusive for {cut(gate.agent)}",
        }
        return text[gate.verdict], kind
    if asked.comparisons:
        return _compared(asked.comparisons[0])
    row = _row(est, asked, asked.agent)
    return f"{cut(asked.agent)}: {asked.metric} is {_number(row, est)}", "open"


def _compared(one: Comparison) -> tuple[str, str]:
    kinds = {"better": "good", "worse": "bad", "equivalent": "good"}
    if one.verdict == "undecided":
        return f"Undecided between {cut(one.agent)} and {_baseline(one)}", "open"
    return one.headline, kinds[one.verdict]


def _baseline(one: Comparison) -> str:
    return cut(one.baseline) if isinstance(one.baseline, str) else f"the value {format_number(one.baseline)}"


def _row(est: Estimate, asked: ReportQuestion, agent: str) -> dict[str, Any]:
    rows = rows_by_key(est.with_k(asked.metric.k).to_pandas())
    estimator = est.method.estimator if isinstance(est.method, Frequentist) else "posterior"
    return rows[agent, asked.estimand, asked.metric, estimator]


def _number(row: dict[str, Any], est: Estimate) -> str:
    if np.isnan(row["mean"]):
        return f"– ({row['note'] or 'undefined'})"
    interval = f"{format_number(row['lower'])} to {format_number(row['upper'])}"
    return f"{format_number(row['mean'])}, {est.settings.ci_prob * 100:.4g} % interval {interval}"


def answers(est: Estimate, asked: ReportQuestion, failed_most: Sequence[str], source: str) -> list[Answer]:
    """Which is better, how sure is that, on what data, what failed most, what to do next."""
    answered = []
    if asked.lead is not None:
        answered.append(Answer("What are the verdicts?", asked.lead.lines))
    if (gate := asked.gate) is not None:
        texts = [f"{one.text} = {shown_beside(one.probability, gate.confidence)}" for one in gate.requirements]
        verdict = f"{gate.verdict}: {', '.join(texts)}; the gate needs {format_percent(gate.confidence)}."
        missing = tuple(f"{line[0].upper()}{line[1:]}." for line in gate.missing)
        answered.append(Answer("Can it ship?", (verdict[0].upper() + verdict[1:], *missing)))
    if asked.comparisons:
        one = asked.comparisons[0]
        which = "Which version is better?" if isinstance(one.baseline, str) else "Is it better than that?"
        answered += [Answer(which, (_better_words(one, asked),)), _how_sure(asked)]
    else:
        rows = [(agent, _row(est, asked, agent)) for agent in est.agents]
        where = ESTIMANDS[asked.estimand]
        lines = [f"{cut(agent)}: {asked.metric} {where} is {_number(row, est)}." for agent, row in rows]
        if asked.note:
            lines.append(f"The agents are not compared: {asked.note}.")
        answered.append(Answer("How reliable is it, and how sure is that?", tuple(lines)))
    answered.append(_on_what_data(est, asked))
    doubts = _doubts(est, asked)
    if doubts:
        answered.append(Answer("What makes it doubtful?", tuple(doubts)))
    bad = worst_tasks(est)
    worst = [
        f"{cut(name)}: {', '.join(f'{cut(task, 60)} ({c} of {n} passed)' for task, c, n in bad[name][:MOST_NAMED])}"
        for name in sorted(bad, key=lambda name: name != asked.agent)  # whom the page is about comes first
        if bad[name]
    ]
    answered.append(Answer("What failed most?", (*worst, *failed_most) or ("Nothing failed.",)))
    if asked.lead is None:
        answered.append(_what_next(est, asked, source))
    return answered


def _better_words(one: Comparison, asked: ReportQuestion) -> str:
    text = _compared(one)[0]
    more = {
        "better": "the interval of the difference lies above 0",
        "worse": "the interval of the difference lies below 0",
        "equivalent": "any difference is too small to matter",
        "undecided": "the interval of the difference contains 0, so these data do not settle it",
    }[one.verdict]
    left_out = f", on the {plural(one.n_shared_tasks, 'task')} that both tried ({one.n_left_out:,} left out)"
    where = f"{ESTIMANDS[asked.estimand]}{left_out if one.n_left_out else ''}"
    return f"{text}, judged by {asked.metric} {where}: {more}."


def _how_sure(asked: ReportQuestion) -> Answer:
    one, *further = asked.comparisons
    what = f"has a higher {asked.metric} than {_baseline(one)}"
    lines = [
        f"The probability that {cut(one.agent)} {what} is {format_percent(one.prob_better)}.",
        f"The difference is {format_points(one.mean)} points, {one.ci_prob * 100:.4g} % interval "
        f"{format_points(one.lower)} to {format_points(one.upper)}.",
    ]
    others = [f"{other.metric} {other.verdict} ({format_percent(other.prob_better)})" for other in further]
    if others:
        lines.append(f"At other numbers of attempts: {', '.join(others)}.")
    return Answer("How sure is that?", tuple(lines))


def _on_what_data(est: Estimate, asked: ReportQuestion) -> Answer:
    counts = est.counts
    scored, unscored = int(counts.trials.sum()), int(counts.unscored.sum())
    errored = int(est.outcomes["errored"].sum())
    crashes = f", of these {plural(errored, 'agent error')}" if errored else ""
    shared, chosen = "", list[str]()
    if asked.comparisons and isinstance(other := asked.comparisons[0].baseline, str):
        both = asked.comparisons[0].n_shared_tasks
        which = "both" if len(est.agents) == 2 else f"{cut(asked.agent)} and {cut(other)}"
        shared = f" {'all' if both == len(counts.tasks) else f'{both:,} of them'} tried by {which};"
        if asked.comparisons[0].n_left_out:
            chosen.append(f"Only these {both:,} tasks are compared, since the agents did not try the same tasks.")
        if len(est.agents) > 2 and asked.ranking is not None:
            chosen += [f"These are the numbers of all {len(est.agents):,} agents; the ranking shows who is best."]
    lines = [
        f"{plural(len(counts.tasks), 'task')},{shared} {plural(scored + unscored, 'trial')}: {scored:,} scored, "
        f"{unscored:,} unscored{crashes}.",
        f"A trial is one {est.outcomes.attrs['unit']}; it passes if {indicator_words(est.outcomes.attrs)}.",
        *chosen,
    ]
    return Answer("On what data?", tuple(lines))


def _doubts(est: Estimate, asked: ReportQuestion) -> list[str]:
    names = [asked.agent]
    flags: Counter[str] = Counter()
    for one in asked.comparisons[:1]:
        flags.update(one.flags)
        names += [one.baseline] if isinstance(one.baseline, str) else []
    for name in names:
        flags.update(est.flags(name, estimand=asked.estimand, metric=asked.metric))
    if asked.gate is not None:
        flags.update(asked.gate.flags)
    return [f"{flag}: {FLAGS[flag]}." for flag in FLAGS if flag in flags]


def worst_tasks(est: Estimate, most: int = 5) -> dict[str, list[tuple[str, int, int]]]:
    """The tasks with the lowest success probability, agent by agent; only those of which a trial failed."""
    worst = {}
    for index, agent in enumerate(est.agents):
        successes, trials = est.counts.successes[index], est.counts.trials[index]
        mean = np.asarray(est.posterior.distribution(index, "task", Metric("pass^1")).mean)
        bad = np.flatnonzero(successes < trials)
        order = bad[np.lexsort((bad, -trials[bad], mean[bad]))][:most]
        worst[agent] = [(est.counts.tasks[i], int(successes[i]), int(trials[i])) for i in order]
    return worst


def _what_next(est: Estimate, asked: ReportQuestion, source: str) -> Answer:
    if "not_converged" in est.flags(asked.agent, estimand=asked.estimand, metric=asked.metric):
        return Answer("What next?", ("Do not use these numbers: fit again with the default engine.",))
    lines = []
    unscored, trials = int(est.counts.unscored.sum()), int(est.counts.trials.sum())
    if unscored > MANY_UNSCORED * (unscored + trials):
        count = plural(unscored, "trial")
        lines.append(f"First find out why {count} could not be scored: they could change the verdict.")
    line, command, options = _advice(est, asked)
    if command:
        metric = asked.options if command == "gate" else f"--metric {asked.metric}"
        command = f"agentic-bayes {command} {shlex.quote(source)} --agent {shlex.quote(asked.agent)} {metric} {options}"
    return Answer("What next?", (*lines, line), command)


def _advice(est: Estimate, asked: ReportQuestion) -> tuple[str, str, str]:
    """What to do next, and the command for it with its options."""
    more = "Add new tasks rather than more trials of the same ones; this command tells how many"
    match asked.gate:
        case Gate(verdict="inconclusive") as gate:
            return f"{more} the gate needs.", "plan", f"--at-least {gate.at_least!r}"
        case Gate(verdict="pass"):
            return "It clears this bar. Before you ship it, read the tasks that failed most.", "", ""
        case Gate(verdict="fail"):
            need = "more data will not lift it above the bar, a better agent will"
            return f"Read the tasks that failed most: {need}.", "", ""
    if not asked.comparisons:
        row = _row(est, asked, asked.agent)
        width = row["upper"] - row["lower"]
        half = 0.1 if np.isnan(width) else max(round(width / 2, 3), 0.001)
        read = "Read the tasks that failed most. This command tells how many new tasks halve the interval."
        return read, "plan", f"--width {half:g}"
    one = asked.comparisons[0]
    lost = ", ".join(cut(task.task, 60) for task in one.lost[:MOST_NAMED])
    match one.verdict:
        case "better":
            which = f"it lost ({lost}), and those that" if lost else "that"
            check = "then check it against your release bar (replace 0.7 with it)"
            return f"Read the tasks {which} failed most; {check}.", "gate", "--at-least 0.7"
        case "worse":
            return f"Find out what went wrong on the tasks that it lost{lost and f' ({lost})'}.", "", ""
        case "equivalent":
            return "Reliability does not tell them apart: decide by cost or speed.", "", ""
        case _:
            gap = f"--difference {max(round(abs(one.mean), 2), one.rope[1]):g}"
            goal = gap if isinstance(one.baseline, str) else f"--at-least {one.baseline!r}"
            return f"{more} could settle it.", "plan", goal
