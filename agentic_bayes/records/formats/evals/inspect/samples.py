"""The samples of an Inspect log as conversations of one interaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agentic_bayes.records.base import short
from agentic_bayes.records.formats.evals.inspect.log import FORMAT, InspectLog
from agentic_bayes.records.wire.chat import ChatCall, Message, one_turn, said_by
from agentic_bayes.records.wire.content.parts import unknown_part
from agentic_bayes.records.wire.fields import Faults, Fields, fitting
from agentic_bayes.records.wire.json_text import Parsed
from agentic_bayes.records.wire.layout import converted
from agentic_bayes.records.wire.offered import AVAILABLE_TOOLS, offered_tools
from agentic_bayes.records.wire.scores import NOT_SCORED, RECORDED_METRICS

_UNFINISHED = {
    "started": "the run did not finish",
    "cancelled": "the run was cancelled",
    "error": "the run ended with an error",
}


def sample(where: str, value: Any, wrong: tuple[tuple[str, str], ...], log: InspectLog) -> Parsed:
    """A sample in the native format, unless its JSON is wrong."""
    if wrong:
        return Parsed(where, faults=wrong)
    return converted(where, value, (), lambda value, faults: _conversation(value, faults, log))


@dataclass(slots=True)
class _Attachments:
    """Texts that the log stores separately and refers to."""

    held: Mapping[str, Any]
    missing: int = 0

    def text(self, text: str) -> str:
        for protocol in ("attachment://", "tc://"):
            if text.startswith(protocol):
                found = self.held.get(text.removeprefix(protocol))
                if isinstance(found, str):
                    return found
                self.missing += 1
        return text


_MEDIA = ("image", "audio", "video", "data", "document")
"""Parts of messages that are neither text nor calls."""

_TAKEN = (
    "id", "epoch", "input", "choices", "target", "messages", "output", "scores", "score", "metadata", "model_usage",
    "role_usage", "started_at", "completed_at", "total_time", "working_time", "uuid", "invalidation", "error", "limit",
    "error_retries",
)  # fmt: skip


def _conversation(value: Any, faults: Faults, log: InspectLog) -> Mapping[str, Any]:
    raw = Fields(value, (), faults)
    attachments = _Attachments(raw.mapping("attachments").value)
    texts = {key: attachments.text if key in ("input", "messages", "output") else None for key in _TAKEN}
    kept = {key: fitting(raw.raw(key), (key,), faults, text=texts[key]) for key in _TAKEN if key in raw}
    log.unresolved += attachments.missing
    sample = Fields(kept, (), faults)
    spec = log.spec
    task, run = spec.name("task") or log.origin.stem, spec.name("eval_id") or spec.name("run_id") or log.origin.stem
    identity, epoch = sample.name("id", required=True), sample.whole("epoch", required=True)
    if epoch == 0:
        faults.add(("epoch",), "must be a whole number ≥ 1, got 0")
    messages = _messages(sample, "messages")
    asked = _messages(sample, "input") if isinstance(kept.get("input"), list) else ()
    turn = one_turn(messages, qa_id=f"{task}/{identity}")
    turn["query"] = said_by("user", asked) if asked else sample.text("input", required=True) or ""
    turn["assistant"] = _answer(sample, messages)
    targets = _targets(sample)
    if targets:
        turn["ground_truth_assistant"] = " or ".join(targets)
    scores = _scores(sample)
    reasons = {scorer: text for scorer, one in scores.items() if (text := one.get("explanation"))}
    recorded = log.scores.of({scorer: one["value"] for scorer, one in scores.items()}, reasons=reasons)
    error = _error(sample, log.status, scored=bool(scores))
    if error is not None:
        turn["assistant"] = turn["assistant"] or None
    times: dict[str, Any] = {key: sample.number(key) for key in ("total_time", "working_time")}
    times |= {key: sample.text(key) for key in ("started_at", "completed_at")}
    metadata = {
        "format": FORMAT,
        "task": task,
        "model": spec.name("model"),
        "scores": scores,
        NOT_SCORED: None if error else recorded.why_not,
        RECORDED_METRICS: None if error else recorded.metrics,
        "targets": targets if len(targets) > 1 else None,
        "choices": sample.sequence("choices"),
        "limit": sample.raw("limit"),
        "tokens": _tokens(sample),
        "model_usage": sample.mapping("model_usage").value,
        "role_usage": sample.mapping("role_usage").value,
        "times": {key: value for key, value in times.items() if value is not None},
        "numbers_not_finite": faults.not_finite,
        "retried": len(sample.sequence("error_retries")),
        AVAILABLE_TOOLS: _offered(raw),
        "sample": sample.mapping("metadata").value,
    }
    return {
        "session_id": sample.name("uuid") or f"{run} {task}/{identity} epoch {epoch}",
        "assistant_id": log.origin.given_agent or spec.name("model") or log.origin.own_agent,
        "task_id": f"{task}/{identity}",
        "trial": max((epoch or 1) - 1, 0),
        "context": said_by("system", messages) or said_by("system", asked),
        "conversation": [turn],
        "error": error,
        "recorded_score": None if error else recorded.score,
        "metadata": {key: content for key, content in metadata.items() if content},
    }


def _offered(sample: Fields) -> list[Any]:
    """The tools that any model call of the sample was given."""
    events = sample.sequence("events")
    calls = (event for event in events if isinstance(event, dict) and event.get("event") == "model")
    listed = [tool for call in calls for tool in offered_tools(call.get("tools"))]
    tools: list[Any] = fitting(offered_tools(listed), ("events",), sample.faults)
    return tools


def _targets(sample: Fields) -> list[str]:
    """The right answers: Inspect's scorers accept any of several targets."""
    several = isinstance(sample.raw("target"), list)
    targets = sample.texts("target") if several else [sample.text("target")]
    return [target for target in targets if target]


def _answer(sample: Fields, messages: list[Message]) -> str:
    """The answer: the log's output or, if that has no text, the last thing the agent said."""
    output = sample.mapping("output")
    choices = [_content(choice.mapping("message")) for choice in output.mappings("choices")[:1]]
    said = [message.text for message in reversed(messages) if message.role == "assistant"]
    texts = [output.text("completion") or "", *choices, *said]
    return next(filter(str.strip, texts), next(filter(None, texts), ""))


def _tokens(sample: Fields) -> dict[str, int]:
    """Tokens over all models."""
    usage = sample.mapping("model_usage")
    each = [usage.mapping(model) for model in usage.value]
    total = {side: sum(one.whole(f"{side}_tokens") or 0 for one in each) for side in ("input", "output")}
    return total if any(total.values()) else {}


def _error(sample: Fields, status: str | None, *, scored: bool) -> str | None:
    """Why the sample cannot be judged; None if it can."""
    if "invalidation" in sample:
        given = sample.mapping("invalidation")
        return _first_line("invalidated: ", given.text("reason") or f"by {given.text('author') or 'unknown'}")
    if "error" in sample:
        if isinstance(sample.raw("error"), str):
            return _first_line("infrastructure: ", str(sample.raw("error")))
        given = sample.mapping("error")
        trace = (given.text("traceback") or "").strip().splitlines()
        return _first_line("infrastructure: ", given.text("message") or (trace[-1] if trace else ""))
    if not scored and status in _UNFINISHED:
        return f"infrastructure: {_UNFINISHED[status]} before the sample was scored"
    return None


def _first_line(kind: str, message: str) -> str:
    lines = message.strip().splitlines()
    return kind + (lines[0] if lines else "no message was recorded")[:500]


def _scores(sample: Fields) -> dict[str, Any]:
    """All scores, with what was said about them."""
    given = _given_scores(sample)
    kept: dict[str, Any] = {}
    for scorer in given.value:
        score = given.mapping(scorer)
        texts = {key: text for key in ("answer", "explanation") if (text := score.text(key)) is not None}
        kept[scorer] = {"value": score.raw("value"), **texts}
    return kept


def _given_scores(sample: Fields) -> Fields:
    if "scores" not in sample and "score" in sample:
        return Fields({"score": sample.raw("score")}, (), sample.faults)
    return sample.mapping("scores")


def score_values(sample: dict[str, Any]) -> dict[str, Any]:
    """The values of a sample's scores, as the file has them."""
    scores = _given_scores(Fields(sample, (), Faults())).value
    return {scorer: score.get("value") for scorer, score in scores.items() if isinstance(score, dict)}


def _messages(sample: Fields, key: str) -> list[Message]:
    found: list[Message] = []
    for message in sample.mappings(key):
        match message.text("role", required=True):
            case "system":
                found.append(Message("system", _content(message)))
            case "user":
                found.append(Message("user", _content(message)))
            case "tool":
                found.append(_result(message, _content(message)))
            case "assistant":
                calls = [_call(call) for call in message.mappings("tool_calls")]
                by_provider = list(_provider_calls(message))
                made = [*(call for call, _ in by_provider), *calls]
                found.append(Message("assistant", _content(message), made, reasoning=_thoughts(message)))
                found += [result for _, result in by_provider]
            case str(role):
                wrong = f"must be system, user, assistant, tool, got {short(role)}"
                message.faults.add((*message.path, "role"), wrong)
    return found


def _call(call: Fields) -> ChatCall:
    nested = isinstance(call.raw("function"), dict)
    source, key = (call.mapping("function"), "name") if nested else (call, "function")
    return ChatCall(source.name(key, required=True) or "?", _arguments(source), call.identity("id"))


def _arguments(source: Fields) -> dict[str, Any]:
    found: dict[str, Any] = fitting(source.arguments("arguments"), (*source.path, "arguments"), source.faults)
    return found


def _result(message: Fields, text: str) -> Message:
    """The result of a call; a failed call keeps its error."""
    failed = message.raw("error")
    result = None if failed is None else {"error": failed, **({"content": text} if text else {})}
    return Message("tool", text, answers=message.identity("tool_call_id"), tool=message.name("function"), result=result)


def _provider_calls(message: Fields) -> Iterator[tuple[ChatCall, Message]]:
    """Calls that the model's provider ran itself: the message's content holds them with their results."""
    if not isinstance(message.raw("content"), list):
        return
    for part in message.mappings("content"):
        if part.raw("type") == "tool_use":
            name, identity = part.name("name", required=True) or "?", part.identity("id")
            result = part.raw("result") if "error" not in part else {"error": part.raw("error")}
            yield (
                ChatCall(name, _arguments(part), identity),
                Message("tool", answers=identity, tool=name, result="" if result is None else result),
            )


def _thoughts(message: Fields) -> list[str]:
    """What the model thought, where the log has it in the clear."""
    texts = [message.text("reasoning") or ""]  # in earlier versions
    listed = message.mappings("content") if isinstance(message.raw("content"), list) else []
    parts = [part for part in listed if part.raw("type") == "reasoning"]
    texts += [part.text("summary" if part.raw("redacted") is True else "reasoning") or "" for part in parts]
    return [text for text in texts if text.strip()]


def _content(message: Fields) -> str:
    """The text of a message, with a mark for each image and whatever else is not text."""
    if not isinstance(message.raw("content"), list):
        return message.text("content") or ""
    texts = []
    for part in message.mappings("content"):
        match part.raw("type"):
            case "text":
                texts.append(part.text("text") or "")
            case "reasoning" | "tool_use":
                continue
            case kind:
                if kind not in _MEDIA:
                    unknown_part(part, str(kind), None)
                texts.append(f"({kind})")
    return "\n".join(texts)
