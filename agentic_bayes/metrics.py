"""Metrics by name, scores of whole conversations, and what goes wrong with which tool."""

from agentic_bayes.evidence.metrics.registry import make_metric, metric_names
from agentic_bayes.evidence.metrics.session import agent_consistency, agent_reliability, session_scores
from agentic_bayes.evidence.tools.diagnostics import tool_diagnostics
from agentic_bayes.reports.metric_correlations import metric_correlations

__all__ = [
    "agent_consistency",
    "agent_reliability",
    "make_metric",
    "metric_correlations",
    "metric_names",
    "session_scores",
    "tool_diagnostics",
]
