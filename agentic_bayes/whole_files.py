"""Write files completely or not at all."""

from __future__ import annotations

import errno
import gzip
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedWriter
from pathlib import Path

from agentic_bayes.checks import check_replaceable

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def unwritable(path: str | os.PathLike[str], error: Exception, what: str = "written") -> OSError:
    """The error to raise if a file, for example a database, cannot be written, most likely because the disk is full."""
    return OSError(errno.EIO, f"cannot be {what}: {error.__cause__ or error}", os.fspath(path))


@contextmanager
def replacing(name: str) -> Iterator[BufferedWriter | gzip.GzipFile]:
    """Write a new file that replaces another once it is complete on disk; an error leaves the old one unchanged.

    If there is no room for it, the error names the file.
    """
    target = os.path.realpath(name)
    check_replaceable(Path(target))
    beside = os.path.join(os.path.dirname(target), f".{os.path.basename(target)}.{secrets.token_hex(4)}.tmp")
    try:
        with open(beside, "xb") as file:
            if name.lower().endswith(".gz"):
                # no name and no time in the header: same content, same bytes
                with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as packed:
                    yield packed
            else:
                yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException as error:
        if os.path.exists(beside):
            os.unlink(beside)
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            error.filename = name
        raise
