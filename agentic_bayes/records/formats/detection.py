"""The format of a file by its content, never its name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from io import BufferedReader
from typing import Any, Literal, get_args

from agentic_bayes.formatting import ELLIPSIS, first_few
from agentic_bayes.records.base import short
from agentic_bayes.records.formats import unknown
from agentic_bayes.records.formats.evals import tau2, tau_bench
from agentic_bayes.records.formats.evals.inspect import reading as inspect
from agentic_bayes.records.formats.messages import (
    anthropic,
    autogen,
    bedrock,
    gemini,
    langchain,
    openai,
    smolagents,
    vercel,
)
from agentic_bayes.records.formats.sessions import (
    atif,
    claude_code,
    codex,
    harbor,
    smolagents_memory,
    swe_agent,
    terminal_bench,
)
from agentic_bayes.records.formats.spans import agents_sdk, langfuse, langgraph, langsmith, mlflow
from agentic_bayes.records.formats.spans.otel import traces as otel
from agentic_bayes.records.model import Conversation
from agentic_bayes.records.wire.json_text import NO_VALUE, Parsed, parts
from agentic_bayes.records.wire.layout import STREAMED, Shape
from agentic_bayes.records.wire.zip_members import begins_zip

RecordFormat = Literal[
    "auto", "native", "tau-bench", "tau2", "inspect", "otel", "langsmith", "langfuse", "mlflow", "agents-sdk",
    "langgraph", "openai", "langchain", "anthropic", "autogen", "smolagents", "gemini", "bedrock", "vercel", "atif",
    "harbor", "terminal-bench", "smolagents-memory", "swe-agent", "claude-code", "codex",
]  # fmt: skip
FORMATS = get_args(RecordFormat)

READERS: dict[str, Any] = {
    module.NAME: module
    for module in (
        *(tau2, tau_bench, inspect, claude_code, codex, harbor, terminal_bench, atif, swe_agent, smolagents_memory),
        *(otel, langsmith, langfuse, mlflow, agents_sdk, langgraph),
        *(autogen, langchain, smolagents, gemini, bedrock, vercel, anthropic, openai),
    )
}
"""The modules that read the formats, in the order in which they are tried.

In each, ``recognises`` says whether a file of a `Shape` is in its format, and ``read`` yields the records of a stream.
"""

ALIKE = tuple(name for name, reader in READERS.items() if hasattr(reader, "MARKS"))
"""Formats whose messages may look the same until one holds more than text: each has ``MARKS`` that only it has."""

LOOKED_AT = 1_000
"""How many messages are looked at, at most, to tell such formats apart."""

NATIVE = "conversation"
"""The top-level member that only the native format has."""

NATIVE_KEYS = frozenset({NATIVE, "session_id", "assistant_id"})
"""A native record has at least one of these members."""

UNKNOWN = "unknown format"
"""How the message begins about a file in no known format."""

MEMBERS = frozenset(Conversation.model_fields)
"""All members of a native record."""


def detected(path: str) -> str:
    """Detect a file's format from its content; empty if it cannot be read."""
    if not os.path.isfile(path):
        return ""
    try:
        with open(path, "rb") as stream:
            return format_of(stream)
    except OSError:
        return ""


def format_of(stream: BufferedReader) -> str:
    """Detect the format of a file; ``native`` if it looks like none of the others."""
    if begins_zip(stream):  # only Inspect logs are zip files; their reader reports what is missing
        return inspect.NAME
    shape = Shape()
    found = ""
    for number, part in enumerate(parts(stream, STREAMED)):
        if (part.document and not found) or part.faults or (found and number > LOOKED_AT):
            break
        shape.take(part)
        if not found:
            found = next((name for name, reader in READERS.items() if reader.recognises(shape)), "")
        # plain text looks the same in several formats of messages: what comes later decides
        if found and found not in ALIKE:
            return found
        if found:
            if chosen := next((name for name in ALIKE if READERS[name].MARKS & shape.marks), None):
                return chosen
            if not part.document:
                found = next(name for name in (*ALIKE, found) if name == found or READERS[name].recognises(shape))
        elif shape.is_list or shape.complete or NATIVE in shape.keys:
            break
    return found or "native"


def native_only(found: Iterator[Parsed], name: str) -> Iterator[Parsed]:
    """The records of a file that was taken as native because it looks like no other format."""
    first = next(found, None)
    if first is None:
        return
    keys = first.value.keys() if isinstance(first.value, dict) else {}.keys()
    if not keys or NATIVE in keys or (keys & NATIVE_KEYS and 2 * len(keys & MEMBERS) >= len(keys)):
        yield first
        yield from found
        return
    if first.faults:  # what is wrong with its text may be why
        yield replace(first, value=NO_VALUE)
        return
    named = first_few([short(key, 30) for key in keys], 8, rest=ELLIPSIS)
    formats = ", ".join(name for name in FORMATS if name != "auto")
    advice = unknown.by_record(first.value, name)
    advice = advice or f"if it is one of {formats}, choose it with format= (--format on the command line)"
    message = f"{UNKNOWN}: an object with the keys {named}; {advice}"
    yield replace(first, value=NO_VALUE, faults=(*first.faults, ("", message)))
