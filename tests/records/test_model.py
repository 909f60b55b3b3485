import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from strategies import conversations, json_values, reduced

from agentic_bayes.errors import Problem
from agentic_bayes.records.base import MAX_DEPTH, problems_of, short
from agentic_bayes.records.model import (
    Batch,
    Conversation,
    Dataset,
    ExpectedTools,
    Interaction,
    ToolCall,
    ToolUse,
)

TURN = {"qa_id": "q", "query": "How much?", "assistant": "3"}
RECORD = {"session_id": "s", "assistant_id": "v1", "conversation": [TURN]}


def problems(record: type, data: object) -> dict[str, str]:
    """Field path → message of everything that is wrong."""
    with pytest.raises(ValidationError, match="validation error") as caught:
        record.model_validate(data)
    found = problems_of(caught.value, source="f", where="line 1")
    assert all((p.source, p.where) == ("f", "line 1") for p in found)
    assert len({p.field for p in found}) == len(found)
    return {p.field: p.message for p in found}


def test_one_validation_reports_unknown_keys_and_all_other_problems():
    """An unknown key hides no other problem of the record, at any depth."""
    data = {
        "sesion_id": "s",
        "assistant_id": 1.5,
        "trial": -1,
        "recorded_score": 70,
        "zzz": 0,
        "conversation": [
            {
                "qa_id": " ",
                "qury": "?",
                "query": None,
                "assistant": None,
                "agentic": {
                    "tools_used": [{"tool_nam": "f", "step": 1.5}, 7],
                    "final_answer_uses_tools": "yes",
                },
                "ground_truth_agentic": [],
                "weight": "1",
            },
            {**TURN, "assistant": None},
        ],
    }
    assert problems(Conversation, data) == {
        "session_id": "is missing and must be given",
        "sesion_id": "unknown key 'sesion_id': did you mean 'session_id'?",
        "assistant_id": "must be text, got 1.5",
        "trial": "must be a whole number ≥ 0, got -1",
        "recorded_score": "must be a number in [0, 1], got 70",
        "zzz": "unknown key 'zzz': valid: 'session_id', 'assistant_id', 'language', 'context', "
        "'chatbot_role', 'conversation', 'task_id', 'trial', 'error', 'recorded_score', 'metadata'",
        "conversation[0].qa_id": "must not be blank, got ' '",
        "conversation[0].qury": "unknown key 'qury': did you mean 'query'?",
        "conversation[0].query": "must be text, got null",
        "conversation[0].assistant": "must be text, got null (null is allowed only if `error` says why "
        "there is no answer)",
        "conversation[0].agentic.tools_used[0].tool_name": "is missing and must be given",
        "conversation[0].agentic.tools_used[0].tool_nam": "unknown key 'tool_nam': did you mean 'tool_name'?",
        "conversation[0].agentic.tools_used[0].step": "must be a whole number, got 1.5",
        "conversation[0].agentic.tools_used[1]": "must be an object, got 7",
        "conversation[0].agentic.final_answer_uses_tools": "must be true or false, got 'yes'",
        "conversation[0].ground_truth_agentic": "must be an object, got []",
        "conversation[0].weight": "must be a number, got '1'",
        "conversation[1].assistant": "must be text, got null (null is allowed only if `error` says why "
        "there is no answer)",
    }


def test_construction_in_code_reports_the_same_as_reading():
    """Keyword construction names every problem too, with the nearest valid name."""
    with pytest.raises(ValidationError, match="did you mean 'query'") as caught:
        Interaction(qa_id="", qury="?", query=3, assistant="a")
    text = str(caught.value)
    assert "must not be blank, got ''" in text
    assert "must be text, got 3" in text
    with pytest.raises(ValidationError, match="did you mean 'task_id'"):
        Conversation(session_id="s", assistant_id="a", conversation=[Interaction(**TURN)], taskid="t")


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"tool_name": "f", "name": "g"}, "name"),
        ({"tool_name": "f", "parameters": {}, "arguments": {}}, "arguments"),
    ],
)
def test_a_field_given_under_both_of_its_names_is_an_error(data, field):
    """Two names of one field leave open which value was meant."""
    (message,) = problems(ToolCall, data).values()
    assert problems(ToolCall, data).keys() == {field}
    assert "are the same field: give only" in message


@pytest.mark.parametrize("arguments", [None, "", "  ", {}, "{}", "null"])
def test_all_ways_of_no_arguments_are_the_same(arguments):
    """None, blank text, an empty object and their JSON texts are calls without arguments."""
    assert ToolCall(tool_name="f", parameters=arguments) == ToolCall(tool_name="f")


def test_the_names_of_openai_are_read_and_json_text_is_parsed():
    """`name` and `arguments` with a JSON string give the same call as the native names."""
    openai = ToolCall.model_validate({"name": "f", "arguments": '{"a": 1, "b": [true]}'})
    assert openai == ToolCall(tool_name="f", parameters={"a": 1, "b": [True]})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ('{"a": 1', "must be an object, or an object as JSON text"),
        ("[1]", "must be an object"),
        (5, "must be an object .argument name → value., got 5"),
        ('{"a": 1, "a": 2}', "key 'a' occurs twice"),
        ('{"a": NaN}', "must be a finite number"),
        ('{"a":' * 5000, "nested deeper than 100 levels|nested too deeply|as JSON text .Expecting value"),
        ({"a": [0, math.inf]}, "parameters.a.1\n  must be a finite number"),
        ({"a": "\ud800"}, "without lone surrogates"),
        ({"\ud800": 1}, "without lone surrogates"),
    ],
)
def test_arguments_that_json_cannot_hold_are_refused(arguments, message):
    """NaN, infinities, broken text, repeated keys and endless nesting never get into a record."""
    with pytest.raises(ValidationError, match=message):
        ToolCall(tool_name="f", parameters=arguments)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400])
@pytest.mark.parametrize("field", ["weight", "recorded_score"])
def test_numbers_must_be_finite(field, value):
    """No NaN or infinity counts as a number, also not as a huge integer."""
    assert "number" in problems(Interaction, {**TURN, field: value})[field]


def test_nesting_has_a_limit_and_values_within_it_are_kept():
    """The deepest allowed value is kept, one more level is refused."""
    value = 1
    for _ in range(MAX_DEPTH):
        value = [value]
    assert ToolCall(tool_name="f", result=value).result == value
    with pytest.raises(ValidationError, match="must not be nested deeper than 100 levels"):
        ToolCall(tool_name="f", result=[value])


def test_a_value_that_contains_itself_is_refused():
    """A cycle is endless nesting."""
    value: list[object] = []
    value.append(value)
    with pytest.raises(ValidationError, match="nested deeper"):
        ToolCall(tool_name="f", result=value)


def test_a_result_of_none_differs_from_no_result():
    """Missing is not None."""
    assert ToolCall(tool_name="f", result=None).has_result
    assert not ToolCall(tool_name="f").has_result


@pytest.mark.parametrize(("given_id", "kept"), [(7, "7"), ("7", "7"), (-1, "-1")])
def test_whole_numbers_are_ids_by_their_digits(given_id, kept):
    """Many logs number their sessions."""
    assert Conversation.model_validate({**RECORD, "session_id": given_id}).session_id == kept


@pytest.mark.parametrize("given_id", [True, 1.0, None, [], "", " \n"])
def test_other_things_are_no_ids(given_id):
    """Booleans, floats, null and blank text identify nothing."""
    assert problems(Conversation, {**RECORD, "session_id": given_id}).keys() == {"session_id"}


@pytest.mark.parametrize("trial", [True, 1.5, "1", -1, math.nan])
def test_trials_are_whole_numbers_from_zero(trial):
    """Booleans, fractions, text and negative numbers are no trial numbers."""
    assert problems(Conversation, {**RECORD, "trial": trial})["trial"].startswith("must be a whole number")


def test_a_conversation_needs_an_interaction():
    """An empty conversation is neither right nor wrong; it is refused beside what else is wrong."""
    found = problems(Conversation, {**RECORD, "conversation": [], "trail": 0})
    assert found["conversation"].startswith("must hold at least one interaction")
    assert found["trail"] == "unknown key 'trail': did you mean 'trial'?"


def test_an_answer_may_be_null_only_where_an_error_says_why():
    """A crash of the turn or of the conversation excuses a missing answer."""
    crashed = {**TURN, "assistant": None}
    assert Conversation.model_validate({**RECORD, "conversation": [crashed], "error": "boom"}).error_at(0) == "boom"
    assert Conversation.model_validate({**RECORD, "conversation": [{**crashed, "error": "x"}]}).error_at(0) == "x"
    assert "conversation[0].assistant" in problems(Conversation, {**RECORD, "conversation": [crashed]})
    made = [Interaction(qa_id="q", query="?", assistant=None)]
    with pytest.raises(ValidationError, match=r"conversation\.0\.assistant\n  must be text, got null"):
        Conversation(session_id="s", assistant_id="a", conversation=made)
    with pytest.raises(ValidationError, match="must be text, got null"):
        Conversation(session_id="s", assistant_id="a", conversation=(turn for turn in made))


@pytest.mark.parametrize(
    ("answers", "errors"),
    [
        (["a", "b"], [None, "boom"]),
        (["a", None], [None, "boom"]),
        ([None, "b"], ["boom", None]),
    ],
)
def test_the_error_of_a_conversation_belongs_to_the_turns_without_an_answer_else_to_the_last(answers, errors):
    """Turns answered before the crash are not blamed for it."""
    turns = [{**TURN, "assistant": answer} for answer in answers]
    conversation = Conversation.model_validate({**RECORD, "conversation": turns, "error": "boom"})
    assert [conversation.error_at(n) for n in range(2)] == errors


def test_records_are_frozen():
    """Nothing changes a record after it was checked."""
    with pytest.raises(ValidationError, match="frozen"):
        Conversation.model_validate(RECORD).session_id = "t"


def test_gaussias_names_are_the_same_classes():
    """Code written for Gaussia builds conversations here."""
    assert Dataset is Conversation
    assert Batch is Interaction
    dataset = Dataset(
        session_id="c1",
        assistant_id="a",
        language="english",
        context="",
        conversation=[
            Batch(
                qa_id="q",
                query="?",
                assistant="42",
                ground_truth_assistant="42",
                agentic={"tools_used": [{"tool_name": "calculator", "parameters": {"a": 5}, "result": 15, "step": 1}]},
                ground_truth_agentic={"expected_tools": [{"tool_name": "calculator", "parameters": {"a": 5}}]},
            )
        ],
    )
    assert isinstance(dataset.conversation[0].agentic, ToolUse)
    assert isinstance(dataset.conversation[0].ground_truth_agentic, ExpectedTools)
    assert dataset.conversation[0].ground_truth_agentic.tool_sequence_matters


@given(conversations())
@settings(max_examples=reduced(60), deadline=None)
def test_a_dumped_conversation_validates_to_itself(conversation):
    """Dumping what was set and validating it again gives an equal record, with the same fields set."""
    data = conversation.model_dump(mode="json", exclude_unset=True)
    again = Conversation.model_validate(data)
    assert again == conversation
    assert again.model_dump(mode="json", exclude_unset=True) == data


@given(st.sampled_from(sorted(set(Conversation.model_fields) | set(Interaction.model_fields))), json_values)
@settings(max_examples=reduced(150), deadline=None)
def test_any_value_in_any_field_is_kept_or_refused_by_name(field, value):
    """A wrong type in a field is one of the named problems of this field, never another exception."""
    turn = {**TURN, field: value} if field in Interaction.model_fields else TURN
    data = {**RECORD, "conversation": [turn]}
    if field in Conversation.model_fields:
        data = {**data, field: value}
    try:
        found = Conversation.model_validate(data).model_dump(mode="json", exclude_unset=True)
    except ValidationError as error:
        wrong = [problem.field for problem in problems_of(error, source="", where="")]
    else:
        wrong = [] if found.keys() == data.keys() else ["a field was lost"]
    assert all(field in path for path in wrong)


def test_values_in_messages_are_short():
    """A huge, deep or broken value is shown by at most 60 characters."""
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]

    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError

    for value in ("x" * 10**6, deep, 10**5000, {"a": ["y" * 100] * 100}, Broken(), b"z" * 1000, "\ud800"):
        assert 0 < len(short(value)) <= 60
        short(value).encode("utf-8")
    assert short(None) == "null"


def test_a_problem_says_where_it_is():
    """File, line and field stand before the message."""
    assert str(Problem("f.jsonl", "line 3", "trial", "must be 1")) == "f.jsonl, line 3, trial: must be 1"
