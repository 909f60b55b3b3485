"""Import an object by its path ``module:name``, looking first in the suite's folder."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
import threading
import traceback
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

from pydantic import AfterValidator

from agentic_bayes.errors import SuiteError, did_you_mean
from agentic_bayes.records.base import Text, short
from agentic_bayes.suites.agents.declared import wrong

_FORM = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
# sys.path and sys.modules belong to the whole process
_ONE_AT_A_TIME = threading.RLock()
# folder → module loaded from it → its file, with modification time and size at that moment
_LOADED: dict[Path, dict[str, tuple[Path, int, int]]] = {}


class _LaterImports(MetaPathFinder):
    """Finds, in a suite's folder, what the folder's functions import when they are called."""

    def __init__(self) -> None:
        self._folders: dict[str, Path] = {}  # how the paths of its files begin → folder

    def add(self, folder: Path) -> None:
        """Look there too for the rest of the program."""
        self._folders[os.path.join(os.path.abspath(folder), "")] = folder
        if self not in sys.meta_path:
            at = sys.meta_path.index(PathFinder) if PathFinder in sys.meta_path else len(sys.meta_path)
            sys.meta_path.insert(at, self)

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        """The module in the folder of the file that imports it; None if it is not there."""
        folder = None if path is not None else self._importing()
        if folder is None:
            return None
        spec = PathFinder.find_spec(name, [str(folder)])
        if spec is None or spec.origin is None:  # a folder without __init__.py must not hide a package elsewhere
            return None
        if (file := _file_of(name, folder)) is not None:
            _LOADED.setdefault(folder, {})[name] = (file, *_state(file))
        return spec

    def _importing(self) -> Path | None:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            for start, folder in list(self._folders.items()):
                if frame.f_code.co_filename.startswith(start):
                    return folder
            frame = frame.f_back
        return None


_LATER_IMPORTS = _LaterImports()


def _import_path(value: str) -> str:
    if not _FORM.fullmatch(value):
        raise ValueError('must be "module:name", for example agent:answer for the function answer in agent.py')
    return value


ImportPath = Annotated[Text, AfterValidator(_import_path)]


def load_object(path: str, *, folder: Path, field: str) -> Any:
    """Import the object that a path names: from the suite's folder as it is now, whatever was loaded under its name."""
    module_name, _, name = path.partition(":")
    with _ONE_AT_A_TIME:
        loaded: Any = _imported(module_name, folder, field)
    path_so_far = module_name
    for part in name.split("."):
        if not hasattr(loaded, part):
            hint = did_you_mean(part, [known for known in dir(loaded) if not known.startswith("_")])
            raise SuiteError([wrong(field, f"{path_so_far} has no {part!r}: {hint}")])
        loaded, path_so_far = getattr(loaded, part), f"{path_so_far}.{part}"
    return loaded


def _imported(name: str, folder: Path, field: str) -> Any:
    _forget(name.partition(".")[0], folder, field)
    before = dict(sys.modules)
    importlib.invalidate_caches()
    _LATER_IMPORTS.add(folder)
    times = sys.path.count(str(folder))
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
            known = [path.stem for path in sorted(folder.glob("*.py"))]
            hint = f" ({did_you_mean(name, known)})" if known else ""
            message = f"there is no module {error.name!r} in {folder}, nor on PYTHONPATH{hint}"
        else:
            reason = next(iter(str(error).strip().splitlines()), "")
            reason = short(reason, 200) if reason else "no message"
            message = f"importing {name} failed: {type(error).__name__}: {reason}{_last_line_in(folder, error)}"
        raise SuiteError([wrong(field, message)]) from error
    finally:
        if sys.path.count(str(folder)) > times:  # the module may have removed it
            sys.path.remove(str(folder))
        ours = _LOADED.setdefault(folder, {})
        for loaded, module in list(sys.modules.items()):
            if before.get(loaded) is not module and (file := _own_file(loaded, module, folder)) is not None:
                ours[loaded] = (file, *_state(file))


def _forget(top: str, folder: Path, field: str) -> None:
    """Unload modules that would hide this folder's."""
    ours = _LOADED.get(folder, {})
    changed = [file for file, *state in list(ours.values()) if tuple(state) != _state(file)]
    gone = set(ours) if changed else set()
    for file in changed:
        # Python compares only size and whole seconds, so it would miss an edit within the same second
        Path(importlib.util.cache_from_source(str(file))).unlink(missing_ok=True)
    for other, loaded in list(_LOADED.items()):
        if other != folder:
            gone |= {name for name in list(loaded) if _file_of(name.partition(".")[0], folder) is not None}
    own, present = _file_of(top, folder), sys.modules.get(top)
    if own is not None and present is not None and top not in gone and _own_file(top, present, folder) is None:
        if top in sys.stdlib_module_names or top == __name__.partition(".")[0]:
            raise SuiteError([wrong(field, f"{own} has the name of a module that is already in use: rename it")])
        gone |= {name for name in list(sys.modules) if name == top or name.startswith(f"{top}.")}
    for name in gone:
        sys.modules.pop(name, None)
        for loaded in list(_LOADED.values()):
            loaded.pop(name, None)


def _file_of(name: str, folder: Path) -> Path | None:
    """The file of a module of this name in the folder."""
    stem = folder.joinpath(*name.split("."))
    return next((path for path in (stem / "__init__.py", stem.with_name(f"{stem.name}.py")) if path.is_file()), None)


def _own_file(name: str, module: object, folder: Path) -> Path | None:
    """The file of a loaded module, if it is the folder's module of this name."""
    own, file = _file_of(name, folder), getattr(module, "__file__", None)
    return own if own is not None and isinstance(file, str) and Path(file).resolve() == own.resolve() else None


def _state(file: Path) -> tuple[int, int]:
    try:
        status = file.stat()
    except OSError:
        return 0, -1
    return status.st_mtime_ns, status.st_size


def _last_line_in(folder: Path, error: BaseException) -> str:
    """The last line of the folder's own files in a traceback, in brackets; empty if there is none."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(folder)
    ]
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return f" ({Path(error.filename).name}, line {error.lineno})"
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
