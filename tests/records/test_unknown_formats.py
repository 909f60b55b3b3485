"""A file that no reader reads is named, with the nearest thing that is read and the lines that would do."""

import gzip
import json
from pathlib import Path

import pytest

import agentic_bayes as ab
from agentic_bayes.errors import EvidenceError, RecordsError

RESULTS = Path(__file__).parents[1] / "evidence" / "results" / "files"


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


@pytest.mark.parametrize(
    ("file", "what"),
    [
        ("promptfoo.json", "promptfoo results"),
        ("promptfoo.jsonl", "promptfoo results"),
        ("deepeval_result.json", "a deepeval result"),
        ("swe_bench/acme__tiny.demo.json", "a report of SWE-bench"),
        ("bfcl/score/acme-tiny-FC/non_live/BFCL_v4_simple_python_score.json", "a score file of BFCL"),
        ("junit/pytest.xml", "XML or HTML; of JUnit XML, its results are read by estimate"),
        ("samples_df.csv", "a table of Inspect's samples"),
        ("mlflow_eval_results.csv", "a table of MLflow's evaluation"),
        ("langsmith/langsmith_experiment.csv", "a LangSmith experiment"),
        ("pydantic_evals_report.json", "a pydantic-evals report"),
        ("evalplus/acme--tiny_vllm_temp_0.8_eval_results.json", "EvalPlus results"),
    ],
)
def test_results_of_a_tool_are_named_and_the_line_reads_them(refusal, file, what):
    """The line counts them, or asks which of several scores counts."""
    message = refusal((RESULTS / file).read_bytes())
    assert f"looks like {what}" in message
    (line,) = lines_of(message)
    try:
        assert eval(line).trials.sum() > 0
    except EvidenceError as error:
        assert "there are several scores" in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("content", "what", "advice"),
    [
        (
            {"custom_id": "1", "method": "POST", "url": "/v1", "body": {}},
            "an OpenAI batch request file",
            "give both files, or join them by custom_id",
        ),
        ({"conversations": [{"from": "human", "value": "?"}]}, "ShareGPT conversations", "chats.jsonl"),
        ({"doc_id": 1, "resps": []}, "samples of lm-evaluation-harness", "outcomes_from_results("),
        ({"agent": "a", "task": "t", "trial": 0, "answer_score": 1}, "evidence of agentic-bayes", "Evidence.read"),
        (
            {"x": 1, "dialog": [{"role": "user", "content": "?"}]},
            "messages in 'dialog'",
            "columns={'dialog': \"messages\"}",
        ),
        (
            [{"parts": [{"content": "?", "part_kind": "user-prompt"}], "kind": "request"}],
            "Pydantic AI",
            "dump_messages",
        ),
        ({"appName": "a", "events": []}, "Google's Agent Development Kit", '{"contents": contents}'),
        ({"schemaType": "x", "operation": "Converse", "modelId": "m"}, "Bedrock's model invocations", "inputBodyJson"),
        ({"messageStart": {"role": "assistant"}}, "a reply that Bedrock streamed", "save the whole message"),
        ({"id": "1", "timestamp": "", "sessionId": "s", "release": None}, "Langfuse traces without", "trace.get("),
        ({"id": "t", "input": "?", "sessionId": "s", "observations": ["o"]}, "holds only ids", "trace.get("),
        (
            {"object": "response", "previous_response_id": "r", "input": [], "output": []},
            "continues another response",
            "before `input`",
        ),
        ({"type": "message_start", "message": {}}, "the events of a streamed reply", "stream.get_final_message()"),
        ({"type": "response.created", "response": {}}, "the events of a streamed reply", "get_final_response()"),
        ({"object": "chat.completion.chunk", "choices": [{"delta": {}}]}, "a piece of a streamed", "the whole reply"),
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
    assert refusal(run).count("\n") == 2  # the heading, the record, and how to skip it
    assert "did you mean 'conversation'" in refusal({"session_id": "s", "assistant_id": "a", "conversatoin": []})
