"""Scores and the lack of one."""

import numpy as np
import pytest

from agentic_bayes.errors import InvalidArgument
from agentic_bayes.evidence.score import Score, Unscored


@pytest.mark.parametrize("value", [0, 1, 0.5, np.float64(0.5), np.float32(0.5), np.int64(1)], ids=repr)
def test_any_number_in_the_unit_interval_is_a_score(value):
    """NumPy's numbers are kept as plain floats."""
    assert type(Score(value).value) is float
    assert Score(value).value == float(value)


@pytest.mark.parametrize(
    "value", [-0.1, 1.1, 95, 10**400, float("nan"), float("inf"), True, np.True_, "1", None], ids=str
)
def test_anything_else_is_no_score(value):
    """What is no number, or outside [0, 1], is refused."""
    with pytest.raises(InvalidArgument, match=r"^a score must be a number in \[0, 1\], got "):
        Score(value)


@pytest.mark.parametrize("reason", ["", " ", None, 5])
def test_unscored_needs_a_reason(reason):
    """A gap that nobody can explain is refused."""
    with pytest.raises(InvalidArgument, match=r"^Unscored needs a reason, got "):
        Unscored(reason)
