"""Through a judge that errs: labels are read and checked, and the posterior is the one of the model."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from fits import EVERY, NEVER, STRONGER, UNEQUAL, WEAKER, counts, draws_of, stats_of
from scipy import stats
from scipy.special import betaln

from agentic_bayes.decisions.compare import compare
from agentic_bayes.decisions.gate import gate
from agentic_bayes.decisions.monitor import monitor
from agentic_bayes.decisions.plan import plan
from agentic_bayes.errors import EstimateError, InvalidArgument, UnknownName
from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.engines.grid.judge_rates import Rates, SharedRates
from agentic_bayes.estimation.engines.grid.judged import JudgedLikelihood, Kinds, fit_judged
from agentic_bayes.estimation.estimate import Estimate, estimate
from agentic_bayes.estimation.methods.judge_labels import JudgeLabels, judge_words, read_labels
from agentic_bayes.estimation.methods.judged import JudgedPosterior
from agentic_bayes.estimation.methods.options import Hierarchical
from agentic_bayes.formatting import format_number, metrics_at

CELLS = ((3, 3), (1, 3), (2, 3), (3, 4), (0, 2))
# 8 hits, 1 miss, 4 rejections, 3 false alarms in all; on task 1 two attempts are labelled, on task 4 one
LABELS = JudgeLabels(8, 1, 4, 3, (("solo", "task 1", 2, 1, 2, 1), ("solo", "task 4", 1, 1, 1, 1)))
KS = (1, 3)
METHOD = Hierarchical()


def labelled(hits=0, misses=0, rejections=0, false_alarms=0, **location):
    """Labels as a table."""
    pairs = [(1, 1)] * hits + [(0, 1)] * misses + [(0, 0)] * rejections + [(1, 0)] * false_alarms
    table = pd.DataFrame(pairs, columns=["judge", "human"])
    return table.assign(**location)


def posterior(cells, labels, *, method=None, **agents):
    """The judged posterior of one agent, or of several."""
    data = Counts.of(counts(agents or {"solo": cells}))
    fit = fit_judged(data, labels, method or Hierarchical())
    return JudgedPosterior(counts=data, random_seed=0, fit=fit.grids, metrics=metrics_at(KS), judged=fit, labels=labels)


UNIFORM = Hierarchical(rho=stats.uniform(0, 1))  # what the brute force's nodes are for
NODES = 30


@cache
def few(method):
    """The posterior of `CELLS` with `LABELS`."""
    return posterior(CELLS, LABELS, method=method)


class BruteForce:
    """The posterior on NODES⁴ Gauss-Legendre nodes of μ, ρ, s₁ and s₀, from SciPy's own probabilities.

    Of the attempts with labels three are known: two hits and a false alarm. The other thirteen are of those
    that the judge passed (6 right, 2 wrong) or failed (1 right, 4 wrong), and one attempt of a new task.
    """

    def __init__(self, clustering=0.0):
        self.clustering = clustering
        x, w = np.polynomial.legendre.leggauss(NODES)
        self.node, weight = (x + 1) / 2, w / 2
        mu, rho = np.meshgrid(self.node, self.node, indexing="ij")
        kappa = 1 / rho - 1
        self.a, self.b = mu * kappa, (1 - mu) * kappa
        log_mass, right_passed, right = np.zeros((3, NODES, NODES, NODES, NODES))
        for task in range(len(CELLS)):
            likelihood, _, passed, true = self.cell(task)
            log_mass += np.log(likelihood)
            right_passed += passed / likelihood
            right += true / likelihood
        m, s1, s0 = mu[:, :, None, None], self.node[:, None], self.node
        n_passed, n = sum(c for c, _ in CELLS) - 3, sum(n for _, n in CELLS) - 3
        passes = m * s1 + (1 - m) * (1 - s0)
        given_pass = (right_passed + m * s1) / (n_passed + passes)
        given_fail = (right - right_passed + m * (1 - s1)) / (n - n_passed + 1 - passes)
        log_mass += stats.binom.logpmf(6, 8, given_pass) + stats.binom.logpmf(1, 5, given_fail)
        rates = [stats.beta.pdf(self.node, *shape) * weight for shape in ((2 + 2, 1 + 0), (2 + 0, 1 + 1))]
        mass = np.exp(log_mass) * np.multiply.outer(np.outer(weight, weight), np.outer(*rates))
        self.mass = mass / mass.sum()

    def cell(self, task, k=0):
        """At every node: likelihood of a task's counts; times it, E p^k and the expected right attempts.

        These among the passed, and in all; human labels of known attempts aside.
        """
        c, n = CELLS[task]
        total, right, passed = {0: (2, 1, 2), 3: (1, 1, 1)}.get(task, (0, 0, 0))
        c, n = c - passed, n - total
        a, b = self.a + right, self.b + total - right
        seen = np.exp(betaln(a, b) - betaln(self.a, self.b))
        likelihood, weighted, passed, right = np.zeros((4, NODES, NODES, NODES, NODES))
        for z in range(n + 1):
            slipped = [
                np.outer(self.verdicts(j, z, self.node), self.verdicts(c - j, n - z, 1 - self.node))
                for j in range(c + 1)
            ]
            of_z = seen * stats.betabinom.pmf(z, n, a, b)
            part = np.multiply.outer(of_z, sum(slipped))
            power = np.exp(betaln(a + z + k, b + n - z) - betaln(a + z, b + n - z))
            likelihood += part
            weighted += part * power[:, :, None, None]
            right += z * part
            passed += np.multiply.outer(of_z, sum(j * one for j, one in enumerate(slipped)))
        return likelihood, weighted, passed, right

    def verdicts(self, j, n, p):
        """Probability of j of n."""
        if not self.clustering:
            return stats.binom.pmf(j, n, p)
        precision = 1 / self.clustering - 1
        return stats.betabinom.pmf(j, n, p * precision, (1 - p) * precision)


@pytest.fixture(scope="module")
def brute():
    """Integrated once."""
    return BruteForce()


class TestAgainstBruteForce:
    """Five tasks, three of their attempts labelled, thirteen labels from elsewhere."""

    def test_the_population(self, brute):
        """Mean and sd of pass^3 on a new task agree to 5e-6."""
        found = stats_of(few(UNIFORM), 0, "population", "pass^3")
        power = np.exp(betaln(brute.a + 3, brute.b) - betaln(brute.a, brute.b))
        mass = brute.mass.sum(axis=(2, 3))
        mean = (mass * power).sum()
        assert found.mean == pytest.approx(mean, abs=5e-6)
        assert found.sd == pytest.approx(np.sqrt((mass * power**2).sum() - mean**2), abs=5e-6)

    def test_errors_that_cluster_by_task(self):
        """With an intraclass correlation of the errors, verdicts are Beta-Binomial: mean and sd agree to 5e-6."""
        brute = BruteForce(0.25)
        found = stats_of(posterior(CELLS, replace(LABELS, clustering=0.25), method=UNIFORM), 0, "population", "pass^3")
        power = np.exp(betaln(brute.a + 3, brute.b) - betaln(brute.a, brute.b))
        mass = brute.mass.sum(axis=(2, 3))
        mean = (mass * power).sum()
        assert found.mean == pytest.approx(mean, abs=5e-6)
        assert found.sd == pytest.approx(np.sqrt((mass * power**2).sum() - mean**2), abs=5e-6)

    def test_the_rates(self, brute):
        """Posterior means of sensitivity and specificity agree to 5e-6; their intervals hold 95 %."""
        found = few(UNIFORM).judge_rates(0.95)[""]
        for axis, one in ((2, found[0]), (3, found[1])):
            marginal = brute.mass.sum(axis=tuple(i for i in range(4) if i != axis))
            assert one.mean == pytest.approx(marginal @ brute.node, abs=5e-6)
            inside = (brute.node > one.lower) & (brute.node < one.upper)
            assert marginal[inside].sum() == pytest.approx(0.95, abs=0.03)  # few nodes

    @pytest.mark.parametrize("task", range(5))
    def test_every_task(self, brute, task):
        """E p³ of a task, with and without labelled attempts, agrees to 5e-6."""
        likelihood, weighted, *_ = brute.cell(task, 3)
        means = stats_of(few(UNIFORM), 0, "task", "pass^3").mean
        assert means[task] == pytest.approx((brute.mass * weighted / likelihood).sum(), abs=5e-6)

    def test_the_mean_over_tasks(self):
        """It is the mean of the tasks' means, and draws agree within 4 standard errors."""
        made = few(METHOD)
        found, draws = stats_of(made, 0, "tasks", "pass^3"), draws_of(made, 0, "tasks", "pass^3")
        assert found.mean == pytest.approx(stats_of(made, 0, "task", "pass^3").mean.mean(), abs=1e-12)
        assert abs(draws.mean() - found.mean) <= 4 * found.sd / np.sqrt(draws.size)
        assert draws.std() == pytest.approx(found.sd, rel=0.06)

    def test_draws_of_the_population(self):
        """Draws have the exact mean and quantiles (4 standard errors)."""
        made = few(METHOD)
        found, draws = stats_of(made, 0, "population", "pass^3"), draws_of(made, 0, "population", "pass^3")
        assert abs(draws.mean() - found.mean) <= 4 * found.sd / np.sqrt(draws.size)
        for q, value in ((0.025, found.lower), (0.5, found.median), (0.975, found.upper)):
            assert abs(np.mean(draws <= value) - q) <= 4 * np.sqrt(q * (1 - q) / draws.size)

    def test_large_groups_of_equal_tasks(self):
        """1,000 tasks with the same counts: the mean over them has the exact sd, though only 100 are drawn."""
        made = posterior(((2, 3),) * 1000, JudgeLabels(sensitivity=0.9, specificity=0.8))
        found, draws = stats_of(made, 0, "tasks", "pass^3"), draws_of(made, 0, "tasks", "pass^3")
        assert abs(draws.mean() - found.mean) <= 4 * found.sd / np.sqrt(draws.size)
        assert draws.std() == pytest.approx(found.sd, rel=0.06)

    def test_a_finer_grid_changes_next_to_nothing(self):
        """Twice as fine a grid moves means by less than 1e-5."""
        data = Counts.of(counts({"solo": UNEQUAL}))
        means = []
        for fine in (1.0, 1.6):
            fit = fit_judged(data, LABELS_ELSEWHERE, Hierarchical(), fine=fine)
            made = JudgedPosterior(
                counts=data, random_seed=0, fit=fit.grids, metrics=metrics_at([3]), judged=fit, labels=LABELS_ELSEWHERE
            )
            means.append(stats_of(made, 0, "population", "pass^3").mean)
        assert means[0] == pytest.approx(means[1], abs=1e-5)


LABELS_ELSEWHERE = JudgeLabels(30, 2, 10, 6)


class TestLimits:
    """Judges that make no error, err by chance, or are not labelled at all."""

    def test_a_perfect_judge_changes_nothing(self):
        """Fixed rates of 1 and 1 reproduce the uncorrected estimate to the last bit, several agents too."""
        data = counts({"v1": WEAKER, "v2": STRONGER})
        plain, perfect = estimate(data), estimate(data, judge_labels={"sensitivity": 1, "specificity": 1})
        pd.testing.assert_frame_equal(
            perfect.summary(**EVERY)[plain.summary(**EVERY).columns],
            plain.summary(**EVERY),
        )

    def test_nearly_perfect_is_nearly_the_same(self):
        """The model itself goes over into the uncorrected one: rates of 1 - 1e-9 differ by less than 1e-6."""
        plain = estimate(counts({"solo": UNEQUAL}), k=KS)
        made = posterior(UNEQUAL, JudgeLabels(sensitivity=1 - 1e-9, specificity=1 - 1e-9))
        for estimand in ("population", "tasks"):
            one, other = (stats_of(p, 0, estimand, "pass^3") for p in (made, plain.posterior))
            assert (one.mean, one.sd) == pytest.approx((other.mean, other.sd), abs=1e-6)
            if estimand == "population":
                assert (one.lower, one.upper) == pytest.approx((other.lower, other.upper), abs=1e-5)

    def test_a_judge_at_chance_leaves_the_labelled_attempts_alone(self):
        """s₁ + s₀ = 1: the posterior is that of the true outcomes alone, and without any it is the prior."""
        cells = [(2, 4), (3, 4), (1, 4), (4, 4)]
        chance = JudgeLabels(sensitivity=0.6, specificity=0.4)
        prior = stats_of(posterior(cells, chance), 0, "population", "pass^1")
        assert (prior.mean, prior.sd) == pytest.approx((0.5, np.sqrt(1 / 12)), abs=1e-6)
        truths = enumerate(((2, 1, 1), (1, 1, 1), (0, 1, 0), (2, 2, 2)))  # right, judged right, and both
        located = tuple(("solo", f"task {i + 1}", 2, *numbers) for i, numbers in truths)
        told = JudgeLabels(located=located, sensitivity=0.6, specificity=0.4)
        alone = estimate(counts({"solo": [(2, 2), (1, 2), (0, 2), (2, 2)]}), k=KS)
        found = posterior(cells, told)
        for k in KS:
            one, other = (stats_of(p, 0, "population", f"pass^{k}") for p in (found, alone.posterior))
            assert (one.mean, one.sd) == pytest.approx((other.mean, other.sd), abs=1e-6)
        assert "chance_level_judge" in found.flags

    def test_nothing_leaves_the_unit_interval(self):
        """90 % judged right with rates of .7 (which cannot be): everything stays in [0, 1]."""
        est = estimate(
            counts({"solo": [(5, 5)] * 40 + [(0, 5)] * 5}), judge_labels={"sensitivity": 0.7, "specificity": 0.7}
        )
        table = est.summary(**EVERY)
        for name in ("mean", "median", "lower", "upper"):
            assert table[name].between(0, 1).all()
        assert (table["lower"] <= table["median"]).all()
        assert (table["median"] <= table["upper"]).all()

    def test_no_labels_at_all_say_so(self):
        """An empty table of labels: rates as wide as prior and repeats leave them, and a note that counts no label."""
        est = estimate(counts({"solo": UNEQUAL}), judge_labels=labelled())
        table = est.judge_error()
        assert table["n_labels"].tolist() == [0, 0]
        assert (table["upper"] - table["lower"] > 0.2).all()
        assert est.judge_note.startswith("judge error estimated from 0 labels: sensitivity ")

    def test_labels_that_show_a_judge_at_chance_are_flagged(self):
        """A judge that passes half of everything: the flag, and a plain warning in the note."""
        est = estimate(counts({"solo": UNEQUAL}), judge_labels=labelled(20, 20, 20, 20))
        assert "chance_level_judge" in est.flags("solo")
        assert "may be no better than chance, so its verdicts say next to nothing" in est.judge_note

    def test_rates_that_cannot_be(self):
        """A judge that never passes anything cannot have passed something."""
        with pytest.raises(EstimateError, match="sensitivity 0 and specificity 1 cannot give these counts"):
            estimate(counts({"solo": [(1, 2)]}), judge_labels={"sensitivity": 0, "specificity": 1})

    @pytest.mark.parametrize("cells", [[(0, 5)] * 30, [(5, 5)] * 30, [(1, 1)] * 20, [(1, 1)], [NEVER, (1, 2)]])
    def test_edges(self, cells):
        """All pass, all fail, single trials, one task, a task never tried: finite, and in order."""
        table = estimate(counts({"solo": cells}), judge_labels=labelled(20, 2, 8, 4)).summary(**EVERY)
        known = table[table["note"] != "nothing was scored"]
        assert known[["mean", "lower", "upper"]].notna().all(axis=None)
        assert (known["lower"] <= known["upper"]).all()
        assert (known["sd"] > 0).all()

    def test_long_tasks_are_refused(self):
        """Sums over what may be true grow with the square of the trials."""
        with pytest.raises(EstimateError, match="at most 200 trials, the largest has 500"):
            estimate(counts({"solo": [(300, 500)]}), judge_labels={"sensitivity": 0.9, "specificity": 0.9})


class TestSeveralAgents:
    """Agents share the judge."""

    def test_what_one_agent_says_of_the_judge_counts_for_the_other(self):
        """Rates are estimated from all agents' counts and labels together; agents are independent given them."""
        two = posterior(None, LABELS_ELSEWHERE, a=UNEQUAL, b=STRONGER)
        one = posterior(None, LABELS_ELSEWHERE, a=UNEQUAL)
        assert two.judge_rates(0.95)[""][0].mean != pytest.approx(one.judge_rates(0.95)[""][0].mean, abs=1e-6)
        fixed = JudgeLabels(sensitivity=0.9, specificity=0.8)
        alone = stats_of(posterior(None, fixed, a=UNEQUAL), 0, "population", "pass^3")
        beside = stats_of(posterior(None, fixed, a=UNEQUAL, b=STRONGER), 0, "population", "pass^3")
        assert alone.mean == pytest.approx(beside.mean, abs=1e-7)

    def test_decisions_use_it_and_say_so(self):
        """A comparison takes the estimate's own draws, unpaired; the gate names the labels; plan and monitor refuse."""
        est = estimate(counts({"v1": WEAKER, "v2": STRONGER}), "hierarchical", judge_labels=labelled(30, 2, 10, 6))
        found = compare(est, "v2", baseline="v1")
        assert (found.pairing, found.method) == ("none", "hierarchical")
        assert "judge error estimated from 48 labels" in str(found)
        assert "tasks, which hierarchical does not pair" in str(found)
        assert "the tasks' counts and the frequentist test are as judged" in str(found)
        assert "judge error estimated from 48 labels" in gate(est, "v2", at_least=0.5).note
        with pytest.raises(InvalidArgument, match=r"plan does not simulate judge errors: give it est\.uncorrected"):
            plan(est, "v1", budget=10)
        with pytest.raises(InvalidArgument, match="a stopping rule does not allow for judge errors"):
            monitor(at_least=0.5, looks=1, simulations=100).look(est, "v1")


def judged_attempts(rng, rates, *, tasks=50, trials=5, mu=0.7, rho=0.4, agent="solo"):
    """Attempts of an agent and what a judge with these rates says: cells, and a table with the truth as `human`."""
    kappa = 1 / rho - 1
    p = rng.beta(mu * kappa, (1 - mu) * kappa, (tasks, 1))
    true = rng.random((tasks, trials)) < p
    judged = np.where(true, rng.random(true.shape) < rates[0], rng.random(true.shape) >= rates[1])
    task, trial = (part.ravel() for part in np.indices(true.shape))
    names = [f"task {i + 1}" for i in task]
    columns = {"judge": judged.ravel(), "human": true.ravel(), "agent": agent, "task": names, "trial": trial}
    return [(int(c), trials) for c in judged.sum(axis=1)], pd.DataFrame(columns).astype({"judge": int, "human": int})


def by_verdict(rng, table):
    """Thirty attempts that the judge passed, and thirty that it failed."""
    return pd.concat([part.sample(min(30, len(part)), random_state=rng) for _, part in table.groupby("judge")])


def covers(posterior, agent, value):
    """Whether the 95 % interval of pass^1 of a new task holds a value."""
    found = stats_of(posterior, agent, "population", "pass^1")
    return found.lower <= value <= found.upper


class TestLabelsWithoutAttempts:
    """Labels of which only judge and human are known enter as what a human said, given the verdict."""

    @pytest.mark.parametrize("size", [5, pytest.param(200, marks=pytest.mark.slow)])
    def test_labels_chosen_by_verdict_cover(self, size):
        """30 judged right and 30 judged wrong, judge .95 / .6, truth .7: covered as often as .92 asks for."""
        missed = 0
        for seed in range(size):
            rng = np.random.default_rng([11, seed])
            cells, table = judged_attempts(rng, (0.95, 0.6))
            data = Counts.of(counts({"solo": cells}))
            labels = read_labels(by_verdict(rng, table)[["judge", "human"]], data)
            missed += not covers(posterior(cells, labels), 0, 0.7)
        assert missed <= stats.binom.ppf(1 - 1e-3, size, 0.06)

    def test_how_labels_were_chosen_does_not_matter(self):
        """Six labels of passed attempts to one of failed: specificity is what Bayes's formula makes of their shares.

        The judge passed 132 of 200; .75 of the passed and .3 of the failed are right, so .66 · .25 of .403 slipped.
        """
        cells = [(c, 5) for c in (5, 5, 4, 4, 3, 2, 1, 5, 4, 0)] * 4
        found = posterior(cells, JudgeLabels(1800, 90, 210, 600)).judge_rates(0.95)[""]
        assert found[1].mean == pytest.approx(1 - 0.66 * 0.25 / 0.403, abs=0.12)  # the labels' own share is .26
        assert found[0].mean == pytest.approx(0.66 * 0.75 / 0.597, abs=0.06)

    def test_a_single_label_is_the_predictive_value(self):
        """One label of many attempts of one-trial tasks at fixed rates: Bayes's formula at the share of right ones."""
        labels = JudgeLabels(1, sensitivity=0.9, specificity=0.6)
        passed, failed = np.array([0.8]), np.array([0.2])
        assert labels.log_predictive(passed, failed) == pytest.approx(np.log(0.8))
        part = JudgedLikelihood(Kinds.of(Counts.of(counts({"solo": [(1, 1)] * 60 + [(0, 1)] * 40})), 0, labels), METHOD)
        right = part.right(np.array([0.5]), part.concentration.over(0.1, 0.5, 3), Rates(labels, ((0, 1), (0, 1)), 1))
        q = 1 / (1 + np.exp(-0.5))
        given_pass, given_fail = 0.9 * q / (0.9 * q + 0.4 * (1 - q)), 0.1 * q / (0.1 * q + 0.6 * (1 - q))
        assert right[0] == pytest.approx(np.full((1, 3, 1), 60 * given_pass))
        assert right[1] == pytest.approx(np.full((1, 3, 1), 40 * given_fail))

    def test_several_agents_are_taken_to_have_the_same_judge(self):
        """The note says what is assumed; labels change the rates that all agents share."""
        data = counts({"v1": WEAKER, "v2": STRONGER})
        found = estimate(data, judge_labels=labelled(30, 2, 10, 6))
        assert "assumed the same for all agents, since the labels don't name agents" in found.judge_note
        strict = estimate(data, judge_labels=labelled(20, 12, 14, 2))
        assert strict.judge_error()["mean"][0] < found.judge_error()["mean"][0]

    def test_nothing_was_passed(self):
        """All failed, and labels of passes: they are of attempts like these."""
        found = stats_of(posterior([(0, 5)] * 10, JudgeLabels(6, 2, 10, 6)), 0, "population", "pass^1")
        assert 0 < found.lower < found.mean < found.upper < 1


class TestRatesPerAgent:
    """Where labels say whose attempts they are of, each agent has error rates of its own."""

    def two(self, seed, mu=(0.7, 0.7)):
        """Judged (.98, .5) and (.85, .85), sixty labels each."""
        rng = np.random.default_rng([13, seed])
        made = {
            agent: judged_attempts(rng, rates, agent=agent, mu=m)
            for (agent, rates), m in zip({"a": (0.98, 0.5), "b": (0.85, 0.85)}.items(), mu, strict=True)
        }
        labels = pd.concat([table.sample(60, random_state=rng) for _, table in made.values()])
        return {agent: cells for agent, (cells, _) in made.items()}, labels

    @pytest.mark.parametrize("size", [3, pytest.param(200, marks=pytest.mark.slow)])
    def test_they_cover_and_equals_are_not_told_apart(self, size):
        """Equal agents: their truth covered as often as .92 asks for, the difference 0 as often as .94."""
        missed = verdicts = 0
        for seed in range(size):
            cells, labels = self.two(seed)
            made = posterior(None, read_labels(labels, Counts.of(counts(cells))), **cells)
            missed += sum(not covers(made, agent, 0.7) for agent in (0, 1))
            first, second = (draws_of(made, agent, "population", "pass^1") for agent in (0, 1))
            lower, upper = np.quantile(second - first, [0.025, 0.975])
            verdicts += not lower <= 0 <= upper
        assert missed <= stats.binom.ppf(1 - 1e-3, 2 * size, 0.06)
        assert verdicts <= stats.binom.ppf(1 - 1e-3, size, 0.05)

    def test_rows_for_every_agent(self):
        """The table has a pair of rows per agent, with its labels; draws of rates have an axis of agents."""
        cells, labels = self.two(0)
        est = estimate(counts(cells), k=1, judge_labels=labels)
        table = est.judge_error()
        assert table[["agent", "rate"]].agg(" ".join, axis=1).tolist() == [
            "a sensitivity",
            "a specificity",
            "b sensitivity",
            "b specificity",
        ]
        assert table["n_labels"].tolist() == [60] * 4
        assert "a: sensitivity" in est.judge_note
        a, b = est.posterior.judge_rates(0.95).values()
        many = judge_words(est.settings.judge, {"a": a, "b": b, "c": a, "d": b}, tuple("abcd"), at_chance=False)
        low, high = sorted(format_number(own[1].mean) for own in (a, b))
        assert f"specificity {low} to {high} among 4 agents" in many  # a sentence of all rates would be a page
        draws = est.posterior.hyper_draws()
        for rate in ("sensitivity", "specificity"):
            rows = table[table["rate"] == rate]
            error = 4 * rows["sd"].to_numpy() / np.sqrt(4000)
            assert (np.abs(draws[rate].mean(axis=0) - rows["mean"].to_numpy()) <= error).all()
            assert draws[rate].std(axis=0) == pytest.approx(rows["sd"].to_numpy(), rel=0.06)

    def test_agents_share_strength(self):
        """An agent without labels borrows: its rates move with the other's, and are less certain."""
        cells, labels = self.two(1)
        alone = labels[labels["agent"] == "a"]
        mixed = pd.concat([alone, labelled(3, 1, 1, 1)])
        est = estimate(counts(cells), k=1, judge_labels=mixed)
        found = est.judge_error().set_index(["agent", "rate"])
        assert found.loc[("b", "specificity"), "n_labels"] == 0
        assert found.loc[("b", "specificity"), "sd"] > found.loc[("a", "specificity"), "sd"]
        assert "6 labels without agent and task not used" in est.judge_note

    def test_against_brute_force(self):
        """Hits and misses of three agents: means of their rates agree with dense integration over M, τ and z."""
        tallies = ((18, 2), (9, 6), (0, 0))
        ranges = [tuple(stats.beta.ppf([1e-8, 1 - 1e-8], 2 + h, 1 + m)) for h, m in tallies]
        nodes = [Rates(JudgeLabels(), (ends, ends), 12) for ends in ranges]
        tables = [
            h * np.log(one.sensitivity * one.specificity)
            + m * np.log1p(-one.sensitivity)
            + m * np.log1p(-one.specificity)
            for one, (h, m) in zip(nodes, tallies, strict=True)
        ]
        shared = SharedRates(nodes, tables)
        x, tau = np.linspace(-12, 16, 561), np.arange(0.1, 8, 0.2)
        s = 1 / (1 + np.exp(-x))
        kernel = stats.norm.pdf(x, x[::4, None], tau[:, None, None]) * (x[1] - x[0])
        each = [s**h * (1 - s) ** m for h, m in tallies]
        evidence = [kernel @ one for one in each]
        prior = stats.norm.pdf(tau, scale=2)[:, None] * (s**2 * (1 - s))[::4]
        mass = prior * np.prod(evidence, axis=0)
        for agent, one in enumerate(each):
            mean = np.sum(mass * (kernel @ (one * s)) / evidence[agent]) / mass.sum()
            found = np.exp(shared.log_masses[agent])
            assert found @ nodes[agent].sensitivity == pytest.approx(mean, abs=0.006)
            assert found @ nodes[agent].specificity == pytest.approx(mean, abs=0.006)


class TestKindsOfLabels:
    """A kind of label that nobody gave leaves a rate to its prior."""

    def test_all_labels_positive(self):
        """The flag is in the summary and on the rate's row, and the note says why."""
        est = estimate(counts({"solo": UNEQUAL}), judge_labels=labelled(20, 3))
        assert est.summary()["flags"].str.contains("judge_rate_prior").all()
        assert est.judge_error().set_index("rate")["flags"].to_dict() == {
            "sensitivity": "",
            "specificity": "judge_rate_prior",
        }
        assert "no attempt was labelled wrong, so specificity is its prior's" in est.judge_note

    def test_both_kinds(self, est):
        """Labels of both kinds, and fixed rates, have no such flag."""
        fixed = estimate(counts({"solo": UNEQUAL}), judge_labels={"sensitivity": 0.9, "specificity": 0.8})
        for one in (est, fixed):
            assert "judge_rate_prior" not in one.flags("solo")
            assert (one.judge_error()["flags"] == "").all()


@pytest.fixture(scope="module")
def est():
    """Twelve tasks, and 32 labels from elsewhere."""
    return estimate(counts({"solo": UNEQUAL}), judge_labels=labelled(20, 1, 8, 3))


class TestTheEstimate:
    """What `estimate(judge_labels=…)` gives beside the posterior."""

    def test_corrected_and_uncorrected_side_by_side(self, est):
        """Each has its rows, with how the judge's errors are known; without labels the columns are as ever."""
        made = est
        table = made.summary(columns="all")
        assert table["judge_calibration"].unique().tolist() == ["estimated"]
        assert table["n_labels"].unique().tolist() == [32]
        assert made.baseline(columns="all")["judge_calibration"].unique().tolist() == ["none"]
        assert "judge_calibration" not in made.uncorrected.summary(columns="all")
        plain = made.uncorrected
        assert plain.uncorrected is plain
        # bounds from the judge's verdicts hold for these, and not for what is true
        found = [
            one.with_k(9).to_pandas()["note"].str.contains("distribution-free bounds").any() for one in (made, plain)
        ]
        assert found == [False, True]
        with pytest.raises(EstimateError, match="was made without judge_labels"):
            made.uncorrected.judge_error()

    def test_rates_as_a_table(self, est):
        """Sensitivity and specificity with intervals and the number of labels."""
        table = est.judge_error().set_index("rate")
        assert list(table.index) == ["sensitivity", "specificity"]
        assert (table["lower"] < table["mean"]).all()
        assert (table["mean"] < table["upper"]).all()
        assert table["judge_calibration"].unique().tolist() == ["estimated"]

    def test_saved_and_loaded(self, est, tmp_path):
        """A file holds the labels, and gives the same numbers."""
        made = est.with_k(1)
        again = Estimate.load(made.save(tmp_path / "judged.nc"))
        pd.testing.assert_frame_equal(again.summary(**EVERY), made.summary(**EVERY))

    @pytest.mark.stack
    def test_draws_for_arviz(self, est):
        """The rates are among the draws; `p` has every task."""
        group = est.to_arviz()["posterior"]
        assert group["sensitivity"].shape == (4, 1000)
        assert group["p"].shape == (4, 1000, 1, 12)

    def test_labelled_attempts_leave_the_judges_counts(self):
        """Labels on all attempts of all tasks: the posterior is that of the true outcomes."""
        truth = {"task 1": (1, 1), "task 2": (1, 0), "task 3": (0, 0)}
        rows = [
            {"judge": 1 - human, "human": human, "task": task, "trial": i}
            for task, humans in truth.items()
            for i, human in enumerate(humans)
        ]
        judged = counts({"solo": [(0, 2), (1, 2), (2, 2)]})
        found = estimate(judged, k=KS, judge_labels=pd.DataFrame(rows))
        true = estimate(counts({"solo": [(2, 2), (1, 2), (0, 2)]}), k=KS)
        for estimand in ("population", "tasks"):
            one, other = (stats_of(e.posterior, 0, estimand, "pass^3") for e in (found, true))
            assert (one.mean, one.sd) == pytest.approx((other.mean, other.sd), abs=1e-6)

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"method": "conjugate"}, r"need the crossed or the hierarchical method, got Conjugate\(\)"),
            ({"engine": "pymc"}, "judge_labels need engine='auto', 'importance' or 'quadrature'"),
            ({"method": Hierarchical(inflate=True)}, "judge_labels need .*, and inflate=False"),
            (
                {"method": Hierarchical(m=stats.norm())},
                "with judge_labels agents do not share strength, so a prior of m has no use",
            ),
        ],
    )
    def test_what_does_not_go_together(self, settings, message):
        """Judge errors are corrected by engines that sum over true passes."""
        with pytest.raises(InvalidArgument, match=message):
            estimate(counts({"v1": WEAKER, "v2": STRONGER}), judge_labels=labelled(3, 1, 1, 1), **settings)

    def test_a_judge_without_errors_allows_any_method(self):
        """It changes nothing."""
        shared = counts({"v1": WEAKER, "v2": STRONGER})
        perfect = estimate(shared, "conjugate", judge_labels={"sensitivity": 1, "specificity": 1})
        assert perfect.judge_error()["mean"].tolist() == [1, 1]

    def test_counts_of_two_judges_are_refused(self):
        """Rates belong to one judge."""
        mixed = counts({"v1": WEAKER}, judge="a | b", differing="judge")
        with pytest.raises(InvalidArgument, match="judge_labels need counts of one judge"):
            estimate(mixed, judge_labels=labelled(3, 1, 1, 1))


class TestReadingLabels:
    """Tables of labels, checked against the counts."""

    DATA = Counts.of(counts({"v1": WEAKER, "v2": STRONGER}))

    def test_the_four_cells(self):
        """Hits, misses, rejections and false alarms are counted; true/false and text are read."""
        table = pd.DataFrame({"judge": [True, "1", 0, "false", 1.0], "human": [1, 1, "0", True, 0]})
        found = read_labels(table, self.DATA)
        assert (found.hits, found.misses, found.rejections, found.false_alarms) == (2, 1, 1, 1)
        assert (found.n_labels, found.calibration, found.located) == (5, "estimated", ())

    def test_errors_of_whole_tasks_that_come_together(self):
        """The correlation makes the labels of whole tasks most likely: a search over SciPy's Beta-Binomial agrees."""
        said = {"t1": "1111", "t2": "0000", "t3": "1111", "t4": "1100", "t5": "1111", "t6": "0001"}
        human = {"t1": "1111", "t2": "1110", "t3": "1111", "t4": "1100", "t5": "0011", "t6": "1101"}
        table = pd.DataFrame(
            [(int(j), int(h), t) for t in said for j, h in zip(said[t], human[t], strict=True)],
            columns=["judge", "human", "task"],
        )
        data = Counts.of(counts({"solo": [(said[t].count("1"), 4) for t in said]}))
        found = read_labels(table.replace({"task": {f"t{i}": f"task {i}" for i in range(1, 7)}}), data)
        rate = np.linspace(0.001, 0.999, 999)

        def log_likelihood(correlation):
            total, phi = 0.0, 1 / correlation - 1
            for truth in "10":
                right = [[j == truth for j, h in zip(said[t], human[t], strict=True) if h == truth] for t in said]
                logs = [stats.betabinom.logpmf(sum(r), len(r), rate * phi, (1 - rate) * phi) for r in right if r]
                total += np.sum(logs, axis=0).max()
            return total

        best = max(np.arange(1, 160) / 200, key=log_likelihood)
        assert found.clustering == pytest.approx(best, abs=1 / 40)
        assert found.clustering > 0.1
        likelihood = found.log_likelihood(rate, rate)[0]
        single = replace(found, clustering=0.0).log_likelihood(rate, rate)[0]
        assert np.ptp(likelihood) < np.ptp(single)  # labels that come together say less

    @pytest.mark.parametrize("wrong", [0, 1])
    def test_a_judge_that_hardly_errs_shows_no_pattern(self, wrong):
        """Twelve whole tasks without an error, or with a single one: every label counts alone."""
        rows = [(int(not (t == 0 and i < wrong)), 1, f"task {t + 1}") for t in range(12) for i in range(5)]
        table = pd.DataFrame(rows, columns=["judge", "human", "task"])
        data = Counts.of(counts({"solo": [(5 - wrong, 5), *[(5, 5)] * 11]}))
        assert read_labels(table, data).clustering == 0

    def test_errors_without_a_pattern(self):
        """Labels elsewhere, on single attempts, or that err as often in every task: every label counts alone."""
        every = pd.DataFrame({"judge": [1, 1, 0] * 2, "human": [1] * 6, "task": ["task 1"] * 3 + ["task 2"] * 3})
        data = Counts.of(counts({"solo": [(2, 3), (2, 3), (1, 3)]}))
        for table in (every, every.drop(columns="task"), every.iloc[[0, 2, 3, 5]]):
            found = read_labels(table, data)
            assert (found.clustering, found.least_weight) == (0.0, 1.0)

    def test_where_the_attempts_are_known(self):
        """Labels are gathered by agent and task; rows without either tell of the judge alone."""
        table = pd.DataFrame(
            {
                "judge": [1, 0, 1, 1],
                "human": [1, 1, 0, 1],
                "agent": ["v1", "v1", "v2", None],
                "task": ["task 2", "task 2", "task 1", None],
            }
        )
        found = read_labels(table, self.DATA)
        assert found.located == (("v1", "task 2", 2, 2, 1, 1), ("v2", "task 1", 1, 0, 1, 0))
        total, right, passed = found.cells(self.DATA)
        assert (total.sum(), right.sum(), passed.sum()) == (3, 2, 2)
        assert JudgeLabels.from_record(found.record()) == found

    @pytest.mark.parametrize(
        ("table", "error", "message"),
        [
            (pd.DataFrame({"judge": [1]}), InvalidArgument, "judge_labels has no column 'human'"),
            (pd.DataFrame({"judge": [1], "human": [1], "humann": [1]}), UnknownName, "did you mean 'human'"),
            (labelled(1, agent="v1"), InvalidArgument, "no column 'task': agent and trial say nothing without it"),
            (labelled(1, task="task 1"), InvalidArgument, "no column 'agent', and there are 2 agents"),
            (labelled(1, agent="v3", task="task 1"), UnknownName, "unknown agent in judge_labels 'v3'"),
            (labelled(1, agent="v1", task="task 99"), UnknownName, "unknown task in judge_labels 'task 99'"),
            (labelled(1, agent="v1", task=None), InvalidArgument, "row 0 must have both agent and task, or neither"),
            (labelled(2, agent="v1", task="task 2", trial=1), InvalidArgument, "task 'task 2', trial 1 twice"),
            (
                labelled(2, agent="v1", task="task 2"),
                InvalidArgument,
                "has 1 of 4 scored trials judged right, its labels say 2 of 2",
            ),
            (labelled(0, 5, agent="v1", task="task 2"), InvalidArgument, "its labels say 0 of 5"),
            (pd.DataFrame({"judge": [2], "human": [1]}), InvalidArgument, "judge must be 0 or 1, got .*2.* in row 0"),
            (pd.DataFrame({"judge": [1], "human": [None]}), InvalidArgument, "human must be 0 or 1, got None in row 0"),
            (pd.DataFrame({"judge": ["maybe"], "human": [1]}), InvalidArgument, "judge must be 0 or 1, got 'maybe'"),
            ([1, 0], InvalidArgument, "judge_labels must be a DataFrame with columns judge and human, or fixed rates"),
            ({"sensitivity": 0.9}, InvalidArgument, "must be sensitivity and specificity, got \\['sensitivity'\\]"),
            (
                {"sensitivity": 1.9, "specificity": 1},
                InvalidArgument,
                "sensitivity must be a number in \\[0, 1\\], got 1.9",
            ),
        ],
    )
    def test_what_is_wrong_is_said(self, table, error, message):
        """The row, what is allowed and what came."""
        with pytest.raises(error, match=message):
            read_labels(table, self.DATA)
