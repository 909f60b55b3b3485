"""Model checks: counts replicated from the posterior, distance from the unbiased estimate, the prior's predictions."""

import math
import time

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from fits import EVERY, STRONGER, UNEQUAL, WEAKER, counts, fit_two, row, rows
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from strategies import reduced

from agentic_bayes.errors import EstimateError, InvalidArgument, OutcomesError
from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.engines.grid.exact import GridPosterior
from agentic_bayes.estimation.engines.grid.quadrature import fit_agents
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.methods.options import Hierarchical
from agentic_bayes.estimation.population import Population
from agentic_bayes.estimation.predictive import Check, check_counts, disagreements, prior_predictive
from agentic_bayes.reports.tables import estimate_tables

TAU_CELLS = tuple((c, 4) for c, size in enumerate((14, 12, 10, 4, 10)) for _ in range(size))
# half of the tasks fail at once, the others pass with probability .8: no Beta distribution is like that
GAP = tuple((c, 10) for c, size in enumerate((60, 0, 0, 0, 1, 3, 8, 16, 25, 24, 13)) for _ in range(size))


def beta(mu, rho, draws=1):
    """A population that is certain: Beta with this mean and intra-class correlation."""
    return Population(np.full((draws, 1), mu), np.full((draws, 1), 1 - mu), np.full((draws, 1), rho), np.ones((1, 1)))


def grouped(cells):
    """Distinct pairs and how many tasks have each."""
    pairs, size = np.unique(np.array(cells).T, axis=1, return_counts=True)
    return pairs[0], pairs[1], size


def checked(cells, seed=0, ks=(1, 3, 5)):
    """Checks and disagreements of one agent's exact posterior."""
    c, n = np.array(cells).T[:, None, :]
    data = Counts(("solo",), tuple(map(str, range(len(cells)))), c, n, np.zeros_like(n))
    grids = fit_agents(data, Hierarchical(pool_agents=False))
    population = GridPosterior(counts=data, random_seed=0, fit=grids, metrics=()).population(0, 1000)
    groups = data.groups(0)
    return check_counts(population, *groups, np.random.default_rng(seed)), disagreements(population, *groups, ks)


class TestPopulation:
    """The distribution of counts that a draw of the hyperparameters implies."""

    @pytest.mark.parametrize("n", [1, 4, 30, 500, 10**5])
    @pytest.mark.parametrize(("mu", "rho"), [(0.3, 0.5), (0.9, 0.02), (1e-3, 0.9)])
    def test_counts_are_beta_binomial(self, n, mu, rho):
        """The log probability of a count is SciPy's, for short and for long tasks."""
        kappa = 1 / rho - 1
        c = np.unique(np.linspace(0, n, 9).astype(int))
        expected = stats.betabinom.logpmf(c, n, mu * kappa, (1 - mu) * kappa)
        found = beta(mu, rho).log_pmf(c, np.full(c.size, n))[:, 0]
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-7)

    def test_point_masses_are_components_with_a_mean_of_zero_or_one(self):
        """Tasks that never or always pass add to the two ends of the histogram only."""
        mu = np.array([[0.4, 0.0, 1.0]])
        mixed = Population(mu, 1 - mu, np.array([[0.3]]), np.array([[0.5, 0.2, 0.3]])).histogram(4)[0]
        kappa = 1 / 0.3 - 1
        expected = 0.5 * stats.betabinom.pmf(np.arange(5), 4, 0.4 * kappa, 0.6 * kappa)
        expected[[0, 4]] += (0.2, 0.3)
        np.testing.assert_allclose(mixed, expected, atol=1e-12)

    def test_powers_are_moments_of_the_posterior_beta(self):
        """E p^r and E (1-p)^r of a task with c of n, given the population, are the Beta's."""
        c, n = np.array([0, 2, 4]), np.array([4, 4, 4])
        passed, failed = beta(0.4, 0.3).powers(c, n, 6)
        kappa = 1 / 0.3 - 1
        for i in range(3):
            p = stats.beta(0.4 * kappa + c[i], 0.6 * kappa + n[i] - c[i])
            np.testing.assert_allclose(passed[i], [p.moment(r) if r else 1 for r in range(7)], rtol=1e-7)
            mirrored = stats.beta(*p.args[::-1])
            np.testing.assert_allclose(failed[i], [mirrored.moment(r) if r else 1 for r in range(7)], rtol=1e-7)

    def test_responsibilities_decide_between_components(self):
        """A task that failed once cannot always pass; one that passed every time most likely does."""
        mu = np.array([[0.4, 0.0, 1.0]])
        population = Population(mu, 1 - mu, np.array([[0.3]]), np.array([[0.5, 0.2, 0.3]]))
        passed, _ = population.powers(np.array([3, 4]), np.array([4, 4]), 1)
        kappa = 1 / 0.3 - 1
        assert passed[0, 1] == pytest.approx((0.4 * kappa + 3) / (kappa + 4))
        likelihood = 0.5 * stats.betabinom.pmf(4, 4, 0.4 * kappa, 0.6 * kappa)
        alone = (0.4 * kappa + 4) / (kappa + 4)
        assert passed[1, 1] == pytest.approx((likelihood * alone + 0.3) / (likelihood + 0.3))


class TestPredictiveCheck:
    """Counts replicated from the posterior look like the agent's, or the model is flagged."""

    def test_tau_bench_looks_like_a_beta_distribution(self):
        """tau-bench airline: 20 % all pass where the model expects 18 %, 28 % never pass where it expects 30 %."""
        frame = estimate(counts({"solo": TAU_CELLS})).predictive_check()
        assert list(frame.columns) == ["agent", "statistic", "observed", "expected", "p", "note"]
        assert frame["statistic"].tolist() == ["histogram", "all_pass", "never_pass"]
        np.testing.assert_allclose(frame["observed"][1:], (0.2, 0.28))
        np.testing.assert_allclose(frame["expected"][1:], (0.18, 0.297), atol=0.01)
        assert frame["p"].between(0.1, 0.9).all()

    def test_expected_shares_are_the_models_pass_pow_n(self):
        """The expected share of all-pass tasks is the posterior mean of pass^n, and of never-pass tasks 1 - pass@n."""
        est = estimate(counts({"solo": TAU_CELLS}), k=4)
        frame, summary = est.predictive_check().set_index("statistic"), est.summary(columns="all")
        mean = {m: row(summary, estimand="population", metric=m)["mean"] for m in ("^", "@")}
        # 1,000 draws of the parameters and of 50 tasks: four standard errors of .07/√1000
        assert frame["expected"]["all_pass"] == pytest.approx(mean["^"], abs=0.01)
        assert frame["expected"]["never_pass"] == pytest.approx(1 - mean["@"], abs=0.01)

    def test_p_is_that_of_replicating_task_by_task(self):
        """Tail probabilities equal those of drawing every task's p and count one by one."""
        mu, rho, draws = 0.6, 0.4, 4000
        found = check_counts(beta(mu, rho, draws), *grouped(TAU_CELLS), np.random.default_rng(0))
        kappa, rng = 1 / rho - 1, np.random.default_rng(1)
        c = rng.binomial(4, rng.beta(mu * kappa, (1 - mu) * kappa, (draws, 50)))
        expected = 50 * stats.betabinom.pmf(np.arange(5), 4, mu * kappa, (1 - mu) * kappa)
        histograms = np.stack([(c == j).sum(axis=1) for j in range(5)], axis=1)
        distance = ((np.sqrt(histograms) - np.sqrt(expected)) ** 2).sum(axis=1)
        own = ((np.sqrt([14, 12, 10, 4, 10]) - np.sqrt(expected)) ** 2).sum()
        shares = [(histograms[:, 4], 10), (histograms[:, 0], 14)]
        slow = [np.mean(distance > own), *(np.mean(x > seen) + np.mean(x == seen) / 2 for x, seen in shares)]
        # two estimates of each probability from 4,000 replications
        np.testing.assert_allclose([one.p for one in found], slow, atol=4 * math.sqrt(0.5 / draws))
        assert found[0].observed == pytest.approx(own)

    def test_a_gap_is_flagged_in_every_row_of_the_agent(self):
        """Tasks at p = 0 and p = .8 with nothing between: all rows of that agent say misfit, the other agent's none."""
        even = tuple((c, 10) for c in range(11) for _ in range(10))
        est = estimate(counts({"even": even[:100], "gap": (GAP * 2)[:100]}), "hierarchical", k=(1, 3))
        summary = est.summary(**EVERY)
        assert rows(summary, agent="gap")["flags"].str.contains("misfit").all()
        assert set(rows(summary, agent="gap")["estimand"]) == {"population", "tasks", "task"}
        assert not rows(summary, agent="even")["flags"].str.contains("misfit").any()
        assert est.flags("gap", metric="pass^3") == ("misfit",)
        assert (rows(est.predictive_check(), agent="gap", statistic="histogram")["p"] < 0.01).all()

    def test_the_remedy_is_named_below_the_table_and_works(self):
        """A misfit's footnote says what to do, and with point masses the same counts are no misfit."""
        outcomes = counts({"solo": GAP})
        notes = [note for table in estimate_tables(estimate(outcomes, k=3)) for note in table.notes]
        text = "check that --method hierarchical --inflate (inflate=True) gives the same answer"
        assert sum(note.startswith("* misfit: ") and text in note for note in notes) == 2
        inflated = estimate(outcomes, k=3, method=Hierarchical(inflate=True))
        assert (inflated.predictive_check()["p"] > 0.01).all()
        assert inflated.flags("solo", estimand="tasks", metric="pass@3") == ()

    def test_a_histogram_closer_than_chance_is_no_misfit(self):
        """The model was fitted to the histogram: a small distance is no fault, while a share can be off either way."""
        assert not Check("histogram", 0.1, 3.0, 0.999).misfit
        assert Check("histogram", 9.0, 3.0, 0.005).misfit
        assert Check("all_pass", 0.1, 0.3, 0.995).misfit
        assert Check("never_pass", 0.4, 0.3, 0.005).misfit
        assert not Check("all_pass", 0.3, 0.3, 0.5).misfit

    @pytest.mark.parametrize("cells", [TAU_CELLS[::6], ((1, 1),) * 40, UNEQUAL[:10], ((0, 0),) * 12])
    def test_few_repeated_tasks_are_not_checked(self, cells):
        """With fewer than ten tasks tried twice nothing is checked, and the note counts them."""
        frame = estimate(counts({"solo": cells})).predictive_check()
        assert frame[["observed", "expected", "p"]].isna().all(axis=None)
        repeated = sum(cell[1] > 1 for cell in cells)
        assert set(frame["note"]) == {f"needs 10 tasks tried twice or more, there are {repeated}"}

    @pytest.mark.parametrize("method", ["frequentist", "conjugate"])
    def test_methods_without_a_model_of_tasks_are_refused(self, method):
        """Where nothing is said of how tasks differ there is nothing to check."""
        with pytest.raises(EstimateError, match=f"method {method!r} has no model of how tasks differ"):
            estimate(counts({"solo": TAU_CELLS}), method=method).predictive_check()

    def test_same_seed_same_check_whatever_is_asked_first(self):
        """The check depends on counts and seed, not on the order of questions."""
        outcomes = counts({"v1": WEAKER, "v2": STRONGER})
        first, second = estimate(outcomes), estimate(outcomes)
        second.summary(**EVERY)
        second.flags("v2", estimand="tasks", metric="pass^2")
        pd.testing.assert_frame_equal(first.predictive_check(), second.predictive_check(), check_exact=True)
        other = estimate(outcomes, random_seed=1).predictive_check()
        assert not other["p"].equals(first.predictive_check()["p"])

    @pytest.mark.stack
    def test_both_engines_give_the_same_check(self):
        """From exact grids and from NUTS: p of two agents within Monte-Carlo error."""
        exact, sampled = (fit_two(engine).predictive_check() for engine in ("quadrature", "pymc"))
        np.testing.assert_allclose(exact["p"], sampled["p"], atol=4 * math.sqrt(0.5 / 500))

    def test_the_crossed_model_is_checked_too(self):
        """Shared difficulties do not hinder the check of each agent's histogram."""
        frame = estimate(counts({"v1": WEAKER, "v2": STRONGER}), method="crossed", k=1).predictive_check()
        assert frame["p"].between(0.02, 0.98).all()

    @pytest.mark.parametrize("n", [31, 1000, 10**6])
    def test_long_tasks_are_thinned(self, n):
        """Of tasks with many trials 30 are looked at; the right model passes and a gap is found."""
        rng = np.random.default_rng(n)
        right = rng.binomial(n, rng.beta(0.8, 0.6, 60))
        assert not any(one.misfit for one in checked([(c, n) for c in right])[0])
        wrong = rng.binomial(n, rng.choice([0.0, 0.5, 0.52], 60))
        assert any(one.misfit for one in checked([(c, n) for c in wrong])[0])

    def test_tasks_of_thirty_trials_and_longer_ones_share_a_histogram(self):
        """Thirty trials and thirty out of fifty are checked together, 60 tasks in all."""
        rng = np.random.default_rng(5)
        n = np.repeat([30, 50, 4], 20)
        found, _ = checked(list(zip(rng.binomial(n, rng.beta(1, 1, 60)), n, strict=True)))
        assert found[1].observed * 60 == pytest.approx(round(found[1].observed * 60))
        assert not any(one.misfit for one in found)

    def test_cost_does_not_grow_with_the_number_of_tasks(self):
        """A hundred thousand tasks are checked in the time of fifty."""
        rng = np.random.default_rng(0)
        population, spent = beta(0.6, 0.4, 1000), {}
        for tasks in (50, 10**5):
            groups = grouped(np.stack([rng.binomial(5, rng.beta(0.9, 0.6, tasks)), np.full(tasks, 5)], axis=1))
            best = math.inf
            for _ in range(5):
                start = time.process_time()
                check_counts(population, *groups, np.random.default_rng(0))
                best = min(best, time.process_time() - start)
            spent[tasks] = best
        assert spent[10**5] < 5 * spent[50] + 0.01


def simulate(draw_p, tasks, n, replications, seed):
    """How many data sets were flagged misfit, and how many disagree at (pass^3, pass@3, pass^1)."""
    rng = np.random.default_rng(seed)
    misfit, far = 0, np.zeros(3, dtype=int)
    for replication in range(replications):
        c = rng.binomial(n, draw_p(rng, tasks))
        found, apart = checked([(int(x), n) for x in c], seed=replication, ks=(1, 3))
        misfit += any(one.misfit for one in found)
        far += [("pass^3") in apart, ("pass@3") in apart, ("pass^1") in apart]
    return misfit, far


def alpha_beta(mu, rho):
    """Beta parameters of mean and intra-class correlation."""
    return mu * (1 / rho - 1), (1 - mu) * (1 / rho - 1)


class TestFalseAlarmsAndPower:
    """How often a good model is flagged, and a wrong one."""

    @pytest.mark.parametrize(
        ("draw_p", "tasks", "n"),
        [
            (lambda rng, tasks: rng.beta(*alpha_beta(rng.uniform(), rng.uniform()), tasks), 50, 5),
            (lambda rng, tasks: rng.beta(*alpha_beta(0.7, 0.2), tasks), 20, 3),
            (lambda rng, tasks: np.full(tasks, 0.7), 50, 5),
        ],
        ids=["drawn from the prior", "bell", "all alike"],
    )
    def test_a_good_model_is_hardly_ever_flagged(self, draw_p, tasks, n):
        """Of 60 data sets of the model's own kind, at most 7 are a misfit and at most 8 disagree.

        Measured over 400 to 1,000: misfit 0 to 2 % (never with truth from the prior, .9 % with all tasks alike),
        disagreement 0 to 3 %. At .03 and .045 more than these would have a probability below .002.
        """
        misfit, far = simulate(draw_p, tasks, n, 60, seed=2)
        assert misfit <= 7
        assert (far <= 8).all()

    def test_a_wrong_model_is_flagged(self):
        """Tasks at p = 0, 1/2 and 1 only, 200 of them with 10 trials: at least 19 of 20 data sets are a misfit."""
        misfit, _ = simulate(lambda rng, tasks: rng.choice([0, 0.5, 1], tasks, p=[0.4, 0.2, 0.4]), 200, 10, 20, seed=4)
        assert misfit >= 19

    def test_the_check_is_uniform_or_safer_for_known_parameters(self):
        """With the parameters known, p of shares is uniform: mean 1/2 and 2 % beyond the tails, in 200 data sets."""
        rng, tails = np.random.default_rng(8), []
        for replication in range(200):
            c = rng.binomial(5, rng.beta(*alpha_beta(0.6, 0.4), 60))
            groups = grouped(np.stack([c, np.full(60, 5)], axis=1))
            tails.append([x.p for x in check_counts(beta(0.6, 0.4, 400), *groups, np.random.default_rng(replication))])
        p = np.array(tails)
        # standard error of the mean of 200 uniform numbers: .0204
        np.testing.assert_allclose(p.mean(axis=0), 0.5, atol=4 * 0.0204)
        assert ((p < 0.01).mean(axis=0) <= stats.binom.isf(1e-4, 200, 0.012) / 200).all()


class TestDisagreement:
    """The model's mean over the observed tasks beside the unbiased estimate of the same quantity."""

    def test_only_rows_of_observed_tasks_are_flagged(self):
        """Where shrinkage bends pass^5 of a gap away, the rows of `tasks` at that k say so and no others."""
        summary = estimate(counts({"solo": GAP}), k=(1, 5)).summary(**EVERY)
        hit = summary[summary["flags"].str.contains("disagrees")]
        assert set(zip(hit["estimand"], hit["k"], strict=True)) == {("tasks", 5)}
        assert {name[:5] for name in hit["metric"]} == {"pass@", "pass^"}

    def test_flags_can_be_asked_for_either_metric_or_one(self):
        """Without a metric, flags are those of either."""
        est = estimate(counts({"solo": GAP}), k=(1, 5))
        assert est.flags("solo", estimand="tasks", metric="pass^5") == ("misfit", "disagrees")
        assert est.flags("solo", estimand="tasks", metric="pass@1") == ("misfit",)
        # also at a k that was not among those estimated
        assert est.flags("solo", estimand="tasks", metric="pass^6") == ("misfit", "disagrees")

    def test_two_standard_errors_are_those_within_tasks(self):
        """For a certain population the limit is twice the exact standard deviation of the unbiased mean given p."""
        # every task has p = 1/2; 100 tasks × 4 trials: pass^2 = 1/4, sd of C(c,2)/6 given p
        c = np.arange(5)
        pmf, value = stats.binom.pmf(c, 4, 0.5), c * (c - 1) / 12
        limit = 2 * math.sqrt((pmf @ value**2 - 0.25**2) / 100)
        n = np.full(3, 4)
        for excess, far in ((0.95, False), (1.05, True)):
            # move mass from c = 2 (value 1/6) to c = 4 (value 1) until the mean is this far above 1/4
            share = (0.25 + excess * limit - 1 / 6) / (1 - 1 / 6)
            size = np.round(1e6 * np.array([0.0, 1 - share, share])) / 1e4
            found = disagreements(beta(0.5, 1e-9), np.array([0, 2, 4]), n, size, (2,))
            assert (("pass^2") in found) is far

    @given(n=st.integers(1, 12), k=st.integers(1, 12), p=st.floats(0.02, 0.98))
    @settings(max_examples=reduced(60), deadline=None)
    def test_variance_of_the_unbiased_estimate(self, n, k, p):
        """The formula for its variance given p equals the sum over all counts."""
        from agentic_bayes import numerics
        from agentic_bayes.estimation.predictive import _shared

        if k > n:
            return
        c = np.arange(n + 1)
        exact = stats.binom.pmf(c, n, p) @ numerics.pass_pow_k(n, c, k) ** 2 - p ** (2 * k)
        j = np.arange(1, k + 1)
        assert _shared(np.array([n]), k)[0] @ (p ** (2 * k - j) - p ** (2 * k)) == pytest.approx(exact, abs=1e-12)

    def test_long_tasks_and_large_k(self):
        """More than 50 attempts are not compared, and a million trials are."""
        rng = np.random.default_rng(1)
        c = rng.binomial(10**6, rng.beta(0.8, 0.6, 40))
        _, far = checked([(int(x), 10**6) for x in c], ks=(1, 5, 50, 51))
        assert far == frozenset()


def method_with(**prior):
    """The hierarchical method with one prior of one's own; a prior of μ is one of separate agents."""
    return Hierarchical(**prior, pool_agents="mu" not in prior)


class TestPriorPredictive:
    """What the model expects before there are data."""

    def test_counts_of_one_agent_have_mean_one_half(self):
        """μ is uniform and ρ follows its prior's distribution function, so the share of passes has mean 1/2."""
        found = prior_predictive(counts({"solo": TAU_CELLS}), draws=4000)
        assert dict(found.sizes) == {"draw": 4000, "agent": 1, "task": 50, "k": 3}
        assert stats.kstest(found["mu"].values.ravel(), "uniform").pvalue > 1e-3
        rho = found["rho"].values.ravel()
        assert stats.kstest(0.75 * rho + 0.25 * stats.beta(1, 300).cdf(rho), "uniform").pvalue > 1e-3
        share = found["successes"].mean("task") / 4
        assert float(share.mean()) == pytest.approx(0.5, abs=4 * 0.3 / math.sqrt(4000))
        assert int(found["successes"].max()) == 4

    def test_pass_to_the_k_is_the_moment_of_the_population(self):
        """E p^k given (μ, ρ), draw by draw, as the Beta's moments."""
        found = prior_predictive(counts({"solo": UNEQUAL}), draws=20, k=(1, 3))
        kappa = 1 / found["rho"].values[:, 0] - 1
        a, b = found["mu"].values[:, 0] * kappa, (1 - found["mu"].values[:, 0]) * kappa
        third = a * (a + 1) * (a + 2) / ((a + b) * (a + b + 1) * (a + b + 2))
        np.testing.assert_allclose(found["pass_pow_k"].sel(k=3).values[:, 0], third)
        np.testing.assert_allclose(found["pass_pow_k"].sel(k=1), found["mu"])
        np.testing.assert_allclose(found["pass_at_k"].sel(k=1), found["mu"])
        assert (found["pass_at_k"].sel(k=3) >= found["pass_at_k"].sel(k=1)).all()

    def test_agents_that_share_strength_are_correlated(self):
        """Pooled agents have similar means; unpooled agents independent ones."""
        outcomes = counts({"v1": WEAKER, "v2": STRONGER})
        related, apart = (
            np.corrcoef(prior_predictive(outcomes, Hierarchical(pool_agents=pool), draws=4000)["mu"].values.T)[0, 1]
            for pool in (True, False)
        )
        assert related > 0.5
        assert abs(apart) < 4 / math.sqrt(4000)

    @pytest.mark.parametrize(
        ("name", "given", "drawn"),
        [
            ("rho", stats.beta(2, 5), lambda ds: ds["rho"].values[:, 0]),
            ("mu", stats.beta(6, 2), lambda ds: ds["mu"].values[:, 0]),
            ("kappa", stats.gamma(2, scale=3), lambda ds: 1 / ds["rho"].values[:, 0] - 1),
        ],
    )
    @pytest.mark.parametrize("as_function", [False, True])
    def test_priors_are_arguments(self, name, given, drawn, as_function):
        """Draws follow the prior that was given, as a distribution or as its log density."""
        method = method_with(**{name: given.logpdf if as_function else given})
        found = prior_predictive(counts({"solo": UNEQUAL}), method, draws=2000)
        assert stats.kstest(drawn(found), given.cdf).pvalue > 1e-3

    @pytest.mark.parametrize(("name", "given"), [("m", stats.norm(1, 0.5)), ("tau", stats.expon(scale=0.2))])
    def test_pooled_priors_as_function_and_as_distribution_agree(self, name, given):
        """Whether a prior of m or τ is a distribution or a function, the spread of μ is the same."""
        outcomes = counts({"v1": WEAKER, "v2": STRONGER})
        first, second = (
            prior_predictive(outcomes, method_with(**{name: value}), draws=3000)["mu"].values[:, 0]
            for value in (given, given.logpdf)
        )
        assert stats.ks_2samp(first, second).pvalue > 1e-3

    def test_a_plan_needs_no_successes(self):
        """Only trials are used: a design without results, and untried cells stay at zero."""
        design = xr.Dataset({"trials": (("agent", "task"), [[3, 0]])}, coords={"agent": ["new"], "task": ["a", "b"]})
        found = prior_predictive(design, draws=50)
        assert (found["successes"].sel(task="b") == 0).all()
        assert found["successes"].sel(task="a").values.max() == 3
        xr.testing.assert_identical(found, prior_predictive(design, draws=50))
        assert not found.identical(prior_predictive(design, draws=50, random_seed=1))

    @pytest.mark.parametrize(
        ("change", "error", "message"),
        [
            ({"draws": 0}, InvalidArgument, "draws must be an integer ≥ 1, got 0"),
            ({"k": (0,)}, InvalidArgument, "k must be an integer ≥ 1, got 0"),
            ({"draws": 10**6}, InvalidArgument, "must be at most 10,000,000, got 12,000,000"),
            (
                {"method": Hierarchical(rho=lambda x: np.full_like(x, -np.inf))},
                InvalidArgument,
                "prior of rho is zero everywhere",
            ),
        ],
    )
    def test_wrong_arguments_are_refused(self, change, error, message):
        """A message says what is wrong and what came."""
        with pytest.raises(error, match=message):
            prior_predictive(counts({"solo": UNEQUAL}), **change)

    def test_anything_but_a_dataset_is_refused(self):
        """A table is not a design."""
        with pytest.raises(OutcomesError, match=r"outcomes must be an xarray\.Dataset"):
            prior_predictive(pd.DataFrame({"trials": [3]}))
