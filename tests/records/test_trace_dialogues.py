"""A dialogue written as the traces of each tool, read back: the same turns, calls, results, thoughts and answers."""

import json
import random
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from agentic_bayes.errors import DoubtfulRecords
from agentic_bayes.records.read import read_conversations

CITIES = ("Oslo", "Rome", "São Paulo")


@dataclass
class Step:
    """One reply of a model: what it thought and said, the calls it made, and their results."""

    thought: str | None
    text: str
    calls: list = field(default_factory=list)  # (id, name, arguments, result)
    agent: str = "front"


def dialogue(seed):
    """Turns of a query and steps: parallel calls, ids that repeat, equal calls, failures, thoughts, hand-offs."""
    draw = random.Random(seed)
    repeats = draw.random() < 0.4
    turns, made = [], 0
    for number in range(draw.randint(1, 2)):
        agent, steps = "front", []
        for _ in range(draw.randint(0, 3)):
            calls = []
            for _ in range(draw.randint(1, 3)):
                made += 1
                name = draw.choice(("weather", "look_up"))
                identity = name if repeats else f"call_{made}"
                arguments = draw.choice(
                    ({"city": draw.choice(CITIES)}, {"city": draw.choice(CITIES), "days": [1, 2]}, {})
                )
                result = draw.choice((f"{made} C", json.dumps({"degrees": made}), f"Error: no. {made}"))
                calls.append((identity, name, arguments, result))
            steps.append(Step(draw.choice((None, f"thought {made}")), draw.choice(("", "Let me see.")), calls, agent))
            if agent == "front" and draw.random() < 0.3:
                agent = "expert"
        steps.append(Step(None, f"It is warm, {number}.", [], agent))
        turns.append((f"How warm, {number}?", steps))
    return turns


def called(calls):
    return [
        {"id": identity, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for identity, name, arguments, _ in calls
    ]


def chat_messages(step):
    """A step as chat completions have it, and the results that follow."""
    said = {"role": "assistant", "content": step.text}
    if step.thought:
        said["reasoning_content"] = step.thought
    if step.calls:
        said["tool_calls"] = called(step.calls)
    return [said], [{"role": "tool", "tool_call_id": one[0], "content": one[3]} for one in step.calls]


def genai_messages(step):
    """The same in parts, as the GenAI conventions have it."""
    parts = [{"type": "reasoning", "content": step.thought}] if step.thought else []
    parts += [{"type": "text", "content": step.text}] if step.text else []
    parts += [{"type": "tool_call", "id": i, "name": n, "arguments": a} for i, n, a, _ in step.calls]
    results = [{"type": "tool_call_response", "id": one[0], "response": one[3]} for one in step.calls]
    return [{"role": "assistant", "parts": parts}], [{"role": "tool", "parts": results}] if results else []


def events_of(turns, form, *, trimmed=False):
    """What happens in each turn, in time: agents begin, models reply to what they are given, tools run."""
    history = [{"role": "system", "content": "Be kind."}]
    for query, steps in turns:
        given = [*history, {"role": "user", "content": query}]
        history.append({"role": "user", "content": query})
        happened, agent = [], None
        for step in steps:
            if step.agent != agent:
                agent = step.agent
                happened.append(("agent", agent, None, None))
            said, results = form(step)
            happened.append(("chat", agent, list(given), said))
            happened += [("tool", agent, one, None) for one in step.calls]
            given = results if trimmed else [*given, *said, *results]
            history += [*said, *results]
        yield query, happened


def spans_of(turns, form, *, trimmed=False):
    """Spans of each turn: trace, id, parent, kind and content; an agent that takes over lies in the first."""
    for trace, (query, happened) in enumerate(events_of(turns, form, trimmed=trimmed)):
        parent = {}
        for number, (kind, agent, given, said) in enumerate(happened):
            identity = f"{trace:04x}{number:012x}"
            if kind == "agent":
                parent[agent] = identity
                yield trace, identity, parent["front"] if agent != "front" else "", kind, (agent, query)
            else:
                yield trace, identity, parent[agent], kind, (given, said)


def typed(value):
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


def otlp(spans):
    """Spans as OTLP, one a line."""
    for trace, identity, parent, attributes in spans:
        pairs = [{"key": key, "value": typed(value)} for key, value in {**attributes, "session.id": "s"}.items()]
        time = trace * 1000 + int(identity[4:], 16) + 1
        span = {
            "traceId": f"{trace:032x}",
            "spanId": identity,
            "parentSpanId": parent,
            "name": "n",
            "attributes": pairs,
        }
        span |= {"startTimeUnixNano": str(time), "endTimeUnixNano": str(time + 1)}
        yield {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


def genai(turns, *, trimmed=False, tools=True):
    def attributes(kind, content):
        if kind == "agent":
            return {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": content[0]}
        if kind == "chat":
            sides = {"gen_ai.input.messages": json.dumps(content[0]), "gen_ai.output.messages": json.dumps(content[1])}
            return {"gen_ai.operation.name": "chat", **sides}
        identity, name, arguments, result = content[0]
        call = {"id": identity, "arguments": json.dumps(arguments), "result": result}
        ran = {f"gen_ai.tool.call.{key}": value for key, value in call.items()}
        return {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, **ran}

    spans = spans_of(turns, genai_messages, trimmed=trimmed)
    return otlp((t, i, p, attributes(k, c)) for t, i, p, k, c in spans if tools or k != "tool")


def flat(value, prefix):
    """An object as flattened attributes."""
    if isinstance(value, (dict, list)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return {key: one for name, item in items for key, one in flat(item, f"{prefix}.{name}").items()}
    return {} if value is None else {prefix: value}


def openinference(turns):
    def message(one):
        thought = one.get("reasoning_content")
        parts = [{"message_content": {"type": "reasoning", "text": thought}}] if thought else []
        parts += [{"message_content": {"type": "text", "text": one["content"]}}] if thought and one["content"] else []
        calls = [{"tool_call": {"id": call["id"], "function": call["function"]}} for call in one.get("tool_calls", ())]
        kept = {key: one[key] for key in ("role", "tool_call_id") if key in one}
        said = {"contents": parts} if parts else {"content": one["content"]}
        return {"message": {**kept, **said, "tool_calls": calls}}

    def attributes(kind, content):
        if kind == "agent":
            return {"openinference.span.kind": "AGENT", "agent.name": content[0]}
        if kind == "chat":
            sides = zip(("input", "output"), content, strict=True)
            listed = [flat([message(one) for one in listed], f"llm.{side}_messages") for side, listed in sides]
            return {"openinference.span.kind": "LLM", **listed[0], **listed[1]}
        _, name, arguments, result = content[0]
        ran = {"tool.name": name, "input.value": json.dumps(arguments), "output.value": result}
        return {"openinference.span.kind": "TOOL", **ran}

    return otlp((t, i, p, attributes(k, c)) for t, i, p, k, c in spans_of(turns, chat_messages))


def stamp(trace, number):
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    return (begin + timedelta(minutes=trace, seconds=number / 10)).isoformat(timespec="microseconds")


def moments(spans):
    """Spans with the times of their beginning and end."""
    for trace, identity, parent, kind, content in spans:
        number = int(identity[4:], 16) * 2
        yield trace, identity, parent, kind, content, stamp(trace, number), stamp(trace, number + 1)


def langsmith(turns):
    for trace, identity, parent, kind, content, begin, end in moments(spans_of(turns, chat_messages)):
        run = {
            "id": identity,
            "trace_id": f"t{trace}",
            "parent_run_id": parent or None,
            "start_time": begin,
            "end_time": end,
        }
        run |= {"extra": {"metadata": {"thread_id": "s"}}, "error": None}
        if kind == "agent":
            yield run | {"run_type": "chain", "name": content[0], "inputs": {"question": content[1]}, "outputs": None}
        elif kind == "chat":
            sides = {
                "inputs": {"messages": content[0]},
                "outputs": {"choices": [{"index": 0, "message": content[1][0]}]},
            }
            yield run | {"run_type": "llm", "name": "ChatOpenAI", **sides}
        else:
            _, name, arguments, result = content[0]
            yield run | {"run_type": "tool", "name": name, "inputs": arguments, "outputs": {"output": result}}


def agents_sdk(turns):
    for trace, identity, parent, kind, content, begin, end in moments(spans_of(turns, chat_messages)):
        if identity.endswith("0" * 12):
            yield {"object": "trace", "id": f"t{trace}", "workflow_name": "w", "group_id": "s", "metadata": None}
        if kind == "agent":
            data = {"type": "agent", "name": content[0], "handoffs": [], "tools": [], "output_type": "str"}
        elif kind == "chat":
            data = {"type": "generation", "input": content[0], "output": content[1], "model": "m"}
        else:
            _, name, arguments, result = content[0]
            data = {"type": "function", "name": name, "input": json.dumps(arguments), "output": result}
        span = {"object": "trace.span", "id": identity, "trace_id": f"t{trace}", "parent_id": parent or None}
        yield span | {"started_at": begin, "ended_at": end, "span_data": data, "error": None}


def langfuse(turns):
    for trace, identity, parent, kind, content, begin, end in moments(spans_of(turns, chat_messages)):
        if kind == "agent":
            about = {"type": "AGENT", "name": content[0]}
        elif kind == "chat":
            about = {"type": "GENERATION", "name": "g", "input": content[0], "output": content[1][0]}
        else:
            _, name, arguments, result = content[0]
            about = {"type": "TOOL", "name": name, "input": arguments, "output": result}
        ids = {"id": identity, "traceId": f"t{trace}", "parentObservationId": parent or None, "sessionId": "s"}
        yield ids | about | {"startTime": begin, "endTime": end}


def mlflow(turns):
    traces = {}
    for trace, identity, parent, kind, content in spans_of(turns, chat_messages):
        if kind == "agent":
            name, about = content[0], {"spanType": "AGENT", "spanInputs": {"question": content[1]}}
        elif kind == "chat":
            choices = {"choices": [{"message": content[1][0]}]}
            name, about = (
                "c",
                {"spanType": "CHAT_MODEL", "spanInputs": {"messages": content[0]}, "spanOutputs": choices},
            )
        else:
            _, name, arguments, result = content[0]
            about = {"spanType": "TOOL", "spanInputs": arguments, "spanOutputs": result}
        time = trace * 1000 + int(identity[4:], 16) + 1
        span = {"span_id": identity, "parent_span_id": parent or None, "name": name, "start_time_unix_nano": time}
        span |= {"attributes": {f"mlflow.{key}": json.dumps(value) for key, value in about.items()}}
        traces.setdefault(trace, []).append(span)
    for trace, spans in traces.items():
        info = {"trace_id": f"t{trace}", "trace_metadata": {"mlflow.trace.session": "s"}, "assessments": []}
        yield {"info": info, "data": {"spans": spans}}


def langgraph(turns):
    """A stream of updates that begins with the user's message, as a node that takes it in would write it."""
    number = 0
    for query, steps in turns:
        yield {"start": {"messages": [{"type": "human", "content": query, "id": f"m{(number := number + 1)}"}]}}
        for step in steps:
            calls = [{"id": i, "name": n, "args": a, "type": "tool_call"} for i, n, a, _ in step.calls]
            said = {"type": "ai", "content": step.text, "tool_calls": calls, "id": f"m{(number := number + 1)}"}
            said["additional_kwargs"] = {"reasoning_content": step.thought} if step.thought else {}
            yield {step.agent: {"messages": [said]}}
            for identity, name, _, result in step.calls:
                told = {"type": "tool", "content": result, "tool_call_id": identity, "name": name}
                yield {"tools": {"messages": [told | {"id": f"m{(number := number + 1)}"}]}}


WRITERS = {
    "genai": genai,
    "genai without tool spans": lambda turns: genai(turns, tools=False),
    "genai, only what is new": lambda turns: genai(turns, trimmed=True),
    "genai, only what is new, without tool spans": lambda turns: genai(turns, trimmed=True, tools=False),
    "openinference": openinference,
    "langsmith": langsmith,
    "agents_sdk": agents_sdk,
    "langfuse": langfuse,
    "mlflow": mlflow,
    "langgraph": langgraph,
}


PICTURED = [name for name in WRITERS if name not in ("openinference", "langgraph", "langsmith", "mlflow")]


def with_images(value):
    """The same, with an image after the text of each message of the user."""
    if isinstance(value, list):
        return [with_images(item) for item in value]
    if isinstance(value, str) and value[:1] in ("{", "["):
        return json.dumps(with_images(json.loads(value)))
    if not isinstance(value, dict):
        return value
    image = {"type": "image_url", "image_url": {"url": "u"}}
    if value.get("role") == "user" and isinstance(value.get("content"), str):
        return value | {"content": [{"type": "text", "text": value["content"]}, image]}
    return {key: with_images(item) for key, item in value.items()}


@pytest.mark.parametrize("name", PICTURED)
def test_an_image_in_a_traced_question_leaves_a_mark(name, tmp_path):
    """Next to its text; the other turns and calls are as they were."""
    turns = dialogue(3)
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(json.dumps(with_images(one)) for one in WRITERS[name](turns)), "utf-8")
    (found,) = read_conversations(path)
    assert [turn.query for turn in found.conversation] == [f"{query}\n(image)" for query, _ in turns]
    assert [turn.assistant for turn in found.conversation] == [steps[-1].text for _, steps in turns]


@pytest.mark.parametrize("name", WRITERS)
def test_a_blank_answer_stays_blank_in_every_trace(name, tmp_path):
    """White space is what the agent said: it is neither dropped nor no answer."""
    turns = [("How warm?", [Step(None, " ")])]
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(map(json.dumps, WRITERS[name](turns))), "utf-8")
    (found,) = read_conversations(path)
    assert (found.conversation[0].assistant, found.conversation[0].error) == (" ", None)


@pytest.mark.parametrize("name", WRITERS)
def test_a_dialogue_is_the_same_whatever_tool_traced_it(name, tmp_path):
    """Whatever its ids, and with every call twice in the trace: asked for by the model, and run by the tool."""
    for seed in (*range(10), 18):
        turns = dialogue(seed)
        path = tmp_path / f"{seed}.jsonl"
        path.write_text("\n".join(map(json.dumps, WRITERS[name](turns))), "utf-8")
        (found,) = read_conversations(path)
        read = [
            (
                turn.query,
                turn.assistant,
                turn.error,
                [(c.tool_name, c.parameters, c.result) for c in turn.agentic.tools_used],
                list(turn.metadata.get("reasoning", ())),
            )
            for turn in found.conversation
        ]
        written = [
            (
                query,
                steps[-1].text,
                None,
                [(n, a, r) for step in steps for _, n, a, r in step.calls],
                [step.thought for step in steps if step.thought],
            )
            for query, steps in turns
        ]
        assert read == written, f"seed {seed}"


def test_a_tools_own_result_that_is_not_the_messages_is_counted_and_said(tmp_path):
    """The model saw the one in its messages, which stays."""
    calls = [("a", "weather", {"city": "Oslo"}, "1 C")]
    runs = list(WRITERS["langsmith"]([("How warm?", [Step(None, "", calls), Step(None, "It is 1 C.")])]))
    (tool,) = (run for run in runs if run["run_type"] == "tool")
    tool["outputs"] = {"output": "9 C"}
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(map(json.dumps, runs)), "utf-8")
    with pytest.warns(DoubtfulRecords, match="tool results left out because they belong to no recorded call: 1"):
        (found,) = read_conversations(path)
    (turn,) = found.conversation
    assert [call.result for call in turn.agentic.tools_used] == ["1 C"]


@pytest.mark.slow
@pytest.mark.timeout(3_000)  # a minute alone, more where others want the same cores
@pytest.mark.parametrize("name", WRITERS)
def test_the_time_for_a_turn_of_many_calls_grows_with_their_number(name, tmp_path):
    """With 60,000 calls at once: four times as many take four times as much, not sixteen times."""
    path, seconds = tmp_path / "t.jsonl", []
    for number in (15_000, 60_000):
        calls = [(f"c{n}", "weather", {"n": n}, f"{n} C") for n in range(number)]
        turns = [("How warm?", [Step(None, "", calls), Step(None, "Warm.")])]
        path.write_text("\n".join(map(json.dumps, WRITERS[name](turns))), "utf-8")
        begin = time.process_time()
        (found,) = read_conversations(path)
        seconds.append(time.process_time() - begin)
        (turn,) = found.conversation
        assert [(c.parameters, c.result) for c in turn.agentic.tools_used] == [(a, r) for _, _, a, r in calls]
    assert seconds[1] < 8 * seconds[0]
