"""Which format a file is in: told by what is in it, never by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from typing import Literal, get_args

from agentic_bayes.records.formats import inspect, langchain, openai, otel, tau2, tau_bench
from agentic_bayes.records.formats.json_text import Parsed, parts
from agentic_bayes.records.formats.layout import STREAMED, Origin, Shape
from agentic_bayes.records.formats.zip_members import begins_zip

__all__ = ["FORMATS", "Format", "Reader", "format_of", "reader_of"]

Format = Literal["auto", "native", "tau-bench", "tau2", "inspect", "otel", "openai", "langchain"]
FORMATS = get_args(Format)


@dataclass(frozen=True, slots=True)
class Reader:
    """How one format is told from others, and read.

    Attributes
    ----------
    recognises : callable
        Whether a file of this `Shape` is in this format.
    read : callable
        Gives the records of its bytes.
    """

    recognises: Callable[[Shape], bool]
    read: Callable[[BufferedReader, Origin], Iterator[Parsed]]


# in the order in which they are tried
_READERS: dict[str, Reader] = {
    module.NAME: Reader(module.recognises, module.read)
    for module in (tau2, tau_bench, inspect, otel, langchain, openai)
}


def format_of(stream: BufferedReader) -> str:
    """The format of a file; ``native`` where it is like none of the others.

    Parameters
    ----------
    stream : io.BufferedReader
        The bytes of the file; it is read only until the format is known.

    Returns
    -------
    str
    """
    if begins_zip(stream):  # of these formats, only Inspect's is packed so; its reader says what is missing
        return inspect.NAME
    shape = Shape()
    for part in parts(stream, STREAMED):
        if part.document or part.faults:
            break
        shape.take(part)
        for name, reader in _READERS.items():
            if reader.recognises(shape):
                return name
        if shape.is_list or shape.complete or NATIVE in shape.keys:
            break
    return "native"


def reader_of(name: str) -> Reader:
    """How this format is read.

    Parameters
    ----------
    name : str
        Any of `FORMATS` but ``auto`` and ``native``.

    Returns
    -------
    Reader
    """
    return _READERS[name]


NATIVE = "conversation"
"""The member that only the native format has at the top."""
