"""The difference of two agents as a picture."""

import matplotlib as mpl
import numpy as np
import pytest
from fits import STRONGER, WEAKER, counts, fit_two
from pictures import assert_readable, below_title, legend_texts

from agentic_bayes.decisions.compare import compare
from agentic_bayes.decisions.plan import plan
from agentic_bayes.errors import EstimateError, InvalidArgument
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.methods.options import Conjugate
from agentic_bayes.reports.plots.comparison import plot_comparison
from agentic_bayes.reports.plots.planning import plot_plan

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


def area(part):
    """Area of what is shaded, by the shoelace formula."""
    total = 0.0
    for path in part.get_paths():
        x, y = path.vertices.T
        total += abs(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y)) / 2
    return total


CASES = {
    "agents": {"agent": "v2", "baseline": "v1"},
    "reversed": {"agent": "v1", "baseline": "v2"},
    "on their own tasks": {"agent": "v2", "baseline": "v1", "tasks": "own"},
    "a value": {"agent": "v2", "baseline": 0.6},
    "on these tasks": {"agent": "v2", "baseline": "v1", "estimand": "tasks"},
}


class TestComparison:
    """One density, two shaded tails."""

    @pytest.mark.parametrize("case", CASES)
    def test_the_tails_are_the_probabilities(self, case):
        """The area above 0 is the probability of being better, that below 0 the rest, to within smoothing."""
        asked = dict(CASES[case])
        found = compare(fit_two("quadrature"), asked.pop("agent"), **asked, metric="pass^3")
        ax = plot_comparison(found)
        better, worse = (area(part) for part in ax.collections[:2])
        assert better == pytest.approx(found.prob_better, abs=0.02)
        assert worse == pytest.approx(1 - found.prob_better, abs=0.02)
        assert better + worse == pytest.approx(1, abs=0.01)
        assert_readable(ax)

    def test_numbers_are_the_comparisons(self):
        """Mean, interval, region and verdict are those of the comparison."""
        est = estimate(counts({"v1": WEAKER, "v2": STRONGER}))
        found = compare(est, "v2", baseline="v1", metric="pass^3", rope=0.05)
        ax = plot_comparison(found)
        bar, mark = ax.lines[-2], ax.lines[-1]
        assert list(bar.get_xdata()) == [found.lower, found.upper]
        assert list(mark.get_xdata()) == [found.mean]
        assert ax.get_title() == f"pass^3, v2 − v1: {found.verdict}"
        assert below_title(ax).startswith("crossed, pairing tasks, 95 % equal-tailed interval;")
        assert below_title(ax).endswith("10 shared tasks, 2 left out")
        said = legend_texts(ax)
        assert said[2].startswith("P(within ±5 points): ")
        assert said[3] == f"difference {found.mean:.3f}, {found.lower:.3f} to {found.upper:.3f}"
        assert [text.get_text() for text in ax.texts[:2]] == ["← v1 better", "v2 better →"]
        (region,) = ax.patches
        assert (region.get_x(), region.get_width()) == pytest.approx((-0.05, 0.1))

    def test_zero_is_always_in_sight(self):
        """Where an agent is far better the picture still reaches to no difference."""
        est = estimate(counts({"a": [(0, 8)] * 30, "b": [(8, 8)] * 30}), method=Conjugate(pool_tasks=True))
        ax = plot_comparison(compare(est, "b", baseline="a"))
        low, high = ax.get_xlim()
        assert low < 0 < high
        assert ">0.999" in legend_texts(ax)[0]
        assert "<0.001" in legend_texts(ax)[1]

    def test_the_difference_is_of_draws_that_belong_together(self):
        """A comparison carries the draws it was made from; they are no part of its equality or text."""
        first, second = (compare(fit_two("quadrature"), "v2", baseline="v1") for _ in range(2))
        assert first == second
        assert first.draws.mean() == pytest.approx(first.mean)
        assert np.mean(first.draws > 0) == pytest.approx(first.prob_better)
        assert "draws=" not in repr(first)

    def test_only_comparisons(self):
        """Something else is refused by name."""
        with pytest.raises(InvalidArgument, match=r"comparison must be a Comparison \(compare\(\) makes one\)"):
            plot_comparison(0.5)


def test_a_budget_that_buys_nothing_is_no_picture():
    """Where no design can be paid for there is nothing to draw, and no empty axes."""
    with pytest.raises(EstimateError, match="the budget buys no design: there is nothing to draw"):
        plot_plan(plan(mu=0.6, rho=0.4, budget=1, simulations=10))
