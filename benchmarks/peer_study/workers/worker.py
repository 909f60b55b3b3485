"""The frame of a worker: a job as JSON on standard input, its answer, times and memory as JSON on standard output."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version
from math import comb
from typing import Any


def main(distributions: str, jobs: dict[str, Callable[[dict[str, Any]], Any]]) -> None:
    """Answer the one job on standard input; what the package prints goes to standard error."""
    request = json.load(sys.stdin)
    imported = peak_megabytes()
    with contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = ({"version": lambda _: ", ".join(f"{name} {version(name)}" for name in distributions.split())} | jobs)[
            request["job"]
        ](request)
    json.dump({"result": result, "imported_mb": imported, "peak_mb": peak_megabytes()}, sys.stdout)


def each(work: Callable[[Any], Any], items: Sequence[Any]) -> dict[str, Any]:
    """`work` on every item: the values, CPU seconds of the first, and the median of the others."""
    values, times = [], []
    for item in items:
        start = time.process_time()
        values.append(work(item))
        times.append(time.process_time() - start)
    return {"values": values, "first_seconds": times[0], "seconds": statistics.median(times[1:] or times)}


def peak_megabytes() -> float:
    """The most memory that this process has held; unlike `ru_maxrss` it does not count what started the process."""
    if os.path.exists("/proc/self/status"):
        with open("/proc/self/status", encoding="ascii") as stream:
            return next(int(line.split()[1]) for line in stream if line.startswith("VmHWM")) / 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def unbiased(c: int, n: int, metric: str) -> float:
    """One task's unbiased pass@k or pass^k from c successes of n: the input for packages without their own."""
    k = int(metric[5:])
    return 1 - comb(n - c, k) / comb(n, k) if metric[4] == "@" else comb(c, k) / comb(n, k)
