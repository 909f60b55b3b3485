"""Where conversations come from when they are made by code."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from agentic_bayes.records.model import Conversation

__all__ = ["Retriever"]


class Retriever(ABC):
    """A source of conversations: subclass it and write `load_dataset`.

    The shape is Gaussia's, so that retrievers written for it work here.
    """

    @abstractmethod
    def load_dataset(self) -> Iterable[Conversation]:
        """The conversations, as a list or a generator."""
