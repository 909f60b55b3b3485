"""Metrics that compare texts by their embeddings: does the answer belong to the query, does the agent repeat itself?"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from agentic_bayes.checks import check_count, check_probability
from agentic_bayes.evidence.metrics.embeddings import Embedder, TextEmbeddings
from agentic_bayes.evidence.score import Grade, Score, Unscored
from agentic_bayes.records.model import Conversation

_OFFLINE_THRESHOLD = 0.16  # the best balanced accuracy on the example data
ASSUMED = "assumed to be coherent: there is no text to compare"


class Coherence:
    """Does the answer belong to the query? Cosine similarity of their embeddings; no model is asked.

    Notes
    -----
    `embeddings` may be any LangChain `Embeddings`; left out, a small offline model (``agentic-bayes[embeddings]``).
    `threshold` is the minimum score for a success: .16 for the offline model, .5 for any other. On the example data the
    offline model gives answers to their own queries .36 on average and answers to other queries .06; .16 tells them
    apart best (80 % and 89 % on the right side). Choose your own for your embeddings. The score is 1 - (1 - cosine),
    clamped to [0, 1]; ``coherence_gap`` is the distance 1 - cosine. Where query or answer is empty the score is 1, with
    a note, as in the metric's source.
    """

    name = "coherence"

    def __init__(self, embeddings: TextEmbeddings | None = None, *, threshold: float | None = None) -> None:
        default = _OFFLINE_THRESHOLD if embeddings is None else 0.5
        self.threshold = default if threshold is None else check_probability(threshold, "threshold")
        self._embedder = Embedder(embeddings)

    @property
    def identity(self) -> str:
        """Name, version and embeddings."""
        return f"{self.name}/1 embeddings={self._embedder.name}"

    def grade(self, conversation: Conversation, position: int) -> Grade:
        """Grade the interaction at this position."""
        turn = conversation.conversation[position]
        if turn.assistant is None:
            return Unscored("no answer to compare")
        if not turn.query.strip() or not turn.assistant.strip():
            return Score(1.0, ASSUMED, {"threshold": self.threshold, "success": True, "note": ASSUMED})
        coming = (
            text
            for later in itertools.islice(conversation.conversation, position + 1, position + 33)
            for text in (later.query, later.assistant or "")
            if text.strip()
        )
        query, answer = self._embedder.vectors([turn.query, turn.assistant], ahead=coming)
        gap = 1.0 - float(query @ answer)
        score = min(max(1.0 - gap, 0.0), 1.0)
        details = {"coherence_gap": round(gap, 6), "threshold": self.threshold, "success": score >= self.threshold}
        return Score(score, f"cosine distance between query and answer: {gap:.3f}", details)


NOTHING_EARLIER = "assumed not to be a loop: there is no earlier output to compare with"
NOTHING_NOW = "assumed not to be a loop: the output is empty"

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


class LoopDetection:
    """Does the agent repeat itself within a conversation? Cosine × Jaccard with its last outputs; no model is asked.

    Notes
    -----
    `embeddings` may be any LangChain `Embeddings`; left out, a small offline model (``agentic-bayes[embeddings]``).
    `threshold` is the minimum score for a success, `window` the number of earlier outputs to compare with. The score
    is 1 - max(cosine × Jaccard) over the last `window` earlier outputs that are not empty, clamped to [0, 1]. Two
    outputs that differ only in case, width, white space or punctuation are a loop (1 × 1), whatever they hold.
    Without an earlier output, or with an empty one now, the score is 1, with a note, as in the metric's source.
    """

    name = "loop_detection"

    def __init__(self, embeddings: TextEmbeddings | None = None, *, threshold: float = 0.5, window: int = 3) -> None:
        self.threshold = check_probability(threshold, "threshold")
        self.window = check_count(window, "window")
        self._embedder = Embedder(embeddings)

    @property
    def identity(self) -> str:
        """Name, version, embeddings and window."""
        window = f" window={self.window}" if self.window != 3 else ""
        return f"{self.name}/1 embeddings={self._embedder.name}{window}"

    def grade(self, conversation: Conversation, position: int) -> Grade:
        """Grade one interaction; ``comparisons`` in the details have the ``trace_index`` (from 0) of each output."""
        turns = conversation.conversation
        output = turns[position].assistant
        if output is None:
            return Unscored("no output to compare")
        # only as far back as the window reaches: a long session stays linear
        before = ((index, turns[index].assistant) for index in range(position - 1, -1, -1))
        earlier = list(itertools.islice(((i, text) for i, text in before if text and text.strip()), self.window))
        coming = (turn.assistant for turn in itertools.islice(turns, position + 1, position + 65))
        return self._compared(output, earlier[::-1], [text for text in coming if text and text.strip()])

    def compare(self, output: str, earlier: Sequence[str | None] | None) -> Grade:
        """Grade one output against all earlier ones of its session, in order; None if there may be no session."""
        if earlier is None:
            return Unscored("a trace outside a session: loops are repetitions within one")
        outputs = [(index, text) for index, text in enumerate(earlier) if text and text.strip()]
        return self._compared(output, outputs[-self.window :])

    def _compared(self, output: str, earlier: Sequence[tuple[int, str]], coming: Sequence[str] = ()) -> Score:
        if not output.strip():
            return self._score(0.0, [], NOTHING_NOW)
        if not earlier:
            return self._score(0.0, [], NOTHING_EARLIER)
        current, *others = self._embedder.vectors([output, *(text for _, text in earlier)], ahead=coming)
        own, own_words = normalised(output), distinct_words(output)
        comparisons, nearest = [], 0.0
        for (index, text), vector in zip(earlier, others, strict=True):
            same = normalised(text) == own
            cosine = 1.0 if same else float(current @ vector)
            shared = 1.0 if same else jaccard(own_words, distinct_words(text))
            hybrid = max(cosine, 0.0) * shared
            nearest = max(nearest, hybrid)
            scores = {"cosine_similarity": cosine, "jaccard_similarity": shared, "hybrid_score": hybrid}
            comparisons.append({"trace_index": index} | {name: round(score, 6) for name, score in scores.items()})
        return self._score(nearest, comparisons, None)

    def _score(self, hybrid: float, comparisons: list[dict[str, Any]], note: str | None) -> Score:
        score = min(max(1.0 - hybrid, 0.0), 1.0)
        reason = note or f"highest similarity to the last {len(comparisons)} outputs: {hybrid:.3f}"
        details: dict[str, Any] = {
            "window_size": self.window,
            "max_hybrid": round(hybrid, 6),
            "comparisons": comparisons,
            "threshold": self.threshold,
            "success": score >= self.threshold,
        }
        return Score(score, reason, details | ({"note": note} if note else {}))


def normalised(text: str) -> str:
    """The text in one spelling: case, width, white space and punctuation do not matter."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    bare = "".join(" " if unicodedata.category(character)[0] in "PSC" else character for character in plain)
    kept = " ".join(bare.split())
    return kept or "".join(dict.fromkeys("".join(plain.split())))


def distinct_words(text: str) -> frozenset[str]:
    """The distinct words of a text without stop words; where a script has no spaces, pairs of characters."""
    distinct: set[str] = set()
    for word in normalised(text).split():
        rest = 0
        for run in _UNSPACED.finditer(word):
            distinct.update(filter(None, [word[rest : run.start()]]))
            characters = run.group()
            distinct.update(characters[i : i + 2] for i in range(max(len(characters) - 1, 1)))
            rest = run.end()
        distinct.update(filter(None, [word[rest:]]))
    return frozenset(distinct - _STOP_WORDS or distinct)


def jaccard(first: frozenset[str], second: frozenset[str]) -> float:
    """The number of shared words over the number of all words."""
    return len(first & second) / len(first | second) if first | second else 0.0
