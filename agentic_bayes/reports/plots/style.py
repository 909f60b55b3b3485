"""One quiet style for all pictures: colours, axes, headings, and names that are drawn as they are.

Nothing here changes matplotlib's settings or pyplot's state, except that a picture drawn without `ax` is a pyplot
figure, so that notebooks show it.

ArviZ draws none of them, since its two stacks would give two pictures: 0.x takes `ax`, 1.x does not, and their
arguments, colours and rank plots differ. R-hat, effective sample sizes and LOO do come from ArviZ, and
`Estimate.to_arviz` leads to its own plots.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from agentic_bayes.checks import check_probability
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.posterior import Estimand
from agentic_bayes.formatting import brief_names, interval_kind, plain_text
from agentic_bayes.reports.colours import COLOURS as COLOURS
from agentic_bayes.reports.colours import PALETTE
from agentic_bayes.reports.colours import agent_colours as colour_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# lines and markers change with the colours, for grey print
LINES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 3)))
MARKERS = "osD^vPX*"
HATCHES = ("", "//", "..", "xx")
CELL_HATCH = "////"
GREY, PALE = "#595959", "#d9d9d9"  # of text (contrast 7:1 on white), of grounds
TEXT, TITLE = 11, 13  # points, to be read when projected
LONGEST_NAME = 28  # characters
FEWEST_RANKED = 3  # agents that stand from the best to the worst
LETTER = 0.58  # average width, in sizes of the font
# a name that looks like a formula, or like TeX, is a name
LITERAL: dict[str, Any] = {"parse_math": False, "usetex": False}
WORDS: dict[Estimand, str] = {
    "population": "on a new task of this kind",
    "tasks": "averaged over the observed tasks",
    "task": "on one task",
}
LegendEntry = tuple[Any, str]  # what is drawn, and its text


def axes_for(ax: Axes | None, figsize: tuple[float, float]) -> Axes:
    """The axes given, or those of a new figure of this size in inches."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    figure, made = plt.subplots(figsize=figsize, layout="constrained")
    set_margins(figure)
    return made


def set_margins(figure: Figure) -> None:
    """Some white around every picture of a figure with a constrained layout."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.set(w_pad=0.1, h_pad=0.1)  # type: ignore[call-arg]


def quiet(ax: Axes, *, grid: str = "y") -> None:
    """Two spines, a pale grid behind the data along one axis ("x", "y", or "" for none), readable ticks."""
    ax.spines[["top", "right"]].set_visible(False)
    if grid:
        ax.grid(axis=grid, alpha=0.25, linewidth=0.8)  # type: ignore[arg-type]
    ax.set_axisbelow(True)
    ax.tick_params(labelsize=TEXT)


def name_axes(ax: Axes, *, x: str = "", y: str = "") -> None:
    """Labels of the axes."""
    for text, set_label in ((x, ax.set_xlabel), (y, ax.set_ylabel)):
        if text:
            set_label(text, fontsize=TEXT + 1, **LITERAL)


def write(ax: Axes, x: float, y: float, text: str, *, size: float = TEXT, **place: Any) -> None:
    """Draw a text as it is, vertically centred."""
    ax.text(x, y, text, fontsize=size, va="center", **(place | LITERAL))


def annotate(
    ax: Axes, text: str, at: tuple[float, float], shift: tuple[float, float], *, size: float = TEXT - 2, **look: Any
) -> None:
    """Draw a text as it is, so many points away from a place in the picture."""
    ax.annotate(text, at, xytext=shift, textcoords="offset points", fontsize=size, **(look | LITERAL))


def has_room(ax: Axes) -> bool:
    """Whether there is room outside the axes: where a layout engine makes it."""
    return ax.figure.get_layout_engine() is not None


def heading(ax: Axes, title: str, *, below: str = "", entries: Sequence[LegendEntry] = (), ncols: int = 1) -> None:
    """Title, a quieter line below it, and a legend that stands between these and the picture, where no data can be.

    Without a layout engine there is no room to count on outside the axes: the legend goes where it hides least.
    """
    width = ax.get_window_extent().width / ax.figure.dpi
    title, below = _broken(title, width * 10.5), _broken(below, width * 14.0)
    outside = has_room(ax)
    # the legend may be a little wider than the axes, which give room to labels at their left
    texts, ncols = _fitting([text for _, text in entries], width * 1.12 * 11.5, ncols)
    columns = np.array_split(np.array([text.count("\n") + 1 for text in texts]), ncols)
    pad = 6.0 + (TEXT * 1.55 * max(int(column.sum()) for column in columns) + 8 if outside and entries else 0.0)
    if below:
        look: dict[str, Any] = {"xycoords": "axes fraction", "annotation_clip": False, "color": GREY}
        annotate(ax, below, (0.5, 1.0), (0, pad), size=TEXT - 1, ha="center", va="bottom", **look)
        pad += (TEXT - 1) * 1.3 * (below.count("\n") + 1) + 3
    ax.set_title(title, fontsize=TITLE, pad=pad, **LITERAL)
    if entries:
        place: dict[str, Any] = {"loc": "best", "fontsize": TEXT - 2}
        if outside:
            place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "frameon": False, "fontsize": TEXT}
        # matplotlib leaves out what begins with "_": the texts are put in afterwards
        legend = ax.legend([artist for artist, _ in entries], ["x"] * len(entries), ncols=ncols, **place)
        for shown, text in zip(legend.get_texts(), texts, strict=True):
            shown.set(text=text, **LITERAL)


def _fitting(texts: list[str], room: float, ncols: int) -> tuple[list[str], int]:
    """Texts of a legend and its columns: fewer, or with broken lines, where all would be wider than so many letters."""
    sample = 8  # letters that a sample and its gaps take
    for count in range(ncols, 0, -1):
        for broken in (texts, [_broken(text, room / count - sample) for text in texts]):
            columns = [part for part in np.array_split(np.array(broken, dtype=object), count) if part.size]
            widest = [max(letters(line) for text in part for line in text.split("\n")) + sample for part in columns]
            if sum(widest) <= room:
                return broken, count
    return broken, 1


def _broken(text: str, longest: float) -> str:
    """Lines of at most so many characters, broken after a semicolon where there is one."""
    lines = []
    for line in text.split("\n"):
        parts = [line] if len(line) <= longest else line.replace("; ", ";\n").split("\n")
        lines += [fill(part, max(20, int(longest)), break_long_words=False) for part in parts]
    return "\n".join(lines)


def legible(name: str) -> str:
    """A name that can be drawn: on one line, control characters and what the font lacks written out.

    A name with letters that are read from right to left stands between marks of direction, so that the numbers next to
    it keep their order.
    """
    return _isolated(_drawable(name))


def _drawable(name: str) -> str:
    text = plain_text(" ".join(name.split())) or "''"
    if not text.isascii():
        text = "".join(character if _in_font(character) else f"\\u{ord(character):04x}" for character in text)
    return text


def _isolated(text: str) -> str:
    if text.isascii() or not any(unicodedata.bidirectional(character) in ("R", "AL", "AN") for character in text):
        return text
    return f"\u200e{text}\u200e"


@cache
def _fonts(families: tuple[str, ...]) -> tuple[Any, ...]:
    """The fonts that matplotlib finds for these families."""
    from matplotlib import font_manager

    found = []
    for family in families:
        try:
            found.append(font_manager.get_font(font_manager.findfont(family, fallback_to_default=False)))
        except (ValueError, RuntimeError, OSError):
            continue
    return tuple(found) or (font_manager.get_font(font_manager.findfont("DejaVu Sans")),)


def _in_font(character: str) -> bool:
    """Whether one of the fonts in use has the character; matplotlib would draw a box, and warn."""
    import matplotlib as mpl

    settings: dict[str, Any] = mpl.rcParams  # type: ignore[assignment]
    families: list[str] = []
    for family in settings["font.family"]:
        families += settings.get(f"font.{family}", [family])
    return character.isascii() or any(font.get_char_index(ord(character)) for font in _fonts(tuple(families)))


def shortened(name: str, longest: int = LONGEST_NAME) -> str:
    """A legible name, not longer than so many letters on average are: its middle is left out."""
    return distinct_names([name], longest)[0]


def distinct_names(names: Sequence[str], longest: int = LONGEST_NAME) -> list[str]:
    """Names as `shortened` gives them, but with what tells them apart."""
    drawable = list(map(_drawable, names))
    briefs = brief_names(drawable, longest)
    widest = max(map(letters, briefs), default=0.0)
    if widest > 1.2 * longest:  # capitals
        briefs = brief_names(drawable, int(longest * longest / widest))
    return list(map(_isolated, briefs))


def agent_name(est: Estimate, agent: int, longest: int = 40) -> str:
    """A legible name that tells an agent from all others."""
    return distinct_names(est.agents, longest)[agent]


def letters(text: str) -> float:
    """How long a text is, in letters of average width."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    width, _, _ = text_to_path.get_text_width_height_descent(text, FontProperties(size=1), ismath=False)
    return width / LETTER


def _interval_of(est: Estimate) -> str:
    """Probability and kind of an estimate's intervals: "95 % equal-tailed interval"."""
    return interval_kind(est.method.name, est.settings.ci_prob, est.settings.ci_kind)


def described(est: Estimate) -> str:
    """How the numbers of a picture were made: method, interval, unit and indicator."""
    attrs = est.outcomes.attrs
    counted = f"unit {attrs.get('unit', '')}, indicator {legible(str(attrs.get('indicator', '')))}"
    judged = ", judge's errors corrected" if est.settings.judge is not None else ""
    sound = est.diagnostics is None or est.diagnostics.passed
    failed = "" if sound else "; did not converge: do not use these numbers"
    different = "; the agents did not all try the same tasks" if est.counts.different_tasks else ""
    return f"{est.method.name}{judged}, {_interval_of(est)}; {counted}{different}{failed}"


def defined_estimand(est: Estimate, estimand: Estimand) -> Estimand:
    """The estimand asked for, or "tasks" where the method defines no population."""
    return estimand if estimand in est.posterior.estimands else "tasks"


def check_region(rope: Any, ref_val: float | None) -> tuple[float, float]:
    """A region of the metric: so far on each side of the reference, or (lower, upper) inside [0, 1]."""
    if isinstance(rope, (int, float)):
        half = check_probability(rope, "rope")
        if ref_val is None:
            raise InvalidArgument(f"rope must be (lower, upper) unless ref_val is given, got {rope!r}")
        return max(ref_val - half, 0.0), min(ref_val + half, 1.0)
    try:
        lower, upper = (check_probability(bound, "rope") for bound in rope)
    except (TypeError, ValueError):
        lower = upper = 0.0
    if not lower < upper:
        raise InvalidArgument(f"rope must be (lower, upper) with 0 ≤ lower < upper ≤ 1, got {rope!r}")
    return lower, upper


def chosen_agents(est: Estimate, agents: Sequence[str] | None) -> tuple[str, ...]:
    """The agents with these names; all where None is given."""
    if agents is None:
        return est.agents
    if isinstance(agents, str) or not agents:
        raise InvalidArgument(f"agents must be a sequence of one or more names, got {agents!r}")
    return tuple(est.agents[est.agent_index(agent)] for agent in agents)


def best_first(agents: Sequence[str], means: Mapping[str, float]) -> tuple[str, ...]:
    """Agents as pictures and the report have them: the best first, two in the order of the data."""
    if len(agents) < FEWEST_RANKED:
        return tuple(agents)
    return tuple(sorted(agents, key=lambda agent: np.inf if np.isnan(means[agent]) else -means[agent]))


def agent_colours(
    est: Estimate, chosen: Sequence[str], colors: Sequence[str] | Mapping[str, str] | None = None
) -> dict[str, str]:
    """The colour of each agent: that which was asked for, else the one that it has in every plot and in the report."""
    from matplotlib.colors import is_color_like

    numbers = colour_numbers(est)
    known = {name: PALETTE[numbers[est.agent_index(name)]] for name in chosen}
    if colors is None:
        return known
    if isinstance(colors, Mapping):
        asked = dict(colors)
        for name in asked:
            est.agent_index(name)
    elif not isinstance(colors, str) and isinstance(colors, Sequence) and len(colors) == len(chosen):
        asked = dict(zip(chosen, colors, strict=True))
    else:
        raise InvalidArgument(
            f"colors must map agents to colours, or hold one for each of {len(chosen)}, got {colors!r}"
        )
    for colour in asked.values():
        if not is_color_like(colour):
            raise InvalidArgument(f"colors must hold colours that matplotlib knows, got {colour!r}")
    return known | {name: colour for name, colour in asked.items() if name in known}
