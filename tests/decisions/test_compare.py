"""Is one agent better than another, and may the sentence say so?"""

import dataclasses
import math
import re
from functools import cache, partial

import numpy as np
import pytest
from fits import ALONE, ENGINES, KS, NEVER, STRONGER, UNEQUAL, WEAKER, counts, fit_two, rows
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from strategies import reduced

from agentic_bayes.decisions.classical import ClassicalTest
from agentic_bayes.decisions.compare import Comparison, Ratio, TaskDifference, compare
from agentic_bayes.errors import EstimateError, InvalidArgument, OutcomesError, UnknownName
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.methods.options import Conjugate, Crossed, Hierarchical
from agentic_bayes.formatting import Metric
from agentic_bayes.outcomes.missing import TrialCounts
from agentic_bayes.outcomes.table import outcomes_from_table

POOLED = Conjugate(pool_tasks=True)
TASKS = [f"task {i + 1}" for i in range(12)]
own_tasks = partial(compare, tasks="own")


@pytest.fixture(params=ENGINES)
def two(request):
    return fit_two(request.param)


def pooled(first, second, **how):
    """The conjugate estimate of two agents with c of n each: two independent Beta posteriors."""
    return estimate(counts({"v1": [first], "v2": [second]}), method=Conjugate(pool_tasks=True), **how)


class TestAgainstClosedForms:
    """Two independent Beta posteriors, integrated by SciPy."""

    @pytest.mark.parametrize("metric", ["pass^1", "pass^3", "pass@3"])
    def test_probability_mean_and_losses(self, metric):
        """Difference, probability of superiority and expected losses are those of SciPy's integrals.

        Within 4 standard errors of 4,000 draws; false-alarm rate under 12 × 6e-5.
        """
        found = own_tasks(pooled((14, 20), (17, 20)), "v2", baseline="v1", metric=metric)
        worse, better = stats.beta(15, 7), stats.beta(18, 4)

        def f(p):
            k = Metric(metric).k
            return p**k if "^" in metric else 1 - (1 - p) ** k

        superior = integrate.quad(lambda p: better.pdf(p) * worse.cdf(p), 0, 1)[0]
        loss = integrate.dblquad(
            *(lambda x, p: (f(p) - f(x)) * worse.pdf(p) * better.pdf(x), 0, 1, 0, lambda p: p), epsabs=1e-7
        )[0]
        mean = better.expect(f) - worse.expect(f)
        sd = math.sqrt(sum(b.expect(lambda p: f(p) ** 2) - b.expect(f) ** 2 for b in (worse, better)))
        assert abs(found.prob_better - superior) <= 4 * math.sqrt(superior * (1 - superior) / 4000)
        assert abs(found.mean - mean) <= 4 * sd / math.sqrt(4000)
        assert abs(found.expected_loss - loss) <= 4 * sd / math.sqrt(4000)
        assert found.expected_loss_baseline - found.expected_loss == pytest.approx(found.mean, abs=1e-12)

    def test_identical_agents_are_undecided(self):
        """Equal data give a probability of one half (within 4 standard errors) and no verdict."""
        found = own_tasks(pooled((7, 10), (7, 10)), "v2", baseline="v1")
        assert abs(found.prob_better - 0.5) <= 4 * math.sqrt(0.25 / 4000)
        assert found.verdict == "undecided"
        assert str(found).startswith("Undecided: P(v2 better on pass^1) = ")
        assert "is better" not in str(found)

    @pytest.mark.parametrize("engine", ALONE)  # of NUTS, which test_engine_agreement.py compares, when it is slow
    def test_the_hierarchical_method_is_undecided_about_identical_agents(self, engine):
        """Two agents with the same outcomes are never told apart, by any engine's draws."""
        found = own_tasks(fit_two(engine, UNEQUAL, UNEQUAL), "v2", baseline="v1", metric="pass^3")
        # draws of a sampler are worth at least 400 independent ones
        assert abs(found.prob_better - 0.5) <= 4 * math.sqrt(0.25 / 400)
        assert found.verdict == "undecided"


class TestSymmetry:
    """Exchanging agent and baseline turns the answer around."""

    @given(
        st.tuples(st.integers(0, 20), st.integers(0, 20)),
        st.sampled_from(["pass^1", "pass^2", "pass^4", "pass@3"]),
    )
    @settings(max_examples=reduced(25), deadline=None)
    def test_antisymmetric(self, successes, metric):
        """Mean and interval change sign, probabilities are complements, losses change places."""
        est = pooled((successes[0], 20), (successes[1], 20))
        there, back = (
            own_tasks(est, agent, baseline=other, metric=metric) for agent, other in (("v1", "v2"), ("v2", "v1"))
        )
        assert there.mean == pytest.approx(-back.mean, abs=1e-12)
        assert (there.lower, there.upper) == pytest.approx((-back.upper, -back.lower), abs=1e-12)
        assert there.prob_better + back.prob_better == pytest.approx(1, abs=1e-12)
        assert there.prob_rope == back.prob_rope
        assert (there.expected_loss, there.expected_loss_baseline) == pytest.approx(
            (back.expected_loss_baseline, back.expected_loss), abs=1e-12
        )
        opposite = {"better": "worse", "worse": "better", "equivalent": "equivalent", "undecided": "undecided"}
        assert back.verdict == opposite[there.verdict]

    def test_hierarchical(self, two):
        """The same holds for draws of the hierarchical method."""
        there, back = (
            own_tasks(two, "v1", baseline="v2", metric="pass^3"),
            own_tasks(two, "v2", baseline="v1", metric="pass^3"),
        )
        assert there.mean == -back.mean < 0
        assert there.prob_better == pytest.approx(1 - back.prob_better)


def made(**change):
    """A comparison with given numbers."""
    numbers = {"mean": 0.1, "lower": -0.1, "upper": 0.3, "prob_better": 0.8, "prob_rope": 0.1} | change
    rest = {"agent": "new", "baseline": "old", "metric": "pass^3", "estimand": "population"}
    rest |= {
        "ci_prob": 0.9,
        "ci_kind": "hdi",
        "rope": (-0.02, 0.02),
        "expected_loss": 0.01,
        "expected_loss_baseline": 0.1,
    }
    rest |= {"pairing": "none", "n_shared_tasks": 12, "method": "hierarchical", "flags": (), "note": ""}
    rest |= {"task_sets": "shared", "n_left_out": 0}
    rest |= {"trials": TrialCounts(36, 0, 0), "baseline_trials": TrialCounts(36, 0, 0)}
    rest |= {"unit": "conversation", "indicator": "joint", "n_tasks": 12, "tasks": ()}
    rest |= {"draws": np.array([0.0, 0.1, 0.2])}
    rest |= {"ratio": Ratio(1.2, 0.9, 1.5), "odds_ratio": Ratio(1.3, 0.8, 2.0)}
    rest |= {"frequentist": ClassicalTest("paired t", 0.1, -0.1, 0.3, 0.3, 0.9, 12)}
    known = {field.name for field in dataclasses.fields(Comparison)}
    return Comparison(**{name: value for name, value in (rest | numbers).items() if name in known})


class TestVerdict:
    """Only the interval, then the region of practical equivalence, decide."""

    @pytest.mark.parametrize(
        ("numbers", "verdict"),
        [
            ({"lower": 0.001}, "better"),
            ({"upper": -0.001}, "worse"),
            ({"lower": 0.0}, "undecided"),
            ({"upper": 0.0}, "undecided"),
            ({"prob_rope": 0.95}, "equivalent"),
            ({"prob_rope": 0.949}, "undecided"),
            ({"lower": 0.001, "upper": 0.01, "prob_rope": 1.0}, "better"),
            ({"prob_better": 0.999}, "undecided"),
        ],
    )
    def test_rule(self, numbers, verdict):
        """An interval that excludes 0 decides; one that touches it does not, whatever the probability."""
        assert made(**numbers).verdict == verdict

    @pytest.mark.parametrize(
        ("numbers", "beginning"),
        [
            ({"lower": 0.001}, "new is better than old: P(new better on pass^3) = 80 %, "),
            ({"upper": -0.001}, "new is worse than old: P(new better on pass^3) = 80 %, "),
            ({"prob_rope": 0.96}, "new and old are equivalent within ±2 points: P(within ±2 points) = 96 %, "),
            ({"prob_better": 1.0}, "Undecided: P(new better on pass^3) > 99.9 %, "),
        ],
    )
    def test_the_sentence_follows_the_verdict(self, numbers, beginning):
        """Only the verdict "better" makes the sentence say "is better"; the probability is the one it rests on."""
        sentence = str(made(**numbers))
        assert sentence.startswith(beginning)
        assert ("is better" in sentence) == (made(**numbers).verdict == "better")

    def test_the_sentence_holds_the_numbers(self):
        """Metric, probability, difference, interval and shared tasks are all there, without jargon."""
        sentence = str(made())
        assert sentence == (
            "Undecided: P(new better on pass^3) = 80 %, +10 points, 90 % interval −10 to +30 "
            "(new tasks; 12 tasks both attempted)"
        )

    def test_numbers_do_not_contradict_the_verdict(self):
        """An end that decides is not shown as 0, and what no draw showed is neither certain nor impossible."""
        sure = TaskDifference("refund", -0.5, -0.9, -0.2, 0.0, 0, 4, 4, 4)
        found = made(lower=0.0003, upper=0.0019, expected_loss=0.0, tasks=(sure,))
        assert "new is better than old: " in str(found)
        assert "interval +0.03 to +0.2 (" in str(found)
        assert found.drivers() == "new lost 1 task: refund (>0.999)"
        assert ["expected loss of choosing new", "<0.001", ""] in found.table().rows

    def test_the_basis_holds_what_was_estimated(self):
        """Method, unit, indicator, estimand and the kind of interval stand apart from the answer."""
        assert made().basis == (
            "hierarchical; pairing none; unit conversation, indicator joint; estimand population; "
            "90 % highest-density interval"
        )

    def test_doubts_are_part_of_the_sentence(self):
        """Flags and what else a reader must know stand at its end."""
        assert str(made(flags=("extrapolated",))).endswith("[extrapolated]")
        assert str(made(flags=("extrapolated",), note="few tasks")).endswith("[extrapolated] (few tasks)")

    def test_what_was_left_out_and_what_is_missing_is_said(self):
        """Tasks that only one of them tried, and trials without a verdict, stand in the sentence and in the table."""
        found = made(n_left_out=30, trials=TrialCounts(150, 150, 150))
        assert "(new tasks; 12 tasks both attempted, 30 left out; new: 150 of 300 trials errored)" in str(found)
        assert "pairing none, 30 tasks that only one tried left out; " in found.basis
        assert "new: 150 of 300 trials errored" in found.table().notes
        assert found.to_dict()["trials"] == {"scored": 150, "unscored": 150, "errored": 150}


class TestWhatAReaderMustKnow:
    """Notes of the comparison."""

    def test_other_tasks_are_said_where_the_mean_is_over_them(self):
        """The estimand of the observed tasks compares each agent's own: where they differ, it is said."""
        est = estimate(counts({"v1": [*STRONGER[:10], *[NEVER] * 6], "v2": [*WEAKER[:10], *[(0, 4)] * 6]}))
        both = est.counts.scored
        said = f"the observed tasks are not the same: {both[1].sum()} and {both[0].sum()}, {both.all(axis=0).sum()} of"
        assert said in own_tasks(est, "v2", baseline="v1", estimand="tasks").note
        assert "not the same" not in own_tasks(est, "v2", baseline="v1").note
        assert "not the same" not in compare(est, "v2", baseline="v1", estimand="tasks").note

    def test_what_the_fit_to_shared_tasks_says_of_itself_is_said(self, monkeypatch):
        """Where importance sampling gave way to NUTS, the comparison says it, as an estimate does."""
        crossed = estimate(counts({"v1": WEAKER, "v2": STRONGER}), method="crossed")
        monkeypatch.setattr(
            "agentic_bayes.decisions.shared_tasks.estimate_as",
            lambda *_, **__: dataclasses.replace(crossed, note="sampled by NUTS instead"),
        )
        assert "sampled by NUTS instead" in str(compare(crossed, "v2", baseline="v1"))


class TestWhatIsCompared:
    """Metric, k, estimand and the estimate's own settings."""

    def test_a_clear_difference_is_seen(self, two):
        """The stronger agent is better on pass^1, and the sentence says it."""
        found = own_tasks(two, "v2", baseline="v1")
        assert found.verdict == "better"
        assert found.prob_better > 0.975
        assert str(found).startswith("v2 is better than v1: ")

    def test_defaults(self, two):
        """pass^1 on a new task, with a region of ±.02, is what is compared unless something else is said."""
        found = own_tasks(two, "v2", baseline="v1")
        assert (found.metric, found.estimand, found.rope) == ("pass^1", "population", (-0.02, 0.02))
        assert (found.ci_prob, found.ci_kind) == (0.95, "eti")

    def test_the_mean_is_the_difference_of_the_summaries_means(self, two):
        """What is compared is what the summary reports, within 4 standard errors of its draws."""
        found = own_tasks(two, "v2", baseline="v1", metric="pass^3")
        assert (found.pairing, found.method) == ("none", "hierarchical")
        both = rows(two.summary(columns="all"), estimand="population", metric="pass^3").set_index("agent")
        error = math.hypot(*both["sd"]) / math.sqrt(1000)
        assert abs(found.mean - (both.loc["v2", "mean"] - both.loc["v1", "mean"])) <= 4 * error

    def test_a_k_that_the_estimate_lacks_is_computed(self, two):
        """Any k ≥ 1 can be compared; one beyond all trials is flagged as extrapolation."""
        assert 7 not in two.settings.k
        found = own_tasks(two, "v2", baseline="v1", metric="pass^7")
        assert found.metric == "pass^7"
        assert [flag for flag in found.flags if flag != "prior_sensitive"] == ["extrapolated", "different_tasks"]
        assert 0 < found.mean < own_tasks(two, "v2", baseline="v1", metric="pass^1").mean + 0.5

    def test_on_the_observed_tasks_the_difference_is_sharper(self, two):
        """The benchmark's own tasks are known better than new ones."""
        tasks, new = (own_tasks(two, "v2", baseline="v1", estimand=e) for e in ("tasks", "population"))
        assert tasks.upper - tasks.lower < new.upper - new.lower

    def test_interval_settings_are_the_estimates(self):
        """Probability and kind of the interval come from the estimate."""
        wide = own_tasks(pooled((14, 20), (17, 20), ci_prob=0.99), "v2", baseline="v1")
        narrow = own_tasks(pooled((14, 20), (17, 20), ci_prob=0.5, ci_kind="hdi"), "v2", baseline="v1")
        assert (wide.ci_prob, narrow.ci_prob, narrow.ci_kind) == (0.99, 0.5, "hdi")
        assert wide.lower < narrow.lower < narrow.upper < wide.upper

    def test_the_whole_range_is_equivalent(self, two):
        """With a region of ±1 everything lies inside it; with 0 nothing does."""
        assert own_tasks(two, "v2", baseline="v1", rope=1).prob_rope == 1.0
        assert own_tasks(two, "v2", baseline="v1", rope=0).prob_rope == 0.0

    def test_shared_tasks_are_counted(self, two):
        """Tasks on which both agents have a scored trial are the shared ones."""
        assert own_tasks(two, "v2", baseline="v1").n_shared_tasks == 10

    def test_an_agent_without_data_is_doubtful(self):
        """A comparison with an agent of which nothing was scored carries the flag, and on observed tasks is refused."""
        est = fit_two(ENGINES[0], ((0, 0, 2),) * 3 + (NEVER,) * 9, STRONGER)
        assert "no_data" in own_tasks(est, "v2", baseline="v1").flags
        with pytest.raises(EstimateError, match="agent 'v1' has no scored trial"):
            own_tasks(est, "v2", baseline="v1", estimand="tasks")
        with pytest.raises(EstimateError, match="nothing of 'v1' was scored, so there is nothing to compare"):
            compare(est, "v2", baseline="v1")


@pytest.fixture(scope="module")
def paired():
    """The default comparison of two agents that share ten tasks of twelve."""
    return compare(estimate(counts({"v1": WEAKER, "v2": STRONGER}), k=KS), "v2", baseline="v1")


class TestPairing:
    """Agents are compared by the estimate's own method, on the tasks that both tried."""

    def test_a_crossed_estimate_pairs_the_agents_by_task(self, paired):
        """The default method shares the tasks' difficulty; few shared tasks, and those left out, are said."""
        assert (paired.pairing, paired.method, paired.n_shared_tasks, paired.n_left_out) == ("tasks", "crossed", 10, 2)
        assert paired.note == "fewer than 15 shared tasks say little about shared difficulty"
        assert paired.verdict == "better"
        assert paired.flags == ("different_tasks",)
        assert "(new tasks; 10 tasks both attempted, 2 left out; v1: 3 of 42 trials unscored)" in str(paired)
        assert paired.basis.startswith(
            "crossed; pairing tasks, 2 tasks that only one tried left out; unit conversation"
        )

    @pytest.mark.parametrize("method", ["hierarchical", "conjugate", "crossed"])
    def test_nothing_is_fitted_again(self, monkeypatch, method):
        """Agents that tried the same tasks are compared by the draws of the estimate, whatever its method."""
        est = estimate(counts({"v1": WEAKER[:10], "v2": STRONGER[:10]}), method=method)
        monkeypatch.setattr("agentic_bayes.estimation.fitting.posterior_of", None)
        monkeypatch.setattr("agentic_bayes.decisions.shared_tasks.estimate_as", None)
        found = compare(est, "v2", baseline="v1", estimand="tasks")
        first, second = (est.metric_draws(name, estimand="tasks") for name in ("v1", "v2"))
        np.testing.assert_array_equal(found.draws, second - first)
        assert found.method == method
        said = f"they share 10 tasks, which {method} does not pair"
        assert (said in found.note) == (method != "crossed")

    @pytest.mark.parametrize("method", [Hierarchical(), Conjugate(pool_tasks=True), Crossed(rho=stats.beta(2, 2))])
    def test_on_shared_tasks_the_same_method_is_fitted_to_these_alone(self, method):
        """The comparison is that of an estimate of the shared tasks, with the same priors, to the last bit."""
        est = estimate(counts({"v1": [*WEAKER[:9], NEVER], "v2": [NEVER, *STRONGER[1:10]]}), method=method)
        alone = estimate(est.outcomes.isel(task=slice(1, 9)), method=method)
        found, same = (compare(one, "v2", baseline="v1", metric="pass^3") for one in (est, alone))
        assert (found.mean, found.lower, found.upper) == (same.mean, same.lower, same.upper)
        assert (found.n_shared_tasks, found.n_left_out) == (8, 2)
        assert found.tasks == same.tasks
        assert found.flags == (*same.flags, "different_tasks")

    def test_agents_without_shared_tasks(self):
        """Agents that share fewer than two tasks are compared on their own ones only where that is asked for."""
        advice = "share 0 tasks, too few to compare them on the same tasks: tasks='own' .* assuming that all sample one"
        for method in (Conjugate(pool_tasks=True), "hierarchical", "crossed", "auto"):
            est = estimate(counts({"v1": [(7, 10), NEVER], "v2": [NEVER, (8, 10)]}), method=method)
            with pytest.raises(EstimateError, match=f"'v2' and 'v1' {advice}"):
                compare(est, "v2", baseline="v1")
            found = own_tasks(est, "v2", baseline="v1")
            assert (found.pairing, found.n_shared_tasks, found.n_left_out) == ("none", 0, 0)
            assert "assuming that all of them sample one kind of task" in str(found)
            assert "different_tasks" in found.flags
        one = estimate(counts({"v1": [(1, 4), (2, 4), NEVER], "v2": [(3, 4), NEVER, (2, 4)]}))
        with pytest.raises(EstimateError, match="'v2' and 'v1' share 1 task, too few"):
            compare(one, "v2", baseline="v1")

    def test_what_was_counted_stands_in_the_comparison(self, two):
        """Unit and indicator of the outcomes travel with the difference."""
        found = own_tasks(two, "v2", baseline="v1")
        assert (found.unit, found.indicator) == ("conversation", "correct")


class TestTwoEstimates:
    """Estimates that were made apart are compared unpaired, new minus old."""

    def test_the_difference_is_that_of_independent_posteriors(self):
        """Two pooled Beta posteriors: probability and mean are SciPy's (4 standard errors of 4,000 draws)."""
        old, new = (estimate(counts({name: [cell]}), POOLED) for name, cell in (("v1", (14, 20)), ("v2", (17, 20))))
        found = compare(new, baseline=old)
        worse, better = stats.beta(15, 7), stats.beta(18, 4)
        superior = integrate.quad(lambda p: better.pdf(p) * worse.cdf(p), 0, 1)[0]
        sd = math.hypot(worse.std(), better.std())
        assert (found.agent, found.baseline, found.pairing) == ("v2", "v1", "none")
        assert abs(found.prob_better - superior) <= 4 * math.sqrt(superior * (1 - superior) / 4000)
        assert abs(found.mean - (better.mean() - worse.mean())) <= 4 * sd / math.sqrt(4000)
        assert found.draws.std() == pytest.approx(sd, rel=0.05)
        assert "two separate estimates are not paired by task" in found.note

    @pytest.mark.parametrize("method", ["hierarchical", "conjugate"])
    def test_equal_counts_and_seeds_are_no_equal_draws(self, method):
        """The second side has a stream of its own, where both estimates have the same draws; names are told apart."""
        one, same = (estimate(counts({"v1": UNEQUAL}), method) for _ in range(2))
        found = compare(one, baseline=same, estimand="tasks", metric="pass^3")
        draws = one.metric_draws("v1", estimand="tasks", metric="pass^3")
        np.testing.assert_array_equal(draws, same.metric_draws("v1", estimand="tasks", metric="pass^3"))
        assert found.draws.std() == pytest.approx(math.sqrt(2) * draws.std(), rel=0.05)
        assert (found.agent, found.baseline, found.verdict) == ("v1 (new)", "v1 (old)", "undecided")
        assert all(0.4 < task.prob_better < 0.6 for task in found.tasks)

    def test_different_tasks_are_left_out_on_both_sides(self):
        """Each side is fitted to the shared tasks, as an estimate of these is; without two of them it is refused."""
        old = estimate(counts({"v1": [*WEAKER[:9], NEVER]}))
        new = estimate(counts({"v2": [NEVER, *STRONGER[1:10]]}))
        shared = slice(1, 9)
        parts = [estimate(est.outcomes.sel(task=est.outcomes["task"].isin(TASKS[shared]))) for est in (new, old)]
        found, same = compare(new, baseline=old), compare(parts[0], baseline=parts[1])
        assert (found.n_shared_tasks, found.n_left_out, found.flags) == (8, 2, ("different_tasks",))
        assert (found.mean, found.lower, found.upper) == (same.mean, same.lower, same.upper)
        apart = estimate(counts({"v2": [NEVER, (3, 4)]}))
        with pytest.raises(EstimateError, match="share 0 tasks, too few"):
            compare(apart, baseline=estimate(counts({"v1": [(2, 4), NEVER]})))

    def test_what_is_not_counted_alike_is_refused(self):
        """Estimates of different units are no two sides of one question."""
        new, old = (estimate(counts({"v": WEAKER}, unit=unit)) for unit in ("conversation", "interaction"))
        with pytest.raises(OutcomesError, match="outcomes differ in 'unit'"):
            compare(new, baseline=old)


class TestArguments:
    """Nothing is compared before every argument is valid."""

    @pytest.mark.parametrize(
        ("change", "error", "message"),
        [
            ({"rope": -0.1}, InvalidArgument, r"rope \(a half-width, .*\) must be a number in \[0, 1\], got -0\.1"),
            ({"rope": 2}, InvalidArgument, r"rope \(a half-width, .*\) must be a number in \[0, 1\], got 2"),
            ({"rope": (1, 0)}, InvalidArgument, r"rope must be a half-width .* or a pair low ≤ high .*, got \(1, 0\)"),
            ({"tasks": "owns"}, UnknownName, "unknown tasks 'owns': did you mean 'own'"),
            ({"metric": "pass_k"}, InvalidArgument, "metric must be .*, got 'pass_k'"),
            ({"estimand": "populations"}, UnknownName, "did you mean 'population'"),
            ({"metric": "pass^0"}, InvalidArgument, "metric must be .*, got 'pass.0'"),
            ({"metric": "pass^2.0"}, InvalidArgument, r"metric must be .*, got 'pass.2\.0'"),
            ({"baseline": "v1 "}, UnknownName, "unknown agent 'v1 ': did you mean 'v1'"),
            ({"baseline": "v2"}, InvalidArgument, "agent and baseline must differ, got 'v2' for both"),
        ],
    )
    def test_wrong_arguments(self, change, error, message):
        """A wrong argument is named, with what is allowed and what came."""
        with pytest.raises(error, match=message):
            compare(pooled((7, 10), (8, 10)), "v2", **({"baseline": "v1"} | change))

    def test_an_unknown_agent(self):
        """The agent is looked up as the baseline is."""
        with pytest.raises(UnknownName, match="unknown agent 'v3'"):
            own_tasks(pooled((7, 10), (8, 10)), "v3", baseline="v1")

    def test_the_frequentist_method_has_no_posterior(self):
        """The baseline method cannot be compared; the error says what can."""
        est = estimate(counts({"v1": WEAKER, "v2": STRONGER}), method="frequentist")
        with pytest.raises(EstimateError, match="the frequentist method has no posterior"):
            own_tasks(est, "v2", baseline="v1")

    def test_an_undefined_estimand(self):
        """Unpooled conjugate estimates have no population, and the error names what they have."""
        est = estimate(counts({"v1": WEAKER, "v2": STRONGER}), method="conjugate")
        with pytest.raises(EstimateError, match=r"'population' is not defined by Conjugate\(\); defined: \['tasks'\]"):
            own_tasks(est, "v2", baseline="v1")
        assert own_tasks(est, "v2", baseline="v1", estimand="tasks").verdict == "better"

    def test_comparisons_are_frozen(self):
        """A comparison cannot be edited into another one."""
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'mean'"):
            made().mean = 1.0
        assert np.isfinite(made().mean)


class TestAgainstAValue:
    """One agent against a fixed value."""

    def test_it_is_the_posterior_moved_by_the_value(self):
        """Difference, superiority and losses are those of one Beta posterior, within 4 standard errors of 4,000."""
        found = compare(pooled((14, 20), (17, 20)), "v2", baseline=0.7)
        beta = stats.beta(18, 4)
        above, sd = beta.sf(0.7), beta.std()
        loss = integrate.quad(lambda p: (0.7 - p) * beta.pdf(p), 0, 0.7)[0]
        assert abs(found.prob_better - above) <= 4 * math.sqrt(above * (1 - above) / 4000)
        assert abs(found.mean - (beta.mean() - 0.7)) <= 4 * sd / math.sqrt(4000)
        assert abs(found.expected_loss - loss) <= 4 * sd / math.sqrt(4000)
        assert (found.baseline, found.pairing, found.n_shared_tasks, found.tasks) == (0.7, "none", 0, ())

    def test_the_interval_is_that_of_the_summary(self, two):
        """Moved by the value, to the last digit: two functions never say two things of one number."""
        for est in (two, estimate(counts({"v1": WEAKER, "v2": STRONGER}), ci_kind="hdi")):
            for estimand in ("population", "tasks"):
                found = compare(est, "v2", baseline=0.4, metric="pass^3", estimand=estimand)
                said = rows(est.summary(columns="all"), agent="v2", estimand=estimand, metric="pass^3").iloc[0]
                assert (found.mean, found.lower, found.upper) == pytest.approx(
                    tuple(said[["mean", "lower", "upper"]] - 0.4), abs=1e-12
                )

    def test_a_metric_that_may_equal_the_value_is_not_above_it(self):
        """Agents that always passed may have a mean of exactly 1 on these tasks: half of that is "above 1"."""
        est = estimate(counts({"v1": [(4, 4)] * 20}), method=Hierarchical(inflate=True))
        equal = np.mean(est.metric_draws("v1", metric="pass^1", estimand="tasks") == 1)
        found = compare(est, "v1", baseline=1.0, estimand="tasks")
        assert 0.05 < equal < 0.5
        assert found.prob_better == pytest.approx(equal / 2)

    def test_a_prior_alone_is_no_verdict(self):
        """Where no trial was scored the prior may exclude the value, and nothing is better than it."""
        sure = Hierarchical(mu=stats.beta(60, 1), pool_agents=False)
        found = compare(estimate(counts({"v1": [(0, 0, 2)] * 4}), sure), baseline=0.3)
        assert found.lower > 0
        assert str(found).startswith("Undecided, since an agent has no scored trials: P(v1's pass^1 above 0.300) > 99")

    def test_an_exact_posterior_that_rounds_to_1_is_never_above_it(self):
        """One pass of one trial under Beta(.5, .5): some draws of pass@9 are 1 to the last bit, and P(above 1) is 0."""
        est = estimate(counts({"v1": [(1, 1)]}), Conjugate(prior=(0.5, 0.5)))
        question = {"metric": "pass@9", "estimand": "tasks"}
        assert (est.metric_draws("v1", **question) == 1).any()
        assert compare(est, "v1", baseline=1.0, **question).prob_better == 0

    def test_the_sentence_names_the_value(self):
        """The words are about a value, not about another agent, and the verdict is one of the four."""
        sure = fit_two(ENGINES[0])
        assert str(compare(sure, "v2", baseline=0.2)).startswith(
            "v2 is better than 0.200: P(v2's pass^1 above 0.200) > 99.9 %, "
        )
        assert str(compare(sure, "v2", baseline=1.0)).startswith("v2 is worse than 1.000: ")
        assert compare(pooled((14, 20), (199, 200)), "v2", baseline=0.99, rope=0.05).verdict == "equivalent"

    @pytest.mark.parametrize("value", [-0.1, 1.5, float("nan"), True])
    def test_a_value_outside_the_unit_interval(self, value):
        """What is no probability is refused, with what is allowed."""
        with pytest.raises(InvalidArgument, match=r"baseline \(a fixed value\) must be a number in \[0, 1\]"):
            compare(pooled((7, 10), (8, 10)), "v2", baseline=value)


class TestRatios:
    """Ratio and odds ratio of two metrics."""

    def test_medians_and_intervals_are_scipys(self):
        """The share of the exact distribution below each reported quantile is as reported (4 standard errors)."""
        found = own_tasks(pooled((14, 20), (17, 20)), "v2", baseline="v1", metric="pass^3")
        worse, better = stats.beta(15, 7), stats.beta(18, 4)

        def below(value, transform):
            """P(transform(better³)/transform(worse³) ≤ value); transform is increasing."""
            return integrate.quad(lambda p: worse.pdf(p) * better.cdf(transform(value, p**3) ** (1 / 3)), 0, 1)[0]

        def by_odds(value, x):
            odds = value * x / (1 - x) if x < 1 else math.inf
            return 1.0 if math.isinf(odds) else odds / (1 + odds)

        for ratio, transform in ((found.ratio, lambda v, x: min(v * x, 1.0)), (found.odds_ratio, by_odds)):
            for q, value in ((0.025, ratio.lower), (0.5, ratio.median), (0.975, ratio.upper)):
                assert abs(below(value, transform) - q) <= 4 * math.sqrt(q * (1 - q) / 4000)

    def test_a_metric_of_zero_does_not_divide(self):
        """Where everything failed the ratio is a finite number, and it is printed."""
        found = own_tasks(pooled((0, 50), (50, 50)), "v2", baseline="v1", metric="pass^50")
        assert 0 < found.ratio.lower < found.ratio.upper < math.inf
        assert ">1,000,000" in str(found.ratio)
        assert str(Ratio(1470.2, 0.00001, 3.27e5)) == "1,470 [<0.001, 327,000]"


class TestTasksThatDrive:
    """Which tasks were lost and won, each with its probability."""

    def test_every_shared_task_has_a_difference(self, paired):
        """All ten shared tasks are there, the one that was most probably lost first, with their counts."""
        frame = paired.to_pandas()
        assert len(frame) == 10
        assert list(frame["prob_better"]) == sorted(frame["prob_better"])
        known = {f"task {i + 1}": (*STRONGER[i], *WEAKER[i][:2]) for i in range(12)}
        for one in paired.tasks:
            assert (one.successes, one.trials, one.baseline_successes, one.baseline_trials) == known[one.task]
            assert one.lower <= one.mean <= one.upper

    def test_a_task_that_was_lost_is_named_with_its_probability(self):
        """0 of 8 against 8 of 8 is lost, the mirror image is won, and the sentence says how surely."""
        others = [(c, 8) for c in (0, 1, 3, 5, 7, 8, 8)] * 2
        first, second = [(8, 8), (0, 8), *others], [(0, 8), (8, 8), *others]
        found = compare(estimate(counts({"v1": first, "v2": second})), "v2", baseline="v1")
        assert [one.task for one in found.lost] == ["task 1"]
        assert [one.task for one in found.won] == ["task 2"]
        # hardly any draw has tasks so alike that these differ by chance
        assert 0 < found.lost[0].prob_better < 0.002 < 0.998 < found.won[0].prob_better < 1
        assert re.fullmatch(r"v2 lost 1 task: task 1 \(>?0.999\); v2 won 1 task: task 2 \(>?0.999\)", found.drivers())

    def test_unpaired_tasks_have_the_betas_of_their_counts(self):
        """Unpooled conjugate cells: the probability on a task is that of two independent Beta posteriors."""
        est = estimate(counts({"v1": [(1, 4), (3, 4)], "v2": [(3, 4), (3, 4)]}), method="conjugate")
        found = own_tasks(est, "v2", baseline="v1", estimand="tasks")
        one = next(one for one in found.tasks if one.task == "task 1")
        exact = integrate.quad(lambda p: stats.beta(4, 2).pdf(p) * stats.beta(2, 4).cdf(p), 0, 1)[0]
        assert abs(one.prob_better - exact) <= 4 * math.sqrt(exact * (1 - exact) / 4000)

    def test_nothing_sure_is_no_sentence(self, two):
        """Where no task is sure there is nothing to say."""
        assert dataclasses.replace(own_tasks(two, "v2", baseline="v1"), tasks=()).drivers() == ""

    def test_many_tasks_are_not_many_draws(self):
        """4,000 tasks with few distinct counts are compared task by task within memory."""
        rng = np.random.default_rng(0)
        cells = {name: [(int(c), 3) for c in rng.integers(0, 4, 4000)] for name in ("v1", "v2")}
        found = own_tasks(estimate(counts(cells), k=1), "v2", baseline="v1")
        assert len(found.tasks) == 4000


class TestNamesAndOrder:
    """Neither what agents and tasks are called nor the order of rows changes a verdict."""

    def test_identical_data_are_exactly_even(self):
        """With the same counts on every task superiority is .5, the difference 0, and no verdict falls, at any k."""
        est = estimate(counts({"v1": UNEQUAL, "v2": UNEQUAL}))
        for one in (est, estimate(est.outcomes, "hierarchical")):
            for k in (1, 3):
                found = compare(one, "v2", baseline="v1", metric=f"pass^{k}")
                assert (found.prob_better, found.verdict) == (0.5, "undecided")
                assert found.mean == pytest.approx(0, abs=1e-12)
                assert found.lower == pytest.approx(-found.upper, abs=1e-12)

    def test_names_change_nothing(self):
        """Renamed agents, so that their order turns round, give the same numbers to the last bit."""
        before = compare(estimate(counts({"a": WEAKER, "b": STRONGER})), "b", baseline="a", metric="pass^3")
        after = compare(estimate(counts({"z": WEAKER, "b": STRONGER})), "b", baseline="z", metric="pass^3")
        same = dataclasses.replace(after, baseline="a")
        assert same == before

    def test_the_other_way_round_is_the_opposite(self, paired):
        """A paired comparison and its mirror image are one fit: the difference changes sign exactly."""
        back = compare(estimate(counts({"v1": WEAKER, "v2": STRONGER}), k=KS), "v1", baseline="v2")
        assert (back.mean, back.prob_better) == pytest.approx((-paired.mean, 1 - paired.prob_better), abs=1e-12)
        assert (back.lower, back.upper) == pytest.approx((-paired.upper, -paired.lower), abs=1e-12)

    @staticmethod
    @cache
    def in_order():
        """The comparison with the tasks in the order of the counts."""
        return compare(estimate(counts({"v1": WEAKER, "v2": STRONGER})), "v2", baseline="v1")

    @given(st.randoms(use_true_random=False))
    @settings(max_examples=2, deadline=None)
    def test_the_order_of_tasks_changes_nothing(self, random):
        """Shuffled and renamed tasks give the same difference to the last bit."""
        order = list(range(12))
        random.shuffle(order)
        shuffled = counts({"v1": [WEAKER[i] for i in order], "v2": [STRONGER[i] for i in order]})
        one, other = compare(estimate(shuffled), "v2", baseline="v1"), self.in_order()
        assert (one.mean, one.lower, one.upper) == (other.mean, other.lower, other.upper)


def test_every_two_agents_of_a_public_benchmark_keep_their_verdict(shared_data):
    """tau2 airline, 50 tasks × 1 trial: shuffled rows and exchanged names leave every verdict as it is."""
    import gzip
    import json

    import pandas as pd

    files = sorted(shared_data("tau2_airline").glob("*.json.gz"))
    rows = []
    for path in files:
        if "telecom" in path.name or "toolorchestra" in path.name:
            continue
        content = json.loads(gzip.decompress(path.read_bytes()))
        for one in content["simulations"]:
            reward = one.get("reward_info")
            rows.append(
                {
                    "agent": path.name.split(".")[0],
                    "task": str(one["task_id"]),
                    "trial": one["trial"],
                    "correct": None if reward is None else int(reward["reward"] == 1),
                }
            )
    frame = pd.DataFrame(rows)
    agents = sorted(frame["agent"].unique())
    assert len(agents) >= 2
    turned = dict(zip(agents, reversed(agents), strict=True))
    shuffled = frame.sample(frac=1, random_state=0).assign(agent=frame["agent"].map(turned))
    est, again = (estimate(outcomes_from_table(data)) for data in (frame, shuffled))
    for i, first in enumerate(agents):
        for second in agents[:i]:
            for k in (1, 3):
                found = compare(est, first, baseline=second, metric=f"pass^{k}")
                same = compare(again, turned[first], baseline=turned[second], metric=f"pass^{k}")
                assert (found.verdict, found.mean) == (same.verdict, same.mean)
                assert found.frequentist.name == ("McNemar" if k == 1 else "paired t")
