"""Read an agent's reply, whether it is text, an object with the answer, or messages with tool calls."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from agentic_bayes.errors import AgentError, DoubtfulRecords, RecordsError, did_you_mean
from agentic_bayes.formatting import cut_text
from agentic_bayes.records.base import is_whole, problems_of, short
from agentic_bayes.records.formats.messages.langchain import conversation_from_langchain
from agentic_bayes.records.formats.messages.openai import read
from agentic_bayes.records.model import ToolCall
from agentic_bayes.records.wire.characters import NOT_TEXT, replaced
from agentic_bayes.records.wire.chat import NO_ANSWER
from agentic_bayes.records.wire.fields import UNREADABLE
from agentic_bayes.records.wire.json_text import NO_VALUE
from agentic_bayes.records.wire.layout import Origin
from agentic_bayes.suites.trial import AgentReply, TrialAttempt

KEYS = ("answer", "tool_calls", "usage", "messages", "error")
"""The keys that a reply may have."""

# other names of a call's parts → ours
_NAMES = {"name": "tool_name", "arguments": "parameters", "args": "parameters", "input": "parameters"}
_IGNORED = frozenset({"id", "call_id", "type", "index", "status"})
_USAGE = (("input_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens"))  # input, output
_LONGEST = 2000  # characters of an error
_MOST_TOKENS = 2**53  # beyond it, JSON readers that use floats cannot tell neighbouring whole numbers apart

ChatMessages = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class AgentTurn:
    """An agent's reply to one message."""

    answer: str
    calls: list[dict[str, Any]] | None = None  # its tool calls; None if they are unknown
    input_tokens: int | None = None  # as the agent reported them
    output_tokens: int | None = None


async def converse(attempt: TrialAttempt, say: Callable[[str, ChatMessages], Awaitable[AgentTurn]]) -> AgentReply:
    """Send all messages of a task, one after the other."""
    system = attempt.task.system
    dialogue: ChatMessages = [{"role": "system", "content": system}] if system else []
    turns = []
    for prompt in attempt.task.messages:
        dialogue.append({"role": "user", "content": prompt})
        turns.append(await say(prompt, [dict(message) for message in dialogue]))
        dialogue.append({"role": "assistant", "content": turns[-1].answer})
    return reply_of(turns)


def reply_of(turns: Sequence[AgentTurn]) -> AgentReply:
    """Join turns into one reply; its tokens are known if every turn reports them."""
    return AgentReply(
        tuple(turn.answer for turn in turns),
        tuple(turn.calls for turn in turns),
        _total(turn.input_tokens for turn in turns),
        _total(turn.output_tokens for turn in turns),
    )


def attempt_as_json(attempt: TrialAttempt, prompt: str, messages: ChatMessages) -> dict[str, Any]:
    """Everything about a trial that an agent may see."""
    return {
        "prompt": prompt,
        "messages": messages,
        "system": attempt.task.system,
        "task_id": attempt.task.id,
        "trial": attempt.trial,
        "seed": attempt.seed,
        "params": dict(attempt.task.params),
    }


def turn_of(value: object, *, prompt: str) -> AgentTurn:
    """Read a turn from an agent's reply."""
    if isinstance(value, str):
        return AgentTurn(_unicode(value))
    if not isinstance(value, Mapping):
        raise AgentError(
            f"the agent must return text or an object with answer, tool_calls and usage, "
            f"got {short(value)} ({type(value).__name__})"
        )
    for key in value:
        if key not in KEYS:
            raise AgentError(f"the agent's reply has the unknown key {short(key)}: {did_you_mean(str(key), KEYS)}")
    if value.get("error"):  # an agent that fails may still report what it has
        raise AgentError(f"the agent reports an error: {error_text(value['error'])}")
    calls, tokens = calls_of(value.get("tool_calls")), usage_of(value.get("usage"))
    answer = value.get("answer")
    if value.get("messages") is not None:
        turn = _turn_of_openai(value["messages"], prompt)
        answer = turn.answer if answer is None else answer
        calls = turn.calls if calls is None else calls
    elif answer is None and calls:
        answer = ""  # it only called tools
    if not isinstance(answer, str):
        came = short(answer) if "answer" in value else "nothing"
        raise AgentError(f"the agent's answer must be text, got {came}")
    return AgentTurn(_unicode(answer), calls, *tokens)


def turn_of_langchain(messages: Sequence[Any], *, prompt: str) -> AgentTurn:
    """Read a turn from the LangChain messages that followed the user's."""
    try:
        conversation = conversation_from_langchain(
            [{"type": "human", "data": {"content": prompt}}, *messages], session_id="trial", agent="agent"
        )
    except RecordsError as error:
        raise AgentError(f"the agent's messages cannot be read: {error.problems[0]}") from error
    except ValidationError as error:
        raise AgentError(f"the agent's messages cannot be read: {_first(error)}") from error
    spoken = [message for message in messages if getattr(message, "type", "") in ("ai", "AIMessageChunk")]
    usages = [usage_of(getattr(message, "usage_metadata", None)) for message in spoken]
    turn = _turn_of_record(conversation.conversation[-1].model_dump(exclude_unset=True))
    refusal = spoken[-1].additional_kwargs.get("refusal") if spoken and not turn.answer else None
    answer = refusal if isinstance(refusal, str) else turn.answer
    return AgentTurn(answer, turn.calls, _total(n for n, _ in usages), _total(n for _, n in usages))


def error_text(error: object) -> str:
    """What an agent or a server reports as its error: text, or an object with a message."""
    if isinstance(error, Mapping) and isinstance(error.get("message"), str) and error["message"]:
        error = error["message"]
    return cut_text(error if isinstance(error, str) else json.dumps(error, ensure_ascii=False, default=repr), _LONGEST)


def calls_of(value: object) -> list[dict[str, Any]] | None:
    """Tool calls with ``tool_name, parameters`` and, if known, ``result``; None if nothing was reported."""
    if value is None:
        return None
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        raise AgentError(f"the agent's tool_calls must be a list, got {short(value)}")
    calls = [_call(call, f"tool_calls[{position}]") for position, call in enumerate(value)]
    if all(call.step is not None for call in calls):
        calls.sort(key=lambda call: call.step or 0)
    return [call.model_dump(include={"tool_name", "parameters", "result"}, exclude_unset=True) for call in calls]


def usage_of(value: object) -> tuple[int | None, int | None]:
    """Input and output tokens, under the names of any provider."""
    if value is None:
        return None, None
    if not isinstance(value, Mapping):
        raise AgentError(f"the agent's usage must be an object, got {short(value)}")
    tokens = [next((value[name] for name in names if value.get(name) is not None), None) for names in _USAGE]
    if value and tokens == [None, None]:
        raise AgentError(f"the agent's usage must hold input_tokens and output_tokens, got {short(dict(value))}")
    for count in tokens:
        if count is not None and (not is_whole(count) or count < 0):
            raise AgentError(f"the agent's usage must hold whole numbers ≥ 0, got {short(count)}")
        if count is not None and count > _MOST_TOKENS:
            raise AgentError(f"the agent's usage must hold whole numbers ≤ 2**53, got one of {count.bit_length()} bits")
    return tokens[0], tokens[1]


def _call(value: object, where: str) -> ToolCall:
    if not isinstance(value, Mapping):
        raise AgentError(f"the agent's {where} must be an object, got {short(value)}")
    function = value.get("function")
    parts = {**value, **function} if isinstance(function, Mapping) else dict(value)
    if isinstance(function, Mapping):
        del parts["function"]
    call: dict[str, Any] = {}
    for key, content in parts.items():
        name = _NAMES.get(key, key)
        if name in call:
            raise AgentError(f"the agent's {where} gives {name} twice, also as {short(key)}")
        if name not in _IGNORED:
            call[name] = content
    call = _unicode(call)
    if isinstance(call.get("parameters"), str):
        call["parameters"] = _arguments(call["parameters"])
    try:
        return ToolCall.model_validate(call)
    except ValidationError as error:
        raise AgentError(f"the agent's {where}: {_first(error)}") from error


def _arguments(text: str) -> object:
    """Arguments from JSON text; malformed text is kept as it is, because the model did make the call."""
    if not text.strip():
        return {}
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError):
        return {UNREADABLE: text}
    return arguments if isinstance(arguments, dict) else {UNREADABLE: text}


def _turn_of_openai(messages: object, prompt: str) -> AgentTurn:
    """The last turn of messages, which may or may not include the user's."""
    if not isinstance(messages, Sequence) or isinstance(messages, (str, bytes)):
        raise AgentError(f"the agent's messages must be a list, got {short(messages)}")
    asked = any(isinstance(message, Mapping) and message.get("role") == "user" for message in messages)
    whole = [*([] if asked else [{"role": "user", "content": prompt}]), *messages]
    try:
        text = json.dumps({"messages": whole})
    except (TypeError, ValueError, RecursionError) as error:
        raise AgentError(f"the agent's messages must be JSON values: {error}") from error
    parsed = next(iter(read(io.BufferedReader(io.BytesIO(text.encode())), Origin("", "agent"))))
    if parsed.faults or parsed.value is NO_VALUE:
        where, message = parsed.faults[0]
        raise AgentError(f"the agent's messages cannot be read: {where}: {message}")
    return _turn_of_record(parsed.value["conversation"][-1])


def _turn_of_record(turn: Mapping[str, Any]) -> AgentTurn:
    """A turn of a conversation, as a reader of messages returns it."""
    calls = calls_of((turn.get("agentic") or {}).get("tools_used") or [])
    answer = turn.get("assistant")
    error = turn.get("error") or NO_ANSWER
    if answer is None and not (calls and error.startswith(NO_ANSWER)):
        raise AgentError(f"the agent's messages contain no answer: {error}")
    if answer is None:  # the agent is done: what it said with its last calls is its answer
        answer = next(reversed(turn.get("metadata", {}).get("before_calls", [])), None)
    return AgentTurn(_unicode(answer or ""), calls)


def _first(error: ValidationError) -> str:
    problem = problems_of(error, source="", where="")[0]
    return f"{problem.field}: {problem.message}" if problem.field else problem.message


def _unicode(value: Any) -> Any:
    """An answer or arguments without the characters that no file can hold; says how many were replaced."""
    readable, count = replaced(value)
    if count:
        warnings.warn(DoubtfulRecords(f"{count:,} {NOT_TEXT} in an agent's reply were replaced"), stacklevel=2)
    return readable


def _total(counts: Iterable[int | None]) -> int | None:
    known = list(counts)
    return None if not known or None in known else sum(count or 0 for count in known)
