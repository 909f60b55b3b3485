"""scorio: credible intervals of pass@k and pass^k for these tasks, each with its own Beta(1, 1)."""

from __future__ import annotations

import numpy as np
import worker
from scorio import eval as scores

FUNCTIONS = {"@": scores.pass_at_k_ci, "^": scores.pass_hat_k_ci}


def results(c, trials):
    """Counts as scorio's matrix of tasks × trials."""
    return (np.arange(trials) < np.asarray(c)[:, None]).astype(int)


def intervals(request):
    """Limits of each metric for each data set."""

    def limits(c):
        matrix = results(c, request["trials"])
        return {"tasks": [list(FUNCTIONS[m[4]](matrix, int(m[5:]))[2:]) for m in request["metrics"]]}

    return worker.each(limits, request["sets"])


def predicted(request):
    """Mean of a metric for these tasks, for each data set."""
    metric = request["metric"]
    return [FUNCTIONS[metric[4]](results(c, request["trials"]), int(metric[5:]))[0] for c in request["sets"]]


worker.main("scorio", {"intervals": intervals, "predicted": predicted})
