"""Who is best, and how sure is that?"""

import math

import numpy as np
import pandas as pd
import pytest
from fits import STRONGER, UNEQUAL, WEAKER, counts
from scipy import integrate, stats

from agentic_bayes.decisions.compare import compare
from agentic_bayes.decisions.rank import rank
from agentic_bayes.errors import EstimateError, InvalidArgument
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.methods.options import Conjugate, Hierarchical
from agentic_bayes.outcomes.dataset import combine_outcomes

COLUMNS = ["agent", "prob_best", "expected_rank", "lower_rank", "upper_rank"]


def pooled(**cells):
    """Independent Beta posteriors."""
    return estimate(counts({name: [cell] for name, cell in cells.items()}), method=Conjugate(pool_tasks=True))


CELLS = {"a": (12, 20), "b": (14, 20), "c": (17, 20)}
BETAS = {name: stats.beta(c + 1, n - c + 1) for name, (c, n) in CELLS.items()}


class TestAgainstClosedForms:
    """Independent Beta posteriors, integrated by SciPy."""

    def test_probability_of_being_best_and_expected_rank(self):
        """Within 4 standard errors of 4,000 draws; 1 is best, and ranks of one draw sum to 6."""
        found = rank(pooled(**CELLS)).to_pandas().set_index("agent")
        for name, beta in BETAS.items():
            others = [b for other, b in BETAS.items() if other != name]
            best = integrate.quad(lambda p, b=beta, o=others: b.pdf(p) * o[0].cdf(p) * o[1].cdf(p), 0, 1)[0]
            above = [integrate.quad(lambda p, b=beta, o=o: o.pdf(p) * b.cdf(p), 0, 1)[0] for o in others]
            assert abs(found.loc[name, "prob_best"] - best) <= 4 * math.sqrt(best * (1 - best) / 4000)
            assert abs(found.loc[name, "expected_rank"] - (1 + sum(above))) <= 4 * 1 / math.sqrt(4000)
        assert found["prob_best"].sum() == pytest.approx(1)
        assert found["expected_rank"].sum() == pytest.approx(6)
        assert list(found.index) == ["c", "b", "a"]

    def test_pairwise_superiority(self):
        """Every entry is the integral of one density times the other's distribution function."""
        matrix = rank(pooled(**CELLS)).superiority()
        for one, beta in BETAS.items():
            for other, gamma in BETAS.items():
                if one == other:
                    assert math.isnan(matrix.loc[one, other])
                    continue
                exact = integrate.quad(lambda p, b=beta, g=gamma: b.pdf(p) * g.cdf(p), 0, 1)[0]
                assert abs(matrix.loc[one, other] - exact) <= 4 * math.sqrt(exact * (1 - exact) / 4000)
                assert matrix.loc[one, other] + matrix.loc[other, one] == pytest.approx(1)

    def test_sure_things_have_sure_ranks(self):
        """Agents far apart have ranks without spread."""
        found = rank(pooled(worst=(0, 500), middle=(250, 500), best=(500, 500))).to_pandas()
        assert list(found["agent"]) == ["best", "middle", "worst"]
        assert list(zip(found["lower_rank"], found["upper_rank"], strict=True)) == [(1, 1), (2, 2), (3, 3)]
        assert list(found["prob_best"]) == [1.0, 0.0, 0.0]


class TestTies:
    """Ties stay ties."""

    @pytest.mark.parametrize("method", ["hierarchical", "crossed", "conjugate"])
    def test_agents_with_the_same_counts_have_the_same_ranks(self, method):
        """Nothing that was seen tells them apart, so neither do the numbers; by name they keep their order."""
        est = estimate(counts({"twin 1": UNEQUAL, "other": STRONGER, "twin 2": UNEQUAL}), method=method)
        ranking = rank(est, estimand="tasks", metric="pass^2")
        found = ranking.to_pandas().set_index("agent")
        one, other = found.loc["twin 1"], found.loc["twin 2"]
        assert list(one[COLUMNS[1:]]) == list(other[COLUMNS[1:]])
        assert ranking.superiority().loc["twin 1", "twin 2"] == 0.5
        assert found["prob_best"].sum() == pytest.approx(1)

    def test_labels_tell_agents_with_the_same_counts_apart(self):
        """A judge passed as many attempts of both, all of them rightly or wrongly; one task's labels differ, too."""
        tasks = [f"task {i}" for i in range(1, 9)]
        labels = [("right", t, 1, 1) for t in tasks] + [("wrong", t, 1, int(t == "task 8")) for t in tasks]
        table = pd.DataFrame(labels, columns=["agent", "task", "judge", "human"])
        est = estimate(counts({"right": [(2, 4)] * 8, "wrong": [(2, 4)] * 8}), "hierarchical", judge_labels=table)
        draws = est.metric_draws("right") - est.metric_draws("wrong")
        assert draws.mean() > 0.2
        found = compare(est, "right", baseline="wrong")
        np.testing.assert_array_equal(found.draws, draws)
        assert rank(est).superiority().loc["right", "wrong"] == found.prob_better
        by_task = {one.task: one.mean for one in found.tasks}
        assert by_task["task 8"] < by_task["task 7"] - 0.1

    def test_draws_that_are_equal_share_their_ranks(self):
        """pass@1000 of good agents is 1 to the last bit: nobody is best alone."""
        found = rank(pooled(a=(99, 100), b=(98, 100), c=(97, 100)), metric="pass@1000").to_pandas()
        assert list(found["prob_best"]) == pytest.approx([1 / 3] * 3, abs=0.01)
        assert list(found["expected_rank"]) == pytest.approx([2, 2, 2], abs=0.05)


def test_every_number_says_what_it_is():
    """Metric, k, estimand, interval, method, unit, indicator, tasks and flags stand in every row."""
    found = rank(estimate(counts({"v1": WEAKER, "v2": STRONGER})), metric="pass^7", tasks="own").to_pandas()
    assert list(found.columns[:5]) == COLUMNS
    first = found.iloc[0]
    assert (first["agent"], first["metric"], first["estimand"]) == ("v2", "pass^7", "population")
    assert (first["ci_prob"], first["ci_kind"], first["method"]) == (0.95, "eti", "crossed")
    assert (first["unit"], first["indicator"], first["n_tasks"]) == ("conversation", "correct", 12)
    assert first["flags"] == "extrapolated, different_tasks"
    assert first["lower"] < first["mean"] < first["upper"]


def test_what_is_not_counted_alike_is_said_beside_every_rank():
    """Outcomes that were combined although their judges differ say so here, too, and in the table."""
    parts = [counts({name: cells}) for name, cells in (("v1", WEAKER), ("v2", STRONGER))]
    for part, judge in zip(parts, ("one", "other"), strict=True):
        part.attrs["judge"] = judge
    est = estimate(combine_outcomes(*parts, allow=("judge",)))
    found = rank(est)
    assert est.differences
    said = f"2 tasks that not all agents tried left out; {est.differences}"
    assert list(found.to_pandas()["note"]) == [said] * 2
    assert said in found.table().notes


def test_a_crossed_estimate_ranks_on_the_same_tasks():
    """Shared difficulty makes the same data more decisive."""
    rng = np.random.default_rng(3)
    hard = rng.random(40)
    cells = {
        name: [(int(rng.binomial(4, min(h + bonus, 1))), 4) for h in hard] for name, bonus in (("a", 0), ("b", 0.12))
    }
    plain, paired = (
        rank(estimate(counts(cells), method=m)).to_pandas().set_index("agent") for m in ("hierarchical", "crossed")
    )
    assert paired.loc["b", "prob_best"] > plain.loc["b", "prob_best"]


def test_the_sentence_counts_the_others_as_there_are():
    """One other is no "all others"."""
    well, badly = (99, 100), (1, 100)
    assert "; the other is clearly behind (" in str(rank(pooled(a=well, b=badly)))
    assert "; all others are clearly behind (" in str(rank(pooled(a=well, b=badly, c=badly)))
    assert "; 1 other agent not ruled out (" in str(rank(pooled(a=well, b=well, c=badly)))


def test_a_leader_by_its_prior_alone_is_said_to_be_one():
    """Nothing of it was scored; compared on its own tasks it leads by what the prior says."""
    method = Hierarchical(mu=stats.beta(60, 1), pool_agents=False)
    ranking = rank(estimate(counts({"tried": [(1, 2)] * 4, "new": [(0, 0, 2)] * 4}), method), tasks="own")
    assert str(ranking).startswith("new is best on pass^1 with probability 96 %")
    assert "8 of 16 trials unscored; new has no scored trials)" in str(ranking)


def test_ranking_is_reproducible():
    """Same estimate, same table."""
    made = [rank(estimate(counts({"v1": WEAKER, "v2": STRONGER}))).to_pandas() for _ in range(2)]
    pd.testing.assert_frame_equal(*made)


def test_wrong_arguments():
    """One agent, an unknown metric, a k of 0, a method without posterior: each is named."""
    two = estimate(counts({"v1": WEAKER, "v2": STRONGER}))
    with pytest.raises(InvalidArgument, match="ranking needs two agents or more, the estimate holds 'v1' only"):
        rank(estimate(counts({"v1": WEAKER})))
    with pytest.raises(InvalidArgument, match=r"est must be an Estimate \(estimate\(\) makes one\), got dict"):
        rank({})
    with pytest.raises(InvalidArgument, match="metric must be"):
        rank(two, metric="pass_k")
    with pytest.raises(InvalidArgument, match="metric must be"):
        rank(two, metric="pass^0")
    with pytest.raises(EstimateError, match="the frequentist method has no posterior"):
        rank(estimate(counts({"v1": WEAKER, "v2": STRONGER}), method="frequentist"))


@pytest.mark.parametrize("method", ["hierarchical", "crossed", "conjugate"])
def test_names_change_nothing(method):
    """Renamed agents, so that their order turns round, keep every probability to the last bit."""
    rng = np.random.default_rng(8)
    cells = [[(int(rng.binomial(4, p)), 4) for p in rng.random(16)] for _ in range(3)]
    tables = []
    for names in (("a", "b", "c"), ("z", "b", "a")):
        est = estimate(counts(dict(zip(names, cells, strict=True))), method=method)
        table = rank(est, estimand="tasks", metric="pass^2").to_pandas().set_index("agent").loc[list(names)]
        tables.append(table[["prob_best", "expected_rank", "mean"]].to_numpy())
    assert tables[0] == pytest.approx(tables[1], abs=1e-9)
