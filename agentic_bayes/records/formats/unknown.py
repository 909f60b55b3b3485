"""What a file is that no reader reads, as far as it shows, and what would turn it into something that is read."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from io import BufferedReader
from pathlib import PurePath
from typing import Any

from agentic_bayes.records.base import short

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
_MARKUP = re.compile(r"\s*<(\?xml|!DOCTYPE|[A-Za-z]+[ >/])")
_YAML = re.compile(r"\s*(---|- |[\w.-]+:(\s|$))")
_ROLES = {
    "agent": ("agent", "model", "model_name", "version", "provider", "assistant", "model_name_or_path"),
    "task": ("task", "task_id", "case", "test", "name", "question", "prompt", "id", "doc_id", "instance_id"),
    "correct": ("correct", "success", "passed", "pass", "resolved", "is_correct", "score", "reward", "exact_match"),
}
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class KnownTool:
    """A kind of file that is not read as conversations."""

    what: str  # what it looks like
    keys: frozenset[str]  # keys of its first object
    nearest: str  # the nearest thing that is read
    lines: tuple[str, ...] = ()  # what to do in Python; {file} is the file


_TABLE = "its results can be read as a table"
_PROMPTFOO = (
    'rows["agent"] = rows["provider.label"] + ", " + rows["prompt.label"]',
    'ab.outcomes_from_table(rows.drop(columns="error"), task="testCase.description", correct="success")',
)
_PHOENIX = (
    "write the data frame as JSON, which keeps the messages",
    "spans = px.Client().get_spans_dataframe()",
    'spans.to_json("spans.jsonl", orient="records", lines=True, date_format="iso")',
)
_KNOWN = (
    KnownTool(
        "promptfoo results",
        frozenset({"evalId", "results"}),
        _TABLE,
        ('rows = pd.json_normalize(json.load(open("{file}"))["results"]["results"])', *_PROMPTFOO),
    ),
    KnownTool(
        "promptfoo results",
        frozenset({"gradingResult", "promptIdx"}),
        _TABLE,
        ('rows = pd.json_normalize([json.loads(line) for line in open("{file}")])', *_PROMPTFOO),
    ),
    KnownTool(
        "a deepeval result",
        frozenset({"test_results"}),
        _TABLE,
        (
            'rows = pd.DataFrame(json.load(open("{file}"))["test_results"])',
            'ab.outcomes_from_table(rows, task="name", correct="success")',
        ),
    ),
    KnownTool(
        "a pydantic-evals report",
        frozenset({"cases", "failures"}),
        _TABLE,
        (
            'report = json.load(open("{file}")); rows = pd.json_normalize(report["cases"] + report["failures"])',
            'ab.outcomes_from_table(rows, task="source_case_name", correct="assertions.NAME.value", '
            'error="error_message")',
        ),
    ),
    KnownTool(
        "a LangSmith run",
        frozenset({"run_type", "inputs"}),
        'it may be read with format="langsmith" (--format langsmith)',
    ),
    KnownTool(
        "a Langfuse export", frozenset({"observations"}), 'it may be read with format="langfuse" (--format langfuse)'
    ),
    KnownTool("an MLflow trace", frozenset({"info", "data"}), 'it may be read with format="mlflow" (--format mlflow)'),
    KnownTool(
        "a trace of openai-agents",
        frozenset({"object", "span_data"}),
        'it may be read with format="agents-sdk" (--format agents-sdk)',
    ),
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
        "samples of lm-evaluation-harness",
        frozenset({"doc_id", "resps"}),
        _TABLE,
        ('ab.outcomes_from_table("{file}", task="doc_id", correct="exact_match")',),
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
        return "it looks like XML or HTML"
    if _YAML.match(line):
        return "it looks like YAML; a suite's file must end in .yaml or .yml"
    for separator, kind in ((",", "CSV"), ("\t", "TSV")):
        try:
            columns = next(csv.reader([line], delimiter=separator), [])
        except csv.Error:
            columns = []
        if len(columns) > 1 and all(column.strip() for column in columns):
            if {"context.trace_id", "context.span_id"} <= set(columns):
                return _with_lines(f"it looks like Phoenix's spans as {kind}; {_PHOENIX[0]}", _PHOENIX[1:], name)
            return f"it looks like a table ({kind}), which is read as results: {_as_table(columns, name)}"
    return ""


def by_record(record: Any, name: str) -> str:
    """What an object of no known format looks like, with the nearest thing that is read and what to do."""
    if not isinstance(record, Mapping):
        return ""
    for known in _KNOWN:
        if known.keys <= record.keys():
            return f"it looks like {known.what}: {_with_lines(known.nearest, known.lines, name)}"
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
        return f"it looks like a row of a table, which is read as results: {_as_table(list(record), name)}"
    return ""


def is_native(record: Mapping[str, Any], members: Set[str]) -> bool:
    """Whether an object is meant as a record in the native format: half of its keys or more are `members` of one."""
    return 2 * len(record.keys() & members) >= len(record)


def _chosen(columns: Sequence[str]) -> dict[str, str | None]:
    """The columns that seem to hold agent, task and result."""
    lower = {column.strip().lower(): column.strip() for column in columns}
    return {role: next((lower[word] for word in words if word in lower), None) for role, words in _ROLES.items()}


def _as_table(columns: Sequence[str], name: str) -> str:
    """The command that reads a table with these columns."""
    chosen = _chosen(columns)
    pairs = ",".join(f"{role}={column or '…'}" for role, column in chosen.items() if column or role != "agent")
    shown = ", ".join(short(column, 30) for column in columns[:_SHOWN]) + (", …" if len(columns) > _SHOWN else "")
    return f"agentic-bayes estimate {PurePath(name).name} --columns {pairs} (its columns: {shown})"


def _with_lines(text: str, lines: Sequence[str], name: str) -> str:
    return f"{text}{':' if lines else ''}" + "".join(f"\n    {_filled(line, name)}" for line in lines)


def _filled(text: str, name: str) -> str:
    return text.replace("{file}", PurePath(name).name)
