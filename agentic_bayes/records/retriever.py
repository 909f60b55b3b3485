"""The interface for conversations that code produces instead of files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from agentic_bayes.records.model import Conversation

__all__ = ["Retriever"]


class Retriever(ABC):
    """A source of conversations: subclass it and implement `load_dataset`.

    It has the shape of Gaussia's class, so retrievers written for Gaussia work here.
    """

    @abstractmethod
    def load_dataset(self) -> Iterable[Conversation]:
        """Return the conversations as a list or a generator."""
