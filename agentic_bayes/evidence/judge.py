"""An LLM as judge of answers: independent calls, a fenced prompt, and no score where none could be read."""

from __future__ import annotations

import asyncio
import statistics
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args
from weakref import WeakKeyDictionary

import anyio

from agentic_bayes.errors import InvalidArgument, ReplyError, check_choice
from agentic_bayes.evidence.calls import RUN, Attempt, Calls, Price
from agentic_bayes.evidence.models import (
    Ask,
    StructuredMethod,
    for_one_loop,
    is_model_name,
    model_name,
    parameters,
    reply_modes,
    resolve,
)
from agentic_bayes.evidence.prompt import Messages, Prompt, digest, text_digest
from agentic_bayes.evidence.reply import message_text, read_objects, read_text
from agentic_bayes.evidence.retries import Retries, is_unsupported, within
from agentic_bayes.evidence.score import Grade, Score, Unscored
from agentic_bayes.evidence.store import Call
from agentic_bayes.numerics import check_k
from agentic_bayes.records.base import short
from agentic_bayes.records.model import Conversation

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel as ChatModel
    from langchain_core.messages import BaseMessage

__all__ = ["ChatModel", "LLMJudge"]

Combine = Literal["median", "majority"]

_TEXT = "text"
_CUT_OFF = {"length", "max_tokens"}


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
    model : langchain_core.language_models.BaseChatModel or str
        The judge's model. Use temperature 0. Or its name, such as "openai:gpt-4o-mini", "anthropic:…",
        "ollama:…"; the model is then made when it is first needed.
    use_structured_output : bool
        Ask for the verdict through the provider's structured output. A model that has none is asked for JSON
        in text instead, as with False.
    structured_method : {"auto", "json_schema", "function_calling", "json_mode"}
        Which kind of structured output. "auto" takes the best that the model says it supports, and goes on to the
        next, at last to text, when the provider refuses it; another method is never left.
    rubric : str, optional
        Replaces the built-in rubric.
    choices : mapping, optional
        Label → score: the only scores that may be given, such as ``{"right": 1, "partly": 0.5, "wrong": 0}``.
        The label of the score is kept in the details.
    examples : sequence of mapping
        Judged examples that are shown first, each with ``query, reference, answer, reasoning, score``.
    context, chatbot_role : bool
        Show the judge the conversation's ``context`` or ``chatbot_role`` too.
    n_judgements : int
        How often each answer is judged.
    combine : {"median", "majority"}
        What becomes of several scores: their median, or the most frequent one (of equally frequent ones, the
        lowest). More than half of the judgements must have given a score.
    attempts : int
        Calls per judgement, at most. A failed call is repeated after a wait; a reply that cannot be read
        is asked for again, with what was wrong.
    backoff : float
        Seconds before the first repetition of a failed call; doubles each time, up to 30, with up to a quarter
        more against calls in step. A provider's ``Retry-After`` is kept.
    timeout : float, optional
        Seconds after which a call has failed.
    price : tuple of float, optional
        What a million input tokens and a million output tokens cost, for the costs in the store and `max_cost`.
    model_arguments : mapping, optional
        For a model given by name: arguments of its class. Unless given, ``temperature`` is 0.
    name : str
        Name of its column in the evidence where it is one of several judges, among the `metrics` of `assess`.
    sleep : callable, optional
        Awaited with the seconds to wait; for tests.

    Raises
    ------
    InvalidArgument
        If an argument is outside what is allowed.
    MissingPackage
        When a model given by name is first needed, and its package is not installed.

    Notes
    -----
    The reply is ``{"reasoning": str, "correctness_score": number in [0, 1]}``. A model that fails, or whose
    replies cannot be read, gives `Unscored` with the last reason; so does an interaction without a reference.
    Several judgements have their scores, spread (highest - lowest) and number in the details of the score, and the
    scores in its reason.
    """

    def __init__(
        self,
        model: ChatModel | str,
        *,
        use_structured_output: bool = True,
        structured_method: StructuredMethod = "auto",
        rubric: str | None = None,
        choices: Mapping[str, float] | None = None,
        examples: Sequence[Mapping[str, Any]] = (),
        context: bool = False,
        chatbot_role: bool = False,
        n_judgements: int = 1,
        combine: Combine = "median",
        attempts: int = 4,
        backoff: float = 1.0,
        timeout: float | None = 300.0,
        price: Price | None = None,
        model_arguments: Mapping[str, Any] | None = None,
        name: str = "llm_judge",
        sleep: Callable[[float], Awaitable[None]] | None = None,
    ) -> None:
        _check_model(model, model_arguments)
        for argument, flag in (
            ("use_structured_output", use_structured_output),
            ("context", context),
            ("chatbot_role", chatbot_role),
        ):
            if not isinstance(flag, bool):
                raise InvalidArgument(f"{argument} must be True or False, got {flag!r}")
        if not isinstance(name, str) or not name.strip():
            raise InvalidArgument(f"name must be text that is not blank, got {short(name)}")
        self.name = name
        check_choice("structured_method", structured_method, get_args(StructuredMethod))
        check_choice("combine", combine, get_args(Combine))
        check_k(attempts, "attempts")
        check_k(n_judgements, "n_judgements")
        _check_number("backoff", backoff, "of seconds ≥ 0")
        if timeout is not None:
            _check_number("timeout", timeout, "of seconds > 0", zero=False)
        if sleep is not None and not callable(sleep):
            raise InvalidArgument(f"sleep must be callable, got {short(sleep)}")
        self.price = _checked_price(price)
        self._prompt = Prompt(rubric, choices, examples)
        self._context, self._chatbot_role = context, chatbot_role
        self._n, self._combine = int(n_judgements), combine
        self._retries, self._timeout, self._sleep = Retries(attempts, float(backoff)), timeout, sleep or anyio.sleep
        self._method = structured_method if use_structured_output else None
        arguments = {"temperature": 0, **(model_arguments or {})}
        self._named = (model, arguments) if isinstance(model, str) else None
        self._model: Any = None
        self._by_owner: WeakKeyDictionary[object, list[tuple[str, Ask]]] = WeakKeyDictionary()
        if self._named is None:
            self._take(model)

    def _take(self, model: Any) -> None:
        """The model is known: so are its name, its parameters and its ways to reply."""
        self._model = model
        self._model_name, self._parameters = model_name(model), parameters(model)
        self._modes, self._mode = [name for name, _ in self._asks_of(model)], 0
        if not self._modes:
            raise InvalidArgument(f"structured_method {self._method!r} is not supported by {self._model_name}")
        self._call_digest = digest([self._model_name, self._parameters, self._modes[0], self._prompt.digest])
        self._opening = _to_langchain(self._prompt.opening)
        self._human = _message_kinds()["human"]

    def _asks_of(self, model: Any) -> list[tuple[str, Ask]]:
        """The ways to ask the model, best first, each with its name."""
        asks = reply_modes(model, self._prompt.schema, self._method) if self._method else []
        return [*asks, (_TEXT, model.ainvoke)] if self._method in (None, "auto") else asks

    def _asks(self) -> list[tuple[str, Ask]]:
        """The same for this run, or for the event loop outside of a run, whose connections are its own."""
        run = RUN.get()
        owner: object = asyncio.get_running_loop() if run is None else run
        asks = self._by_owner.get(owner)
        if asks is None:
            model, close = for_one_loop(self._model)
            asks = self._by_owner[owner] = self._asks_of(model)
            if run is not None and close is not None:
                run.at_end.append(close)
        return asks

    def _ready(self) -> None:
        if self._model is None and self._named is not None:
            self._take(resolve(*self._named))

    @property
    def identity(self) -> str:
        """Version, model with parameters, prompt and reply mode: whatever changes the scores."""
        self._ready()
        prompt = digest([self._prompt.digest, self._context, self._chatbot_role])[:12]
        model = self._model_name + (f" parameters={digest(self._parameters)[:8]}" if self._parameters else "")
        repeats = f" n={self._n} {self._combine}" if self._n > 1 else ""
        return f"llm-judge/1 model={model} prompt={prompt} {self._modes[self._mode]}{repeats}"

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
        self._ready()
        turn = conversation.conversation[position]
        if turn.assistant is None:
            return Unscored("no answer to judge")
        if turn.ground_truth_assistant is None or not turn.ground_truth_assistant.strip():
            return Unscored("no reference answer")
        material = {"query": turn.query, "reference": turn.ground_truth_assistant, "answer": turn.assistant}
        if self._chatbot_role:
            material = {"role of the agent": conversation.chatbot_role or "", **material}
        if self._context:
            material = {"context": conversation.context or "", **material}
        run = RUN.get() or Calls()
        grades = [await self._judgement(run, material, repeat) for repeat in range(self._n)]
        return self._combined(grades)

    async def _judgement(self, run: Calls, material: Mapping[str, str], repeat: int) -> Grade:
        """One judgement, from the run's store if it was paid for already."""
        question = self._prompt.question(material)
        key = text_digest(f"{self._call_digest} {repeat} {question}")
        ask = partial(self._ask, run, key, question, list(material.values()))
        grade = await run.judgement(key, self._model_name, ask)
        if isinstance(grade, Score):
            self._adopt(grade.details.get("mode"))
        return grade

    async def _ask(self, run: Calls, key: str, question: str, judged: Sequence[str], log: list[Call]) -> Score:
        """The verdict of the first attempt that gives one; raises what the last attempt raised."""
        messages = [*self._opening, self._human(question)]
        correction: list[BaseMessage] = []

        async def attempt() -> Score:
            while True:
                mode, model = self._asks()[self._mode]
                async with Attempt(run, log, self.price) as call:
                    try:
                        reply = await within(self._timeout, model, [*messages, *correction])
                    except Exception as error:
                        if not self._leave(mode, error):
                            raise
                        call.outcome = f"{type(error).__name__}: {error}"
                        continue
                    call.replied(_raw(reply))
                    try:
                        return self._read(reply, judged, mode)
                    except ReplyError as error:
                        correction[:] = _to_langchain(self._prompt.correction(_reply_text(reply), error))
                        raise

        return await self._retries.run(attempt, key=key, sleep=partial(run.pause, sleep=self._sleep))

    def _read(self, reply: Any, judged: Sequence[str], mode: str) -> Score:
        score = _read(reply, judged, structured=mode != _TEXT)
        if self._prompt.choices is None:
            return Score(score.value, score.reason, {"mode": mode})
        choice = self._prompt.choice(score.value)
        if choice is None:
            raise ReplyError(f"correctness_score must be {self._prompt.allowed}, got {score.value:g}")
        return Score(choice[1], score.reason, {"mode": mode})

    def _leave(self, mode: str, error: Exception) -> bool:
        """Go on to the next way to reply, if the provider does not support this one; it will not for the next call."""
        if not isinstance(error, NotImplementedError) and not is_unsupported(error):
            return False
        left = self._modes.index(mode) + 1
        if left >= len(self._modes):
            return False
        self._mode = max(self._mode, left)
        return True

    def _adopt(self, mode: object) -> None:
        """A stored verdict shows what an earlier run found the provider to support."""
        if mode in self._modes:
            self._mode = max(self._mode, self._modes.index(str(mode)))

    def _combined(self, grades: Sequence[Grade]) -> Grade:
        """One grade of the judgements."""
        if self._n == 1:
            return self._labelled(grades[0])
        scores = [grade for grade in grades if isinstance(grade, Score)]
        if 2 * len(scores) <= len(grades):
            return next(grade for grade in reversed(grades) if isinstance(grade, Unscored))
        values = [score.value for score in scores]
        value = statistics.median(values) if self._combine == "median" else _most_frequent(values)
        details = {"scores": values, "spread": max(values) - min(values), "judgements": self._n}
        said = ", ".join(f"{value:g}" for value in values)
        lost = f" ({self._n - len(values)} of {self._n} unscored)" if len(values) < self._n else ""
        nearest = min(scores, key=lambda score: abs(score.value - value))
        return self._labelled(Score(value, f"{self._combine} of {said}{lost}: {nearest.reason}"), details)

    def _labelled(self, grade: Grade, details: Mapping[str, Any] | None = None) -> Grade:
        """The grade with the choice that its score stands for, if it stands for one."""
        if isinstance(grade, Unscored):
            return grade
        choice = self._prompt.choice(grade.value)
        return Score(grade.value, grade.reason, {**({"choice": choice[0]} if choice else {}), **(details or {})})


def _most_frequent(values: Sequence[float]) -> float:
    counts = Counter(values)
    return min(value for value, count in counts.items() if count == max(counts.values()))


def _check_model(model: object, arguments: object) -> None:
    from langchain_core.language_models import BaseChatModel

    named = isinstance(model, str) and is_model_name(model)
    if not named and not isinstance(model, BaseChatModel):
        raise InvalidArgument(
            "model must be a LangChain chat model (BaseChatModel) or a name such as "
            f"'openai:gpt-4o-mini' (provider:model), got {short(model)}"
        )
    if arguments is not None and not (named and isinstance(arguments, Mapping)):
        raise InvalidArgument(f"model_arguments must be an object, for a model given by name, got {short(arguments)}")


def _check_number(name: str, value: object, allowed: str, *, zero: bool = True) -> None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    # whole numbers beyond the largest float are left out, as infinity and NaN are
    if not number or not 0 <= value <= sys.float_info.max or (value == 0 and not zero):  # type: ignore[operator]
        raise InvalidArgument(f"{name} must be a number {allowed}, got {value!r}")


def _checked_price(price: object) -> Price | None:
    if price is None:
        return None
    if not isinstance(price, Sequence) or isinstance(price, str) or len(price) != 2:
        raise InvalidArgument(
            f"price must be (per million input tokens, per million output tokens), got {short(price)}"
        )
    for value in price:
        _check_number("price", value, "≥ 0 per million tokens")
    return float(price[0]), float(price[1])


def _message_kinds() -> Mapping[str, Callable[[str], BaseMessage]]:
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

    return {"system": SystemMessage, "human": HumanMessage, "ai": AIMessage}


def _to_langchain(messages: Messages) -> list[BaseMessage]:
    kinds = _message_kinds()
    return [kinds[role](text) for role, text in messages]


def _raw(reply: Any) -> Any:
    """The message in a reply, which may be what a parser made of it."""
    return reply.get("raw") if isinstance(reply, Mapping) else reply


def _reply_text(reply: Any) -> str:
    return message_text(getattr(_raw(reply), "content", ""))


def _read(reply: Any, judged: Sequence[str], *, structured: bool) -> Score:
    """The verdict in a reply, from structured output where there is some, else from its text."""
    message, text = _raw(reply), _reply_text(reply)
    calls = getattr(message, "tool_calls", None)
    if structured and calls:
        metadata = getattr(message, "response_metadata", None) or {}
        if {metadata.get("finish_reason"), metadata.get("stop_reason")} & _CUT_OFF:
            raise ReplyError("the reply was cut off at the model's length limit")
        return read_objects([call["args"] for call in calls], judged)
    wrapped = isinstance(reply, Mapping) and "raw" in reply
    parsed = reply.get("parsed") if wrapped else reply
    if hasattr(parsed, "correctness_score"):
        parsed = parsed.model_dump()
    # a parser may have completed JSON that was cut off: where there is JSON text, it is read here
    if isinstance(parsed, Mapping) and "{" not in text:
        return read_objects([parsed], judged)
    if not text.strip():
        refusal = (getattr(message, "additional_kwargs", None) or {}).get("refusal")
        if refusal:
            raise ReplyError(f"the model refused: {short(refusal, 200)}")
        problem = reply.get("parsing_error") if wrapped else None
        raise ReplyError(f"the reply is empty: {problem}" if problem else "the reply is empty")
    return read_text(text, judged)
