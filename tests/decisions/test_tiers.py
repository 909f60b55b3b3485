"""Deployment tiers, as probabilities."""

import numpy as np
import pytest
from fits import ENGINES, STRONGER, UNEQUAL, WEAKER, counts, fit_two
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from strategies import reduced

from agentic_bayes.decisions.gate import gate
from agentic_bayes.decisions.tiers import classify
from agentic_bayes.errors import EstimateError, InvalidArgument, UnknownName
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.methods.options import Conjugate

PAPER = ("production-ready", "functional but inconsistent", "needs improvement", "not ready")
GAUSSIA = ("reliable", "inconsistent", "needs improvement", "unclassified")


class TestPaper:
    """The paper's table: pass@1, then pass^3."""

    @pytest.mark.parametrize(
        ("pass_at_1", "pass_pow_3", "tier"),
        [
            (0.95, 0.80, "production-ready"),
            (0.901, 0.701, "production-ready"),
            (0.95, 0.70, "functional but inconsistent"),
            (0.95, 0.30, "functional but inconsistent"),
            (0.90, 0.80, "needs improvement"),
            (0.90, 0.10, "needs improvement"),
            (0.70, 0.70, "needs improvement"),
            (0.70, 0.00, "needs improvement"),
            (0.6999, 0.343, "not ready"),
            (2 / 3, 8 / 27, "not ready"),
            (0, 0, "not ready"),
            (1, 1, "production-ready"),
        ],
    )
    def test_table_and_boundaries(self, pass_at_1, pass_pow_3, tier):
        """.90 and .70 themselves belong to the tier below; the tier has probability 1."""
        found = classify(pass_at_1=pass_at_1, pass_pow_3=pass_pow_3)
        assert found[tier] == 1.0
        assert found.most_probable == tier
        assert tuple(found) == PAPER
        assert sum(found.values()) == 1.0

    def test_a_pair_that_contradicts_itself_is_refused(self):
        """pass@1 > .90 with pass^3 < .30 cannot come from one set of trials."""
        with pytest.raises(
            InvalidArgument, match=r"pass_at_1 0\.95 and pass_pow_3 0\.2 contradict .* at least 3·pass@1 - 2"
        ):
            classify(pass_at_1=0.95, pass_pow_3=0.2)

    @given(
        st.lists(st.integers(0, 8).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1, max_size=6),
        st.booleans(),
        st.integers(0, 100),
    )
    @settings(max_examples=reduced(25), deadline=None)
    def test_the_second_tier_cannot_be_reached_from_one_set_of_trials(self, cells, pool, seed):
        """Draw by draw pass^3 ≥ 3·pass@1 - 2, so that pass@1 > .90 implies pass^3 > .70."""
        est = estimate(counts({"a": [(9, 9), *cells]}), method=Conjugate(pool_tasks=pool), random_seed=seed)
        once = est.metric_draws("a", metric="pass@1", estimand="tasks")
        thrice = est.metric_draws("a", metric="pass^3", estimand="tasks")
        assert (thrice >= 3 * once - 2 - 1e-9).all()
        assert classify(est, estimand="tasks")["functional but inconsistent"] == 0.0

    @pytest.mark.parametrize("estimand", ["population", "tasks"])
    @pytest.mark.parametrize("engine", ENGINES)
    def test_neither_can_it_by_the_hierarchical_method(self, engine, estimand):
        """The property holds for new tasks and for observed ones."""
        # NUTS on the data that other tests sample too
        est = fit_two(engine) if engine == "pymc" else fit_two(engine, UNEQUAL, ((4, 4),) * 12)
        for agent in est.agents:
            once = est.metric_draws(agent, metric="pass@1", estimand=estimand)
            thrice = est.metric_draws(agent, metric="pass^3", estimand=estimand)
            assert (thrice >= 3 * once - 2 - 1e-9).all()
            assert classify(est, agent, estimand=estimand)["functional but inconsistent"] == 0.0


class TestGaussia:
    """Gaussia's table: pass@K, then pass^K."""

    @pytest.mark.parametrize(
        ("pass_at", "pass_pow", "tier"),
        [
            (0.96, 0.71, "reliable"),
            (0.96, 0.70, "unclassified"),
            (0.96, 0.50, "unclassified"),
            (0.96, 0.4999, "inconsistent"),
            (0.95, 0.90, "unclassified"),
            (0.95, 0.10, "unclassified"),
            (0.70, 0.10, "unclassified"),
            (0.6999, 0.10, "needs improvement"),
            (0, 0, "needs improvement"),
            (1, 1, "reliable"),
            (1, 0, "inconsistent"),
        ],
    )
    def test_table_and_boundaries(self, pass_at, pass_pow, tier):
        """.95, .70 and .50 themselves are not beyond themselves; anything else is unclassified."""
        found = classify(table="gaussia", pass_at=pass_at, pass_pow=pass_pow)
        assert found[tier] == 1.0
        assert tuple(found) == GAUSSIA

    def test_k_is_the_callers(self):
        """The K of the table can be chosen; more attempts make pass@K easier and pass^K harder."""
        est = fit_two(ENGINES[0])
        few, many = (classify(est, "v2", table="gaussia", k=k) for k in (1, 8))
        assert few["inconsistent"] == 0
        assert many["inconsistent"] > 0.5


class TestFromAnEstimate:
    """Every draw is classified."""

    @pytest.mark.parametrize("table", ["paper", "gaussia"])
    @pytest.mark.parametrize("engine", ENGINES)
    def test_probabilities_sum_to_one(self, engine, table):
        """Tiers exclude each other and cover everything."""
        for agent in ("v1", "v2"):
            found = classify(fit_two(engine), agent, table=table)
            assert sum(found.values()) == pytest.approx(1, abs=1e-12)
            assert all(0 <= p <= 1 for p in found.values())
            assert len(found) == 4

    @pytest.mark.parametrize("engine", ENGINES)
    def test_they_are_the_gates_probabilities(self, engine):
        """The probability of "not ready" is that of a failed gate at .70; by NUTS both are shares of the draws."""
        est = fit_two(engine)
        found = classify(est, "v2")
        assert found["not ready"] == pytest.approx(1 - gate(est, "v2", at_least=0.7).probability, abs=1e-8)
        assert found["production-ready"] == pytest.approx(gate(est, "v2", at_least=0.9).probability, abs=1e-8)
        once = est.metric_draws("v2", metric="pass@1")
        assert found["not ready"] == pytest.approx(np.mean(once < 0.7), abs=1e-9 if engine == "pymc" else 0.03)

    @pytest.mark.parametrize("method", ["hierarchical", "crossed", "conjugate"])
    @pytest.mark.parametrize("k", [1, 2, 5])
    def test_both_metrics_together(self, method, k):
        """Gaussia's tiers by integration are the shares of draws that belong together, within Monte-Carlo error."""
        strong = ((4, 4),) * 9 + ((3, 4), (2, 4), (4, 4))
        est = estimate(counts({"v1": STRONGER, "v2": strong}), method)
        estimand = "tasks" if method == "conjugate" else "population"
        for agent in est.agents:
            found = classify(est, agent, table="gaussia", k=k, estimand=estimand)
            at, power = (est.metric_draws(agent, metric=f"pass{sign}{k}", estimand=estimand) for sign in ("@", "^"))
            drawn = [
                np.mean((at > 0.95) & (power > 0.7)),
                np.mean((at > 0.95) & (power < 0.5)),
                np.mean(at < 0.7),
            ]
            assert list(found.values())[:3] == pytest.approx(drawn, abs=0.035)
            assert sum(found.values()) == pytest.approx(1, abs=1e-9)

    def test_tasks_tried_once_have_a_closed_form(self):
        """There μ is Beta(1 + S, 1 + F), and pass@1 of a new task with it."""
        found = classify(estimate(counts({"a": [(1, 1)] * 50 + [(0, 1)] * 5})))
        beta = stats.beta(51, 6)
        assert list(found.values()) == pytest.approx(
            [beta.sf(0.9), 0, beta.sf(0.7) - beta.sf(0.9), beta.cdf(0.7)], abs=1e-9
        )
        reliable = classify(estimate(counts({"a": [(1, 1)] * 200 + [(0, 1)] * 5})), table="gaussia", k=1)
        assert list(reliable.values()) == pytest.approx(
            [stats.beta(201, 6).sf(0.95), 0, stats.beta(201, 6).cdf(0.7), stats.beta(201, 6).cdf(0.95)], abs=1e-8
        )

    def test_missing_trials_are_counted(self):
        """In the sentence, the table and the JSON."""
        found = classify(estimate(counts({"a": [(3, 4), (2, 3, 1)]})))
        assert str(found).endswith("; 1 of 8 trials unscored")
        assert found.to_dict()["trials"] == {"scored": 7, "unscored": 1, "errored": 0}
        assert "1 of 8 trials unscored" in found.to_markdown()
        assert classify(pass_at_1=0.8, pass_pow_3=0.6).to_dict()["trials"] is None

    def test_a_weak_agent_is_not_ready(self):
        """An agent that fails most trials is not ready, with near certainty, and the text says it first to last."""
        found = classify(fit_two(ENGINES[0]), "v1")
        assert found.most_probable == "not ready"
        assert found["not ready"] > 0.98
        assert str(found).startswith("production-ready <0.001, functional but inconsistent 0.000, ")
        assert found.table().title.startswith("Most probable tier: not ready (")
        assert "not ready 0.99" in str(found) or "not ready 1.000" in str(found) or "not ready >0.999" in str(found)

    def test_more_trials_move_the_probability(self):
        """The same rate of 95 % is convincing after 400 trials, not after 20."""
        few, many = (
            classify(estimate(counts({"a": [(19 * m, 20 * m)]}), method=Conjugate(pool_tasks=True))) for m in (1, 20)
        )
        assert few["production-ready"] < 0.9 < many["production-ready"]


class TestArguments:
    """A wrong argument is named, with what is allowed and what came."""

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({}, InvalidArgument, "table 'paper' needs an estimate, or pass_at_1 and pass_pow_3; got neither"),
            ({"pass_at_1": 0.9}, InvalidArgument, "needs an estimate, or pass_at_1 and pass_pow_3; got pass_at_1"),
            ({"pass_at_1": 0.9, "pass_pow": 0.5}, InvalidArgument, "got pass_at_1, pass_pow"),
            ({"table": "gaussia", "pass_at_1": 0.9, "pass_pow_3": 0.5}, InvalidArgument, "or pass_at and pass_pow"),
            ({"table": "gausia"}, UnknownName, "unknown table 'gausia': did you mean 'gaussia'"),
            ({"pass_at_1": 95, "pass_pow_3": 0.5}, InvalidArgument, r"pass_at_1 must be a number in \[0, 1\], got 95"),
            ({"pass_at_1": 0.9, "pass_pow_3": -1}, InvalidArgument, r"pass_pow_3 must be a number in \[0, 1\], got -1"),
            (
                {"pass_at_1": True, "pass_pow_3": 0.5},
                InvalidArgument,
                r"pass_at_1 must be a number in \[0, 1\], got True",
            ),
            ({"pass_at_1": 0.9, "pass_pow_3": 0.5, "k": 0}, InvalidArgument, "k must be an integer ≥ 1, got 0"),
            (
                {"pass_at_1": 0.9, "pass_pow_3": 0.5, "agent": "v1"},
                InvalidArgument,
                "an agent needs an estimate, got agent 'v1'",
            ),
        ],
    )
    def test_typed_in(self, arguments, error, message):
        """Typed-in values are checked as probabilities, and must belong to the table."""
        with pytest.raises(error, match=message):
            classify(**arguments)

    def test_with_an_estimate(self):
        """An estimate and typed-in values exclude each other; agent and estimand are looked up."""
        est = estimate(counts({"v1": WEAKER, "v2": STRONGER}), method="conjugate")
        with pytest.raises(InvalidArgument, match="give an estimate or values, not both"):
            classify(est, "v1", pass_at_1=0.9)
        with pytest.raises(InvalidArgument, match="several agents; choose one"):
            classify(est, estimand="tasks")
        with pytest.raises(UnknownName, match="unknown agent 'v9'"):
            classify(est, "v9", estimand="tasks")
        with pytest.raises(EstimateError, match="'population' is not defined by Conjugate"):
            classify(est, "v1")
        with pytest.raises(InvalidArgument, match=r"k must be an integer ≥ 1, got 2\.5"):
            classify(est, "v1", table="gaussia", estimand="tasks", k=2.5)

    def test_the_frequentist_method_has_no_posterior(self):
        """Point estimates can be typed in; the method itself has no probabilities of tiers."""
        with pytest.raises(EstimateError, match="the frequentist method has no posterior"):
            classify(estimate(counts({"a": UNEQUAL}), method="frequentist"))
