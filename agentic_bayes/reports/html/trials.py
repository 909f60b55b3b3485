"""The attempts of a page: what was said and called, how it was scored, and whether it passed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.recorded import RecordedJudge
from agentic_bayes.evidence.row import AGENT_ERROR, EvidenceRow
from agentic_bayes.evidence.score import Score, named_kinds
from agentic_bayes.evidence.tools.diagnostics import tool_failures
from agentic_bayes.formatting import json_text
from agentic_bayes.outcomes.count import INDICATORS, IndicatorRule, TrialVerdict, metric_threshold
from agentic_bayes.records.base import short
from agentic_bayes.records.identity import TaskIndex
from agentic_bayes.records.model import Conversation, Interaction, ToolCall
from agentic_bayes.records.spent import Spent, all_spent

PARTS = ("user", "agent", "error", "reference", "call", "result", "expected", "other")
TranscriptPart = tuple[str, ...]  # (one of PARTS, text), or ("other", text, who said it)
NamedScore = tuple[str, float | None, str]  # name of a grader, its score (None: unscored), its reason


class TrialFailure(NamedTuple):
    """Why a trial did not pass, as one grader has it."""

    kinds: Sequence[str]  # that the grader names
    reason: str  # in its words; empty where it gives none


@dataclass(slots=True)
class ReportTrial:
    """One attempt: what was said, and how it was scored; either may be missing."""

    agent: str  # who attempted what
    task: str
    number: int  # its number in the data, which may begin anywhere
    session: str  # the conversation
    questions: dict[int, str]  # index of an interaction → its qa_id
    # The parts of every interaction, iterated at most once.
    said: Iterable[Iterable[TranscriptPart]] | None = None
    # index of an interaction → its scores, iterated at most once
    scores: Mapping[int, Iterable[NamedScore]] = field(default_factory=dict)
    # "pass", "fail", "unscored", "errored", or empty where nothing was scored or the indicator does not look at it
    verdict: str = ""
    # index of an interaction that did not pass → its own verdict
    turns: dict[int, TrialVerdict] = field(default_factory=dict)
    failures: list[TrialFailure] = field(default_factory=list)  # why it did not pass
    spent: dict[Spent, float] = field(default_factory=dict)  # what was recorded of it
    attempt: int = 0  # which of the agent's attempts at the task, as a page counts them from 1


def count_attempts(trials: Iterable[ReportTrial]) -> None:
    """Number the attempts of every agent at every task."""
    seen = Counter[tuple[str, str]]()
    for one in sorted(trials, key=lambda one: one.number):
        seen[one.agent, one.task] += 1
        one.attempt = seen[one.agent, one.task]


def _checked(conversations: Iterable[Conversation] | None) -> list[Conversation]:
    """The conversations as a list."""
    if conversations is None:
        return []
    checked: list[Any] = list(conversations) if isinstance(conversations, Iterable) else [conversations]
    for one in checked:
        if not isinstance(one, Conversation):
            raise InvalidArgument(f"conversations must be Conversation objects, got {short(one)}")
    return checked


def find_trials(
    est: Estimate, evidence: Evidence | None, conversations: Iterable[Conversation] | None
) -> list[ReportTrial]:
    """Every attempt of the estimate's agents in the evidence or the conversations."""
    trials: dict[tuple[str, str, int], ReportTrial] = {}
    known = None if est.agents == ("all",) else set(est.agents)
    if evidence is not None:
        rule = _rule(est, evidence)
        rows: dict[tuple[str, str, int], list[EvidenceRow]] = {}
        for row in evidence.rows:
            if known is None or row.agent in known:
                rows.setdefault((row.agent, row.task, row.trial), []).append(row)
        for key, own in rows.items():
            questions = {row.interaction: row.qa_id for row in own}
            scores = {row.interaction: _scores(row) for row in own}
            trials[key] = ReportTrial(*key, own[0].session_id, questions, scores=scores)
            if rule is not None:
                _judge(trials[key], own, rule)
    for one, task, number in _placed(_checked(conversations)):
        if known is None or one.assistant_id in known:
            key = (one.assistant_id, task, number)
            trial = trials.setdefault(key, ReportTrial(*key, one.session_id, {}))
            trial.questions = dict(enumerate(one.qa_ids))
            trial.said = _said(one)
            trial.spent = all_spent(one)
    return [trials[key] for key in sorted(trials)]


def _placed(conversations: list[Conversation]) -> Iterator[tuple[Conversation, str, int]]:
    """Conversations with their task and trial, looked for only where a conversation does not say them."""
    if all(one.task_id is not None and one.trial is not None for one in conversations):
        yield from ((one, one.task_id or "", one.trial or 0) for one in conversations)
        return
    index = TaskIndex()
    for one in conversations:
        index.add(one)
    for one, identity in zip(conversations, index.resolve(), strict=True):
        yield one, identity.task, identity.trial


def _rule(est: Estimate, evidence: Evidence) -> IndicatorRule | None:
    """The rule by which the outcomes were counted; None where the evidence has no such indicator."""
    attrs = est.outcomes.attrs
    name = str(attrs["indicator"])
    metrics = {metric for row in evidence.rows for metric in row.metrics}
    cuts = [attrs.get(part, default) for part, default in (("threshold", 0.7), ("tool_threshold", 1.0))]
    if (name not in INDICATORS and name not in metrics) or any(isinstance(part, str) for part in cuts):
        return None
    errors = "fail" if attrs.get("errors") == "fail" else "unscored"
    own = metric_threshold(evidence, name) if name in metrics else 0.5
    return IndicatorRule(name, float(cuts[0]), float(cuts[1]), own, errors)  # type: ignore[arg-type]


def _judge(trial: ReportTrial, rows: Sequence[EvidenceRow], rule: IndicatorRule) -> None:
    """Fill in the verdict and why it is not a pass."""
    verdicts = [rule.verdict(row) for row in rows]
    trial.verdict = rule.whole(rows, verdicts) or ""
    own = ((row.interaction, verdict) for row, verdict in zip(rows, verdicts, strict=True))
    trial.turns = {turn: verdict for turn, verdict in own if verdict not in (None, "pass")}
    if trial.verdict != "pass":
        for row, verdict in zip(rows, verdicts, strict=True):
            if verdict == trial.verdict or row.crashed:
                trial.failures += _failures(row, rule)


def _failures(row: EvidenceRow, rule: IndicatorRule) -> Iterator[TrialFailure]:
    """Why an interaction did not pass; faults with tools count as causes whichever indicator decides."""
    if row.crashed:
        yield TrialFailure(("crash",), (row.unscored_reason or "").removeprefix(AGENT_ERROR))
        return
    tools = tool_failures(row.tool_details, row.utilization)
    grade = row.metrics.get(rule.indicator)
    if grade is not None:
        yield TrialFailure(named_kinds(grade.details) if isinstance(grade, Score) else (), grade.reason)
    elif rule.indicator in ("answer", "joint") and (row.answer_score is None or row.answer_score < rule.threshold):
        recorded = row.judge == RecordedJudge.identity and row.answer_score is not None  # its reason is where it looked
        reason = "" if recorded else row.unscored_reason or row.answer_reason or ""
        if reason or not tools:
            yield TrialFailure(named_kinds(row.answer_details), reason)
    elif not tools:
        yield TrialFailure((), row.tool_reason or "")
    if tools:
        yield TrialFailure(tools, row.tool_reason or "")


def _said(conversation: Conversation) -> Iterator[Iterator[TranscriptPart]]:
    for position, turn in enumerate(conversation.conversation):
        yield _parts(turn, conversation.error_at(position))


def _parts(turn: Interaction, error: str | None) -> Iterator[TranscriptPart]:
    """What was said and called, in the order of a reader's questions."""
    spoken = turn.metadata.get("dialogue")
    if isinstance(spoken, list) and all(isinstance(said, dict) for said in spoken):
        for said in spoken:
            yield "other", str(said.get("text", "")), str(said.get("role", "?"))
    else:
        if turn.query:
            yield "user", turn.query
        if turn.assistant is not None:
            yield "agent", turn.assistant
    if error is not None:
        yield "error", error
    if turn.ground_truth_assistant is not None:
        yield "reference", turn.ground_truth_assistant
    if turn.agentic is not None:
        for call in turn.agentic.tools_used:
            yield "call", _call(call)
            if call.has_result:
                yield "result", json_text(call.result)
    if turn.ground_truth_agentic is not None:
        expected = turn.ground_truth_agentic.expected_tools
        for call in expected:
            yield "expected", _call(call)
        if not expected:
            yield "expected", "no call"


def _call(call: ToolCall) -> str:
    return f"{call.tool_name}({', '.join(f'{name}={json_text(value)}' for name, value in call.parameters.items())})"


def _scores(row: EvidenceRow) -> Iterator[NamedScore]:
    yield "answer", row.answer_score, row.unscored_reason or row.answer_reason or ""
    if row.tool_overall is not None or row.tools_unscored:
        yield "tools", row.tool_overall, row.tool_reason or ""
    for name, grade in row.metrics.items():
        yield name, grade.value if isinstance(grade, Score) else None, grade.reason


def check_evidence_agents(est: Estimate, evidence: Evidence | None) -> None:
    """Refuse evidence of other agents."""
    if evidence is None or est.agents == ("all",):
        return
    own: Mapping[str, None] = dict.fromkeys(row.agent for row in evidence.rows)
    if own and not own.keys() & set(est.agents):
        raise InvalidArgument(
            f"evidence must be of the estimate's agents ({', '.join(est.agents)}), it is of {', '.join(own)}"
        )
