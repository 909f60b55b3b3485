"""agentic-bayes alone: how time and memory grow with agents, tasks, trials, k, estimates, judgements and bytes."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import worker
import xarray as xr

import agentic_bayes as ab

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "support_agent"


def simulated(agents, tasks, trials):
    """Outcomes of agents that tried the same tasks (ρ = .4)."""
    rng = np.random.default_rng([agents, tasks, trials])
    mu, kappa = rng.uniform(0.3, 0.9, (agents, 1)), 1.5
    n = np.full((agents, tasks), trials)
    c = rng.binomial(n, rng.beta(mu * kappa, (1 - mu) * kappa, n.shape))
    counts = {"successes": c, "trials": n, "unscored": np.zeros_like(n)}
    labels = {"agent": [str(i) for i in range(agents)], "task": [str(i) for i in range(tasks)]}
    attrs = {"unit": "conversation", "indicator": "correct"}
    return xr.Dataset({name: (("agent", "task"), x) for name, x in counts.items()}, labels, attrs)


def fit(request):
    """CPU seconds of `estimate(...).summary()` at each size: the fewest of two after a warm-up."""
    found = []
    for size in request["sizes"]:
        outcomes, most = simulated(*size[:3]), size[3]
        times = []
        for _ in range(3):
            start = time.process_time()
            ab.estimate(outcomes, request["method"], k=range(1, most + 1)).summary()
            times.append(time.process_time() - start)
        found.append(min(times[1:]))
    return found


def resident_megabytes():
    """The memory that this process holds now, once the C library has given back what is free."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def grown(work, times, marks):
    """Megabytes held after each of `marks` calls of `work`, of `times` in all."""
    held = []
    for i in range(times + 1):
        if i in marks:
            held.append(resident_megabytes())
        if i < times:
            work(i)
    return held


def estimates(request):
    """Memory after some estimates of one agent: every fifth hierarchical, the others conjugate."""
    outcomes = [simulated(1, 10, 3 + i) for i in range(5)]

    def work(i):
        method = "conjugate" if i % 5 else "hierarchical"
        ab.estimate(outcomes[i // 5 % 5], method, k=(1, 3), random_seed=i).summary()

    return {"held": grown(work, request["times"], request["marks"]), "calls": request["marks"]}


def judgements(request):
    """Memory after some judgements by the reference judge, in calls of 248 conversations."""
    conversations = list(ab.read_conversations(str(EXAMPLE / "*.jsonl")))
    turns = sum(len(conversation.conversation) for conversation in conversations)
    marks = [round(mark / turns) for mark in request["marks"]]
    held = grown(lambda _: ab.assess(conversations, judge=ab.ReferenceJudge()), round(request["times"] / turns), marks)
    return {"held": held, "calls": [mark * turns for mark in marks]}


def jsonl(request):
    """CPU seconds, turns and bytes of assessing a file with the reference judge: conversations of about 20 KB."""
    records = [json.loads(line) for line in (EXAMPLE / "v1.jsonl").open(encoding="utf-8")]
    for record in records:
        record["context"] += " The shop sells pots, pans, knives and seeds." * 400
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "conversations.jsonl"
        with path.open("w", encoding="utf-8") as out:
            again = 0
            while out.tell() < request["megabytes"] * 1e6:
                for record in records:
                    names = {"session_id": f"{record['session_id']}-{again}", "trial": record["trial"] + 4 * again}
                    out.write(json.dumps(record | names) + "\n")
                again += 1
        before, start = worker.peak_megabytes(), time.process_time()
        evidence = ab.assess(ab.read_conversations(path), judge=ab.ReferenceJudge())
        seconds = time.process_time() - start
        return {"megabytes": path.stat().st_size / 1e6, "turns": len(evidence), "seconds": seconds, "before_mb": before}


worker.main("agentic-bayes", {"fit": fit, "estimates": estimates, "judgements": judgements, "jsonl": jsonl})
