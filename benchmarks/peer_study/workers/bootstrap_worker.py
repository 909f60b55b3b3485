"""The plain bootstrap: resample the tasks, take the 2.5 % and 97.5 % quantiles of the means."""

from __future__ import annotations

import numpy as np
import worker


def intervals(request):
    """Limits of each metric for each data set."""
    n = request["trials"]
    values = np.array([[worker.unbiased(c, n, metric) for c in range(n + 1)] for metric in request["metrics"]]).T

    def limits(c):
        rng = np.random.default_rng(0)
        chosen = rng.integers(0, len(c), (1000, len(c)))
        means = values[np.asarray(c)[chosen]].mean(axis=1)
        return {"population": np.quantile(means, [0.025, 0.975], axis=0).T.tolist()}

    return worker.each(limits, request["sets"])


def predicted(request):
    """Mean of (c/n)^k over the tasks, for each data set: what one writes down first."""
    k = int(request["metric"][5:])
    return [float(np.mean((np.asarray(c) / request["trials"]) ** k)) for c in request["sets"]]


worker.main("numpy", {"intervals": intervals, "predicted": predicted})
