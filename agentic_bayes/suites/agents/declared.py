"""Shared by the declarations of all agent types: kinds of values, problems, and identities without secrets."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from agentic_bayes.errors import Problem
from agentic_bayes.records.base import Text, is_number

MOST_OUTPUT = 4 * 1024 * 1024
"""Default for the most bytes that an agent may write."""


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be blank")
    return value


def _as_text(value: object) -> object:
    """Accept a number where text is meant, for example a port that YAML read as a number."""
    return str(value) if is_number(value) else value


Plain = Annotated[Text, AfterValidator(_not_blank)]
TextMapping = dict[str, Annotated[Text, BeforeValidator(_as_text)]]
Bytes = Annotated[int, Field(ge=1, strict=True)]


def wrong(field: str, message: str) -> Problem:
    """A problem with a field of the agent's declaration."""
    return Problem("", "", f"agent.config.{field}" if field else "agent.config", message)


def identity(kind: str, **facts: Any) -> str:
    """Kind and facts as text that is the same in every process; facts that are None are left out."""
    known = {name: value for name, value in facts.items() if value is not None}
    return f"{kind} {json.dumps(known, sort_keys=True, ensure_ascii=False)}"


def digest(value: object) -> str:
    """A short hash of JSON values: it shows that they changed without revealing them."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


def without_secrets(url: str) -> str:
    """A URL without user, password and query values."""
    parts = urlsplit(url)
    names = [pair.partition("=")[0] for pair in parts.query.split("&") if pair]
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}" + (f"?{'&'.join(names)}" if names else "")
