"""Pictures: what is in them, that all of it can be read, and that both ArviZ stacks give the same."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from fits import ENGINES, NEVER, STRONGER, UNEQUAL, WEAKER, counts, fit, fit_two, row
from pictures import assert_finite, assert_readable, below_title, legend_texts, png
from scipy import stats

from agentic_bayes.decisions.plan import plan
from agentic_bayes.errors import EstimateError, EvidenceError, InvalidArgument, UnknownName
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.methods.options import Conjugate, Hierarchical
from agentic_bayes.evidence.assess import assess
from agentic_bayes.evidence.reference.judge import ReferenceJudge
from agentic_bayes.judges.calibration import calibrate_judge
from agentic_bayes.judges.labels import sample_for_labelling
from agentic_bayes.records.model import Conversation
from agentic_bayes.records.read import read_conversations
from agentic_bayes.reports.plots.curves import plot_pass_curves
from agentic_bayes.reports.plots.planning import plot_plan
from agentic_bayes.reports.plots.posterior import density, plot_posterior, plot_prior
from agentic_bayes.reports.plots.save import save_pictures, save_plan_picture
from agentic_bayes.reports.plots.tools import plot_judge_calibration, plot_tools

mpl.use("Agg")
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "support_agent"


@pytest.fixture(autouse=True)
def _close_figures():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


@pytest.fixture(params=ENGINES)
def two(request):
    return fit_two(request.param)


class TestDensity:
    """A kernel density for values in [0, 1]."""

    @pytest.mark.parametrize(("a", "b"), [(1, 1), (0.5, 0.5), (20, 1), (1, 20), (3, 5)])
    def test_no_mass_leaks_out(self, a, b):
        """Reflected at 0 and 1 the density integrates to 1, also where it piles up at an end."""
        x, y = density(np.random.default_rng(0).beta(a, b, size=4000))
        assert np.trapezoid(y, x) == pytest.approx(1, abs=0.02)
        assert (y >= 0).all()
        assert x[0] >= 0
        assert x[-1] <= 1

    def test_equal_draws_have_no_density(self):
        """Draws without spread give a flat line instead of a failure."""
        x, y = density(np.full(4000, 0.3))
        assert (y == 0).all()
        assert np.isfinite(x).all()


class TestPlotPosterior:
    """One density per agent, with mean and interval."""

    def test_agents_bar_and_region(self, two, tmp_path):
        """Two agents, a bar to clear and a region: all in the legend with their numbers, and all readable."""
        ax = plot_posterior(two, metric="pass^3", ref_val=0.7, rope=(0.45, 0.55))
        legend = legend_texts(ax)
        assert legend[0] == "region [0.45, 0.55]"
        assert legend[-1] == "reference 0.7"
        for agent, label in zip(("v1", "v2"), legend[1:3], strict=True):
            question = {"metric": "pass^3"}
            above, low, high = (two.prob_at_least(agent, value, **question) for value in (0.7, 0.45, 0.55))
            known = row(two.summary(), agent=agent, estimand="population", metric="pass^3")
            assert label.startswith(f"{agent}: {known['mean']:.3f} [{known['lower']:.3f}, {known['upper']:.3f}]")
            assert f"P(≥ 0.7) = {above:.3f}" in label or (above < 0.0005 and "P(≥ 0.7) < 0.001" in label)
            assert f"P(region) = {low - high:.3f}" in label
        assert ax.get_title() == "Posterior of pass^3"
        assert below_title(ax).split(";\n") == [
            "hierarchical, 95 % equal-tailed interval",
            "unit conversation, indicator correct",
            "the agents did not all try the same tasks",
        ]
        assert ax.get_xlabel() == "pass^3: probability on a new task of this kind"
        assert len(ax.lines) == 2 * 3 + 1  # density, interval and mean per agent; the bar
        assert_finite(ax)
        assert_readable(ax)
        assert png(ax, tmp_path).startswith(b"\x89PNG")

    def test_the_drawn_interval_is_that_of_the_draws(self, two):
        """The bar below a density spans the interval of its draws, and the dot stands at their mean."""
        ax = plot_posterior(two, metric="pass^3", agents=["v2"])
        interval, dot = ax.lines[1], ax.lines[2]
        found = row(two.summary(columns="all"), agent="v2", estimand="population", metric="pass^3")
        assert interval.get_xdata() == pytest.approx([found["lower"], found["upper"]], abs=0.03)
        assert dot.get_xdata() == pytest.approx([found["mean"]], abs=0.02)

    def test_the_same_picture_every_time(self, tmp_path):
        """The same estimate gives the same bytes."""
        two = fit_two(ENGINES[0])
        one, other = (png(plot_posterior(two, metric="pass^2"), tmp_path) for _ in range(2))
        assert one == other

    def test_many_agents_with_long_names(self, tmp_path):
        """Three agents with long names share a place, seven have a line each; both remain readable."""
        names = [f"customer-support-agent-2026-07-{day:02d}" for day in range(7)]
        est = estimate(counts(dict.fromkeys(names, UNEQUAL)), method=Conjugate(pool_tasks=True))
        for shown, legend, lines in ((names[:3], 4, 0), (names, 1, 7)):
            ax = plot_posterior(est, agents=shown, ref_val=0.5)
            assert (len(legend_texts(ax)), len(ax.get_yticks())) == (legend, lines)
            assert_readable(ax)

    def test_many_agents_stand_one_above_the_other(self):
        """Thirty agents have a line each, with name, mean and interval; beyond forty the picture is refused."""
        agents = {f"agent-{i:02d}": [(i % 5, 4), (3, 4), (1, 4)] for i in range(41)}
        est = estimate(counts(agents), method=Conjugate(pool_tasks=True))
        shown = est.agents[:30]
        ax = plot_posterior(est, agents=shown)
        assert [label.get_text() for label in ax.get_yticklabels()] == list(shown)
        means = [float(line.get_xdata()[0]) for line in ax.lines if line.get_marker() == "o"]
        found = est.summary(columns="all").query("estimand == 'population' and metric == 'pass^1'")
        assert means == pytest.approx(list(found["mean"])[:30])
        assert_readable(ax)
        with pytest.raises(EstimateError, match="at most 40 densities can be told apart, got 41 agents"):
            plot_posterior(est)

    def test_a_region_alone(self):
        """Without a bar the probability of the region stands on the line of the agent's numbers."""
        (region, label) = legend_texts(plot_posterior(fit(ENGINES[0], UNEQUAL), rope=(0.0, 1.0)))
        assert region == "region [0.00, 1.00]"
        assert label.endswith("], P(region) > 0.999")

    def test_a_half_width_lies_around_the_bar(self):
        """A number is a half-width around the reference, cut at 0 and 1."""
        ax = plot_posterior(fit(ENGINES[0], UNEQUAL), ref_val=0.9, rope=0.2)
        assert legend_texts(ax)[0] == "region [0.70, 1.00]"

    def test_doubtful_numbers_say_so(self):
        """What flags a number in the summary stands beside it in the legend."""
        ax = plot_posterior(fit(ENGINES[0], UNEQUAL), metric="pass^9")
        assert legend_texts(ax)[0].endswith("\n(extrapolated)")
        assert_readable(ax)

    def test_given_axes_are_used(self):
        """With `ax` nothing else is made, and without a layout engine the legend stays inside the axes."""
        import matplotlib.pyplot as plt

        two = fit_two(ENGINES[0])
        figure, axes = plt.subplots(1, 2, figsize=(16, 5))
        assert plot_posterior(two, ax=axes[0]) is axes[0]
        assert plot_pass_curves(two, agent="v1", ax=axes[1]) is axes[1]
        assert plt.get_fignums() == [figure.number]
        figure.canvas.draw()
        for ax in axes:
            legend, frame = ax.get_legend().get_window_extent(), ax.get_window_extent()
            assert frame.x0 <= legend.x0 < legend.x1 <= frame.x1
            assert frame.y0 <= legend.y0 < legend.y1 <= frame.y1

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"ref_val": 70}, r"ref_val must be a number in \[0, 1\], got 70"),
            ({"ref_val": "0.7"}, r"ref_val must be a number in \[0, 1\], got '0\.7'"),
            ({"ref_val": True}, r"ref_val must be a number in \[0, 1\], got True"),
            ({"rope": (0.5, 0.4)}, r"rope must be \(lower, upper\) with 0 ≤ lower < upper ≤ 1, got \(0\.5, 0\.4\)"),
            ({"rope": (-0.1, 0.1)}, r"rope must be .* got \(-0\.1, 0\.1\)"),
            ({"rope": 0.1}, r"rope must be \(lower, upper\) .* got 0\.1"),
            ({"rope": (0.1,)}, r"rope must be \(lower, upper\) .* got \(0\.1,\)"),
            ({"rope": ("a", "b")}, r"rope must be \(lower, upper\) .* got \('a', 'b'\)"),
            ({"agents": []}, r"agents must be a sequence of one or more names, got \[\]"),
            ({"agents": "v1"}, "agents must be a sequence of one or more names, got 'v1'"),
            ({"agents": ["v1", "V2 "]}, "unknown agent 'V2 '"),
            ({"metric": "pass"}, "metric must be .* got 'pass'"),
            ({"metric": "pass^0"}, r"metric must be .* got 'pass\^0'"),
            ({"estimand": "task"}, "unknown estimand 'task'"),
        ],
    )
    def test_wrong_arguments(self, change, message):
        """Nothing is drawn before every argument is valid."""
        import matplotlib.pyplot as plt

        with pytest.raises(InvalidArgument, match=message):
            plot_posterior(fit_two(ENGINES[0]), **change)
        assert plt.get_fignums() == []

    def test_no_posterior_no_picture(self):
        """The frequentist method has no density to draw."""
        with pytest.raises(EstimateError, match="the frequentist method has no posterior"):
            plot_posterior(estimate(counts({"a": UNEQUAL}), method="frequentist"))


class TestPlotPrior:
    """What was assumed and what was learned."""

    @pytest.mark.parametrize(
        "how",
        [
            {"method": "hierarchical"},
            pytest.param({"method": Hierarchical(pool_agents=False)}, marks=pytest.mark.slow),
            {"method": "crossed"},
            {"method": Conjugate(pool_tasks=True)},
            pytest.param({"method": Hierarchical(inflate=True)}, marks=pytest.mark.slow),
            {"method": Hierarchical(rho=stats.beta(2, 5))},
        ],
        ids=["hierarchical", "unpooled", "crossed", "conjugate", "inflated", "prior given"],
    )
    def test_both_densities_and_their_numbers(self, how):
        """The posterior has the numbers of the summary; the prior is wider and does not know the data."""
        est = estimate(counts({"v1": WEAKER, "v2": STRONGER}), k=3, **how)
        ax = plot_prior(est, agent="v2", metric="pass^3")
        before, after = legend_texts(ax)
        found = row(est.summary(columns="all"), agent="v2", estimand="population", metric="pass^3")
        assert after == f"posterior: {found['mean']:.3f} [{found['lower']:.3f}, {found['upper']:.3f}]"
        other = estimate(counts({"v1": STRONGER, "v2": WEAKER}), k=3, **how)
        assert legend_texts(plot_prior(other, agent="v2", metric="pass^3"))[0] == before
        low, high = map(float, before.split("[")[1].rstrip("]").replace("<", "").replace(">", "").split(", "))
        assert high - low > found["upper"] - found["lower"]
        assert_readable(ax)

    def test_the_default_prior_of_the_rate_is_uniform(self):
        """For one agent and k = 1 the prior is Uniform(0, 1), whose density is 1 everywhere."""
        line = plot_prior(fit(ENGINES[0], UNEQUAL)).lines[0]
        x, y = line.get_xdata(), line.get_ydata()
        assert y[(x > 0.02) & (x < 0.98)] == pytest.approx(1, abs=0.02)

    def test_a_prior_that_is_a_function(self):
        """A function is drawn as any other prior."""
        est = estimate(counts({"solo": UNEQUAL}), method=Hierarchical(rho=lambda rho: np.zeros(np.shape(rho))))
        assert len(plot_prior(est).lines) == 2

    def test_no_prior_no_picture(self):
        """Methods without a prior of a new task are refused as `metric_draws` refuses them."""
        with pytest.raises(EstimateError, match="the frequentist method has no posterior"):
            plot_prior(estimate(counts({"a": UNEQUAL}), method="frequentist"))
        with pytest.raises(EstimateError, match="estimand 'population' is not defined by Conjugate"):
            plot_prior(estimate(counts({"a": UNEQUAL}), method="conjugate"))


class TestPlotPassCurves:
    """pass@k rising and pass^k falling over k."""

    def test_curves(self, two, tmp_path):
        """Both metrics with their intervals and the plug-in curves dashed, k = 1 to 5, all readable."""
        ax = plot_pass_curves(two, agent="v2")
        labels = legend_texts(ax)
        assert labels[:4] == ["pass@k (hierarchical)", "pass@k plug-in", "pass^k (hierarchical)", "pass^k plug-in"]
        assert labels[4:] == ["extrapolated: k > 4 trials"]
        at, at_plug_in, at_beyond, power, power_plug_in, power_beyond = ax.lines
        assert list(at_beyond.get_xdata()) == list(power_beyond.get_xdata()) == [5]
        assert list(at.get_xdata()) == [1, 2, 3, 4, 5]
        assert (np.diff(at.get_ydata()) > 0).all()
        assert (np.diff(power.get_ydata()) < 0).all()
        assert at.get_ydata()[0] == pytest.approx(power.get_ydata()[0])
        assert at_plug_in.get_linestyle() == power_plug_in.get_linestyle() == "--"
        assert len(ax.collections) == 2
        assert ax.get_title() == "v2: pass@k and pass^k"
        assert "95 % equal-tailed interval" in below_title(ax)
        assert ax.get_ylabel() == "probability on a new task of this kind"
        assert ax.get_ylim() == (-0.02, 1.02)
        assert_finite(ax)
        assert_readable(ax)
        assert png(ax, tmp_path).startswith(b"\x89PNG")

    def test_curves_of_several_agents_are_one_picture(self, two):
        """Each agent has its colour, as in the picture of posteriors, and the numbers of the summary."""
        ax = plot_pass_curves(two, k=(1, 3))
        assert legend_texts(ax)[:2] == ["v1", "v2"]
        assert below_title(ax).startswith("rising (round): pass@k, falling (square): pass^k;")
        found = row(two.summary(columns="all"), agent="v2", estimand="population", metric="pass^3")
        assert ax.lines[3].get_ydata()[1] == pytest.approx(found["mean"])
        densities = plot_posterior(two, agents=["v2"]).lines
        assert ax.lines[2].get_color() == ax.lines[3].get_color() == densities[0].get_color() != ax.lines[0].get_color()
        assert_readable(ax)

    def test_curves_of_seven_agents_with_long_names_can_be_read(self):
        """Their names stand apart at the ends of the curves, also where all curves are one; the best has a band."""
        names = [f"VENDOR/SOME-QUITE-LONG-MODEL-NAME-{i}-2026-05-PREVIEW-WITH-TOOLS" for i in range(7)]
        ax = plot_pass_curves(estimate(counts(dict.fromkeys(names, UNEQUAL)), method=Conjugate(pool_tasks=True)))
        named = [text.get_text() for text in ax.texts if text.get_text().startswith("VEN")]
        assert len(named) == 7
        assert all(any(f"-{i}-" in name for name in named) for i in range(7))
        assert len(ax.collections) == 2
        assert_readable(ax)
        assert ax.get_window_extent().height > 0.5 * ax.figure.bbox.height

    def test_of_many_agents_those_with_a_colour_have_curves(self):
        """Of nine agents the best six, in the order of their ends; nine that are asked for are refused."""
        agents = [f"v{i}" for i in range(9)]
        est = estimate(counts({name: [(i, 9), (9, 9)] for i, name in enumerate(agents)}), Conjugate(pool_tasks=True))
        ax = plot_pass_curves(est)
        assert ax.get_title() == "pass@k and pass^k, 6 of 9 agents"
        assert [one.get_text() for one in ax.texts if one.get_text() in agents] == agents[:2:-1]
        assert_readable(ax)
        with pytest.raises(InvalidArgument, match="at most 7 agents can be told apart, got 9"):
            plot_pass_curves(est, agents)

    def test_colours_and_titles_are_the_users(self):
        """Colours by agent or in order, and a title of one's own; what is no colour is refused."""
        two = fit_two(ENGINES[0])
        ax = plot_posterior(two, colors={"v2": "red"}, title="Mine")
        assert (ax.get_title(), ax.lines[3].get_color()) == ("Mine", "red")
        assert plot_posterior(two, colors=["black", "tab:blue"]).lines[0].get_color() == "black"
        for colors in (["red"], "red", {"v1": "no colour"}, {"v9": "red"}):
            with pytest.raises(InvalidArgument, match=r"colors must|unknown agent 'v9'"):
                plot_posterior(two, colors=colors)

    def test_curves_are_the_summarys_numbers(self, two):
        """A point of a curve is the mean in the summary."""
        ax = plot_pass_curves(two, agent="v1", k=(3,), estimand="tasks")
        found = row(two.summary(columns="all"), agent="v1", estimand="tasks", metric="pass^3")
        assert ax.lines[2].get_ydata() == pytest.approx([found["mean"]])
        assert ax.get_ylabel() == "probability averaged over the observed tasks"

    def test_beyond_the_trials_the_ground_is_grey_and_marks_are_hollow(self):
        """From the middle between the largest number of trials and the next k on, curves are marked as extrapolated."""
        ax = plot_pass_curves(fit(ENGINES[0], UNEQUAL), k=range(1, 11))
        (ground,) = (patch for patch in ax.patches if patch.get_width() > 1)
        assert ground.get_x() == 6.5  # no task has more than 6 trials
        hollow = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
        assert [list(line.get_xdata()) for line in hollow] == [[7, 8, 9, 10]] * 2
        assert legend_texts(ax)[-1] == "extrapolated: k > 6 trials"
        assert len(legend_texts(plot_pass_curves(fit(ENGINES[0], UNEQUAL), k=range(1, 7)))) == 4

    def test_an_agent_without_data_is_all_prior(self):
        """Where nothing was scored the whole ground is grey, and the legend says why."""
        est = estimate(counts({"a": [(0, 0, 2), NEVER], "b": [(1, 2), (2, 2)]}))
        ax = plot_pass_curves(est, agent="a")
        assert legend_texts(ax)[-1] == "nothing was scored"
        assert_readable(ax)

    @pytest.mark.parametrize("k", [pytest.param(range(1, 11), marks=pytest.mark.slow), 7, range(1, 41)])
    def test_any_k(self, k):
        """One k, ten or forty: at most a dozen or so ticks, none on another."""
        ax = plot_pass_curves(fit(ENGINES[0], UNEQUAL), k=k)
        assert 1 <= len(ax.get_xticks()) <= 15
        assert_readable(ax)

    def test_methods_without_a_population_show_the_tasks(self):
        """An unpooled conjugate estimate shows the mean over the observed tasks, and says so."""
        ax = plot_pass_curves(estimate(counts({"a": UNEQUAL}), method="conjugate"))
        assert ax.get_ylabel() == "probability averaged over the observed tasks"
        assert_finite(ax)

    def test_what_is_undefined_is_left_out(self, tmp_path):
        """Unbiased estimates beyond the trials and agents without data leave gaps, not zeros, and still draw."""
        ax = plot_pass_curves(estimate(counts({"a": [(3, 4), (1, 4)]}), method="frequentist", k=5))
        unbiased = ax.lines[0].get_ydata()
        assert np.isnan(unbiased[4])
        assert np.isfinite(unbiased[:4]).all()
        png(ax, tmp_path)
        untried = counts({"a": [(0, 0, 2), NEVER], "b": [(1, 2), (2, 2)]})
        ax = plot_pass_curves(estimate(untried, method="conjugate"), agent="a")
        assert np.isnan(ax.lines[0].get_ydata()).all()
        png(ax, tmp_path)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"estimand": "foo"}, "unknown estimand 'foo'"),
            ({"estimand": "task"}, "unknown estimand 'task'"),
            ({"k": (0, 1)}, "k must be an integer ≥ 1, got 0"),
            ({"k": ()}, "k must hold at least one integer ≥ 1"),
            ({"agent": "v9"}, "unknown agent 'v9'"),
            ({"agents": ["v1"]}, "give agent or agents, not both"),
        ],
    )
    def test_wrong_arguments(self, change, message):
        """A wrong argument is an error, not another picture."""
        with pytest.raises(InvalidArgument, match=message):
            plot_pass_curves(fit_two(ENGINES[0]), **({"agent": "v1"} | change))


CALL = {"tool_name": "f", "parameters": {"x": 1, "y": 2}}


def conversation(
    agent, session, made=({"tool_name": "f", "parameters": {"x": 1, "y": 3}},), expected=(CALL,), flag=True
):
    """One conversation of one turn with tool calls."""
    return Conversation.model_validate(
        {
            "session_id": session,
            "assistant_id": agent,
            "conversation": [
                {
                    "qa_id": session,
                    "query": "?",
                    "assistant": "1",
                    "ground_truth_assistant": "1",
                    "agentic": {"tools_used": list(made), "final_answer_uses_tools": flag},
                    "ground_truth_agentic": None if expected is None else {"expected_tools": list(expected)},
                }
            ],
        }
    )


def evidence(*conversations):
    return assess(list(conversations), judge=ReferenceJudge())


class TestPlotTools:
    """Four bars per conversation."""

    def test_the_fair_forge_conversations(self, shared_data, tmp_path):
        """Three conversations of the public data set: parameters of the third are 5/6, everything else is 1."""
        judged = evidence(*read_conversations(shared_data("fair_forge_dataset_agentic.json")))
        ax = plot_tools(judged)
        heights = np.array([[bar.get_height() for bar in bars] for bars in ax.containers])
        expected = np.ones((4, 3))
        expected[1, 2] = (1 + 1 / 2 + 1) / 3
        np.testing.assert_allclose(heights, expected)
        assert legend_texts(ax) == ["selection", "parameters", "sequence", "utilization"]
        assert [label.get_text() for label in ax.get_xticklabels()][2] == "agent_response_3\nagentic_eval_session3"
        assert_readable(ax)
        assert png(ax, tmp_path).startswith(b"\x89PNG")

    def test_one_agent_needs_no_name_below_every_bar(self):
        """Conversations of one agent are told apart by session alone; each bar carries its number."""
        ax = plot_tools(
            evidence(conversation("a", "s1"), conversation("a", "s2", made=()), conversation("b", "s3")), agent="a"
        )
        assert [label.get_text() for label in ax.get_xticklabels()] == ["s1", "s2"]
        numbers = [text.get_text() for text in ax.texts]
        assert numbers.count("0.50") == 1
        assert numbers.count("0.00") == 3
        assert_readable(ax)

    def test_a_dimension_that_was_not_scored_is_not_a_zero(self):
        """Utilization that nobody recorded is "n/a", without a bar."""
        ax = plot_tools(evidence(conversation("a", "s1", flag=None)))
        assert "n/a" in [text.get_text() for text in ax.texts]
        assert np.isnan(ax.containers[3][0].get_height())

    @pytest.mark.parametrize("number", [1, pytest.param(8, marks=pytest.mark.slow), 20])
    def test_few_or_many_conversations(self, number, tmp_path):
        """Up to twenty conversations stand side by side, and nothing is cut off."""
        ax = plot_tools(
            evidence(*(conversation("agent", f"some-long-session-name-{i:02d}-of-many") for i in range(number)))
        )
        assert len(ax.containers[0]) == number
        assert_readable(ax)
        png(ax, tmp_path)

    def test_sessions_of_the_same_name_are_told_apart_by_their_agents(self):
        """Two agents may have tried the same session: its name is not numbered, since the agent stands above it."""
        ax = plot_tools(evidence(conversation("a", "s1"), conversation("b", "s1")))
        assert [label.get_text() for label in ax.get_xticklabels()] == ["a\ns1", "b\ns1"]

    def test_too_many_conversations_become_one_group_per_agent(self):
        """With more than twenty conversations the bars are means per agent, and what they are of is counted."""
        ax = plot_tools(evidence(*(conversation(f"v{1 + i % 2}", f"s{i}") for i in range(21))))
        assert len(ax.containers[0]) == 2
        assert below_title(ax) == "21 conversations, 21 interactions with a tool verdict"
        assert_readable(ax)

    def test_of_many_agents_the_lowest_are_drawn(self):
        """Of twenty-two agents the twenty with the lowest scores have bars, which is said."""
        right = ({"tool_name": "f", "parameters": {"x": 1, "y": 2}},)
        many = [conversation(f"v{i:02d}", "s") for i in range(20)]
        ax = plot_tools(evidence(conversation("best", "s", made=right), conversation("good", "s", made=right), *many))
        assert len(ax.containers[0]) == 20
        assert not {"best", "good"} & {label.get_text() for label in ax.get_xticklabels()}
        assert below_title(ax).endswith("; of 22 agents the 20 with the lowest scores")
        assert_readable(ax)

    def test_hostile_names_stay_names(self):
        """Agents and sessions that look like formulas, or have no character of the font, are labels as they are."""
        ax = plot_tools(evidence(conversation("$x_1$", "_s"), conversation("🚀", r"$\frac{1}{2}$")))
        labels = ax.get_xticklabels()
        assert [label.get_text() for label in labels] == ["$x_1$\n_s", "\\u1f680\n$\\frac{1}{2}$"]
        assert not any(label.get_parse_math() for label in labels)
        assert_readable(ax)

    def test_nothing_to_draw(self):
        """Evidence without any tool verdict, and an agent that does not exist, are different errors."""
        judged = evidence(conversation("a", "s1", expected=None))
        with pytest.raises(EvidenceError, match="no interaction has a tool verdict"):
            plot_tools(judged)
        with pytest.raises(UnknownName, match="unknown agent 'b': valid: 'a'"):
            plot_tools(judged, agent="b")


def test_curves_to_a_far_k_have_few_points():
    """A curve up to k = 1000 is drawn through some k on the way, and through all that were asked for."""
    ax = plot_pass_curves(estimate(counts({"solo": UNEQUAL}), method=Conjugate(pool_tasks=True), k=(1, 7, 1000)))
    ks = ax.lines[0].get_xdata()
    assert {1, 7, 1000} <= set(ks)
    assert len(ks) <= 33


@pytest.mark.parametrize("plot", [plot_posterior, plot_pass_curves, plot_tools])
@pytest.mark.parametrize("wrong", [None, 5, "estimate.nc"])
def test_only_estimates_and_evidence_are_drawn(plot, wrong):
    """Something else is refused by name."""
    with pytest.raises(InvalidArgument, match=r"^(est must be an Estimate|evidence must be an Evidence) .*, got "):
        plot(wrong)


def test_save_pictures_writes_six_files(tmp_path):
    """Posterior, difference, curves, forest, shrinkage and tool bars are written without pyplot: no figure is open."""
    import matplotlib.pyplot as plt

    judged = evidence(conversation("v1", "s1"), conversation("v2", "s2"))
    save_pictures(estimate(counts({"v1": WEAKER, "v2": STRONGER}), method=Conjugate(pool_tasks=True)), judged, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("curves.png", "difference.png", "forest.png", "posterior.png", "shrinkage.png", "tools.png")
    ]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in tmp_path.iterdir())
    assert plt.get_fignums() == []


class TestPlan:
    """Width, or probability, against cost."""

    @pytest.mark.parametrize(
        ("goal", "label"),
        [
            ({"budget": 120}, "mean width of the 95 % equal-tailed interval\nof pass^1 (smaller is better)"),
            ({"at_least": 0.5}, "probability that the gate\non pass^1 passes or fails"),
            (
                {"difference": 0.3},
                "probability that the 95 % equal-tailed interval\nof the difference of pass^1 excludes 0",
            ),
        ],
    )
    def test_one_line_per_number_of_trials(self, goal, label):
        """Every design is a point, the recommended one is ringed, and all text can be read."""
        made = plan(mu=0.65, rho=0.45, trials=[1, 3], simulations=12, **goal)
        ax = plot_plan(made)
        assert ax.get_ylabel() == label
        said = legend_texts(ax)
        assert said[:2] == ["1 trial per task", "3 trials per task"]
        for trials, line in zip((1, 3), ax.lines, strict=False):
            assert list(line.get_xdata()) == [one.cost for one in made.designs if one.trials == trials]
        assert any(text.startswith("recommended: ") for text in said) == (made.best is not None)
        assert_readable(ax)
        assert_finite(ax)

    def test_a_picture_file(self, tmp_path):
        """The picture is written without a window."""
        made = plan(mu=0.65, rho=0.45, budget=40, trials=[1, 2], simulations=10)
        for suffix in ("png", "svg"):
            save_plan_picture(made, tmp_path / f"plan.{suffix}")
            assert (tmp_path / f"plan.{suffix}").stat().st_size > 5000

    def test_something_else(self):
        """What is no plan is refused."""
        with pytest.raises(InvalidArgument, match=r"plan must be a Plan \(plan\(\) makes one\), got int"):
            plot_plan(3)


class TestJudgeCalibration:
    """What people passed against the judge's score."""

    def test_one_point_per_tenth_of_the_scores(self):
        """Every point has its number of labels, the threshold is drawn, and all text can be read."""
        conversations = list(read_conversations([EXAMPLE / "v1.jsonl", EXAMPLE / "v2.jsonl"]))
        evidence = assess(conversations, judge=ReferenceJudge())
        asked = sample_for_labelling(evidence, n=60)
        result = calibrate_judge(evidence, asked.assign(human=[i % 3 > 0 for i in range(60)]))
        ax = plot_judge_calibration(result)
        shown = sorted(int(text.get_text()) for text in ax.texts[:-1])
        assert below_title(ax).startswith("60 labels; sensitivity 0.")
        assert sum(shown) == 60
        assert "threshold 0.7" in legend_texts(ax)
        assert_readable(ax)
        with pytest.raises(InvalidArgument, match="result must be a JudgeCalibration"):
            plot_judge_calibration(evidence)
