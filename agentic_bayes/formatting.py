"""The one number formatter, the names of metrics as people write them, and what a notebook shows of a result."""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Literal, assert_never, get_args

from agentic_bayes.errors import InvalidArgument

__all__ = [
    "METRICS",
    "Metric",
    "format_interval",
    "format_number",
    "format_share",
    "html_block",
    "indicator_words",
    "interval_kind",
    "interval_words",
    "is_number",
    "metric_name",
    "nan_to_none",
    "one_line",
    "parse_metric",
    "plain_text",
    "plural",
]

Metric = Literal["pass_at_k", "pass_pow_k"]
METRICS: tuple[Metric, ...] = get_args(Metric)
MOST_ROWS = 20  # of a table in a notebook
MOST_OF_CELL, MOST_OF_NOTE = 120, 1000  # characters
_PLAIN = "margin:0.4em 0;text-align:left;max-width:60em"
# "0.420*", "<0.001 [0.000, 0.010]", "4 of 20", "1 to 3", "22 ◄"; a name may begin with a digit, too
_NUMBER = re.compile(r"|–|\[.*|[<>]?[-+]?[\d.,]+(e[-+]?\d+)?\*?( (of|to) [\d,]+| \[.*| \(.*| ◄)?|nan|inf")


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


def format_interval(lower: float | None, upper: float | None, digits: int = 3) -> str:
    """An interval for people: "[0.252, 0.566]"; "–" where there is none."""
    if lower is None or upper is None or math.isnan(lower) or math.isnan(upper):
        return "–"
    return f"[{format_number(lower, digits)}, {format_number(upper, digits)}]"


def nan_to_none(value: Any) -> Any:
    """What strict JSON can hold: NaN becomes null, at any depth; tuples become lists."""
    if isinstance(value, dict):
        return {key: nan_to_none(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [nan_to_none(part) for part in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def metric_name(metric: Metric, k: int | str) -> str:
    """A metric as people write it: "pass@3" or "pass^3"."""
    match metric:
        case "pass_at_k":
            return f"pass@{k}"
        case "pass_pow_k":
            return f"pass^{k}"
        case _:
            assert_never(metric)


def parse_metric(text: str) -> tuple[Metric, int | None]:
    """Read "pass^3", "pass@3", "pass_pow_k" or "pass_at_k"."""
    names: dict[str, Metric] = {
        "@": "pass_at_k",
        "^": "pass_pow_k",
        "_at_": "pass_at_k",
        "_pow_": "pass_pow_k",
    }
    found = re.fullmatch(r"pass(@|\^|_at_|_pow_)([kK]|[1-9][0-9]{0,18})", text.strip())
    if not found:
        raise InvalidArgument(f'metric must be like "pass^3", "pass@3", "pass_pow_k" or "pass_at_k", got {text!r}')
    sign, k = found.groups()
    return names[sign], None if k in "kK" else int(k)


def plural(count: int, noun: str) -> str:
    """Count and noun: "1 task", "2 tasks"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


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
    return f"{ci_prob * 100:.4g} % {kind} interval"


def interval_kind(method: str, ci_prob: float, ci_kind: str) -> str:
    """An interval's probability and kind in words, also of a method without a posterior."""
    return f"{ci_prob * 100:.4g} % confidence interval" if method == "frequentist" else interval_words(ci_prob, ci_kind)


def html_block(
    title: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    text: str = "",
    notes: Sequence[str] = (),
    total: int | None = None,
    noun: str = "row",
) -> str:
    """What a notebook shows of a result: a title, a table of at most `MOST_ROWS` rows, and notes below it.

    Everything is escaped, invisible characters are written out, and long cells are cut. There are no colours and no
    style sheet, so that it reads on light and on dark pages, and where HTML is cleaned before it is shown.
    """
    listed = rows if isinstance(rows, Sequence) else list(itertools.islice(rows, MOST_ROWS))
    shown = listed[:MOST_ROWS]
    hidden = (len(listed) if total is None else total) - len(shown)
    more = [f"… and {hidden:,} more {noun if hidden == 1 else f'{noun}s'}"] if hidden > 0 else []
    numeric = [bool(shown) and all(is_number(row[i]) for row in shown) for i in range(len(header))]
    align = [f' style="text-align:{"right" if right else "left"}"' for right in numeric]

    def line(tag: str, cells: Sequence[str]) -> str:
        return "".join(f"<{tag}{style}>{_safe(cell)}</{tag[:2]}>" for cell, style in zip(cells, align, strict=True))

    names = line('th scope="col"', header)
    body = "".join(f"<tr>{line('td', row)}</tr>" for row in shown)
    below = "<br>".join(_safe(note, cut=MOST_OF_NOTE) for note in (*more, *notes) if note)
    return (
        f'<div class="agentic-bayes" style="{_PLAIN}"><p style="{_PLAIN}">'
        f"<strong>{_safe(title, cut=MOST_OF_NOTE)}</strong>{_safe(text, cut=MOST_OF_NOTE)}</p>"
        f'<table style="{_PLAIN}"><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>'
        + (f'<p style="{_PLAIN}"><small>{below}</small></p>' if below else "")
        + "</div>"
    )


def _safe(text: str, *, cut: int = MOST_OF_CELL) -> str:
    """The text as HTML: escaped, on one line, with nothing invisible, and no longer than may be."""
    line = one_line(text)
    return escape(line if len(line) <= cut else f"{line[: cut - 1]}…")


def one_line(text: str) -> str:
    """`plain_text` without line breaks: they, too, are written out."""
    return plain_text(text).replace("\n", r"\n").replace("\t", r"\t")


def is_number(cell: str) -> bool:
    """Whether the cell of a table is a number with what may follow it, so that it is aligned and never cut."""
    return _NUMBER.fullmatch(cell) is not None


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
