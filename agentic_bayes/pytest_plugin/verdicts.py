"""Collect the trials of marked pytest tests, judge each test once, and report the verdicts."""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from agentic_bayes.errors import AgenticBayesError
from agentic_bayes.formatting import ELLIPSIS, Metric, first_few, plain_text, plural
from agentic_bayes.pytest_plugin.trials import (
    Inconclusive,
    TrialCourse,
    TrialDesign,
    TrialStatus,
    planned_trial,
    trial_of,
)

if TYPE_CHECKING:
    from agentic_bayes.decisions.gate import Gate
    from agentic_bayes.evidence.evidence import Evidence

SHOWN = 5  # most reasons per test, and trial numbers per reason
TRIAL_STATUSES: tuple[TrialStatus, ...] = ("passed", "failed", "errored", "unscored")


def check_report_path(config: pytest.Config, path: str) -> Path:
    """The path of the report; refused before any test runs if nothing can be written there."""
    target = config.invocation_params.dir / path
    if not target.parent.is_dir() or (target.exists() and not target.is_file()):
        raise pytest.UsageError(f"--agentic-report must be a file in a folder that exists, got {path}")
    return target


@dataclass(slots=True)
class _RepeatedTest:
    """A test and its trials so far."""

    name: str
    planned: int = 0
    design: TrialDesign | None = None
    trials: dict[int, TrialCourse] = field(default_factory=dict)
    keys: list[Any] = field(default_factory=list)
    location: tuple[str, int | None, str] = ("", None, "")
    first_failure: pytest.TestReport | None = None
    category: str = ""
    sentence: str = ""

    @property
    def complete(self) -> bool:
        return len(self.trials) >= self.planned

    def count(self) -> str:
        """Trials by status, for example "17 of 20 trials passed, 2 failed, 1 errored"."""
        by_status = Counter(done.status for done in self.trials.values())
        total = self.planned or len(self.trials)
        parts = [f"{by_status['passed']:,} of {plural(total, 'trial')} passed"]
        parts += [f"{by_status[status]:,} {status}" for status in TRIAL_STATUSES[1:] if by_status[status]]
        if len(self.trials) < total:
            parts.append(f"{total - len(self.trials):,} not run")
        return ", ".join(parts)

    def reasons(self) -> list[str]:
        """Why trials did not pass: equal reasons grouped, the most frequent first."""
        groups: dict[tuple[TrialStatus | None, str], list[int]] = defaultdict(list)
        for index in sorted(self.trials):
            done = self.trials[index]
            if done.status != "passed":
                groups[done.status, done.reason.strip().partition("\n")[0]].append(index)
        ranked = sorted(groups.items(), key=lambda group: -len(group[1]))
        lines = [f"{status}, {_numbers(numbers)}: {reason}" for (status, reason), numbers in ranked[:SHOWN]]
        return lines + ([f"… and {plural(len(ranked) - SHOWN, 'more reason')}"] if len(ranked) > SHOWN else [])


def _numbers(numbers: Sequence[int]) -> str:
    shown = first_few(list(map(str, numbers)), SHOWN, rest=ELLIPSIS)
    return f"trial {shown}" if len(numbers) == 1 else f"{len(numbers):,} trials ({shown})"


@dataclass(frozen=True, slots=True)
class _Explanation:
    """The text of a verdict, in the form that pytest and its reporters print."""

    message: str
    details: str

    @property
    def reprcrash(self) -> _Explanation:
        """What the short summary takes its message from."""
        return self

    def toterminal(self, tw: Any) -> None:
        """Write it."""
        tw.line(str(self))

    def __str__(self) -> str:
        return f"{self.message}\n{self.details}"


class Verdicts:
    """Collects trials and reports one verdict per test, in the process that controls the session."""

    def __init__(self, config: pytest.Config, inconclusive: Inconclusive, report: Path | None) -> None:
        self.config, self.inconclusive, self.report = config, inconclusive, report
        self.session: pytest.Session | None = None
        self.tests: dict[str, _RepeatedTest] = {}
        self.ids: set[str] = set()
        self.counted = False
        self.written = ""

    # Planned trials

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note the trials that will run in this process."""
        self.session = session
        self._plan(item.nodeid for item in session.items if planned_trial(item) is not None)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Note the trials that workers will run; every worker collects the same."""
        self._plan(ids)

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Keep the session."""
        self.session = session

    def _plan(self, ids: Iterable[str]) -> None:
        for nodeid in ids:
            test_and_index = trial_of(nodeid)
            if test_and_index is not None and nodeid not in self.ids:
                self.ids.add(nodeid)
                self._test(test_and_index[0]).planned += 1

    def _test(self, name: str) -> _RepeatedTest:
        return self.tests.setdefault(name, _RepeatedTest(name))

    # Results of trials

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport) -> None:
        """Count a trial that crashed its worker as errored."""
        test_and_index = trial_of(crashitem)
        if test_and_index is not None:
            reason = str(report.longrepr)
            report.outcome, report.wasxfail = "skipped", f"trial errored: {reason}"
            report.agentic_status = "errored"  # type: ignore[attr-defined]
            course = asdict(TrialCourse("errored", reason))
            report.agentic = {"trial": test_and_index[1], "design": None, "course": course}  # type: ignore[attr-defined]

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a trial to its test, and judge the test after its last trial."""
        status = getattr(report, "agentic_status", None)
        record = getattr(report, "agentic", None)
        if status is None and record is None:
            return
        test_and_index = trial_of(report.nodeid)
        assert test_and_index is not None
        self._count_verdicts()
        test = self._test(test_and_index[0])
        if status in ("failed", "errored") and test.first_failure is None and report.longrepr is not None:
            test.first_failure = report
        if record is None or test.category:
            return
        test.trials[record["trial"]] = TrialCourse(**record["course"])
        test.keys.append(getattr(report, "id", report.nodeid))  # the key under which --lf remembers it
        if record["design"] is not None:
            test.design = TrialDesign(**record["design"])
        path, line, domain = report.location
        test.location = path, line, (trial_of(domain) or (domain,))[0]
        if test.complete:
            self._report(test)

    def _count_verdicts(self) -> None:
        """Count every verdict as one more test, so that the progress ends at 100 %."""
        if self.session is not None and not self.counted:
            self.session.testscollected += len(self.tests)
            self.counted = True

    def _report(self, test: _RepeatedTest) -> None:
        """Judge a test and report the verdict as pytest reports a test."""
        xfails = [done.xfail for done in test.trials.values() if done.xfail is not None]
        report = pytest.TestReport(test.name, test.location, {}, "passed", None, "call")
        if not any(done.status in ("passed", "failed") for done in test.trials.values()):
            errored = any(done.status == "errored" for done in test.trials.values())
            test.category = "failed" if errored else "xfailed" if xfails else "skipped"
            test.sentence = "no trial was scored, so there is no verdict"
        else:
            decision = _judged(test)
            test.sentence = str(decision) + _trials_needed(decision, test)
            test.category = {"pass": "passed", "fail": "failed"}.get(decision.verdict, decision.verdict)
            failed = [done for done in test.trials.values() if done.status == "failed"]
            if decision.verdict == "fail" and all(done.xfail is not None for done in failed):
                test.category = "xfailed"
            elif decision.verdict == "pass" and xfails:
                strict = any(done.strict for done in test.trials.values())
                test.category = "failed" if strict else "xpassed"
                test.sentence = f"[XPASS(strict)] {test.sentence}" if strict else test.sentence
        test.sentence = plain_text(f"{test.count()}; {test.sentence}")
        self._set_outcome(test, report, xfails)
        self.config.hook.pytest_runtest_logreport(report=report)
        distributed = self.config.pluginmanager.get_plugin("dsession")
        if distributed is not None and self.session is not None and self.session.shouldfail:
            distributed.shouldstop = distributed.shouldstop or self.session.shouldfail  # -x also stops at a verdict

    def _set_outcome(self, test: _RepeatedTest, report: pytest.TestReport, xfails: list[str]) -> None:
        """Give a verdict the outcome that every reporter understands."""
        fails = test.category == "failed" or (test.category == "inconclusive" and self.inconclusive == "fail")
        report.agentic_verdict = test.category  # type: ignore[attr-defined]
        details = [plain_text(line) for line in test.reasons()]
        if fails:
            first = test.first_failure
            if first is not None:
                details += ["", f"the first failed trial, {first.nodeid}:", "", plain_text(first.longreprtext)]
                report.sections = list(first.sections)
            report.outcome, report.longrepr = "failed", _Explanation(test.sentence, "\n".join(details))  # type: ignore[assignment]
        elif test.category in ("xfailed", "xpassed"):
            report.outcome = "skipped" if test.category == "xfailed" else "passed"
            report.wasxfail = xfails[0]
        elif test.category in ("skipped", "inconclusive"):
            path, line, _ = test.location
            reason = "; ".join([test.sentence, *details]) if test.category == "inconclusive" else "; ".join(details)
            report.outcome, report.longrepr = "skipped", (path, (line or 0) + 1, reason)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Show inconclusive as an outcome of its own."""
        if getattr(report, "agentic_verdict", None) != "inconclusive":
            return None
        return "inconclusive", "I", "INCONCLUSIVE"

    # At the end

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the report, and let ``--lf`` find the trials of failed tests."""
        ran = [test for test in self.tests.values() if test.trials]
        if any(not test.category for test in ran) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED  # a test without a verdict did not pass
        last_failed = getattr(self.config.pluginmanager.get_plugin("lfplugin"), "lastfailed", None)
        for test in ran:
            if last_failed is not None:
                fails = [key for key in last_failed if str(key) == test.name]
                for key in fails:
                    del last_failed[key]
                last_failed.update(dict.fromkeys(test.keys if fails else (), True))
        if self.report is not None:
            try:
                self.written = self._write(self.report, ran)
            except (AgenticBayesError, OSError) as error:
                self.written = f"{self.report} was not written: {error}"
                session.exitstatus = session.exitstatus or pytest.ExitCode.INTERNAL_ERROR

    def _write(self, path: Path, ran: Sequence[_RepeatedTest]) -> str:
        """Write the HTML report on all tests that ran, and say what was written."""
        if not any(done.status in ("passed", "failed") for test in ran for done in test.trials.values()):
            return f"no trial was scored: {path} was not written"
        from agentic_bayes.reports.html.page import write_page
        from agentic_bayes.reports.html.question import Lead, ask
        from agentic_bayes.reports.html.trials import find_trials

        counts = Counter(test.category or "not judged" for test in ran)
        kind: Literal["good", "bad", "open"] = (
            "bad" if counts["failed"] else "open" if counts.keys() - {"passed"} else "good"
        )
        title = f"{plural(len(ran), 'test')}: {', '.join(f'{n:,} {category}' for category, n in counts.items())}"
        lines = tuple(f"{test.name}: {test.sentence or f'not judged: {test.count()}'}" for test in ran)
        with warnings.catch_warnings():  # if the user turns warnings into errors, ours are not meant
            warnings.simplefilter("ignore")
            evidence = _evidence(ran)
            est = _estimate(evidence, sorted({Metric(test.design.metric).k for test in ran if test.design is not None}))
            asked = replace(ask(est, None, None, "pass^1", "tasks"), lead=Lead(title, kind, lines))
            trials = find_trials(est, evidence, None)
            write_page(est, path, asked=asked, trials=trials, facts={}, source="", evidence=evidence)
        return f"report written to {path}"

    @pytest.hookimpl(trylast=True)  # so that no other plugin sees the changed list of failed tests
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print a sentence per test and why its trials did not pass; list inconclusive tests in the short summary."""
        ran = [test for test in self.tests.values() if test.trials]
        if not ran:
            return
        terminalreporter.section("agentic")
        for test in ran:
            if test.category == "passed" and terminalreporter.verbosity < 0:
                continue
            terminalreporter.write_line(f"{test.name}: {test.sentence or f'not judged: {test.count()}'}")
            for reason in test.reasons():
                terminalreporter.write_line(f"    {plain_text(reason)}")
        if self.inconclusive == "fail" and any(test.category == "inconclusive" for test in ran):
            terminalreporter.write_line("inconclusive fails the run; to let it pass, set agentic_inconclusive = pass")
        if self.written:
            terminalreporter.write_line(self.written)
        fails = [report for report in terminalreporter.stats.get("inconclusive", []) if report.failed]
        if fails:  # pytest lists the failed tests; the plugin removes these again afterwards
            terminalreporter.stats.setdefault("failed", []).extend(fails)


def _evidence(tests: Iterable[_RepeatedTest]) -> Evidence:
    """The trials as evidence: every test is a task, and an errored trial is an agent error."""
    import pandas as pd

    from agentic_bayes.evidence.recorded import evidence_from_table

    rows: list[dict[str, Any]] = []
    for test in tests:
        for index, done in sorted(test.trials.items()):
            row: dict[str, Any] = {"task": test.name, "trial": index, "correct": None, "reason": None}
            if done.status in ("passed", "failed"):
                row |= {"correct": int(done.status == "passed"), "reason": done.reason or None}
            reason = f"agent error: {done.reason}" if done.status == "errored" else done.reason or done.status
            rows.append(row | {"unscored_reason": None if row["correct"] is not None else reason})
    return evidence_from_table(pd.DataFrame(rows, dtype=object), judge="pytest")


def _estimate(evidence: Evidence, k: Sequence[int]) -> Any:
    """Estimate every test separately: a test is one task, which says nothing about other tasks."""
    from agentic_bayes.estimation.estimate import estimate
    from agentic_bayes.outcomes.count import count_outcomes

    return estimate(count_outcomes(evidence), method="conjugate", k=k)


def _judged(test: _RepeatedTest) -> Gate:
    """The gate's decision on one test."""
    assert test.design is not None
    with warnings.catch_warnings():  # if the user turns warnings into errors, ours are not meant
        warnings.simplefilter("ignore")
        from agentic_bayes.decisions.gate import gate

        d = test.design
        est = _estimate(_evidence([test]), [Metric(d.metric).k])
        decision: Gate = gate(est, at_least=d.at_least, confidence=d.confidence, metric=d.metric, estimand="tasks")
        return decision


def _trials_needed(decision: Gate, test: _RepeatedTest) -> str:
    """The least number of trials that can pass, if the test has fewer; else nothing."""
    import math

    assert test.design is not None
    d, metric = test.design, Metric(test.design.metric)
    bar = d.at_least ** (1 / metric.k) if metric.power else 1 - (1 - d.at_least) ** (1 / metric.k)
    # if all n trials pass, p is Beta(n + 1, 1), and P(p ≥ bar) = 1 - bar^(n + 1)
    needed = math.ceil(math.log(1 - d.confidence) / math.log(bar) - 1 - 1e-9)
    if decision.verdict != "inconclusive" or needed <= len(test.trials):
        return ""
    return f" (to pass takes at least {plural(max(needed, 1), 'trial')}, even if they all pass)"
