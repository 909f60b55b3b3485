"""Statistics of judges: agreement, calibration against human labels, ROC."""

from agentic_bayes.judges.agreement import Agreement, agreement
from agentic_bayes.judges.calibration import JudgeCalibration, calibrate_judge
from agentic_bayes.judges.error_rates import labels_needed
from agentic_bayes.judges.judge_agreement import judge_agreement
from agentic_bayes.judges.labels import sample_for_labelling

__all__ = [
    "Agreement",
    "JudgeCalibration",
    "agreement",
    "calibrate_judge",
    "judge_agreement",
    "labels_needed",
    "sample_for_labelling",
]
