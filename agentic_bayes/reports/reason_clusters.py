"""Groups free-text reasons by the words they share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from agentic_bayes.evidence.reference.answer_text import SPACELESS
from agentic_bayes.evidence.reference.vocabulary import STOP_WORDS
from agentic_bayes.numerics import Floats, Ints

MOST_CLUSTERS = 12
MOST_REASONS = 20_000  # different ones; more are in no cluster
_TRIED = 1_500  # reasons among which clusters begin: half of them the commonest, the others evenly spaced
_TERMS = 4_000  # the commonest words that several trials have
_COMMON = 0.1  # weight of a word that all reasons have
_READ = 600  # characters of a reason
_ALIKE = 0.45  # cosine above which a reason belongs to the one that begins a cluster
_NEAR = 0.15  # cosine below which a reason belongs to no cluster
_SAME = 0.2  # cosine of two means above which their clusters are one
_BEGUN = 40  # clusters before they are joined
_ROUNDS = 2
_LEAST = 0.01  # share of the reasons that a cluster has, two reasons at the least
_IN_LABEL = 3  # words
_WORD = re.compile(rf"[^\W\d_{SPACELESS}]{{2,}}|[{SPACELESS}]+")
_SPACELESS_SIGN = re.compile(f"[{SPACELESS}]")
_LONGEST_WORD = 30
_FILLERS = STOP_WORDS | {
    *("after", "although", "because", "before", "but", "does", "done", "given", "gives", "however", "instead", "like"),
    *("only", "or", "rather", "said", "says", "since", "still", "such", "though", "thus", "until", "when", "where"),
    *("whether", "which", "while", "without"),
    # whom and what a judge always speaks of
    *("agent", "answer", "answers", "assistant", "model", "output", "reference", "reply", "response", "states"),
}


@dataclass(frozen=True, slots=True)
class ReasonClusters:
    """Which reasons are alike, and in which words."""

    labels: tuple[str, ...]  # of the clusters, the largest first
    members: Ints  # of every reason: its cluster, or -1


def cluster_reasons(reasons: Sequence[str], times: Sequence[int]) -> ReasonClusters:
    """At most 12 clusters of different reasons, each of which occurs so many times.

    Reasons are vectors of words (TF-IDF): w_t = ln((1 + n) / (1 + n_t)) + .1 where a reason has the word t, as n_t of n
    do, and length 1; numbers, and words that only one has, are left out. A cluster begins with the reason that is like
    most of those that are left (leader clustering); reasons go to the nearest mean, and the two nearest clusters become
    one until none are near (spherical k-means, Dhillon and Modha 2001, doi:10.1023/A:1007612920971). Nothing is random,
    and the time is linear in the number of reasons.
    """
    read = [_words(reason) for reason in reasons[:MOST_REASONS]]
    counts = np.asarray(times[: len(read)], dtype=np.float64)
    members: Ints = np.full(len(reasons), -1)
    terms, table = _vectors(read, counts)
    if not terms:
        return ReasonClusters((), members)
    centres = _centres(table, counts)
    found = _nearest(table, centres)
    sizes = np.array([counts[found == i].sum() for i in range(len(centres))])
    large = np.flatnonzero(sizes >= max(2, _LEAST * counts.sum()))
    labels = []
    for i in large[np.argsort(-sizes[large], kind="stable")][:MOST_CLUSTERS]:
        own = np.flatnonzero(found == i)
        words = [terms[t] for t in np.argsort(-centres[i], kind="stable")[:_IN_LABEL] if centres[i, t] > 0]
        typical = read[own[np.argmax(table[own] @ centres[i])]]  # a label's words stand as they do there
        labels.append(", ".join([word for word in typical if word in words] + [w for w in words if w not in typical]))
        members[own] = len(labels) - 1
    return ReasonClusters(tuple(labels), members)


def _words(reason: str) -> Mapping[str, None]:
    """The different words of a reason in their order; neighbouring signs of a script without spaces make words."""
    words: dict[str, None] = {}
    for run in _WORD.findall(reason[:_READ].casefold()):
        pairs = len(run) > 1 and _SPACELESS_SIGN.match(run)
        words |= dict.fromkeys([run[i : i + 2] for i in range(len(run) - 1)] if pairs else [run[:_LONGEST_WORD]])
    return {word: None for word in words if word not in _FILLERS} or words


def _vectors(read: Sequence[Mapping[str, None]], counts: Floats) -> tuple[list[str], Any]:
    """The words that count, and a sparse table: reasons as vectors of length 1."""
    from scipy.sparse import csr_array

    times: Counter[str] = Counter()
    for words, n in zip(read, counts.astype(int).tolist(), strict=True):
        times.update(dict.fromkeys(words, n))
    terms = sorted((word for word, n in times.items() if n > 1), key=lambda word: (-times[word], word))[:_TERMS]
    place = {word: i for i, word in enumerate(terms)}
    known = [[place[word] for word in words if word in place] for words in read]
    ends = np.cumsum([0, *map(len, known)])
    columns = np.array([i for own in known for i in own], dtype=np.int64)
    rarity = np.log((1 + counts.sum()) / (1 + np.array([times[word] for word in terms]))) + _COMMON
    table = csr_array((rarity[columns], columns, ends), shape=(len(read), len(terms)))
    lengths = np.sqrt((table * table).sum(axis=1))
    table.data /= np.repeat(lengths, np.diff(ends))
    return terms, table


def _centres(table: Any, counts: Floats) -> Floats:
    """The means of clusters, of length 1."""
    centres = _begin(table, counts)
    while True:
        for _ in range(_ROUNDS):
            found = _nearest(table, centres)
            sums = np.array([counts[found == i] @ table[found == i] for i in range(len(centres))])
            centres = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
        alike = np.triu(centres @ centres.T, 1)
        first, second = np.unravel_index(alike.argmax(), alike.shape)
        if alike[first, second] < _SAME:
            return centres
        centres[first] += centres[second]
        centres = np.delete(centres, second, axis=0)


def _begin(table: Any, counts: Floats) -> Floats:
    """The reasons that begin clusters."""
    often, rest = np.split(np.argsort(-counts, kind="stable"), [_TRIED // 2])
    spaced = np.linspace(0, max(len(rest) - 1, 0), min(_TRIED - len(often), len(rest))).astype(np.int64)
    tried = np.sort(np.concatenate([often, rest[spaced]]))
    some = table[tried]
    alike = (some @ some.T).toarray() >= _ALIKE
    left = counts[tried] * alike.any(axis=1)  # without a known word a reason is like none, not even itself
    begun: list[int] = []
    while len(begun) < _BEGUN and left.any():
        begun.append(int(np.argmax(alike @ left)))
        left = np.where(alike[begun[-1]], 0, left)
    return np.asarray(some[begun].toarray())


def _nearest(table: Any, centres: Floats) -> Ints:
    """The nearest mean of every reason; -1 where none is near."""
    cosines = np.asarray(table @ centres.T)
    return np.where(cosines.max(axis=1) >= _NEAR, cosines.argmax(axis=1), -1)
