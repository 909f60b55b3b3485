"""How this package grows: time of a fit as log-log slopes, memory over many calls and over a large file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from peer_study.environments import Environment, Peer

# what grows → the method, and sizes as agents, tasks, trials and the largest k
GROWING: dict[str, tuple[str, tuple[tuple[int, int, int, int], ...]]] = {
    "agents, hierarchical": ("hierarchical", ((3, 50, 5, 3), (6, 50, 5, 3), (12, 50, 5, 3), (24, 50, 5, 3))),
    "agents, crossed": ("crossed", ((2, 50, 5, 3), (4, 50, 5, 3), (8, 50, 5, 3))),
    "tasks, one agent": ("hierarchical", ((1, 100, 5, 3), (1, 1_000, 5, 3), (1, 10_000, 5, 3), (1, 100_000, 5, 3))),
    "trials, one agent": ("hierarchical", ((1, 50, 10, 3), (1, 50, 100, 3), (1, 50, 1_000, 3))),
    "k, one agent": ("hierarchical", ((1, 50, 5, 5), (1, 50, 5, 20), (1, 50, 5, 100))),
}
AXES = ("agents", "tasks", "trials", "k")
ESTIMATES, JUDGEMENTS = 2_000, 20_000
SMALL, LARGE = 50, 500  # MB of JSONL


def study(megabytes: int, report: Callable[[str], None]) -> dict[str, Any]:
    """Slopes, memory held and peaks, for a largest file of `megabytes`."""
    us = Environment(Peer("growth", (), ""), sys.executable)
    times = {}
    for name, (method, sizes) in GROWING.items():
        times[name] = [round(t, 4) for t in us.call("fit", method=method, sizes=sizes)["result"]]
        report(f"growth with {name}: {times[name]}")
    memory = {}
    for what, calls in (("estimates", ESTIMATES), ("judgements", JUDGEMENTS)):
        memory[what] = us.call(what, times=calls, marks=[calls // 10, calls // 2, calls])["result"]
        report(f"memory after {what}: {memory[what]}")
    files = []
    for size in sorted({min(SMALL, megabytes), megabytes}):
        answer = us.call("jsonl", megabytes=size)
        files.append({**answer["result"], "peak_mb": answer["peak_mb"]})
        report(f"JSONL: {files[-1]}")
    return {"times": times, "memory": memory, "files": files}


def slope(name: str, times: list[float]) -> float:
    """Of log time over log size, by least squares."""
    sizes = GROWING[name][1]
    axis = AXES.index(name.split(",")[0])
    return float(np.polyfit(np.log([size[axis] for size in sizes]), np.log(times), 1)[0])
