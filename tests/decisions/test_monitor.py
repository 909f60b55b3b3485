"""Looking after every batch, by a rule whose error rates are known before it is used."""

import json
import math

import numpy as np
import pytest
from fits import NEVER, STRONGER, WEAKER, counts
from scipy import stats

from agentic_bayes.decisions.gate import gate
from agentic_bayes.decisions.monitor import StoppingRule, monitor
from agentic_bayes.decisions.sequences import Sequences
from agentic_bayes.decisions.simulate import mu_with_metric, simulate_successes
from agentic_bayes.errors import EstimateError, InvalidArgument, UnknownName
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.methods.options import Hierarchical
from agentic_bayes.formatting import Metric


@pytest.fixture(scope="module")
def rule():
    """Ten looks at twenty tasks × 3, at a bar of .7."""
    return monitor(at_least=0.7, simulations=1000)


def outcomes(successes, trials=3):
    return counts({"solo": [(int(c), trials) for c in successes]})


def false_winners(rule, sequences, seed):
    """Shares of sequences that end in "pass" and in "fail" with the truth at the bar, through `look` itself."""
    rng = np.random.default_rng(seed)
    mu = float(mu_with_metric(rule.at_least, rule.rho, Metric(rule.metric)))
    ends = []
    for _ in range(sequences):
        c = simulate_successes(rng, mu, rule.rho, rule.batch * rule.looks, rule.trials)
        for number in range(1, rule.looks + 1):
            look = rule.look(estimate(outcomes(c[: number * rule.batch], rule.trials), method="frequentist"))
            if look.stop:
                ends.append(look.verdict)
                break
    assert len(ends) == sequences
    return ends.count("pass") / sequences, ends.count("fail") / sequences


class TestErrorRates:
    """False winners with the truth at the bar, at ten looks."""

    def test_what_the_rule_says_of_itself(self, rule):
        """At the bar at most .05 pass and at most .05 fail; a look at .95 each would have gone wrong more often."""
        at_bar = rule.characteristics[0]
        assert at_bar.truth == rule.at_least == 0.7
        assert max(at_bar.passes, at_bar.fails) <= 0.05
        assert at_bar.passes + at_bar.fails + at_bar.undecided == pytest.approx(1)
        assert rule.required > 0.98

    def test_through_the_exact_engine(self, rule):
        """6 sequences of ten looks by `look`: more than a share of .05 allows would have probability < .001."""
        passes, fails = false_winners(rule, 6, seed=5)
        most = stats.binom.ppf(0.999, 6, 0.05) / 6
        assert passes <= most
        assert fails <= most

    @pytest.mark.slow
    @pytest.mark.parametrize(("bar", "metric"), [(0.7, "pass^1"), (0.5, "pass^3")])
    def test_through_the_exact_engine_in_full(self, bar, metric):
        """1,000 sequences of ten looks: at most .05 false winners at the maximum, at k = 1 and 3."""
        passes, _ = false_winners(monitor(at_least=bar, metric=metric), 1000, seed=6)
        assert passes <= 0.05

    def test_a_better_agent_wins_early(self, rule):
        """.1 above the bar nearly all pass, in fewer than half of the tasks; .1 below nearly all fail."""
        _, below, above = rule.characteristics
        assert above.truth == pytest.approx(0.8)
        assert above.passes > 0.9
        assert above.tasks < 110
        assert below.fails > 0.9

    def test_one_look_needs_no_correction(self):
        """With one look at the data the gate's own probability is enough, or nearly."""
        assert monitor(at_least=0.7, looks=1, batch=200).required < 0.97

    def test_stricter_promises_require_more(self, rule):
        """Fewer false winners, a higher probability at every look."""
        assert monitor(at_least=0.7, false_winners=0.01, simulations=300).required > rule.required

    def test_a_width_stops_too(self):
        """A rule on the width alone: no verdict, an expected number of tasks."""
        made = monitor(width=0.3, metric="pass^3", looks=5, simulations=100)
        (one,) = made.characteristics
        assert math.isnan(made.required)
        assert math.isnan(one.passes)
        assert 20 <= one.tasks <= 100
        both = monitor(at_least=0.7, width=0.4, looks=5, simulations=100)
        assert both.characteristics[0].tasks < 100

    def test_it_says_how_many_sequences_describe_it(self):
        """A tenth of the simulations where intervals are computed, all of them elsewhere."""
        assert "Simulated 20 times for each truth" in str(monitor(width=0.3, looks=2, simulations=200))
        assert "Simulated 200 times for each truth" in str(monitor(at_least=0.7, looks=2, simulations=200))

    def test_width_and_gate_are_read_off_the_same_sequences(self):
        """What a rule with both says of itself is what its looks do with the sequences that it simulated."""
        made = monitor(at_least=0.7, width=0.25, looks=3, simulations=100)
        runs = Sequences(Metric("pass^1"), made.batch, made.trials, made.looks, made.rho, (0.95, "eti"), 0, None)
        for stream, one in enumerate(made.characteristics, start=1):
            widths, met = runs.widths(one.truth, made.sequences, stream=stream, bar=0.7)
            ends = []
            for row in zip(met, widths, strict=True):
                verdicts = [made._verdict(n, p, w) for n, (p, w) in enumerate(zip(*row, strict=True), start=1)]
                ends.append(next((v, n) for n, v in enumerate(verdicts, start=1) if v != "continue"))
            words = [word for word, _ in ends]
            shares = [words.count(word) / len(words) for word in ("pass", "fail")]
            assert [one.passes, one.fails] == pytest.approx(shares)
            assert one.tasks == pytest.approx(np.mean([n for _, n in ends]) * made.batch)


class TestLooks:
    """What a look says of the data so far."""

    def test_a_look_is_the_gate_with_the_rules_probability(self, rule):
        """The probability is that of the gate on this agent alone."""
        data = outcomes([3] * 30 + [1] * 10)
        look = rule.look(estimate(data, method="frequentist"))
        assert look.probability == pytest.approx(gate(estimate(data), at_least=0.7).probability, abs=1e-12)
        assert (look.number, look.tasks, look.agent) == (2, 40, "solo")
        assert look.lower < look.mean < look.upper

    @pytest.mark.parametrize(
        ("successes", "verdict"),
        [
            ([3] * 100, "pass"),
            ([0] * 40, "fail"),
            (([3] * 7 + [0] * 3) * 4, "continue"),
            (([3] * 7 + [0] * 3) * 20, "inconclusive"),
            ([3] * 19, "continue"),
        ],
    )
    def test_verdicts(self, rule, successes, verdict):
        """Clear data stop, unclear data go on until the last look, and before the first batch nothing is decided."""
        look = rule.look(estimate(outcomes(successes)))
        assert look.verdict == verdict
        assert look.stop == (verdict != "continue")
        assert str(look).startswith(f"{verdict}: look {look.number} of 10, {len(successes)} tasks; ")

    def test_a_narrow_interval_stops(self):
        """The width's own verdict."""
        made = monitor(width=0.3, looks=5, simulations=100)
        assert made.look(estimate(outcomes(([3] * 7 + [0] * 3) * 10))).verdict == "narrow enough"

    @pytest.mark.parametrize(
        ("data", "note"),
        [
            (outcomes([3, 0] * 15), "the rule looks after every 20 tasks: 10 more to the next look"),
            (outcomes([3, 0] * 150), "more than the 10 × 20 tasks that the rule was made for"),
            (outcomes([2, 0] * 10, trials=2), "the rule was made for 3 trials of every task"),
        ],
    )
    def test_what_departs_from_the_plan_is_said(self, rule, data, note):
        """A look that the rule was not made for carries a note."""
        assert note in str(rule.look(estimate(data)))

    def test_between_looks_nothing_is_decided(self, rule):
        """However clear the data: looking more often than planned is what makes false winners."""
        for tasks, verdict in ((39, "continue"), (40, "pass"), (41, "continue")):
            look = rule.look(estimate(outcomes([3] * tasks)))
            assert (look.verdict, look.number) == (verdict, tasks // 20)
            assert look.probability > rule.required

    def test_what_could_not_be_scored_belongs_to_its_batch(self, rule):
        """40 tasks of which two crashed are two batches, and the look counts 38 tasks."""
        look = rule.look(estimate(counts({"solo": [(3, 3)] * 38 + [(0, 0, 3)] * 2})))
        assert (look.verdict, look.number, look.tasks) == ("pass", 2, 38)
        assert "2 tasks with nothing scored" in str(look)

    def test_missing_trials_that_could_change_it_decide_nothing(self, rule):
        """A third of the trials crashed, all others passed: it goes on, and at the last look is inconclusive."""
        for tasks, verdict in ((40, "continue"), (200, "inconclusive")):
            look = rule.look(estimate(counts({"solo": [(2, 2, 1)] * tasks})))
            assert (look.verdict, look.probability > rule.required) == (verdict, True)
            assert f"{tasks} of {3 * tasks} trials unscored" in look.note
        clear = rule.look(estimate(counts({"solo": [(0, 2, 1)] * 100})))
        assert (clear.verdict, "would change" in clear.note) == ("fail", False)

    def test_priors_that_it_does_not_use_are_named(self, rule):
        """The rule was made for the default ones."""
        one = Hierarchical(mu=stats.beta(2, 5), pool_agents=False)
        assert (
            "default priors instead of Hierarchical(mu=beta(2, 5)" in rule.look(estimate(outcomes([3] * 20), one)).note
        )

    def test_nothing_scored_goes_on(self, rule):
        """Without data there is nothing to stop for."""
        look = rule.look(estimate(counts({"solo": [NEVER, (0, 0, 2)]})))
        assert (look.verdict, look.tasks) == ("continue", 0)

    def test_which_agent(self, rule):
        """With several agents one is named; an unknown one is an error."""
        two = estimate(counts({"v1": WEAKER, "v2": STRONGER}))
        assert rule.look(two, "v2").agent == "v2"
        with pytest.raises(InvalidArgument, match="several agents; choose one with agent=: 'v1', 'v2'"):
            rule.look(two)
        with pytest.raises(UnknownName, match="unknown agent 'v3'"):
            rule.look(two, "v3")


class TestFiles:
    """A rule is made before the data and kept."""

    def test_there_and_back(self, rule, tmp_path):
        """A saved rule is the same rule."""
        assert StoppingRule.load(rule.save(tmp_path / "rule.json")) == rule
        narrow = monitor(width=0.3, looks=2, simulations=100)
        again = StoppingRule.load(narrow.save(tmp_path / "narrow.json"))
        assert str(again) == str(narrow)

    @pytest.mark.parametrize(
        "change",
        [
            {"metric": "accuracy"},
            {"batch": 0},
            {"required": 0.3},
            {"at_least": 7},
            {"at_least": None, "width": None},
            {"characteristics": 3},
            {"extra": 1},
            {"metric": 3},
            {"ci_prob": 2},
            {"required": None},
            {"at_least": 0},
            {"rho": "low"},
            {"rho": 7},
            {"false_winners": 0.9},
            {"false_winners": None},
            {"simulations": "many"},
            {"simulations": None},
            {"random_seed": -1},
            {"random_seed": "x"},
            {"characteristics": []},
            {"characteristics": [{"truth": 0.7, "passes": 3, "fails": 0, "undecided": -2, "tasks": 20}]},
            {"characteristics": [{"truth": 0.7, "passes": 0.5, "fails": 0, "undecided": 0, "tasks": 20}]},
            {"characteristics": [{"truth": 0.7, "passes": 0, "fails": 0, "undecided": 1, "tasks": None}]},
            {"characteristics": [{"truth": 0.6, "passes": 0, "fails": 0, "undecided": 1, "tasks": 20}]},
        ],
    )
    def test_an_edited_file_is_refused(self, rule, tmp_path, change):
        """What no rule can be is one error that names the file."""
        path = rule.save(tmp_path / "rule.json")
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
        with pytest.raises(EstimateError, match=r"rule\.json: not a stopping rule saved by agentic_bayes"):
            StoppingRule.load(path)

    @pytest.mark.parametrize("text", ["", "[]", "{", "null", '{"a": 1}', "\x00\xff", "[" * 100_000])
    def test_another_file_is_refused(self, tmp_path, text):
        """Whatever else the file holds."""
        path = tmp_path / "rule.json"
        path.write_text(text)
        with pytest.raises(EstimateError, match="not a stopping rule"):
            StoppingRule.load(path)
        with pytest.raises(EstimateError, match="no such file"):
            StoppingRule.load(tmp_path / "other.json")


def test_the_rule_is_printed_with_its_error_rates(rule):
    """Before it is used: when it stops, and how often it ends how, for three truths."""
    lines = str(rule).splitlines()
    assert lines[0].startswith("after every 20 tasks × 3 trials, at most 10 times, stop if the probability that pass^1")
    assert lines[1].startswith("  truth 0.700 (the bar): pass 0.0")
    assert len(lines) == 4


@pytest.mark.parametrize("rho", [0, 1e-320, 1])
def test_a_rule_for_tasks_that_are_all_alike_or_all_or_nothing(rho):
    """At the ends of ρ the truth at the bar is still at the bar: neither end is sure, and few pass."""
    bar = monitor(at_least=0.5, looks=2, simulations=400, rho=rho).characteristics[0]
    assert bar.passes <= 0.07
    assert bar.fails <= 0.07


def test_same_seed_same_rule():
    """Rules are reproducible; another seed gives another rule."""
    one, two, other = (monitor(at_least=0.7, looks=3, simulations=100, random_seed=seed) for seed in (0, 0, 1))
    assert one == two
    assert one.characteristics != other.characteristics


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({}, InvalidArgument, r"say when to stop: at_least \(a bar\) or width"),
        ({"at_least": 0}, InvalidArgument, r"at_least must be a number strictly between 0 and 1, got 0"),
        ({"at_least": 1.2}, InvalidArgument, r"at_least must be a number strictly between 0 and 1, got 1\.2"),
        ({"width": 2}, InvalidArgument, r"width must be a number strictly between 0 and 1, got 2"),
        ({"at_least": 0.5, "batch": 0}, InvalidArgument, "batch must be an integer ≥ 1, got 0"),
        ({"at_least": 0.5, "trials": 2.5}, InvalidArgument, r"trials must be an integer ≥ 1, got 2\.5"),
        ({"at_least": 0.5, "looks": True}, InvalidArgument, "looks must be an integer ≥ 1, got True"),
        ({"at_least": 0.5, "trials": 101}, InvalidArgument, "trials must be at most 100"),
        ({"at_least": 0.5, "looks": 10**30}, InvalidArgument, "looks must be at most 1,000"),
        ({"at_least": 0.5, "batch": 10**30}, InvalidArgument, "batch × trials × looks must be at most 100,000"),
        ({"at_least": 0.5, "simulations": 10**30}, InvalidArgument, "simulations × batch must be at most 20,000,000"),
        ({"at_least": 0.5, "rho": -1}, InvalidArgument, r"rho must be a number in \[0, 1\], got -1"),
        ({"at_least": 0.5, "mu": 0}, InvalidArgument, r"mu must be a number strictly between 0 and 1, got 0"),
        ({"at_least": 0.5, "confidence": 0.5}, InvalidArgument, r"confidence must be in \(0\.5, 1\)"),
        ({"at_least": 0.5, "false_winners": 0.7}, InvalidArgument, r"false_winners must be in \(0, 0\.5\), got 0\.7"),
        ({"at_least": 0.5, "simulations": 10}, InvalidArgument, "simulations must be an integer ≥ 100, got 10"),
        ({"at_least": 0.5, "metric": "pass"}, InvalidArgument, "metric must be .*, got 'pass'"),
        ({"at_least": 0.5, "metric": "pass^0"}, InvalidArgument, "metric must be"),
        ({"at_least": 0.5, "ci_kind": "ci"}, UnknownName, "unknown ci_kind 'ci'"),
    ],
)
def test_wrong_arguments(change, error, message):
    """A wrong argument is named, with what is allowed and what came."""
    with pytest.raises(error, match=message):
        monitor(**change)
