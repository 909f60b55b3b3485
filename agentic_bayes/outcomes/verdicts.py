"""Reads the cells of a column of results as verdicts, and advises on cells that are not."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agentic_bayes.evidence import table as tables
from agentic_bayes.formatting import with_more

FAIL, PASS, NONE, ERRORED, REFUSED = range(5)  # codes of a cell

_NUMBERS = "0/1 or true/false"
_SPELLINGS: Mapping[str, Mapping[str, float]] = {
    _NUMBERS: {"1": 1, "true": 1, "0": 0, "false": 0},
    "yes/no": {"yes": 1, "no": 0},
    "pass/fail": {"pass": 1, "fail": 0},
    "passed/failed": {"passed": 1, "failed": 0},
    "correct/incorrect": {"correct": 1, "incorrect": 0},
    "C/I": {"c": 1, "i": 0, "p": 0.5, "n": 0},
}
_WORDS = {word: (kind, value) for kind, words in _SPELLINGS.items() for word, value in words.items()}
_PARTIAL = ("p", "n")  # partly correct and no answer, of Inspect: scores rather than verdicts
CRASHES = (
    "error",
    "errored",
    "crash",
    "crashed",
    "timeout",
    "timed out",
    "timed_out",
    "exception",
    "aborted",
    "killed",
)
_UNSCORED = (
    *("skip", "skipped", "unscored", "unknown", "pending", "n.a.", "-", "--", "—", "–", "?"),
    *("#ref!", "#div/0!", "#value!", "#name?", "#num!", "#null!"),
)
ALLOWED = "0/1, true/false, yes/no, pass/fail, passed/failed, correct/incorrect, C/I or blank"
FOOTNOTES = "*†‡§¶#¹²³⁴"
_LIKELY = {
    **dict.fromkeys(
        ("y", "t", "ja", "wahr", "oui", "vrai", "si", "sí", "verdadero", "good", "right", "richtig", "ok", "success"), 1
    ),
    **dict.fromkeys(("succeeded", "solved", "resolved", "win", "won", "✓", "✔", "✅", "☑"), 1),
    **dict.fromkeys(("n", "f", "nein", "falsch", "non", "faux", "falso", "bad", "wrong", "ko", "failure"), 0),
    **dict.fromkeys(("unsolved", "unresolved", "loss", "lose", "lost", "✗", "✘", "❌"), 0),
}
"""What other words probably mean, for advice only."""
_ZERO_ONE = re.compile(r"-?(0)(?:\.0*|e-?\d+)?|(1)(?:\.0*)?")  # Decimal has zeros like 0E-10
_FRACTION = re.compile(r"[0-9]+ ?/ ?[0-9]+")
CELLS = "cells"
"""What the verdicts of a wide table are called, which no column holds alone."""
SHOWN = 8  # values that a message names


def is_verdict(value: object) -> bool:
    """Whether a cell holds a verdict in one of the spellings."""
    return _word(value) in _WORDS


def read_verdicts(
    values: Sequence[Any], *, column: str, threshold: float | None, comma: bool, place: tables.Place, advice: list[str]
) -> tuple[list[int], str | None]:
    """The code of each distinct value, and what is wrong with them, if anything is.

    `comma` says that numbers may be written with a decimal comma, `place` where the n-th value first stands.
    """
    codes: list[int] = []
    kinds: dict[str, int] = {}  # spelling → its first value
    for i, value in enumerate(values):
        if tables.is_blank(value):
            codes.append(NONE)
            continue
        kind, score = _scored(value, threshold, comma)
        kinds.setdefault(kind, i)
        if kind and threshold is not None:
            codes.append(PASS if score >= threshold else FAIL)
        else:
            codes.append(int(score) if kind else REFUSED)
    wrong = [i for i, code in enumerate(codes) if code == REFUSED]
    if wrong:
        others = next((kind for kind in kinds if kind), "")
        if wrong == [0] and others and place(0).startswith("line 2") and not _is_known(values[0]):
            advice.append(f"If {place(0)} is a second header line: pandas.read_csv(path, skiprows=[1])")
        if others and all(map(_is_likely, values)):  # N is no answer in Inspect, and no in Y/N
            wrong, others = [i for i, value in enumerate(values) if not tables.is_blank(value)], ""
        advice += _mixed_scales(values, _cell(column)) or _advice(
            [values[i] for i in wrong], column, threshold, others=others
        )
        allowed = ALLOWED if threshold is None else f"scores between 0 and 1, or {ALLOWED}"
        return codes, f"{column} must be {allowed}, got {_listed(values, wrong, place)}"
    if len(kinds) > 1:
        mixed = [i for i, value in enumerate(values) if not tables.is_blank(value)]
        if any(_word(values[i]) == column.lower() for i in mixed):
            advice.append(repeated_header(column))
        else:
            words = {str(values[i]).strip(): _scored(values[i], threshold, comma)[1] for i in mixed}
            senses = ", ".join(f"{word!r}: {score:g}" for word, score in words.items() if tables.number(word) is None)
            advice.append(f"Write one spelling throughout: {_cell(column)} = {_cell(column)}.replace({{{senses}}})")
        return codes, f"{column} mixes {' and '.join(kinds)}: {_listed(values, mixed, place)}"
    return codes, None


def _scored(value: object, threshold: float | None, comma: bool) -> tuple[str, float]:
    """The spelling of a cell and its score; ("", 0) if it holds none."""
    word = _word(value)
    if word in _WORDS and (threshold is not None or word not in _PARTIAL):
        return _WORDS[word]
    if comma and word.count(",") == 1:
        word = word.replace(",", ".")
    score = None if threshold is None else tables.number(word)
    return (_NUMBERS, score) if score is not None and 0 <= score <= 1 else ("", 0)


def repeated_header(column: str) -> str:
    """The advice that rows repeat the header."""
    return (
        "If there is a second header line: pandas.read_csv(path, skiprows=[1]); if the header comes again below: "
        f'table = table[table["{column}"] != "{column}"]'
    )


def footnotes(words: Sequence[str], cell: str) -> list[str]:
    """The advice to take footnote marks off; none if there are none."""
    marks = _marks(words)
    return [f'Take the footnote marks off: {cell} = {cell}.astype(str).str.rstrip("{marks} ")'] if marks else []


def _marks(words: Sequence[str]) -> str:
    """The footnote marks behind words that would be numbers or verdicts without them."""
    bare = [word.rstrip(f"{FOOTNOTES} ") for word in words]
    if not all(word in _WORDS or tables.number(word.rstrip("%")) is not None for word in bare):
        return ""
    return "".join(dict.fromkeys(mark for word in words for mark in word if mark in FOOTNOTES))


def _mixed_scales(values: Sequence[Any], cell: str) -> list[str]:
    """The advice for scores of which some are shares and some percentages; none if they are not mixed."""
    words = [_word(value) for value in values if not tables.is_blank(value)]
    known = [(word, tables.number(word.rstrip("% "))) for word in words]
    numbers = [(word, number) for word, number in known if number is not None]
    shares = [word for word, number in numbers if 0 < number < 1 and "%" not in word]
    percentages = [word for word, number in numbers if "%" in word or number > 10]
    if not shares or not percentages:
        return []
    return [
        f"Some are shares ({shares[0]}), some percentages ({percentages[0]}); to make all shares, if 1 is 100 %: "
        f'{cell} = {cell}.astype(str).str.rstrip("% ").astype(float); {cell} = {cell}.where({cell} <= 1, {cell} / 100)'
    ]


def _is_likely(value: object) -> bool:
    return tables.is_blank(value) or _word(value) in _LIKELY


def _is_known(value: object) -> bool:
    """Whether a cell holds a number, or a word that says something of a trial."""
    word = _word(value)
    number = tables.number(word.rstrip(f"% {FOOTNOTES}"))
    return number is not None or bool(_marks([word])) or word in (*_LIKELY, *CRASHES, *_UNSCORED)


def _word(value: object) -> str:
    """A cell as it is looked up; zeros and ones lose their decimals, which databases and spreadsheets add."""
    word = str(value).strip().lower()
    found = _ZERO_ONE.fullmatch(word)
    return word if found is None else found[1] or found[2]


def _listed(values: Sequence[Any], chosen: Sequence[int], place: tables.Place) -> str:
    named = [f"{tables.shown(values[i])} ({place(i)})" for i in chosen[:SHOWN]]
    return with_more(named, len(chosen), "value")


def _cell(column: str) -> str:
    """A column in Python; the cells of a wide table are in several."""
    return "table[column]" if column == CELLS else f'table["{column}"]'


def _advice(wrong: Sequence[Any], column: str, threshold: float | None, *, others: str) -> list[str]:
    """What to do about values that are no verdicts; `others` is the spelling of those that are."""
    cell = _cell(column)
    give = "" if threshold is not None else ", and give threshold=0.7 (--threshold 0.7)"
    words = [_word(value) for value in wrong]
    numbers = [tables.number(word) for word in words]
    known = [number for number in numbers if number is not None]
    shares = "; if each is a share of several trials, give counts instead: successes = share * trials"
    if len(known) == len(words):
        return _number_advice(known, cell, give, shares, scores=threshold is not None)
    if all(word.lstrip("+-") in ("inf", "infinity") for word in words):
        return [f"Leave infinite scores blank: {cell} = {cell}.mask({cell}.astype(float).abs() == float('inf'))"]
    if marked := footnotes(words, cell):
        return marked
    bare = [word.rstrip("% ") for word in words]
    if all(tables.number(word) is not None for word in bare):
        return [f'Percentages: {cell} = {cell}.str.rstrip("% ").astype(float) / 100{give}{shares}']
    if any("%" in word for word in words) and all(
        tables.number(word.replace(",", ".", 1)) is not None for word in bare
    ):
        return [
            f'Percentages: {cell} = {cell}.str.rstrip("% ").str.replace(",", ".").astype(float) / 100{give}{shares}'
        ]
    if all(tables.number(word.replace(",", ".", 1)) is not None for word in words):
        return [f'Decimal commas: {cell} = {cell}.str.replace(",", ".").astype(float){give}']
    if all(_FRACTION.fullmatch(word) for word in words):
        long = ""
        if column == CELLS:
            long = 'first one row for each cell, table = table.melt("task", var_name="agent", value_name="cell"); then '
            cell = 'table["cell"]'
        split = f'table[["successes", "trials"]] = {cell}.str.split("/", expand=True).astype(int)'
        return [f'Counts, "7/10": {long}{split}']
    if any("±" in word or "+-" in word for word in words):
        return ["Means with their spread are no verdicts: the counts behind them are needed, successes and trials"]
    if any(isinstance(value, (list, tuple)) or hasattr(value, "shape") for value in wrong) and column != CELLS:
        return [f'If each list holds the trials of a task: table = table.explode("{column}")']
    if set(words) <= set(_PARTIAL):
        return ["P (partly correct) counts .5 and N (no answer) 0: give threshold=0.7 (--threshold 0.7)"]
    crashed = [str(value) for value, word in zip(wrong, words, strict=True) if word in CRASHES]
    unscored = [str(value) for value, word in zip(wrong, words, strict=True) if word in _UNSCORED]
    advice = []
    if crashed:
        advice.append(
            f'Trials that crashed belong in a column of their own: table["error"] = {cell}.isin({crashed}); '
            f'{cell} = {cell}.mask(table["error"])'
        )
    if unscored:
        blank = f".replace({unscored[0]!r}, None)" if len(unscored) == 1 else f".mask({cell}.isin({unscored}))"
        advice.append(f"Leave trials without a verdict blank: {cell} = {cell}{blank}")
    if advice:
        return advice
    if len(words) == 1 and others and words[0] == column.lower():
        return [repeated_header(column)]
    if others:
        senses = {sense: repr(word) for word, sense in reversed(list(_SPELLINGS[others].items()))}
        shown = ", ".join(f"{str(v)!r}: {senses.get(_LIKELY.get(_word(v), -1), repr('…'))}" for v in wrong[:4])
        return [f"If these words are verdicts, write them as the others: {cell} = {cell}.replace({{{shown}}})"]
    shown = ", ".join(f"{str(value)!r}: {_LIKELY.get(_word(value), '…')}" for value in wrong[:4])
    return [f"If these words are verdicts, say what they mean, 1 or 0: {cell} = {cell}.map({{{shown}}})"]


def _number_advice(known: Sequence[float], cell: str, give: str, shares: str, *, scores: bool) -> list[str]:
    """What to do about numbers that are neither verdicts nor scores."""
    largest = max(known)
    if min(known) < 0:
        return [
            f"If less than 0 means that there is no verdict: {cell} = {cell}.mask({cell} < 0)",
            f"Scores must be between 0 and 1; if less than 0 means 0: {cell} = {cell}.clip(0, 1){give}",
        ]
    if largest <= 1:
        return [f"For scores, give threshold=0.7 (--threshold 0.7), the minimum score to pass{shares}"]
    if largest < 1.01:
        return [f"If these are 1 but for rounding: {cell} = {cell}.clip(0, 1){give}"]
    if largest <= 10 and all(number == int(number) for number in known) and not scores:
        best = 5 if largest <= 5 else 10
        scale = f"1 … {best}, {cell} = ({cell} - 1) / {best - 1}, or 0 … {best}, {cell} = {cell} / {best}"
        counts = 'successes="…", trials="…"'
        return [
            f"If it is a rating, bring it to 0 … 1: from {scale}{give}",
            f"If these are counts, name them: {counts}",
        ]
    if largest <= 10:
        best = 5 if largest <= 5 else 10
        return [
            f"Bring the scores to 0 … 1: from 0 … {best} by {cell} = {cell} / {best}, from 1 … {best} by "
            f"{cell} = ({cell} - 1) / {best - 1}{give}"
        ]
    if largest <= 100:
        return [f"If these are percentages, {cell} = {cell} / 100{give}{shares}"]
    return ['These are neither verdicts nor scores: name the column that holds them, correct="…" (--columns)']
