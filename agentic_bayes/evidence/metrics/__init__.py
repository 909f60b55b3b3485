"""Metrics of single interactions (traces) by a model or by embeddings, and of whole conversations (sessions).

Each metric is a grader: an entry of the `metrics` of `assess`, and a name for ``count_outcomes(indicator=…)``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "ArgumentCorrectness": "argument_correctness",
    "Coherence": "coherence",
    "Confidence": "confidence",
    "LoopDetection": "loop_detection",
    "PlanAdherence": "plan_adherence",
    "PlanQuality": "plan_quality",
    "SessionScore": "session",
    "StepEfficiency": "step_efficiency",
    "TaskCompletion": "task_completion",
    "ToolCorrectness": "tool_correctness",
    "agent_consistency": "session",
    "agent_reliability": "session",
    "make_metric": "registry",
    "metric_names": "registry",
    "session_scores": "session",
}

__all__ = [*sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
