"""Judged comparisons are paired: the crossed model sums over what may be true, and error rates are coordinates."""

import numpy as np
import pandas as pd
import pytest
from fits import EVERY, STRONGER, UNEQUAL, WEAKER, counts, stats_of
from scipy import stats

from agentic_bayes.decisions.compare import compare
from agentic_bayes.errors import EstimateError
from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.engines.importance.judged import JudgedTarget
from agentic_bayes.estimation.estimate import Estimate, estimate
from agentic_bayes.estimation.methods.judge_labels import JudgeLabels
from agentic_bayes.estimation.methods.judged_likelihood import JudgedCrossedLikelihood
from agentic_bayes.estimation.methods.options import Crossed

TWO = {"a": ((3, 3), (1, 3), (2, 3), (0, 2)), "b": ((2, 3), (0, 3), (3, 3), (2, 2))}
# on task 1 of agent a two attempts are labelled, a hit and a false alarm; on task 4 of agent b one, a hit
NAMED = JudgeLabels(2, 0, 0, 1, (("a", "task 1", 2, 1, 2, 1), ("b", "task 4", 1, 1, 1, 1)))
ELSEWHERE = JudgeLabels(6, 1, 4, 2)
NODES = np.arange(-8, 8.01, 0.1)
WEIGHT = stats.norm.pdf(NODES) / stats.norm.pdf(NODES).sum()


def cell_probability(c, n, mu, rho, rates, labelled=(0, 0, 0)):
    """Of a cell at every node of δ: labelled attempts are true, the others a mixture over true passes."""
    (s1, s0), (total, right, passed) = rates, labelled
    c, n, kappa = c - passed, n - total, 1 / rho - 1
    a, b = mu * kappa, (1 - mu) * kappa
    seen = stats.betabinom.pmf(right, total, a, b)
    found = 0.0
    for z in range(n + 1):
        verdict = sum(stats.binom.pmf(k, z, s1) * stats.binom.pmf(c - k, n - z, 1 - s0) for k in range(c + 1))
        found = found + stats.betabinom.pmf(z, n, a + right, b + total - right) * verdict
    return seen * found


def log_likelihood(theta, sigma, rho, rates, labelled):
    """Of `TWO` by SciPy, δ on a fine grid."""
    found = 0.0
    for task in range(4):
        both = 1.0
        for agent, name in enumerate(TWO):
            mu = 1 / (1 + np.exp(-(theta[agent] + sigma * NODES)))
            part = labelled.get((name, task), (0, 0, 0))
            both = both * cell_probability(*TWO[name][task], mu, rho[agent], rates[agent], part)
        found += np.log(both @ WEIGHT)
    return found


class TestTheLikelihood:
    """Against SciPy's own probabilities."""

    @pytest.mark.parametrize("labels", [ELSEWHERE, NAMED])
    def test_against_brute_force(self, labels):
        """Differences of log likelihoods between random draws; labelled attempts leave the judge's counts."""
        rng = np.random.default_rng(1)
        theta, sigma, rho = rng.normal(size=(5, 2)), rng.uniform(0.2, 3, 5), rng.uniform(0.05, 0.9, (5, 2))
        own = rng.uniform(0.55, 0.98, (2, 5, 2 if labels is NAMED else 1))
        made = JudgedCrossedLikelihood(Counts.of(counts(TWO)), labels)
        found = made(theta, sigma, rho, 1 - rho, *made.confusions(*own))
        known = {("a", 0): (2, 1, 2), ("b", 3): (1, 1, 1)} if labels is NAMED else {}
        columns = (0, 1) if labels is NAMED else (0, 0)
        wanted = [log_likelihood(theta[i], sigma[i], rho[i], [own[:, i, j] for j in columns], known) for i in range(5)]
        assert found - found[0] == pytest.approx(np.array(wanted) - wanted[0], abs=2e-4)

    @pytest.mark.parametrize("labels", [ELSEWHERE, NAMED, JudgeLabels(sensitivity=0.9, specificity=0.8)])
    @pytest.mark.parametrize("pooled", [False, True])
    def test_slopes(self, labels, pooled):
        """The gradient is that of the log density, in every coordinate."""
        target = JudgedTarget(Counts.of(counts(TWO)), Crossed(pool_agents=pooled), labels)
        u = target.start() + 0.3 * np.random.default_rng(2).normal(size=target.dim)
        shifts = 0.01 * np.eye(target.dim)
        slope = (target(u + shifts) - target(u - shifts)) / 0.02
        assert target.with_slope(u[None])[1][0] == pytest.approx(slope, abs=0.02)


@pytest.fixture(scope="module")
def plain():
    """Two agents on twelve tasks, without a judge's errors."""
    return estimate(counts({"v1": WEAKER, "v2": STRONGER}), k=(1, 3))


class TestThePosterior:
    """Against weights of draws from the prior."""

    @pytest.mark.parametrize("named", [False, True])
    def test_against_draws_from_the_prior(self, named):
        """Two agents of four tasks, rates fixed or of each agent: means agree within Monte-Carlo error."""
        rng, size = np.random.default_rng(3), 16_000
        theta, sigma = rng.logistic(size=(size, 2)), 2 * np.abs(rng.normal(size=size))
        rho = np.where(rng.random((size, 2)) < 0.25, rng.beta(1, 300, (size, 2)), rng.random((size, 2)))
        labels = NAMED if named else JudgeLabels(sensitivity=0.9, specificity=0.8)
        rates, said = np.array([0.9, 0.8])[:, None, None] * np.ones((2, size, 1)), 0.0
        if named:
            middle, tau = rng.beta(2, 1, (2, size, 1)), 2 * np.abs(rng.normal(size=(2, size, 1)))
            rates = 1 / (1 + np.exp(-(np.log(middle / (1 - middle)) + tau * rng.normal(size=(2, size, 2)))))
            said = np.log(rates[0, :, 0] * (1 - rates[1, :, 0]) * rates[0, :, 1])  # hit, false alarm; hit
        made = JudgedCrossedLikelihood(Counts.of(counts(TWO)), labels)
        logs = made(theta, sigma, np.maximum(rho, 1e-9), 1 - rho, *made.confusions(*rates)) + said
        weight = np.exp(logs - logs.max())
        weight /= weight.sum()
        mu = (1 / (1 + np.exp(-(theta[:, :, None] + sigma[:, None, None] * NODES)))) @ WEIGHT
        rows = [("a", "task 1", 1, 1), ("a", "task 1", 1, 0), ("b", "task 4", 1, 1)]
        table = pd.DataFrame(rows, columns=["agent", "task", "judge", "human"])
        given = table if named else {"sensitivity": 0.9, "specificity": 0.8}
        found = estimate(counts(TWO), judge_labels=given, k=1).posterior
        error = 4 * np.sqrt(np.sum(weight**2) + np.sum(found.weight**2))
        for agent in (0, 1):
            got = stats_of(found, agent, "population", "pass^1")
            assert got.mean == pytest.approx(weight @ mu[:, agent], abs=error * got.sd + 0.002)
            if named:
                for rate, drawn in zip(found.judge_rates(0.95)["ab"[agent]], rates[:, :, agent], strict=True):
                    assert rate.mean == pytest.approx(weight @ drawn, abs=error * rate.sd + 0.004)
                    assert rate.sd == pytest.approx(np.sqrt(weight @ drawn**2 - (weight @ drawn) ** 2), rel=0.15)

    @pytest.mark.parametrize("rate", [1 - 1e-9, 1])
    def test_a_perfect_judge_changes_nothing(self, plain, rate):
        """Rates fixed at 1 give the same bits; next to 1 the same numbers up to another set of points."""
        judged = estimate(plain.outcomes, k=(1, 3), judge_labels={"sensitivity": rate, "specificity": rate})
        error = 0 if rate == 1 else 0.004
        for column in ("mean", "lower", "upper"):
            wanted = plain.summary().query("estimand == 'population'")[column]
            got = judged.summary().query("estimand == 'population'")[column]
            assert got.to_numpy() == pytest.approx(wanted.to_numpy(), abs=error)

    def test_rates_that_cannot_be(self):
        """A judge that passes every right attempt and rejects none cannot have failed one."""
        with pytest.raises(EstimateError, match="cannot give these counts"):
            estimate(counts(TWO), "crossed", judge_labels={"sensitivity": 1, "specificity": 0})

    def test_long_tasks(self):
        """Beyond fifty trials `auto` takes the hierarchical method and says why; asked for, crossed is refused."""
        data, fixed = counts({"a": ((30, 60),) * 3, "b": ((20, 60),) * 3}), {"sensitivity": 0.9, "specificity": 0.8}
        assert "more than 50 trials" in estimate(data, judge_labels=fixed, k=1).note
        with pytest.raises(EstimateError, match="at most 50 trials, the largest has 60: method='hierarchical'"):
            estimate(data, "crossed", judge_labels=fixed, k=1)

    def test_many_tasks_of_one_pattern(self):
        """Beyond a hundred equal tasks their mean is scaled up: close to the one of a hundred, and narrower."""
        fixed = {"sensitivity": 0.9, "specificity": 0.8}
        few, many = (
            stats_of(
                estimate(counts({"a": ((2, 3),) * size, "b": ((1, 3),) * size}), judge_labels=fixed, k=1).posterior,
                0,
                "tasks",
                "pass^1",
            )
            for size in (90, 180)
        )
        assert many.mean == pytest.approx(few.mean, abs=0.02)
        assert many.sd < few.sd


@pytest.fixture(scope="module")
def est():
    """Two agents on twelve tasks, labels from elsewhere."""
    pairs = [(1, 1)] * 30 + [(0, 1)] * 2 + [(0, 0)] * 10 + [(1, 0)] * 6
    labels = pd.DataFrame(pairs, columns=["judge", "human"])
    return estimate(counts({"v1": WEAKER, "v2": STRONGER}), judge_labels=labels, k=(1, 3))


class TestTheEstimate:
    """What `estimate(judge_labels=…)` gives for agents on the same tasks."""

    def test_auto_pairs(self, est):
        """It is the crossed method, and comparisons are paired; asked for, the exact engine is unpaired."""
        assert est.method == Crossed()
        assert est.diagnostics.passed
        found = compare(est, "v2", baseline="v1")
        assert "agents are not paired" not in str(found)
        assert "judge error estimated from 48 labels" in str(found)
        exact = estimate(est.outcomes, engine="quadrature", judge_labels={"sensitivity": 0.9, "specificity": 0.8})
        assert exact.method.name == "hierarchical"

    def test_uncorrected_is_the_plain_estimate(self, est, plain):
        """The same bits as without labels."""
        pd.testing.assert_frame_equal(est.uncorrected.summary(), plain.summary())

    def test_saved_and_loaded(self, est, tmp_path):
        """A file holds labels and points, with their rates, and gives the same numbers."""
        again = Estimate.load(est.save(tmp_path / "judged.nc"))
        pd.testing.assert_frame_equal(again.summary(**EVERY), est.summary(**EVERY))
        pd.testing.assert_frame_equal(again.judge_error(), est.judge_error())

    @pytest.mark.stack
    def test_draws_for_arviz(self, est):
        """Rates and every task's p are among the draws; replicated counts are the judge's."""
        groups = est.to_arviz()
        assert groups["posterior"]["sensitivity"].shape == (4, 1000)
        assert groups["posterior"]["p"].shape == (4, 1000, 2, 12)
        replicated = groups["posterior_predictive"]["successes"].mean(("chain", "draw"))
        observed = est.counts.successes[est.counts.scored]
        assert float(replicated.sum()) == pytest.approx(observed.sum(), rel=0.15)

    def test_rates_per_agent(self):
        """Labels that name agents give each its own rates; more than three agents are left to the exact engine."""
        rows = [
            {"agent": agent, "task": "task 1", "trial": i, "judge": 1, "human": int(i > 0)}
            for agent in ("v1", "v2")
            for i in range(4 if agent == "v2" else 1)
        ]
        data = counts({"v1": STRONGER[2:], "v2": STRONGER[1:-1]})
        found = estimate(data, judge_labels=pd.DataFrame(rows[:4]), k=1)
        assert found.method == Crossed()
        assert found.posterior.hyper_draws()["sensitivity"].shape == (4000, 2)
        assert found.judge_error()["agent"].tolist() == ["v1", "v1", "v2", "v2"]
        four = counts(dict.fromkeys(("v1", "v2", "v3", "v4"), STRONGER[2:]))
        label = pd.DataFrame([{"agent": "v1", "task": "task 1", "judge": 1, "human": 1}])
        assert "each of 4 agents has its own judge error rates" in estimate(four, judge_labels=label, k=1).note

    def test_one_agent_agrees_with_the_exact_engine(self):
        """Whose difficulties are part of its scatter: about the same numbers from the hierarchical model."""
        fixed = {"sensitivity": 0.9, "specificity": 0.8}
        both = (
            estimate(counts({"solo": UNEQUAL}), name, judge_labels=fixed, k=1) for name in ("crossed", "hierarchical")
        )
        one, other = (stats_of(found.posterior, 0, "population", "pass^1") for found in both)
        assert one.mean == pytest.approx(other.mean, abs=0.03)


@pytest.mark.slow
@pytest.mark.stack
def test_against_nuts():
    """The same model in PyMC, true passes summed over: means within .1 sd and ends within .2 sd."""
    import pymc as pm
    import pytensor.tensor as pt

    data = Counts.of(counts(TWO))
    fixed = {"sensitivity": 0.9, "specificity": 0.8}
    with pm.Model():
        theta = pm.Logistic("theta", 0, 1, shape=2)
        sigma, delta = pm.HalfNormal("sigma", 2), pm.Normal("delta", 0, 1, shape=4)
        rho = pm.Uniform("rho", 0, 1, shape=2)
        mu = pm.math.sigmoid(theta[:, None] + sigma * delta)
        kappa = (1 / pm.math.clip(rho, 1e-6, 1 - 1e-6) - 1)[:, None]
        total = 0.0
        for agent in (0, 1):
            for task in range(4):
                c, n = int(data.successes[agent, task]), int(data.trials[agent, task])
                a, b = mu[agent, task] * kappa[agent, 0], (1 - mu[agent, task]) * kappa[agent, 0]
                terms = []
                for true in range(n + 1):
                    seen = sum(
                        stats.binom.pmf(k, true, 0.9) * stats.binom.pmf(c - k, n - true, 0.2) for k in range(c + 1)
                    )
                    terms.append(pm.logp(pm.BetaBinomial.dist(n=n, alpha=a, beta=b), true) + np.log(seen))
                total += pt.logsumexp(pt.stack(terms))
        pm.Potential("verdicts", total)
        trace = pm.sample(2000, tune=2000, chains=2, cores=1, random_seed=1, target_accept=0.95, progressbar=False)
    found = estimate(counts(TWO), Crossed(rho=stats.uniform(0, 1)), judge_labels=fixed, k=1).posterior
    for agent in (0, 1):
        drawn = trace.posterior["theta"].values[..., agent].ravel()
        mean = found.weight @ found.theta[:, agent]
        assert mean == pytest.approx(drawn.mean(), abs=0.1 * drawn.std())
        order = np.argsort(found.theta[:, agent])
        cumulative = np.cumsum(found.weight[order])
        for q in (0.025, 0.975):
            end = found.theta[order[np.searchsorted(cumulative, q)], agent]
            assert end == pytest.approx(np.quantile(drawn, q), abs=0.2 * drawn.std())
