"""The public namespace `agentic_bayes.judges`: its names, and when they load something."""

import subprocess
import sys

import pytest

from agentic_bayes import judges

FUNCTIONS = [
    "agreement",
    "calibrate_judge",
    "evidence_from_table",
    "judge_agreement",
    "labels_needed",
    "mean_scores",
    "sample_for_labelling",
]


def test_the_namespace_has_its_functions_and_their_results():
    """The public names are listed, and each resolves."""
    results = ["Agreement", "AgreementMeasure", "JudgeCalibration", "MeanScores", "Proportion"]
    assert judges.__all__ == [*results, *FUNCTIONS]
    assert all(callable(getattr(judges, name)) for name in judges.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'agrement'"):
        judges.agrement  # noqa: B018


CHECK = """
import importlib, sys
for first in ("raters", "several_judges", "calibration", "error_rates", "labels", "mean_scores"):
    for name in [name for name in sys.modules if name.partition(".")[0] == "agentic_bayes"]:
        del sys.modules[name]
    importlib.import_module(f"agentic_bayes.judges.{first}")
    judges = sys.modules["agentic_bayes.judges"]
    for name in sys.argv[1:]:
        assert getattr(judges, name).__name__ == name, (first, name)
"""


def test_a_name_is_a_function_whatever_was_imported_before():
    """No submodule hides a function of the same name, whichever is imported first, in a package not yet loaded."""
    subprocess.run([sys.executable, "-c", CHECK, *FUNCTIONS], check=True)
