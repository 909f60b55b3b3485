"""Reads and writes strict JSONL files, plain or gzipped: one object per line, no NaN, never half a file."""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agentic_bayes.records.wire.strict_json import strict_json
from agentic_bayes.records.write import replacing

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def write_objects(path: Path, objects: Iterable[Mapping[str, Any]]) -> None:
    """Write one object per line, gzipped if the name ends in ``.gz``. Equal objects give equal bytes."""
    with replacing(str(path)) as file:
        file.writelines(map(_line, objects))


def _line(record: Mapping[str, Any]) -> bytes:
    text = json.dumps(record, ensure_ascii=False, allow_nan=False)
    # half of a surrogate pair cannot be encoded, but JSON text can escape it
    return _LONE_SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", text).encode() + b"\n"


def read_objects(path: Path) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """The objects of a file, each with its line number; a text instead of an object says what is wrong with a line."""
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        lines = io.TextIOWrapper(gzip.GzipFile(fileobj=file) if packed else file, encoding="utf-8-sig", newline="\n")
        number = 0
        try:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield number, _parse(line)
        except UnicodeDecodeError as error:
            yield number + 1, f"must be UTF-8 text: {error}"
        except (EOFError, gzip.BadGzipFile, zlib.error, OSError) as error:
            yield number + 1, f"cannot be read: {error}"


def _parse(line: str) -> dict[str, Any] | str:
    try:
        record = strict_json(line)
    except ValueError as error:
        return f"must be one JSON object: {error}"
    return record if isinstance(record, dict) else f"must be a JSON object, got {line.strip()[:40]}"
