"""The base of metrics that ask a model in stages: each stage is one prompt and one typed reply."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from string import Template
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from agentic_bayes.checks import check_count, check_probability
from agentic_bayes.errors import ReplyError
from agentic_bayes.evidence.llm.asking import Asker, ModelQuestion, reply_text, structured_objects, to_langchain
from agentic_bayes.evidence.llm.calls import TokenPrice
from agentic_bayes.evidence.llm.models import StructuredMethod
from agentic_bayes.evidence.llm.prompt import PromptMessages, corrected, digest, fenced, prompt_text
from agentic_bayes.evidence.llm.reply import objects_in
from agentic_bayes.evidence.metrics.trace import LEAST_BUDGET, TraceRecord, trace_record
from agentic_bayes.evidence.score import Grade, Score, Unscored
from agentic_bayes.records.base import field_path, short
from agentic_bayes.records.model import Conversation

if TYPE_CHECKING:
    from agentic_bayes.evidence.llm.judge import ChatModel

_text = functools.partial(prompt_text, __package__)
# not every provider accepts these: the instructions say them in words, and the reply is checked when read
_NOT_FOR_PROVIDERS = ("title", "minimum", "maximum", "default")


class StageReply(BaseModel):
    """The base of typed replies; further keys are ignored."""

    # whether it decides something, so that one quoted from the record must not be taken for the model's own
    is_verdict: ClassVar[bool] = False

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


R = TypeVar("R", bound=StageReply)


class Stage:
    """One call: its prompt (the name of a file of instructions) and the type of the reply it asks for."""

    def __init__(self, prompt: str, reply: type[StageReply]) -> None:
        self.prompt, self.reply = prompt, reply
        self.keys = tuple(reply.model_fields)
        system = Template(_text("frame")).substitute(task=_text(prompt).strip(), keys=", ".join(self.keys))
        self.opening: PromptMessages = [("system", system)]
        self.schema = _schema(reply, prompt)
        self.digest = digest([self.opening, _text("interaction"), _text("correction"), self.schema])

    def correction(self, reply: str, problem: ReplyError) -> PromptMessages:
        """The reply that could not be read, shortened, and what was wrong with it."""
        return corrected(reply, _text("correction"), problem=problem, keys=", ".join(self.keys))

    def read(self, judged: Sequence[str], check: Callable[[Any], str | None], reply: Any, structured: bool) -> Score:
        """The one valid object in a reply, as the details of a score; a `ReplyError` unless there is exactly one."""
        objects = structured_objects(reply, structured=structured)
        if objects is None:
            text = reply_text(reply)
            objects = [
                value for _, value in objects_in(text) if isinstance(value, dict) and set(self.keys) & set(value)
            ]
            if not objects:
                raise ReplyError(f"expected one JSON object with {', '.join(self.keys)}: {short(text, 120)}")
        quoted = set(self._quoted(judged)) if self.reply.is_verdict else set()
        valid: dict[str, StageReply] = {}
        problem = ""
        for value in objects:
            try:
                candidate = self.reply.model_validate(value)
                text = candidate.model_dump_json()
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                raise ReplyError(f"{field_path(first['loc'])}: {first['msg']}, got {short(first['input'])}") from None
            if text in quoted:
                problem = "the only object is a quotation of the record"
            elif wrong := check(candidate):
                raise ReplyError(wrong)
            else:
                # two that decide the same are one, whatever their reasons
                valid[candidate.model_dump_json(exclude={"reason"} if self.reply.is_verdict else set())] = candidate
        if len(valid) != 1:
            raise ReplyError(f"expected one object, got {len(valid)} that differ" if valid else problem)
        (only,) = valid.values()
        return Score(1.0, "", {"reply": only.model_dump(mode="json")})

    def _quoted(self, judged: Sequence[str]) -> Iterator[str]:
        """Replies quoted in the texts under judgement."""
        for part in judged:
            for _, value in objects_in(part, is_reply=False):
                with contextlib.suppress(ValidationError, ValueError):
                    yield self.reply.model_validate(value).model_dump_json()


class StageFailed(Exception):
    """A stage got no reply that could be read; this ends the metric."""


class StagedMetric:
    """A metric of an interaction that asks a model in a few stages.

    Notes
    -----
    `threshold` is the minimum score for a success; `budget` the number of characters of the record that the model is
    shown (longer records are cut, with a mark where). The other arguments are those of `LLMJudge`. Calls are stored,
    retried, spaced and priced as a judge's calls are. A stage that fails makes the interaction `Unscored`, with the
    stage and its last reason; it is never a zero.
    """

    name: ClassVar[str]
    stages: ClassVar[Mapping[str, Stage]]
    needs: ClassVar[tuple[str, ...]] = ()  # what a record must have for the score to mean much

    def __init__(
        self,
        model: ChatModel | str,
        *,
        threshold: float = 0.5,
        budget: int = 24_000,
        use_structured_output: bool = True,
        structured_method: StructuredMethod = "auto",
        attempts: int = 4,
        backoff: float = 1.0,
        timeout: float | None = 300.0,
        price: TokenPrice | None = None,
        model_arguments: Mapping[str, Any] | None = None,
        sleep: Callable[[float], Awaitable[None]] | None = None,
    ) -> None:
        self.threshold = check_probability(threshold, "threshold")
        self.budget = check_count(budget, "budget", least=LEAST_BUDGET)
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
        self.price = self._asker.price

    @property
    def identity(self) -> str:
        """Name, version, model with parameters, prompts and budget: whatever changes the scores."""
        prompts = digest([stage.digest for stage in self.stages.values()])[:12]
        budget = f" budget={self.budget}" if self.budget != 24_000 else ""
        return f"{self.name}/1 model={self._asker.description} prompts={prompts}{budget}"

    async def grade(self, conversation: Conversation, position: int) -> Grade:
        """Grade one interaction; the details hold ``threshold``, ``success`` and what the stages found."""
        self._asker.ready()
        record = trace_record(conversation, position, budget=self.budget)
        try:
            value, reason, details = await self.evaluate(record)
        except StageFailed as failed:
            return Unscored(str(failed))
        if lacking := [what for what in self.needs if what in record.lacks]:
            caveat = f"; the record has no {' and no '.join(lacking)}, so this rests on the calls and the answer"
            reason += caveat
            details |= {"note": details["note"] + caveat} if "note" in details else {}
        details |= {"record_cut": True} if record.cut else {}
        return Score(value, reason, {**details, "threshold": self.threshold, "success": value >= self.threshold})

    async def evaluate(self, record: TraceRecord) -> tuple[float, str, dict[str, Any]]:
        """Score, reason and details of one record."""
        raise NotImplementedError

    async def ask(
        self,
        stage: str,
        kind: type[R],
        material: Mapping[str, str],
        record: TraceRecord,
        *,
        check: Callable[[R], str | None] = lambda _: None,
    ) -> R:
        """The reply of one stage; raises `StageFailed` if the model gives none after all attempts.

        The `material` (name → text) is shown between marks. A verdict that is quoted from it, or from the record, is
        not the model's own. `check` says what is wrong with a reply of the right types, or None; the model is told,
        and asked again.
        """
        asked = self.stages[stage]
        read = functools.partial(asked.read, [*material.values(), *record.texts], check)
        question = ModelQuestion(asked.schema, asked.digest, read, asked.correction)
        opening = to_langchain(asked.opening)
        grade = await self._asker.ask(question, opening, fenced(material, _text("interaction")))
        if isinstance(grade, Unscored):
            raise StageFailed(f"{stage}: {grade.reason}")
        reply = kind.model_validate(grade.details["reply"])
        if wrong := check(reply):  # a stored reply from before it was checked
            raise StageFailed(f"{stage}: {wrong}")
        return reply


def _schema(reply: type[StageReply], name: str) -> dict[str, Any]:
    """The JSON schema of a reply, in the strict form that providers ask for, and without references."""
    schema = reply.model_json_schema()
    definitions = schema.pop("$defs", {})

    def strict(part: Any) -> Any:
        if isinstance(part, list):
            return [strict(item) for item in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            return strict(definitions[part["$ref"].rsplit("/", 1)[1]])
        kept = {key: strict(value) for key, value in part.items() if key not in (*_NOT_FOR_PROVIDERS, "properties")}
        if "properties" in part:
            kept["properties"] = {key: strict(value) for key, value in part["properties"].items()}
            kept |= {"required": list(part["properties"]), "additionalProperties": False}
        return kept

    return {"title": name, **strict(schema), "description": f"The reply to the stage {name}."}
