"""The data model: conversations, interactions and tool calls as frozen, typed records.

The JSON form is the record format of Gaussia and Fair-Forge; `task_id`, `trial`, `error`, `metadata` and
`recorded_score` are optional additions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, SerializeAsAny, StrictBool, model_validator
from pydantic_core import InitErrorDetails

from agentic_bayes.errors import InvalidArgument
from agentic_bayes.records.base import (
    Arguments,
    Id,
    Identifier,
    Json,
    Metadata,
    Number,
    Probability,
    Record,
    Text,
    TrialNumber,
    WholeNumber,
    field_of,
    problem_at,
    short,
)
from agentic_bayes.records.matchers import Matcher
from agentic_bayes.records.wire.thoughts import REASONING, split_thoughts

__all__ = [
    "Batch",
    "Conversation",
    "Dataset",
    "ExpectedCall",
    "ExpectedTools",
    "Interaction",
    "Retriever",
    "ToolCall",
    "ToolUse",
]


class ToolCall(Record):
    """One call of a tool, made or expected.

    Attributes
    ----------
    tool_name : str
        Name of the tool (also read from ``name``).
    parameters : dict
        Argument name → value (also read from ``arguments``). A JSON string is parsed; ``None``, ``""`` and
        ``{}`` all mean "no arguments".
    result : Any
        What the tool returned; `has_result` tells a recorded ``None`` from no recorded result.
    step : int or None
        Position among the calls. It only orders the calls; equality ignores it.
    """

    tool_name: Annotated[Identifier, Field(validation_alias=AliasChoices("tool_name", "name"))]
    parameters: Arguments = Field(default_factory=dict, validation_alias=AliasChoices("parameters", "arguments"))
    result: Json = None
    step: WholeNumber | None = None

    @property
    def has_result(self) -> bool:
        """Whether a result was recorded, even ``None``."""
        return "result" in self.model_fields_set


class ExpectedCall(ToolCall):
    """An expected call that says how its arguments are compared.

    Attributes
    ----------
    tool_name : str
        Name of the tool.
    parameters : dict
        Argument name → expected value.
    result : Any
        Kept and not used.
    step : int or None
        Position among the expected calls.
    matchers : dict
        Argument → `Matcher`, or what declares one: ``{"date": {"datetime": true}}``. A path like
        ``user.address.zip`` reaches into an argument; ``*`` matches any name or list position. An argument with
        ``regex`` or ``one_of`` is expected even if `parameters` has no value for it.
    """

    matchers: dict[Text, Matcher] = Field(default_factory=dict)


def _expected_call(value: Any) -> Any:
    """Build an `ExpectedCall` only if there are matchers; otherwise a plain `ToolCall`."""
    if isinstance(value, ToolCall):
        return value
    kind = ExpectedCall if isinstance(value, dict) and "matchers" in value else ToolCall
    return kind.model_validate(value)


_Expected = Annotated[SerializeAsAny[ToolCall], BeforeValidator(_expected_call)]


class ToolUse(Record):
    """The tool calls of one interaction. An empty list means that no call was made.

    Attributes
    ----------
    tools_used : tuple of ToolCall
        The calls, in the order they were made.
    final_answer_uses_tools : bool or None
        Whether the answer uses the results; None if it was not recorded.
    """

    tools_used: tuple[ToolCall, ...]
    final_answer_uses_tools: StrictBool | None = None


class ExpectedTools(Record):
    """The tool calls that an interaction should make. An empty list means that it should make none.

    Attributes
    ----------
    expected_tools : tuple of ToolCall
        The expected calls, in order; an `ExpectedCall` also says how its arguments are compared.
    tool_sequence_matters : bool
        Whether their order counts (default: it does).
    allowed_tools : tuple of str or None
        Tools that may be called in addition to the expected ones; None allows any tool.
    forbidden_tools : tuple of str
        Tools that may not be called.
    """

    expected_tools: tuple[_Expected, ...]
    tool_sequence_matters: StrictBool = True
    allowed_tools: tuple[Identifier, ...] | None = None
    forbidden_tools: tuple[Identifier, ...] = ()


class Interaction(Record):
    """One turn: a query, the agent's answer, and the expected answer and tool calls if known.

    Attributes
    ----------
    qa_id : str
        Id of the question; equal ids mean the same question.
    query : str
        What the user said.
    assistant : str or None
        What the agent answered; None only if the agent crashed (`error` is set here or on the conversation). Thoughts
        that a model wrote into its answer (``<think>…</think>`` in any spelling) are moved to
        ``metadata["reasoning"]``.
    ground_truth_assistant : str or None
        The reference answer.
    agentic : ToolUse or None
        The calls made; None if they were not recorded.
    ground_truth_agentic : ExpectedTools or None
        The calls expected; None if nothing is expected, in which case the turn gets no tool verdict.
    observation : str or None
        A free note.
    logprobs : Any
        Kept unchanged.
    weight : float or None
        Kept and not used.
    recorded_score : float or None
        A score in [0, 1] that was recorded with the turn.
    error : str or None
        Why the agent gave no answer in this turn.
    metadata : dict
        Anything else.
    """

    qa_id: Id
    query: Text
    assistant: Text | None = None
    ground_truth_assistant: Text | None = None
    agentic: ToolUse | None = None
    ground_truth_agentic: ExpectedTools | None = None
    observation: Text | None = None
    logprobs: Json = None
    weight: Number | None = None
    recorded_score: Probability | None = None
    error: Identifier | None = None
    metadata: Metadata = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _without_thoughts(cls, data: Any) -> Any:
        """Thoughts are not an answer."""
        answer = data.get("assistant") if isinstance(data, dict) else None
        said, thoughts = split_thoughts(answer) if isinstance(answer, str) else (answer, ())
        if said == answer:
            return data
        metadata = data.get("metadata") or {}
        if not thoughts or not isinstance(metadata, dict):
            return {**data, "assistant": said}
        known = metadata.get(REASONING) or []
        every = [*(known if isinstance(known, (list, tuple)) else [known]), *thoughts]
        return {**data, "assistant": said, "metadata": {**metadata, REASONING: every}}


def _some_turns(turns: tuple[Interaction, ...]) -> tuple[Interaction, ...]:
    if not turns:
        raise ValueError(
            "must hold at least one interaction "
            "(if the agent crashed at once, give the first query with assistant null, and `error`)"
        )
    return turns


class Conversation(Record):
    """One trial: one attempt of one task by one agent.

    Attributes
    ----------
    session_id : str
        Unique within an agent.
    assistant_id : str
        The agent (version) under evaluation.
    language : str
        Language of the conversation.
    context : str
        The agent's instructions.
    chatbot_role : str or None
        The agent's role.
    conversation : tuple of Interaction
        The turns, at least one.
    task_id : str or None
        Which task was attempted; without it, the task is the ordered ``qa_id`` values.
    trial : int or None
        Which attempt this is (≥ 0); without it, the attempts of a task are numbered by ``session_id``.
    error : str or None
        Why the agent stopped. It belongs to the turns without an answer or, if all have one, to the last
        turn.
    recorded_score : float or None
        A score in [0, 1] that was recorded for the whole conversation.
    metadata : dict
        Anything else.
    """

    session_id: Id
    assistant_id: Id
    language: Text = "english"
    context: Text | None = ""
    chatbot_role: Text | None = None
    conversation: Annotated[tuple[Interaction, ...], AfterValidator(_some_turns)]
    task_id: Id | None = None
    trial: TrialNumber | None = None
    error: Identifier | None = None
    recorded_score: Probability | None = None
    metadata: Metadata = Field(default_factory=dict)

    @classmethod
    def _across_fields(cls, data: Any) -> list[InitErrorDetails]:
        turns = field_of(data, "conversation")
        if field_of(data, "error") is not None or not isinstance(turns, (list, tuple)):
            return []
        return [
            problem_at(
                ("conversation", position, "assistant"),
                "must be text, got null (null is allowed only if `error` says why there is no answer)",
                None,
            )
            for position, turn in enumerate(turns)
            if field_of(turn, "assistant", default="") is None and field_of(turn, "error") is None
        ]

    @property
    def qa_ids(self) -> tuple[str, ...]:
        """The ordered question ids."""
        return tuple(turn.qa_id for turn in self.conversation)

    def error_at(self, position: int) -> str | None:
        """Why the agent gave no usable answer in this turn, or None if it did.

        Parameters
        ----------
        position : int
            Index of the interaction.

        Returns
        -------
        str or None
            The turn's own error. Otherwise the conversation's error, on turns without an answer or, if every turn
            has one, on the last turn.
        """
        turn = self.conversation[position]
        if turn.error is not None:
            return turn.error
        if self.error is None:
            return None
        placed = any(t.assistant is None or t.error is not None for t in self.conversation)
        hit = turn.assistant is None if placed else position == len(self.conversation) - 1
        return self.error if hit else None


class Retriever(ABC):
    """A source of conversations: subclass it and implement `load_dataset`.

    It has the shape of Gaussia's class, so retrievers written for Gaussia work here.
    """

    @abstractmethod
    def load_dataset(self) -> Iterable[Conversation]:
        """Return the conversations as a list or a generator."""


def check_conversations(value: object) -> None:
    """Refuse anything but an iterable of conversations."""
    if isinstance(value, (str, bytes, dict, Conversation)) or not isinstance(value, Iterable):
        raise InvalidArgument(
            f"conversations must be an iterable of Conversation (read_conversations() makes one), got {short(value)}"
        )


# names used by code written for Gaussia and Fair-Forge
Dataset = Conversation
Batch = Interaction
