"""Pass, fail or inconclusive, from a posterior probability."""

import dataclasses
from xml.etree import ElementTree

import numpy as np
import pytest
from fits import ENGINES, NEVER, STRONGER, WEAKER, counts, fit_two
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from strategies import reduced

from agentic_bayes.decisions.compare import compare
from agentic_bayes.decisions.gate import gate, ruling, shown_beside
from agentic_bayes.decisions.simulate import ManyPosteriors, histograms, metric_of, simulate_successes
from agentic_bayes.errors import EstimateError, InvalidArgument, UnknownName
from agentic_bayes.estimation.engines.diagnostics import Diagnostics
from agentic_bayes.estimation.estimate import Estimate, estimate
from agentic_bayes.estimation.methods.options import Conjugate
from agentic_bayes.formatting import Metric
from agentic_bayes.reports.junit import junit_xml


def single_trials(passed, failed, **how):
    """One trial per task: the exact engine's μ is Beta(1 + passed, 1 + failed)."""
    return estimate(counts({"v1": [(1, 1)] * passed + [(0, 1)] * failed}), **how)


class TestTheProbability:
    """P(metric ≥ bar), without Monte-Carlo error where the engine is exact."""

    @given(st.integers(0, 40), st.integers(0, 40), st.floats(0.05, 0.95))
    @settings(max_examples=20, deadline=None)
    def test_it_is_the_betas_tail(self, passed, failed, bar):
        """Tasks tried once: the tail of Beta(1 + S, 1 + F) to 1e-8."""
        if passed + failed == 0:
            passed = 1
        found = gate(single_trials(passed, failed), at_least=bar)
        assert found.probability == pytest.approx(stats.beta(1 + passed, 1 + failed).sf(bar), abs=1e-8)

    def test_drawn_posteriors_give_the_share_of_their_draws(self):
        """On the observed tasks, and for other engines, it is the share of 4,000 draws."""
        est = fit_two(ENGINES[0])
        draws = est.metric_draws("v2", metric="pass^3", estimand="tasks")
        assert gate(est, "v2", at_least=0.6, metric="pass^3", estimand="tasks").probability == np.mean(draws >= 0.6)

    @pytest.mark.parametrize("engine", ENGINES)
    def test_engines_agree(self, engine):
        """NUTS and the exact engine give the same probability (within .03: its draws are worth 1,000 or more)."""
        found = gate(fit_two(engine), "v2", at_least=0.7, metric="pass^1")
        assert found.probability == pytest.approx(gate(fit_two(ENGINES[0]), "v2", at_least=0.7).probability, abs=0.03)

    def test_the_ends(self):
        """Every metric is at least 0; none is sure to be 1."""
        est = single_trials(30, 0)
        assert (gate(est, at_least=0).probability, gate(est, at_least=0).verdict) == (1.0, "pass")
        assert gate(est, at_least=1).probability == pytest.approx(0, abs=1e-9)
        assert gate(est, at_least=1).verdict == "fail"


class TestTheVerdict:
    """The rule, requirement by requirement."""

    @pytest.mark.parametrize(
        ("probability", "verdict"), [(0.95, "pass"), (0.9499, "inconclusive"), (0.0501, "inconclusive"), (0.05, "fail")]
    )
    def test_rule(self, probability, verdict):
        """Pass from the required probability on, fail from that of the opposite on."""
        assert ruling(probability, 0.95) == verdict

    @pytest.mark.parametrize(
        ("probability", "required", "text"),
        [
            (0.9499, 0.95, "94.99 %"),
            (0.95, 0.95, "95 %"),
            (0.05, 0.95, "5 %"),
            (0.0500001, 0.95, "5.00001 %"),
            (0.99132, 0.9914, "99.13 %"),
            (0.1234, 0.95, "12 %"),
            (1e-5, 0.95, "<0.1 %"),
        ],
    )
    def test_a_probability_is_never_printed_as_the_required_one(self, probability, required, text):
        """What misses the requirement by a hair has as many digits as it takes to see that."""
        assert shown_beside(probability, required) == text

    @pytest.mark.parametrize(
        ("passed", "failed", "verdict"), [(90, 10, "pass"), (60, 40, "fail"), (78, 22, "inconclusive")]
    )
    def test_three_answers(self, passed, failed, verdict):
        """Clear data are clear, others are not forced."""
        found = gate(single_trials(passed, failed), at_least=0.8)
        assert found.verdict == verdict
        assert str(found).startswith(f"{verdict}: P(pass^1 ≥ 0.8) ")

    def test_more_is_required(self):
        """A stricter gate decides less."""
        est = single_trials(70, 10)
        assert gate(est, at_least=0.8, confidence=0.9).verdict == "pass"
        assert gate(est, at_least=0.8, confidence=0.99).verdict == "inconclusive"

    def test_the_sentence_holds_the_numbers(self):
        """Probability, requirement, metric, interval and tasks are all there, without jargon."""
        text = str(gate(fit_two(ENGINES[0]), "v2", at_least=0.7, metric="pass^3"))
        for part in (
            "P(pass^3 ≥ 0.7) = ",
            "(needs 95 %) for v2 on new tasks",
            "pass^3 0.",
            "95 % interval",
            "(12 tasks)",
        ):
            assert part in text

    def test_the_basis_holds_what_was_estimated(self):
        """Method, unit, indicator, estimand and the kind of interval stand apart from the answer."""
        assert gate(fit_two(ENGINES[0]), "v2", at_least=0.7).basis == (
            "hierarchical; unit conversation, indicator correct; estimand population; 95 % equal-tailed interval"
        )

    def test_a_k_that_the_estimate_lacks_is_computed(self):
        """Any k ≥ 1 can be asked; beyond all trials it is flagged."""
        found = gate(fit_two(ENGINES[0]), "v2", at_least=0.1, metric="pass^7")
        assert (found.metric, found.flags) == ("pass^7", ("extrapolated", "prior_sensitive"))
        assert str(found).endswith("[extrapolated, prior_sensitive]")


class TestTheBaseline:
    """The metric must not have dropped by more than a margin."""

    def test_both_requirements_must_hold(self):
        """Good enough but dropped is a failure; the sentence has both probabilities."""
        est = estimate(counts({"old": [(1, 1)] * 95 + [(0, 1)] * 5, "new": [(1, 1)] * 75 + [(0, 1)] * 25}))
        alone, against = gate(est, "new", at_least=0.6), gate(est, "new", at_least=0.6, baseline="old", margin=0.05)
        assert (alone.verdict, against.verdict) == ("pass", "fail")
        assert [one.verdict for one in against.requirements] == ["pass", "fail"]
        assert "; P(at most 0.05 below old) < 0.1 % (needs" in str(against)
        assert gate(est, "new", at_least=0.6, baseline="old", margin=0.6).verdict == "pass"
        assert "(needs 97.5 %)" in str(gate(est, "new", at_least=0.6, confidence=0.975))

    def test_the_drop_is_the_posterior_of_the_difference(self):
        """P(new - old ≥ -margin) over the draws by which they are compared."""
        est = fit_two(ENGINES[0])
        found = gate(est, "v2", at_least=0.1, baseline="v1", margin=0.1)
        assert found.requirements[1].probability == np.mean(compare(est, "v2", baseline="v1").draws >= -0.1)
        assert (found.baseline, found.margin) == ("v1", 0.1)

    def test_no_margin_means_no_drop(self):
        """The words fit a margin of 0."""
        found = gate(fit_two(ENGINES[0]), "v2", at_least=0.1, baseline="v1")
        assert found.requirements[1].text == "P(not below v1)"


class TestWhatMayNotPass:
    """An estimate that cannot be trusted decides nothing."""

    @pytest.mark.stack
    def test_an_estimate_that_did_not_converge(self):
        """Failed diagnostics make every requirement inconclusive, however high its probability."""
        good = fit_two("pymc") if "pymc" in ENGINES else pytest.fail("no sampling engine")
        assert gate(good, "v2", at_least=0.01).verdict == "pass"
        failed = dataclasses.replace(good.diagnostics, rhat=1.5)
        assert isinstance(failed, Diagnostics)
        bad = Estimate(good.outcomes, good.settings, good.draws, good.sample_stats, failed)
        found = gate(bad, "v2", at_least=0.01)
        assert found.probability > 0.99
        assert (found.verdict, found.requirements[0].verdict) == ("inconclusive", "inconclusive")
        assert "did not converge, so it cannot decide anything" in str(found)

    def test_an_agent_without_data(self):
        """The prior cannot pass, not even a bar of 0."""
        est = estimate(counts({"v1": [NEVER, (0, 0, 2)], "v2": [(1, 2), (2, 2)]}))
        found = gate(est, "v1", at_least=0)
        assert found.verdict == "inconclusive"
        assert "nothing of v1 was scored, so it decides nothing" in found.note

    def test_a_baseline_without_data(self):
        """It says nothing about the drop, and takes nothing from what is known about the bar."""
        est = estimate(counts({"v1": [NEVER] * 30, "v2": [(0, 4)] * 30, "v3": [(4, 4)] * 30}))
        bad, good = (gate(est, name, at_least=0.5, baseline="v1") for name in ("v2", "v3"))
        assert [one.verdict for one in bad.requirements] == ["fail", "inconclusive"]
        assert [one.verdict for one in good.requirements] == ["pass", "inconclusive"]
        assert (bad.verdict, good.verdict) == ("fail", "inconclusive")
        assert "nothing of v1 was scored, so it decides nothing" in good.note


class TestArguments:
    """Nothing is decided before every argument is valid."""

    @pytest.mark.parametrize(
        ("change", "error", "message"),
        [
            ({"at_least": -0.1}, InvalidArgument, r"at_least must be a number in \[0, 1\], got -0\.1"),
            ({"at_least": 1.1}, InvalidArgument, r"at_least must be a number in \[0, 1\], got 1\.1"),
            ({"at_least": 70}, InvalidArgument, r"at_least must be a number in \[0, 1\], got 70"),
            ({"at_least": float("nan")}, InvalidArgument, "at_least must be a number"),
            ({"at_least": True}, InvalidArgument, "at_least must be a number"),
            (
                {"confidence": 0.5},
                InvalidArgument,
                r"confidence must be in \(0\.5, 1\), otherwise a gate could pass and fail",
            ),
            ({"confidence": 95}, InvalidArgument, "confidence must be a number"),
            ({"margin": -0.1, "baseline": "v1"}, InvalidArgument, r"margin must be a number in \[0, 1\], got -0\.1"),
            ({"margin": 0.1}, InvalidArgument, "margin needs a baseline, got margin 0.1 without one"),
            ({"baseline": "v2"}, InvalidArgument, "agent and baseline must differ, got 'v2' for both"),
            ({"baseline": "v0"}, UnknownName, "unknown agent 'v0'"),
            ({"agent": "v3"}, UnknownName, "unknown agent 'v3': valid: 'v1', 'v2'|did you mean"),
            ({"agent": None}, InvalidArgument, "several agents; choose one with agent=: 'v1', 'v2'"),
            ({"metric": "accuracy"}, InvalidArgument, r"metric must be .*, got 'accuracy'"),
            ({"metric": "pass_k"}, InvalidArgument, r"metric must be .*, got 'pass_k'"),
            ({"metric": "pass^0"}, InvalidArgument, r"metric must be .*, got 'pass.0'"),
            ({"estimand": "task"}, UnknownName, "unknown estimand 'task'"),
        ],
    )
    def test_wrong_arguments(self, change, error, message):
        """A wrong argument is named, with what is allowed and what came."""
        given_ = {"at_least": 0.5, "agent": "v2"} | change
        agent = given_.pop("agent")
        with pytest.raises(error, match=message):
            gate(fit_two(ENGINES[0]), agent, **given_)

    def test_the_frequentist_method_has_no_posterior(self):
        """A baseline estimate cannot decide, and says what can."""
        est = estimate(counts({"v1": WEAKER, "v2": STRONGER}), method="frequentist")
        with pytest.raises(EstimateError, match="the frequentist method has no posterior"):
            gate(est, "v2", at_least=0.5)


class TestJUnit:
    """What CI systems read."""

    def parsed(self, found, **how):
        """The suite in the document."""
        suite = ElementTree.fromstring(junit_xml(found, **how).encode()).find("testsuite")
        assert suite is not None
        return suite

    @pytest.mark.parametrize(
        ("passed", "failed", "excused", "element"),
        [(90, 10, False, None), (60, 40, False, "failure"), (78, 22, False, "failure"), (78, 22, True, "skipped")],
    )
    def test_one_case_per_requirement(self, passed, failed, excused, element):
        """A pass is a bare case, a fail a failure, what is inconclusive a failure or, where excused, skipped."""
        found = gate(single_trials(passed, failed), at_least=0.8)
        suite = self.parsed(found, excused=excused)
        (case,) = suite.findall("testcase")
        assert [child.tag for child in case if child.tag != "system-out"] == ([element] if element else [])
        assert case.findtext("system-out") == str(found)
        assert suite.get("tests") == "1"
        assert suite.get("failures") == ("1" if element == "failure" else "0")
        assert suite.get("skipped") == ("1" if element == "skipped" else "0")
        if element == "failure":
            assert case.find("failure").get("type") == found.verdict

    def test_two_requirements_are_two_cases(self):
        """The bar and the drop are told apart."""
        suite = self.parsed(gate(fit_two(ENGINES[0]), "v2", at_least=0.1, baseline="v1"))
        assert [case.get("name") for case in suite] == [
            "P(pass^1 ≥ 0.1)",
            "P(not below v1)",
        ]

    @given(st.text(min_size=1).filter(lambda name: name.strip() == name and name))
    @settings(max_examples=reduced(50), deadline=None)
    def test_any_name_is_well_formed(self, name):
        """Markup, control signs and lone surrogates in a name cannot break the document."""
        found = dataclasses.replace(gate(single_trials(9, 1), at_least=0.5), agent=name)
        assert self.parsed(found).find("testcase") is not None


@pytest.mark.parametrize("metric", ["pass^1", "pass^4", "pass@4"])
@pytest.mark.parametrize("bar", [0.0, 1e-9, 0.3, 0.8, 1 - 1e-12, 1.0])
def test_a_gate_on_one_task_has_no_monte_carlo_error(metric, bar):
    """With one task, or pooled tasks, the conjugate method's probability is that of one Beta distribution."""
    one, both = stats.beta(1 + 7, 1 + 3), stats.beta(1 + 9, 1 + 4)
    for cells, pool, posterior in (([(7, 10)], False, one), ([(7, 10), (2, 3)], True, both)):
        est = estimate(counts({"v1": cells}), method=Conjugate(pool_tasks=pool))
        k = Metric(metric).k
        found = gate(est, at_least=bar, metric=metric, estimand="tasks").probability
        reached = bar ** (1 / k) if "^" in metric else -np.expm1(np.log1p(-bar) / k) if bar < 1 else 1.0
        assert found == pytest.approx(posterior.sf(reached), rel=1e-9, abs=1e-15)
        share = np.mean(est.metric_draws(None, metric=metric, estimand="tasks") >= bar)
        assert share == pytest.approx(found, abs=4 * np.sqrt(0.25 / 4000))


class TestTheTruthAtTheBar:
    """How often a gate is wrong where the truth is exactly its bar: 5 % by its promise, more where ρ = 0 is an edge."""

    @staticmethod
    def rates(metric, rho, mu, sets=1000):
        """Shares of false passes and false fails, shape (4, 2): 20 and 50 tasks × 3 and 5 trials."""
        metric, found = Metric(metric), []
        bar = float(metric_of(mu, max(rho, 1e-12), metric))
        for tasks, trials in ((20, 3), (20, 5), (50, 3), (50, 5)):
            rng = np.random.default_rng([7, tasks, trials])
            data = np.array([simulate_successes(rng, mu, rho, tasks, trials) for _ in range(sets)])
            above = ManyPosteriors(metric, trials, histograms(data, trials)).at_least(bar)
            found.append((np.mean(above >= 0.95), np.mean(above <= 0.05)))
        return np.array(found)

    def test_tasks_alike(self):
        """ρ = 0, where a gate on pass@3 failed falsely in up to 55 % under a uniform prior of ρ: .12 on average."""
        _, fails = self.rates("pass@3", 0.0, 0.9).T
        assert fails.mean() <= 0.15
        assert fails.max() <= 0.20
        passes, _ = self.rates("pass^3", 0.0, 0.7).T
        assert passes.mean() <= 0.07

    @pytest.mark.parametrize("rho", [0.2, 0.6])
    def test_tasks_that_differ(self, rho):
        """There a false pass is as rare as promised, and so is a false fail of pass@3, within two standard errors."""
        passes, _ = self.rates("pass^3", rho, 0.9).T
        assert passes.max() <= 0.06
        _, fails = self.rates("pass@3", rho, 0.9).T
        assert fails.mean() <= 0.06 + 2 * np.sqrt(0.06 * 0.94 / 4000)
