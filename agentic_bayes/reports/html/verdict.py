"""Below the verdict of a page: answers to the questions of a reader in a hurry."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from agentic_bayes.decisions.compare import EQUIVALENT, LIKELY, Comparison, TaskDifference, comparison
from agentic_bayes.decisions.decision import rope_words
from agentic_bayes.decisions.gate import Gate, gate, shown_beside
from agentic_bayes.decisions.missing import as_if
from agentic_bayes.estimation.engines.diagnostics import Diagnostics
from agentic_bayes.estimation.estimate import Estimate
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
    Rows,
    agent_words,
    attempts_words,
    baseline_words,
    best_words,
    main_estimator,
    rate_words,
    short_name,
    tier_lines,
)
from agentic_bayes.reports.html.question import USUAL, ReportQuestion, same_model, same_numbers, without_option, written
from agentic_bayes.reports.html.tasks import sure_words

MOST_NAMED = 3
GATE_WORDS = {"pass": "passed", "fail": "failed", "inconclusive": "not settled"}
PROBABLY = 0.8  # probability from which a task that is not lost is named next to those that are
MOST_OF_JUDGE = 60  # characters
MOST_LISTED = 3  # agents that an answer goes through
MOST_SAID = 2  # comparisons that an answer goes through
TWICE, ROOT = "What would twice the tasks change?", math.sqrt(0.5)
FEWEST_DOUBLED = 5  # tasks from which widths of intervals fall with the root of their number, within a tenth
MOST_REFITTED = 20_000  # cells of agents × tasks up to which the model is fitted again to see what could be missing
MANY_UNSCORED = 0.05  # share of unscored trials above which they matter, where nobody knows what they could change


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
    if asked.tiers:
        answered.append(Answer("Which deployment tier?", tier_lines(asked.tiers)))
    if est.settings.corrects_judge:
        answered.append(_how_good_is_the_judge(est, asked))
    changed = _changed_if_missing(est, asked)
    answered += [_what_is_missing(est, asked, changed)]
    if asked.lead is None:
        answered += [_what_next(est, asked, rows, source, changed), *_twice_the_tasks(est, asked, rows, source)]
    answered += [_what_was_tested(est, asked, weighted), *_the_judge(est)]
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
    ranked = asked.verdict_ranking is not None
    lines = [best_words(one) for one in (asked.ranking, asked.further_ranking) if ranked and one is not None]
    for one in asked.comparisons[:MOST_SAID]:
        lines.append(_difference_words(est, one, rows, against=ranked))
        if one is asked.comparisons[0] and one.estimand == "population" and one.disagreement:
            finds = "does not find" if one.verdict in ("better", "worse") else "finds"
            tested = f"{one.frequentist.name}, p {equals(format_number(one.frequentist.p_value))}"
            lines.append(f"A classical test ({tested}) {finds} a difference. {one.disagreement}")
    against = f"How does it compare with {baseline_words(asked.comparisons[0])}?"
    return Answer("How sure are we?" if asked.gate is None else against, tuple(lines))


def _difference_words(est: Estimate, one: Comparison, rows: Rows, *, against: bool) -> str:
    """A comparison's verdict with its probability and the difference, against whom where that is not clear."""
    metric = Metric(one.metric)
    words = f"against {baseline_words(one)}, {attempts_words(metric)}" if against else attempts_words(metric)
    most = int(est.counts.trials.max(initial=0))
    projected = f"; a projection, since no task was tried {metric.k:,} times" if metric.k > most else ""
    higher = "a higher rate" if isinstance(one.baseline, str) else f"a rate above {format_number(one.baseline)}"
    return (
        f"{words[0].upper()}{words[1:]}: {one.verdict}. The probability of {higher} is "
        f"{format_percent(one.prob_better)}; the difference is {points_words(one.mean, 'percentage point')}, "
        f"{exact_percent(one.ci_prob)} interval {format_points_range(one.lower, one.upper)}"
        f"{_rounding(est, one, rows)}{projected}."
    )


def _rounding(est: Estimate, one: Comparison, rows: Rows) -> str:
    """That a difference is rounded after subtracting, where the rates as they are shown differ by another number."""
    if not isinstance(one.baseline, str) or one.n_left_out:
        return ""
    own, other = (
        rows[name, one.estimand, one.metric, main_estimator(est)]["mean"] for name in (one.agent, one.baseline)
    )
    apart = round(100 * own) - round(100 * other)
    return "" if abs(one.mean) < 0.01 or round(100 * one.mean) == apart else " (the rates above are rounded)"


def _what_is_missing(est: Estimate, asked: ReportQuestion, changed: Sequence[str] | None) -> Answer:
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
    ends = [f"{short_name(agent, *est.agents)} {_share_if(est, agent)}" for agent, n in own if n]
    judged = " as judged" if est.settings.corrects_judge else ""
    could = (
        f"If they had all failed, or all passed, the shares of all trials{judged} would be: {'; '.join(ends)}. "
        "These are counts; the rates above are estimates "
        f"for {'new' if asked.estimand == 'population' else 'these'} tasks."
    )
    stands = ""
    if changed is not None:
        verdict = (asked.gate or asked.comparisons[0]).verdict
        still = f"The verdict stands: in the worst case for it, it is still “{GATE_WORDS.get(verdict, verdict)}”."
        close = ", since it is close" if unscored < MANY_UNSCORED * (scored + unscored) else ""
        depends = f"The verdict depends on them{close}"
        stands = f"{depends}: {'; '.join(changed)}." if changed else still
    return Answer("What is missing?", tuple(filter(None, (line, could if ends else "", stands))))


def _changed_if_missing(est: Estimate, asked: ReportQuestion) -> list[str] | None:
    """What the verdict would be if missing trials had failed or passed, where it would change; None if unknown."""
    elsewhere = asked.lead or (asked.verdict_ranking and asked.gate is None)  # where the page has its verdict from
    one = asked.gate or next(iter(asked.comparisons), None)
    is_slow = est.counts.trials.size > MOST_REFITTED
    is_slow |= est.settings.engine == "auto" and isinstance(est.diagnostics, Diagnostics)  # NUTS had to take over
    if elsewhere or one is None or is_slow or "not_converged" in one.flags:
        return None
    sides = [one.agent], [one.baseline] if isinstance(one, Comparison) and isinstance(one.baseline, str) else []
    lacking = {name for name, unscored in zip(est.agents, est.counts.unscored, strict=True) if unscored.any()}
    own, others = ([name for name in names if name in lacking] for names in sides)
    if not (own or others):
        return None
    cases = [(own, others)] * (one.verdict not in ("worse", "fail"))
    cases += [(others, own)] * (one.verdict not in ("better", "pass"))
    changed = []
    for failed, passed in cases:
        verdict = _verdict_again(as_if(est, failed=failed, passed=passed, engine="auto"), one)
        if verdict != one.verdict:
            changed.append(f"{_assumed_words(failed, passed)}, it would be “{GATE_WORDS.get(verdict, verdict)}”")
    return changed


def _verdict_again(est: Estimate, one: Gate | Comparison) -> str:
    """The verdict of the same question on another estimate."""
    question: dict[str, Any] = {"metric": one.metric, "estimand": one.estimand}
    if isinstance(one, Gate):
        return gate(est, one.agent, at_least=one.at_least, confidence=one.confidence, **question).verdict
    question |= {"baseline": one.baseline, "rope": one.rope, "task_by_task": False, "bounds": False}
    return comparison(est, one.agent, **question).verdict


def _assumed_words(failed: Sequence[str], passed: Sequence[str]) -> str:
    """That trials of some agents had failed, and those of others passed."""
    parts = [(failed, "failed"), (passed, "passed")]
    return "if " + " and ".join(
        f"those of {short_name(names[0], *failed, *passed)} had all {what}" for names, what in parts if names
    )


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
    if weighted and est.posterior.grouping is not None:
        lines.append(_weighted_words(est, asked, weighted, est.posterior.grouping.words.removeprefix("weights ")))
    return Answer("What was tested?", tuple(lines))


def _weighted_words(est: Estimate, asked: ReportQuestion, weighted: Rows, shares: str) -> str:
    """The rates with the weights that were given, where the method has any of the kind that the verdict is about."""
    rates = []
    for agent in _about(est, asked):
        row = weighted.get((agent, asked.estimand, asked.metric, main_estimator(est)))
        if row is None:
            continue
        who, rate = short_name(agent, *est.agents), format_percent(row["mean"])
        undefined = f"not defined for {who} ({row['note']})"
        interval = format_percent_range(row["lower"], row["upper"])
        rates.append(undefined if math.isnan(row["mean"]) else f"{rate} ({interval}) for {who}")
    alike = "Rates and verdict count every task alike."
    if not rates:
        return f"{alike} The table of estimates has the rates on these tasks with your weights ({shares})."
    return f"{alike} With your weights ({shares}), {rate_words(asked.metric)} is {', '.join(rates)}."


def _the_judge(est: Estimate) -> list[Answer]:
    """Who judged, if its errors are not measured, and how to measure them."""
    judge = est.outcomes.attrs.get("judge")
    if not judge or est.judge_note or est.outcomes.attrs["indicator"] not in ("answer", "joint"):
        return []
    lines = [
        f"{cut_text(str(judge), MOST_OF_JUDGE)} gave the verdicts. No human labels were given, so nobody knows how "
        "often it is wrong, and the numbers take its verdicts as right.",
        "To find out, label 50 to 100 trials by hand and give the file as --judge-labels. The page “Judges” of the "
        "documentation (docs/judges.md) shows how to choose them.",
    ]
    return [Answer("How far can you trust the judge?", tuple(lines))]


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
    whatever = {"answer": ", whatever tools were called", "tools": ", whatever the answers were"}
    rule += whatever.get(attrs["indicator"], "") if parts else ""
    return f"; it passes if {rule}" if parts or "≥" in rule else ""


def _doubts(est: Estimate, asked: ReportQuestion) -> list[str]:
    """What makes the numbers of the verdict doubtful, and whose they are."""
    names, flags = [asked.agent], dict[str, list[str]]()
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
    said = {flag: text if text.startswith("k ") else f"{text[0].upper()}{text[1:]}" for flag, text in FLAGS.items()}
    return [f"{text}{whose[flag]}." for flag, text in said.items() if flag in flags]


def _got_worse(one: Comparison) -> Answer:
    """The tasks that an agent lost compared with another, or the largest drop where none is lost for sure."""
    before = baseline_words(one)
    if one.lost:
        named = [_drop(one, task, sure_words(task)) for task in one.lost[:MOST_NAMED]]
        lines = [f"Tasks lost to {before}: {with_more(named, len(one.lost))}."]
        lost = {task.task for task in one.lost}
        others = [task for task in one.tasks if task.lead < 0 and task.task not in lost]
        if others and (next_one := min(others, key=lambda task: task.gap)).prob_better <= 1 - PROBABLY:
            lines.append(f"The largest further drop: {_drop(one, next_one, sure_words(next_one))}.")
        return Answer("What got worse?", tuple(lines))
    drop = min(one.tasks, key=lambda task: task.gap)
    if drop.lead >= 0:
        return Answer("What got worse?", (f"Nothing: on no task was a smaller share passed than by {before}.",))
    return Answer(
        "What got worse?", (f"No task is lost to {before}. The largest drop, {_drop(one, drop)}, may be chance.",)
    )


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


def _twice_the_tasks(est: Estimate, asked: ReportQuestion, rows: Rows, source: Sequence[str]) -> list[Answer]:
    """What as much evidence again would change; nothing where there is no interval that would shrink with it."""
    if asked.estimand == "tasks":
        line = (
            "Nothing, since the numbers are about these tasks only. Twice the trials of each would make the intervals "
            f"about {ROOT:.1f} times as wide."
        )
        return [Answer(TWICE, (line,))]
    if est.settings.judge is not None:
        line = "Intervals would be narrower, but for what is not known of the judge's errors: label more trials, too."
        return [Answer(TWICE, (line,))]
    most, index = int(est.counts.trials.max(initial=0)), est.agent_index(asked.agent)
    tasks, changes, command = int(est.counts.scored[index].sum()), list[str](), ""
    for one in () if asked.gate else asked.comparisons[:MOST_SAID]:
        metric = Metric(one.metric)
        if metric.k > most or {"not_converged", "no_data"} & {*one.flags}:
            continue
        tasks = one.n_shared_tasks or tasks
        lower, upper = _narrower(one.mean, one.lower, one.upper)
        changed = f"{attempts_words(metric)} {format_points_range(lower, upper)} points"
        if one.verdict == "undecided":
            settled = lower > 0 or upper < 0 or (one.rope[0] <= lower and upper <= one.rope[1])
            changed += ", no longer undecided" if settled else ", still undecided"
        changes.append(changed)
        if one.verdict == "undecided" != asked.comparisons[0].verdict:
            command = command or _plan_command(est, asked, one.metric, _goal_of(one), source)
    row = rows[asked.agent, asked.estimand, asked.metric, main_estimator(est)]
    doubtful = asked.metric.k > most or math.isnan(row["upper"]) or "not_converged" in row["flags"]
    if tasks < FEWEST_DOUBLED or (doubtful and not changes):
        return []
    if changes:
        alike = "difference stayed as it is, its interval"
        alike = alike if len(changes) == 1 else "differences stayed as they are, their intervals"
        changed = f"If the {alike} would be: {'; '.join(changes)}."
    else:
        lower, upper = _narrower(row["mean"], row["lower"], row["upper"])
        agent = short_name(asked.agent, *est.agents)
        changed = f"If the rate of {agent} stayed as it is, its interval would be {format_percent_range(lower, upper)}"
        changed += f"{_sure_with_twice(asked.gate)}."
    line = f"With {2 * tasks:,} tasks, tried as often, intervals would be about {ROOT:.1f} times as wide. {changed}"
    return [Answer(TWICE, (line, "This command says how many tasks could settle it.") if command else (line,), command)]


def _sure_with_twice(gate: Gate | None) -> str:
    """How sure a gate that is not settled would be with twice the tasks, to follow the interval."""
    if gate is None or gate.verdict != "inconclusive":
        return ""
    from scipy.special import ndtr, ndtri

    sure = shown_beside(float(ndtr(ndtri(gate.probability) / ROOT)), gate.confidence)
    return f", and we would be {sure} sure that it is at least {exact_percent(gate.at_least)}"


def _narrower(mean: float, lower: float, upper: float) -> tuple[float, float]:
    """An interval from twice as many tasks, if its mean stayed: widths fall with the root of their number."""
    return mean - ROOT * (mean - lower), mean + ROOT * (upper - mean)


def _what_next(
    est: Estimate, asked: ReportQuestion, rows: Rows, source: Sequence[str], changed: Sequence[str] | None
) -> Answer:
    if "not_converged" in est.flags(asked.agent, estimand=asked.estimand, metric=asked.metric):
        return Answer("What next?", ("Do not use these numbers: fit again with the default engine.",))
    lines = []
    unscored, trials = int(est.counts.unscored.sum()), int(est.counts.trials.sum())
    if changed or (changed is None and unscored > MANY_UNSCORED * (unscored + trials)):
        those, they = ("the trial", "it") if unscored == 1 else (f"the {unscored:,} trials", "they")
        what = "verdict" if asked.gate or asked.comparisons else "rates" if len(est.agents) > 1 else "rate"
        lines.append(f"First run or judge {those} again that could not be scored: {they} could change the {what}.")
    line, command, options = _advice(est, asked, rows)
    if command == "gate" and (lacking := without_option(est)):
        line += f" The command has no option for {' and '.join(lacking)}: for these numbers, call gate() in Python."
    if command == "plan" and est.settings.corrects_judge:
        line += " It takes the judge's verdicts as right, so you will need more tasks than it says."
    if command == "plan":
        command = _plan_command(est, asked, asked.metric, options, source)
    elif command:
        more = f"{asked.options} {options}{same_numbers(est, source)}{same_model(est)}"
        command = f"agentic-bayes {command} {shlex.join(source)} --agent {shlex.quote(asked.agent)} {more}"
    return Answer("What next?", (*lines, line), command)


def _plan_command(est: Estimate, asked: ReportQuestion, metric: str, goal: str, source: Sequence[str]) -> str:
    """The command that says how many new tasks reach a goal."""
    whose = f"{shlex.join(source)} --agent {shlex.quote(asked.agent)} --metric {metric}"
    return f"agentic-bayes plan {whose} {goal}{same_numbers(est, source)}"


def _goal_of(one: Comparison) -> str:
    """To tell two sides apart, as an option of the command `plan`."""
    if not isinstance(one.baseline, str):
        return f"--at-least {one.baseline!r}"
    return f"--difference {max(round(abs(one.mean), 2), one.rope[1]):g}"


def _more_likely_below(gate: Gate) -> str:
    below, above = (shown_beside(share, gate.confidence) for share in (1 - gate.probability, gate.probability))
    return (
        f"It is more likely to miss this bar ({below}) than to reach it ({above}), so read the tasks that failed most "
        "and improve it. To settle this version: "
    )


def _is_open(asked: ReportQuestion) -> bool:
    """Whether the question of a page is not settled, or is a rate, which never is."""
    if asked.gate is not None:
        return asked.gate.verdict == "inconclusive"
    return not asked.comparisons or asked.comparisons[0].verdict == "undecided"


def _advice(est: Estimate, asked: ReportQuestion, rows: Rows) -> tuple[str, str, str]:
    """What to do next, and the command for it with its options."""
    more = "Add new tasks rather than more trials of the same ones; this command says how many"
    if asked.estimand == "tasks" and _is_open(asked):
        return (
            "Run more trials of each task: the numbers are about these tasks, so new tasks would not help.",
            "",
            "",
        )
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
    who = short_name(one.agent, *est.agents)
    match one.verdict:
        case "better":
            which = f"that {who} lost ({lost}), and those that" if lost else "that"
            check = "then check it against the success rate that you need for a release (0.8 stands for it below)"
            return f"Read the tasks {which} failed most; {check}.", "gate", "--at-least 0.8"
        case "worse":
            return f"Find out what went wrong on the tasks that {who} lost{lost and f' ({lost})'}.", "", ""
        case "equivalent":
            return "Reliability does not tell them apart: decide by cost or speed.", "", ""
        case _:
            return f"{more} could settle it.", "plan", _goal_of(one)


def reading_lines(est: Estimate, asked: ReportQuestion) -> list[str]:
    """What a reader of these answers must know, a paragraph each."""
    s, attrs, lines = est.settings, est.outcomes.attrs, list[str]()
    prob = exact_percent(s.ci_prob)
    if asked.comparisons:
        one = asked.comparisons[0]
        lines.append(
            f"“Better” or “worse”: the {prob} interval of the difference excludes 0. “Equivalent”: the difference is "
            f"within {rope_words(one.rope)} with a probability of {exact_percent(EQUIVALENT)}. “Undecided”: either may "
            "be ahead; they need not be equal."
        )
        if one.tasks:
            lines.append(
                f"“Won” or “lost” is said of a single task: better or worse on it with a probability of at least "
                f"{exact_percent(LIKELY)}, and by the share that passed. Since a task has few trials, this is a hint "
                "where to look, not a verdict."
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
        f"A trial is one attempt at one task{is_one}. {turns}If it could not be scored, it counts neither as "
        f"passed nor as failed. An agent error counts as {errors}.",
        "pass^k: all of k attempts at one task succeed; pass@k: at least one does. pass^1 is the plain success rate. "
        "If it must work every time, look at pass^k.",
        "New tasks: the expected rate on tasks like these, as after a release. These tasks: the average over the tasks "
        "that were tested.",
        "What the numbers assume: the tasks are a sample of the tasks that matter; attempts at one task do "
        f"not affect each other;{alike} verdicts are right{judge}; what could not be scored would have passed as often "
        "as the rest.",
    ]
