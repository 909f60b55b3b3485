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


USAGE = ("prompt_tokens", "completion_tokens", "total_tokens")
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
    # … and more of each kind
    "redirects to a file": Reply(status=307, headers={"location": "file:///etc/passwd"}),
    "redirects to no address": Reply(status=301, headers={"location": "http://[::1"}),
    "cuts its own reply short": Reply(wire=lambda: [OK + b"content-length: %d\r\n\r\n" % (len(WHOLE) - 30), WHOLE]),
    "announces less than nothing": Reply(wire=lambda: [OK + b"content-length: -5\r\n\r\n", WHOLE]),
    "announces a huge chunk": Reply(
        wire=lambda: [OK + b"transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n{"], hangs=True
    ),
    "speaks HTTP/0.9": Reply(wire=lambda: [WHOLE]),
    "speaks HTTP/2": Reply(wire=lambda: [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]),
    "is still processing": Reply(wire=lambda: itertools.repeat(b"HTTP/1.1 102 Processing\r\n\r\n"), pause=0.02),
    "switches protocols": Reply(wire=lambda: [b"HTTP/1.1 101 Switching Protocols\r\n\r\n"], hangs=True),
    "sends a head byte by byte": Reply(wire=lambda: (bytes([one]) for one in OK + WHOLE), pause=0.05),
    "sends 200,000 characters of a header": Reply(wire=lambda: [OK + b"x: " + b"y" * 200_000 + b"\r\n\r\n"]),
    "says 000": Reply(wire=lambda: [b"HTTP/1.1 000 x\r\n\r\n"]),
    "claims deflate": Reply(raw=WHOLE, headers={"content-encoding": "deflate"}),
    "says 429 for a year": Reply("later", status=429, headers={"retry-after": "31536000"}),
    "says 429 until 2099": Reply("later", status=429, headers={"retry-after": "Thu, 31 Dec 2099 23:59:59 GMT"}),
    "says 429 for ever": Reply("later", status=429, headers={"retry-after": "inf"}),
    "says 429 since yesterday": Reply("later", status=429, headers={"retry-after": "-86400"}),
    "a verdict in a web page": Reply(raw=f"<pre>{GOOD}</pre>".encode(), headers={"content-type": "text/html"}),
    "a number of 5,000 digits": Reply(raw=WHOLE.replace(b'"created": 0', b'"created": ' + b"9" * 5000)),
    "a score of 5,000 digits": Reply('{"reasoning": "r", "correctness_score": ' + "9" * 5000 + "}"),
    "two scores under one key": Reply('{"reasoning": "r", "correctness_score": 0.1, "correctness_score": 0.9}'),
    "Infinity": Reply('{"reasoning": "r", "correctness_score": Infinity}'),
    "a score that is true": Reply('{"reasoning": "r", "correctness_score": true}'),
    "choices by name": body(completion() | {"choices": {"0": completion(content=GOOD)["choices"][0]}}),
    "a call of nothing": body(completion(tool_calls=[{"id": "1", "type": "function", "function": None}])),
    "a call with half an argument": body(
        completion(tool_calls=[{"id": "1", "type": "function", "function": {"name": "f", "arguments": GOOD[:-4]}}])
    ),
    "a refusal": Reply(refusal="I cannot judge that."),
    "nothing, for its content filter": Reply(finish_reason="content_filter"),
    "usage in words": body(completion(content=GOOD) | {"usage": "many"}),
    "an error beside a verdict": body(completion(content=GOOD) | {"error": {"message": "half broken"}}),
}
ODD = {  # but a whole reply with a verdict
    "HTTP/1.0 without a length": Reply(wire=lambda: [b"HTTP/1.0 200 OK\r\n\r\n", WHOLE]),
    "trailers": Reply(
        wire=lambda: [OK + b"transfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\nx: y\r\n\r\n" % (len(WHOLE), WHOLE)]
    ),
    "early hints": Reply(
        wire=lambda: [b"HTTP/1.1 103 Early Hints\r\n\r\n" + OK + b"content-length: %d\r\n\r\n" % len(WHOLE), WHOLE]
    ),
    "a byte order mark": Reply(raw=b"\xef\xbb\xbf" + WHOLE),
    "UTF-16": Reply(raw=WHOLE.decode().encode("utf-16")),
    "gzip twice": Reply(raw=gzip.compress(gzip.compress(WHOLE)), headers={"content-encoding": "gzip, gzip"}),
    "the name of another model": body(completion(content=GOOD) | {"model": "another"}),
    "fewer tokens than none": body(completion(content=GOOD) | {"usage": dict.fromkeys(USAGE, -5)}),
    "two choices": body(completion() | {"choices": completion(content=GOOD)["choices"] * 2}),
}
# what some reasons must say, so that their reader knows what to do
SAID = {
    "claims gzip": "DecodingError",
    "claims deflate": "DecodingError",
    "says 429 for a year": "asks to wait 31,536,000 s",
    "redirects to a file": "unsupported protocol 'file://'",
    "choices by name": "client cannot read the reply",
    "a call with half an argument": "the reply calls 'f' instead of",
    "a refusal": "the model refused: 'I cannot judge that.'",
}


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def assessed(replies, store, **options):
    """Evidence on two answers per reply, by a judge whose server replies so to it."""
    turns = [
        conversation(turn(answer=f"{name}#{number}"), session=f"{name}#{number}", task_id=f"{name}#{number}")
        for name in replies
        for number in range(2)
    ]
    with ChatServer(lambda request: replies[request.answer.partition("#")[0]]) as server:
        model = openai.ChatOpenAI(model="m", api_key="x", base_url=server.url, temperature=0)
        judge = LLMJudge(model, backoff=0.1, **options)
        evidence = assess(turns, judge=judge, store=store, concurrency=64, fail_fast=None)
    assert (len(evidence), evidence.stopped) == (len(turns), None)
    return {row.session_id: row for row in evidence}


@pytest.mark.timeout(300)  # a server that hangs does so for 600 seconds
@pytest.mark.parametrize(
    ("structured", "attempts"), [(False, 1), pytest.param(True, 3, marks=pytest.mark.slow)], ids=["text", "structured"]
)
def test_every_server_is_left_within_its_limits_and_none_gives_a_score(tmp_path, structured, attempts):
    """Two judgements by each server end by themselves, as unscored with a reason, and nothing is stored."""
    assert len(BEHAVIOURS) >= 70
    with Store(tmp_path / "s.db") as store:
        rows = assessed(BEHAVIOURS, store, use_structured_output=structured, attempts=attempts, timeout=3)
        assert len(store) == 0
    assert {session: row.answer_score for session, row in rows.items() if row.answer_score is not None} == {}
    assert all(row.unscored_reason.strip() for row in rows.values())


def test_odd_but_whole_replies_are_read_and_reasons_say_what_happened():
    """What HTTP and JSON allow is no fault; of faults, the reader of the reason learns what to do."""
    rows = assessed(ODD | {name: BEHAVIOURS[name] for name in SAID}, None, use_structured_output=False, attempts=1)
    assert {name: row.unscored_reason for name in ODD if (row := rows[f"{name}#1"]).answer_score != 0.9} == {}
    reasons = {name: rows[f"{name}#1"].unscored_reason for name in SAID}
    assert {name: reason for name, reason in reasons.items() if SAID[name] not in reason} == {}
