"""Coherence metric: does the answer belong to the query?"""

from __future__ import annotations

import itertools

from agentic_bayes.checks import check_probability
from agentic_bayes.evidence.metrics.embeddings import Embedder, TextEmbeddings
from agentic_bayes.evidence.score import Grade, Score, Unscored
from agentic_bayes.records.model import Conversation

ASSUMED = "assumed to be coherent: there is no text to compare"


class Coherence:
    """Does the answer belong to the query? Cosine similarity of their embeddings; no model is asked.

    Notes
    -----
    `embeddings` may be any LangChain `Embeddings`; left out, a small offline model (``agentic-bayes[embeddings]``).
    `threshold` is the minimum score for a success. The score is 1 - (1 - cosine), clamped to [0, 1]; ``coherence_gap``
    is the distance 1 - cosine. Where query or answer is empty the score is 1, with a note, as in the metric's source.
    """

    name = "coherence"

    def __init__(self, embeddings: TextEmbeddings | None = None, *, threshold: float = 0.5) -> None:
        self.threshold = check_probability(threshold, "threshold")
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
