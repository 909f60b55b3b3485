"""Does the agent repeat itself?"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from agentic_bayes.checks import check_k, check_probability
from agentic_bayes.evidence.metrics.embeddings import Embedder, TextEmbeddings
from agentic_bayes.evidence.metrics.words import jaccard, normalised, words
from agentic_bayes.evidence.score import Grade, Score, Unscored
from agentic_bayes.records.model import Conversation

__all__ = ["LoopDetection"]

NOTHING_EARLIER = "no earlier output to compare with: no loop is assumed"
NOTHING_NOW = "the output is empty: no loop is assumed"


class LoopDetection:
    """Does the agent repeat itself within a conversation? Cosine × Jaccard with its last outputs; no model is asked.

    Parameters
    ----------
    embeddings : TextEmbeddings, optional
        Any LangChain `Embeddings`; left out, a small offline model (``agentic-bayes[embeddings]``).
    threshold : float
        From which score on the metric counts as a success, in [0, 1].
    window : int
        How many earlier outputs are looked at.

    Raises
    ------
    InvalidArgument
        If an argument is outside what is allowed.

    Notes
    -----
    The score is 1 - max(cosine × Jaccard) over the last `window` earlier outputs that are not empty, clamped to
    [0, 1]. Two outputs that are the same but for case, width, white space and signs are a loop (1 × 1),
    whatever they hold.
    Without an earlier output, and with an empty one now, the score is 1, with a note, as in the metric's source.
    """

    name = "loop_detection"

    def __init__(self, embeddings: TextEmbeddings | None = None, *, threshold: float = 0.5, window: int = 3) -> None:
        self.threshold = check_probability(threshold, "threshold")
        self.window = check_k(window, "window")
        self._embedder = Embedder(embeddings)

    @property
    def identity(self) -> str:
        """Name, version, embeddings and window."""
        window = f" window={self.window}" if self.window != 3 else ""
        return f"{self.name}/1 embeddings={self._embedder.name}{window}"

    def grade(self, conversation: Conversation, position: int) -> Grade:
        """Grade one interaction.

        Parameters
        ----------
        conversation : Conversation
            The conversation.
        position : int
            Index of the interaction.

        Returns
        -------
        Score or Unscored
            The details hold ``window_size``, ``max_hybrid`` and ``comparisons`` with their ``trace_index`` (from 0).
        """
        turns = conversation.conversation
        if turns[position].assistant is None:
            return Unscored("no output to compare")
        output = turns[position].assistant or ""
        if not output.strip():
            return self._score(0.0, [], NOTHING_NOW)
        # only as far back as the window reaches: a long session stays linear
        said: list[tuple[int, str]] = []
        for index in range(position - 1, -1, -1):
            if len(said) == self.window:
                break
            if (text := turns[index].assistant) and text.strip():
                said.append((index, text))
        coming = (turn.assistant for turn in itertools.islice(turns, position + 1, position + 65))
        return self._compared(output, said[::-1], [text for text in coming if text and text.strip()])

    def compare(self, output: str, earlier: Sequence[str | None] | None) -> Grade:
        """Grade one output against earlier ones.

        Parameters
        ----------
        output : str
            What the agent said.
        earlier : sequence of (str or None), optional
            All it said before in the session, in order; None: it is not known whether there is a session.

        Returns
        -------
        Score or Unscored
        """
        if earlier is None:
            return Unscored("a trace outside of a session: loops are repetitions within one")
        said = [(index, text) for index, text in enumerate(earlier) if text and text.strip()]
        if not output.strip():
            return self._score(0.0, [], NOTHING_NOW)
        return self._compared(output, said[-self.window :])

    def _compared(self, output: str, said: Sequence[tuple[int, str]], coming: Sequence[str] = ()) -> Score:
        if not said:
            return self._score(0.0, [], NOTHING_EARLIER)
        current, *others = self._embedder.vectors([output, *(text for _, text in said)], ahead=coming)
        own, own_words = normalised(output), words(output)
        comparisons, nearest = [], 0.0
        for (index, text), vector in zip(said, others, strict=True):
            same = normalised(text) == own
            cosine = 1.0 if same else float(current @ vector)
            shared = 1.0 if same else jaccard(own_words, words(text))
            hybrid = max(cosine, 0.0) * shared
            nearest = max(nearest, hybrid)
            comparisons.append(
                {
                    "trace_index": index,
                    "cosine_similarity": round(cosine, 6),
                    "jaccard_similarity": round(shared, 6),
                    "hybrid_score": round(hybrid, 6),
                }
            )
        return self._score(nearest, comparisons, None)

    def _score(self, hybrid: float, comparisons: list[dict[str, Any]], note: str | None) -> Score:
        score = min(max(1.0 - hybrid, 0.0), 1.0)
        reason = note or f"nearest of the last {len(comparisons)} outputs: {hybrid:.3f}"
        found: dict[str, Any] = {
            "window_size": self.window,
            "max_hybrid": round(hybrid, 6),
            "comparisons": comparisons,
            "threshold": self.threshold,
            "success": score >= self.threshold,
        }
        return Score(score, reason, found | ({"note": note} if note else {}))
