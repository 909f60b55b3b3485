"""What the agent did: conversations, interactions and tool calls, as frozen typed records.

The JSON form is the record format of Gaussia and Fair-Forge; `task_id`, `trial`, `error`, `metadata` and
`recorded_score` are optional additions.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Self

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, model_validator

from agentic_bayes.errors import did_you_mean

__all__ = ["Batch", "Conversation", "Dataset", "ExpectedTools", "Interaction", "ToolCall", "ToolUse"]


def _identifier(value: object) -> object:
    """Ids are text; whole numbers, which many logs use as ids, become their digits."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and not value.strip():
        raise ValueError("must not be blank")
    return value


def _number(value: object) -> object:
    """Numbers are JSON numbers: no booleans, no digits in quotes."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise ValueError(f"must be a number, got {value!r}")
    return value


def _index(value: object) -> object:
    """Whole numbers only: 1 and 1.0, but no boolean, no 1.5, no "1"."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise ValueError(f"must be a whole number, got {value!r}")
    return value


def _arguments(value: object) -> object:
    """Arguments as a dict; a JSON string is parsed, and None and blank text are "no arguments"."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return {}
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise ValueError(f"must be an object or the JSON text of one: {error}") from None
        if value is None:
            return {}
    if not isinstance(value, dict):
        raise ValueError(f"must be an object (argument name → value), got {type(value).__name__}")
    return value


Identifier = Annotated[str, BeforeValidator(_identifier), Field(strict=True)]
Probability = Annotated[float, BeforeValidator(_number), Field(ge=0, le=1, allow_inf_nan=False)]
Index = Annotated[int, BeforeValidator(_index)]


class Record(BaseModel):
    """Base of the records: frozen, and an unknown key is refused with the nearest valid one."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=False)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: object) -> object:
        if not isinstance(data, dict):
            return data
        known: list[str] = []
        for name, field in cls.model_fields.items():
            known.append(name)
            if isinstance(field.validation_alias, AliasChoices):
                known += [str(alias) for alias in field.validation_alias.choices if alias != name]
        unknown = [key for key in data if key not in known]
        if unknown:
            raise ValueError("; ".join(f"unknown key {key!r}: {did_you_mean(str(key), known)}" for key in unknown))
        for name, field in cls.model_fields.items():
            if isinstance(field.validation_alias, AliasChoices):
                given = [str(alias) for alias in field.validation_alias.choices if alias in data]
                if len(given) > 1:
                    raise ValueError(f"{' and '.join(map(repr, given))} are the same field: give {name!r} only")
        return data


class ToolCall(Record):
    """One call of a tool, made or expected.

    Attributes
    ----------
    tool_name : str
        Name of the tool (also read from ``name``).
    parameters : dict
        Argument name → value (also read from ``arguments``). A JSON string is parsed; ``None``, ``""`` and
        ``{}`` are all "no arguments".
    result : Any
        What the tool returned; `has_result` tells "nothing recorded" from a recorded ``None``.
    step : int or None
        Position among the calls. It sorts the calls and is never compared for equality.
    """

    tool_name: Annotated[Identifier, Field(validation_alias=AliasChoices("tool_name", "name"))]
    parameters: Annotated[
        dict[str, Any],
        BeforeValidator(_arguments),
        Field(validation_alias=AliasChoices("parameters", "arguments")),
    ] = {}
    result: Any = None
    step: Index | None = None

    @property
    def has_result(self) -> bool:
        """Whether a result was recorded, be it ``None``."""
        return "result" in self.model_fields_set


class ToolUse(Record):
    """The tool calls of one interaction. An empty list says that no call was made.

    Attributes
    ----------
    tools_used : tuple of ToolCall
        The calls, in the order in which they were made.
    final_answer_uses_tools : bool or None
        Whether the answer uses the results; None where nobody recorded it.
    """

    tools_used: tuple[ToolCall, ...]
    final_answer_uses_tools: StrictBool | None = None


class ExpectedTools(Record):
    """The tool calls that an interaction should make. An empty list says that none should be made.

    Attributes
    ----------
    expected_tools : tuple of ToolCall
        The expected calls, in order.
    tool_sequence_matters : bool
        Whether their order counts; it does unless said otherwise.
    """

    expected_tools: tuple[ToolCall, ...]
    tool_sequence_matters: StrictBool = True


class Interaction(Record):
    """One turn: a query, the agent's answer, and what is known about the right one.

    Attributes
    ----------
    qa_id : str
        Id of the question; equal ids are the same question.
    query : str
        What the user said.
    assistant : str or None
        What the agent answered; None only where the agent crashed (`error` here or on the conversation).
    ground_truth_assistant : str or None
        The reference answer.
    agentic : ToolUse or None
        The calls made; None where they were not recorded.
    ground_truth_agentic : ExpectedTools or None
        The calls expected; None where nothing is expected, so that no tool verdict is given.
    observation : str or None
        A free note.
    logprobs : Any
        Kept as it came.
    weight : float or None
        Kept and not used.
    recorded_score : float or None
        A score in [0, 1] from elsewhere.
    error : str or None
        Why the agent gave no answer here.
    metadata : dict
        Anything else.
    """

    qa_id: Identifier
    query: Annotated[str, Field(strict=True)]
    assistant: Annotated[str, Field(strict=True)] | None
    ground_truth_assistant: Annotated[str, Field(strict=True)] | None = None
    agentic: ToolUse | None = None
    ground_truth_agentic: ExpectedTools | None = None
    observation: Annotated[str, Field(strict=True)] | None = None
    logprobs: Any = None
    weight: Annotated[float, BeforeValidator(_number)] | None = None
    recorded_score: Probability | None = None
    error: Annotated[Identifier, Field()] | None = None
    metadata: dict[str, Any] = {}


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
        What the agent was told.
    chatbot_role : str or None
        The agent's role.
    conversation : tuple of Interaction
        The turns, at least one.
    task_id : str or None
        Which task was attempted; without it, the task is the ordered ``qa_id`` values.
    trial : int or None
        Which attempt this is (≥ 0); without it, attempts are numbered by ``session_id`` within the task.
    error : str or None
        Why the agent stopped. It belongs to the turns without an answer or, if all have one, to the last turn.
    recorded_score : float or None
        A score in [0, 1] for the whole conversation from elsewhere.
    metadata : dict
        Anything else.
    """

    session_id: Identifier
    assistant_id: Identifier
    language: Annotated[str, Field(strict=True)] = "english"
    context: Annotated[str, Field(strict=True)] | None = ""
    chatbot_role: Annotated[str, Field(strict=True)] | None = None
    conversation: tuple[Interaction, ...]
    task_id: Identifier | None = None
    trial: Annotated[Index, Field(ge=0)] | None = None
    error: Annotated[Identifier, Field()] | None = None
    recorded_score: Probability | None = None
    metadata: dict[str, Any] = {}

    @model_validator(mode="after")
    def _answered_or_crashed(self) -> Self:
        if not self.conversation:
            raise ValueError(
                "conversation must have at least one interaction, got none "
                "(an agent that crashed at once: give the first query with assistant null, and `error`)"
            )
        if self.error is None:
            for position, turn in enumerate(self.conversation):
                if turn.assistant is None and turn.error is None:
                    raise ValueError(
                        f"conversation[{position}].assistant must be text, got null "
                        "(null is allowed only where `error` says why the agent gave no answer)"
                    )
        return self

    @property
    def qa_ids(self) -> tuple[str, ...]:
        """The ordered question ids."""
        return tuple(turn.qa_id for turn in self.conversation)

    def error_at(self, position: int) -> str | None:
        """Why the agent gave no usable answer at this turn, or None.

        Parameters
        ----------
        position : int
            Index of the interaction.

        Returns
        -------
        str or None
            The turn's own error; else the conversation's, at the turns without an answer or, if all have
            one, at the last turn.
        """
        turn = self.conversation[position]
        if turn.error is not None:
            return turn.error
        if self.error is None:
            return None
        placed = any(t.assistant is None or t.error is not None for t in self.conversation)
        hit = turn.assistant is None if placed else position == len(self.conversation) - 1
        return self.error if hit else None


# names used by code written for Gaussia and Fair-Forge
Dataset = Conversation
Batch = Interaction


