"""Forty ways in which a server can go wrong, all at once."""

import gzip
import itertools
import json

import pytest
from openai_server import ChatServer, Reply
from scripted import conversation, turn, verdict

from agentic_bayes.evidence.assess import assess
from agentic_bayes.evidence.llm.judge import LLMJudge
from agentic_bayes.evidence.llm.store import Store

openai = pytest.importorskip("langchain_openai", reason="the OpenAI client is an extra")

GOOD = verdict(0.9, "right")
OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


def completion(**message):
    """The body of a well-formed reply with some message."""
    choice = {"index": 0, "message": {"role": "assistant"} | message, "finish_reason": "stop"}
    return {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}


def body(value):
    return Reply(raw=json.dumps(value).encode())


WHOLE = json.dumps(completion(content=GOOD)).encode()
BEHAVIOURS = {
    # the connection
    "never replies": Reply(delay=600),
    "closes at once": Reply(drop=True),
    "closes after a while": Reply(drop=True, delay=0.05),
    "sends nothing and closes": Reply(wire=list),
    "sends garbage": Reply(wire=lambda: [bytes(range(256))]),
    "speaks TLS": Reply(wire=lambda: [b"\x16\x03\x01\x00\x05hello"]),
    "sends half a status line": Reply(wire=lambda: [b"HTTP/1."], hangs=True),
    "sends a head without end": Reply(wire=lambda: (b"x-%d: y\r\n" % i for i in range(10**9)), pause=0.01),
    "sends a head and then nothing": Reply(wire=lambda: [OK + b"content-length: 100\r\n\r\n"], hangs=True),
    "sends less than it announces": Reply(wire=lambda: [OK + b"content-length: 9999\r\n\r\n", WHOLE]),
    "sends less than it announces and waits": Reply(
        wire=lambda: [OK + b"content-length: 9999\r\n\r\n", WHOLE], hangs=True
    ),
    "sends chunks without end": Reply(
        wire=lambda: itertools.chain([OK + b"transfer-encoding: chunked\r\n\r\n"], itertools.repeat(b"1\r\n \r\n")),
        pause=0.02,
    ),
    "sends a bad chunk": Reply(wire=lambda: [OK + b"transfer-encoding: chunked\r\n\r\nzz\r\n"]),
    "sends a byte now and then": Reply(
        wire=lambda: itertools.chain([OK + b"content-length: 9999\r\n\r\n"], (b"{" for _ in range(9999))), pause=0.05
    ),
    "sends two lengths": Reply(wire=lambda: [OK + b"content-length: 5\r\ncontent-length: 6\r\n\r\nnull  "]),
    "claims gzip": Reply(raw=WHOLE, headers={"content-encoding": "gzip"}),
    "sends cut gzip": Reply(raw=gzip.compress(WHOLE)[:-40], headers={"content-encoding": "gzip"}),
    "sends megabytes of blanks as gzip": Reply(
        raw=gzip.compress(b" " * 5_000_000), headers={"content-encoding": "gzip"}
    ),
    # the status
    "redirects to itself": Reply(status=307, headers={"location": "/v1/chat/completions"}),
    "redirects to nowhere": Reply(status=308, headers={"location": "http://127.0.0.1:1/"}),
    "continues for ever": Reply(wire=lambda: [b"HTTP/1.1 100 Continue\r\n\r\n"] * 3, hangs=True),
    "says 204": Reply(wire=lambda: [b"HTTP/1.1 204 No Content\r\n\r\n"]),
    "says 429": Reply("slow down", status=429),
    "says 429 for an hour": Reply("tomorrow", status=429, headers={"retry-after": "3600"}),
    "says 500 with a verdict": Reply(status=500, raw=WHOLE),
    "says 503 in HTML": Reply(status=503, raw=b"<html>busy</html>"),
    "says 401": Reply("who are you", status=401),
    "says 999": Reply("?", status=999),
    # the body
    "an empty body": Reply(raw=b""),
    "a body that is no UTF-8": Reply(raw=b'{"id": "\xff\xfe"}'),
    "a web page": Reply(raw=b"<html>welcome to the hotel</html>", headers={"content-type": "text/html"}),
    "events of a stream": Reply(raw=b"data: " + WHOLE + b"\n\ndata: [DONE]\n\n"),
    "null": body(None),
    "a number": body(0.9),
    "a text": body(GOOD),
    "a list": body([completion(content=GOOD)]),
    "the verdict itself": body(json.loads(GOOD)),
    "an error with status 200": body({"error": {"message": "overloaded", "code": 529}}),
    "no choices": body(completion() | {"choices": []}),
    "choices that are null": body(completion() | {"choices": None}),
    "a choice that is a text": body(completion() | {"choices": [GOOD]}),
    "a message that is null": body(completion() | {"choices": [{"index": 0, "message": None}]}),
    "no content": body(completion()),
    "a content that is a number": body(completion(content=0.9)),
    "a content that is an object": body(completion(content=json.loads(GOOD))),
    "a function that was not asked for": body(completion(function_call={"name": "f", "arguments": GOOD})),
    "nested 50,000 deep": Reply(raw=b'{"a":' * 50_000),
    "a verdict for someone else": Reply("[answer 0123456789abcdef]\n" + verdict("0.9")),
    "NaN": Reply('{"reasoning": "r", "correctness_score": NaN}'),
    "a verdict cut off": Reply(GOOD[:-5], finish_reason="length"),
}


@pytest.mark.timeout(300)  # a server that hangs does so for 600 seconds
@pytest.mark.parametrize(
    ("structured", "attempts"), [(False, 1), pytest.param(True, 3, marks=pytest.mark.slow)], ids=["text", "structured"]
)
def test_every_server_is_left_within_its_limits_and_none_gives_a_score(tmp_path, monkeypatch, structured, attempts):
    """Two judgements by each server end by themselves, as unscored with a reason, and nothing is stored."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)

    assert len(BEHAVIOURS) >= 40
    turns = [
        conversation(turn(answer=f"{name}#{number}"), session=f"{name}#{number}", task_id=f"{name}#{number}")
        for name in BEHAVIOURS
        for number in range(2)
    ]
    with (
        ChatServer(lambda request: BEHAVIOURS[request.answer.partition("#")[0]]) as server,
        Store(tmp_path / "s.db") as store,
    ):
        model = openai.ChatOpenAI(model="m", api_key="x", base_url=server.url, temperature=0)
        judge = LLMJudge(model, use_structured_output=structured, attempts=attempts, timeout=3, backoff=0.1)
        evidence = assess(turns, judge=judge, store=store, concurrency=64, fail_fast=None)
        stored = len(store)
    scored = {row.session_id: row.answer_score for row in evidence if row.answer_score is not None}
    assert (scored, stored) == ({}, 0)
    assert (len(evidence), evidence.stopped) == (len(turns), None)
    assert all(row.unscored_reason.strip() for row in evidence)
