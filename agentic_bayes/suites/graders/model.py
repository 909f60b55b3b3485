"""Graders that ask a model: by a reference or a rubric, or by comparing two answers in both orders."""

from __future__ import annotations

import functools
import importlib.resources
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from string import Template
from typing import Annotated, Any

from pydantic import BeforeValidator, StrictBool

from agentic_bayes.errors import ReplyError
from agentic_bayes.evidence.llm.asking import Asker, Question, reply_text, structured_objects, to_langchain
from agentic_bayes.evidence.llm.judge import LLMJudge
from agentic_bayes.evidence.llm.prompt import Messages, Prompt, digest, fenced
from agentic_bayes.evidence.llm.reply import objects_in, read_objects, read_text
from agentic_bayes.evidence.score import Grade, Score, Unscored
from agentic_bayes.records.base import Record, Text, short
from agentic_bayes.records.model import Conversation
from agentic_bayes.suites.declaration import Seconds
from agentic_bayes.suites.graders.rules import GraderContext, ScoreThreshold, expected_text, graded, needs_text
from agentic_bayes.suites.trial import AgentReply, SuiteTask, TrialAttempt
from agentic_bayes.suites.trial_records import as_conversation, readable

__all__ = ["ModelGrader", "ModelGraderSettings", "PairwiseGrader", "PairwiseSettings"]

_ORDERS = {"first": 1.0, "tie": 0.5, "second": 0.0}
_WORDS = {1.0: "win", 0.5: "tie", 0.0: "loss"}
_QUOTED = 2000
_ASKING = (
    "use_structured_output",
    "structured_method",
    "attempts",
    "backoff",
    "timeout",
    "price",
    "model_arguments",
    "sleep",
)
# rounding must not turn a score at the bar into one below it
_ROUNDING = 1e-9


def _given_text(value: Any) -> Any:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("must be text that is not blank")
    return value


NotBlank = Annotated[Text, BeforeValidator(_given_text)]


class _Asking(Record):
    """How a model is asked; the values are checked by `Asker`."""

    model: Any  # "provider:model", such as "openai:gpt-4o-mini"; from Python also a LangChain chat model
    threshold: ScoreThreshold | None = None  # from which score on the grader passes; left out, ``pass_threshold``
    use_structured_output: Any = True  # as for `LLMJudge`
    structured_method: Any = "auto"
    attempts: Any = 4
    backoff: Any = 1.0
    timeout: Seconds | None = 300.0  # seconds, or text such as "90s", after which a call has failed
    price: Any = None
    model_arguments: Any = None
    sleep: Any = None

    @property
    def asking(self) -> dict[str, Any]:
        """Arguments of `Asker` and `LLMJudge`, beside the model."""
        return {name: getattr(self, name) for name in _ASKING}


class ModelGraderSettings(_Asking):
    """How an answer is judged by a model."""

    # What the score means. Needed where a task has no ``expected.text``; with one it replaces the built-in rubric.
    rubric: NotBlank | None = None
    choices: Any = None  # label → score: the only scores that may be given
    context: StrictBool = False  # whether the model is shown what the agent was told (the task's ``system``)


class PairwiseSettings(_Asking):
    """How an answer is compared with another one."""

    criteria: NotBlank | None = None  # what makes an answer better
    reference: NotBlank | None = None  # the other answer; left out, the task's ``expected.text``


@dataclass(frozen=True)
class ModelGrader:
    """Grades by a model: against ``expected.text`` where a task has one, else by the rubric alone.

    Notes
    -----
    The last answer is judged; where a task has several messages, the model is shown what was said before. A model that
    fails, or whose replies cannot be read, gives `Unscored`.
    """

    settings: ModelGraderSettings  # the model and what it is told
    place: GraderContext  # where
    _judges: dict[tuple[bool, bool], Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._judge(reference=True, context=self.settings.context)  # check first: a wrong setting raises here

    def check(self, task: SuiteTask) -> str | None:
        """What keeps a task from being graded."""
        text = task.expected.get("text")
        if text is not None:
            return needs_text(task) or (None if str(text).strip() else "expected.text must not be blank")
        return None if self.settings.rubric else "rubric must be given where a task has no expected.text"

    def ready(self) -> None:
        """Make the model; raises where it cannot be made."""
        Asker(self.settings.model, **self.settings.asking).ready()

    async def grade(self, attempt: TrialAttempt, reply: AgentReply) -> Grade:
        """What the model says of a trial."""
        told = as_conversation(attempt, reply)
        last = len(told.conversation) - 1
        background = _background(told, system=self.settings.context)
        judge = self._judge(reference=expected_text(attempt.task) is not None, context=bool(background))
        grade = await judge.grade(told.model_copy(update={"context": background}), last)
        return _held(grade, self.settings.threshold, self.place)

    def _judge(self, *, reference: bool, context: bool) -> Any:
        key = (reference, context)
        if key not in self._judges:
            settings = self.settings
            if reference:
                more = {"rubric": settings.rubric, "choices": settings.choices, "context": context}
                self._judges[key] = LLMJudge(settings.model, **more, **settings.asking)
            else:
                prompt = Prompt(rubric=settings.rubric, choices=settings.choices)
                self._judges[key] = _RubricJudge(Asker(settings.model, **settings.asking), prompt)
        return self._judges[key]


class _RubricJudge:
    """Scores an answer by a rubric, without a reference; the reply is that of `LLMJudge`."""

    def __init__(self, asker: Asker, prompt: Prompt) -> None:
        self._asker, self._prompt = asker, prompt
        rubric = (prompt.rubric or "").strip()
        system = Template(_text("rubric_system")).substitute(rubric=rubric, number=prompt.allowed)
        if prompt.choices is not None:
            lines = "\n".join(f"- {score:g}: {label}" for label, score in prompt.choices.items())
            system = f"{system.rstrip()}\n\n{Template(_text('rubric_choices')).substitute(choices=lines)}"
        self._opening: Messages = [("system", system)]
        # the correction is the one of the prompt
        self._digest = digest([self._opening, _text("rubric_material"), prompt.digest])

    async def grade(self, conversation: Conversation, position: int) -> Grade:
        """Judge one answer."""
        self._asker.ready()
        turn = conversation.conversation[position]
        material = {"query": turn.query, "answer": turn.assistant or ""}
        if conversation.context:
            material = {"context": conversation.context, **material}
        read = partial(self._read, list(material.values()))
        question = Question(self._prompt.schema, self._digest, read, self._prompt.correction)
        return await self._asker.ask(question, to_langchain(self._opening), fenced(material, _text("rubric_material")))

    def _read(self, judged: Sequence[str], reply: Any, structured: bool) -> Score:
        objects = structured_objects(reply, structured=structured)
        score = read_text(reply_text(reply), judged) if objects is None else read_objects(objects, judged)
        if self._prompt.choices is None:
            return score
        choice = self._prompt.choice(score.value)
        if choice is None:
            raise ReplyError(f"correctness_score must be {self._prompt.allowed}, got {score.value:g}")
        return Score(choice[1], score.reason)


@dataclass(frozen=True)
class PairwiseGrader:
    """Compares the answer with another one, in both orders: 1 for a win, .5 for a tie, 0 for a loss, and their mean.

    Notes
    -----
    Models prefer a place. What they say of both orders is one score, and a verdict that went with the place is noted in
    its reason. Both answers are nameless. If one of the orders gives no verdict, there is none.
    """

    settings: PairwiseSettings  # the model and what it is told
    place: GraderContext  # where
    _asker: Asker = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_asker", Asker(self.settings.model, **self.settings.asking))

    def check(self, task: SuiteTask) -> str | None:
        """What keeps a task from being graded."""
        if self.settings.reference is not None:
            return None
        if task.expected.get("text") is None:
            return "reference must be given, or the task's expected.text: it is what the answer is compared with"
        return needs_text(task) or (None if str(task.expected["text"]).strip() else "expected.text must not be blank")

    def ready(self) -> None:
        """Make the model; raises where it cannot be made."""
        self._asker.ready()

    async def grade(self, attempt: TrialAttempt, reply: AgentReply) -> Grade:
        """What the model says of a trial."""
        other = readable(self.settings.reference or expected_text(attempt.task) or "")
        answer = readable(reply.text)
        if answer == other:
            return self._graded([0.5, 0.5], "The answers are the same text.")
        told = as_conversation(attempt, reply)
        background = _background(told, system=False)
        shown = {"query": told.conversation[-1].query}
        shown = {"context": background, **shown} if background else shown
        self._asker.ready()
        results, reasons = [], []
        for swapped in (False, True):
            first, second = (other, answer) if swapped else (answer, other)
            grade = await self._ask({**shown, "first answer": first, "second answer": second})
            if isinstance(grade, Unscored):
                return Unscored(f"{'second' if swapped else 'first'} order: {grade.reason}")
            results.append(1 - grade.value if swapped else grade.value)
            reasons.append(grade.reason)
        same = results[0] == results[1]
        said = f"{_WORDS[results[0]]} in both orders" if same else f"the orders disagree ({_words(results)})"
        return self._graded(results, f"{said}: {' / '.join(dict.fromkeys(reasons))}")

    def _graded(self, results: Sequence[float], reason: str) -> Grade:
        return _held(Score(sum(results) / 2, reason), self.settings.threshold, self.place)

    async def _ask(self, material: Mapping[str, str]) -> Grade:
        criteria = (self.settings.criteria or _text("pairwise_criteria")).strip()
        opening: Messages = [("system", Template(_text("pairwise_system")).substitute(criteria=criteria))]
        content = digest([opening, _text("pairwise_material"), _text("pairwise_correction")])
        question = Question(_PAIR_SCHEMA, content, partial(_read_pair, list(material.values())), _pair_correction)
        return await self._asker.ask(question, to_langchain(opening), fenced(material, _text("pairwise_material")))


_PAIR_SCHEMA: Mapping[str, Any] = {
    "title": "comparison",
    "description": "Which of two answers is better.",
    "type": "object",
    "properties": {
        "reasoning": {"type": "string", "description": "What decides."},
        "better": {"type": "string", "enum": list(_ORDERS), "description": "Which answer is better, or a tie."},
    },
    "required": ["reasoning", "better"],
    "additionalProperties": False,
}


def _read_pair(judged: Sequence[str], reply: Any, structured: bool) -> Score:
    """The one verdict in a reply on two answers; what is quoted from them is none."""
    objects = structured_objects(reply, structured=structured)
    if objects is None:
        objects = [value for _, value in objects_in(reply_text(reply))]
    quoted = [value for material in judged for _, value in objects_in(material, is_reply=False)]
    found = [value for value in objects if isinstance(value, Mapping) and "better" in value and value not in quoted]
    if not found:
        raise ReplyError(f"expected one JSON object with 'reasoning' and 'better': {short(reply_text(reply), 120)}")
    for value in found:
        if value["better"] not in list(_ORDERS):
            raise ReplyError(f"better must be first, second or tie, got {short(value['better'])}")
        if not isinstance(value.get("reasoning"), str):
            raise ReplyError(f"reasoning must be text, got {short(value.get('reasoning'))}")
    if len({value["better"] for value in found}) > 1:
        raise ReplyError(f"expected one verdict, got {', '.join(value['better'] for value in found)}")
    return Score(_ORDERS[found[-1]["better"]], found[-1]["reasoning"])


def _pair_correction(reply: str, problem: ReplyError) -> Messages:
    """The reply that could not be read, shortened, and what was wrong with it."""
    request = Template(_text("pairwise_correction")).substitute(problem=problem).strip()
    return [("ai", reply.strip()[:_QUOTED] or "(no text)"), ("human", request)]


def _background(conversation: Conversation, *, system: bool) -> str:
    """What was said before the last message, and what the agent was told if that is to be shown."""
    parts = [f"The agent was told: {conversation.context}"] if system and conversation.context else []
    for turn in conversation.conversation[:-1]:
        parts += [f"User: {turn.query}", f"Agent: {turn.assistant}"]
    return "\n\n".join(parts)


def _held(grade: Grade, threshold: float | None, place: GraderContext) -> Grade:
    """The grade with whether it reaches the bar."""
    if isinstance(grade, Unscored):
        return grade
    bar = place.pass_threshold if threshold is None else threshold
    return graded(grade.value, grade.value >= bar - _ROUNDING, grade.reason)


def _words(results: Sequence[float]) -> str:
    return ", ".join(f"{_WORDS[value]} when {place}" for value, place in zip(results, ("first", "second"), strict=True))


@functools.cache
def _text(name: str) -> str:
    return importlib.resources.files(__package__).joinpath("prompts", f"{name}.txt").read_text(encoding="utf-8")
