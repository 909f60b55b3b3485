"""Below the verdict of a page: answers to the questions of a reader in a hurry."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agentic_bayes.decisions.gate import Gate
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.model_checks import FLAGS
from agentic_bayes.formatting import Metric, format_percent, format_points, indicator_words, plural
from agentic_bayes.reports.html.opening import (
    Rows,
    agent_words,
    attempts_words,
    baseline_words,
    main_estimator,
    rate_words,
    short_name,
)
from agentic_bayes.reports.html.question import ReportQuestion

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
        answered.append(_how_sure(asked))
    elif len(est.agents) > 1:
        lines = [
            f"{short_name(agent, *est.agents)}: {agent_words(est, asked, agent, rows)}."
            for agent in est.agents[:MOST_LISTED]
        ]
        if len(est.agents) > MOST_LISTED:
            lines.append(f"The table of estimates has all {len(est.agents):,} agents.")
        lines.append(f"The agents are not compared: {asked.note}.")
        answered.append(Answer("How reliable are they?", tuple(lines)))
    answered += [_what_is_missing(est, asked.gate)]
    if asked.lead is None:
        answered.append(_what_next(est, asked, rows, source))
    answered.append(_on_what_data(est, asked))
    doubts = _doubts(est, asked)
    if doubts:
        answered.append(Answer("What makes it doubtful?", tuple(doubts)))
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


def _how_sure(asked: ReportQuestion) -> Answer:
    one, *further = asked.comparisons
    rate, agent = rate_words(asked.metric), short_name(one.agent, one.baseline)
    lines = [
        f"The probability that {agent} has a higher rate of {rate} than {baseline_words(one)} is "
        f"{format_percent(one.prob_better)}.",
        f"The difference is {format_points(one.mean)} percentage points, {one.ci_prob * 100:.4g} % interval "
        f"{format_points(one.lower)} to {format_points(one.upper)}.",
    ]
    for other in further:
        words = attempts_words(Metric(other.metric))
        lines.append(
            f"{words[0].upper()}{words[1:]}: {other.verdict}; the probability that its rate is higher is "
            f"{format_percent(other.prob_better)}."
        )
    return Answer("How sure is that?", tuple(lines))


def _what_is_missing(est: Estimate, gate: Gate | None) -> Answer:
    """Trials without a verdict."""
    scored, unscored = int(est.counts.trials.sum()), int(est.counts.unscored.sum())
    if not unscored:
        return Answer("What is missing?", (f"Nothing: all {plural(scored, 'trial')} were scored.",))
    errored = int(est.outcomes["errored"].sum())
    crashes = f" ({plural(errored, 'agent error')})" if errored else ""
    of = f"{unscored:,} of {plural(scored + unscored, 'trial')}"
    line = f"{of} could not be scored{crashes}; they count neither as passed nor as failed."
    changes = () if gate is None else (f"{text[0].upper()}{text[1:]}." for text in gate.missing)
    return Answer("What is missing?", (line, *changes))


def _on_what_data(est: Estimate, asked: ReportQuestion) -> Answer:
    counts = est.counts
    shared, chosen = "", list[str]()
    if asked.comparisons and isinstance(other := asked.comparisons[0].baseline, str):
        both = asked.comparisons[0].n_shared_tasks
        names = short_name(asked.agent, other), short_name(other, asked.agent)
        which = "both" if len(est.agents) == 2 else " and ".join(names)
        shared = f", {'all' if both == len(counts.tasks) else f'{both:,} of them'} tried by {which}"
        if asked.comparisons[0].n_left_out:
            chosen.append(f"Only these {both:,} tasks are compared, since the agents did not try the same tasks.")
    rule = f"; it passes if {indicator_words(est.outcomes.attrs)}"
    agents = f"{plural(len(est.agents), 'agent')}, " if len(est.agents) > 2 else ""
    lines = [
        f"{agents}{plural(len(counts.tasks), 'task')}{shared}; {plural(int(counts.trials.sum()), 'scored trial')}.",
        f"A trial is one {est.outcomes.attrs['unit']}{rule if '≥' in rule else ''}.",
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


def worst_tasks(est: Estimate, agents: Sequence[str], most: int = 5) -> dict[str, list[tuple[str, int, int]]]:
    """The tasks with the lowest success probability, agent by agent; only those of which a trial failed."""
    worst = {}
    for agent in agents:
        index = est.agent_index(agent)
        successes, trials = est.counts.successes[index], est.counts.trials[index]
        mean = np.asarray(est.posterior.distribution(index, "task", Metric("pass^1")).mean)
        bad = np.flatnonzero(successes < trials)
        order = bad[np.lexsort((bad, -trials[bad], mean[bad]))][:most]
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


def _advice(est: Estimate, asked: ReportQuestion, rows: Rows) -> tuple[str, str, str]:
    """What to do next, and the command for it with its options."""
    more = "Add new tasks rather than more trials of the same ones; this command says how many"
    match asked.gate:
        case Gate(verdict="inconclusive") as gate:
            return f"{more} the gate needs.", "plan", f"--at-least {gate.at_least!r}"
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
