"""inspect_ai: the reducers `mean_score`, `pass_k` and `pass_at` over a sample's epochs, then the metric `ci`."""

from __future__ import annotations

import worker
from inspect_ai.scorer import SampleScore, Score, ci, mean, mean_score, pass_at, pass_k


def reduced(metric, c, trials):
    """One score per task from its epochs."""
    k = int(metric[5:])
    reduce = mean_score() if k == 1 else pass_at(k) if metric[4] == "@" else pass_k(k)
    once = {x: reduce([Score(value=int(i < x)) for i in range(trials)]) for x in set(c)}
    return [SampleScore(score=once[x], sample_id=str(i)) for i, x in enumerate(c)]


def intervals(request):
    """Limits of each metric for each data set."""

    def limits(c):
        found = [ci()(reduced(metric, c, request["trials"])) for metric in request["metrics"]]
        return {"population": [[ends["lower"], ends["upper"]] for ends in found]}

    return worker.each(limits, request["sets"])


def predicted(request):
    """Mean of the tasks' reduced scores, for each data set."""
    return [mean()(reduced(request["metric"], c, request["trials"])) for c in request["sets"]]


worker.main("inspect-ai", {"intervals": intervals, "predicted": predicted})
