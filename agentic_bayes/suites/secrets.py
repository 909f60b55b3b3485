"""The secrets of a suite: variables, keys and headers that it uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from agentic_bayes.errors import InvalidArgument, SuiteError
from agentic_bayes.redaction import SHORTEST, Secrets, keys_in, secrets_in


def suite_secrets(
    declared: Any, variables: Mapping[str, str], environment: Mapping[str, str], public: Iterable[str]
) -> Secrets:
    """The secrets in a suite, its variables (but those in its `public` names, unless marked) and the environment."""
    marks = declared.get("variables") if isinstance(declared, dict) else None
    marked = {
        name: mark.get("secret")
        for name, mark in (marks if isinstance(marks, dict) else {}).items()
        if isinstance(mark, dict)
    }
    shown = [text.lower() for text in public]
    names = secrets_in(declared) | keys_in(environment)
    for name, value in variables.items():
        mark = marked.get(name)
        if mark is None:
            mark = len(value) >= SHORTEST and not any(value.lower() in text for text in shown)
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
