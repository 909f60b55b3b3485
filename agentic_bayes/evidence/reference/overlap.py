"""What two texts have in common: content tokens, and the share of them that is found."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from agentic_bayes.evidence.reference.answer_text import Token
from agentic_bayes.evidence.reference.vocabulary import STOP_WORDS


def content(found: Sequence[Token]) -> list[Token]:
    """The tokens that carry content; neighbours in a script without spaces become pairs."""
    kept: list[Token] = []
    for place, token in enumerate(found):
        if token.kind == "character":
            after = found[place + 1] if place + 1 < len(found) else None
            before = found[place - 1] if place else None
            if after and after.kind == "character" and not after.opens:
                kept.append(token._replace(text=token.text + after.text))
            elif token.opens or not before or before.kind != "character":
                kept.append(token)
        elif token.text not in STOP_WORDS or token.kind != "word":
            kept.append(token)
    return kept


def found_in(wanted: Token, given: Collection[Token]) -> bool:
    """Whether a token (or one with its value and no unit that contradicts) is among those given."""
    return wanted in given or any(wanted.key == token.key and wanted.fits(token) for token in given)


def shared(wanted: Iterable[Token], given: Iterable[Token]) -> float:
    """Share of the distinct tokens wanted that are among those given, negated or not; 1 if none is."""
    index = index_of(given)
    distinct = {(token.key, token.units): token for token in wanted}.values()
    hits = sum(found_in(token, index.get(token.key, ())) for token in distinct)
    return hits / len(distinct) if distinct else 1.0


def index_of(given: Iterable[Token]) -> dict[tuple[str, str], set[Token]]:
    """Tokens by what they say; equal ones are kept once, so that looking through an entry is short."""
    index: dict[tuple[str, str], set[Token]] = {}
    for token in given:
        index.setdefault(token.key, set()).add(token._replace(opens=False) if token.opens else token)
    return index
