"""Forest, shrinkage and heat map: one line, mark or cell per task or agent."""

import matplotlib as mpl
import numpy as np
import pytest
from fits import NEVER, STRONGER, UNEQUAL, WEAKER, counts, fit, fit_two, rows
from matplotlib.collections import PathCollection
from pictures import assert_readable, below_title, legend_texts

from agentic_bayes.errors import EstimateError, InvalidArgument
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.reports.plots.forest import plot_forest
from agentic_bayes.reports.plots.tasks import plot_heatmap, plot_shrinkage

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


def many(tasks, agents=1, seed=3):
    """Counts of four trials per task; tasks differ."""
    rng = np.random.default_rng(seed)
    return counts(
        {f"v{i + 1}": [(int(c), 4) for c in rng.binomial(4, rng.beta(2, 1.5, size=tasks))] for i in range(agents)}
    )


def marks(ax):
    """(name, mean) of every line that has a mark, from the top."""
    ticks = zip(ax.get_yticks(), ax.get_yticklabels(), strict=True)
    names = {round(float(place), 6): label.get_text() for place, label in ticks}
    drawn = [line for line in ax.lines if line.get_marker() == "o" and np.isfinite(line.get_xdata()[0])]
    return [(names[round(float(line.get_ydata()[0]), 6)], float(line.get_xdata()[0])) for line in drawn]


def words(ax):
    """All texts beside the picture."""
    return [text.get_text() for text in ax.texts]


class TestForest:
    """Mean and interval, one line each."""

    def test_agents_are_the_summarys_rows(self):
        """Every agent has the mean and the interval of its row in the summary, two in the order of the data."""
        est = fit_two("quadrature")
        ax = plot_forest(est, metric="pass^3")
        found = rows(est.summary(columns="all"), estimand="population", metric="pass^3").set_index("agent")
        assert [name for name, _ in marks(ax)] == ["v1", "v2"]
        assert dict(marks(ax)) == pytest.approx(dict(found["mean"]))
        bars = [list(line.get_xdata()) for line in ax.lines if len(line.get_xdata()) == 2]
        assert bars == [pytest.approx([found["lower"][name], found["upper"][name]]) for name in ("v1", "v2")]
        assert ax.get_xlabel() == "pass^3: probability on a new task of this kind"
        assert any(text.endswith("12 tasks") for text in words(ax))
        assert_readable(ax)

    def test_tasks_carry_their_counts(self):
        """Every attempted task of the agent has a line, with successes of scored trials beside it."""
        est = fit_two("quadrature")
        ax = plot_forest(est, of="tasks", agent="v1")
        found = rows(est.summary(columns="all", tasks=True), agent="v1", estimand="task", metric="pass^1").set_index(
            "task"
        )
        assert dict(marks(ax)) == pytest.approx(dict(found["mean"]))
        values = [mean for _, mean in marks(ax)]
        assert values == sorted(values, reverse=True)
        assert any(text.endswith("3/4") for text in words(ax))
        assert any(text.endswith("2 unscored") for text in words(ax))
        assert "no data: the model's prediction" in legend_texts(ax)
        (mean,) = rows(est.summary(columns="all"), agent="v1", estimand="tasks", metric="pass^1")["mean"]
        assert f"mean over the observed tasks {mean:.2f}" in legend_texts(ax)
        assert_readable(ax)

    def test_hundreds_of_tasks_show_both_ends(self):
        """Of 300 tasks the twenty most and least reliable are drawn, and the gap says that 260 are left out."""
        est = estimate(many(300), k=1)
        ax = plot_forest(est, of="tasks")
        values = sorted(
            rows(est.summary(columns="all", tasks=True), estimand="task", metric="pass^1")["mean"], reverse=True
        )
        assert [mean for _, mean in marks(ax)] == pytest.approx(values[:20] + values[-20:])
        assert "… 260 tasks in between left out …" in words(ax)
        assert_readable(ax)

    def test_an_odd_limit_is_kept(self):
        """With at most five lines, three come from the top and two from the foot."""
        ax = plot_forest(estimate(many(9), k=1), of="tasks", most=5)
        assert len(marks(ax)) == 5
        assert "… 4 tasks in between left out …" in words(ax)

    def test_hollow_marks_are_extrapolated(self):
        """Tasks with fewer trials than k have hollow marks and dotted intervals, and the legend says why."""
        ax = plot_forest(fit("quadrature", UNEQUAL), of="tasks", metric="pass^5")
        faces = [line.get_markerfacecolor() for line in ax.lines if line.get_marker() == "o"]
        assert faces.count("white") == sum(n < 5 for _, n in UNEQUAL)
        assert "extrapolated: k exceeds the trials" in legend_texts(ax)

    def test_what_is_undefined_is_no_zero(self):
        """An unbiased estimate for more attempts than trials has a line without a mark, with its reason."""
        est = estimate(counts({"a": [(3, 4), (1, 1), (0, 0, 2)]}), method="frequentist", k=3)
        ax = plot_forest(est, of="tasks", metric="pass^3")
        assert [name for name, _ in marks(ax)] == ["task 1"]
        assert "undefined: 1 trial, fewer than 3" in words(ax)
        assert "undefined: nothing was scored" in words(ax)
        assert legend_texts(ax) == ["mean over the observed tasks 0.25"]
        assert "95 % confidence interval" in below_title(ax)

    def test_methods_without_a_population_show_the_tasks(self):
        """Of an unpooled conjugate estimate the mean over the observed tasks is drawn, and the axis says so."""
        ax = plot_forest(estimate(counts({"a": WEAKER, "b": STRONGER}), method="conjugate"))
        assert ax.get_xlabel() == "pass^1: probability averaged over the observed tasks"

    def test_a_bar_to_clear(self):
        """A reference value is a line with a name."""
        assert legend_texts(plot_forest(fit_two("quadrature"), ref_val=0.5)) == ["reference 0.5"]

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"of": "turns"}, "unknown of 'turns'"),
            ({"of": "tasks"}, "several agents; choose one"),
            ({"agent": "v1"}, "agent needs of='tasks', got agent='v1' with of='agents'"),
            ({"of": "tasks", "agent": "v3"}, "unknown agent 'v3'"),
            ({"metric": "pass"}, "metric must be .* got 'pass'"),
            ({"estimand": "task"}, "unknown estimand 'task'"),
            ({"metric": "pass^0"}, r"metric must be .* got 'pass\^0'"),
            ({"most": 1}, "most must be an integer from 2 to 200, got 1"),
            ({"most": True}, "most must be an integer from 2 to 200, got True"),
            ({"ref_val": 2}, r"ref_val must be a number in \[0, 1\], got 2"),
        ],
    )
    def test_wrong_arguments(self, change, message):
        """Nothing is drawn before every argument is valid."""
        import matplotlib.pyplot as plt

        with pytest.raises(InvalidArgument, match=message):
            plot_forest(fit_two("quadrature"), **change)
        assert plt.get_fignums() == []


def points(ax):
    """(raw, posterior mean) of every mark."""
    return np.concatenate([part.get_offsets() for part in ax.collections if isinstance(part, PathCollection)])


class TestShrinkage:
    """Posterior against raw, by task."""

    def test_marks_are_raw_and_posterior(self):
        """Every mark is the raw rate of a task and its posterior mean; equal tasks share one and are counted."""
        est = fit("quadrature", UNEQUAL)
        ax = plot_shrinkage(est)
        found = rows(est.summary(columns="all", tasks=True), estimand="task", metric="pass^1")
        wanted = {(round(c / n, 6), round(mean, 6)) for (c, n), mean in zip(UNEQUAL, found["mean"], strict=True)}
        assert {(round(x, 6), round(y, 6)) for x, y in points(ax).tolist()} == wanted
        areas = np.concatenate([part.get_sizes() for part in ax.collections if isinstance(part, PathCollection)])
        assert sorted((areas / areas.min()) ** 2) == pytest.approx([1.0] * 10 + [2.0])  # two tasks passed 4 of 4
        assert_readable(ax)

    def test_extreme_rates_move_towards_the_middle(self):
        """A task that never passed is above the diagonal, one that always passed below."""
        for x, y in points(plot_shrinkage(fit("quadrature", UNEQUAL))).tolist():
            assert 0 < y < 1
            assert x not in (0, 1) or abs(y - 0.5) < 0.5

    def test_few_trials_are_left_out_of_pass_to_the_k(self):
        """With k = 5 only tasks with five trials have a raw rate; how many have none is said."""
        ax = plot_shrinkage(fit("quadrature", UNEQUAL), metric="pass^5")
        assert len(points(ax)) == len({cell for cell in UNEQUAL if cell[1] >= 5})
        assert below_title(ax).startswith("4 tasks, 8 with fewer than 5 scored trials left out")

    def test_two_thousand_tasks_are_a_few_marks(self):
        """Two thousand tasks with four trials each are five marks, and the counts beside them add up."""
        ax = plot_shrinkage(estimate(many(2000), k=1))
        assert len(points(ax)) == 5
        assert sum(int(text.replace(",", "")) for text in words(ax) if text.replace(",", "").isdigit()) == 2000
        assert_readable(ax)

    def test_many_numbers_of_trials_are_four_groups(self):
        """Forty different numbers of trials become four kinds of marks that differ in colour and shape."""
        ax = plot_shrinkage(estimate(counts({"a": [(n // 2, n) for n in range(1, 41)]}), k=1))
        assert legend_texts(ax)[:4] == ["1 to 10 trials", "11 to 20 trials", "21 to 30 trials", "31 to 40 trials"]

    @pytest.mark.parametrize(
        ("cells", "how", "error", "message"),
        [
            (UNEQUAL, {"method": "frequentist"}, {}, "the frequentist method has no posterior"),
            ([(1, 2), (2, 2)], {}, {"metric": "pass^3"}, "no task of 'a' has 3 scored trials: there is no raw rate"),
            ([(0, 0, 3), NEVER], {}, {}, "no task of 'a' has 1 scored trial: there is no raw rate"),
        ],
    )
    def test_what_cannot_be_shrunk(self, cells, how, error, message):
        """Without a posterior or a raw rate there is no such picture, and the reason is given."""
        outcomes = counts({"a": cells, "b": [(1, 2)] * len(cells)})
        with pytest.raises(EstimateError, match=message):
            plot_shrinkage(estimate(outcomes, **how), agent="a", **error)


class TestHeatmap:
    """Agents × tasks, by difficulty."""

    def test_cells_are_the_summarys_numbers_hardest_first(self):
        """Colours are posterior means of tasks; rows go from the smallest mean over agents to the largest."""
        est = fit_two("quadrature")
        ax = plot_heatmap(est, metric="pass^3")
        values = np.ma.filled(ax.images[0].get_array().astype(float), np.nan)
        frame = rows(est.summary(columns="all", tasks=True), estimand="task", metric="pass^3")
        table = frame[frame["n_tasks"] > 0].pivot_table(index="task", columns="agent", values="mean")
        for row, label in zip(values, ax.get_yticklabels(), strict=True):
            for agent, value in zip(est.agents, row, strict=True):
                cell = est.outcomes.sel(agent=agent, task=label.get_text())
                # what was never scored is a prediction in the summary, and no number here
                wanted = table.loc[label.get_text(), agent] if int(cell["trials"]) else np.nan
                assert value == pytest.approx(wanted, nan_ok=True)
        difficulty = np.nanmean(values, axis=1)
        assert (np.diff(difficulty) >= -1e-12).all()
        assert "0/4" in words(ax)
        assert_readable(ax)

    def test_missing_cells_are_no_zeros(self):
        """Never attempted, nothing scored and undefined are patterns of their own, each in the legend."""
        est = estimate(counts({"a": [(3, 4), NEVER, (0, 0, 2)], "b": [(1, 1), (2, 4), (4, 4)]}), method="frequentist")
        ax = plot_heatmap(est, metric="pass^3")
        assert legend_texts(ax) == ["never attempted", "nothing scored", "undefined: trials < k"]
        assert [len(part.get_paths()) for part in ax.collections] == [1, 1, 1]
        assert int(np.isnan(np.ma.filled(ax.images[0].get_array(), np.nan)).sum()) == 3

    def test_two_thousand_tasks_have_no_names(self):
        """Tasks beyond sixty are lines without a name or counts, and the axis says how many there are."""
        ax = plot_heatmap(estimate(many(2000, agents=2), method="conjugate", k=1))
        assert ax.images[0].get_array().shape == (2000, 2)
        assert len(ax.get_yticks()) == 0
        assert ax.get_ylabel() == "2,000 tasks, the hardest at the top"
        assert_readable(ax)

    def test_thirty_agents(self):
        """Thirty agents stand side by side with slanted names; more than a hundred are refused."""
        ax = plot_heatmap(estimate(many(12, agents=30), method="conjugate", k=1))
        assert len(ax.get_xticks()) == 30
        with pytest.raises(InvalidArgument, match="at most 100 agents fit side by side, got 101"):
            plot_heatmap(estimate(many(1, agents=101), method="conjugate", k=1))

    def test_a_single_task_and_agent(self):
        """One cell is a picture too."""
        ax = plot_heatmap(estimate(counts({"a": [(1, 3)]}), k=1))
        assert words(ax)[0] == "1/3"
        for one in ax.figure.axes:  # the bar of colours too
            assert_readable(one)
