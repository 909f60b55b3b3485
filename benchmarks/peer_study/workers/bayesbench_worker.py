"""bayesbench: the Beta posterior of a success rate, which it has for pass^1 alone."""

from __future__ import annotations

import worker
from bayesbench.posteriors import BetaPosterior


def intervals(request):
    """Limits of pass^1 for each data set."""

    def limits(c):
        posterior = BetaPosterior()
        posterior.observe_batch(sum(c), len(c) * request["trials"])
        ends = list(posterior.credible_interval(0.95))
        return {"population": [ends if metric == "pass^1" else [None, None] for metric in request["metrics"]]}

    return worker.each(limits, request["sets"])


worker.main("bayesbench", {"intervals": intervals})
