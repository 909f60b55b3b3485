"""How many trials adaptive rounds save, and how often the interval at the stop covers the truth.

``python benchmarks/adaptive.py [simulations]`` simulates suites whose tasks have known probabilities and runs them
until the interval of pass^3 on these tasks is narrow enough. It prints the trials spent and the coverage at the stop,
for adaptive rounds and for one more trial of every task at a time, on the same suites.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pandas as pd

import agentic_bayes as ab
from agentic_bayes.suites.adaptive import allocate, end_of, first_plan, round_size

TASKS, BUDGET, CONCURRENCY, TARGET, K = 30, 900, 4, "pass^3", 3
WIDTH = 0.12


def probabilities(kind: str, rng: np.random.Generator) -> np.ndarray:
    """The success probability of every task: with kind ``mixed`` many tasks always pass, with ``alike`` none does."""
    if kind == "alike":
        return rng.beta(8, 4, TASKS)
    which = rng.choice(3, TASKS, p=[0.45, 0.2, 0.35])
    return np.choose(which, [rng.beta(30, 0.5, TASKS), rng.beta(0.5, 15, TASKS), rng.beta(2, 2, TASKS)])


def estimate(passed: np.ndarray, trials: np.ndarray) -> ab.Estimate:
    """The estimate from the passes and trials of every task."""
    rows = [(f"t{i:02d}", int(j < passed[i])) for i in range(TASKS) for j in range(trials[i])]
    return ab.estimate(ab.outcomes_from_table(pd.DataFrame(rows, columns=["task", "correct"])), k=(1, K))


def run(p: np.ndarray, rng: np.random.Generator, *, adaptive: bool) -> tuple[int, bool]:
    """Trials spent, and whether the interval at the stop contains the truth."""
    trials = np.full(TASKS, first_plan(TASKS, BUDGET))
    passed = rng.binomial(trials, p)
    while True:
        est = estimate(passed, trials)
        spent = int(trials.sum())
        if end_of(est, TARGET, WIDTH) is not None or spent >= BUDGET:
            frame = est.summary()
            (row,) = frame[(frame.estimand == "tasks") & (frame.metric == TARGET)].itertuples()
            return spent, bool(row.lower <= (p**K).mean() <= row.upper)
        if adaptive:
            names = [f"t{i:02d}" for i in range(TASKS)]
            chosen = allocate(est, TARGET, dict.fromkeys(names, 0), round_size(spent, BUDGET, CONCURRENCY))
            more = np.array([chosen.get(name, 0) for name in names])
        else:
            more = np.ones(TASKS, dtype=int)
        trials, passed = trials + more, passed + rng.binomial(more, p)


def main() -> int:
    """Print the table."""
    warnings.simplefilter("ignore", ab.errors.AgenticBayesWarning)
    simulations = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(f"{simulations} suites each, {TASKS} tasks, until the 95 % interval of {TARGET} is {WIDTH} wide")
    for kind in ("mixed", "alike"):
        spent, covered = {}, {}
        for way in (True, False):
            runs = []
            for number in range(simulations):
                p = probabilities(kind, np.random.default_rng([1, number]))
                runs.append(run(p, np.random.default_rng([2, number]), adaptive=way))
            spent[way], covered[way] = np.mean(runs, axis=0)
        print(
            f"{kind}: adaptive {spent[True]:.0f} trials, coverage {covered[True]:.3f}; one more of every task "
            f"{spent[False]:.0f} trials, coverage {covered[False]:.3f}; ratio {spent[True] / spent[False]:.2f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
