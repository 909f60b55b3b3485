"""Bayesian estimation of AI-agent reliability, from recorded runs to a decision.

::

    records  →  evidence  →  OUTCOMES  →  estimation  →  decisions  →  reports
    what the     scores       counts       posterior       compare,      tables,
    agent did    + reasons    (xarray)     of p, pass^k    gate, plan    plots, HTML

Everything above the waist knows conversations and no statistics; everything below it knows counts and no
conversations. Conversations enter with `read_conversations`, a table of 0/1 results with `outcomes_from_table`.
Names are resolved on first use, so that importing the package is cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# public name → module that defines it
_HOME = {
    "Agentic": "gaussia.agentic",
    "AgenticBayesError": "errors",
    "AgenticBayesWarning": "errors",
    "AgenticMetric": "gaussia.agentic",
    "AgenticResult": "gaussia.agentic",
    "Agreement": "judges.raters",
    "Batch": "records.model",
    "BayesianMode": "gaussia.agentic",
    "Comparison": "decisions.compare",
    "Conversation": "records.model",
    "Dataset": "records.model",
    "Diagnostics": "estimation.engines.diagnostics",
    "DoubtfulRecords": "errors",
    "Estimate": "estimation.estimate",
    "EstimateError": "errors",
    "Evidence": "evidence.evidence",
    "EvidenceError": "errors",
    "ExpectedCall": "records.model",
    "ExpectedTools": "records.model",
    "FrequentistMode": "gaussia.agentic",
    "Gate": "decisions.gate",
    "Grader": "evidence.score",
    "Interaction": "records.model",
    "InvalidArgument": "errors",
    "JudgeCalibration": "judges.calibration",
    "LLMJudge": "evidence.llm.judge",
    "Matcher": "records.matchers",
    "MissingPackage": "errors",
    "NotConverged": "errors",
    "NotReproducible": "errors",
    "NothingScored": "errors",
    "OutcomesError": "errors",
    "Plan": "decisions.plan",
    "Hierarchical": "estimation.methods.values",
    "Crossed": "estimation.methods.values",
    "Conjugate": "estimation.methods.values",
    "Frequentist": "estimation.methods.values",
    "ProgressBar": "evidence.progress",
    "RecordedJudge": "evidence.recorded",
    "RecordsError": "errors",
    "ReferenceJudge": "evidence.reference.judge",
    "Reproduction": "reports.reproduction",
    "Retriever": "records.model",
    "Score": "evidence.score",
    "StoppedEarly": "errors",
    "SuiteError": "errors",
    "StoppingRule": "decisions.monitor",
    "Store": "evidence.llm.store",
    "TierProbabilities": "decisions.tiers",
    "ToolCall": "records.model",
    "ToolCorrectnessScore": "evidence.tools.rubric",
    "ToolDiagnostics": "evidence.tools.diagnostics",
    "ToolRubric": "evidence.tools.rubric",
    "ToolUse": "records.model",
    "UnknownName": "errors",
    "Unscored": "evidence.score",
    "Usage": "evidence.llm.store",
    "agreement": "judges.raters",
    "assess": "evidence.assess",
    "assess_async": "evidence.assess",
    "build_model": "estimation.engines.nuts",
    "calibrate_judge": "judges.calibration",
    "check_outcomes": "outcomes.dataset",
    "classify": "decisions.tiers",
    "combine_outcomes": "outcomes.dataset",
    "compare": "decisions.compare",
    "count_outcomes": "outcomes.count",
    "estimate": "estimation.estimate",
    "evidence_from_table": "evidence.recorded",
    "gate": "decisions.gate",
    "join_expected_tools": "evidence.tools.expected",
    "judge_agreement": "judges.several_judges",
    "labels_needed": "judges.error_rates",
    "make_metric": "evidence.metrics.registry",
    "metric_correlations": "reports.metric_correlations",
    "metric_names": "evidence.metrics.registry",
    "monitor": "decisions.monitor",
    "numerics": "numerics",
    "outcomes_from_table": "outcomes.table",
    "plan": "decisions.plan",
    "plot_comparison": "reports.plots.comparison",
    "plot_diagnostics": "reports.plots.diagnostics",
    "plot_forest": "reports.plots.forest",
    "plot_heatmap": "reports.plots.tasks",
    "plot_judge_calibration": "reports.plots.tools",
    "plot_pass_curves": "reports.plots.curves",
    "plot_plan": "reports.plots.planning",
    "plot_posterior": "reports.plots.posterior",
    "plot_prior": "reports.plots.posterior",
    "plot_shrinkage": "reports.plots.tasks",
    "plot_tools": "reports.plots.tools",
    "rank": "decisions.rank",
    "read_conversations": "records.read",
    "reproduce": "reports.reproduction",
    "sample_for_labelling": "judges.labels",
    "session_scores": "evidence.metrics.session",
    "superiority": "decisions.rank",
    "tool_diagnostics": "evidence.tools.diagnostics",
    "write_conversations": "records.write",
    "write_report": "reports.html.page",
    "write_results": "reports.results_folder",
}

__all__ = [*sorted(_HOME)]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_HOME[name]}")
    value = module if _HOME[name] == name else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
