"""An index of this user's runs, so that a run can be found by its id in any folder."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from agentic_bayes.whole_files import replacing

FILE = "trials.sqlite"
"""Name of the file of trials in a run's folder."""

_LARGEST = 1 << 20  # bytes; beyond, runs that are gone are left out


def index_file() -> Path:
    """The file: one line per run, in ``$XDG_STATE_HOME`` or ``~/.local/state``."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "agentic-bayes" / "runs.jsonl"


def note_run(folder: Path) -> None:
    """Note where a run is; where the index cannot be written, the run can still be named by its folder."""
    with contextlib.suppress(OSError, RuntimeError):  # no home, or none that may be written to
        file = index_file()
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists() and file.stat().st_size > _LARGEST:
            kept = [line for line in file.read_bytes().splitlines(keepends=True) if _folder_in(line).is_dir()]
            with replacing(str(file)) as stream:
                stream.write(b"".join(kept))
        line = json.dumps({"run": folder.name, "folder": str(folder.resolve())}) + "\n"
        with file.open("a", encoding="utf-8") as stream:
            stream.write(line)  # one short write, so that lines of several processes do not mix


def find_run(name: str, *, results: Path = Path("results")) -> Path | None:
    """The folder of a run, from its path or its id, wherever it was written; None if there is none."""
    for folder in (Path(name), results / name, _indexed_run(name)):
        if folder is not None and (folder / FILE).is_file():
            return folder
    return None


def _indexed_run(name: str) -> Path | None:
    """The folder in which the run of this id was last written, if it is noted."""
    try:
        lines = index_file().read_bytes().splitlines()
    except (OSError, RuntimeError):
        return None
    return next((folder for line in reversed(lines) if (folder := _folder_in(line)).name == name), None)


def _folder_in(line: bytes) -> Path:
    """The folder in a line; one that names no run where the line is damaged."""
    try:
        return Path(json.loads(line)["folder"])
    except (ValueError, TypeError, KeyError):
        return Path()
