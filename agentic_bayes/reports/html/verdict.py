"""Below the verdict of a page: answers to the questions of a reader in a hurry."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from agentic_bayes.decisions.compare import LIKELY, Comparison, TaskDifference
from agentic_bayes.decisions.gate import Gate
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.model_checks import FLAGS
from agentic_bayes.formatting import Metric, format_percent, format_points, indicator_words, plural, points_words
from agentic_bayes.reports.html.opening import (
    PROBABLY,
    Rows,
    agent_words,
    attempts_words,
    baseline_words,
    main_estimator,
    rate_words,
    short_name,
)
from agentic_bayes.reports.html.question import ReportQuestion
from agentic_bayes.reports.html.tasks import sure_words

MOST_NAMED = 3
MOST_LISTED = 3  # agents that an answer goes through
MANY_UNSCORED = 0.05  # share of unscored trials above which the first advice is to find out why


@dataclass(frozen=True)
class Answer:
    """An answer to one question."""

    question: str  # as a reader asks it
    lines: tuple[str, ...]  # the answer
    command: str = ""  # what to type next, or empty


def answers(est: Estimate, asked: ReportQuestion, rows: Rows, failed_most: Sequence[str], source: str) -> list[Answer]:
    """How sure is the verdict, what is missing, what to do next, on what data, what is doubtful, what failed most."""
    answered = []
    if asked.lead is not None:
        answered.append(Answer("What are the verdicts?", asked.lead.lines))
    if asked.comparisons:
        answered.append(_how_sure(est, asked, rows))
    elif len(est.agents) > 1:
        lines = [
            f"{short_name(agent, *est.agents)}: {agent_words(est, asked, agent, rows)}."
            for agent in est.agents[:MOST_LISTED]
        ]
        if len(est.agents) > MOST_LISTED:
            lines.append(f"The table of estimates has all {len(est.agents):,} agents.")
        lines.append(f"The agents are not compared: {asked.note}.")
        answered.append(Answer("How reliable are they?", tuple(lines)))
    answered += [_what_is_missing(est, asked)]
    if asked.lead is None:
        answered.append(_what_next(est, asked, rows, source))
    answered.append(_what_was_tested(est, asked))
    doubts = _doubts(est, asked)
    if doubts:
        answered.append(Answer("Any doubts?", tuple(doubts)))
    if asked.comparisons and asked.comparisons[0].tasks:
        answered.append(_got_worse(asked.comparisons[0]))
    bad, tasks = worst_tasks(est, _about(est, asked)), est.counts.tasks
    worst = []
    for name, found in bad.items():
        counted = [f"{short_name(task, *tasks)} ({c} of {n} passed)" for task, c, n in found[:MOST_NAMED]]
        worst += [f"{short_name(name, *bad)}: {', '.join(counted)}"] if found else []
    answered.append(Answer("What failed most?", (*worst, *failed_most) or ("Nothing failed.",)))
    return answered


def _about(est: Estimate, asked: ReportQuestion) -> list[str]:
    """Whom the verdict is about: that agent first, then the one it is compared with, or all where they are few."""
    compared = [one.baseline for one in asked.comparisons[:1] if isinstance(one.baseline, str)]
    few = est.agents if len(est.agents) <= MOST_LISTED else ()
    return list(dict.fromkeys([asked.agent, *compared, *few]))


def _how_sure(est: Estimate, asked: ReportQuestion, rows: Rows) -> Answer:
    one, *further = asked.comparisons
    rate, agent = rate_words(asked.metric), short_name(one.agent, one.baseline)
    lines = [
        f"The probability that {agent} has a higher rate of {rate} than {baseline_words(one)} is "
        f"{format_percent(one.prob_better)}.",
        f"The difference is {points_words(one.mean, 'percentage point')}, "
        f"{one.ci_prob * 100:.4g} % interval {format_points(one.lower)} to {format_points(one.upper)}"
        f"{_rounding(est, one, rows)}.",
    ]
    most = int(est.counts.trials.max(initial=0))
    for other in further:
        metric = Metric(other.metric)
        words = attempts_words(metric)
        projected = f" This is a projection: no task was tried {metric.k:,} times." if metric.k > most else ""
        lines.append(
            f"{words[0].upper()}{words[1:]}: {other.verdict}; the probability that its rate is higher is "
            f"{format_percent(other.prob_better)}.{projected}"
        )
    return Answer("How sure are we?", tuple(lines))


def _rounding(est: Estimate, one: Comparison, rows: Rows) -> str:
    """That a difference is rounded after subtracting, where the rates as they are shown differ by another number."""
    if not isinstance(one.baseline, str) or one.n_left_out:
        return ""
    own, other = (
        rows[name, one.estimand, one.metric, main_estimator(est)]["mean"] for name in (one.agent, one.baseline)
    )
    apart = round(100 * own) - round(100 * other)
    return "" if abs(one.mean) < 0.01 or round(100 * one.mean) == apart else " (worked out before rounding)"


def _what_is_missing(est: Estimate, asked: ReportQuestion) -> Answer:
    """Trials without a verdict, whose they are, and what they could change."""
    scored, unscored = int(est.counts.trials.sum()), int(est.counts.unscored.sum())
    if not unscored:
        return Answer("What is missing?", (f"Nothing: all {plural(scored, 'trial')} were scored.",))
    errored = int(est.outcomes["errored"].values.sum())
    crashes = "" if not errored else "agent errors" if errored == unscored else plural(errored, "agent error")
    own = [(agent, int(est.counts.unscored[est.agent_index(agent)].sum())) for agent in _about(est, asked)]
    whose = ", ".join(f"{n:,} of {short_name(agent, *est.agents)}" for agent, n in own) if len(est.agents) > 1 else ""
    whose = f"{'' if len(own) == len(est.agents) else 'among them '}{whose}" if whose else ""
    brackets = "; ".join(filter(None, (crashes, whose)))
    of = f"{unscored:,} of {plural(scored + unscored, 'trial')}"
    line = f"{of} could not be scored{brackets and f' ({brackets})'}; they count neither as passed nor as failed."
    if asked.gate is not None and asked.gate.if_missing:
        return Answer(
            "What is missing?", (line, *(f"{text[0].upper()}{text[1:]}." for text in asked.gate.if_missing_words))
        )
    ends = [
        f"{short_name(agent, *est.agents)} would have passed {_share_if(est, agent)} of its trials"
        for agent, n in own
        if n
    ]
    could = f"Had they all failed, or all passed, {', '.join(ends)}." if ends else ""
    return Answer("What is missing?", tuple(filter(None, (line, could))))


def _share_if(est: Estimate, agent: str) -> str:
    """The share of an agent's trials that passed, if the missing ones had all failed, and all passed."""
    index = est.agent_index(agent)
    passed, scored, missing = (
        int(counts[index].sum()) for counts in (est.counts.successes, est.counts.trials, est.counts.unscored)
    )
    low, high = passed / (scored + missing), (passed + missing) / (scored + missing)
    return f"{format_percent(low)} or {format_percent(high)}"


def _what_was_tested(est: Estimate, asked: ReportQuestion) -> Answer:
    counts = est.counts
    tasks, tried, chosen = plural(len(counts.tasks), "task"), "", list[str]()
    if len(est.agents) > 1 and counts.scored.all():
        tried = ", all tried by both" if len(est.agents) == 2 else "; every agent tried all of them"
    elif asked.comparisons and isinstance(other := asked.comparisons[0].baseline, str):
        both = asked.comparisons[0].n_shared_tasks
        names = short_name(asked.agent, other), short_name(other, asked.agent)
        which = "both" if len(est.agents) == 2 else " and ".join(names)
        tried = f", {'all' if both == len(counts.tasks) else f'{both:,} of them'} tried by {which}"
        if asked.comparisons[0].n_left_out:
            chosen.append(f"Only these {both:,} tasks are compared, since the agents did not try the same tasks.")
    agents = f"{plural(len(est.agents), 'agent')}, " if len(est.agents) > 2 else ""
    trial = f"A trial is one {est.outcomes.attrs['unit']}"
    lines = [
        f"{agents}{tasks}{tried}; {plural(int(counts.trials.sum()), 'scored trial')}.",
        f"{trial}{pass_rule(est.outcomes.attrs)}.",
        *chosen,
    ]
    return Answer("What was tested?", tuple(lines))


def pass_rule(attrs: Mapping[Any, Any]) -> str:
    """What passes, to follow the unit; empty where the data say only that it did."""
    cut_at, tools_at = attrs.get("threshold"), attrs.get("tool_threshold")
    whole = attrs["unit"] == "conversation"
    parts = []
    if attrs["indicator"] in ("answer", "joint") and isinstance(cut_at, float):
        parts.append(f"{'every answer in it' if whole else 'its answer'} scores at least {cut_at:g} of 1")
    if attrs["indicator"] in ("tools", "joint") and isinstance(tools_at, float):
        parts.append(f"{'the tools of every turn' if whole else 'its tools'} score at least {tools_at:g} of 1")
    rule = " and ".join(parts) or indicator_words(attrs)
    return f"; it passes if {rule}" if parts or "≥" in rule else ""


def _doubts(est: Estimate, asked: ReportQuestion) -> list[str]:
    """What makes the numbers of the verdict doubtful, and whose they are."""
    names = [asked.agent]
    flags: dict[str, list[str]] = {}
    for one in asked.comparisons[:1]:
        flags |= {flag: [] for flag in one.flags}
        names += [one.baseline] if isinstance(one.baseline, str) else []
    if asked.gate is not None:
        flags |= {flag: [] for flag in asked.gate.flags}
    for name in names:
        for flag in est.flags(name, estimand=asked.estimand, metric=asked.metric):
            flags.setdefault(flag, []).append(short_name(name, *est.agents))
    whose = {flag: f" ({' and '.join(own)})" if own and len(est.agents) > 1 else "" for flag, own in flags.items()}
    return [f"{flag}{whose[flag]}: {FLAGS[flag]}." for flag in FLAGS if flag in flags]


def _got_worse(one: Comparison) -> Answer:
    """The tasks that an agent lost compared with another, or the largest drop where none is lost for sure."""
    before = short_name(str(one.baseline))
    if one.lost:
        named = [_drop(task, sure_words(task)) for task in one.lost[:MOST_NAMED]]
        more = f", and {len(one.lost) - MOST_NAMED:,} more" if len(one.lost) > MOST_NAMED else ""
        lines = [f"Lost compared with {before}: {', '.join(named)}{more}."]
        lost = {task.task for task in one.lost}
        others = [task for task in one.tasks if task.lead < 0 and task.task not in lost]
        if others and (next_one := min(others, key=lambda task: task.gap)).prob_better <= 1 - PROBABLY:
            lines.append(f"The largest further drop: {_drop(next_one, sure_words(next_one))}.")
        return Answer("What got worse?", tuple(lines))
    drop = min(one.tasks, key=lambda task: task.gap)
    if drop.lead >= 0:
        return Answer("What got worse?", (f"Nothing: on no task was a smaller share passed than by {before}.",))
    sure = f"Compared with {before}, no task with a probability of {format_percent(LIKELY)} or more."
    return Answer("What got worse?", (f"{sure} The largest drop, {_drop(drop)}, may be chance.",))


def _drop(task: TaskDifference, *more: str) -> str:
    """A task with its counts before and after."""
    counts = f"{task.baseline_successes} of {task.baseline_trials} → {task.successes} of {task.trials}"
    return f"{short_name(task.task)} ({', '.join((counts, *more))})"


def worst_tasks(est: Estimate, agents: Sequence[str], most: int = 5) -> dict[str, list[tuple[str, int, int]]]:
    """The tasks of which the smallest share of trials passed, agent by agent; of equal shares the least probable."""
    worst = {}
    for agent in agents:
        index = est.agent_index(agent)
        successes, trials = est.counts.successes[index], est.counts.trials[index]
        mean = np.asarray(est.posterior.distribution(index, "task", Metric("pass^1")).mean)
        bad = np.flatnonzero(successes < trials)
        order = bad[np.lexsort((bad, -trials[bad], mean[bad], successes[bad] / trials[bad]))][:most]
        worst[agent] = [(est.counts.tasks[i], int(successes[i]), int(trials[i])) for i in order]
    return worst


def _what_next(est: Estimate, asked: ReportQuestion, rows: Rows, source: str) -> Answer:
    if "not_converged" in est.flags(asked.agent, estimand=asked.estimand, metric=asked.metric):
        return Answer("What next?", ("Do not use these numbers: fit again with the default engine.",))
    lines = []
    unscored, trials = int(est.counts.unscored.sum()), int(est.counts.trials.sum())
    if unscored > MANY_UNSCORED * (unscored + trials):
        count = plural(unscored, "trial")
        lines.append(f"First find out why {count} could not be scored: they could change the verdict.")
    line, command, options = _advice(est, asked, rows)
    if command:
        metric = asked.options if command == "gate" else f"--metric {asked.metric}"
        command = f"agentic-bayes {command} {shlex.quote(source)} --agent {shlex.quote(asked.agent)} {metric} {options}"
    return Answer("What next?", (*lines, line), command)


def _more_likely_below(gate: Gate) -> str:
    below, above = (format_percent(share) for share in (1 - gate.probability, gate.probability))
    return (
        f"It is more likely to miss this bar ({below}) than to reach it ({above}), so read the tasks that failed most "
        "and improve it. To settle this version: "
    )


def _advice(est: Estimate, asked: ReportQuestion, rows: Rows) -> tuple[str, str, str]:
    """What to do next, and the command for it with its options."""
    more = "Add new tasks rather than more trials of the same ones; this command says how many"
    match asked.gate:
        case Gate(verdict="inconclusive") as gate:
            line = f"{more} the gate needs."
            if gate.probability < 0.5:
                line = f"{_more_likely_below(gate)}{line[0].lower()}{line[1:]}"
            return line, "plan", f"--at-least {gate.at_least!r}"
        case Gate(verdict="pass"):
            return "It clears this bar. Before you ship it, read the tasks that failed most.", "", ""
        case Gate(verdict="fail"):
            need = "more data will not lift it above the bar, a better agent will"
            return f"Read the tasks that failed most: {need}.", "", ""
    if not asked.comparisons:
        row = rows[asked.agent, asked.estimand, asked.metric, main_estimator(est)]
        width = row["upper"] - row["lower"]
        half = 0.1 if np.isnan(width) else max(round(width / 2, 3), 0.001)
        read = "Read the tasks that failed most. This command says how many new tasks halve the interval."
        return read, "plan", f"--width {half:g}"
    one = asked.comparisons[0]
    lost = ", ".join(short_name(task.task, *est.counts.tasks) for task in one.lost[:MOST_NAMED])
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
