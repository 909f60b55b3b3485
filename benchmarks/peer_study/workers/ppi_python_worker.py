"""ppi_py: `ppi_mean_ci` of the success rate; by task where whole tasks are labelled, else by attempt."""

from __future__ import annotations

import numpy as np
import worker
from ppi_py import ppi_mean_ci


def judged(request):
    """Limits of the success rate from a judge's verdicts and a few human labels."""

    def limits(one):
        judge, human = np.array(one["judge"], dtype=float), np.array(one["human"], dtype=float)
        if one["whole_tasks"]:  # its rows must be independent: one per task
            judge, human = (x.reshape(-1, request["trials"]).mean(axis=1) for x in (judge, human))
        known = np.isfinite(human)
        lower, upper = ppi_mean_ci(human[known], judge[known], judge[~known], alpha=0.05)
        return [float(np.squeeze(lower)), float(np.squeeze(upper))]

    return worker.each(limits, request["sets"])


worker.main("ppi-python", {"judged": judged})
