"""Texts as vectors: any LangChain embeddings, or a small model whose weights come with an installed package."""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from agentic_bayes.errors import InvalidArgument, MissingPackage
from agentic_bayes.records.base import short

__all__ = ["Embedder", "TextEmbeddings", "offline_embeddings"]

Floats = NDArray[np.float64]

_KEPT = 4096  # vectors; a conversation looks at its last outputs again and again
_PACKAGE, _DIMENSIONS = "wordllama", 256  # optional


@runtime_checkable
class TextEmbeddings(Protocol):
    """What is needed of embeddings: LangChain's `Embeddings` have it."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector per text."""
        ...


class Embedder:
    """Unit vectors of texts, each computed once.

    Parameters
    ----------
    embeddings : TextEmbeddings, optional
        Any LangChain `Embeddings`. Left out: `offline_embeddings`.

    Raises
    ------
    InvalidArgument
        If it is something else.
    """

    def __init__(self, embeddings: TextEmbeddings | None = None) -> None:
        if embeddings is not None and (isinstance(embeddings, type) or not isinstance(embeddings, TextEmbeddings)):
            raise InvalidArgument(f"embeddings must have `embed_documents`, as LangChain's do, got {short(embeddings)}")
        self._given = embeddings
        self._kept: OrderedDict[str, Floats] = OrderedDict()

    @property
    def name(self) -> str:
        """Which embeddings these are, for identities."""
        if self._given is None:
            return f"{_PACKAGE}-{_DIMENSIONS}"
        model = next((m for a in ("model", "model_name") if isinstance(m := getattr(self._given, a, None), str)), "")
        return f"{type(self._given).__name__}{f'({model})' if model else ''}"

    def vectors(self, texts: Sequence[str]) -> list[Floats]:
        """Unit vectors of the texts; of a text without any known piece, the zero vector.

        Parameters
        ----------
        texts : sequence of str
            Texts that are not empty.

        Returns
        -------
        list of ndarray of float, shape (dimensions,)

        Raises
        ------
        MissingPackage
            If no embeddings were given, and the offline model is not installed.
        """
        new = [text for text in dict.fromkeys(texts) if text not in self._kept]
        if new:
            embeddings = self._given if self._given is not None else offline_embeddings()
            for text, vector in zip(new, embeddings.embed_documents(new), strict=True):
                values = np.asarray(vector, dtype=np.float64)
                length = float(np.linalg.norm(values))
                self._kept[text] = values / length if length > 0 else values
        found = [self._kept[text] for text in texts]
        for text in texts:
            self._kept.move_to_end(text)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return found


class _Offline:
    """Static vectors of word pieces, averaged; nothing is downloaded."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector per text."""
        found: list[list[float]] = self._model.embed(texts, norm=True).tolist()
        return found


@functools.cache
def offline_embeddings() -> TextEmbeddings:
    """Embeddings that need no network and no torch: WordLlama's 256 dimensions, from its own package.

    Returns
    -------
    TextEmbeddings

    Raises
    ------
    MissingPackage
        If the package is not installed.
    """
    if importlib.util.find_spec(_PACKAGE) is None:
        raise MissingPackage(
            "metrics on embeddings need a model: give one (any LangChain Embeddings), "
            "or pip install 'agentic-bayes[embeddings]'"
        )
    package: Any = importlib.import_module(_PACKAGE)
    # its weights and its tokenizer lie beside its code: pointed there, it looks nowhere else
    folder = Path(package.__file__).parent
    return _Offline(package.WordLlama.load(cache_dir=folder, dim=_DIMENSIONS, disable_download=True))
