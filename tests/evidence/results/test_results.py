"""Results that other tools wrote give the counts that are in them, or are refused with the way out."""

import ast
import copy
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import places_in
from strategies import reduced
from typer.testing import CliRunner

from agentic_bayes.cli.app import app
from agentic_bayes.errors import DoubtfulRecords, EvidenceError, InvalidArgument
from agentic_bayes.evidence.results import detection
from agentic_bayes.evidence.results.base import ResultsFormat, ResultTrial
from agentic_bayes.evidence.results.evidence import evidence_from_results
from agentic_bayes.outcomes.results import outcomes_from_results

FILES = Path(__file__).parent / "files"
WARM, ASKED = "How warm in {{city}}?", "Temperature of {{city}} please"
PROMPTFOO = {
    (f"agent-{version} | {prompt}", task): (right, 4, 0)
    for version, prompt, task, right in (
        *(("v1", WARM, "oslo", 2), ("v1", WARM, "rome", 0), ("v1", ASKED, "oslo", 1), ("v1", ASKED, "rome", 0)),
        *(("v2", prompt, task, right) for prompt in (WARM, ASKED) for task, right in (("oslo", 0), ("rome", 4))),
    )
}
PYDANTIC = {("agent", "oslo"): (1, 3, 1), ("agent", "rome"): (1, 2, 2)}
MLFLOW = {
    ("mlflow_eval_results", "{'q': 'How oslo'}"): (2, 3, 0),
    ("mlflow_eval_results", "{'q': 'How rome'}"): (1, 3, 0),
}


def samples(**right):
    """The tasks of the table of samples; their failed trials are the same whatever the score."""
    scored = {"oslo": 3, "rome": 3, "7": 3, "fail": 1}
    return {("samples_df", task): (right.get(task, 0), n, 4 - n) for task, n in scored.items()}


SAMPLES = samples(oslo=3, rome=1, **{"7": 2})
PARTIAL = samples(oslo=2, rome=1, **{"7": 1})


EVALS = {
    ("mockllm/a", "weather"): (12, 12, 0),
    ("mockllm/a", "capitals"): (8, 8, 0),
    ("mockllm/b", "weather"): (4, 12, 0),
    ("mockllm/b", "capitals"): (3, 8, 0),
}


def counts_in(outcomes):
    """(Agent, task) → successes, scored trials, errored trials."""
    tidy = outcomes[["successes", "trials", "errored"]].to_dataframe()
    return {place: tuple(map(int, row)) for place, row in zip(tidy.index, tidy.to_numpy(), strict=True)}


@pytest.mark.parametrize(
    ("name", "scorer", "expected"),
    [
        ("promptfoo.json", None, PROMPTFOO),
        ("promptfoo.jsonl", None, PROMPTFOO),
        ("pydantic_evals_report.json", "EqualsExpected", PYDANTIC),
        ("pydantic_evals_report.json", "ok", PYDANTIC),
        ("deepeval_result.json", None, {("deepeval_result", "oslo"): (1, 2, 0)}),
        ("deepeval_result.json", "Exact Match", {("deepeval_result", "oslo"): (1, 2, 0)}),
        ("mlflow_eval_results.csv", "correct", MLFLOW),
        ("mlflow_eval_results.csv", "yesno", MLFLOW),
        pytest.param("evals_df.csv", None, EVALS, marks=pytest.mark.filterwarnings("ignore:evals_df has one row")),
        ("samples_df.csv", "includes", SAMPLES),
        ("samples_df.csv", "partial", PARTIAL),
        ("samples_df.csv", "dicty.a", {place: (n, n, errored) for place, (_, n, errored) in SAMPLES.items()}),
    ],
)
def test_the_counts_are_those_in_the_file(name, scorer, expected):
    """Every file gives the counts that are known to be in it, whichever score is chosen."""
    assert counts_in(outcomes_from_results(FILES / name, scorer=scorer)) == expected


@pytest.mark.parametrize(
    ("name", "scorer", "message"),
    [
        ("pydantic_evals_report.json", None, "several scores: 'EqualsExpected', 'ok', 'close'. Choose one: scorer="),
        ("mlflow_eval_results.csv", None, "several scores: 'yesno', 'correct'"),  # what is expected is no score
        ("samples_df.csv", None, "several scores: 'dicty', 'includes', 'partial'"),
        ("samples_df.csv", "include", "no trial has a score 'include'; there are 'dicty', 'includes', 'partial'"),
        ("samples_df.csv", "dicty", "has several values ('a', 'b'): choose one, scorer='dicty.a'"),
        ("pydantic_evals_report.json", "missing", "no trial has a score 'missing'"),
    ],
)
def test_of_several_scores_one_is_chosen_by_name(name, scorer, message):
    """Several scores are refused with their names until one is chosen."""
    with pytest.raises(EvidenceError, match=re.escape(message)):
        evidence_from_results(FILES / name, scorer=scorer)


def test_the_scores_that_do_not_count_become_metrics():
    """Scores that do not count are metrics, and runs that failed are agent errors."""
    evidence = evidence_from_results(FILES / "pydantic_evals_report.json", scorer="ok")
    frame = evidence.to_pandas()
    assert frame["close"].dropna().tolist() == [0.5] * 5
    assert frame["EqualsExpected"].sum() == 2
    assert frame["unscored_reason"].dropna().tolist() == ["agent error: RuntimeError: timeout"] * 3


def test_the_command_line_says_what_was_taken_for_what():
    """`estimate FILE` names what became the score; named columns make the file a table."""
    result = CliRunner().invoke(app, ["estimate", str(FILES / "samples_df.csv"), "--scorer", "includes", "--k", "1"])
    assert result.exit_code == 0, result.output
    assert "score = includes" in " ".join(result.output.split())
    refused = CliRunner().invoke(app, ["gate", str(FILES / "samples_df.csv"), "--at-least", "0.5"])
    assert isinstance(refused.exception, EvidenceError)
    as_table = ["estimate", str(FILES / "samples_df.csv"), "--k", "1", "--columns", "task=id,correct=score_includes"]
    assert "score = " not in CliRunner().invoke(app, as_table).output  # columns that are named make it a table


def test_a_parquet_table_of_a_tool_is_read_as_its_csv(tmp_path):
    """A Parquet file gives the counts of the CSV."""
    frame = pd.read_csv(FILES / "samples_df.csv")
    frame.to_parquet(tmp_path / "samples_df.parquet")
    assert counts_in(outcomes_from_results(tmp_path / "samples_df.parquet", scorer="includes")) == SAMPLES


def test_several_runs_of_inspect_need_the_model(tmp_path):
    """Samples of several runs need the model that tells their agents apart."""
    frame = pd.read_csv(FILES / "samples_df.csv")
    both = pd.concat([frame, frame.assign(eval_id="another")])
    both.to_csv(tmp_path / "both.csv", index=False)
    with pytest.raises(EvidenceError, match=r"no column model.*samples_df\(logs, columns="):
        outcomes_from_results(tmp_path / "both.csv", scorer="includes")
    both.assign(model=np.repeat(["a", "b"], len(frame))).to_csv(tmp_path / "both.csv", index=False)
    outcomes = outcomes_from_results(tmp_path / "both.csv", scorer="includes")
    assert outcomes["agent"].values.tolist() == ["a", "b"]


def test_a_reader_of_another_package_is_used(tmp_path, monkeypatch):
    """A format that an entry point gives is read like the built-in ones."""
    mine = ResultsFormat(
        name="mine",
        recognises=lambda content: content.object_with("my_runs"),
        trials=lambda content: (
            ResultTrial(task=run["t"], scores={"ok": run["ok"]}) for run in content.value["my_runs"]
        ),
        taken={"task": "t"},
    )
    monkeypatch.setattr(
        detection, "entry_points", lambda group: [type("Point", (), {"name": "m", "load": lambda _: mine})()]
    )
    detection.results_formats.cache_clear()
    path = tmp_path / "runs.json"
    path.write_text(json.dumps({"my_runs": [{"t": "a", "ok": True}, {"t": "a", "ok": False}]}))
    assert counts_in(outcomes_from_results(path)) == {("runs", "a"): (1, 2, 0)}
    detection.results_formats.cache_clear()


WHOLE = {
    name: json.loads((FILES / name).read_text())
    for name in ("promptfoo.json", "pydantic_evals_report.json", "deepeval_result.json")
}
WHOLE_PYDANTIC = WHOLE["pydantic_evals_report.json"]
WHOLE["promptfoo.json"]["results"]["results"] = WHOLE["promptfoo.json"]["results"]["results"][:2]
PLACES = {name: list(places_in(value))[1:] for name, value in WHOLE.items()}
WRONG = st.sampled_from([None, [], {}, "", "x", -1, 2.5, True, [None], {"a": {}}, [[]], "nan", float("nan"), 10**400])


@pytest.mark.filterwarnings("ignore:task .* asks different things")
@given(st.data())
@settings(max_examples=reduced(120), deadline=None)
def test_a_wrong_value_anywhere_is_read_or_refused(tmp_path_factory, data):
    """Never a traceback: whatever stands in whatever place."""
    name = data.draw(st.sampled_from(sorted(WHOLE)))
    changed = copy.deepcopy(WHOLE[name])
    *before, last = data.draw(st.sampled_from(PLACES[name]))
    inside = changed
    for key in before:
        inside = inside[key]
    inside[last] = data.draw(WRONG)
    path = tmp_path_factory.mktemp("wrong") / name
    path.write_text(json.dumps(changed))
    try:
        evidence = evidence_from_results(path, scorer="ok" if name.startswith("pydantic") else None)
    except EvidenceError:
        return
    assert len(evidence) > 0


def test_averages_of_runs_are_read_if_they_are_those_of_right_and_wrong():
    """An average gives counts if a whole number of right samples makes it, and else is refused."""
    frame = pd.read_csv(FILES / "evals_df.csv")
    frame.loc[0, ["completed_samples", "score_includes_accuracy"]] = [11, 1.0]  # one sample did not complete
    with pytest.warns(DoubtfulRecords, match="each benchmark is one task .* a larger k says nothing"):
        assert counts_in(outcomes_from_results(frame)) == EVALS | {("mockllm/a", "weather"): (11, 11, 1)}
    frame.loc[1, "score_includes_accuracy"] = 0.31
    with pytest.raises(EvidenceError, match=r"not those of right and wrong samples. Write the samples: samples_df\("):
        outcomes_from_results(frame)
    frame.loc[1, "completed_samples"] = 40
    with pytest.raises(EvidenceError, match="row 2: completed_samples of total_samples must be whole numbers, got 40"):
        outcomes_from_results(frame)


def test_a_low_score_that_passes_counts_by_its_verdict():
    """Where DeepEval passes low scores its verdict counts; a metric that failed is unscored."""
    cases = [
        {"name": "oslo", "success": passed, "metrics_data": [metric]}
        for passed, metric in (
            (True, {"name": "Bias", "score": 0.1, "threshold": 0.5, "success": True, "error": None}),
            (False, {"name": "Bias", "score": 0.9, "threshold": 0.5, "success": False, "error": None}),
            (False, {"name": "Bias", "score": None, "threshold": 0.5, "success": False, "error": "no reply"}),
        )
    ]
    assert counts_in(outcomes_from_results({"test_results": cases}, scorer="Bias")) == {("results", "oslo"): (1, 2, 0)}
    outcomes = outcomes_from_results({"test_results": cases})
    assert counts_in(outcomes) == {("results", "oslo"): (1, 2, 0)}  # a metric that failed is no failure
    assert int(outcomes["unscored"].sum()) == 1


def test_a_tools_own_thresholds_decide_unless_they_differ():
    """A score is cut where its tool cuts it; several cuts are refused until one is given."""
    metrics = [{"name": "m", "score": 0.6, "threshold": bar, "success": True} for bar in (0.5, 0.0)]
    cases = [{"name": "oslo", "success": True, "metrics_data": [metric]} for metric in metrics]
    for case in cases:
        assert counts_in(outcomes_from_results({"test_results": [case]}, scorer="m")) == {
            ("results", "oslo"): (1, 1, 0)
        }
    with pytest.raises(InvalidArgument, match=r"several thresholds of its own \(0, 0.5\)"):
        outcomes_from_results({"test_results": cases}, scorer="m")
    strict = outcomes_from_results({"test_results": cases}, scorer="m", threshold=0.7)
    assert counts_in(strict) == {("results", "oslo"): (0, 2, 0)}


def test_tests_of_one_description_and_other_variables_are_other_tasks():
    """Tests of promptfoo are told apart by their variables."""
    results = copy.deepcopy(WHOLE["promptfoo.json"])
    for result, city in zip(results["results"]["results"], ("Oslo", "Rome"), strict=True):
        result["testCase"]["description"] = "weather"
        result["vars"] = {"city": city}
    outcomes = outcomes_from_results(results)
    assert outcomes["task"].values.tolist() == ['weather {"city": "Oslo"}', 'weather {"city": "Rome"}']


def test_a_provider_that_failed_is_an_error_and_no_failure():
    """A provider that failed is errored, and fails only where errors count so."""
    results = copy.deepcopy(WHOLE["promptfoo.json"])
    results["results"]["results"][0] |= {"failureReason": 2, "error": "API error: 500", "success": False}
    outcomes = outcomes_from_results(results)
    assert (int(outcomes["trials"].sum()), int(outcomes["errored"].sum())) == (1, 1)
    assert int(outcomes_from_results(results, errors="fail")["trials"].sum()) == 2


def test_identity_may_be_taken_from_elsewhere():
    """`fields` takes the agent from another place, and a place that is not there is refused."""
    path = FILES / "promptfoo.json"
    by_prompt = outcomes_from_results(path, fields={"agent": "promptId"})
    assert counts_in(by_prompt)[by_prompt["agent"].values[0], "rome"] == (4, 8, 0)
    assert "agent = promptId (fields)" in by_prompt.attrs["taken"]
    with pytest.raises(EvidenceError, match=r"results.results\[0\]: provider.version: fields takes the agent"):
        outcomes_from_results(path, fields={"agent": "provider.version"})
    with pytest.raises(InvalidArgument, match="may name agent, task and trial, got 'reference'"):
        outcomes_from_results(path, fields={"reference": "vars"})


def test_a_frame_and_the_value_of_json_are_read_as_their_files():
    """A frame and a JSON value give the counts of the files that hold them."""
    assert counts_in(outcomes_from_results(WHOLE_PYDANTIC, scorer="ok")) == PYDANTIC
    frame = pd.read_csv(FILES / "mlflow_eval_results.csv")
    frame["request"] = frame["request"].map(ast.literal_eval)  # the frame that MLflow gives holds objects
    found = counts_in(outcomes_from_results(frame, scorer="correct", agent="mlflow_eval_results"))
    assert found == MLFLOW


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"answers": [1], "model": "x"}', "not the results of a tool that is read (bfcl, deepeval, "),
        ('{"answers": [1], "model": "x"}', "it has 'answers', 'model'. A table is read by outcomes_from_table"),
        ("item,right\na,1\n", "it has 'item', 'right'"),
        ("[]", "it has neither columns nor keys"),
        ('{"cases": [{"name": ', "not JSON"),
        ('{"evalId": "e", "results": {"results": []}}', "(promptfoo): there are no results in it"),
        ('{"evalId": "e", "results": {"results": [3]}}', "results.results[0] must be an object, got 3"),
        ('{"cases": ' + "[" * 100_000, "not JSON"),
    ],
)
def test_what_is_not_read_is_refused_with_a_way_out(tmp_path, text, message):
    """What no tool wrote is refused, with what it holds and how it may be read."""
    path = tmp_path / "file.csv"
    path.write_text(text)
    with pytest.raises(EvidenceError, match=re.escape(message)):
        outcomes_from_results(path)


def test_where_every_run_failed_all_trials_are_errored():
    """A report of failures only has errored trials and no scored ones."""
    report = {"name": "a", "cases": [], "failures": [{"name": "x"}, {"name": "x"}]}
    assert counts_in(outcomes_from_results(report)) == {("a", "x"): (0, 0, 2)}


def test_providers_of_one_name_are_not_pooled():
    """Two columns of promptfoo with one provider and prompt (other settings, no labels) are two agents."""
    results = copy.deepcopy(WHOLE["promptfoo.json"])
    for column, result in enumerate(results["results"]["results"]):
        result |= {"promptIdx": column, "provider": {"id": "openai:gpt-4o"}, "prompt": {"raw": "{{q}}"}}
    assert outcomes_from_results(results)["agent"].values.tolist() == [
        f"openai:gpt-4o | {{{{q}}}} (column {column})" for column in (0, 1)
    ]


def test_every_command_that_takes_a_file_takes_results(tmp_path):
    """gate, rank, report, estimate -o and compare read results as they read evidence."""
    path, run = str(FILES / "pydantic_evals_report.json"), CliRunner().invoke
    scored = [path, "--scorer", "ok"]
    assert run(app, ["gate", *scored, "--at-least", "0.01", "--errors", "fail"]).exit_code in (0, 11)
    assert "agent-v2" in run(app, ["rank", str(FILES / "promptfoo.jsonl"), "--estimand", "tasks"]).output
    assert run(app, ["report", *scored, "-o", str(tmp_path / "r.html")]).exit_code == 0
    metric = run(app, ["estimate", *scored, "--k", "1", "--indicator", "EqualsExpected", "-o", str(tmp_path / "out")])
    assert "indicator EqualsExpected" in " ".join(metric.output.split())
    assert (tmp_path / "out" / "evidence.jsonl").is_file()
    (tmp_path / "new.json").write_text(Path(path).read_text().replace('"agent"', '"agent-2"'))
    both = run(app, ["compare", path, str(tmp_path / "new.json"), "--scorer", "ok"])
    assert both.exit_code == 0, both.exception
    named = ["--columns", "task=task_name,successes=epochs,trials=total_samples", "--scorer", "a"]
    table = run(app, ["estimate", str(FILES / "evals_df.csv"), *named])
    assert "which does not use scorer" in str(table.exception)
