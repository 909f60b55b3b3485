"""Tests marked `agentic`: trials as items, one verdict per test, whoever runs the trials."""

import html
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import agentic_bayes as ab
from agentic_bayes.pytest_plugin.trials import PlannedTrial, PytestTrial, TrialDesign, trial_id, trial_of

pytest_plugins = ["pytester"]
ROOT = Path(__file__).resolve().parents[2]
HEAD = """
import random
import pytest
agentic = pytest.mark.agentic
"""
ALWAYS = "@agentic(trials=5, at_least=0.5)\ndef test_always():\n    pass\n"
NEVER = "@agentic(trials=5, at_least=0.5)\ndef test_never():\n    assert False, 'the agent said no'\n"
FEW = "@agentic(trials=2, at_least=0.5)\ndef test_few():\n    pass\n"
PLAIN = "def test_plain():\n    pass\n"


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    """What inner sessions load is there before them: an inner session forgets the modules that it has loaded."""
    evidence = ab.judges.evidence_from_table(pd.DataFrame({"task": ["a"], "correct": [1]}))
    ab.gate(ab.estimate(ab.count_outcomes(evidence), method="conjugate", k=1), at_least=0.5, estimand="tasks")


@pytest.fixture
def installed(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder for tests, in an environment whose metadata has the plugin's entry point, installed or not."""
    entry = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]["pytest11"]
    folder = pytester.mkdir("metadata") / "declared-0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: declared\nVersion: 0\n")
    lines = [f"{name} = {module}" for name, module in entry.items()]
    (folder / "entry_points.txt").write_text("\n".join(["[pytest11]", *lines]))
    pytester.syspathinsert(folder.parent)
    paths = [str(ROOT), str(folder.parent), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    monkeypatch.setenv("COLUMNS", "400")
    # by the names of entry points, and no others that happen to be installed
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv(
        "PYTEST_ADDOPTS", "-p agentic_bayes -p anyio -p xdist -W ignore::pytest.PytestAssertRewriteWarning"
    )
    return pytester


@pytest.fixture
def run(installed: pytest.Pytester) -> Callable[..., SimpleNamespace]:
    """Runs pytest on a file, in this process or apart (xdist's workers are processes of their own): code and output."""

    def run_file(text: str, *arguments: str, name: str = "test_agent", apart: bool = False) -> SimpleNamespace:
        installed.makepyfile(**{name: HEAD + text})
        runner = installed.runpytest_subprocess if apart else installed.runpytest_inprocess
        result = runner(*arguments)
        output = result.stdout.str()
        section = output.partition("= agentic =")[2].partition("\n")[2]
        section = section.partition("\n====")[0].partition("\n= ")[0]
        return SimpleNamespace(
            code=result.ret, output=output, errors=result.stderr.str(), section=section, result=result
        )

    return run_file


def counts(done: SimpleNamespace) -> dict[str, int]:
    """The last line's counts."""
    found: dict[str, int] = done.result.parseoutcomes()
    return found


# What a trial comes to


MIXED = """
@agentic(trials=20, at_least=0.5)
def test_good(trial):
    assert trial.index != 7, "the agent said no"

@agentic(trials=10, at_least=0.9)
def test_bad(trial):
    assert trial.index < 3, f"refused {trial.index % 2}"

@agentic(trials=8, at_least=0.3)
def test_errors(trial):
    if trial.index == 2:
        raise ConnectionError("no route")
    if trial.index == 3:
        pytest.skip("no key")
    if trial.index == 4:
        pytest.fail("wrong tool")

@agentic(trials=3, at_least=0.5)
def test_unclear():
    pass

def test_plain():
    pass
"""
SENTENCES = [
    "test_agent.py::test_good: 19 of 20 trials passed, 1 failed; pass: P(pass^1 ≥ 0.5) > 99.9 %",
    "    failed, trial 7: AssertionError: the agent said no",
    "test_agent.py::test_bad: 3 of 10 trials passed, 7 failed; fail: P(pass^1 ≥ 0.9) < 0.1 %",
    "    failed, 4 trials (3, 5, 7, 9): AssertionError: refused 1",
    "    failed, 3 trials (4, 6, 8): AssertionError: refused 0",
    "test_agent.py::test_errors: 5 of 8 trials passed, 1 failed, 1 errored, 1 unscored; pass: P(pass^1 ≥ 0.3) = ",
    "    errored, trial 2: ConnectionError: no route",
    "    unscored, trial 3: no key",
    "    failed, trial 4: Failed: wrong tool",
    "test_agent.py::test_unclear: 3 of 3 trials passed; inconclusive: P(pass^1 ≥ 0.5) = ",
]


@pytest.mark.parametrize(
    "arguments",
    [(), ("-n2",), pytest.param(("-n2", "--dist", "loadfile"), marks=pytest.mark.slow)],
    ids=" ".join,
)
def test_trials_are_judged_once_whoever_runs_them(run, arguments):
    """Every test gets one verdict on all its trials, with reasons, the same for every way to spread them."""
    done = run(MIXED, *arguments)
    assert counts(done) == {"passed": 3, "failed": 1, "inconclusive": 1}
    lines = done.section.splitlines()
    for sentence in SENTENCES:
        assert sum(line.startswith(sentence) for line in lines) == 1, sentence
    assert len(lines) == len(SENTENCES) + 1  # and what inconclusive does to the run
    assert done.code == pytest.ExitCode.TESTS_FAILED


def test_the_interval_is_that_of_one_task(run):
    """The verdict's numbers are those of Beta(1 + passed, 1 + failed): errored and unscored trials are not in it."""
    from scipy import stats

    done = run(MIXED)
    (line,) = (line for line in done.section.splitlines() if "test_errors" in line)
    posterior = stats.beta(1 + 5, 1 + 1)
    lower, upper = posterior.ppf([0.025, 0.975])
    assert f"P(pass^1 ≥ 0.3) = {posterior.sf(0.3) * 100:.1f} %" in line
    assert f"pass^1 {posterior.mean():.3f}, 95 % interval {lower:.3f} to {upper:.3f}" in line


def test_trials_without_a_verdict_may_leave_it_open(run):
    """Where errored and unscored trials would decide, as here at .4 and not at .3, nothing passes; that is said."""
    from scipy import stats

    assert stats.beta(1 + 5, 1 + 1).sf(0.4) > 0.95 > stats.beta(1 + 5, 1 + 3).sf(0.4)  # scored; missing ones failed
    done = run(MIXED.replace("at_least=0.3", "at_least=0.4"))
    assert counts(done) == {"passed": 2, "failed": 1, "inconclusive": 2}
    (line,) = (line for line in done.section.splitlines() if "test_errors" in line)
    assert "5 of 8 trials passed, 1 failed, 1 errored, 1 unscored; inconclusive: P(pass^1 ≥ 0.4) = 98 % " in line
    assert "with missing trials counted as failed the gate is inconclusive (pass^1 0.600 " in line
    assert "with missing trials counted as passed the gate passes (pass^1 0.800 " in line


def test_the_traceback_of_the_first_failed_trial_is_shown(run):
    """A failed verdict shows its sentence, the reasons, and one trial's traceback and output."""
    text = NEVER.replace("assert", "print('what the agent printed')\n    assert")
    done = run(text)
    assert "FAILED test_agent.py::test_never - 0 of 5 trials passed, 5 failed; fail: P(pass^1 ≥ 0.5) = " in done.output
    failures = done.output.partition("= FAILURES =")[2].partition("= agentic =")[0]
    assert "the first failed trial, test_agent.py::test_never[trial0/5]:" in failures
    assert "E       AssertionError: the agent said no" in failures
    assert failures.count("what the agent printed") == 2  # in the code, and captured


BODIES = {
    "assert False": "failed",
    "pytest.fail('no')": "failed",
    "pytest.raises(ValueError, int, '1')": "failed",
    "raise ExceptionGroup('at once', [AssertionError('a'), AssertionError('b')])": "failed",
    "pytest.xfail('known')": "failed",
    "raise ExceptionGroup('at once', [AssertionError('a'), OSError('b')])": "errored",
    "raise TimeoutError('late')": "errored",
    "pytest.fail('Timeout (>1.0s) from pytest-timeout.')": "errored",
    "raise SystemExit(1)": "errored",
    "pytest.skip('no key')": "unscored",
    "pytest.importorskip('no_such_package')": "unscored",
}


@pytest.mark.parametrize("body", BODIES)
def test_only_a_verdict_fails_a_trial(run, body):
    """An assertion or `pytest.fail` in the body fails a trial; any other exception is an error, a skip is unscored."""
    done = run(f"@agentic(trials=9, at_least=0.5)\ndef test_it(trial):\n    if trial.index == 4:\n        {body}\n")
    assert f"test_it: 8 of 9 trials passed, 1 {BODIES[body]}; pass: " in done.section
    assert done.code == pytest.ExitCode.OK


@pytest.mark.parametrize(
    ("setup", "teardown", "expected"),
    [
        ("assert trial.index != 4", "pass", "8 of 9 trials passed, 1 errored"),
        ("pass", "assert trial.index != 4", "8 of 9 trials passed, 1 errored"),
        ("trial.index == 4 and pytest.skip('none')", "pass", "8 of 9 trials passed, 1 unscored"),
    ],
)
def test_a_broken_fixture_is_an_error(run, setup, teardown, expected):
    """What a fixture raises says nothing about the agent: the trial errored, whatever the exception."""
    fixture = f"@pytest.fixture\ndef room(trial):\n    {setup}\n    yield\n    {teardown}\n"
    done = run(f"{fixture}@agentic(trials=9, at_least=0.5)\ndef test_it(room):\n    pass\n")
    assert f"test_it: {expected}; pass: " in done.section
    assert (done.code, counts(done)) == (pytest.ExitCode.OK, {"passed": 1})


def test_a_failed_trial_stays_failed_when_its_teardown_breaks(run):
    """The body's verdict stands, whatever happens afterwards."""
    fixture = "@pytest.fixture\ndef room():\n    yield\n    raise OSError('gone')\n"
    done = run(f"{fixture}@agentic(trials=5, at_least=0.5)\ndef test_it(room):\n    assert False, 'no'\n")
    assert "0 of 5 trials passed, 5 failed; fail: " in done.section
    assert counts(done) == {"failed": 1}


def test_nothing_scored_is_no_pass(run):
    """A test whose trials all errored fails, with a reason; one whose trials were all skipped is skipped."""
    down = "@agentic(trials=3, at_least=0.1)\ndef test_down():\n    raise OSError('agent is down')\n"
    left = "@pytest.mark.skip(reason='later')\n@agentic(trials=3, at_least=0.1)\ndef test_left_out():\n    pass\n"
    done = run(down + left, "--agentic-inconclusive", "pass")
    assert counts(done) == {"failed": 1, "skipped": 1}
    assert "test_down: 0 of 3 trials passed, 3 errored; no trial was scored, so there is no verdict" in done.section
    assert "    unscored, 3 trials (0, 1, 2): " in done.section
    assert done.code == pytest.ExitCode.TESTS_FAILED


def test_a_coroutine_that_nobody_runs_errored(run):
    """An `async def` without a plugin for it says nothing about the agent: pytest's complaint is no verdict."""
    done = run("@agentic(trials=5, at_least=0.5)\nasync def test_it():\n    pass\n", "-p", "no:anyio")
    assert "test_it: 0 of 5 trials passed, 5 errored; no trial was scored, so there is no verdict" in done.section
    assert "errored, 5 trials (0, 1, 2, 3, 4): Failed: async def functions are not natively supported" in done.section
    assert (done.code, counts(done)) == (pytest.ExitCode.TESTS_FAILED, {"failed": 1})


XFAIL = """
@pytest.mark.xfail(reason="known")
@agentic(trials=5, at_least=0.5)
def test_expected():
    assert False

@pytest.mark.xfail(reason="known")
@agentic(trials=5, at_least=0.5)
def test_better():
    pass

@pytest.mark.xfail(reason="known", strict=True)
@agentic(trials=5, at_least=0.5)
def test_strict():
    pass

@pytest.mark.xfail(reason="known", raises=KeyError)
@agentic(trials=5, at_least=0.5)
def test_other_reason():
    assert False

@pytest.mark.xfail(reason="known", run=False)
@agentic(trials=5, at_least=0.5)
def test_not_run():
    assert False
"""


def test_xfail_is_about_the_verdict(run):
    """A test marked xfail is expected to have a failed verdict: a passed one is unexpected, strictly so a failure."""
    done = run(XFAIL)
    assert counts(done) == {"xfailed": 2, "xpassed": 1, "failed": 2}
    assert "FAILED test_agent.py::test_strict - 5 of 5 trials passed; [XPASS(strict)] pass: " in done.output
    assert "FAILED test_agent.py::test_other_reason - 0 of 5 trials passed, 5 failed; fail: " in done.output


def test_a_failed_subtest_fails_its_trial(run):
    """Subtests belong to their trial, of which the first that fails is the reason."""
    pytest.importorskip("_pytest.subtests")  # of pytest 9
    body = "    with subtests.test('a'):\n        pass\n    with subtests.test('b'):\n        assert trial.index\n"
    done = run(f"@agentic(trials=9, at_least=0.5)\ndef test_it(trial, subtests):\n{body}")
    assert "test_it: 8 of 9 trials passed, 1 failed; pass: " in done.section
    assert done.code == pytest.ExitCode.OK


def test_what_an_agent_says_cannot_steer_the_terminal(run):
    """Control characters in a reason are written out."""
    done = run("@agentic(trials=5, at_least=0.5)\ndef test_it():\n    raise AssertionError('\\x1b[2J\\u202egone')\n")
    assert "AssertionError: \\u001b[2J\\u202egone" in done.section
    assert "\x1b[2J" not in done.section


# Which tests can be repeated, and how

EVERYWHERE = """
@pytest.mark.parametrize("who", ["v1", "v2"])
@agentic(trials=9, at_least=0.5)
def test_versions(who):
    assert who == "v2"

@agentic(trials=99, at_least=0.5)
class TestShop:
    seen = []

    @agentic(trials=9, metric="pass^2")
    def test_empty_folder(self, tmp_path, trial):
        assert not list(tmp_path.iterdir())
        (tmp_path / "order.txt").touch()
        assert trial.seed not in self.seen
        self.seen.append(trial.seed)

@pytest.fixture
def anyio_backend():
    return "asyncio"

@agentic(trials=9, at_least=0.5)
@pytest.mark.anyio
async def test_async(trial):
    import anyio

    await anyio.sleep(0)
    assert trial.index < 8

def double(x):
    '''Twice.

    >>> double(2)
    4
    '''
    return 2 * x
"""


def test_functions_methods_parameters_and_coroutines_can_be_repeated(run):
    """Parametrized tests have a verdict per case; the nearest marker wins, argument by argument; doctests stay."""
    done = run(EVERYWHERE, "--doctest-modules", "--strict-markers")
    assert counts(done) == {"passed": 4, "failed": 1}  # three verdicts, the doctest; and v1
    for line in (
        "test_agent.py::test_versions[v1]: 0 of 9 trials passed, 9 failed; fail: ",
        "test_agent.py::test_versions[v2]: 9 of 9 trials passed; pass: ",
        "test_agent.py::TestShop::test_empty_folder: 9 of 9 trials passed; pass: P(pass^2 ≥ 0.5) = ",
        "test_agent.py::test_async: 8 of 9 trials passed, 1 failed; pass: ",
    ):
        assert line in done.section


BAD = {
    "": "trials and at_least must be given, for example trials=20, at_least=0.7",
    "trials=5": "at_least must be given",
    "5, at_least=0.5": "arguments must be given by name (trials, at_least, metric, confidence), got 5",
    "trials=0, at_least=0.5": "trials must be an integer ≥ 1, got 0",
    "trials=10**7, at_least=0.5": "trials must be at most 10,000, got 10,000,000",
    "trials=2.5, at_least=0.5": "trials must be an integer ≥ 1, got 2.5",
    "trials=True, at_least=0.5": "trials must be an integer ≥ 1, got True",
    "trials=5, at_least=1": "at_least must be a number strictly between 0 and 1, got 1",
    "trials=5, at_least='0.5'": "at_least must be a number strictly between 0 and 1, got '0.5'",
    "trials=5, at_least=0.5, metric='pass^0'": 'metric must be "pass@k" or "pass^k" with a number',
    "trials=5, at_least=0.5, confidence=0.5": "confidence must be in (0.5, 1)",
    "trials=5, at_least=0.5, metric='pass^k'": 'metric must be "pass@k" or "pass^k" with a number',
    "trials=5, at_leats=0.5": "unknown argument 'at_leats': did you mean 'at_least'?",
}


def test_bad_arguments_are_refused_before_anything_runs(installed):
    """A marker that asks something impossible is an error of collection that says what is allowed."""
    texts = [f"@agentic({arguments})\ndef test_it():\n    pass\n" for arguments in BAD]
    installed.makepyfile(**{f"test_{i}": HEAD + text + PLAIN for i, text in enumerate(texts)})
    done = installed.runpytest_inprocess()
    for i, wrong in enumerate(BAD.values()):
        assert f"@pytest.mark.agentic of test_{i}.py::test_it: {wrong}" in done.stdout.str()
    assert (done.ret, done.parseoutcomes()) == (pytest.ExitCode.INTERRUPTED, {"errors": len(BAD)})


def test_numbers_of_numpy_are_numbers(run):
    """Arguments may be NumPy's numbers, also where trials travel between processes."""
    numbers = "trials=np.int64(5), at_least=np.float64(0.5)"
    done = run(f"import numpy as np\n@agentic({numbers})\ndef test_it():\n    pass\n", "-n1")
    assert counts(done) == {"passed": 1}


def test_more_attempts_than_trials_are_flagged(run):
    """A k beyond the trials is allowed, and said."""
    done = run("@agentic(trials=4, metric='pass^5', at_least=0.5)\ndef test_it():\n    pass\n")
    assert "[extrapolated] (to pass takes at least 21 trials, even if they all pass)" in done.section


UNIT = """
import unittest

@agentic(trials=5, at_least=0.5)
class TestOld(unittest.TestCase):
    def test_it(self):
        pass
"""


def test_methods_of_unittest_are_refused(run):
    """They take no parameters, so they cannot be repeated; that is said instead of running them once."""
    done = run(UNIT)
    assert (
        "of test_agent.py::TestOld::test_it: must mark a test function or a method of a plain class, where it is "
        "defined; got TestCaseFunction (methods of unittest.TestCase cannot be repeated)" in done.output
    )
    assert (done.code, counts(done)) == (pytest.ExitCode.INTERRUPTED, {"errors": 1})


def test_a_marker_that_comes_too_late_is_refused(run, installed):
    """A marker added to an item, which was not repeated, is not ignored."""
    add = "item.add_marker(pytest.mark.agentic(trials=5, at_least=0.5))"
    hook = f"import pytest\ndef pytest_collection_modifyitems(items):\n    for item in items:\n        {add}\n"
    installed.makeconftest(hook)
    done = run(PLAIN)
    assert "must mark a test function or a method of a plain class, where it is defined" in done.errors
    assert done.code == pytest.ExitCode.USAGE_ERROR


def test_the_fixture_needs_the_marker(run):
    """`trial` in a test that is not repeated is an error that says what to do."""
    done = run("def test_it(trial):\n    pass\n")
    assert "the fixture 'trial' is for tests marked @pytest.mark.agentic(trials=…, at_least=…)" in done.output
    assert counts(done) == {"errors": 1}


def test_a_fixture_of_the_users_own_goes_first(run):
    """Whoever has a fixture or a parameter called `trial` keeps it."""
    own = "@pytest.fixture\ndef trial():\n    return 'mine'\n"
    done = run(f"{own}@agentic(trials=5, at_least=0.5)\ndef test_it(trial):\n    assert trial == 'mine'\n")
    assert counts(done) == {"passed": 1}


def test_a_trial_has_the_same_seed_in_every_run(run):
    """Seeds differ from trial to trial and from test to test, and not from run to run."""
    body = "def test_{}(trial):\n    print('seed', trial.index, trial.seed)\n    assert False\n"
    text = "".join(f"@agentic(trials=4, at_least=0.5)\n{body.format(name)}" for name in "ab")
    found = [re.findall(r"seed \d+ \d+", run(text, "-s").output) for _ in range(2)]
    assert found[0] == found[1]
    assert len(set(found[0])) == 8
    assert len({line.split()[2] for line in found[0]}) == 8
    assert PytestTrial(0, 1) == PytestTrial(index=0, seed=1)


# Options of pytest


@pytest.mark.parametrize(
    ("ini", "arguments", "code"),
    [
        ("", (), 1),
        ("", ("--agentic-inconclusive", "pass"), 0),
        ("agentic_inconclusive = pass", (), 0),
        ("agentic_inconclusive = pass", ("--agentic-inconclusive", "fail"), 1),
    ],
)
def test_inconclusive_is_an_outcome_of_its_own(run, installed, ini, arguments, code):
    """The summary counts it apart; it fails the run unless one says that it does not."""
    installed.makeini(f"[pytest]\n{ini}\n")
    done = run(ALWAYS + FEW, *arguments, "-v")
    assert counts(done) == {"passed": 1, "inconclusive": 1}
    assert "test_agent.py::test_few INCONCLUSIVE" in done.output
    assert ("inconclusive fails the run" in done.section) == bool(code)
    assert done.code == code


def test_an_unknown_policy_is_refused(run, installed):
    """The ini value is checked before anything is collected."""
    installed.makeini("[pytest]\nagentic_inconclusive = ignore\n")
    done = run(ALWAYS)
    assert "agentic_inconclusive must be fail or pass, got 'ignore'" in done.errors
    assert done.code == pytest.ExitCode.USAGE_ERROR


LATER = "@agentic(trials=5, at_least=0.5)\ndef test_zlater():\n    import time\n    time.sleep(0.3)\n"


@pytest.mark.parametrize("arguments", [(), ("-n1",)], ids=" ".join)
def test_stopping_at_the_first_failure_counts_verdicts(run, arguments):
    """`-x` goes on after a failed trial and stops after a failed verdict; what did not run to its end is not judged."""
    half = "@agentic(trials=9, at_least=0.5)\ndef test_half(trial):\n    assert trial.index\n"
    done = run(half + NEVER + LATER, "-x", *arguments)
    assert counts(done)["failed"] == 1
    assert "test_half: 8 of 9 trials passed, 1 failed; pass: " in done.section
    assert "test_zlater: 5 of 5" not in done.section
    assert done.code in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)


def test_last_failed_runs_all_trials_of_a_failed_test(run):
    """`--lf` repeats a failed test as a whole, and no other; once it has passed nothing is left over."""
    run(ALWAYS + NEVER + PLAIN)
    again = run(ALWAYS + NEVER + PLAIN, "--lf")
    assert counts(again) == {"failed": 1}
    assert "test_never: 0 of 5 trials passed, 5 failed; fail: " in again.section
    mended = NEVER.replace("False", "True")
    assert counts(run(ALWAYS + mended + PLAIN, "--lf")) == {"passed": 1}
    assert counts(run(ALWAYS + mended + PLAIN, "--lf")) == {"passed": 3}


def test_what_was_selected_is_what_is_judged(run):
    """With `-k` or an id the verdict is on the trials that were chosen, and says how many these are."""
    done = run(ALWAYS + NEVER, "-k", "test_always and (trial1 or trial3)")
    assert "test_always: 2 of 2 trials passed; inconclusive: " in done.section
    assert counts(done) == {"inconclusive": 1, "deselected": 8}


def test_a_collection_lists_trials_and_judges_nothing(run):
    """`--collect-only` shows the items."""
    done = run(ALWAYS, "--collect-only", "-q")
    assert [line for line in done.output.splitlines() if "::" in line] == [
        f"test_agent.py::test_always[trial{index}/5]" for index in range(5)
    ]
    assert "agentic =" not in done.output
    assert done.code == pytest.ExitCode.OK


@pytest.mark.parametrize("options", [("--setup-only",), ("--setup-plan",), ("--setup-only", "-n1")], ids=" ".join)
def test_without_a_body_that_ran_there_is_no_verdict(run, options):
    """Where only fixtures are set up no trial is recorded, so that nothing is said to have passed."""
    done = run(ALWAYS + NEVER, *options)
    assert "agentic =" not in done.output
    assert counts(done) == {}
    assert done.code == pytest.ExitCode.OK


def test_fixtures_that_break_on_their_own_are_still_told(run):
    """With `--setup-only` a trial whose fixture raised has errored."""
    fixture = "@pytest.fixture\ndef room():\n    raise OSError('gone')\n"
    done = run(f"{fixture}@agentic(trials=5, at_least=0.5)\ndef test_it(room):\n    pass\n", "--setup-only")
    assert "test_it: 0 of 5 trials passed, 5 errored; no trial was scored" in done.section
    assert counts(done) == {"failed": 1}


@pytest.mark.parametrize("arguments", [(), ("-n1",), ("-ra",)], ids=" ".join)
def test_the_short_summary_lists_what_is_inconclusive(run, arguments):
    """An inconclusive test that fails the run is listed with its sentence as failed ones are, and counted apart."""
    done = run(FEW + NEVER, *arguments)
    short = done.output.partition("= short test summary info =")[2].splitlines()
    assert sum(line.startswith("FAILED test_agent.py::test_never - 0 of 5 trials passed") for line in short) == 1
    listed = "INCONCLUSIVE test_agent.py::test_few - 2 of 2 trials passed; inconclusive: "
    assert sum(line.startswith(listed) for line in short) == 1
    assert counts(done) == {"failed": 1, "inconclusive": 1}


@pytest.mark.parametrize("arguments", [("--agentic-inconclusive", "pass"), ("-rN",)], ids=" ".join)
def test_the_short_summary_lists_only_what_was_asked(run, arguments):
    """What does not fail the run is not listed, and nothing is where nothing was asked for."""
    done = run(FEW, *arguments)
    assert "INCONCLUSIVE test_agent.py" not in done.output
    assert counts(done) == {"inconclusive": 1}


def test_an_installed_plugin_is_found(run, monkeypatch):
    """Its entry point is all that pytest needs to know it."""
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    monkeypatch.delenv("PYTEST_ADDOPTS")
    done = run(ALWAYS, "-n1", "-p", "no:zarr")  # whose plugin uses a mark that it does not register
    assert counts(done) == {"passed": 1}


def test_the_plugin_can_be_switched_off(run):
    """Without it the marker is an unknown one, and a test runs once."""
    assert counts(run(ALWAYS, "-p", "no:agentic_bayes", "-W", "ignore")) == {"passed": 1}
    done = run(ALWAYS, "-p", "no:agentic_bayes", "--strict-markers", apart=True)
    assert "'agentic' not found in `markers` configuration option" in done.output


@pytest.mark.parametrize(
    "arguments", [("-v",), ("-q",), ("-rA",), ("--durations", "0", "--durations-min", "60")], ids=" ".join
)
def test_the_plugin_is_silent_where_nobody_uses_it(run, arguments):
    """Without a marked test not a line of the output differs from that without the plugin."""

    def lines(*extra: str) -> list[str]:
        output = run(PLAIN + "def test_no():\n    assert 0\n", *arguments, *extra).output
        return [re.sub(r"\d+\.\d+s", "", line) for line in output.splitlines() if not line.startswith("plugins: ")]

    assert lines() == lines("-p", "no:agentic_bayes")


def test_loading_the_plugin_is_cheap():
    """The plugin loads neither NumPy nor any other heavy package."""
    code = "import sys, agentic_bayes.pytest_plugin\n" + (
        "heavy = {'numpy', 'scipy', 'pandas', 'xarray', 'pymc', 'arviz', 'matplotlib', 'pydantic', 'rich'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "[]"


def test_progress_reaches_the_end(run):
    """Verdicts are tests of the progress: the last line says 100 %, and no line says more."""
    done = run(ALWAYS + NEVER + PLAIN)
    assert re.findall(r"\[ *(\d+)%\]", done.output) == ["100"]
    assert "test_agent.py +++++.-----F. " in done.output


def test_junit_xml_tells_trials_from_verdicts(run, installed):
    """A failed trial is skipped in JUnit XML, with its reason; the verdict is a case under the test's own name."""
    run(ALWAYS + NEVER + FEW, "--junitxml", "out.xml", "--agentic-inconclusive", "pass")
    root = ElementTree.parse(installed.path / "out.xml").getroot()
    (suite,) = root.iter("testsuite")
    cases = {case.get("name"): case for case in root.iter("testcase")}
    assert len(cases) == 5 + 5 + 2 + 3
    assert (suite.get("failures"), suite.get("errors"), suite.get("skipped")) == ("1", "0", "6")
    assert [child.tag for child in cases["test_never"]] == ["failure"]
    assert "0 of 5 trials passed" in str(cases["test_never"][0].get("message"))
    assert (
        cases["test_never[trial2/5]"][0].get("message")
        == "trial failed: AssertionError: the agent said no\nassert False"
    )
    assert "2 of 2 trials passed; inconclusive: " in str(cases["test_few"][0].get("message"))
    assert not list(cases["test_always"])


def test_a_trial_that_takes_its_worker_down_errored(run):
    """An agent that ends the interpreter costs one trial; the others are judged."""
    body = "def test_it(trial):\n    import os\n    if trial.index == 3:\n        os._exit(1)\n"
    done = run(f"@agentic(trials=9, at_least=0.5)\n{body}", "-n1")
    assert "test_it: 8 of 9 trials passed, 1 errored; pass: " in done.section
    assert re.search(r"errored, trial 3: worker 'gw\d' crashed while running", done.section)
    assert counts(done) == {"passed": 1}
    assert done.code == pytest.ExitCode.OK


def test_a_case_that_only_looks_like_a_trial_may_crash(run):
    """Parameters of an unmarked test may be called like trials: a crash of theirs is a failed test."""
    crash = '@pytest.mark.parametrize("x", [1, 2], ids=["trial0", "trial1"])\ndef test_it(x):\n'
    done = run(f"{crash}    import os\n    if x == 1:\n        os._exit(3)\n", "-n1")
    assert "FAILED test_agent.py::test_it[trial0]" in done.output
    assert counts(done) == {"passed": 1, "failed": 1}
    assert done.code == pytest.ExitCode.TESTS_FAILED


# The report


def test_the_report_begins_with_the_verdicts_of_all_tests(run, installed):
    """The page is on one estimate whose tasks are the tests, with the reason of every trial; no command is shown."""
    done = run(MIXED, "--agentic-report", "report.html")
    path = installed.path / "report.html"
    assert f"report written to {path}" in done.section
    words = " ".join(re.sub(r"<[^>]+>", " ", html.unescape(path.read_text(encoding="utf-8"))).split())
    heading = re.search(r"Dark mode (4 tests: [^.]*?) What are the verdicts\?", words)
    assert heading is not None, words[:500]
    assert set(heading[1].removeprefix("4 tests: ").split(", ")) == {"2 passed", "1 failed", "1 inconclusive"}
    for name, sentence in (("test_good", "19 of 20 trials passed"), ("test_unclear", "3 of 3 trials passed")):
        assert f"test_agent.py::{name}: {sentence}" in words
    assert "AssertionError: the agent said no" in words
    assert "ConnectionError: no route" in words
    assert "conjugate" in words
    assert "agentic-bayes estimate" not in words


def test_no_report_is_written_about_nothing(run, installed):
    """Where no trial was scored, or no test is marked, there is no report."""
    assert (
        "no trial was scored" in run(NEVER.replace("assert", "raise OSError #"), "--agentic-report", "r.html").section
    )
    run(PLAIN, "--agentic-report", "r.html")
    assert not (installed.path / "r.html").exists()


def test_a_report_that_fails_is_said(run, monkeypatch):
    """A report that cannot be written in the end is told, and the run does not end well."""

    def full(*_: Any, **__: Any) -> None:
        raise OSError("no space left")

    module: Any = ModuleType("agentic_bayes.reports.html.page")
    module.write_page = full
    monkeypatch.setitem(sys.modules, "agentic_bayes.reports.html.page", module)
    done = run(ALWAYS, "--agentic-report", "report.html")
    assert "report.html was not written: no space left" in done.section
    assert done.code == pytest.ExitCode.INTERNAL_ERROR


@pytest.mark.parametrize("path", ["no/such/report.html", "."])
def test_a_report_that_cannot_be_written_is_refused_first(run, path):
    """The place of the report is checked before a trial is run."""
    done = run(ALWAYS, "--agentic-report", path)
    assert f"--agentic-report must be a file in a folder that exists, got {path}" in done.errors
    assert done.code == pytest.ExitCode.USAGE_ERROR


# Names


@given(
    st.text("abc[]-:/. ", min_size=1),
    st.none() | st.text("abc[-trial0", min_size=1).filter(lambda s: not s.endswith("]")),
    st.integers(0, 9_999),
    st.sampled_from(["", "@group", "@a[b]"]),
)
def test_a_trials_id_leads_to_its_test(name, params, index, group):
    """The id that pytest gives an item, with the trial as its last parameter, names the test without it."""
    last = trial_id(PlannedTrial(index, TrialDesign(trials=10_000, at_least=0.5)))
    test = name if params is None else f"{name}[{params}]"
    item = f"{name}[{last}]" if params is None else f"{name}[{params}-{last}]"
    found = trial_of(item + group)
    assert found is not None
    assert found[1] == index
    if params is None or "[" not in params:
        assert found[0] == test


@pytest.mark.parametrize(
    "nodeid",
    ["", *(f"a.py::test_x{end}" for end in ("", "[1]", "[trial]", "[trial-1]", "[trial1]", "[trial1/]", "[trial2/2]"))],
)
def test_other_ids_are_no_trials(nodeid):
    """Ids of other tests are left alone."""
    assert trial_of(nodeid) is None


# The page


def test_the_example_of_the_page_does_what_it_shows(run):
    """The file of docs/pytest.md gives the verdicts and the sentence that the page shows."""
    page = (ROOT / "docs" / "pytest.md").read_text("utf-8")
    file, rest = page.partition("```python test_refund.py\n")[2].split("```\n", 1)
    shown = rest.partition("```text\n")[2].partition("\n```")[0]
    done = run(file, name="test_refund")  # an id is where a trial's seed comes from
    assert counts(done) == {"passed": 1, "inconclusive": 1}
    assert shown in done.section.splitlines()
