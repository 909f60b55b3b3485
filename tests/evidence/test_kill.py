"""kill -9 in the middle of a run, again and again."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest
from openai_server import ChatServer, Reply
from scripted import verdict

from agentic_bayes.evidence.llm.store import Store

pytest.importorskip("langchain_openai", reason="the OpenAI client is an extra")

CONCURRENCY = 8
PROGRAM = """
import sys
from langchain_openai import ChatOpenAI
from agentic_bayes import LLMJudge, assess
from scripted import conversation, turn

url, store, evidence, count = sys.argv[1:]
model = ChatOpenAI(model="m", api_key="x", base_url=url, temperature=0)
turns = [
    conversation(turn("q1", f"answer {i}.1"), turn("q2", f"answer {i}.2"), session=f"s{i:04}", task_id=f"t{i:04}")
    for i in range(int(count) // 2)
]
assess(turns, judge=LLMJudge(model), store=store or None, concurrency=8).write(evidence)
"""


def judged(request):
    """A reply that depends on the answer alone."""
    number = sum(map(ord, request.answer)) % 101
    return Reply(verdict(number / 100, f"about {request.answer}"), delay=0.02)


def started(server, folder, store, count):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "NO_PROXY": "127.0.0.1"}
    arguments = [server.url, str(store), str(folder / "evidence.jsonl"), str(count)]
    return subprocess.Popen([sys.executable, "-W", "error", "-c", PROGRAM, *arguments], env=environment)


@pytest.mark.parametrize(
    ("count", "kills"),
    [pytest.param(500, 10, marks=pytest.mark.slow), (80, 1)],
    ids=["ten times in 500 judgements", "reduced form"],
)
def test_a_killed_run_goes_on_where_it_was(tmp_path, count, kills):
    """After kill -9 at any moment, only the calls in flight are made again, and the evidence has the same bytes."""
    with ChatServer(judged) as server:
        assert started(server, tmp_path, "", count).wait(120) == 0
        undisturbed = (tmp_path / "evidence.jsonl").read_bytes()
        (tmp_path / "evidence.jsonl").unlink()
        server.requests.clear()

        moments = random.Random(0)
        for kill in range(kills):
            # at a random moment of each of so many equal parts of the run
            until = count * (kill + moments.random()) / (kills + 1)
            process = started(server, tmp_path, tmp_path / "s.db", count)
            while len(server.requests) < until + CONCURRENCY * kill and process.poll() is None:
                time.sleep(0.001)
            time.sleep(moments.random() * 0.02)
            process.send_signal(signal.SIGKILL)
            assert process.wait(60) == -signal.SIGKILL
            assert not (tmp_path / "evidence.jsonl").exists()

        assert started(server, tmp_path, tmp_path / "s.db", count).wait(120) == 0
        assert (tmp_path / "evidence.jsonl").read_bytes() == undisturbed
        asked = Counter(request.answer for request in server.requests)
        assert len(asked) == count
        assert count <= len(server.requests) <= count + kills * CONCURRENCY
        with Store(tmp_path / "s.db") as store:
            assert len(store) == count
