"""What `to_arviz` gives: every group of a fit, and ArviZ's tools on them, on both stacks."""

import warnings
from functools import cache

import numpy as np
import pytest
from fits import STRONGER, UNEQUAL, WEAKER, counts
from scipy import stats

from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.io import stacks
from agentic_bayes.estimation.io.replicated import _new_tasks
from agentic_bayes.estimation.methods.options import Conjugate, Crossed, Hierarchical
from agentic_bayes.estimation.population import Population

# ArviZ 0.23 on the newest pandas and Matplotlib, and 1.x on counts
NOISE = (
    "ignore:The inplace keyword:",
    "ignore:Passing a dict or None as alias_mapping",
    "ignore:Variables successes in '.*' look discrete",
    "ignore:Number of tail draws cannot be less",
)
pytestmark = [pytest.mark.stack, *(pytest.mark.filterwarnings(line) for line in NOISE)]
TWO = counts({"v1": WEAKER, "v2": STRONGER})
GROUPS = {
    *("posterior", "posterior_predictive", "prior", "prior_predictive"),
    *("observed_data", "constant_data", "log_likelihood", "log_prior"),
}
MODELS = ["auto", Hierarchical(), Hierarchical(inflate=True), Conjugate(pool_tasks=True)]


def names(data):
    """The groups that there are."""
    return set(data.groups() if callable(data.groups) else [name.strip("/") for name in data.groups]) - {""}


@cache
def made(method):
    """An estimate of two agents that share their tasks, and its groups."""
    est = estimate(TWO, method, k=(1, 3))
    return est, est.to_arviz()


@pytest.fixture(scope="module")
def crossed():
    """The default estimate, and its groups."""
    assert made("auto")[0].method == Crossed()
    return made("auto")


class TestGroups:
    """Every group, with the dims that ArviZ's tools take."""

    @pytest.mark.parametrize("method", MODELS, ids=repr)
    def test_counts_have_one_dim_and_draws_are_4_by_1000(self, method):
        """`successes` runs over the scored cells in the same order in every group."""
        data = made(method)[1]
        assert names(data) == GROUPS
        observed = stacks.group(data, "observed_data")
        assert list(observed.data_vars) == ["successes"]
        assert dict(observed.sizes) == {"cell": 22}
        assert int(observed["successes"].sel(cell="v2 / task 4")) == 1
        trials = stacks.group(data, "constant_data")["trials"]
        for group in ("posterior_predictive", "prior_predictive", "log_likelihood"):
            found = stacks.group(data, group)["successes"]
            assert found.dims == ("chain", "draw", "cell")
            assert found.shape == (4, 1000, 22)
            assert found["cell"].equals(observed["cell"])
            if group != "log_likelihood":
                assert ((found >= 0) & (found <= trials)).all()
        posterior, prior = (stacks.group(data, group) for group in ("posterior", "prior"))
        for name in ("pass_at_k", "pass_pow_k", "p"):
            assert prior[name].dims == posterior[name].dims
        assert posterior["p"].sizes["task"] == 12

    def test_separate_tasks_have_no_density_and_short_ones_nothing_per_cell(self, crossed):
        """Conjugate cells share nothing; ``tasks=False`` leaves out what has a value per cell and draw."""
        alone = estimate(TWO, "conjugate", k=1).to_arviz()
        assert names(alone) == GROUPS - {"log_likelihood", "log_prior"}
        short = crossed[0].to_arviz(tasks=False)
        assert names(short) == {"posterior", "prior", "observed_data", "constant_data"}

    def test_the_same_seed_gives_the_same_replicates(self, crossed):
        """Prior and predictive draws are seeded like all others."""
        again = crossed[0].to_arviz()
        for group in ("prior", "prior_predictive", "posterior_predictive"):
            assert stacks.group(again, group).identical(stacks.group(crossed[1], group))


class TestReplicatedCounts:
    """Their distribution is the one that the log likelihood has."""

    @pytest.mark.parametrize("method", MODELS[:3], ids=repr)
    def test_posterior_replicates_follow_the_log_likelihood(self, method):
        """The share of draws that equal the observed count is the mean of exp(log likelihood), cell by cell."""
        data = made(method)[1]
        same = (
            stacks.group(data, "posterior_predictive")["successes"] == stacks.group(data, "observed_data")["successes"]
        )
        expected = np.exp(stacks.group(data, "log_likelihood")["successes"]).mean(("chain", "draw"))
        error = np.sqrt(expected * (1 - expected) / 4000)
        # given the draws each replicate is independent, however many draws are the same point: 4,000 count in full;
        # 22 cells × 3 models at 4 standard errors: a false alarm in .4 %
        assert (abs(same.mean(("chain", "draw")) - expected) < 4 * error).all()

    def test_pooled_replicates_are_beta_binomial(self):
        """One p for all tasks: SciPy's beta-binomial mean and variance."""
        cells = tuple((3, 5) for _ in range(8))
        found = stacks.group(
            estimate(counts({"a": cells}), Conjugate(pool_tasks=True), k=1).to_arviz(), "posterior_predictive"
        )
        law = stats.betabinom(5, 25, 17)
        assert float(found["successes"].mean()) == pytest.approx(law.mean(), abs=0.03)
        assert float(found["successes"].var()) == pytest.approx(law.var(), abs=0.06)

    def test_point_masses_are_kept(self):
        """A component with μ = 0 or 1 gives p = 0 or 1, with its weight."""
        mu = np.tile([0.5, 0.0, 1.0], (4000, 1))
        mixed = Population(mu, 1 - mu, np.full((4000, 1), 0.5), np.tile([0.5, 0.2, 0.3], (4000, 1)))
        p = _new_tasks(mixed, 3, np.random.default_rng(0))
        assert np.mean(p == 0) == pytest.approx(0.2, abs=0.02)
        assert np.mean(p == 1) == pytest.approx(0.3, abs=0.02)


class TestPrior:
    """Draws of the prior have the prior's distribution, whatever the data are."""

    def test_one_agent(self):
        """μ is uniform, pass^1 of a new task is μ, and the prior of ρ that was given is drawn from."""
        data = estimate(counts({"solo": UNEQUAL}), Hierarchical(rho=stats.beta(2, 5)), k=(1, 3)).to_arviz()
        prior = stacks.group(data, "prior")
        assert stats.kstest(prior["mu"].values.ravel(), "uniform").pvalue > 1e-4
        assert stats.kstest(prior["rho"].values.ravel(), stats.beta(2, 5).cdf).pvalue > 1e-4
        new = prior["pass_pow_k"].sel(estimand="population", k=1)
        np.testing.assert_allclose(new, prior["mu"], atol=1e-5)

    def test_crossed(self, crossed):
        """θ is logistic and σ half-normal, and agents share the difficulty of the tasks."""
        prior = stacks.group(crossed[1], "prior")
        assert stats.kstest(prior["theta"].values.ravel()[::2], "logistic").pvalue > 1e-4
        assert stats.kstest(prior["sigma"].values.ravel(), stats.halfnorm(scale=2).cdf).pvalue > 1e-4
        hard = prior.where(prior["sigma"] > 3)["p"]
        first, second = (hard.sel(agent=agent).values.ravel() for agent in ("v1", "v2"))
        known = ~np.isnan(first)
        assert stats.spearmanr(first[known], second[known]).statistic > 0.3

    def test_inflated(self):
        """A new task's mean is what never, always and the rest make of it: 1/6 + 4/6 · 1/2 = 1/2, and many p are 0."""
        prior = stacks.group(made(Hierarchical(inflate=True))[1], "prior")
        assert float(np.mean(prior["p"] == 0)) == pytest.approx(1 / 6, abs=0.05)
        assert float(prior["pass_pow_k"].sel(estimand="population", k=1).mean()) == pytest.approx(0.5, abs=0.02)


class TestTools:
    """ArviZ's own plots and statistics run on the default estimate, and say what ours say."""

    def test_plots_of_the_posterior_and_of_replicated_data(self, crossed):
        """`plot_posterior` and `plot_ppc` in 0.x, `plot_dist` and `plot_ppc_dist` in 1.x, and `plot_loo_pit`."""
        import matplotlib.pyplot as plt

        az, data = stacks.arviz(), crossed[1]
        if stacks.is_major_one():
            az.plot_dist(data, var_names=["pass_pow_k"])
            az.plot_ppc_dist(data)
            az.plot_ppc_dist(data, group="prior_predictive")
            az.plot_loo_pit(data)
        else:
            az.plot_posterior(data, var_names=["pass_pow_k"], ref_val=0.5, rope=(0.4, 0.6))
            az.plot_ppc(data, num_pp_samples=20)
            az.plot_ppc(data, group="prior", num_pp_samples=20)
            az.plot_loo_pit(data, y="successes")
        plt.close("all")

    def test_loo_comparison_and_sensitivity(self, crossed):
        """`loo`, `compare` and `psens` (0.23) or `psense` (1.x) take the groups as they are."""
        az, data = stacks.arviz(), crossed[1]
        assert np.isfinite(az.loo(data).elpd if stacks.is_major_one() else az.loo(data).elpd_loo)
        table = az.compare({"crossed": data, "hierarchical": made(Hierarchical())[1]})
        assert set(table.index) == {"crossed", "hierarchical"}
        for component in ("prior", "likelihood"):
            if stacks.is_major_one():
                found = az.psense(data, group=component, var_names=["pass_pow_k"])["pass_pow_k"]
            else:
                found = az.psens(data, component=component, var_names=["pass_pow_k"])
            assert np.isfinite(np.asarray(found)).all()

    def test_summary_is_ours(self, crossed):
        """`az.summary` has our means within four Monte-Carlo errors."""
        est, data = crossed
        posterior = stacks.group(data, "posterior")
        for row in est.to_pandas().to_dict("records"):
            name = "pass_pow_k" if "^" in row["metric"] else "pass_at_k"
            draws = posterior[name].sel(agent=row["agent"], estimand=row["estimand"], k=row["k"])
            assert float(draws.mean()) == pytest.approx(row["mean"], abs=4 * row["sd"] / np.sqrt(2000))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table = stacks.arviz().summary(data, var_names=["pass_pow_k"])
        shown = table["mean"].astype(float).to_numpy().reshape(2, 2, 2)
        np.testing.assert_allclose(shown, posterior["pass_pow_k"].mean(("chain", "draw")), atol=0.006)

    def test_a_file_keeps_every_group(self, crossed, tmp_path):
        """Written and read by ArviZ or by xarray, nothing changes; each group is plain netCDF."""
        import xarray as xr

        path = tmp_path / "draws.nc"
        crossed[1].to_netcdf(path, engine="h5netcdf")
        for group in GROUPS:
            with xr.open_dataset(path, group=group, engine="h5netcdf") as found:
                for name, values in stacks.group(crossed[1], group).data_vars.items():
                    np.testing.assert_array_equal(found[name], values)
        loaded = stacks.arviz().from_netcdf(path)
        assert names(loaded) == GROUPS
