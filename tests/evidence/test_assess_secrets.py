"""The keys that a judge uses are in nothing that assess writes, prints or raises; errors say what the system said."""

import base64
import contextlib
import json
import re
import socket
import ssl
import threading
import traceback
from typing import Any

import httpx
import pytest
from openai_server import ChatServer, Reply
from pydantic import BaseModel, Field, PrivateAttr, SecretBytes
from scripted import ScriptedChatModel, conversation, turn, verdict
from typer.testing import CliRunner

from agentic_bayes.cli.app import app
from agentic_bayes.errors import InvalidArgument, StoppedEarly, described
from agentic_bayes.evidence.assess import assess
from agentic_bayes.evidence.llm.judge import LLMJudge
from agentic_bayes.evidence.score import Score
from agentic_bayes.records.write import write_conversations
from agentic_bayes.redaction import keys_in, secrets_in

KEY, OWN, HEADER = 'sk-canary+/"7\\39', "sk-of-the-model-itself", "Bearer of-the-proxy-only"
ALL = (KEY, json.dumps(KEY)[1:-1], OWN, HEADER, "of-the-proxy-only")


@pytest.fixture
def environment(monkeypatch):
    """The environment of somebody who uses OpenAI, without a proxy."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def leaks(*contents):
    """Secrets in texts and bytes."""
    whole = b"\n".join(text if isinstance(text, bytes) else text.encode() for text in contents)
    return [secret for secret in ALL if secret.encode() in whole]


def test_keys_are_found_where_models_keep_them():
    """In private and further fields, in headers of any kind and of an HTTP client, as bytes, in URLs of the system."""

    class Model(BaseModel, arbitrary_types_allowed=True, extra="allow"):
        _api_key: str = PrivateAttr("a private key")
        password: SecretBytes = SecretBytes(b"a key of bytes")
        client: Any = httpx.AsyncClient(headers={"X-Key": "a header of the client"}, auth=("user", "word"))
        extra_headers: Any = [("X-Key", "a header in a pair")]

    basic = f"Basic {base64.b64encode(b'user:word').decode()}"
    found = set(secrets_in(Model(api_token="a further key", seen_headers=[None, 1])))
    assert found >= {"a private key", "a key of bytes", "a header of the client", "a header in a pair", "a further key"}
    assert basic in found
    assert keys_in({"DATABASE_URL": "postgres://me:a-password@host/db", "HOME_URL": "https://host/"}) == {
        "a-password": "${DATABASE_URL}"
    }


class ModelWithKeys(ScriptedChatModel):
    """A model that was given a key and a header."""

    api_key: str = OWN
    default_headers: dict[str, str] = Field({"Authorization": HEADER, "Accept": "application/json"})


class Loud:
    """A metric that says the key in its reason, its details, or its error."""

    name, identity = "loud", "loud/1"

    def grade(self, conversation, position):
        """Score or raise."""
        if conversation.task_id == "a":
            raise RuntimeError(f"no access with {KEY!r}")
        return Score(1.0, f"asked with {KEY}", {KEY: [KEY, (HEADER,)]})


def test_no_key_is_in_reasons_store_or_evidence(environment, tmp_path):
    """Neither of a transport error nor of an unreadable reply, a verdict, a crash, or another grader; scores stay."""

    def script(messages):
        text = str(messages[1].content)
        if "answer a" in text:
            return RuntimeError(f"401: {KEY} {OWN} {HEADER}")
        return f"I saw {OWN}" if "answer b" in text else verdict(0.25, f"it says {KEY}, {OWN} and {HEADER}")

    judge = LLMJudge(ModelWithKeys(script=script), attempts=2, backoff=0)
    said = [conversation(turn(answer=f"answer {name}"), session=name, task_id=name) for name in "abc"]
    said.append(conversation(session="d", task_id="d", error=f"refused {KEY}"))
    for _ in range(2):  # the second time from the store
        evidence = assess(said, judge=judge, metrics=[Loud()], store=tmp_path / "kept.sqlite")
        evidence.write(tmp_path / "evidence.jsonl")
        assert leaks(*(path.read_bytes() for path in tmp_path.iterdir()), repr(evidence), str(evidence.rows)) == []
        assert [row.answer_score for row in evidence.rows] == [None, None, 0.25, None]
        assert "it says ${OPENAI_API_KEY}, <api_key> and <default_headers.Authorization>" in str(evidence.rows)


class Client:
    """What a grader of one's own may hold."""

    __slots__ = ("extra_headers", "private_key")

    def __init__(self):
        self.private_key, self.extra_headers = OWN, {"X-Proxy": HEADER}


class OwnJudge:
    """A judge that is given its keys, and says them all."""

    name, identity = "own", "own/1"

    def __init__(self):
        self.settings, self.client, self.itself = [{"api-key": KEY}], Client(), self

    def grade(self, conversation, position):
        """Score or raise."""
        if conversation.task_id == "a":
            raise RuntimeError(f"401: {KEY} {OWN} {HEADER}")
        return Score(1.0, f"asked with {KEY}, {OWN}, {HEADER}", {"keys": [KEY, OWN]})


@pytest.mark.parametrize("executor", [None, "local:1"])
def test_keys_that_a_grader_of_ones_own_holds_are_hidden(monkeypatch, tmp_path, executor):
    """At keys, in headers and within its client, though no variable of the environment has them."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    said = [conversation(session=name, task_id=name) for name in "ab"]
    evidence = assess(said, judge=OwnJudge(), metrics=[OwnJudge()], executor=executor)
    evidence.write(tmp_path / "evidence.jsonl")
    assert leaks((tmp_path / "evidence.jsonl").read_bytes(), repr(evidence), str(evidence.rows)) == []
    named = "<settings[0].api-key>, <private_key>, <extra_headers.X-Proxy>"
    assert named in str(evidence.rows)


def test_a_run_that_stops_says_why_without_the_key(environment):
    """In the warning, and as the reason of what was not asked."""
    judge = LLMJudge(ScriptedChatModel(script=lambda _: RuntimeError(f"no quota for {KEY}")), attempts=1)
    with pytest.warns(StoppedEarly) as warned:
        evidence = assess(
            [conversation(task_id="a"), conversation(task_id="b", session="s2")], judge=judge, fail_fast=1
        )
    assert leaks(str(warned[0].message), str(evidence.stopped), str(evidence.rows)) == []
    assert "no quota for ${OPENAI_API_KEY}" in str(evidence.stopped)


def test_a_model_that_cannot_be_made_does_not_show_its_key(environment):
    """Neither in the message nor in the traceback of its cause."""
    pytest.importorskip("langchain_openai", reason="the OpenAI client is an extra")
    judge = LLMJudge("openai:m", model_arguments={"api_key": OWN, "no_such": KEY, "timeout": f"never {KEY} {OWN}"})
    with pytest.raises(InvalidArgument, match="cannot be used") as refused:
        assess([conversation()], judge=judge)
    assert leaks("".join(traceback.format_exception(refused.value))) == []


def test_the_command_shows_no_key_that_a_server_echoes(environment, tmp_path):
    """With everything printed and written."""
    pytest.importorskip("langchain_openai", reason="the OpenAI client is an extra")
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    write_conversations([conversation()], source)
    with ChatServer(lambda _: Reply(f"Incorrect API key provided: {KEY}", status=401)) as server:
        environment.setenv("OPENAI_BASE_URL", server.url)
        arguments = ["assess", source, "--judge", "openai:m", "-o", out, "--store", tmp_path / "kept.sqlite", "--stats"]
        done = CliRunner().invoke(app, list(map(str, arguments)))
    assert done.exit_code == 0
    assert len(server.requests) == 1
    assert leaks(done.output, *(path.read_bytes() for path in tmp_path.iterdir())) == []
    assert "Incorrect API key provided: ${OPENAI_API_KEY}" in out.read_text()


def test_what_the_command_refuses_or_crashes_with_shows_no_key(environment, tmp_path):
    """An error of its own, and a bug."""
    (tmp_path / "in.jsonl").write_text(json.dumps({"session_id": KEY, "conversation": KEY}))
    arguments = ["assess", str(tmp_path / "in.jsonl"), "-o", str(tmp_path / "out.jsonl")]
    refused = CliRunner().invoke(app, arguments)
    environment.setattr("agentic_bayes.cli.assess.judge_all", lambda *_, **__: {}[KEY])
    write_conversations([conversation()], tmp_path / "in.jsonl")
    crashed = CliRunner().invoke(app, arguments)
    assert (refused.exit_code, crashed.exit_code) == (2, 1)
    assert "KeyError" in crashed.output
    assert leaks(refused.output, crashed.output) == []


@pytest.mark.parametrize(
    ("scheme", "cause"),
    [("http", "ConnectionRefusedError: .*Connect"), ("https", "SSLError: .*SSL")],
    ids=["refused", "TLS"],
)
def test_an_error_of_a_connection_says_what_the_system_said(environment, scheme, cause):
    """No server at all, and one that does not speak TLS."""
    openai = pytest.importorskip("langchain_openai", reason="the OpenAI client is an extra")

    def speak():
        with contextlib.suppress(OSError):
            connection, _ = listening.accept()
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        if scheme == "http":
            listening.close()
        threading.Thread(target=speak, daemon=True).start()
        model = openai.ChatOpenAI(model="m", base_url=f"{scheme}://127.0.0.1:{port}/v1")
        (row,) = assess([conversation()], judge=LLMJudge(model, attempts=1, timeout=20)).rows
    assert re.match(rf"\w+: Connection error \({cause}", row.unscored_reason), row.unscored_reason


def test_a_wait_is_no_cause():
    """TLS reports that it waits for more as an error; a call that takes too long failed for its length."""
    waiting = TimeoutError("no reply within 3 s")
    waiting.__context__ = ssl.SSLWantReadError("The operation did not complete")
    assert described(waiting) == "TimeoutError: no reply within 3 s"
