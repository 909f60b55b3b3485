"""Logs of OpenAI messages: all their layouts give the same records, and whatever is done to one, nothing is lost."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cuts import STEPS, cuts
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from places import places_in, put
from strategies import json_values, reduced

from agentic_bayes.errors import DoubtfulRecords, RecordsError
from agentic_bayes.records.read import read_conversations

fuzz = settings(max_examples=reduced(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

CHAT = [
    {"role": "developer", "content": "Be kind."},
    {"role": "assistant", "content": "Hello!"},
    {"role": "user", "content": [{"type": "text", "text": "Rome "}, {"type": "text", "text": "or Oslo?"}]},
    {
        "role": "assistant",
        "content": "Let me look.",
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}},
            {"id": "b", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo'}},
            {"id": "c", "type": "custom", "custom": {"name": "shell", "input": "ls"}},
        ],
    },
    {"role": "tool", "tool_call_id": "b", "content": "bad call"},
    {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "sunny"}]},
    {"role": "tool", "tool_call_id": "c", "content": "é 😀"},
    {"role": "assistant", "content": "Rome."},
    {"role": "user", "content": [{"type": "text", "text": "This?"}, {"type": "image_url", "image_url": {"url": "u"}}]},
    {"role": "assistant", "content": None, "refusal": "I cannot say."},
]
ITEMS = [
    {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be kind."}]},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello!"}]},
    {"role": "user", "content": [{"type": "input_text", "text": "Rome "}, {"type": "input_text", "text": "or Oslo?"}]},
    {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "secret"}]},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me look."}]},
    {"type": "function_call", "id": "1", "call_id": "a", "name": "weather", "arguments": '{"city": "Rome"}'},
    {"type": "function_call", "id": "2", "call_id": "b", "name": "weather", "arguments": '{"city": "Oslo'},
    {"type": "custom_tool_call", "id": "3", "call_id": "c", "name": "shell", "input": "ls"},
    {"type": "function_call_output", "call_id": "b", "output": "bad call"},
    {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "sunny"}]},
    {"type": "custom_tool_call_output", "call_id": "c", "output": "é 😀"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Rome."}]},
    {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "This?"}, {"type": "input_image", "image_url": "u"}],
    },
    {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "I cannot say."}]},
]
RECORD = {
    "session_id": "log",
    "assistant_id": "log",
    "task_id": "log",
    "trial": None,
    "recorded_score": None,
    "context": "Be kind.",
    "metadata": {"format": "openai", "opening": "Hello!"},
    "conversation": [
        {
            "qa_id": "turn 1",
            "query": "Rome or Oslo?",
            "assistant": "Rome.",
            "agentic": {
                "tools_used": [
                    {"tool_name": "weather", "parameters": {"city": "Rome"}, "result": "sunny", "step": 1},
                    {
                        "tool_name": "weather",
                        "parameters": {"(not JSON)": '{"city": "Oslo'},
                        "result": "bad call",
                        "step": 2,
                    },
                    {"tool_name": "shell", "parameters": {"input": "ls"}, "result": "é 😀", "step": 3},
                ]
            },
            "metadata": {"before_calls": ["Let me look."]},
        },
        {"qa_id": "turn 2", "query": "This?\n[image]", "assistant": "I cannot say.", "agentic": {"tools_used": []}},
    ],
}
THOUGHT = {**RECORD, "conversation": [dict(turn) for turn in RECORD["conversation"]]}
THOUGHT["conversation"][0]["metadata"] = {"before_calls": ["Let me look."], "reasoning": ["secret"]}
SHORT = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]


def as_lines(values):
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


@pytest.fixture
def load(tmp_path):
    """The records of a text, bytes or value as dicts; a refusal as its error."""

    def run(data, *, name="log.json", **options):
        path = tmp_path / name
        text = data if isinstance(data, (str, bytes)) else json.dumps(data)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        found = read_conversations(path, **options)
        return [one.model_dump(mode="json", exclude_unset=True) for one in found]

    return run


def plain(record):
    """A record without what names it."""
    return {key: value for key, value in record.items() if key not in ("session_id", "task_id")}


@pytest.mark.parametrize(("messages", "record"), [(CHAT, RECORD), (ITEMS, THOUGHT)], ids=["chat", "responses"])
def test_every_layout_of_one_conversation_gives_the_same_record(load, messages, record):
    """A list, an object, a list of either, and JSON Lines of messages, lists or objects; also gzipped."""
    layouts = [
        messages,
        {"messages": messages},
        {"input": messages},
        [messages],
        [{"messages": messages}],
        as_lines(messages),
        as_lines([messages]),
        as_lines([{"messages": messages}]),
        json.dumps({"messages": messages}, indent=2),
        gzip.compress(json.dumps(messages).encode()),
    ]
    for layout in layouts:
        assert load(layout) == [record]


def test_responses_and_chat_forms_of_the_same_run_give_equal_records(load):
    """What the two interfaces write differently is the same run."""
    chat = {"id": "r1", "model": "m", "messages": CHAT, "usage": {"prompt_tokens": 9, "completion_tokens": 4}}
    response = {"object": "response", "id": "r1", "model": "m", "status": "completed", "error": None}
    response |= {"input": ITEMS[2:4], "output": ITEMS[4:], "usage": {"input_tokens": 9, "output_tokens": 4}}
    response["instructions"] = "Be kind."
    thinking = {**CHAT[3], "reasoning_content": "secret"}
    first, second = load({**chat, "messages": [CHAT[0], CHAT[2], thinking, *CHAT[4:]]}), load(response)
    assert first == second
    assert first[0]["metadata"] == {"format": "openai", "model": "m", "tokens": {"input": 9, "output": 4}}


def test_what_was_said_with_the_last_calls_is_the_same_answer_in_both_forms(load):
    """Text and calls are one message in a chat, and two items in a response."""
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    middle = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "Done.", "tool_calls": [call]}]
    chat = [*middle, {"role": "tool", "tool_call_id": "a", "content": "ok"}, *SHORT]
    text = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
    made = {"type": "function_call", "call_id": "a", "name": "f", "arguments": ""}
    output = {"type": "function_call_output", "call_id": "a", "output": "ok"}
    for items in ([text, made], [made, text]):
        found = load([middle[0], *items, output, *SHORT])
        assert found == load(chat)
        assert found[0]["conversation"][0]["assistant"] == "Done."


@pytest.mark.parametrize(
    ("data", "places"),
    [
        ([SHORT, SHORT], ["index 0", "index 1"]),
        ([{"messages": SHORT}, {"messages": SHORT}], ["index 0", "index 1"]),
        (as_lines([SHORT, SHORT]), ["line 1", "line 2"]),
        (as_lines([{"messages": SHORT}] * 2), ["line 1", "line 2"]),
        (as_lines([[SHORT], [SHORT, SHORT]]), ["index 0", "line 2, index 0", "line 2, index 1"]),
    ],
)
def test_conversations_without_an_id_are_named_by_their_place_and_are_tasks_of_their_own(load, data, places):
    """Chats with equally many turns are not trials of one task."""
    found = load(data, name="run.jsonl", agent="v1")
    assert [one["session_id"] for one in found] == [f"run, {place}" for place in places]
    assert [one["task_id"] for one in found] == [one["session_id"] for one in found]
    assert {one["assistant_id"] for one in found} == {"v1"}


@pytest.mark.parametrize("where", ["beside the messages", "in metadata", "in metadata, numbers as text"])
def test_what_a_record_says_of_itself_is_used(load, where):
    """Ids, trial, agent and score may stand beside the messages or in metadata; some services keep only text there."""
    said = {"session_id": "s", "task_id": "t", "trial": 2, "agent": "v9", "reward": 0.5}
    if where == "in metadata, numbers as text":
        said |= {"trial": "2", "reward": "0.5"}
    about = said if where == "beside the messages" else {"id": "other", "metadata": said}
    # the ids may come before or after the messages
    for record in ({**about, "messages": SHORT}, {"messages": SHORT, **about}):
        (one,) = load(record, agent="given")
        assert (one["session_id"], one["task_id"], one["trial"], one["assistant_id"]) == ("s", "t", 2, "v9")
        assert one["recorded_score"] == 0.5


def test_what_is_missing_of_the_tokens_is_not_zero(load):
    """Only what was counted is kept."""
    assert load({"messages": SHORT, "usage": {"prompt_tokens": 3}})[0]["metadata"]["tokens"] == {"input": 3}


@pytest.mark.parametrize(
    ("about", "error"),
    [
        ({"error": "timeout"}, "timeout"),
        ({"error": {"code": "server_error", "message": "oops"}}, "server_error: oops"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "incomplete: max_output"),
        ({"status": "failed", "error": {"code": "rate_limit", "message": "slow"}}, "rate_limit: slow"),
        ({"status": "failed", "error": None}, "the response is failed"),
    ],
)
def test_errors_of_a_response_are_errors_of_its_turn(load, about, error):
    """Whatever broke the response, its turn has no answer, and says why."""
    (one,) = load({"object": "response", "id": "r", "input": "?", "output": [], **about})
    (turn,) = one["conversation"]
    assert turn["assistant"] is None
    assert error in turn["error"]


def test_an_unfinished_chat_has_an_error_and_an_old_function_call_is_a_call(load):
    """The log ends with the result of a function."""
    chat = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": {"x": 1}}},
        {"role": "function", "name": "f", "content": "one"},
    ]
    (turn,) = load(chat)[0]["conversation"]
    assert turn["agentic"]["tools_used"] == [{"tool_name": "f", "parameters": {"x": 1}, "result": "one", "step": 1}]
    assert turn["error"] == "the log ends before the agent answered"


def test_tools_of_the_service_are_calls_with_their_arguments_and_results(load):
    """Searches, code and others are calls, whatever comes after them is the answer."""
    items = [
        {"role": "user", "content": "?"},
        {"type": "web_search_call", "id": "1", "status": "completed", "action": {"type": "search", "query": "q"}},
        {"type": "file_search_call", "id": "2", "status": "completed", "queries": ["q"], "results": None},
        {"type": "code_interpreter_call", "id": "3", "code": "1", "outputs": [{"type": "logs", "logs": "1"}]},
        {"type": "mcp_list_tools", "id": "4", "server_label": "s", "tools": []},
        {"type": "mcp_call", "id": "5", "name": "roll", "arguments": '{"n": 2}', "output": "4", "error": None},
        {"type": "mcp_call", "id": "6", "name": "roll", "arguments": "{}", "output": None, "error": "down"},
        {"type": "computer_call", "id": "7", "call_id": "c7", "action": {"type": "click", "x": 1}},
        {"type": "computer_call_output", "call_id": "c7", "output": {"type": "computer_screenshot", "image_url": "u"}},
        {"type": "image_generation_call", "id": "8", "status": "completed", "result": "iVBOR"},
        {"type": "shell_call", "call_id": "c9", "action": {"commands": ["ls"]}},
        {"type": "shell_call_output", "call_id": "c9", "output": [{"stdout": "a"}]},
        {"type": "web_search_call", "id": "10", "status": "completed"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "A."}]},
    ]
    (turn,) = load(items)[0]["conversation"]
    calls = turn["agentic"]["tools_used"]
    assert [(call["tool_name"], call["parameters"], call.get("result", "none")) for call in calls] == [
        ("web_search", {"type": "search", "query": "q"}, "none"),
        ("file_search", {"queries": ["q"]}, "none"),
        ("code_interpreter", {"code": "1"}, [{"type": "logs", "logs": "1"}]),
        ("roll", {"n": 2}, "4"),
        ("roll", {}, {"error": "down"}),
        ("computer", {"type": "click", "x": 1}, "[computer_screenshot]"),
        ("image_generation", {}, "[image]"),
        ("shell", {"commands": ["ls"]}, [{"stdout": "a"}]),
        ("web_search", {}, "none"),
    ]
    assert turn["assistant"] == "A."
    assert "error" not in turn


def test_items_of_an_unknown_type_are_said_to_be_left_out(load):
    """Nothing is dropped in silence."""
    with pytest.warns(DoubtfulRecords, match="items of the unknown type 'telepathy' were left out"):
        (one,) = load([SHORT[0], {"type": "telepathy"}, SHORT[1]])
    assert one["conversation"][0]["assistant"] == "!"
    with pytest.warns(DoubtfulRecords, match="output was ignored because the record has messages"):
        load({"messages": SHORT, "output": "x"})
    call = {"type": "function_call", "name": "f", "arguments": '{"x": NaN}'}
    with pytest.warns(DoubtfulRecords, match="some call arguments are NaN or Infinity"):
        (one,) = load([SHORT[0], call])
    assert one["conversation"][0]["agentic"]["tools_used"][0]["parameters"] == {"x": None}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"messages": []}, "line 1: must hold at least one user message"),
        ([SHORT[1]], "line 1: must hold at least one user message"),
        ([SHORT, [], SHORT], "index 1: must hold at least one user message"),
        ({"messages": "x"}, "messages: must be a list of messages, got 'x'"),
        ({"messages": [5]}, r"messages\[0\]: must be an object, got 5"),
        ({"object": "response", "input": 5, "output": []}, "input: must be a list of messages or text, got 5"),
        ({"object": "response"}, "messages: must be given, got nothing"),
        ([*SHORT, {"role": "alien"}], r"\[2\].role: must be system, developer, user, .*, got 'alien'"),
        ([*SHORT, {"role": "user"}], r"\[2\].content: must be given \(it may be null\), got nothing"),
        ([*SHORT, {"role": "assistant", "name": "x"}], r"\[2\].content: must be given \(it may be null\), got nothing"),
        ([*SHORT, {"content": "x"}], r"\[2\].role: must be given, got nothing"),
        ([*SHORT, 5], "index 2: must be an object or a list, got 5"),
        ([*SHORT, SHORT], r"\[2\]: must be an object, got \["),
        ([{"messages": SHORT}, {"foo": 1}], "index 1, messages: must be given, got nothing"),
        (as_lines([*SHORT, {"messages": SHORT}]), "line 3: must be a message like the lines before it"),
        (as_lines([{"messages": SHORT}, *SHORT]), "line 3: must be a conversation like the lines before it"),
        (as_lines([*SHORT, {"role": "user", "content": 5}]), "line 3, content: must be text, got 5"),
        (as_lines(SHORT) + "{", "line 3: is incomplete"),
        ('[{"role":"user","content":"a","role":"user"}]', r"index 0, role: must occur once"),
        ('{"messages":[{"role":"user","content":"a","content":"b"}]}', r"messages\[0\].content: must occur once"),
        ({"messages": SHORT, "score": 7}, r"score: must be a number in \[0, 1\], got 7"),
        ({"messages": SHORT, "metadata": {"trial": "x"}}, "metadata.trial: must be a whole number"),
        ({"messages": [*SHORT, {"role": "assistant", "tool_calls": [{"id": "a"}]}]}, r"tool_calls\[0\].function: must"),
    ],
)
def test_what_is_wrong_is_said_in_terms_of_the_file(load, data, problem):
    """Place, rule and value are in the message."""
    with pytest.raises(RecordsError, match=problem):
        load(data)


@pytest.mark.parametrize("data", ["", "[]", "{}", "5", "[[]]", '{"messages": null}', "[null]"])
def test_a_file_without_messages_is_refused(tried, data):
    """Nothing is no conversation."""
    assert tried(data, format="openai") is None
    assert tried(data) is None


def test_all_thousand_messages_are_there(load):
    """A long chat has every turn and every call, however it is laid out."""
    call = {"id": "same", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    turn = [
        {"role": "user", "content": "q 😀"},
        {"role": "assistant", "tool_calls": [call, call]},
        {"role": "tool", "tool_call_id": "same", "content": "1"},
        {"role": "tool", "tool_call_id": "same", "content": "2"},
        {"role": "assistant", "content": "a"},
    ]
    chat = turn * 200
    for data in (chat, as_lines(chat), {"messages": chat}):
        (one,) = load(data)
        assert len(one["conversation"]) == 200
        assert all([c["result"] for c in t["agentic"]["tools_used"]] == ["1", "2"] for t in one["conversation"])
    items = [SHORT[0]] + [{"type": "function_call", "call_id": "x", "name": "f", "arguments": "{}"}] * 1000
    assert len(load(items)[0]["conversation"][0]["agentic"]["tools_used"]) == 1000


def call_of(name, identity=None, arguments="{}"):
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def calls_in(record):
    """The calls of the last turn: name, and result where there is one."""
    calls = record["conversation"][-1]["agentic"]["tools_used"]
    return [(call["tool_name"], call.get("result", "none")) for call in calls]


def result_of(content, identity=None, name=None):
    found = {"role": "tool", "content": content, "tool_call_id": identity, "name": name}
    return {key: value for key, value in found.items() if value is not None}


@pytest.mark.parametrize(
    ("calls", "results", "expected"),
    [
        # of calls with the same id, the name decides, then their order
        ([[("f", "x"), ("g", "x")]], [("1", "x", "g"), ("2", "x", "f")], [("f", "2"), ("g", "1")]),
        ([[("f", "x"), ("g", "x")]], [("1", "x"), ("2", "x")], [("f", "1"), ("g", "2")]),
        ([[("f", "x"), ("f", "x")]], [("1", "x", "f"), ("2", "x", "f")], [("f", "1"), ("f", "2")]),
        ([[("f", "x")]], [("1", "x", "other name")], [("f", "1")]),
        # without an id: of the tool that it names, else of the message before it, else of any
        ([[("f", "x"), ("g", "y")]], [("1", None, "g"), ("2",)], [("f", "2"), ("g", "1")]),
        ([[("f", None), ("g", None)]], [("1",), ("2",)], [("f", "1"), ("g", "2")]),
        ([[("f", "x")], [("g", "y")]], [("1",), ("2",)], [("f", "2"), ("g", "1")]),
    ],
)
def test_a_result_is_put_with_its_call(load, calls, results, expected):
    """By its id and name or, where it says neither, by where it stands."""
    messages = [{"role": "assistant", "tool_calls": [call_of(*call) for call in several]} for several in calls]
    (one,) = load([SHORT[0], *messages, *(result_of(*result) for result in results), SHORT[1]])
    assert calls_in(one) == expected
    assert "metadata" not in one["conversation"][0]


@pytest.mark.parametrize(
    ("results", "kept", "orphans"),
    [
        ([("1", "other")], "none", 1),
        ([("1", "other", "f")], "none", 1),
        ([("1", None, "other name")], "none", 1),
        ([("1", "x"), ("2", "x"), ("3", "x", "f")], "1", 2),
        ([("1",), ("2",)], "1", 1),
    ],
)
def test_results_of_no_call_are_counted_and_said(load, results, kept, orphans):
    """They are not given to a call that merely waits."""
    asked = {"role": "assistant", "tool_calls": [call_of("f", "x")]}
    with pytest.warns(DoubtfulRecords, match="some tool results belong to no recorded call"):
        (one,) = load([SHORT[0], asked, *(result_of(*result) for result in results), SHORT[1]])
    assert calls_in(one) == [("f", kept)]
    assert one["conversation"][0]["metadata"]["results_without_call"] == orphans


def test_what_is_said_with_the_last_calls_is_the_answer_if_these_have_results(load):
    """Also in the last turn: the agent said goodbye and ended the call. Without text, there is no answer."""
    ended = {"role": "assistant", "content": "Goodbye!", "tool_calls": [call_of("end_call", "x")]}
    started = [{"role": "user", "content": "bye"}, {"role": "assistant", "content": "Wait."}]
    (turn,) = load([*started, ended, result_of("ok", "x")])[0]["conversation"]
    assert (turn["assistant"], turn.get("error")) == ("Goodbye!", None)
    assert turn["metadata"] == {"before_calls": ["Wait."]}
    for text in (None, " "):
        (turn,) = load([SHORT[0], {**ended, "content": text}, result_of("ok", "x")])[0]["conversation"]
        assert (turn["assistant"], turn["error"]) == (None, "the log ends before the agent answered")


def test_a_log_that_ends_with_a_call_waiting_has_no_answer_and_says_why(load):
    """What was said with the call came before its result, so it is no answer."""
    waits = "the log ends before the agent answered: a call of 'end_call' had no result yet"
    ended = {"role": "assistant", "content": "One moment.", "tool_calls": [call_of("end_call", "x")]}
    (turn,) = load([{"role": "user", "content": "bye"}, ended])[0]["conversation"]
    assert (turn["assistant"], turn["error"]) == (None, waits)
    assert turn["metadata"] == {"before_calls": ["One moment."]}


@pytest.mark.slow
def test_many_messages_and_calls_in_one_turn_take_no_long_time(load):
    """Tens of thousands, said or called, with results in any order."""
    number = 120_000
    (one,) = load([SHORT[0], *[{"role": "assistant", "content": "x"}] * number])
    assert one["conversation"][0]["assistant"].count("x") == number
    items = [{"type": "function_call", "call_id": "x", "name": f"f{n}", "arguments": "{}"} for n in range(number)]
    (one,) = load([SHORT[0], *items])
    assert len(calls_in(one)) == number
    asked = {"role": "assistant", "tool_calls": [call_of(f"f{n}", "x") for n in range(number)]}
    (one,) = load([SHORT[0], asked, *(result_of(str(n), "x", f"f{n}") for n in reversed(range(number)))])
    assert calls_in(one) == [(f"f{n}", str(n)) for n in range(number)]


@pytest.mark.parametrize("text", ['{"x": 1, "x": 2}', '{"a": [{"x": 1, "x": 1}]}', '{"x": ' + "9" * 5000 + "}", "[1]"])
def test_arguments_that_nobody_can_tell_are_kept_as_text(load, text):
    """Of a key that is given twice, the last value does not win in silence."""
    (one,) = load([SHORT[0], {"role": "assistant", "tool_calls": [call_of("f", "x", text)]}, SHORT[1]])
    assert one["conversation"][0]["agentic"]["tools_used"][0]["parameters"] == {"(not JSON)": text}


def test_an_object_with_thousands_of_keys_and_a_repeated_one_is_refused_in_time(tried):
    """The keys are counted, not searched for one by one."""
    keys = ",".join(f'"k{n}": 0' for n in [*range(50_000), 5])
    assert tried('{"messages": [{"role": "user", "content": "?"}], "metadata": {' + keys + "}}") is None


def test_roles_may_be_written_in_any_case(load):
    """They say who speaks all the same."""
    (one,) = load([{"role": "System", "content": "Be kind."}, {"role": "User", "content": "?"}, SHORT[1]])
    assert (one["context"], one["conversation"][0]["query"]) == ("Be kind.", "?")


@pytest.mark.parametrize("role", ["alien", "", 5, None])
def test_a_log_whose_first_role_is_unknown_is_told_about_roles(load, role):
    """It is recognised as messages, so that the error is about what is wrong with it."""
    message = {"role": role, "content": "x"}
    for data in ([message, *SHORT], {"messages": [message, *SHORT]}, as_lines([message, *SHORT]), [[message, *SHORT]]):
        with pytest.raises(RecordsError, match=r"role: must be (system, developer, .*, got|given|text)"):
            load(data)


@pytest.mark.parametrize(
    "message",
    [
        {"type": "human", "content": "x"},
        {"type": "AIMessageChunk", "content": "x"},
        {"type": "tool", "data": {}},
        {"lc": 1, "type": "constructor", "id": ["langchain", "AIMessage"], "kwargs": {}},
    ],
)
def test_messages_of_langchain_among_those_of_openai_are_errors(load, message):
    """They say something that would be lost."""
    with pytest.raises(RecordsError, match=r"\[1\]: must be an OpenAI message or item .* got a LangChain message"):
        load([SHORT[0], message, SHORT[1]])


REPLY = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "!"}}


def test_a_reply_beside_its_request_is_the_last_message(load):
    """Request and reply in one object are the conversation; a reply that is also in the messages counts once."""
    about = {"object": "chat.completion", "id": "c", "model": "m", "usage": {"prompt_tokens": 2}}
    expected = load({**about, "messages": SHORT})
    for messages in (SHORT[:1], SHORT):
        record = {**about, "messages": messages, "choices": [REPLY]}
        backwards = dict(reversed(record.items()))
        assert load(record) == load(backwards) == load([record]) == load(as_lines([record])) == expected
    called = {**REPLY, "message": {"role": "assistant", "content": None, "tool_calls": [call_of("f", "x")]}}
    (one,) = load({"messages": SHORT[:1], "choices": [called]})
    assert calls_in(one) == [("f", "none")]
    assert one["conversation"][0]["error"].startswith("the log ends before the agent answered: a call of 'f'")
    other = {**REPLY, "index": 1, "message": {"role": "assistant", "content": "other"}}
    with pytest.warns(DoubtfulRecords, match="a reply has several choices: the first was read as the answer"):
        assert load({**about, "messages": SHORT[:1], "choices": [REPLY, other]}) == expected
    with pytest.raises(RecordsError, match=r"choices\[0\]\.message: must be given, got nothing"):
        load({"messages": SHORT, "choices": [{"finish_reason": "stop", "text": "x"}]})
    # choices of another kind are none of ours
    assert load({**about, "messages": SHORT, "choices": ["A", "B"]}) == expected


BATCH = {"id": "b", "custom_id": "c1", "response": {"status_code": 200, "body": {"choices": [REPLY]}}, "error": None}
OUTPUT = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "!"}]}]


@pytest.mark.parametrize(
    ("record", "field", "reason"),
    [
        ({"id": "c", "object": "chat.completion", "choices": [REPLY]}, "choices", "a reply without its request"),
        ({"choices": [REPLY]}, "choices", "a reply without its request: add the request's `messages`"),
        ({"object": "chat.completion", "choices": []}, "choices", "a reply without its request"),
        (
            {"object": "response", "id": "r", "output": OUTPUT},
            "output",
            "a reply without its request: add the request's `input`",
        ),
        ({"object": "response", "id": "r", "output": []}, "output", "a reply without its request"),
        ({"output": OUTPUT, "instructions": "x"}, "output", "a reply without its request"),
        (BATCH, "response.body", "a reply without its request.*Batch API"),
        ({**BATCH, "response": None, "error": {"code": "x"}}, "response", "a reply without its request"),
        ({"custom_id": "c", "method": "POST", "url": "u", "body": {"messages": SHORT}}, "body", "a request without"),
    ],
)
def test_half_a_conversation_is_refused_with_the_reason(load, record, field, reason):
    """A reply without its request and a request without its reply are recognised, but are no conversation."""
    for data in (record, [record], as_lines([record, record]), json.dumps(record, indent=1)):
        with pytest.raises(RecordsError, match=f"holds {reason}") as caught:
            load(data)
        assert {problem.field for problem in caught.value.problems} == {field}


@pytest.mark.parametrize("depth", [70, 150, 300, 900, 100_000])
@pytest.mark.parametrize("place", ["arguments", "content", "metadata", "skipped"])
def test_deep_nesting_is_refused_or_read_and_never_crashes(tried, depth, place):
    """No depth runs out of stack; what is not read may be as deep as the parser can go."""
    call = {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "DEEP"}}]}
    data = {
        "arguments": {"messages": [SHORT[0], call]},
        "content": {"messages": [{"role": "user", "content": ["DEEP"]}]},
        "metadata": {"messages": SHORT, "metadata": "DEEP"},
        "skipped": {"messages": SHORT, "other": "DEEP"},
    }[place]
    deep = '{"a":' * depth + "1" + "}" * depth
    found = tried(json.dumps(data).replace('"DEEP"', deep))
    refused = depth == 100_000 or (place != "skipped" and depth > 100) or place == "content"
    assert (found is None) == refused


@pytest.mark.parametrize("step", STEPS)
def test_a_list_or_object_cut_anywhere_is_refused(tried, step):
    """Truncation never passes as a shorter conversation."""
    for value, record in ((CHAT, RECORD), ({"messages": ITEMS}, THOUGHT)):
        data = json.dumps(value, ensure_ascii=False).encode()
        assert tried(data, format="openai") == [record]
        assert not any(tried(data[:end], format="openai") for end in cuts(data, step))


@pytest.mark.parametrize("step", STEPS)
def test_lines_cut_anywhere_are_refused_or_lose_whole_lines_only(tried, step):
    """A cut between two messages cannot be seen; any other is refused."""
    data = as_lines(CHAT).encode()
    ends = {at for at in range(len(data) + 1) if data[at : at + 1] in (b"\n", b"") or data[at - 1 : at] == b"\n"}
    for end in cuts(data, step):
        if end not in ends:
            assert tried(data[:end], format="openai") is None
    assert tried(data) == tried(data[:-1]) == [RECORD]


WHOLE = {
    "id": "s",
    "task_id": "t",
    "trial": 1,
    "agent": "v",
    "model": "m",
    "score": 0.5,
    "error": "e",
    "usage": {"prompt_tokens": 1, "completion_tokens": 1},
    "metadata": {"a": 1},
    "messages": CHAT,
}
RESPONSE = {"object": "response", "id": "s", "status": "completed", "input": ITEMS[:3], "output": ITEMS[3:]}
PLACES = [(base, place) for base in (WHOLE, RESPONSE) for place in places_in(base) if place]


WRONG = [None, True, 7, -1, "", "x", "\ud800", [], {}, [[]], [{}], {"type": 5}, float("nan")]


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.slow), 5])
@pytest.mark.parametrize("number", range(len(WRONG)))
def test_a_wrong_value_in_any_field_is_refused_or_leaves_the_messages_as_they_are(tried, number, every):
    """Whatever stands wherever, the file is refused, or what was said elsewhere is all there."""
    said = ["Rome or Oslo?", "Let me look.", "sunny", "bad call", "Rome.", "I cannot say."]
    for base, place in PLACES[number % every :: every]:
        found = tried(json.dumps(put(base, place, WRONG[number])), format="openai")
        if found is None:
            continue
        assert len(found) == 1
        texts = json.dumps(found, ensure_ascii=False)
        texts.encode()
        missing = [text for text in said if text not in texts]
        # without its calls, the results of a message are counted, not kept
        orphans = found[0]["conversation"][0].get("metadata", {}).get("results_without_call", 0)
        inside = place[0] in ("messages", "input", "output")
        assert len(missing) <= (len(said) if len(place) == 1 else 1 + orphans) * inside


@given(st.sampled_from(PLACES), json_values)
@fuzz
def test_any_value_in_any_field_crashes_nothing(tried, base_and_place, value):
    """A record comes back, or a clear error."""
    base, place = base_and_place
    tried(json.dumps(put(base, place, value)), format="openai")


@given(st.data())
@fuzz
def test_changed_bytes_crash_nothing(tried, data):
    """Bytes replaced, inserted or removed anywhere give one record or an error."""
    source = data.draw(st.sampled_from([json.dumps(CHAT), as_lines(ITEMS), json.dumps(WHOLE)]))
    content = bytearray(source.encode())
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(content)))
        end = min(len(content), start + data.draw(st.integers(0, 4)))
        content[start:end] = data.draw(st.binary(max_size=4) | st.sampled_from([b'"', b"{", b"]", b"\n", b","]))
    found = tried(bytes(content), format="openai")
    assert found is None or len(found) == 1


@given(st.binary(max_size=100) | json_values.map(lambda value: json.dumps(value).encode()))
@fuzz
def test_arbitrary_content_is_refused(tried, data):
    """No random bytes and no random JSON are a chat."""
    assert tried(data, format="openai") is None


@given(st.lists(st.sampled_from(CHAT[2:]), max_size=20))
@fuzz
def test_reordered_and_repeated_messages_keep_all_that_was_said(tried, messages):
    """In any order, every call of a turn and every question is there; without a question, the file is refused."""
    found = tried(messages, format="openai")
    first = next((n for n, message in enumerate(messages) if message["role"] == "user"), None)
    assert (found is None) == (first is None)
    if found:
        calls = sum(len(message.get("tool_calls", ())) for message in messages[first:])
        assert calls == sum(len(turn["agentic"]["tools_used"]) for turn in found[0]["conversation"])
        queries = "\n\n".join(turn["query"] for turn in found[0]["conversation"])
        assert queries.count("Rome or Oslo?") == messages.count(CHAT[2])
        assert queries.count("This?") == messages.count(CHAT[8])


def test_a_session_that_comes_up_twice_is_refused(load):
    """A repeated record is never dropped or kept in silence."""
    record = {"session_id": "s", "messages": SHORT}
    with pytest.raises(RecordsError, match="session_id: must be unique within an agent"):
        load([record, record])


PROGRAM = """
import resource, sys
from agentic_bayes.records.read import read_conversations
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
list(read_conversations(sys.argv[1]))
before = peak()
(one,) = read_conversations(sys.argv[2])
assert len(one.conversation) == int(sys.argv[3]), len(one.conversation)
print((peak() - before) * (1 if sys.platform == "darwin" else 1024))
"""

# a process starts with the peak of the one that started it: a small one in between keeps that of the tests out
LAUNCHER = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the peak of memory is read from the resource module")
@pytest.mark.parametrize("layout", ["object", "list", "lines"])
def test_a_large_conversation_takes_much_less_memory_than_twice_its_size(tmp_path, layout):
    """A chat of 60 MB with messages of 4 kB is read in pieces: above all, what is said is held."""
    small, large = tmp_path / "small.json", tmp_path / "large.json"
    small.write_text(json.dumps({"messages": SHORT}))
    turn = [{"role": role, "content": "word " * 800} for role in ("user", "assistant")]
    number = 60_000_000 // len(json.dumps(turn))
    line, joint = json.dumps(turn)[1:-1], ", "
    begin, end = {"object": ('{"messages": [', "]}"), "list": ("[", "]"), "lines": ("", "")}[layout]
    if layout == "lines":
        line, joint = as_lines(turn), ""
    with large.open("w") as file:
        file.write(begin)
        for position in range(number):
            file.write((joint if position else "") + line)
        file.write(end)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    command = [sys.executable, "-c", LAUNCHER, sys.executable, "-c", PROGRAM, str(small), str(large), str(number)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    size = large.stat().st_size
    assert size > 59_000_000
    # less than is said cannot be held: it says that the peak was seen at all
    assert 0.5 * size < int(done.stdout) < 1.5 * size
