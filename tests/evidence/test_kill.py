"""kill -9 in the middle of runs, again and again, while the provider fails in every way."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress

import pytest
from openai_server import ChatServer, Reply
from scripted import verdict

from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.llm.store import Store

pytest.importorskip("langchain_openai", reason="the OpenAI client is an extra")

CONCURRENCY = 8
# imports everything once, and then forks one process for every line that it reads
PROGRAM = """
import os, signal, sys
from langchain_openai import ChatOpenAI
from agentic_bayes import LLMJudge, assess
from scripted import conversation, turn

url, store, count = sys.argv[1:]
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    pid = os.fork()
    if pid:
        print(pid, flush=True)
        continue
    model = ChatOpenAI(model="m", api_key="x", base_url=url, temperature=0)
    turns = [
        conversation(turn("q1", f"answer {i}.1"), turn("q2", f"answer {i}.2"), session=f"s{i:04}", task_id=f"t{i:04}")
        for i in range(int(count) // 2)
    ]
    judge = LLMJudge(model, timeout=3, backoff=0.02, attempts=10)
    assess(turns, judge=judge, store=store, concurrency=8).write(line.strip())
    os._exit(0)
"""


def score_of(answer):
    """A score that depends on the answer alone."""
    return sum(map(ord, answer)) % 101 / 100


def faulty(request):
    """One reply in five is a fault: too many requests, an error of the server, a cut body, or none at all."""
    fault = random.Random(request.number).randrange(60)
    if fault < 4:
        return Reply("slow down", status=429, headers={"retry-after-ms": "20"})
    if fault < 8:
        return Reply("oh", status=503)
    if fault < 12:
        return Reply(raw=b'{"id": "x", "choices": [{"mess')
    if fault == 12:
        return Reply(delay=600)
    return Reply(verdict(score_of(request.answer), f"about {request.answer}"), delay=0.02)


def runs(pid):
    """Whether a process is still there."""
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked, so that each need not import everything")
@pytest.mark.parametrize(
    ("count", "kills", "processes"),
    [
        pytest.param(300, 20, 1, marks=pytest.mark.slow),
        pytest.param(300, 20, 4, marks=pytest.mark.slow),
        (16, 2, 2),
    ],
    ids=["20 kills in 300 judgements", "the same, 4 processes at once", "reduced form"],
)
def test_killed_runs_go_on_where_they_were(tmp_path, count, kills, processes):
    """After kill -9 at any moment, only the calls in flight are paid for again, and every score is there."""
    paid: Counter[str] = Counter()
    moments = random.Random(processes)

    def respond(request):
        reply = faulty(request)
        paid[request.answer] += reply.status == 200 and reply.raw is None and reply.delay < 1
        return reply

    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "NO_PROXY": "127.0.0.1"}
    with ChatServer(respond) as server:
        command = [sys.executable, "-W", "error", "-c", PROGRAM, server.url, str(tmp_path / "s.db"), str(count)]
        with subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        ) as forks:

            def started(name):
                print(tmp_path / f"{name}.jsonl", file=forks.stdin, flush=True)
                return int(forks.stdout.readline())

            running = [started(name) for name in range(processes)]
            killed = 0
            for kill in range(kills):
                # at a random moment of each of so many equal parts of what is to be judged
                until = count * (kill + moments.random()) / (kills + 1)
                while len(paid) < until and any(map(runs, running)):
                    time.sleep(0.001)
                victim = kill % processes
                if runs(running[victim]):
                    os.kill(running[victim], signal.SIGKILL)
                    killed += 1
                    running[victim] = started(victim)
            while any(map(runs, running)):
                time.sleep(0.01)
            forks.stdin.close()
            assert forks.wait(60) == 0

    assert killed == kills
    files = [Evidence.read(tmp_path / f"{name}.jsonl") for name in range(processes)]
    for evidence in files:
        assert (evidence.scored, evidence.unscored) == (count, 0)
        assert all(row.answer_score == score_of(row.answer_reason.removeprefix("about ")) for row in evidence)
    assert len({(tmp_path / f"{name}.jsonl").read_bytes() for name in range(processes)}) == 1
    assert len(paid) == count
    assert count <= paid.total() <= count + kills * CONCURRENCY
    with Store(tmp_path / "s.db") as store:
        assert len(store) == count
