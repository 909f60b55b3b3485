"""Turns texts into vectors, with any LangChain embeddings or a small model that comes with an installed package."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import itertools
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from agentic_bayes.errors import EvidenceError, InvalidArgument, MissingPackage
from agentic_bayes.numerics import Floats
from agentic_bayes.records.base import short

_KEPT = 4096  # vectors; a conversation looks at its last outputs again and again
_AHEAD = 64  # texts that are embedded together
LONGEST = 20_000  # characters of a text that are embedded: its beginning and its end if it is longer
_PACKAGE, _DIMENSIONS = "wordllama", 256  # optional


@runtime_checkable
class TextEmbeddings(Protocol):
    """Anything with `embed_documents`, for example LangChain's `Embeddings`."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector per text."""


class Embedder:
    """Unit vectors of texts, each computed once."""

    def __init__(self, embeddings: TextEmbeddings | None = None) -> None:
        if embeddings is not None and (isinstance(embeddings, type) or not isinstance(embeddings, TextEmbeddings)):
            raise InvalidArgument(f"embeddings must have `embed_documents`, as LangChain's do, got {short(embeddings)}")
        self._given = embeddings
        self._kept: OrderedDict[str, Floats] = OrderedDict()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_kept": OrderedDict()}  # another process makes its own vectors

    @property
    def name(self) -> str:
        """The embeddings' name, for identities."""
        if self._given is None:
            return f"{_PACKAGE}-{_DIMENSIONS}"
        model = next((m for a in ("model", "model_name") if isinstance(m := getattr(self._given, a, None), str)), "")
        return f"{type(self._given).__name__}{f'({model})' if model else ''}"

    def vectors(self, texts: Sequence[str], *, ahead: Iterable[str] = ()) -> list[Floats]:
        """Unit vectors of the texts."""
        wanted = [_bounded(text) for text in texts]
        if any(text not in self._kept for text in wanted):
            # texts that will be needed soon come along: one call of the provider for many texts
            coming = itertools.islice((_bounded(text) for text in ahead), _AHEAD)
            new = [text for text in dict.fromkeys([*wanted, *coming]) if text not in self._kept]
            embeddings = self._given if self._given is not None else offline_embeddings()
            rows = _checked(embeddings.embed_documents(new), len(new))
            lengths = np.linalg.norm(rows, axis=1, keepdims=True)
            self._kept |= zip(new, rows / np.where(lengths > 0, lengths, 1.0), strict=True)
        vectors = [self._kept[text] for text in wanted]
        for text in wanted:
            self._kept.move_to_end(text)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        if any(not vector.any() for vector in vectors):
            raise EvidenceError("the embedding of a text is zero, so its similarity is undefined")
        return vectors


def _bounded(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST // 2] + text[-LONGEST // 2 :]


def _checked(vectors: object, count: int) -> Floats:
    """The vectors as an array of shape (count, dimensions), or an error if they are not so many finite vectors."""
    try:
        rows = np.array(vectors)
    except ValueError:  # vectors of different lengths
        rows = np.array(None)
    if rows.dtype.kind not in "iuf" or rows.ndim != 2 or len(rows) != count or not np.isfinite(rows).all():
        got = f"an array of {rows.dtype} of shape {rows.shape}" if rows.ndim else short(vectors)
        raise EvidenceError(f"embeddings must give {count} vectors of finite numbers, all of one length, got {got}")
    return rows.astype(np.float64)


class _Offline:
    """Static vectors of word pieces, averaged; nothing is downloaded."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector per text."""
        vectors: list[list[float]] = self._model.embed(texts, norm=True).tolist()
        return vectors


@functools.cache
def offline_embeddings() -> TextEmbeddings:
    """WordLlama's embeddings with 256 dimensions, which need neither a network nor torch."""
    if importlib.util.find_spec(_PACKAGE) is None:
        raise MissingPackage(
            "this metric needs an embedding model: give one (any LangChain Embeddings), "
            "or pip install 'agentic-bayes[embeddings]'"
        )
    package: Any = importlib.import_module(_PACKAGE)
    # its weights and tokenizer lie next to its code: pointed there, it looks nowhere else
    folder = Path(package.__file__).parent
    return _Offline(package.WordLlama.load(cache_dir=folder, dim=_DIMENSIONS, disable_download=True))
