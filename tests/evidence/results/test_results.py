"""Results that other tools wrote give the counts that are in them, or are refused with the way out."""

import copy
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import reduced
from typer.testing import CliRunner

from agentic_bayes.cli.app import app
from agentic_bayes.errors import EvidenceError
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
        ("samples_df.csv", "includes", SAMPLES),
        ("samples_df.csv", "partial", PARTIAL),
        ("samples_df.csv", "dicty.a", {place: (n, n, errored) for place, (_, n, errored) in SAMPLES.items()}),
    ],
)
def test_the_counts_are_those_in_the_file(name, scorer, expected):
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
    with pytest.raises(EvidenceError) as error:
        evidence_from_results(FILES / name, scorer=scorer)
    assert message in str(error.value)


def test_the_scores_that_do_not_count_become_metrics():
    evidence = evidence_from_results(FILES / "pydantic_evals_report.json", scorer="ok")
    frame = evidence.to_pandas()
    assert frame["close"].dropna().tolist() == [0.5] * 5
    assert frame["EqualsExpected"].sum() == 2
    assert frame["unscored_reason"].dropna().tolist() == ["agent error: RuntimeError: timeout"] * 3


def test_the_command_line_says_what_was_taken_for_what():
    result = CliRunner().invoke(app, ["estimate", str(FILES / "samples_df.csv"), "--scorer", "includes", "--k", "1"])
    assert result.exit_code == 0, result.output
    assert "score = includes" in " ".join(result.output.split())
    refused = CliRunner().invoke(app, ["gate", str(FILES / "samples_df.csv"), "--at-least", "0.5"])
    assert isinstance(refused.exception, EvidenceError)
    as_table = ["estimate", str(FILES / "samples_df.csv"), "--k", "1", "--columns", "task=id,correct=score_includes"]
    assert "score = " not in CliRunner().invoke(app, as_table).output  # columns that are named make it a table


def test_a_parquet_table_of_a_tool_is_read_as_its_csv(tmp_path):
    frame = pd.read_csv(FILES / "samples_df.csv")
    frame.to_parquet(tmp_path / "samples_df.parquet")
    assert counts_in(outcomes_from_results(tmp_path / "samples_df.parquet", scorer="includes")) == SAMPLES


def test_several_runs_of_inspect_need_the_model(tmp_path):
    frame = pd.read_csv(FILES / "samples_df.csv")
    both = pd.concat([frame, frame.assign(eval_id="another")])
    both.to_csv(tmp_path / "both.csv", index=False)
    with pytest.raises(EvidenceError, match=r"no column model.*samples_df\(logs, columns="):
        outcomes_from_results(tmp_path / "both.csv", scorer="includes")
    both.assign(model=np.repeat(["a", "b"], len(frame))).to_csv(tmp_path / "both.csv", index=False)
    outcomes = outcomes_from_results(tmp_path / "both.csv", scorer="includes")
    assert outcomes["agent"].values.tolist() == ["a", "b"]


def test_averages_of_runs_are_no_trials(tmp_path):
    row = {"eval_id": "x", "task_name": "t", "total_samples": 4, "completed_samples": 4, "score_headline_value": 0.5}
    pd.DataFrame([row]).to_csv(tmp_path / "evals.csv", index=False)
    with pytest.raises(EvidenceError, match="single trials cannot be told"):
        outcomes_from_results(tmp_path / "evals.csv")


def test_a_reader_of_another_package_is_used(tmp_path, monkeypatch):
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


def places(value, path=()):
    """Every place inside a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


WHOLE = {
    name: json.loads((FILES / name).read_text())
    for name in ("promptfoo.json", "pydantic_evals_report.json", "deepeval_result.json")
}
WHOLE["promptfoo.json"]["results"]["results"] = WHOLE["promptfoo.json"]["results"]["results"][:2]
PLACES = {name: list(places(value)) for name, value in WHOLE.items()}
WRONG = st.sampled_from([None, [], {}, "", "x", -1, 2.5, True, [None], {"a": {}}, [[]], "nan", float("nan"), 10**400])


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
