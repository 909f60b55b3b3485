"""Guess what a file is that no reader recognises, and suggest how to make it readable."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from io import BufferedReader
from pathlib import PurePath
from typing import Any

from agentic_bayes.formatting import ELLIPSIS, first_few
from agentic_bayes.records.base import short
from agentic_bayes.records.roles import named

# how a file that is no text begins, what it is, and what to do with it
_MAGIC = {
    b"PAR1": ("a Parquet table", "agentic-bayes estimate {file} --columns agent=…,task=…,correct=…"),
    b"ARROW1": ("an Arrow table", 'pd.read_feather("{file}").to_parquet("results.parquet")'),
    b"SQLite format 3": ("an SQLite database", 'rows = pd.read_sql("SELECT … FROM …", sqlite3.connect("{file}"))'),
    b"\x89HDF": ("an HDF5 or netCDF file", "agentic-bayes estimate {file}, if it is a saved estimate"),
    b"CDF": ("a netCDF file", "agentic-bayes estimate {file}, if it is a saved estimate"),
    b"BZh": ("a file packed with bzip2", "bunzip2 {file}"),
    b"\xfd7zXZ": ("a file packed with xz", "unxz {file}"),
    b"\x28\xb5\x2f\xfd": ("a file packed with zstd", "unzstd {file}"),
}
# how the types of events begin that Anthropic's API and OpenAI's Responses API stream, and what adds them up
_EVENTS = ("message_start", "content_block_", "response.")
_WHOLE = (
    "save the whole reply, with its request's messages "
    "(stream.get_final_message() of Anthropic's SDK, stream.get_final_response() of OpenAI's)"
)
_WHOLE_OF_BEDROCK = "save the whole message as the last of its request's `messages`"
WITH_ALL = "get each trace with its observations, which hold the calls: langfuse.api.trace.get(trace_id)"
"""What to do about Langfuse traces that hold only ids."""
_MARKUP = re.compile(r"\s*<(\?xml|!DOCTYPE|[A-Za-z]+[ >/])")
_YAML = re.compile(r"\s*(---|- |[\w.-]+:(\s|$))")
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class KnownTool:
    """A kind of file that is not read as conversations."""

    what: str  # what it looks like
    keys: frozenset[str]  # keys of its first object
    nearest: str  # the nearest thing that is read
    lines: tuple[str, ...] = ()  # what to do in Python; {file} is the file


_OF_TOOLS = (
    ("promptfoo results", {"evalId", "results"}),
    ("promptfoo results", {"gradingResult", "promptIdx"}),
    ("a deepeval result", {"test_results"}),
    ("a pydantic-evals report", {"cases", "failures"}),
    ("samples of lm-evaluation-harness", {"doc_id", "resps"}),
    ("a report of SWE-bench", {"resolved_ids", "error_ids"}),
    ("EvalPlus results", {"hash", "eval"}),
    ("a score file of BFCL", {"accuracy", "correct_count", "total_count"}),
    ("a LangSmith experiment", {"example_id", "execution_time", "error"}),
    ("a table of MLflow's evaluation", {"trace_id", "request", "state", "assessments"}),
    ("a table of Inspect's samples", {"sample_id", "eval_id", "epoch"}),
)
"""Results of tools, and keys of their first object or columns of their table."""
_OF_FORMATS = (
    ("a LangSmith run", "langsmith", {"run_type", "inputs"}),
    ("a Langfuse export", "langfuse", {"observations"}),
    ("an MLflow trace", "mlflow", {"info", "data"}),
    ("a trace of openai-agents", "agents-sdk", {"object", "span_data"}),
)
"""Objects that may be in a format that can be read, its name, and their keys."""
_RESULTS = "its results are read by estimate, compare, gate and report"
_RESULTS_LINES = ('ab.outcomes_from_results("{file}")',)
_PHOENIX = (
    "write the data frame as JSON, which keeps the messages",
    "spans = px.Client().get_spans_dataframe()",
    'spans.to_json("spans.jsonl", orient="records", lines=True, date_format="iso")',
)
_KNOWN = (
    *(KnownTool(what, frozenset(keys), _RESULTS, _RESULTS_LINES) for what, keys in _OF_TOOLS),
    *(
        KnownTool(what, frozenset(keys), f'it may be read with format="{name}" (--format {name})')
        for what, name, keys in _OF_FORMATS
    ),
    KnownTool(
        "messages of Pydantic AI",
        frozenset({"parts", "kind"}),
        "UI messages of the Vercel AI SDK can be read, which Pydantic AI writes, too",
        (
            'messages = ModelMessagesTypeAdapter.validate_json(open("{file}").read())',
            "ui = [m.model_dump(mode='json', by_alias=True) for m in VercelAIAdapter.dump_messages(messages)]",
            'json.dump(ui, open("ui_messages.json", "w"))',
        ),
    ),
    KnownTool(
        "a session of Google's Agent Development Kit",
        frozenset({"appName", "events"}),
        "Gemini contents can be read",
        (
            'events = json.load(open("{file}"))["events"]',
            'contents = [event["content"] for event in events if event.get("content")]',
            'json.dump({"contents": contents}, open("contents.json", "w"))',
        ),
    ),
    KnownTool("Langfuse traces without their observations", frozenset({"timestamp", "sessionId", "release"}), WITH_ALL),
    KnownTool(
        "a log of Bedrock's model invocations",
        frozenset({"schemaType", "operation", "modelId"}),
        "it can be read if it holds a whole request and its whole reply (inputBodyJson, outputBodyJson) "
        "of Converse or in Anthropic's form; of a stream, save the whole reply",
    ),
    KnownTool("the events of a reply that Bedrock streamed", frozenset({"messageStart"}), _WHOLE_OF_BEDROCK),
    KnownTool("a Jaeger trace", frozenset({"traceID", "spans"}), "OpenTelemetry spans (OTLP in JSON) can be read"),
    KnownTool(
        "evidence of agentic-bayes",
        frozenset({"agent", "task", "trial", "answer_score"}),
        "it is read by estimate, compare, gate and report",
        ('ab.count_outcomes(ab.Evidence.read("{file}"))',),
    ),
    KnownTool(
        "the summary of a suite's run",
        frozenset({"total_tasks", "total_trials"}),
        "the folder of the run is read by estimate, compare, gate and report",
    ),
    KnownTool(
        "ShareGPT conversations",
        frozenset({"conversations"}),
        "OpenAI messages can be read",
        (
            'role = {"human": "user", "gpt": "assistant"}; rows = pd.read_json("{file}")',
            'rows["messages"] = [[{"role": role.get(m["from"], m["from"]), "content": m["value"]} for m in one] '
            "for one in rows.conversations]",
            'rows[["messages"]].to_json("chats.jsonl", orient="records", lines=True)',
        ),
    ),
)


def by_bytes(stream: BufferedReader, name: str) -> str:
    """What a file that is no text looks like, with what to do; empty if its first bytes show nothing."""
    begin = stream.peek(32)[:32]
    kinds = ((what, way) for magic, (what, way) in _MAGIC.items() if begin.startswith(magic))
    what, way = next(kinds, ("", ""))
    return f"looks like {what}, not like conversations; use: {_filled(way, name)}" if what else ""


def by_line(line: str, name: str) -> str:
    """What text that is no JSON looks like, by its first line, with what to do; empty if it shows nothing."""
    if _MARKUP.match(line):
        return f"it looks like XML or HTML; of JUnit XML, {_with_lines(_RESULTS, _RESULTS_LINES, name)}"
    if _YAML.match(line):
        return "it looks like YAML; a suite's file must end in .yaml or .yml"
    for separator, kind in ((",", "CSV"), ("\t", "TSV")):
        try:
            columns = next(csv.reader([line], delimiter=separator), [])
        except csv.Error:
            columns = []
        if found := _known(set(columns), name):
            return found
        if len(columns) > 1 and all(column.strip() for column in columns):
            if {"context.trace_id", "context.span_id"} <= set(columns):
                return _with_lines(f"it looks like Phoenix's spans as {kind}; {_PHOENIX[0]}", _PHOENIX[1:], name)
            return f"it looks like a table ({kind}), which is read as results: {_as_table(columns, name)}"
    return ""


def by_record(record: Any, name: str) -> str:
    """What an object of no known format looks like, with the nearest thing that is read and what to do."""
    if not isinstance(record, Mapping):
        return ""
    if found := _known(record.keys(), name):
        return found
    if str(record.get("type")).startswith(_EVENTS):
        return f"it looks like the events of a streamed reply: {_WHOLE}"
    for key, item in record.items():
        if isinstance(item, list) and item and isinstance(item[0], Mapping) and {"role", "content"} <= item[0].keys():
            lines = (
                f'rows = pd.read_json("{{file}}", lines=True).rename(columns={{{key!r}: "messages"}})',
                'rows.to_json("chats.jsonl", orient="records", lines=True)',
            )
            return _with_lines(
                f"it holds messages in {short(key)}, which are read under the name messages", lines, name
            )
    plain = not any(isinstance(item, (list, Mapping)) for item in record.values())
    if plain and _chosen(list(record))["correct"]:
        rows = "pandas.DataFrame([json.loads(path.read_text()) for path in pathlib.Path('.').rglob('*.json')])"
        join = f"; if each file is one row: {rows}.to_csv('all.csv', index=False)" if name.endswith(".json") else ""
        return f"it looks like a row of a table, which is read as results: {_as_table(list(record), name)}{join}"
    return ""


def _known(keys: Set[str], name: str) -> str:
    """Which kind of file has these keys or columns, with what to do; empty if none that is known."""
    found = next((known for known in _KNOWN if known.keys <= keys), None)
    return f"it looks like {found.what}: {_with_lines(found.nearest, found.lines, name)}" if found else ""


def _chosen(columns: Sequence[str]) -> dict[str, str | None]:
    """The columns that seem to hold agent, task and result."""
    names = [column.strip() for column in columns]
    return {role: next(iter(named(role, names)), None) for role in ("agent", "task", "correct")}


def _as_table(columns: Sequence[str], name: str) -> str:
    """The command that reads a table with these columns."""
    chosen = _chosen(columns)
    pairs = ",".join(f"{role}={column or '…'}" for role, column in chosen.items() if column or role != "agent")
    shown = first_few([short(column, 30) for column in columns], _SHOWN, rest=ELLIPSIS)
    return f"agentic-bayes estimate {PurePath(name).name} --columns {pairs} (its columns: {shown})"


def _with_lines(text: str, lines: Sequence[str], name: str) -> str:
    return f"{text}{':' if lines else ''}" + "".join(f"\n    {_filled(line, name)}" for line in lines)


def _filled(text: str, name: str) -> str:
    return text.replace("{file}", PurePath(name).name)
