"""Exit codes: 0 ok, 2 usage or bad input, 1 crash or stopped early, 10 gate failed, 11 gate inconclusive."""

from __future__ import annotations

import contextlib
import errno
import sys
import warnings
from collections.abc import Iterator
from io import TextIOWrapper

from agentic_bayes.cli.output import complain
from agentic_bayes.errors import AgenticBayesError, AgenticBayesWarning, ExecutorError
from agentic_bayes.whole_files import NO_ROOM

EXIT_CODES = "Exit codes: 0 ok, 2 usage or bad input, 1 crash or stopped early, 10 gate failed, 11 gate inconclusive."
STOPPED = 1
BAD_INPUT = 2
# worst first; the last two are verdicts of a look
VERDICTS = {"fail": 10, "inconclusive": 11, "continue": 11, "pass": 0, "narrow enough": 0}
DISK_TROUBLE = (*NO_ROOM, errno.EIO)


def exit_code(*verdicts: str) -> int:
    """The code of the worst of the verdicts; 0 if there is none."""
    return next((code for verdict, code in VERDICTS.items() if verdict in verdicts), 0)


@contextlib.contextmanager
def errors_end_the_program() -> Iterator[None]:
    """Turn errors into one message and an exit code, and warnings into one line each; a bug keeps its traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a character that the terminal lacks must not end the run
    with warnings.catch_warnings():
        warnings.simplefilter("always", AgenticBayesWarning)
        warnings.showwarning = lambda message, *_: complain(f"warning: {message}")
        try:
            yield
        except AgenticBayesError as error:
            complain(f"error: {error}")
            sys.exit(STOPPED if isinstance(error, ExecutorError) else BAD_INPUT)
        except OSError as error:
            if error.errno in DISK_TROUBLE:
                complain(f"stopped: {error.filename or 'standard output or a temporary file'}: {error.strerror}")
                sys.exit(STOPPED)
            if error.filename is None:
                raise
            complain(f"error: {error.filename}: {error.strerror}")
            sys.exit(BAD_INPUT)
        except KeyboardInterrupt:
            complain("stopped")
            sys.exit(STOPPED)
