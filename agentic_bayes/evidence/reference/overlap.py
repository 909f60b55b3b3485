"""Measures how much two texts share: their content tokens, and the share of one text's tokens in the other."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from agentic_bayes.evidence.reference.answer_text import Token
from agentic_bayes.evidence.reference.vocabulary import STOP_WORDS


def content(text: Sequence[Token]) -> list[Token]:
    """The tokens with content; neighbours in a script without spaces become pairs."""
    kept: list[Token] = []
    for i, token in enumerate(text):
        if token.kind == "character":
            after = text[i + 1] if i + 1 < len(text) else None
            before = text[i - 1] if i else None
            if after and after.kind == "character" and not after.opens:
                kept.append(token._replace(text=token.text + after.text))
            elif token.opens or not before or before.kind != "character":
                kept.append(token)
        elif token.text not in STOP_WORDS or token.kind != "word":
            kept.append(token)
    return kept


def found_in(wanted: Token, text: Collection[Token]) -> bool:
    """Whether the text has the token, or one with the same value and a unit that does not contradict."""
    return wanted in text or any(wanted.key == token.key and wanted.fits(token) for token in text)


def shared(wanted: Iterable[Token], text: Iterable[Token]) -> float:
    """Share of the distinct wanted tokens that the text has, negated or not; 1 if none are wanted."""
    index = index_of(text)
    distinct = {(token.key, token.units): token for token in wanted}.values()
    hits = sum(found_in(token, index.get(token.key, ())) for token in distinct)
    return hits / len(distinct) if distinct else 1.0


def index_of(text: Iterable[Token]) -> dict[tuple[str, str], set[Token]]:
    """The tokens by kind and text; equal ones are kept once, so entries stay short."""
    index: dict[tuple[str, str], set[Token]] = {}
    for token in text:
        index.setdefault(token.key, set()).add(token._replace(opens=False) if token.opens else token)
    return index
