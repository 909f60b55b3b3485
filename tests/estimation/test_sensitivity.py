"""What numbers depend on: the prior (power-scaling), the shape beyond the trials, trials given out by difficulty."""

import numpy as np
import pandas as pd
import pytest
from fits import STRONGER, UNEQUAL, WEAKER, counts, row
from scipy import stats

from agentic_bayes.estimation.engines.mixture import mixture_draws
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.methods.options import Conjugate, Crossed, Frequentist, Hierarchical
from agentic_bayes.estimation.model_checks import trials_and_passes
from agentic_bayes.formatting import Metric
from agentic_bayes.outcomes.table import outcomes_from_table

TWO = counts({"v1": WEAKER, "v2": STRONGER})


def moves(outcomes, method, **where):
    """One row of the table of sensitivities."""
    return row(estimate(outcomes, method, k=(1, 3)).sensitivity().to_pandas(), **where)


class TestPrior:
    """Weighting again gives what a fit with the changed prior gives."""

    def test_one_trial_per_task_is_a_beta_posterior(self):
        """With n = 1 μ ~ Beta(1 + S, 1 + F); the uniform prior counted α times is Beta(α, α) on the logit scale."""
        cells = tuple((int(i < 14), 1) for i in range(20))
        found = moves(counts({"a": cells}), Hierarchical(), estimand="population", metric="pass^1")
        mean = 15 / 22
        assert found["prior_half"] == pytest.approx(14.5 / 21 - mean, abs=0.002)
        assert found["prior_double"] == pytest.approx(16 / 24 - mean, abs=0.002)

    @pytest.mark.parametrize("pooled", [True, False])
    def test_conjugate_priors_are_counted_half_and_double(self, pooled):
        """Beta(1, 1) becomes Beta(.5, .5) and Beta(2, 2): the same as fitting with these, exactly."""
        where = {"agent": "v2", "estimand": "tasks", "metric": "pass^3"}
        found = moves(TWO, Conjugate(pool_tasks=pooled), **where)
        for name, size in (("prior_half", 0.5), ("prior_double", 2.0)):
            other = estimate(TWO, Conjugate(prior=(size, size), pool_tasks=pooled), k=3)
            expected = row(other.summary(), **where)["mean"] - found["mean"]
            assert found[name] == pytest.approx(expected, abs=1e-9)

    def test_a_prior_that_was_given_is_the_one_that_is_scaled(self):
        """Beta(2, 5) of ρ counted twice is Beta(3, 9): the exact engine with that prior agrees."""
        one = {"estimand": "population", "metric": "pass^3"}
        method = Hierarchical(mu=stats.uniform(), rho=stats.beta(2, 5), pool_agents=False)
        found = moves(counts({"solo": UNEQUAL}), method, **one)
        other = Hierarchical(mu=stats.uniform(), rho=stats.beta(3, 9), pool_agents=False)
        refitted = row(estimate(counts({"solo": UNEQUAL}), other, k=3).summary(), **one)["mean"]
        assert found["prior_double"] == pytest.approx(refitted - found["mean"], abs=0.004)

    def test_a_uniform_prior_on_a_narrow_range_moves_nothing(self):
        """Counted half or double it is the same prior, at its ends too, where draws lie a rounding beyond them."""
        narrow = Hierarchical(mu=stats.uniform(0.699, 0.002), pool_agents=False)
        found = moves(counts({"solo": UNEQUAL}), narrow, estimand="population", metric="pass^1")
        assert max(abs(found["prior_half"]), abs(found["prior_double"])) < 1e-6

    def test_a_prior_that_drives_a_number_is_flagged_and_named(self):
        """Against a strong prior of μ a dozen tasks move by over a quarter of the interval; the default's do not."""
        strong = Hierarchical(mu=stats.beta(60, 4), pool_agents=False)
        outcomes = counts({"solo": ((0, 3),) * 6 + ((1, 3),) * 6})
        bent = row(estimate(outcomes, strong, k=1).to_pandas(), estimand="population", metric="pass^1")
        assert "prior_sensitive" in bent["flags"]
        assert "% of its interval" in bent["note"]
        plain = estimate(counts({"solo": UNEQUAL}), Hierarchical(), k=1)
        usual = row(plain.to_pandas(), estimand="population", metric="pass^1")
        assert "prior_sensitive" not in usual["flags"]
        assert usual["note"].startswith("prior: halving or doubling its weight moves pass")
        assert any(line.startswith("prior: ") for line in plain.table().notes)

    def test_sharp_data_are_weighted_where_the_posterior_is(self):
        """With 60,000 successes and no failure all weight lies on few points, on which the data ×0.8 say the same."""
        sharp = counts({"v1": [(500, 500)] * 60, "v2": [(500, 500)] * 60})
        found = moves(sharp, Crossed(), agent="v1", estimand="population", metric="pass^1")
        assert -0.005 < found["likelihood_down"] < 0 < found["likelihood_up"] < 0.005
        assert found["note"] == ""

    def test_every_method_has_a_table_and_none_where_there_is_no_prior(self):
        """All rows of a summary have their moves; the plain baseline has no prior."""
        for method in (Crossed(), Hierarchical(inflate=True), Conjugate()):
            found = estimate(TWO, method, k=1).sensitivity()
            assert np.isfinite(found.to_pandas()[["prior_half", "prior_double"]].to_numpy()).all()
            assert "prior:" in repr(found)
            assert "prior ×2" in found.to_markdown()
        nothing = estimate(TWO, Frequentist(), k=1).sensitivity()
        assert nothing.to_pandas()["prior_half"].isna().all()
        assert nothing.to_dict()["rows"][0]["prior_half"] is None


class TestShape:
    """Beyond the trials the band covers what the Beta distribution cannot know."""

    def test_the_mixture_of_one_kind_of_task_is_that_kind(self):
        """Tasks with one p: the mixture's mean of pass^1 has the mean and the spread of the pooled Beta posterior."""
        c, n, size = np.array([3, 4, 5]), np.array([5, 5, 5]), np.array([20, 40, 20])
        draws = mixture_draws(c, n, size, [Metric("pass^1")], np.random.default_rng(0))[Metric("pass^1")]
        assert draws.mean() == pytest.approx(0.8, abs=0.02)
        assert 0.015 < draws.std() < 0.05

    def two_points(self, seed):
        """The sensitivities of one data set."""
        rng = np.random.default_rng(seed)
        successes = rng.binomial(5, rng.choice([0.3, 0.95], 80))
        table = pd.DataFrame({"task": range(80), "successes": successes, "trials": 5})
        return estimate(outcomes_from_table(table), "hierarchical", k=8).sensitivity().to_pandas()

    @pytest.mark.parametrize("sets", [3, pytest.param(100, marks=pytest.mark.slow)])
    def test_two_kinds_of_tasks_are_covered(self, sets):
        """Half the tasks at .3 and half at .95, five trials: pass@8 is .971, which the Beta's interval misses mostly.

        In 60 other sets the model covered it in 20 % and the band, 24 % wider, in 93 %.
        """
        truth = 0.5 * (1 - 0.7**8) + 0.5 * (1 - 0.05**8)
        rows = [row(self.two_points(seed), estimand="population", metric="pass@8") for seed in range(sets)]
        band = np.mean([one["band_lower"] <= truth <= one["band_upper"] for one in rows])
        model = np.mean([one["lower"] <= truth <= one["upper"] for one in rows])
        assert band >= (0.82 if sets > 50 else 0.5)
        assert model < band
        for one in rows:
            assert one["bounds_lower"] <= one["band_lower"] + 0.05
            assert one["band_lower"] <= one["lower"]
            assert one["band_upper"] >= one["upper"]

    def test_there_is_no_band_within_the_trials(self):
        """Up to k = n the data check the shape: no band, no bounds."""
        found = estimate(counts({"solo": UNEQUAL}), "hierarchical", k=3).sensitivity()
        assert found.to_pandas()[["band_lower", "bounds_upper"]].isna().all().all()
        assert "band" not in found.table().header


class TestTrialsAndPasses:
    """Trials that were given out by difficulty are noted."""

    def test_it_is_spearmans_correlation(self):
        """SciPy's r decides, and is in the note."""
        rng = np.random.default_rng(1)
        n = rng.integers(2, 9, 40)
        c = rng.binomial(n, 0.9 - 0.1 * n)
        r = stats.spearmanr(n, c / n)
        assert r.pvalue < 0.01
        assert f"{r.statistic:.2f}" in trials_and_passes(c, n, np.ones(40, int))
        assert "less often" in trials_and_passes(c, n, np.ones(40, int))
        pairs, size = np.unique(np.stack([c, n]), axis=1, return_counts=True)
        assert trials_and_passes(*pairs, size) == trials_and_passes(c, n, np.ones(40, int))

    def test_equal_or_unrelated_numbers_are_not(self):
        """Equal trials, few tasks and unrelated counts give no note."""
        rng = np.random.default_rng(2)
        n, one = rng.integers(2, 9, 60), np.ones(60, int)
        assert not trials_and_passes(rng.binomial(n, 0.5), n, one)
        assert not trials_and_passes(rng.binomial(5, 0.5, 60), one * 5, one)
        assert not trials_and_passes(np.array([0, 8]), np.array([2, 8]), np.array([1, 1]))

    def test_the_note_is_in_the_summary(self):
        """It stands in the note of every row of the agent, and below the table."""
        cells = tuple((0, 2) for _ in range(15)) + tuple((6, 6) for _ in range(15))
        est = estimate(counts({"a": cells}), "hierarchical", k=1)
        assert est.to_pandas()["note"].str.contains("tasks with more trials pass more often").all()
        assert any("tasks with more trials" in line for line in est.table().notes)
