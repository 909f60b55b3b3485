"""The sections of a page below the verdict, as tables of text."""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentic_bayes.decisions.compare import Comparison, TaskDifference
from agentic_bayes.decisions.decision import rope_words
from agentic_bayes.decisions.gate import Gate, outcome_words
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.methods.options import Conjugate, Crossed, Frequentist, Hierarchical
from agentic_bayes.estimation.model_checks import FLAGS
from agentic_bayes.estimation.sensitivity import sensitivity_of
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.llm.store import Store, Usage
from agentic_bayes.evidence.metrics.registry import metric_names
from agentic_bayes.evidence.tools.diagnostics import faulty_conversations
from agentic_bayes.formatting import (
    Metric,
    exact_percent,
    format_estimate,
    format_interval,
    format_number,
    format_percent,
    format_percent_range,
    indicator_words,
    interval_kind,
    interval_words,
    metrics_at,
    not_scored,
    plural,
    signed,
    with_more,
)
from agentic_bayes.judges.mean_scores import mean_scores
from agentic_bayes.judges.several_judges import judge_agreement
from agentic_bayes.records.identity import UNTOLD_TASKS
from agentic_bayes.reports.evidence_tables import metrics_tables, tool_problems
from agentic_bayes.reports.html.agents import FEWEST, tasks_by_difficulty
from agentic_bayes.reports.html.figures import interval_bar
from agentic_bayes.reports.html.opening import Rows, short_name, sides, success_words
from agentic_bayes.reports.html.question import ReportQuestion, counting_options, model_options, written
from agentic_bayes.reports.html.tasks import sure_words
from agentic_bayes.reports.html.verdict import is_table, worst_tasks
from agentic_bayes.reports.tables import ESTIMANDS, rows_by_key
from agentic_bayes.result_table import Table

MOST_DRIVERS = 10
MOST_WORST = 5
MOST_MISFITS = 5
MOST_NAMED = 3
_BOUNDS = re.compile(r"distribution-free bounds \[([^,]+), ([^]]+)\]")
TESTED = "In {} the verdict and the classical test disagree on whether there is a difference. {}"


def data_table(est: Estimate, evidence: Evidence | None, agents: Sequence[int]) -> Table:
    """The denominators, agent by agent in this order; and a warning where the evidence is not what was counted."""
    counts, errored = est.counts, est.outcomes["errored"].values
    rows: list[list[str]] = []
    for index in agents:
        tried = counts.attempted[index]
        n = counts.trials[index][counts.scored[index]]
        passed, scored = int(counts.successes[index].sum()), int(counts.trials[index].sum())
        per_task = "–" if not n.size else str(n.min()) if n.min() == n.max() else f"{n.min()} to {n.max()}"
        numbers = (int(tried.sum()), scored, passed, scored - passed)
        missing = not_scored(int(counts.unscored[index].sum()), int(errored[index].sum()))
        rows.append([est.agents[index], *(f"{number:,}" for number in numbers), missing, per_task])
    attrs = est.outcomes.attrs
    notes = list[str]()
    if attrs.get("errors") == "fail":
        notes.append("A crashed agent counts as a failure.")
    if left_out := int(attrs.get("left_out", 0)):
        notes.append(f"{plural(left_out, 'conversation')} without any tool verdict left out.")
    if est.differences:
        notes.append(est.differences)
    if evidence is not None and evidence.untold_tasks:
        notes.append(f"Doubtful: {UNTOLD_TASKS.format(evidence.untold_tasks)}.")
    if evidence is not None and attrs["unit"] == "conversation":
        judged = len({(row.agent, row.task, row.trial) for row in evidence.rows})
        counted = int(counts.trials.sum() + counts.unscored.sum()) + int(attrs.get("left_out", 0))
        if judged != counted:
            notes.append(
                f"The evidence holds {plural(judged, 'conversation')}, the counts {counted:,}: "
                "the scores and reasons on this page are not those that were counted."
            )
    header = ["agent", "tasks", "trials scored", "passed", "failed", "not scored", "trials per task"]
    return Table(title="Trials by agent", header=header, rows=rows, notes=notes, noun="agent")


def estimate_sections(est: Estimate, agents: Sequence[int], rows: Rows, ks: Sequence[int]) -> list[dict[str, Any]]:
    """The numbers of the terminal's tables, one table per estimand: agents next to each other, intervals drawn."""
    method, sections, corrected = est.method, [], est.settings.corrects_judge
    judged = rows_by_key(est.uncorrected.to_pandas()) if corrected else {}
    main = method.estimator if isinstance(method, Frequentist) else "posterior"
    for estimand in (e for e in ESTIMANDS if e in est.posterior.estimands):
        cells = []
        for metric in (one for one in metrics_at(ks) if one != "pass@1"):  # which is pass^1
            for index in agents:
                agent = est.agents[index]
                one = rows[agent, estimand, metric, main]
                unbiased = rows[agent, estimand, metric, "unbiased"]
                beside = [judged[agent, estimand, metric, main], unbiased] if corrected else [unbiased]
                beside += [] if corrected else [rows[agent, estimand, metric, "plugin"]]
                cells.append(
                    {
                        "agent": index,
                        "first": index == agents[0],
                        "metric": metric,
                        "mean": format_number(one["mean"]),
                        "interval": format_interval(one["lower"], one["upper"]),
                        "bar": interval_bar(one["mean"], one["lower"], one["upper"]),
                        "baselines": [format_estimate(row["mean"], row["lower"], row["upper"]) for row in beside],
                        "doubt": _doubt(one, unbiased),
                    }
                )
        where = ESTIMANDS[estimand]
        sections.append({"where": f"{where[0].upper()}{where[1:]}", "rows": cells})
    return sections


def method_line(est: Estimate) -> str:
    """How the numbers of an estimate were made, in the words of whoever wants to know."""
    s, method, attrs = est.settings, est.method, est.outcomes.attrs
    kind = "estimate" if isinstance(method, Frequentist) else "posterior mean"
    names = {"population": "new tasks are the estimand population", "tasks": "these tasks the estimand tasks"}
    estimands = ", ".join(names[one] for one in ESTIMANDS if one in est.posterior.estimands)
    return (
        f"Method: {method.name}, {kind} with {interval_kind(method.name, s.ci_prob, s.ci_kind)}; "
        f"unit {attrs['unit']}, indicator {indicator_words(attrs)}; {estimands}."
    )


def _doubt(one: Mapping[str, Any], unbiased: Mapping[str, Any]) -> str:
    """What makes a number doubtful, and why there is no unbiased estimate; empty where nothing does."""
    flags, note = one["flags"].split(", "), one["note"]
    undefined = f"counted: {unbiased['note']}" if math.isnan(unbiased["mean"]) else ""
    if "extrapolated" in flags:
        flags.remove("extrapolated")
        if bounds := _BOUNDS.search(note):
            # nearer to 0 or 1 than the note's digits show
            ends = (0.0 if end[0] == "<" else 1.0 if end[0] == ">" else float(end) for end in bounds.groups())
            without = f"without a model it could be anywhere from {format_percent_range(*ends)}"
            note = note.replace(bounds.group(), without)
        projected = f"a projection: no task was tried {one['k']:,} times"
        return "; ".join(filter(None, (projected, note, *flags)))
    return "; ".join(filter(None, (one["flags"], note, undefined)))


def comparison_table(comparisons: Sequence[Comparison]) -> Table:
    """One row per metric, whereas `Comparison.table()` has all numbers of one; a page compares at several k."""
    rows = [
        [
            one.metric,
            one.verdict,
            format_percent(one.prob_better),
            signed(format_estimate(one.mean, one.lower, one.upper)),
            format_percent(one.prob_rope),
            signed(str(one.frequentist)),
        ]
        for one in comparisons
    ]
    first = comparisons[0]
    within = f"chance of being within {rope_words(first.rope)}"
    test = f"classical test{' of verdicts as judged' if first.frequentist.as_judged else ''}, for comparison"
    header = ["metric", "verdict", _chance(first), "difference", within, test]
    pair = "" if first.pairing == "tasks" else "; tasks are not paired"
    shared = f", on the {plural(first.n_shared_tasks, 'task')} that both tried{pair}" if first.n_shared_tasks else ""
    about = f" ({'new' if first.estimand == 'population' else 'these'} tasks)"
    notes = [f"Difference{about}: {' minus '.join(sides(first))}{shared}.", first.note, *first.if_errored_words]
    # of the verdict's own the first screen says it
    apart = [one for one in comparisons if one.disagreement and (one is not first or one.estimand == "tasks")]
    if apart:
        notes.append(TESTED.format(" and ".join(one.metric for one in apart), apart[0].disagreement))
    return Table(title="The difference", header=header, rows=rows, notes=notes)


def gate_table(gate: Gate) -> Table:
    """The gate's own table, with its requirement in words, and whose trials are missing."""
    table = gate.table()
    what = f"{gate.agent}: {success_words(Metric(gate.metric), gate.estimand)}, at least {exact_percent(gate.at_least)}"
    ((_, sure, _),) = table.rows
    notes = [f"{gate.agent}: {note}" if note in gate.missing else note for note in table.notes]
    return replace(table, rows=[[what, sure, outcome_words(gate)]], notes=notes)


def groups_table(one: Comparison) -> Table | None:
    """The difference in every group of tasks; None where tasks are not grouped."""
    rows = [
        [
            group.group,
            ESTIMANDS[group.estimand],
            signed(format_estimate(group.mean, group.lower, group.upper)),
            format_percent(group.prob_better),
        ]
        for group in one.groups
    ]
    header = ["group", "where", "difference", _chance(one)]
    title = f"The difference by group of tasks, in {one.metric}"
    return Table(title=title, header=header, rows=rows, noun="group") if rows else None


def driver_tables(one: Comparison) -> list[Table]:
    """The tasks that drive a difference: what got worse, and what got better; none where the agents share no task."""
    found = []
    for verb, tasks in (("lost to", one.lost), ("won against", one.won)):
        if tasks:
            rows = [[*_counts_of(task), sure_words(task)] for task in tasks[:MOST_DRIVERS]]
            count = f"{len(tasks):,}" + (f", the {MOST_DRIVERS} surest" if len(tasks) > MOST_DRIVERS else "")
            baseline = short_name(str(one.baseline), one.agent)
            title = f"Tasks that {short_name(one.agent, one.baseline)} {verb} {baseline} ({count})"
            header = [*_counts_head(one), "how sure"]
            found.append(Table(title=title, header=header, rows=rows, noun="task"))
    if found or not one.tasks:
        return found
    rows = [[*_counts_of(task), format_percent(task.prob_better)] for task in _apart(one)]
    hard = ", and how hard this one was for all agents" if one.method == "crossed" else ""
    notes = [
        f"The chance also takes into account how the agents did on the other tasks{hard}: a few trials of "
        "one task say little by themselves."
    ]
    header = [*_counts_head(one), _chance(one)]
    title = "Tasks on which the counts differ most; none of them is won or lost"
    return [Table(title=title, header=header, rows=rows, notes=notes, noun="task")] if rows else []


def _apart(one: Comparison) -> list[TaskDifference]:
    """The tasks with the largest differences of the counts: those where the agent is behind, then the others."""
    half = MOST_DRIVERS // 2
    order = sorted((task for task in one.tasks if task.lead), key=lambda task: task.gap)
    behind, ahead = ([task for task in order if task.lead == lead] for lead in (-1, 1))
    return [*behind[:half], *ahead[-half:]]


def _counts_head(one: Comparison) -> list[str]:
    agent, baseline = short_name(one.agent, one.baseline), short_name(str(one.baseline), one.agent)
    return ["task", f"{baseline} passed", f"{agent} passed", f"difference in {one.metric}"]


def _chance(one: Comparison) -> str:
    return f"chance {short_name(one.agent, one.baseline)} is {'better' if isinstance(one.baseline, str) else 'above'}"


def _counts_of(task: TaskDifference) -> list[str]:
    passed = f"{task.baseline_successes} of {task.baseline_trials}", f"{task.successes} of {task.trials}"
    return [task.task, *passed, signed(format_estimate(task.mean, task.lower, task.upper))]


def worst_table(est: Estimate) -> Table | None:
    """The tasks with the lowest success probabilities: agent by agent, or across several agents."""
    notes = ["The smallest shares of trials passed."]
    if len(est.agents) < FEWEST:
        worst = worst_tasks(est, est.agents)
        rows = [[agent, task, f"{c} of {n}"] for agent, tasks in worst.items() for task, c, n in tasks]
        header = ["agent", "task", "passed"]
        return Table(title="Tasks that failed most", header=header, rows=rows, notes=notes) if rows else None
    passed, scored = est.counts.successes, est.counts.trials
    hardest = [i for i in tasks_by_difficulty(est)[::-1].tolist() if (passed[:, i] < scored[:, i]).any()]
    hardest = sorted(hardest, key=lambda i: passed[:, i].sum() / scored[:, i].sum())[:MOST_WORST]
    rows = []
    for i in hardest:
        tried = scored[:, i] > 0
        failed, never = (int((tried & mask).sum()) for mask in (passed[:, i] < scored[:, i], passed[:, i] == 0))
        whole = f"{passed[:, i].sum():,} of {scored[:, i].sum():,}"
        rows.append([est.counts.tasks[i], f"{failed:,} of {tried.sum():,}", f"{never:,} of {tried.sum():,}", whole])
    header = ["task", "agents that ever failed it", "agents that never passed it", "trials passed"]
    return Table(title="Tasks that failed most", header=header, rows=rows, notes=notes, noun="task") if rows else None


def evidence_tables(evidence: Evidence) -> list[Table]:
    """What was judged; a page calls interactions turns, as its tables do."""
    first, size = evidence.table(), len(evidence)
    title = first.title.replace(plural(size, "interaction"), plural(size, "turn"), 1)
    means, without = mean_scores(evidence).table(), Counter[str]()
    for row in evidence:
        without[row.agent] += row.tool_overall is None and not row.tools_unscored
    if 0 < without.total() < size:
        named = [f"{n:,} of {short_name(agent, *without)}" for agent, n in without.items()]
        whose = f" ({', '.join(named)})" if len(named) <= MOST_NAMED else ""
        note = f"No tool was expected in {plural(without.total(), 'turn')}{whose}."
        means = replace(means, notes=[*means.notes, note])
    return [replace(first, title=title), *metrics_tables(evidence), means]


def tools_words(est: Estimate) -> str:
    """Whether the use of tools decides if a trial passes."""
    attrs = est.outcomes.attrs
    if is_table(attrs):
        return "The data say which trials passed; these scores do not decide it."
    match attrs["indicator"]:
        case "answer":
            return "A trial passes or fails by its answers alone: wrong tool calls do not fail it."
        case "joint":
            return "A trial passes only if its tool calls are right, too."
        case "tools":
            return "A trial passes or fails by its tool calls alone, whatever the answers were."
    return f"A trial passes or fails by one thing alone: {indicator_words(attrs)}."


def commonest_fault(evidence: Evidence) -> str:
    """The commonest fault with tools, in a line; empty where there is none."""
    problems = tool_problems(evidence)
    if problems is None:
        return ""
    places = faulty_conversations(evidence)
    rows = problems.to_pandas().to_dict("records")  # those with the most calls first
    worst = max(rows, key=lambda row: places[row["agent"], row["tool"], row["what"]])
    agent, tool, what = (str(worst[name]) for name in ("agent", "tool", "what"))
    argument = f"argument “{what.removeprefix('argument ')}”" if what.startswith("argument ") else what
    kinds = {
        "not called": f"did not call {tool} when it was expected",
        "not expected": f"called {tool} when it was not expected",
        "out of order": f"called {tool} out of order",
    }
    fault = kinds.get(what, f"called {tool} with a wrong {argument}" if argument != what else f"{tool}, {what}")
    calls = f"{worst['failed']:,} of {plural(worst['of'], 'call')}"
    where = plural(places[agent, tool, what], "conversation")
    return f"Most common fault with tools: {agent} {fault}, in {where} ({calls})."


def judge_tables(
    est: Estimate, evidence: Evidence | None, store: Store | None, facts: Mapping[str, str]
) -> list[Table]:
    """Who judged, how well judges agree, how their errors were corrected, and what it cost."""
    rows: list[Sequence[str]] = []
    if evidence is not None:
        rows += [("judge", text) for text in sorted({row.judge for row in evidence.rows})]
        rows += [("tool rubric", text) for text in sorted({row.tool_rubric for row in evidence.rows})]
        further = sorted({pair for row in evidence.rows for pair in row.graders.items()})
        rows += [(f"metric {name}", identity) for name, identity in further]
    elif judge := est.outcomes.attrs.get("judge"):
        rows.append(("judge", str(judge)))
    if not rows and not facts and store is None and not est.judge_note:
        return []
    rows.append(("judge's errors", est.judge_note or "not corrected: verdicts count as they are"))
    rows += facts.items()
    if store is not None:
        rows += [(f"asked: {model}", _usage_words(usage)) for model, usage in store.models().items()]
    elif not any("cost" in name for name in facts):
        rows.append(("tokens and cost", "not known: the report was made without the file of cached verdicts (--store)"))
    tables = [Table(title="Who judged, and at what cost", header=["item", "value"], rows=rows)]
    if est.settings.judge is not None:
        rates = est.judge_error().to_dict("records")
        by_agent = any(one["agent"] for one in rates)
        lines = [
            [one["agent"]] * by_agent
            + [one["rate"], format_number(one["mean"]), format_interval(one["lower"], one["upper"])]
            + [str(one["n_labels"])]
            for one in rates
        ]
        interval = interval_words(rates[0]["ci_prob"], rates[0]["ci_kind"])
        header = [*["agent"] * by_agent, "rate", "mean", interval, "labels"]
        tables.append(Table(title="The judge's error rates", header=header, rows=lines))
    return tables + _agreement(evidence)


def _agreement(evidence: Evidence | None) -> list[Table]:
    """How well several judges agree; nothing where there is one."""
    names = {name for row in evidence.rows for name in row.metrics} if evidence is not None else set()
    judges = sorted(names - set(metric_names()))
    if evidence is None or not judges or all(row.answer_score is None for row in evidence.rows):
        return []
    agreement = judge_agreement(evidence)
    rows = [
        [
            one.measure,
            ", ".join(one.raters),
            format_estimate(one.value, one.lower, one.upper),
            f"{one.items:,}",
            one.note,
        ]
        for one in agreement.measures
    ]
    note = f"Verdicts: a score of 0.7 or more is right; {exact_percent(agreement.ci_prob)} bootstrap intervals."
    header = ["measure", "judges", "value", "answers", "note"]
    return [Table(title="Agreement of the judges", header=header, rows=rows, notes=[note])]


def _usage_words(usage: Usage) -> str:
    cost = f", cost {usage.cost:,.6g}" if usage.unpriced < usage.calls else ", cost not known"
    return (
        f"{plural(usage.judgements, 'judgement')} by {plural(usage.calls, 'call')} ({usage.failed:,} failed), "
        f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out{cost}"
    )


def sensitivity_table(est: Estimate, agents: Sequence[int]) -> Table | None:
    """What the numbers of these agents depend on: prior, data and shape; None where there is no model."""
    if isinstance(est.method, Frequentist):
        return None
    return sensitivity_of(est.posterior, est.settings, agents).table()


def flag_lines(est: Estimate, own: Any) -> list[str]:
    """Every flag of a number of this page: its meaning, and where it applies."""
    lines = []
    for flag, meaning in FLAGS.items():
        hit = own[own["flags"].str.contains(flag)]
        if len(hit):
            agents = ", ".join(name for name in est.agents if name in set(hit["agent"]))
            ks = sorted(set(hit["k"].tolist()))
            estimands = ", ".join(
                f"{'new' if one == 'population' else 'these'} tasks" for one in dict.fromkeys(hit["estimand"])
            )
            lines.append(f"{flag}: {meaning} ({agents}; {estimands}; k = {', '.join(map(str, ks))}).")
    return lines


def diagnostics_table(est: Estimate, agents: Sequence[int]) -> Table:
    """The sampler's diagnostics, and whether the model fits the data of these agents."""
    rows: list[Sequence[str]] = []
    if est.diagnostics is not None:
        rows.append(("sampler", str(est.diagnostics)))
    elif isinstance(est.method, Hierarchical | Conjugate):
        rows.append(("sampler", "none: the posterior is computed without sampling"))
    if isinstance(est.method, Hierarchical | Crossed):
        for agent, statistic, observed, expected, p, note in est.checks.predictive_rows(agents):
            numbers = (format_number(number) for number in (observed, expected, p))
            rows.append((f"{agent}, {statistic}", note or "observed {}, expected {}, p = {}".format(*numbers)))
    if est.note:
        rows.append(("method", est.note))
    notes = ["Replicated data against the counts: p below .01 (of shares also above .99) is a misfit."]
    return Table(
        title="Diagnostics", header=["check", "result"], rows=rows or [("sampler", "none is used")], notes=notes
    )


def checked_words(est: Estimate, agents: Sequence[int]) -> str:
    """What was checked of the numbers of these agents, and whether it is fine."""
    if isinstance(est.method, Frequentist):
        return "This method has neither a sampler nor a model, so there is nothing to check."
    how = "The numbers are computed without a sampler that could fail"
    if est.diagnostics is not None:
        how = "The sampler worked" if est.diagnostics.passed else "The sampler failed: do not use these numbers"
    if not isinstance(est.method, Hierarchical | Crossed):
        return f"{how}."
    checks = {i: est.checks.predictive(i) for i in agents}
    left_out = [i for i in agents if not checks[i]]
    if len(left_out) == len(checks):
        return f"{how}. How the passes are spread over tasks was not checked ({est.checks.not_checked(left_out[0])})."
    misfits = [est.agents[i] for i in agents if any(check.misfit for check in checks[i])]
    fit = f", but not those of {with_more(misfits[:MOST_MISFITS], len(misfits))}: see above" if misfits else ""
    unknown = [est.agents[i] for i in left_out[:MOST_MISFITS]]
    fit += f"; not checked: {with_more(unknown, len(left_out))}" if left_out else ""
    return f"{how}. The passes are spread over tasks as the model expects{fit}."


def commands(est: Estimate, asked: ReportQuestion, ks: Sequence[int], source: Sequence[str]) -> list[str]:
    """Commands that give these numbers again."""
    s, file = est.settings, shlex.join(source)
    fit = f"--method {est.method.name} --ci-prob {s.ci_prob!r} --ci-kind {s.ci_kind} --random-seed {s.random_seed}"
    engine = "" if s.engine == "auto" else f" --engine {s.engine}"
    engine += " --inflate" if est.method == Hierarchical(inflate=True) else ""
    k = ",".join(map(str, ks))
    how = f"{written(counting_options(est, source))} {fit}{engine}{model_options(est)}"
    lines = [f"agentic-bayes estimate {file}{how} --k {k} -o results"]
    saved = "results/estimate.nc"
    for one in asked.comparisons[:1]:
        baseline = one.baseline if isinstance(one.baseline, str) else repr(one.baseline)
        lines.append(
            f"agentic-bayes compare {saved} --agent {shlex.quote(one.agent)} --baseline {shlex.quote(baseline)} "
            f"{asked.options}"
        )
    if (gate := asked.gate) is not None:
        lines.append(
            f"agentic-bayes gate {saved} --agent {shlex.quote(gate.agent)} {asked.options} "
            f"--at-least {gate.at_least!r} --confidence {gate.confidence!r}"
        )
    return lines
