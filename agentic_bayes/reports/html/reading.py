"""How to read a page: when it calls an agent better, what its words mean, and what its numbers take for granted."""

from __future__ import annotations

from agentic_bayes.decisions.decision import rope_words
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.formatting import format_percent
from agentic_bayes.reports.html.question import ReportQuestion


def reading_lines(est: Estimate, asked: ReportQuestion) -> list[str]:
    """What a reader of these answers must know, a paragraph each."""
    s, attrs, lines = est.settings, est.outcomes.attrs, list[str]()
    prob = f"{s.ci_prob * 100:.4g} %"
    if asked.leads is not None:
        behind = format_percent((1 - s.ci_prob) / 2, 1)
        lines.append(f"An agent is “clearly behind” if it is better than the leader with a probability below {behind}.")
    if asked.comparisons:
        lines.append(
            f"An agent is called “better” or “worse” if the {prob} range of the difference excludes 0; two are "
            f"“equivalent” if the difference is within {rope_words(asked.comparisons[0].rope)} with a probability of "
            "95 %; otherwise it is “undecided”: either may be ahead, and they need not be equal."
        )
    if asked.gate is not None:
        lines.append(
            f"A gate is “passed” if we are {asked.gate.confidence * 100:.4g} % sure that its requirement is met, "
            "“failed” if we are as sure that it is not, and otherwise not settled: there is not enough evidence for "
            "either."
        )
    unit = attrs["unit"]
    turns = "A conversation has one turn or more, each a question and its answer. " if unit == "conversation" else ""
    errors = "failed" if attrs.get("errors") == "fail" else "not scored"
    alike = " all agents ran under the same conditions;" if len(est.agents) > 1 else ""
    judge = "" if s.judge is None else " but for the judge's errors, which are corrected"
    return [
        *lines,
        f"A trial is one attempt at one task: here, one {unit}. {turns}It passed, it failed, or it could not be "
        f"scored; then it counts as neither. An agent error counts as {errors}.",
        "pass^k: all of k attempts at one task succeed; pass@k: at least one does. pass^1 is the plain success rate. "
        "If it must work every time, look at pass^k.",
        "New tasks: the expected rate on tasks like these, as after a release. These tasks: the average over the tasks "
        "that were tested.",
        "What the numbers take for granted: the tasks are a sample of the tasks that matter; attempts at one task do "
        f"not affect each other;{alike} verdicts are right{judge}; what could not be scored would have passed as often "
        "as the rest.",
    ]
