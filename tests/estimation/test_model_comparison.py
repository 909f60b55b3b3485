"""LOO, model comparison and prior sensitivity in ArviZ, from draws of every engine and on both stacks."""

import warnings
from functools import cache

import numpy as np
import pytest
import xarray as xr
from fits import STRONGER, UNEQUAL, WEAKER, counts, fit, fit_two
from scipy import stats
from scipy.special import logsumexp

from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.engines.nuts import build_model
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.io import stacks
from agentic_bayes.estimation.methods.crossed import CrossedLikelihood
from agentic_bayes.estimation.methods.options import Conjugate, Crossed, Hierarchical

# ArviZ 0.23 sorts its table in a way that pandas 3.1 announces to give up
pytestmark = [pytest.mark.stack, pytest.mark.filterwarnings("ignore:The inplace keyword:")]


TWO = counts({"v1": WEAKER, "v2": STRONGER})


@cache
def arviz(est):
    """Its draws, made once."""
    return est.to_arviz()


@cache
def two(method):
    """The estimate of two agents by a method."""
    return fit_two("quadrature") if method == Hierarchical() else estimate(TWO, method, k=1)


def groups(est):
    """Log likelihood and log prior of an estimate."""
    data = arviz(est)
    return stacks.group(data, "log_likelihood"), stacks.group(data, "log_prior")


def elpd(data):
    """Expected log predictive density, cell by cell, and the largest Pareto k."""
    found = stacks.arviz().loo(data, pointwise=True)
    pointwise = found.loo_i if hasattr(found, "loo_i") else found.elpd_i
    return np.asarray(pointwise).ravel(), float(np.max(found.pareto_k))


def without(outcomes, agent, task):
    """The same outcomes with one cell never attempted."""
    reduced = outcomes.copy(deep=True)
    for name in reduced.data_vars:
        reduced[name].loc[{"agent": agent, "task": task}] = 0
    return reduced


class TestLogLikelihood:
    """One number per draw and scored cell, the probability of the cell's count with p integrated out."""

    @pytest.mark.parametrize("engine", ["quadrature", "pymc"])
    def test_it_is_the_beta_binomial_at_the_draws(self, engine):
        """Every value is SciPy's log probability at that draw's μ and ρ, over cells with a scored trial only."""
        est = fit_two(engine)
        likelihood, _ = groups(est)
        posterior = stacks.group(arviz(est), "posterior")
        assert dict(likelihood.sizes) == {"chain": 4, "draw": 1000, "cell": 22}
        assert not np.isnan(likelihood["successes"]).any()
        for label in ("v1 / task 2", "v2 / task 12"):
            agent, task = label.split(" / ")
            cell = est.outcomes.sel(agent=agent, task=task)
            mu, rho = (posterior[name].sel(agent=agent).values for name in ("mu", "rho"))
            kappa = 1 / rho - 1
            expected = stats.betabinom.logpmf(int(cell["successes"]), int(cell["trials"]), mu * kappa, (1 - mu) * kappa)
            np.testing.assert_allclose(likelihood["successes"].sel(cell=label), expected, atol=1e-5)

    def test_cells_without_a_scored_trial_are_left_out(self):
        """The two cells of v1 without a trial have no likelihood, under any method that has one."""
        for method in (Hierarchical(), Conjugate(pool_tasks=True), Hierarchical(inflate=True), Crossed()):
            likelihood, _ = groups(two(method))
            labels = likelihood["cell"].values.tolist()
            assert labels == [
                f"{agent} / task {i}"
                for agent in ("v1", "v2")
                for i in range(1, 13)
                if agent == "v2" or i not in (11, 12)
            ]
            assert np.isfinite(likelihood["successes"]).all()

    def test_it_is_pymcs(self):
        """PyMC computes the same log likelihood and log prior at the same draws of its own model."""
        import pymc as pm

        est = fit_two("pymc")
        likelihood, prior = groups(est)
        posterior = stacks.group(arviz(est), "posterior")
        part = posterior[["m", "tau", "rho", "mu"]].isel(draw=slice(0, 1000, 100))
        logit = np.log(part["mu"]) - np.log1p(-part["mu"])
        below = 0.75 * part["rho"] + 0.25 * stats.beta(1, 300).cdf(part["rho"])
        rho_z = below.copy(data=stats.norm.ppf(below))
        draws = part.drop_vars(["mu", "rho"]).assign(z=(logit - part["m"]) / part["tau"], rho_z=rho_z)
        data = stacks.from_groups({"posterior": draws}, {})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with build_model(est.outcomes):
                theirs = pm.compute_log_likelihood(data, progressbar=False, extend_inferencedata=False)
                their_prior = pm.compute_log_prior(data, progressbar=False, extend_inferencedata=False)
        ours = likelihood["successes"].isel(draw=slice(0, 1000, 100)).values
        scored = est.outcomes["trials"].values > 0
        # the tabulated quantile function in PyMC's model is within 6e-4 of the prior's own on the logit scale of ρ
        np.testing.assert_allclose(theirs["successes"].values[:, :, scored], ours, atol=3e-4)
        for name in ("m", "tau"):
            expected = their_prior[name].values
            np.testing.assert_allclose(prior[name].isel(draw=slice(0, 1000, 100)), expected, atol=1e-8)

    def test_pooled_tasks_are_binomial(self):
        """A conjugate estimate with pooled tasks has the binomial likelihood of each cell."""
        est = estimate(counts({"solo": UNEQUAL}), method=Conjugate(pool_tasks=True), k=1)
        likelihood, prior = groups(est)
        p = stacks.group(arviz(est), "posterior")["p"].values[:, :, 0, 0]
        expected = stats.binom.logpmf(2, 5, p)
        np.testing.assert_allclose(likelihood["successes"].sel(cell="solo / task 5"), expected, atol=1e-9)
        assert set(prior.data_vars) == {"logit_p"}

    def test_tasks_that_share_nothing_have_none(self):
        """Separate conjugate cells, and estimates without per-task values, come without these groups."""
        alone = estimate(counts({"solo": UNEQUAL}), method="conjugate", k=1).to_arviz()
        short = fit("quadrature", UNEQUAL).to_arviz(tasks=False)
        for data in (alone, short):
            names = set(data.groups() if callable(data.groups) else [name.strip("/") for name in data.groups])
            assert "log_likelihood" not in names
            assert "log_prior" not in names


def log_uniform(mu, rho):
    """The uniform prior of μ, on the logit scale."""
    return stats.logistic.logpdf(np.log(mu / (1 - mu)))


class TestLogPrior:
    """The log densities of the priors, and of nothing that belongs to the model."""

    def test_pooled_agents_have_m_tau_and_rho(self):
        """Logistic, half-normal and, mostly uniform with a quarter near 0, the mixture's densities at the draws."""
        est = fit_two("quadrature")
        _, prior = groups(est)
        posterior = stacks.group(arviz(est), "posterior")
        assert set(prior.data_vars) == {"m", "tau", "rho"}
        np.testing.assert_allclose(prior["m"], stats.logistic.logpdf(posterior["m"]))
        np.testing.assert_allclose(prior["tau"], stats.halfnorm.logpdf(posterior["tau"]))
        mixture = np.log(0.75 + 0.25 * stats.beta(1, 300).pdf(posterior["rho"]))
        np.testing.assert_allclose(prior["rho"], mixture)

    @pytest.mark.parametrize(
        ("method", "expected"),
        [
            (Hierarchical(), {"logit_mu": log_uniform, "rho": None}),
            (
                Hierarchical(mu=stats.beta(2, 3), pool_agents=False),
                {"mu": lambda mu, rho: stats.beta.logpdf(mu, 2, 3), "rho": None},
            ),
            (
                Hierarchical(rho=stats.beta(2, 5)),
                {"rho": lambda mu, rho: stats.beta.logpdf(rho, 2, 5), "logit_mu": None},
            ),
            (
                Hierarchical(kappa=stats.gamma(2)),
                {"kappa": lambda mu, rho: stats.gamma.logpdf(1 / rho - 1, 2), "logit_mu": None},
            ),
            (
                Hierarchical(kappa=lambda x: -1.5 * np.log(x)),
                {"kappa": lambda mu, rho: -1.5 * np.log(1 / rho - 1), "logit_mu": None},
            ),
        ],
        ids=["default", "mu", "rho", "kappa", "function of kappa"],
    )
    def test_priors_that_were_given(self, method, expected):
        """Each prior appears under the parameter that it is a prior of."""
        est = estimate(counts({"solo": UNEQUAL}), method, k=1)
        _, found = groups(est)
        posterior = stacks.group(arviz(est), "posterior")
        assert set(found.data_vars) == set(expected)
        for name, density in expected.items():
            if density is not None:
                values = density(posterior["mu"].values, posterior["rho"].values)
                np.testing.assert_allclose(found[name], values, rtol=1e-6, atol=1e-6)

    def test_crossed_and_inflated_models_have_their_own(self):
        """θ, σ and ρ for crossed; the weights of the point masses beside the others for inflated."""
        est = two(Crossed())
        _, crossed = groups(est)
        posterior = stacks.group(arviz(est), "posterior")
        assert set(crossed.data_vars) == {"theta", "sigma", "rho"}
        np.testing.assert_allclose(crossed["sigma"], stats.halfnorm(scale=2).logpdf(posterior["sigma"]))
        np.testing.assert_allclose(crossed["theta"], stats.logistic.logpdf(posterior["theta"]))
        _, inflated = groups(two(Hierarchical(inflate=True)))
        assert set(inflated.data_vars) == {"m", "tau", "rho", "weights"}
        assert float(inflated["weights"].max()) <= np.log(20)


class TestLeaveOneOut:
    """PSIS-LOO from the draws is what refitting without the cell gives."""

    def test_hierarchical(self):
        """All twelve cells of one agent: LOO within .05 of the exact prediction by a fit without that cell."""
        outcomes = counts({"solo": UNEQUAL})
        estimated, worst = elpd(arviz(fit("quadrature", UNEQUAL)))
        exact = []
        for i, (c, n) in enumerate(UNEQUAL):
            other = estimate(without(outcomes, "solo", f"task {i + 1}"), k=1).posterior.hyper_draws()
            mu, kappa = np.ravel(other["mu"]), 1 / np.ravel(other["rho"]) - 1
            pmf = stats.betabinom.pmf(c, n, mu * kappa, (1 - mu) * kappa)
            exact.append(np.log(pmf.mean()))
        assert worst < 0.7
        np.testing.assert_allclose(estimated, exact, atol=0.05)

    def test_crossed(self):
        """Cells of shared tasks are predicted from the other agent's counts on them, as by a fit without the cell."""
        outcomes, data = TWO, arviz(two(Crossed()))
        estimated, worst = elpd(data)
        labels = stacks.group(data, "log_likelihood")["cell"].values.tolist()
        assert worst < 0.7
        whole = CrossedLikelihood(Counts.of(outcomes.assign(unscored=outcomes["unscored"])))
        for label in ("v1 / task 1", "v2 / task 4", "v2 / task 11"):
            agent, task = label.split(" / ")
            reduced = without(outcomes, agent, task)
            other = estimate(reduced, method="crossed", k=1)
            drawn = (other.posterior.theta, other.posterior.sigma, other.posterior.rho, 1 - other.posterior.rho)
            gain = whole(*drawn) - CrossedLikelihood(other.counts)(*drawn)
            cell = outcomes.sel(agent=agent, task=task)
            c, n = int(cell["successes"]), int(cell["trials"])
            # the likelihood leaves out the binomial coefficient
            gain += stats.binom.logpmf(c, n, 0.5) + n * np.log(2)
            exact = logsumexp(gain) - np.log(gain.size)
            assert estimated[labels.index(label)] == pytest.approx(exact, abs=0.08)

    @pytest.mark.filterwarnings("ignore:Estimated shape parameter")  # k of the least certain cell is near .7
    def test_the_two_engines_agree(self):
        """Exact and sampled draws of one posterior have the same LOO within Monte-Carlo error.

        Over seeds the least certain cell varies by .03 with 4,000 independent draws, and NUTS has a quarter of these.
        """
        exact, sampled = (elpd(arviz(fit_two(engine)))[0] for engine in ("quadrature", "pymc"))
        np.testing.assert_allclose(exact, sampled, atol=0.2)
        assert exact.sum() == pytest.approx(sampled.sum(), abs=0.5)


def shared_difficulty():
    """Two agents on 40 tasks whose difficulty they share, 4 trials each."""
    rng = np.random.default_rng(0)
    difficulty = 2 * rng.standard_normal(40)
    cells = {}
    for agent, skill in (("v1", 0.0), ("v2", 0.8)):
        c = rng.binomial(4, 1 / (1 + np.exp(-(difficulty + skill))))
        cells[agent] = tuple((int(x), 4) for x in c)
    return counts(cells)


class TestArviz:
    """The tools of both stacks run on the output."""

    def test_comparison_ranks_models_by_what_they_predict(self):
        """Where agents share the tasks' difficulty, crossed predicts cells best and a single pooled rate worst."""
        outcomes = shared_difficulty()
        models = {
            "pooled": {"method": Conjugate(pool_tasks=True)},
            "hierarchical": {"method": "hierarchical"},
            "crossed": {"method": "crossed"},
        }
        table = stacks.arviz().compare(
            {name: estimate(outcomes, k=1, **how).to_arviz() for name, how in models.items()}
        )
        assert table.index.tolist() == ["crossed", "hierarchical", "pooled"]

    def test_power_scaling_finds_a_prior_that_drives_the_result(self):
        """A strong prior of ρ against the data moves with its power; the default prior hardly does."""
        az = stacks.arviz()
        outcomes = counts({"solo": UNEQUAL})
        sensitivity = []
        for method in (Hierarchical(), Hierarchical(rho=stats.beta(2, 60))):
            data = estimate(outcomes, method, k=1).to_arviz()
            if stacks.is_major_one():
                found = az.psense(data, group="prior", var_names=["rho"])["rho"]
                summary = az.psense_summary(data, var_names=["rho", "mu"])
                assert {"prior", "likelihood", "diagnosis"} <= set(summary.columns)
            else:
                found = az.psens(data, component="prior", var_names=["rho"])
            sensitivity.append(float(np.asarray(found).ravel()[0]))
        assert sensitivity[0] < 0.05 < sensitivity[1]

    def test_groups_survive_a_file(self, tmp_path):
        """What `to_arviz` gives can be written and read with everything in it."""
        data, path = arviz(fit("quadrature", UNEQUAL)), tmp_path / "draws.nc"
        data.to_netcdf(path, engine="h5netcdf")
        with xr.open_dataset(path, group="log_likelihood", engine="h5netcdf") as found:
            np.testing.assert_array_equal(found["successes"], stacks.group(data, "log_likelihood")["successes"])
            assert found["cell"].values[0] == "solo / task 1"
