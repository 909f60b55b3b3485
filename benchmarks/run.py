"""How much faster or slower this library is than the obvious way to write the same thing.

``python benchmarks/run.py`` prints one table; each line also checks that both ways agree. Ratios carry over from one
machine to another; seconds only show how large the work was.
"""

from __future__ import annotations

import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measuring import peak_memory, print_table

import agentic_bayes as ab
from agentic_bayes import numerics

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "support_agent"
MEGABYTES = 30
TASKS, TRIALS, K = 100_000, 50, 8
CELLS, DRAWS = 2_000, 5_000
STARTS = 15
LIBRARIES = "import numpy, pandas, xarray, scipy.special, typer, rich, pydantic"


def main() -> None:
    """Run every benchmark and print the table."""
    rows = [start_up(), *reader(), unbiased(), conjugate(), engines(), judging()]
    print_table(("what", "here", "the obvious way", "ratio", "agreement"), rows)


def timed(work: Callable[[], Any], *, repeat: int = 1) -> tuple[float, Any]:
    """The fewest CPU seconds of a few runs, and the result; CPU time, so a busy machine does not matter."""
    best, result = math.inf, None
    for _ in range(repeat):
        start = time.process_time()
        result = work()
        best = min(best, time.process_time() - start)
    return best, result


def start_up() -> tuple[str, ...]:
    """From the shell: estimate a small table, compared with importing the libraries alone; CPU of whole processes."""
    rng = np.random.default_rng(0)
    passed = rng.binomial(5, rng.beta(3, 2, (2, 30)))
    rows = [f"v{a},t{t},{i},{int(i < passed[a, t])}" for a, t, i in np.ndindex(2, 30, 5)]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "results.csv").write_text("\n".join(["agent,task,trial,correct", *rows]), encoding="utf-8")
        commands = {"estimate": ["-m", "agentic_bayes", "estimate", "results.csv"], "libraries": ["-c", LIBRARIES]}
        for command in commands.values():
            cpu_of(command, folder)  # the first run compiles
        seconds = [{name: cpu_of(command, folder) for name, command in commands.items()} for _ in range(STARTS)]
    ours, libraries = (statistics.median(run[name] for run in seconds) for name in commands)
    return (
        "start-up: estimate 2 agents × 30 tasks × 5 trials from the shell",
        f"{ours:.2f} s, with the fit and the tables",
        f"{libraries:.2f} s, importing the libraries alone",
        f"{ours / libraries:.2f} × the libraries",
        f"medians of {STARTS} runs each",
    )


def cpu_of(command: list[str], folder: str) -> float:
    """CPU seconds of Python with these arguments, from its start to its end."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"OMP_NUM_THREADS": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *command], cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def reader() -> list[tuple[str, ...]]:
    """Check and read a file of conversations one at a time, compared with json.loads of every line into a list."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "conversations.jsonl"
        size = write_conversations(path)

        def streamed() -> int:
            return sum(1 for _ in ab.read_conversations(path))

        def whole() -> int:
            with path.open(encoding="utf-8") as stream:
                return len([json.loads(line) for line in stream])

        ours, count = timed(streamed)
        plain, plain_count = timed(whole)
        memory, plain_memory = peak_memory(streamed), peak_memory(whole)
    name = f"reader, {size / 1e6:.0f} MB, {count:,} conversations"
    agreement = "same count" if count == plain_count else "DIFFER"
    return [
        (
            f"{name}: time",
            f"{ours:.1f} s, validated, twice",
            f"{plain:.2f} s, json.loads alone",
            f"{ours / plain:.1f} × slower",
            agreement,
        ),
        (
            f"{name}: memory",
            f"{memory:.1f} MB",
            f"{plain_memory:.0f} MB",
            f"{plain_memory / memory:.0f} × less",
            agreement,
        ),
    ]


def write_conversations(path: Path) -> int:
    """Write the example conversations over and over, as new trials; return the size in bytes."""
    records = [json.loads(line) for line in (EXAMPLE / "v1.jsonl").open(encoding="utf-8")]
    round_number = 0
    with path.open("w", encoding="utf-8") as out:
        while out.tell() < MEGABYTES * 1e6:
            for record in records:
                session, trial = record["session_id"], record["trial"]
                again = record | {"session_id": f"{session}-{round_number}", "trial": trial + 4 * round_number}
                out.write(json.dumps(again, ensure_ascii=False) + "\n")
            round_number += 1
    return path.stat().st_size


def unbiased() -> tuple[str, ...]:
    """Unbiased pass^k of many tasks: one call on arrays, compared with binomial coefficients in a loop."""
    rng = np.random.default_rng(0)
    n = rng.integers(K, TRIALS + 1, TASKS)
    c = rng.integers(0, n + 1)
    numerics.pass_pow_k(n[:10], c[:10], K)  # the first call imports
    ours, values = timed(lambda: numerics.pass_pow_k(n, c, K), repeat=3)

    def loop() -> list[float]:
        return [math.comb(ci, K) / math.comb(ni, K) for ni, ci in zip(n.tolist(), c.tolist(), strict=True)]

    plain, expected = timed(loop, repeat=3)
    return (
        f"unbiased pass^{K}, {TASKS:,} tasks",
        f"{ours * 1e3:.1f} ms",
        f"{plain * 1e3:.0f} ms, math.comb in a loop",
        f"{plain / ours:.1f} × faster",
        f"{np.abs(values - expected).max():.0e}",
    )


def conjugate() -> tuple[str, ...]:
    """Posterior mean and interval of pass^3 in closed form, compared with 5,000 draws per cell."""
    rng = np.random.default_rng(0)
    c = rng.integers(0, 11, CELLS)
    a, b = 1.0 + c, 11.0 - c

    def closed() -> tuple[Any, Any]:
        limits = numerics.beta_quantile(np.array([[0.025], [0.975]]), a, b)
        return numerics.beta_pass_pow_k_mean(a, b, 3), numerics.plugin_pass_pow_k(limits, 3)

    def drawn() -> tuple[Any, Any]:
        powers = rng.beta(a, b, (DRAWS, CELLS)) ** 3
        return powers.mean(axis=0), np.quantile(powers, [0.025, 0.975], axis=0)

    closed()
    ours, (mean, limits) = timed(closed, repeat=3)
    plain, (drawn_mean, drawn_limits) = timed(drawn)
    error = max(np.abs(mean - drawn_mean).max(), np.abs(limits - drawn_limits).max())
    return (
        f"conjugate pass^3, {CELLS:,} cells",
        f"{ours * 1e3:.1f} ms, exact",
        f"{plain * 1e3:.0f} ms, {DRAWS:,} draws each",
        f"{plain / ours:.0f} × faster",
        f"{error:.3f}, the draws' error",
    )


def engines() -> tuple[str, ...]:
    """Fit and summarise the hierarchical model with the exact engine, compared with the PyMC engine."""
    outcomes = ab.outcomes_from_table(EXAMPLE / "results.csv")

    def summary(engine: Any) -> Any:
        return ab.estimate(outcomes, engine=engine, k=(1, 3)).summary()["mean"]

    summary("quadrature")
    ours, exact = timed(lambda: summary("quadrature"), repeat=3)
    plain, sampled = timed(lambda: summary("pymc"))
    return (
        "hierarchical, 2 agents × 31 tasks",
        f"{ours * 1e3:.0f} ms, quadrature",
        f"{plain:.0f} s, PyMC with compilation",
        f"{plain / ours:.0f} × faster",
        f"{(exact - sampled).abs().max():.3f}, the sampler's error",
    )


def judging() -> tuple[str, ...]:
    """CPU per interaction of `assess` with the reference judge, compared with parsing the same records."""
    conversations = list(ab.read_conversations(str(EXAMPLE / "*.jsonl")))
    lines = [line for name in ("v1", "v2") for line in (EXAMPLE / f"{name}.jsonl").open(encoding="utf-8")]
    ab.assess(conversations[:4], judge=ab.ReferenceJudge())
    ours, evidence = timed(lambda: ab.assess(conversations, judge=ab.ReferenceJudge()), repeat=3)
    plain, _ = timed(lambda: [json.loads(line) for line in lines], repeat=3)
    ours, plain = ours / len(evidence), plain / len(evidence)
    return (
        f"assess, {len(evidence)} interactions: CPU each",
        f"{ours * 1e6:.0f} µs, judge and tool rubric",
        f"{plain * 1e6:.1f} µs, only parsing the JSON",
        f"{ours / plain:.0f} × parsing",
        f"{evidence.scored} scored",
    )


if __name__ == "__main__":
    main()
