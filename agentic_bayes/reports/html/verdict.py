"""Below the verdict of a page: answers to the questions of a reader in a hurry."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from agentic_bayes.decisions.compare import EQUIVALENT, LIKELY, Comparison, TaskDifference
from agentic_bayes.decisions.decision import rope_words
from agentic_bayes.decisions.gate import Gate, shown_beside
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.fitting import choose_method
from agentic_bayes.estimation.methods.options import Hierarchical
from agentic_bayes.estimation.model_checks import DIFFERENT_TASKS, FLAGS
from agentic_bayes.formatting import (
    Metric,
    cut_text,
    equals,
    exact_percent,
    format_number,
    format_percent,
    format_percent_range,
    format_points_range,
    indicator_words,
    plural,
    points_words,
    with_more,
)
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
MOST_OF_JUDGE = 60  # characters
MOST_LISTED = 3  # agents that an answer goes through
USUAL = {  # options of a command where they are not given
    "--unit": "conversation",
    "--indicator": "answer",
    "--threshold": "0.7",
    "--tool-threshold": "1.0",
    "--ci-prob": "0.95",
    "--ci-kind": "eti",
    "--random-seed": "0",
    "--confidence": "0.95",
}
MANY_UNSCORED = 0.05  # share of unscored trials above which the first advice is to find out why


@dataclass(frozen=True)
class Answer:
    """An answer to one question."""

    question: str  # as a reader asks it
    lines: tuple[str, ...]  # the answer
    command: str = ""  # what to type next, or empty


def answers(
    est: Estimate, asked: ReportQuestion, rows: Rows, failed_most: Sequence[str], source: Sequence[str], weighted: Rows
) -> list[Answer]:
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
    if est.settings.corrects_judge:
        answered.append(_how_good_is_the_judge(est, asked))
    answered += [_what_is_missing(est, asked)]
    if asked.lead is None:
        answered.append(_what_next(est, asked, rows, source))
    answered.append(_what_was_tested(est, asked, weighted))
    doubts = _doubts(est, asked)
    if doubts:
        answered.append(Answer("Any doubts?", tuple(doubts)))
    if asked.verdict_ranking is None and asked.comparisons and asked.comparisons[0].tasks:
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
    best = "" if asked.verdict_ranking is None else format_percent(asked.verdict_ranking.rows[0]["prob_best"])
    lines = [f"{agent} is the best of all with a probability of {best}."] if best else []
    lines += [
        f"The probability that {agent} has a higher rate of {rate} than {baseline_words(one)} is "
        f"{format_percent(one.prob_better)}.",
        f"The difference is {points_words(one.mean, 'percentage point')}, "
        f"{exact_percent(one.ci_prob)} interval {format_points_range(one.lower, one.upper)}"
        f"{_rounding(est, one, rows)}.",
    ]
    if one.estimand == "population" and disagrees_with_test(one) and not est.settings.corrects_judge:
        finds = "does not find" if one.verdict in ("better", "worse") else "finds"
        tested = f"{one.frequentist.name}, p {equals(format_number(one.frequentist.p_value))}"
        lines.append(f"A classical test ({tested}) {finds} a difference: treat it as borderline.")
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


def disagrees_with_test(one: Comparison) -> bool:
    """Whether the frequentist test finds a difference where the verdict does not, or the other way round."""
    p = one.frequentist.p_value
    return not math.isnan(p) and (p < 1 - one.ci_prob) != (one.verdict in ("better", "worse"))


def _rounding(est: Estimate, one: Comparison, rows: Rows) -> str:
    """That a difference is rounded after subtracting, where the rates as they are shown differ by another number."""
    if not isinstance(one.baseline, str) or one.n_left_out:
        return ""
    own, other = (
        rows[name, one.estimand, one.metric, main_estimator(est)]["mean"] for name in (one.agent, one.baseline)
    )
    apart = round(100 * own) - round(100 * other)
    return "" if abs(one.mean) < 0.01 or round(100 * one.mean) == apart else " (from the rates before rounding)"


def _what_is_missing(est: Estimate, asked: ReportQuestion) -> Answer:
    """Trials without a verdict, whose they are, and what they could change."""
    scored, unscored = int(est.counts.trials.sum()), int(est.counts.unscored.sum())
    if not unscored:
        whole = f"all {scored:,} trials were" if scored > 1 else "the only trial was"
        crashed = "; an agent error counts as failed" if est.outcomes.attrs.get("errors") == "fail" else ""
        return Answer("What is missing?", (f"Nothing: {whole} scored{crashed}.",))
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
    judged = " (as judged)" if est.settings.corrects_judge else ""
    could = f"Had they all failed, or all passed, {', '.join(ends)}{judged}." if ends else ""
    return Answer("What is missing?", tuple(filter(None, (line, could))))


def _how_good_is_the_judge(est: Estimate, asked: ReportQuestion) -> Answer:
    """What the labels say of the judge, and what the rates would be if its errors were not allowed for."""
    about, passes, labels = _about(est, asked), list[str](), 0
    for agent, own in est.judge_error().groupby("agent", sort=False):
        mean, named = own.set_index("rate")["mean"], str(agent)
        labels += int(own["n_labels"].iloc[0])
        if not named or named in about:
            whose = f" of {short_name(named, *est.agents)}" if named else ""
            right, wrong = format_percent(mean["sensitivity"]), format_percent(1 - mean["specificity"])
            passes.append(f"{right} of the right attempts{whose} and {wrong} of the wrong ones")
    by = f"By {plural(labels, 'human label')}, it passes" if labels else "It is assumed to pass"
    plain, s = est.uncorrected.posterior, est.settings
    rates = [
        f"{format_percent(stats.mean)} for {short_name(agent, *est.agents)}"
        for agent in about
        for stats in [plain.stats(est.agent_index(agent), asked.estimand, asked.metric, s.ci_prob, s.ci_kind)]
    ]
    as_judged = f"if every verdict were right, {rate_words(asked.metric)} would be {', '.join(rates)}"
    return Answer("How good is the judge?", (f"{by} {', '.join(passes)}.", f"The rates allow for that; {as_judged}."))


def _share_if(est: Estimate, agent: str) -> str:
    """The share of an agent's trials that passed, if the missing ones had all failed, and all passed."""
    index = est.agent_index(agent)
    passed, scored, missing = (
        int(counts[index].sum()) for counts in (est.counts.successes, est.counts.trials, est.counts.unscored)
    )
    shares = passed / (scored + missing), (passed + missing) / (scored + missing)
    return " or ".join(dict.fromkeys(exact_percent(one) if one in (0, 1) else format_percent(one) for one in shares))


def _what_was_tested(est: Estimate, asked: ReportQuestion, weighted: Rows) -> Answer:
    counts = est.counts
    tasks, tried, chosen = plural(len(counts.tasks), "task"), "", list[str]()
    if len(est.agents) > 1 and counts.scored.all():
        whole, them = ("all ", "all of them") if len(counts.tasks) > 1 else ("", "it")
        tried = f", {whole}tried by both" if len(est.agents) == 2 else f"; every agent tried {them}"
    elif asked.comparisons and isinstance(other := asked.comparisons[0].baseline, str):
        both = asked.comparisons[0].n_shared_tasks
        names = short_name(asked.agent, other), short_name(other, asked.agent)
        which = "both" if len(est.agents) == 2 else " and ".join(names)
        tried = f", {'all' if both == len(counts.tasks) else f'{both:,} of them'} tried by {which}"
        if asked.comparisons[0].n_left_out:
            chosen.append(
                f"Only these {both:,} tasks are compared, since the agents did not try the same tasks; "
                "the rates are about each agent's own tasks."
            )
    agents = f"{plural(len(est.agents), 'agent')}, " if len(est.agents) > 2 else ""
    lines = [
        f"{agents}{tasks}{tried}; {plural(int(counts.trials.sum()), 'scored trial')}.",
        *filter(None, [trial_words(est.outcomes.attrs)]),
        *chosen,
    ]
    if (judge := est.outcomes.attrs.get("judge")) and est.outcomes.attrs["indicator"] in ("answer", "joint"):
        errors = "" if est.judge_note else ", whose errors are not corrected for: no human labels were given"
        lines.append(f"Judged by {cut_text(str(judge), MOST_OF_JUDGE)}{errors}.")
    if weighted and est.posterior.grouping is not None:
        found = [(one, weighted[one, asked.estimand, asked.metric, "posterior"]) for one in _about(est, asked)]
        rates = [
            f"{format_percent(row['mean'])} ({format_percent_range(row['lower'], row['upper'])}) for "
            f"{short_name(agent, *est.agents)}"
            for agent, row in found
        ]
        shares = est.posterior.grouping.words.removeprefix("weights ")
        lines.append(
            f"Rates and verdict count every task alike. With your weights ({shares}), {rate_words(asked.metric)} is "
            f"{', '.join(rates)}."
        )
    return Answer("What was tested?", tuple(lines))


def is_table(attrs: Mapping[Any, Any]) -> bool:
    """Whether outcomes come from a table, which does not say what its trials are."""
    told = attrs.get("source") in ("evidence", "suite") or "taken" in attrs
    return not told and attrs["unit"] == "conversation"


def trial_words(attrs: Mapping[Any, Any]) -> str:
    """What a trial is, and what passes, as far as the data say."""
    rule = _pass_rule(attrs)
    if is_table(attrs):
        return rule and f"A trial {rule.removeprefix('; it ')}."
    return f"A trial is one {attrs['unit']}{rule}."


def _pass_rule(attrs: Mapping[Any, Any]) -> str:
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
        told = {DIFFERENT_TASKS} if one.n_left_out else set()  # by what was tested
        flags |= {flag: [] for flag in one.flags if flag not in told}
        names += [one.baseline] if isinstance(one.baseline, str) else []
    if asked.gate is not None:
        flags |= {flag: [] for flag in asked.gate.flags}
    for name in names:
        for flag in est.flags(name, estimand=asked.estimand, metric=asked.metric):
            flags.setdefault(flag, []).append(short_name(name, *est.agents))
    whose = {flag: f" ({' and '.join(own)})" if own and len(est.agents) > 1 else "" for flag, own in flags.items()}
    return [f"{FLAGS[flag][0].upper()}{FLAGS[flag][1:]}{whose[flag]}." for flag in FLAGS if flag in flags]


def _got_worse(one: Comparison) -> Answer:
    """The tasks that an agent lost compared with another, or the largest drop where none is lost for sure."""
    before = baseline_words(one)
    if one.lost:
        named = [_drop(one, task, sure_words(task)) for task in one.lost[:MOST_NAMED]]
        lines = [f"Lost compared with {before}: {with_more(named, len(one.lost))}."]
        lost = {task.task for task in one.lost}
        others = [task for task in one.tasks if task.lead < 0 and task.task not in lost]
        if others and (next_one := min(others, key=lambda task: task.gap)).prob_better <= 1 - PROBABLY:
            lines.append(f"The largest further drop: {_drop(one, next_one, sure_words(next_one))}.")
        return Answer("What got worse?", tuple(lines))
    drop = min(one.tasks, key=lambda task: task.gap)
    if drop.lead >= 0:
        return Answer("What got worse?", (f"Nothing: on no task was a smaller share passed than by {before}.",))
    sure = f"Compared with {before}, no task with a probability of {format_percent(LIKELY)} or more."
    return Answer("What got worse?", (f"{sure} The largest drop, {_drop(one, drop)}, may be chance.",))


def _drop(one: Comparison, task: TaskDifference, *more: str) -> str:
    """A task with its counts before and after."""
    counts = f"{task.baseline_successes} of {task.baseline_trials} → {task.successes} of {task.trials}"
    return f"{short_name(task.task, *(other.task for other in one.tasks))} ({', '.join((counts, *more))})"


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


def _what_next(est: Estimate, asked: ReportQuestion, rows: Rows, source: Sequence[str]) -> Answer:
    if "not_converged" in est.flags(asked.agent, estimand=asked.estimand, metric=asked.metric):
        return Answer("What next?", ("Do not use these numbers: fit again with the default engine.",))
    lines = []
    unscored, trials = int(est.counts.unscored.sum()), int(est.counts.trials.sum())
    if unscored > MANY_UNSCORED * (unscored + trials):
        count = plural(unscored, "trial")
        lines.append(f"First find out why {count} could not be scored: they could change the verdict.")
    line, command, options = _advice(est, asked, rows)
    if command == "gate" and (lacking := without_option(est)):
        line += f" The command has no option for {' and '.join(lacking)}: for these numbers, call gate() in Python."
    if command == "plan" and est.settings.corrects_judge:
        line += " It takes verdicts as they are, so it takes more tasks than it says."
    if command:
        metric = asked.options if command == "gate" else f"--metric {asked.metric}"
        options += _same_numbers(est, source) + (_same_model(est) if command == "gate" else "")
        command = f"agentic-bayes {command} {shlex.join(source)} --agent {shlex.quote(asked.agent)} {metric} {options}"
    return Answer("What next?", (*lines, line), command)


def without_option(est: Estimate) -> list[str]:
    """Settings that change numbers and that the command line has no option for."""
    judge, method = est.settings.judge, est.method
    alone = est.settings.corrects_judge and isinstance(method, Hierarchical)
    default = Hierarchical(pool_agents=False) if alone else type(method)()
    names = [] if method in (default, Hierarchical(inflate=True)) else [f"method={method!r}"]
    return names + (["fixed judge_labels"] if judge is not None and judge.calibration == "fixed" else [])


def counting_options(est: Estimate, source: Sequence[str]) -> dict[str, str]:
    """Options that count evidence as it was counted, but for those that stand in `source`; none for counts."""
    attrs = est.outcomes.attrs
    if attrs.get("source") != "evidence":
        return {}
    options = {"--unit": str(attrs["unit"]), "--indicator": shlex.quote(str(attrs["indicator"]))}
    if attrs["indicator"] in ("answer", "tools", "joint"):
        options |= {"--threshold": str(attrs["threshold"]), "--tool-threshold": str(attrs["tool_threshold"])}
    if attrs.get("errors", "unscored") != "unscored":
        options["--errors"] = str(attrs["errors"])
    options |= {"--agents": "together"} if est.agents == ("all",) else {}
    return {name: value for name, value in options.items() if name not in source}


def model_options(est: Estimate) -> str:
    """Options of a command that allow for the judge's errors and for groups of tasks as the estimate does."""
    s, options = est.settings, ""
    if s.judge is not None and s.judge.calibration == "estimated":
        options += " --judge-labels LABELS.csv"
    options += "" if s.by is None else f" --by {shlex.quote(s.by)}"
    if s.weights is not None:
        shares = s.weights if isinstance(s.weights, str) else ",".join(f"{one}={w!r}" for one, w in s.weights.items())
        options += f" --weights {shlex.quote(shares)}"
    return options


def written(options: Mapping[str, str]) -> str:
    """Options of a command as text that follows it."""
    return "".join(f" {name} {value}" for name, value in options.items())


def _same_numbers(est: Estimate, source: Sequence[str]) -> str:
    """The options without which a command would count, or show, other numbers than this estimate."""
    s = est.settings
    options = {"--ci-prob": repr(s.ci_prob), "--ci-kind": s.ci_kind, "--random-seed": str(s.random_seed)}
    return written({n: v for n, v in (counting_options(est, source) | options).items() if USUAL.get(n) != v})


def _same_model(est: Estimate) -> str:
    """The options without which a command would fit another model."""
    usual = "hierarchical" if est.settings.by else choose_method(est.counts, judge=est.settings.judge)[0].name
    return ("" if est.method.name == usual else f" --method {est.method.name}") + model_options(est)


def _more_likely_below(gate: Gate) -> str:
    below, above = (shown_beside(share, gate.confidence) for share in (1 - gate.probability, gate.probability))
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
            asked_of = {"--at-least": repr(gate.at_least), "--confidence": repr(gate.confidence)}
            goal = written({name: value for name, value in asked_of.items() if USUAL.get(name) != value}).strip()
            if gate.probability < 0.5:
                line = f"{_more_likely_below(gate)}{line[0].lower()}{line[1:]}"
            return line, "plan", goal
        case Gate(verdict="pass"):
            return "It clears this bar. Before you ship it, read the tasks that failed most.", "", ""
        case Gate(verdict="fail"):
            need = "more data will not lift it above the bar, a better agent will"
            return f"Read the tasks that failed most: {need}.", "", ""
    if not asked.comparisons:
        row = rows[asked.agent, asked.estimand, asked.metric, main_estimator(est)]
        width = row["upper"] - row["lower"]
        half = 0.1 if np.isnan(width) else max(round(width / 2, 3), 0.001)
        failed = (est.counts.successes < est.counts.trials)[est.agent_index(asked.agent)].any()
        read = "Read the tasks that failed most. " if failed else ""
        return f"{read}This command says how many new tasks halve the interval.", "plan", f"--width {half:g}"
    one = asked.comparisons[0]
    lost = ", ".join(short_name(task.task, *est.counts.tasks) for task in one.lost[:MOST_NAMED])
    match one.verdict:
        case "better":
            which = f"it lost ({lost}), and those that" if lost else "that"
            check = "then check it against the success rate that you need for a release (0.8 stands for it below)"
            return f"Read the tasks {which} failed most; {check}.", "gate", "--at-least 0.8"
        case "worse":
            return f"Find out what went wrong on the tasks that it lost{lost and f' ({lost})'}.", "", ""
        case "equivalent":
            return "Reliability does not tell them apart: decide by cost or speed.", "", ""
        case _:
            gap = f"--difference {max(round(abs(one.mean), 2), one.rope[1]):g}"
            goal = gap if isinstance(one.baseline, str) else f"--at-least {one.baseline!r}"
            return f"{more} could settle it.", "plan", goal


def reading_lines(est: Estimate, asked: ReportQuestion) -> list[str]:
    """What a reader of these answers must know, a paragraph each."""
    s, attrs, lines = est.settings, est.outcomes.attrs, list[str]()
    prob = exact_percent(s.ci_prob)
    if asked.verdict_ranking is not None:
        behind = format_percent((1 - s.ci_prob) / 2, 1)
        lines.append(f"An agent is “clearly behind” if it is better than the leader with a probability below {behind}.")
    if asked.comparisons:
        lines.append(
            f"An agent is called “better” or “worse” if the {prob} range of the difference excludes 0; two are "
            f"“equivalent” if the difference is within {rope_words(asked.comparisons[0].rope)} with a probability of "
            f"{exact_percent(EQUIVALENT)}; otherwise it is “undecided”: either may be ahead; they need not be equal."
        )
    if asked.gate is not None:
        lines.append(
            f"A gate is “passed” if we are {exact_percent(asked.gate.confidence)} sure that its requirement is met, "
            "“failed” if we are as sure that it is not, and otherwise neither: the evidence is not enough."
        )
    unit = attrs["unit"]
    is_one = "" if is_table(attrs) else f": here, one {unit}"
    turns = "A conversation has one turn or more, each a question and its answer. "
    turns = turns if is_one and unit == "conversation" else ""
    errors = "failed" if attrs.get("errors") == "fail" else "not scored"
    alike = " all agents ran under the same conditions;" if len(est.agents) > 1 else ""
    judge = "" if s.judge is None else " but for the judge's errors, which are corrected"
    return [
        *lines,
        f"A trial is one attempt at one task{is_one}. {turns}It passed, it failed, or it could not be "
        f"scored; then it counts as neither. An agent error counts as {errors}.",
        "pass^k: all of k attempts at one task succeed; pass@k: at least one does. pass^1 is the plain success rate. "
        "If it must work every time, look at pass^k.",
        "New tasks: the expected rate on tasks like these, as after a release. These tasks: the average over the tasks "
        "that were tested.",
        "What the numbers assume: the tasks are a sample of the tasks that matter; attempts at one task do "
        f"not affect each other;{alike} verdicts are right{judge}; what could not be scored would have passed as often "
        "as the rest.",
    ]
