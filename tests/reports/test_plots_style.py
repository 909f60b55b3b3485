"""Every picture: no state of matplotlib is touched, names are drawn as they are, and both stacks draw the same."""

import re
import warnings
from functools import cache

import matplotlib as mpl
import numpy as np
import pytest
from fits import STRONGER, WEAKER, counts, fit_two
from matplotlib.figure import Figure
from matplotlib.text import Text
from scipy import stats

from agentic_bayes.decisions.compare import compare
from agentic_bayes.decisions.plan import plan
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.methods.options import Conjugate, Hierarchical
from agentic_bayes.reports.colours import COLOURS, PALETTE
from agentic_bayes.reports.html.page import write_report
from agentic_bayes.reports.plots.comparison import plot_comparison
from agentic_bayes.reports.plots.curves import plot_pass_curves
from agentic_bayes.reports.plots.diagnostics import plot_diagnostics
from agentic_bayes.reports.plots.forest import plot_forest
from agentic_bayes.reports.plots.planning import plot_plan
from agentic_bayes.reports.plots.posterior import plot_posterior, plot_prior
from agentic_bayes.reports.plots.style import distinct_names, legible, letters, shortened
from agentic_bayes.reports.plots.tasks import plot_heatmap, plot_shrinkage

mpl.use("Agg")


@cache
def planned():
    """One plan for all tests."""
    return plan(mu=0.6, rho=0.4, budget=60, trials=[1, 3], simulations=10)


# every picture of an estimate, by name
PICTURES = {
    "posterior": lambda est, ax: plot_posterior(est, metric="pass^3", ref_val=0.5, rope=(0.2, 0.3), ax=ax),
    "curves": lambda est, ax: plot_pass_curves(est, agent=est.agents[0], ax=ax),
    "prior": lambda est, ax: plot_prior(est, agent=est.agents[0], metric="pass^3", ax=ax),
    "forest of agents": lambda est, ax: plot_forest(est, metric="pass^3", ref_val=0.5, ax=ax),
    "forest of tasks": lambda est, ax: plot_forest(est, of="tasks", agent=est.agents[0], ax=ax),
    "shrinkage": lambda est, ax: plot_shrinkage(est, agent=est.agents[0], ax=ax),
    "heat map": lambda est, ax: plot_heatmap(est, ax=ax),
    "comparison": lambda est, ax: plot_comparison(
        compare(est, est.agents[1], baseline=est.agents[0], tasks="own"), ax=ax
    ),
    "plan": lambda _, ax: plot_plan(planned(), ax=ax),
    "diagnostics": lambda est, ax: plot_diagnostics(est, ax=None if ax is None else ax.figure.subplots(2, 2))[0],
}
HOSTILE = {
    "a formula": r"$\frac{1}{2}$",
    "half a formula": "costs $5 and $",
    "broken TeX": r"$\undefined{$ %",
    "an underscore first": "_nolegend_",
    "markup": "<script>alert(1)</script>",
    "right to left": "سلام 12",
    "an emoji": "rocket 🚀",
    "a direction override": "gnp\u202eexe",
    "nothing to see": "zero\u200bwidth",
    "lines and tabs": "a\nb\tc",
    "very long": "x" * 5000,
    "no characters of the font": "名前",
}


@cache
def hostile():
    """An estimate of eight agents and twelve tasks with such names."""
    agents = dict(zip(list(HOSTILE.values())[:8], [WEAKER, STRONGER] * 4, strict=True))
    outcomes = counts(agents).assign_coords(task=np.array(list(HOSTILE.values()), dtype=object))
    return estimate(outcomes, Hierarchical(pool_agents=False), k=(1, 3))


def given_axes():
    """Axes of a figure that pyplot does not know."""
    return Figure(figsize=(9, 7), layout="constrained").subplots()


def state():
    """What belongs to the whole program."""
    import matplotlib.pyplot as plt

    random = np.random.get_state()[1].tolist()  # noqa: NPY002 - it is the global one that must not move
    return dict(mpl.rcParams), mpl.get_backend(), plt.get_fignums(), random, list(warnings.filters)


@pytest.fixture(autouse=True)
def _close_figures():
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


# the diagnostics have numbers of ArviZ
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.stack if name == "diagnostics" else ()) for name in PICTURES]
)
class TestEveryPicture:
    """What holds for each of them."""

    def test_no_state_is_touched(self, name):
        """Settings, open figures, random state and warning filters are afterwards what they were."""
        est = fit_two("quadrature")
        before = state()
        ax = PICTURES[name](est, given_axes())
        ax.figure.savefig("/dev/null", format="png")
        assert state() == before

    def test_it_is_drawn_where_it_is_told_to_be(self, name):
        """The axes that were given come back; without any there is one new figure, which notebooks show."""
        import matplotlib.pyplot as plt

        est, own = fit_two("quadrature"), given_axes()
        drawn = PICTURES[name](est, own)
        assert drawn.figure is own.figure
        assert drawn is own or name == "diagnostics"
        assert plt.get_fignums() == []
        made = PICTURES[name](est, None)
        assert [plt.figure(number) for number in plt.get_fignums()] == [made.figure]

    def test_it_says_what_it_is(self, name):
        """It has a title, and each axis with numbers on it has a label that says what they are."""
        ax = PICTURES[name](fit_two("quadrature"), None)
        for one in ax.figure.axes:
            if one.axison and one.get_label() != "<colorbar>":
                assert one.get_title()
                assert one.get_xlabel()
                assert one.get_ylabel() or not _has_numbers(one.yaxis), one.get_title()
            elif one.axison:
                assert one.get_ylabel()

    def test_hostile_names_stay_names(self, name):
        """Names are neither read as formulas nor lost nor able to turn the text around, and nothing warns."""
        ax = PICTURES[name](hostile(), None)
        ax.figure.savefig("/dev/null", format="png", dpi=50)
        found = [text for text in ax.figure.findobj(Text) if text.get_text()]
        assert not any("$" in text.get_text() and text.get_parse_math() for text in found)
        assert not any(set(text.get_text()) & {"\u202e", "\u200b", "🚀"} for text in found)
        assert all(len(line) < 120 for text in found for line in text.get_text().split("\n"))


def _has_numbers(axis):
    labels = [label.get_text().replace("−", "-") for label in axis.get_ticklabels()]
    return any(label.lstrip("-").replace(".", "", 1).isdigit() for label in labels)


class TestNames:
    """Names as they are drawn."""

    @pytest.mark.parametrize(("why", "name"), HOSTILE.items(), ids=list(HOSTILE))
    def test_a_name_is_one_legible_line(self, why, name):
        """Every character is one that the font has; there is a line of at most 28 of them, and never none."""
        text = shortened(name)
        assert 0 < len(text) <= 30  # two of them may be marks of direction
        assert "\n" not in text
        assert "\t" not in text

    def test_an_ordinary_name_is_left_alone(self):
        """Letters of the font, also with accents, are drawn as they are."""
        for name in ("support-v2", "größer_als", "βeta $x$", "_private"):
            assert legible(name) == name

    def test_characters_that_cannot_be_drawn_are_written_out(self):
        """What the font lacks, and what would steer the text, becomes its number, so that names stay apart."""
        assert legible("rocket 🚀") == r"rocket \u1f680"
        assert legible("gnp\u202eexe") == r"gnp\u202eexe"
        assert legible("") == "''"

    def test_numbers_beside_a_name_keep_their_order(self):
        """A name that is read from right to left is closed off by marks of direction on both sides."""
        assert legible("سلام") == "\u200eسلام\u200e"

    def test_a_long_name_loses_its_middle(self):
        """Names tend to differ at their ends, so that both ends are kept."""
        assert shortened("customer-support-agent-2026-07-01") == "customer-suppo…nt-2026-07-01"

    def test_names_that_would_become_the_same_are_told_apart(self):
        """Names keep the part in which they differ; names that are drawn alike are numbered."""
        first, second = distinct_names(["a" * 40 + middle + "b" * 40 for middle in "xy"])
        assert ("x" in first, "y" in second) == (True, True)
        assert max(map(len, (first, second))) <= 28
        assert distinct_names(["v1", "v2", "v\t2"]) == ["v1", "v2", "v 2"]
        assert distinct_names(["v 2", "v\t2"]) == ["v 2 (1)", "v 2 (2)"]

    def test_wide_letters_need_more_room(self):
        """A name in capitals is cut to the width that a name of ordinary letters has."""
        wide, usual = "MWM-" * 20, "seal-" * 20
        assert letters(shortened(wide)) <= 1.2 * 28
        assert len(shortened(wide)) < len(shortened(usual)) == 28

    def test_fonts_that_the_user_has_are_used(self):
        """A name is judged by the fonts in the user's settings: a family that does not exist changes nothing."""
        with mpl.rc_context({"font.family": ["no such font", "DejaVu Sans"]}):
            assert legible("größer") == "größer"
            assert legible("🚀") == r"\u1f680"


def luminance(colour):
    """Relative luminance of a colour, as WCAG defines it."""
    parts = np.array(mpl.colors.to_rgb(colour))
    linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_the_two_main_colours_can_be_told_apart_without_red_and_green():
    """Blue and orange, which most pictures need, differ in their blue part and in lightness."""
    first, second = (np.array(mpl.colors.to_rgb(colour)) for colour in COLOURS[:2])
    assert abs(first[2] - second[2]) > 0.5
    contrast = sorted((luminance(colour) + 0.05 for colour in COLOURS[:2]), reverse=True)
    assert contrast[0] / contrast[1] > 1.2


def test_an_agent_has_one_colour_in_every_picture_and_in_the_report(tmp_path):
    """Whichever agents are shown and in whatever order, also where there are more agents than colours."""
    agents = [f"v{i}" for i in range(9)]
    est = estimate(counts({name: [(i, 9), (9, 9)] for i, name in enumerate(agents)}), Conjugate(pool_tasks=True), k=1)
    own = {name: PALETTE[8 - i if i > 2 else 7] for i, name in enumerate(agents)}  # the best six; grey
    for shown in (["v8"], ["v8", "v1"], ["v1", "v8"], agents):  # one line, several, a ridge each
        drawn = [line.get_color() for line in plot_posterior(est, agents=shown).lines]
        assert drawn == [own[name] for name in shown for _ in range(3)]  # density, interval, mean
    curves = plot_pass_curves(est, ["v8", "v1", "v2"], k=1).lines
    assert [line.get_color() for line in curves] == [own[name] for name in ("v8", "v1", "v2") for _ in range(2)]
    assert curves[2].get_linestyle() != curves[4].get_linestyle()  # of two that are grey
    forest = plot_forest(est)
    named = [label.get_text() for label in forest.get_yticklabels()]
    assert [line.get_color() for line in forest.lines] == [own[name] for name in named for _ in range(2)]
    for plot in (plot_pass_curves, plot_prior, plot_forest, plot_shrinkage):
        ax = plot(est, agent="v8", **({"of": "tasks"} if plot is plot_forest else {}))
        used = {mpl.colors.to_hex(line.get_color()).upper() for line in ax.lines}
        used |= {mpl.colors.to_hex(colour).upper() for part in ax.collections for colour in part.get_facecolor()}
        assert used & set(COLOURS[:-1]) == {own["v8"]}, plot
    page = write_report(est, tmp_path / "report.html").read_text(encoding="utf-8")
    palette = re.findall(r"--c\d: (?:light-dark\()?(#\w{6})", page)
    assert [colour.upper() for colour in palette] == list(PALETTE)
    ranked = re.findall(r'<th scope="row"><bdi[^>]*>(v\d)</bdi></th><td class="drawn".*?class="mark a(\d)"', page)
    assert {name: PALETTE[int(place)] for name, place in ranked} == own


def test_agents_stand_in_one_order():
    """The best first, as in the report's ranking; two agents as the data have them."""
    agents = {"b": [(4, 9), (5, 9)], "c": [(8, 9), (9, 9)], "a": [(0, 9), (2, 9)]}
    for names, wanted in (("bca", ["c", "b", "a"]), ("ac", ["a", "c"])):
        est = estimate(counts({name: agents[name] for name in names}), Conjugate(pool_tasks=True), k=1)
        assert [label.get_text() for label in plot_forest(est).get_yticklabels()] == wanted
        assert [label.get_text() for label in plot_heatmap(est).get_xticklabels()] == wanted
        assert [text.get_text()[0] for text in plot_posterior(est).get_legend().get_texts()] == wanted
    assert list(plot_heatmap(est).images[0].get_array()[:, 0] < 0.5) == [True, True]  # the numbers go with the names


@cache
def uniform():
    """Two agents of 12 tasks, with ρ uniform."""
    method = Hierarchical(rho=stats.uniform(0, 1))
    return estimate(counts({"v1": WEAKER, "v2": STRONGER}), method, k=(1, 2, 3))


# x of what is drawn for them; one table for both stacks
EXPECTED = {
    "forest of agents": {"means": [0.1830, 0.5720], "intervals": [[0.0368, 0.4434], [0.3302, 0.8026]]},
    "curves": {"pass@k": [0.4132, 0.5722, 0.6601], "pass^k": [0.4132, 0.2541, 0.1830]},
}


class TestBothStacks:
    """The same numbers in the same picture, whichever ArviZ is installed."""

    def test_the_forest(self):
        """Means and intervals of two agents."""
        ax = PICTURES["forest of agents"](uniform(), None)
        marks = [line for line in ax.lines if line.get_marker() == "o"]
        bars = [line for line in ax.lines if line.get_marker() == "None" and len(line.get_xdata()) == 2][:2]
        assert [float(mark.get_xdata()[0]) for mark in marks] == pytest.approx(
            EXPECTED["forest of agents"]["means"], abs=2e-4
        )
        for bar, interval in zip(bars, EXPECTED["forest of agents"]["intervals"], strict=True):
            assert list(bar.get_xdata()) == pytest.approx(interval, abs=2e-4)

    def test_the_curves(self):
        """pass@k and pass^k at k = 1, 2, 3."""
        ax = plot_pass_curves(uniform(), agent="v1", k=(1, 2, 3))
        for line, values in zip(ax.lines[::2], EXPECTED["curves"].values(), strict=True):
            assert list(line.get_ydata()) == pytest.approx(values, abs=2e-4)


@pytest.mark.parametrize(
    "plot", [plot_posterior, plot_pass_curves, plot_prior, plot_forest, plot_shrinkage, plot_heatmap, plot_diagnostics]
)
def test_what_is_no_estimate_is_refused(plot):
    """A table of numbers is not an estimate, and the message says what makes one."""
    with pytest.raises(InvalidArgument, match=r"est must be an Estimate \(estimate\(\) makes one\), got dict"):
        plot({"mean": 0.5})
