"""Run one command and end everything it started, even processes in their own sessions (Linux only).

This file is a program: ``python -I -S supervisor.py FD PROGRAM ARGUMENTS``. It makes itself the subreaper of the
command, so that every process below the command stays below it, whatever session it moves to. FD is a socket: how the
command ended is written to it, and when its other end closes, because the command is unwanted or its owner has died,
everything is killed. It imports little, because it starts with every command.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
import time

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_END_SECONDS = 5.0  # to wait for processes that were killed
_POLL_SECONDS = 0.002


def become_subreaper() -> None:
    """Make this process the parent of every orphan below it; an `OSError` where the system cannot."""
    import ctypes

    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER) failed")


def _children() -> list[int]:
    """The children of this process."""
    found, own = [], os.getpid()
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", "rb") as stream:
                    parent = int(stream.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError):
                continue  # it has ended
            if parent == own:
                found.append(int(name))
    return found


def _end_all() -> None:
    """Kill children until none is left; theirs become ours when they die."""
    end = time.monotonic() + _END_SECONDS
    while time.monotonic() < end:
        for child in _children():
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(_POLL_SECONDS)


def _kill_when_closed(control: int, command: int) -> None:
    """Kill the command when nobody holds the other end of the socket any more."""
    with contextlib.suppress(OSError):
        while os.read(control, 1):
            pass
    with contextlib.suppress(OSError):
        os.kill(command, signal.SIGKILL)


def main(control: int, arguments: list[str]) -> None:
    """Run the command, say how it ended, and end what it left behind."""
    os.set_inheritable(control, False)
    try:
        become_subreaper()
        command = os.posix_spawnp(
            arguments[0],
            arguments,
            os.environ,
            setsid=True,
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # Python ignores them, and children would inherit that
        )
    except OSError as error:
        os.write(control, f"refused {error.errno}".encode())
        return
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # the pipes are the command's alone
        os.dup2(silence, stream)
    _thread.start_new_thread(_kill_when_closed, (control, command))
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == command:
            break
    _end_all()
    with contextlib.suppress(OSError):  # perhaps nobody wants to know any more
        os.write(control, f"ended {os.waitstatus_to_exitcode(status)}".encode())


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
