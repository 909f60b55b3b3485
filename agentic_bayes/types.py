"""Types for your annotations: what the functions return, and the records and helpers that you pass to them."""

from agentic_bayes.decisions.compare import Comparison
from agentic_bayes.decisions.gate import Gate
from agentic_bayes.decisions.many.gates import ManyGates
from agentic_bayes.decisions.monitor import StoppingRule
from agentic_bayes.decisions.plan import Plan
from agentic_bayes.decisions.rank import Ranking
from agentic_bayes.decisions.tiers import TierProbabilities
from agentic_bayes.estimation.engines.diagnostics import Diagnostics
from agentic_bayes.estimation.many.estimates import ManyEstimates
from agentic_bayes.estimation.sensitivity import Sensitivity
from agentic_bayes.evidence.llm.store import Store, Usage
from agentic_bayes.evidence.metrics.session import SessionScore
from agentic_bayes.evidence.progress import ProgressBar
from agentic_bayes.evidence.score import Grader
from agentic_bayes.evidence.tools.diagnostics import ToolDiagnostics
from agentic_bayes.outcomes.missing import TrialCounts
from agentic_bayes.records.matchers import Matcher
from agentic_bayes.records.model import ExpectedCall, ExpectedTools, ToolCall, ToolUse
from agentic_bayes.reports.reproduction import Reproduction
from agentic_bayes.reports.thresholds import ThresholdCurve

__all__ = [
    "Comparison",
    "Diagnostics",
    "ExpectedCall",
    "ExpectedTools",
    "Gate",
    "Grader",
    "ManyEstimates",
    "ManyGates",
    "Matcher",
    "Plan",
    "ProgressBar",
    "Ranking",
    "Reproduction",
    "Sensitivity",
    "SessionScore",
    "StoppingRule",
    "Store",
    "ThresholdCurve",
    "TierProbabilities",
    "ToolCall",
    "ToolDiagnostics",
    "ToolUse",
    "TrialCounts",
    "Usage",
]
