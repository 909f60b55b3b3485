"""Adaptive trials: where the budget goes, when it ends, and that nothing is lost on the way."""

import asyncio

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta as beta_law

import agentic_bayes as ab
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.formatting import Metric
from agentic_bayes.suites.adaptive import allocate, end_of, remaining_variances, round_size
from agentic_bayes.suites.config import load_suite
from agentic_bayes.suites.results import RunResults
from agentic_bayes.suites.runner import plan_run, run_suite
from agentic_bayes.suites.trial import AgentReply

SUITE = """
name: adaptive
agent: {type: python, config: {function: "nothing:answer"}}
defaults:
  trials_per_task: auto
  budget: 120
  target: {metric: pass^3, width: 0.15}
  graders: [{type: exact_match}]
execution: {concurrency: 5, retry_delay: 0}
tasks:
"""


@pytest.fixture
def make(tmp_path):
    """A suite of some tasks, with other settings if asked."""

    def run(tasks=("sure", "mixed", "never"), **settings):
        text = SUITE
        for name, value in settings.items():
            old = next(line for line in SUITE.splitlines() if line.strip().startswith(f"{name}:"))
            text = text.replace(old, f"  {name}: {value}")
        text += "".join(f"  - {{id: {name}, input: {{prompt: x}}, expected: {{text: right}}}}\n" for name in tasks)
        (tmp_path / "eval.yaml").write_text(text, encoding="utf-8")
        return load_suite(tmp_path / "eval.yaml", environment={})

    return run


class Agent:
    """Right with the probability of the task, the same for the same seed; "broken" is always an error."""

    identity = "agent/1"

    async def attempt(self, attempt):
        """One answer."""
        if attempt.task.id == "broken":
            raise RuntimeError("no network")
        p = {"sure": 1.0, "never": 0.0}.get(attempt.task.id, 0.6)
        return AgentReply(("right" if np.random.default_rng(attempt.seed).random() < p else "wrong",))


class Stopped(Exception):
    """What ends a run from outside."""


def run(suite, agent, stop_after=None, **options):
    planned = plan_run(suite, suite.tasks, **options)
    ended = []

    def progress(result, *_):
        ended.append(result)
        if len(ended) == stop_after:
            raise Stopped("enough")

    finished = asyncio.run(run_suite(planned, agent=agent, progress=progress))
    return RunResults.of(planned.folder), finished


def trials_of(results):
    """Trials of every task."""
    return {row["task"]: row["trials"] for row in results.tasks()}


def test_expected_variances_agree_with_simulation_and_fall():
    """V_j by drawing outcomes and measuring what is left; pass@k is the mirror image of pass^k."""
    a, b, k, most = np.array([2.0, 0.7]), np.array([1.5, 4.0]), 3, 6
    left = remaining_variances(a, b, Metric(f"pass^{k}"), most)
    assert (np.diff(left, axis=1) < 0).all()
    rng = np.random.default_rng(1)
    for task, j in ((0, 0), (0, 6), (1, 3)):
        c = rng.binomial(j, rng.beta(a[task], b[task], 20_000))
        kept = [beta_law(a[task] + i, b[task] + j - i) for i in range(j + 1)]
        variance = [law.moment(2 * k) - law.moment(k) ** 2 for law in kept]
        assert left[task, j] == pytest.approx(np.mean(np.array(variance)[c]), rel=0.03)
    mirrored = remaining_variances(b, a, Metric(f"pass@{k}"), most)
    np.testing.assert_allclose(left, mirrored, rtol=1e-12)


def test_a_round_goes_to_the_tasks_that_are_least_sure():
    """Ten passes of ten tell more than five of ten: the mixed task gets the trials; equals share."""
    rows = [("a", 10, 10), ("b", 5, 10), ("c", 0, 10), ("d", 5, 10)]
    est = ab.estimate(counted(rows), k=(1, 3))
    more = allocate(est, "pass^1", dict.fromkeys("abcd", 10), 8)
    assert more == {"b": 4, "d": 4}
    assert sum(allocate(est, "pass^3", dict.fromkeys("ab", 10), 7).values()) == 7
    assert allocate(est, "pass^3", {}, 7) == {}
    assert end_of(est, "pass^1", 1.0).startswith("the pass^1 interval is ")
    assert end_of(est, "pass^1", 0.01) is None
    assert [round_size(40, 100, 4), round_size(8, 100, 4), round_size(98, 100, 4)] == [10, 4, 2]


def counted(rows):
    """Outcomes of (task, passes, trials)."""
    return ab.outcomes_from_table(
        pd.DataFrame([(task, int(i < c)) for task, c, n in rows for i in range(n)], columns=["task", "correct"])
    )


def test_the_budget_goes_where_it_tells_most_and_is_not_exceeded(make):
    """Two trials each at first; then the mixed task gets most; the run says why it ended."""
    results, finished = run(make(target="{metric: pass^3, width: 0.01}"), Agent())
    assert finished
    counts = trials_of(results)
    assert sum(counts.values()) == 120
    assert counts["mixed"] > counts["sure"] + counts["never"]
    assert min(counts.values()) >= 2
    assert results.summary((1, 3))["ended"] == "the budget of 120 trials is spent"


def test_it_stops_when_the_interval_is_narrow_enough(make):
    """The interval at the end is as narrow as asked, and the budget is not spent."""
    results, finished = run(make(budget="400"), Agent())
    assert finished
    assert sum(trials_of(results).values()) < 400
    rows = results.estimate((1, 3)).summary()
    (row,) = rows[(rows.estimand == "tasks") & (rows.metric == "pass^3")].itertuples()
    assert row.upper - row.lower <= 0.15
    assert results.summary((3,))["ended"].startswith("the pass^3 interval is ")
    again = plan_run(make(budget="400"), make(budget="400").tasks)
    assert not again.continued


def test_a_stopped_run_goes_on_as_if_nothing_had_been(make):
    """Stopped anywhere, the same trials are chosen in the end, and none is run twice."""
    undisturbed = trials_of(run(make(), Agent())[0])
    suite, stops, new = make(), 0, True
    while True:
        try:
            results, finished = run(suite, Agent(), stop_after=17, new=new)
            break
        except Stopped:
            stops, new = stops + 1, False
    assert finished
    assert stops >= 2
    assert trials_of(results) == undisturbed


def test_nothing_is_spent_on_what_breaks_down(make):
    """A task whose trials are all errors gets no more; where all are, the run ends unfinished."""
    results, finished = run(
        make(tasks=("mixed", "broken"), budget="60", target="{metric: pass^3, width: 0.01}"), Agent()
    )
    assert trials_of(results) == {"mixed": 58, "broken": 2}
    assert not finished
    assert results.pending == 2
    results, finished = run(make(tasks=("broken",)), Agent(), new=True)
    assert (finished, trials_of(results), results.summary((1,))["ended"]) == (False, {"broken": 2}, None)


def test_a_budget_below_one_trial_each_is_refused(make):
    """Nothing is run then."""
    suite = make(budget="2")
    with pytest.raises(InvalidArgument, match=r"defaults.budget must allow a trial of each of the 3 tasks .* got 2"):
        plan_run(suite, suite.tasks)


def test_what_is_planned_is_on_disk_before_it_runs(make):
    """A crash in the middle of a round leaves the round, not a new choice."""
    suite = make()
    with pytest.raises(Stopped, match="enough"):
        run(suite, Agent(), stop_after=8)
    planned = plan_run(suite, suite.tasks)
    assert planned.continued
    assert planned.total == 11  # six, and a round of as many as run at a time
