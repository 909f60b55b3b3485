import asyncio
import email.utils
import os
import time

import anyio
import pytest
from openai_server import ChatServer, Reply, rate_of
from scripted import conversation, turn, verdict

from agentic_bayes.errors import StoppedEarly
from agentic_bayes.evidence.assess import assess, assess_async
from agentic_bayes.evidence.llm.judge import LLMJudge
from agentic_bayes.evidence.llm.store import Store
from agentic_bayes.evidence.score import Score, Unscored

openai = pytest.importorskip("langchain_openai", reason="the OpenAI client is an extra")

GOOD = Reply(verdict(0.9, "right"))


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def client(server, **arguments):
    settings = {"model": "gpt-4o-mini", "api_key": "not a key", "base_url": server.url, "temperature": 0}
    return openai.ChatOpenAI(**(settings | arguments))


def judge_of(server, **arguments):
    """A judge that does not wait long, and the waits it asked for."""
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    return LLMJudge(client(server), **({"sleep": sleep} | arguments)), waits


def many(count):
    return [conversation(turn(answer=f"answer {i}"), session=f"s{i:04}", task_id=f"t{i:04}") for i in range(count)]


def grade(judge):
    return anyio.run(judge.grade, conversation(turn()), 0)


def first(reply, then=GOOD):
    return lambda request: reply if request.number == 0 else then


METHODS = {
    "auto": ({}, "response_format"),
    "json_schema": ({"structured_method": "json_schema"}, "response_format"),
    "function_calling": ({"structured_method": "function_calling"}, "tools"),
    "json_mode": ({"structured_method": "json_mode"}, "response_format"),
    "text": ({"use_structured_output": False}, None),
}


@pytest.mark.parametrize(("arguments", "key"), METHODS.values(), ids=METHODS.keys())
def test_every_kind_of_reply_is_asked_for_and_read(arguments, key):
    """JSON schema, tool call, JSON mode and text each arrive at the server as such, and are read."""
    with ChatServer(lambda _: GOOD) as server:
        judge, _ = judge_of(server, **arguments)
        assert grade(judge) == Score(0.9, "right")
    (request,) = server.requests
    assert {"response_format", "tools"} & request.body.keys() == ({key} if key else set())
    kinds = {"json_schema": "json_schema", "auto": "json_schema", "json_mode": "json_object"}
    name = arguments.get("structured_method", "auto" if key else "")
    if name in kinds:
        assert request.body["response_format"]["type"] == kinds[name]


def test_a_provider_that_refuses_a_kind_of_reply_is_asked_in_the_next_best_one():
    """JSON schema, then tools, then text: what is refused costs no attempt and is not asked for again."""

    def respond(request):
        for key, name in (("response_format", "response_format"), ("tools", "tools")):
            if key in request.body:
                return Reply(f"{name} is not supported by this server", status=400)
        return GOOD

    with ChatServer(respond) as server:
        judge, waits = judge_of(server, attempts=1)
        assert grade(judge) == grade(judge) == Score(0.9, "right")
    assert len(server.requests) == 4
    assert waits == []
    assert judge.identity.endswith(" text")


FAILURES = {
    "429": Reply("slow down", status=429),
    "500": Reply("oh", status=500),
    "503 without JSON": Reply(status=503, raw=b"<html>busy</html>"),
    "dropped connection": Reply(drop=True),
    "dropped late": Reply(drop=True, delay=0.05),
    "a body that is no JSON": Reply(raw=b"<html>welcome to the hotel</html>"),
    "a body cut off": Reply(raw=b'{"id": "x", "choices": [{"mess'),
    "an empty body": Reply(raw=b""),
    "no choices": Reply(raw=b'{"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": []}'),
    "408": Reply("slow", status=408),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES.keys())
def test_a_failure_of_transport_is_repeated_and_then_unscored(failure):
    """Whatever goes wrong on the way is tried again once; when it stays wrong, the reason stands for the score."""
    with ChatServer(first(failure)) as server:
        judge, waits = judge_of(server)
        assert grade(judge) == Score(0.9, "right")
        assert (len(server.requests), len(waits)) == (2, 1)
    with ChatServer(lambda _: failure) as server:
        judge, waits = judge_of(server)
        assert isinstance(grade(judge), Unscored)
        assert (len(server.requests), len(waits)) == (4, 3)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_what_the_provider_will_never_accept_is_asked_once(status):
    """A wrong key or a wrong request is not repeated."""
    with ChatServer(lambda _: Reply("no, never", status=status)) as server:
        judge, waits = judge_of(server)
        found = grade(judge)
    assert isinstance(found, Unscored)
    assert "no, never" in found.reason
    assert (len(server.requests), waits) == (1, [])


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"retry-after": "7"}, 7, 7),
        ({"retry-after": "0.5"}, 1, 1.25),
        ({"retry-after-ms": "9500"}, 9.5, 9.5),
        ({"retry-after": "a date in 500 s"}, 200, 500),
        ({"retry-after": "soon"}, 1, 1.25),
        ({"retry-after": "-5"}, 1, 1.25),
        ({"retry-after": "nan"}, 1, 1.25),
    ],
    ids=str,
)
def test_retry_after_is_honoured(headers, least, most):
    """The wait is what the provider asks for, where that is longer than the back-off."""
    if "date" in headers.get("retry-after", ""):
        headers = {"retry-after": email.utils.formatdate(time.time() + 500, usegmt=True)}
    with ChatServer(first(Reply("slow down", status=429, headers=headers))) as server:
        judge, waits = judge_of(server)
        assert grade(judge) == Score(0.9, "right")
    assert len(waits) == 1
    assert least <= waits[0] <= most


def test_a_provider_that_asks_to_come_back_in_an_hour_is_not_waited_for():
    """A wait of more than ten minutes is a failure at once."""
    with ChatServer(lambda _: Reply("tomorrow", status=429, headers={"retry-after": "3600"})) as server:
        judge, waits = judge_of(server)
        assert "tomorrow" in grade(judge).reason
    assert (len(server.requests), waits) == (1, [])


def test_a_slow_answer_is_a_timeout_and_repeated():
    """A reply that does not come within `timeout` is asked for again."""
    with ChatServer(first(Reply(GOOD.content, delay=5))) as server:
        judge, waits = judge_of(server, timeout=0.5)
        started = time.monotonic()
        assert grade(judge) == Score(0.9, "right")
    assert time.monotonic() - started < 4
    assert len(waits) == 1


@pytest.mark.parametrize("arguments", [{}, {"structured_method": "function_calling"}, {"use_structured_output": False}])
def test_a_refusal_is_unscored_with_the_words_of_the_model(arguments):
    """A model that declines to judge gives no score."""
    with ChatServer(lambda _: Reply(refusal="I cannot judge this.")) as server:
        judge, _ = judge_of(server, attempts=2, **arguments)
        found = grade(judge)
    assert isinstance(found, Unscored)
    assert "I cannot judge this." in found.reason
    assert len(server.requests) == 2


@pytest.mark.parametrize("method", ["json_schema", "function_calling", "json_mode"])
def test_a_reply_cut_off_at_the_length_limit_is_unscored(method):
    """What was cut off is not completed."""
    cut = Reply('{"reasoning": "ok", "correctness_score": 0.', finish_reason="length")
    with ChatServer(lambda _: cut) as server:
        judge, _ = judge_of(server, attempts=2, structured_method=method)
        assert isinstance(grade(judge), Unscored)


def test_the_clients_own_retries_are_off():
    """A client that would repeat a failed call twice makes one call per attempt; the caller's model stays as it is."""
    with ChatServer(lambda _: Reply("oh", status=500)) as server:
        model = client(server, max_retries=2)
        grade(LLMJudge(model, attempts=1))
        assert len(server.requests) == 1
    assert model.root_async_client.max_retries == 2


def test_calls_are_spaced():
    """In no second do more calls arrive than `requests_per_second` plus one, and concurrency is kept."""
    with ChatServer(lambda _: Reply(GOOD.content, delay=0.2)) as server:
        judge, _ = judge_of(server)
        found = assess(many(36), judge=judge, concurrency=12, requests_per_second=20)
    assert found.scored == 36
    assert rate_of(server.requests) <= 21
    assert server.peak <= 12
    elapsed = server.requests[-1].arrived - server.requests[0].arrived
    assert 35 / 20 - 0.1 <= elapsed < 2 * 35 / 20


def test_repeated_calls_are_spaced_too():
    """Attempts that follow failures wait for their turn."""
    with ChatServer(lambda request: Reply("oh", status=500) if request.number % 2 else GOOD) as server:
        judge, _ = judge_of(server, attempts=10)
        assert assess(many(15), judge=judge, concurrency=8, requests_per_second=25).unscored == 0
    assert len(server.requests) > 20
    assert rate_of(server.requests) <= 26


@pytest.mark.parametrize(
    "count", [pytest.param(500, marks=pytest.mark.slow), 64], ids=["500 judgements", "reduced form"]
)
def test_judgements_take_little_longer_than_the_provider(count, tmp_path):
    """At 500 ms and concurrency 32, the run takes at most 1.25 times the ideal, and never more calls at once."""
    with ChatServer(lambda _: Reply(GOOD.content, delay=0.5)) as server:
        judge, _ = judge_of(server)
        assess(many(2), judge=judge)  # the client is loaded
        server.requests.clear()
        started = time.monotonic()
        found = assess(many(count), judge=judge, concurrency=32, store=tmp_path / "store.db")
        elapsed = time.monotonic() - started
    ideal = -(-count // 32) * 0.5
    assert found.scored == len(server.requests) == count
    assert 16 < server.peak <= 32
    if count == 500:  # the time of the short run says more of the machine than of us
        assert elapsed <= 1.25 * ideal, elapsed / ideal


def test_a_dead_provider_stops_the_run():
    """Five judgements lost one after the other are enough; the rest is told so, and nothing more is asked."""
    with ChatServer(lambda _: Reply("gone", status=503)) as server:
        judge, _ = judge_of(server)
        with pytest.warns(StoppedEarly, match=r"0 scored, 40 unscored.*after 5 transport failures"):
            found = assess(many(40), judge=judge, concurrency=1)
    assert len(server.requests) == 20
    assert found.stopped.startswith("after 5 transport failures: ")
    reasons = [row.unscored_reason for row in found]
    assert all("503" in reason and not reason.startswith("stopped") for reason in reasons[:5])
    assert set(reasons[5:]) == {f"stopped {found.stopped}"}


def test_a_second_run_pays_no_call_twice_for_connections_of_the_first():
    """A client that keeps connections gets new ones in a new event loop; over the old ones, calls are sent in vain."""
    with ChatServer(lambda _: GOOD, keep_alive=True) as server:
        judge, _ = judge_of(server, attempts=1)
        for run in range(3):
            turns = [conversation(turn(answer=f"{run} {i}"), session=f"s{i}") for i in range(20)]
            assert assess(turns, judge=judge, concurrency=10).scored == 20
    assert len(server.requests) == 60


def test_runs_in_one_event_loop_have_connections_of_their_own():
    """The first run to end does not close the connections of the other, which has the same judge."""
    with ChatServer(lambda _: Reply(GOOD.content, delay=0.05), keep_alive=True) as server:
        judge, _ = judge_of(server, attempts=1)

        async def both():
            runs = (assess_async(many(count), judge=judge, concurrency=2) for count in (2, 12))
            return await asyncio.gather(*runs)

        short, long = asyncio.run(both())
    assert (short.scored, long.scored) == (2, 12)


def test_tokens_and_cost_come_from_the_models_own_account(tmp_path):
    """The usage that the provider reports is in the store, with its price, and not in the evidence."""
    with ChatServer(lambda _: GOOD) as server, Store(tmp_path / "s.db") as store:
        judge, _ = judge_of(server, price=(2, 10))
        found = assess(many(3), judge=judge, store=store)
        assert (store.session.input_tokens, store.session.output_tokens, store.session.calls) == (1500, 60, 3)
        assert store.session.cost == pytest.approx(3 * (500 * 2 + 20 * 10) / 1e6)
        assert list(store.models()) == ["gpt-4o-mini"]
        found.write(tmp_path / "e.jsonl")
    assert "latency" not in (tmp_path / "e.jsonl").read_text()


def test_a_model_by_name_is_made_when_it_is_needed(monkeypatch):
    """`LLMJudge("openai:…")` is the real client with the arguments given."""
    with ChatServer(lambda _: GOOD) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "not a key")
        judge = LLMJudge("openai:gpt-4o-mini", model_arguments={"base_url": server.url, "seed": 7})
        assert grade(judge) == Score(0.9, "right")
    (request,) = server.requests
    assert (request.body["model"], request.body["temperature"], request.body["seed"]) == ("gpt-4o-mini", 0, 7)
    assert judge.identity.startswith("llm-judge/1 model=gpt-4o-mini parameters=")
    assert "not a key" not in judge.identity + os.fspath(server.url)
