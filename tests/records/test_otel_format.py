"""OpenTelemetry spans of generative AI systems, in today's names and in earlier ones."""

import copy
import io
import json
import math
import random
import time
import tracemalloc

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from strategies import json_values, reduced

from agentic_bayes.errors import DoubtfulRecords, RecordsError
from agentic_bayes.records.formats.detection import format_of
from agentic_bayes.records.read import read_conversations

TRACE = "0af7651916cd43dd8448eb211c80319c"


def typed(value):
    """A value as OTLP writes it."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value if math.isfinite(value) else "NaN"}
    if isinstance(value, list):
        return {"arrayValue": {"values": [typed(item) for item in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": pairs(value)}}
    return {} if value is None else {"stringValue": value}


def pairs(values):
    return [{"key": key, "value": typed(value)} for key, value in values.items()]


def event(name, time=0, **attributes):
    return {
        "name": name,
        "timeUnixNano": str(time),
        "attributes": pairs({k.replace("__", "."): v for k, v in attributes.items()}),
    }


def span(identity, parent, begin, attributes, *, trace=TRACE, events=(), status=None):
    return {
        "traceId": trace,
        "spanId": identity,
        "parentSpanId": parent,
        "name": "n",
        "startTimeUnixNano": str(begin),
        "endTimeUnixNano": str(begin + 10**9),
        "attributes": pairs(attributes),
        "events": list(events),
        "status": status or {},
    }


def exported(spans, *, service="shop", scopes="scopeSpans"):
    resource = {"attributes": pairs({"service.name": service})}
    return {"resourceSpans": [{"resource": resource, scopes: [{"scope": {"name": "x"}, "spans": list(spans)}]}]}


def part(text):
    return {"type": "text", "content": text}


ARGUMENTS = {"city": "Rome", "days": 2}
ASKED = [
    {"role": "user", "parts": [part("Hello")]},
    {"role": "assistant", "parts": [part("Hi!")]},
    {"role": "user", "parts": [part("Weather?")]},
]
CALLED = {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "look", "arguments": ARGUMENTS}]}
RETURNED = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "rain"}]}
ANSWERED = {"role": "assistant", "parts": [part("It rains.")], "finish_reason": "stop"}


def both(taken, given, names):
    return {"gen_ai.request.model": "m", f"gen_ai.usage.{names[0]}": taken, f"gen_ai.usage.{names[1]}": given}


NEW, OLD = ("input_tokens", "output_tokens"), ("prompt_tokens", "completion_tokens")


def current(*, as_text):
    """A turn with a tool call in today's names."""
    pack = json.dumps if as_text else lambda value: value
    system = {"gen_ai.system_instructions": pack([part("Be kind.")])}
    chat = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "p"}
    return [
        span("a", "", 1, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"}),
        span(
            "b",
            "a",
            2,
            {
                **chat,
                **both(10, 1, NEW),
                **system,
                "gen_ai.input.messages": pack(ASKED),
                "gen_ai.output.messages": pack([CALLED]),
            },
        ),
        span(
            "c",
            "a",
            3,
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "look",
                "gen_ai.tool.call.id": "c1",
                "gen_ai.tool.call.arguments": pack(ARGUMENTS),
                "gen_ai.tool.call.result": "rain",
            },
        ),
        span(
            "d",
            "a",
            4,
            {
                **chat,
                **both(20, 5, NEW),
                **system,
                "gen_ai.input.messages": pack([*ASKED, CALLED, RETURNED]),
                "gen_ai.output.messages": pack([ANSWERED]),
            },
        ),
    ]


def numbered(messages, answer):
    """Messages as attributes such as ``gen_ai.prompt.0.content``."""
    found = {}
    for side, listed in (("prompt", messages), ("completion", [answer])):
        for place, message in enumerate(listed):
            for key, value in message.items():
                if key == "tool_calls":
                    for number, call in enumerate(value):
                        found |= {f"gen_ai.{side}.{place}.tool_calls.{number}.{k}": v for k, v in call.items()}
                else:
                    found[f"gen_ai.{side}.{place}.{key}"] = value
    return found


PLAIN = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi!"},
    {"role": "user", "content": '[{"type": "text", "text": "Weather?"}]'},
]
PLAIN_CALL = {"role": "assistant", "tool_calls": [{"id": "c1", "name": "look", "arguments": json.dumps(ARGUMENTS)}]}
PLAIN_RESULT = {"role": "tool", "tool_call_id": "c1", "content": "rain"}
PLAIN_ANSWER = {"role": "assistant", "content": "It rains."}


def with_numbers():
    """The same turn in numbered attributes."""
    chat = {"gen_ai.system": "p", "llm.request.type": "chat"}
    first, second = numbered(PLAIN, PLAIN_CALL), numbered([*PLAIN, PLAIN_CALL, PLAIN_RESULT], PLAIN_ANSWER)
    return [
        current(as_text=True)[0],
        span("b", "a", 2, {**chat, **both(10, 1, OLD), **first}),
        span("d", "a", 4, {**chat, **both(20, 5, OLD), **second}),
    ]


def in_events(*, content):
    """The same turn in events of the spans, one per message or one for all of them."""
    tools = [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": json.dumps(ARGUMENTS)}}]
    call, answer = {"role": "assistant", "tool_calls": tools}, {"role": "assistant", "content": "It rains."}
    spans = [current(as_text=True)[0]]
    for identity, begin, usage, said, told in (
        ("b", 2, (10, 1), PLAIN, call),
        ("d", 4, (20, 5), [*PLAIN, call, PLAIN_RESULT], answer),
    ):
        if content:
            events = [
                event("gen_ai.content.prompt", gen_ai__prompt=json.dumps(said)),
                event("gen_ai.content.completion", gen_ai__completion=json.dumps([told])),
            ]
        else:
            events = [
                event(
                    f"gen_ai.{message['role']}.message",
                    **{"id" if key == "tool_call_id" else key: value for key, value in message.items()},
                )
                for message in said
            ]
            events.append(event("gen_ai.choice", index=0, message=json.dumps(told), finish_reason="stop"))
        attributes = {"gen_ai.system": "p", "gen_ai.operation.name": "chat", **both(*usage, OLD)}
        spans.append(span(identity, "a", begin, attributes, events=events))
    return spans


def in_details():
    """The same turn, its messages in one event per span."""
    spans = current(as_text=False)
    for one in (spans[1], spans[3]):
        moved = [pair for pair in one["attributes"] if "messages" in pair["key"] or "instructions" in pair["key"]]
        one["attributes"] = [pair for pair in one["attributes"] if pair not in moved]
        one["events"] = [{"name": "gen_ai.client.inference.operation.details", "attributes": moved}]
    return spans


WAYS = {
    "text": current(as_text=True),
    "structured": current(as_text=False),
    "details": in_details(),
    "numbered": with_numbers(),
    "events": in_events(content=False),
    "content events": in_events(content=True),
}


@pytest.fixture
def read(tmp_path):
    """The records of these documents, one per line, from a file whose name says nothing."""

    def run(*documents, **options):
        path = tmp_path / "f.json"
        path.write_text("\n".join(d if isinstance(d, str) else json.dumps(d) for d in documents), "utf-8")
        return list(read_conversations(path, **options))

    return run


def test_a_trace_is_a_turn_with_each_call_once(read):
    """The calls are told by models, by the messages that repeat them, and by the tools themselves."""
    (found,) = read(exported(current(as_text=True)))
    assert (found.session_id, found.task_id, found.assistant_id, found.context) == (TRACE, TRACE, "helper", "Be kind.")
    (turn,) = found.conversation
    assert (turn.query, turn.assistant, turn.error) == ("Weather?", "It rains.", None)
    (call,) = turn.agentic.tools_used
    assert (call.tool_name, call.parameters, call.result, call.step) == ("look", ARGUMENTS, "rain", 1)
    assert turn.metadata["tokens"] == {"input": 30, "output": 6}
    assert turn.metadata["messages_before"] == 2
    assert turn.metadata["model"] == "m"
    assert turn.metadata["seconds"] == pytest.approx(1.0)


@pytest.mark.parametrize("way", WAYS)
def test_all_generations_of_names_give_equal_records(read, way):
    """Messages as attributes, as numbered attributes and as events say the same."""
    assert read(exported(WAYS[way])) == read(exported(WAYS["text"]))
    assert read(exported(WAYS[way], scopes="instrumentationLibrarySpans")) == read(exported(WAYS["text"]))


@pytest.mark.parametrize("way", WAYS)
def test_spans_may_be_anywhere_in_the_file_and_may_come_twice(read, way):
    """One object or lines, any order, spans that were sent again: the records are equal."""
    spans = WAYS[way]
    expected = read(exported(spans))
    shuffle = random.Random(5)
    for _ in range(3):
        mixed = [*spans, *shuffle.sample(spans, 2)]
        shuffle.shuffle(mixed)
        assert read(exported(mixed)) == expected
        assert read(*(exported([one]) for one in mixed)) == expected
        assert read(json.dumps([exported([one]) for one in mixed])) == expected
        merged = {"resourceSpans": [r for one in mixed for r in exported([one])["resourceSpans"]]}
        assert read(json.dumps(merged, indent=1)) == expected


def turn_of(trace, begin, query, answer, **attributes):
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [part(query)]}]),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [part(answer)]}]),
        **{key.replace("__", "."): value for key, value in attributes.items()},
    }
    return span("s", "", begin, attributes, trace=trace)


def test_traces_of_one_conversation_are_its_turns_in_time(read):
    """Other traces are conversations of their own; all come in the order of time."""
    named = {"gen_ai__conversation__id": "talk"}
    spans = [turn_of("t3", 9, "c", "C", **named), turn_of("t2", 5, "x", "X"), turn_of("t1", 1, "a", "A", **named)]
    talk, other = read(exported(spans))
    assert [(t.qa_id, t.query, t.assistant) for t in talk.conversation] == [
        ("talk, turn 1", "a", "A"),
        ("talk, turn 2", "c", "C"),
    ]
    assert talk.metadata["traces"] == ["t1", "t3"]
    assert (other.session_id, other.task_id) == ("t2", "t2")


@pytest.mark.parametrize("name", ["task_id", "agentic_bayes.task_id", "test.case.id"])
def test_a_span_may_name_the_task(read, name):
    """Then several traces are trials of it."""
    found = read(exported([turn_of(f"t{n}", n, "?", "!", **{name.replace(".", "__"): 7}) for n in range(3)]))
    assert {c.task_id for c in found} == {"7"}
    assert {c.conversation[0].qa_id for c in found} == {"7, turn 1"}


def test_the_agent_is_that_of_the_spans_or_the_given_or_the_service(read):
    """In this order; at last, the name of the file."""
    assert read(exported(current(as_text=True)), agent="x")[0].assistant_id == "helper"
    plain = turn_of("t", 1, "?", "!")
    assert read(exported([plain]), agent="x")[0].assistant_id == "x"
    assert read(exported([plain]))[0].assistant_id == "shop"
    assert read({"resourceSpans": [{"scopeSpans": [{"spans": [plain]}]}]})[0].assistant_id == "f"


@pytest.mark.parametrize(
    ("attributes", "status", "error"),
    [
        ({"error.type": "timeout"}, {}, "timeout"),
        ({"error.type": "timeout"}, {"code": 2, "message": "too slow"}, "timeout: too slow"),
        ({}, {"code": "STATUS_CODE_ERROR"}, "the span ended with status ERROR"),
    ],
)
def test_a_model_or_agent_that_failed_is_an_error(read, attributes, status, error):
    """The turn has no answer then; a failure on the way that was overcome is none."""
    spans = current(as_text=True)
    spans[3]["attributes"] = [p for p in spans[3]["attributes"] if p["key"] != "gen_ai.output.messages"] + pairs(
        attributes
    )
    spans[3]["status"] = status
    (turn,) = read(exported(spans))[0].conversation
    assert (turn.error, turn.assistant) == (error, None)
    spans = current(as_text=True)
    spans[1]["attributes"] += pairs(attributes)
    assert read(exported(spans)) == read(exported(current(as_text=True)))


def test_a_turn_that_ends_with_a_call_has_no_answer(read):
    """The log ends there; what the agent waited for is said."""
    (turn,) = read(exported(current(as_text=True)[:3]))[0].conversation
    assert (turn.assistant, turn.error) == (None, "the log ends before the agent answered")
    assert turn.agentic.tools_used[0].result == "rain"
    (turn,) = read(exported(current(as_text=True)[:2]))[0].conversation
    assert turn.error == "the log ends before the agent answered: a call of 'look' had no result yet"


def test_spans_without_messages_are_a_turn_without_answer(read):
    """Whether programs record what is said is theirs to set; nobody can tell what was answered."""
    (turn,) = read(exported([span("s", "", 1, {"gen_ai.operation.name": "chat"})]))[0].conversation
    assert turn.error == "the spans hold no messages: was their content recorded?"
    assert turn.agentic is None


def test_calls_that_only_tools_tell_of_are_calls(read):
    """A tool that failed has its error as the result; a call within a span of the same call is that call."""
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"}
    spans = [
        current(as_text=True)[0],
        span("t1", "a", 2, tool | {"gen_ai.tool.call.arguments": '{"n": 1}'}),
        span("t2", "t1", 3, tool | {"gen_ai.tool.call.arguments": '{"n": 1}'}),
        span("t3", "a", 4, tool | {"error.type": "boom"}),
    ]
    (turn,) = read(exported(spans))[0].conversation
    assert [(c.parameters, c.result) for c in turn.agentic.tools_used] == [({"n": 1}, None), ({}, {"error": "boom"})]


def test_equal_calls_without_ids_are_counted_as_often_as_they_were_made(read):
    """The history of the last model call repeats those of the earlier ones."""
    call = {"role": "assistant", "parts": [{"type": "tool_call", "name": "look", "arguments": {"n": 1}}]}
    back = {"role": "tool", "parts": [{"type": "tool_call_response", "response": "r"}]}
    chat, spans = {"gen_ai.operation.name": "chat"}, []
    history = [ASKED[2]]
    for number, said in enumerate((call, call, ANSWERED)):
        messages = {"gen_ai.input.messages": json.dumps(history), "gen_ai.output.messages": json.dumps([said])}
        spans.append(span(f"s{number}", "a", number + 1, chat | messages))
        history = [*history, said, back]
    (turn,) = read(exported(spans))[0].conversation
    assert [(c.tool_name, c.result) for c in turn.agentic.tools_used] == [("look", "r"), ("look", "r")]
    assert (turn.query, turn.assistant) == ("Weather?", "It rains.")


def test_a_model_call_recorded_by_two_libraries_is_one(read):
    """Tokens of a span within another model call are not counted again."""
    spans = current(as_text=True)
    inner = copy.deepcopy(spans[1]) | {"spanId": "inner", "parentSpanId": "b"}
    assert read(exported([*spans, inner])) == read(exported(spans))


def test_the_query_is_that_of_the_outer_agent(read):
    """An agent that works for another has queries and calls of its own; the calls count, the query does not."""
    inner = [
        span("i", "c", 5, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "sub"}),
        turn_of(TRACE, 6, "subtask", "sub answer") | {"spanId": "j", "parentSpanId": "i"},
    ]
    (turn,) = read(exported([*current(as_text=True), *inner]))[0].conversation
    assert (turn.query, turn.assistant) == ("Weather?", "It rains.")
    agent = {"gen_ai.input.messages": json.dumps([{"role": "user", "parts": [part("Outer?")]}])}
    agent["gen_ai.output.messages"] = json.dumps([{"role": "assistant", "parts": [part("Outer.")]}])
    spans = current(as_text=True)
    spans[0]["attributes"] += pairs(agent)
    (turn,) = read(exported(spans))[0].conversation
    assert (turn.query, turn.assistant) == ("Outer?", "Outer.")


def rated(*ratings):
    """Events with scores."""
    names = ("name", "score.value")
    return [
        event("gen_ai.evaluation.result", n, **{f"gen_ai.evaluation.{k}": v for k, v in zip(names, one, strict=True)})
        for n, one in enumerate(ratings)
    ]


@pytest.mark.parametrize(
    ("value", "score"), [(0.75, 0.75), (1, 1), (0, 0), (float("nan"), None), (None, None), ("x", None)]
)
def test_an_evaluation_is_the_recorded_score(read, value, score):
    """If it is a number from 0 to 1 or a label; its notes are kept."""
    spans = current(as_text=True)
    spans[0]["events"] = rated(("right", value))
    spans[0]["events"][0]["attributes"] += pairs({"gen_ai.evaluation.score.label": "ok"})
    (turn,) = read(exported(spans))[0].conversation
    assert turn.recorded_score == score
    assert turn.metadata["scores"]["right"]["label"] == "ok"
    assert ("not_scored" in turn.metadata) == (score is None)


def test_among_several_evaluations_one_is_chosen_by_name(read, problems):
    """All are kept; none is taken because it comes first, and one off the scale is refused."""
    spans = current(as_text=True)
    spans[0]["events"] = rated(("late", 0.1), ("right", 7))
    (turn,) = read(exported(spans))[0].conversation
    assert turn.recorded_score is None
    assert "several scores, 'late', 'right': choose one by name" in turn.metadata["not_scored"]
    assert read(exported(spans), scorer="late")[0].conversation[0].recorded_score == 0.1
    assert read(exported(spans), scorer="right", scale=(0, 10))[0].conversation[0].recorded_score == 0.7
    assert "score 'right' must be a number in [0, 1], got 7" in problems(exported(spans), scorer="right")[0][2]


def test_spans_of_other_things_are_counted(read):
    """They are left out, and this is said; so are batches that hold no spans."""
    others = [span(f"o{n}", "a", 1, {"http.request.method": "GET"}) for n in range(3)]
    with pytest.warns(DoubtfulRecords, match=r"spans ignored because they have no GenAI data .*: 3 of 7"):
        assert read(exported([*others, *current(as_text=True)])) == read(exported(current(as_text=True)))
    with pytest.warns(DoubtfulRecords, match="batches of metrics ignored, .*: 1"):
        assert len(read({"resourceMetrics": []}, exported(current(as_text=True)))) == 1
    lonely = span("e", "", 1, {"gen_ai.operation.name": "embeddings"}, trace="t")
    with pytest.warns(DoubtfulRecords, match="traces ignored because they call no model, agent or tool: 1"):
        assert len(read(exported([lonely, *current(as_text=True)]))) == 1


def test_a_trace_of_several_agent_runs_is_one_turn_and_this_is_said(read):
    """Nothing tells steps of one answer from several turns."""
    spans = [turn_of(TRACE, n, q, a) | {"spanId": f"s{n}"} for n, q, a in ((1, "one", "1"), (2, "two", "2"))]
    for one in spans:
        one["attributes"][0] = pairs({"gen_ai.operation.name": "invoke_agent"})[0]
    with pytest.warns(DoubtfulRecords, match="traces with several agent runs, .*: 1"):
        (found,) = read(exported(spans))
    assert [(t.query, t.assistant) for t in found.conversation] == [("one", "2")]


def test_a_file_without_a_turn_is_refused(problems):
    """Whether it has other spans, none, or no list of them."""
    assert "holds no conversation: none of its" in problems(exported([span("o", "", 1, {})]))[0][2]
    assert "holds no conversation: none of its" in problems({"resourceSpans": []})[0][2]
    assert problems(exported(current(as_text=True)), {"other": 1}) == [("line 2", "", "must have 'resourceSpans'")]
    assert problems({"resourceSpans": 5})[0][2] == "must be a list, got 5"


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"traceId": None}, "traceId", "must be given, got null"),
        ({"spanId": " "}, "spanId", "must not be blank"),
        ({"spanId": 5}, "spanId", "must be text, got 5"),
        ({"startTimeUnixNano": "soon"}, "startTimeUnixNano", "must be a whole number, or the text of one, got 'soon'"),
        ({"attributes": {}}, "attributes", "must be a list, got {}"),
        ({"attributes": [5]}, "attributes[0]", "must be an object, got 5"),
        ({"attributes": [{"value": {}}]}, "attributes[0].key", "must be given, got nothing"),
        (
            {"attributes": [{"key": "k", "value": {"intValue": "x"}}]},
            "attributes[0].value.intValue",
            "must be a whole number, or the text of one, got 'x'",
        ),
        (
            {"attributes": [{"key": "k", "value": {"boolValue": 1}}]},
            "attributes[0].value",
            "must hold stringValue, boolV",
        ),
        (
            {"attributes": pairs({"gen_ai.input.messages": "[cut o"})},
            "attributes.gen_ai.input.messages",
            "must be a list",
        ),
        ({"events": [{"attributes": 1}]}, "events[0].attributes", "must be a list, got 1"),
    ],
)
def test_a_bad_span_is_named_with_its_place(problems, change, field, message):
    """The others are checked as well."""
    spans = current(as_text=True)
    bad = {**spans[1], **change}
    found = problems(exported([spans[0], bad, {**spans[2], "spanId": None}]))
    assert found[0][:2] == ("resourceSpans[0].scopeSpans[0].spans[1]", field)
    assert found[0][2].startswith(message)
    assert found[-1][:2] == ("resourceSpans[0].scopeSpans[0].spans[2]", "spanId")


def test_two_different_spans_with_one_id_are_refused(problems):
    """Nobody can tell which was meant."""
    one = turn_of("t", 1, "?", "!")
    found = problems(exported([one, turn_of("t", 1, "?", "no")]))
    assert found == [
        (
            "resourceSpans[0].scopeSpans[0].spans[1]",
            "spanId",
            "must be unique in its trace, got 's' for two different spans",
        )
    ]


def test_values_nested_without_end_are_refused(problems):
    """Whether in an attribute or in JSON text within one."""
    nested = '{"arrayValue": {"values": [' * 200 + '{"stringValue": "x"}' + "]}}" * 200
    text = json.dumps(exported([turn_of("t", 1, "?", "!", deep="DEEP")])).replace('{"stringValue": "DEEP"}', nested)
    assert "nested deeper" in problems(text)[0][2]
    deep = "[" * 300 + "]" * 300
    messages = {"gen_ai__input__messages": '[{"role": "user", "parts": [{"type": "x", "y": ' + deep + "}]}]"}
    assert "nested deeper" in problems(exported([turn_of("t", 1, "?", "!", **messages)]))[0][2]


def test_spans_that_lie_within_each_other_end_nothing(read):
    """A circle of parents is no endless loop."""
    spans = current(as_text=True)
    spans[0]["parentSpanId"] = "d"
    assert read(exported(spans))[0].conversation[0].query == "Weather?"


CHAT = {"gen_ai.operation.name": "chat"}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"}


def calling(*calls):
    """The output of a model that makes these calls."""
    parts = [{"type": "tool_call", "name": "look", **call} for call in calls]
    return {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}])}


def test_each_call_that_a_model_asks_for_is_a_call(read):
    """Without ids, equal calls of several answers are several calls; with one id, calls of different tools are two."""
    spans = [span(f"s{n}", "", n + 1, CHAT | calling({"arguments": {"n": 1}})) for n in range(3)]
    assert len(read(exported(spans))[0].conversation[0].agentic.tools_used) == 3
    twice = calling({"id": "x", "name": "f"}, {"id": "x", "name": "g"})
    both = [{"type": "tool_call_response", "id": "x", "response": text} for text in ("1", "2")]
    asked = {"gen_ai.input.messages": json.dumps([ASKED[2], {"role": "tool", "parts": both}])}
    (turn,) = read(exported([span("a", "", 1, CHAT | twice), span("b", "", 2, CHAT | asked)]))[0].conversation
    assert [(c.tool_name, c.result) for c in turn.agentic.tools_used] == [("f", "1"), ("g", "2")]


def test_results_of_no_call_are_counted_and_said(read):
    """Also where several spans repeat them; one whose call only the tool's own span tells of is not lost."""
    back = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "zz", "response": "lost"}]}
    spans = current(as_text=True)
    for one in (spans[0], spans[3]):
        one["attributes"] = [p for p in one["attributes"] if p["key"] != "gen_ai.input.messages"]
        one["attributes"] += pairs({"gen_ai.input.messages": json.dumps([ASKED[2], CALLED, RETURNED, back])})
    with pytest.warns(DoubtfulRecords, match="tool results left out because they belong to no recorded call: 1"):
        (turn,) = read(exported(spans))[0].conversation
    assert turn.metadata["results_without_call"] == 1
    tool = span("t", "a", 3, TOOL | {"gen_ai.tool.call.id": "zz"})
    (turn,) = read(exported([*spans, tool]))[0].conversation
    assert [c.result for c in turn.agentic.tools_used] == ["rain", "lost"]
    assert "results_without_call" not in turn.metadata


def test_a_result_unlike_that_of_its_call_belongs_to_none(read):
    """Reported twice or written in another way it is the same; with other words it is the result of a lost call."""

    def returned(text):
        parts = [{"type": "tool_call_response", "id": "x", "response": text}]
        return CHAT | {"gen_ai.input.messages": json.dumps([ASKED[2], {"role": "tool", "parts": parts}])}

    asked = span("a", "", 1, CHAT | calling({"id": "x"}))
    spans = [asked, span("b", "", 2, returned("4 C")), span("c", "", 3, returned('{"t": "4 C"}'))]
    (turn,) = read(exported(spans))[0].conversation
    assert [call.result for call in turn.agentic.tools_used] == ["4 C"]
    assert "results_without_call" not in turn.metadata
    with pytest.warns(DoubtfulRecords, match="belong to no recorded call: 1"):
        read(exported([asked, span("b", "", 2, returned("4 C")), span("c", "", 3, returned("snow"))]))


@pytest.mark.slow
@pytest.mark.timeout(3_000)  # two minutes alone, more where others want the same cores
@pytest.mark.parametrize("shape", ["chats", "chats with ids", "chain of chats", "tools", "chain of tools", "scores"])
def test_time_and_memory_grow_with_the_number_of_spans_in_a_trace(read, shape):
    """60,000, side by side or one in the other: four times as many take four times as much, not sixteen times."""

    def turn_of(number):
        log, expected = many_spans(shape, number)
        begin = time.process_time()
        (turn,) = read(log)[0].conversation
        seconds = time.process_time() - begin
        assert len(turn.agentic.tools_used) == expected
        assert shape != "scores" or len(turn.metadata["scores"]) == number
        return seconds

    assert turn_of(60_000) < 8 * turn_of(15_000)
    peaks = []
    for number in (250, 1_000):
        tracemalloc.start()
        turn_of(number)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 6 * peaks[0]


def many_spans(shape, number):
    """A log of one trace, and how many calls are in it."""
    spans, expected = [], number
    for n in range(number):
        parent = f"s{n - 1}" if "chain" in shape else "a"
        if "chat" in shape:
            call = {"arguments": {"n": n % 3}} | ({"id": str(n)} if "ids" in shape else {})
            attributes = CHAT | calling(call)
        else:
            name = f"t{n}" if "chain" in shape else "look"
            attributes = TOOL | {"gen_ai.tool.name": name, "gen_ai.tool.call.arguments": f'{{"n": {n % 3}}}'}
        spans.append(span(f"s{n}", parent, n + 1, attributes))
    if shape == "chain of chats":
        expected = 1  # one call of a model, told by each
    if shape == "scores":
        spans, expected = current(as_text=True), 1
        rated = {"gen_ai__evaluation__name": "x", "gen_ai__evaluation__score__value": 0.5}
        spans[0]["events"] = [event("gen_ai.evaluation.result", n, **rated) for n in range(number)]
    return exported(spans), expected


@pytest.mark.parametrize("text", ['[{"type": []}]', '[{"type": {}}]', '[{"type": [], "text": "x"}]'])
def test_what_only_resembles_parts_of_a_message_is_text(read, text):
    """Whatever its types are, it was said so."""
    messages = {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": text, "gen_ai.completion.0.content": "!"}
    (turn,) = read(exported([span("s", "", 1, CHAT | messages)]))[0].conversation
    assert turn.query == text


@pytest.mark.parametrize("part_of", ["gen_ai.prompt.{}.content", "gen_ai.completion.0.tool_calls.{}.name"])
def test_numbers_of_messages_have_few_digits(problems, part_of):
    """No list of messages is that long, and no number of that many digits can be read."""
    for digits in (10, 5000):
        ((_, field, message),) = problems(exported([span("s", "", 1, CHAT | {part_of.format("9" * digits): "x"})]))
        assert field == "attributes"
        assert message.startswith("must count messages and calls by numbers of at most 9 digits, got 'gen_ai.")


@pytest.mark.parametrize("key", ["startTimeUnixNano", "endTimeUnixNano"])
@pytest.mark.parametrize("value", ["1e308", "9" * 4000, '"' + "9" * 20 + '"', str(1 << 64)])
def test_times_fit_into_64_bits(problems, key, value):
    """Nanoseconds beyond that are none."""
    text = json.dumps(exported([turn_of("t", 1, "?", "!") | {key: "TIME"}])).replace('"TIME"', value)
    ((_, field, message),) = problems(text)
    assert field == key
    assert message.startswith("must be a whole number of at most 64 bits, got ")


def test_json_text_with_a_repeated_key_is_not_read_as_its_last_value(read, problems):
    """Arguments are kept as text, and messages are refused: nobody can tell which value was meant."""
    twice = '{"n": 1, "n": 2}'
    (turn,) = read(exported([span("t", "", 1, TOOL | {"gen_ai.tool.call.arguments": twice})]))[0].conversation
    assert turn.agentic.tools_used[0].parameters == {"(not JSON)": twice}
    messages = {"gen_ai.output.messages": '[{"role": "assistant", "parts": [], "parts": []}]'}
    assert "must be a list of messages" in problems(exported([span("s", "", 1, CHAT | messages)]))[0][2]
    for text in ("oops", '[{"name": "f", "name": "g"}]'):
        events = [event("gen_ai.choice", tool_calls=text)]
        found = problems(exported([span("s", "", 1, CHAT, events=events)]))
        assert found[0][1:] == ("gen_ai.choice.tool_calls", f"must be a list, got {text!r}")


def test_circles_of_spans_give_the_same_turn_in_any_order(read):
    """Which span is taken for the outermost does not depend on the file."""
    spans = current(as_text=True)
    spans[0]["parentSpanId"] = "d"
    expected = read(exported(spans))
    for turned in (spans[::-1], spans[2:] + spans[:2]):
        assert read(exported(turned)) == expected


def test_a_file_of_spans_is_recognised_by_what_is_in_it():
    """By the key at its top, be it one object, lines or a list."""

    def recognised(data):
        return format_of(io.BufferedReader(io.BytesIO(json.dumps(data).encode())))

    document = exported(current(as_text=True))
    assert recognised(document) == recognised([document]) == recognised({"resourceLogs": []}) == "otel"
    assert recognised({"spans": []}) == "native"


def test_an_object_cut_at_any_byte_is_refused(problems):
    """Truncation never passes as a shorter file."""
    text = json.dumps(exported(current(as_text=True)))
    for end in range(0, len(text), 41):
        assert problems(text[:end], format="otel")


fuzz = settings(max_examples=reduced(200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
KEYS = [
    *["gen_ai.operation.name", "gen_ai.agent.name", "gen_ai.conversation.id", "gen_ai.input.messages"],
    *["gen_ai.output.messages", "gen_ai.system_instructions", "gen_ai.prompt", "gen_ai.completion.0.content"],
    *["gen_ai.prompt.0.role", "gen_ai.prompt.1.tool_calls.0.name", "gen_ai.tool.name", "gen_ai.tool.call.arguments"],
    *["gen_ai.tool.call.result", "gen_ai.usage.input_tokens", "error.type", "task_id", "gen_ai.request.choice.count"],
]
EVENTS = [
    "gen_ai.choice",
    "gen_ai.user.message",
    "gen_ai.tool.message",
    "gen_ai.evaluation.result",
    "gen_ai.content.prompt",
]


@pytest.fixture
def outcome(read):
    """The records of these documents, or None where they were refused."""

    def run(*documents):
        try:
            return read(*documents, format="otel")
        except RecordsError as error:
            refusal = error
        assert refusal.problems
        assert str(refusal).encode("utf-8")
        return None

    return run


@given(st.sampled_from(KEYS), st.sampled_from(EVENTS), json_values, st.booleans(), st.integers(0, 3))
@example("gen_ai.prompt", "gen_ai.choice", [[], {}], True, 1)
@fuzz
@pytest.mark.filterwarnings("ignore::agentic_bayes.errors.DoubtfulRecords")
def test_any_value_in_any_attribute_is_read_or_refused(outcome, key, name, value, as_text, place):
    """No value crashes the reader, and no other trace goes missing."""
    spans = current(as_text=True)
    value = json.dumps(value) if as_text else value
    spans[place]["attributes"] = [p for p in spans[place]["attributes"] if p["key"] != key] + pairs({key: value})
    spans[place]["events"] = [event(name, content=value, message=value, gen_ai__evaluation__score__value=value)]
    found = outcome(exported([*spans, turn_of("other", 9, "?", "!")]))
    assert found is None or [c.conversation[0].query for c in found if c.session_id == "other"] == ["?"]


@given(st.sampled_from([*current(as_text=True)[1]]), json_values)
@fuzz
@pytest.mark.filterwarnings("ignore::agentic_bayes.errors.DoubtfulRecords")
def test_any_value_in_any_field_of_a_span_is_read_or_refused(outcome, key, value):
    """The same for what is not an attribute."""
    spans = current(as_text=True)
    spans[1][key] = value
    found = outcome(exported([*spans, turn_of("other", 9, "?", "!")]))
    assert found is None or "other" in {c.session_id for c in found}


@given(json_values)
@fuzz
def test_arbitrary_json_is_refused(outcome, value):
    """Valid JSON of another kind holds no spans."""
    assert outcome(json.dumps(value)) is None
    assert outcome(json.dumps({"resourceSpans": value})) is None
    assert outcome(json.dumps({"resourceSpans": [value]})) is None
