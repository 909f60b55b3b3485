"""The base class of all records: frozen, typed, and reporting every problem of a record at once."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Self, TypeGuard

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from agentic_bayes.errors import Problem, did_you_mean
from agentic_bayes.formatting import cut_text
from agentic_bayes.records.wire.strict_json import MAX_DEPTH, strict_json

NOT_AN_OBJECT = "must be an object"
_WORDING = {
    "bool_type": "must be true or false",
    "missing": "is missing and must be given",
    **dict.fromkeys(("dict_type", "model_attributes_type", "model_type"), NOT_AN_OBJECT),
    "string_type": "must be text",
    "tuple_type": "must be a list",
}
# marks an error that already has our wording, so that an enclosing record keeps it
_OURS = "record."


def short(value: object, limit: int = 60) -> str:
    """Show any value in at most `limit` characters, whatever its size, depth or ``repr``."""
    shortener = reprlib.Repr()
    shortener.maxlevel, shortener.maxstring, shortener.maxlong, shortener.maxother = 3, limit, limit, limit
    try:
        text = "null" if value is None else shortener.repr(value)
    except Exception:  # a value's own repr may raise anything
        text = f"a value of type {type(value).__name__}"
    text = text.encode("utf-8", "backslashreplace").decode()
    return cut_text(text, limit)


def field_path(location: Sequence[str | int]) -> str:
    """The path of a field within a record as text: ``conversation[0].agentic.tools_used[1].parameters``."""
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return path.removeprefix(".")


def problem_at(location: Sequence[str | int], message: str, value: object) -> InitErrorDetails:
    """One problem at one place of a record, for `ValidationError.from_exception_data`."""
    # pass the message as a value: braces in it must not be read as a template
    error = PydanticCustomError(f"{_OURS}problem", "{message}", {"message": message})
    return InitErrorDetails(type=error, loc=tuple(location), input=value)


def problems_of(error: ValidationError, *, source: str, where: str) -> tuple[Problem, ...]:
    """List the problems of a record's validation error."""
    details = error.errors(include_url=False, include_input=False, include_context=False)
    return tuple(Problem(source, where, field_path(detail["loc"]), detail["msg"]) for detail in details)


def _text(value: str) -> str:
    """Refuse text that UTF-8 cannot encode: cutting an emoji in two leaves half a surrogate pair."""
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError("must be Unicode text without lone surrogates") from None
    return value


def _identifier(value: object) -> object:
    """Ids are text; many logs use whole numbers, which become their digits."""
    if is_whole(value):
        return str(value)
    if isinstance(value, str) and not value.strip():
        raise ValueError("must not be blank")
    return value


def _without_nul(value: str) -> str:
    """Ids become names of files and labels of arrays, which cannot hold NUL."""
    if "\0" in value:
        raise ValueError("must not contain the character NUL")
    return value


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether this is a number of JSON: a boolean is none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_whole(value: object) -> TypeGuard[int]:
    """Whether this is a whole number of JSON, written without a fraction."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_finite(value: object) -> bool:
    """Whether this is a number of JSON that a float can hold."""
    try:
        return is_number(value) and math.isfinite(value)
    except OverflowError:  # a whole number beyond the largest float
        return False


def _number(value: object) -> object:
    """Accept finite JSON numbers only: no booleans, no digits in quotes."""
    if not is_finite(value):
        raise ValueError("must be a finite number" if is_number(value) else "must be a number")
    return value


def is_share(value: object) -> bool:
    """Whether this is a number in [0, 1], and not a boolean."""
    return is_number(value) and 0 <= value <= 1


def _probability(value: object) -> object:
    if not is_share(value):
        raise ValueError("must be a number in [0, 1]")
    return value


def _whole(value: object) -> object:
    """Accept whole numbers only: 1 and 1.0, but not true, 1.5 or "1"."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not is_whole(value):
        raise ValueError("must be a whole number")
    return value


def _from_zero(value: int) -> int:
    if value < 0:
        raise ValueError("must be a whole number ≥ 0")
    return value


def _arguments(value: object) -> object:
    """Arguments as a dict: JSON text is parsed; None and blank text mean "no arguments"."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return {}
    found = value
    if isinstance(value, str):
        try:
            found = strict_json(value, finite=False)
        except ValueError as error:
            raise ValueError(f"must be an object, or an object as JSON text ({error})") from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ValueError("must be an object (argument name → value)")
    return found


def _unfit(value: object, location: tuple[str | int, ...]) -> Iterator[InitErrorDetails]:
    """Find values that JSON cannot hold: non-finite numbers, broken text, endless nesting."""
    if isinstance(value, str):
        try:
            _text(value)
        except ValueError as error:
            yield problem_at(location, f"{error}, got {short(value)}", value)
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield problem_at(location, f"must be a finite number (JSON has no NaN), got {value!r}", value)
    elif isinstance(value, (dict, list, tuple)):
        if len(location) >= MAX_DEPTH:
            yield problem_at(location[:3], f"must not be nested deeper than {MAX_DEPTH} levels", None)
            return
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(key, str) and not key.isascii():
                yield from _unfit(key, (*location, short(key)))
            if isinstance(item, (float, dict, list, tuple)) or (isinstance(item, str) and not item.isascii()):
                yield from _unfit(item, (*location, key if isinstance(key, (str, int)) else short(key)))


def _json(value: Any) -> Any:
    if isinstance(value, (str, float, dict, list, tuple)):
        problems = list(_unfit(value, ()))
        if problems:
            raise ValidationError.from_exception_data("value", problems)
    return value


def field_of(data: Any, name: str, default: object = None) -> Any:
    """A field of a record, or of the dict that a record is built from."""
    return data.get(name, default) if isinstance(data, dict) else getattr(data, name, default)


Text = Annotated[str, Field(strict=True), AfterValidator(_text)]
Identifier = Annotated[Text, BeforeValidator(_identifier)]
Id = Annotated[Identifier, AfterValidator(_without_nul)]
Number = Annotated[float, BeforeValidator(_number)]
Probability = Annotated[float, BeforeValidator(_probability)]
WholeNumber = Annotated[int, BeforeValidator(_whole)]
TrialNumber = Annotated[WholeNumber, AfterValidator(_from_zero)]  # trials count from 0
Json = Annotated[Any, AfterValidator(_json)]
Arguments = Annotated[dict[str, Any], BeforeValidator(_arguments), AfterValidator(_json)]
Metadata = Annotated[dict[str, Any], AfterValidator(_json)]


class Record(BaseModel):
    """Base of the records: frozen; unknown keys are refused with the nearest valid name.

    One validation reports everything that is wrong with a record: unknown keys, fields of a wrong type or
    value, and whatever `_across_fields` finds.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="wrap")
    @classmethod
    def _all_problems(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            record = handler(data)
        except ValidationError as error:
            problems = [cls._worded(detail) for detail in error.errors(include_url=False)]
            problems += cls._across_fields(data) if isinstance(data, dict) else []
        else:
            problems = cls._across_fields(record)
        if problems:
            raise ValidationError.from_exception_data(cls.__name__, problems)
        return record

    @classmethod
    def _across_fields(cls, data: Any) -> list[InitErrorDetails]:
        """Problems that involve several fields, in a record or in the dict it is built from."""
        return []

    @classmethod
    def _worded(cls, detail: ErrorDetails) -> InitErrorDetails:
        """Reword a pydantic problem: what is allowed, and what came."""
        kind, location, value = detail["type"], detail["loc"], detail["input"]
        if kind.startswith(_OURS):
            return problem_at(location, detail["msg"], value)
        if kind == "extra_forbidden":
            return problem_at(location, cls._unknown_key(str(location[-1])), value)
        message = _WORDING.get(kind, detail["msg"])
        if kind == "value_error":
            message = str(detail["ctx"]["error"])
        return problem_at(location, message if kind == "missing" else f"{message}, got {short(value)}", value)

    @classmethod
    def _unknown_key(cls, key: str) -> str:
        known: list[str] = []
        for name, field in cls.model_fields.items():
            aliases = field.validation_alias
            names = [str(a) for a in aliases.choices] if isinstance(aliases, AliasChoices) else [name]
            if key in names:
                return f"{' and '.join(map(repr, names))} are the same field: give only {name!r}"
            known += names
        return f"unknown key {short(key)}: {did_you_mean(key, known)}"
