"""Rules for every trace: whose trial it is, who answers, what is a call, and what is not known."""

import json

import pytest
from test_otel_format import CHAT, TRACE, calling, exported, pairs, part, span, turn_of

from agentic_bayes.errors import DoubtfulRecords, RecordsError
from agentic_bayes.records.read import read_conversations


@pytest.fixture
def read(tmp_path):
    """The records of these documents, one per line."""

    def run(*documents, **options):
        path = tmp_path / "f.jsonl"
        path.write_text("\n".join(map(json.dumps, documents)), "utf-8")
        return list(read_conversations(path, **options))

    return run


def chat(identity, parent, begin, asked, said, *, trace=TRACE):
    """A model call: messages in, message parts out."""
    sides = {"input": asked, "output": [{"role": "assistant", "parts": said}]}
    packed = {f"gen_ai.{side}.messages": json.dumps(messages) for side, messages in sides.items()}
    return span(identity, parent, begin, CHAT | packed, trace=trace)


QUERY = {"role": "user", "parts": [part("Weather?")]}


def kinds(kind, **more):
    return {"openinference.span.kind": kind, **{key.replace("__", "."): value for key, value in more.items()}}


def test_a_span_around_the_agent_or_the_resource_names_the_trial(read):
    """Task, trial, reference and session; text that is a number is one."""
    around = {"test.case.id": "oslo", "trial": "3", "agentic_bayes.reference": "Rain.", "session.id": "s"}
    inner = turn_of(TRACE, 2, "Weather?", "Rain.") | {"parentSpanId": "w"}
    (found,) = read(exported([span("w", "", 1, around), inner]))
    assert (found.session_id, found.task_id, found.trial, found.assistant_id) == ("s", "oslo", 3, "shop")
    assert found.conversation[0].ground_truth_assistant == "Rain."
    document = exported([turn_of(TRACE, 2, "Weather?", "Rain.")])
    document["resourceSpans"][0]["resource"]["attributes"] += pairs({"task_id": "rome", "agentic_bayes.trial": 0})
    (found,) = read(document)
    assert (found.task_id, found.trial) == ("rome", 0)


def test_traces_of_one_session_that_name_several_tasks_are_several_conversations(read):
    """A session id that a whole evaluation shares joins nothing."""
    named = [("oslo", 0), ("oslo", 1), ("rome", 0)]
    spans = [
        turn_of(f"t{n}", n + 1, "?", "!", session__id="s", task_id=task, trial=trial)
        for n, (task, trial) in enumerate(named)
    ]
    found = read(exported(spans))
    assert [(one.task_id, one.trial) for one in found] == named
    assert [one.session_id for one in found][:2] == ["s, oslo, trial 0", "s, oslo, trial 1"]
    spans[1]["attributes"] = [pair for pair in spans[1]["attributes"] if pair["key"] not in ("task_id", "trial")]
    assert len(read(exported(spans[:2]))) == 1  # the second says nothing else


def test_the_default_name_of_a_service_is_no_agent(read):
    """Nobody chose it."""
    (found,) = read(exported([turn_of(TRACE, 1, "?", "!")], service="unknown_service:python"))
    assert found.assistant_id == "f"


@pytest.mark.parametrize("kind", ["new_tool_use", "call_v2", "search_result"])
def test_an_unknown_part_that_may_be_a_call_or_a_result_is_refused(read, kind):
    """By name, with the kinds that are known."""
    spans = [chat("a", "", 1, [QUERY], [{"type": kind, "x": 1}])]
    with pytest.raises(
        RecordsError, match=f"may be a call, a result or an answer, and its kind is not known: '{kind}'"
    ):
        read(exported(spans))


def test_other_things_of_unknown_kinds_are_counted_in_a_warning(read):
    """Parts, spans of the conventions and spans of OpenInference."""
    spans = [
        chat("a", "", 1, [QUERY], [{"type": "emoji"}, part("Rain.")]),
        span("b", "", 2, {"gen_ai.operation.name": "dream"}),
        span("c", "", 3, kinds("ORACLE")),
    ]
    with pytest.warns(DoubtfulRecords, match="could not be read: content parts of kind 'emoji' .1., spans of kind 'O"):
        (found,) = read(exported(spans))
    assert found.conversation[0].assistant == "Rain."


@pytest.mark.parametrize(("item", "what"), [(0, "are not messages .1."), ({"answer": "Snow."}, "without content .1.")])
def test_what_is_no_message_among_messages_is_counted_and_the_others_are_read(read, item, what):
    """One odd item does not turn a dialogue into data; an answer that is only spoken is one."""
    said = {"role": "assistant", "content": None, "audio": {"transcript": "Rain."}}
    about = {"type": "GENERATION", "id": "g", "traceId": "t", "startTime": "2026-01-01T00:00:00Z"}
    with pytest.warns(DoubtfulRecords, match=what):
        (found,) = read(about | {"input": [{"role": "user", "content": "Weather?"}, item], "output": said})
    (turn,) = found.conversation
    assert (turn.query, turn.assistant) == ("Weather?", "Rain.")


def test_a_program_that_returns_blank_text_though_its_model_answered_is_doubtful(read):
    """The user got the blank, so that it is the answer."""
    outer = {"id": "a", "trace_id": "t", "run_type": "chain", "name": "n", "inputs": {"question": "?"}, "outputs": " "}
    inner = outer | {
        "id": "b",
        "parent_run_id": "a",
        "run_type": "llm",
        "outputs": {"role": "assistant", "content": "!"},
    }
    with pytest.warns(DoubtfulRecords, match="returned blank text though its model had answered .*: 1"):
        (found,) = read(*(one | {"start_time": "2026-01-01T00:00:00Z"} for one in (outer, inner)))
    assert found.conversation[0].assistant == " "


def test_a_call_of_a_tool_that_the_provider_runs_is_a_call(read):
    """An item of the Responses API holds the call, and perhaps its result."""
    item = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "Oslo"}}
    told = {"type": "mcp_call", "id": "m_1", "name": "look", "arguments": '{"n": 1}', "output": "found"}
    values = {"input.value": '[{"role": "user", "content": "?"}]'}
    values["output.value"] = json.dumps({"output": [item, told, {"role": "assistant", "content": "Rain."}]})
    (turn,) = read(exported([span("a", "", 1, kinds("LLM") | values)]))[0].conversation
    calls = [(c.tool_name, c.parameters, c.result) for c in turn.agentic.tools_used]
    assert calls == [("web_search", {"query": "Oslo"}, None), ("look", {"n": 1}, "found")]
    assert (turn.query, turn.assistant) == ("?", "Rain.")


def test_an_empty_text_is_no_id_of_a_call(read):
    """Calls without ids are matched by what they are."""
    calls = [{"id": "", "arguments": {"n": n}} for n in (1, 2)]
    back = [{"type": "tool_call_response", "id": "", "response": text} for text in ("one", "two")]
    said = json.loads(calling(*calls)["gen_ai.output.messages"])
    history = [QUERY, *said, {"role": "tool", "parts": back}]
    spans = [span("a", "", 1, CHAT | calling(*calls)), chat("b", "", 2, history, [part("Rain.")])]
    (turn,) = read(exported(spans))[0].conversation
    assert [(c.parameters, c.result) for c in turn.agentic.tools_used] == [({"n": 1}, "one"), ({"n": 2}, "two")]


def test_a_call_whose_arguments_another_span_wraps_is_one_call(read):
    """Without an id, as text, by position or in an object: the values are the same."""
    asked = span("a", "", 1, CHAT | calling({"id": "c1", "arguments": {"city": "Oslo"}}))
    for wrapped in ('{"args": ["Oslo"], "kwargs": {}}', '{"request": {"input": {"city": "Oslo"}}}', '"Oslo"', "Oslo"):
        ran = span("b", "", 2, kinds("TOOL", tool__name="look", input__value=wrapped, output__value="4 C"))
        (turn,) = read(exported([asked, ran]))[0].conversation
        assert [(c.parameters, c.result) for c in turn.agentic.tools_used] == [({"city": "Oslo"}, "4 C")], wrapped
    other = span("b", "", 2, kinds("TOOL", tool__name="look", input__value='{"city": "Rome"}', output__value="20 C"))
    assert len(read(exported([asked, other]))[0].conversation[0].agentic.tools_used) == 2


def test_a_model_call_that_two_libraries_record_side_by_side_is_one(read):
    """At the same time, with the same ids; later it would be another."""
    spans = [span(one, "", 1, CHAT | calling({"id": "c1"})) for one in ("a", "b")]
    assert len(read(exported(spans))[0].conversation[0].agentic.tools_used) == 1
    spans[1] = span("b", "", 5 * 10**9, CHAT | calling({"id": "c1"}))
    assert len(read(exported(spans))[0].conversation[0].agentic.tools_used) == 2


@pytest.mark.parametrize("kind", ["GUARDRAIL", "EVALUATOR"])
def test_what_checks_on_the_agent_answers_nobody_and_calls_nothing(read, kind):
    """Its model calls come last in time."""
    judge = chat("j", "g", 5, [{"role": "user", "parts": [part("Is it right?")]}], [part("Yes.")])
    made = span("k", "g", 6, kinds("TOOL", tool__name="look"))
    spans = [chat("a", "", 1, [QUERY], [part("Rain.")]), span("g", "", 4, kinds(kind)), judge, made]
    (turn,) = read(exported(spans))[0].conversation
    assert (turn.query, turn.assistant, turn.agentic.tools_used) == ("Weather?", "Rain.", ())


def test_of_several_drafts_the_first_is_the_answer_and_this_is_said(read):
    """As a reply with several choices gives them."""
    drafts = [{"index": n, "message": {"role": "assistant", "content": text}} for n, text in enumerate(("one", "two"))]
    values = {"input.value": "Weather?", "output.value": json.dumps({"choices": drafts})}
    with pytest.warns(DoubtfulRecords, match="several drafts of a message .1."):
        (turn,) = read(exported([span("a", "", 1, kinds("LLM") | values)]))[0].conversation
    assert (turn.query, turn.assistant) == ("Weather?", "one")
    one = chat("a", "", 1, [QUERY], [])
    choices = [{"role": "assistant", "parts": [part(text)], "finish_reason": "stop"} for text in ("one", "two")]
    one["attributes"][-1:] = pairs({"gen_ai.output.messages": json.dumps(choices)})
    with pytest.warns(DoubtfulRecords, match="several drafts of a message .1."):
        (turn,) = read(exported([one]))[0].conversation
    assert turn.assistant == "one"


def test_a_trace_whose_models_are_asked_different_things_is_doubtful(read):
    """Two turns of a session in one trace, or a call that makes a title, are not the steps of one turn."""
    again = [QUERY, {"role": "assistant", "parts": [part("Rain.")]}, {"role": "user", "parts": [part("And now?")]}]
    with pytest.warns(DoubtfulRecords, match="model calls were asked different things .*: 1"):
        (found,) = read(
            exported([chat("a", "", 1, [QUERY], [part("Rain.")]), chat("b", "", 2, again, [part("Snow.")])])
        )
    assert [(turn.query, turn.assistant) for turn in found.conversation] == [("And now?", "Snow.")]


def test_log_records_alone_are_model_calls(read):
    """An exporter of logs writes no spans; records of other things are counted."""
    body = {
        "gen_ai.user.message": {"content": "Weather?"},
        "gen_ai.choice": {"index": 0, "message": {"content": "Rain."}},
    }
    records = [
        {
            "timeUnixNano": str(time),
            "traceId": TRACE,
            "spanId": "a",
            "eventName": name,
            "body": {"kvlistValue": {"values": pairs(content)}},
            "attributes": pairs({"gen_ai.system": "p", "test.case.id": "oslo"}),
        }
        for time, (name, content) in enumerate(body.items(), start=1)
    ]
    resource = {"attributes": pairs({"service.name": "shop"})}
    other = {"timeUnixNano": "3", "body": {"stringValue": "GET /"}}
    document = {"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": [*records, other]}]}]}
    with pytest.warns(DoubtfulRecords, match="log records and batches of metrics ignored, .*: 1"):
        (found,) = read(document)
    assert (found.assistant_id, found.task_id) == ("shop", "oslo")
    assert [(t.query, t.assistant) for t in found.conversation] == [("Weather?", "Rain.")]
    records[0]["traceId"] = ""
    with pytest.raises(RecordsError, match=r"a record of the event 'gen_ai.user.message' must name its trace and span"):
        read(document)


def test_the_text_of_a_whole_run_does_not_say_that_no_tool_was_called(read):
    """Calls that nobody recorded are not no calls."""
    (turn,) = read(exported([span("a", "", 1, kinds("CHAIN", input__value="?", output__value="!"))]))[0].conversation
    assert (turn.query, turn.assistant, turn.agentic) == ("?", "!", None)
    state = json.dumps({"plan": ["x"], "done": True})
    inner = chat("b", "a", 2, [QUERY], [part("Rain.")])
    (turn,) = read(exported([span("a", "", 1, kinds("CHAIN", output__value=state)), inner]))[0].conversation
    assert turn.assistant == "Rain."  # the state of a program is not what it said


def test_states_that_continue_each_other_are_one_run_and_equal_words_are_not(read):
    """LangGraph gives messages ids; without ids two runs may just begin alike."""

    def states(*ids):
        said = [
            {"type": "human", "content": "?", "id": ids[0]},
            {"type": "ai", "content": "!", "id": ids[1], "tool_calls": []},
        ]
        return {"messages": said[:1]}, {"messages": said}

    (found,) = read(*states("1", "2"))
    assert [(t.query, t.assistant) for t in found.conversation] == [("?", "!")]
    broken, whole = read(*states(None, None))
    assert broken.conversation[0].error
    assert whole.conversation[0].assistant == "!"
    assert len(read(*states("1", "2"), *states("3", "4"))) == 2
    assert len(read([*states("1", "2"), *states("3", "4")])) == 2


def test_updates_of_a_stream_may_be_the_items_of_a_list(read):
    """As ``json.dump(list(graph.stream(…)))`` writes them, however few they are; lines may begin with no subgraph."""
    updates = [
        {"start": {"messages": [{"type": "human", "content": "?", "id": "1"}]}},
        {"model": {"messages": [{"type": "ai", "content": "!", "id": "2"}]}},
    ]
    for lines in ([updates], [[["updates", one] for one in updates]], [[[], one] for one in updates]):
        (found,) = read(*lines)
        assert [(t.query, t.assistant) for t in found.conversation] == [("?", "!")]
