"""How numbers, intervals, counts and metrics are written, in one place."""

from __future__ import annotations

import json
import math
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Self, get_args

from agentic_bayes.checks import check_attempts
from agentic_bayes.errors import InvalidArgument

MetricFamily = Literal["pass_at_k", "pass_pow_k"]  # as ArviZ variables are called
FAMILIES: tuple[MetricFamily, ...] = get_args(MetricFamily)
MOST_DIGITS = 3  # of an interval's ends in per cent, where fewer would make them look alike
NEGLIGIBLE = 0.5e-5  # of a probability: less than so many digits show
_MINUS = re.compile(r"(?<![\w.])-(?=\d)")  # not the hyphen of a name, a range or a date
_METRIC = re.compile(r"pass(?P<sign>[@^])(?P<k>[1-9][0-9]{0,18})")
ELLIPSIS = ", …"


class Metric(str):
    """A metric as people write it: "pass@3" (at least one of 3 attempts succeeds) or "pass^3" (all 3 do)."""

    __slots__ = ("k", "power")
    k: int
    power: bool  # whether all k attempts must succeed (pass^k), or one of them (pass@k)

    def __new__(cls, text: object) -> Self:
        """Read "pass@3" or "pass^3"; anything else is an `InvalidArgument`."""
        if isinstance(text, cls):
            return text
        found = _METRIC.fullmatch(text.strip()) if isinstance(text, str) else None
        if not found:
            raise InvalidArgument(f'metric must be "pass@k" or "pass^k" with a number, e.g. "pass^3", got {text!r}')
        metric = super().__new__(cls, found.group())
        metric.power = found["sign"] == "^"
        metric.k = check_attempts(int(found["k"]))
        return metric

    @classmethod
    def of(cls, family: MetricFamily, k: int) -> Self:
        """The metric of this family at k."""
        return cls(f"pass{'@' if family == 'pass_at_k' else '^'}{k}")

    @property
    def family(self) -> MetricFamily:
        """The name that ArviZ variables have."""
        return "pass_pow_k" if self.power else "pass_at_k"

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return type(self), (str(self),)  # read again on the other side, in every pickle protocol


def metrics_at(ks: Iterable[int]) -> tuple[Metric, ...]:
    """Both metrics at every k: pass@k for all, then pass^k."""
    ks = tuple(ks)
    return tuple(Metric.of(family, k) for family in FAMILIES for k in ks)


def format_number(value: float | None, digits: int = 3) -> str:
    """A number for people: "0.420"; "–" where there is none.

    Values strictly inside (0, 1) never print as 0 or 1: they become "<0.001" or ">0.999". Nor does one just below 0,
    which becomes ">-0.001".
    """
    if value is None or math.isnan(value):
        return "–"
    text = f"{value:.{digits}f}"
    unit = 10**-digits
    if 0 < value < 1 and float(text) == 0:
        return f"<{unit:.{digits}f}"
    if 0 < value < 1 and float(text) == 1:
        return f">{1 - unit:.{digits}f}"
    if -1 < value < -1e-12 and float(text) == 0:  # nearer to 0 is rounding
        return f">-{unit:.{digits}f}"
    return f"{0:.{digits}f}" if float(text) == 0 else text


def format_share(value: float, digits: int = 3) -> str:
    """A probability that is a share of draws, which can say neither never nor always: ">0.999" where all did."""
    if value == 1:
        return f">{1 - 10**-digits:.{digits}f}"
    return f"<{10**-digits:.{digits}f}" if value == 0 else format_number(value, digits)


def format_percent(value: float, digits: int = 0) -> str:
    """A probability for people: "93 %"; never 0 % or 100 %, which no number of draws can show."""
    if math.isnan(value):
        return "–"
    rounded = round(100 * value, digits)
    if 0 < rounded < 100:
        return f"{rounded:.{digits}f} %"
    if digits < 1:
        return format_percent(value, 1)
    unit = 10**-digits
    return f"<{unit:g} %" if rounded <= 0 else f">{100 - unit:g} %"


def exact_percent(value: float) -> str:
    """A probability that somebody chose, or a share that was counted: "97.5 %", "0 %"."""
    return f"{100 * value:.6g} %"


def format_percent_range(lower: float, upper: float) -> str:
    """An interval of probabilities for people: "60 to 84 %", with more digits where its ends would look alike."""
    if math.isnan(lower) or math.isnan(upper):
        return "–"
    for digits in range(MOST_DIGITS + 1):
        low, high = (format_percent(end, digits) for end in (lower, upper))
        if low != high or upper - lower < NEGLIGIBLE:
            break
    return f"{low.removesuffix(' %')} to {high}"


def format_points(value: float, digits: int = 0) -> str:
    """A difference of two probabilities in percentage points, with its sign: "+13", "−0.4"."""
    if math.isnan(value):
        return "–"
    points = 100 * value
    text = f"{abs(points):.{digits if abs(points) >= 1 else max(digits, 1)}f}"
    sign = "" if float(text) == 0 else "+" if points > 0 else "−"
    return f"{sign}{text}"


def format_points_range(lower: float, upper: float) -> str:
    """An interval of differences: "−4 to +30", with more digits where its ends would look alike, or one like 0."""

    def shown(end: float, digits: int) -> str:
        text = format_points(end, digits)
        return shown(end, digits + 1) if text[0] not in "+−" and abs(end) >= NEGLIGIBLE else text

    for digits in range(MOST_DIGITS + 1):
        low, high = shown(lower, digits), shown(upper, digits)
        if low != high or upper - lower < NEGLIGIBLE:
            break
    return f"{low} to {high}"


def equals(text: str) -> str:
    """A number as text, to follow what it is equal to: "= 0.042", or "< 0.001" where the text has a sign of its own."""
    return f"{text[0]} {text[1:]}" if text[0] in "<>" else f"= {text}"


def points_words(value: float, unit: str = "point") -> str:
    """The same with its unit: "+13 points", "+1 point"."""
    points = format_points(value)
    return f"{points} {unit if points[1:] == '1' else f'{unit}s'}"


def format_interval(lower: float | None, upper: float | None, digits: int = 3) -> str:
    """An interval for people: "[0.252, 0.566]"; "–" where there is none."""
    if lower is None or upper is None or math.isnan(lower) or math.isnan(upper):
        return "–"
    return f"[{format_number(lower, digits)}, {format_number(upper, digits)}]"


def format_estimate(mean: float, lower: float, upper: float, digits: int = 3) -> str:
    """A number with its interval for people: "0.420 [0.252, 0.566]"; one dash where neither is defined."""
    value, interval = format_number(mean, digits), format_interval(lower, upper, digits)
    return value if interval == "–" else f"{value} {interval}"


def signed(text: str) -> str:
    """Numbers with a true minus sign."""
    return _MINUS.sub("−", text)


def cut_text(text: str, longest: int) -> str:
    """The text, cut to a length."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def middle_cut(text: str, longest: int) -> str:
    """The text, or its ends with so many characters in all: names tend to differ at their ends."""
    if len(text) <= longest:
        return text
    tail = longest // 2 - 1
    return f"{text[: longest - tail - 1]}…{text[-tail:]}"


def brief_names(names: Sequence[str], longest: int) -> list[str]:
    """Long names without their middle; those that would then look alike keep the parts in which they differ.

    Names that differ in too many places are numbered.
    """
    alike: dict[str, dict[str, None]] = {}
    for name in names:
        alike.setdefault(middle_cut(name, longest), {})[name] = None
    briefs: dict[str, str] = {}
    for short, own in alike.items():
        briefs |= dict.fromkeys(own, short) | (_told_apart(list(own), longest) if len(own) > 1 else {})
    found = [briefs[name] for name in names]
    total, seen = Counter(found), Counter[str]()
    for i, short in enumerate(found):
        seen[short] += 1
        found[i] += f" ({seen[short]})" if total[short] > 1 else ""
    return found


def _told_apart(alike: Sequence[str], longest: int) -> dict[str, str]:
    """The beginning of each name and up to three parts in which it differs from the others, if that is enough."""
    head = longest // 4
    for count in (1, 2, 3):
        size = (longest - head - count - 1) // count
        parts = _differing(alike, head, size, count)
        if len(parts) == len(alike):
            long = [name for name in alike if len(name) > longest]
            return {name: _joined(name, [0, *parts[name]], head, size) for name in long}
    return {}


def _differing(alike: Sequence[str], start: int, size: int, count: int) -> dict[str, list[int]]:
    """Where up to so many parts of each name begin that tell it from the others; without the names that need more."""
    if len(alike) == 1:
        return {alike[0]: []}
    if not count:
        return {}
    first, last = min(alike), max(alike)  # where these two are equal, all are
    same = next((i for i, sign in enumerate(first) if last[i : i + 1] != sign), len(first))
    start = max(same - min(4, size // 2), start)
    groups: dict[str, list[str]] = {}
    for name in alike:
        groups.setdefault(name[start : start + size], []).append(name)
    further = (_differing(own, start + size, size, count - 1) for own in groups.values())
    return {name: [start, *parts] for own in further for name, parts in own.items()}


def _joined(name: str, starts: Sequence[int], head: int, size: int) -> str:
    """Parts of a name, the first of which is its head, with dots between them."""
    text, end = "", 0
    for start in starts:
        text += "…" if start > end else ""
        end = start + (size if start else head)
        text += name[start:end]
    return text + ("…" if end < len(name) else "")


def with_more(named: Sequence[str], total: int, noun: str = "", *, between: str = ", ", rest: str = " and {}") -> str:
    """The first of so many, and how many more there are: "a, b and 3 more", or "a, b and 3 more tasks"."""
    more = total - len(named)
    what = plural(more, f"more {noun}") if noun else f"{more:,} more"
    return between.join(named) + (rest.format(what) if more > 0 else "")


def first_few(parts: Sequence[str], most: int, *, between: str = ", ", rest: str = " and {}") -> str:
    """`with_more` where all are written out; "a, b, …" with `ELLIPSIS` as the rest."""
    return with_more(parts[:most], len(parts), between=between, rest=rest)


def first_problems(problems: Sequence[str], most: int, *, total: int | None = None) -> str:
    """The first of several sentences, and how many more there are: "a; b; … and 3 more"."""
    return with_more(problems[:most], len(problems) if total is None else total, between="; ", rest="; … and {}")


def plural(count: int, noun: str) -> str:
    """Count and noun: "1 task", "2 tasks"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def not_scored(unscored: int, errored: int) -> str:
    """How many were not scored, and how many of these because the agent failed: "3 (2 agent errors)"."""
    return f"{unscored:,} ({plural(errored, 'agent error')})" if errored else f"{unscored:,}"


def indicator_words(attrs: Mapping[Any, Any]) -> str:
    """The indicator of outcomes with what it was cut at: "answer ≥ 0.7 and tools ≥ 1"."""
    name = str(attrs["indicator"])

    def cut(what: str, threshold: str) -> str:
        if threshold not in attrs:
            return what
        value = attrs[threshold]  # text where outcomes that differ in it were combined
        return f"{what} ≥ {value if isinstance(value, str) else format(value, 'g')}"

    if name == "tools":
        return cut("tools", "tool_threshold")
    if name == "joint" and "threshold" in attrs:
        return f"{cut('answer', 'threshold')} and {cut('tools', 'tool_threshold')}"
    return cut(name, "threshold")


def interval_words(ci_prob: float, ci_kind: str) -> str:
    """Probability and kind of an interval: "95 % equal-tailed interval"."""
    kind = "equal-tailed" if ci_kind == "eti" else "highest-density"
    return f"{exact_percent(ci_prob)} {kind} interval"


def interval_kind(method: str, ci_prob: float, ci_kind: str) -> str:
    """An interval's probability and kind in words, also of a method without a posterior."""
    if method == "frequentist":
        return f"{exact_percent(ci_prob)} confidence interval"
    return interval_words(ci_prob, ci_kind)


def json_ready(value: Any) -> Any:
    """What strict JSON can hold, at any depth: NaN becomes null, tuples and arrays lists, scalars plain numbers."""
    if isinstance(value, Mapping):
        return {str(key): json_ready(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_ready(part) for part in value]
    if hasattr(value, "tolist"):  # an array or a scalar of NumPy's
        return json_ready(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, str) else value


def json_text(value: Any) -> str:
    """A value as JSON, or as Python writes it where JSON cannot hold it."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        return repr(value)


def text_or_json(value: Any) -> str:
    """A text as it is, any other value as `json_text`."""
    return value if isinstance(value, str) else json_text(value)


def in_notebook() -> bool:
    """Whether this runs in a Jupyter kernel; finds out without importing IPython."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def one_line(text: str) -> str:
    """`plain_text` on one line: line breaks and tabs are written out, too."""
    return plain_text(text).replace("\n", r"\n").replace("\t", r"\t")


def plain_text(text: str) -> str:
    """The text with control characters written out, so that it cannot steer a terminal."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character
        if character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co")
        else f"\\u{ord(character):04x}"
        for character in text.replace("\r\n", "\n")
    )
