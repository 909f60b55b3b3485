"""How much faster two worker processes are than one, on this machine and on a Dask cluster.

``python benchmarks/executors.py`` prints one table: wall seconds with one worker and with two, for judging by rules,
for the same with embeddings, and for the estimates of many groups. The workers have imported everything before the
clock starts; each line also checks that both gave the same to the last bit. Run it on an idle machine with two cores or
more: it takes two minutes there. What is measured so far goes to standard error.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from measuring import print_table

import agentic_bayes as ab

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "support_agent"
COPIES, GROUPS = 4, 24


@contextmanager
def processes(size: int) -> Iterator[Executor]:
    """So many processes of this machine."""
    with ProcessPoolExecutor(size, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@contextmanager
def dask(size: int) -> Iterator[Executor]:
    """A Dask cluster with so many workers."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=size, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client.get_executor(pure=False)


def conversations() -> list[ab.Conversation]:
    """The example conversations several times, as new trials."""
    found = list(ab.read_conversations(str(EXAMPLE / "*.jsonl")))
    return [
        one.model_copy(update={"session_id": f"{one.session_id}-{copy}", "trial": (one.trial or 0) + 4 * copy})
        for copy in range(COPIES)
        for one in found
    ]


def trials() -> pd.DataFrame:
    """Groups of two agents that try 30 tasks four times each."""
    rng = np.random.default_rng(0)
    ease = rng.beta(2, 1, 30)
    cells = pd.MultiIndex.from_product(
        [range(GROUPS), ("v1", "v2"), range(30), range(4)], names=["week", "agent", "task", "trial"]
    ).to_frame(index=False)
    return cells.assign(correct=(rng.random(len(cells)) < ease[cells["task"]]).astype(int))


def main() -> None:
    """Run every piece of work with one worker and with two."""
    judged, table = conversations(), trials()
    judge, embeddings = (
        ab.ReferenceJudge(),
        [ab.metrics.make_metric("coherence"), ab.metrics.make_metric("loop_detection")],
    )
    works: dict[str, Callable[[Executor, bool], Any]] = {
        "judge by rules, tool rubric": lambda pool, few: ab.assess(
            judged[: 9 if few else None], judge=judge, executor=pool
        ).to_dict(),
        "the same, with embeddings": lambda pool, few: ab.assess(
            judged[: 9 if few else None], judge=judge, metrics=embeddings, executor=pool
        ).to_dict(),
        f"estimate_many, {GROUPS} groups": lambda pool, few: ab.estimate_many(
            table[table["week"] < 4] if few else table, split="week", method="hierarchical", executor=pool
        ).to_dict(),
    }
    rows = []
    for where, open_executor in (("processes", processes), ("Dask", dask)):
        seconds: dict[str, list[float]] = {name: [] for name in works}
        results: dict[str, list[Any]] = {name: [] for name in works}
        for size in (1, 2):
            with open_executor(size) as pool:
                for name, work in works.items():
                    work(pool, True)
                    start = time.perf_counter()
                    results[name].append(work(pool, False))
                    seconds[name].append(time.perf_counter() - start)
                    print(f"{where}, {size}: {name}, {seconds[name][-1]:.1f} s", file=sys.stderr, flush=True)
        for name, (one, two) in seconds.items():
            agreement = "same bits" if results[name][0] == results[name][1] else "DIFFER"
            rows.append((where, name, f"{one:.1f} s", f"{two:.1f} s", f"{one / two:.2f} ×", agreement))
    print_table(("workers", "work", "one", "two", "faster", "agreement"), rows)


if __name__ == "__main__":
    main()
