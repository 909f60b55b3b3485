"""evalstats: the interval that it chooses for the mean of the tasks' values, and its correction of a judge's errors."""

from __future__ import annotations

from functools import partial

import evalstats
import worker


def intervals(request):
    """Limits of each metric for each data set."""

    def limits(request, c):
        n = request["trials"]
        found = []
        for metric in request["metrics"]:
            values = [worker.unbiased(x, n, metric) for x in c]
            mean = evalstats.mean_ci(values, score_range=(0, 1), rng=0)
            found.append([mean.ci_low, mean.ci_high])
        return {"population": found}

    return worker.each(partial(limits, request), request["sets"])


def judged(request):
    """Limits of the success rate from a judge's verdicts and a few human labels."""

    def limits(one):
        human = [float("nan") if x is None else x for x in one["human"]]
        mean = evalstats.judge_debias_mean_ci(one["judge"], human, rng=0)
        return [mean.ci_low, mean.ci_high]

    return worker.each(limits, request["sets"])


worker.main("evalstats", {"intervals": intervals, "judged": judged})
