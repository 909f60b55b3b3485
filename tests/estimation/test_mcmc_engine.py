"""The PyMC engine: the model as people can extend it, and the gate that NUTS must pass."""

import dataclasses
import json
import re
from functools import partial

import numpy as np
import pytest
from fits import EVERY, NEVER, STRONGER, UNEQUAL, WEAKER, counts, fit_two
from scipy import optimize, stats

from agentic_bayes.decisions.compare import compare
from agentic_bayes.decisions.tiers import classify
from agentic_bayes.errors import EstimateError, NotConverged, OutcomesError
from agentic_bayes.estimation.engines import nuts as mcmc
from agentic_bayes.estimation.engines.diagnostics import Diagnostics
from agentic_bayes.estimation.estimate import Estimate, estimate
from agentic_bayes.estimation.io import stacks
from agentic_bayes.estimation.methods.options import Crossed, Hierarchical
from agentic_bayes.reports.tables import estimate_tables

pytestmark = pytest.mark.stack

TWO = counts({"v1": WEAKER, "v2": STRONGER})


def log_betabinomial(mu, rho):
    """Log likelihood of TWO by SciPy."""
    mu, kappa = np.asarray(mu)[:, None], 1 / np.asarray(rho)[:, None] - 1
    c, n = TWO["successes"].values, TWO["trials"].values
    return stats.betabinom.logpmf(c, n, mu * kappa, (1 - mu) * kappa).sum()


def log_density(model):
    """Log density of a model on the natural scale of its variables."""
    return model.compile_logp(jacobian=False, mode="FAST_COMPILE")


def rho_at(z):
    """The default prior's quantile function at Φ(z), found from the mixture's SciPy distribution functions."""
    near, p = stats.beta(1, 300), stats.norm.cdf(z)
    return np.array([optimize.brentq(lambda x, q=q: 0.75 * x + 0.25 * near.cdf(x) - q, 0, 1, xtol=1e-14) for q in p])


class TestBuildModel:
    """The hierarchical model, once, as a `pymc.Model`."""

    def test_names_and_dims(self):
        """Variables carry the model's names and the dims agent and task with the outcomes' labels."""
        model = mcmc.build_model(TWO)
        assert {v.name for v in model.free_RVs} == {"m", "tau", "z", "rho_z"}
        assert {v.name for v in model.deterministics} >= {"mu", "rho", "kappa"}
        assert [v.name for v in model.observed_RVs] == ["successes"]
        dims = {name: tuple(found) for name, found in model.named_vars_to_dims.items()}
        assert dims["mu"] == dims["rho"] == dims["kappa"] == dims["z"] == ("agent",)
        assert dims["successes"] == ("agent", "task")
        assert list(model.coords["agent"]) == ["v1", "v2"]
        assert list(model.coords["task"])[:2] == ["task 1", "task 2"]

    @pytest.mark.parametrize("outcomes", [TWO, counts({"solo": UNEQUAL})], ids=["unpooled", "one agent"])
    def test_without_sharing_there_is_no_agent_level(self, outcomes):
        """With one agent, or unpooled agents, there is no m and no τ."""
        model = mcmc.build_model(outcomes, method=Hierarchical(pool_agents=False))
        assert {v.name for v in model.free_RVs} == {"logit_mu", "rho_z"}
        alone = mcmc.build_model(counts({"solo": UNEQUAL}))
        assert {v.name for v in alone.free_RVs} == {"logit_mu", "rho_z"}

    def test_pooled_log_density_is_the_one_written_down(self):
        """The pooled model's log density is that of the documented formulas written with SciPy, at random points."""
        density, generator = log_density(mcmc.build_model(TWO)), np.random.default_rng(0)
        for _ in range(5):
            m, tau, (z, rho_z) = generator.normal(), generator.gamma(2), generator.normal(size=(2, 2))
            found = density({"m": m, "tau_log__": np.log(tau), "z": z, "rho_z": rho_z})
            by_hand = stats.logistic.logpdf(m) + stats.halfnorm.logpdf(tau) + stats.norm.logpdf([z, rho_z]).sum()
            by_hand += log_betabinomial(1 / (1 + np.exp(-(m + tau * z))), rho_at(rho_z))
            assert float(found) == pytest.approx(by_hand, rel=1e-5)

    def test_unpooled_log_density_is_the_one_written_down(self):
        """Without the agent level logit μ has the standard logistic density."""
        density = log_density(mcmc.build_model(TWO, method=Hierarchical(pool_agents=False)))
        generator = np.random.default_rng(1)
        for _ in range(5):
            theta, rho_z = generator.normal(0, 2, size=2), generator.normal(size=2)
            found = density({"logit_mu": theta, "rho_z": rho_z})
            by_hand = stats.logistic.logpdf(theta).sum() + stats.norm.logpdf(rho_z).sum()
            by_hand += log_betabinomial(1 / (1 + np.exp(-theta)), rho_at(rho_z))
            assert float(found) == pytest.approx(by_hand, rel=1e-5)

    @pytest.mark.filterwarnings("ignore:Numba will use object mode:UserWarning")
    def test_it_can_be_extended_and_drawn_from(self):
        """A covariate or another prior can be added in the model's context, and draws carry the dims."""
        import pymc as pm

        with mcmc.build_model(TWO) as model:
            pm.Normal("effect", 0, 1, dims="task")
            drawn = stacks.group(pm.sample_prior_predictive(draws=20, random_seed=0), "prior")
        assert "effect" in {v.name for v in model.free_RVs}
        assert drawn["effect"].sizes["task"] == 12
        assert drawn["mu"].dims == ("chain", "draw", "agent")
        assert ((drawn["rho"] > 0) & (drawn["rho"] < 1)).all()

    def test_outcomes_are_checked(self):
        """What is not valid outcomes does not become a model."""
        with pytest.raises(OutcomesError, match="successes must not exceed trials"):
            mcmc.build_model(counts({"a": [(3, 2)]}))


class TestNuts:
    """What `engine="pymc"` keeps of a run."""

    def test_diagnostics_are_kept_and_passed(self):
        """A fit that converged says so, with four chains of 1,000 draws."""
        est = fit_two("pymc")
        assert est.diagnostics.passed
        assert est.diagnostics.draws == 4000
        assert est.diagnostics.rhat < 1.01
        assert str(est.diagnostics).startswith("converged (R-hat 1.0")
        assert repr(est).endswith(", converged")
        assert {"diverging", "step_size"} <= set(est.sample_stats.data_vars)

    def test_a_task_never_attempted_weighs_nothing(self):
        """Eleven cells without a trial beside one task leave the posterior proper, and sampling converges."""
        assert fit_two("pymc", ((7, 10),) + (NEVER,) * 11, ((0, 1),) + (NEVER,) * 11).diagnostics.passed


@pytest.fixture(scope="module")
def rushed():
    """An estimate from a sampler that was given next to no time to adapt."""
    patch = pytest.MonkeyPatch()
    patch.setattr(mcmc, "fit", partial(mcmc.fit, tune=5, target_accepts=(0.3, 0.35)))
    try:
        with pytest.warns(NotConverged, match=r"NOT CONVERGED: .*\(R-hat"):
            return estimate(TWO, "hierarchical", engine="pymc", k=(1, 3))
    finally:
        patch.undo()


class TestNotConverged:
    """A fit that fails its own diagnostics says so in everything made from it."""

    def test_every_number_is_flagged(self, rushed):
        """Each row of the summary is flagged, those of single tasks too; the baseline needs no sampler and is not."""
        assert rushed.summary(**EVERY)["flags"].str.contains("not_converged").all()
        assert not rushed.baseline(columns="all")["flags"].str.contains("not_converged").any()

    def test_words_for_people_say_so(self, rushed):
        """Representation, tables and comparisons carry the warning."""
        assert repr(rushed).endswith(", NOT CONVERGED")
        assert "NOT CONVERGED" in rushed._repr_html_()
        for table in estimate_tables(rushed):
            assert "* not_converged: the sampler did not converge: do not use these numbers" in table.notes
        found = compare(rushed, "v2", baseline="v1", tasks="own")  # their shared tasks alone would be sampled anew
        assert "not_converged" in found.flags
        assert "[not_converged, " in str(found)

    def test_the_saved_file_says_so(self, rushed, tmp_path):
        """A file keeps the diagnostics, and what is loaded from it is as doubtful as what was saved."""
        loaded = Estimate.load(rushed.save(tmp_path / "fit.nc"))
        assert loaded.diagnostics == rushed.diagnostics
        assert repr(loaded).endswith(", NOT CONVERGED")
        assert loaded.summary(**EVERY)["flags"].str.contains("not_converged").all()
        assert json.loads(rushed.to_arviz(tasks=False).attrs["agentic_bayes"])["not_converged"] is True

    def test_the_last_try_is_reported(self, rushed):
        """The sampler was run again at the next acceptance rate before it gave up."""
        assert rushed.diagnostics.target_accept == 0.35
        assert classify(rushed, "v1")  # doubtful numbers can be looked at, with their flags


class TestDiagnostics:
    """The gate: R-hat < 1.01, ESS > 400, divergences ≤ .1 % of draws."""

    GOOD = Diagnostics(rhat=1.001, ess_bulk=2000, ess_tail=1500, divergences=0, draws=4000, target_accept=0.97)

    @pytest.mark.parametrize(
        ("change", "problem"),
        [
            ({"rhat": 1.01}, r"R-hat 1\.010 \(must be < 1\.01\)"),
            ({"rhat": float("nan")}, r"R-hat nan"),
            ({"ess_bulk": 400}, r"bulk ESS 400 \(must be > 400\)"),
            ({"ess_tail": 399.6}, r"tail ESS 400 \(must be > 400\)"),
            ({"divergences": 5}, r"5 divergences in 4000 draws \(at most 4\)"),
        ],
    )
    def test_each_number_at_its_limit_fails(self, change, problem):
        """A value at or beyond its limit, or undefined, is a problem that is put into words."""
        failed = dataclasses.replace(self.GOOD, **change)
        assert not failed.passed
        assert len(failed.problems) == 1
        assert re.search(problem, failed.problems[0])
        assert re.search(f"NOT CONVERGED: {problem}", str(failed))

    def test_a_few_divergences_are_allowed(self):
        """Four divergences in 4,000 draws are .1 %."""
        assert dataclasses.replace(self.GOOD, divergences=4).passed
        assert self.GOOD.passed


def test_a_sampler_that_cannot_begin_is_one_error(monkeypatch):
    """What NUTS says when no place to start has a finite density is said, without its stack."""

    def refuse(*_, **__):
        raise RuntimeError("All initialization points failed\n\nCaused by: ErrorCode(4)")

    monkeypatch.setattr("nutpie.sample", refuse)
    with pytest.raises(EstimateError, match=r"^NUTS cannot sample these outcomes: All initialization points failed$"):
        mcmc.fit(TWO, Hierarchical())


def test_the_model_is_compiled_in_strict_arithmetic(monkeypatch):
    """No sum is reordered by the compiler: a model compiled anew and one from the cache give the same draws."""
    import nutpie
    from pytensor.configdefaults import config

    seen = []
    monkeypatch.setattr(nutpie, "compile_pymc_model", lambda model: seen.append(config.numba__fastmath))
    mcmc._compiled.__wrapped__(2, 3, json.dumps(Crossed().record()))
    assert seen == [False]
