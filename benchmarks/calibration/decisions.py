"""Are decisions wrong as rarely as they claim? Comparisons, gates and rules on data that our model did not make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy import stats
from scipy.special import expit

from agentic_bayes import numerics
from agentic_bayes.decisions.compare import compare
from agentic_bayes.decisions.gate import gate
from agentic_bayes.decisions.monitor import StoppingRule, monitor
from agentic_bayes.decisions.simulate import mu_with_metric, simulate_successes
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.formatting import Metric
from agentic_bayes.numerics import Array
from agentic_bayes.outcomes.dataset import dataset_from_counts
from calibration.judge import judged_comparisons
from calibration.simulate import spread

TRIALS, KS = 4, (1, 3)
OWN = 0.8  # half-width of each agent's uniform deviation on a task
BIG = 2_000_000
FEWER_HALVES = 5  # every such set is fitted twice by importance sampling


@dataclass(frozen=True)
class Pairing:
    """Tasks that two agents both attempt: how many, how their easiness is spread, and how far apart the agents are."""

    tasks: int
    easiness: tuple[tuple[float, float, float], ...]  # weight, centre and spread of each normal, on the logit scale
    better: float  # shift of the better agent, on the logit scale


PAIRINGS = {
    "three kinds": Pairing(40, ((0.35, 2.5, 0.7), (0.25, -2.5, 0.7), (0.40, 0.0, 1.0)), 0.9),  # easy, hard, between
    "one kind": Pairing(50, ((1.0, 0.5, 1.3),), 0.55),
}


def success_probabilities(rng: np.random.Generator, shift: float, pairing: Pairing, tasks: int) -> Array:
    """True p of two agents on the same tasks, shape (2, tasks).

    The agents share each task's easiness, from a mixture of normals, and deviate uniformly on each task. The second
    agent is better by `shift` on the logit scale.
    """
    weight, centre, scale = np.array(pairing.easiness).T
    kind = rng.choice(weight.size, size=tasks, p=weight)
    easiness = centre[kind] + scale[kind] * rng.standard_normal(tasks)
    own = rng.uniform(-OWN, OWN, size=(2, tasks))
    p: Array = expit(easiness + own + np.array([[0.0], [shift]]))
    return p


@cache
def truth(shift: float, pairing: Pairing) -> dict[int, float]:
    """The true difference in pass^k on a new task, averaged over two million tasks."""
    p = success_probabilities(np.random.default_rng(99), shift, pairing, BIG)
    return {k: float((p[1] ** k - p[0] ** k).mean()) for k in KS}


def _outcomes(successes: dict[str, Array], trials: int) -> xr.Dataset:
    """Outcomes of agents that all attempted the same tasks equally often."""
    cells = {
        (agent, str(task)): (int(c), trials, 0, 0) for agent, row in successes.items() for task, c in enumerate(row)
    }
    return dataset_from_counts(cells, {"unit": "conversation", "indicator": "correct"})


@dataclass(frozen=True)
class _Job:
    seed: int
    shift: float
    pairing: Pairing


def _compare_once(job: _Job) -> list[dict[str, Any]]:
    rng = np.random.default_rng([job.seed, round(1000 * job.shift)])
    c = rng.binomial(TRIALS, success_probabilities(rng, job.shift, job.pairing, job.pairing.tasks))
    true = truth(job.shift, job.pairing)
    est = estimate(_outcomes({"old": c[0], "new": c[1]}, TRIALS), "crossed", k=KS)
    rows = []
    for k in KS:
        comparison = compare(est, "new", baseline="old", metric=f"pass^{k}")
        t = comparison.frequentist
        values = [numerics.pass_pow_k(TRIALS, row, k) for row in c]
        error = np.sqrt(sum(v.var(ddof=1) / v.size for v in values))
        gap = float(values[1].mean() - values[0].mean())
        z = gap / error if error > 0 else 0.0
        rows.append(
            {
                "k": k,
                "covered": comparison.lower <= true[k] <= comparison.upper,
                "better": comparison.verdict == "better",
                "worse": comparison.verdict == "worse",
                "width": comparison.upper - comparison.lower,
                "t_covered": t.lower <= true[k] <= t.upper,
                "t_width": t.upper - t.lower,
                "t_rejects": t.p_value < 0.05,
                "z_rejects": abs(z) > stats.norm.ppf(0.975),
            }
        )
    return rows


def _paired_sets(shift: float, pairing: Pairing, size: int, *, seed: int, processes: int) -> pd.DataFrame:
    """Compare two agents, one shifted, `size` times: one row per data set and k."""
    jobs = [_Job(seed * 1_000_000 + i, shift, pairing) for i in range(size)]
    return pd.DataFrame([row for rows in spread(_compare_once, jobs, processes=processes) for row in rows])


def paired_study(name: str, size: int, *, seed: int, processes: int = 1) -> pd.DataFrame:
    """Coverage, width relative to the paired t's, power (ours, t and unpaired z) and false verdicts, by k.

    Two agents attempt the tasks of `PAIRINGS[name]`, `size` times with a difference and `size` times without.
    """
    pairing = PAIRINGS[name]
    null, better = (
        _paired_sets(shift, pairing, size, seed=seed, processes=processes) for shift in (0.0, pairing.better)
    )
    rows = []
    for k in KS:
        same, other = null[null["k"] == k], better[better["k"] == k]
        rows.append(
            {
                "tasks": name,
                "k": k,
                "coverage": other["covered"].mean(),
                "t_coverage": other["t_covered"].mean(),
                "width_ratio": other["width"].mean() / other["t_width"].mean(),
                "power": other["better"].mean(),
                "t_power": other["t_rejects"].mean(),
                "z_power": other["z_rejects"].mean(),
                "false_verdicts": (same["better"] | same["worse"]).mean(),
                "t_false": same["t_rejects"].mean(),
                "null_coverage": same["covered"].mean(),
            }
        )
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class Bar:
    """A gate whose bar is exactly the truth."""

    metric: str
    bar: float
    rho: float
    tasks: int
    trials: int


BARS = tuple(
    Bar(metric, bar, rho, tasks, trials)
    for metric, bar in (("pass^1", 0.7), ("pass^1", 0.9), ("pass^3", 0.4), ("pass^3", 0.7))
    for rho in (0.2, 0.45)
    for tasks, trials in ((30, 3), (50, 4), (200, 3))
)
# tasks that are alike, success rate .9
ALIKE = tuple(
    Bar(metric, bar, 0.0, tasks, trials)
    for metric, bar in (("pass^3", 0.729), ("pass@3", 0.999))
    for tasks in (20, 50)
    for trials in (3, 5)
)
RULES: tuple[dict[str, Any], ...] = ({"metric": "pass^1", "at_least": 0.7}, {"metric": "pass^3", "at_least": 0.5})


def _gated(job: tuple[Bar, int]) -> str:
    design, seed = job
    metric = Metric(design.metric)
    rng = np.random.default_rng([seed, metric.k, design.tasks, round(1000 * design.rho)])
    if design.rho:
        mu = float(mu_with_metric(design.bar, design.rho, metric))
        c = simulate_successes(rng, mu, design.rho, design.tasks, design.trials)
    else:  # every task succeeds equally often
        mu = design.bar ** (1 / metric.k) if metric.power else 1 - (1 - design.bar) ** (1 / metric.k)
        c = rng.binomial(design.trials, mu, size=design.tasks)
    est = estimate(_outcomes({"solo": c}, design.trials), k=metric.k)
    return gate(est, at_least=design.bar, metric=design.metric).verdict


def gates(designs: Sequence[Bar], size: int, *, seed: int, processes: int = 1) -> pd.DataFrame:
    """How often a gate passes and fails with the truth exactly at its bar: one row per design."""
    rows = []
    for design in designs:
        ends = spread(_gated, [(design, seed * 1_000_000 + i) for i in range(size)], processes=processes)
        shares = {end: ends.count(end) / size for end in ("pass", "fail", "inconclusive")}
        rows.append(asdict(design) | shares)
    return pd.DataFrame(rows)


def _monitored(job: tuple[StoppingRule, int]) -> tuple[str, int]:
    rule, seed = job
    assert rule.at_least is not None
    metric = Metric(rule.metric)
    rng = np.random.default_rng([seed, metric.k])
    mu = float(mu_with_metric(rule.at_least, rule.rho, metric))
    c = simulate_successes(rng, mu, rule.rho, rule.batch * rule.looks, rule.trials)
    for number in range(1, rule.looks + 1):
        so_far = c[: number * rule.batch]
        look = rule.look(estimate(_outcomes({"solo": so_far}, rule.trials), "frequentist"))
        if look.stop:
            return look.verdict, so_far.size
    raise AssertionError("the last look stops")


def monitored(rule: StoppingRule, size: int, *, seed: int, processes: int = 1) -> dict[str, Any]:
    """How often a rule passes and fails with the truth at its bar, following `StoppingRule.look`."""
    ends = spread(_monitored, [(rule, seed * 1_000_000 + i) for i in range(size)], processes=processes)
    verdicts = [verdict for verdict, _ in ends]
    shares = {end: verdicts.count(end) / size for end in ("pass", "fail", "inconclusive")}
    at_bar = rule.characteristics[0]
    stated = {"stated_pass": at_bar.passes, "stated_fail": at_bar.fails, "stated_tasks": at_bar.tasks}
    settings = {"k": Metric(rule.metric).k, "bar": rule.at_least, "looks": rule.looks, "required": rule.required}
    return settings | shares | {"tasks": float(np.mean([tasks for _, tasks in ends]))} | stated


KINDS = ("easiest", "hardest", "random")
EASINESS = (1.2, 0.8)  # Beta parameters of the tasks' success probabilities


def half_tried(kind: str, rng: np.random.Generator, tasks: int = 60) -> dict[str, list[tuple[int, int]]]:
    """Successes and trials of two agents that are alike; the second tried only half of the tasks, of this kind."""
    p = rng.beta(*EASINESS, tasks)
    order = {"easiest": np.argsort(-p), "hardest": np.argsort(p), "random": rng.permutation(tasks)}[kind]
    passed = rng.binomial(TRIALS, p, (2, tasks)).tolist()
    tried = set(order[: tasks // 2].tolist())
    return {
        "A": [(c, TRIALS) for c in passed[0]],
        "B": [(c, TRIALS) if i in tried else (0, 0) for i, c in enumerate(passed[1])],
    }


def _half_compared(job: tuple[str, int]) -> tuple[bool, bool]:
    """Whether two equal agents are told apart: on the tasks that both tried, and on their own tasks."""
    kind, seed = job
    cells = {
        (agent, str(task)): (c, n, 0, 0)
        for agent, row in half_tried(kind, np.random.default_rng([seed, KINDS.index(kind)])).items()
        for task, (c, n) in enumerate(row)
        if n
    }
    est = estimate(dataset_from_counts(cells, {"unit": "conversation", "indicator": "correct"}), k=1)
    verdicts = (compare(est, "B", baseline="A", tasks=tasks).verdict for tasks in ("shared", "own"))
    shared, own = (verdict in ("better", "worse") for verdict in verdicts)
    return shared, own


def different_tasks(size: int, *, seed: int, processes: int = 1) -> pd.DataFrame:
    """False verdicts about two equal agents of which one tried half of the tasks: one row per kind of half."""
    rows = []
    for kind in KINDS:
        ends = spread(_half_compared, [(kind, seed * 1_000_000 + i) for i in range(size)], processes=processes)
        shared, own = np.mean(ends, axis=0)
        rows.append({"half": kind, "sets": size, "shared": shared, "own": own})
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class Decisions:
    """The results on decisions."""

    paired: pd.DataFrame  # by tasks and k; see `paired_study`
    gates: pd.DataFrame  # by design; see `gates`
    rules: pd.DataFrame  # by rule; see `monitored`
    halves: pd.DataFrame  # by kind of half; see `different_tasks`
    judged: pd.DataFrame  # by k; see `judged_comparisons`
    size: int  # data sets per design, except in `halves`


def study(size: int, *, seed: int, processes: int = 1) -> Decisions:
    """Comparisons with and without a difference, gates and rules with the truth at the bar, each `size` times."""
    settings: dict[str, Any] = {"seed": seed, "processes": processes}
    paired = pd.concat([paired_study(name, size, **settings) for name in PAIRINGS], ignore_index=True)
    rules = [monitored(monitor(**rule), size, **settings) for rule in RULES]
    halves = different_tasks(max(1, size // FEWER_HALVES), **settings)
    judged = judged_comparisons(max(1, size // 2), **settings)
    return Decisions(
        paired,
        gates((*BARS, *ALIKE), size, **settings),
        pd.DataFrame(rules),
        halves,
        judged,
        size,
    )
