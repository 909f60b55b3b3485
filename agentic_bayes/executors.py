"""Call functions in other processes, of this machine or of a Dask cluster; each call ends with a result or an error."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import pickle
import re
import signal
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, InvalidStateError
from typing import Any, Self, TypeVar

from agentic_bayes.errors import ExecutorError, InvalidArgument, MissingPackage, described

ExecutorChoice = Executor | str
FORMS = (
    'executor must be "local:N" (N processes), "dask://HOST:PORT" (the scheduler of a Dask cluster) or an Executor of '
    "concurrent.futures"
)
CONNECTING = 10.0  # seconds to find a cluster and one worker
LOOK_EVERY, LOOKS = 5.0, 3  # seconds between looks at a cluster, and how many in a row it may be without workers
_LOCAL, _DASK = re.compile(r"local:([1-9][0-9]{0,3})"), re.compile(r"dask://([^/\s]+:[0-9]+)")
_ENDED = (
    "a worker process ended before its work was done: it was killed, crashed or ran out of memory; or it could not "
    'start, because a script must call this below `if __name__ == "__main__":`'
)
_CANCELLED = "the executor cancelled a call: it was shut down, or its cluster is gone"
_GONE = "the Dask cluster has no workers left, or its scheduler is gone"
_Returned = TypeVar("_Returned")
_Item = TypeVar("_Item")


def check_executor(executor: object) -> None:
    """Refuse what is not an executor; nothing is started."""
    named = isinstance(executor, str) and (_LOCAL.fullmatch(executor) or _DASK.fullmatch(executor))
    if not (named or executor is None or isinstance(executor, Executor)):
        raise InvalidArgument(f"{FORMS}, got {executor!r}")


def packed(function: Callable[..., Any], what: str) -> bytes:
    """A function with what it needs, ready to be sent; `what` names that for the error if it cannot be sent."""
    from agentic_bayes import __version__

    try:
        return pickle.dumps((__version__, pickle.dumps(function)))
    except Exception as error:
        raise InvalidArgument(
            f"{what} cannot be sent to other processes ({described(error)}): an executor needs what pickle takes, "
            "without open connections, locks, or functions and classes defined inside functions; without an executor "
            "it runs here"
        ) from None


class Workers:
    """An executor whose calls always end: with a result, the function's own error, or an `ExecutorError`."""

    def __init__(
        self,
        executor: Executor,
        *,
        size: int = 0,
        lost: Callable[[], bool] | None = None,
        close: Callable[[bool], object] = lambda busy: None,
    ) -> None:
        self.size = size  # how many calls run at a time; 0 if unknown
        self._executor, self._lost, self._close = executor, lost, close
        self._running = dict[Future[Any], Future[Any]]()  # the executor's future → ours
        self._closed = threading.Event()
        if lost is not None:
            threading.Thread(target=self._watch, daemon=True).start()

    @classmethod
    def open(cls, executor: ExecutorChoice) -> Self:
        """The workers of an executor, which are started if it is given by name."""
        check_executor(executor)
        if isinstance(executor, Executor):
            return cls(executor)
        if (local := _LOCAL.fullmatch(executor)) is not None:
            return cls(**_processes(int(local[1])))
        return cls(**_cluster(executor.removeprefix("dask://")))

    def submit(self, function: bytes, *arguments: Any) -> Future[Any]:
        """Call a `packed` function."""
        ours = Future[Any]()
        try:
            theirs = self._executor.submit(_call, function, *arguments)
        except BrokenExecutor as error:
            raise _seen_here(error) from error
        except RuntimeError as error:
            raise ExecutorError(f"the executor accepts no calls: {error}") from error
        self._running[theirs] = ours
        ours.add_done_callback(lambda _: theirs.cancel())
        theirs.add_done_callback(self._ended)
        return ours

    def in_order(self, function: bytes, items: Iterable[_Item]) -> Iterator[Any]:
        """The results for all items, in their order; only so many calls as keep the workers busy are waiting."""
        waiting = deque[Future[Any]]()
        for item in items:
            waiting.append(self.submit(function, item))
            if len(waiting) > 2 * (self.size or os.cpu_count() or 1):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def _ended(self, theirs: Future[Any]) -> None:
        ours = self._running.pop(theirs)
        with contextlib.suppress(InvalidStateError):  # nobody waits for it any more
            if theirs.cancelled():
                ours.set_exception(ExecutorError(_CANCELLED))
            elif (broken := theirs.exception()) is not None:
                ours.set_exception(_seen_here(broken))
            else:
                value, error = theirs.result()
                if error is None:
                    ours.set_result(value)
                else:
                    ours.set_exception(error)

    def _watch(self) -> None:
        """End all calls when the cluster is gone: it would let them wait for ever."""
        missed = 0
        while not self._closed.wait(LOOK_EVERY):
            missed = missed + 1 if self._lost is not None and self._lost() else 0
            if missed >= LOOKS:
                for ours in list(self._running.values()):
                    with contextlib.suppress(InvalidStateError):
                        ours.set_exception(ExecutorError(_GONE))

    def close(self) -> None:
        """End what was started here; calls that still run are ended, too."""
        self._closed.set()
        busy = bool(self._running)
        for ours in list(self._running.values()):
            ours.cancel()
        self._close(busy)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _seen_here(error: BaseException) -> BaseException:
    """The error of a call as its caller should see it: one of the executor itself becomes an `ExecutorError`."""
    if isinstance(error, BrokenExecutor):
        return ExecutorError(_ENDED)
    if isinstance(error, ModuleNotFoundError) and str(error.name).startswith("agentic_bayes"):
        return ExecutorError("the workers need agentic-bayes, in the version that calls them")
    if type(error).__module__.partition(".")[0] == "distributed":  # KilledWorker and others
        return ExecutorError(f"the Dask cluster failed: {described(error)}")
    return error


def _processes(size: int) -> dict[str, Any]:
    """So many processes of this machine; they are new ones, because copies of this one may hold locks for ever."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    pool = ProcessPoolExecutor(size, mp_context=multiprocessing.get_context("spawn"), initializer=_begin)

    def close(busy: bool) -> None:
        if busy:
            for process in list((pool._processes or {}).values()):
                process.kill()
        pool.shutdown(wait=True, cancel_futures=True)

    return {"executor": pool, "size": size, "close": close}


def _cluster(address: str) -> dict[str, Any]:
    """The workers of a Dask cluster."""
    try:
        from distributed import Client

        connect: Any = Client  # has no types
    except ImportError:
        raise MissingPackage("executor dask:// needs Dask: pip install 'agentic-bayes[dask]'") from None
    try:
        client: Any = connect(f"tcp://{address}", timeout=CONNECTING, set_as_default=False)
    except (OSError, ValueError) as error:  # TimeoutError is an OSError
        raise ExecutorError(f"there is no Dask scheduler at {address}: {described(error)}") from None
    try:
        client.wait_for_workers(1, timeout=CONNECTING)
    except TimeoutError:
        client.close()
        raise ExecutorError(
            f"the Dask cluster at {address} has no workers: start one with dask worker {address}"
        ) from None

    def lost() -> bool:
        try:
            return client.status != "running" or not client.nthreads()
        except Exception:
            return True

    threads = sum(client.nthreads().values())
    return {
        "executor": client.get_executor(pure=False),
        "size": threads,
        "lost": lost,
        "close": lambda busy: client.close(),
    }


def _begin() -> None:
    """In a new worker process: Ctrl-C is for the process that started it, with which it ends."""
    from multiprocessing import parent_process

    signal.signal(signal.SIGINT, lambda *_: None)  # not SIG_IGN, which commands that it runs would inherit
    parent = parent_process()

    def end() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=end, daemon=True).start()


def _call(function: bytes, *arguments: Any) -> tuple[Any, Exception | None]:
    """In a worker process: call a `packed` function; its result, or its error.

    The error is returned, not raised: Dask's workers would log it, and what was sent to them, keys included.
    """
    try:
        return _unpacked(function)(*arguments), None
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # an error that cannot travel still has a reason
            return None, ExecutorError(described(error))
        return None, error


@functools.lru_cache(maxsize=4)
def _unpacked(function: bytes) -> Callable[..., Any]:
    """The function that was sent; the same for all calls, so that it may keep what is dear to make."""
    from agentic_bayes import __version__

    version, content = pickle.loads(function)
    if version != __version__:
        raise ExecutorError(f"the workers have agentic-bayes {__version__}, and {version} calls them: install the same")
    try:
        made: Callable[..., Any] = pickle.loads(content)
    except Exception as error:
        raise ExecutorError(
            f"a worker process cannot load what was sent ({described(error)}): define it in a module that the workers "
            "can import, not in a notebook"
        ) from None
    return made


def awaited(work: Coroutine[Any, Any, _Returned]) -> _Returned:
    """In a worker process: what a coroutine gives, on the one event loop that all calls share."""
    value, error = asyncio.run_coroutine_threadsafe(caught(work), _loop()).result()
    if error is not None:
        raise error
    return value  # type: ignore[return-value]


async def caught(work: Awaitable[_Returned]) -> tuple[_Returned | None, BaseException | None]:
    """What is awaited, or its error, of whatever kind: SystemExit would end the event loop."""
    try:
        return await work, None
    except BaseException as error:
        return None, error


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="worker", daemon=True).start()
    return loop
