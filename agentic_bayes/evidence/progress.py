"""How far a run has come, and a bar that shows it."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["DetailedProgress", "ProgressBar", "ProgressState"]


@dataclass(frozen=True, slots=True)
class ProgressState:
    """How far a run has come.

    Attributes
    ----------
    done : int
        Interactions that are finished.
    total : int or None
        In all; None where they are read as the work proceeds.
    unscored : int
        The part of `done` whose answer could not be scored.
    cost : float
        Of the judge's calls so far, where its price is known.
    """

    done: int
    total: int | None
    unscored: int
    cost: float


@runtime_checkable
class DetailedProgress(Protocol):
    """A progress that wants to know more than the numbers done and in all."""

    def report(self, state: ProgressState) -> object:
        """Take note."""
        ...


class ProgressBar:
    """A bar with done, unscored, cost so far and time left: in a terminal or a notebook, and silent elsewhere.

    Parameters
    ----------
    what : str
        What is being done.
    file : file, optional
        Where to; standard error by default.

    Examples
    --------
    >>> with ProgressBar() as bar:
    ...     bar.report(ProgressState(done=3, total=10, unscored=1, cost=0.0))
    """

    def __init__(self, what: str = "judging", *, file: Any = None) -> None:
        self._what, self._file = what, file
        self._bar: Any = None
        self._task: Any = None
        self._started = time.monotonic()

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        console = Console(file=self._file or sys.stderr)
        if console.is_terminal or console.is_jupyter:
            columns = TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[state]}")
            self._bar = Progress(*columns, console=console, transient=True)
            self._bar.start()
            self._task = self._bar.add_task(self._what, total=None, state="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, total: int | None) -> None:
        """Show a number done.

        Parameters
        ----------
        done : int
        total : int or None
        """
        self.report(ProgressState(done, total, 0, 0.0))

    def report(self, state: ProgressState) -> None:
        """Show a state.

        Parameters
        ----------
        state : ProgressState
        """
        if self._bar is not None:
            seconds = time.monotonic() - self._started
            self._bar.update(self._task, completed=state.done, total=state.total, state=progress_words(state, seconds))


def progress_words(state: ProgressState, seconds: float) -> str:
    """Such as "120 of 500, 3 unscored, cost 0.42, 0:05:12 left".

    Parameters
    ----------
    state : ProgressState
    seconds : float
        Since the beginning.

    Returns
    -------
    str
    """
    parts = [f"{state.done:,}" + ("" if state.total is None else f" of {state.total:,}")]
    if state.unscored:
        parts.append(f"{state.unscored:,} unscored")
    if state.cost:
        parts.append(f"cost {state.cost:.2f}")
    if state.total is not None and 0 < state.done < state.total:
        left = round(seconds / state.done * (state.total - state.done))
        parts.append(f"{left // 3600}:{left // 60 % 60:02}:{left % 60:02} left")
    return ", ".join(parts)
