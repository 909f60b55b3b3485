"""Replies that several trace metrics ask a model for, and the types of their fields."""

from __future__ import annotations

import json
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from agentic_bayes.evidence.metrics.staged import StageReply


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


UnitNumber = Annotated[float, Field(ge=0, le=1), AfterValidator(lambda value: value + 0.0)]  # no negative zero
NonBlankText = Annotated[str, AfterValidator(_not_blank)]


class TaskReply(StageReply):
    """What the user wanted."""

    task: NonBlankText


class ScoreReply(StageReply):
    """A score that follows from its reason."""

    is_verdict: ClassVar[bool] = True

    reason: str
    score: UnitNumber


def as_text(value: Any) -> str:
    """A value as material for a later stage."""
    plain = (
        [item.model_dump() if isinstance(item, StageReply) else item for item in value]
        if isinstance(value, list)
        else value
    )
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False, indent=1)
