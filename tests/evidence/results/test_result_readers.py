"""Each reader of results gives the counts that its tool shows, and refuses what is not the tool's with a place."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from places import places_in, put

from agentic_bayes.decisions.gate import gate
from agentic_bayes.errors import DoubtfulRecords, EvidenceError
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.results.detection import format_of_results, of_rows, read_content
from agentic_bayes.evidence.results.evidence import as_evidence, evidence_from_results
from agentic_bayes.evidence.results.folder import ResultsFile
from agentic_bayes.outcomes.results import outcomes_from_results
from agentic_bayes.records.read import read_conversations
from agentic_bayes.reports.junit import junit_xml
from agentic_bayes.suites.inputs import open_input
from agentic_bayes.suites.results import junit_of_run

FILES = Path(__file__).parent / "files"
RECORDS = Path(__file__).parents[2] / "records" / "files"
ARITH, CAPITAL = (
    FILES / f"lm_eval/acme__tiny/samples_{task}_2026-11-29T06-26-52.338799.jsonl" for task in ("arith", "capital")
)
SWE_RUN = FILES / "swe_bench/acme__tiny.demo.json"
SWE_INSTANCE = FILES / "swe_bench/logs/run_evaluation/demo/acme__tiny/astropy__astropy-1/report.json"
EVALPLUS = FILES / "evalplus/acme--tiny_vllm_temp_0.8_eval_results.json"
BFCL = FILES / "bfcl/score/acme-tiny-FC/non_live/BFCL_v4_simple_python_score.json"
HARBOR = RECORDS / "harbor/job/result.json"
PYTEST, PLUGIN = FILES / "junit/pytest.xml", FILES / "junit/plugin.xml"
LANGSMITH = FILES / "langsmith/langsmith_experiment.csv"


def counts(outcomes):
    """Task → successes, scored, errored trials and those that are unscored for another reason, summed over agents."""
    tidy = outcomes[["successes", "trials", "errored", "unscored"]].sum("agent").to_dataframe()
    tidy["unscored"] -= tidy["errored"]
    return {str(task): tuple(map(int, row)) for task, row in zip(tidy.index, tidy.to_numpy(), strict=True)}


def of_json(value, path="file.json"):
    """Evidence from a JSON value, as if a file held it; None if no tool's file looks so."""
    rows = value if isinstance(value, list) else [value]
    content = of_rows(str(path), rows)
    content = content if isinstance(value, list) else type(content)(content.source, value, rows, content.columns)
    format = format_of_results(content)
    if format is None:
        return None
    return as_evidence([ResultsFile.of(content, format)], content.source, format, content.options, None).evidence


def recognised(path):
    """Whether a reader of results takes the file."""
    try:
        return format_of_results(read_content(path)) is not None
    except EvidenceError:
        return False


def one_line_each(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.parametrize(
    ("path", "scorer", "agent", "expected"),
    [
        # the share right of lm-eval's own results file: 1/3, 2/3; 1/2
        (ARITH, "exact_match,strict-match", "acme/tiny", {"arith/0": 1, "arith/1": 0, "arith/2": 0}),
        (ARITH, "exact_match,flexible-extract", "acme/tiny", {"arith/0": 1, "arith/1": 1, "arith/2": 0}),
        (CAPITAL, "acc_norm", "acme/tiny", {"capital/0": 1, "capital/1": 0}),
        (SWE_INSTANCE, None, "acme__tiny", {"astropy__astropy-1": 1}),
        # pass@1 that EvalPlus printed: .667 and .333
        (EVALPLUS, "base", "acme--tiny_vllm_temp_0.8", {"HumanEval/0": (2, 3, 0, 0), "HumanEval/1": (2, 3, 0, 0)}),
        (EVALPLUS, "plus", "acme--tiny_vllm_temp_0.8", {"HumanEval/0": (1, 3, 0, 0), "HumanEval/1": (1, 3, 0, 0)}),
        (BFCL, None, "acme-tiny-FC", {f"simple_python_{i}": right for i, right in enumerate((1, 0, 0, 1))}),
        (
            SWE_RUN,
            None,
            "acme__tiny",
            {
                "astropy__astropy-1": 1,
                "django__django-2": 0,
                "django__django-3": (0, 0, 1, 0),
                "sympy__sympy-4": 0,  # the patch is empty
                "sympy__sympy-5": (0, 0, 1, 0),
                "flask__flask-6": (0, 0, 0, 1),  # not submitted
            },
        ),
        (
            PLUGIN,
            None,
            "plugin",
            {
                "test_agent::test_some": (2, 4, 0, 0),
                "test_agent::test_city[oslo]": (2, 3, 1, 0),
                "test_agent::test_city[rome]": (2, 3, 1, 0),
            },
        ),
        *(
            (path, "correct", "langsmith_experiment", {f"{'0' * 8}-0000-0000-0000-{'0' * 10}64": (2, 3, 0, 0)}
             | {f"{'0' * 8}-0000-0000-0000-{'0' * 10}65": (0, 2, 1, 0)})
            for path in (LANGSMITH, LANGSMITH.with_suffix(".jsonl"))
        ),
    ],
)  # fmt: skip
def test_the_counts_are_those_that_the_tool_shows(path, scorer, agent, expected):
    """Agent, successes, scored trials, crashes and what is unscored, from each tool's own file."""
    outcomes = outcomes_from_results(path, scorer=scorer)
    assert outcomes["agent"].to_numpy().tolist() == [agent]
    assert counts(outcomes) == {
        task: right if isinstance(right, tuple) else (right, 1, 0, 0) for task, right in expected.items()
    }


def test_a_task_that_asks_different_things_is_doubtful():
    """Two inputs under one name may be two tasks; a path in the results tells them apart."""
    cases = [{"name": "refund", "input": text, "success": text == "a", "metrics_data": []} for text in "ab"]
    with pytest.warns(DoubtfulRecords, match="task 'refund' asks different things in .*0.* and .*1"):
        assert outcomes_from_results({"test_results": cases})["trials"].values.tolist() == [[2]]
    apart = outcomes_from_results({"test_results": cases}, fields={"task": "input"})
    assert apart["successes"].values.tolist() == [[1, 0]]


@pytest.mark.parametrize(
    ("suites", "doubt"),
    [
        ('<testsuite name="s" tests="5"><testcase name="a"/></testsuite>', "had 5 tests, and 1 are in the file"),
        (
            '<testsuite name="s"><testcase name="a" file="x"/><testcase name="a" file="y"/></testsuite>',
            "test 'a' is in 'x' and 'y' and counts as one task",
        ),
    ],
)
def test_xml_that_may_lack_tests_or_mix_them_up_is_doubtful(tmp_path, suites, doubt):
    """Cases that a suite counts and does not hold, and two tests of one name in different files."""
    path = tmp_path / "t.xml"
    path.write_text(f"<testsuites>{suites}</testsuites>", "utf-8")
    with pytest.warns(DoubtfulRecords, match=doubt):
        outcomes_from_results(path)


def test_cases_of_pytest_are_tasks_judged_errored_or_unscored():
    """A parameter is part of the task; what fails on teardown after a failure is one trial, not two."""
    found = counts(outcomes_from_results(PYTEST))
    assert {task.partition("::")[2]: count for task, count in found.items()} == {
        "test_oslo": (1, 1, 0, 0),
        "test_city[rome]": (1, 1, 0, 0),
        "test_city[paris]": (0, 1, 0, 0),
        "test_error": (0, 0, 1, 0),
        "test_skipped": (0, 0, 0, 1),
        "test_known": (0, 0, 0, 1),
        **{f"test_again[{i}-3]": (int(i != 2), 1, 0, 0) for i in (1, 2, 3)},
        "test_teardown": (0, 1, 0, 0),
        "test_torn": (0, 0, 1, 0),
    }


def test_harbor_trials_are_the_same_as_results_and_as_conversations():
    """Both readers take the same trials, scores and crashes from the files; neither keeps the other from them."""
    as_results = {(row.agent, row.task, row.answer_score, row.crashed) for row in evidence_from_results(HARBOR)}
    with pytest.warns(DoubtfulRecords, match="the agent left no trajectory"):
        records = read_conversations(HARBOR.parent)
    assert as_results == {
        (record.assistant_id, record.task_id, record.recorded_score, record.conversation[-1].error is not None)
        for record in records
    }
    assert len(as_results) == 4
    assert len(open_input(HARBOR).evidence) == 4  # commands count it, and do not ask to assess conversations


def test_files_of_a_suite_hold_its_trials(tmp_path):
    """The class of a case is the agent, the number in brackets the trial."""
    trials = [
        SimpleNamespace(task=task, trial=i, latency=0.1, status=status, failures=["no"], error="down")
        for task, statuses in (("oslo", ("pass", "fail", "error")), ("rome [old]", ("pass", "pass", "pass")))
        for i, status in enumerate(statuses)
    ]
    path = tmp_path / "junit.xml"
    path.write_text(junit_of_run(SimpleNamespace(trials=trials, facts={"suite": "weather", "agent": "v2"})), "utf-8")
    outcomes = outcomes_from_results(path)
    assert outcomes["agent"].item() == "v2"
    assert counts(outcomes) == {"oslo": (1, 2, 1, 0), "rome [old]": (3, 3, 0, 0)}


def test_verdicts_of_a_gate_are_no_trials(tmp_path):
    """Our own JUnit XML of a gate is named, not counted."""
    path = tmp_path / "gate.xml"
    path.write_text(junit_xml(gate(estimate(outcomes_from_results(PLUGIN), k=(1,)), at_least=0.5)), "utf-8")
    with pytest.raises(EvidenceError, match="holds the verdicts of agentic-bayes gate, not trials"):
        evidence_from_results(path)


class TestBfcl:
    """A score file lists failures only."""

    def test_what_passed_has_the_same_names_with_and_without_the_result_file(self, tmp_path):
        """BFCL numbers the entries of a category from 0."""
        alone = tmp_path / BFCL.name
        alone.write_bytes(BFCL.read_bytes())
        assert counts(outcomes_from_results(alone)) == counts(outcomes_from_results(BFCL))

    def test_a_run_of_some_entries_needs_the_result_file(self, tmp_path):
        """A failure beyond the total shows that the numbers have gaps."""
        header, failure = {"accuracy": 0.5, "correct_count": 1, "total_count": 2}, {"valid": False, "id": "live_7-3-0"}
        path = tmp_path / "BFCL_v4_live_score.json"
        path.write_text(f"{json.dumps(header)}\n{json.dumps(failure)}\n", "utf-8")
        with pytest.raises(EvidenceError, match="put the result file next to it as BFCL_v4_live_result"):
            evidence_from_results(path)
        result = path.with_name("BFCL_v4_live_result.json")
        result.write_text('{"id": "live_7-3-0"}\n{"id": "live_40-3-1"}\n', "utf-8")
        assert counts(outcomes_from_results(path)) == {"live_7": (0, 1, 0, 0), "live_40": (1, 1, 0, 0)}
        result.write_text('{"id": "live_7-3-0"}\n', "utf-8")
        with pytest.raises(EvidenceError, match="has 1 entries, but 2 were scored"):
            evidence_from_results(path)

    def test_a_crash_during_inference_is_no_failure(self):
        """BFCL counts it as wrong; nothing was there to grade."""
        header, *failures = one_line_each(BFCL)
        failures[0]["model_result_raw"] = "Error during inference: timed out\nTraceback"
        (crashed,) = (row for row in of_json([header, *failures]) if row.crashed)
        assert (crashed.task, crashed.unscored_reason) == (
            "simple_python_1",
            "agent error: Error during inference: timed out",
        )

    @pytest.mark.parametrize(
        "counts", [(2, 3), (0, 10**12), (-4, -2), (2.0, 4), (True, 3), (None, 4), (10**12 - 2, 10**12)]
    )
    def test_counts_that_do_not_fit_the_failures_are_refused(self, counts):
        """The first line says how many passed of how many; the rest are the failures."""
        header = {"accuracy": 0.5} | dict(zip(("correct_count", "total_count"), counts, strict=True))
        with pytest.raises(EvidenceError, match="which does not fit the 2 different failures that follow"):
            of_json([header, *one_line_each(BFCL)[1:]])

    def test_a_run_without_failures_is_read(self, tmp_path):
        """Its agent and category are in its place only."""
        path = tmp_path / "score" / "best" / "live" / "BFCL_v4_live_simple_score.json"
        path.parent.mkdir(parents=True)
        path.write_text('{"accuracy": 1.0, "correct_count": 3, "total_count": 3}\n', "utf-8")
        outcomes = outcomes_from_results(path)
        assert outcomes["agent"].item() == "best"
        assert counts(outcomes) == {f"live_simple_{i}": (1, 1, 0, 0) for i in range(3)}


def test_scores_that_do_not_count_are_metrics():
    """The other filter of lm-eval stays in the evidence."""
    rows = evidence_from_results(ARITH, scorer="exact_match,strict-match")
    assert [row.metrics["exact_match,flexible-extract"].value for row in rows] == [1, 1, 0]


def test_the_name_that_the_caller_gives_wins_over_that_of_the_file():
    """A file that names several agents cannot be renamed so."""
    assert {row.agent for row in evidence_from_results(EVALPLUS, scorer="base", agent="mine")} == {"mine"}
    with pytest.raises(EvidenceError, match=r"names 3 agents \(.*\): agent= is for files of one"):
        evidence_from_results(HARBOR, agent="mine")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"total_instances": 9}, "total_instances is 9, but 6 are listed"),
        ({"unresolved_ids": ["astropy__astropy-1"]}, "astropy__astropy-1 is in resolved_ids already"),
        ({"resolved_ids": "all"}, "resolved_ids must be a list of instances, got 'all'"),
    ],
)
def test_a_report_that_contradicts_itself_is_refused(change, message):
    """An instance has one verdict, and the total is the number of instances."""
    with pytest.raises(EvidenceError, match=message):
        of_json(json.loads(SWE_RUN.read_text("utf-8")) | change)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]><testsuite name="&c;"></testsuite>',
            "declares a document",
        ),
        ('<!DOCTYPE a SYSTEM "file:///etc/passwd"><testsuite></testsuite>', "declares a document"),
        ('<testsuites><testsuite name="x"><testcase name="y">', "not complete XML"),
        ("<testsuite><testcase/></testsuite>", "testcase 1: there is no name"),
        ("<testsuite>" + "<testsuite>" * 50_000, "not complete XML"),
        ('<?xml version="1.0" encoding="utf-7"?><testsuite></testsuite>', "there are no results in it"),
        ('<?xml version="1.0" encoding="x"?><testsuite name="&b;"></testsuite>', "not complete XML"),
        ("<testsuite></testsuite>", "there are no results in it"),
        ('<testsuite><testcase name="x"><skipped/></testcase></testsuite>', "no trial has a score"),
        ("<html><testsuite/></html>", "not the results of a tool that is read"),
    ],
)
def test_hostile_and_broken_xml_is_refused(tmp_path, text, message):
    """No entity is expanded, and no document type is read."""
    path = tmp_path / "out.xml"
    path.write_text(text, "utf-8")
    with pytest.raises(EvidenceError, match=message):
        evidence_from_results(path)


@pytest.mark.parametrize(
    "path",
    [ARITH, SWE_RUN, SWE_INSTANCE, EVALPLUS, BFCL, HARBOR.parent / "oslo__a1b2c3d/result.json"],
    ids=lambda path: path.name,
)
@pytest.mark.parametrize("other", [None, -7, 1e999, "x", [], [None], {}, True], ids=repr)
def test_a_misshapen_file_is_read_or_refused_never_a_traceback(path, other):
    """Whatever is put in any place: evidence, a message of our own, or a file of no tool."""
    value = one_line_each(path) if path in (ARITH, BFCL) else json.loads(path.read_text("utf-8"))
    for at in places_in(value):
        if not 0 < len(at) < 6:
            continue
        try:
            found = of_json(put(value, at, other), path)
        except EvidenceError as error:
            assert str(error).startswith(str(path))  # noqa: PT017
        else:
            assert found is None or isinstance(found, Evidence)


def test_conversations_are_no_results():
    """No reader of results takes a log, except Harbor's, whose files are both."""
    taken = [path for path in RECORDS.rglob("*.json*") if recognised(path)]
    assert {path.name for path in taken if "harbor" not in path.parts} == set()
    assert len(taken) == 5
