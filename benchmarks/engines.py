"""Time, memory and error of the engines of the hierarchical model.

``python benchmarks/engines.py`` prints four tables: `estimate` and its summary, next to our targets;
the exact engine over sizes of data, with the draws of `tasks` and `task` timed separately; how its time grows, as
slopes of log time over log size; and the exact engine next to PyMC with nutpie (4 × 1,000 draws) on the same outcomes.
Seconds are wall time: for the exact engine the median of five runs after a warm-up, for the sampler one run. The first
table has the least of three runs, in wall time and in CPU time: the latter depends less on what else the machine does.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from measuring import peak_memory, print_table

from agentic_bayes.errors import NotConverged
from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.engines import nuts as mcmc
from agentic_bayes.estimation.engines.grid.exact import GridPosterior
from agentic_bayes.estimation.engines.grid.quadrature import fit_agents
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.fitting import MOST_CROSSED
from agentic_bayes.estimation.methods.hierarchical import HierarchicalPosterior
from agentic_bayes.estimation.methods.options import Hierarchical
from agentic_bayes.estimation.posterior import CHAINS, DRAWS, Estimand, Posterior
from agentic_bayes.formatting import Metric, metrics_at

# agents, tasks, trials
SIZES = (
    *((1, 50, 5), (1, 1_000, 5), (1, 100_000, 5)),
    *((1, 50, 50), (1, 50, 1_000), (1, 50, 1_000_000)),
    *((3, 50, 5), (13, 80, 5), (50, 50, 5), (200, 50, 5)),
)
COMPARED = ((1, 50, 5), (3, 50, 5))
# what grows → its place in a size, and the two sizes that a slope is taken between
GROWING = {
    "agents": (0, (3, 50, 5), (48, 50, 5)),
    "tasks": (1, (1, 100, 5), (1, 100_000, 5)),
    "trials": (2, (1, 50, 10), (1, 50, 1_000)),
}
FEW_KS, MANY_KS = 5, 100
# size → targets in wall time (hierarchical): of a fit with means and intervals of `population`, and with `summary()`
TARGETS = {(3, 50, 5): ("25 ms", "60 ms"), (13, 80, 5): ("120 ms", "300 ms"), (200, 10, 3): ("1 s", "–")}
METRICS = metrics_at((1, 3, 5))
REPEAT = 5


def main(sizes: Sequence[tuple[int, int, int]] = SIZES, compared: Sequence[tuple[int, int, int]] = COMPARED) -> None:
    """Run everything and print the tables."""
    print_table(
        ("agents × tasks × trials", "method", "population", "CPU", "target", "with summary", "CPU", "target"), targets()
    )
    print()
    print_table(
        ("agents × tasks × trials", "fit", "population", "tasks", "task", "peak of fit", "peak of all"),
        [scaling(*size) for size in sizes],
    )
    print()
    print_table(("grows with", "from", "to", "slope of log time"), slopes())
    print()
    print_table(
        ("agents × tasks × trials", "engine", "time", "exact is", "error of means", "error of 95 % ends"),
        [row for size in compared for row in versus(*size)],
    )


def simulated(agents: int, tasks: int, trials: int) -> xr.Dataset:
    """Outcomes of agents whose tasks differ about as much as in real benchmarks (ρ = .4)."""
    rng = np.random.default_rng([agents, tasks, trials])
    mu, kappa = rng.uniform(0.3, 0.9, (agents, 1)), 1.5
    n = np.full((agents, tasks), trials)
    c = rng.binomial(n, rng.beta(mu * kappa, (1 - mu) * kappa, n.shape))
    cells = {"successes": c, "trials": n, "unscored": np.zeros_like(n)}
    labels: dict[str, Any] = {"agent": list(map(str, range(agents))), "task": list(map(str, range(tasks)))}
    return xr.Dataset({name: (("agent", "task"), values) for name, values in cells.items()}, coords=labels)


def exact(counts: Counts, fine: float = 1.0) -> GridPosterior:
    """The quadrature engine's posterior."""
    fit = fit_agents(counts, Hierarchical(), fine=fine)
    return GridPosterior(counts=counts, random_seed=0, fit=fit, metrics=METRICS)


def aggregates(posterior: Posterior, estimand: Estimand, metrics: Sequence[Metric] = METRICS) -> np.ndarray:
    """Mean and interval of every agent and metric."""
    posterior = posterior.with_metrics(tuple(metrics))
    agents = range(len(posterior.counts.agents))
    distributions = [posterior.distribution(agent, estimand, metric) for agent in agents for metric in metrics]
    return np.array([(d.mean, *d.interval(0.95, "eti")) for d in distributions])


def per_task(posterior: Posterior) -> None:
    """Summarise every task of every agent."""
    for agent in range(len(posterior.counts.agents)):
        for metric in METRICS:
            posterior.distribution(agent, "task", metric).stats(0.95, "eti")


def seconds(work: Callable[[Any], Any], make: Callable[[], Any]) -> float:
    """Median wall time of five runs after a warm-up; `make` prepares the argument and is not timed."""
    times = []
    for _ in range(REPEAT + 1):
        argument = make()
        start = time.perf_counter()
        work(argument)
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def targets() -> list[tuple[str, ...]]:
    """`estimate` with the intervals of `population`, and with its summary; and all k up to 100 next to one."""
    rows = []
    for size in TARGETS:
        outcomes = simulated(*size)
        for method in ("hierarchical", "crossed") if size[0] <= MOST_CROSSED else ("hierarchical",):
            population = least(lambda o=outcomes, m=method: aggregates(estimate(o, m).posterior, "population"))
            summary = least(lambda o=outcomes, m=method: estimate(o, m).summary())
            name = " × ".join(map(str, size))
            alone, whole = TARGETS[size] if method == "hierarchical" else ("–", "–")
            rows.append((name, method, *map(in_ms, population), alone, *map(in_ms, summary), whole))
    outcomes = simulated(3, 50, 5)
    for method in ("hierarchical", "crossed"):
        one, many = (least(lambda k=k, m=method: estimate(outcomes, m, k=k).summary()) for k in (1, range(1, 101)))
        ratios = [f"{most / single:.1f} ×" for single, most in zip(one, many, strict=True)]
        rows.append(("3 × 50 × 5, k = 1 to 100", method, "", "", "", *ratios, "5 × one k"))
    return rows


def least(work: Callable[[], Any]) -> tuple[float, float]:
    """Least wall time and least CPU time of three runs after a warm-up."""
    times = []
    for _ in range(4):
        start = time.perf_counter(), time.process_time()
        work()
        times.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    wall, cpu = np.min(times[1:], axis=0).tolist()
    return wall, cpu


def in_ms(value: float) -> str:
    """Seconds as milliseconds."""
    return f"{1e3 * value:,.0f} ms"


def scaling(agents: int, tasks: int, trials: int) -> tuple[str, ...]:
    """The exact engine at one size."""
    outcomes = simulated(agents, tasks, trials)

    def counts() -> Counts:
        return Counts.of(outcomes)

    def everything() -> None:
        posterior = exact(counts())
        for estimand in ("population", "tasks"):
            aggregates(posterior, estimand)
        per_task(posterior)

    fitted = exact(counts())

    def without_cache() -> GridPosterior:
        return replace(fitted)

    times = [
        seconds(exact, counts),
        *(seconds(lambda posterior, e=e: aggregates(posterior, e), without_cache) for e in ("population", "tasks")),
        seconds(per_task, without_cache),
    ]
    memory = peak_memory(lambda: exact(counts())), peak_memory(everything)
    return (
        f"{agents} × {tasks:,} × {trials:,}",
        *(f"{1e3 * value:.0f} ms" for value in times),
        *(f"{value:.0f} MB" for value in memory),
    )


def slopes() -> list[tuple[str, ...]]:
    """How the time of a fit with every mean and interval of `population` grows."""
    found = []
    for name, (place, small, large) in GROWING.items():
        times = [
            seconds(lambda counts: aggregates(exact(counts), "population"), lambda o=outcomes: Counts.of(o))
            for outcomes in (simulated(*small), simulated(*large))
        ]
        sizes = (" × ".join(f"{part:,}" for part in size) for size in (small, large))
        found.append((name, *sizes, f"{slope(times, (small[place], large[place])):.2f}"))
    counts = Counts.of(simulated(3, 50, 5))
    times = []
    for most in (FEW_KS, MANY_KS):
        metrics = metrics_at(range(1, most + 1))
        times.append(
            seconds(lambda posterior, m=metrics: aggregates(posterior, "population", m), lambda: exact(counts))
        )
    return [*found, ("k", f"1 to {FEW_KS}", f"1 to {MANY_KS}", f"{slope(times, (FEW_KS, MANY_KS)):.2f}")]


def slope(times: Sequence[float], sizes: Sequence[int]) -> float:
    """Of log time over log size."""
    return float(np.log(times[1] / times[0]) / np.log(sizes[1] / sizes[0]))


@dataclass(frozen=True)
class Run:
    """One engine on one set of outcomes: seconds, and mean and interval of every agent and metric."""

    engine: str
    seconds: float
    numbers: np.ndarray


def versus(agents: int, tasks: int, trials: int) -> list[tuple[str, ...]]:
    """Fit and summarise `population` with each engine; errors are relative to grids three times as fine."""
    outcomes = simulated(agents, tasks, trials)
    reference = aggregates(exact(Counts.of(outcomes), fine=3.0), "population")
    ours = Run(
        "quadrature",
        seconds(lambda counts: aggregates(exact(counts), "population"), lambda: Counts.of(outcomes)),
        aggregates(exact(Counts.of(outcomes)), "population"),
    )
    first = sampled(outcomes, "PyMC, first fit with compilation")
    again = sampled(outcomes, "PyMC, sampling alone")
    rows: list[tuple[str, ...]] = []
    for run in (ours, again, first):
        error = np.abs(run.numbers - reference)
        ratio = "" if run is ours else f"{run.seconds / ours.seconds:.0f} × faster"
        taken = f"{1e3 * run.seconds:.0f} ms" if run.seconds < 1 else f"{run.seconds:.1f} s"
        errors = f"{error[:, 0].max():.1g}", f"{error[:, 1:].max():.1g}"
        rows.append((f"{agents} × {tasks:,} × {trials:,}", run.engine, taken, ratio, *errors))
    return rows


def sampled(outcomes: xr.Dataset, name: str) -> Run:
    """One run of the PyMC engine."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        fit = mcmc.fit(outcomes, Hierarchical())
    taken = time.perf_counter() - start
    chains = {name: fit.posterior[name].transpose("chain", "draw", "agent").values for name in ("mu", "rho")}
    hyper = {name: values.reshape(CHAINS * DRAWS, -1) for name, values in chains.items()}
    posterior = HierarchicalPosterior(counts=Counts.of(outcomes), random_seed=0, hyper=hyper)
    return Run(name, taken, aggregates(posterior, "population"))


if __name__ == "__main__":
    main()
