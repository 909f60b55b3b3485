"""Formats of messages: a dialogue comes back from each as it was written; files of the tools are read call by call."""

import json
import re
import warnings
from pathlib import Path

import pandas as pd
import pytest
from dialogues import (
    MARKED,
    WRITERS,
    Dialogue,
    Turn,
    dialogues,
    expected,
    expected_of_smolagents,
    read_back,
    smolagents,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from places import places_in
from strategies import json_values, reduced

from agentic_bayes.errors import DoubtfulRecords, RecordsError
from agentic_bayes.records.read import read_conversations

FILES = Path(__file__).parent / "files"

quick = settings(max_examples=reduced(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("name", WRITERS)
@given(dialogue=dialogues())
@quick
def test_a_dialogue_written_in_any_format_is_read_back(load, name, dialogue):
    """Parallel calls, repeated ids, errors, thoughts and images give the same turns, calls, results and answers."""
    write, errors, system, tools = WRITERS[name]
    (found,) = load(write(dialogue), format=name.partition(" ")[0])
    assert read_back(found) == expected(dialogue, errors=errors)
    assert (found.context or "") == (dialogue.system if system else "")
    offered = found.metadata.get("available_tools", [])
    assert {tool["name"] for tool in offered} == (set(dialogue.tools) if tools else set())
    last = found.conversation[-1]
    assert (last.error is None) == (dialogue.turns[-1].answer is not None)


@pytest.mark.parametrize("name", WRITERS)
def test_a_blank_answer_is_the_same_by_every_reader(load, name):
    """White space is what the agent said: it is neither dropped nor no answer."""
    write, *_ = WRITERS[name]
    (found,) = load(write(Dialogue((Turn("How warm?", answer=" "),))), format=name.partition(" ")[0])
    assert (found.conversation[0].assistant, found.conversation[0].error) == (" ", None)


@given(dialogue=dialogues(parallel=1))
@quick
def test_a_dialogue_of_smolagents_is_read_back(load, dialogue):
    """Its calls are Python in text, and its answer is the argument of a call."""
    (found,) = load(smolagents(dialogue))
    assert read_back(found) == expected_of_smolagents(dialogue)
    assert found.context == dialogue.system


OSLO = ("weather", {"city": "Oslo"}, "4 C")
ROME_FAILS = ("weather", {"city": "Rome"}, {"status": "error", "content": "no such city"})
FOUND = [{"title": "Rome", "type": "web_search_result", "url": "https://example.org/rome"}]
BOTH = "How warm in Oslo and Rome?"
PLAN = 'Thought: look it up.\n<code>\nt = weather(city="Oslo")\nprint(t)\n</code>'
CODE = 'Thought: done.\n<code>\nfinal_answer("It is 4 C.")\n</code>'
NOT_RUN = "because of error 'Rome'"


def turn(query, answer, calls=(), reasoning=(), before=()):
    return {"query": query, "answer": answer, "calls": [*calls], "reasoning": [*reasoning], "before": [*before]}


OF_GEMINI = turn(
    BOTH,
    "It is 4 C in Oslo.",
    [OSLO, ("weather", {"city": "Rome"}, ...), ("code_execution", {"code": "2+2", "language": "PYTHON"}, "4\n")],
    ["Two cities."],
)
OF_VERCEL = turn(BOTH, "It is 4 C in Oslo; Rome is unknown.", [OSLO, ROME_FAILS], ["Two cities."], ["Let me look."])
OF_BEDROCK = turn(
    "How warm in Oslo?",
    "It is 4 C.",
    [("weather", {"city": "Oslo"}, {"celsius": 4})],
    ["I look it up."],
    ["Let me look."],
)
WRITTEN = {
    "anthropic/anthropic_one_call.json": [turn("Oslo?", "4 C", [("weather", {"city": "Oslo"}, "4")])],
    "anthropic/anthropic_sdk.json": [turn("How warm in Oslo?", "It is 4 C.", [OSLO], (), ["Let me look."])],
    "anthropic/request_reply.json": [
        turn(
            BOTH,
            "It is 4 C in Oslo, and 20 C in Rome.",
            [OSLO, ROME_FAILS, ("web_search", {"query": "Rome temperature"}, FOUND)],
            ["Two cities, two calls."],
            ["Let me look."],
        )
    ],
    "anthropic/batch_joined.jsonl": [turn("How warm in Oslo?", "4 C."), turn("How warm in Oslo?", None)],
    "openai/openai_inline_thinking.json": [turn("q", "Lyon", (), ["Paris?"])],
    "openai/chat_request_reply.json": [
        turn(
            "How warm in Oslo?",
            "4 C and 20 C.",
            [OSLO, ("weather", {"city": "Rome"}, "20 C")],
            ["I look it up.", "Both known."],
        )
    ],
    "openai/responses.json": [
        turn(
            "How warm in Oslo?",
            "It is 4 C.",
            [
                ("web_search", {"type": "search", "query": "Oslo weather"}),
                OSLO,
                ("code_interpreter", {"code": "2 + 2", "container_id": "cntr_1"}, [{"logs": "4", "type": "logs"}]),
            ],
            ["I look it up."],
        )
    ],
    "gemini/history.json": [OF_GEMINI],
    "gemini/request_reply.json": [OF_GEMINI],
    "bedrock/request_reply.json": [OF_BEDROCK],
    "bedrock/invocation_log.json": [turn("How warm in Oslo?", "It is 4 C.")],
    "vercel/model_messages.json": [OF_VERCEL],
    "vercel/request_response.json": [OF_VERCEL],
    "vercel/ui_messages.json": [
        {
            **OF_VERCEL,
            "calls": [OSLO, ("weather", {"city": "Rome"}, {"status": "error", "content": "An error occurred."})],
        }
    ],
    "vercel/ui_messages_v4.json": [
        turn("How warm in Oslo?", "It is 4 C.", [OSLO], ["I look it up."]),
        turn("And Rome?", None, [("weather", {"city": "Rome"})]),
    ],
    "autogen/autogen_taskresult.json": [
        turn("How warm in Oslo?", "It is 4 C in Oslo.", [("w", {"city": "Oslo"}, "4 C")])
    ],
    "autogen/summary.json": [turn("How warm in Oslo?", "4 C", [OSLO])],
    "autogen/hand_off.json": [
        turn(
            BOTH,
            "It is 4 C in Oslo; Rome is unknown. TERMINATE",
            [
                ("transfer_to_meteo", {}, "Transferred to meteo, adopting the role of meteo immediately."),
                OSLO,
                ROME_FAILS,
            ],
            ["The meteorologist knows.", "Two calls."],
        )
    ],
    "smolagents/smolagents_messages.json": [turn("How warm in Oslo?", None, [OSLO, OSLO])],
    "smolagents/tool_calling.json": [
        turn(
            "How warm in Oslo?", "It is 4 C.", [OSLO, ("final_answer", {"answer": "It is 4 C."})], ["I look it up."] * 2
        )
    ],
    "smolagents/code.json": [
        turn(
            "How warm in Oslo?",
            "It is 4 C.",
            [
                (
                    "python_interpreter",
                    {"code": 't = weather(city="Oslo")\nprint(t)'},
                    "Execution logs:\n4 C\nLast output from code snippet:\nNone",
                ),
                (
                    "python_interpreter",
                    {"code": 'final_answer("It is 4 C.")'},
                    "Execution logs:\nLast output from code snippet:\nIt is 4 C.",
                ),
            ],
            [PLAN, CODE],
        )
    ],
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_file_that_a_tool_wrote_is_read_call_by_call(name):
    """The format is recognised by the content, nothing is doubtful, and every call has its own result."""
    found = list(read_conversations(FILES / name))
    turns = [one for conversation in found for one in read_back(conversation)]
    for one in turns:  # the text of this error is the tool's own
        one["calls"] = [(*call[:2], ...) if NOT_RUN in str(call[2:]) else call for call in one["calls"]]
    assert turns == WRITTEN[name]
    assert {conversation.metadata["format"] for conversation in found} == {name.partition("/")[0]}


ASK, ANSWER = {"role": "user", "content": "?"}, {"type": "text", "text": "!"}
NEWER = {
    "searchResult and guardContent of Converse": {
        "messages": [
            {"role": "user", "content": [{"guardContent": {"text": {"text": "?"}}}, {"searchResult": {"title": "t"}}]},
            {"role": "assistant", "content": [{"text": "!"}]},
        ]
    },
    "Bedrock's log of a call in Anthropic's form": {
        "operation": "InvokeModel",
        "input": {"inputBodyJson": {"anthropic_version": "v", "messages": [ASK]}},
        "output": {"outputBodyJson": {"type": "message", "role": "assistant", "content": [ANSWER]}},
    },
    "compaction of Anthropic": {
        "system": "s",
        "messages": [ASK, {"role": "assistant", "content": [{"type": "compaction", "content": "…"}, ANSWER]}],
    },
    "toolCall and toolResponse of Gemini": {
        "contents": [
            {"role": "user", "parts": [{"text": "?"}]},
            {
                "role": "model",
                "parts": [
                    {"toolCall": {"id": "1", "toolType": "SEARCH", "args": {"q": "x"}}},
                    {"toolResponse": {"id": "1", "toolType": "SEARCH", "response": "y"}},
                    {"text": "!"},
                ],
            },
        ]
    },
    "tool_search_output of OpenAI": {
        "input": "?",
        "output": [
            {"type": "tool_search_call", "id": "a", "call_id": "b", "arguments": {"q": "x"}},
            {"type": "tool_search_output", "id": "c", "call_id": "b", "tools": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "!"}]},
        ],
    },
    "calls of the first versions of AutoGen 0.4": {
        "messages": [
            {"type": "TextMessage", "source": "user", "content": "?"},
            {
                "type": "ToolCallMessage",
                "source": "a",
                "content": [{"id": "1", "name": "f", "arguments": '{"q": "x"}'}],
            },
            {"type": "ToolCallResultMessage", "source": "a", "content": [{"call_id": "1", "content": "y"}]},
            {"type": "TextMessage", "source": "a", "content": "!", "models_usage": None},
        ]
    },
}
NEWER["calls of smolagents 1.9, which were the assistant's"] = [
    {"role": role, "content": [{"type": "text", "text": text}]}
    for role, text in (
        ("user", "New task:\n?"),
        (
            "assistant",
            "Calling tools:\n[{'id': 'c', 'type': 'function', 'function': {'name': 'f', 'arguments': {'q': 'x'}}}]",
        ),
        ("tool-response", "Call id: c\nObservation:\ny"),
        ("assistant", "!"),
    )
]
CALLED = {"smolagents": ("f", "y"), "gemini": ("search", "y"), "openai": ("tool_search", []), "autogen": ("f", "y")}


@pytest.mark.filterwarnings("ignore:.*compaction")
@pytest.mark.parametrize("what", NEWER)
def test_kinds_of_parts_that_came_later_or_earlier_are_read(load, what):
    """The answer is what was said, each call has its result, and nothing of them gets into either."""
    (found,) = load(NEWER[what])
    (turn,) = found.conversation
    assert (turn.query.split("\n")[0], turn.assistant, turn.error) == ("?", "!", None)
    made = [(call.tool_name, call.parameters, call.result) for call in turn.agentic.tools_used]
    name, result = CALLED.get(found.metadata["format"], (None, None))
    assert made == ([(name, {"q": "x"}, result)] if name else [])


def test_what_stands_next_to_the_messages_is_kept():
    """System text is the context; offered tools, model, tokens, task and score are where they belong."""
    (found,) = read_conversations(FILES / "anthropic/request_reply.json")
    assert (found.context, found.metadata["model"]) == ("Be brief.", "claude-test")
    assert [tool["name"] for tool in found.metadata["available_tools"]] == ["weather", "web_search"]
    assert found.metadata["available_tools"][0]["description"] == "Temperature now"
    assert found.conversation[0].metadata["tokens"] == {"input": 13, "output": 5}
    (found,) = read_conversations(FILES / "anthropic/anthropic_sdk.json")
    assert (found.task_id, found.recorded_score) == ("oslo", 1.0)
    for name in ("gemini/request_reply.json", "bedrock/request_reply.json", "openai/responses.json"):
        (found,) = read_conversations(FILES / name)
        assert (found.context, found.metadata["available_tools"][0]["name"]) == ("Be brief.", "weather"), name
    (found,) = read_conversations(FILES / "smolagents/smolagents_messages.json")
    assert found.conversation[0].error == "Reached max steps."
    found = list(read_conversations(FILES / "anthropic/batch_joined.jsonl"))
    assert [one.session_id for one in found] == ["oslo-0", "oslo-1"]
    assert found[1].conversation[0].error == "Overloaded"


BATCHES = pytest.mark.parametrize(
    ("tool", "asked", "replied"),
    [
        ("anthropic", "batch_requests.jsonl", "batch_results.jsonl"),
        ("openai", "batch_input.jsonl", "batch_output.jsonl"),
    ],
)


@BATCHES
def test_half_a_batch_is_refused_with_the_lines_that_join_it(tmp_path, monkeypatch, tool, asked, replied):
    """The lines are run as they are printed; then it can be read."""
    monkeypatch.chdir(tmp_path)
    for name, copied in ((asked, "requests.jsonl"), (replied, "results.jsonl")):
        (tmp_path / copied).write_text((FILES / tool / name).read_text("utf-8"), encoding="utf-8")
        with pytest.raises(RecordsError, match=r"join .* by custom_id, pd.read_json") as caught:
            read_conversations(copied)
    line = caught.value.problems[0].message.partition("custom_id, ")[2]
    exec(line, {"pd": pd})
    found = list(read_conversations("joined.jsonl"))
    assert [one.session_id for one in found] == ["oslo-0", "oslo-1"][: len(found)]
    assert found[0].conversation[0].assistant in ("4 C.", "4 C and 20 C.")


@BATCHES
def test_both_halves_of_a_batch_are_joined(tmp_path, tool, asked, replied):
    """In any order; a result that no request has, and one given twice, are refused."""
    found = list(read_conversations([FILES / tool / replied, FILES / tool / asked]))
    assert [one.session_id for one in found] == ["oslo-0", "oslo-1"][: len(found)]
    assert found[0].conversation[0].assistant in ("4 C.", "4 C and 20 C.")
    results = (FILES / tool / replied).read_text("utf-8")
    for text, message in (
        (results.replace("oslo-0", "rome"), "no request has the custom_id 'rome'"),
        (results * 2, "several"),
    ):
        (tmp_path / "results.jsonl").write_text(text, "utf-8")
        with pytest.raises(RecordsError, match=message):
            read_conversations([FILES / tool / asked, tmp_path / "results.jsonl"])


ODD = st.sampled_from(
    [None, True, -1, "", " ", "x", "tool_use", "text", [], {}, [None], {"type": "text"}, {"role": "user"}]
)


@pytest.mark.parametrize("name", WRITERS)
@given(data=st.data())
@settings(quick, max_examples=reduced(150))
def test_a_changed_log_is_refused_or_nothing_in_it_is_lost_in_silence(load, name, data):
    """Whatever value stands at whatever place, or is missing: what is left is read, or something is said."""
    written = json.loads(json.dumps(WRITERS[name][0](MARKED)))
    *path, last = data.draw(st.sampled_from([place for place in places_in(written) if place]))
    target = written
    for key in path:
        target = target[key]
    if data.draw(st.booleans()):
        del target[last]
    else:
        target[last] = data.draw(ODD | json_values)
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", DoubtfulRecords)
            found = load(written, format=data.draw(st.sampled_from(["auto", name.partition(" ")[0]])))
    except RecordsError:
        return
    texts = json.dumps([conversation.model_dump(mode="json") for conversation in found])
    lost = set(re.findall("MARK..", json.dumps(written))) - set(re.findall("MARK..", texts))
    assert not lost or said


@pytest.mark.parametrize(
    ("file", "before", "after", "message"),
    [
        ("vercel/ui_messages_v4.json", '"content": "It is 4 C."', '"content": []', "content: must be text"),
        ("openai/responses.json", '"output": "4 C"', '"outputs": "4 C"', "output: must be given, got nothing"),
        ("vercel/model_messages.json", '"type": "tool-result"', '"type": "reasoning"', "must not be reasoning"),
    ],
)
def test_a_result_in_an_unusual_place_is_refused(tmp_path, file, before, after, message):
    """It is not lost in silence."""
    text = (FILES / file).read_text("utf-8")
    assert before in text
    (tmp_path / "log.json").write_text(text.replace(before, after, 1), "utf-8")
    with pytest.raises(RecordsError, match=message):
        list(read_conversations(tmp_path / "log.json"))


@pytest.mark.parametrize("form", ["messages_to_dict", "model_dump", "dumpd", "a state", "openai"])
def test_an_empty_question_and_a_blank_answer_are_what_they_are(load, form):
    """By every way in LangChain's messages "" and " " are that query and that answer."""
    from langchain_core.load import dumpd
    from langchain_core.messages import AIMessage, HumanMessage, messages_to_dict

    messages = [HumanMessage(""), AIMessage(" ")]
    forms = {
        "messages_to_dict": messages_to_dict(messages),
        "model_dump": [message.model_dump() for message in messages],
        "dumpd": dumpd(messages),
        "a state": {"messages": dumpd(messages)},
        "openai": [{"role": "user", "content": ""}, {"role": "assistant", "content": " "}],
    }
    ((turn,),) = (conversation.conversation for conversation in load(forms[form]))
    assert (turn.query, turn.assistant) == ("", " ")
