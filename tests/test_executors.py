"""Calls in other processes: the same results, errors with their reasons, and an end whatever happens."""

import os
import pickle
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial

import pytest
from elsewhere import Deadly, Odd, raise_local, slow_square
from scripted import by_answer, conversation, turn

from agentic_bayes import executors
from agentic_bayes.errors import ExecutorError, InvalidArgument, MissingPackage, StoppedEarly
from agentic_bayes.evidence import assess as assessing
from agentic_bayes.evidence.assess import assess
from agentic_bayes.evidence.llm.judge import LLMJudge
from agentic_bayes.evidence.metrics.embedding_metrics import Coherence, LoopDetection
from agentic_bayes.evidence.reference.judge import ReferenceJudge
from agentic_bayes.evidence.tools.rubric import ToolRubric
from agentic_bayes.executors import Workers, check_executor, packed

EXPECTED = {"expected_tools": [{"tool_name": "weather", "parameters": {"city": "Rome"}}]}


def conversations(count=7):
    """Right, wrong and unscored answers, crashes, and tool calls."""
    answers = [("Paris", "Paris"), ("It is Rome.", "Paris"), ("Oslo", None), (None, "Bern")]
    called = {"agentic": {"tools_used": [{"tool_name": "weather", "parameters": {"city": "Rome"}}]}}
    made = []
    for number in range(count):
        answer, reference = answers[number % 4]
        tools = {"ground_truth_agentic": EXPECTED} | (called if number % 2 else {})
        turns = [
            turn(f"q{i}", answer and f"{answer} {number % 3}", ground_truth_assistant=reference, **tools)
            for i in (0, 1)
        ]
        crash = {"error": "timeout"} if answer is None else {}
        made.append(conversation(*turns, session=f"s{number}", **crash))
    return made


class Mute(Executor):
    """An executor whose calls never end."""

    def submit(self, function, *arguments):
        """Take a call."""
        return Future()


@pytest.fixture
def small_parts(monkeypatch):
    """Calls of three interactions, so that conversations are cut."""
    monkeypatch.setattr(assessing, "SENT_TOGETHER", 3)


def test_evidence_from_processes_is_the_same_to_the_last_bit(small_parts):
    """Scores, reasons, tool verdicts, crashes and a grader's own errors, whatever the number of processes."""
    graders = {"judge": ReferenceJudge(), "metrics": [Odd()]}
    here = assess(conversations(), **graders)
    told = []
    there = assess(conversations(), **graders, executor="local:2", progress=lambda *state: told.append(state))
    assert there.to_dict() == here.to_dict()
    assert (told[-1], len(told)) == ((14, 14), 5)
    with ThreadPoolExecutor(1) as threads:
        assert assess(iter(conversations()), **graders, executor=threads).to_dict() == here.to_dict()


def test_embeddings_do_not_depend_on_what_is_embedded_together(small_parts):
    """A worker embeds other texts at once than one process does; the scores have the same bits."""
    graders = {"judge": ReferenceJudge(), "metrics": [Coherence(), LoopDetection()]}
    with ThreadPoolExecutor(2) as threads:
        there = assess(conversations(5), **graders, executor=threads)
    assert there.to_dict() == assess(conversations(5), **graders).to_dict()


def test_evidence_from_a_dask_cluster_is_the_same():
    """The scheduler is named by its address, and left as it was."""
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=1, threads_per_worker=2, processes=False, protocol="tcp", dashboard_address=":0")
    with cluster, Client(cluster) as client:
        address = cluster.scheduler_address.replace("tcp://", "dask://")
        there = assess(conversations(), judge=ReferenceJudge(), executor=address)
        assert client.status == "running"
    assert there.to_dict() == assess(conversations(), judge=ReferenceJudge()).to_dict()


def test_a_worker_that_dies_ends_the_run_and_what_was_judged_is_kept(small_parts):
    """One clear error, which holds the evidence."""
    with pytest.raises(ExecutorError, match="a worker process ended before its work was done") as caught:
        assess(conversations(), judge=Deadly(), executor="local:1")
    assert {row.session_id for row in caught.value.evidence if row.answer_score == 1.0} == {"s0", "s1", "s2", "s4"}


def test_ctrl_c_ends_the_run_and_its_processes(small_parts):
    """Parts that are done are kept; nothing is waited for."""

    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.warns(StoppedEarly), ThreadPoolExecutor(1) as threads:
        evidence = assess(conversations(), judge=ReferenceJudge(), executor=threads, progress=interrupt)
    assert evidence.stopped == "interrupted"
    workers = Workers.open("local:1")
    process = workers.submit(packed(os.getpid, "it")).result()
    busy = workers.submit(packed(partial(time.sleep, 60), "it"))
    start = time.monotonic()
    workers.close()
    assert busy.cancelled()
    assert time.monotonic() - start < 30
    with pytest.raises(ProcessLookupError, match="No such process"):
        os.kill(process, 0)


def test_what_cannot_be_sent_is_refused_before_anything_is_judged():
    """A model's judge, a grader with an open lock, a rubric with a function of its own, a name that is none."""
    some = conversations(1)
    with pytest.raises(InvalidArgument, match=r"asks a model and waits for it: leave executor out, .* concurrency"):
        assess(some, judge=LLMJudge(by_answer({})), executor="local:2")
    locked = Odd()
    locked.lock = threading.Lock()
    with pytest.raises(InvalidArgument, match=r"grader 'odd' cannot be sent to other processes \(TypeError.*lock"):
        assess(some, judge=ReferenceJudge(), metrics=[locked], executor="local:2")
    rubric = ToolRubric(matchers={"*": {"city": lambda expected, actual: True}})
    with pytest.raises(InvalidArgument, match="tool_rubric cannot be sent"):
        assess(some, judge=ReferenceJudge(), tool_rubric=rubric, executor="local:2")
    for wrong in ("local", "local:0", "dask://host", "tcp://host:1", 4):
        with pytest.raises(InvalidArgument, match='must be "local:N"'):
            check_executor(wrong)


def test_errors_travel_with_their_reasons():
    """The function's own error as it was, one that cannot travel as its text, another version, an unknown class.

    None is an error of the executor: Dask's workers write those to their logs, with what was sent to them.
    """
    seen = []

    class Watched(ThreadPoolExecutor):
        def submit(self, *call):
            seen.append(super().submit(*call))
            return seen[-1]

    with Watched(1) as threads, Workers(threads) as workers:

        def error_of(content):
            return workers.submit(content).exception()

        assert error_of(packed(partial(int, "x"), "it")).args == ("invalid literal for int() with base 10: 'x'",)
        assert "no grade here" in str(error_of(packed(raise_local, "it")))
        old = pickle.dumps(("0.0.1", b""))
        assert "and 0.0.1 calls them: install the same" in str(error_of(old))
        gone = packed(raise_local, "it").replace(b"raise_local", b"raise_loca2")
        assert "define it in a module that the workers can import" in str(error_of(gone))
    assert [future.exception() for future in seen] == [None] * 4
    with pytest.raises(ExecutorError, match="accepts no calls"):
        workers.submit(old)


def test_calls_of_a_cluster_that_is_gone_end(monkeypatch):
    """A cluster without workers lets calls wait for ever: they are ended after a few looks, as are cancelled ones."""
    monkeypatch.setattr(executors, "LOOK_EVERY", 0.01)
    lost = Workers(Mute(), lost=lambda: True)
    with pytest.raises(ExecutorError, match="no workers left"):
        lost.submit(b"").result(timeout=30)
    lost.close()
    mute = Mute()
    theirs = Future()
    mute.submit = lambda *arguments: theirs
    ours = Workers(mute).submit(b"")
    theirs.cancel()
    theirs.set_running_or_notify_cancel()
    with pytest.raises(ExecutorError, match="the executor cancelled a call"):
        ours.result(timeout=30)
    waiting = Workers(Mute())
    ours = waiting.submit(b"")
    waiting.close()
    assert ours.cancelled()


def test_a_cluster_that_cannot_be_used_is_named(monkeypatch):
    """No scheduler at the address; no Dask installed."""
    monkeypatch.setattr(executors, "CONNECTING", 0.2)
    with pytest.raises(ExecutorError, match="there is no Dask scheduler at 127"):
        Workers.open("dask://127.0.0.1:1")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingPackage, match=r"pip install 'agentic-bayes\[dask\]'"):
        Workers.open("dask://127.0.0.1:1")


def test_results_come_in_order_and_only_a_few_calls_wait():
    """However long each takes, and however many there are."""
    taken = []

    def items():
        for number in range(30):
            taken.append(number)
            yield number

    with ThreadPoolExecutor(3) as threads:
        workers = Workers(threads, size=3)
        results = workers.in_order(packed(slow_square, "it"), items())
        assert next(results) == 0
        assert len(taken) < 10
        assert list(results) == [number**2 for number in range(1, 30)]


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for processes in /proc")
def test_workers_end_with_the_process_that_started_them(tmp_path):
    """Killed with -9, it can end nothing itself: its workers notice."""
    script = tmp_path / "start.py"
    script.write_text(
        "import os, time\n"
        "from agentic_bayes.executors import Workers, packed\n"
        "if __name__ == '__main__':\n"
        "    workers = Workers.open('local:1')\n"
        "    print(workers.submit(packed(os.getpid, 'it')).result(), flush=True)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as process:
        worker = int(process.stdout.readline())
        process.kill()
    end = time.monotonic() + 30
    while os.path.exists(f"/proc/{worker}") and time.monotonic() < end:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{worker}")
