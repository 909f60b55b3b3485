"""Missing trials: counted, put into words, and counted as failed or passed."""

import numpy as np
import pytest
from fits import counts

from agentic_bayes.decisions.missing import as_if
from agentic_bayes.errors import UnknownName
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.outcomes.dataset import check_outcomes
from agentic_bayes.outcomes.missing import TrialCounts, counted_as

TWO = counts({"v1": [(1, 2, 2), (2, 2, 0)], "v2": [(2, 3, 1), (0, 0, 0)]})


def with_errors(outcomes, errored):
    """Checked outcomes with these counts of crashed trials."""
    return check_outcomes(outcomes.assign(errored=(("agent", "task"), np.array(errored))))


class TestTheCounts:
    """What a conclusion rests on."""

    def test_of_one_agent_of_several_and_of_all(self):
        """Missing trials are the unscored ones, errored ones included."""
        checked = with_errors(TWO, [[1, 0], [0, 0]])
        assert TrialCounts.of(checked, "v1") == TrialCounts(scored=4, unscored=2, errored=1)
        assert TrialCounts.of(checked, ["v2"]).to_dict() == {"scored": 3, "unscored": 1, "errored": 0}
        assert TrialCounts.of(checked) == TrialCounts.of(checked, ["v1", "v2"]) == TrialCounts(7, 3, 1)
        assert TrialCounts.of(checked).share_missing == pytest.approx(0.3)
        with pytest.raises(UnknownName, match="v3"):
            TrialCounts.of(checked, "v3")

    @pytest.mark.parametrize(
        ("numbers", "words"),
        [
            ((150, 150, 150), "150 of 300 trials errored"),
            ((7, 3, 1), "3 of 10 trials unscored, of them 1 errored"),
            ((7, 3, 0), "3 of 10 trials unscored"),
            ((0, 1, 1), "1 of 1 trial errored"),
        ],
    )
    def test_words(self, numbers, words):
        """As they stand in a sentence."""
        assert TrialCounts(*numbers).words == str(TrialCounts(*numbers)) == words

    def test_nothing_to_say(self):
        """Where every trial was scored, a sentence need not mention it."""
        whole = TrialCounts(1200, 0, 0)
        assert (whole.words, str(whole), whole.share_missing) == ("", "1,200 trials, all scored", 0)
        assert TrialCounts(0, 0, 0).share_missing == 0


class TestCountedAs:
    """Outcomes in which missing trials have a verdict."""

    def test_failed_and_passed(self):
        """Trials grow by what was missing, successes only where it passed; other agents stay."""
        checked = with_errors(TWO, [[1, 0], [0, 0]])
        filled = counted_as(checked, failed="v1", passed=["v2"])
        assert filled["trials"].values.tolist() == [[4, 2], [4, 0]]
        assert filled["successes"].values.tolist() == [[1, 2], [3, 0]]
        assert not filled["unscored"].values.any()
        assert not filled["errored"].values.any()
        assert counted_as(checked, passed="v2")["trials"].values.tolist() == [[2, 2], [4, 0]]
        assert checked["trials"].values.tolist() == [[2, 2], [3, 0]]

    def test_errored_only(self):
        """Trials that a judge could not score then stay unscored."""
        filled = counted_as(with_errors(TWO, [[1, 0], [0, 0]]), passed=["v1", "v2"], which="errored")
        assert filled["successes"].values.tolist() == [[2, 2], [2, 0]]
        assert filled["unscored"].values.tolist() == [[1, 0], [1, 0]]


def test_the_estimate_with_other_counts_has_the_same_method_and_is_made_once():
    """It is the estimate of those counts, which would have come without the missing trials."""
    est = estimate(TWO, "crossed")
    lower = as_if(est, failed="v1", passed="v2")
    same = estimate(counts({"v1": [(1, 4), (2, 2)], "v2": [(3, 4), (0, 0)]}), "crossed")
    assert lower.settings == est.settings
    assert lower.distribution("v1").mean == same.distribution("v1").mean < est.distribution("v1").mean
    assert as_if(est, failed=["v1"], passed=["v2"]) is lower
