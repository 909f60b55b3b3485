"""Traces that tools wrote, read call by call."""

import json
from pathlib import Path

import pytest

from agentic_bayes.errors import DoubtfulRecords, RecordsError
from agentic_bayes.records.read import read_conversations

FILES = Path(__file__).parent / "files"

WEATHER = ("weather", {"city": "Oslo"}, "4 C")
IN_ROME = ("weather", {"city": "Rome"}, "20 C")
TURN = ("How warm in Oslo?", "It is 4 C in Oslo.", WEATHER)
BOTH = ("How warm in Oslo and Rome?", "It is 4 C in Oslo and 20 C in Rome.", WEATHER, IN_ROME)
HANDED_OVER = (*BOTH[:2], ("transfer_to_wx", {}, '{"assistant": "wx"}'), WEATHER, IN_ROME)


def reading(path, **options):
    """The trials of a file: agent, task, trial, and per turn the query, the answer and the calls with their results."""
    return [
        (
            one.assistant_id,
            one.task_id,
            one.trial,
            *(
                (
                    turn.query,
                    turn.assistant,
                    *(
                        (call.tool_name, call.parameters, call.result if call.has_result else "no result")
                        for call in (turn.agentic.tools_used if turn.agentic else ())
                    ),
                )
                for turn in one.conversation
            ),
        )
        for one in read_conversations(FILES / path, **options)
    ]


SPOKEN_WEATHER = TURN[:2]
IN_ADK = (
    "Oslo and Rome?",
    "Oslo 4 C, Rome 20 C.",
    *((*call[:2], {"result": call[2]}) for call in (WEATHER, IN_ROME)),
)
EXAMPLES = [f"00000000-0000-0000-0000-00000000000{n}" for n in (1, 2)]

READINGS = {
    # one call per turn, though two spans report it with different wrappings
    "otel/otel_trl_langchain.jsonl": [("LangGraph", "t1", None, TURN, TURN)],
    # the wrapper names the task: two trials of it
    "otel/otel_trl_openai.jsonl": [("wx-agent", "oslo", None, TURN)] * 2,
    "otel/otel_testcase.jsonl": [("wx-agent", "oslo", None, TURN)] * 2,
    "otel/otel_oinf_openai.jsonl": [
        ("wx-agent", "1988f6a1f97bfffebf89eb2c9b964384", None, TURN),
        ("wx-agent", "ca2725e2cb0c592a1d9b17b9120243d1", None, TURN),
    ],
    "otel/otel_logfire_openai.jsonl": [
        ("otel_logfire_openai", "01a222328e87d2d172ce48809619d89d", None, SPOKEN_WEATHER),
        ("otel_logfire_openai", "01a222328eb86e643af9cabb7955c2f8", None, SPOKEN_WEATHER),
    ],
    # ids that repeat: the arguments and the order tell the calls apart
    "otel/otel_same_call_id.json": [
        (
            "otel_same_call_id",
            "a" * 32,
            None,
            ("Oslo and Rome?", "4 and 20", ("weather", {"city": "Oslo"}, "4"), ("weather", {"city": "Rome"}, "20")),
        )
    ],
    # the agent to whom the first one handed the user over speaks last
    "otel/otel_hand_off_nested.json": [
        ("root", "a" * 32, None, ("Oslo and Rome?", "4 and 20", ("transfer_to_weather", {}, "no result")))
    ],
    "otel/otel_oinf_langchain.jsonl": [("wx-agent", "both", None, BOTH)],
    "otel/otel_oinf_agents.jsonl": [("front", "c778241846bffb21bfbe77c2c9c0718b", None, HANDED_OVER)],
    "otel/otel_trl_workflow.jsonl": [("wx-agent", "s1", None, BOTH)],
    # the messages are in log records, the names in the span around them
    "otel/otel_openai_v2_logs.jsonl": [("wx-agent", "both", None, BOTH)],
    "otel/otel_openai_v2_console.json": [("wx-agent", "both", None, BOTH)],
    "otel/otel_langfuse_sdk.jsonl": [("wx-agent", "44cbecf370b0080bcfb2968654543e0a", None, BOTH)],
    "otel/otel_pydantic_ai.jsonl": [("wx", "01a224e7-c69e-71d4-8086-13e68bcab0de", None, BOTH)],
    # an output tool ends the run: what it was given is the answer
    "otel/otel_pydantic_output.jsonl": [
        (
            "wx",
            "01a224e8-47ad-70de-bc0f-1316079ecde7",
            None,
            ("How warm in Oslo?", '{"degrees":4}', ("final_result", {"degrees": 4}, "no result")),
        )
    ],
    # the requests stand in attributes of its own, the results once more in a span "(merged tools)"
    "otel/otel_adk.jsonl": [("weather_bot", "s1", None, IN_ADK)],
    # results with the made-up id of another call
    "otel/otel_adk_semconv.jsonl": [("weather_bot", "s1", None, IN_ADK)],
    "otel/otel_strands.jsonl": [
        (
            "Strands Agents",
            "s1",
            None,
            (
                "Oslo and Rome?",
                "Oslo 4 C, Rome unknown.\n",
                WEATHER,
                (*IN_ROME[:2], {"status": "error", "content": "Error: down"}),
            ),
        )
    ],
    "otel/ai_sdk.jsonl": [("wx-agent", "oslo", None, TURN)],
    "langsmith/langsmith_run.json": [("langsmith_run", "01a2222e-7766-74bc-a278-86812b3c07f3", None, TURN)],
    "langsmith/langchain_runs.jsonl": [("wx", "both", None, BOTH)],
    "langsmith/openai_runs.jsonl": [("wx", "01a224da-396a-7777-8651-7e343160c9a0", None, BOTH)],
    "langsmith/evaluate_rows.jsonl": [
        ("brief-sheep-37", EXAMPLES[0], None, SPOKEN_WEATHER),
        ("brief-sheep-37", EXAMPLES[1], None, ("How warm in Rome?", "It is 20 C in Rome.")),
    ]
    * 2,
    "langgraph/lg_stream_updates.jsonl": [("lg_stream_updates", "lg_stream_updates", None, ("", *TURN[1:]))],
    **{f"langgraph/{one}.jsonl": [(one, one, None, BOTH)] for one in ("lg_values", "lg_both", "lg_subgraphs")},
    "mlflow/mlflow_trace.json": [
        ("mlflow_trace", "How oslo", None, ("How oslo", "4 C", ("tool", {"city": "Oslo"}, "4 C")))
    ],
    "mlflow/mlflow_openai.json": [("wx", "tr-5262cc851896b5629a02794a5b1944b5", None, BOTH)],
    # the SDK exports no text of the Responses API
    "openai_agents/agents_sdk_trace.json": [
        ("wx", "trace_8c1acd0861f24fc39a9c8ce27364ff45", None, ("", None, WEATHER))
    ],
    "openai_agents/responses.jsonl": [
        ("front", "trace_fb39b8ce9dac474492d31fe752ec81c7", None, ("", None, WEATHER, IN_ROME))
    ],
    "openai_agents/hand_off.jsonl": [("front", "trace_8cd4de6aeac648ac930de83200460fed", None, HANDED_OVER)],
    # two runs in one trace are two turns
    "openai_agents/chat_completions.jsonl": [
        ("wx", "trace_feac09bba7ad41f5b7b648a6442d6ea4", None, BOTH),
        ("wx", "chat-1", None, TURN, ("And Rome?", "It is 20 C in Rome.", IN_ROME)),
    ],
    "langfuse/trace.json": [("wx", "oslo", 2, TURN)],
    "langfuse/observations.jsonl": [("wx", "chat-1", None, TURN)],
}


@pytest.mark.filterwarnings("ignore::agentic_bayes.errors.DoubtfulRecords")
@pytest.mark.parametrize("name", READINGS)
def test_a_file_that_a_tool_wrote_is_read_as_it_happened(name):
    """Each call once, with its result; the answer is the last thing said to the user."""
    assert reading(name) == READINGS[name]


ASKED = {"role": "user", "content": "Warm?"}
MADE = {"type": "tool_use", "id": "c", "name": "weather", "input": {"city": "Oslo"}}
TOLD = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "4 C"}]}
IN_GEMINI = [
    {"role": "user", "parts": [{"text": "Warm?"}]},
    {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": {"city": "Oslo"}}}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": "4 C"}}]},
]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        # a request and a reply of Gemini, a content alone
        (
            [{"contents": IN_GEMINI[:1]}, {"contents": IN_GEMINI}],
            [{"candidates": [{"content": IN_GEMINI[1]}]}, {"role": "model", "parts": [{"text": "4 C."}]}],
        ),
        # blocks of Anthropic without their message
        (
            [[ASKED], [ASKED, {"role": "assistant", "content": [MADE]}, TOLD]],
            [{"role": "assistant", "content": [MADE]}, [{"type": "text", "text": "4 C."}]],
        ),
    ],
)
def test_what_a_model_was_given_and_gave_is_read_in_the_form_of_any_provider(tmp_path, asked, said):
    """A call or an answer in a generation of Langfuse does not vanish because its form is that of another provider."""
    about = {"traceId": "t", "type": "GENERATION", "endTime": None}
    times = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z")
    rows = [
        {**about, "id": time, "startTime": time, "input": given, "output": returned}
        for time, given, returned in zip(times, asked, said, strict=True)
    ]
    (tmp_path / "rows.json").write_text(json.dumps(rows), "utf-8")
    ((*_, turn),) = reading(tmp_path / "rows.json")
    assert turn == ("Warm?", "4 C.", WEATHER)


def test_a_tool_of_langchain_that_failed_is_the_call_that_was_asked_for(tmp_path):
    """Its arguments are text as Python writes it, and it returned nothing that names the call."""
    call = {"name": "weather", "args": {"city": "Oslo"}, "id": "c", "type": "tool_call"}
    reply = {"type": "ai", "content": "", "tool_calls": [call]}
    run = {"trace_id": "t", "parent_run_id": None, "extra": {}, "name": "weather"}
    runs = [
        {**run, "id": "a", "run_type": "llm", "start_time": "2026-01-01T00:00:00", "error": None}
        | {"inputs": {"messages": [ASKED]}, "outputs": reply},
        {**run, "id": "b", "run_type": "tool", "start_time": "2026-01-01T00:00:01", "error": "down"}
        | {"inputs": {"input": "{'city': 'Oslo'}"}, "outputs": None},
    ]
    (tmp_path / "runs.json").write_text(json.dumps(runs), "utf-8")
    ((*_, turn),) = reading(tmp_path / "runs.json")
    assert turn == ("Warm?", None, (*WEATHER[:2], {"error": "down"}))


def test_feedback_is_a_score_and_the_outputs_of_the_example_are_the_reference():
    """LangSmith's rows of ``evaluate``."""
    first, second, *_ = read_conversations(FILES / "langsmith/evaluate_rows.jsonl")
    assert [one.conversation[0].recorded_score for one in (first, second)] == [1, 0]
    assert second.conversation[0].ground_truth_assistant == "It is 21 C in Rome."
    assert first.conversation[0].agentic is None  # rows hold no runs of tools


def test_one_of_several_scores_is_chosen_by_name():
    """MLflow's assessments and Langfuse's scores."""
    (unsure,) = read_conversations(FILES / "mlflow/mlflow_trace.json")
    assert unsure.conversation[0].recorded_score is None
    assert "several scores, 'yesno', 'correct'" in unsure.conversation[0].metadata["not_scored"]
    assert unsure.conversation[0].ground_truth_assistant == "4 C"
    for path in ("mlflow/mlflow_trace.json", "langfuse/trace.json"):
        (chosen,) = read_conversations(FILES / path, scorer="correct")
        assert chosen.conversation[0].recorded_score == 1


def test_the_tools_on_offer_and_the_thoughts_are_kept():
    """They are no part of the calls and of the answer."""
    (found,) = read_conversations(FILES / "otel/otel_oinf_agents.jsonl")
    assert [tool["name"] for tool in found.metadata["available_tools"]] == ["transfer_to_wx", "weather"]
    assert found.conversation[0].metadata["reasoning"] == ["I need the weather."]
    (named,) = read_conversations(FILES / "openai_agents/hand_off.jsonl")
    assert named.metadata["available_tools"] == ["weather"]


def test_agents_outside_of_the_tasks_of_the_sdk_are_doubtful(tmp_path):
    """A trace of two tasks of which one cannot be told is one turn, which is said."""
    lines = [json.loads(line) for line in (FILES / "openai_agents/chat_completions.jsonl").read_text().splitlines()]
    tasks = [line["span_data"] for line in lines if line.get("span_data", {}).get("name") == "task"]
    del tasks[-1]["data"]
    path = tmp_path / "trace.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    with pytest.warns(DoubtfulRecords, match="traces with several agent runs, each read as one turn"):
        list(read_conversations(path))


def test_what_a_stream_or_trace_does_not_hold_is_said():
    """The query of updates, and the texts of the Responses API."""
    with pytest.warns(DoubtfulRecords, match="updates do not hold what the user asked"):
        list(read_conversations(FILES / "langgraph/lg_stream_updates.jsonl"))
    with pytest.warns(DoubtfulRecords, match="texts of responses, of which the SDK exports only the id"):
        (found,) = read_conversations(FILES / "openai_agents/responses.jsonl")
    assert found.conversation[0].error == "the spans hold no messages: was their content recorded?"


def test_fields_reach_the_attributes_of_any_span_and_of_the_resource():
    """What they say comes before what the format says."""
    fields = {"agent": "service.name", "task": "test.case.id", "session": "gen_ai.response.id"}
    with pytest.raises(RecordsError, match="must be unique within an agent"):
        reading("otel/otel_testcase.jsonl", fields=fields)
    fields = {"agent": "telemetry.sdk.name", "task": "gen_ai.request.model"}
    assert [one[:2] for one in reading("otel/otel_testcase.jsonl", fields=fields)] == [
        ("opentelemetry", "gpt-4o-mini")
    ] * 2
    assert reading("langsmith/openai_runs.jsonl", fields={"agent": "session_name"})[0][0] == "wx-v1"
    assert reading("openai_agents/hand_off.jsonl", fields={"agent": "workflow_name"})[0][0] == "Agent workflow"


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("langsmith/openai_runs.jsonl", "runs"),
        ("langfuse/observations.jsonl", "data"),
        ("mlflow/mlflow_openai.json", "traces"),
        ("openai_agents/chat_completions.jsonl", "data"),
    ],
)
def test_a_page_that_a_service_returned_holds_the_same_records(name, key, tmp_path):
    """In an object or a list, as well as line by line."""
    lines = [json.loads(line) for line in (FILES / name).read_text("utf-8").splitlines()]
    path = tmp_path / f"{Path(name).stem}.json"
    for document in ({key: lines, "meta": {}}, lines, [{key: lines}]):
        path.write_text(json.dumps(document), "utf-8")
        assert [one.conversation for one in read_conversations(path)] == [
            one.conversation for one in read_conversations(FILES / name)
        ]


def test_spans_of_a_data_frame_of_phoenix_are_read_and_its_csv_is_refused_with_the_lines_that_write_it(tmp_path):
    """A column per attribute, messages as lists of objects with dotted names; CSV holds them as Python's text."""
    ids, kind = {"context.trace_id": "0" * 31 + "1"}, "attributes.openinference.span.kind"
    asked = [{"message.role": "user", "message.content": "How warm?"}]
    call = {
        "tool_call.id": "c",
        "tool_call.function.name": "weather",
        "tool_call.function.arguments": '{"city": "Oslo"}',
    }
    tool = {
        "attributes.tool.name": "weather",
        "attributes.input.value": '{"city": "Oslo"}',
        "attributes.output.value": "4 C",
    }
    rows = [
        {"parent_id": None, kind: "AGENT", "attributes.input.value": "How warm?", "attributes.output.value": "4 C."},
        {
            "parent_id": f"{1:016x}",
            kind: "LLM",
            "attributes.llm.input_messages": asked,
            "attributes.llm.output_messages": [{"message.role": "assistant", "message.tool_calls": [call]}],
        },
        {"parent_id": f"{1:016x}", kind: "TOOL", **tool},
    ]
    times = [dict.fromkeys(("start_time", "end_time"), f"2026-01-01T00:00:{n:02d}+00:00") for n in range(3)]
    rows = [{**ids, "context.span_id": f"{n + 1:016x}", "name": "n", **times[n], **row} for n, row in enumerate(rows)]
    (tmp_path / "spans.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    ((*_, turn),) = reading(tmp_path / "spans.jsonl")
    assert turn == ("How warm?", "4 C.", WEATHER)
    (tmp_path / "spans.csv").write_text("context.trace_id,context.span_id,name\n1,2,n\n", "utf-8")
    with pytest.raises(RecordsError, match=r"Phoenix's spans as CSV; .*\n    spans = px\.Client") as caught:
        read_conversations(tmp_path / "spans.csv")
    assert 'orient="records", lines=True' in str(caught.value)


def test_a_result_that_belongs_to_no_call_is_said_even_if_its_id_repeats(tmp_path):
    """The call `look_up` has its result; a second one under this id is of a call that the trace lacks."""
    query, called = {"role": "user", "content": "?"}, {"id": "look_up", "type": "function"}
    made = {"role": "assistant", "content": "", "tool_calls": [called | {"function": {"name": "f", "arguments": "{}"}}]}
    told = [{"role": "tool", "tool_call_id": "look_up", "content": text} for text in ("1", "2")]
    span = {"trace_id": "t", "run_type": "llm", "name": "m", "error": None, "extra": {}, "parent_run_id": None}
    end = {"choices": [{"message": {"role": "assistant", "content": "!"}}]}
    run = {"id": "a", "start_time": "2026-01-01T00:00:00", "inputs": {"messages": [query, made, *told]}, "outputs": end}
    (tmp_path / "runs.json").write_text(json.dumps(span | run), "utf-8")
    with pytest.warns(DoubtfulRecords, match="belong to no recorded call: 1"):
        read_conversations(tmp_path / "runs.json")


@pytest.mark.parametrize("missing", ["scopeSpans", "spans"])
def test_members_of_otlp_under_other_names_are_said(tmp_path, missing):
    """Spans that are not where OTLP has them are not dropped in silence."""
    text = (FILES / "otel" / "otel_testcase.jsonl").read_text("utf-8")
    first, *rest = text.splitlines()
    (tmp_path / "t.jsonl").write_text("\n".join([first.replace(f'"{missing}"', '"others"'), *rest]), "utf-8")
    with pytest.warns(DoubtfulRecords, match="objects without instrumentationLibrarySpans or scopeSpans or spans"):
        read_conversations(tmp_path / "t.jsonl")
