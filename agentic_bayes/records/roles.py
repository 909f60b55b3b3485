"""Guess from the name of a column or field whether it holds the agent, task, trial or result."""

from __future__ import annotations

import re
from collections.abc import Iterable

ROLES: dict[str, tuple[str, ...]] = {
    "agent": (
        *("agent", "agent_name", "agent_id", "agent_version", "assistant_id"),
        *("model", "model_name", "model_id", "model_name_or_path"),
        *("version", "system", "variant", "candidate", "bot", "llm", "provider", "assistant"),
    ),
    "task": (
        *("task", "task_id", "case", "case_id", "test_case", "test", "test_id", "test_name", "scenario"),
        *("question_id", "problem_id", "instance_id", "example_id", "sample_id", "item_id", "doc_id", "prompt_id"),
        *("datasource_item_id", "problem", "example", "item", "question", "prompt", "query", "input", "name", "id"),
        "benchmark",
    ),
    "trial": (
        *("trial", "trial_id", "repeat", "repetition", "attempt", "replicate", "rep", "run", "run_id"),
        *("epoch", "seed", "iteration", "sample"),
    ),
    "correct": (
        *("correct", "is_correct", "success", "successful", "passed", "pass", "ok", "solved", "resolved"),
        *("verdict", "outcome", "result", "grade", "score", "reward", "exact_match", "accuracy", "status"),
    ),
    "error": (
        *("error", "exception", "crashed", "crash", "errored", "error_message", "error_msg", "error_type"),
        *("exception_type", "traceback", "timed_out", "timeout"),
    ),
    "group": ("group", "domain", "category", "difficulty", "level", "family", "topic", "subject", "language"),
    "weight": ("weight", "task_weight"),
    "successes": ("successes", "n_correct", "num_correct", "n_success", "n_passed", "passes", "wins"),
    "failures": (
        *("failed", "fail", "failure", "failures", "incorrect", "wrong", "bug", "broken", "crashed", "is_error"),
        *("is_failed", "n_failed", "num_failed", "unsolved", "unresolved", "losses"),
        *("exit_code", "returncode", "return_code"),
    ),
    "trials": (
        *("trials", "n_trials", "num_trials", "n_samples", "num_samples", "n_runs", "attempts", "runs", "total"),
        *("n_total", "num_total", "n", "count", "counts", "freq", "frequency", "size"),
    ),
    "frequency": ("count", "counts", "freq", "frequency", "n", "trials", "n_trials", "num_trials", "n_runs"),
    "trace": ("trace_id", "trajectory_id"),
    "attempt": ("session_id", "trace_id", "trajectory_id", "uuid", "uid"),
    "metric": (
        *("metric", "metric_name", "score_name", "measure", "criterion", "scorer", "grader", "evaluator"),
        *("judge", "rater", "annotator", "k"),
    ),
    "part": ("dataset", "benchmark", "suite", "subset", "split", "env", "environment"),
    "left_out": ("skipped", "skip", "excluded", "exclude", "ignored", "invalid"),
    "reference": (
        *("reference", "reference_answer", "ground_truth", "expected", "expected_answer", "expected_output"),
        *("true_answer", "correct_answer", "reference_outputs", "target", "gold", "answer"),
    ),
}
"""Role → the names of columns that usually hold it, the most telling first."""


def plain(name: str) -> str:
    """A name in snake case, however it is written: ``testCase``, ``Test case`` and ``test-case`` are ``test_case``."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip())
    return re.sub(r"[^a-z0-9]+", "_", snake.lower()).strip("_")


def named(role: str, names: Iterable[str]) -> list[str]:
    """The names that usually hold this role, the most telling first."""
    words = ROLES[role]
    return sorted((name for name in names if plain(name) in words), key=lambda name: words.index(plain(name)))
