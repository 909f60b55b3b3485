"""Dialogues as Hypothesis draws them, how each format writes them, and what has to be read back."""

import json
from dataclasses import dataclass, field

from hypothesis import strategies as st

TRANSFER = "transfer_to_"


@dataclass(frozen=True)
class Call:
    """A call, the id that the log gives it, and its result; None if it is still waiting."""

    name: str
    arguments: dict
    id: str
    result: str | None = "ok"
    failed: bool = False


@dataclass(frozen=True)
class Step:
    """What the agent thinks, says and calls at once; a hand-off is a call after which another agent goes on."""

    thought: str = ""
    said: str = ""
    calls: tuple[Call, ...] = ()

    @property
    def next_agent(self):
        """The agent that takes over, if one does."""
        last = self.calls[-1] if self.calls else None
        return last.name.removeprefix(TRANSFER) if last and last.name.startswith(TRANSFER) and last.result else None


@dataclass(frozen=True)
class Turn:
    """What the user says, what the agent does, and what it answers; None if it breaks off."""

    query: str
    image: bool = False
    steps: tuple[Step, ...] = ()
    thought: str = ""
    answer: str | None = "fine"


@dataclass(frozen=True)
class Dialogue:
    """A conversation."""

    turns: tuple[Turn, ...]
    system: str = ""
    tools: tuple[str, ...] = field(default=())


texts = st.text("abcé .,", min_size=1, max_size=8).map(str.strip).filter(bool)
values = st.none() | st.booleans() | st.integers(-9, 9) | texts | st.lists(st.integers(0, 3), max_size=2)
arguments = st.dictionaries(st.sampled_from(["city", "day", "deep"]), values, max_size=2)
# few ids and names, so that both repeat
calls = st.builds(
    Call, st.sampled_from(["weather", "book"]), arguments, st.sampled_from(["a", "b"]), texts, st.booleans()
)
maybe = st.just("") | texts


hand_offs = st.builds(
    lambda to, identity: Call(f"{TRANSFER}{to}", {}, identity, f"Transferred to {to}."),
    st.sampled_from(["meteo", "desk"]),
    st.sampled_from(["a", "b"]),
)


def steps(parallel):
    made = st.lists(calls, min_size=1, max_size=parallel) | st.tuples(hand_offs)
    return st.builds(Step, maybe, maybe, made.map(tuple))


@st.composite
def dialogues(draw, parallel=3):
    """A dialogue of up to three turns; the last one may end while its last calls wait for their results."""
    turn = st.builds(Turn, texts, st.booleans(), st.lists(steps(parallel), max_size=3).map(tuple), maybe, texts)
    some = draw(st.lists(turn, min_size=1, max_size=3))
    if some[-1].steps and draw(st.booleans()):
        *before, last = some[-1].steps
        waiting = tuple(Call(call.name, call.arguments, call.id, None) for call in last.calls)
        cut = Step(last.thought, last.said, waiting)
        some[-1] = Turn(some[-1].query, some[-1].image, (*before, cut), "", None)
    return Dialogue(tuple(some), draw(maybe), tuple(draw(st.sets(st.sampled_from(["weather", "book"])))))


def expected(dialogue, *, errors=True):
    """The turns as they have to be read: query, answer, calls, thoughts and what was said before the calls."""
    found = []
    for turn in dialogue.turns:
        found.append(
            {
                "query": turn.query + ("\n[image]" if turn.image else ""),
                "answer": turn.answer,
                "calls": [_made(call, errors) for step in turn.steps for call in step.calls],
                "reasoning": [step.thought for step in turn.steps if step.thought]
                + ([turn.thought] if turn.thought else []),
                "before": [step.said for step in turn.steps if step.said],
            }
        )
    return found


def _made(call, errors):
    if call.result is None:
        return call.name, call.arguments
    result = {"status": "error", "content": call.result} if call.failed and errors else call.result
    return call.name, call.arguments, result


def read_back(conversation):
    """What was read, in the same shape."""
    found = []
    for turn in conversation.conversation:
        made = [
            (call.tool_name, call.parameters, *([call.result] if call.has_result else []))
            for call in turn.agentic.tools_used
        ]
        found.append(
            {
                "query": turn.query,
                "answer": turn.assistant,
                "calls": made,
                "reasoning": turn.metadata.get("reasoning", []),
                "before": turn.metadata.get("before_calls", []),
            }
        )
    return found


def openai_chat(dialogue):
    """Chat Completions, with thoughts as some services give them; a failed call looks like any other."""
    messages = [{"role": "system", "content": dialogue.system}] if dialogue.system else []
    speaker = {}
    for turn in dialogue.turns:
        parts = [{"type": "text", "text": turn.query}]
        parts += [{"type": "image_url", "image_url": {"url": "u"}}] if turn.image else []
        messages.append({"role": "user", "content": parts if turn.image else turn.query})
        for step in turn.steps:
            made = [
                {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": json.dumps(c.arguments)}}
                for c in step.calls
            ]
            thought = {"reasoning_content": step.thought} if step.thought else {}
            messages.append(
                {"role": "assistant", "content": step.said or None, "tool_calls": made, **thought, **speaker}
            )
            for c in step.calls:
                if c.result is not None:
                    messages.append({"role": "tool", "tool_call_id": c.id, "content": c.result})
            speaker = {"name": step.next_agent} if step.next_agent else speaker
        if turn.answer is not None:
            inline = f"<think>\n{turn.thought}\n</think>\n\n" if turn.thought else ""
            messages.append({"role": "assistant", "content": inline + turn.answer, **speaker})
    functions = [{"type": "function", "function": {"name": name}} for name in dialogue.tools]
    return {"messages": messages, "tools": functions}


def openai_responses(dialogue):
    """Items of the Responses API."""
    items = []
    for turn in dialogue.turns:
        parts = [{"type": "input_text", "text": turn.query}]
        parts += [{"type": "input_image", "image_url": "u"}] if turn.image else []
        items.append({"type": "message", "role": "user", "content": parts})
        for n, step in enumerate(turn.steps):
            if step.thought:
                items.append({"type": "reasoning", "summary": [{"type": "summary_text", "text": step.thought}]})
            if step.said:
                said = [{"type": "output_text", "text": step.said}]
                items.append({"type": "message", "role": "assistant", "content": said})
            for place, c in enumerate(step.calls):
                about = {"id": f"fc_{n}_{place}_{c.id}", "call_id": c.id, "name": c.name}
                items.append({"type": "function_call", **about, "arguments": json.dumps(c.arguments)})
            for c in step.calls:
                if c.result is not None:
                    items.append({"type": "function_call_output", "call_id": c.id, "output": c.result})
        if turn.thought:
            items.append({"type": "reasoning", "summary": [{"type": "summary_text", "text": turn.thought}]})
        if turn.answer is not None:
            said = [{"type": "output_text", "text": turn.answer}]
            items.append({"type": "message", "role": "assistant", "content": said})
    about = {"instructions": dialogue.system} if dialogue.system else {}
    return {**about, "input": items, "tools": [{"type": "function", "name": name} for name in dialogue.tools]}


def anthropic(dialogue):
    """A request of the Messages API; answers are blocks, results stand in the user's messages."""
    messages = []
    for turn in dialogue.turns:
        blocks = [{"type": "text", "text": turn.query}]
        blocks += [{"type": "image", "source": {"type": "url", "url": "u"}}] if turn.image else []
        messages.append({"role": "user", "content": blocks})
        for step in turn.steps:
            made = [{"type": "thinking", "thinking": step.thought, "signature": "s"}] if step.thought else []
            made += [{"type": "text", "text": step.said}] if step.said else []
            made += [{"type": "tool_use", "id": c.id, "name": c.name, "input": c.arguments} for c in step.calls]
            results = [
                {
                    "type": "tool_result",
                    "tool_use_id": c.id,
                    "content": [{"type": "text", "text": c.result}],
                    "is_error": c.failed,
                }
                for c in step.calls
                if c.result is not None
            ]
            messages.append({"role": "assistant", "content": made})
            messages += [{"role": "user", "content": results}] if results else []
        if turn.answer is not None:
            made = [{"type": "thinking", "thinking": turn.thought, "signature": "s"}] if turn.thought else []
            messages.append({"role": "assistant", "content": [*made, {"type": "text", "text": turn.answer}]})
    tools = [{"name": name, "input_schema": {"type": "object"}} for name in dialogue.tools]
    return {"model": "m", "max_tokens": 9, "system": dialogue.system, "messages": messages, "tools": tools}


def gemini(dialogue):
    """A request of the Gemini API, with ids of calls and thoughts as parts."""
    contents = []
    for turn in dialogue.turns:
        image = [{"inlineData": {"mimeType": "image/png", "data": "AA=="}}] if turn.image else []
        contents.append({"role": "user", "parts": [{"text": turn.query}, *image]})
        for step in turn.steps:
            made = [{"text": step.thought, "thought": True}] if step.thought else []
            made += [{"text": step.said}] if step.said else []
            made += [{"functionCall": {"id": c.id, "name": c.name, "args": c.arguments}} for c in step.calls]
            results = [
                {
                    "functionResponse": {
                        "id": c.id,
                        "name": c.name,
                        "response": {"error" if c.failed else "result": c.result},
                    }
                }
                for c in step.calls
                if c.result is not None
            ]
            contents.append({"role": "model", "parts": made})
            contents += [{"role": "user", "parts": results}] if results else []
        if turn.answer is not None:
            made = [{"text": turn.thought, "thought": True}] if turn.thought else []
            contents.append({"role": "model", "parts": [*made, {"text": turn.answer}]})
    about = {"systemInstruction": {"parts": [{"text": dialogue.system}]}} if dialogue.system else {}
    declared = [{"functionDeclarations": [{"name": name} for name in dialogue.tools]}]
    return {**about, "contents": contents, "tools": declared}


def gemini_snake(dialogue):
    """The same as google-genai dumps it: snake case, absent members null."""

    def snake(value):
        if isinstance(value, list):
            return [snake(one) for one in value]
        if not isinstance(value, dict):
            return value
        names = {"functionCall": "function_call", "functionResponse": "function_response", "inlineData": "inline_data"}
        names |= {"systemInstruction": "system_instruction", "mimeType": "mime_type"}
        names |= {"functionDeclarations": "function_declarations"}
        return {names.get(key, key): value[key] if key == "args" else snake(value[key]) for key in value}

    written = snake(gemini(dialogue))
    for content in written["contents"]:
        content["parts"] = [
            {"video_metadata": None, "thought": None, "text": None, **part} for part in content["parts"]
        ]
    return written


def bedrock(dialogue):
    """A request of the Converse API."""
    messages = []
    for turn in dialogue.turns:
        image = [{"image": {"format": "png", "source": {"bytes": "AA=="}}}] if turn.image else []
        messages.append({"role": "user", "content": [{"text": turn.query}, *image]})
        for step in turn.steps:
            made = [_reasoned(step.thought)] if step.thought else []
            made += [{"text": step.said}] if step.said else []
            made += [{"toolUse": {"toolUseId": c.id, "name": c.name, "input": c.arguments}} for c in step.calls]
            results = [
                {
                    "toolResult": {
                        "toolUseId": c.id,
                        "content": [{"text": c.result}],
                        "status": "error" if c.failed else "success",
                    }
                }
                for c in step.calls
                if c.result is not None
            ]
            messages.append({"role": "assistant", "content": made})
            messages += [{"role": "user", "content": results}] if results else []
        if turn.answer is not None:
            made = [_reasoned(turn.thought)] if turn.thought else []
            messages.append({"role": "assistant", "content": [*made, {"text": turn.answer}]})
    tools = {"tools": [{"toolSpec": {"name": name, "inputSchema": {"json": {}}}} for name in dialogue.tools]}
    about = {"system": [{"text": dialogue.system}]} if dialogue.system else {}
    return {**about, "messages": messages, "toolConfig": tools}


def _reasoned(thought):
    return {"reasoningContent": {"reasoningText": {"text": thought, "signature": "s"}}}


def vercel_ui(dialogue):
    """UI messages of the AI SDK, version 5: one message of the agent holds all its steps."""
    messages = [_ui("system", [{"type": "text", "text": dialogue.system}])] if dialogue.system else []
    for turn in dialogue.turns:
        image = [{"type": "file", "mediaType": "image/png", "url": "u"}] if turn.image else []
        messages.append(_ui("user", [{"type": "text", "text": turn.query}, *image]))
        parts = []
        for step in turn.steps:
            parts.append({"type": "step-start"})
            parts += [{"type": "reasoning", "text": step.thought}] if step.thought else []
            parts += [{"type": "text", "text": step.said, "state": "done"}] if step.said else []
            for c in step.calls:
                part = {"type": f"tool-{c.name}", "toolCallId": c.id, "input": c.arguments}
                if c.result is None:
                    part["state"] = "input-available"
                elif c.failed:
                    part |= {"state": "output-error", "errorText": c.result}
                else:
                    part |= {"state": "output-available", "output": c.result}
                parts.append(part)
        if turn.answer is not None:
            parts += [{"type": "step-start"}]
            parts += [{"type": "reasoning", "text": turn.thought}] if turn.thought else []
            parts.append({"type": "text", "text": turn.answer})
        messages.append(_ui("assistant", parts))
    return {"messages": messages}


def _ui(role, parts):
    return {"id": "m", "role": role, "parts": parts}


def vercel_model(dialogue):
    """Model messages of the AI SDK, version 5."""
    messages = [{"role": "system", "content": dialogue.system}] if dialogue.system else []
    for turn in dialogue.turns:
        image = [{"type": "image", "image": "u"}] if turn.image else []
        messages.append({"role": "user", "content": [{"type": "text", "text": turn.query}, *image]})
        for step in turn.steps:
            made = [{"type": "reasoning", "text": step.thought}] if step.thought else []
            made += [{"type": "text", "text": step.said}] if step.said else []
            made += [
                {"type": "tool-call", "toolCallId": c.id, "toolName": c.name, "input": c.arguments} for c in step.calls
            ]
            results = [
                {
                    "type": "tool-result",
                    "toolCallId": c.id,
                    "toolName": c.name,
                    "output": {"type": "error-text" if c.failed else "text", "value": c.result},
                }
                for c in step.calls
                if c.result is not None
            ]
            messages.append({"role": "assistant", "content": made})
            messages += [{"role": "tool", "content": results}] if results else []
        if turn.answer is not None:
            made = [{"type": "reasoning", "text": turn.thought}] if turn.thought else []
            messages.append({"role": "assistant", "content": [*made, {"type": "text", "text": turn.answer}]})
    return messages


def autogen(dialogue):
    """A `TaskResult` of AutoGen, in which the message of a hand-off repeats the result of its call."""
    events = []
    bot = "bot"
    for turn in dialogue.turns:
        if turn.image:
            events.append(_event("MultiModalMessage", [turn.query, {"data": "AA=="}], "user"))
        else:
            events.append(_event("TextMessage", turn.query, "user"))
        for step in turn.steps:
            events += [_event("ThoughtEvent", step.thought, bot)] if step.thought else []
            events += [_event("TextMessage", step.said, bot)] if step.said else []
            made = [{"id": c.id, "name": c.name, "arguments": json.dumps(c.arguments)} for c in step.calls]
            events.append(_event("ToolCallRequestEvent", made, bot))
            results = [
                {"call_id": c.id, "name": c.name, "content": c.result, "is_error": c.failed}
                for c in step.calls
                if c.result is not None
            ]
            events += [_event("ToolCallExecutionEvent", results, bot)] if results else []
            if step.next_agent:
                handed = _event("HandoffMessage", step.calls[-1].result, bot)
                events.append({**handed, "target": step.next_agent, "context": []})
                bot = step.next_agent
        events += [_event("ThoughtEvent", turn.thought, bot)] if turn.thought else []
        events += [_event("TextMessage", turn.answer, bot)] if turn.answer is not None else []
    return {"messages": events, "stop_reason": None}


def _event(kind, content, source):
    return {"id": "e", "source": source, "models_usage": None, "metadata": {}, "content": content, "type": kind}


def smolagents(dialogue):
    """Messages of a smolagents memory: calls and observations are text, and what is said before calls are thoughts."""
    messages = [_memory("system", dialogue.system)] if dialogue.system else []
    for turn in dialogue.turns:
        asked = _memory("user", f"New task:\n{turn.query}")
        asked["content"] += [{"type": "image", "image": None}] if turn.image else []
        messages.append(asked)
        for step in turn.steps:
            messages += [_memory("assistant", step.said)] if step.said else []
            made = [_tool_call(c.id, c.name, c.arguments) for c in step.calls]
            messages.append(_memory("tool-call", f"Calling tools:\n{made}"))
            for c in step.calls:
                if c.result is not None and c.failed:
                    retry = (
                        "Now let's retry: take care not to repeat previous errors! If you have retried several times"
                    )
                    messages.append(_memory("tool-response", f"Call id: {c.id}\nError:\n{c.result}\n{retry}\n"))
                elif c.result is not None:
                    messages.append(_memory("tool-response", f"Observation:\n{c.result}"))
        if turn.answer is not None:
            made = [_tool_call("end", "final_answer", {"answer": turn.answer})]
            messages.append(_memory("tool-call", f"Calling tools:\n{made}"))
            messages.append(_memory("tool-response", f"Observation:\n{turn.answer}"))
    return messages


def _memory(role, text):
    about = {"tool_calls": None, "raw": None, "token_usage": None}
    return {"role": role, "content": [{"type": "text", "text": text}], **about}


def _tool_call(identity, name, arguments):
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def expected_of_smolagents(dialogue):
    """As `expected`, but the answer is a call of its own, and whatever is said before a call is a thought."""
    found = expected(dialogue)
    for turn in found:
        turn["reasoning"], turn["before"] = turn["before"], []
        if turn["answer"] is not None:
            turn["calls"].append(("final_answer", {"answer": turn["answer"]}))
    return found


# format → how it is written, whether it marks failed calls, whether it holds the system text and the tools
WRITERS = {
    "openai": (openai_chat, False, True, True),
    "openai responses": (openai_responses, False, True, True),
    "anthropic": (anthropic, True, True, True),
    "gemini": (gemini, True, True, True),
    "gemini snake": (gemini_snake, True, True, True),
    "bedrock": (bedrock, True, True, True),
    "vercel ui": (vercel_ui, True, True, False),
    "vercel model": (vercel_model, True, True, False),
    "autogen": (autogen, True, False, False),
}

MARKED = Dialogue(
    (
        Turn(
            "MARKq1",
            True,
            (
                Step(
                    "MARKt1",
                    "MARKs1",
                    (Call("weather", {"city": "MARKg1"}, "a", "MARKr1"), Call("book", {}, "b", "MARKr2", True)),
                ),
                Step("", "", (Call("book", {"n": 1}, "a", "MARKr3"),)),
            ),
            "MARKt2",
            "MARKa1",
        ),
        Turn("MARKq2", False, (Step("", "MARKs2", (Call("transfer_to_meteo", {}, "c", "MARKr4"),)),), "", "MARKa2"),
    )
)
