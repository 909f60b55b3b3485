"""agentic-bayes turns recorded agent runs into reliability estimates, from conversations to a decision.

::

    records  →  evidence  →  OUTCOMES  →  estimation  →  decisions  →  reports
    what the     scores       counts       posterior       compare,      tables,
    agent did    + reasons    (xarray)     of p, pass^k    gate, plan    plots, HTML

Everything above the waist knows conversations and no statistics; everything below it knows counts and no
conversations. Conversations enter with `read_conversations`, a table of 0/1 results with `outcomes_from_table`.
Names are resolved on first use, so that importing the package is cheap. Names that you need less often live in
`judges`, `metrics`, `types`, `errors`, `numerics` and `gaussia`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.2.0"

if TYPE_CHECKING:
    # the one list of public names: type checkers read it, and so does `_modules` below
    from agentic_bayes import errors as errors
    from agentic_bayes import gaussia as gaussia
    from agentic_bayes import judges as judges
    from agentic_bayes import metrics as metrics
    from agentic_bayes import numerics as numerics
    from agentic_bayes import types as types
    from agentic_bayes.decisions.compare import compare as compare
    from agentic_bayes.decisions.gate import gate as gate
    from agentic_bayes.decisions.monitor import monitor as monitor
    from agentic_bayes.decisions.plan import plan as plan
    from agentic_bayes.decisions.rank import rank as rank
    from agentic_bayes.decisions.tiers import classify as classify
    from agentic_bayes.errors import AgenticBayesError as AgenticBayesError
    from agentic_bayes.errors import AgenticBayesWarning as AgenticBayesWarning
    from agentic_bayes.estimation.engines.nuts import build_model as build_model
    from agentic_bayes.estimation.estimate import Estimate as Estimate
    from agentic_bayes.estimation.estimate import estimate as estimate
    from agentic_bayes.estimation.many.estimates import estimate_many as estimate_many
    from agentic_bayes.estimation.methods.near_zero import NearZero as NearZero
    from agentic_bayes.estimation.methods.options import Conjugate as Conjugate
    from agentic_bayes.estimation.methods.options import Crossed as Crossed
    from agentic_bayes.estimation.methods.options import Frequentist as Frequentist
    from agentic_bayes.estimation.methods.options import Hierarchical as Hierarchical
    from agentic_bayes.evidence.assess import assess as assess
    from agentic_bayes.evidence.assess import assess_async as assess_async
    from agentic_bayes.evidence.evidence import Evidence as Evidence
    from agentic_bayes.evidence.joins.expected_tools import join_expected_tools as join_expected_tools
    from agentic_bayes.evidence.joins.references import join_references as join_references
    from agentic_bayes.evidence.llm.judge import LLMJudge as LLMJudge
    from agentic_bayes.evidence.recorded import RecordedJudge as RecordedJudge
    from agentic_bayes.evidence.reference.judge import ReferenceJudge as ReferenceJudge
    from agentic_bayes.evidence.results.evidence import evidence_from_results as evidence_from_results
    from agentic_bayes.evidence.score import Score as Score
    from agentic_bayes.evidence.score import Unscored as Unscored
    from agentic_bayes.evidence.tools.rubric import ToolRubric as ToolRubric
    from agentic_bayes.judges.mean_scores import mean_scores as mean_scores
    from agentic_bayes.outcomes.count import count_outcomes as count_outcomes
    from agentic_bayes.outcomes.dataset import check_outcomes as check_outcomes
    from agentic_bayes.outcomes.dataset import combine_outcomes as combine_outcomes
    from agentic_bayes.outcomes.results import outcomes_from_results as outcomes_from_results
    from agentic_bayes.outcomes.table import outcomes_from_table as outcomes_from_table
    from agentic_bayes.records.model import Conversation as Conversation
    from agentic_bayes.records.model import Interaction as Interaction
    from agentic_bayes.records.read import read_conversations as read_conversations
    from agentic_bayes.records.write import write_conversations as write_conversations
    from agentic_bayes.reports.html.page import write_report as write_report
    from agentic_bayes.reports.plots.comparison import plot_comparison as plot_comparison
    from agentic_bayes.reports.plots.curves import plot_pass_curves as plot_pass_curves
    from agentic_bayes.reports.plots.diagnostics import plot_diagnostics as plot_diagnostics
    from agentic_bayes.reports.plots.forest import plot_forest as plot_forest
    from agentic_bayes.reports.plots.planning import plot_plan as plot_plan
    from agentic_bayes.reports.plots.posterior import plot_posterior as plot_posterior
    from agentic_bayes.reports.plots.posterior import plot_prior as plot_prior
    from agentic_bayes.reports.plots.tasks import plot_heatmap as plot_heatmap
    from agentic_bayes.reports.plots.tasks import plot_shrinkage as plot_shrinkage
    from agentic_bayes.reports.plots.tools import plot_judge_calibration as plot_judge_calibration
    from agentic_bayes.reports.plots.tools import plot_tools as plot_tools
    from agentic_bayes.reports.reproduction import reproduce as reproduce
    from agentic_bayes.reports.results_folder import write_results as write_results
    from agentic_bayes.reports.thresholds import threshold_curve as threshold_curve

if not TYPE_CHECKING:  # a checker that saw `__getattr__` would accept every name
    from importlib import import_module

    def _modules() -> dict[str, str]:
        """Public name → module that defines it, as the imports above say."""
        with open(__file__, encoding="utf-8") as source:
            imports = [line.split() for line in source if line.startswith("    from agentic_bayes")]
        return {name: module for _, module, _, name, *_ in imports}

    _HOME = _modules()
    __all__ = [*sorted(_HOME)]

    def __getattr__(name: str) -> object:
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = _HOME[name]
        value = import_module(f"{module}.{name}") if module == __name__ else getattr(import_module(module), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return [*__all__, "__version__"]
