"""gaussia: its Bayesian mode, and its agentic metric with a chat model whose replies are written beforehand."""

from __future__ import annotations

import numpy as np
import replies
import worker
from gaussia.core.retriever import Retriever
from gaussia.metrics.agentic import Agentic, pass_at_k, pass_pow_k
from gaussia.schemas.common import Batch, Dataset
from gaussia.statistical import BayesianMode


def intervals(request):
    """Limits of each metric as `Agentic` derives them from its Beta posterior of the share of right attempts."""

    def limits(c):
        p = BayesianMode().rate_estimation(sum(c), len(c) * request["trials"])["samples"]
        found = []
        for metric in request["metrics"]:
            k = int(metric[5:])
            values = 1 - (1 - p) ** k if metric[4] == "@" else p**k
            found.append(np.quantile(values, [0.025, 0.975]).tolist())
        return {"population": found}

    return worker.each(limits, request["sets"])


def predicted(request):
    """pass@k or pass^k of all attempts, for each data set."""
    metric = request["metric"]
    function = pass_at_k if metric[4] == "@" else pass_pow_k
    return [function(len(c) * request["trials"], sum(c), int(metric[5:])) for c in request["sets"]]


def judge(request):
    """The score of each reply, and the characters sent with each call."""
    model = replies.scripted(request["replies"])
    turns = [
        Dataset(
            session_id=str(i),
            assistant_id="agent",
            language="english",
            context="",
            conversation=[Batch(qa_id="q", query=query, assistant=answer, ground_truth_assistant=truth)],
        )
        for i, (query, answer, truth) in enumerate(request["turns"])
    ]

    class Given(Retriever):
        def load_dataset(self):
            return turns

    def run(_):
        found = Agentic.run(Given, model=model, k=1, use_structured_output=False)
        return [metric.correctness_scores[0] for metric in found]

    return {**worker.each(run, [None]), "sent": model.sent}


worker.main("gaussia", {"intervals": intervals, "predicted": predicted, "judge": judge})
