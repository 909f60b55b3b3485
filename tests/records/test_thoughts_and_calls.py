"""Thoughts are not an answer, and every result finds its call, whatever ids a log repeats, lacks or mixes up."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import reduced

from agentic_bayes.errors import DoubtfulRecords, RecordsError
from agentic_bayes.evidence.reference.judge import ReferenceJudge
from agentic_bayes.records.model import Conversation, Interaction
from agentic_bayes.records.wire.offered import offered_tools
from agentic_bayes.records.wire.thoughts import split_thoughts

SPELLINGS = [
    ("<think>", "</think>"),
    ("<Thinking>", "</Thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<antThinking>", "</antThinking>"),
    ("<seed:think>", "</seed:think>"),
    ("<scratchpad>", "</scratchpad>"),
    ('<think effort="high">', "</think>"),
    ("◁think▷", "◁/think▷"),
    ("[THINK]", "[/THINK]"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<unused94>", "<unused95>"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
]
plain = st.text("ab é.\n`", max_size=12)


@pytest.mark.parametrize(("opening", "closing"), SPELLINGS)
def test_inline_thoughts_leave_the_answer_in_every_spelling(opening, closing):
    """In pairs; begun and never ended; and ended only, as templates leave them that begin the thought themselves."""
    assert split_thoughts(f"{opening}\nParis?\n{closing}\n\nLyon") == ("Lyon", ("Paris?",))
    assert split_thoughts(f"{opening}Paris?") == ("", ("Paris?",))
    if "channel" not in opening:
        assert split_thoughts(f"Paris?\n{closing}Lyon") == ("Lyon", ("Paris?",))
        twice = f"{opening}a{closing}It is {opening}b{closing}Lyon"
        assert split_thoughts(twice) == ("It is Lyon", ("a", "b"))
        nested = f"{opening}use {opening} here{closing}Lyon"
        assert split_thoughts(nested).said == "Lyon"


@pytest.mark.parametrize(
    "answer",
    [
        "I think so.",
        "Write `<think>` first and `</think>` last.",
        "```\n<think>plan</think>\n```",
        "The tag <think> begins a thought.",
        "My reasoning: 4 < 5.",
    ],
)
def test_what_only_mentions_thoughts_stays_the_answer(answer):
    """Tags in code and a tag without its counterpart are what the agent said."""
    assert split_thoughts(answer) == (answer, ())


def test_marks_around_an_answer_after_thoughts_are_no_part_of_it():
    """Some models mark both."""
    text = "<|begin_of_thought|>a<|end_of_thought|><|begin_of_solution|>Lyon<|end_of_solution|>"
    assert split_thoughts(text) == ("Lyon", ("a",))


@given(plain, plain, st.sampled_from(SPELLINGS))
@settings(max_examples=reduced(100), deadline=None)
def test_no_character_of_an_answer_or_a_thought_is_lost(thought, said, spelling):
    """Only white space around them and the tags themselves go."""
    opening, closing = spelling
    found = split_thoughts(f"{opening}{thought}{closing}{said}")
    assert found == (said.strip(), (thought.strip(),) if thought.strip() else ())
    assert split_thoughts(found.said) == (found.said, ())


def test_thousands_of_tags_take_no_time_to_tell_apart():
    """The work grows with the length of the text."""
    for text in ("<think>" * 20_000, "</think>" * 20_000, "`<think>" * 10_000, "x<think>[THINK]" * 5_000 + "</think>"):
        split_thoughts(text)


def test_thoughts_in_an_answer_that_is_given_directly_are_not_judged():
    """The judge sees what was said; the thoughts are kept with those that were known."""
    turn = {
        "qa_id": "q",
        "query": "Capital?",
        "assistant": "<think>Paris or Lyon? Lyon.</think>Lyon",
        "ground_truth_assistant": "Paris",
        "metadata": {"reasoning": "first"},
    }
    conversation = Conversation(session_id="s", assistant_id="a", conversation=(turn,))
    (read,) = conversation.conversation
    assert (read.assistant, read.metadata["reasoning"]) == ("Lyon", ["first", "Paris or Lyon? Lyon."])
    assert ReferenceJudge().grade(conversation, 0).value == 0
    assert Interaction.model_validate(read.model_dump(exclude_unset=True)) == read
    unfinished = Interaction(qa_id="q", query="?", assistant="<think>Paris")
    assert (unfinished.assistant, unfinished.metadata) == ("", {"reasoning": ["Paris"]})


def called(*ids, name="weather"):
    calls = [{"id": n, "type": "function", "function": {"name": name, "arguments": f'{{"n": {k}}}'}} for k, n in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(text, identity, **about):
    return {"role": "tool", "tool_call_id": identity, "content": text, **about}


def results_of(conversation, turn=0):
    return [
        (call.parameters["n"], call.result if call.has_result else None)
        for call in conversation.conversation[turn].agentic.tools_used
    ]


ASKED = {"role": "user", "content": "?"}
DONE = {"role": "assistant", "content": "done"}


@pytest.mark.parametrize(
    ("messages", "results"),
    [
        ([called((1, "a"), (2, "a")), result("x", "a"), result("y", "a")], ["x", "y"]),
        ([called((1, "a")), result("x", "a"), called((2, "a")), result("y", "a")], ["x", "y"]),
        ([called((1, "a"), (2, "b")), result("y", "b"), result("x", "a")], ["x", "y"]),
        # the first call was given up: the result belongs to the call that was made since
        ([called((1, "a"), (2, "b")), result("y", "b"), called((3, "a")), result("z", "a")], [None, "y", "z"]),
        ([called((1, ""), (2, "")), result("x", ""), result("y", "")], ["x", "y"]),
        ([called((1, "")), result("x", "lost")], ["x"]),
        ([called((1, "a")), result("x", "")], ["x"]),
        ([called((1, "a")), called((2, "a"), name="book"), result("y", "a", name="book")], [None, "y"]),
    ],
)
def test_results_find_their_calls_by_id_and_order(load, messages, results):
    """An id that repeats merges no calls; blank text is no id."""
    (found,) = load([ASKED, *messages, DONE])
    assert [given for _, given in results_of(found)] == results
    assert found.conversation[0].assistant == "done"


def test_a_result_may_name_any_id_of_its_call(load):
    """Items of the Responses API have an id of their own next to the call's."""
    for identity in ("call_1", "fc_1"):
        item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "arguments": '{"n": 1}'}
        output = {"type": "function_call_output", "call_id": identity, "output": "x"}
        (found,) = load([ASKED, item, output, DONE])
        assert results_of(found) == [(1, "x")]


def test_a_result_after_the_users_next_message_goes_to_its_call(load):
    """The user did not wait."""
    (found,) = load([ASKED, called((1, "a")), {"role": "user", "content": "Well?"}, result("x", "a"), DONE])
    assert (results_of(found), found.conversation[1].assistant) == ([(1, "x")], "done")


def test_text_beside_results_begins_no_turn(load):
    """In one message with results it was said while the agent was at work."""
    use = {"type": "tool_use", "id": "t", "name": "weather", "input": {"n": 1}}
    given_back = [{"type": "tool_result", "tool_use_id": "t", "content": "4"}, {"type": "text", "text": "In Celsius."}]
    messages = [ASKED, {"role": "assistant", "content": [use]}, {"role": "user", "content": given_back}, DONE]
    (found,) = load(messages)
    (turn,) = found.conversation
    assert (turn.query, turn.assistant, results_of(found)) == ("?\n\nIn Celsius.", "done", [(1, "4")])


def test_chats_that_look_alike_are_told_apart_by_what_comes_later(load):
    """Plain text says nothing about the format: a later message or line does."""
    use = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "weather", "input": {"n": 1}}]}
    back = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "4"}]}
    chat, called_one = [ASKED, DONE], [ASKED, use, back, DONE]
    for value, lines in (([chat, called_one], False), ([{"messages": chat}, {"messages": called_one}], True)):
        found = load(value, lines=lines)
        assert [one.metadata["format"] for one in found] == ["anthropic"] * 2
        assert results_of(found[1]) == [(1, "4")]
    (found,) = load(called_one, lines=True)
    assert results_of(found) == [(1, "4")]
    # also where the caller says that it is the other format, and where tools of both stand in one file
    for value in (called_one, [*called_one, ASKED, called((2, "a")), result("5", "a"), DONE]):
        (found,) = load(value, format="openai")
        assert results_of(found) == [(1, "4")]


@pytest.mark.parametrize("kind", ["tool_usage", "function", "my_result"])
def test_a_part_that_may_be_a_call_or_a_result_is_refused_by_name(load, kind):
    """Dropped in silence, it would change what is counted."""
    with pytest.raises(RecordsError, match=f"may be a call or a result, but parts of the type '{kind}'"):
        load([ASKED, {"role": "assistant", "content": [{"type": kind, "x": 1}]}])


def test_other_unknown_parts_leave_a_mark_and_a_doubt(load):
    """Each kind is said once."""
    odd = {"type": "hologram", "x": 1}
    with pytest.warns(DoubtfulRecords, match="parts of the unknown type 'hologram' were read as"):
        (found,) = load([{"role": "user", "content": [{"type": "text", "text": "See"}, odd]}, DONE])
    assert found.conversation[0].query == "See\n[hologram]"


def test_an_answer_that_stands_elsewhere_in_the_record_is_named(load):
    """A record that has no answer, and a member that may be it."""
    with pytest.warns(DoubtfulRecords, match="response may hold the answer, but it was not read"):
        (found,) = load({"messages": [ASKED], "response": "4 C"})
    assert found.conversation[0].assistant is None


def test_offered_tools_have_one_shape_whoever_lists_them():
    """Names, or definitions with a name and, where they have them, a description and a schema."""
    schema = {"type": "object"}
    whole = {"name": "w", "description": "d", "parameters": schema}
    for written in (
        [{"type": "function", "function": whole}],
        [{"type": "function", **whole}],
        [{"name": "w", "description": "d", "input_schema": schema}],
        [{"functionDeclarations": [whole]}],
        {"tools": [{"toolSpec": {"name": "w", "description": "d", "inputSchema": {"json": schema}}}]},
        {"w": {"description": "d", "inputSchema": {"jsonSchema": schema}}},
        json.dumps([whole, whole]),
    ):
        assert offered_tools(written) == [whole]
    assert offered_tools(["a", {"type": "web_search"}, {"googleSearch": {}}, 3, " ", None]) == [
        "a",
        {"name": "web_search"},
        {"name": "googleSearch"},
    ]
    assert offered_tools("no list") == offered_tools(None) == offered_tools(7) == []


REPLIED = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "A"}]}


@pytest.mark.parametrize(
    ("record", "name"),
    [
        (
            {"messages": [ASKED], "response": {"choices": [{"message": {"role": "assistant", "content": "A"}}]}},
            "openai",
        ),
        ({"messages": [ASKED], "system": "S", "response": REPLIED}, "anthropic"),
        (
            {"contents": "?", "response": {"candidates": [{"content": {"role": "model", "parts": [{"text": "A"}]}}]}},
            "gemini",
        ),
        (
            {
                "messages": [ASKED],
                "response": {"messages": [{"role": "assistant", "content": [{"type": "text", "text": "A"}]}]},
            },
            "vercel",
        ),
    ],
)
def test_a_reply_next_to_the_messages_of_its_request_is_the_answer(load, record, name):
    """Each as its provider writes it."""
    (found,) = load(record)
    assert (found.conversation[0].query, found.conversation[0].assistant) == ("?", "A")
    assert found.metadata["format"] == name
