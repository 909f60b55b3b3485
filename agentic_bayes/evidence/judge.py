"""An LLM as judge of answers: independent calls, a fenced prompt, and no score where none could be read."""

from __future__ import annotations

import hashlib
import importlib.resources
import json
import re
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from string import Template
from typing import TYPE_CHECKING, Any

import anyio
import tenacity

from agentic_bayes.errors import InvalidArgument, ReplyError
from agentic_bayes.evidence.reply import REPLY_SCHEMA, message_text, read_objects, read_text
from agentic_bayes.evidence.score import Grade, Score, Unscored
from agentic_bayes.numerics import check_k
from agentic_bayes.records.base import short
from agentic_bayes.records.model import Conversation

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel as ChatModel
    from langchain_core.messages import BaseMessage

__all__ = ["ChatModel", "LLMJudge"]

_LONGEST_WAIT = 30.0
_MOST_STALE = 100
_NOT_SUPPORTED = re.compile(
    r"(not|n't|un)\s?-?support\w*.{0,40}(tool|function|structured|response_format|json)"
    r"|(tool|function|structured|response_format|json).{0,40}(not|n't|un)\s?-?(be\s)?support",
    re.IGNORECASE | re.DOTALL,
)


def __getattr__(name: str) -> Any:
    """`ChatModel`, LangChain's chat-model type, loaded on first use."""
    if name == "ChatModel":
        from langchain_core.language_models import BaseChatModel

        return BaseChatModel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class LLMJudge:
    """Scores answers against their reference with any LangChain chat model.

    Every interaction is judged by calls of its own, which hold its query, reference and answer and nothing of
    any other interaction. These texts stand between marks whose key is derived from the texts themselves, so
    that no text can close its own marks: what an answer says about scores or references stays part of it.

    Parameters
    ----------
    model : langchain_core.language_models.BaseChatModel
        The judge's model. Use temperature 0.
    use_structured_output : bool
        Ask for the verdict through the provider's structured output. A model that has none is asked for JSON
        in text instead, as with False.
    rubric : str, optional
        Replaces the built-in rubric.
    context, chatbot_role : bool
        Show the judge the conversation's ``context`` or ``chatbot_role`` too.
    attempts : int
        Calls per interaction, at most. A failed call is repeated after a wait; a reply that cannot be read
        is asked for again, with what was wrong.
    backoff : float
        Seconds before the first repetition of a failed call; doubles each time, up to 30.
    timeout : float, optional
        Seconds after which a call has failed.
    sleep : callable, optional
        Awaited with the seconds to wait; for tests.

    Raises
    ------
    InvalidArgument
        If an argument is outside what is allowed.

    Notes
    -----
    The reply is ``{"reasoning": str, "correctness_score": number in [0, 1]}``. A model that fails, or whose
    replies cannot be read, gives `Unscored` with the last reason; so does an interaction without a reference.
    """

    name = "llm_judge"

    def __init__(
        self,
        model: ChatModel,
        *,
        use_structured_output: bool = True,
        rubric: str | None = None,
        context: bool = False,
        chatbot_role: bool = False,
        attempts: int = 4,
        backoff: float = 1.0,
        timeout: float | None = None,
        sleep: Callable[[float], Awaitable[None]] | None = None,
    ) -> None:
        from langchain_core.language_models import BaseChatModel

        if not isinstance(model, BaseChatModel):
            raise InvalidArgument(f"model must be a LangChain chat model (BaseChatModel), got {short(model)}")
        for name, flag in (
            ("use_structured_output", use_structured_output),
            ("context", context),
            ("chatbot_role", chatbot_role),
        ):
            if not isinstance(flag, bool):
                raise InvalidArgument(f"{name} must be True or False, got {flag!r}")
        if rubric is not None and (not isinstance(rubric, str) or not rubric.strip()):
            raise InvalidArgument(f"rubric must be text that is not blank, got {short(rubric)}")
        check_k(attempts, "attempts")
        _check_seconds("backoff", backoff, zero=True)
        if timeout is not None:
            _check_seconds("timeout", timeout, zero=False)
        if sleep is not None and not callable(sleep):
            raise InvalidArgument(f"sleep must be callable, got {short(sleep)}")
        self._model = model
        self._structured = _structured(model) if use_structured_output else None
        self._system = Template(_prompt("judge_system")).substitute(rubric=(rubric or _prompt("judge_rubric")).strip())
        self._context, self._chatbot_role = context, chatbot_role
        self._attempts, self._backoff, self._timeout = attempts, float(backoff), timeout
        self._sleep = sleep or anyio.sleep

    @property
    def identity(self) -> str:
        """Version, model, prompt and reply mode: whatever changes the scores."""
        prompt = [self._system, _prompt("judge_interaction"), self._context, self._chatbot_role]
        mode = "text" if self._structured is None else "structured"
        return f"llm-judge/1 model={_model_name(self._model)} prompt={_digest(prompt)[:12]} {mode}"

    async def grade(self, conversation: Conversation, position: int) -> Grade:
        """Judge one answer.

        Parameters
        ----------
        conversation : Conversation
            The conversation; only this turn is shown to the model.
        position : int
            Index of the interaction.

        Returns
        -------
        Score or Unscored
        """
        turn = conversation.conversation[position]
        if turn.assistant is None:
            return Unscored("no answer to judge")
        if turn.ground_truth_assistant is None or not turn.ground_truth_assistant.strip():
            return Unscored("no reference answer")
        parts = {"query": turn.query, "reference": turn.ground_truth_assistant, "answer": turn.assistant}
        if self._chatbot_role:
            parts = {"role of the agent": conversation.chatbot_role or "", **parts}
        if self._context:
            parts = {"context": conversation.context or "", **parts}
        try:
            return await self._judge(parts)
        except ReplyError as error:
            return Unscored(f"unreadable reply: {error}")
        except Exception as error:
            return Unscored(f"{type(error).__name__}: {error}")

    async def _judge(self, parts: Mapping[str, str]) -> Score:
        """The verdict of the first attempt that gives one; raises what the last attempt raised."""
        from langchain_core.messages import HumanMessage, SystemMessage

        prompt: list[BaseMessage] = [SystemMessage(self._system), HumanMessage(_fenced(parts))]
        correction: list[BaseMessage] = []

        async def attempt() -> Score:
            reply = await self._call([*prompt, *correction])
            try:
                return _read(reply, list(parts.values()))
            except ReplyError as error:
                correction[:] = _correction(reply, error)
                raise

        between_calls = tenacity.wait_exponential(multiplier=self._backoff, max=_LONGEST_WAIT)

        def wait(state: tenacity.RetryCallState) -> float:
            unreadable = state.outcome is not None and isinstance(state.outcome.exception(), ReplyError)
            return 0.0 if unreadable else between_calls(state)

        retrying = tenacity.AsyncRetrying(
            stop=tenacity.stop_after_attempt(self._attempts),
            wait=wait,
            sleep=self._sleep,
            retry=tenacity.retry_if_exception_type(Exception),
            reraise=True,
        )
        return await retrying(attempt)

    async def _call(self, messages: Sequence[BaseMessage]) -> Any:
        """One reply: a message, or what the provider's structured output gave."""
        if self._structured is not None:
            try:
                return await self._within_timeout(self._structured.ainvoke, messages)
            except Exception as error:
                if not isinstance(error, NotImplementedError) and not _NOT_SUPPORTED.search(str(error)):
                    raise
                self._structured = None  # the provider has none, and will not have it for the next interaction
        return await self._within_timeout(self._model.ainvoke, messages)

    async def _within_timeout(self, call: Callable[..., Awaitable[Any]], messages: Sequence[BaseMessage]) -> Any:
        with anyio.move_on_after(self._timeout):
            for _ in range(_MOST_STALE):
                try:
                    return await call(list(messages))
                except Exception as error:
                    if not _is_stale(error):
                        raise
            return await call(list(messages))
        raise TimeoutError(f"no reply within {self._timeout:g} s")


def _is_stale(error: BaseException | None) -> bool:
    """Whether the call died of a connection that was left over from an earlier run's event loop.

    Providers' clients keep connections beyond the loop in which they were opened. Each is dropped when it fails,
    and nothing was sent, so the call is made again at once.
    """
    while error is not None:
        if isinstance(error, RuntimeError) and "Event loop is closed" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _check_seconds(name: str, value: object, *, zero: bool) -> None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    # whole numbers beyond the largest float are left out, as infinity and NaN are
    if not number or not 0 <= value <= sys.float_info.max or (value == 0 and not zero):  # type: ignore[operator]
        raise InvalidArgument(f"{name} must be a number of seconds {'≥' if zero else '>'} 0, got {value!r}")


def _prompt(name: str) -> str:
    return importlib.resources.files(__package__).joinpath("prompts", f"{name}.txt").read_text(encoding="utf-8")


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _model_name(model: ChatModel) -> str:
    names = (getattr(model, attribute, None) for attribute in ("model_name", "model", "model_id"))
    return next((name for name in names if isinstance(name, str) and name), None) or str(model._llm_type)


def _structured(model: ChatModel) -> Any:
    """The model with structured output, or None if it has none."""
    try:
        return model.with_structured_output(dict(REPLY_SCHEMA), include_raw=True)
    except (NotImplementedError, AttributeError, TypeError, ValueError):
        return None


def _fenced(parts: Mapping[str, str]) -> str:
    """The material of one interaction, each part between marks that no part contains.

    The key is a digest of all parts. A text that held its own key would have to be a fixed point of the hash;
    should one ever hold it, the next digest is taken.
    """
    key = _digest(dict(parts))[:16]
    while any(key in text for text in parts.values()):
        key = _digest(key)[:16]
    blocks = [f"[{name} {key}]\n{text}\n[end of {name} {key}]" for name, text in parts.items()]
    return Template(_prompt("judge_interaction")).substitute(key=key, parts="\n\n".join(blocks))


def _correction(reply: Any, error: ReplyError) -> list[BaseMessage]:
    """The reply that could not be read, shortened, and what was wrong with it."""
    from langchain_core.messages import AIMessage, HumanMessage

    raw = reply.get("raw") if isinstance(reply, Mapping) else reply
    text = message_text(getattr(raw, "content", "")).strip()[:2000]
    request = (
        f"This reply could not be used: {error}. Reply again with one JSON object that has the keys "
        '"reasoning" (text) and "correctness_score" (a plain number from 0 to 1), and nothing else.'
    )
    return [AIMessage(text or "(no text)"), HumanMessage(request)]


def _read(reply: Any, judged: Sequence[str]) -> Score:
    """The verdict in a reply, from structured output where there is some, else from its text."""
    structured = isinstance(reply, Mapping) and "raw" in reply
    message = reply["raw"] if structured else reply
    calls = getattr(message, "tool_calls", None)
    if structured and calls:
        metadata = getattr(message, "response_metadata", None) or {}
        if {metadata.get("finish_reason"), metadata.get("stop_reason")} & {"length", "max_tokens"}:
            raise ReplyError("the reply was cut off at the model's length limit")
        return read_objects([call["args"] for call in calls], judged)
    text = message_text(getattr(message, "content", ""))
    parsed = reply.get("parsed") if structured else reply
    if hasattr(parsed, "correctness_score"):
        parsed = parsed.model_dump()
    # a parser may have completed JSON that was cut off: where there is JSON text, it is read here
    if isinstance(parsed, Mapping) and "{" not in text:
        return read_objects([parsed], judged)
    if not text.strip():
        problem = reply.get("parsing_error") if structured else None
        raise ReplyError(f"the reply is empty: {problem}" if problem else "the reply is empty")
    return read_text(text, judged)
