"""All errors and warnings of the package, each a subclass of the nearest builtin.

::

    AgenticBayesError
    ├── InvalidArgument (ValueError)      an argument is not allowed; the message says what is
    │   └── UnknownName (LookupError)     a name is unknown; the message suggests the nearest
    ├── RecordsError (ValueError)         conversations cannot be read; lists every problem found
    ├── EvidenceError (ValueError)        scored rows are malformed or do not fit together
    ├── OutcomesError (ValueError)        counts or 0/1 rows are malformed or do not fit together
    ├── EstimateError (ValueError)        an estimate cannot give what you asked for, or a saved one cannot be read
    ├── SuiteError (ValueError)           a suite's files cannot be used; lists every problem found
    ├── AgentError (RuntimeError)         an agent of a suite crashed, or its reply cannot be used
    ├── ExecutorError (RuntimeError)      worker processes died, or a cluster is not there
    ├── MissingPackage (ImportError)      an optional package is needed but not installed
    └── ReplyError (ValueError)           a judge's reply holds no verdict; retried, then Unscored

    AgenticBayesWarning (UserWarning)
    ├── DoubtfulRecords                   conversations were read, but with doubts about their file
    ├── DamagedRun                        a folder looks like a suite's run but cannot be read, and was skipped
    ├── HookFailed                        a hook of a suite failed; the run continued
    ├── NothingScored                     some conversations have no scored turn: undefined results, or only the prior
    ├── StoppedEarly                      a run ended before everything was judged; the rest is Unscored
    ├── NotConverged                      the sampler's diagnostics say not to trust its numbers
    └── NotReproducible                   the results written cannot be reproduced from their files alone
"""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

_SHOWN = 50  # problems in the message of an error that carries all of them

__all__ = [
    "AgentError",
    "AgenticBayesError",
    "AgenticBayesWarning",
    "DamagedRun",
    "DoubtfulRecords",
    "EstimateError",
    "EvidenceError",
    "ExecutorError",
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


def _listed(problems: Sequence[Problem], total: int, where: str) -> str:
    """The first of all problems, a line each, below how many there are."""
    lines = ["1 problem" if total == 1 else f"{total} problems", *map(str, problems[:_SHOWN])]
    lines[0] += f" in the {where}:"
    if (left_out := total + 1 - len(lines)) > 0:
        lines.append(f"… and {left_out} more")
    return "\n  ".join(lines)


def did_you_mean(name: str, valid: Iterable[str]) -> str:
    """A hint that names the nearest valid name, or lists the valid names if none is near."""
    names = list(valid)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]!r}?"
    if not names:
        return "there are none"
    shown = ", ".join(repr(n) for n in names[:12])
    return f"valid: {shown}" + (f" and {len(names) - 12} more" if len(names) > 12 else "")


class AgenticBayesError(Exception):
    """Base of every error that this package raises on purpose."""


class InvalidArgument(AgenticBayesError, ValueError):
    """An argument is not allowed; the message says what is allowed and what came."""


class UnknownName(InvalidArgument, LookupError):
    """A name is unknown; the message suggests the nearest valid one.

    Parameters
    ----------
    kind : str
        What the name should name, for example ``"agent"``.
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
    """One problem at one place of an input.

    Attributes
    ----------
    source : str
        The file, or another origin.
    where : str
        Line, index or row, for example ``"line 3"``; empty for the whole source.
    field : str
        Path of the field, for example ``"conversation[0].qa_id"``; empty for the whole record.
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
    """Conversations cannot be read; carries every problem found.

    Parameters
    ----------
    problems : sequence of Problem
        Every problem, in file order.
    total : int, optional
        The number of all problems, if more were found than kept.
    advice : str, optional
        What you can do about them.
    """

    def __init__(self, problems: Sequence[Problem], total: int | None = None, advice: str = "") -> None:
        self.problems = tuple(problems)
        self.advice = advice
        self.total = len(self.problems) if total is None else total
        listed = _listed(self.problems, self.total, "conversations")
        super().__init__(f"{listed}\n{advice}" if advice else listed)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problems, self.total, self.advice)


class EvidenceError(AgenticBayesError, ValueError):
    """Scored rows are malformed or do not fit together."""


class OutcomesError(AgenticBayesError, ValueError):
    """Counts or 0/1 rows are malformed or do not fit together."""


class EstimateError(AgenticBayesError, ValueError):
    """An estimate cannot give what you asked for, or a saved one cannot be read."""


class SuiteError(AgenticBayesError, ValueError):
    """A suite cannot be run as declared; carries every problem found.

    Parameters
    ----------
    problems : sequence of Problem
        Every problem.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(_listed(self.problems, len(self.problems), "suite"))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problems,)


class AgentError(AgenticBayesError, RuntimeError):
    """An agent of a suite crashed, or its reply cannot be used; its trial is errored, not failed."""


class ExecutorError(AgenticBayesError, RuntimeError):
    """The worker processes of an executor died, cannot be reached, or cannot load what was sent to them."""


class MissingPackage(AgenticBayesError, ImportError):
    """An optional package is needed but not installed; the message says how to install it."""


class ReplyError(AgenticBayesError, ValueError):
    """A judge's reply holds no verdict. The call is retried; the last error becomes the reason of an ``Unscored``."""


def described(error: BaseException) -> str:
    """Type and message of an error; one of a connection or of TLS also says what the system said."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    text = _named(error)
    cause = _system_error(error)
    return text if cause is None or str(cause) in text else f"{text.rstrip('. :')} ({_named(cause)})"


def _named(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # the message itself raises
        return type(error).__name__


def _system_error(error: BaseException) -> BaseException | None:
    """The innermost error of a connection behind an error, if there is one, or what httpx says of it."""
    import socket
    import ssl

    kinds = (ConnectionError, ssl.SSLError, socket.gaierror)
    waits = (ssl.SSLWantReadError, ssl.SSLWantWriteError)
    transport = {"RequestError", "InvalidURL"}  # of httpx; by name, since it is slow to import
    found: BaseException | None = None
    seen = set[int]()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        unreachable = isinstance(link, OSError) and link.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH)
        if (isinstance(link, kinds) or unreachable) and str(link):
            found = found if isinstance(link, waits) else link
        elif found is None and transport & {kind.__name__ for kind in type(link).__mro__} and str(link):
            found = link
        # libraries of HTTP hide the cause (``from None``), which is still the context
        inside = link.exceptions[0] if isinstance(link, BaseExceptionGroup) else None
        link = inside or link.__cause__ or link.__context__
    return found


class AgenticBayesWarning(UserWarning):
    """Base of every warning that this package gives."""


class DoubtfulRecords(AgenticBayesWarning):
    """Conversations were read, but their file contradicts itself or was not read completely."""


class HookFailed(AgenticBayesWarning):
    """A hook of a suite failed. The run continued."""


class DamagedRun(AgenticBayesWarning):
    """A folder looks like a run of a suite but cannot be read, and was skipped."""


class NothingScored(AgenticBayesWarning):
    """Some conversations have no scored turn: their results are undefined or only reflect the prior."""


class StoppedEarly(AgenticBayesWarning):
    """A run ended before everything was judged; the rest is ``Unscored`` with the reason."""


class NotConverged(AgenticBayesWarning):
    """The sampler's own diagnostics say not to trust its numbers."""


class NotReproducible(AgenticBayesWarning):
    """The results written cannot be reproduced from their files alone, for example because a prior is a function."""
