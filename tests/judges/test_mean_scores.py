"""Means of judge scores with intervals: tasks are the independent units, differences are paired."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from agentic_bayes.errors import InvalidArgument, UnknownName
from agentic_bayes.evidence.recorded import evidence_from_table
from agentic_bayes.judges.mean_scores import mean_scores


def evidence(agents=("v1", "v2"), tasks=12, seed=0):
    """Scores of tasks that differ, two trials each."""
    rng = np.random.default_rng(seed)
    base = rng.uniform(0.2, 0.8, tasks)
    rows = [
        {"agent": agent, "task": f"t{i}", "trial": trial, "score": float(np.clip(base[i] + 0.1 * shift + noise, 0, 1))}
        for shift, agent in enumerate(agents)
        for i in range(tasks)
        for trial, noise in enumerate(rng.normal(0, 0.05, 2))
    ]
    return evidence_from_table(pd.DataFrame(rows)), pd.DataFrame(rows)


class TestMeans:
    """Each task's mean counts once."""

    def test_intervals_are_scipys_t_intervals(self):
        """Mean and ends of the task means, and of their paired differences."""
        found, table = evidence()
        frame = mean_scores(found).to_pandas()
        means = table.groupby(["agent", "task"])["score"].mean().unstack("agent")
        for (_, one), values in zip(
            frame.iterrows(), (means["v1"], means["v2"], means["v2"] - means["v1"]), strict=True
        ):
            low, high = stats.t.interval(0.95, 11, values.mean(), stats.sem(values))
            np.testing.assert_allclose(
                [one["mean"], one["lower"], one["upper"]], [values.mean(), low, high], atol=1e-12
            )
        assert frame["baseline"].tolist() == ["", "", "v1"]
        assert frame["n_tasks"].tolist() == [12] * 3
        paired = frame.iloc[2]
        assert paired["upper"] - paired["lower"] < 0.5 * (frame["upper"] - frame["lower"]).iloc[0]

    def test_a_task_with_many_trials_counts_once(self):
        """Nine trials of one task do not outweigh two others."""
        table = pd.DataFrame(
            {"task": ["a"] * 9 + ["b", "c"], "trial": [*range(9), 0, 0], "score": [1.0] * 9 + [0.0, 0.5]}
        )
        (row,) = mean_scores(evidence_from_table(table)).rows
        assert row.mean == pytest.approx(0.5)
        assert (row.lower, row.upper) == (0, 1)

    def test_unscored_is_not_zero_and_equal_scores_have_a_width(self):
        """Missing scores are counted; ten tasks that all score 1 have Wilson's interval."""
        table = pd.DataFrame({"task": list("abcdefghijk"), "score": [1.0] * 10 + [None]})
        (row,) = mean_scores(evidence_from_table(table)).rows
        assert (row.mean, row.n_tasks, row.n_scored, row.n_unscored) == (1, 10, 10, 1)
        assert row.lower == pytest.approx(0.722, abs=0.001)

    def test_groups_widen_what_tasks_alone_make_too_narrow(self):
        """Four families of five nearly equal tasks: the interval is that of four family means."""
        level = {"f0": 0.2, "f1": 0.5, "f2": 0.6, "f3": 0.7}
        rows = [{"task": f"{f}-{i}", "score": value + 0.001 * i} for f, value in level.items() for i in range(5)]
        found, groups = evidence_from_table(pd.DataFrame(rows)), {row["task"]: row["task"][:2] for row in rows}
        by_family = mean_scores(found, groups=groups)
        low, high = stats.t.interval(0.95, 3, np.mean([*level.values()]) + 0.002, stats.sem([*level.values()]))
        assert (by_family.rows[0].lower, by_family.rows[0].upper) == pytest.approx((low, high))
        assert by_family.n_groups == 4
        alone = mean_scores(found).rows[0]
        assert alone.upper - alone.lower < 0.6 * (high - low)

    def test_what_is_not_there_is_refused(self):
        """An unknown baseline, a task without a group, a probability of 1."""
        found, _ = evidence()
        with pytest.raises(UnknownName, match="v3"):
            mean_scores(found, baseline="v3")
        with pytest.raises(InvalidArgument, match="group of every task"):
            mean_scores(found, groups={"t1": "x"})
        with pytest.raises(InvalidArgument, match="ci_prob"):
            mean_scores(found, ci_prob=1)

    def test_it_shows_what_it_is(self):
        """One line, a table and JSON."""
        found = mean_scores(evidence()[0])
        assert repr(found).startswith("Mean scores (answer): v1 0.")
        assert "v2 − v1" in found.to_markdown()
        assert found.to_dict()["rows"][2]["baseline"] == "v1"


@pytest.mark.parametrize("sets", [100, pytest.param(2000, marks=pytest.mark.slow)])
def test_the_interval_covers_the_mean_of_new_tasks(sets):
    """20 tasks × 3 trials on a scale of five levels: 95 % intervals hold the true mean in 93–97 % (small form: 88)."""
    rng, hits, levels = np.random.default_rng(3), 0, np.linspace(0, 1, 5)
    for _ in range(sets):
        p = rng.beta(3, 2, 20)
        table = pd.DataFrame(
            {
                "task": np.repeat(np.arange(20), 3),
                "trial": np.tile([0, 1, 2], 20),
                "score": levels[rng.binomial(4, np.repeat(p, 3))],
            }
        )
        (row,) = mean_scores(evidence_from_table(table)).rows
        hits += row.lower <= 0.6 <= row.upper
    assert hits / sets >= (0.93 if sets > 1000 else 0.88)
