"""Statistics of judges: how far raters agree, and how often a judge is wrong, measured against human labels."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentic_bayes.judges.calibration import JudgeCalibration, calibrate_judge
    from agentic_bayes.judges.error_rates import Proportion, labels_needed
    from agentic_bayes.judges.labels import sample_for_labelling
    from agentic_bayes.judges.raters import Agreement, AgreementMeasure, agreement
    from agentic_bayes.judges.several_judges import judge_agreement

__all__ = [
    "Agreement",
    "AgreementMeasure",
    "JudgeCalibration",
    "Proportion",
    "agreement",
    "calibrate_judge",
    "judge_agreement",
    "labels_needed",
    "sample_for_labelling",
]

# public name → the module that defines it, loaded on first use; no module may have the name of a function
_HOME = {
    "Agreement": "raters",
    "AgreementMeasure": "raters",
    "JudgeCalibration": "calibration",
    "Proportion": "error_rates",
    "agreement": "raters",
    "calibrate_judge": "calibration",
    "judge_agreement": "several_judges",
    "labels_needed": "error_rates",
    "sample_for_labelling": "labels",
}

if not TYPE_CHECKING:  # or a checker would take every misspelt name for one that exists

    def __getattr__(name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return list(__all__)
