"""Asks one model for JSON objects: its reply modes, retries, time limit, price and identity."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, get_args
from weakref import WeakKeyDictionary

import anyio

from agentic_bayes.checks import check_choice, check_count, check_flag, check_number
from agentic_bayes.errors import InvalidArgument, ReplyError, described
from agentic_bayes.evidence.llm import models
from agentic_bayes.evidence.llm.calls import RUN, MeteredCall, RunCalls, TokenPrice
from agentic_bayes.evidence.llm.models import Ask, StructuredMethod
from agentic_bayes.evidence.llm.prompt import PromptMessages, digest, text_digest
from agentic_bayes.evidence.llm.reply import message_text
from agentic_bayes.evidence.llm.retries import Retries, is_unsupported, within
from agentic_bayes.evidence.llm.store import ModelCall
from agentic_bayes.evidence.score import Grade, Score
from agentic_bayes.records.base import short
from agentic_bayes.redaction import secrets_in

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage

TEXT = "text"
_CUT_OFF = {"length", "max_tokens"}


@dataclass(frozen=True, slots=True)
class ModelQuestion:
    """What to ask a model, and how to read its reply."""

    schema: Mapping[str, Any]  # JSON schema of the reply
    digest: str  # a hash of everything that the model is shown apart from the material
    read: Callable[[Any, bool], Score]  # (reply, whether it is structured) → score, or raises `ReplyError`
    correction: Callable[[str, ReplyError], PromptMessages]  # (unreadable reply, problem) → what to tell the model


class ReplyModes:
    """The modes in which one model can reply to one kind of question, and the mode in use."""

    def __init__(self, asker: Asker, schema: Mapping[str, Any], content: str) -> None:
        self._asker, self._schema = asker, schema
        self.modes, self.mode = [name for name, _ in self._asks_of(asker.model)], 0
        if not self.modes:
            raise InvalidArgument(f"structured_method {asker.method!r} is not supported by {asker.model_name}")
        self.digest = digest([asker.model_name, asker.parameters, self.modes[0], content])
        self._by_owner: WeakKeyDictionary[object, list[tuple[str, Ask]]] = WeakKeyDictionary()

    def _asks_of(self, model: Any) -> list[tuple[str, Ask]]:
        """The ways to ask the model, best first, each with the name of its mode."""
        method = self._asker.method
        asks = models.reply_modes(model, self._schema, method) if method else []
        return [*asks, (TEXT, model.ainvoke)] if method in (None, "auto") else asks

    def asks(self) -> list[tuple[str, Ask]]:
        """The same with the connections of this run or, outside a run, of this event loop."""
        run = RUN.get()
        owner: object = asyncio.get_running_loop() if run is None else run
        asks = self._by_owner.get(owner)
        if asks is None:
            asks = self._by_owner[owner] = self._asks_of(self._asker.for_owner(owner, run))
        return asks

    def leave(self, mode: str, error: Exception) -> bool:
        """Switch to the next mode for good if the provider does not support this one."""
        if not isinstance(error, NotImplementedError) and not is_unsupported(error):
            return False
        left = self.modes.index(mode) + 1
        if left >= len(self.modes):
            return False
        self.mode = max(self.mode, left)
        return True

    def adopt(self, mode: object) -> None:
        """Use the mode of a stored verdict: an earlier run found that the provider supports it."""
        if mode in self.modes:
            self.mode = max(self.mode, self.modes.index(str(mode)))


class Asker:
    """Asks a chat model for JSON objects; judges, metrics and graders share it."""

    def __init__(
        self,
        model: BaseChatModel | str,
        *,
        use_structured_output: bool = True,
        structured_method: StructuredMethod = "auto",
        attempts: int = 4,
        backoff: float = 1.0,
        timeout: float | None = 300.0,
        price: TokenPrice | None = None,
        model_arguments: Mapping[str, Any] | None = None,
        sleep: Callable[[float], Awaitable[None]] | None = None,
    ) -> None:
        _check_model(model, model_arguments)
        check_flag(use_structured_output, "use_structured_output")
        check_choice("structured_method", structured_method, get_args(StructuredMethod))
        check_count(attempts, "attempts")
        check_number(backoff, "backoff", unit="seconds")
        if timeout is not None:
            check_number(timeout, "timeout", above_zero=True, unit="seconds")
        if sleep is not None and not callable(sleep):
            raise InvalidArgument(f"sleep must be callable, got {short(sleep)}")
        self.price = _checked_price(price)
        self.method = structured_method if use_structured_output else None
        self._retries, self._timeout, self._sleep = Retries(attempts, float(backoff)), timeout, sleep or anyio.sleep
        arguments = {"temperature": 0, **(model_arguments or {})}
        self._named = (model, arguments) if isinstance(model, str) else None
        self.model: Any = None
        self.model_name = self.parameters = ""
        self._secrets: Mapping[str, str] = {}
        self._models: WeakKeyDictionary[object, Any] = WeakKeyDictionary()
        self._reply_modes: dict[str, ReplyModes] = {}
        if self._named is None:
            self._take(model)

    def _take(self, model: Any) -> None:
        """Note the model, its name, its parameters, and its keys and headers."""
        self.model, self._secrets = model, secrets_in(model)
        self.model_name, self.parameters = models.model_name(model), models.parameters(model)

    def ready(self) -> None:
        """Make the model if it was given by name and nothing has needed it yet."""
        if self.model is None and self._named is not None:
            self._take(models.resolve(*self._named))

    @property
    def description(self) -> str:
        """The model's name and a digest of its parameters, for identities."""
        self.ready()
        return self.model_name + (f" parameters={digest(self.parameters)[:8]}" if self.parameters else "")

    def for_owner(self, owner: object, run: RunCalls | None) -> Any:
        """The model with connections of its own for a run or an event loop."""
        model = self._models.get(owner)
        if model is None:
            model, close = models.for_one_loop(self.model)
            self._models[owner] = model
            if run is not None and close is not None:
                run.at_end.append(close)
        return model

    def reply_modes(self, schema: Mapping[str, Any], content: str) -> ReplyModes:
        """The reply modes of one kind of question."""
        if content not in self._reply_modes:
            self._reply_modes[content] = ReplyModes(self, schema, content)
        return self._reply_modes[content]

    async def ask(
        self, question: ModelQuestion, opening: Sequence[BaseMessage], text: str, *, repeat: int = 0
    ) -> Grade:
        """The model's reply, from the run's store if it is there."""
        modes = self.reply_modes(question.schema, question.digest)
        run = RUN.get() or RunCalls()
        run.keep_secret(self._secrets)
        key = text_digest(f"{modes.digest} {repeat} {text}")
        answer = partial(self._answer, run, key, modes, question, opening, text)
        grade = await run.judgement(key, self.model_name, answer)
        if isinstance(grade, Score):
            modes.adopt(grade.details.get("mode"))
        return grade

    async def _answer(
        self,
        run: RunCalls,
        key: str,
        modes: ReplyModes,
        question: ModelQuestion,
        opening: Sequence[BaseMessage],
        text: str,
        log: list[ModelCall],
    ) -> Score:
        """The answer of the first attempt that gives one; raises what the last attempt raised."""
        messages = [*opening, *to_langchain([("human", text)])]
        correction: list[BaseMessage] = []

        async def attempt() -> Score:
            while True:
                mode, model = modes.asks()[modes.mode]
                async with MeteredCall(run, log, self.price) as call:
                    try:
                        reply = await within(self._timeout, model, [*messages, *correction])
                    except Exception as error:
                        if not modes.leave(mode, error):
                            raise
                        call.outcome = described(error)
                        continue
                    call.replied(_raw(reply))
                    try:
                        score = question.read(reply, mode != TEXT)
                    except Exception as error:
                        # whatever the reply holds, it is the reply that is unusable, not the transport
                        wrong = error if isinstance(error, ReplyError) else ReplyError(described(error))
                        correction[:] = to_langchain(question.correction(reply_text(reply), wrong))
                        raise wrong from error
                    return Score(score.value, score.reason, {"mode": mode, **score.details})

        return await self._retries.run(attempt, key=key, sleep=partial(run.pause, sleep=self._sleep))


def _check_model(model: object, arguments: object) -> None:
    from langchain_core.language_models import BaseChatModel

    named = isinstance(model, str) and models.is_model_name(model)
    if not named and not isinstance(model, BaseChatModel):
        raise InvalidArgument(
            "model must be a LangChain chat model (BaseChatModel) or a name like "
            f"'openai:gpt-4o-mini' (provider:model), got {short(model)}"
        )
    if arguments is not None and not (named and isinstance(arguments, Mapping)):
        raise InvalidArgument(f"model_arguments must be a mapping, for a model given by name, got {short(arguments)}")


def _checked_price(price: object) -> TokenPrice | None:
    if price is None:
        return None
    if not isinstance(price, Sequence) or isinstance(price, str) or len(price) != 2:
        raise InvalidArgument(
            f"price must be (per million input tokens, per million output tokens), got {short(price)}"
        )
    given, made = (check_number(value, "price per million tokens") for value in price)
    return given, made


def to_langchain(messages: PromptMessages) -> list[BaseMessage]:
    """(role, text) pairs as LangChain's messages."""
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

    kinds: Mapping[str, Callable[[str], BaseMessage]]
    kinds = {"system": SystemMessage, "human": HumanMessage, "ai": AIMessage}
    return [kinds[role](text) for role, text in messages]


def _raw(reply: Any) -> Any:
    """The message itself; with a parser, the reply holds it as ``raw``."""
    return reply.get("raw") if isinstance(reply, Mapping) else reply


def reply_text(reply: Any) -> str:
    """The text of a reply."""
    return message_text(getattr(_raw(reply), "content", ""))


def structured_objects(reply: Any, *, structured: bool) -> list[Any] | None:
    """The objects that a reply holds apart from its text; None if its text must be read."""
    message, text = _raw(reply), reply_text(reply)
    calls = getattr(message, "tool_calls", None)
    if structured and calls:
        metadata = getattr(message, "response_metadata", None) or {}
        if {metadata.get("finish_reason"), metadata.get("stop_reason")} & _CUT_OFF:
            raise ReplyError("the reply was cut off at the model's length limit")
        return [call["args"] for call in calls]
    wrapped = isinstance(reply, Mapping) and "raw" in reply
    parsed = reply.get("parsed") if wrapped else reply
    if hasattr(parsed, "model_dump") and not hasattr(parsed, "content"):
        parsed = parsed.model_dump()
    # a parser may have completed JSON that was cut off, so JSON text is read here
    if isinstance(parsed, Mapping) and "{" not in text:
        return [parsed]
    if not text.strip():
        refusal = (getattr(message, "additional_kwargs", None) or {}).get("refusal")
        if refusal:
            raise ReplyError(f"the model refused: {short(refusal, 200)}")
        if called := [*(calls or []), *(getattr(message, "invalid_tool_calls", None) or [])]:
            raise ReplyError(
                f"the reply calls {short(called[0].get('name'))} instead of giving an answer that can be read"
            )
        problem = reply.get("parsing_error") if wrapped else None
        raise ReplyError(f"the reply is empty: {problem}" if problem else "the reply is empty")
    return None
