"""The page of checks: which panels an engine has, and that they show what the diagnostics say."""

import dataclasses

import matplotlib as mpl
import numpy as np
import pytest
from fits import STRONGER, UNEQUAL, WEAKER, counts, fit_two
from pictures import assert_readable, below_title, legend_texts

from agentic_bayes.errors import EstimateError, InvalidArgument
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.io import stacks as _arviz
from agentic_bayes.reports.plots.diagnostics import plot_diagnostics

pytestmark = pytest.mark.stack

mpl.use("Agg")
TWELVE = "Counts under the model: v1"


@pytest.fixture(autouse=True)
def _close_figures():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


def titles(axes):
    return [ax.get_title() for ax in axes]


def alike(tasks=40, trials=4, agents=("v1",)):
    """Counts of tasks that differ as the model says."""
    rng = np.random.default_rng(5)
    return counts(
        {name: [(int(c), trials) for c in rng.binomial(trials, rng.beta(2, 1, size=tasks))] for name in agents}
    )


class TestPanels:
    """Every engine has panels of its own, and all have the model beside the data."""

    def test_the_exact_engine(self):
        """Counts of each agent and the influence of tasks; that nothing was sampled is said without a panel."""
        axes = plot_diagnostics(fit_two("quadrature"))
        assert titles(axes) == [TWELVE, "Counts under the model: v2", "Influence of single tasks (LOO)"]
        assert "nothing was sampled" in below_title(axes[-1])
        assert axes[2].get_window_extent().width > 1.5 * axes[0].get_window_extent().width
        assert_readable(axes[2])

    def test_importance_sampling(self):
        """Pareto k and effective sample size stand beside their limits, with the account's verdict."""
        est = estimate(counts({"v1": WEAKER, "v2": STRONGER}), method="crossed", k=1)
        axes = plot_diagnostics(est)
        assert titles(axes)[0] == "Importance sampling: reliable"
        labels = [label.get_text() for label in axes[0].get_yticklabels()]
        assert labels[0].startswith(f"Pareto k {est.diagnostics.pareto_k:.2f}\n")
        assert labels[1].startswith(f"ESS {est.diagnostics.ess:,.0f}\n")
        widths = [patch.get_width() for patch in axes[0].patches]
        assert widths == pytest.approx([max(est.diagnostics.pareto_k, 0) / 0.7, 400 / est.diagnostics.ess])
        for ax in axes:
            assert_readable(ax)

    def test_an_unreliable_account_says_so(self):
        """A Pareto k above its limit is drawn past it, and the title says NOT RELIABLE."""
        est = estimate(counts({"v1": WEAKER, "v2": STRONGER}), method="crossed", k=1)
        bad = dataclasses.replace(est, diagnostics=dataclasses.replace(est.diagnostics, pareto_k=0.9))
        ax = plot_diagnostics(bad)[0]
        assert ax.get_title() == "Importance sampling: NOT RELIABLE"
        assert ax.patches[0].get_width() == pytest.approx(0.9 / 0.7)

    def test_nuts(self):
        """Ranks and trace of the parameter that mixed worst, and sample sizes of all, by ArviZ's numbers."""
        est = fit_two("pymc")
        axes = plot_diagnostics(est)
        sizes = _arviz.by_parameter(est.draws, "bulk")
        worst = min(sizes, key=sizes.get)
        assert titles(axes)[:3] == [
            f"Ranks of {worst}, which mixed worst",
            f"Trace of {worst}",
            "Effective sample size",
        ]
        heights = np.array([patch.get_height() for patch in axes[0].patches]).reshape(4, 20)
        assert heights.sum(axis=0) == pytest.approx(4 * 0.6)  # of every rank there is one draw, in some chain
        assert len(axes[1].lines) == 5  # four chains, and the divergences
        names = [label.get_text() for label in axes[2].get_yticklabels()]
        assert dict(zip(names, axes[2].lines[0].get_xdata(), strict=True)) == pytest.approx(sizes)
        assert min(sizes.values()) >= est.diagnostics.ess_bulk
        assert legend_texts(axes[2]) == ["bulk", "tail", "required: > 400"]

    def test_given_axes_are_used(self):
        """As many axes as there are panels are needed; more are left alone."""
        import matplotlib.pyplot as plt

        _, given = plt.subplots(2, 3, figsize=(15, 8), layout="constrained")
        axes = plot_diagnostics(fit_two("quadrature"), ax=given)
        assert list(axes) == list(given.ravel()[:3])
        assert not given.ravel()[3].get_title()
        with pytest.raises(InvalidArgument, match="ax must hold 3 axes, one per panel of this estimate, got 1"):
            plot_diagnostics(fit_two("quadrature"), ax=given[0, 0])

    @pytest.mark.parametrize("method", ["conjugate", "frequentist"])
    def test_methods_without_a_model_of_tasks(self, method):
        """Where tasks share nothing there is nothing to check."""
        with pytest.raises(EstimateError, match=f"method '{method}' has no model of how tasks differ"):
            plot_diagnostics(estimate(counts({"a": UNEQUAL}), method=method))


class TestCounts:
    """Observed tasks by successes, and replicated ones."""

    def test_bars_are_the_data_and_bands_the_model(self):
        """Bars count tasks with 0 to 4 successes; bands hold 95 % of replicated counts; p is the estimate's own."""
        est = estimate(alike(), k=1)
        ax = plot_diagnostics(est)[0]
        observed = np.bincount(est.counts.successes[0], minlength=5)
        assert [bar.get_height() for bar in ax.patches] == observed.tolist()
        (part,) = est.checks.replicated(0)
        assert part.replicated.sum(axis=1).tolist() == [40] * len(part.replicated)
        low, high = np.quantile(part.replicated, [0.025, 0.975], axis=0)
        bands = np.array([segment[:, 1] for segment in ax.collections[0].get_segments()])
        np.testing.assert_allclose(bands, np.stack([low, high], axis=1))
        p = est.predictive_check().set_index("statistic")["p"]
        assert below_title(ax) == (
            f"p: histogram {p['histogram']:.2f}, all pass {p['all_pass']:.2f}, never pass {p['never_pass']:.2f}"
        )
        assert ax.get_xlabel() == "trials that passed, of 4"
        assert_readable(ax)

    def test_unequal_trials_become_shares(self):
        """Tasks with different numbers of trials are counted by the share that passed, without impossible shares."""
        cells = [(c, n) for n in (3, 4) for c in range(n + 1)] * 2
        ax = plot_diagnostics(estimate(counts({"a": cells}), k=1))[0]
        labels = [label.get_text() for label in ax.get_xticklabels()]
        assert labels == ["none", "20–40 %", "40–60 %", "60–80 %", "all"]
        assert [bar.get_height() for bar in ax.patches] == [4, 4, 2, 4, 4]
        assert_readable(ax)

    def test_too_few_tasks_are_said_to_be_too_few(self):
        """With nine tasks the panel is empty and says why."""
        ax = plot_diagnostics(estimate(alike(tasks=9), k=1))[0]
        assert ax.texts[0].get_text() == "needs 10 tasks tried twice or more, there are 9"
        assert not ax.axison

    def test_of_many_agents_the_four_that_fit_worst(self):
        """Six agents have four panels, among them the one whose counts the model does not explain."""
        outcomes = alike(agents=("v1", "v2", "v3", "v4", "v5", "v6"))
        outcomes["successes"][5] = [4] * 14 + [2] * 12 + [0] * 14
        est = estimate(outcomes, k=1)
        found = titles(plot_diagnostics(est))
        assert len(found) == 6
        assert "Counts under the model: v6" in found


class TestInfluence:
    """Pareto k of leaving out each cell."""

    def test_every_scored_cell_is_a_mark(self):
        """Marks are ArviZ's Pareto k, one per scored cell, and the limit is drawn."""
        est = fit_two("quadrature")
        ax = plot_diagnostics(est)[-1]
        values = _arviz.pareto_k(est.to_arviz())
        assert values.shape == (22,)
        drawn = np.concatenate([line.get_ydata() for line in ax.lines if line.get_marker() != "None"])
        assert sorted(drawn) == pytest.approx(sorted(values))
        assert "limit 0.7" in legend_texts(ax)

    def test_too_many_cells_are_not_computed(self):
        """Where draws of every cell would be too many, the panel says so instead of taking minutes."""
        ax = plot_diagnostics(estimate(alike(tasks=2600), k=1))[-1]
        assert "the draws of 1 agent × 2,600 tasks would be too many" in ax.texts[0].get_text().replace("\n", " ")

    def test_a_single_cell(self):
        """One cell is one mark, without a warning."""
        ax = plot_diagnostics(estimate(counts({"a": [(1, 3)]}), k=1))[-1]
        marks = [line for line in ax.lines if line.get_marker() != "None"]  # below the limit, and above it
        assert sum(len(line.get_xdata()) for line in marks) == 1
