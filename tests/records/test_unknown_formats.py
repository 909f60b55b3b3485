"""A file that no reader reads is named, with the nearest thing that is read and the lines that would do."""

import gzip
import json
import re

import pandas as pd
import pytest

import agentic_bayes as ab
from agentic_bayes.errors import RecordsError


@pytest.fixture
def refusal(tmp_path, monkeypatch):
    """The message for a file with this content."""
    monkeypatch.chdir(tmp_path)

    def run(content, name="log.json"):
        data = content if isinstance(content, (bytes, str)) else json.dumps(content)
        (tmp_path / name).write_bytes(data if isinstance(data, bytes) else data.encode())
        with pytest.raises(RecordsError, match="problem") as caught:
            ab.read_conversations(name)
        return str(caught.value)

    return run


def lines_of(message):
    """The lines of Python in a message."""
    return [line.strip() for line in message.split("\n") if line.startswith("    ")]


CASE = {"description": "oslo"}
ROW = {"success": True, "error": None, "provider": {"label": "v1"}, "prompt": {"label": "p"}, "testCase": CASE}
FAILED = ROW | {"success": False, "error": "expected 4"}


def test_promptfoo_results_are_named_and_their_lines_give_the_counts(refusal):
    """A failed assertion is a failure, no crash."""
    extra = {"gradingResult": {}, "promptIdx": 0}
    for content in (
        {"evalId": "e", "results": {"results": [ROW, FAILED, FAILED]}},
        "\n".join(json.dumps(row | extra) for row in (ROW, FAILED, FAILED)),
    ):
        message = refusal(content)
        assert "looks like promptfoo results" in message
        load, *rest = lines_of(message)
        scope = {"pd": pd, "json": json, "ab": ab}
        exec(
            re.sub(r"open\((.*?)\)", r"__import__('io').StringIO(TEXT)", load), scope | {"TEXT": ""}
        ) if False else None
        with open("log.json", encoding="utf-8") as file:
            scope["open"] = lambda name, file=file: file
            exec(load, scope)
        exec(rest[0], scope)
        counts = eval(rest[1], scope)
        assert counts.successes.item() == 1
        assert counts.trials.item() == 3
        assert counts.agent.values.tolist() == ["v1, p"]


@pytest.mark.parametrize(
    ("content", "what", "advice"),
    [
        ({"test_results": []}, "a deepeval result", 'task="name", correct="success"'),
        ({"cases": [], "failures": []}, "a pydantic-evals report", 'error="error_message"'),
        (
            {"custom_id": "1", "method": "POST", "url": "/v1", "body": {}},
            "an OpenAI batch request file",
            "join both by custom_id",
        ),
        ({"conversations": [{"from": "human", "value": "?"}]}, "ShareGPT conversations", "chats.jsonl"),
        ({"doc_id": 1, "resps": []}, "samples of lm-evaluation-harness", 'task="doc_id"'),
        ({"agent": "a", "task": "t", "trial": 0, "answer_score": 1}, "evidence of agentic-bayes", "Evidence.read"),
        (
            {"x": 1, "dialog": [{"role": "user", "content": "?"}]},
            "messages in 'dialog'",
            "columns={'dialog': \"messages\"}",
        ),
        (
            {"model": "m", "case": "c", "passed": True},
            "a row of a table",
            "--columns agent=model,task=case,correct=passed",
        ),
    ],
)
def test_a_known_kind_of_file_is_named_with_what_to_do(refusal, content, what, advice):
    """The message names what it looks like, and the lines that turn it into something that is read."""
    message = refusal(content)
    assert what in message
    assert advice in message


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("model,task,passed\nv1,t,1\n", "a table (CSV), which is read as results: agentic-bayes estimate log.json"),
        ("model\ttask\tpassed\n", "a table (TSV)"),
        (gzip.compress(b"model,task,passed\n", mtime=0), "--columns agent=model,task=task,correct=passed"),
        ("<?xml version='1.0'?>", "XML or HTML"),
        ("name: suite\n", "YAML"),
        (b"PAR1\x15\x04", "a Parquet table"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"\x89HDF\r\n", "a saved estimate"),
        (b"BZh91AY", "bunzip2 log.json"),
    ],
)
def test_a_file_that_is_no_json_is_named_by_how_it_begins(refusal, content, what):
    """Tables, archives and data bases are not called broken JSON only."""
    assert what in refusal(content)


def test_the_keys_of_anything_else_are_listed_with_the_formats(refusal):
    """Nothing is guessed."""
    message = refusal({"foo": {"a": 1}, "bar": []})
    assert "unknown format: an object with the keys 'foo', 'bar'; if it is one of native, " in message


def test_a_record_with_many_foreign_keys_is_not_taken_for_ours(refusal):
    """A LangSmith run has a session_id, too."""
    run = dict.fromkeys("abcdefgh", 1) | {"session_id": None, "run_type": "chain", "inputs": {}}
    assert refusal(run).count("\n") == 1
    assert "did you mean 'conversation'" in refusal({"session_id": "s", "assistant_id": "a", "conversatoin": []})
