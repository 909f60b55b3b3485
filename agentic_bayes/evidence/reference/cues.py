"""Finds in one pass which cues of the rules a text has, so that most patterns need not be searched."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from functools import lru_cache

_KNOWN: set[str] = set()
_SIGNS = re.compile(r"\W")
_ANY_DIGIT = str.maketrans("123456789", "000000000")  # no cue has a digit, and texts share fewer chunks with them
_LONGEST_REMEMBERED = 40  # characters


def cues(text: str, *spaced: str) -> frozenset[str]:
    """Declare cues in lower case, divided by spaces, and those that have spaces: " o " is only a whole word."""
    declared = frozenset({*text.split(), *spaced})
    _KNOWN.update(declared)
    cues_in.cache_clear()
    _short.cache_clear()
    return declared


@lru_cache(maxsize=8)  # an answer is asked several times
def cues_in(text: str) -> AbstractSet[str]:
    """The declared cues that a text has; it may lack one that has a space and would match nothing there."""
    chunks = text.lower().translate(_ANY_DIGIT).split()
    return frozenset().union(*[_short(chunk) if len(chunk) <= _LONGEST_REMEMBERED else _of(chunk) for chunk in chunks])


def _of(chunk: str) -> frozenset[str]:
    padded = f" {chunk}  {_SIGNS.sub(' ', chunk)} "
    return frozenset(cue for cue in _KNOWN if cue in padded)


_short = lru_cache(maxsize=4096)(_of)
