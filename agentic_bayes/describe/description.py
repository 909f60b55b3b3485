"""The description of a file: what it looks like, the role of each part, and how to read it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from agentic_bayes.formatting import json_ready
from agentic_bayes.result_table import Table


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """What something of the file would be, and why."""

    role: str  # agent, task, trial, correct, …
    source: str  # the column, the field, or what else it is
    reason: str


@dataclass(frozen=True, kw_only=True)
class Description:
    """A file, and a proposal how to read it; nothing in it is certain."""

    name: str  # the file
    kind: str  # what it looks like
    proposals: Sequence[Proposal] = ()
    commands: Sequence[str] = ()  # in a shell, one after the other
    code: Sequence[str] = ()  # the same in Python
    outcome: str = ""  # what reading it so gave
    failure: str = ""  # why it cannot be read so
    notes: Sequence[str] = ()
    parts: Sequence[Table] = field(default=(), repr=False)  # columns or fields of the file

    def tables(self) -> list[Table]:
        """The parts of the file, then what they would be."""
        rows = [[one.source, one.role, one.reason] for one in self.proposals]
        proposed = Table(
            title="Proposal", header=["column or field", "would be", "why"], rows=rows, notes=self.notes, whole=True
        )
        return [*self.parts, *([proposed] if rows else [])]

    def lines(self) -> Iterator[str]:
        """The rest in words."""
        yield f"{self.name}: looks like {self.kind}"
        if self.outcome:
            yield f"read this way: {self.outcome}"
        if self.failure:
            yield f"cannot be read this way: {self.failure}"
        if not self.proposals:
            yield from self.notes

    def to_dict(self) -> dict[str, Any]:
        """Everything but the tables as an object that JSON can hold."""
        return dict(json_ready({name: value for name, value in asdict(self).items() if name != "parts"}))


def command_of(command: str, *arguments: str, **options: Any) -> str:
    """A command line; an option that is None is left out, and one that is True has no value."""
    words = ["agentic-bayes", command, *arguments]
    for name, value in options.items():
        option = f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"
        words += [] if value is None else [option] if value is True else [option, str(value)]
    return shlex.join(words)


def call_of(function: str, path: str, **options: Any) -> str:
    """A call in Python; an option that is None is left out."""
    shown = [f"{name}={_literal(value)}" for name, value in options.items() if value is not None]
    return f"{function}({', '.join([_literal(path), *shown])})"


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_literal(key)}: {_literal(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_literal, value)) + "]"
    return repr(value)
