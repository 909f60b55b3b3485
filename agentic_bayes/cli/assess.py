"""The command assess: conversations → evidence."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer import Exit, Option, Typer

from agentic_bayes.cli import options as opt
from agentic_bayes.cli.exits import STOPPED
from agentic_bayes.cli.output import printing_without_keys, say, say_json, show
from agentic_bayes.errors import InvalidArgument

if TYPE_CHECKING:
    from agentic_bayes.evidence.evidence import Evidence
    from agentic_bayes.judges.raters import Agreement
    from agentic_bayes.records.model import Conversation

commands = Typer()
RULES, RECORDED = "reference", "recorded"  # judges that ask no model


@commands.command()
@opt.with_groups
@printing_without_keys()
def assess(
    files: opt.ConversationFiles,
    *,
    output: Path = Option(..., "-o", "--output", help="Evidence file to write (.jsonl or .jsonl.gz)."),
    judge: list[str] | None = Option(
        None,
        help="reference (the default): rules that compare with the reference, offline; recorded: the scores in the "
        "files; or an LLM as provider:model, for example openai:gpt-4o-mini. Repeat it to see how well several agree.",
    ),
    store: Path | None = Option(None, help="Cache file for judgements; a rerun does not pay for them again."),
    concurrency: int = Option(8, help="Number of answers to judge in parallel."),
    requests_per_second: float | None = Option(None, help="Rate limit for judge calls."),
    price: list[str] | None = Option(
        None,
        help="Price of a million input and output tokens, for example 0.15,0.60; give it once for all judges, or once "
        "for each.",
    ),
    max_cost: float | None = Option(None, help="Stop before the judge costs more than this; needs --price."),
    stats: bool = Option(False, "--stats", help="Also print calls, tokens, cost and latency."),
    metrics: str | None = Option(
        None, help="More metrics, with optional thresholds: task_completion,coherence=0.3, or all."
    ),
    metrics_model: str | None = Option(
        None, help="Model for the metrics that need one (default: the first LLM of --judge)."
    ),
    tool_rubric: opt.RubricFile = None,
    executor: opt.ExecutorName = None,
    records: opt.ConversationOptions,
    to: opt.To = None,
) -> None:
    """Judge every answer against its reference, score the tool calls, and write the evidence."""
    from agentic_bayes.checks import check_output_file
    from agentic_bayes.evidence.llm.store import Store
    from agentic_bayes.formatting import plural
    from agentic_bayes.reports.evidence_tables import metrics_tables, tool_problems_tables
    from agentic_bayes.suites.inputs import check_not_conversations

    check_output_file(output, "--output")
    check_not_conversations(output, "--output")
    judges = _judges(judge or [], price or [])
    first_model = next((name for name in judge or [] if name not in (RULES, RECORDED)), None)
    further = _metrics(metrics, metrics_model or first_model, judges, price or [])
    _check_models_are_asked(
        judges,
        further,
        metrics_model=metrics_model,
        paid=(store, requests_per_second, price or None, max_cost, stats or None),
    )
    if store is not None:
        check_output_file(store, "--store")
    recorded = [0]
    found = records.read(files)
    conversations = _count_recorded(found, recorded)
    limits = opt.given(requests_per_second=requests_per_second, max_cost=max_cost)
    asks_model = any(map(_asks_model, (*judges, *further)))
    usage = None
    with Store(store or ":memory:") if asks_model else contextlib.nullcontext() as kept:
        evidence = judge_all(
            conversations,
            judge=judges[0],
            metrics=[*judges[1:], *further],
            tool_rubric=opt.read_rubric(tool_rubric),
            concurrency=concurrency,
            store=kept,
            executor=executor,
            **limits,
        )
        if kept is not None:
            usage = kept.session_record()
    evidence.write(output)
    agreement = _agreement(evidence, [judge.name for judge in judges[1:]])
    if to == "json":
        answer: dict[str, Any] = {"output": str(output), "stopped": evidence.stopped}
        answer["agents"] = evidence.summary().to_dict("records")
        answer["agreement"] = None if agreement is None else agreement.to_pandas().to_dict("records")
        say_json({**answer, "usage": usage, "left_out": found.left_out.records, "left_out_files": found.left_out.files})
    else:
        show(evidence.table(), *metrics_tables(evidence), *tool_problems_tables(evidence), to=to)
    if to is None:
        if recorded[0] and not judge:
            known = plural(recorded[0], "conversation")
            say(f"{known} carry recorded scores, which were not used; --judge recorded uses them")
        if found.left_out:
            say(f"left out: {found.left_out.counts} that could not be read")
        if agreement is not None:
            say(f"agreement of the judges (a score of 0.7 or more counts as correct):\n{agreement}")
        if stats and usage is not None:
            say("\n".join(_usage_lines(usage)))
        say(f"evidence written to {output}")
    if evidence.stopped:
        raise Exit(STOPPED)


def judge_all(conversations: Iterator[Conversation], **options: Any) -> Evidence:
    """Evidence, with a bar that shows the progress."""
    from agentic_bayes.evidence.assess import assess
    from agentic_bayes.evidence.progress import ProgressBar

    with ProgressBar() as progress:
        return assess(conversations, progress=progress, **options)


def _asks_model(grader: Any) -> bool:
    return hasattr(grader, "price")


def _check_models_are_asked(judges: list[Any], further: list[Any], *, metrics_model: str | None, paid: Any) -> None:
    """Refuse options for an LLM where none is asked."""
    if metrics_model is not None and not any(map(_asks_model, further)):
        raise InvalidArgument("--metrics-model is not used: none of --metrics asks a model")
    if any(map(_asks_model, (*judges, *further))):
        return
    names = ("--store", "--requests-per-second", "--price", "--max-cost", "--stats")
    if unused := [name for name, value in zip(names, paid, strict=True) if value is not None]:
        raise InvalidArgument(f"{' and '.join(unused)} applies to an LLM judge: choose one with --judge")


def _count_recorded(conversations: Iterator[Conversation], recorded: list[int]) -> Iterator[Conversation]:
    """The same conversations; those with recorded scores are counted as they pass."""
    for conversation in conversations:
        own = any(turn.recorded_score is not None for turn in conversation.conversation)
        recorded[0] += conversation.recorded_score is not None or own
        yield conversation


def _judges(names: list[str], prices: list[str]) -> list[Any]:
    """The judges by name, the first one for the answer's score; without a name, the one that goes by rules."""
    from agentic_bayes.evidence.llm.judge import LLMJudge
    from agentic_bayes.evidence.llm.models import is_model_name
    from agentic_bayes.evidence.recorded import RecordedJudge
    from agentic_bayes.evidence.reference.judge import ReferenceJudge

    if not names:
        return [ReferenceJudge()]
    offline = {RULES: ReferenceJudge, RECORDED: RecordedJudge}
    if twice := [name for name in names if names.count(name) > 1]:
        raise InvalidArgument(f"--judge {twice[0]} is given twice; a judge always agrees with itself")
    for name in names:
        if name not in offline and not is_model_name(name):
            raise InvalidArgument(
                f"--judge must be {RULES}, {RECORDED} or a model as provider:model, for example openai:gpt-4o-mini, "
                f"got {name!r}"
            )
    if len(prices) > 1 and len(prices) != len(names):
        raise InvalidArgument(f"--price must be given once, or once per --judge ({len(names)}), got {len(prices)}")
    costs: list[tuple[float, float] | None] = [_price(text) for text in prices]
    costs = costs or [None]
    costs *= 1 if len(costs) > 1 else len(names)
    return [
        offline[name]() if name in offline else LLMJudge(name, price=price, name=name)
        for name, price in zip(names, costs, strict=True)
    ]


def _metrics(text: str | None, model: str | None, judges: list[Any], prices: list[str]) -> list[Any]:
    """Metrics by name; those that ask a model ask this one, at its price."""
    if text is None:
        return []
    from agentic_bayes.evidence.metrics.registry import make_metric, metric_names

    priced = {judge.name: judge.price for judge in judges if _asks_model(judge)}
    price = priced.get(model, _price(prices[0]) if len(prices) == 1 else None)
    graders = []
    for part in metric_names() if text.strip() == "all" else text.split(","):
        name, sign, threshold = part.strip().partition("=")
        try:
            options = {"threshold": float(threshold)} if sign else {}
        except ValueError:
            raise InvalidArgument(
                f"--metrics must be names with an optional threshold, like coherence or coherence=0.3, got {part!r}"
            ) from None
        grader = make_metric(name.strip(), model=model, **options)
        if price is not None and _asks_model(grader):
            grader = make_metric(name.strip(), model=model, price=price, **options)
        graders.append(grader)
    return graders


def _price(text: str) -> tuple[float, float]:
    try:
        input_price, output_price = (float(part) for part in text.split(","))
    except ValueError:
        raise InvalidArgument(f'--price must be two numbers, for example "0.15,0.60", got {text!r}') from None
    return input_price, output_price


def _agreement(evidence: Evidence, others: list[str]) -> Agreement | None:
    """How far the judges agree, if there are several and they scored anything."""
    from agentic_bayes.judges.several_judges import judge_agreement

    if not others or all(row.answer_score is None for row in evidence.rows):
        return None
    return judge_agreement(evidence, judges=["answer", *others])


def _usage_lines(usage: dict[str, Any]) -> list[str]:
    calls = f"{usage['judgements']:,} judgements by {usage['calls']:,} calls ({usage['failed']:,} failed)"
    cost = "" if usage["cost"] is None else f", cost {usage['cost']:,.6g}"
    lines = [
        f"{calls}, {usage['reused']:,} reused",
        f"tokens: {usage['input_tokens']:,} in, {usage['output_tokens']:,} out{cost}",
    ]
    if usage["calls"]:
        lines.append(f"latency: median {usage['latency_p50']:.2f} s, 95 % within {usage['latency_p95']:.2f} s")
    return lines
