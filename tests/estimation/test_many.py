"""Many groups of one table: the same numbers as each by itself, in one table, whatever runs them."""

import json
from concurrent.futures import ThreadPoolExecutor

import duckdb
import pandas as pd
import polars as pl
import pytest
from pandas.testing import assert_frame_equal

import agentic_bayes as ab
from agentic_bayes.errors import AgenticBayesWarning, EstimateError, InvalidArgument, OutcomesError, UnknownName

QUICK = {"method": ab.Hierarchical(), "k": (1, 3)}


def trials(bad=True):
    """Two models in three weeks, four tasks three times each; model m2 has a row without a task in week 10."""
    rows = [
        (model, week, f"t{task}", run, int((task * 7 + run * 3 + week + 5 * number) % 4 > 0))
        for number, model in enumerate(("m1", "m2"))
        for week in (2, 10, 1)
        for task in range(4)
        for run in range(3)
    ]
    return pd.DataFrame([*rows, *[("m2", 10, None, 0, 1)] * bad], columns=["model", "week", "task", "trial", "correct"])


def test_each_group_has_the_numbers_that_it_has_by_itself():
    """In natural order of the groups, 2 before 10; a group that cannot be read has a row with the reason."""
    table = trials()
    many = ab.estimate_many(table, split=["model", "week"], **QUICK)
    keys = [(model, week) for model in ("m1", "m2") for week in ("1", "2", "10")]
    assert many.groups == keys
    summary = many.summary()
    for model, week in keys[:-1]:
        own = table[(table.model == model) & (table.week == int(week))].drop(columns=["model", "week"])
        est = ab.estimate(ab.outcomes_from_table(own), **QUICK)
        found = summary[(summary.model == model) & (summary.week == week)]
        columns = ["agent", "estimand", "metric", "mean", "lower", "upper", "n_tasks", "flags"]
        expected = est.summary()[columns].reset_index(drop=True)
        assert_frame_equal(found[columns].reset_index(drop=True), expected, check_exact=True, check_dtype=False)
        assert many.estimate(model, week).summary()["mean"].tolist() == est.summary()["mean"].tolist()
    (lost,) = summary[summary.reason != ""].to_dict("records")
    assert (lost["model"], lost["week"]) == ("m2", "10")
    assert lost["reason"].startswith("DataFrame: row 73: task must not be blank. If the cells above hold")
    assert pd.isna(lost["mean"])
    assert str(many) == "ManyEstimates: 6 groups by model, week, 1 of them without an estimate"
    assert json.loads(json.dumps(many.to_dict(), allow_nan=False))["groups"][-1]["rows"] == []
    assert len(many.table().rows) == 6
    with pytest.raises(EstimateError, match="group m2, 10 was not estimated: DataFrame: row 73"):
        many.estimate("m2", "10")
    with pytest.raises(UnknownName, match="unknown group 'm2, 11': did you mean 'm2, 1"):
        many.estimate("m2", "11")


def test_workers_give_the_same_table_to_the_last_bit():
    """Whatever the number of groups in a call; progress is told of groups."""
    told = []
    here = ab.estimate_many(trials(), split=["model", "week"], **QUICK)
    with ThreadPoolExecutor(2) as threads:
        many = ab.estimate_many(
            trials(), split=["model", "week"], executor=threads, progress=lambda *state: told.append(state), **QUICK
        )
        gates = ab.gate(many, at_least=0.5)
    assert_frame_equal(many.to_pandas(), here.to_pandas(), check_exact=True)
    assert_frame_equal(gates.to_pandas(), ab.gate(here, at_least=0.5).to_pandas(), check_exact=True)
    assert told[-1] == (6, 6)


@pytest.mark.slow
def test_processes_and_dask_give_the_same_table_to_the_last_bit():
    """Also of the crossed model, whose matrix products must not depend on the threads that a worker has."""
    from distributed import LocalCluster

    week = trials(bad=False).query("week == 1")
    table = pd.concat([week.assign(agent=name) for name in ("v1", "v2")])
    table.loc[(table.agent == "v2") & (table.task == "t1"), "correct"] = 1
    here = ab.estimate_many(table, split="model")
    assert set(here.to_pandas()["method"]) == {"crossed"}
    with LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=":0") as cluster:
        for executor in ("local:2", cluster.scheduler_address.replace("tcp://", "dask://")):
            there = ab.estimate_many(table, split="model", executor=executor)
            assert_frame_equal(there.to_pandas(), here.to_pandas(), check_exact=True)


def test_gates_of_many_groups_are_those_of_each():
    """Every agent of a group; a group without an estimate is inconclusive, and one that fails fails them all."""
    many = ab.estimate_many(trials(), split=["model", "week"], **QUICK)
    gates = ab.gate(many, at_least=0.99, metric="pass^3")
    table = gates.to_pandas()
    for row in table[table.reason == ""].to_dict("records"):
        own = ab.gate(many.estimate(row["model"], row["week"]), at_least=0.99, metric="pass^3")
        assert (row["verdict"], row["probability"], row["scored"]) == (own.verdict, own.probability, own.trials.scored)
    assert table.verdict.tolist()[-1] == "inconclusive"
    assert gates.verdict == "fail"
    assert gates.verdicts() == {"pass": 0, "fail": 5, "inconclusive": 1}
    assert str(gates) == "fail: 5 fail, 1 inconclusive (6 groups by model, week)"
    assert gates.to_dict()["verdict"] == "fail"
    assert ab.gate(many, at_least=0.01).verdict == "inconclusive"
    with pytest.raises(UnknownName, match="unknown agent 'v9'"):
        ab.gate(many, "v9", at_least=0.5)


@pytest.mark.parametrize("form", [pl.from_pandas, lambda frame: pl.from_pandas(frame).lazy(), duckdb.from_df])
def test_tables_of_every_library_are_split(form):
    """Lazy ones in their engine; a blank group has its reason, too."""
    frame = trials(bad=False)
    frame.loc[0, "model"] = None
    options = {"split": ["model", "week"], "method": "frequentist", "k": 1}
    found, expected = (ab.estimate_many(table, **options).summary() for table in (form(frame), frame))
    assert_frame_equal(found.drop(columns="reason"), expected.drop(columns="reason"))
    assert found.reason.str.partition(": ")[2].str.partition(". ")[0].tolist() == [
        "model must not be blank",
        *[""] * (len(found) - 1),
    ]


def test_files_and_other_columns_are_split(tmp_path):
    """Lines are those of the file; `columns` names columns as `outcomes_from_table` does; agents may be split, too."""
    path = tmp_path / "runs.csv"
    renamed = trials().rename(columns={"model": "agent", "task": "id"})
    renamed.to_csv(path, index=False)
    many = ab.estimate_many(path, split=["agent", "week"], columns={"task": "id"}, method="frequentist", k=1)
    assert many.answers[-1].reason.startswith(f"{path}: line 74: id must not be blank")
    assert many.summary().columns.tolist()[:3] == ["agent", "week", "estimand"]
    wide = pd.DataFrame({"lang": ["en", "fr"], "task": ["a", "a"], "run_1": [1, 0], "run_2": [1, 0]})
    counted = ab.estimate_many(wide, split="lang", columns={"wide": "trials"}, method="frequentist", k=1)
    assert counted.summary().query("metric == 'pass^1' and estimand == 'tasks'")["mean"].tolist() == [1, 0]


def test_what_is_doubtful_of_the_whole_table_is_said_once():
    """Agents in a column that is neither an agent nor split are not pooled in silence."""
    with pytest.warns(AgenticBayesWarning, match="if 'model' names agents, give agent='model'") as said:
        many = ab.estimate_many(trials(bad=False), split=["week"], method=ab.Conjugate(), k=(1,))
    assert (len(said), many.groups) == (1, [("1",), ("2",), ("10",)])


def test_what_is_wrong_with_all_groups_is_one_error():
    """An argument, a column: there is no table to keep."""
    table = trials(bad=False)
    with pytest.raises(OutcomesError, match=r"there is no column 'wek'.*did you mean 'week'"):
        ab.estimate_many(table, split="wek")
    with pytest.raises(OutcomesError, match="there is no column 'id'"):
        ab.estimate_many(table, split="week", columns={"task": "id"})
    with pytest.raises(InvalidArgument, match="k must be an integer ≥ 1, got 0"):
        ab.estimate_many(table, split="week", k=0)
    with pytest.raises(InvalidArgument, match=r"engine of method 'hierarchical' must be"):
        ab.estimate_many(table, split=["model", "week"], method="hierarchical", engine="importance")
    with pytest.raises(InvalidArgument, match="split must be one column or several that differ, got None"):
        ab.estimate_many(table, split=None)
    with pytest.raises(InvalidArgument, match="the result has a column mean of its own"):
        ab.estimate_many(table.rename(columns={"week": "mean"}), split="mean")
