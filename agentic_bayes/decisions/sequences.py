"""Simulated sequences of looks at growing data: how a stopping rule ends, and the probability that it must require."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from agentic_bayes.decisions.simulate import ManyPosteriors, histograms, mu_with_metric, simulate_successes
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.distribution import CIKind
from agentic_bayes.formatting import Metric
from agentic_bayes.numerics import Array

STRICTEST = 1 - 1e-6
MOST_TRIALS, MOST_LOOKS = 100, 1000
MOST_ATTEMPTS = 100_000  # of one sequence, to which the grid of posteriors is adapted
MOST_TASKS = 20_000_000  # that are simulated at once, to bound memory
GRID = 400  # candidates for the required probability


@dataclass(frozen=True, slots=True)
class Characteristic:
    """How the rule behaves if this is the truth."""

    truth: float  # the metric
    passes: float  # shares of the sequences that end so; NaN where the rule is on a width alone
    fails: float
    undecided: float
    tasks: float  # mean number of tasks when it stops


@dataclass
class Sequences:
    """Sequences of looks at simulated data."""

    metric: Metric
    batch: int
    trials: int
    looks: int
    rho: float
    ci: tuple[float, CIKind]
    seed: int
    progress: Callable[[int, int | None], None] | None
    done: int = 0

    def check_size(self, simulations: int) -> None:
        """Refuse what would fill the memory or take days."""
        sizes = {
            "trials": (self.trials, MOST_TRIALS),
            "looks": (self.looks, MOST_LOOKS),
            "batch × trials × looks": (self.batch * self.trials * self.looks, MOST_ATTEMPTS),
            "simulations × batch": (simulations * self.batch, MOST_TASKS),
        }
        for name, (size, most) in sizes.items():
            if size > most:
                raise InvalidArgument(f"{name} must be at most {most:,}")

    def _tick(self) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, None)

    def probabilities(self, bar: float, truth: float, size: int, *, stream: int) -> Array:
        """P(metric ≥ bar) at every look, shape (sequences, looks)."""
        rng = np.random.default_rng([self.seed, stream])
        mu = float(mu_with_metric(truth, self.rho, self.metric))
        seen = np.zeros((size, self.trials + 1))
        found = np.empty((size, self.looks))
        for look in range(self.looks):
            new = simulate_successes(rng, mu, self.rho, size * self.batch, self.trials).reshape(size, self.batch)
            seen += histograms(new, self.trials)
            found[:, look] = ManyPosteriors(self.metric, self.trials, seen).at_least(bar)
            self._tick()
        return found

    def widths(self, truth: float, size: int, *, stream: int, bar: float | None = None) -> tuple[Array, Array]:
        """Widths of the interval at every look, and P(metric ≥ bar), shape (sequences, looks)."""
        rng = np.random.default_rng([self.seed, stream, 1])
        mu = float(mu_with_metric(truth, self.rho, self.metric))
        found, met = np.empty((size, self.looks)), np.full((size, self.looks), math.nan)
        # look by look within each sequence
        new = [
            histograms(simulate_successes(rng, mu, self.rho, self.batch, self.trials)[None], self.trials)
            for _ in range(size * self.looks)
        ]
        seen = np.reshape(new, (size, self.looks, -1)).cumsum(axis=1)
        for look in range(self.looks):
            posteriors = ManyPosteriors(self.metric, self.trials, seen[:, look])
            lower, upper = posteriors.intervals(*self.ci)
            found[:, look] = upper - lower
            if bar is not None:
                met[:, look] = posteriors.at_least(bar)
            self._tick()
        return found, met


def ends(met: Array, required: float) -> tuple[Array, Array, Array]:
    """Whether each sequence passes, whether it fails, and at which look (from 0) it stops."""
    passes, fails = met >= required, 1 - met >= required
    first = first_look(passes | fails)
    row = np.arange(len(met))
    return passes[row, first], fails[row, first], first


def required_probability(met: Array, least: float, allowed: float) -> float:
    """The smallest probability with which at most the allowed share of sequences passes, and fails, at the bar.

    One standard error is kept in hand, since these sequences are a sample.
    """
    goal = allowed - math.sqrt(allowed * (1 - allowed) / len(met))
    odds = np.linspace(math.log(least / (1 - least)), math.log(STRICTEST / (1 - STRICTEST)), GRID)
    for candidate in 1 / (1 + np.exp(-odds)):
        passes, fails, _ = ends(met, float(candidate))
        if max(passes.mean(), fails.mean()) <= goal:
            return float(candidate)
    raise InvalidArgument(f"no required probability keeps false_winners at {allowed:g} with these looks: allow more")


def described(
    truth: float, met: Array, widths: Array | None, required: float, narrow: float | None, runs: Sequences
) -> Characteristic:
    """How the sequences end, and after how many tasks."""
    passes, fails, last = ends(met, required)
    if widths is not None and narrow is not None:
        enough = first_look(widths <= narrow)
        earlier = (enough < last) & (widths.min(axis=1) <= narrow)
        passes, fails, last = passes & ~earlier, fails & ~earlier, np.minimum(last, enough)
    shares = float(passes.mean()), float(fails.mean())
    return Characteristic(truth, *shares, max(1 - sum(shares), 0.0), mean_tasks(last, runs))


def first_look(reached: Array) -> Array:
    """The first look (from 0) at which something is reached, else the last."""
    return np.asarray(np.where(reached.any(axis=1), reached.argmax(axis=1), reached.shape[1] - 1))


def mean_tasks(last: Array, runs: Sequences) -> float:
    """Mean number of tasks when the sequences stop."""
    return float((last + 1).mean() * runs.batch)
