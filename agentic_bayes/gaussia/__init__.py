"""The façade for code written for Gaussia or Fair-Forge."""

from agentic_bayes.evidence.tools.rubric import ToolCorrectnessScore
from agentic_bayes.gaussia.agentic import Agentic
from agentic_bayes.gaussia.result import AgenticMetric, AgenticResult, BayesianMode, FrequentistMode
from agentic_bayes.records.model import Batch, Dataset, Retriever

__all__ = [
    "Agentic",
    "AgenticMetric",
    "AgenticResult",
    "Batch",
    "BayesianMode",
    "Dataset",
    "FrequentistMode",
    "Retriever",
    "ToolCorrectnessScore",
]
