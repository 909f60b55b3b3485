"""LangChain messages: objects and all their dumps give the same records, and back again the same calls."""

import json

import pytest
from cuts import STEPS, cuts
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    HumanMessageChunk,
    SystemMessage,
    ToolMessage,
    messages_to_dict,
)
from places import places_in, put
from strategies import json_objects, json_values, reduced, text

from agentic_bayes.errors import DoubtfulRecords, RecordsError
from agentic_bayes.records.formats.messages.langchain import conversation_from_langchain, to_langchain
from agentic_bayes.records.read import read_conversations

fuzz = settings(max_examples=reduced(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

MESSAGES = [
    SystemMessage("Be kind."),
    AIMessage("Hello!"),
    HumanMessage([{"type": "text", "text": "Rome "}, "or Oslo?"]),
    AIMessage(
        [
            {"type": "thinking", "thinking": "secret"},
            {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "id": "a", "name": "weather", "input": {"city": "Rome"}},
        ],
        tool_calls=[{"name": "weather", "args": {"city": "Rome"}, "id": "a"}],
        invalid_tool_calls=[{"name": "weather", "args": '{"city": "Oslo', "id": "b", "error": None}],
        additional_kwargs={"tool_calls": [{"id": "a", "type": "function", "function": {"name": "w", "arguments": ""}}]},
        usage_metadata={"input_tokens": 7, "output_tokens": 2, "total_tokens": 9},
        response_metadata={"model_name": "m-1"},
    ),
    ToolMessage("bad call", tool_call_id="b", status="error"),
    ToolMessage([{"type": "text", "text": "sunny"}], tool_call_id="a", artifact={"not": "kept"}),
    AIMessageChunk("Rome 😀", usage_metadata={"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}),
    HumanMessageChunk("Bye"),
    ChatMessage("Bye!", role="assistant"),
]
CALLS = [
    {"tool_name": "weather", "parameters": {"city": "Rome"}, "result": "sunny", "step": 1},
    {
        "tool_name": "weather",
        "parameters": {"(not JSON)": '{"city": "Oslo'},
        "result": {"status": "error", "content": "bad call"},
        "step": 2,
    },
]
RECORD = {
    "session_id": "log",
    "assistant_id": "v1",
    "task_id": "log",
    "trial": None,
    "recorded_score": None,
    "context": "Be kind.",
    "metadata": {"format": "langchain", "opening": "Hello!", "model": "m-1"},
    "conversation": [
        {
            "qa_id": "turn 1",
            "query": "Rome or Oslo?",
            "assistant": "Rome 😀",
            "agentic": {"tools_used": CALLS},
            "metadata": {
                "before_calls": ["Let me look."],
                "reasoning": ["secret"],
                "tokens": {"input": 8, "output": 3},
            },
        },
        {"qa_id": "turn 2", "query": "Bye", "assistant": "Bye!", "agentic": {"tools_used": []}},
    ],
}
DUMPS = {
    "messages_to_dict": messages_to_dict(MESSAGES),
    "dumpd": [dumpd(message) for message in MESSAGES],
    "model_dump": [message.model_dump(mode="json") for message in MESSAGES],
}
SHORT = [HumanMessage("?"), AIMessage("!")]
ARGUMENTS = {"session_id": "log", "agent": "v1"}


def as_lines(values):
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


def dumped(conversation):
    return conversation.model_dump(mode="json", exclude_unset=True)


@pytest.fixture
def load(tmp_path):
    """The records of a text or value as dicts."""

    def run(data, **options):
        path = tmp_path / "log.json"
        path.write_bytes(
            data if isinstance(data, bytes) else (data if isinstance(data, str) else json.dumps(data)).encode()
        )
        return [dumped(one) for one in read_conversations(path, agent="v1", **options)]

    return run


@pytest.mark.parametrize("form", DUMPS)
def test_every_dump_in_every_layout_gives_the_same_record(load, form):
    """A list, a state, and JSON Lines of messages, lists or states, in each of the three forms."""
    dump = DUMPS[form]
    for layout in (
        dump,
        {"messages": dump},
        [dump],
        [{"messages": dump}],
        as_lines(dump),
        as_lines([dump]),
        as_lines([{"messages": dump}]),
    ):
        assert load(layout) == [RECORD]


def test_objects_give_the_record_of_their_dumps():
    """A list of messages needs no file."""
    for messages in (MESSAGES, *DUMPS.values()):
        assert dumped(conversation_from_langchain(messages, **ARGUMENTS)) == RECORD


def test_fields_that_messages_do_not_have_are_given_by_the_caller():
    """Task, trial, language and metadata join what the messages say."""
    found = conversation_from_langchain(
        SHORT, session_id="s", agent="v2", task_id="t", trial=3, language="french", metadata={"x": 1}
    )
    assert (found.session_id, found.assistant_id, found.task_id, found.trial) == ("s", "v2", "t", 3)
    assert (found.language, found.metadata) == ("french", {"format": "langchain", "x": 1})
    # without a task, a conversation is its own
    assert conversation_from_langchain(SHORT, session_id="s", agent="v2").task_id == "s"


def test_objects_become_records_and_again_objects_with_the_same_calls():
    """Names, arguments, results and answers survive the way there and back, and so does the whole record."""
    record = conversation_from_langchain(MESSAGES, **ARGUMENTS)
    again = to_langchain(record)
    answer = next(message for message in again if isinstance(message, AIMessage) and message.tool_calls)
    assert [(call["name"], call["args"]) for call in answer.tool_calls] == [("weather", {"city": "Rome"})]
    assert [(call["name"], call["args"]) for call in answer.invalid_tool_calls] == [("weather", '{"city": "Oslo')]
    back = dumped(conversation_from_langchain(again, **ARGUMENTS))
    for turn, other in zip(RECORD["conversation"], back["conversation"], strict=True):
        assert {**turn, "metadata": 0} == {**other, "metadata": 0}
    assert back["conversation"][0]["metadata"] == {"before_calls": ["Let me look."]}
    assert (back["context"], back["metadata"]["opening"]) == ("Be kind.", "Hello!")


calls = st.fixed_dictionaries({"name": text.filter(str.strip), "args": json_objects})
chats = st.lists(
    st.tuples(text, st.lists(st.tuples(calls, st.none() | text), max_size=3), text), min_size=1, max_size=4
)


@given(chats, st.sampled_from([*DUMPS, "objects"]))
@example([("", [], " ")], "messages_to_dict")
@example([(" ", [({"name": "f", "args": {}}, None)], " ")], "objects")
@fuzz
def test_any_chat_keeps_its_calls_on_every_way(load, chat, form):
    """Whatever is asked, called and answered is in the record, and in the objects made of it."""
    messages = []
    for query, made, answer in chat:
        named = [{**call, "id": f"c{n}", "type": "tool_call"} for n, (call, _) in enumerate(made)]
        messages += [HumanMessage(query), *([AIMessage("", tool_calls=named)] if named else [])]
        messages += [
            ToolMessage(result, tool_call_id=f"c{n}") for n, (_, result) in enumerate(made) if result is not None
        ]
        messages.append(AIMessage(answer))
    expected = [
        (
            query,
            [(call["name"], call["args"], "none" if result is None else result) for call, result in made],
            answer,
        )
        for query, made, answer in chat
    ]

    def content(record):
        return [
            (
                turn["query"],
                [(c["tool_name"], c["parameters"], c.get("result", "none")) for c in turn["agentic"]["tools_used"]],
                turn["assistant"],
            )
            for turn in record["conversation"]
        ]

    record = conversation_from_langchain(messages, **ARGUMENTS)
    if form == "objects":
        found = dumped(conversation_from_langchain(to_langchain(record), **ARGUMENTS))
    else:
        forms = {
            "messages_to_dict": messages_to_dict,
            "dumpd": lambda several: [dumpd(one) for one in several],
            "model_dump": lambda several: [one.model_dump() for one in several],
        }
        (found,) = load(forms[form](messages), format="langchain")
    assert content(dumped(record)) == content(found) == expected


@pytest.mark.parametrize(
    ("answers", "answer"),
    [(["", " "], " "), ([" ", ""], " "), ([" ", "a", "\n"], "a"), (["a", " ", "b"], "a\n\nb"), (["", ""], "")],
)
def test_blank_answers_give_way_to_text_and_are_kept_where_there_is_none(answers, answer):
    """White space is an answer only if the agent said nothing else."""
    chat = [HumanMessage("q"), *map(AIMessage, answers)]
    (turn,) = conversation_from_langchain(chat, **ARGUMENTS).conversation
    assert (turn.assistant, turn.error) == (answer, None)


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        (AIMessage([{"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}]), {"x": 1}),
        (AIMessage([{"type": "tool_call", "id": "a", "name": "f", "args": {"x": 1}}]), {"x": 1}),
        (AIMessage([{"type": "function_call", "call_id": "a", "name": "f", "arguments": '{"x": 1}'}]), {"x": 1}),
        (AIMessage("", additional_kwargs={"function_call": {"name": "f", "arguments": '{"x": 1}'}}), {"x": 1}),
        (
            {
                "type": "ai",
                "content": "",
                "additional_kwargs": {"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{x"}}]},
            },
            {"(not JSON)": "{x"},
        ),
    ],
)
def test_a_call_is_found_wherever_the_provider_left_it_and_counts_once(message, arguments):
    """In blocks of the content or in additional_kwargs, where there is no tool_calls."""
    answer = FunctionMessage("one", name="f")
    (turn,) = conversation_from_langchain([SHORT[0], message, answer, SHORT[1]], **ARGUMENTS).conversation
    (call,) = turn.agentic.tools_used
    assert (call.tool_name, call.parameters, call.result) == ("f", arguments, "one")
    assert turn.assistant == "!"


def test_an_unfinished_chat_has_an_error_that_survives_the_way_back():
    """A log that ends with a call has no answer."""
    messages = [SHORT[0], AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "a"}])]
    record = conversation_from_langchain(messages, **ARGUMENTS)
    for found in (record, conversation_from_langchain(to_langchain(record), **ARGUMENTS)):
        assert found.conversation[0].error == "the log ends before the agent answered: a call of 'f' had no result yet"
        assert found.conversation[0].assistant is None


def test_results_go_to_their_calls_and_others_are_said(load):
    """Of calls with the same id the name of the tool decides; a result of no call is counted."""
    calls = [{"name": name, "args": {}, "id": "same", "type": "tool_call"} for name in ("f", "g")]
    messages = [SHORT[0], AIMessage("Bye.", tool_calls=calls)]
    messages += [ToolMessage(name, tool_call_id="same", name=name) for name in ("g", "f")]
    record = conversation_from_langchain(messages, **ARGUMENTS)
    assert [call.result for call in record.conversation[0].agentic.tools_used] == ["f", "g"]
    assert record.conversation[0].assistant == "Bye."
    lost = ToolMessage("x", tool_call_id="other", name="f")
    with pytest.warns(DoubtfulRecords, match="some tool results belong to no recorded call"):
        (one,) = load([message.model_dump() for message in [*messages, lost, SHORT[1]]])
    assert one["conversation"][0]["metadata"]["results_without_call"] == 1


def test_arguments_with_a_repeated_key_are_kept_as_text():
    """Nobody can tell which value was meant."""
    answer = AIMessage("", additional_kwargs={"function_call": {"name": "f", "arguments": '{"x": 1, "x": 2}'}})
    (turn,) = conversation_from_langchain([SHORT[0], answer, SHORT[1]], **ARGUMENTS).conversation
    assert turn.agentic.tools_used[0].parameters == {"(not JSON)": '{"x": 1, "x": 2}'}


@pytest.mark.parametrize(
    "blocks",
    [
        [
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": "x"}},
            {"type": "web_search_tool_result", "tool_use_id": "s", "content": {"found": 1}},
        ],
        [
            {"type": "server_tool_call", "id": "s", "name": "web_search", "args": {"q": "x"}},
            {"type": "server_tool_result", "tool_call_id": "s", "status": "success", "output": {"found": 1}},
        ],
        [
            {"type": "web_search_call", "id": "s", "status": "completed", "q": "x"},
            {"type": "web_search_tool_result", "tool_use_id": "s", "content": {"found": 1}},
        ],
    ],
)
def test_tools_that_the_provider_runs_are_calls_with_results(load, blocks):
    """They stand among the parts of the answer, next to thoughts and the agent's own calls."""
    said = [{"type": "text", "text": "Let me look."}, *blocks, {"type": "thinking", "thinking": "Good."}]
    own = [{"name": "book", "args": {"n": 1}, "id": "b"}]
    messages = [SHORT[0], AIMessage([*said, {"type": "text", "text": "A"}], tool_calls=own)]
    messages.append(ToolMessage("booked", tool_call_id="b"))
    (turn,) = load([message.model_dump() for message in messages])[0]["conversation"]
    assert turn["assistant"] == "A"
    assert turn["metadata"] == {"before_calls": ["Let me look."], "reasoning": ["Good."]}
    assert [(call["tool_name"], call["parameters"], call["result"]) for call in turn["agentic"]["tools_used"]] == [
        ("web_search", {"q": "x"}, {"found": 1}),
        ("book", {"n": 1}, "booked"),
    ]


def test_a_state_may_name_session_task_and_agent(load):
    """What stands beside the messages is used."""
    about = {"thread_id": "s", "task_id": "t", "trial": 1, "agent": "v7", "score": 1}
    (one,) = load({**about, "messages": messages_to_dict(SHORT)})
    assert (one["session_id"], one["task_id"], one["trial"], one["assistant_id"]) == ("s", "t", 1, "v7")
    assert one["recorded_score"] == 1


HUMAN = {"type": "human", "content": "?"}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ([HUMAN, {"type": "alien", "content": "x"}], r"\[1\].type: must be human, ai, .*, got 'alien'"),
        ([HUMAN, {"type": "remove", "content": "", "id": "x"}], r"\[1\].type: must be human"),
        ([HUMAN, {"type": "chat", "role": "alien", "content": "x"}], r"\[1\].role: must be user, .*, got 'alien'"),
        ([HUMAN, {"content": "x"}], r"\[1\].type: must be given, got nothing"),
        ([HUMAN, {"type": "human", "data": {}}], r"\[1\].data.content: must be given, got nothing"),
        ([HUMAN, {"type": "human", "data": 5}], r"\[1\].data: must be an object, got 5"),
        ([HUMAN, {"lc": 1, "type": "not_implemented", "id": ["AIMessage"], "kwargs": {}}], "must be 'constructor'"),
        ([HUMAN, {"lc": 1, "type": "constructor", "id": [5], "kwargs": {}}], r"\[1\].id: must end with the name"),
        ([HUMAN, {"type": "ai", "content": "", "tool_calls": [{"args": {}}]}], r"tool_calls\[0\].name: must be given"),
        (
            [HUMAN, {"type": "ai", "content": "", "usage_metadata": {"input_tokens": -1}}],
            "input_tokens: must be a whole",
        ),
        ([{"type": "ai", "content": "x"}], "line 1: must hold at least one user message"),
        ({"messages": [HUMAN, 5]}, r"messages\[1\]: must be an object, got 5"),
        (as_lines([HUMAN, {"type": "ai", "content": 5}]), "line 2, content: must be text, got 5"),
    ],
)
def test_what_is_wrong_is_said_in_terms_of_the_file(load, data, problem):
    """Place, rule and value are in the message."""
    with pytest.raises(RecordsError, match=problem):
        load(data)


def test_what_is_wrong_with_objects_is_said_too():
    """No file, no line: the place in the list."""
    with pytest.raises(RecordsError, match=r"messages, \[1\]: must be an object, got 'x'"):
        conversation_from_langchain([SHORT[0], "x"], **ARGUMENTS)
    with pytest.raises(RecordsError, match="must hold at least one user message"):
        conversation_from_langchain([], **ARGUMENTS)


@pytest.mark.parametrize("step", STEPS)
def test_a_list_cut_anywhere_is_refused(tried, step):
    """Truncation never passes as a shorter conversation."""
    for dump in DUMPS.values():
        data = json.dumps([dump[2], dump[6]], ensure_ascii=False).encode()
        assert len(tried(data)) == 1
        assert not any(tried(data[:end], format="langchain") for end in cuts(data, step))


@pytest.mark.parametrize("step", STEPS)
def test_lines_cut_anywhere_are_refused_or_lose_whole_lines_only(tried, step):
    """A cut between two messages cannot be seen; any other is refused."""
    data = as_lines(DUMPS["model_dump"][2:5]).encode()
    ends = {at for at in range(len(data) + 1) if data[at : at + 1] in (b"\n", b"") or data[at - 1 : at] == b"\n"}
    assert not any(tried(data[:end], format="langchain") for end in cuts(data, step) if end not in ends)
    assert tried(data) == tried(data[:-1]) != tried(data[: data.index(b"\n")])


PLACES = [(form, place) for form, dump in DUMPS.items() for place in places_in(dump) if place]


ODD = [None, True, -1, "", "x", "\ud800", [], {}, [[]], [{}], {"type": 5}, float("nan")]


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.slow), 8])
@pytest.mark.parametrize("number", range(len(ODD)))
def test_a_wrong_value_in_any_field_is_refused_or_leaves_the_other_messages_as_they_are(tried, number, every):
    """Whatever stands wherever, the file is refused, or what was said elsewhere is all there."""
    said = ["Rome or Oslo?", "Let me look.", "sunny", "bad call", "Rome 😀", "Bye!"]
    for form, place in PLACES[number % every :: every]:
        found = tried(put(DUMPS[form], place, ODD[number]), format="langchain")
        if found is None:
            continue
        assert len(found) == 1
        texts = json.dumps(found, ensure_ascii=False)
        assert texts.encode()
        # without its calls, the results of a message are counted, not kept
        orphans = found[0]["conversation"][0].get("metadata", {}).get("results_without_call", 0)
        assert sum(text not in texts for text in said) <= 1 + orphans


@given(st.sampled_from(PLACES), json_values)
@fuzz
def test_any_value_in_any_field_crashes_nothing(tried, form_and_place, value):
    """A record comes back, or a clear error."""
    form, place = form_and_place
    tried(put(DUMPS[form], place, value), format="langchain")


@given(st.binary(max_size=100) | json_values.map(lambda value: json.dumps(value).encode()))
@fuzz
def test_arbitrary_content_is_refused(tried, data):
    """No random bytes and no random JSON are a chat."""
    assert tried(data, format="langchain") is None


@pytest.mark.parametrize("form", DUMPS)
def test_reordered_and_repeated_messages_are_all_read(tried, form):
    """The chat twice, backwards and rotated: the questions and the calls are all there."""
    dump = DUMPS[form]
    for messages, asked in ((dump * 2, 2), (dump[::-1], 1), (dump[4:] + dump[:4], 1)):
        (one,) = tried(messages)
        queries = "\n\n".join(turn["query"] for turn in one["conversation"])
        assert queries.count("Rome or Oslo?") == queries.count("Bye") == asked
        assert sum(len(turn["agentic"]["tools_used"]) for turn in one["conversation"]) == 2 * asked


@pytest.mark.parametrize("form", DUMPS)
def test_all_thousand_messages_are_there(load, form):
    """A long chat has every turn."""
    dump = DUMPS[form]
    chat = [dump[2], dump[3], dump[5], dump[4], dump[6]] * 200
    (one,) = load(chat)
    assert len(one["conversation"]) == 200
    assert all(turn["agentic"]["tools_used"] == CALLS for turn in one["conversation"])


@pytest.mark.parametrize("depth", [70, 150, 900, 100_000])
def test_deep_arguments_are_refused_or_read_and_never_crash(tried, depth):
    """No depth runs out of stack."""
    call = {"type": "ai", "content": "x", "tool_calls": [{"name": "f", "args": "DEEP", "id": "a"}]}
    deep = '{"a":' * depth + "1" + "}" * depth
    found = tried(json.dumps([HUMAN, call]).replace('"DEEP"', deep))
    assert (found is None) == (depth > 100)


def test_pieces_of_a_streamed_message_are_refused(tmp_path):
    """Their texts are no paragraphs and the arguments of their calls are incomplete; added up they are one message."""
    pieces = [AIMessageChunk("It is ", id="r"), AIMessageChunk("4 C", id="r")]
    path = tmp_path / "f.json"
    path.write_text(json.dumps(messages_to_dict([HumanMessage("?"), *pieces])))
    with pytest.raises(RecordsError, match="is a piece of a streamed message: add the pieces up"):
        read_conversations(path)
    path.write_text(json.dumps(messages_to_dict([HumanMessage("?"), pieces[0] + pieces[1]])))
    (found,) = read_conversations(path)
    assert found.conversation[0].assistant == "It is 4 C"
