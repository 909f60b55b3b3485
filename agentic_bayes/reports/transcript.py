"""One conversation as readable text: messages, tool calls, expectations and scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentic_bayes.evidence.row import EvidenceRow
from agentic_bayes.evidence.score import Score
from agentic_bayes.evidence.tools.rubric import ToolRubric, ToolVerdict
from agentic_bayes.formatting import format_number, json_text, plain_text, plural, text_or_json
from agentic_bayes.records.model import Conversation, Interaction, ToolCall

_LONGEST = 2000


def transcript(
    conversation: Conversation,
    rows: Sequence[EvidenceRow] = (),
    *,
    tool_rubric: ToolRubric = ToolRubric(),  # noqa: B008 - frozen
) -> str:
    """A conversation as readable text."""
    return "\n".join(_lines(conversation, {row.interaction: row for row in rows}, tool_rubric))


def _lines(conversation: Conversation, rows: dict[int, EvidenceRow], rubric: ToolRubric) -> Iterator[str]:
    head = {
        "session": conversation.session_id,
        "agent": conversation.assistant_id,
        "task": conversation.task_id,
        "trial": conversation.trial,
        "recorded score": conversation.recorded_score,
        "error": conversation.error,
        "context": conversation.context or None,
    }
    yield from (f"{name}: {_shown(value)}" for name, value in head.items() if value is not None)
    for name, value in conversation.metadata.items():
        yield f"{name}: {_shown(value)}"
    turns = conversation.conversation
    for position, turn in enumerate(turns):
        yield ""
        yield f"── {position + 1} of {plural(len(turns), 'interaction')}, {_shown(turn.qa_id)}"
        yield from _turn(turn)
        yield from _scores(turn, rows.get(position), rubric)


def _turn(turn: Interaction) -> Iterator[str]:
    spoken = turn.metadata.get("dialogue")
    if isinstance(spoken, list) and all(isinstance(said, dict) for said in spoken):
        for said in spoken:
            yield f"{_shown(said.get('role', '?'))}: {_shown(said.get('text', ''))}"
    else:
        yield f"user: {_shown(turn.query)}"
        if turn.assistant is not None:
            yield f"assistant: {_shown(turn.assistant)}"
    if turn.error is not None:
        yield f"error: {_shown(turn.error)}"
    if turn.ground_truth_assistant is not None:
        yield f"reference: {_shown(turn.ground_truth_assistant)}"
    if turn.agentic is not None:
        made = turn.agentic.tools_used
        yield f"calls made: {len(made) or 'none'}"
        for place, call in enumerate(made):
            yield f"  {place + 1}. {_call(call)}"
            if call.has_result:
                yield f"     → {_shown(call.result, 200)}"
    if turn.ground_truth_agentic is not None:
        expected = turn.ground_truth_agentic.expected_tools
        order = "" if turn.ground_truth_agentic.tool_sequence_matters else ", in any order"
        yield f"calls expected{order if expected else ''}: {len(expected) or 'none'}"
        for place, call in enumerate(expected):
            yield f"  {place + 1}. {_call(call)}"


def _scores(turn: Interaction, row: EvidenceRow | None, rubric: ToolRubric) -> Iterator[str]:
    if row is None:
        if turn.recorded_score is not None:
            yield f"recorded score: {format_number(turn.recorded_score)}"
        verdict = rubric.verdict(turn)
        if isinstance(verdict, ToolVerdict):
            score = verdict.score
            yield f"tools: {format_number(score.overall_correctness)} ({_shown(score.reasoning)})"
        elif verdict is not None:
            yield f"tools: unscored ({_shown(verdict.reason)})"
        return
    if row.answer_score is None:
        yield f"answer: unscored ({_shown(row.unscored_reason)})"
    else:
        yield f"answer: {format_number(row.answer_score)} ({_shown(row.answer_reason or 'no reason')})"
    if row.tool_overall is not None:
        yield f"tools: {format_number(row.tool_overall)} ({_shown(row.tool_reason or '')})"
    elif row.tools_unscored:
        yield f"tools: unscored ({_shown(row.tool_reason)})"
    for name, grade in row.metrics.items():
        given = f"{format_number(grade.value)}" if isinstance(grade, Score) else "unscored"
        yield f"{_shown(name)}: {given} ({_shown(grade.reason)})"


def _call(call: ToolCall) -> str:
    arguments = ", ".join(f"{_shown(name)}={_shown(json_text(value), 200)}" for name, value in call.parameters.items())
    return f"{_shown(call.tool_name)}({arguments})"


def _shown(value: object, longest: int = _LONGEST) -> str:
    text = text_or_json(value)
    cut = text if len(text) <= longest else f"{text[:longest]}… ({len(text) - longest:,} more characters)"
    return plain_text(cut)
