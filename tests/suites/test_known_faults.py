"""What runners of suites are known to get wrong, one test each: here none of it can happen."""

import asyncio
import json
import random
import runpy
import shutil
import sys

import pytest
from scripted import ScriptedChatModel

import agentic_bayes as ab
from agentic_bayes.errors import InvalidArgument, SuiteError
from agentic_bayes.evidence.score import Unscored
from agentic_bayes.suites.config import load_suite
from agentic_bayes.suites.declaration import GraderConfig
from agentic_bayes.suites.graders.registry import make_graders
from agentic_bayes.suites.results import RunResults
from agentic_bayes.suites.runner import plan_run, run_suite
from agentic_bayes.suites.stores.run_store import RunStore
from agentic_bayes.suites.trial import AgentReply, SuiteTask, TrialAttempt

SUITE = """
name: faults
agent: {type: python, name: v1, config: {function: "agent:answer"}}
defaults: {trials_per_task: 10, graders: [{type: exact_match}]}
execution: {concurrency: 4, timeout: 20s, retry_delay: 0}
tasks:
  - {id: capital, input: {prompt: "Capital of France?"}, expected: {text: Paris}}
"""
AGENT = "def answer(prompt):\n    return 'Paris'\n"


@pytest.fixture
def load(tmp_path):
    """A suite in a folder of its own, from its text and the code of its agent."""

    def loaded(text=SUITE, agent=AGENT):
        (tmp_path / "eval.yaml").write_text(text, encoding="utf-8")
        (tmp_path / "agent.py").write_text(agent, encoding="utf-8")
        return load_suite(tmp_path / "eval.yaml", environment={})

    return loaded


class Told:
    """An agent whose replies are a function of the attempt."""

    identity = "told/1"

    def __init__(self, say):
        self.say, self.trials = say, []

    async def attempt(self, attempt):
        """What it says; an exception is raised."""
        self.trials.append(attempt.trial)
        said = self.say(attempt)
        if isinstance(said, Exception):
            raise said
        return AgentReply((said,))


def run(suite, agent=None, **options):
    planned = plan_run(suite, suite.tasks, **options)
    asyncio.run(run_suite(planned, agent=agent))
    return RunResults.of(planned.folder)


@pytest.fixture
def exit_code(tmp_path, monkeypatch):
    """Runs a command in the suite's folder, in this process; its exit code."""

    def run_command(*arguments):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["agentic-bayes", *arguments])
        try:
            runpy.run_module("agentic_bayes", run_name="__main__")
        except SystemExit as end:
            return end.code or 0
        return 0

    return run_command


def test_trials_are_independent_samples_and_not_one_that_is_repeated(load):
    """Every trial asks the agent anew, with a seed of its own: a coin gives both sides, and in a new run again."""
    suite = load()
    agent = Told(lambda attempt: "Paris" if random.Random(attempt.seed).random() < 0.5 else "Lyon")
    first = run(suite, agent)
    assert sorted(agent.trials) == list(range(10))
    assert {trial.status for trial in first.trials} == {"pass", "fail"}
    run(suite, agent, new=True)
    assert sorted(agent.trials) == sorted([*range(10), *range(10)])


def test_an_errored_trial_is_not_done_and_is_run_again(load):
    """The same command asks for the trials that broke down, and only for those."""
    suite = load()
    run(suite, Told(lambda attempt: ConnectionError("reset") if attempt.trial in (2, 5) else "Paris"))
    agent = Told(lambda attempt: "Paris")
    results = run(suite, agent)
    assert sorted(agent.trials) == [2, 5]
    assert results.counts()["passed"] == 10


def test_trials_of_another_model_are_not_mixed_in(load):
    """An unfinished run of one agent does not go on with another one; the message says what to do."""
    run(load(), Told(lambda attempt: ConnectionError("reset") if attempt.trial else "Paris"))
    other = load(SUITE.replace("name: v1", "name: v2"))
    with pytest.raises(InvalidArgument, match=r"is unfinished, but the agent changed since then.* with --new"):
        plan_run(other, other.tasks)


def test_an_unknown_key_is_refused_with_its_line_and_the_nearest_one(load):
    """A slip of the pen is not a setting that is silently left out."""
    with pytest.raises(SuiteError, match=r"line 5, execution.concurency: unknown key: did you mean 'concurrency'"):
        load(SUITE.replace("concurrency", "concurency"))


def test_a_key_that_is_given_twice_is_refused(load):
    """Neither the first nor the last one wins."""
    with pytest.raises(SuiteError, match="the key 'name' is given twice"):
        load(SUITE.replace("name: faults", "name: faults\nname: other"))


def test_no_is_a_text_and_not_false(load):
    """Norway's code as an expected answer, and times and numbers with a leading zero, stay what was written."""
    values = ("no", "off", "1:30", "012")
    tasks = "".join(f"  - {{id: t{i}, input: {{prompt: p}}, expected: {{text: {v}}}}}\n" for i, v in enumerate(values))
    suite = load(SUITE.split("  - {id")[0] + tasks)
    assert [task.expected["text"] for task in suite.tasks] == list(values)
    with pytest.raises(SuiteError, match=r"cache.enabled: .* got 'no'"):  # and where true or false is asked for
        load(SUITE + "cache: {enabled: no}\n")


def test_a_variable_that_is_not_set_does_not_stay_as_it_is_written(load):
    """It is an error that names it, unless a default is given."""
    with pytest.raises(SuiteError, match="the variable MODEL is not set"):
        load(SUITE.replace("name: v1", 'name: "${MODEL}"'))
    assert load(SUITE.replace("name: v1", 'name: "${MODEL:-small}"')).agent_name == "small"


def test_a_grader_that_raises_gives_no_zero(load, monkeypatch):
    """The trial has no verdict, and says why; the rate is of the trials that have one."""
    from agentic_bayes.suites.graders import text as graders_text

    async def broken(self, attempt, reply):
        raise ZeroDivisionError("in the grader")

    monkeypatch.setattr(graders_text.ExactMatch, "grade", broken)
    results = run(load())
    assert {trial.status for trial in results.trials} == {"error"}
    assert results.counts()["pass_rate"] is None
    assert "ZeroDivisionError: in the grader" in results.trials[0].error


def test_a_judge_that_likes_the_first_answer_decides_nothing():
    """Pairs are judged in both orders: a preference for a position is a tie, and is said."""
    first = ScriptedChatModel(script=lambda _: json.dumps({"reasoning": "the first", "better": "first"}))
    config = GraderConfig(type="pairwise", config={"model": first, "use_structured_output": False})
    problems = []
    (grader,) = make_graders([config], pass_threshold=0.5, folder=".", problems=problems)
    assert not problems
    grade = asyncio.run(
        grader.grade(TrialAttempt(SuiteTask("t", ("q",), expected={"text": "theirs"}), 0, 1), AgentReply(("mine",)))
    )
    assert not isinstance(grade, Unscored)
    assert (grade.value, len(first.calls)) == (0.5, 2)
    assert "the orders disagree" in grade.reason


@pytest.mark.parametrize(
    "grader",
    ['{type: regex, config: {pattern: "^(a+)+$"}}', '{type: constraint, config: {must_match: ["^(a+)+$"]}}'],
    ids=["regex", "constraint"],
)
def test_a_pattern_that_backtracks_does_not_hang_the_run(load, grader):
    """`(a+)+$` on forty letters takes a backtracking engine years."""
    suite = load(SUITE.replace("{type: exact_match}", grader).replace("trials_per_task: 10", "trials_per_task: 2"))
    results = run(suite, Told(lambda attempt: "a" * 40 + "!"))
    assert {trial.status for trial in results.trials} == {"fail"}


def test_one_keyword_is_not_read_letter_by_letter(load):
    """A text where a list belongs is an error that shows the list."""
    suite = load(SUITE.replace("{type: exact_match}", "{type: contains, config: {keywords: paris}}"))
    with pytest.raises(SuiteError, match=r"keywords must be a list"):
        run(suite)


def test_a_weight_of_zero_weighs_nothing(load):
    """A grader of weight 0 is shown and must pass, but is no part of the score; weights that are all 0 are refused."""
    both = "{type: exact_match, weight: 0}, {type: contains, weight: 2, config: {keywords: [Paris, Lyon]}}"
    results = run(load(SUITE.replace("{type: exact_match}", both)))
    assert {trial.score for trial in results.trials} == {0.5}
    with pytest.raises(SuiteError, match="at least one weight > 0"):
        load(SUITE.replace("{type: exact_match}", "{type: exact_match, weight: 0}"))


@pytest.mark.parametrize(("bar", "status"), [(0.4, "pass"), (0.6, "fail")])
def test_the_threshold_of_passing_is_used(load, bar, status):
    """A grader that only scores passes from `pass_threshold` on."""
    command = f"""{{type: command, config: {{command: [{sys.executable}, -c, "print('{{\\"score\\": 0.5}}')"]}}}}"""
    text = SUITE.replace("{type: exact_match}", command).replace("trials_per_task: 10", "trials_per_task: 1")
    results = run(load(text.replace("defaults: {", f"defaults: {{pass_threshold: {bar}, ")))
    assert [trial.status for trial in results.trials] == [status], results.trials[0].error


def test_a_torn_file_loses_no_trial_that_ended(load):
    """A machine that goes down in the middle of writing leaves a torn end: what was written before it is there."""
    suite = load()
    results = run(suite, Told(lambda attempt: ConnectionError("reset") if attempt.trial > 6 else "Paris"))
    with RunStore(results.folder) as store:  # an open file keeps its log
        store.note({"seen": 1})
        kept = (results.folder / "trials.sqlite-wal").stat().st_size
        store.note({"seen": 2})
        torn = results.folder.with_name("torn")
        shutil.copytree(results.folder, torn, ignore=shutil.ignore_patterns("*-shm", "lock*"))
    with (torn / "trials.sqlite-wal").open("r+b") as log:
        log.truncate(kept + 100)
    agent = Told(lambda attempt: "Paris")
    again = run(suite, agent, resume="torn")
    assert again.facts["seen"] == 1
    assert sorted(agent.trials) == [7, 8, 9]
    assert len(again.trials) == 10


def test_infrastructure_errors_are_not_failures_of_the_agent(load):
    """One pass and nine errors: one trial counts, nine are named, and neither 100 % nor 10 % is claimed."""
    results = run(load(), Told(lambda attempt: ConnectionError("reset") if attempt.trial else "Paris"))
    counts = results.counts()
    assert (counts["passed"], counts["failed"], counts["errored"]) == (1, 0, 9)
    outcomes = results.outcomes
    assert (int(outcomes["trials"].sum()), int(outcomes["errored"].sum())) == (1, 9)
    gate = ab.gate(results.estimate((1,)), at_least=0.5)
    assert gate.verdict == "inconclusive"


def test_a_failed_gate_and_a_crash_have_exit_codes_of_their_own(load, exit_code, capsys):
    """10 is a gate that failed, 11 one that decided nothing, 2 wrong input, 0 success."""
    load(agent="def answer(prompt):\n    return 'Lyon'\n")
    assert exit_code("run", "--new", "--gate", "pass^1>=0.9@0.9") == 10, capsys.readouterr().err
    load(agent="def answer(prompt):\n    raise OSError('down')\n")
    assert exit_code("run", "--new", "--fail-under", "0.5") == 11
    load()
    assert exit_code("run", "--new", "--gate", "pass^1>0.9") == 2, capsys.readouterr().err
    assert exit_code("run", "--new", "--fail-under", "0.5") == 0
