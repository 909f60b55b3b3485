"""Errors and warnings, each a subclass of the nearest builtin.

::

    AgenticBayesError
    ├── InvalidArgument (ValueError)      an argument is outside what is allowed
    │   └── UnknownName (LookupError)     a name is not among the valid ones; the message names the nearest
    ├── RecordsError (ValueError)         conversations cannot be read; carries every problem found
    ├── EvidenceError (ValueError)        scored rows are malformed or do not fit together
    ├── OutcomesError (ValueError)        counts or 0/1 rows are malformed or do not fit together
    ├── EstimateError (ValueError)        an estimate lacks what was asked of it, or a saved one cannot be read
    ├── SuiteError (ValueError)           a suite's files cannot be used; carries every problem found
    ├── AgentError (RuntimeError)         an agent of a suite broke down, or what it gave is no reply
    ├── MissingPackage (ImportError)      an optional package is needed and not installed
    └── ReplyError (ValueError)           a judge's reply holds no verdict; retried, then Unscored

    AgenticBayesWarning (UserWarning)
    ├── DoubtfulRecords                   conversations were read, and something about them should be known
    ├── DamagedRun                        a folder that looks like a run of a suite cannot be read, and is left out
    ├── HookFailed                        a hook of a suite did not end as it should; the run went on
    ├── NothingScored                     conversations without a scored turn: their values are undefined or the prior's
    ├── StoppedEarly                      a run ended before everything was judged; the rest is Unscored
    ├── NotConverged                      a sampler's own diagnostics say that its numbers are not to be trusted
    └── NotReproducible                   results were written that cannot be made again from their files
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "AgentError",
    "AgenticBayesError",
    "AgenticBayesWarning",
    "DamagedRun",
    "DoubtfulRecords",
    "EstimateError",
    "EvidenceError",
    "HookFailed",
    "InvalidArgument",
    "MissingPackage",
    "NotConverged",
    "NotReproducible",
    "NothingScored",
    "OutcomesError",
    "Problem",
    "RecordsError",
    "ReplyError",
    "StoppedEarly",
    "SuiteError",
    "UnknownName",
    "did_you_mean",
]


def did_you_mean(name: str, valid: Iterable[str]) -> str:
    """A hint that names the nearest valid name, or lists all when none is near."""
    names = list(valid)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]!r}?"
    if not names:
        return "there is none"
    shown = ", ".join(repr(n) for n in names[:12])
    return f"valid: {shown}" + (f" and {len(names) - 12} more" if len(names) > 12 else "")


class AgenticBayesError(Exception):
    """Base of every error raised on purpose by this package."""


class InvalidArgument(AgenticBayesError, ValueError):
    """An argument is outside what is allowed; the message says what is allowed and what came."""


class UnknownName(InvalidArgument, LookupError):
    """A name is not among the valid ones.

    Parameters
    ----------
    kind : str
        What the name should be, such as ``"agent"``.
    name : str
        The name that came.
    valid : iterable of str
        The names that exist.
    """

    def __init__(self, kind: str, name: object, valid: Iterable[str]) -> None:
        self.kind, self.name, self.valid = kind, name, tuple(valid)
        super().__init__(f"unknown {kind} {name!r}: {did_you_mean(str(name), self.valid)}")

    def __reduce__(self) -> tuple[Any, ...]:
        # an error must survive the way back from another process
        return type(self), (self.kind, self.name, self.valid)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in one place of an input.

    Attributes
    ----------
    source : str
        File (or other origin).
    where : str
        Line, index or row, such as ``"line 3"``; empty for the whole source.
    field : str
        Path of the field, such as ``"conversation[0].qa_id"``; empty for the whole record.
    message : str
        What is wrong, what is allowed and what came.
    """

    source: str
    where: str
    field: str
    message: str

    def __str__(self) -> str:
        place = ", ".join(part for part in (self.source, self.where, self.field) if part)
        return f"{place}: {self.message}" if place else self.message


class RecordsError(AgenticBayesError, ValueError):
    """Conversations that cannot be read, with all problems found.

    Parameters
    ----------
    problems : sequence of Problem
        Everything that is wrong, in file order.
    total : int, optional
        How many problems there were in all, when more were found than kept.
    """

    shown = 50

    def __init__(self, problems: Sequence[Problem], total: int | None = None) -> None:
        self.problems = tuple(problems)
        self.total = len(self.problems) if total is None else total
        lines = [str(problem) for problem in self.problems[: self.shown]]
        if self.total > len(lines):
            lines.append(f"… and {self.total - len(lines)} more")
        head = "1 problem" if self.total == 1 else f"{self.total} problems"
        super().__init__(f"{head} in the conversations:\n  " + "\n  ".join(lines))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problems, self.total)


class EvidenceError(AgenticBayesError, ValueError):
    """Scored rows are malformed or do not fit together."""


class OutcomesError(AgenticBayesError, ValueError):
    """Counts or 0/1 rows are malformed or do not fit together."""


class EstimateError(AgenticBayesError, ValueError):
    """An estimate lacks what was asked of it, or a saved one cannot be read."""


class SuiteError(AgenticBayesError, ValueError):
    """A suite that cannot be run as it is declared, with all problems found.

    Parameters
    ----------
    problems : sequence of Problem
        Everything that is wrong.
    """

    shown = 50

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems[: self.shown]]
        if len(self.problems) > len(lines):
            lines.append(f"… and {len(self.problems) - len(lines)} more")
        head = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        super().__init__(f"{head} in the suite:\n  " + "\n  ".join(lines))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problems,)


class AgentError(AgenticBayesError, RuntimeError):
    """An agent of a suite broke down, or what it gave is no reply; its trial is errored, not failed."""


class MissingPackage(AgenticBayesError, ImportError):
    """An optional package is needed and not installed; the message says how to install it."""


class ReplyError(AgenticBayesError, ValueError):
    """A judge's reply holds no verdict. It is retried; the last one becomes the reason of an ``Unscored``."""


class AgenticBayesWarning(UserWarning):
    """Base of every warning given by this package."""


class DoubtfulRecords(AgenticBayesWarning):
    """Conversations were read, but their file contradicts itself or leaves something out."""


class HookFailed(AgenticBayesWarning):
    """A hook of a suite did not end as it should. The run went on."""


class DamagedRun(AgenticBayesWarning):
    """A folder that looks like a run of a suite cannot be read, and is left out."""


class NothingScored(AgenticBayesWarning):
    """Conversations without a scored turn: what is said of them is undefined, or the prior's."""


class StoppedEarly(AgenticBayesWarning):
    """A run ended before everything was judged; what is missing is ``Unscored`` with the reason."""


class NotConverged(AgenticBayesWarning):
    """A sampler's own diagnostics say that its numbers are not to be trusted."""


class NotReproducible(AgenticBayesWarning):
    """Results were written that cannot be made again from their files alone, such as with a function as prior."""
