"""The report as one self-contained HTML file: the verdict first, then everything that it rests on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, get_args

from agentic_bayes.checks import check_choice, check_type
from agentic_bayes.decisions.compare import Comparison, compare
from agentic_bayes.decisions.decision import rope_words
from agentic_bayes.decisions.tiers import TierTable
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.estimate import Estimate, estimate_as
from agentic_bayes.estimation.groups import WEIGHTED
from agentic_bayes.estimation.methods.options import Crossed, Frequentist
from agentic_bayes.estimation.posterior import Estimand
from agentic_bayes.estimation.summary import overall_rows, rows_frame, summary_rows
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.llm.store import Store
from agentic_bayes.formatting import brief_names, exact_percent, plain_text, plural, signed
from agentic_bayes.records.base import short
from agentic_bayes.records.model import Conversation
from agentic_bayes.reports.colours import GREY, agent_colours
from agentic_bayes.reports.evidence_tables import tool_problems_tables
from agentic_bayes.reports.html import sections
from agentic_bayes.reports.html.agents import (
    MOST_RANKED,
    agent_order,
    heat_map,
    ranked_agents,
    ranking_table,
)
from agentic_bayes.reports.html.as_markdown import markdown_page
from agentic_bayes.reports.html.by_threshold import threshold_rows
from agentic_bayes.reports.html.failures import FailureTable, failure_tables
from agentic_bayes.reports.html.figures import attempts, curve_numbers, curve_panels, difference_picture
from agentic_bayes.reports.html.frontier import frontiers
from agentic_bayes.reports.html.opening import Rows, default_title, headline, lede, rate_groups, rate_words
from agentic_bayes.reports.html.question import ReportQuestion, ask, without_option
from agentic_bayes.reports.html.tasks import MOST_BYTES, task_columns, trial_records
from agentic_bayes.reports.html.text import (
    LONGEST_BESIDE,
    LONGEST_SHOWN,
    brief_cells,
    content_hash,
    is_number_like,
    json_block,
    named,
    said,
    shown,
)
from agentic_bayes.reports.html.trials import PARTS, ReportTrial, check_evidence_agents, count_attempts, find_trials
from agentic_bayes.reports.html.verdict import answers, reading_lines
from agentic_bayes.reports.tables import (
    ESTIMANDS,
    estimate_tables,
    group_tables,
    rows_by_key,
    settings_table,
    superiority_table,
)
from agentic_bayes.whole_files import replacing

__all__ = ["write_report"]

StrPath = str | os.PathLike[str]
ReportFormat = Literal["html", "markdown"]
MOST_DRAWN = 6  # agents that have curves; with more, what lists every agent is folded
MOST_LISTED = 25  # agents whose numbers a page lists
MOST_COLUMNS = 3  # of many agents in the table of tasks
MOST_PAIRS = 15  # agents that are compared pair by pair


def write_report(
    est: Estimate,
    path: StrPath,
    *,
    title: str | None = None,
    note: str | None = None,
    date: str | None = None,
    evidence: Evidence | None = None,
    conversations: Iterable[Conversation] | None = None,
    agent: str | None = None,
    baseline: str | float | None = None,
    metric: str = "pass^1",
    estimand: Estimand | None = None,
    at_least: float | None = None,
    confidence: float = 0.95,
    tiers: TierTable | None = None,
    store: Store | None = None,
    source: str | Sequence[str] = "FILE",
    to: ReportFormat | None = None,
) -> Path:
    """Write everything about an estimate into one HTML file that people can read and pass on.

    Parameters
    ----------
    est : Estimate
        The estimate.
    path : path
        File to write; an existing one is replaced as a whole. The same arguments give the same bytes.
    title : str, optional
        What the report is about; stands above the verdict. Default: the agents, for example "v2 compared with v1".
    note : str, optional
        What was tested, in a line or two: the suite, the versions, the occasion.
    date : str, optional
        Date of the report, as shown. Default: today (UTC).
    evidence : Evidence, optional
        The scores behind the counts: adds tools, reasons, judge, and the scores of every conversation.
    conversations : iterable of Conversation, optional
        Conversations that readers can open from the table of tasks.
    agent : str, optional
        Agent of the verdict. Default: the later of two agents, the best-ranked of several.
    baseline : str or float, optional
        Agent or value to compare it with. Default: the other of two agents, the next in rank of several.
    metric : str
        Of the verdict: "pass@k" or "pass^k" with a number.
    estimand : {"population", "tasks"}, optional
        Of the verdict; ``population`` where the method defines it.
    at_least : float, optional
        The bar of a gate on the verdict's agent, metric and estimand: its verdict then comes first.
    confidence : float
        Probability that the gate requires, in (0.5, 1).
    tiers : {"paper", "gaussia"}, optional
        Also say how probable each deployment tier of this table is, as `classify` does.
    store : Store, optional
        The judge's store: adds tokens and cost.
    source : str or sequence of str
        Name of the data file in the commands that the report shows; or that and the options that read it, for example
        ``["runs.csv", "--columns", "correct=score", "--threshold", "0.6"]``.
    to : {"html", "markdown"}, optional
        ``markdown`` writes the first screen with tables folded below it, for a pull request or a job summary. Default:
        by the ending of the path, ``.md`` being Markdown.

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
        If a conversation does not tell which task it attempted.

    Notes
    -----
    The file sends no requests and stores nothing. Names and conversations stay text: they are escaped, a content
    security policy admits only the page's own script and style, and invisible characters are shown. Beyond 10 MB of
    conversations the page leaves out those that passed first, and says how many.
    """
    check_type("est", est, Estimate, "estimate() makes one")
    target = _target(path)
    if evidence is not None:
        check_type("evidence", evidence, Evidence, "from assess or Evidence.read")
    if store is not None:
        check_type("store", store, Store, "from agentic_bayes.Store")
    words = [source] if isinstance(source, str) else source
    if not isinstance(words, Sequence) or not words or not all(isinstance(word, str) for word in words):
        raise InvalidArgument(f"source must be text, or a list of texts, got {short(source)}")
    heading, to = PageHeading.of(title, note, date), report_format(target, to)
    check_evidence_agents(est, evidence)
    return write_page(
        est,
        target,
        heading=heading,
        asked=ask(est, agent, baseline, metric, estimand, at_least, confidence, tiers),
        trials=find_trials(est, evidence, conversations),
        evidence=evidence,
        store=store,
        facts={},
        source=words,
        to=to,
    )


def report_format(path: Path, to: str | None) -> ReportFormat:
    """What a report is written as."""
    if to is None:
        return "markdown" if path.suffix.lower() in (".md", ".markdown") else "html"
    check_choice("to", to, get_args(ReportFormat))
    return "markdown" if to == "markdown" else "html"


@dataclass(frozen=True, slots=True)
class PageHeading:
    """What the author of a page says above the verdict."""

    title: str
    note: str
    date: str

    @classmethod
    def of(cls, title: str | None = None, note: str | None = None, date: str | None = None) -> PageHeading:
        """Of texts as they were given; the date of today where none was."""
        for name, value in (("title", title), ("note", note), ("date", date)):
            if value is not None and not isinstance(value, str):
                raise InvalidArgument(f"{name} must be text, got {short(value)}")
        return cls(title or "", note or "", datetime.now(UTC).date().isoformat() if date is None else date)


def _target(path: StrPath) -> Path:
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
    asked: ReportQuestion,
    trials: Sequence[ReportTrial],
    facts: Mapping[str, str],
    source: Sequence[str],
    heading: PageHeading | None = None,
    evidence: Evidence | None = None,
    store: Store | None = None,
    to: ReportFormat = "html",
) -> Path:
    """Write the page of a settled question and of known attempts."""
    style, script = _template("report.css"), _template("report.js")
    policy = (
        f"default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"script-src '{content_hash(script)}'; style-src '{content_hash(style)}'"
    )
    heading = PageHeading.of() if heading is None else heading
    count_attempts(trials)
    worst, attrs = sections.worst_table(est), est.outcomes.attrs
    noun = "trial" if attrs["unit"] == "conversation" else "conversation"
    tools_count = attrs["indicator"] != "answer"
    failed, unscored = failure_tables(trials, _in_order(est, asked), noun, tools_count=tools_count)
    failures = [one for one in (failed, unscored) if one is not None]
    tools = tool_problems_tables(evidence) if evidence is not None else []
    listed, briefs = _listed(est, asked), _briefs(est.agents)
    wide = est.with_k(attempts(est, asked.metric.k))
    found = summary_rows(wide.checks, est.outcomes.attrs, tasks=False, agents=listed)
    summary = rows_frame(list(found), "all", wide.checks, tasks=False)
    own, plain = map(overall_rows, (summary, _without_model(wide, listed)))
    rows = rows_by_key(own, plain)
    verdict, kind = headline(est, asked, rows)
    about = heading.title or default_title(est, asked)
    weighted = summary[summary["group"] == WEIGHTED].assign(group="") if "group" in summary else summary[:0]
    rates = rate_groups(est, asked, rows)
    answered = answers(est, asked, rows, _failed_most(failed, evidence), source, rows_by_key(weighted))
    groups = [replace(one, text="") for one in group_tables(est, summary[summary["k"].isin(est.settings.k)])]
    if to == "markdown":
        compared = _comparison(asked)
        tables = [compared[name] for name in ("gated", "ranking_table", "further_table", "comparison", "by_group")]
        tables += compared["drivers"]
        few = estimate_tables(est) if len(est.agents) <= MOST_DRAWN else []
        tables += [worst, *(table for one in failures for table in one.tables())]
        tables += [sections.data_table(est, evidence, agent_order(est, asked)), *few, *groups, settings_table(est)]
        lines = (about, heading.note, heading.date)
        text = markdown_page(est, asked, lines, verdict, rates, answered, tables) + "\n"
        with replacing(str(path)) as file:
            file.write(text.encode())
        return path
    text = (
        _environment()
        .get_template("report.html")
        .render(
            policy=policy,
            style=style,
            script=script,
            title=plain_text(f"{heading.title}: {verdict}" if heading.title else verdict),
            heading=heading,
            about=about,
            verdict=verdict,
            kind=kind,
            lede=lede(est, asked),
            rates=rates,
            answers=answered,
            agents=est.agents,
            colours=agent_colours(est),
            grey=GREY,
            briefs=briefs(LONGEST_SHOWN),
            who=lambda agent, longest=LONGEST_SHOWN: named(est.agents[agent], briefs(longest)[agent]),
            **_many(est, asked),
            data=sections.data_table(est, evidence, agent_order(est, asked)),
            **_numbers(wide, asked, listed, own, plain, rows, est.settings.k),
            groups=groups,
            **_comparison(asked),
            worst=worst,
            failures=failures,
            places=_places(est),
            unexplained=failed is None and bool((est.counts.successes < est.counts.trials).any()),
            **_attempts(est, asked, trials, briefs(LONGEST_SHOWN)),
            frontiers=frontiers(est, asked, trials),
            by_threshold=threshold_rows(est, asked, evidence),
            evidence=sections.evidence_tables(evidence) if evidence is not None else [],
            tools_words=sections.tools_words(est),
            tools=tools,
            judges=sections.judge_tables(est, evidence, store, facts),
            diagnostics=sections.diagnostics_table(est, listed),
            checked=sections.checked_words(est, listed),
            reading=reading_lines(est, asked),
            rate_name=rate_words(asked.metric),
            sensitivity=sections.sensitivity_table(est, listed if len(listed) <= MOST_DRAWN else _drawn(est, asked)),
            prob=exact_percent(est.settings.ci_prob),
            crossed=isinstance(est.method, Crossed),
            frequentist=isinstance(est.method, Frequentist),
            other_estimates=("as judged", "counted")
            if est.settings.corrects_judge
            else ("counted", "if all equally hard"),
            method_line=sections.method_line(est),
            setup=settings_table(est),
            commands=sections.commands(est, asked, est.settings.k, source) if source else [],
            without_option=", ".join(without_option(est)),
        )
    )
    with replacing(str(path)) as file:
        file.write(text.encode())
    return path


def _in_order(est: Estimate, asked: ReportQuestion) -> Sequence[str]:
    """The agents in the order of the page."""
    return [est.agents[i] for i in agent_order(est, asked)]


def _briefs(agents: Sequence[str]) -> Callable[[int], list[str]]:
    """The names of agents, at most so long, as pictures and tables of agents show them."""
    plain = [plain_text(agent) for agent in agents]
    return cache(lambda longest: brief_names(plain, longest))


def _listed(est: Estimate, asked: ReportQuestion) -> list[int]:
    """The agents whose numbers are listed: all, or the best and those of the verdict where they are very many."""
    order = agent_order(est, asked)
    return list(dict.fromkeys([*order[:MOST_LISTED], *(_compared(est, asked) if len(order) > MOST_LISTED else ())]))


def _without_model(est: Estimate, agents: Sequence[int]) -> Any:
    """The estimates without a model of these agents only, of which every number is the agent's own."""
    settings = replace(est.settings, method=Frequentist(), ci_kind="eti", engine="auto", judge=None)
    return estimate_as(est.outcomes.isel(agent=list(agents)), settings).baseline(columns="all")


def _drawn(est: Estimate, asked: ReportQuestion) -> list[int]:
    """The agents that have curves: those with a colour of their own, as far as the curves can be told apart."""
    colours = agent_colours(est)
    return [i for i in agent_order(est, asked) if colours[i] != GREY][:MOST_DRAWN]


def _compared(est: Estimate, asked: ReportQuestion) -> list[int]:
    """Whom the verdict is about, and the agent that it is compared with."""
    others = [one.baseline for one in asked.comparisons[:1] if isinstance(one.baseline, str)]
    return [est.agent_index(name) for name in (asked.agent, *others)]


def _many(est: Estimate, asked: ReportQuestion) -> dict[str, Any]:
    """What a page of several agents begins with."""
    heat = heat_map(est, agent_order(est, asked))
    return {
        "many": len(est.agents) > MOST_DRAWN,
        "ranked": [] if asked.ranking is None else ranked_agents(est, asked.ranking),
        "ranked_further": [] if asked.further_ranking is None else ranked_agents(est, asked.further_ranking),
        "most_ranked": MOST_RANKED,
        "heat": heat,
        "heat_json": "" if heat is None else json_block({n: getattr(heat, n) for n in ("agents", "tasks", "columns")}),
    }


def _numbers(
    wide: Estimate, asked: ReportQuestion, listed: Sequence[int], own: Any, plain: Any, rows: Rows, ks: Sequence[int]
) -> dict[str, Any]:
    """Tables, curves and the slider; all from one summary at every k of the curves."""
    drawn = _drawn(wide, asked)
    curves = [frame[frame["estimand"] == asked.estimand] for frame in (own, plain[plain["estimator"] == "plugin"])]
    numbers = curve_numbers(wide, drawn, *curves)
    return {
        "listed": len(listed),
        "estimates": sections.estimate_sections(wide, listed, rows, ks),
        "where": ESTIMANDS[asked.estimand],
        "drawn": drawn,
        "panels": curve_panels(wide, drawn, *curves),
        "numbers": numbers,
        "start": wide.settings.k.index(asked.metric.k),
        "numbers_json": json_block([[one["k"], one["rows"]] for one in numbers]),
        "flags": sections.flag_lines(wide, own[own["k"].isin(ks)]),
    }


def _comparison(asked: ReportQuestion) -> dict[str, Any]:
    comparisons, ranking, further = asked.comparisons, asked.ranking, asked.further_ranking
    return {
        "asked": asked,
        "compared": comparisons[0] if comparisons else None,
        "comparison": sections.comparison_table(comparisons) if comparisons else None,
        "differences": difference_picture(comparisons) if comparisons else None,
        "by_group": sections.groups_table(comparisons[0]) if comparisons else None,
        "drivers": sections.driver_tables(comparisons[0]) if comparisons else [],
        "pairs": None if ranking is None or len(ranking.rows) > MOST_PAIRS else superiority_table(ranking),
        "ranking_table": None if ranking is None else ranking_table(asked, ranking),
        "further_table": None if further is None else ranking_table(asked, further),
        "gated": None if asked.gate is None else sections.gate_table(asked.gate),
    }


def _attempts(
    est: Estimate, asked: ReportQuestion, trials: Sequence[ReportTrial], briefs: Sequence[str]
) -> dict[str, Any]:
    """The table of tasks, and what is opened from it."""
    from markupsafe import Markup

    tasks = task_columns(est, asked.metric, _on_own_tasks(est, asked))
    tasks["shown"] = _with_columns(est, asked)
    for own, name, brief in zip(tasks["agents"], est.agents, briefs, strict=True):
        own |= {"brief": brief} if brief != name else {}
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


def _places(est: Estimate) -> dict[str, int]:
    """Task → its row in the table of tasks, where a row holds all trials of a task and of an agent."""
    whole = est.outcomes.attrs["unit"] == "conversation" and est.agents != ("all",)
    return {task: place for place, task in enumerate(est.counts.tasks)} if whole else {}


def _on_own_tasks(est: Estimate, asked: ReportQuestion) -> Comparison | None:
    """The verdict's comparison by the posterior that the agents' own numbers come from, so that rows of tasks agree."""
    if not asked.comparisons or not asked.comparisons[0].n_left_out:
        return asked.comparisons[0] if asked.comparisons else None
    one = asked.comparisons[0]
    question: dict[str, Any] = {"metric": one.metric, "estimand": one.estimand}
    return compare(est, one.agent, baseline=one.baseline, tasks="own", **question)


def _with_columns(est: Estimate, asked: ReportQuestion) -> list[int]:
    """The agents that have a column in the table of tasks: all of them where they are few."""
    order = agent_order(est, asked)
    if len(order) <= MOST_DRAWN:
        return order
    return list(dict.fromkeys([*_compared(est, asked), *order]))[:MOST_COLUMNS]


def _failed_most(failed: FailureTable | None, evidence: Evidence | None) -> list[str]:
    """The commonest kind of failure and the commonest fault of a tool, in a line each."""
    kinds = "" if failed is None else failed.commonest()
    return [*filter(None, (kinds, "" if evidence is None else sections.commonest_fault(evidence)))]


@cache
def _template(name: str) -> str:
    return (files("agentic_bayes.reports.html") / "templates" / name).read_text(encoding="utf-8")


@cache
def _environment() -> Any:
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "shown": shown,
        "said": said,
        "plain": plain_text,
        "signed": signed,
    }
    environment.tests["number_like"] = is_number_like
    environment.globals |= {
        "plural": plural,
        "rope_words": rope_words,
        "rate_words": rate_words,
        "brief_cells": brief_cells,
        "LONGEST_BESIDE": LONGEST_BESIDE,
    }
    environment.loader = jinja2.FunctionLoader(_template)
    return environment
