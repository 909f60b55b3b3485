"""The tools that an agent was offered, in the shapes of all providers, in one shape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentic_bayes.records.wire.strict_json import strict_json

AVAILABLE_TOOLS = "available_tools"
"""Key in a conversation's metadata: tools that the agent could call, each a name or ``{name, description?,
parameters?}``."""

_SCHEMAS = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema", "parameters_json_schema", "schema")
_DECLARED = ("functionDeclarations", "function_declarations")
_INSIDE = ("function", "custom", "toolSpec", "tool_spec")


def offered_tools(value: Any) -> list[Any]:
    """The tools that a request or a log lists in any form, each once, in the shape of `AVAILABLE_TOOLS`."""
    found: dict[str, Any] = {}
    for tool in _tools(value):
        found.setdefault(tool if isinstance(tool, str) else tool["name"], tool)
    return list(found.values())


def _tools(value: Any) -> Iterator[Any]:
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            value = strict_json(value, finite=False)
        except ValueError:
            return
    if isinstance(value, dict) and isinstance(value.get("tools"), (list, dict)):
        value = value["tools"]
    if isinstance(value, dict):
        value = [{"name": name, **tool} for name, tool in value.items() if isinstance(tool, dict)]
    for tool in value if isinstance(value, list) else ():
        if isinstance(tool, str) and tool.strip():
            yield tool
        elif isinstance(tool, dict):
            yield from _of(tool)


def _of(tool: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The tools of one entry of a list, which may declare several."""
    for key in _DECLARED:
        yield from _tools(tool.get(key))
    inner = next((tool[key] for key in _INSIDE if isinstance(tool.get(key), dict)), tool)
    names = (inner.get("name"), tool.get("type"))
    name = next((each for each in names if isinstance(each, str) and each.strip()), None)
    if name is None:  # a tool of the provider: {"googleSearch": {}}
        others = (key for key, about in tool.items() if key not in _DECLARED and isinstance(about, dict))
        yield from ({"name": key} for key in others)
        return
    described: dict[str, Any] = {"name": name}
    if isinstance(inner.get("description"), str):
        described["description"] = inner["description"]
    schema = next((inner[key] for key in _SCHEMAS if isinstance(inner.get(key), dict)), None)
    if schema is not None:
        inside = schema.get("json", schema.get("jsonSchema"))
        described["parameters"] = inside if isinstance(inside, dict) else schema
    yield described
