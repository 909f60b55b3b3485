"""Hypothesis strategies for whole records (every new record type gets one), and how many examples to draw."""

from __future__ import annotations

import os
import unicodedata
from functools import partial
from typing import Any

from hypothesis import strategies as st

from agentic_bayes.records.matchers import Matcher
from agentic_bayes.records.model import Conversation, ExpectedCall, ExpectedTools, Interaction, ToolCall, ToolUse

# what text can hold: everything but lone surrogates and NUL, which readers replace
text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
# readers bring ids into one Unicode form
identifiers = text.map(partial(unicodedata.normalize, "NFC")).filter(str.strip)
probabilities = st.floats(0, 1)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=5,
)
json_objects = st.dictionaries(text, json_values, max_size=3)


@st.composite
def records(draw: st.DrawFn, record: type[Any], required: dict[str, Any], optional: dict[str, Any]) -> Any:
    """A record with any of its optional fields, left out or set."""
    return record(**draw(st.fixed_dictionaries(required, optional=optional)))


tool_calls = records(
    ToolCall,
    {"tool_name": identifiers},
    {"parameters": json_objects, "result": json_values, "step": st.none() | st.integers(-5, 50)},
)
call_tuples = st.lists(tool_calls, max_size=3).map(tuple)
tool_uses = records(ToolUse, {"tools_used": call_tuples}, {"final_answer_uses_tools": st.none() | st.booleans()})
ways_of_comparing = st.one_of(
    st.sampled_from([{}, {"exact": True}, {"ignore": True}, {"datetime": True}, {"as_set": True}, {"regex": "a+"}]),
    st.fixed_dictionaries({"relative": st.floats(0.001, 1)}, optional={"integers": st.booleans()}),
    st.fixed_dictionaries({"ignore_case": st.just(True)}, optional={"ignore_whitespace": st.booleans()}),
    st.fixed_dictionaries({"one_of": st.lists(json_values, min_size=1, max_size=3).map(tuple)}),
)
matchers = st.builds(
    lambda way, more: Matcher(**way, **more),
    ways_of_comparing,
    st.fixed_dictionaries({}, optional={"optional": st.booleans(), "default": json_values}),
)
expected_calls = records(
    ExpectedCall,
    {"tool_name": identifiers, "matchers": st.dictionaries(text, matchers, max_size=3)},
    {"parameters": json_objects, "step": st.none() | st.integers(-5, 50)},
)
expected_tools = records(
    ExpectedTools,
    {"expected_tools": st.lists(tool_calls | expected_calls, max_size=3).map(tuple)},
    {
        "tool_sequence_matters": st.booleans(),
        "allowed_tools": st.none() | st.lists(identifiers, max_size=2).map(tuple),
        "forbidden_tools": st.lists(identifiers, max_size=2).map(tuple),
    },
)


@st.composite
def interactions(draw: st.DrawFn) -> Interaction:
    """One turn, answered or failed."""
    fields = {
        "qa_id": identifiers,
        "query": text,
        "assistant": text,
    }
    optional = {
        "ground_truth_assistant": st.none() | text,
        "agentic": st.none() | tool_uses,
        "ground_truth_agentic": st.none() | expected_tools,
        "observation": st.none() | text,
        "logprobs": json_values,
        "weight": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "recorded_score": st.none() | probabilities,
        "metadata": json_objects,
    }
    if draw(st.booleans()):
        fields |= {"error": identifiers, "assistant": st.none() | text}
    return draw(records(Interaction, fields, optional))


@st.composite
def conversations(draw: st.DrawFn, **given: Any) -> Conversation:
    """One conversation; `given` fixes fields."""
    fields = {
        "session_id": identifiers,
        "assistant_id": identifiers,
        "conversation": st.lists(interactions(), min_size=1, max_size=3).map(tuple),
    }
    optional = {
        "language": text,
        "context": st.none() | text,
        "chatbot_role": st.none() | text,
        "task_id": st.none() | identifiers,
        "trial": st.none() | st.integers(0, 1000),
        "error": st.none() | identifiers,
        "recorded_score": st.none() | probabilities,
        "metadata": json_objects,
    }
    fields |= {name: st.just(value) for name, value in given.items()}
    optional = {name: values for name, values in optional.items() if name not in given}
    return draw(records(Conversation, fields, optional))


@st.composite
def conversation_lists(draw: st.DrawFn, max_size: int = 5) -> list[Conversation]:
    """Conversations that fit together: each a task of its own, with a session of its own."""
    number = draw(st.integers(1, max_size))
    return [draw(conversations(session_id=f"s{n}", task_id=f"task {n}")) for n in range(number)]


def reduced(count: int) -> int:
    """So many examples where they are new every time (`make fuzz`); a fifth where they are always the same ones."""
    return count if os.environ.get("HYPOTHESIS_PROFILE") == "random" else max(count // 5, 10)
