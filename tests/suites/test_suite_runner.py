"""Runs of a suite: nothing lost, nothing run twice, errors apart, decisions from the counts."""

import asyncio
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest

import agentic_bayes as ab
from agentic_bayes.errors import DoubtfulRecords, ExecutorError, HookFailed, InvalidArgument, SuiteError
from agentic_bayes.reports.reproduction import reproduce
from agentic_bayes.suites.config import load_suite
from agentic_bayes.suites.examples import example_folder
from agentic_bayes.suites.graders.registry import SuiteGrader
from agentic_bayes.suites.results import RunResults
from agentic_bayes.suites.runner import plan_run, run_suite, select_tasks
from agentic_bayes.suites.stores.run_store import RunStore
from agentic_bayes.suites.trial import AgentReply, TrialResult
from agentic_bayes.suites.trial_runner import make_graders, verdict_of

SUITE = """
name: demo
agent: {type: python, name: v1, config: {function: "myagent:answer"}, cost_per_output_token: 0.5}
defaults:
  trials_per_task: 4
  graders: [{type: exact_match}]
execution: {concurrency: 3, timeout: 5s, retry_delay: 0}
tasks:
  - {id: good, tags: [a], input: {prompt: good}, expected: {text: right}}
  - {id: bad, tags: [a, b], input: {prompt: bad}, expected: {text: right}}
"""
AGENT = """
import random

def answer(prompt, *, seed, trial, task_id):
    if prompt == "crash":
        raise RuntimeError("rate limit")
    return "right" if prompt == "good" else "wrong"
"""


@pytest.fixture
def make(tmp_path):
    """A suite in a folder of its own, with its agent."""

    def run(text=SUITE, agent=AGENT):
        (tmp_path / "eval.yaml").write_text(text, encoding="utf-8")
        (tmp_path / "myagent.py").write_text(textwrap.dedent(agent), encoding="utf-8")
        return load_suite(tmp_path / "eval.yaml", environment={})

    return run


class Scripted:
    """An agent that does as it is told, trial by trial."""

    identity = "scripted/1"

    def __init__(self, script):
        self.script, self.asked = script, []

    async def attempt(self, attempt):
        """What the script says of (task, trial)."""
        self.asked.append((attempt.task.id, attempt.trial))
        said = self.script(attempt)
        if isinstance(said, Exception):
            raise said
        return said if isinstance(said, AgentReply) else AgentReply((said,))


def run(suite, agent=None, **options):
    plan = {name: options.pop(name) for name in ("resume", "new", "output") if name in options}
    planned = plan_run(suite, suite.tasks, **plan)
    asyncio.run(run_suite(planned, agent=agent, **options))
    return RunResults.of(planned.folder)


def test_every_trial_of_every_task_is_run_and_graded(make):
    """Two tasks, four trials each: their verdicts, scores, answers and counts."""
    results = run(make())
    assert [(t.task, t.trial, t.status) for t in results.trials] == [
        *(("good", i, "pass") for i in range(4)),
        *(("bad", i, "fail") for i in range(4)),
    ]
    assert results.trials[0].answers == ("right",)
    assert results.outcomes["successes"].values.tolist() == [[0, 4]]  # in the order of names
    summary = results.summary((1, 2))
    assert {name: summary[name] for name in list(summary)[:6]} == {
        "total_tasks": 2,
        "total_trials": 8,
        "passed_trials": 4,
        "failed_trials": 4,
        "error_trials": 0,
        "overall_pass_rate": 0.5,
    }
    assert {row["k"] for row in summary["estimates"]} == {1, 2}


def test_one_pass_and_nine_infrastructure_errors_are_one_trial(make):
    """N = 1 and nine errors, both shown; the interval is wide and the gate inconclusive."""
    suite = make(SUITE.replace("trials_per_task: 4", "trials_per_task: 10").split("  - {id: bad")[0])
    agent = Scripted(lambda attempt: "right" if attempt.trial == 0 else RuntimeError("rate limit"))
    results = run(suite, agent)
    summary = results.summary((1,))
    assert (summary["passed_trials"], summary["error_trials"], summary["overall_pass_rate"]) == (1, 9, 1.0)
    assert (int(results.outcomes["trials"].sum()), int(results.outcomes["errored"].sum())) == (1, 9)
    row = next(r for r in summary["estimates"] if r["estimand"] == "population" and r["metric"] == "pass^1")
    assert row["upper"] - row["lower"] > 0.5
    assert ab.gate(results.estimate((1,)), at_least=0.7).verdict == "inconclusive"
    assert results.trials[1].error == "RuntimeError: rate limit"


def test_errored_trials_are_run_again_and_verdicts_are_not(make):
    """The same command goes on with an unfinished run; after a finished one it starts anew."""
    suite = make()
    down = Scripted(lambda attempt: RuntimeError("down") if attempt.trial > 1 else "right")
    first = run(suite, down)
    assert first.pending == 4
    up = Scripted(lambda attempt: "right")
    second = run(suite, up)
    assert second.folder == first.folder
    assert sorted(up.asked) == [(task, trial) for task in ("bad", "good") for trial in (2, 3)]
    assert second.pending == 0
    assert {t.status for t in second.trials} == {"pass"}
    third = run(suite, Scripted(lambda attempt: "wrong"))
    assert third.folder != first.folder
    assert len(RunResults.of(first.folder).trials) == 8


def test_results_can_be_exported(make):
    """As JSON, as a table with a row per task, and as Markdown."""
    results = run(make(), Scripted(lambda attempt: "right"))
    exported = json.loads(json.dumps(results.to_dict(), allow_nan=False))
    assert (exported["total_trials"], exported["passed_trials"]) == (8, 8)
    assert "estimates" not in exported
    assert results.to_pandas()[["task", "trials", "passed"]].values.tolist() == [["good", 4, 4], ["bad", 4, 4]]
    assert "| good | 4 | 4 | 0 | 0 | 1.000 | 1.000 |" in results.to_markdown()
    assert repr(results).startswith("RunResults: run ")


def test_another_agent_or_content_is_not_mixed_in(make):
    """An unfinished run of something else is refused with what changed; `new` starts a new one."""
    run(make(), Scripted(lambda attempt: RuntimeError("down")))
    other = make(SUITE.replace("name: v1,", "name: v2,"))
    with pytest.raises(InvalidArgument, match=r"is unfinished, but the agent changed since then.*with --new"):
        plan_run(other, other.tasks)
    changed = make(SUITE.replace("prompt: good", "prompt: better"))
    with pytest.raises(InvalidArgument, match="but tasks good changed since"):
        plan_run(changed, changed.tasks)
    assert not plan_run(changed, changed.tasks, new=True).continued
    with pytest.raises(InvalidArgument, match="unknown run 'no-such-run'"):
        plan_run(make(), make().tasks, resume="no-such-run")
    with pytest.raises(InvalidArgument, match="exclude each other"):
        plan_run(make(), make().tasks, resume="x", new=True)


def test_only_broken_agents_are_asked_again(make):
    """Infrastructure errors are retried, doubling the delay; a wrong answer is not."""
    suite = make(SUITE.replace("retry_delay: 0", "retry_delay: 0, max_retries: 2"))
    seen = {}

    def script(attempt):
        key = (attempt.task.id, attempt.trial)
        seen[key] = seen.get(key, 0) + 1
        return RuntimeError("429") if attempt.task.id == "good" and seen[key] < 3 else "right"

    results = run(suite, Scripted(script))
    assert [t.attempts for t in results.trials] == [3] * 4 + [1] * 4
    assert {t.status for t in results.trials} == {"pass"}


def test_a_trial_that_takes_too_long_is_an_error(make):
    """A time-out is infrastructure; it names the limit."""
    suite = make(SUITE.replace("timeout: 5s", "timeout: 50ms"))

    class Slow(Scripted):
        async def attempt(self, attempt):
            """Too slow for one task."""
            await asyncio.sleep(5 if attempt.task.id == "bad" else 0)
            return AgentReply(("right",))

    results = run(suite, Slow(None))
    assert {(t.task, t.status, t.error) for t in results.trials} == {
        ("good", "pass", ""),
        ("bad", "error", "no reply within 0.05 s"),
    }


def grade(score, passed, weight=1.0):
    return {"score": score, "pass": passed, "reason": "", "weight": weight}


@pytest.mark.parametrize(
    ("grades", "status", "score"),
    [
        ({"a": grade(1, True), "b": grade(0.5, True)}, "pass", 0.75),
        ({"a": grade(1, True), "b": grade(0.9, False)}, "fail", 0.95),
        ({"a": grade(1, True, 3), "b": grade(0, True, 1)}, "pass", 0.75),
        ({"a": grade(0.4, True, 0), "b": grade(1, True, 2)}, "pass", 1.0),
        ({"a": grade(0.4, True, 0)}, "pass", None),
        ({"a": grade(1, True), "b": {"unscored": "down", "weight": 1}}, "error", None),
        ({"a": grade(0, False), "b": {"unscored": "down", "weight": 1}}, "fail", 0.0),
    ],
)
def test_all_graders_must_pass_and_weights_weigh(grades, status, score):
    """AND for the verdict, Σ w s / Σ w for the score; weight 0 stays 0; what could not be told is no verdict."""
    found = verdict_of("t", 0, grades)
    assert (found.status, found.score) == (status, score)


def test_a_grader_that_raises_has_not_scored(make, monkeypatch):
    """The trial is an error with the reason, and not a failure."""
    suite = make()
    planned = plan_run(suite, suite.tasks)
    graders = make_graders(suite, suite.tasks)

    class Broken:
        async def grade(self, attempt, reply):
            """Cannot."""
            raise RuntimeError("no network")

    monkeypatch.setattr(
        "agentic_bayes.suites.trial_runner.make_graders",
        lambda *_: {key: [SuiteGrader("broken", 1.0, Broken())] for key in graders},
    )
    asyncio.run(run_suite(planned, agent=Scripted(lambda attempt: "right")))
    trials = RunResults.of(planned.folder).trials
    assert {t.status for t in trials} == {"error"}
    assert "broken: RuntimeError: no network" in trials[0].error


def test_trials_have_seeds_of_their_own(make):
    """Each trial its own, the same in every run; so a seeded agent gives the same run again."""
    seeds = {}

    def script(attempt):
        seeds.setdefault((attempt.task.id, attempt.trial), []).append(attempt.seed)
        return "right"

    for _ in range(2):
        run(make(), Scripted(script), new=True)
    assert len(seeds) == len({tuple(found) for found in seeds.values()}) == 8
    assert all(one == other for one, other in seeds.values())


def test_tasks_are_chosen_by_tags(make):
    """Any of the tags, none of the excluded ones, which win; an unknown tag is an error."""
    suite = make()
    assert [t.id for t in select_tasks(suite, tags=["a"])] == ["good", "bad"]
    assert [t.id for t in select_tasks(suite, tags=["a"], exclude_tags=["b"])] == ["good"]
    assert [t.id for t in select_tasks(suite, limit=1)] == ["good"]
    with pytest.raises(InvalidArgument, match="no task has the tag 'c'; tags of this suite: a, b"):
        select_tasks(suite, tags=["c"])
    with pytest.raises(InvalidArgument, match="no task is left"):
        select_tasks(suite, exclude_tags=["a"])


def test_the_pace_and_the_number_at_a_time_are_kept(make):
    """Never more trials at once than allowed, and no two starts closer than the rate says."""
    suite = make(SUITE.replace("concurrency: 3", "concurrency: 3, rate_limit_rps: 50"))
    running, most, starts = 0, 0, []

    class Counting(Scripted):
        async def attempt(self, attempt):
            """Counts how many run."""
            nonlocal running, most
            running += 1
            most = max(most, running)
            starts.append(time.monotonic())
            await asyncio.sleep(0.05)
            running -= 1
            return AgentReply(("right",))

    run(suite, Counting(None))
    assert most <= 3
    assert min(b - a for a, b in itertools.pairwise(starts)) > 0.015


def test_tokens_cost_and_latency_are_summed(make):
    """From what the agent reports; what it does not report stays unknown."""
    agent = Scripted(
        lambda a: AgentReply(("right",), input_tokens=10, output_tokens=2 if a.task.id == "good" else None)
    )
    summary = run(make(), agent).summary((1,))
    assert (summary["input_tokens"], summary["output_tokens"], summary["cost"]) == (80, 8, 4.0)
    assert 0 <= summary["latency_p50"] <= summary["latency_p90"] <= summary["latency_p99"]


def test_files_of_a_run_hold_everything(make):
    """summary.json, a line per trial, and JUnit with errors apart from failures."""
    agent = Scripted(lambda a: RuntimeError("x\x00y") if a.trial == 3 else "right" if a.task.id == "good" else "wrong")
    with pytest.warns(DoubtfulRecords, match="2 characters that are not text"):
        results = run(make(), agent)
    results.write((1,))
    assert json.loads((results.folder / "summary.json").read_text(encoding="utf-8"))["error_trials"] == 2
    lines = (results.folder / "trials.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["status"] for line in lines].count("error") == 2
    from xml.etree import ElementTree

    root = ElementTree.parse(results.folder / "junit.xml").getroot()
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("8", "3", "2")


def test_a_runs_numbers_can_be_made_again(make, tmp_path):
    """The run's folder is one of results; a trial that changes afterwards is found, and no verdict gives none."""
    results = run(make(), Scripted(lambda a: "right" if a.task.id == "good" else RuntimeError("down")))
    results.write((1, 3))
    assert reproduce(results.folder).verdict == "identical"
    trials = results.folder / "trials.jsonl"
    trials.write_text(trials.read_text(encoding="utf-8").replace('"pass"', '"fail"', 1), encoding="utf-8")
    assert reproduce(results.folder).problems == ("trials.jsonl was changed after it was written",)
    (tmp_path / "none").mkdir()
    errors = tuple(trial for trial in results.trials if trial.status == "error")
    replace(results, folder=tmp_path / "none", trials=errors).write((1,))
    with pytest.raises(InvalidArgument, match="is not a folder of results"):
        reproduce(tmp_path / "none")


def test_hooks_are_told_and_a_failing_one_stops_nothing(make, tmp_path):
    """JSON on standard input; a hook that fails is a warning."""
    told = "cat >> told.txt; echo >> told.txt"
    hooks = f'hooks: {{before_run: "{told}", after_trial: "{told}", after_run: "exit 3"}}\n'
    with pytest.warns(HookFailed, match="hook after_run: ended with 3"):
        results = run(make(SUITE + hooks), Scripted(lambda attempt: "right"))
    told = (tmp_path / "told.txt").read_text(encoding="utf-8")
    assert told.count('"event": "after_trial"') == 8
    assert results.pending == 0


def test_trials_run_in_other_processes(make, tmp_path):
    """The same answers, verdicts and reasons of errors; time that a trial waits for a worker is not the agent's."""
    agent = """
        import time

        def answer(prompt, *, seed, trial):
            if prompt == "good" and trial == 1:
                raise type("Local", (Exception,), {})("cannot be pickled")
            time.sleep(5 if (prompt, trial) == ("bad", 2) else 0.1)
            return str(seed) if trial else "right"
    """
    suite = make(
        SUITE.replace("timeout: 5s", "timeout: 1s").replace("myagent:answer", "${WHERE:-myagent:answer}"), agent
    )
    here, there = run(suite, output=tmp_path / "here"), run(suite, output=tmp_path / "there", executor="local:2")
    assert [replace(trial, latency=0) for trial in there.trials] == [replace(trial, latency=0) for trial in here.trials]
    assert {trial.error for trial in there.trials} == {"", "Local: cannot be pickled", "no reply within 1 s"}


def test_a_worker_that_dies_ends_the_run_which_can_be_resumed(make, tmp_path):
    """Trials that ended before are saved; the next command runs the others."""
    agent = """
        import os, pathlib

        def answer(prompt, *, trial):
            if (prompt, trial) == ("bad", 2) and not os.path.exists("here"):
                open("here", "w").close()
                os._exit(3)
            return "right"
    """.replace('"here"', repr(str(tmp_path / "died")))
    suite = make(SUITE.replace("concurrency: 3", "concurrency: 1"), agent)
    with pytest.raises(ExecutorError, match="a worker process ended before its work was done"):
        run(suite, executor="local:1")
    resumed = plan_run(suite, suite.tasks)
    assert [(task.id, trial) for task, trial in resumed.pending] == [("bad", 2), ("bad", 3)]
    assert run(suite).pending == 0


def test_trials_run_on_a_dask_cluster(make):
    """The cluster is named by its scheduler."""
    from distributed import LocalCluster

    cluster = LocalCluster(n_workers=1, threads_per_worker=2, processes=False, protocol="tcp", dashboard_address=":0")
    with cluster:
        results = run(make(), executor=cluster.scheduler_address.replace("tcp://", "dask://"))
    assert [t.status for t in results.trials] == ["pass"] * 4 + ["fail"] * 4


def test_only_agents_that_compute_run_in_an_executor(make):
    """An agent at an address waits for others: more of its trials at a time are what helps."""
    http = 'type: http, config: {url: "http://127.0.0.1:1/", body: {}, answer: "$.text"}'
    suite = make(SUITE.replace('type: python, name: v1, config: {function: "myagent:answer"}', http))
    with pytest.raises(InvalidArgument, match=r"python and command, not http, which waits for others: .*--jobs"):
        run(suite, executor="local:2")
    with pytest.raises(InvalidArgument, match="executor must be"):
        run(suite, executor="cluster")


def test_the_example_agents_are_one_agent_in_three_forms(tmp_path):
    """A function, a command and an address, run offline: the same seeds give the same answers."""
    folder = tmp_path / "suite"
    shutil.copytree(example_folder("suite"), folder)
    server = [sys.executable, "server.py", "0"]
    with subprocess.Popen(server, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        try:
            environment = {"PORT": process.stdout.readline().strip(), "PYTHON": sys.executable}
            forms = []
            for name in ("eval", "command", "http"):
                text = (folder / f"{name}.yaml").read_text(encoding="utf-8")
                same = re.sub("^name: .*$", "name: arithmetic", text, flags=re.MULTILINE)  # seeds are of the name
                (folder / f"{name}.yaml").write_text(same, encoding="utf-8")
                suite = load_suite(folder / f"{name}.yaml", environment=environment)
                forms.append(run(suite, output=tmp_path / name))
        finally:
            process.kill()
    answers = [[(trial.task, trial.trial, trial.status, trial.answers) for trial in form.trials] for form in forms]
    assert len(answers[0]) == 15
    assert [sorted(one) for one in answers] == [sorted(answers[0])] * 3
    assert {status for _, _, status, _ in answers[0]} == {"pass", "fail"}


def test_calls_of_an_asynchronous_function_share_an_event_loop(make):
    """What is bound to a loop serves all calls; a call that blocks it costs its own trial, and not the run."""
    agent = """
        import asyncio, time
        one_at_a_time = asyncio.Lock()

        async def answer(prompt, *, trial):
            async with one_at_a_time:
                await asyncio.sleep(0.01)
            if prompt == "bad" and trial == 0:
                time.sleep(2.5)
            return "right"
    """
    suite = make(SUITE.replace("concurrency: 3, timeout: 5s", "concurrency: 1, timeout: 1s"), agent)
    results = run(suite)
    assert [trial.status for trial in results.trials] == ["pass"] * 4 + ["error"] + ["pass"] * 3
    suite = make(SUITE, agent.replace("time.sleep(2.5)", "pass"))
    assert [trial.status for trial in run(suite, new=True).trials] == ["pass"] * 8


def test_only_one_process_runs_a_run(make):
    """The second one is told; when the first is gone, the trials are free again."""
    suite = make()
    planned = plan_run(suite, suite.tasks)
    planned.folder.mkdir(parents=True)
    with RunStore(planned.folder, create=True) as first:
        first.lock()
        with pytest.raises(InvalidArgument, match="is being run by another process"):
            asyncio.run(run_suite(planned))
    assert asyncio.run(run_suite(planned))
    ids = {plan_run(suite, suite.tasks, new=True).id for _ in range(20)}
    assert len(ids) == 20  # also within one second


def test_keys_are_not_written_down_and_are_no_part_of_an_agent(tmp_path):
    """A rotated key is the same agent; neither is in the run's folder."""
    text = """
name: s
agent:
  type: http
  config: {url: "http://127.0.0.1:9/x?key=${KEY}", headers: {Authorization: "Bearer ${KEY}"}, answer: "$.a"}
defaults: {graders: [{type: exact_match}]}
tasks: [{id: a, input: {prompt: hi}, expected: {text: hi}}]
"""
    (tmp_path / "eval.yaml").write_text(text, encoding="utf-8")
    one, other = (load_suite(tmp_path / "eval.yaml", environment={"KEY": key}) for key in ("SECRET1", "SECRET2"))
    assert one.digest == other.digest
    results = run(one)
    assert results.trials[0].status == "error"
    assert not any(b"SECRET1" in file.read_bytes() for file in results.folder.iterdir())


def test_numbers_that_overflow_are_refused_and_errors_that_cannot_be_told_are_errors(make):
    """A weight of 1e308 is no weight; an exception whose text breaks down is an errored trial."""
    with pytest.raises(SuiteError, match=r"less than or equal to 1000000|at most"):
        make(SUITE.replace("{type: exact_match}", "{type: exact_match, weight: 1e308}"))

    class Mute(Exception):
        def __str__(self):
            raise RuntimeError

    results = run(make(), Scripted(lambda attempt: Mute()))
    assert {trial.error for trial in results.trials} == {"Mute"}


def test_a_verdict_on_disk_stands(tmp_path):
    """An error gives way to a verdict; a verdict gives way to nothing; one that is damaged is refused."""
    with RunStore(tmp_path, create=True) as store:
        store.add(TrialResult("t", 0, "error", error="x"))
        store.add(TrialResult("t", 0, "pass", 1.0))
        store.add(TrialResult("t", 0, "fail", 0.0))
        store.add(TrialResult("t", 0, "error", error="y"))
        assert [(r.status, r.score) for r in store.results()] == [("pass", 1.0)]
        store.note({"seen": 1})
        kept = store._read("SELECT record FROM trials")[0][0]
        for damaged in (kept.replace('"pass"', '"fail"'), kept.replace("latency", "latemcy"), kept[:-9], "[]"):
            store._write("UPDATE trials SET record = ?", (damaged,))
            with pytest.raises(
                InvalidArgument, match=r"is damaged: trial 0 of task t cannot be read .*start a new run"
            ):
                list(store.results())
        store._write("UPDATE facts SET value = ?", ("{",))
        with pytest.raises(InvalidArgument, match="is damaged: a fact about the run"):
            _ = store.facts
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "trials.sqlite").write_bytes(b"not a database, but long enough to be looked at" * 10)
    with pytest.raises(InvalidArgument, match=r"cannot be used as a file of trials|is not a file of trials"):
        RunStore(tmp_path / "other")


KILLED = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from agentic_bayes.suites.config import load_suite
from agentic_bayes.suites.runner import plan_run, run_suite
suite = load_suite(sys.argv[1] + "/eval.yaml")
asyncio.run(run_suite(plan_run(suite, suite.tasks)))
"""


@pytest.mark.parametrize("kills", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_kill_at_any_moment_loses_no_trial(make, tmp_path, kills):
    """Killed again and again, resumed, and at the end every trial once, with the verdicts of an undisturbed run."""
    text = SUITE.replace("trials_per_task: 4", "trials_per_task: 150").replace("concurrency: 3", "concurrency: 8")
    agent = (
        "import time\n\n"
        "def answer(prompt, *, seed):\n"
        "    time.sleep(0.01)\n"
        "    return 'right' if seed % 3 else 'wrong'\n"
    )
    suite = make(text, agent)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), *sys.path]))}
    counts = []
    for _ in range(kills):
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], env=environment)
        folder, deadline = None, time.monotonic() + 60
        before = counts[-1] if counts else 0
        while time.monotonic() < deadline and process.poll() is None:
            folder = folder or next(iter((tmp_path / "results").glob("*")), None)
            if folder is not None and (folder / "trials.sqlite").is_file():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        with RunStore(folder) as store:
                            done = len(store.done())
                    except InvalidArgument:
                        continue
                if done > before + 10:
                    break
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
        with RunStore(folder) as store:
            counts.append(len(store.done()))
    assert counts == sorted(counts)
    resumed = run(suite)
    assert resumed.folder == folder
    assert len({(t.task, t.trial) for t in resumed.trials}) == len(resumed.trials) == 300
    whole = run(suite, new=True)

    def verdicts(results):
        return [
            (t.task, t.trial, t.status, t.score, t.answers)
            for t in sorted(results.trials, key=lambda t: (t.task, t.trial))
        ]

    assert verdicts(resumed) == verdicts(whole)
    assert resumed.outcomes.identical(whole.outcomes)

    def untimed(value):
        """A summary without what is of one run: its name and its times."""
        if isinstance(value, list):
            return [untimed(item) for item in value]
        if isinstance(value, dict):
            return {k: untimed(v) for k, v in value.items() if k != "run_id" and not k.startswith("latency")}
        return value

    one, other = (json.dumps(untimed(results.summary((1, 3)))) for results in (resumed, whole))
    assert one == other


def test_a_suite_whose_graders_are_wrong_runs_nothing(make, tmp_path):
    """All problems of graders come before the first trial."""
    suite = make(
        SUITE.replace("{type: exact_match}", "{type: exact_mach}, {type: contains, config: {keywords: paris}}")
    )
    with pytest.raises(SuiteError, match="keywords"):
        make_graders(suite, suite.tasks)
    assert not (tmp_path / "results").exists()


def test_two_runs_are_compared_on_their_shared_tasks(make):
    """`compare` of two runs is `ab.compare` of their outcomes, paired by task."""
    tasks = "".join(f"  - {{id: t{i}, input: {{prompt: p}}, expected: {{text: right}}}}\n" for i in range(20))
    suite = make(SUITE.split("tasks:")[0] + "tasks:\n" + tasks)
    one, two = (
        run(suite, Scripted(lambda a, share=share: "right" if a.seed % 100 < share else "wrong"), new=True)
        for share in (40, 80)
    )
    together = ab.combine_outcomes(one.outcomes, two.outcomes, names=["a", "b"])
    found = ab.compare(ab.estimate(together, k=1), "b", baseline="a")
    assert found.pairing == "tasks"
    assert found.verdict == "better"


def test_facts_of_a_run_survive_it(make):
    """Suite, agent and digests are kept; a later, larger plan of the same suite is remembered."""
    suite = make()
    results = run(suite)
    assert results.facts["planned"] == {"good": 4, "bad": 4}
    more = replace(
        suite,
        config=suite.config.model_copy(
            update={"defaults": suite.config.defaults.model_copy(update={"trials_per_task": 6})}
        ),
    )
    again = run(more, resume=results.folder.name)
    assert again.facts["planned"] == {"good": 6, "bad": 6}
    assert len(again.trials) == 12
    assert again.facts["began"] == results.facts["began"]


@pytest.mark.parametrize("suites", [12, pytest.param(200, marks=pytest.mark.slow)])
def test_intervals_of_these_tasks_cover_the_truth_of_simulated_suites(make, suites):
    """A stochastic agent with known probabilities, 20 tasks x 10 trials: 95 % intervals hold the truth."""
    tasks = "".join(f"  - {{id: t{i}, input: {{prompt: x}}, expected: {{text: right}}}}\n" for i in range(20))
    head = SUITE.split("tasks:\n")[0].replace("trials_per_task: 4", "trials_per_task: 10")
    suite = make(f"{head}tasks:\n{tasks}")
    generator = np.random.default_rng(8)
    truths = {f"pass@{k}": lambda p, k=k: 1 - (1 - p) ** k for k in (1, 3)}
    truths |= {f"pass^{k}": lambda p, k=k: p**k for k in (1, 3)}
    covered = dict.fromkeys(truths, 0)
    for number in range(suites):
        p = generator.beta(2, 1.5, size=20)
        passed = generator.random((20, 10)) < p[:, None]

        def answer(attempt, passed=passed):
            return "right" if passed[int(attempt.task.id[1:]), attempt.trial] else "wrong"

        results = run(suite, Scripted(answer), new=True)
        rates = [row["pass_rate"] for row in results.tasks()]
        assert rates == [float(rate) for rate in passed.mean(axis=1)], number
        rows = results.estimate((1, 3)).summary(columns="all")
        rows = rows[(rows.estimand == "tasks") & (rows.method == "hierarchical")]
        for metric, truth in truths.items():
            (row,) = rows[rows.metric == metric].itertuples()
            covered[metric] += row.lower <= truth(p).mean() <= row.upper
    assert min(covered.values()) >= 0.9 * suites - (2 if suites < 200 else 0), covered
