"""One metric at several thresholds of the judge's score: every point is the estimate at that threshold."""

import numpy as np
import pandas as pd
import pytest
from fits import row

from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.evidence.recorded import evidence_from_table
from agentic_bayes.outcomes.count import count_outcomes
from agentic_bayes.reports.html.by_threshold import threshold_rows
from agentic_bayes.reports.html.question import ask
from agentic_bayes.reports.thresholds import ThresholdCurve, ThresholdPoint, threshold_curve


@pytest.fixture(scope="module")
def scored():
    """Two agents, 12 tasks × 3 trials, scores all over the scale."""
    rng = np.random.default_rng(0)
    rows = [
        {"agent": agent, "task": f"t{i}", "trial": t, "score": round(float(rng.beta(3 + bonus, 2)), 2)}
        for bonus, agent in enumerate(("v1", "v2"))
        for i in range(12)
        for t in range(3)
    ]
    return evidence_from_table(pd.DataFrame(rows))


@pytest.fixture(scope="module")
def curve(scored):
    """Its curve of pass^3, hierarchical."""
    return threshold_curve(scored, metric="pass^3", method="hierarchical")


def test_every_point_is_the_estimate_at_that_threshold(scored, curve):
    """Mean, interval and counts are those of `count_outcomes(threshold=…)` and `estimate`."""
    frame = curve.to_pandas()
    assert frame["threshold"].unique().tolist() == [0.5, 0.6, 0.7, 0.8, 0.9]
    est = estimate(count_outcomes(scored, threshold=0.8), "hierarchical", k=3)
    expected = row(est.summary(), agent="v2", estimand="population", metric="pass^3")
    found = row(frame, agent="v2", threshold=0.8)
    for name in ("mean", "lower", "upper"):
        assert found[name] == expected[name]
    assert found["passed"] == int(est.counts.successes[1].sum())


def test_a_failed_turn_settles_a_conversation_with_an_unscored_one():
    """Above its score the conversation failed, below it is unscored: passes stay, trials and the rate do not."""
    turns = [
        (t, n, i, s) for t in range(6) for n in (0, 1) for i, s in enumerate((0.9, 0.95) if t < 3 else (0.6, None))
    ]
    evidence = evidence_from_table(pd.DataFrame(turns, columns=["task", "trial", "interaction", "score"]))
    found = threshold_curve(evidence, thresholds=(0.5, 0.7)).to_pandas()
    assert found[["passed", "scored"]].to_numpy().tolist() == [[6, 6], [6, 12]]
    est = estimate(count_outcomes(evidence, threshold=0.7), k=1)
    assert found["mean"][1] == est.distribution(None).mean
    rows = threshold_rows(est, ask(est, None, None, "pass^1", None), evidence).rows
    assert [row.rates[0][0].percent for row in rows] == ["84 %", "84 %", "50 %", "50 %", "50 %"]


def test_a_higher_bar_is_passed_less_often(curve):
    """Passed trials fall with the threshold, and so does the mean."""
    for _, own in curve.to_pandas().groupby("agent"):
        assert own["passed"].is_monotonic_decreasing
        assert own["mean"].is_monotonic_decreasing


def test_it_shows_itself(curve):
    """A line, a table with agents next to each other, JSON, and a plot with one line per agent."""
    from matplotlib.figure import Figure

    assert repr(curve).startswith("pass^3 by threshold of the judge's score: v1 0.")
    assert curve.table().header == ["threshold", "v1", "v2"]
    assert len(curve.to_dict()["points"]) == 10
    ax = curve.plot(ax=Figure().subplots())
    assert [len(line.get_xdata()) for line in ax.lines] == [5, 5]
    np.testing.assert_allclose(ax.lines[0].get_ydata(), curve.to_pandas().query("agent == 'v1'")["mean"])


def test_of_many_agents_the_best_have_colours_and_the_others_are_grey_together():
    """Nine agents would share colours: six are named, the other three are one entry of the legend."""
    from matplotlib.figure import Figure

    one = {"lower": 0.0, "upper": 1.0, "passed": 1, "scored": 1, "flags": ""}
    points = tuple(ThresholdPoint(threshold=t, agent=f"v{i}", mean=i / 10, **one) for t in (0.5, 0.9) for i in range(9))
    how = {"metric": "pass^1", "estimand": "population", "method": "crossed", "ci_prob": 0.95, "ci_kind": "eti"}
    ax = ThresholdCurve(points=points, **how).plot(ax=Figure().subplots())
    named = [text.get_text() for text in ax.get_legend().get_texts()]
    assert named == [*(f"v{i}" for i in range(3, 9)), "3 other agents"]
    assert len({line.get_color() for line in ax.lines}) == 7


def test_thresholds_are_checked(scored):
    """None, or one beyond the scale, is refused; so is an indicator that no score of the judge decides."""
    with pytest.raises(InvalidArgument, match="at least one number"):
        threshold_curve(scored, thresholds=())
    with pytest.raises(InvalidArgument, match="thresholds must be"):
        threshold_curve(scored, thresholds=(0.5, 1.5))
    with pytest.raises(InvalidArgument, match="indicator"):
        threshold_curve(scored, indicator="tools")
