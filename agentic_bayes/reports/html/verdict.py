"""What a page says first: the verdict, and answers to the five questions of a reader in a hurry."""

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
from agentic_bayes.estimation.model_checks import FLAGS
from agentic_bayes.formatting import format_number, format_share, indicator_words, interval_kind, metric_name, plural
from agentic_bayes.reports.html.question import Question
from agentic_bayes.reports.html.text import cut
from agentic_bayes.reports.tables import ESTIMANDS

MOST_NAMED = 3
MANY_UNSCORED = 0.05  # share of the trials from which a verdict's first advice is to mend what is unscored


@dataclass(frozen=True)
class Answer:
    """An answer to one question."""

    question: str  # as a reader asks it
    lines: tuple[str, ...]  # the answer
    command: str = ""  # what to type next, or empty


def headline(est: Estimate, asked: Question) -> tuple[str, str]:
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
    return f"{cut(asked.agent)}: {asked.name} is {_number(row, est)}", "open"


def _compared(found: Comparison) -> tuple[str, str]:
    agent, baseline = cut(found.agent), _baseline(found)
    match found.verdict:
        case "better":
            return f"{agent} is better than {baseline}", "good"
        case "worse":
            return f"{agent} is worse than {baseline}", "bad"
        case "equivalent":
            return f"{agent} and {baseline} are equivalent within ±{format_number(found.rope)}", "good"
        case _:
            return f"Undecided between {agent} and {baseline}", "open"


def _baseline(found: Comparison) -> str:
    return cut(found.baseline) if isinstance(found.baseline, str) else f"the value {format_number(found.baseline)}"


def _row(est: Estimate, asked: Question, agent: str) -> dict[str, Any]:
    one = est.with_k(asked.k).summary(tasks=False)
    chosen = (one["agent"] == agent) & (one["metric"] == asked.metric) & (one["estimand"] == asked.estimand)
    (row,) = one[chosen].to_dict("records")
    return {str(name): value for name, value in row.items()}


def _interval(lower: float, upper: float, est: Estimate) -> str:
    s = est.settings
    kind = interval_kind(s.method, s.ci_prob, s.ci_kind)
    return f"{kind} {format_number(lower)} to {format_number(upper)}"


def _number(row: dict[str, Any], est: Estimate) -> str:
    if np.isnan(row["mean"]):
        return f"– ({row['note'] or 'undefined'})"
    return f"{format_number(row['mean'])}, {_interval(row['lower'], row['upper'], est)}"


def answers(est: Estimate, asked: Question, failed_most: Sequence[str], source: str) -> list[Answer]:
    """Which is better, how sure is that, on what data, what failed most, what next."""
    found = []
    if asked.lead is not None:
        found.append(Answer("What are the verdicts?", asked.lead.lines))
    if (gate := asked.gate) is not None:
        texts = [
            f"The probability that {one.text} is {shown_beside(one.probability, gate.required)}"
            for one in gate.requirements
        ]
        verdict = f"{gate.verdict}: required is a probability of {gate.required:g}."
        found.append(Answer("May it be shipped?", (verdict, *(f"{text}." for text in texts))))
    if asked.comparisons:
        one = asked.comparisons[0]
        which = "Which version is better?" if isinstance(one.baseline, str) else "Is it better than that?"
        found += [Answer(which, (_better_words(one, asked),)), _how_sure(asked)]
    else:
        rows = [(agent, _row(est, asked, agent)) for agent in est.agents]
        where = ESTIMANDS[asked.estimand]
        lines = [
            f"{cut(agent)}: {asked.name} {where} is {_number(row, est)}; {est.settings.method}." for agent, row in rows
        ]
        if asked.note:
            lines.append(f"The agents are not compared: {asked.note}.")
        found.append(Answer("How reliable is it, and how sure is that?", tuple(lines)))
    found.append(_on_what_data(est, asked))
    doubts = _doubts(est, asked)
    if doubts:
        found.append(Answer("What makes it doubtful?", tuple(doubts)))
    bad = worst_tasks(est)
    worst = [
        f"{cut(name)}: {', '.join(f'{cut(task, 60)} ({c} of {n} passed)' for task, c, n in bad[name][:MOST_NAMED])}"
        for name in sorted(bad, key=lambda name: name != asked.agent)  # whom the page is about comes first
        if bad[name]
    ]
    found.append(Answer("What failed most?", (*worst, *failed_most) or ("Nothing failed.",)))
    if asked.lead is None:
        found.append(_what_next(est, asked, source))
    return found


def _better_words(one: Comparison, asked: Question) -> str:
    text = _compared(one)[0]
    more = {
        "better": "the interval of the difference lies above 0",
        "worse": "the interval of the difference lies below 0",
        "equivalent": "whatever difference there is, is too small to matter",
        "undecided": "the interval of the difference contains 0, so that these data do not settle it",
    }[one.verdict]
    return f"{text}, judged by {asked.name} {ESTIMANDS[asked.estimand]}: {more}."


def _how_sure(asked: Question) -> Answer:
    one, *further = asked.comparisons
    what = f"has a higher {asked.name} than {_baseline(one)}"
    lines = [
        f"The probability that {cut(one.agent)} {what} is {format_share(one.prob_better)}.",
        f"The difference is {format_number(one.mean)}, {interval_kind(one.method, one.ci_prob, one.ci_kind)} "
        f"{format_number(one.lower)} to {format_number(one.upper)}; {one.method}, estimand {one.estimand}.",
    ]
    others = [f"{metric_name(o.metric, o.k)} {o.verdict} ({format_share(o.prob_better)})" for o in further]
    if others:
        lines.append(f"Judged by other numbers of attempts: {', '.join(others)}.")
    return Answer("How sure is that?", tuple(lines))


def _on_what_data(est: Estimate, asked: Question) -> Answer:
    counts = est.counts
    scored, unscored = int(counts.trials.sum()), int(counts.unscored.sum())
    errored = int(est.outcomes["errored"].sum())
    crashes = f", of these {plural(errored, 'agent error')}" if errored else ""
    shared, chosen = "", []
    if asked.comparisons and isinstance(other := asked.comparisons[0].baseline, str):
        both = asked.comparisons[0].n_shared_tasks
        which = "both" if len(est.agents) == 2 else f"{cut(asked.agent)} and {cut(other)}"
        shared = f" {'all' if both == len(counts.tasks) else f'{both:,} of them'} tried by {which};"
        if len(est.agents) > 2 and asked.ranks is not None:
            chosen = [
                f"Of {len(est.agents):,} agents, who is best is the table “Ranked”; these numbers are of all of them."
            ]
    lines = [
        f"{plural(len(counts.tasks), 'task')},{shared} {plural(scored + unscored, 'trial')}: {scored:,} scored, "
        f"{unscored:,} unscored{crashes}.",
        f"A trial is one {est.outcomes.attrs['unit']}; what counts as passed: {indicator_words(est.outcomes.attrs)}.",
        *chosen,
    ]
    return Answer("On what data?", tuple(lines))


def _doubts(est: Estimate, asked: Question) -> list[str]:
    names = [asked.agent]
    flags: Counter[str] = Counter()
    for one in asked.comparisons[:1]:
        flags.update(one.flags)
        names += [one.baseline] if isinstance(one.baseline, str) else []
    for name in names:
        flags.update(est.flags(name, estimand=asked.estimand, metric=asked.metric, k=asked.k))
    if asked.gate is not None:
        flags.update(asked.gate.flags)
    return [f"{flag}: {FLAGS[flag]}." for flag in FLAGS if flag in flags]


def worst_tasks(est: Estimate, most: int = 5) -> dict[str, list[tuple[str, int, int]]]:
    """The tasks with the lowest success probability, agent by agent; only those of which a trial failed."""
    found = {}
    for index, agent in enumerate(est.agents):
        successes, trials = est.counts.successes[index], est.counts.trials[index]
        mean = np.asarray(est.posterior.per_task(index, "pass_pow_k", 1).mean)
        bad = np.flatnonzero(successes < trials)
        order = bad[np.lexsort((bad, -trials[bad], mean[bad]))][:most]
        found[agent] = [(est.counts.tasks[i], int(successes[i]), int(trials[i])) for i in order]
    return found


def _what_next(est: Estimate, asked: Question, source: str) -> Answer:
    who = f"agentic-bayes {{}} {shlex.quote(source)} --agent {shlex.quote(asked.agent)} {asked.command}"
    plan = who.replace(f" {asked.command}", f" --metric {asked.name}").format("plan")
    lines = []
    if "not_converged" in est.flags(asked.agent, estimand=asked.estimand, metric=asked.metric, k=asked.k):
        lines.append("Do not use these numbers: fit again, with the default engine where the method has one.")
        return Answer("What next?", tuple(lines))
    unscored, trials = int(est.counts.unscored.sum()), int(est.counts.trials.sum())
    if unscored > MANY_UNSCORED * (unscored + trials):
        lines.append(f"First mend what left {plural(unscored, 'trial')} unscored: they could change the verdict.")
    match asked.gate:
        case Gate(verdict="inconclusive") as gate:
            lines.append("Add new tasks rather than more trials of the same ones; this says how many the gate needs.")
            return Answer("What next?", tuple(lines), f"{plan} --at-least {gate.at_least!r}")
        case Gate(verdict="pass"):
            lines.append("By this bar it may be shipped. Read the tasks that failed most all the same.")
            return Answer("What next?", tuple(lines))
        case Gate(verdict="fail"):
            lines.append("Read the tasks that failed most: below the bar more data will not help, a better agent will.")
            return Answer("What next?", tuple(lines))
    if not asked.comparisons:
        row = _row(est, asked, asked.agent)
        width = row["upper"] - row["lower"]
        lines.append("Read the tasks that failed most. For an interval half as wide, this says how many new tasks.")
        half = 0.1 if np.isnan(width) else max(round(width / 2, 3), 0.001)
        return Answer("What next?", tuple(lines), f"{plan} --width {half:g}")
    one = asked.comparisons[0]
    match one.verdict:
        case "better":
            lost = ", ".join(cut(task.task, 60) for task in one.lost[:MOST_NAMED])
            which = f"it lost ({lost}), and those that" if lost else "that"
            lines.append(
                f"Read the tasks {which} failed most; then check it against what a release needs, in place of this 0.7."
            )
            return Answer("What next?", tuple(lines), f"{who.format('gate')} --at-least 0.7")
        case "worse":
            named = ", ".join(cut(task.task, 60) for task in one.lost[:MOST_NAMED])
            lines.append(f"Read what went wrong on the tasks that it lost{f' ({named})' if named else ''}.")
            return Answer("What next?", tuple(lines))
        case "equivalent":
            lines.append("Nothing to choose between them by reliability: decide by cost, or by speed.")
            return Answer("What next?", tuple(lines))
        case _:
            lines.append("Add new tasks rather than more trials of the same ones; this says how many could settle it.")
            gap = f"--difference {max(round(abs(one.mean), 2), one.rope):g}"
            goal = gap if isinstance(one.baseline, str) else f"--at-least {one.baseline!r}"
            return Answer("What next?", tuple(lines), f"{plan} {goal}")
