"""The cost of counting tables, compared with reading and grouping them in pandas and polars in the same run.

``python benchmarks/tables.py [rows]`` prints three tables: files and frames of one million rows in CPU time; how memory
grows with rows that engines make (up to `rows`, 10 million unless said otherwise) and count, each in a process of its
own; and how memory grows with files of evidence and of conversations.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
from measuring import print_table
from peer_study.workers.worker import peak_megabytes

import agentic_bayes as ab
from agentic_bayes.evidence.row import EvidenceRow, row_to_json

ROWS, IN_ENGINE = 1_000_000, 10_000_000
ROUNDS = 3
LINES = (20_000, 80_000)  # of evidence and of conversations
REASON = "The answer states the sum that the reference states, and nothing else is in it. "


def long_table(rows: int) -> pd.DataFrame:
    """Two agents, a thousand tasks, as many trials as there are rows for."""
    number = np.arange(rows)
    task = (number // 2) % 1000
    return pd.DataFrame(
        {
            "agent": np.where(number % 2, "v1", "v2"),
            "task": np.char.add("task ", task.astype(str)),
            "trial": number // 2000,
            "correct": np.random.default_rng(1).integers(0, 2, rows),
        }
    )


def seconds(work: Callable[[], object]) -> float:
    """The least CPU time of some rounds."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def in_pandas(table: pd.DataFrame) -> object:
    """What one would write: sums and counts by agent and task."""
    return table.groupby(["agent", "task"])["correct"].agg(["sum", "count"])


def in_polars(table: pl.DataFrame) -> object:
    """The same in polars."""
    return table.group_by("agent", "task").agg(pl.col("correct").sum(), pl.len())


def files(folder: Path) -> None:
    """A million rows in files and frames."""
    long = long_table(ROWS)
    scores = long.assign(correct=np.random.default_rng(2).random(ROWS))
    tasks = long.assign(task=np.char.add("task ", (np.arange(ROWS) // 8).astype(str)), trial=np.arange(ROWS) // 2 % 4)
    printed = []
    for name, table, arguments in (
        ("verdicts", long, {}),
        ("scores", scores, {"threshold": 0.5}),
        ("125,000 tasks", tasks, {}),
    ):
        csv, parquet = folder / "t.csv", folder / "t.parquet"
        table.to_csv(csv, index=False)
        table.to_parquet(parquet)
        frame = pl.from_pandas(table)
        both: dict[str, tuple[Any, Callable[[], object], Callable[[], object]]] = {
            "CSV": (csv, lambda f=csv: in_pandas(pd.read_csv(f)), lambda f=csv: in_polars(pl.read_csv(f))),
            "Parquet": (
                parquet,
                lambda f=parquet: in_pandas(pd.read_parquet(f)),
                lambda f=parquet: in_polars(pl.read_parquet(f)),
            ),
            "frame": (table, lambda t=table: in_pandas(t), lambda t=frame: in_polars(t)),
        }
        for form, (source, pandas, polars) in both.items():
            ours = seconds(lambda s=source, a=arguments: ab.outcomes_from_table(s, **a))
            one, other = seconds(pandas), seconds(polars)
            printed.append(
                [f"{name}, {form}", f"{ours:.2f} s", f"{one:.2f} s", f"{ours / one:.1f} ×", f"{other:.2f} s"]
            )
    print_table([f"{ROWS:,} rows", "here", "pandas", "ratio", "polars"], printed)


def counted(kind: str, size: str) -> None:
    """Count one source in this process, and print how long it took and the most memory that the process held."""
    number = int(size) if size.isdigit() else 0
    source: Any = size
    if kind == "DuckDB":
        source = duckdb.sql(
            "select 'v' || (i % 2) as agent, 'task ' || (i // 2 % 1000) as task, i // 2000 as trial, "
            f"(hash(i) % 10 < 7)::int as correct from range({number}) made(i)"
        )
    elif kind == "polars":
        i = pl.int_range(number).alias("i")
        names = pl.format("v{}", i % 2).alias("agent"), pl.format("task {}", i // 2 % 1000).alias("task")
        source = pl.LazyFrame().select(*names, (i // 2000).alias("trial"), (i % 10 < 7).alias("correct"))
    start, cpu = time.perf_counter(), time.process_time()
    if kind == "conversations":
        count = sum(len(c.conversation) for c in ab.read_conversations(source))
    elif kind == "assess":
        count = len(ab.assess(ab.read_conversations(source), judge=ab.ReferenceJudge()))
    else:
        ds = ab.count_outcomes(source) if kind == "evidence" else ab.outcomes_from_table(source)
        count = int((ds["trials"] + ds["unscored"]).sum())
    spent, used = time.perf_counter() - start, time.process_time() - cpu
    print(json.dumps([kind, f"{count:,}", f"{spent:.1f} s", f"{used:.1f} s", f"{peak_megabytes():,.0f} MB"]))


def alone(kind: str, size: object) -> list[str]:
    """`counted` in a process of its own."""
    command = [sys.executable, __file__, "counted", kind, str(size)]
    row: list[str] = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    return row


def write_evidence(path: Path, rows: int) -> None:
    """Evidence of two turns per conversation, with reasons."""
    keys = ("answer_score", "answer_reason", "judge", "tool_rubric")
    values = dict(zip(keys, (0.9, 3 * REASON, "judge/1", "rubric/1"), strict=True))
    with path.open("w", encoding="utf-8") as file:
        for i in range(rows):
            names = {"agent": "v1", "task": f"t{i // 8:07}", "session_id": f"s{i // 2}", "qa_id": f"q{i % 2}"}
            row = EvidenceRow(**names, trial=i % 8 // 2, interaction=i % 2, **values)
            file.write(json.dumps(row_to_json(row)) + "\n")


def write_conversations(path: Path, turns: int) -> None:
    """Conversations of two turns of about 600 characters."""
    with path.open("w", encoding="utf-8") as file:
        for i in range(turns // 2):
            turn = {"query": REASON * 4, "assistant": f"{REASON * 3}{i}", "ground_truth_assistant": str(i)}
            both = [{"qa_id": f"q{n}"} | turn for n in range(2)]
            head = {"session_id": f"s{i}", "assistant_id": "v1", "task_id": f"t{i // 4}"}
            file.write(json.dumps(head | {"conversation": both}) + "\n")


def main() -> int:
    """Print the tables."""
    if sys.argv[1:2] == ["counted"]:
        counted(*sys.argv[2:4])
        return 0
    most = int(float(sys.argv[1])) if len(sys.argv) > 1 else IN_ENGINE
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files(folder)
        header = ["", "rows or turns", "time", "CPU", "peak memory of the process"]
        sizes = [most // 10, most]
        long_table(most).to_parquet(folder / "large.parquet")
        rows = [alone(engine, size) for engine in ("DuckDB", "polars") for size in sizes]
        rows.append(alone("Parquet", folder / "large.parquet"))
        for lines in LINES:
            write_evidence(folder / f"e{lines}.jsonl", lines)
            write_conversations(folder / f"c{lines}.jsonl", lines)
        for kind, first in (("evidence", "e"), ("conversations", "c"), ("assess", "c")):
            rows += [alone(kind, folder / f"{first}{lines}.jsonl") for lines in LINES]
        print()
        print_table(header, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
