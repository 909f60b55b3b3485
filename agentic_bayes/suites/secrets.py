"""The secrets of a suite: variables, keys and headers that it uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from agentic_bayes.errors import InvalidArgument, SuiteError
from agentic_bayes.redaction import KEYS, SHORTEST, Secrets, keys_in

_HEADERS = frozenset({"headers", "default_headers"})
# headers that tell nobody anything
_PUBLIC_HEADERS = frozenset(
    {"accept", "accept-charset", "accept-encoding", "accept-language", "connection", "content-type", "user-agent"}
)


def suite_secrets(
    declared: Any, variables: Mapping[str, str], environment: Mapping[str, str], public: Iterable[str] = ()
) -> Secrets:
    """The secrets in a suite as it was read, in the variables that it uses and among the keys of the environment.

    `public` are names and ids of the suite: a variable that is part of one is no secret unless it is marked as one.
    """
    marks = declared.get("variables") if isinstance(declared, dict) else None
    marked = {
        name: mark.get("secret")
        for name, mark in (marks if isinstance(marks, dict) else {}).items()
        if isinstance(mark, dict)
    }
    shown = list(public)
    names: dict[str, str] = {}
    for where, value in _declared_secrets(declared, ""):
        if len(value) >= SHORTEST:
            names[value] = f"<{where}>"
    names |= keys_in(environment)
    for name, value in variables.items():
        mark = marked.get(name)
        if mark is None:
            mark = len(value) >= SHORTEST and not any(value in text for text in shown)
        if mark and value:
            names[value] = f"${{{name}}}"
        elif not mark:
            names.pop(value, None)
    return Secrets(names)


@contextmanager
def errors_without(secrets: Secrets) -> Iterator[None]:
    """Keep secrets out of the messages of errors that end a command."""
    try:
        yield
    except SuiteError as error:
        hidden = [
            replace(one, field=secrets.in_text(one.field), message=secrets.in_text(one.message))
            for one in error.problems
        ]
        raise SuiteError(hidden) from None
    except InvalidArgument as error:
        if (text := secrets.in_text(str(error))) != str(error):
            raise InvalidArgument(text) from None
        raise


def _declared_secrets(value: Any, where: str) -> Iterator[tuple[str, str]]:
    """Values of headers, keys and passwords in a declaration, each with where it stands."""
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from _declared_secrets(item, f"{where}[{i}]")
    elif isinstance(value, str) and "://" in value:
        yield from _in_url(value, where)
    elif isinstance(value, dict):
        for key, item in value.items():
            at = f"{where}.{key}".removeprefix(".")
            if str(key).lower() in _HEADERS and isinstance(item, dict):
                for name, header in item.items():
                    if str(name).lower() not in _PUBLIC_HEADERS:
                        yield f"{at}.{name}", str(header)
                        yield f"{at}.{name}", str(header).partition(" ")[2]  # after "Bearer"
            elif KEYS.search(str(key)) and isinstance(item, str):
                yield at, item
            else:
                yield from _declared_secrets(item, at)


def _in_url(url: str, where: str) -> Iterator[tuple[str, str]]:
    """The password of a URL, and keys in its query."""
    try:
        parts = urlsplit(url)
        if parts.password:
            yield where, parts.password
    except ValueError:
        return
    for name, value in parse_qsl(parts.query):
        if KEYS.search(name) or name.lower() == "key":
            yield where, value
