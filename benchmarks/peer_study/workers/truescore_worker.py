"""truescore: `ppi_estimate` of the success rate, with tasks as clusters where whole tasks are labelled."""

from __future__ import annotations

import numpy as np
import worker
from truescore.correct import ppi_estimate


def judged(request):
    """Limits of the success rate from a judge's verdicts and a few human labels."""

    def limits(one):
        judge, human = np.array(one["judge"], dtype=float), np.array(one["human"], dtype=float)
        known = np.flatnonzero(np.isfinite(human))
        clusters = np.array(one["task"]) if one["whole_tasks"] else None  # it refuses partly labelled clusters
        found = ppi_estimate(judge, human[known], known, alpha=0.05, clusters=clusters)
        return [float(found.low), float(found.high)]

    return worker.each(limits, request["sets"])


worker.main("truescore", {"judged": judged})
