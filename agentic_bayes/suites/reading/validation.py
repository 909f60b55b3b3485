"""Validate what a suite's YAML declares; problems are in this package's words, each with its line."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from agentic_bayes.errors import DoubtfulRecords, did_you_mean
from agentic_bayes.records.base import short
from agentic_bayes.records.wire.characters import NOT_TEXT, replaced
from agentic_bayes.suites.reading.yaml_text import FromVariables, YamlDocument, YamlPath


def validated(kind: Any, value: Any, document: YamlDocument, prefix: YamlPath) -> Any:
    """Validate a part of a suite; its problems are added to the document's."""
    if not isinstance(value, dict):
        if not document.problems:
            document.problems.append(document.problem_at(prefix, f"must be an object, got {short(value)}"))
        return None
    value = _readable(value, document)
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        details = error.errors(include_url=False)
        if (typed := _typed(value, details)) is not None:
            return validated(kind, typed, document, prefix)
        for detail in details:
            path = (*prefix, *(part for part in detail["loc"] if part not in ("int", "literal['auto']")))
            document.problems.append(document.problem_at(path, _problem_text(kind, detail)))
    return None


def _readable(value: dict[str, Any], document: YamlDocument) -> dict[str, Any]:
    """The value with what no file or server takes replaced in its texts, and a warning; ids with it are refused."""
    texts = {key: value[key] for key in ("input", "expected", "metadata", "description") if key in value}
    whole, count = replaced(texts)
    if count:
        warnings.warn(DoubtfulRecords(f"{document.source}: {count:,} {NOT_TEXT} were replaced"), stacklevel=3)
    if isinstance(tasks := value.get("tasks"), list):
        whole["tasks"] = [_readable(task, document) if isinstance(task, dict) else task for task in tasks]
    return {**value, **whole}


def _typed(value: Any, details: Sequence[Any]) -> Any:
    """Replace text from variables by the number it spells where text was refused; None if nothing was."""
    refused = {id(text) for d in details if isinstance(text := d["input"], FromVariables) and text.plain != text}

    def typed(item: Any) -> Any:
        if isinstance(item, dict):
            return {key: typed(inner) for key, inner in item.items()}
        if isinstance(item, list):
            return [typed(inner) for inner in item]
        return item.plain if id(item) in refused else item

    return typed(value) if refused else None


def _problem_text(kind: type[BaseModel], detail: Any) -> str:
    """A pydantic error in this package's words."""
    value = short(detail["input"])
    match detail["type"]:
        case "extra_forbidden":
            return f"unknown key: {did_you_mean(str(detail['loc'][-1]), _known_keys(kind, detail['loc'][:-1]))}"
        case "missing":
            return "is missing and must be given"
        case "value_error":
            return f"{detail['ctx']['error']}, got {value}"
        case "literal_error":
            return f"must be {detail['ctx']['expected']}, got {value}"
        case "string_type":
            return f"must be text, got {value}"
        case "dict_type" | "model_type":
            return f"must be an object, got {value}"
        case "tuple_type":
            return f"must be a list, got {value}"
    return f"{detail['msg'][0].lower()}{detail['msg'][1:]}, got {value}"


def _known_keys(kind: Any, path: Sequence[str | int]) -> list[str]:
    """The keys that are allowed at a path."""
    for part in path:
        if isinstance(part, int) or not hasattr(kind, "model_fields"):
            continue
        annotation = kind.model_fields[part].annotation if part in kind.model_fields else None
        kind = next((inner for inner in _models_in(annotation)), None)
    return list(kind.model_fields) if kind is not None and hasattr(kind, "model_fields") else []


def _models_in(annotation: Any) -> list[Any]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in getattr(annotation, "__args__", ()) for model in _models_in(inner)]
