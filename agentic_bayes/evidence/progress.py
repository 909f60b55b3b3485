"""The progress of a run, and a bar that shows it."""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

from agentic_bayes.formatting import in_notebook

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["ProgressBar"]

SHORTEST = 0.1  # seconds between updates in a notebook
LATE = 2.0  # seconds after which a bar is shown that nobody asked for


@dataclass(frozen=True, slots=True)
class ProgressState:
    """The progress of a run."""

    done: int  # finished interactions
    total: int | None  # all interactions; None if they are read as the run proceeds
    unscored: int  # the part of `done` without an answer score
    cost: float  # cost of the judge's calls so far, as far as its price is known


@runtime_checkable
class DetailedProgress(Protocol):
    """A progress callback that takes more than the numbers of done and all interactions."""

    def report(self, state: ProgressState) -> object:
        """Show or record a state."""


class ProgressBar:
    """A progress bar with unscored interactions, cost and time left, in a terminal or notebook; silent elsewhere.

    Parameters
    ----------
    what : str
        Label of the bar.
    file : file, optional
        Where to write; standard error by default.

    Notes
    -----
    In a terminal the bar disappears at the end; in a notebook its last state stays. A notebook needs no further
    package.

    Examples
    --------
    >>> with ProgressBar() as bar:
    ...     bar.report(ProgressState(done=3, total=10, unscored=1, cost=0.0))
    """

    def __init__(self, what: str = "judging", *, file: Any = None) -> None:
        self._what, self._file = what, file
        self._line: _Terminal | _Notebook | None = None
        self._started = time.monotonic()

    def __enter__(self) -> Self:
        file = self._file or sys.stderr
        if self._file is None and in_notebook():
            self._line = _Notebook(self._what)
        elif file is not None and file.isatty():  # a program without a console has no stderr
            self._line = _Terminal(self._what, file)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._line is not None:
            self._line.close()

    def __call__(self, done: int, total: int | None) -> None:
        """Show how many interactions are done.

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
        if self._line is not None:
            self._line.show(state, progress_words(state, time.monotonic() - self._started))


class LateBar(ProgressBar):
    """The same where a run takes more than two seconds."""

    def __enter__(self) -> Self:
        return self

    def report(self, state: ProgressState) -> None:
        """Show a state, once there is something to wait for."""
        if self._line is None and time.monotonic() - self._started > LATE:
            super().__enter__()
        super().report(state)


class _Terminal:
    """The bar in a terminal."""

    def __init__(self, what: str, file: Any) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        columns = TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[state]}")
        console = Console(file=file, force_jupyter=False)
        self._bar = Progress(*columns, console=console, transient=True)
        self._bar.start()
        self._task = self._bar.add_task(what, total=None, state="")

    def show(self, state: ProgressState, words: str) -> None:
        self._bar.update(self._task, completed=state.done, total=state.total, state=words)

    def close(self) -> None:
        self._bar.stop()


class _Notebook:
    """The bar in a notebook: one output that is replaced at most ten times a second."""

    def __init__(self, what: str) -> None:
        from IPython.display import display

        self._what, self._shown, self._last = what, -math.inf, f"{what}: begun"
        self._handle = display({"text/plain": self._last}, raw=True, display_id=True)

    def show(self, state: ProgressState, words: str) -> None:
        self._last = f"{self._what}: {words}"
        now = time.monotonic()
        if now - self._shown >= SHORTEST:
            self._shown = now
            size = "" if state.total is None else f' value="{state.done}" max="{state.total}"'
            self._replace(f"<progress{size}></progress> {escape(self._last)}")

    def close(self) -> None:
        self._replace(escape(self._last))

    def _replace(self, html: str) -> None:
        self._handle.update({"text/html": f"<small>{html}</small>", "text/plain": self._last}, raw=True)


def progress_words(state: ProgressState, seconds: float) -> str:
    """A text like "120 of 500, 3 unscored, cost 0.42, 0:05:12 left"."""
    parts = [f"{state.done:,}" + ("" if state.total is None else f" of {state.total:,}")]
    if state.unscored:
        parts.append(f"{state.unscored:,} unscored")
    if state.cost:
        parts.append(f"cost {state.cost:.2f}")
    if state.total is not None and 0 < state.done < state.total:
        left = round(seconds / state.done * (state.total - state.done))
        parts.append(f"{left // 3600}:{left // 60 % 60:02}:{left % 60:02} left")
    return ", ".join(parts)
