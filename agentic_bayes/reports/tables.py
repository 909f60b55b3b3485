"""Tables for people: what was judged, and pass@k and pass^k beside the frequentist baseline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from agentic_bayes.decisions.compare import Comparison
from agentic_bayes.decisions.plan import Plan
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.model_checks import FLAGS
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.score import Score, Unscored
from agentic_bayes.evidence.tools.diagnostics import tool_diagnostics
from agentic_bayes.formatting import (
    METRICS,
    format_interval,
    format_number,
    format_share,
    indicator_words,
    metric_name,
    plural,
)
from agentic_bayes.outcomes.count import metric_threshold

MOST_REASONS = 5
ESTIMANDS = {"population": "on a new task of this kind", "tasks": "on these tasks"}


@dataclass(frozen=True, slots=True)
class Table:
    """A table and what a reader must know about it."""

    title: str  # what it shows
    header: tuple[str, ...]  # column names
    rows: tuple[tuple[str, ...], ...]  # cells
    notes: tuple[str, ...] = ()  # lines below it
    whole: bool = False  # whether the first column is kept on one line, however long: names to be copied


def evidence_table(evidence: Evidence, *, threshold: float = 0.7) -> Table:
    """Per agent: conversations, interactions, what was scored, and how tools were used."""
    summary = evidence.summary(threshold=threshold)
    rows = [
        (
            row["agent"],
            *(str(row[name]) for name in ("conversations", "interactions", "scored", "unscored")),
            format_number(row["mean_answer_score"], 2),
            f"{row['tools_right']} of {row['tools_scored']}",
        )
        for row in summary.to_dict("records")
    ]
    notes = [f"{evidence.scored} scored, {evidence.unscored} unscored"]
    notes += _reasons(row.unscored_reason for row in evidence)
    wrong_tools = int(summary["right_answer_wrong_tools"].sum())
    # a crash is named above already
    no_verdict = [row.tool_reason for row in evidence if row.tools_unscored and not row.crashed]
    if wrong_tools:
        notes.append(f"{plural(wrong_tools, 'right answer')} (≥ {threshold:g}) through wrong tools")
    if no_verdict:
        notes.append(f"{plural(len(no_verdict), 'tool verdict')} could not be given")
        notes += _reasons(no_verdict)
    header = ("agent", "conversations", "turns", "scored", "unscored", "score", "tools right")
    return Table("What was judged", header, tuple(rows), tuple(notes))


def metrics_tables(evidence: Evidence) -> list[Table]:
    """Further metrics, by agent; no table where there is none."""
    names = sorted({name for row in evidence for name in row.metrics})
    rows = []
    cuts = {name: metric_threshold(evidence, name) for name in names}
    for agent in sorted({row.agent for row in evidence}):
        for name in names:
            grades = [row.metrics[name] for row in evidence if row.agent == agent and name in row.metrics]
            scores = [grade.value for grade in grades if isinstance(grade, Score)]
            passed = sum(score >= cuts[name] for score in scores)
            mean = format_number(sum(scores) / len(scores), 2) if scores else "–"
            unscored = f"{len(grades) - len(scores):,}"
            rows.append((agent, name, f"{len(scores):,}", unscored, mean, f"{passed:,} of {len(scores):,}"))
    if not rows:
        return []
    notes = ("passed: at the metric's own threshold, .5 unless set", *_metric_reasons(evidence))
    return [Table("Metrics", ("agent", "metric", "scored", "unscored", "score", "passed"), tuple(rows), notes)]


def _metric_reasons(evidence: Evidence) -> list[str]:
    """Why metrics could not be given."""
    pairs = [(name, grade) for row in evidence for name, grade in row.metrics.items()]
    reasons = [f"{name}: {grade.reason}" for name, grade in pairs if isinstance(grade, Unscored)]
    return _reasons(reasons)


def tool_problems_tables(evidence: Evidence) -> list[Table]:
    """What goes wrong most often with which tool and argument; no table where nothing does."""
    if not any(row.tool_overall is not None and row.tool_details for row in evidence):
        return []
    found = tool_diagnostics(evidence)
    worst = found.worst()
    if worst.empty:
        return []
    one_agent = len({row.agent for row in evidence}) == 1
    rows = tuple(
        (
            *(() if one_agent else (row["agent"],)),
            row["tool"],
            row["what"],
            f"{row['failed']:,} of {row['of']:,}",
            f"{format_number(row['share'], 2)} {format_interval(row['lower'], row['upper'], 2)}",
        )
        for row in worst.to_dict("records")
    )
    notes = ["95 % Wilson intervals at the effective number of calls (tasks as clusters)"]
    extra = found.tools[found.tools["problem"] == "not expected"]["failed"].sum()
    if 2 * extra > found.tools["failed"].sum():
        notes.append("most of it are calls beyond the expected ones: a rubric of mode superset does not count them")
    header = (*(() if one_agent else ("agent",)), "tool", "what", "calls", "share")
    return [Table("What goes wrong with tools", header, rows, tuple(notes))]


def _reasons(reasons: Iterable[str | None]) -> list[str]:
    """The commonest reasons, with how often each was given."""
    counts = Counter(reason for reason in reasons if reason is not None)
    return [f"  {count} × {reason}" for reason, count in counts.most_common(MOST_REASONS)]


def estimate_tables(est: Estimate) -> list[Table]:
    """Per agent and estimand: pass@k and pass^k with intervals, beside the unbiased and the plug-in estimate."""
    own, plain = est.summary(tasks=False), est.baseline()
    as_judged = est.uncorrected.summary(tasks=False) if est.settings.judge is not None else None
    tables = []
    for agent in est.agents:
        for estimand in [e for e in ESTIMANDS if e in est.posterior.estimands]:
            mine = own[(own["agent"] == agent) & (own["estimand"] == estimand)]
            other = plain[(plain["agent"] == agent) & (plain["estimand"] == estimand)]
            judged = None
            if as_judged is not None:
                judged = as_judged[(as_judged["agent"] == agent) & (as_judged["estimand"] == estimand)]
            tables.append(_estimate_table(est, agent, estimand, mine, other, judged))
    return tables


def _estimate_table(est: Estimate, agent: str, estimand: str, own: Any, plain: Any, judged: Any) -> Table:
    """`judged` has the posterior that takes the judge's verdicts as they are; it then replaces the plug-in column."""
    frequentist = est.settings.method == "frequentist"
    beside = [plain[plain["estimator"] == name] for name in ("unbiased", "plugin")]
    header = ["metric"] + ([] if frequentist else [est.settings.method]) + ["unbiased", "plug-in"]
    if judged is not None:
        beside, header = [judged, beside[0]], ["metric", "corrected", "as judged", "unbiased"]
    rows = []
    for metric in METRICS:
        for k in est.settings.k:
            cells = [metric_name(metric, k)]
            if not frequentist:
                cells.append(_cell(own, metric, k))
            cells += [_cell(frame, metric, k) for frame in beside]
            rows.append(tuple(cells))
    index = est.agent_index(agent)
    trials, unscored = int(est.counts.trials[index].sum()), int(est.counts.unscored[index].sum())
    errored, left_out = int(est.outcomes["errored"][index].sum()), int(est.outcomes.attrs.get("left_out", 0))
    crashes = f" ({plural(errored, 'agent error')})" if errored else ""
    attrs = est.outcomes.attrs
    notes = [
        f"{plural(int(est.counts.attempted[index].sum()), 'task')}, {plural(trials, 'scored trial')}, "
        f"{unscored} unscored{crashes}; unit {attrs['unit']}, indicator {indicator_words(attrs)}; "
        f"{_interval_words(est)}"
    ]
    if judged is not None:
        notes.append(f"corrected and as judged are {est.settings.method}, unbiased is as judged; {est.judge_note}")
    notes += _crash_notes(est, index)
    if left_out:
        notes.append(f"{plural(left_out, 'conversation')} of all agents without any tool verdict left out")
    notes += _footnotes([own, plain], est.settings.k)
    for row in own.to_dict("records"):
        if "distribution-free" in row["note"]:
            notes.append(f"{metric_name(row['metric'], row['k'])}: {row['note']}")
    general = [*own["note"][~own["note"].str.contains("distribution-free")], *plain["note"]]
    notes += dict.fromkeys(filter(None, general))
    return Table(f"{agent}, {ESTIMANDS[estimand]} ({estimand})", tuple(header), tuple(rows), tuple(notes))


def _interval_words(est: Estimate) -> str:
    prob = f"{est.settings.ci_prob * 100:.4g} %"
    if est.settings.method == "frequentist":
        return f"{prob} confidence intervals"
    kind = "equal-tailed" if est.settings.ci_kind == "eti" else "highest-density"
    return f"posterior mean with {prob} credible interval ({kind}), the others with {prob} confidence intervals"


def _crash_notes(est: Estimate, index: int) -> list[str]:
    """What was made of crashed agents, where that was asked for."""
    outcomes = est.outcomes
    if outcomes.attrs.get("errors") == "fail":
        return ["a crashed agent counts as a failure"]
    errored = int(outcomes["errored"][index].sum())
    if outcomes.attrs.get("errors") != "bounds" or not errored:
        return []
    successes, trials = int(est.counts.successes[index].sum()), int(est.counts.trials[index].sum()) + errored
    low, high = format_number(successes / trials), format_number((successes + errored) / trials)
    return [f"share of right trials if all {plural(errored, 'agent error')} had failed or passed: {low} or {high}"]


def _cell(frame: Any, metric: str, k: int) -> str:
    row = frame[(frame["metric"] == metric) & (frame["k"] == k)].iloc[0]
    mark = "*" if row["flags"] else ""
    interval = format_interval(row["lower"], row["upper"])
    mean = format_number(row["mean"])
    return f"{mean}{mark}" if mean == interval else f"{mean}{mark} {interval}"  # one dash where there is neither


def _footnotes(frames: Sequence[Any], ks: Sequence[int]) -> list[str]:
    """One line per flag, naming the k it concerns."""
    notes = []
    for flag, meaning in FLAGS.items():
        hit = [k for k in ks if any(flag in flags for frame in frames for flags in frame[frame["k"] == k]["flags"])]
        if hit:
            where = "" if len(hit) == len(ks) else f" (k = {', '.join(map(str, hit))})"
            notes.append(f"* {flag}{where}: {meaning}")
    return notes


def comparison_lines(found: Comparison) -> list[str]:
    """What stands below a comparison's sentence: ratios, losses, the tasks that drive it, the frequentist test."""
    other = found.baseline if isinstance(found.baseline, str) else format_number(found.baseline)
    lines = [
        f"ratio {found.ratio}, odds ratio {found.odds_ratio} (posterior medians)",
        f"expected loss of choosing {found.agent} {format_number(found.expected_loss)}, "
        f"of choosing {other} {format_number(found.expected_loss_baseline)}",
    ]
    if found.drivers():
        lines.append(f"{found.drivers()} (posterior probabilities)")
    return [*lines, f"beside it, {found.frequentist}"]


def rank_table(ranks: Any) -> Table:
    """The result of `rank`, best agent first."""
    first = ranks.iloc[0]
    name = metric_name(first["metric"], first["k"])
    rows = [
        (
            f"{row['agent']}{'*' if row['flags'] else ''}",
            format_share(row["prob_best"]),
            format_number(row["expected_rank"], 2),
            f"{row['lower_rank']} to {row['upper_rank']}",
            f"{format_number(row['mean'])} {format_interval(row['lower'], row['upper'])}",
            str(row["n_tasks"]),
        )
        for row in ranks.to_dict("records")
    ]
    prob = f"{first['ci_prob'] * 100:.4g} %"
    notes = [
        f"{first['method']}, {prob} intervals ({first['ci_kind']}; of ranks equal-tailed); "
        f"unit {first['unit']}, indicator {first['indicator']}"
    ]
    notes += [f"* {flag}: {meaning}" for flag, meaning in FLAGS.items() if ranks["flags"].str.contains(flag).any()]
    notes += [first["note"]] if first["note"] else []
    header = ("agent", "P(best)", "mean rank", "rank", name, "tasks")
    return Table(
        f"Ranked by {name}, {ESTIMANDS[first['estimand']]} ({first['estimand']})", header, tuple(rows), tuple(notes)
    )


def superiority_table(matrix: Any) -> Table:
    """The result of `superiority`: the probability that the agent of the row beats the one of the column."""
    rows = [
        (f"{i}. {agent}", *(format_share(value, 2) for value in values))
        for i, (agent, values) in enumerate(zip(matrix.index, matrix.to_numpy(), strict=True), start=1)
    ]
    header = ("P(row higher)", *(f"{i}." for i in range(1, len(rows) + 1)))
    return Table("Probability of superiority", header, tuple(rows))


def plan_table(plan: Plan) -> Table:
    """The designs of a plan, one per number of trials: the cheapest that does it, else the dearest that was tried."""
    goals = {"conclusive": "P(conclusive)", "detected": "P(told apart)"}
    extra = [name for name in goals if name == plan.goal]
    rows = [
        (
            f"{one.tasks:,}{' ◄' if one == plan.best else ''}",
            str(one.trials),
            f"{one.cost:,.6g}",
            format_number(one.width),
            *(format_number(getattr(one, name), 2) for name in extra),
            format_number(one.rate_sd),
        )
        for one in plan.frontier
    ]
    name = metric_name(plan.metric, plan.k)
    header = (
        "new tasks",
        "trials each",
        "cost",
        f"width of {name}",
        *(goals[name] for name in extra),
        "sd of the rate",
    )
    notes = (
        f"mean width of the {plan.ci_prob * 100:.4g} % interval ({plan.ci_kind}); "
        "sd of the rate = √(μ(1-μ)(ρ+(1-ρ)/n)/T), from the new tasks alone; ◄ recommended",
    )
    return Table(f"Designs for {name} on a new task of this kind", header, tuple(rows), notes)
