"""The native format: conversations as a JSON array, one JSON object or JSON Lines, plain or gzipped.

The first character decides, not the file's name: ``[`` begins an array; ``{`` begins records that each end at a line
end, so one object spread over many lines also counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BufferedReader
from itertools import count

from agentic_bayes.records.base import short
from agentic_bayes.records.formats import unknown
from agentic_bayes.records.wire.json_text import (
    NO_CONVERSATION,
    NOT_JSON,
    REST_LOST,
    BrokenJson,
    JsonText,
    Parsed,
    broken,
    one_record,
)


def parse(stream: BufferedReader, name: str = "") -> Iterator[Parsed]:
    """The records of one file."""
    if looks := unknown.by_bytes(stream, name):
        yield broken("", looks)
        return
    text = JsonText(stream)
    first = text.peek()
    if first == "[":
        yield from _array(text)
    elif first == "{":
        yield from _lines(text)
    elif first:
        looks = unknown.by_line(text.ahead(2000), name)
        wrong = f"{NOT_JSON}, got {short(text.ahead(60))}"
        yield broken(f"line {text.line}", f"{wrong}; {looks}" if looks else wrong)
    elif not text.fault:
        yield broken("", NO_CONVERSATION)
    # report unreadable text even if no record was lost
    if text.fault:
        yield broken(*text.fault)


def _array(text: JsonText) -> Iterator[Parsed]:
    text.step()
    if text.peek() == "]":
        yield broken("", NO_CONVERSATION)
    else:
        for index in count():
            text.peek()
            try:
                yield one_record(text, f"index {index}")
            except BrokenJson as error:
                yield broken(f"index {index}", f"{error}{REST_LOST}")
                return
            if text.peek() != ",":
                break
            text.step()
        if text.peek() != "]":
            if not text.fault:
                got = short(text.ahead(60)) if text.peek() else "the end of the file"
                yield broken(f"index {index}", f"must be followed by ',' or ']', got {got}")
            return
    text.step()
    if text.peek():
        yield broken(f"line {text.line}", f"nothing may follow the array, got {short(text.ahead(60))}")


def _lines(text: JsonText) -> Iterator[Parsed]:
    while text.peek():
        where = f"line {text.line}"
        try:
            yield one_record(text, where)
        except BrokenJson as error:
            yield broken(where, str(error))
            text.skip_broken(one_line=error.one_line)
            continue
        if text.peek_in_line() not in ("", "\n"):
            got = short(text.ahead(60))
            yield broken(f"line {text.line}", f"must hold only one record, got {got} after it")
            text.skip_line()
