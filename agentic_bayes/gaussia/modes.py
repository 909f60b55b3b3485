"""The façade's two modes, frequentist and Bayesian, that turn counts of correct turns into pass@k and pass^k."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

from agentic_bayes.checks import check_k, check_probability
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.numerics import (
    beta_pass_at_k_mean,
    beta_pass_pow_k_mean,
    beta_quantile,
    plugin_pass_at_k,
    plugin_pass_pow_k,
)


@dataclass(frozen=True, slots=True)
class FrequentistMode:
    """Plug the share of correct turns, p = c/n, into the formulas; no interval.

    Notes
    -----
    pass@k = 1 - (1 - p)^k and pass^k = p^k. Both are NaN if no turn was scored.
    """

    def pass_values(self, successes: int, trials: int, k: int) -> dict[str, float | None]:
        """The pass fields of an `AgenticMetric`."""
        p = successes / trials if trials else math.nan
        return {"pass_at_k": float(plugin_pass_at_k(p, k)), "pass_pow_k": float(plugin_pass_pow_k(p, k))}


@dataclass(frozen=True, slots=True)
class BayesianMode:
    """Carry the posterior of the success rate of one conversation's turns through the formulas.

    Parameters
    ----------
    mc_samples, rng_seed : int
        Accepted for compatibility but unused: the posterior has a closed form, so nothing is drawn.
    ci_level : float
        Probability of the equal-tailed credible intervals, strictly between 0 and 1.
    dirichlet_prior : float
        Accepted for compatibility but unused.
    beta_prior_a, beta_prior_b : float
        Parameters of the Beta prior, > 0.

    Notes
    -----
    p | c, n ~ Beta(a + c, b + n - c). The values are the posterior means of pass@k and pass^k; since
    both increase with p, their intervals are p's interval plugged into the formulas. If no turn was scored,
    this is the prior.
    """

    mc_samples: int = 5000
    ci_level: float = 0.95
    dirichlet_prior: float = 1.0
    beta_prior_a: float = 1.0
    beta_prior_b: float = 1.0
    rng_seed: int | None = 42

    def __post_init__(self) -> None:
        check_k(self.mc_samples, "mc_samples")
        check_probability(self.ci_level, "ci_level", open_ends=True)
        for name in ("dirichlet_prior", "beta_prior_a", "beta_prior_b"):
            value = getattr(self, name)
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not number or not 0 < value <= sys.float_info.max:  # refuses integers larger than any float, too
                raise InvalidArgument(f"{name} must be a number > 0, got {value!r}")
        if self.rng_seed is not None and (isinstance(self.rng_seed, bool) or not isinstance(self.rng_seed, int)):
            raise InvalidArgument(f"rng_seed must be an integer or None, got {self.rng_seed!r}")

    def pass_values(self, successes: int, trials: int, k: int) -> dict[str, float | None]:
        """The pass fields of an `AgenticMetric`."""
        a, b = self.beta_prior_a + successes, self.beta_prior_b + trials - successes
        tail = (1 - self.ci_level) / 2
        limits = beta_quantile([tail, 1 - tail], a, b)
        at_low, at_high = plugin_pass_at_k(limits, k)
        pow_low, pow_high = plugin_pass_pow_k(limits, k)
        return {
            "pass_at_k": float(beta_pass_at_k_mean(a, b, k)),
            "pass_at_k_ci_low": float(at_low),
            "pass_at_k_ci_high": float(at_high),
            "pass_pow_k": float(beta_pass_pow_k_mean(a, b, k)),
            "pass_pow_k_ci_low": float(pow_low),
            "pass_pow_k_ci_high": float(pow_high),
        }


StatisticalMode = FrequentistMode | BayesianMode
