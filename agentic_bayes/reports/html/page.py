"""The report as one HTML file that needs nothing else: the verdict first, then everything that it rests on."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from agentic_bayes.checks import check_type
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.posterior import Estimand
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.llm.store import Store
from agentic_bayes.formatting import Metric, interval_kind, plain_text, plural
from agentic_bayes.records.base import short
from agentic_bayes.records.model import Conversation
from agentic_bayes.records.write import replacing
from agentic_bayes.reports.html.figures import attempts, curve_numbers, curve_panels, difference_bars
from agentic_bayes.reports.html.question import Question, ask
from agentic_bayes.reports.html.sections import (
    commands,
    comparison_table,
    data_table,
    diagnostics_table,
    driver_table,
    estimate_sections,
    flag_lines,
    judge_tables,
    reasons_tables,
    settings_table,
    untold,
)
from agentic_bayes.reports.html.tasks import MOST_BYTES, task_columns, trial_records
from agentic_bayes.reports.html.text import content_hash, cut, is_number_like, json_block, shown
from agentic_bayes.reports.html.trials import PARTS, Trial, check_agents, find_trials
from agentic_bayes.reports.html.verdict import answers, headline
from agentic_bayes.reports.tables import (
    ESTIMANDS,
    Table,
    evidence_table,
    metrics_tables,
    rank_table,
    superiority_table,
    tool_problems_tables,
)

__all__ = ["write_report"]

Path_ = str | os.PathLike[str]


def write_report(
    est: Estimate,
    path: Path_,
    *,
    evidence: Evidence | None = None,
    conversations: Iterable[Conversation] | None = None,
    agent: str | None = None,
    baseline: str | float | None = None,
    metric: Metric = "pass_pow_k",
    k: int = 1,
    estimand: Estimand | None = None,
    at_least: float | None = None,
    probability: float = 0.95,
    store: Store | None = None,
    source: str = "FILE",
) -> Path:
    """Write everything about an estimate into one HTML file that people can read and pass on.

    Parameters
    ----------
    est : Estimate
        The estimate.
    path : path
        Where to; an existing file is replaced, all of it or nothing. Same arguments, same bytes.
    evidence : Evidence, optional
        The scores behind the counts: adds tools, reasons, judge, and the scores of every conversation.
    conversations : iterable of Conversation, optional
        What was said and called, to be opened from the table of tasks.
    agent : str, optional
        Whom the verdict is about. By default the later of two agents, the best-ranked of several.
    baseline : str or float, optional
        With whom, or with which value, it is compared. By default the other of two agents, the next in rank of several.
    metric : {"pass_pow_k", "pass_at_k"}
        Of the verdict.
    k : int
        Attempts, ≥ 1, of the verdict.
    estimand : {"population", "tasks"}, optional
        Of the verdict; ``population`` where the method defines it.
    at_least : float, optional
        The bar of a gate on the verdict's agent, metric, k and estimand: then its verdict comes first.
    probability : float
        What the gate requires, in (0.5, 1).
    store : Store, optional
        Where judgements were kept: adds tokens and cost.
    source : str
        How the file of the data is called in the commands that the report shows.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    UnknownName, InvalidArgument
        If an argument is not valid, or evidence and estimate have no agent in common.
    EstimateError
        If a comparison is asked for that the estimate cannot give.
    RecordsError
        If it cannot be told which task a conversation attempted.

    Notes
    -----
    The file makes no request and keeps nothing. What comes from conversations and names stays text: it is escaped,
    a content security policy admits only the page's own script and style, and characters that cannot be seen are shown.
    Beyond 10 MB of conversations those that passed are left out first, and the page says how many.
    """
    check_type("est", est, Estimate, "estimate() makes one")
    target = _target(path)
    if evidence is not None:
        check_type("evidence", evidence, Evidence, "from assess or Evidence.read")
    if store is not None:
        check_type("store", store, Store, "from agentic_bayes.Store")
    if not isinstance(source, str):
        raise InvalidArgument(f"source must be text, got {short(source)}")
    check_agents(est, evidence)
    return write_page(
        est,
        target,
        asked=ask(est, agent, baseline, metric, k, estimand, at_least, probability),
        trials=find_trials(est, evidence, conversations),
        evidence=evidence,
        store=store,
        facts={},
        source=source,
    )


def _target(path: Path_) -> Path:
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidArgument(f"path must be a file name, got {short(path)}")
    try:
        target = Path(os.path.realpath(path))
        free = target.parent.is_dir() and os.access(target.parent, os.W_OK) and not target.is_dir()
        free = free and (not target.exists() or target.is_file())
    except (OSError, ValueError):  # a name that no file can have
        free = False
    if not free:
        raise InvalidArgument(f"path must be a file in a folder that can be written to, got {str(path)!r}")
    return target


def write_page(
    est: Estimate,
    path: Path,
    *,
    asked: Question,
    trials: Sequence[Trial],
    facts: Mapping[str, str],
    source: str,
    evidence: Evidence | None = None,
    store: Store | None = None,
) -> Path:
    """Write the page of a question that is settled and of attempts that are found."""
    text = _page(est, asked, trials, facts=facts, source=source, evidence=evidence, store=store)
    with replacing(str(path)) as file:
        file.write(text.encode())
    return path


def _page(
    est: Estimate,
    asked: Question,
    trials: Sequence[Trial],
    *,
    facts: Mapping[str, str],
    source: str,
    evidence: Evidence | None,
    store: Store | None,
) -> str:
    """The text of the page."""
    style, script = _template("report.css"), _template("report.js")
    policy = (
        f"default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"script-src '{content_hash(script)}'; style-src '{content_hash(style)}'"
    )
    failures = reasons_tables(est, trials)
    tools = tool_problems_tables(evidence) if evidence is not None else []
    verdict, kind = headline(est, asked)
    page = _environment().get_template("report.html")
    return str(
        page.render(
            policy=policy,
            style=style,
            script=script,
            title=plain_text(verdict),
            verdict=verdict,
            kind=kind,
            answers=answers(est, asked, _failed_most(failures, tools), source),
            agents=est.agents,
            data=data_table(est, evidence),
            **_numbers(est, asked),
            **_comparison(est, asked),
            failures=failures,
            **_attempts(est, asked, trials),
            evidence=[evidence_table(evidence), *metrics_tables(evidence)] if evidence is not None else [],
            tools=tools,
            judges=judge_tables(est, evidence, store, facts),
            diagnostics=diagnostics_table(est),
            settings=est.settings,
            interval=interval_kind(est.settings.method, est.settings.ci_prob, est.settings.ci_kind),
            setup=settings_table(est),
            commands=commands(est, asked, est.settings.k, source) if source else [],
            untold=", ".join(untold(est)),
        )
    )


def _numbers(est: Estimate, asked: Question) -> dict[str, Any]:
    """Tables, curves and the slider; all from one summary at every k of the curves."""
    wide = est.with_k(attempts(est, asked.k))
    own, plain = wide.summary(tasks=False), wide.baseline()
    curves = [frame[frame["estimand"] == asked.estimand] for frame in (own, plain[plain["estimator"] == "plugin"])]
    numbers = curve_numbers(wide, *curves)
    return {
        "estimates": estimate_sections(est, own, plain, est.settings.k),
        "where": ESTIMANDS[asked.estimand],
        "panels": curve_panels(wide, *curves),
        "numbers": numbers,
        "start": wide.settings.k.index(asked.k),
        "numbers_json": json_block([[one["k"], one["rows"]] for one in numbers]),
        "flags": flag_lines(est, own[own["k"].isin(est.settings.k)]),
    }


def _comparison(est: Estimate, asked: Question) -> dict[str, Any]:
    found = asked.comparisons
    return {
        "asked": asked,
        "compared": found[0] if found else None,
        "comparison": comparison_table(found) if found else None,
        "differences": difference_bars(found) if found else None,
        "drivers": driver_table(found[0]) if found else None,
        "ranks": _rank_tables(est, asked),
    }


def _attempts(est: Estimate, asked: Question, trials: Sequence[Trial]) -> dict[str, Any]:
    """The table of tasks, and what is opened from it."""
    from markupsafe import Markup

    tasks = task_columns(est, asked.comparisons[0] if asked.comparisons else None)
    records, left_out = trial_records(est, trials)
    return {
        "tasks": tasks,
        "tasks_json": json_block(tasks),
        "trials_json": Markup('{{"parts":{},"trials":[{}]}}').format(json_block(PARTS), Markup(",").join(records)),
        "n_trials": len(records),
        "has_conversations": any(one.said is not None for one in trials),
        "left_out": left_out,
        "most_mb": MOST_BYTES // 10**6,
    }


def _failed_most(failures: Sequence[Table], tools: Sequence[Table]) -> list[str]:
    """The commonest reason and the commonest fault of a tool, in a line each."""
    lines = []
    for table in failures:
        if table.title == "Why trials failed":
            reason, n, _ = table.rows[0]
            lines.append(f"Commonest reason: {cut(reason, 200)} ({'1 trial' if n == '1' else f'{n} trials'})")
    for table in tools[:1]:
        *who, what, calls, _ = table.rows[0]
        lines.append(f"Commonest fault with tools: {', '.join(who)}, {what} ({calls} calls)")
    return lines


def _rank_tables(est: Estimate, asked: Question) -> list[Table]:
    from agentic_bayes.decisions.rank import superiority

    if asked.ranks is None:
        return []
    matrix = superiority(est, metric=asked.metric, k=asked.k, estimand=asked.estimand)
    return [rank_table(asked.ranks), superiority_table(matrix)]


@cache
def _template(name: str) -> str:
    return (files("agentic_bayes.reports.html") / "templates" / name).read_text(encoding="utf-8")


@cache
def _environment() -> Any:
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"shown": shown, "plain": plain_text}
    environment.tests["number_like"] = is_number_like
    environment.globals |= {"plural": plural}
    environment.loader = jinja2.FunctionLoader(_template)
    return environment
