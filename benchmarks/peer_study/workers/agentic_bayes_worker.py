"""agentic-bayes, asked through its public functions like any other."""

from __future__ import annotations

import pandas as pd
import replies
import worker

import agentic_bayes as ab

ESTIMANDS = ("population", "tasks")


def outcomes(c, trials):
    """Counts of one agent."""
    table = pd.DataFrame({"task": [str(i) for i in range(len(c))], "successes": c, "trials": trials})
    return ab.outcomes_from_table(table, successes="successes", trials="trials")


def intervals(request):
    """Limits of each metric for each data set, for new tasks and for these."""
    metrics = request["metrics"]
    ks = sorted({int(metric[5:]) for metric in metrics})

    def limits(c):
        summary = ab.estimate(outcomes(c, request["trials"]), k=ks).summary().set_index(["estimand", "metric"])
        ends = summary[["lower", "upper"]]
        return {name: ends.loc[[(name, metric) for metric in metrics]].values.tolist() for name in ESTIMANDS}

    return worker.each(limits, request["sets"])


def predicted(request):
    """Mean of a metric for these tasks, for each data set."""
    metric = request["metric"]

    def mean(c):
        summary = ab.estimate(outcomes(c, request["trials"]), k=int(metric[5:])).summary()
        return summary.set_index(["estimand", "metric"]).loc[("tasks", metric), "mean"]

    return list(map(mean, request["sets"]))


def judged(request):
    """Limits of the success rate from a judge's verdicts and a few human labels."""

    def limits(one):
        rows = pd.DataFrame({"task": one["task"], "trial": one["trial"], "correct": one["judge"]}).astype({"task": str})
        columns = {name: one[name] for name in ("task", "trial", "judge")}
        labels = (
            pd.DataFrame({**columns, "human": pd.array(one["human"], dtype="Int64")}).dropna().astype({"task": str})
        )
        summary = ab.estimate(ab.outcomes_from_table(rows), k=1, judge_labels=labels).summary()
        return summary.set_index(["estimand", "metric"]).loc[("population", "pass^1"), ["lower", "upper"]].tolist()

    return worker.each(limits, request["sets"])


def judge(request):
    """The score of each reply, and the characters sent with each call."""
    model = replies.scripted(request["replies"])
    turns = [
        ab.Conversation.model_validate(
            {
                "session_id": f"{i:04}",
                "assistant_id": "agent",
                "task_id": f"{i:04}",
                "conversation": [
                    {"qa_id": "q", "query": query, "assistant": answer, "ground_truth_assistant": reference}
                ],
            }
        )
        for i, (query, answer, reference) in enumerate(request["turns"])
    ]

    def run(_):
        rubric = ab.LLMJudge(model, use_structured_output=False, attempts=1)
        return [row.answer_score for row in ab.assess(turns, judge=rubric, concurrency=1)]

    return {**worker.each(run, [None]), "sent": model.sent}


JOBS = {"intervals": intervals, "predicted": predicted, "judged": judged, "judge": judge}
JOBS["version"] = lambda _: (
    f"agentic-bayes {ab.__version__}"
)  # of this checkout, which need not be the one that pip knows
worker.main("agentic-bayes", JOBS)
