"""Statistics of judges: how far raters agree, and how often a judge is wrong, measured against human labels."""

from agentic_bayes.evidence.recorded import evidence_from_table
from agentic_bayes.judges.calibration import JudgeCalibration, calibrate_judge
from agentic_bayes.judges.error_rates import Proportion, labels_needed
from agentic_bayes.judges.labels import sample_for_labelling
from agentic_bayes.judges.mean_scores import MeanScores, mean_scores
from agentic_bayes.judges.raters import Agreement, AgreementMeasure, agreement
from agentic_bayes.judges.several_judges import judge_agreement

__all__ = [
    "Agreement",
    "AgreementMeasure",
    "JudgeCalibration",
    "MeanScores",
    "Proportion",
    "agreement",
    "calibrate_judge",
    "evidence_from_table",
    "judge_agreement",
    "labels_needed",
    "mean_scores",
    "sample_for_labelling",
]
