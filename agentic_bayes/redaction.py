"""Replaces secret values by their names in everything that is written or printed, in whatever encoding."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import islice
from types import ModuleType
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, urlsplit

SHORTEST = 8  # characters; a shorter value is secret only where it is marked, since it may be part of anything
KEYS = re.compile(
    r"((api|access|private|secret|signing|subscription|master|session)[_-]?key|token|secret|password|passwd|passphrase"
    r"|credentials?|authorization|bearer|cookie|auth_header)$",
    re.IGNORECASE,
)
"""Names of values that are secret."""

# headers that tell nobody anything
_PUBLIC_HEADERS = frozenset(
    {"accept", "accept-charset", "accept-encoding", "accept-language", "connection", "content-type", "user-agent"}
)
_CUTS = ("…", "...")  # what shortened texts have where they were cut
_DEEPEST, _MOST_ITEMS = 3, 10_000  # objects within a grader or model, and items of each, that are looked into
_BASE64 = 3  # bytes that base64 writes as four characters
_GAP = r"(?:\s|\\[nrt])"  # where a text was wrapped, also as JSON writes it
_WRITTEN_GAPS = re.compile(r"(?:\\[nrt])+")


class Secrets:
    """Secret values and the names that replace them."""

    def __init__(self, names: Mapping[str, str]) -> None:
        """Take names by value; a value that is part of another is replaced where the other is not."""
        self._names: dict[str, str] = {}
        self._plain: dict[str, str] = {}  # the same in lower case and without gaps, unless too short for that
        for value, name in sorted(names.items(), key=lambda item: -len(item[0])):
            for written in _spellings(value):
                self._names.setdefault(written, name)
                self._plain.setdefault(_plain(written), name)
        self._short = [written for written in self._plain if len(_packed(written)) < SHORTEST]

    @cached_property
    def _any(self) -> re.Pattern[str]:
        patterns = []
        for written in sorted(self._names, key=lambda text: (-len(text), text)):
            packed = _packed(written)
            long = len(packed) >= SHORTEST
            patterns.append(f"(?i:{f'{_GAP}*'.join(map(re.escape, packed))})" if long else re.escape(written))
        return re.compile("|".join(patterns))

    def _name(self, match: re.Match[str]) -> str:
        return self._plain.get(_plain(match[0]), "<a secret>")

    def __bool__(self) -> bool:
        """Whether there is anything to hide."""
        return bool(self._names)

    def in_text(self, text: str) -> str:
        """The text with names in place of secrets: in any case, wrapped or not, and of the rest of one that was cut."""
        found = text
        plain = _packed(text).lower()
        # nearly never, and soon known
        if any(written in plain for written in self._plain) or any(written in text for written in self._short):
            found = self._any.sub(self._name, text)
        return self._without_remains(found) if any(cut in found for cut in _CUTS) else found

    def _without_remains(self, text: str) -> str:
        """The text without beginnings of secrets before a cut, and ends of them after it."""
        for written, name in self._names.items():
            if written[:SHORTEST] not in text and written[-SHORTEST:] not in text:
                continue
            for size in range(len(written) - 1, SHORTEST - 1, -1):
                for cut in _CUTS:
                    text = text.replace(written[:size] + cut, name + cut).replace(cut + written[-size:], cut + name)
        return text

    def hide(self, value: Any) -> Any:
        """A JSON value with names in place of secrets, at any depth; itself if it holds none."""
        if not self:
            return value
        if isinstance(value, str):
            return self.in_text(value)
        if isinstance(value, Mapping):
            return {self.hide(key): self.hide(part) for key, part in value.items()}
        if isinstance(value, (list, tuple)):
            return (tuple if isinstance(value, tuple) else list)(map(self.hide, value))
        return value


def _packed(text: str) -> str:
    """The text without gaps."""
    packed = "".join(text.split())
    return _WRITTEN_GAPS.sub("", packed) if "\\" in packed else packed


def _plain(written: str) -> str:
    """A secret as it is looked for: in lower case and without gaps, unless what is left may be part of anything."""
    packed = _packed(written)
    return packed.lower() if len(packed) >= SHORTEST else written


def _spellings(value: str) -> Iterator[str]:
    """A value as texts may hold it: plain, escaped as in JSON, Python, URLs and HTML, in hexadecimals and in base64."""
    once = [value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]]
    yield from once
    yield from (json.dumps(text)[1:-1] for text in once[1:])  # JSON text within JSON
    for quoted in (quote(value, safe=""), quote(value), quote_plus(value)):
        yield quoted
        yield re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), quoted)
    yield html.escape(value)
    yield html.escape(value, quote=False)
    content = value.encode("utf-8", "surrogatepass")
    yield content.hex()
    for before in range(_BASE64):  # where it begins within the bytes that are encoded, as in "user:password"
        spare = (before + len(content)) % _BASE64
        encoded = base64.b64encode(b"\0" * before + content).decode().rstrip("=")
        whole = encoded[(before * 4 + 2) // _BASE64 if before else 0 :]
        whole = whole[:-1] if spare else whole  # its last character depends on what follows
        if len(whole) >= SHORTEST:
            yield whole
            yield whole.replace("+", "-").replace("/", "_")


def keys_in(environment: Mapping[str, str]) -> dict[str, str]:
    """The keys and the passwords of URLs in an environment, which models and agents read: value → ``${NAME}``."""
    return {
        secret: f"${{{name}}}"
        for name, value in environment.items()
        for secret in ([value] if KEYS.search(name) or name.upper().endswith("_KEY") else _in_url(value))
        if len(secret) >= SHORTEST
    }


def secrets_in(declared: Any) -> dict[str, str]:
    """Keys, passwords and headers in a declaration, or in the fields of an object: value → ``<its name there>``."""
    found = ((where, _text(value)) for where, value in _secret_values(declared, "", _DEEPEST))
    return {value: f"<{where}>" for where, value in found if len(value) >= SHORTEST}


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _secret_values(value: Any, where: str, depth: int) -> Iterator[tuple[str, object]]:
    """Values of headers, keys and passwords, each with where it stands, in objects down to this depth."""
    if isinstance(value, (list, tuple)):
        for i, item in enumerate(value[:_MOST_ITEMS]):
            yield from _secret_values(item, f"{where}[{i}]", depth)
    elif hasattr(value, "get_secret_value"):  # pydantic's types, which models use
        yield where, value.get_secret_value()
    elif isinstance(value, str):
        yield from ((where, secret) for secret in _in_url(value))
    elif isinstance(value, dict):
        for key, item in islice(value.items(), _MOST_ITEMS):
            at = f"{where}.{key}".removeprefix(".")
            if str(key).lower().endswith("headers") and (headers := _pairs(item)):
                for name, header in headers:
                    if name.lower() not in _PUBLIC_HEADERS:
                        yield f"{at}.{name}", header
                        yield f"{at}.{name}", header.partition(" ")[2]  # after "Bearer"
            elif KEYS.search(str(key)) and isinstance(item, (str, bytes)):
                yield at, item
            else:
                yield from _secret_values(item, at, depth)
    elif depth and not isinstance(value, (type, ModuleType)):
        slots = (name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()))
        fields = {name: getattr(value, name) for name in slots if name[:2] != "__" and hasattr(value, name)}
        fields |= getattr(value, "__dict__", {})
        for pydantic in ("__pydantic_private__", "__pydantic_extra__"):
            fields |= getattr(value, pydantic, None) or {}
        yield from _secret_values(fields, "", depth - 1)


def _pairs(headers: Any) -> list[tuple[str, str]]:
    """Headers in a mapping of any kind, or in a list of pairs; empty for anything else."""
    items = list(headers.items()) if isinstance(headers, Mapping) else headers
    if not isinstance(items, (list, tuple)) or not all(
        isinstance(one, (list, tuple)) and len(one) == 2 for one in items
    ):
        return []
    return [(_text(name), _text(value)) for name, value in items]


def _in_url(url: str) -> Iterator[str]:
    """The password of a URL, and keys in its query."""
    if "://" not in url:
        return
    try:
        parts = urlsplit(url)
        if parts.password:
            yield parts.password
    except ValueError:
        return
    for name, value in parse_qsl(parts.query):
        if KEYS.search(name) or name.lower() == "key":
            yield value
