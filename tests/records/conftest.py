"""What tests of several formats share."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentic_bayes.errors import DoubtfulRecords, RecordsError
from agentic_bayes.records.read import read_conversations


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., list[Any]]:
    """The conversations of a value written as JSON, or of several as JSON Lines."""

    def run(value: Any, *, lines: bool = False, **options: Any) -> list[Any]:
        path = tmp_path / "log.json"
        text = "\n".join(map(json.dumps, value)) if lines else json.dumps(value)
        path.write_text(text, encoding="utf-8")
        return list(read_conversations(path, **options))

    return run


@pytest.fixture
def problems(read: Callable[..., list[Any]]) -> Callable[..., list[tuple[str, str, str]]]:
    """The problems that the module's own `read` finds, as (place, field, message)."""

    def run(*documents: Any, **options: Any) -> list[tuple[str, str, str]]:
        with pytest.raises(RecordsError, match="problem") as error:
            read(*documents, **options)
        return [(p.where, p.field, p.message) for p in error.value.problems]

    return run


@pytest.fixture
def tried(load: Callable[..., list[Any]]) -> Callable[..., list[Any] | None]:
    """The records that the module's own `load` gives, or None where they were refused; nothing else may happen."""

    def run(data: Any, **options: Any) -> list[Any] | None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DoubtfulRecords)
            try:
                found = load(data, **options)
            except RecordsError as error:
                problems, text = error.problems, str(error)
            else:
                assert found
                return found
        assert problems
        assert all(problem.message for problem in problems)
        assert text.encode()
        return None

    return run
