"""Held-out trials of public data: every package predicts pass^2 of the trials that it has not seen."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from calibration.heldout import TAU_BENCH

from agentic_bayes import numerics
from peer_study.environments import ROOT, Environment

METRIC, TRIALS, SEEN = "pass^2", 4, 2
SHARED = ROOT.parent / "shared" / "data"


def data() -> dict[str, list[int]]:
    """Successes of each task's four trials; a file that is not on this machine is left out."""
    found = {"tau-bench airline, gpt-4o, 50 tasks": TAU_BENCH.tolist()}
    path = SHARED / "tau2_airline" / "telecom_gpt-4.1_4trials5tasks.json.gz"
    if path.exists():
        found["tau2-bench telecom, gpt-4.1, 5 tasks"] = _successes(path)
    return found


def _successes(path: Path) -> list[int]:
    runs = json.loads(gzip.decompress(path.read_bytes()))["simulations"]
    passed: Counter[str] = Counter({run["task_id"]: 0 for run in runs})
    for run in runs:
        passed[run["task_id"]] += run["reward_info"]["reward"] == 1
    return [passed[task] for task in sorted(passed)]


def study(environments: Mapping[str, Environment], splits: int, seed: int) -> list[dict[str, Any]]:
    """Mean |predicted - observed| pass^2 over random splits, two trials of every task seen and two held out."""
    rows = []
    for name, successes in data().items():
        rng = np.random.default_rng(seed)
        all_c = np.array(successes)
        seen = [rng.hypergeometric(all_c, TRIALS - all_c, SEEN) for _ in range(splits)]
        observed = np.array([numerics.pass_pow_k(TRIALS - SEEN, all_c - c, 2).mean() for c in seen])
        for peer, environment in environments.items():
            answer = environment.call("predicted", metric=METRIC, trials=SEEN, sets=[c.tolist() for c in seen])
            row: dict[str, Any] = {"data": name, "peer": peer, "splits": splits}
            if "error" in answer:
                rows.append(row | {"error": answer["error"]})
                continue
            miss = np.array(answer["result"]) - observed
            error = {"error_mean": float(np.abs(miss).mean()), "bias": float(miss.mean())}
            rows.append(row | error | {"standard_error": float(np.abs(miss).std(ddof=1) / np.sqrt(splits))})
    return rows
