"""Plain arrays in, plain arrays out: formulas of pass@k and pass^k, Beta moments and quantiles, intervals.

Nothing here knows labels, files or models. `scipy.special` is imported on first use.

For one task with success probability p::

    pass@k = 1 - (1 - p)^k      at least one of k attempts succeeds
    pass^k = p^k                all k attempts succeed
"""

from __future__ import annotations

from agentic_bayes.numerics.arrays import Array as Array
from agentic_bayes.numerics.arrays import Floats as Floats
from agentic_bayes.numerics.arrays import Ints as Ints
from agentic_bayes.numerics.intervals import (
    beta_quantile,
    bootstrap_interval,
    clopper_pearson_interval,
    hdi_from_draws,
    hdi_from_quantiles,
    logit_t_interval,
    t_interval,
    wilson_interval,
)
from agentic_bayes.numerics.pass_k import (
    beta_pass_at_k_mean,
    beta_pass_pow_k_mean,
    pass_at_k,
    pass_pow_k,
    plugin_pass_at_k,
    plugin_pass_pow_k,
)

__all__ = [
    "beta_pass_at_k_mean",
    "beta_pass_pow_k_mean",
    "beta_quantile",
    "bootstrap_interval",
    "clopper_pearson_interval",
    "hdi_from_draws",
    "hdi_from_quantiles",
    "logit_t_interval",
    "pass_at_k",
    "pass_pow_k",
    "plugin_pass_at_k",
    "plugin_pass_pow_k",
    "t_interval",
    "wilson_interval",
]
