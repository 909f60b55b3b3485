"""Read the messages that spans hold: those of the GenAI conventions and of the libraries whose calls are traced.

A span holds what its library passed to the model: messages of OpenAI (chat and Responses), Anthropic, Bedrock, Gemini
or LangChain, in lists, in requests and replies, or as JSON text. All become `Message`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from agentic_bayes.records.base import short
from agentic_bayes.records.wire.chat import ChatCall, Message, Role, failure, tool_message
from agentic_bayes.records.wire.content import parts
from agentic_bayes.records.wire.fields import Faults, Fields, fitting
from agentic_bayes.records.wire.strict_json import strict_json

Path = tuple[str | int, ...]

ROLES: dict[str, Role] = {
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "model"), "assistant"),
    **dict.fromkeys(("tool", "function", "environment"), "tool"),
}

TEXTS = parts.TEXT_PARTS | {"summary_text"}
THOUGHTS = parts.THOUGHTS | {"thought"}
CALLS = {
    "tool_call": ("id", "arguments", "args", "input"),
    "tool_use": ("id", "input", "arguments"),
    "server_tool_use": ("id", "input"),
    "mcp_tool_use": ("id", "input"),
    "function_call": ("call_id", "arguments"),
    "custom_tool_call": ("call_id", "input"),
    "server_tool_call": ("id", "server_tool_call", "args", "arguments"),
    "invalid_tool_call": ("id", "args"),
    "tool-call": ("toolCallId", "input", "args"),
}
"""Parts that are calls: the members with their id and, in order of preference, with their arguments."""

RESULTS = {
    "tool_call_response": ("id", "response", "result", "content"),
    "server_tool_call_response": ("id", "server_tool_call_response", "response", "result"),
    "server_tool_result": ("tool_call_id", "output", "content"),
    "tool_result": ("tool_use_id", "content"),
    "tool-result": ("toolCallId", "output", "result"),
    "web_search_tool_result": ("tool_use_id", "content"),
    "code_execution_tool_result": ("tool_use_id", "content"),
    "mcp_tool_result": ("tool_use_id", "content"),
    "function_call_output": ("call_id", "output"),
    "custom_tool_call_output": ("call_id", "output"),
}
"""The same for parts that are results."""

MEDIA = {
    **dict.fromkeys(("image", "image_url", "input_image"), "(image)"),
    **dict.fromkeys(("audio", "input_audio", "audio_url"), "(audio)"),
    **dict.fromkeys(("video", "video_url"), "(video)"),
    **dict.fromkeys(("file", "input_file", "document", "blob", "uri"), "(file)"),
}
UNTYPED = (
    *("text", "reasoningContent", "toolUse", "toolResult"),
    *("functionCall", "functionResponse", "function_call", "function_response"),
)
"""A part without a type has one of these members."""

_NO_ARGUMENTS = frozenset(
    {"id", "type", "status", "call_id", "name", "output", "outputs", "result", "results", "error"}
)

SAYS_NOTHING = frozenset(
    {"cachePoint", "cache_point", "compaction", "mcp_list_tools", "step-start", "finish", "non_standard"}
)
COULD_MATTER = ("call", "tool", "result", "response", "output", "function", "answer")
"""A part of an unknown kind with one of these in its name may be a call, a result or an answer."""

DRAFTS = ("choices", "candidates")
"""Members with several versions of one message: the first counts."""

WRAPPERS = (
    *("messages", "generations", "choices", "candidates", "output", "outputs", "input", "inputs"),
    *("message", "update", "contents", "content"),
)
CONTENT = ("content", "parts", "tool_calls", "contents", "refusal", "function_call", "tool_call_id", "audio")
SPOKEN = (*CONTENT, "invalid_tool_calls", "additional_kwargs", "reasoning_content", "reasoning", "thinking")
"""A message has one of these members, though it may be null."""


def json_of(value: Any) -> Any:
    """The value of JSON text, None if it is not JSON or repeats a key; a value that is not text is itself."""
    if not isinstance(value, str):
        return value
    try:
        return strict_json(value, finite=False) if value.lstrip()[:1] in ("{", "[", '"') else None
    except ValueError:
        return None


def unpacked(value: Any) -> Any:
    """The value of JSON text; other text, like any other value, is itself."""
    found = json_of(value)
    return value if found is None else found


class SpanMessages:
    """Reads the messages of one span; `unknown` counts the kinds of parts that were left out."""

    def __init__(self, faults: Faults, unknown: Counter[str]) -> None:
        self.faults, self.unknown = faults, unknown

    def listed(self, value: Any, role: Role, path: Path) -> list[Message]:
        """Messages that a convention demands: a list, or the JSON text of one."""
        if value is None or value == "":
            return []
        found = json_of(value)
        if not isinstance(found, list):
            self.faults.add(path, f"must be a list of messages, or such a list as JSON text, got {short(value)}")
            return []
        found = fitting(found, path, self.faults)
        return [message for place, item in enumerate(found) for message in self.one(item, role, (*path, place))]

    def anywhere(self, value: Any, role: Role, path: Path) -> list[Message] | None:
        """The messages in a value that may hold some: None if it holds none, so that it is plain data."""
        found = self._raw(json_of(value), 0)
        if found is None:
            return None
        found = fitting(found, path, self.faults)
        return [message for place, item in enumerate(found) for message in self.one(item, role, (*path, place))]

    def _raw(self, value: Any, depth: int) -> list[Any] | None:
        """The messages in a value, not yet read."""
        if depth > 6 or not isinstance(value, (dict, list)):
            return None
        if is_message(value):
            return [value]
        if _are_typed(value):  # the content of a message
            return [{"content": value}]
        if isinstance(value, list):
            if any(map(is_message, value)):
                objects = [item for item in value if isinstance(item, (dict, list))]
                if len(objects) < len(value):
                    self.unknown["items in a list of messages that are not messages"] += len(value) - len(objects)
                return objects
            batches = [self._raw(item, depth + 1) for item in value]
            if not batches or any(batch is None for batch in batches):
                return None
            if len(batches) > 1:
                self.unknown["further messages of a batch"] += len(batches) - 1
            return batches[0]
        if value.get("lc") and isinstance(value.get("kwargs"), dict):
            return self._raw(value["kwargs"], depth + 1)
        for key in DRAFTS:
            drafts = value.get(key)
            if isinstance(drafts, list) and len(drafts) > 1 and all(map(is_message, drafts)):
                self.unknown["several drafts of a message"] += len(drafts) - 1
                value = {**value, key: drafts[:1]}
        for key in WRAPPERS:
            if value.get(key) and (found := self._raw(value[key], depth + 1)) is not None:
                config = value.get("config")
                told = value.get("instructions") or value.get("system")
                told = told or (config.get("system_instruction") if isinstance(config, dict) else None)
                if isinstance(told, str):
                    found = [{"role": "system", "content": told}, *found]
                return found
        return None

    def one(self, value: Any, default: Role, path: Path) -> list[Message]:
        """Split one message into the speaker's text and calls, and the tool results it carries."""
        if isinstance(value, list) and _is_pair(value):
            value = {"role": value[0], "content": value[1]}
        item = Fields(_unwrapped(value), path, self.faults)
        kind = item.raw("type")
        if "role" not in item and isinstance(kind, str) and kind != "message" and kind.lower() not in ROLES:
            item = Fields({"role": "assistant", "content": [dict(item.value)]}, path, self.faults)
        role = self._role(item, default)
        if role is None:
            return []
        said = _Said()
        said.calls = self._calls_beside(item)
        said.beside = len(said.calls)
        content = next((item.raw(key) for key in ("parts", "content", "contents") if key in item), None)
        if isinstance(content, str) and _are_parts(packed := json_of(content)):
            content = fitting(packed, (*path, "content"), self.faults)
        if isinstance(content, dict) and (isinstance(content.get("type"), str) or "parts" in content):
            content = content.get("parts", [content])
        self._take_content(content, role, (*path, "parts"), said)
        for key in ("reasoning_content", "reasoning", "thinking"):
            if isinstance(item.raw(key), str):
                said.thoughts.append(item.raw(key))
                break
        if not said.texts and isinstance(item.raw("refusal"), str):
            said.texts.append(item.raw("refusal"))
        if not said.texts and isinstance(item.raw("audio"), dict):
            said.texts.append(item.mapping("audio").text("transcript") or "")
        if item.value and item.value.keys().isdisjoint(SPOKEN):
            self.unknown["messages without content"] += 1
        return said.messages(role, item, content)

    def _role(self, item: Fields, default: Role) -> Role | None:
        named = item.text("role")
        if not named and isinstance(kind := item.raw("type"), str):
            named = kind if kind in ROLES else None
        role = ROLES.get(named.lower()) if named else default
        if role is None:
            self.faults.add((*item.path, "role"), f"must be system, user, assistant or tool, got {short(named)}")
        return role

    def _calls_beside(self, item: Fields) -> list[ChatCall]:
        """The calls that a message holds in members of its own."""
        calls = []
        for key in ("tool_calls", "invalid_tool_calls"):
            listed = item.raw(key)
            if isinstance(listed, str) and isinstance(packed := json_of(listed), list):
                item = Fields({**item.value, key: packed}, item.path, item.faults)
            calls += [self._call(call) for call in item.mappings(key)]
        extra = item.raw("additional_kwargs")
        if not calls and isinstance(extra, dict):
            calls = [self._call(call) for call in item.mapping("additional_kwargs").mappings("tool_calls")]
        if not calls and isinstance(item.raw("function_call"), dict):
            calls = [self.named_call(item.mapping("function_call"), None, "arguments", "args")]
        return calls

    def _call(self, call: Fields) -> ChatCall:
        source = call.mapping("function") if isinstance(call.raw("function"), dict) else call
        return self.named_call(source, call_id(call, "id", "call_id", "toolCallId"), "arguments", "args", "input")

    def named_call(self, source: Fields, identity: str | None, *keys: str) -> ChatCall:
        """A call from an object with its name, from the members with these names: its arguments."""
        arguments = fitting(source.arguments(*keys), (*source.path, keys[0]), self.faults)
        name = source.name("name") or source.name("toolName") or source.name("name", required=True)
        return ChatCall(name or "?", arguments, identity)

    def _take_content(self, content: Any, role: Role, path: Path, said: _Said) -> None:
        if isinstance(content, list):
            for place, part in enumerate(content):
                if isinstance(part, str):
                    said.texts.append(part)
                else:
                    self._take_part(Fields(part, (*path, place), self.faults), role, said)
        elif isinstance(content, str):
            said.texts.append(content)
        elif isinstance(content, dict) and role != "tool":
            said.texts.append(json.dumps(content, ensure_ascii=False))
        elif content is not None and role != "tool":
            self.faults.add((*path[:-1], "content"), f"must be text or a list of parts, got {short(content)}")

    def _take_part(self, part: Fields, role: Role, said: _Said) -> None:
        kind = part.raw("type")
        if kind is None:
            kind = next((key for key in UNTYPED if key in part), None)
        if not isinstance(kind, str):
            kind = "None" if kind is None else short(kind)
        match kind:
            case _ if kind in TEXTS:
                if part.raw("thought") is True:
                    said.thoughts.append(part.text("text") or "")
                else:
                    said.texts.append(part.text("content") or part.text("text") or "")
            case "refusal":
                said.texts.append(part.text("refusal") or part.text("content") or "")
            case "reasoningContent":
                said.thoughts.append(part.mapping(kind).mapping("reasoningText").text("text") or "")
            case _ if kind in THOUGHTS:
                said.thoughts.append(thought(part.value))
            case "toolUse":
                used = part.mapping(kind)
                said.add_call(self.named_call(used, call_id(used, "toolUseId"), "input"))
            case "functionCall" | "function_call" if isinstance(part.raw(kind), dict):
                used = part.mapping(kind)
                said.add_call(self.named_call(used, call_id(used, "id"), "args", "arguments"))
            case "toolResult":
                used = part.mapping(kind)
                result, failed = plain(used.raw("content")), used.raw("status") == "error"
                said.results.append(tool_message(result, call_id(used, "toolUseId"), failed=failed))
            case "functionResponse" | "function_response":
                used = part.mapping(kind)
                said.results.append(tool_message(used.raw("response"), call_id(used, "id"), used.name("name")))
            case _ if kind in CALLS:
                identity, *keys = CALLS[kind]
                call = self.named_call(part, call_id(part, identity, "id"), *keys)
                # the Responses API gives a call two ids: its own, and the one that its result names
                other = call_id(part, "id")
                said.add_call(call if other in (None, call.id) else replace(call, other_ids=(str(other),)))
            case _ if kind in RESULTS:
                identity, *keys = RESULTS[kind]
                result = next((part.raw(key) for key in keys if key in part), "")
                tool = part.raw("name") if isinstance(part.raw("name"), str) else None
                failed = part.raw("is_error") is True
                said.results.append(tool_message(plain(result), call_id(part, identity, "id"), tool, failed=failed))
            case _ if kind.endswith("_call_output"):
                said.results.append(tool_message(plain(part.raw("output")), call_id(part, "call_id", "id")))
            case _ if kind.endswith("_call"):
                self._take_service_call(part, kind.removesuffix("_call"), said)
            case _ if kind in MEDIA:
                said.texts.append(f"({part.raw('modality')})" if "modality" in part else MEDIA[kind])
            case _ if kind in SAYS_NOTHING:
                pass
            case _ if role != "user" and any(word in kind.lower() for word in COULD_MATTER):
                allowed = ", ".join((*sorted(TEXTS), *CALLS, *RESULTS))
                wrong = f"may be a call, a result or an answer, and its kind is not known: {short(kind)}"
                self.faults.add((*part.path, "type"), f"{wrong} (known: {allowed})")
            case _:
                self.unknown[f"content parts of kind {short(kind)}"] += 1

    def _take_service_call(self, part: Fields, name: str, said: _Said) -> None:
        """A call of a tool that the provider runs itself: its result, if recorded, is in the same part."""
        key = next((key for key in ("arguments", "action") if key in part), "arguments")
        about = {name: item for name, item in part.value.items() if name not in _NO_ARGUMENTS and item is not None}
        arguments = part.arguments(key) if key in part else about
        identity = call_id(part, "call_id", "id")
        said.add_call(ChatCall(part.name("name") or name, arguments, identity))
        result = next((part.raw(key) for key in ("output", "outputs", "result", "results") if key in part), None)
        if result is not None:
            said.results.append(tool_message(plain(result), identity))


class _Said:
    """What one message says, in the making."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.calls: list[ChatCall] = []
        self.beside = 0  # how many of them stand in members of the message
        self.results: list[Message] = []

    def add_call(self, call: ChatCall) -> None:
        """Add a call of a part, unless it stands in a member too: LangChain's messages hold their calls twice."""
        if call not in self.calls[: self.beside]:
            self.calls.append(call)

    def messages(self, role: Role, item: Fields, content: Any) -> list[Message]:
        text = "\n".join(part for part in self.texts if part)
        if role == "tool" and not self.results:
            result = content if content is not None and not isinstance(content, (str, list)) else None
            if item.raw("status") == "error" and result is None:
                result = failure(text)
            answers = call_id(item, "tool_call_id", "id", "toolCallId")
            return [Message("tool", text, answers=answers, tool=item.name("name"), result=result)]
        if role == "tool" or not (text or self.calls or self.thoughts or not self.results):
            return self.results
        reasoning = [one for one in self.thoughts if one.strip()]
        return [Message(role, text, self.calls, reasoning=reasoning), *self.results]


def call_id(source: Fields, *keys: str) -> str | None:
    """The id of a call, under the first of these keys that gives one; an empty text is no id."""
    return next((str(source.raw(key)) for key in keys if source.raw(key) not in (None, "") and source.name(key)), None)


def thought(part: Mapping[str, Any]) -> str:
    """The text of a thought; empty if it is encrypted."""
    for key in ("content", "text", "thinking", "reasoning", "summary"):
        value = part.get(key)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value:
            texts = (item.get("text") if isinstance(item, dict) else item for item in value)
            return "\n".join(text for text in texts if isinstance(text, str))
        if isinstance(value, dict) and isinstance(value.get("text"), str):
            return str(value["text"])
    return ""


def plain(result: Any) -> Any:
    """A result without its wrapping: the text of text parts, the one JSON value of a JSON part."""
    if isinstance(result, dict) and isinstance(body := _unwrapped(result), dict) and body is not result:
        return plain(body.get("content"))
    if isinstance(result, dict) and result.keys() == {"type", "value"}:  # Vercel's AI SDK
        return failure(result["value"]) if str(result["type"]).startswith("error") else plain(result["value"])
    if not isinstance(result, list) or not result or not all(isinstance(part, dict) for part in result):
        return result
    if all(part.get("type", "text") in TEXTS and isinstance(part.get("text"), str) for part in result):
        return "\n".join(part["text"] for part in result)
    if len(result) == 1 and result[0].keys() == {"json"}:
        return result[0]["json"]
    return result


def _unwrapped(value: Any) -> Any:
    """A message without the wrapping of LangChain's dumps, and of replies that hold one message."""
    if not isinstance(value, dict):
        return value
    if value.get("lc") and isinstance(value.get("kwargs"), dict):
        names = value.get("id")
        name = names[-1] if isinstance(names, list) and names and isinstance(names[-1], str) else ""
        kind = name.removesuffix("Chunk").removesuffix("Message").lower()
        return {**value["kwargs"], **({"role": kind} if kind in ROLES else {})}
    if isinstance(value.get("type"), str) and isinstance(value.get("data"), dict) and "content" in value["data"]:
        return {**value["data"], "type": value["type"]}
    inner = value.get("message")
    if isinstance(inner, dict) and not value.keys() & {"role", "content", "parts"}:
        return _unwrapped(inner)
    if isinstance(inner, str) and "role" not in value and "content" not in value:
        return {**value, "content": inner}
    return value


def is_message(value: Any) -> bool:
    """Whether a value is certainly a message of some library."""
    if isinstance(value, list):
        return _is_pair(value)
    value = _unwrapped(value)
    if not isinstance(value, dict):
        return False
    kind, role = value.get("type"), value.get("role")
    if isinstance(role, str) and role.lower() in ROLES:
        return any(key in value for key in CONTENT)
    if isinstance(kind, str):
        bare = kind.removesuffix("MessageChunk").lower()
        if (kind in ROLES or bare in ROLES) and "content" in value:
            return True
        return (kind in CALLS and kind != "tool_call" and "name" in value) or kind in RESULTS.keys() - {"tool-result"}
    return False


def _is_pair(value: list[Any]) -> bool:
    """Whether a list is a message as LangChain takes them: a role and a text."""
    return (
        len(value) == 2
        and isinstance(value[0], str)
        and value[0].lower() in ROLES
        and isinstance(value[1], (str, list))
    )


def _are_parts(value: Any) -> bool:
    """Whether JSON text is a message in parts and not the text of an answer."""
    known = {*TEXTS, *CALLS, *RESULTS, *MEDIA, *THOUGHTS} - {"file"}

    def is_part(part: Any) -> bool:
        if not isinstance(part, dict):
            return False
        kind = part.get("type")
        return kind in known if isinstance(kind, str) else "type" not in part and any(key in part for key in UNTYPED)

    return isinstance(value, list) and bool(value) and all(map(is_part, value))


def _are_typed(value: Any) -> bool:
    """Whether a value is certainly a list of typed parts, at least one of which says or does something."""
    kinds = [part.get("type") if isinstance(part, dict) else None for part in value] if isinstance(value, list) else []
    known = {*TEXTS, *CALLS, *THOUGHTS, "refusal"}
    return bool(kinds) and all(isinstance(kind, str) and kind in known for kind in kinds)


def text_of(value: Any, names: Iterable[str]) -> tuple[str | None, str]:
    """The text that a value is or holds, alone or under one of these `names`; else the value as JSON text."""
    if isinstance(value, str):
        packed = json_of(value)
        if packed is None:
            return value, ""
        value = packed
    if isinstance(value, str):
        return value, ""
    if isinstance(value, dict):
        held = {name: item for name, item in value.items() if item is not None}
        if len(held) == 1 and "type" not in held and isinstance(only := next(iter(held.values())), str):
            return only, ""
        for name in names:
            if isinstance(value.get(name), str):
                return value[name], ""
    if value is None or value in ({}, []):
        return None, ""
    return None, json.dumps(value, ensure_ascii=False, default=str)
