"""An LLM as judge of answers: independent calls, a fenced prompt, and no score where none could be read."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

from agentic_bayes.checks import check_choice, check_k
from agentic_bayes.errors import InvalidArgument, ReplyError
from agentic_bayes.evidence.llm.asking import Asked, Asker, Question, reply_text, structured_objects, to_langchain
from agentic_bayes.evidence.llm.calls import Price
from agentic_bayes.evidence.llm.models import StructuredMethod
from agentic_bayes.evidence.llm.prompt import Prompt, digest
from agentic_bayes.evidence.llm.reply import read_objects, read_text
from agentic_bayes.evidence.score import Grade, Score, Unscored
from agentic_bayes.records.base import short
from agentic_bayes.records.model import Conversation

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel as ChatModel

__all__ = ["ChatModel", "LLMJudge"]

Combine = Literal["median", "majority"]


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
        for argument, flag in (("context", context), ("chatbot_role", chatbot_role)):
            if not isinstance(flag, bool):
                raise InvalidArgument(f"{argument} must be True or False, got {flag!r}")
        if not isinstance(name, str) or not name.strip():
            raise InvalidArgument(f"name must be text that is not blank, got {short(name)}")
        self.name = name
        check_choice("combine", combine, get_args(Combine))
        check_k(n_judgements, "n_judgements")
        self._asker = Asker(
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
        self._prompt = Prompt(rubric, choices, examples)
        self._context, self._chatbot_role = context, chatbot_role
        self._n, self._combine = int(n_judgements), combine
        self._opening = to_langchain(self._prompt.opening)
        if not isinstance(model, str):
            self._asked()  # a method that the model does not support is refused at once

    @property
    def price(self) -> Price | None:
        """What a million tokens in and out cost."""
        return self._asker.price

    def _asked(self) -> Asked:
        self._asker.ready()
        return self._asker.asked(self._prompt.schema, self._prompt.digest)

    @property
    def identity(self) -> str:
        """Version, model with parameters, prompt and reply mode: whatever changes the scores."""
        asked = self._asked()
        prompt = digest([self._prompt.digest, self._context, self._chatbot_role])[:12]
        repeats = f" n={self._n} {self._combine}" if self._n > 1 else ""
        mode = asked.modes[asked.mode]
        return f"llm-judge/1 model={self._asker.description} prompt={prompt} {mode}{repeats}"

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
        self._asker.ready()
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
        text = self._prompt.question(material)
        question = Question(
            self._prompt.schema,
            self._prompt.digest,
            partial(self._read, list(material.values())),
            self._prompt.correction,
        )
        grades = [await self._asker.ask(question, self._opening, text, repeat=repeat) for repeat in range(self._n)]
        return self._combined(grades)

    def _read(self, judged: Sequence[str], reply: Any, structured: bool) -> Score:
        objects = structured_objects(reply, structured=structured)
        score = read_text(reply_text(reply), judged) if objects is None else read_objects(objects, judged)
        if self._prompt.choices is None:
            return score
        choice = self._prompt.choice(score.value)
        if choice is None:
            raise ReplyError(f"correctness_score must be {self._prompt.allowed}, got {score.value:g}")
        return Score(choice[1], score.reason)

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
