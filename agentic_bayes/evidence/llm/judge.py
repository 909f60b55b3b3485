"""The LLM judge of answers: independent calls, a fenced prompt, and no score unless one can be read."""

from __future__ import annotations

import statistics
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

from agentic_bayes.checks import check_choice, check_count, check_flag
from agentic_bayes.errors import InvalidArgument, ReplyError
from agentic_bayes.evidence.llm import asking
from agentic_bayes.evidence.llm.calls import TokenPrice
from agentic_bayes.evidence.llm.models import StructuredMethod
from agentic_bayes.evidence.llm.prompt import Prompt, digest
from agentic_bayes.evidence.llm.reply import REASONING, SCORE, read_objects, read_text
from agentic_bayes.evidence.score import NO_REFERENCE, Grade, Score, Unscored
from agentic_bayes.records.base import short
from agentic_bayes.records.model import Conversation

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel as ChatModel

__all__ = ["ChatModel", "LLMJudge"]

Combine = Literal["median", "majority"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """`ChatModel`, LangChain's chat-model type, loaded on first use."""
        if name == "ChatModel":
            from langchain_core.language_models import BaseChatModel

            return BaseChatModel
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class LLMJudge:
    """Scores answers against their reference with any LangChain chat model.

    Every interaction is judged in its own calls, which contain only its query, reference and answer. These texts stand
    between marks whose key is derived from the texts themselves, so no text can close its own marks: whatever an answer
    says about scores or references stays part of the answer.

    Parameters
    ----------
    model : langchain_core.language_models.BaseChatModel or str
        The judge's model, at temperature 0; or its name, for example "openai:gpt-4o-mini", "anthropic:…" or
        "ollama:…". A model given by name is made when it is first needed.
    use_structured_output : bool
        Ask for the verdict through the provider's structured output. With False, or if the model has none, the judge
        asks for JSON in text.
    structured_method : {"auto", "json_schema", "function_calling", "json_mode"}
        The kind of structured output. "auto" takes the best one that the model says it supports, and falls back to the
        next one, and finally to text, if the provider refuses it. Any other method is used without a fallback.
    rubric : str, optional
        Replaces the built-in rubric.
    choices : mapping, optional
        Label → score: the only scores allowed, for example ``{"right": 1, "partly": 0.5, "wrong": 0}``. The details
        keep the label of the score.
    examples : sequence of mapping
        Judged examples to show first, each with ``query, reference, answer, reasoning, score``.
    context, chatbot_role : bool
        Whether to show the judge the conversation's ``context`` or ``chatbot_role``, too.
    n_judgements : int
        Number of judgements per answer.
    combine : {"median", "majority"}
        How several scores are combined: their median, or the most frequent one (the lowest of several). More than half
        of the judgements must have given a score.
    attempts : int
        Maximum number of calls per judgement. A failed call is repeated after a wait; after a reply that cannot be
        read, the model is told what was wrong and asked again.
    backoff : float
        Seconds to wait before the first repetition of a failed call. The wait doubles each time, up to 30 seconds,
        plus a jitter of up to a quarter. A provider's ``Retry-After`` is respected.
    timeout : float, optional
        Seconds after which a call counts as failed.
    price : tuple of float, optional
        Price of a million input tokens and of a million output tokens, for the costs in the store and `max_cost`.
    model_arguments : mapping, optional
        For a model given by name: arguments of its class. ``temperature`` is 0 by default.
    name : str
        Name of its column in the evidence if it is a further judge, among the `metrics` of `assess`.
    sleep : callable, optional
        A coroutine function that replaces the wait (it gets the seconds), for tests.

    Raises
    ------
    InvalidArgument
        If an argument is outside what is allowed.
    MissingPackage
        When a model given by name is first needed and its package is not installed.

    Notes
    -----
    The reply is ``{"reasoning": str, "correctness_score": number in [0, 1]}``. If the model fails, or its replies
    cannot be read, the grade is `Unscored` with the last reason; so it is for an interaction without a reference. With
    several judgements, the details hold their scores, spread (highest - lowest) and number, and the reason lists the
    scores.
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
        price: TokenPrice | None = None,
        model_arguments: Mapping[str, Any] | None = None,
        name: str = "llm_judge",
        sleep: Callable[[float], Awaitable[None]] | None = None,
    ) -> None:
        check_flag(context, "context")
        check_flag(chatbot_role, "chatbot_role")
        if not isinstance(name, str) or not name.strip():
            raise InvalidArgument(f"name must be text that is not blank, got {short(name)}")
        self.name = name
        check_choice("combine", combine, get_args(Combine))
        check_count(n_judgements, "n_judgements")
        self._asker = asking.Asker(
            model,
            use_structured_output=use_structured_output,
            structured_method=structured_method,
            attempts=attempts,
            backoff=backoff,
            timeout=timeout,
            price=price,
            model_arguments=model_arguments,
            sleep=sleep,
        )
        self.price = self._asker.price
        self._prompt = Prompt(rubric, choices, examples)
        self._context, self._chatbot_role = context, chatbot_role
        self._n, self._combine = int(n_judgements), combine
        self._opening = asking.to_langchain(self._prompt.opening)
        if not isinstance(model, str):
            self._reply_modes()  # refuse at once a method that the model does not support

    def _reply_modes(self) -> asking.ReplyModes:
        self._asker.ready()
        return self._asker.reply_modes(self._prompt.schema, self._prompt.digest)

    @property
    def identity(self) -> str:
        """Version, model with parameters, prompt and reply mode: whatever changes the scores."""
        modes = self._reply_modes()
        prompt = digest([self._prompt.digest, self._context, self._chatbot_role])[:12]
        repeats = f" n={self._n} {self._combine}" if self._n > 1 else ""
        return f"llm-judge/1 model={self._asker.description} prompt={prompt} {modes.modes[modes.mode]}{repeats}"

    async def grade(self, conversation: Conversation, position: int) -> Grade:
        """Judge one answer; the model is shown only this turn.

        Parameters
        ----------
        conversation, position : Conversation, int
            As for `Grader.grade`.
        """
        self._asker.ready()
        turn = conversation.conversation[position]
        if turn.assistant is None:
            return Unscored("no answer to judge")
        if turn.ground_truth_assistant is None or not turn.ground_truth_assistant.strip():
            return Unscored(NO_REFERENCE)
        material = {"query": turn.query, "reference": turn.ground_truth_assistant, "answer": turn.assistant}
        if self._chatbot_role:
            material = {"role of the agent": conversation.chatbot_role or "", **material}
        if self._context:
            material = {"context": conversation.context or "", **material}
        text = self._prompt.question(material)
        read = partial(read_verdict, self._prompt, list(material.values()))
        question = asking.ModelQuestion(self._prompt.schema, self._prompt.digest, read, self._prompt.correction)
        grades = [await self._asker.ask(question, self._opening, text, repeat=repeat) for repeat in range(self._n)]
        return self._combined(grades)

    def _combined(self, grades: Sequence[Grade]) -> Grade:
        """One grade of the judgements."""
        if self._n == 1:
            return self._labelled(grades[0])
        scores = [grade for grade in grades if isinstance(grade, Score)]
        if 2 * len(scores) <= len(grades):
            return next(grade for grade in reversed(grades) if isinstance(grade, Unscored))
        values = [score.value for score in scores]
        value = statistics.median(values) if self._combine == "median" else min(statistics.multimode(values))
        details = {"scores": values, "spread": max(values) - min(values), "judgements": self._n}
        listed = ", ".join(f"{value:g}" for value in values)
        lost = f" ({self._n - len(values)} of {self._n} unscored)" if len(values) < self._n else ""
        nearest = min(scores, key=lambda score: abs(score.value - value))
        return self._labelled(Score(value, f"{self._combine} of {listed}{lost}: {nearest.reason}"), details)

    def _labelled(self, grade: Grade, details: Mapping[str, Any] | None = None) -> Grade:
        """The grade with the label of the choice that has its score, if one has."""
        if isinstance(grade, Unscored):
            return grade
        choice = self._prompt.choice(grade.value)
        return Score(grade.value, grade.reason, {**({"choice": choice[0]} if choice else {}), **(details or {})})


def read_verdict(prompt: Prompt, judged: Sequence[str], reply: Any, structured: bool) -> Score:
    """The verdict in a reply; with choices, the score of the choice that it names."""
    objects = asking.structured_objects(reply, structured=structured)
    examples = [{REASONING: example["reasoning"], SCORE: example["score"]} for example in prompt.examples]
    if objects is None:
        score = read_text(asking.reply_text(reply), judged, examples)
    else:
        score = read_objects(objects, judged, examples)
    if prompt.choices is None:
        return score
    choice = prompt.choice(score.value)
    if choice is None:
        raise ReplyError(f"correctness_score must be {prompt.allowed}, got {score.value:g}")
    return Score(choice[1], score.reason)
