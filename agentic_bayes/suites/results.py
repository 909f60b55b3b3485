"""The results of a run: counts, estimates, latency and cost, as tables and files."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from agentic_bayes.checks import check_choice
from agentic_bayes.decisions.bars import GateBar, Ruling, rule_on_pass_rate
from agentic_bayes.errors import EstimateError, InvalidArgument, OutcomesError
from agentic_bayes.estimation.estimate import Estimate, estimate
from agentic_bayes.formatting import cut_text, format_number, json_ready, one_line, plural
from agentic_bayes.outcomes.coordinates import by_task, check_columns
from agentic_bayes.outcomes.dataset import dataset_from_counts
from agentic_bayes.outcomes.missing import ErrorHandling, with_errors_as
from agentic_bayes.reports.junit import clean_text
from agentic_bayes.reports.results_folder import write_results
from agentic_bayes.result_table import Table, Tabular
from agentic_bayes.suites.stores.run_store import RunStore, each_run
from agentic_bayes.suites.trial import TrialResult
from agentic_bayes.whole_files import replacing

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

_PERCENTILES = (50, 90, 99)
_MOST_REASONS = 5
_LONGEST_REASON = 300
_ENDS = ("mean", "lower", "upper")
_ONE_TASK = (
    "one task: these trials say how reliable the agent is on it, and nothing about other tasks, "
    "however many trials you run"
)


@dataclass(frozen=True, repr=False)
class RunResults(Tabular):
    """The trials of a run, and what follows from them."""

    folder: Path
    facts: Mapping[str, Any]  # suite, agent, digests, planned trials
    trials: tuple[TrialResult, ...]  # all finished trials, by task in the suite's order, then by number
    errors: ErrorHandling = "unscored"  # what errored trials count as; "fail": as failed
    by: str | None = None  # the field of the tasks' metadata that groups them

    def __post_init__(self) -> None:
        check_choice("errors", self.errors, get_args(ErrorHandling))
        check_columns(self.by, None)

    @classmethod
    def of(cls, folder: Path, *, errors: ErrorHandling = "unscored", by: str | None = None) -> RunResults:
        """Read a run's folder."""
        with RunStore(folder) as store:
            facts = store.facts
            if "planned" not in facts:
                raise InvalidArgument(f"run {folder.name} has no trials: it was stopped before the first")
            order = {task: position for position, task in enumerate(facts["planned"])}
            trials = sorted(store.results(), key=lambda trial: (order.get(trial.task, len(order)), trial.trial))
            return cls(folder, facts, tuple(trials), errors, by)

    def __repr__(self) -> str:
        c = self.counts()
        return one_line(
            f"RunResults: run {c['run_id']} of suite {c['suite']}, agent {c['agent']}: {plural(c['trials'], 'trial')}, "
            f"{c['passed']:,} passed, {c['failed']:,} failed, {c['errored']:,} errored, {c['pending']:,} pending"
        )

    def table(self) -> Table:
        """One row per task."""
        counted = ("trials", "passed", "failed", "errored")
        rows = [
            [
                *(task["task"], *(f"{task[name]:,}" for name in counted)),
                *(format_number(task["pass_rate"]), format_number(task["score"])),
            ]
            for task in self.tasks()
        ]
        header = ["task", *counted, "pass rate", "score"]
        notes = [
            "unit conversation, indicator all graders; pass rate of the trials with a verdict; "
            "estimate() gives pass@k and pass^k"
        ]
        return Table(title=repr(self), header=header, rows=rows, notes=notes, noun="task")

    def to_pandas(self) -> pd.DataFrame:
        """One row per task, with its counts and measures."""
        import pandas as pd

        return pd.DataFrame(self.tasks())

    def to_dict(self) -> dict[str, Any]:
        """Counts and measures of the run and of every task, in JSON values."""
        return self._summary(None)

    def only(self, tasks: Iterable[str]) -> RunResults:
        """The same run with some of its tasks."""
        wanted = set(tasks)
        planned = {task: count for task, count in self.facts["planned"].items() if task in wanted}
        trials = tuple(trial for trial in self.trials if trial.task in wanted)
        return replace(self, facts={**self.facts, "planned": planned}, trials=trials)

    @property
    def pending(self) -> int:
        """The number of planned trials without a verdict."""
        done = {(trial.task, trial.trial) for trial in self.trials if trial.status != "error"}
        return sum((task, n) not in done for task, count in self.facts["planned"].items() for n in range(count))

    @property
    def decided(self) -> bool:
        """Whether any trial has a verdict."""
        return any(self._has_verdict(trial) for trial in self.trials)

    def _has_verdict(self, trial: TrialResult) -> bool:
        return trial.status != "error" or self.errors == "fail"

    @cached_property
    def outcomes(self) -> xr.Dataset:
        """Counts per task; errored trials are neither passed nor failed, unless they count as failed."""
        return self._count(Counter())

    def _count(self, waiting: Counter[str]) -> xr.Dataset:
        """Counts per task, with trials that were not run as unscored ones."""
        if not self.trials:
            raise OutcomesError(f"run {self.folder.name} has no trials, so there is nothing to count")
        ended: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for trial in self.trials:
            ended[trial.task][trial.status] += 1
        for task, count in waiting.items():
            ended[task]["waiting"] += count
        counts = {
            (self.facts["agent"], task): (c["pass"], c["pass"] + c["fail"], c["error"] + c["waiting"], c["error"])
            for task, c in ended.items()
        }
        attrs = {"unit": "conversation", "indicator": "all graders", "source": "suite", "errors": self.errors}
        ds = dataset_from_counts(counts, attrs, self._groups(list(ended)))
        return with_errors_as(ds, self.errors)

    def _groups(self, tasks: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The group of every task, where a field of their metadata groups them."""
        if self.by is None:
            return {}
        metadata, problems = self.facts.get("metadata", {}), list[str]()
        labels = [metadata.get(task, {}).get(self.by) for task in tasks]
        groups = by_task(tasks, labels, self.by, "group", problems)
        if problems:
            raise OutcomesError(
                f"run {self.folder.name}: tasks need {self.by} in their metadata; {'; '.join(problems)}"
            )
        return {self.by: dict(groups)}

    def estimate(self, k: Sequence[int] = (1, 3, 5), **settings: Any) -> Estimate:
        """Estimate the run; further arguments are those of `agentic_bayes.estimate`."""
        return self._estimate(self.outcomes, k=tuple(k), **settings)

    def _estimate(self, outcomes: xr.Dataset, **settings: Any) -> Estimate:
        return estimate(outcomes, **{"by": self.by} | settings)

    def rule(self, fail_under: float | None = None, gate: GateBar | None = None) -> tuple[Ruling, ...]:
        """Whether the run reaches a pass rate and passes a gate; undecided as long as no trial has a verdict."""
        rulings, waiting = [], self._never_run()
        if fail_under is not None or not self.decided:
            scored = sum(map(self._has_verdict, self.trials))
            errored = len(self.trials) - scored
            passed, missing = _counts(self.trials)["passed"], errored + waiting.total()
            rulings.append(rule_on_pass_rate(passed, scored - passed, missing, fail_under or 0.0, errored=errored))
        if gate is not None:
            try:
                rulings.append(gate.rule(self._estimate(self._count(waiting), k=gate.metric.k)))
            except (OutcomesError, EstimateError) as error:
                rulings.append(Ruling("inconclusive", f"the gate is inconclusive: {error}"))
        return tuple(rulings)

    def _never_run(self) -> Counter[str]:
        """Planned trials that were not run, by task."""
        run = {(trial.task, trial.trial) for trial in self.trials}
        planned: Mapping[str, int] = self.facts["planned"]
        return Counter(task for task, count in planned.items() for n in range(count) if (task, n) not in run)

    def counts(self) -> dict[str, Any]:
        """The run's id, suite, agent and counts."""
        facts = {"run_id": self.folder.name, "suite": self.facts["suite"], "agent": self.facts["agent"]}
        return {**facts, **_counts(self.trials), "pending": self.pending}

    def _pass_rate(self, counts: Mapping[str, Any]) -> float | None:
        """Of the trials with a verdict, among them errored ones where these count as failed."""
        if self.errors == "fail" and counts["trials"]:
            return float(counts["passed"] / counts["trials"])
        rate: float | None = counts["pass_rate"]
        return rate

    def measures(self) -> dict[str, Any]:
        """Mean score, latency, tokens and cost of the run."""
        return _measures(self.trials)

    def tasks(self) -> list[dict[str, Any]]:
        """One row per task: counts, reasons of errors, mean score, latency, cost."""
        rows: dict[str, list[TrialResult]] = {}
        for trial in self.trials:
            rows.setdefault(trial.task, []).append(trial)
        return [
            {"task": task, **_counts(own), "error_reasons": error_reasons(own), **_measures(own)}
            for task, own in rows.items()
        ]

    def summary(self, k: Sequence[int] | Estimate | None = (1, 3, 5), **settings: Any) -> dict[str, Any]:
        """The content of ``summary.json``: counts, measures, tasks and estimates, at these k or of this estimate."""
        if isinstance(k, Estimate) or k is None:
            return self._summary(k)
        return self._summary(self.estimate(k, **settings) if self.decided else None)

    def _summary(self, est: Estimate | None) -> dict[str, Any]:
        counts = _counts(self.trials)
        summary: dict[str, Any] = {
            "total_tasks": len(self.facts["planned"]),
            "total_trials": counts["trials"],
            "passed_trials": counts["passed"],
            "failed_trials": counts["failed"],
            "error_trials": counts["errored"],
            "overall_pass_rate": self._pass_rate(counts),
            "error_reasons": error_reasons(self.trials),
            "cached_replies": sum(bool(trial.cached) for trial in self.trials),
            "run_id": self.folder.name,
            "suite": self.facts["suite"],
            "agent": self.facts["agent"],
            "pending_trials": self.pending,
            "digest": self.facts["digest"],
            "ended": self.facts.get("ended"),
            "note": _ONE_TASK if len(self.facts["planned"]) == 1 else "",
            **self.measures(),
            "tasks": self.tasks(),
        }
        if est is not None:
            whole = est.summary(columns="all", tasks=True)
            of_task: dict[str, dict[str, Any]] = {}
            for row in whole[whole["estimand"] == "task"].to_dict("records"):
                of_task.setdefault(row["task"], {})[row["metric"]] = {part: row[part] for part in _ENDS}
            summary["tasks"] = [{**task, "estimates": of_task.get(task["task"], {})} for task in summary["tasks"]]
            summary["estimates"] = whole[whole["estimand"] != "task"].to_dict("records")
            summary["baseline"] = est.baseline(columns="all").to_dict("records")
        ready: dict[str, Any] = json_ready(summary)
        return ready

    def write(self, k: Sequence[int] = (1, 3, 5)) -> Estimate | None:
        """Write summary, trials and JUnit to the run's folder and, if any trial has a verdict, the estimate."""
        est = self.estimate(k) if self.decided else None
        lines = (json.dumps(asdict(trial), allow_nan=False) for trial in self.trials)
        files = {
            "summary.json": json.dumps(self._summary(est), indent=2, allow_nan=False) + "\n",
            "trials.jsonl": "".join(f"{line}\n" for line in lines),
            "junit.xml": junit_of_run(self),
        }
        for name, text in files.items():
            with replacing(str(self.folder / name)) as file:
                file.write(text.encode())
        if est is not None:
            write_results(est, self.folder, also=files)
        return est


def junit_of_run(results: RunResults) -> str:
    """The run as JUnit XML: one test case per trial; errored trials are errors, not failures."""
    from xml.etree import ElementTree

    counts = _counts(results.trials)
    suite = ElementTree.Element(
        "testsuite",
        name=clean_text(results.facts["suite"]),
        tests=str(counts["trials"]),
        failures=str(counts["failed"]),
        errors=str(counts["errored"]),
    )
    for trial in results.trials:
        name = clean_text(f"{trial.task} [{trial.trial}]")
        case = ElementTree.SubElement(
            suite, "testcase", classname=clean_text(results.facts["agent"]), name=name, time=f"{trial.latency:.3f}"
        )
        if trial.status == "fail":
            ElementTree.SubElement(case, "failure", message=clean_text("; ".join(trial.failures)))
        elif trial.status == "error":
            ElementTree.SubElement(case, "error", message=clean_text(trial.error))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def error_reasons(trials: Sequence[TrialResult]) -> list[dict[str, Any]]:
    """The commonest reasons of errored trials, each with how many trials have it; what is left is one row."""
    reasons = Counter(cut_text(trial.error, _LONGEST_REASON) for trial in trials if trial.status == "error")
    rows = reasons.most_common(_MOST_REASONS)
    if (others := reasons.total() - sum(count for _, count in rows)) > 0:
        rows.append((plural(len(reasons) - len(rows), "other reason"), others))
    return [{"reason": reason, "trials": count} for reason, count in rows]


def _counts(trials: Sequence[TrialResult]) -> dict[str, Any]:
    passed, failed, errored = (sum(trial.status == status for trial in trials) for status in ("pass", "fail", "error"))
    rate = passed / (passed + failed) if passed + failed else None
    return {"trials": len(trials), "passed": passed, "failed": failed, "errored": errored, "pass_rate": rate}


def _measures(trials: Sequence[TrialResult]) -> dict[str, Any]:
    scores = [trial.score for trial in trials if trial.score is not None]
    latencies = sorted(trial.latency for trial in trials if trial.status != "error")
    measures: dict[str, Any] = {"score": statistics.fmean(scores) if scores else None}
    for percentile in _PERCENTILES:
        # the smallest latency that is not exceeded by this percentage of the trials
        rank = math.ceil(percentile / 100 * len(latencies)) - 1
        measures[f"latency_p{percentile}"] = latencies[max(rank, 0)] if latencies else None
    for name in ("input_tokens", "output_tokens", "cost"):
        known = [value for trial in trials if (value := getattr(trial, name)) is not None]
        measures[name] = sum(known) if known else None
    return measures


def runs_in(folder: Path) -> list[RunResults]:
    """The runs in a folder, the latest first; one that cannot be read is left out with a warning."""
    if not folder.is_dir():
        raise InvalidArgument(f"{folder} is not a folder of runs")
    return list(each_run(folder, RunResults.of))


def unlike_tasks(one: Path, other: Path) -> list[str]:
    """Ids that two runs share for tasks that differ."""
    facts = []
    for folder in (one, other):
        with RunStore(folder) as store:
            facts.append(store.facts.get("contents", {}))
    return sorted(task for task, content in facts[0].items() if facts[1].get(task, content) != content)
