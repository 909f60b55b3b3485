"""Reads the cells of a column of results as verdicts, and advises on cells that are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentic_bayes.evidence import table as tables

FAIL, PASS, NONE, ERRORED, REFUSED = range(5)  # codes of a cell

_NUMBERS = "0/1 or true/false"
_SPELLINGS: Mapping[str, Mapping[str, float]] = {
    _NUMBERS: {"1": 1, "1.0": 1, "true": 1, "0": 0, "0.0": 0, "false": 0},
    "yes/no": {"yes": 1, "no": 0},
    "pass/fail": {"pass": 1, "fail": 0},
    "passed/failed": {"passed": 1, "failed": 0},
    "correct/incorrect": {"correct": 1, "incorrect": 0},
    "C/I": {"c": 1, "i": 0, "p": 0.5, "n": 0},
}
_WORDS = {word: (kind, value) for kind, words in _SPELLINGS.items() for word, value in words.items()}
_PARTIAL = ("p", "n")  # partly correct and no answer, of Inspect: scores rather than verdicts
_CRASHES = ("error", "errored", "crash", "crashed", "timeout", "exception")
_UNSCORED = ("skip", "skipped", "unscored", "unknown", "pending", "n.a.", "-", "--", "?")
ALLOWED = "0/1, true/false, yes/no, pass/fail, passed/failed, correct/incorrect, C/I or blank"
SECOND_HEADER = "There seems to be a second header line: pandas.read_csv(path, skiprows=[1])"
_LIKELY = {
    **dict.fromkeys(
        ("y", "t", "ja", "wahr", "oui", "vrai", "si", "sí", "verdadero", "good", "right", "richtig", "ok", "success"), 1
    ),
    **dict.fromkeys(("succeeded", "solved", "resolved", "win", "✓", "✔", "✅"), 1),
    **dict.fromkeys(("n", "f", "nein", "falsch", "non", "faux", "falso", "bad", "wrong", "ko", "failure"), 0),
    **dict.fromkeys(("unsolved", "unresolved", "loss", "✗", "✘", "❌"), 0),
}
"""What other words probably mean, for advice only."""
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
        if wrong == [0] and kinds.keys() - {""} and tables.number(values[0]) is None:
            advice.append(f"If {place(0)} is a second header line: pandas.read_csv(path, skiprows=[1])")
        advice += _advice([values[i] for i in wrong], column, threshold, others=bool(kinds.keys() - {""}))
        allowed = ALLOWED if threshold is None else f"scores between 0 and 1, or {ALLOWED}"
        return codes, f"{column} must be {allowed}, got {_listed(values, wrong, place)}"
    if len(kinds) > 1:
        mixed = [i for i, value in enumerate(values) if not tables.is_blank(value)]
        if any(_word(values[i]) == column.lower() for i in mixed):
            advice.append(SECOND_HEADER)
        words = "{'yes': 1, 'no': 0}" if "yes/no" in kinds else "{'pass': 1, 'fail': 0}"
        advice.append(f"Write one spelling throughout: {_cell(column)} = {_cell(column)}.replace({words})")
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


def _word(value: object) -> str:
    return str(value).strip().lower()


def _listed(values: Sequence[Any], chosen: Sequence[int], place: tables.Place) -> str:
    more = f" and {len(chosen) - SHOWN:,} more values" if len(chosen) > SHOWN else ""
    return ", ".join(f"{tables.shown(values[i])} ({place(i)})" for i in chosen[:SHOWN]) + more


def _cell(column: str) -> str:
    """A column in Python; the cells of a wide table are in several."""
    return "table[column]" if column == CELLS else f'table["{column}"]'


def _advice(wrong: Sequence[Any], column: str, threshold: float | None, *, others: bool) -> list[str]:
    """What to do about values that are no verdicts."""
    cell = _cell(column)
    give = "" if threshold is not None else ", and give threshold=0.7 (--threshold 0.7)"
    words = [_word(value) for value in wrong]
    numbers = [tables.number(word) for word in words]
    known = [number for number in numbers if number is not None]
    if len(known) == len(words):
        largest = max(known)
        if min(known) < 0:
            return [f"Scores must be between 0 and 1: {cell} = {cell}.clip(0, 1) if less than 0 means 0{give}"]
        if largest <= 1:
            return ["For scores, give threshold=0.7 (--threshold 0.7), the minimum score to pass"]
        if largest <= 10 and all(number == int(number) for number in known) and threshold is None:
            best = 5 if largest <= 5 else 10
            scale = f"1 … {best}, {cell} = ({cell} - 1) / {best - 1}, or 0 … {best}, {cell} = {cell} / {best}"
            counts = 'successes="…", trials="…"'
            return [
                f"If it is a rating, bring it to 0 … 1: from {scale}{give}",
                f"If these are counts, name them: {counts}",
            ]
        if largest <= 10:
            return [f"Bring the scores to 0 … 1, from 0 … 10 by {cell} = {cell} / 10{give}"]
        if largest <= 100:
            return [f"If these are percentages, {cell} = {cell} / 100{give}"]
        return ['These are neither verdicts nor scores: name the column that holds them, correct="…" (--columns)']
    bare = [word.rstrip("% ") for word in words]
    if all(tables.number(word) is not None for word in bare):
        return [f'Percentages: {cell} = {cell}.str.rstrip("% ").astype(float) / 100{give}']
    if any("%" in word for word in words) and all(
        tables.number(word.replace(",", ".", 1)) is not None for word in bare
    ):
        return [f'Percentages: {cell} = {cell}.str.rstrip("% ").str.replace(",", ".").astype(float) / 100{give}']
    if all(tables.number(word.replace(",", ".", 1)) is not None for word in words):
        return [f'Decimal commas: {cell} = {cell}.str.replace(",", ".").astype(float){give}']
    if all(tables.number(part) is not None for word in words for part in (word.split("/") if "/" in word else "x")):
        return [f'Counts, "7/10": table[["successes", "trials"]] = {cell}.str.split("/", expand=True).astype(int)']
    if set(words) <= set(_PARTIAL):
        return ["P (partly correct) counts .5 and N (no answer) 0: give threshold=0.7 (--threshold 0.7)"]
    if found := [word for word in words if word in _CRASHES]:
        return [
            f'Trials that crashed belong in a column of their own: table["error"] = {cell}.eq({found[0]!r}); '
            f'{cell} = {cell}.mask(table["error"])'
        ]
    if found := [word for word in words if word in _UNSCORED]:
        return [f"Leave trials without a verdict blank: {cell} = {cell}.replace({found[0]!r}, None)"]
    if len(words) == 1 and others and words[0] == column.lower():
        return [SECOND_HEADER]
    if others:
        shown = ", ".join(f"{str(value)!r}: '…'" for value in wrong[:4])
        return [f"If these words are verdicts, write them as the others: {cell} = {cell}.replace({{{shown}}})"]
    shown = ", ".join(f"{str(value)!r}: {_LIKELY.get(_word(value), '…')}" for value in wrong[:4])
    return [f"If these words are verdicts, say what they mean, 1 or 0: {cell} = {cell}.map({{{shown}}})"]
