"""Checks tool arguments against JSON schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agentic_bayes.errors import EvidenceError, InvalidArgument
from agentic_bayes.records.base import field_path, short
from agentic_bayes.records.matchers import compiled_pattern
from agentic_bayes.records.wire.strict_json import MAX_DEPTH, too_deep

_SHOWN = 120


def schema_check(tool: str, schema: object) -> Callable[[Mapping[str, Any]], str | None]:
    """A function that says how the arguments of a call violate the schema, or returns None."""
    if not isinstance(schema, Mapping):
        raise InvalidArgument(f"schemas[{tool!r}] must be a JSON schema (an object), got {short(schema)}")
    if too_deep(schema):
        raise InvalidArgument(f"schemas[{tool!r}] must be a JSON schema nested at most {MAX_DEPTH} levels deep")
    from jsonschema.exceptions import best_match

    try:
        checker = _checker(schema)
        next(checker.iter_errors({}), None)  # finds schemas that refer only to themselves
    except Exception as error:  # whatever the library raises for an invalid schema
        reason = getattr(error, "message", None) or str(error) or type(error).__name__
        raise InvalidArgument(f"schemas[{tool!r}] must be a JSON schema: {short(reason, 200)}") from None

    def check(arguments: Mapping[str, Any]) -> str | None:
        try:
            found = best_match(checker.iter_errors(arguments))
        except Exception as error:
            raise EvidenceError(f"the schema of {tool} cannot be applied: {type(error).__name__}: {error}") from error
        if found is None:
            return None
        where = field_path(tuple(found.absolute_path))
        wrong = found.message if len(found.message) <= _SHOWN else f"{found.message[:_SHOWN]}…"
        return f"{where}: {wrong}" if where else wrong

    return check


def _checker(schema: Mapping[str, Any]) -> Any:
    """A validator that looks nothing up elsewhere and whose patterns take linear time."""
    from jsonschema import validators
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT202012

    name = schema.get("$schema")
    kind: Any = validators.Draft202012Validator
    if name is not None:
        unknown: Any = object()
        kind = validators.validator_for({"$schema": str(name)}, default=unknown)
        if kind is unknown:
            raise ValueError(f"unknown $schema {short(name)}")
    kind.check_schema(dict(schema))
    registry: Any = Registry()
    resource: Any = Resource.from_contents(dict(schema), default_specification=DRAFT202012)
    resolver = registry.with_resource("", resource).resolver()
    for key, value in _parts(schema):
        if key == "patternProperties":
            raise ValueError("patternProperties is not supported, because its patterns could take endless time")
        if key == "pattern" and isinstance(value, str):
            compiled_pattern(value)
        if key in ("$ref", "$dynamicRef") and isinstance(value, str):
            if not value.startswith("#"):
                raise ValueError(f"$ref must refer to a part of the schema (#/…), got {short(value)}")
            resolver.lookup(value)
    linear = validators.extend(kind, {"pattern": _pattern})  # type: ignore[no-untyped-call]
    return linear(dict(schema), registry=registry)


def _pattern(_: Any, pattern: str, instance: Any, __: Any) -> Iterator[Exception]:
    from jsonschema import ValidationError

    if isinstance(instance, str) and not compiled_pattern(pattern).search(instance):
        yield ValidationError(f"{short(instance)} does not match {short(pattern)}")


# members whose values are data, not schemas
_DATA = ("default", "const", "enum", "examples")


def _parts(schema: Any) -> Iterator[tuple[str, Any]]:
    """Every member of a schema and of its parts."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            yield from part.items()
            waiting += [value for key, value in part.items() if key not in _DATA]
        elif isinstance(part, (list, tuple)):
            waiting += part
