"""A Dirichlet-process mixture of binomials: what counts say about new tasks without assuming a shape.

::

    c_i ~ Binomial(n_i, p_i),   p_i ~ G,   G ~ DP(α, Uniform(0, 1)),   α ~ Gamma(1, 1)

Truncated at a fixed number of atoms and sampled by blocked Gibbs (Ishwaran and James 2001, Journal of the American
Statistical Association 96, 161-173, doi:10.1198/016214501750332758), many short chains side by side.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agentic_bayes.estimation.arithmetic import apply_metric
from agentic_bayes.formatting import Metric
from agentic_bayes.numerics import Array

ATOMS = 16
CHAINS, BURN_IN, KEPT, EVERY = 100, 100, 20, 3  # steps of every chain that are thrown away, and that are kept
MOST_CELLS = 2**21  # chains × groups × atoms, to bound memory
TINY = 1e-12


def mixture_draws(
    c: Array, n: Array, size: Array, metrics: Sequence[Metric], rng: np.random.Generator
) -> dict[Metric, Array]:
    """Posterior draws of each metric's mean over new tasks, given groups of tasks with equal (c, n)."""
    chains = int(np.clip(MOST_CELLS // (c.size * ATOMS), 4, CHAINS))
    kept = -(-CHAINS * KEPT // chains)
    p, alpha = rng.random((chains, ATOMS)), np.ones((chains, 1))
    weight = rng.dirichlet(np.ones(ATOMS), size=chains)
    found: dict[Metric, list[Array]] = {metric: [] for metric in metrics}
    for step in range(BURN_IN + kept * EVERY):
        share = c[:, None] * np.log(p)[:, None] + (n - c)[:, None] * np.log1p(-p)[:, None] + np.log(weight)[:, None]
        share = np.exp(share - share.max(axis=2, keepdims=True))
        placed = rng.multinomial(size, share / share.sum(axis=2, keepdims=True))
        passed, failed = (np.tensordot(placed, part, axes=(1, 0)) for part in (c, n - c))
        p = np.clip(rng.beta(1 + passed, 1 + failed), TINY, 1 - TINY)
        tasks = placed.sum(axis=1)
        above = tasks.sum(axis=1, keepdims=True) - np.cumsum(tasks, axis=1)
        stick = np.clip(rng.beta(1 + tasks, alpha + above), TINY, 1 - TINY)
        rest = np.cumsum(np.log1p(-stick), axis=1)
        weight = stick * np.exp(np.concatenate([np.zeros((chains, 1)), rest[:, :-1]], axis=1))
        weight[:, -1] = np.exp(rest[:, -2])  # the last atom has what is left
        weight = np.maximum(weight, 1e-300)
        alpha = rng.gamma(ATOMS, 1 / (1 - rest[:, -2:-1]))
        if step >= BURN_IN and (step - BURN_IN) % EVERY == 0:
            for metric in metrics:
                found[metric].append(np.sum(weight * apply_metric(p, metric), axis=1))
    return {metric: np.concatenate(parts) for metric, parts in found.items()}
