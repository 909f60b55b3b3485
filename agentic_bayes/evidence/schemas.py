"""JSON schemas of tool arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agentic_bayes.errors import InvalidArgument
from agentic_bayes.records.base import field_path, short
from agentic_bayes.records.matchers import compiled_pattern

__all__ = ["schema_check"]

_SHOWN = 120


def schema_check(tool: str, schema: object) -> Callable[[Mapping[str, Any]], str | None]:
    """A function that gives what is wrong with the arguments of a call.

    Parameters
    ----------
    tool : str
        Name of the tool, for messages.
    schema : mapping
        JSON schema of the object that holds the arguments.

    Returns
    -------
    callable
        Arguments → what is wrong, or None.

    Raises
    ------
    InvalidArgument
        If it is no JSON schema, or has a pattern that RE2 (which is linear in time) cannot read.
    """
    if not isinstance(schema, Mapping):
        raise InvalidArgument(f"schemas[{tool!r}] must be a JSON schema (an object), got {short(schema)}")
    from jsonschema import exceptions, validators

    kind = validators.validator_for(schema)
    try:
        kind.check_schema(dict(schema))
        _check_patterns(schema)
    except (exceptions.SchemaError, ValueError) as error:
        reason = getattr(error, "message", str(error))
        raise InvalidArgument(f"schemas[{tool!r}] must be a JSON schema: {short(reason, 200)}") from None
    checker = validators.extend(kind, {"pattern": _pattern})(schema)  # type: ignore[no-untyped-call]

    def check(arguments: Mapping[str, Any]) -> str | None:
        found = exceptions.best_match(checker.iter_errors(arguments))
        if found is None:
            return None
        where = field_path(tuple(found.absolute_path))
        wrong = found.message if len(found.message) <= _SHOWN else f"{found.message[:_SHOWN]}…"
        return f"{where}: {wrong}" if where else wrong

    return check


def _pattern(_: Any, pattern: str, instance: Any, __: Any) -> Iterator[Exception]:
    from jsonschema import ValidationError

    if isinstance(instance, str) and not compiled_pattern(pattern).search(instance):
        yield ValidationError(f"{short(instance)} does not match {short(pattern)}")


def _check_patterns(schema: Any) -> None:
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key == "pattern" and isinstance(value, str):
                compiled_pattern(value)
            _check_patterns(value)
    elif isinstance(schema, (list, tuple)):
        for item in schema:
            _check_patterns(item)
