"""Read JSON text piece by piece, plain or gzipped, so that no file is ever wholly in memory.

`Parsed` is one record, or why it could not be read. `parts` yields the members of an object one by one and, for members
that hold a list of records, the items one by one: some formats keep everything in one large object.
"""

from __future__ import annotations

import codecs
import json
import re
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from io import BufferedReader
from itertools import count
from typing import Any

from agentic_bayes.records.base import field_path, short
from agentic_bayes.records.wire.strict_json import MAX_DEPTH, repeated_keys
from agentic_bayes.records.wire.unpacking import unpacked_gzip

NO_VALUE = object()
"""Stands for a record that could not be read."""

REST_LOST = "; the rest was not checked"
"""Ends the message of a problem after which a file cannot be read on."""

NOT_JSON = "must begin with '[' or '{' (JSON)"
NO_CONVERSATION = "holds no conversation"
"""How the messages begin about text that is no JSON, and about a file without conversations."""

_CHUNK = 1 << 16
_GZIP = b"\x1f\x8b"
_ESCAPED = re.compile("[\udc80-\udcff]")
_SPACE = re.compile(r"[ \t\n\r]*")
_SPACE_IN_LINE = re.compile(r"[ \t\r]*")
# a parse error this close to the end may be a token that continues in the next piece
_LONGEST_TOKEN = 16


@dataclass(frozen=True, slots=True)
class Parsed:
    """One record, or why it could not be read."""

    where: str  # ``"line 3"`` or ``"index 2"``
    # the record as an object in the native format, not yet validated; `NO_VALUE` if there is none
    value: Any = NO_VALUE
    faults: tuple[tuple[str, str], ...] = ()  # (field path, message) of every problem
    # the same for warnings, which do not stop the record from being read
    doubts: tuple[tuple[str, str], ...] = ()
    file: str = ""  # the file that has the faults, if it is not the file being read
    # the objects of the file that became the record, in the order in which `ReadOptions.fields` looks into them
    raw: tuple[Any, ...] = ()


class BrokenJson(Exception):
    """A value that cannot be parsed; `one_line` if it certainly ends on the line where it began."""

    def __init__(self, message: str, *, one_line: bool = False) -> None:
        super().__init__(message)
        self.one_line = one_line


class _Repeating(dict[str, Any]):
    """A JSON object that repeats a key."""

    repeated: tuple[str, ...] = ()


class JsonText:
    """The text of a byte stream, read only as far as needed; `fault` says where and why a damaged one ends early."""

    def __init__(self, stream: BufferedReader) -> None:
        self._stream = unpacked_gzip(stream) if stream.peek(2)[:2] == _GZIP else stream
        # a byte that is no UTF-8 becomes half a surrogate pair, which text cannot hold otherwise
        self._utf8 = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._bytes = 0
        self._before = 0  # how many characters were dropped from the text
        self._bad: dict[int, int] = {}  # which characters of the whole file are such bytes, and where in the file
        self._text = ""
        self._at = 0
        self._started = False
        self._ended = False
        self._repeats = False
        self._failure: Exception | None = None
        self._json = json.JSONDecoder(object_pairs_hook=self._object)
        self.line = 1
        self.fault: tuple[str, str] | None = None
        self.not_utf8 = ""  # what is wrong with the bytes of the last value

    def _more(self) -> bool:
        """Read the next piece; False at the end."""
        if self._ended:
            return False
        # double what is waiting: a long record is then scanned a few times, not once per piece
        size = max(_CHUNK, len(self._text) - self._at)
        piece = ""
        try:
            data = self._read(size)
            self._ended = not data
            waiting = len(self._utf8.getstate()[0])
            piece = self._utf8.decode(data, final=self._ended)
            self._note_bad(piece, self._bytes - waiting)
            self._bytes += len(data)
            if 0 in self._bad.values():
                self.fault = ("byte 0", f"{_wrong_byte(ord(piece[0]) - 0xDC00)} (UTF-16?)")
                self._ended, piece = True, ""
        except EOFError:
            self._ended = True
            self.fault = ("", "the gzip data ends too early: the file is cut off")
        except (OSError, zlib.error) as error:
            self._ended = True
            self.fault = ("", f"cannot be read: {error}")
        if not self._started and piece:
            self._started = True
            if "\0" in piece[:4]:
                self.fault = ("byte 0", "must be UTF-8 text, got the character NUL (UTF-16?)")
                self._ended, piece = True, ""
            piece = piece.removeprefix("\ufeff")
        self._before += self._at
        self._text = self._text[self._at :] + piece
        self._at = 0
        return True

    def _note_bad(self, piece: str, begin: int) -> None:
        """Note the bytes in a piece that are no UTF-8; its first byte is at `begin`."""
        if piece.isascii():
            return
        first = self._before + len(self._text)
        done = 0
        for match in _ESCAPED.finditer(piece):
            begin += len(piece[done : match.start()].encode("utf-8", "surrogateescape"))
            done = match.start()
            self._bad[first + match.start()] = begin

    def bad_byte(self) -> str:
        """What is wrong with the next byte, if it is no UTF-8."""
        return self._bad_in(self._at + 1)

    def _bad_in(self, end: int) -> str:
        """What is wrong with the bytes from here to `end`."""
        match = _ESCAPED.search(self._text, self._at, end) if self._bad else None
        if match is None:
            return ""
        offset = self._bad.get(self._before + match.start(), 0)
        return f"{_wrong_byte(ord(match[0]) - 0xDC00)} at byte {offset}"

    def _read(self, size: int) -> bytes:
        """Up to `size` of the next bytes; empty at the end."""
        if self._failure:
            raise self._failure
        pieces, missing = [self._stream.read1(size)], size
        if not self._bytes and pieces[0].startswith(_GZIP):
            raise OSError("the file was gzipped twice; unpack it once first")
        # gzip unpacks in small pieces, and a long record would be scanned again for each
        while pieces[-1] and (missing := missing - len(pieces[-1])) > 0 and size > _CHUNK:
            try:
                pieces.append(self._stream.read1(missing))
            except (EOFError, OSError, zlib.error) as error:
                self._failure = error
                break
        return b"".join(pieces)

    def _move(self, end: int) -> None:
        self.line += self._text.count("\n", self._at, end)
        self._at = end

    def peek(self) -> str:
        """The next character that is not white space, or "" at the end."""
        return self._next(_SPACE)

    def peek_in_line(self) -> str:
        """The same, but the end of the line counts as a character."""
        return self._next(_SPACE_IN_LINE)

    def _next(self, skipped: re.Pattern[str]) -> str:
        while True:
            space = skipped.match(self._text, self._at)
            self._move(space.end() if space else self._at)
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def ahead(self, length: int) -> str:
        """Up to `length` of the next characters, within the line."""
        return self._text[self._at : self._at + length].split("\n", 1)[0].rstrip("\r")

    def step(self) -> None:
        """Skip one character."""
        self._move(self._at + 1)

    def skip_line(self) -> None:
        """Skip the rest of the line."""
        while (end := self._text.find("\n", self._at)) < 0:
            self._at = len(self._text)
            if not self._more():
                return
        self._move(end + 1)

    def skip_broken(self, *, one_line: bool) -> None:
        """Skip the rest of the line and, unless the broken value is `one_line`, the lines that begin no object."""
        self.skip_line()
        while not (one_line or self._begins_object()):
            self.skip_line()

    def _begins_object(self) -> bool:
        """Whether an object or the end of the text comes next."""
        return (self._at >= len(self._text) and not self._more()) or self._text.startswith("{", self._at)

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
        self._repeats = True
        marked = _Repeating(found)
        marked.repeated = repeated_keys(pairs)
        return marked

    def value(self) -> tuple[Any, bool]:
        """The next JSON value, and whether any object in it repeats a key."""
        while True:
            self._repeats = False
            try:
                value, end = self._json.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                cut = error.msg.startswith("Unterminated") or error.pos >= len(self._text) - _LONGEST_TOKEN
                if cut and self._more():
                    continue
                raise self._broken(error, cut=cut) from None
            except RecursionError:
                raise BrokenJson(f"must not be nested deeper than {MAX_DEPTH} levels") from None
            except ValueError:  # int() refuses more than 4,300 digits
                raise BrokenJson("holds a number with too many digits") from None
            # a number at the end of the text may continue
            if isinstance(value, (int, float)) and end == len(self._text) and self._more():
                continue
            self.not_utf8 = self._bad_in(end)
            self._move(end)
            return value, self._repeats

    def _broken(self, error: json.JSONDecodeError, *, cut: bool) -> BrokenJson:
        if cut and self.fault:
            place, message = self.fault
            self.fault = None
            return BrokenJson(f"{message} at {place}" if place else message)
        lines = self._text.count("\n", self._at, error.pos)
        if wrong := self._bad_in(error.pos + 1):
            return BrokenJson(wrong, one_line=not lines)
        if self._ended and (error.pos >= len(self._text.rstrip()) or error.msg.startswith("Unterminated")):
            return BrokenJson("is incomplete: the file ends in the middle of it", one_line=not lines)
        near = " ".join(self._text[max(self._at, error.pos - 20) : error.pos + 20].split())
        wrong = f"{error.msg.removesuffix(' at')} near {short(near)} (line {self.line + lines})"
        return BrokenJson(f"is not valid JSON: {wrong}", one_line=not lines)


def _wrong_byte(byte: int) -> str:
    return f"must be UTF-8 text, got byte 0x{byte:02X}"


def broken(where: str, message: str) -> Parsed:
    """A record that could not be read."""
    return Parsed(where, faults=(("", message),))


def one_record(text: JsonText, where: str) -> Parsed:
    """The next value, with a fault for every repeated key."""
    value, repeats = text.value()
    faults = tuple(_repeated_keys(value, ())) if repeats else ()
    if text.not_utf8:
        faults = (("", text.not_utf8), *faults)
    return Parsed(where, value, faults)


def _repeated_keys(value: Any, location: tuple[str | int, ...]) -> Iterator[tuple[str, str]]:
    if isinstance(value, _Repeating):
        for name in value.repeated:
            yield field_path((*location, name)), "must occur once, but the object gives this key twice"
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _repeated_keys(item, (*location, key))


@dataclass(frozen=True, slots=True)
class JsonPart:
    """A piece of a file: a value of an object or of a list, or an end."""

    document: int  # number of the object or list at the top of the file, from 0; JSON Lines holds many
    where: str  # ``"line 3"``, of the beginning of the document; empty for the first of a file
    # path of the value in the document, like ``("simulations", 4)``; empty at the end of the document
    path: tuple[str | int, ...]
    # the value; `NO_VALUE` if it could not be read; at the end of a document, an empty list or object of its kind
    value: Any = NO_VALUE
    # path within the value, and message, of everything that is wrong with the JSON
    faults: tuple[tuple[str, str], ...] = ()

    @property
    def place(self) -> str:
        """Where in the file it is, as text."""
        return joined(self.where, field_path(self.path))

    @property
    def inner_faults(self) -> tuple[tuple[str, str], ...]:
        """Its faults, with their paths counted from the top of the document."""
        if not self.faults:
            return ()
        outer = field_path(self.path)
        inner = ((path if not path or path.startswith("[") else f".{path}", text) for path, text in self.faults)
        return tuple((outer + path, text) for path, text in inner)


def joined(*places: str) -> str:
    """Places from outer to inner, with commas between those that are not empty."""
    return ", ".join(filter(None, places))


def parts(stream: BufferedReader, streamed: Collection[str]) -> Iterator[JsonPart]:
    """The pieces of a JSON or JSON Lines file."""
    text = JsonText(stream)
    for document in count():
        first = text.peek()
        if not first and document:
            break
        where = f"line {text.line}" if document else ""
        try:
            if first == "[":
                yield from _items(text, document, where, ())
            elif first == "{":
                yield from _members(text, document, where, streamed)
            elif first and (wrong := text.bad_byte()):
                raise BrokenJson(wrong, one_line=True)
            elif first:
                raise BrokenJson(f"{NOT_JSON}, got {short(text.ahead(60))}", one_line=True)
            elif not text.fault:
                raise BrokenJson("is empty")
            else:
                break
        except BrokenJson as error:
            message = str(error) if first != "[" else f"{error}{REST_LOST}"
            yield JsonPart(document, where or f"line {text.line}", (), faults=(("", message),))
            if first == "[":
                return
            text.skip_broken(one_line=error.one_line)
            continue
        yield JsonPart(document, where, (), [] if first == "[" else {})
        if text.peek_in_line() not in ("", "\n"):
            message = f"must end with the line, got {short(text.ahead(60))} after it"
            yield JsonPart(document, f"line {text.line}", (), faults=(("", message),))
            text.skip_line()
    # report unreadable text even if no record was lost
    if text.fault:
        yield JsonPart(document, text.fault[0], (), faults=(("", text.fault[1]),))


def _items(text: JsonText, document: int, where: str, path: tuple[str | int, ...]) -> Iterator[JsonPart]:
    """The items of the list that begins here."""
    text.step()
    if text.peek() == "]":
        text.step()
        return
    for index in count():
        text.peek()
        parsed = one_record(text, "")
        yield JsonPart(document, where, (*path, index), parsed.value, parsed.faults)
        ending = text.peek()
        if ending not in (",", "]"):
            raise BrokenJson(_unfinished(text, f"{field_path((*path, index))} must be followed by ',' or ']'"))
        text.step()
        if ending == "]":
            return


def _members(text: JsonText, document: int, where: str, streamed: Collection[str]) -> Iterator[JsonPart]:
    """The members of the object that begins here."""
    text.step()
    seen: set[str] = set()
    if text.peek() == "}":
        text.step()
        return
    while True:
        if text.peek() != '"':
            raise BrokenJson(_unfinished(text, "must hold a key in double quotes"))
        key, _ = text.value()
        if text.not_utf8:
            raise BrokenJson(text.not_utf8)
        if text.peek() != ":":
            raise BrokenJson(_unfinished(text, f"{short(key)} must be followed by ':'"))
        text.step()
        if key in seen:
            fault = ("", "must occur once, but the object gives this key twice")
            yield JsonPart(document, where, (key,), faults=(fault,))
        seen.add(key)
        if text.peek() == "[" and key in streamed:
            yield JsonPart(document, where, (key,), [])
            yield from _items(text, document, where, (key,))
        else:
            parsed = one_record(text, "")
            yield JsonPart(document, where, (key,), parsed.value, parsed.faults)
        ending = text.peek()
        if ending not in (",", "}"):
            raise BrokenJson(_unfinished(text, f"{short(key)} must be followed by ',' or '}}'"))
        text.step()
        if ending == "}":
            return


def _unfinished(text: JsonText, rule: str) -> str:
    return f"{rule}, got {short(text.ahead(60))}" if text.peek() else "is incomplete: the file ends in the middle of it"
