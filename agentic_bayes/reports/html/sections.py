"""The sections of a page below the verdict, as tables of text."""

from __future__ import annotations

import math
import shlex
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from agentic_bayes.decisions.compare import Comparison, TaskDifference
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.model_checks import FLAGS
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.llm.store import Store, Usage
from agentic_bayes.evidence.metrics.registry import metric_names
from agentic_bayes.formatting import (
    METRICS,
    format_interval,
    format_number,
    format_share,
    indicator_words,
    interval_kind,
    metric_name,
    plural,
)
from agentic_bayes.judges.judge_agreement import judge_agreement
from agentic_bayes.reports.html.figures import interval_bar
from agentic_bayes.reports.html.question import Question
from agentic_bayes.reports.html.trials import Trial
from agentic_bayes.reports.html.verdict import worst_tasks
from agentic_bayes.reports.tables import ESTIMANDS, Table

MOST_DRIVERS = 10
MOST_REASONS = 8


def data_table(est: Estimate, evidence: Evidence | None) -> Table:
    """The denominators, agent by agent; and a warning where the evidence is not what was counted."""
    counts, errored = est.counts, est.outcomes["errored"].values
    rows = []
    for index, agent in enumerate(est.agents):
        tried = counts.attempted[index]
        n = counts.trials[index][counts.scored[index]]
        passed, scored = int(counts.successes[index].sum()), int(counts.trials[index].sum())
        per_task = "–" if not n.size else str(n.min()) if n.min() == n.max() else f"{n.min()} to {n.max()}"
        numbers = (int(tried.sum()), scored, passed, scored - passed, int(counts.unscored[index].sum()))
        rows.append((agent, *(f"{number:,}" for number in numbers), f"{int(errored[index].sum()):,}", per_task))
    attrs = est.outcomes.attrs
    notes = [
        f"Unit {attrs['unit']}, indicator {indicator_words(attrs)}. Unscored trials count neither as passed nor failed."
    ]
    if attrs.get("errors") == "fail":
        notes.append("A crashed agent counts as a failure.")
    if left_out := int(attrs.get("left_out", 0)):
        notes.append(f"{plural(left_out, 'conversation')} without any tool verdict left out.")
    if est.differences:
        notes.append(est.differences)
    if evidence is not None and attrs["unit"] == "conversation":
        judged = len({(row.agent, row.task, row.trial) for row in evidence.rows})
        counted = int(counts.trials.sum() + counts.unscored.sum()) + int(attrs.get("left_out", 0))
        if judged != counted:
            notes.append(
                f"The evidence is of {plural(judged, 'conversation')}, the counts are of {counted:,}: "
                "scores and reasons on this page are not those that were counted."
            )
    header = ("agent", "tasks", "scored", "passed", "failed", "unscored", "agent errors", "trials per task")
    return Table("Trials by agent", header, tuple(rows), tuple(notes))


def estimate_sections(est: Estimate, own: Any, plain: Any, ks: Sequence[int]) -> list[dict[str, Any]]:
    """The estimates, one table per estimand, with intervals drawn and the frequentist ones beside them."""
    rows = {
        (r["agent"], r["estimand"], r["metric"], r["k"], r["estimator"]): r
        for frame in (own, plain)
        for r in frame.to_dict("records")
    }
    s = est.settings
    main = s.estimator if s.method == "frequentist" else "posterior"
    found = []
    for estimand in (e for e in ESTIMANDS if e in est.posterior.estimands):
        cells = []
        for metric in METRICS:
            for k in ks:
                for index, agent in enumerate(est.agents):
                    one = rows[agent, estimand, metric, k, main]
                    beside = [rows[agent, estimand, metric, k, name] for name in ("unbiased", "plugin")]
                    cells.append(
                        {
                            "agent": index,
                            "first": index == 0,
                            "metric": metric_name(metric, k),
                            "mean": format_number(one["mean"]),
                            "interval": format_interval(one["lower"], one["upper"]),
                            "bar": interval_bar(one["mean"], one["lower"], one["upper"]),
                            "beside": [_with_interval(other) for other in beside],
                            "doubt": "; ".join(filter(None, (one["flags"], one["note"], _undefined(beside[0])))),
                        }
                    )
        caption = (
            f"{ESTIMANDS[estimand][0].upper()}{ESTIMANDS[estimand][1:]} (estimand {estimand}): "
            f"{s.method}, {'estimate' if s.method == 'frequentist' else 'posterior mean'} with "
            f"{interval_kind(s.method, s.ci_prob, s.ci_kind)}; unit {est.outcomes.attrs['unit']}, "
            f"indicator {indicator_words(est.outcomes.attrs)}"
        )
        found.append({"caption": caption, "rows": cells})
    return found


def _undefined(unbiased: Mapping[str, Any]) -> str:
    """Why there is no unbiased estimate, where there is none."""
    return f"unbiased: {unbiased['note']}" if math.isnan(unbiased["mean"]) else ""


def _with_interval(row: Mapping[str, Any]) -> str:
    interval = format_interval(row["lower"], row["upper"])
    mean = format_number(row["mean"])
    return mean if interval == "–" else f"{mean} {interval}"


def comparison_table(found: Sequence[Comparison]) -> Table:
    """The differences at several k, beside the frequentist test."""
    rows = [
        (
            metric_name(one.metric, one.k),
            one.verdict,
            format_share(one.prob_better),
            f"{format_number(one.mean)} {format_interval(one.lower, one.upper)}",
            format_share(one.prob_rope),
            str(one.frequentist),
        )
        for one in found
    ]
    first = found[0]
    header = ("metric", "verdict", "P(higher)", "difference", f"P(within ±{first.rope:g})", "frequentist, beside it")
    what = interval_kind(first.method, first.ci_prob, first.ci_kind)
    notes = (
        f"Difference: {first.agent} minus {first.baseline}, posterior mean with {what}; {first.method}, "
        f"estimand {first.estimand}, pairing {first.pairing}, {plural(first.n_shared_tasks, 'shared task')}; "
        f"unit {first.unit}, indicator {first.indicator}.",
    )
    return Table("The difference", header, tuple(rows), notes)


def driver_table(one: Comparison) -> Table | None:
    """The tasks that drive a difference; None where the agents share none."""
    if not one.tasks:
        return None
    half = MOST_DRIVERS // 2
    sure = bool(one.lost or one.won)
    chosen = [*one.lost[:MOST_DRIVERS], *one.won[:MOST_DRIVERS]]
    if not sure:
        chosen = list(dict.fromkeys([*one.tasks[:half], *one.tasks[-half:]]))
    rows = tuple(_driver(task, "lost" if task in one.lost else "won" if task in one.won else "–") for task in chosen)
    what = interval_kind(one.method, one.ci_prob, one.ci_kind)
    notes = [f"Difference in {metric_name(one.metric, one.k)} of the task, posterior mean with {what}; {one.method}."]
    if not sure:
        notes.append("No task is won or lost with a probability of .9; these come nearest.")
    for word, tasks in (("lost", one.lost), ("won", one.won)):
        if len(tasks) > MOST_DRIVERS:
            notes.append(f"{len(tasks):,} tasks {word}, the {MOST_DRIVERS} surest are shown.")
    header = ("task", f"for {one.agent}", f"{one.agent} passed", f"{one.baseline} passed", "difference", "P(higher)")
    title = f"Tasks on which the two differ most, in {metric_name(one.metric, one.k)}"
    return Table(title, header, rows, tuple(notes))


def _driver(task: TaskDifference, ending: str) -> tuple[str, ...]:
    return (
        task.task,
        ending,
        f"{task.successes} of {task.trials}",
        f"{task.baseline_successes} of {task.baseline_trials}",
        f"{format_number(task.mean)} {format_interval(task.lower, task.upper)}",
        format_share(task.prob_better),
    )


def reasons_tables(est: Estimate, trials: Sequence[Trial]) -> list[Table]:
    """What failed most: tasks, then the commonest reasons of failed and of unscored trials."""
    rows = [
        (agent, task, f"{passed} of {scored}")
        for agent, tasks in worst_tasks(est).items()
        for task, passed, scored in tasks
    ]
    found = []
    if rows:
        note = ("The lowest success probabilities; the table of tasks has all.",)
        found.append(Table("Tasks that failed most", ("agent", "task", "passed"), tuple(rows), note))
    titles = {"fail": "Why trials failed", "errored": "Why agents crashed", "unscored": "Why trials are unscored"}
    for verdict, title in titles.items():
        counts: Counter[str] = Counter()
        agents: defaultdict[str, Counter[str]] = defaultdict(Counter)
        chosen = [one for one in trials if one.verdict == verdict]
        for one in chosen:
            for reason in dict.fromkeys(one.reasons):
                counts[reason] += 1
                agents[reason][one.agent] += 1
        if not counts:
            continue
        lines = tuple(
            (reason, f"{n:,}", ", ".join(f"{agent} {m:,}" for agent, m in sorted(agents[reason].items())))
            for reason, n in counts.most_common(MOST_REASONS)
        )
        more = len(counts) - len(lines)
        notes = [f"Of {plural(len(chosen), 'trial')}; one may have several reasons."]
        notes += [f"{plural(more, 'rarer reason')} left out."] if more else []
        found.append(Table(title, ("reason", "trials", "agents"), lines, tuple(notes)))
    return found


def judge_tables(
    est: Estimate, evidence: Evidence | None, store: Store | None, facts: Mapping[str, str]
) -> list[Table]:
    """Who judged, how far judges agree, how their errors were taken into account, and what it took."""
    rows: list[tuple[str, str]] = []
    if evidence is not None:
        rows += [("judge", text) for text in sorted({row.judge for row in evidence.rows})]
        rows += [("tool rubric", text) for text in sorted({row.tool_rubric for row in evidence.rows})]
        further = sorted({pair for row in evidence.rows for pair in row.graders.items()})
        rows += [(f"metric {name}", identity) for name, identity in further]
    elif judge := est.outcomes.attrs.get("judge"):
        rows.append(("judge", str(judge)))
    rows.append(("judge's errors", est.judge_note or "not corrected: the verdicts are taken as they are"))
    rows += facts.items()
    if store is not None:
        rows += [(f"asked: {model}", _usage_words(usage)) for model, usage in store.models().items()]
    elif not any("cost" in name for name in facts):
        rows.append(("tokens and cost", "not known here: they are kept in a store, which was not given"))
    tables = [Table("Who judged, and what it took", ("what", "value"), tuple(rows))]
    if est.settings.judge is not None:
        rates = est.judge_error().to_dict("records")
        lines = tuple(
            (one["rate"], format_number(one["mean"]), format_interval(one["lower"], one["upper"]), str(one["n_labels"]))
            for one in rates
        )
        header = ("rate", "mean", f"{rates[0]['ci_prob'] * 100:.4g} % {rates[0]['ci_kind']}", "labels")
        tables.append(Table("The judge's error rates", header, lines))
    return tables + _agreement(evidence)


def _agreement(evidence: Evidence | None) -> list[Table]:
    """How far several judges agree; nothing where there is one."""
    names = {name for row in evidence.rows for name in row.metrics} if evidence is not None else set()
    judges = sorted(names - set(metric_names()))
    if evidence is None or not judges or all(row.answer_score is None for row in evidence.rows):
        return []
    found = judge_agreement(evidence)
    rows = tuple(
        (
            one.measure,
            ", ".join(one.raters),
            f"{format_number(one.value)} {format_interval(one.lower, one.upper)}",
            f"{one.items:,}",
            one.note,
        )
        for one in found.measures
    )
    note = f"Of verdicts, a score of 0.7 or more being right; {found.ci_prob * 100:.4g} % bootstrap intervals."
    return [Table("Agreement of the judges", ("measure", "judges", "value", "answers", "note"), rows, (note,))]


def _usage_words(usage: Usage) -> str:
    cost = f", cost {usage.cost:,.6g}" if usage.unpriced < usage.calls else ", cost not known"
    return (
        f"{plural(usage.judgements, 'judgement')} by {plural(usage.calls, 'call')} ({usage.failed:,} failed), "
        f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out{cost}"
    )


def flag_lines(est: Estimate, own: Any) -> list[str]:
    """Every flag of a number of this page: what it means, and where it applies."""
    found = []
    for flag, meaning in FLAGS.items():
        hit = own[own["flags"].str.contains(flag)]
        if len(hit):
            agents = ", ".join(name for name in est.agents if name in set(hit["agent"]))
            ks = sorted(set(hit["k"].tolist()))
            estimands = ", ".join(dict.fromkeys(hit["estimand"]))
            found.append(f"{flag}: {meaning} ({agents}; {estimands}; k = {', '.join(map(str, ks))}).")
    return found


def diagnostics_table(est: Estimate) -> Table:
    """What the sampler says of itself, and whether the model fits the data."""
    rows: list[tuple[str, ...]] = []
    if est.diagnostics is not None:
        rows.append(("sampler", str(est.diagnostics)))
    elif est.settings.method in ("hierarchical", "conjugate"):
        rows.append(("sampler", "none: the posterior is computed without sampling"))
    if est.settings.method in ("hierarchical", "crossed"):
        for one in est.predictive_check().to_dict("records"):
            text = one["note"]
            if not text:
                text = (
                    f"observed {format_number(one['observed'])}, expected {format_number(one['expected'])}, "
                    f"p = {format_number(one['p'])}"
                )
            rows.append((f"{one['agent']}, {one['statistic']}", text))
    if est.note:
        rows.append(("method", est.note))
    notes = ("Replicated data against the counts: p below .01 (of shares also above .99) is a misfit.",)
    return Table("Diagnostics", ("check", "result"), tuple(rows or [("sampler", "none is used")]), notes)


def untold(est: Estimate) -> list[str]:
    """Settings that change numbers and that the command line has no option for."""
    s = est.settings
    found = {
        "estimator": s.estimator != "unbiased",
        "pool_agents": s.pool_agents != (s.method == "hierarchical" and s.judge is None),
        "pool_tasks": s.pool_tasks,
        "prior": s.prior is not None and not s.prior_is_default,
        "fixed judge_labels": s.judge is not None and s.judge.calibration == "fixed",
    }
    return [name for name, changed in found.items() if changed]


def settings_table(est: Estimate) -> Table:
    """Settings, seed and versions."""
    record = est.settings.record()
    judge = record.pop("judge")
    rows = [(name, _setting(value)) for name, value in record.items() if value is not None]
    if judge is not None:
        rows.append(("judge_labels", est.judge_note))
    rows += [(f"counted: {name}", _setting(value)) for name, value in est.outcomes.attrs.items() if value != ""]
    rows += [(f"version of {name}", text) for name, text in est.versions.items()]
    return Table("Settings and versions", ("what", "value"), tuple(rows))


def _setting(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def commands(est: Estimate, asked: Question, ks: Sequence[int], source: str) -> list[str]:
    """Commands that give these numbers again."""
    s, attrs = est.settings, est.outcomes.attrs
    file = shlex.quote(source)
    fit = f"--method {s.method} --ci-prob {s.ci_prob!r} --ci-kind {s.ci_kind} --random-seed {s.random_seed}"
    counting = ""
    if attrs.get("source") == "evidence":
        counting = f" --unit {attrs['unit']} --indicator {shlex.quote(str(attrs['indicator']))}"
        if attrs["indicator"] in ("answer", "tools", "joint"):
            counting += f" --threshold {attrs['threshold']} --tool-threshold {attrs['tool_threshold']}"
        if attrs.get("errors", "unscored") != "unscored":
            counting += f" --errors {attrs['errors']}"
        if est.agents == ("all",):
            counting += " --agents together"
    engine = "" if s.engine == "auto" else f" --engine {s.engine}"
    engine += " --inflate" if s.inflate else ""
    if s.judge is not None and s.judge.calibration == "estimated":
        engine += " --judge-labels LABELS.csv"
    k = ",".join(map(str, ks))
    found = [f"agentic-bayes estimate {file}{counting} {fit}{engine} --k {k} -o results"]
    saved = "results/estimate.nc"
    for one in asked.comparisons[:1]:
        baseline = one.baseline if isinstance(one.baseline, str) else repr(one.baseline)
        found.append(
            f"agentic-bayes compare {saved} --agent {shlex.quote(one.agent)} --baseline {shlex.quote(baseline)} "
            f"{asked.command}"
        )
    if (gate := asked.gate) is not None:
        found.append(
            f"agentic-bayes gate {saved} --agent {shlex.quote(gate.agent)} --metric {metric_name(gate.metric, gate.k)} "
            f"--estimand {gate.estimand} --at-least {gate.at_least!r} --probability {gate.required!r}"
        )
    return found
