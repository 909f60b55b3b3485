"""tau2 results."""

from __future__ import annotations

from collections.abc import Iterator
from io import BufferedReader

from agentic_bayes.records.formats.json_text import Parsed
from agentic_bayes.records.formats.layout import Origin, Shape

__all__ = ["read", "recognises"]

NAME = "tau2"


def recognises(shape: Shape) -> bool:
    """Whether a file of this shape is in this format."""
    return False


def read(stream: BufferedReader, origin: Origin) -> Iterator[Parsed]:
    """The attempts of a file."""
    return iter(())
