"""Results in the forms of other versions: what their tools' sources and public files hold, counted by hand."""

import json

import pytest

from agentic_bayes.errors import EvidenceError
from agentic_bayes.outcomes.results import outcomes_from_results


def counts(outcomes):
    """Task → successes, scored trials, crashes and what is unscored for another reason."""
    tidy = outcomes[["successes", "trials", "errored", "unscored"]].sum("agent").to_dataframe()
    tidy["unscored"] -= tidy["errored"]
    return {
        str(task).rpartition("::")[2]: tuple(map(int, row))
        for task, row in zip(tidy.index, tidy.to_numpy(), strict=True)
    }


def promptfoo(city, *, success, **more):
    return {
        "provider": {"id": "openai:gpt"},
        "prompt": {"raw": "Where?", "label": "Where?"},
        "vars": {"city": city},
        "success": success,
        "score": float(success),
        "namedScores": {},
    } | more


GRADED = {"gradingResult": {"pass": False, "score": 0, "reason": "no"}}
OLD = [  # of promptfoo before 0.100, which gave no failureReason and wrote every reason into `error`
    promptfoo("oslo", success=True, gradingResult={"pass": True, "score": 1, "reason": "ok"}),
    promptfoo("rome", success=False, error="Expected Rome", **GRADED),
    promptfoo("bern", success=False, error="API error: 500"),
    promptfoo("kyiv", success=False, error="No output"),
]
CITIES = {
    '{"city": "oslo"}': (1, 1, 0, 0),
    '{"city": "rome"}': (0, 1, 0, 0),
    '{"city": "bern"}': (0, 0, 1, 0),
    '{"city": "kyiv"}': (0, 1, 0, 0),
}


def deepeval(name, *, success):
    data = [{"name": "relevancy", "threshold": 0.5, "success": success, "score": float(success)}]
    return {"name": name, "input": "?", "success": success, "metricsData": data}


RUN = {
    "testCases": [deepeval("a", success=True)],
    "conversationalTestCases": [deepeval("b", success=False)],
    "metricsScores": [],
}
STAGES = {  # results.json of SWE-bench's leaderboard in 2024: an instance is in every list that it reached
    "no_generation": ["a"],
    "generated": ["b", "c", "d", "e", "f"],
    "with_logs": ["b", "c", "d", "e"],
    "no_apply": ["b"],
    "test_timeout": ["c"],
    "applied": ["c", "d", "e"],
    "resolved": ["d"],
}
CASE = {"name": "a", "inputs": {}, "scores": {}, "labels": {}, "assertions": {"ok": {"name": "ok", "value": True}}}
VERSIONS = {
    "promptfoo without evalId": ({"results": {"version": 2, "results": OLD, "stats": {}}, "config": {}}, CITIES),
    "promptfoo's evaluate()": ({"version": 3, "timestamp": "t", "results": OLD, "stats": {}}, CITIES),
    "DeepEval's conversations": (RUN, {"a": (1, 1, 0, 0), "b": (0, 1, 0, 0)}),
    "DeepEval's cache": ({"testRunData": RUN, "testRunLink": None}, {"a": (1, 1, 0, 0), "b": (0, 1, 0, 0)}),
    "SWE-bench, one entry each": (
        {"a": {"cost": 0.1, "api_calls": 3, "resolved": True}, "b": {"cost": 0.2, "api_calls": 9, "resolved": False}},
        {"a": (1, 1, 0, 0), "b": (0, 1, 0, 0)},
    ),
    "SWE-bench by stages": (
        STAGES,
        {
            "a": (0, 1, 0, 0),
            "b": (0, 1, 0, 0),
            "d": (1, 1, 0, 0),
            "e": (0, 1, 0, 0),
            "c": (0, 0, 1, 0),
            "f": (0, 0, 1, 0),
        },
    ),
    "EvalPlus before 0.2.1": (
        {
            "hash": "h",
            "eval": {"H/0": {"nfiles": 2, "base": [["success", [True]], ["timed out", []]], "plus": []}},
        },
        {"H/0": (1, 2, 0, 0)},
    ),
    "pydantic-evals without failures": ({"name": "agent", "cases": [CASE]}, {"a": (1, 1, 0, 0)}),
    "lm-eval before 0.4.4": (
        [
            {"doc_id": i, "doc": {}, "target": "", "resps": [], "filtered_resps": [], "doc_hash": "x", "acc": acc}
            for i, acc in enumerate((1.0, 0.0))
        ],
        {"0": (1, 1, 0, 0), "1": (0, 1, 0, 0)},
    ),
    "Harbor's first": (
        {"task_name": "a", "trial_name": "a__1", "agent_info": {"name": "m"}, "verifier_result": {"reward": 1.0}},
        {"a": (1, 1, 0, 0)},
    ),
    "SWE-bench without what was not submitted": (
        {
            "total_instances": 500,
            "submitted_instances": 2,
            "resolved_ids": ["a"],
            "unresolved_ids": ["b"],
            "error_ids": [],
            "empty_patch_ids": [],
        },
        {"a": (1, 1, 0, 0), "b": (0, 1, 0, 0)},
    ),
    # Surefire's flaky and repeated tests, CTest's and GoogleTest's disabled ones, a status without an element
    "JUnit": (
        '<testsuites xmlns="urn:x"><testsuite name="s">'
        '<testcase name="flaky"><flakyFailure message="1"/><flakyError message="2"/></testcase>'
        '<testcase name="again"><failure/><rerunFailure/></testcase>'
        '<testcase name="DISABLED_a" status="notrun" result="suppressed"/>'
        '<testcase name="b" status="disabled"><disabled message="Disabled"/></testcase>'
        '<testcase name="c" status="failed"/><testcase name="d" status="run" result="completed"/>'
        "</testsuite></testsuites>",
        {
            "flaky": (1, 2, 1, 0),
            "again": (0, 2, 0, 0),
            "c": (0, 1, 0, 0),
            "d": (1, 1, 0, 0),
            "DISABLED_a": (0, 0, 0, 1),
            "b": (0, 0, 0, 1),
        },
    ),
}


@pytest.mark.parametrize("version", VERSIONS)
def test_another_version_gives_the_counts_that_are_in_it(tmp_path, version):
    """What crashed is no failure, what did not run is not counted, and every repeated attempt is a trial."""
    content, expected = VERSIONS[version]
    path = tmp_path / "results.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    assert counts(outcomes_from_results(path)) == expected


def test_a_list_of_what_was_resolved_is_no_result(tmp_path):
    """SWE-bench's leaderboard names no failures, so the file alone would be read as all right."""
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"no_generation": [], "no_logs": [], "resolved": ["a"]}), "utf-8")
    with pytest.raises(EvidenceError, match=r"not what was tried.*\.isin\(report\['resolved'\]\)"):
        outcomes_from_results(path)


def test_xml_of_another_kind_is_named(tmp_path):
    """It has no keys or columns to show."""
    path = tmp_path / "results.trx"
    path.write_text("<TestRun/>", "utf-8")
    with pytest.raises(EvidenceError, match="it is XML, but not JUnit's <testsuites>"):
        outcomes_from_results(path)


SAMPLE = {"sample_id": "u1", "eval_id": "E", "id": "a", "epoch": 1, "model": "m", "score_match": "C"}


def test_runs_of_one_model_are_trials_and_copied_rows_are_refused():
    """Inspect numbers the epochs of each run from 1; a row that comes twice would count twice."""
    again = SAMPLE | {"sample_id": "u2", "eval_id": "F", "score_match": "I"}
    assert counts(outcomes_from_results([SAMPLE, again])) == {"a": (1, 2, 0, 0)}
    with pytest.raises(EvidenceError, match="row 1 and row 3 hold the same attempt, 'u1', which would count twice"):
        outcomes_from_results([SAMPLE, again, SAMPLE])
