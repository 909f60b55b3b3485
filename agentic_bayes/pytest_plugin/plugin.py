"""The pytest plugin: ``@pytest.mark.agentic`` repeats a test as trials and passes or fails it by one verdict on them.

Each trial is a pytest item, so pytest-xdist can spread the trials of one test over several workers. The result of a
trial travels with its reports, and `agentic_bayes.pytest_plugin.verdicts` collects them in the controlling process.
pytest loads this module in every project of an environment, so it must load fast and stay silent unless it is used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from dataclasses import asdict, fields

import pytest

from agentic_bayes.errors import AgenticBayesError
from agentic_bayes.pytest_plugin import trials
from agentic_bayes.pytest_plugin.verdicts import Verdicts, check_report_path

LETTERS: dict[str, str] = {"passed": "+", "failed": "-", "errored": "!", "unscored": "o"}
LONGEST_REASON = 2000  # characters; an agent's answer may be a book
NO_VERDICT = ("Timeout (>", "async def functions are not natively supported")
"""How the message of `pytest.fail` begins if pytest-timeout ended a test or pytest could not run a coroutine."""


_course = pytest.StashKey[trials.TrialCourse]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add options to the command line and to ini files."""
    group = parser.getgroup("agentic", "trials of AI agents (agentic_bayes)")
    group.addoption("--agentic-report", metavar="PATH", help="write an HTML report on the tests marked agentic")
    group.addoption(
        "--agentic-inconclusive",
        choices=("fail", "pass"),
        help="whether an inconclusive test marked agentic fails the run (default: fail)",
    )
    parser.addini("agentic_inconclusive", "the same: fail or pass", default="fail")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and, in the process that controls the session, the verdicts."""
    names = ", ".join(field.name for field in fields(trials.TrialDesign))
    config.addinivalue_line(
        "markers", f"agentic({names}): run the test as repeated trials of an AI agent and judge them together"
    )
    if hasattr(config, "workerinput"):  # a worker of pytest-xdist, whose controller judges
        return
    inconclusive = config.getoption("agentic_inconclusive") or config.getini("agentic_inconclusive")
    if inconclusive not in ("fail", "pass"):
        raise pytest.UsageError(f"agentic_inconclusive must be fail or pass, got {inconclusive!r}")
    path = config.getoption("agentic_report")
    verdicts = Verdicts(config, inconclusive, None if path is None else check_report_path(config, path))
    config.pluginmanager.register(verdicts, "agentic_bayes_verdicts")


# Trials as items


@pytest.hookimpl(trylast=True)  # after all other parameters, so that the id ends with the trial
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Repeat a marked test."""
    marks = list(metafunc.definition.iter_markers("agentic"))
    if not marks:
        return
    try:
        design = trials.TrialDesign.of_marks(marks)
    except AgenticBayesError as error:
        raise pytest.Collector.CollectError(f"@pytest.mark.agentic of {metafunc.definition.nodeid}: {error}") from None
    metafunc.fixturenames.append(trials.PARAM)
    planned = [trials.PlannedTrial(index, design) for index in range(design.trials)]
    metafunc.parametrize(trials.PARAM, planned, indirect=True, ids=[trials.trial_id(each) for each in planned])


@pytest.fixture(name=trials.PARAM)
def _agentic_trial(request: pytest.FixtureRequest) -> trials.PytestTrial:
    planned = getattr(request, "param", None)
    test_and_index = trials.trial_of(request.node.nodeid)
    if planned is None or test_and_index is None:
        pytest.fail("the fixture 'trial' is for tests marked @pytest.mark.agentic(trials=…, at_least=…)", pytrace=False)
    # like the seeds of a suite's trials, it depends only on the test and the trial
    digest = hashlib.sha256(f"{test_and_index[0]}\0{planned.index}".encode()).digest()
    return trials.PytestTrial(planned.index, int.from_bytes(digest[:4]) >> 1)


@pytest.fixture
def trial(_agentic_trial: trials.PytestTrial) -> trials.PytestTrial:
    """The number and the seed of the trial, for tests marked with ``agentic``."""
    return _agentic_trial


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Refuse marked tests that cannot be repeated, for example methods of ``unittest.TestCase``."""
    report = yield
    for item in report.result or ():
        if isinstance(item, pytest.Item) and _cannot_repeat(item):
            report.outcome, report.result = "failed", []
            report.longrepr = _refusal(item)
            break
    return report


def _cannot_repeat(item: pytest.Item) -> bool:
    return item.get_closest_marker("agentic") is not None and trials.planned_trial(item) is None


def _refusal(item: pytest.Item) -> str:
    return (
        f"@pytest.mark.agentic of {item.nodeid}: must mark a test function or a method of a plain class, where it is "
        f"defined; got {type(item).__name__} (methods of unittest.TestCase cannot be repeated)"
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a marker that was added after collection, which would otherwise be ignored silently."""
    for item in items:
        if _cannot_repeat(item):
            raise pytest.UsageError(_refusal(item))


# The result of a trial


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Record the result, and do not let a trial that did not pass count as a failed test."""
    report = yield
    planned = trials.planned_trial(item)
    if planned is not None:
        if report.when == "setup":
            item.stash[_course] = trials.TrialCourse()
        course = item.stash.setdefault(_course, trials.TrialCourse())
        went_wrong = _observe(course, report, call)
        if went_wrong or report.when == "call":
            report.agentic_status = course.status  # type: ignore[attr-defined]
        if report.when == "teardown" and course.status is not None:
            record = {"trial": planned.index, "design": asdict(planned.design), "course": asdict(course)}
            report.agentic = record  # type: ignore[attr-defined]
    return report


def _observe(course: trials.TrialCourse, report: pytest.TestReport, call: pytest.CallInfo[None]) -> bool:
    """Update the trial's status after a phase; return whether something went wrong, which the report then shows."""
    known_failure = getattr(report, "wasxfail", None)
    if call.excinfo is None:
        if report.when == "call" and (report.failed or known_failure is not None):  # passed although marked xfail
            course.strict = report.failed
            course.xfail = known_failure or str(report.longrepr).removeprefix("[XPASS(strict)] ")
            report.outcome, report.longrepr = "passed", None
            vars(report).pop("wasxfail", None)
        if report.when == "call" and course.status == "failed":  # a subtest failed, and reported itself
            _excuse(report, course)
        if report.when == "call" and course.status is None:
            course.status = "passed"
        return False
    error = call.excinfo.value
    if course.status == "failed":
        status: trials.TrialStatus = "failed"
    elif report.skipped and known_failure is None:
        status = "unscored"
    elif report.when == "call" and _says_failed(error):
        status = "failed"
    elif isinstance(error, pytest.xfail.Exception):  # run=False: the test did not run
        status = "unscored"
    else:
        status = "errored"
    if course.status not in (status, "errored"):
        course.status, course.xfail = status, known_failure
        reason = str(error) if isinstance(error, pytest.skip.Exception) else call.excinfo.exconly(tryshort=True)
        course.reason = reason[:LONGEST_REASON]
    if status != "unscored":
        _excuse(report, course)
    return True


def _says_failed(error: BaseException) -> bool:
    """Whether an exception from a test's body means that the trial failed, rather than that it could not be judged."""
    if isinstance(error, BaseExceptionGroup):  # from concurrent tasks
        return all(map(_says_failed, error.exceptions))
    if isinstance(error, pytest.fail.Exception):
        return not str(error.msg).startswith(NO_VERDICT)
    return isinstance(error, (AssertionError, pytest.xfail.Exception))


def _excuse(report: pytest.TestReport, course: trials.TrialCourse) -> None:
    """Report the trial as an expected failure, which every reporter shows without counting a failed test."""
    report.outcome = "skipped"
    report.wasxfail = f"trial {course.status}: {course.reason}"


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Show a trial without counting it, because the summary counts verdicts."""
    status = getattr(report, "agentic_status", None)
    return None if status is None else ("", LETTERS[status], f"trial {status}")


@pytest.hookimpl(wrapper=True, tryfirst=True)  # around pytest's own, which ends with the short summary
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None]:
    """Remove inconclusive tests from the failed ones after the short summary has listed them."""
    try:
        return (yield)
    finally:
        failed = terminalreporter.stats.pop("failed", [])
        failed = [report for report in failed if getattr(report, "agentic_verdict", None) != "inconclusive"]
        if failed:
            terminalreporter.stats["failed"] = failed
