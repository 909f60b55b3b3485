"""The first screen of a page: the verdict and what it is not, and the rates behind it as a picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentic_bayes.decisions.compare import Comparison
from agentic_bayes.decisions.decision import rope_words
from agentic_bayes.decisions.gate import Gate, shown_beside, unsettled_words
from agentic_bayes.decisions.rank import Ranking
from agentic_bayes.decisions.tiers import TierProbabilities
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.methods.options import Frequentist
from agentic_bayes.estimation.posterior import Estimand
from agentic_bayes.formatting import (
    Metric,
    brief_names,
    exact_percent,
    format_number,
    format_percent,
    format_percent_range,
    interval_kind,
    with_more,
)
from agentic_bayes.reports.html.figures import IntervalBar, interval_bar
from agentic_bayes.reports.html.question import ReportQuestion, second_metric
from agentic_bayes.reports.html.text import LONGEST_SHOWN
from agentic_bayes.reports.tables import ESTIMANDS, RowKey

TOSS_UP = 0.4  # chance of being better from which another agent is as good as tied
LEAST_TIER = 0.005  # probability from which a tier is named
TIERS_OF = {
    "paper": "Production-ready: success per attempt above 90 % and three times in a row above 70 %. Not ready: success "
    "per attempt below 70 %. Needs improvement: in between.",
    "gaussia": "Reliable: at least one of three attempts succeeds in more than 95 %, all three in more than 70 %. "
    "Inconsistent: the same 95 %, but all three in less than 50 %. Needs improvement: at least one of three in less "
    "than 70 %.",
}
MOST_NAMED = 2  # agents that a headline names as possibly better
MOST_RIVALS = 5  # that the line below it names
MOST_RATES = 3  # agents of the picture, unless the verdict is about another one
COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
KINDS = {"better": "good", "worse": "bad", "equivalent": "good", "undecided": "open"}
GATE_KINDS = {"pass": "good", "fail": "bad", "inconclusive": "open"}
Rows = Mapping[RowKey, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class AgentRate:
    """One agent's rate."""

    agent: int
    percent: str
    """The rate, or why there is none."""
    interval: str
    bar: IntervalBar | None


@dataclass(frozen=True, slots=True)
class RateGroup:
    """The rates of agents by one metric."""

    title: str
    """What the metric is, in words."""
    method: str
    """How the numbers were made, for whoever asks."""
    rates: tuple[AgentRate, ...]
    at_least: float | None
    """The bar that a gate asks for, as a position between 0 and 100."""


def short_name(name: str, *others: object) -> str:
    """A name for a sentence: a long one without its middle, but with what tells it from others."""
    names = dict.fromkeys([name, *(other for other in others if isinstance(other, str))])
    return brief_names(list(names), LONGEST_SHOWN)[0]


def _count(number: int) -> str:
    return COUNTS[number] if number < len(COUNTS) else f"{number:,}"


def attempts_words(metric: Metric) -> str:
    """What a metric is about, to follow a verdict: "per attempt", "for three attempts in a row"."""
    if metric.k == 1:
        return "per attempt"
    return f"for {_count(metric.k)} attempts in a row" if metric.power else f"within {_count(metric.k)} attempts"


def rate_words(metric: Metric) -> str:
    """What a metric is: "success per attempt", "success three times in a row"."""
    if metric.k == 1:
        return "success per attempt"
    if metric.power:
        return f"success {_count(metric.k)} times in a row"
    return f"at least one success in {_count(metric.k)} attempts"


def sides(one: Comparison) -> tuple[str, str]:
    """The short names of both sides of a comparison; a value is a number."""
    baseline = short_name(one.baseline, one.agent) if isinstance(one.baseline, str) else format_number(one.baseline)
    return short_name(one.agent, one.baseline), baseline


def baseline_words(one: Comparison) -> str:
    """With whom or what is compared."""
    baseline = sides(one)[1]
    return baseline if isinstance(one.baseline, str) else f"the value {baseline}"


def compared_words(one: Comparison) -> str:
    """The verdict of a comparison in a few words."""
    agent, baseline = sides(one)
    match one.verdict:
        case "undecided":
            return f"Undecided between {agent} and {baseline_words(one)}"
        case "equivalent":
            return f"{agent} and {baseline} are equivalent within {rope_words(one.rope)}"
        case verdict:
            return f"{agent} is {verdict} than {baseline}"


def success_words(metric: Metric, estimand: Estimand) -> str:
    """What a bar is about: "success three times in a row on new tasks"."""
    return f"{rate_words(metric)} on {'new' if estimand == 'population' else 'these'} tasks"


def headline(est: Estimate, asked: ReportQuestion, rows: Rows) -> tuple[str, str]:
    """The verdict in a sentence, and its kind for the colour."""
    if asked.lead is not None:
        return asked.lead.title, asked.lead.kind
    if (gate := asked.gate) is not None:
        agent = short_name(gate.agent, *est.agents)
        words = {"pass": "passes the gate", "fail": "fails the gate"}.get(gate.verdict)
        return f"{agent} {words or f'has not passed the gate: {unsettled_words(gate)}'}", GATE_KINDS[gate.verdict]
    if asked.verdict_ranking is not None:
        return _leader(asked, asked.verdict_ranking)
    if asked.comparisons:
        return _with_scope(asked), KINDS[asked.comparisons[0].verdict]
    return f"{short_name(asked.agent, *est.agents)}: {agent_words(est, asked, asked.agent, rows)}", "open"


def tier_lines(tiers: Mapping[str, TierProbabilities]) -> tuple[str, ...]:
    """The most probable tier of each agent and the others that it may be in, a sentence each; and whose tiers."""
    lines = []
    for agent, chances in tiers.items():
        first = chances.most_probable
        others = [f"“{tier}” {format_percent(p)}" for tier, p in chances.items() if tier != first and p >= LEAST_TIER]
        rest = f"; {', '.join(others)}" if others else ""
        whose = short_name(agent, *tiers)
        lines.append(f"{whose} is “{first}” with a probability of {format_percent(chances[first])}{rest}.")
    (table,) = {chances.name for chances in tiers.values()}
    return (*lines, TIERS_OF[table])


def default_title(est: Estimate, asked: ReportQuestion) -> str:
    """What a page is about, where its author does not say; verdicts that were given elsewhere say it themselves."""
    if asked.lead is not None:
        return ""
    agent = short_name(asked.agent, *est.agents)
    if asked.gate is None and asked.verdict_ranking is not None:
        return f"{len(est.agents):,} agents compared"
    if asked.gate is None and asked.comparisons:
        return f"{agent} compared with {sides(asked.comparisons[0])[1]}"
    return f"Reliability of {agent}"


def _leader(asked: ReportQuestion, ranking: Ranking) -> tuple[str, str]:
    """Who is best of several agents, and whether others may be."""
    names, rivals = [row["agent"] for row in ranking.rows], list(ranking.rivals)
    best, agents, words = short_name(names[0], *names), f"{len(names):,} agents", attempts_words(asked.metric)
    if not rivals:
        further = asked.comparisons[1:2]
        more = f"; not yet shown {attempts_words(Metric(further[0].metric))}" if _open(further) else ""
        return f"{best} is the best of {agents} {words}{more}", "good"
    near = [short_name(name, *names) for name in rivals]
    if len(near) > MOST_NAMED:
        near = [f"{_count(len(near))} others"]
    if _no_leader(ranking):
        which = "" if len(rivals) == len(names) - 1 else f"; {', '.join([best, *near][:-1])} or {near[-1]} may be best"
        return f"No clear leader among {agents} {words}{which}", "open"
    are = "is" if len(rivals) == 1 else "are"
    return f"{best} leads {agents} {words}; {' and '.join(near)} {are} not ruled out", "open"


def _no_leader(ranking: Ranking) -> bool:
    """Whether all agents may be better than the first, or one is as likely as not, though its mean rank is lower."""
    return len(ranking.rivals) == len(ranking.rows) - 1 or max(ranking.rivals.values(), default=0) > TOSS_UP


def _open(comparisons: Sequence[Comparison]) -> bool:
    return any(one.verdict == "undecided" for one in comparisons)


def _with_scope(asked: ReportQuestion) -> str:
    """A comparison's verdict, with what it is about and what it is not where there are several numbers of attempts."""
    first, *further = asked.comparisons
    text, words = compared_words(first), attempts_words(asked.metric)
    if not further:
        return text
    second = further[0]
    others = attempts_words(Metric(second.metric))
    if second.verdict == first.verdict:
        return f"{text} {words} and {others}" if first.verdict != "undecided" else f"{text}, {words} and {others}"
    if first.verdict == "undecided":
        named = "" if second.verdict == "equivalent" else f"{short_name(first.agent, first.baseline)} is "
        return f"{text}, {words}; {named}{second.verdict} {others}"
    return f"{text} {words}; {'not yet shown' if second.verdict == 'undecided' else second.verdict} {others}"


def lede(est: Estimate, asked: ReportQuestion) -> str:
    """What the verdict rests on, and what it is not."""
    if asked.lead is not None:
        return ""
    where = ESTIMANDS[asked.estimand].removeprefix("on ").replace("a new task", "new tasks")
    if (gate := asked.gate) is not None:
        return _gate_words(gate)
    if not asked.comparisons:
        return f"The rate is about {where}. Whether it is good enough depends on the rate you need."
    one = asked.comparisons[0]
    if "not_converged" in one.flags:
        return "The estimate did not converge: do not use these numbers."
    more = {
        "better": "Better does not mean good enough to ship: for that, compare it with the rate you need.",
        "worse": "Worse does not mean bad: for that, compare it with the rate you need.",
        "equivalent": "Any difference is too small to matter.",
        "undecided": f"{_either(one)}: these data do not settle it, which does not mean that they are equal.",
    }[one.verdict]
    if asked.verdict_ranking is not None:
        good = "Leading does not mean good enough to ship: for that, compare it with the rate you need."
        return f"{standing_words(asked.verdict_ranking)} {good}"
    order = ""
    if asked.ranking is not None:
        order = f"{best_words(asked.ranking)} "
    return f"{order}The verdict is about {where}. {more}"


def best_words(ranking: Ranking) -> str:
    """Who is most probably the best, by what."""
    first, names = ranking.rows[0], [row["agent"] for row in ranking.rows]
    best, words = short_name(first["agent"], *names), attempts_words(Metric(ranking.metric))
    return (
        f"Of {len(names):,} agents, {best} is best {words} with a probability of {format_percent(first['prob_best'])}."
    )


def standing_words(ranking: Ranking) -> str:
    """Who may be better than the first of the ranking, and how many agents are clearly behind it."""
    names, rivals = [row["agent"] for row in ranking.rows], ranking.rivals
    chances = [f"{short_name(name, *names)} {format_percent(p)}" for name, p in list(rivals.items())[:MOST_RIVALS]]
    behind = len(names) - 1 - len(rivals)
    may = f"Chance of being better than {short_name(names[0], *names)}: {with_more(chances, len(rivals))}."
    least = f"below {format_percent((1 - ranking.rows[0]['ci_prob']) / 2, 1)}"
    others, chance = (f"other {behind:,} agents are", f"each {least}") if behind > 1 else ("other agent is", least)
    return " ".join([may] * bool(rivals) + [f"The {others} clearly behind ({chance})."] * bool(behind))


def _gate_words(gate: Gate) -> str:
    """What the gate asks, and how sure the answer is."""
    what = success_words(Metric(gate.metric), gate.estimand)
    fails = gate.verdict == "fail"
    sure = shown_beside(1 - gate.probability if fails else gate.probability, gate.confidence)
    return (
        f"Gate: be at least {exact_percent(gate.confidence)} sure that its rate of {what} is at least "
        f"{exact_percent(gate.at_least)}. We are {sure} sure{' that it is not' if fails else ''}."
    )


def _either(one: Comparison) -> str:
    if isinstance(one.baseline, str):
        return f"Either of {short_name(one.agent, one.baseline)} and {short_name(one.baseline, one.agent)} may be ahead"
    return f"{short_name(one.agent, one.baseline)} may be above or below {baseline_words(one)}"


def agent_words(est: Estimate, asked: ReportQuestion, agent: str, rows: Rows) -> str:
    """An agent's rate with its interval in words."""
    row = rows[agent, asked.estimand, asked.metric, main_estimator(est)]
    if why := _no_rate(row):
        return f"{rate_words(asked.metric)} is not known ({why})"
    interval = format_percent_range(row["lower"], row["upper"])
    text = f"{format_percent(row['mean'])} {rate_words(asked.metric)}"
    return text if interval == "–" else f"{text}, {exact_percent(est.settings.ci_prob)} interval {interval}"


def _no_rate(row: Mapping[str, Any]) -> str:
    """Why there is no rate, also where only a prior predicts one; or empty."""
    if "no_data" in row["flags"]:
        return "nothing was scored"
    return (row["note"] or "not defined") if math.isnan(row["mean"]) else ""


def main_estimator(est: Estimate) -> str:
    """The estimator of a page's numbers: the posterior where there is one."""
    return est.method.estimator if isinstance(est.method, Frequentist) else "posterior"


def rate_groups(est: Estimate, asked: ReportQuestion, rows: Rows) -> list[RateGroup]:
    """The rates of the verdict's agents by its own metric, and by one more that keeps it in proportion."""
    return [
        _rate_group(est, asked, metric, rows) for metric in (asked.metric, second_metric(est, asked.metric)) if metric
    ]


def _rate_group(est: Estimate, asked: ReportQuestion, metric: Metric, rows: Rows) -> RateGroup:
    rates = []
    for agent in shown_agents(est, asked):
        row = rows[agent, asked.estimand, metric, main_estimator(est)]
        mean, lower, upper = (row[name] for name in ("mean", "lower", "upper"))
        if why := _no_rate(row):
            rates.append(AgentRate(est.agent_index(agent), f"– ({why})", "", None))
            continue
        shown = format_percent(mean), format_percent_range(lower, upper)
        rates.append(AgentRate(est.agent_index(agent), *shown, interval_bar(mean, lower, upper)))
    s, gate = est.settings, asked.gate
    words = rate_words(metric)
    trials = int(est.counts.trials.max(initial=0))
    beyond = f" (a projection: no task was tried {metric.k:,} times)" if metric.k > trials else ""
    interval = interval_kind(est.method.name, s.ci_prob, s.ci_kind)
    method = f"{metric} {ESTIMANDS[asked.estimand]}: {est.method.name}, {interval}"
    bar = 100 * gate.at_least if gate is not None and gate.metric == metric else None
    return RateGroup(f"{words[0].upper()}{words[1:]}{beyond}", method, tuple(rates), bar)


def shown_agents(est: Estimate, asked: ReportQuestion) -> list[str]:
    """The best three, or those of the verdict; in the order of the ranking, else as the estimate has them."""
    order = list(est.agents) if asked.ranking is None else [row["agent"] for row in asked.ranking.rows]
    if len(order) <= MOST_RATES:
        return order
    compared = [asked.agent, *(one.baseline for one in asked.comparisons[:1] if isinstance(one.baseline, str))]
    chosen = list(dict.fromkeys([*compared, *order]))[:MOST_RATES]
    return sorted(chosen, key=order.index)
