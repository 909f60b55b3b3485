"""Coverage and width of 95 % intervals at fixed truths, for our intervals and for common alternatives.

With equal n, the numbers of tasks with c = 0, …, n determine a data set; equal data sets are analysed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd

from agentic_bayes import numerics
from agentic_bayes.estimation.arithmetic import apply_metric, mean_of_metric
from agentic_bayes.estimation.distribution import CIKind
from agentic_bayes.estimation.methods.conjugate import ConjugatePosterior
from agentic_bayes.estimation.methods.frequentist import FrequentistEstimate, unbiased
from agentic_bayes.estimation.methods.options import Conjugate, Frequentist
from agentic_bayes.estimation.posterior import Estimand, Posterior
from agentic_bayes.formatting import Metric
from agentic_bayes.numerics import Array
from calibration.simulate import counts_of, exact_posterior, spread, stats_of, success_probabilities

ESTIMANDS: tuple[Estimand, ...] = ("population", "tasks")
METRICS = tuple(map(Metric, ("pass^1", "pass^3", "pass@3", "pass^8")))
METHODS = ("ours", "ours hdi", "plug-in", "conjugate pooled", "clustered t", "logit-t", "bootstrap")
OURS, LOGIT_T = METHODS.index("ours"), METHODS.index("logit-t")
RESAMPLES = 1000
HDI_AT = 3  # the k for which hdi is computed as well


@dataclass(frozen=True)
class Cell:
    """A fixed truth and a study size."""

    mu: float  # population mean
    rho: float  # intra-class correlation
    tasks: int
    trials: int  # per task


ALL_CELLS = tuple(
    Cell(mu, rho, T, n) for T, n, rho, mu in product((5, 20, 50), (1, 3, 5), (0, 0.2, 0.6), (0.5, 0.7, 0.9))
)


def coverage(cells: Sequence[Cell], size: int, *, seed: int, processes: int = 1) -> pd.DataFrame:
    """Coverage and mean width of every method in every cell, over `size` data sets per cell.

    `exists` is the share of data sets with an interval, over which coverage and width are computed. `width_logit_t` and
    `width_with_logit_t` are the mean widths of logit-t and of the method where logit-t exists.
    """
    rows: list[dict[str, object]] = []
    for T, n in sorted({(cell.tasks, cell.trials) for cell in cells}):
        here = [cell for cell in cells if (cell.tasks, cell.trials) == (T, n)]
        simulated = [_simulate(cell, size, seed) for cell in here]
        histograms, index = np.unique(np.concatenate([part[0] for part in simulated]), axis=0, return_inverse=True)
        index = index.reshape(len(here), size)
        edge = {int(i) for cell, part in zip(here, index, strict=True) if cell.rho == 0 for i in part}
        items = [(tuple(row), i in edge) for i, row in enumerate(histograms.tolist())]
        analysed = np.array(spread(_analyse, items, processes=processes))
        for cell, (_, truth), part in zip(here, simulated, index, strict=True):
            rows += _rows(cell, truth, analysed[part])
    return pd.DataFrame(rows)


def _simulate(cell: Cell, size: int, seed: int) -> tuple[Array, Array]:
    """Histograms of c, shape (data sets, n + 1), and true values, shape (data sets, estimands, metrics)."""
    rng = np.random.default_rng([seed, cell.tasks, cell.trials, round(1000 * cell.rho), round(1000 * cell.mu)])
    p = success_probabilities(rng, cell.mu, cell.rho, (size, cell.tasks))
    c = rng.binomial(cell.trials, p)
    histograms = (c[:, :, None] == np.arange(cell.trials + 1)).sum(axis=1)
    truth = np.empty((size, len(ESTIMANDS), len(METRICS)))
    for i, metric in enumerate(METRICS):
        truth[:, 0, i] = _population(cell, metric)
        truth[:, 1, i] = apply_metric(p, metric).mean(axis=1)
    return histograms, truth


def _population(cell: Cell, metric: Metric) -> float:
    """The true metric of a new task."""
    if cell.rho == 0:
        return float(apply_metric(np.array(cell.mu), metric))
    kappa = 1 / cell.rho - 1
    return float(mean_of_metric(np.array(cell.mu * kappa), np.array((1 - cell.mu) * kappa), metric))


def _analyse(item: tuple[tuple[int, ...], bool]) -> Array:
    """The limits for one histogram of c, shape (methods, estimands, metrics, 2); NaN without an interval."""
    histogram, with_hdi = item
    n = len(histogram) - 1
    counts = counts_of(np.repeat(np.arange(n + 1), histogram), np.full(sum(histogram), n))
    exact = exact_posterior(counts, metrics=METRICS)
    pooled = ConjugatePosterior(counts=counts, random_seed=0, method=Conjugate(pool_tasks=True))
    plugin = FrequentistEstimate(counts=counts, random_seed=0, method=Frequentist(estimator="plugin"))
    clustered = FrequentistEstimate(counts=counts, random_seed=0)
    resampled = _resampled(np.array(histogram))
    limits = np.full((len(METHODS), len(ESTIMANDS), len(METRICS), 2), np.nan)
    for i, metric in enumerate(METRICS):
        for e, estimand in enumerate(ESTIMANDS):
            limits[0, e, i] = _interval(exact, estimand, metric)
            if with_hdi and metric.k == HDI_AT:
                limits[1, e, i] = _interval(exact, estimand, metric, "hdi")
        limits[2, :, i] = _interval(plugin, "tasks", metric)
        limits[3, :, i] = _interval(pooled, "population", metric)
        if metric.k <= n:
            limits[4, :, i] = _interval(clustered, "tasks", metric)
            values = unbiased(np.full(n + 1, n), np.arange(n + 1), metric)
            limits[5, :, i] = numerics.logit_t_interval(np.repeat(values, histogram))
            limits[6, :, i] = np.quantile(resampled @ values, [0.025, 0.975])
    return limits


def _interval(posterior: Posterior, estimand: Estimand, metric: Metric, ci_kind: CIKind = "eti") -> tuple[float, float]:
    stats = stats_of(posterior, 0, estimand, metric, ci_kind)
    return stats.lower, stats.upper


def _resampled(histogram: Array) -> Array:
    """The shares of tasks with c = 0, …, n in bootstrap samples of the tasks."""
    rng = np.random.default_rng([0, *histogram.tolist()])
    return rng.multinomial(histogram.sum(), histogram / histogram.sum(), RESAMPLES) / histogram.sum()


def _rows(cell: Cell, truth: Array, limits: Array) -> Iterator[dict[str, object]]:
    """One row per method, estimand and metric from limits of shape (data sets, methods, estimands, metrics, 2)."""
    lower, upper = limits[..., 0], limits[..., 1]
    exists = np.isfinite(lower)
    covered = (lower <= truth[:, None]) & (truth[:, None] <= upper)
    width = upper - lower
    logit_t = exists[:, LOGIT_T]
    for (m, method), (e, estimand), (i, metric) in product(*map(enumerate, (METHODS, ESTIMANDS, METRICS))):
        defined = exists[:, m, e, i]
        # hdi is computed for data sets from cells with ρ = 0; other cells share some of those data sets by chance
        if not defined.any() or (method == "ours hdi" and cell.rho > 0):
            continue
        both = defined & logit_t[:, e, i]
        yield {
            "T": cell.tasks,
            "n": cell.trials,
            "rho": cell.rho,
            "mu": cell.mu,
            "estimand": estimand,
            "metric": str(metric),
            "k": metric.k,
            "method": method,
            "exists": defined.mean(),
            "coverage": covered[defined, m, e, i].mean(),
            "width": width[defined, m, e, i].mean(),
            "width_with_logit_t": width[both, m, e, i].mean() if both.any() else np.nan,
            "width_logit_t": width[both, LOGIT_T, e, i].mean() if both.any() else np.nan,
        }


def requirements(table: pd.DataFrame, method: str = "ours") -> pd.DataFrame:
    """One method's rows in the cells that must reach a coverage of .90: T ≥ 20, n ≥ 3, k ≤ n, ρ ≥ .2."""
    return table.query("method == @method and T >= 20 and n >= 3 and k <= n and rho >= 0.2")


def width_ratios(table: pd.DataFrame) -> dict[str, float]:
    """Our mean width divided by logit-t's where logit-t exists, averaged over cells and metrics, by estimand."""
    ours = table.query("method == 'ours'").dropna(subset=["width_logit_t"])
    ratio = ours["width_with_logit_t"] / ours["width_logit_t"]
    return {estimand: float(ratio[ours["estimand"] == estimand].mean()) for estimand in ESTIMANDS}
