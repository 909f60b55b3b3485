"""Checks of arguments: what is wrong, what is allowed, and what came."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from agentic_bayes.errors import InvalidArgument, UnknownName

LARGEST_K = 10**6  # log-gamma differences keep nine digits up to here


def no_such_file(path: Path) -> str:
    """The message "x.csv: no such file", with a similar name in its folder if there is one."""
    if path.exists():
        return f"{path}: must be a file, is a {'folder' if path.is_dir() else 'pipe or a device'}"
    names = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.6)
    return f"{path}: no such file" + (f" (did you mean {near[0]!r}?)" if near else "")


def check_type(name: str, value: object, kind: type, origin: str) -> None:
    """Refuse an argument of another type, and say how to get one of the right type."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0].upper() in "AEIOU" else "a"
        raise InvalidArgument(f"{name} must be {article} {kind.__name__} ({origin}), got {type(value).__name__}")


def check_replaceable(path: Path) -> None:
    """Refuse to overwrite anything that is not a file."""
    if path.exists() and not path.is_file():
        raise InvalidArgument(no_such_file(path))


def check_choice(name: str, value: object, allowed: Iterable[str]) -> None:
    """Refuse what is not one of a closed set, and name the nearest."""
    names = tuple(allowed)
    if not isinstance(value, str) or value not in names:
        raise UnknownName(name, value, names)


def check_text(name: str, value: object, what: str = "text") -> None:
    """Refuse what is not text."""
    if not isinstance(value, str):
        raise InvalidArgument(f"{name} must be {what}, got {value!r}")


def check_texts(name: str, value: object, what: str) -> tuple[str, ...]:
    """Several texts, or an error that says what came."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidArgument(f"{name} must be {what}, got {value!r}")
    texts = tuple(value)
    for one in texts:
        check_text(name, one, f"{what}, all of them text")
    return texts


def check_path(value: object, name: str = "path") -> Path:
    """A path that a system can hold, or an error that says what came."""
    if not isinstance(value, (str, os.PathLike)) or isinstance(value, bytes):
        raise InvalidArgument(f"{name} must be a file name or a Path, got {value!r}")
    path = Path(value)
    try:
        if b"\0" not in os.fsencode(path):
            return path
    except UnicodeEncodeError:
        pass
    raise InvalidArgument(f"{name} must be a name that the system allows, got {str(path)!r}")


def check_probability(value: object, name: str, *, open_ends: bool = False) -> float:
    """A number in [0, 1], or in (0, 1) with `open_ends`, or an error that says what came."""
    allowed = "strictly between 0 and 1" if open_ends else "in [0, 1]"
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, (bool, np.bool_))
    if not number or not 0 <= value <= 1 or (open_ends and value in (0, 1)):  # type: ignore[operator]
        raise InvalidArgument(f"{name} must be a number {allowed}, got {value!r}")
    return float(value)  # type: ignore[arg-type]


def check_count(value: object, name: str, *, least: int = 1) -> int:
    """An integer ≥ `least`, or an error that says what came."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < least:
        raise InvalidArgument(f"{name} must be an integer ≥ {least}, got {value!r}")
    return int(value)


def check_flag(value: object, name: str) -> bool:
    """True or False, or an error that says what came."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidArgument(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_attempts(k: object) -> int:
    """An integer in [1, 10^6]."""
    attempts = check_count(k, "k")
    if attempts > LARGEST_K:
        raise InvalidArgument(f"k must be at most {LARGEST_K:,}, got {attempts:,}")
    return attempts


def check_ks(k: object) -> tuple[int, ...]:
    """Sorted, distinct integers in [1, 10^6] from one or several."""
    if isinstance(k, str) or not isinstance(k, Iterable):
        return (check_attempts(k),)
    ks = sorted({check_attempts(value) for value in k})
    if not ks:
        raise InvalidArgument("k must hold at least one integer ≥ 1, got none")
    return tuple(ks)


def check_seed(seed: object) -> int:
    """An integer in [0, 2^63)."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**63:
        raise InvalidArgument(f"random_seed must be an integer ≥ 0, got {seed!r}")
    return int(seed)


def check_bootstrap(ci_prob: object, resamples: object, random_seed: object) -> None:
    """The arguments of a bootstrap: a probability in (0, 1), a number of resamples ≥ 1, and a seed."""
    check_probability(ci_prob, "ci_prob", open_ends=True)
    check_count(resamples, "resamples")
    check_seed(random_seed)


def check_rope(rope: object) -> tuple[float, float]:
    """A region of practical equivalence: a half-width in [0, 1], or its two ends in [-1, 1]."""
    if isinstance(rope, (tuple, list)):
        ends = [v for v in rope if isinstance(v, (int, float, np.integer, np.floating)) and not isinstance(v, bool)]
        if len(rope) == 2 and len(ends) == 2 and -1 <= ends[0] <= ends[1] <= 1:
            return float(ends[0]), float(ends[1])
        raise InvalidArgument(f"rope must be a half-width in [0, 1] or a pair low ≤ high in [-1, 1], got {rope!r}")
    half = check_probability(rope, "rope (a half-width, or a pair low, high)")
    return -half, half


def check_number(value: object, name: str, *, above_zero: bool = False, unit: str = "") -> float:
    """A finite number ≥ 0 (> 0 with `above_zero`), or an error that says what came."""
    plain = value.item() if isinstance(value, (np.integer, np.floating)) else value
    number = isinstance(plain, (int, float)) and not isinstance(plain, bool)
    # whole numbers beyond the largest float are refused, as infinity and NaN are
    if not number or not 0 <= plain <= sys.float_info.max or (above_zero and plain == 0):  # type: ignore[operator]
        of_unit = f"of {unit} " if unit else ""
        raise InvalidArgument(f"{name} must be a number {of_unit}{'>' if above_zero else '≥'} 0, got {value!r}")
    return float(plain)  # type: ignore[arg-type]


def check_output_file(path: Path, option: str, *, source: str | Path | None = None) -> None:
    """Refuse, before any work is done, a file that cannot be written or would overwrite the input."""
    if not path.parent.is_dir() or (path.exists() and not path.is_file()):
        raise InvalidArgument(f"{option} must be a file in a folder that exists, got {path}")
    if source is not None and path.exists() and Path(source).exists() and path.samefile(source):
        raise InvalidArgument(f"{option} would overwrite the input file {path}")
    _check_writable(path.parent, option)


def check_output_folder(path: Path, option: str) -> None:
    """Refuse, before any work is done, a folder that cannot be made or written to."""
    if path.exists() and not path.is_dir():
        raise InvalidArgument(f"{option} must be a folder, {path} is a file")
    _check_writable(next(folder for folder in (path, *path.absolute().parents) if folder.exists()), option)


def _check_writable(folder: Path, option: str) -> None:
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise InvalidArgument(f"{option} must be in a folder that you can write to, which {folder} is not")


def check_input_file(path: Path) -> None:
    """Refuse a file that does not exist, and suggest a similar name."""
    if not path.is_file():
        raise InvalidArgument(no_such_file(path))
