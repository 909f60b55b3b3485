"""Read YAML strictly, with line numbers: ``no``, ``012`` and ``1:30`` are text, and no key may repeat."""

from __future__ import annotations

import functools
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentic_bayes.errors import Problem
from agentic_bayes.records.base import field_path, short

YamlPath = tuple[str | int, ...]

_LARGEST = 10_000_000  # bytes of a file
_MOST_VALUES = 200_000  # aliases multiply: a small file can stand for billions
_DEEPEST = 60
_INT = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"-?(((0|[1-9][0-9]*)?\.[0-9]+|(0|[1-9][0-9]*)\.?)([eE][-+]?[0-9]+)?)")
_VARIABLE = re.compile(r"\$(?:\$|\{([^}]*)(\}?))")
_TEXT = "tag:yaml.org,2002:str"
_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)


class FromVariables(str):
    """Text into which variables were substituted; where it stands decides whether it counts as text or as `plain`."""

    __slots__ = ()

    @property
    def plain(self) -> Any:
        """The value of the text if it had been written without variables."""
        return _plain(self)


@dataclass
class YamlDocument:
    """The content of a YAML file, with its lines and problems."""

    source: str  # the file
    value: Any = None  # its content in plain Python values
    lines: dict[YamlPath, int] = field(default_factory=dict)  # path of a value → its line, from 1
    problems: list[Problem] = field(default_factory=list)  # what is wrong with it
    variables: dict[str, str] = field(default_factory=dict)  # the variables that it uses, with their values

    def line(self, path: YamlPath) -> str:
        """The line of a path or of the nearest path above it, for example "line 3"; empty if unknown."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.lines:
                return f"line {self.lines[path[:length]]}"
        return ""

    def problem_at(self, path: YamlPath, message: str) -> Problem:
        """A problem with the value at a path."""
        return Problem(self.source, self.line(path), field_path(path), message)

    def problem(self, line: int | None, message: str) -> None:
        """Add a problem."""
        self.problems.append(Problem(self.source, "" if line is None else f"line {line}", "", message))


def read_yaml(path: Path, *, environment: Mapping[str, str] | None = None) -> YamlDocument:
    """Read a file; its problems are in the document."""
    import yaml

    document = YamlDocument(str(path))
    try:
        if path.stat().st_size > _LARGEST:
            document.problem(None, f"must be at most {_LARGEST:,} bytes")
            return document
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        document.problem(None, f"cannot be read: {error.strerror or error}")
        return document
    except UnicodeDecodeError:
        document.problem(None, "must be UTF-8 text")
        return document
    try:
        root = yaml.compose(text, Loader=_loader())
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or str(error).splitlines()[0]
        document.problem(None if mark is None else mark.line + 1, f"is not YAML: {reason}")
        return document
    except (RecursionError, ValueError) as error:
        document.problem(None, f"is not YAML: {type(error).__name__}: {error}")
        return document
    reader = _NodeReader(document, os.environ if environment is None else environment)
    document.value = None if root is None else reader.value(root, ())
    return document


def _plain(text: str) -> Any:
    """The value of unquoted text: None, a boolean, a number, or the text itself."""
    match text:
        case "" | "null" | "~":
            return None
        case "true":
            return True
        case "false":
            return False
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and any(character.isdigit() for character in text):
        number = float(text)
        if math.isfinite(number):
            return number
    return text


@functools.cache
def _loader() -> Any:
    """PyYAML's safe loader, changed so that nodes have only the tags that were written."""
    import yaml

    class Loader(yaml.SafeLoader):
        def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
            return ""

        def compose_scalar_node(self, anchor: Any) -> Any:
            event = self.peek_event()  # type: ignore[no-untyped-call]
            if event.tag == "!":  # short for text; PyYAML ignores it
                event.tag = _TEXT
            return super().compose_scalar_node(anchor)

    return Loader


class _NodeReader:
    """Turns the nodes of a YAML file into plain values."""

    def __init__(self, document: YamlDocument, environment: Mapping[str, str]) -> None:
        self._document, self._environment = document, environment
        self._values = 0
        self._full = False
        self._open: set[int] = set()  # the nodes that contain the current one
        self._endless: set[int] = set()

    def value(self, node: Any, path: YamlPath) -> Any:
        line = node.start_mark.line + 1
        self._document.lines.setdefault(path, line)
        self._values += 1
        if self._values > _MOST_VALUES or len(path) > _DEEPEST:
            if not self._full:
                self._document.problem(line, "holds too many values, or too deep ones")
            self._full = True
            return None
        if node.id == "scalar":
            return self._scalar(node, line)
        if id(node) in self._open:
            if id(node) not in self._endless:
                self._document.problem(line, "holds an alias of itself")
            self._endless.add(id(node))
            return None
        self._tagged(node, line)
        self._open.add(id(node))
        try:
            if node.id == "mapping":
                return self._mapping(node, path)
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        finally:
            self._open.discard(id(node))

    def _tagged(self, node: Any, line: int) -> None:
        """Refuse every tag except that of text on a scalar."""
        if node.tag and not (node.id == "scalar" and node.tag == _TEXT):
            tag = node.tag.replace("tag:yaml.org,2002:", "!!")
            self._document.problem(line, f"the tag {short(tag)} is not supported; only !!str before text is")

    def _mapping(self, node: Any, path: YamlPath) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if key_node.id != "scalar":
                self._document.problem(line, "a key must be text")
                continue
            self._tagged(key_node, line)
            key = str(key_node.value)
            if key == "<<" and key_node.style is None and not key_node.tag:
                self._document.problem(line, "merge keys (<<) are not supported")
                continue
            if key in mapping:
                self._document.problem(line, f"the key {short(key)} is given twice")
                continue
            mapping[key] = self.value(value_node, (*path, key))
            self._document.lines[(*path, key)] = line
        return mapping

    def _scalar(self, node: Any, line: int) -> Any:
        text: str = node.value
        self._tagged(node, line)
        # neither quoted, nor a block, nor tagged as text
        if node.style is None and not node.tag and not isinstance(value := _plain(text), str):
            return value
        filled = _VARIABLE.sub(lambda match: self._variable(match, line), text)
        return text if filled == text else FromVariables(filled)

    def _variable(self, match: re.Match[str], line: int) -> str:
        if match[0] == "$$":
            return "$"
        if not match[2]:
            self._document.problem(line, f"{short(match[0])} has no closing }}; a $ alone is written $$")
            return ""
        if "${" in match[1].replace("$$", ""):
            self._document.problem(line, f"{short(match[0])} must not contain the ${{ of another variable")
            return ""
        named = _NAME.fullmatch(match[1])
        if named is None:
            self._document.problem(line, f"{match[0]} must be ${{NAME}} or ${{NAME:-default}}; a $ alone is written $$")
            return ""
        value = self._environment.get(named[1])
        if not value and named[2] is not None:
            return named[2].replace("$$", "$")
        if value is None:
            self._document.problem(
                line, f"the variable {named[1]} is not set; ${{{named[1]}:-default}} gives a default"
            )
            return ""
        self._document.variables[named[1]] = value
        return value
