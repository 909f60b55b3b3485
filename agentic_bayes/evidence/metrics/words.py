"""Words of an output, for telling whether it repeats another one; also where no spaces stand between words."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["jaccard", "normalised", "words"]

# scripts without spaces between words: Thai, Lao, Myanmar, Khmer; kana; Chinese characters
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_STOP_WORDS = frozenset(
    """
    a an the and or but if then of to in on at by for from with as is are was were be been being am do does did have has
    had i you he she it we they me him her us them my your his its our their this that these those so can could
    will would should may might shall there here what which who when where how than too very
    """.split()  # noqa: SIM905 - sixty words in quotes are hard to read
)


def normalised(text: str) -> str:
    """The text in one spelling: case, width, white space and signs do not matter."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    bare = "".join(" " if unicodedata.category(character)[0] in "PSC" else character for character in plain)
    kept = " ".join(bare.split())
    return kept or "".join(dict.fromkeys("".join(plain.split())))


def words(text: str) -> frozenset[str]:
    """The different words of a text, without those that every text has."""
    found: set[str] = set()
    for word in normalised(text).split():
        rest = 0
        for run in _UNSPACED.finditer(word):
            found.update(filter(None, [word[rest : run.start()]]))
            characters = run.group()
            found.update(characters[i : i + 2] for i in range(max(len(characters) - 1, 1)))
            rest = run.end()
        found.update(filter(None, [word[rest:]]))
    return frozenset(found - _STOP_WORDS or found)


def jaccard(first: frozenset[str], second: frozenset[str]) -> float:
    """Share of common words among the words of either."""
    return len(first & second) / len(first | second) if first | second else 0.0
