"""The façade for code written for Gaussia or Fair-Forge."""

<<<<<<< HEAD
from agentic_bayes.evidence.tools.rubric import ToolCorrectnessScore
from agentic_bayes.gaussia.agentic import Agentic
from agentic_bayes.gaussia.modes import BayesianMode, FrequentistMode
from agentic_bayes.gaussia.result import AgenticMetric, AgenticResult
from agentic_bayes.records.model import Batch, Dataset
from agentic_bayes.records.retriever import Retriever
=======
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentic_bayes.evidence.tools.rubric import ToolCorrectnessScore
    from agentic_bayes.gaussia.agentic import Agentic
    from agentic_bayes.gaussia.result import AgenticMetric, AgenticResult, BayesianMode, FrequentistMode
    from agentic_bayes.records.model import Batch, Dataset, Retriever
>>>>>>> 6d4e5a95f8673ac22ed5c4d646e4cc555605bbd8

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
<<<<<<< HEAD
=======

if not TYPE_CHECKING:
    _HOME = {
        "Agentic": "gaussia.agentic",
        "AgenticMetric": "gaussia.result",
        "AgenticResult": "gaussia.result",
        "Batch": "records.model",
        "BayesianMode": "gaussia.result",
        "Dataset": "records.model",
        "FrequentistMode": "gaussia.result",
        "Retriever": "records.model",
        "ToolCorrectnessScore": "evidence.tools.rubric",
    }

    def __getattr__(name):
        from importlib import import_module

        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"agentic_bayes.{_HOME[name]}"), name)
        globals()[name] = value
        return value

    def __dir__():
        return sorted(__all__)
>>>>>>> 6d4e5a95f8673ac22ed5c4d646e4cc555605bbd8
