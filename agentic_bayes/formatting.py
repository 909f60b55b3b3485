"""The one number formatter, and the names of metrics as people write them."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from html import escape
from typing import Any, Literal, assert_never, get_args

from agentic_bayes.errors import InvalidArgument

__all__ = [
    "METRICS",
    "Metric",
    "format_interval",
    "format_number",
    "format_share",
    "html_table",
    "metric_name",
    "nan_to_none",
    "parse_metric",
    "plain_text",
    "plural",
]

Metric = Literal["pass_at_k", "pass_pow_k"]
METRICS: tuple[Metric, ...] = get_args(Metric)


def format_number(value: float | None, digits: int = 3) -> str:
    """A number for people: "0.420"; "–" where there is none.

    Values strictly inside (0, 1) never print as 0 or 1: they become "<0.001" or ">0.999". Nor does one just below 0,
    which becomes ">-0.001".

    Parameters
    ----------
    value : float or None
        The number.
    digits : int
        Decimals.

    Returns
    -------
    str
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
    """What strict JSON can hold: NaN becomes null, at any depth; tuples become lists.

    Parameters
    ----------
    value : object
        Of dicts, lists, tuples and plain values.

    Returns
    -------
    object
    """
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
    """Read "pass^3", "pass@3", "pass_pow_k" or "pass_at_k".

    Parameters
    ----------
    text : str
        What somebody wrote.

    Returns
    -------
    metric : "pass_at_k" or "pass_pow_k"
    k : int or None
        None where the name holds no number.

    Raises
    ------
    InvalidArgument
        If it is none of these.
    """
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


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str = "") -> str:
    """A plain HTML table with every cell escaped.

    Parameters
    ----------
    header : sequence of str
        Column names.
    rows : sequence of sequences of str
        Cells.
    caption : str
        What the table shows.

    Returns
    -------
    str
    """
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def plain_text(text: str) -> str:
    """The text with control characters written out, so that it cannot steer a terminal.

    Parameters
    ----------
    text : str
        Anything.

    Returns
    -------
    str
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character
        if character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co")
        else f"\\u{ord(character):04x}"
        for character in text.replace("\r\n", "\n")
    )
