"""Grade with a model: against a reference or a rubric, or by comparing two answers in both orders."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from string import Template
from typing import Annotated, Any

from pydantic import BeforeValidator, StrictBool

from agentic_bayes.errors import ReplyError
from agentic_bayes.evidence.llm.asking import Asker, ModelQuestion, reply_text, structured_objects, to_langchain
from agentic_bayes.evidence.llm.judge import LLMJudge, read_verdict
from agentic_bayes.evidence.llm.prompt import Prompt, PromptMessages, corrected, digest, fenced, prompt_text
from agentic_bayes.evidence.llm.reply import objects_in
from agentic_bayes.evidence.score import Grade, Score, Unscored
from agentic_bayes.records.base import Probability, Record, Text, short
from agentic_bayes.records.model import Conversation
from agentic_bayes.suites.declaration import Seconds
from agentic_bayes.suites.graders import rules
from agentic_bayes.suites.trial import AgentReply, SuiteTask, TrialAttempt

_ORDERS = {"first": 1.0, "tie": 0.5, "second": 0.0}
_WORDS = {1.0: "win", 0.5: "tie", 0.0: "loss"}
_text = functools.partial(prompt_text, __package__)


def _not_blank(value: Any) -> Any:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("must be text that is not blank")
    return value


NotBlank = Annotated[Text, BeforeValidator(_not_blank)]


class _AskingSettings(Record):
    """How a model is asked; `Asker` checks the values."""

    model: Any  # "provider:model", for example "openai:gpt-4o-mini"; from Python also a LangChain chat model
    threshold: Probability | None = None  # minimum score to pass; default: the suite's ``pass_threshold``
    use_structured_output: Any = True  # this and the following as for `LLMJudge`
    structured_method: Any = "auto"
    attempts: Any = 4
    backoff: Any = 1.0
    timeout: Seconds | None = 300.0  # seconds, or text like "90s", after which a call fails
    price: Any = None
    model_arguments: Any = None
    sleep: Any = None

    @property
    def asking(self) -> dict[str, Any]:
        """Arguments of `Asker` and `LLMJudge`, except the model."""
        names = _AskingSettings.model_fields.keys() - {"model", "threshold"}
        return {name: getattr(self, name) for name in names}


class ModelGraderSettings(_AskingSettings):
    """How a model judges an answer."""

    # What the score means. Needed if a task has no ``expected.text``; otherwise it replaces the built-in rubric.
    rubric: NotBlank | None = None
    choices: Any = None  # label → score: the only scores that are allowed
    context: StrictBool = False  # whether to show the model the agent's instructions (the task's ``system``)


class PairwiseSettings(_AskingSettings):
    """How a model compares an answer with another one."""

    criteria: NotBlank | None = None  # what makes an answer better
    reference: NotBlank | None = None  # the other answer; default: the task's ``expected.text``


@dataclass(frozen=True)
class ModelGrader:
    """Grades the last answer, with the dialogue before it: against ``expected.text`` if a task has one, or a rubric."""

    settings: ModelGraderSettings
    context: rules.GraderContext
    _judges: dict[tuple[bool, bool], Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._judge(reference=True, context=self.settings.context)  # check first: a wrong setting raises here

    def check(self, task: SuiteTask) -> str | None:
        """Require a rubric or ``expected.text``."""
        if task.expected.get("text") is not None:
            return rules.needs_text(task, allow_blank=False)
        return None if self.settings.rubric else "rubric must be given if a task has no expected.text"

    def ready(self) -> None:
        """Make the model; raises if that fails."""
        Asker(self.settings.model, **self.settings.asking).ready()

    async def grade(self, attempt: TrialAttempt, reply: AgentReply) -> Grade:
        """Ask the model to judge a trial."""
        conversation = rules.as_conversation(attempt, reply)
        last = len(conversation.conversation) - 1
        background = _background(conversation, system=self.settings.context)
        judge = self._judge(reference=rules.expected_text(attempt.task) is not None, context=bool(background))
        grade = await judge.grade(conversation.model_copy(update={"context": background}), last)
        return rules.graded_at(grade, self.context.threshold(self.settings.threshold))

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
    """Scores an answer by a rubric, without a reference; the model replies as to `LLMJudge`."""

    def __init__(self, asker: Asker, prompt: Prompt) -> None:
        self._asker, self._prompt = asker, prompt
        rubric = (prompt.rubric or "").strip()
        system = Template(_text("rubric_system")).substitute(rubric=rubric, number=prompt.allowed)
        if prompt.choices is not None:
            lines = "\n".join(f"- {score:g}: {label}" for label, score in prompt.choices.items())
            system = f"{system.rstrip()}\n\n{Template(_text('rubric_choices')).substitute(choices=lines)}"
        self._opening: PromptMessages = [("system", system)]
        # a correction asks again as the prompt does
        self._digest = digest([self._opening, _text("rubric_material"), prompt.digest])

    async def grade(self, conversation: Conversation, position: int) -> Grade:
        """Judge one answer."""
        self._asker.ready()
        turn = conversation.conversation[position]
        material = {"query": turn.query, "answer": turn.assistant or ""}
        if conversation.context:
            material = {"context": conversation.context, **material}
        read = partial(read_verdict, self._prompt, list(material.values()))
        question = ModelQuestion(self._prompt.schema, self._digest, read, self._prompt.correction)
        return await self._asker.ask(question, to_langchain(self._opening), fenced(material, _text("rubric_material")))


@dataclass(frozen=True)
class PairwiseGrader:
    """Compares the answer with another one: the mean of 1 for a win, .5 for a tie, 0 for a loss in each order.

    Models tend to prefer the first or the second answer, whichever it is; if one order has no verdict, there is none.
    """

    settings: PairwiseSettings
    context: rules.GraderContext
    _asker: Asker = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_asker", Asker(self.settings.model, **self.settings.asking))

    def check(self, task: SuiteTask) -> str | None:
        """Require a reference or ``expected.text``."""
        if self.settings.reference is not None:
            return None
        if task.expected.get("text") is None:
            return "reference must be given, or the task's expected.text: the answer is compared with it"
        return rules.needs_text(task, allow_blank=False)

    def ready(self) -> None:
        """Make the model; raises if that fails."""
        self._asker.ready()

    async def grade(self, attempt: TrialAttempt, reply: AgentReply) -> Grade:
        """Ask the model to compare the answers, once in each order."""
        other = rules.readable(self.settings.reference or rules.expected_text(attempt.task) or "")
        answer = rules.readable(reply.text)
        if answer == other:
            return self._graded([0.5, 0.5], "The answers are the same text.")
        conversation = rules.as_conversation(attempt, reply)
        background = _background(conversation, system=False)
        shown = {"context": background} if background else {}
        shown["query"] = conversation.conversation[-1].query
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
        words = [_WORDS[result] for result in results]
        each = f"{words[0]} when first, {words[1]} when second"
        verdict = f"{words[0]} in both orders" if same else f"the orders disagree ({each})"
        return self._graded(results, f"{verdict}: {' / '.join(dict.fromkeys(reasons))}")

    def _graded(self, results: Sequence[float], reason: str) -> Grade:
        return rules.graded_at(Score(sum(results) / 2, reason), self.context.threshold(self.settings.threshold))

    async def _ask(self, material: Mapping[str, str]) -> Grade:
        criteria = (self.settings.criteria or _text("pairwise_criteria")).strip()
        opening: PromptMessages = [("system", Template(_text("pairwise_system")).substitute(criteria=criteria))]
        content = digest([opening, _text("pairwise_material"), _text("pairwise_correction")])
        question = ModelQuestion(_PAIR_SCHEMA, content, partial(_read_pair, list(material.values())), _pair_correction)
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
    """Read the verdict from a reply; objects quoted from the two answers do not count."""
    objects = structured_objects(reply, structured=structured)
    if objects is None:
        objects = [value for _, value in objects_in(reply_text(reply))]
    quoted = [value for material in judged for _, value in objects_in(material, is_reply=False)]
    verdicts = [value for value in objects if isinstance(value, Mapping) and "better" in value and value not in quoted]
    if not verdicts:
        raise ReplyError(f"expected one JSON object with 'reasoning' and 'better': {short(reply_text(reply), 120)}")
    for value in verdicts:
        if value["better"] not in list(_ORDERS):
            raise ReplyError(f"better must be first, second or tie, got {short(value['better'])}")
        if not isinstance(value.get("reasoning"), str):
            raise ReplyError(f"reasoning must be text, got {short(value.get('reasoning'))}")
    if len({value["better"] for value in verdicts}) > 1:
        raise ReplyError(f"expected one verdict, got {', '.join(value['better'] for value in verdicts)}")
    return Score(_ORDERS[verdicts[-1]["better"]], verdicts[-1]["reasoning"])


def _pair_correction(reply: str, problem: ReplyError) -> PromptMessages:
    """Quote the reply that could not be read, shortened, and say what is wrong with it."""
    return corrected(reply, _text("pairwise_correction"), problem=problem)


def _background(conversation: Conversation, *, system: bool) -> str:
    """The dialogue before the last message and, with `system`, the agent's instructions."""
    parts = [f"The agent was told: {conversation.context}"] if system and conversation.context else []
    for turn in conversation.conversation[:-1]:
        parts += [f"User: {turn.query}", f"Agent: {turn.assistant}"]
    return "\n\n".join(parts)
