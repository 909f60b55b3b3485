"""The time that running a suite adds to the agent's own.

``python benchmarks/suites.py`` prints the overhead per trial over 2,000 trials of an instant agent; how long 500 trials
of an ``http`` agent take that answers after half a second, 25 at once, compared with the ideal; and the most memory
that Python holds in 500 and in 2,000 trials, which should be about the same.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import threading
import time
import tracemalloc
from contextlib import closing, suppress
from pathlib import Path

from agentic_bayes.suites.config import load_suite
from agentic_bayes.suites.results import RunResults
from agentic_bayes.suites.runner import plan_run, run_suite

TRIALS, REQUESTS, AT_ONCE, SECONDS = 2_000, 500, 25, 0.5
SUITE = """
name: bench
agent: {agent}
execution: {{concurrency: {concurrency}, timeout: 30s}}
defaults: {{trials_per_task: {trials}, graders: [{{type: exact_match}}]}}
tasks:
"""
INSTANT = '{type: python, name: v1, config: {function: "bench_agent:answer"}}'
HTTP = (
    '{{type: http, name: v1, config: {{url: "http://127.0.0.1:{port}/", '
    'body: {{text: "{{{{prompt}}}}"}}, answer: "$.text"}}}}'
)


def run(agent: str, *, tasks: int, trials: int, concurrency: int) -> tuple[float, float]:
    """Wall seconds of one run in its own folder, store included; and peak MB, if memory is traced."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = SUITE.format(agent=agent, concurrency=concurrency, trials=trials)
        text += "".join(f"  - {{id: t{i}, input: {{prompt: hi}}, expected: {{text: hi}}}}\n" for i in range(tasks))
        (folder / "eval.yaml").write_text(text, encoding="utf-8")
        (folder / "bench_agent.py").write_text("def answer(prompt):\n    return prompt\n", encoding="utf-8")
        suite = load_suite(folder / "eval.yaml", environment={})
        plan = plan_run(suite, suite.tasks, output=folder / "results")
        start = time.perf_counter()
        asyncio.run(run_suite(plan))
        elapsed, peak = time.perf_counter() - start, tracemalloc.get_traced_memory()[1] / 1e6
        if (counts := RunResults.of(plan.folder).counts())["passed"] != tasks * trials:
            raise SystemExit(f"not every trial passed: {counts}")
        return elapsed, peak


def slow_server() -> tuple[int, asyncio.AbstractEventLoop]:
    """Start a server on loopback that echoes ``text`` after half a second; return its port and event loop."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer):
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next(
                    int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-len")
                )
                body = json.dumps({"text": json.loads(await reader.readexactly(length))["text"]}).encode()
                await asyncio.sleep(SECONDS)
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
                )
                writer.write(body)
                await writer.drain()

    async def quietly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):  # the client left
            await answer(reader, writer)

    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    server = asyncio.run_coroutine_threadsafe(asyncio.start_server(quietly, "127.0.0.1", 0), loop).result()
    return server.sockets[0].getsockname()[1], loop


def held_after(trials: int) -> float:
    """The most memory that Python held during a run of this many instant trials, in MB."""
    tracemalloc.start()
    try:
        return run(INSTANT, tasks=20, trials=trials // 20, concurrency=8)[1]
    finally:
        tracemalloc.stop()


def main() -> int:
    """Print the table."""
    run(INSTANT, tasks=2, trials=5, concurrency=1)  # imports
    instant, _ = run(INSTANT, tasks=20, trials=TRIALS // 20, concurrency=8)
    print(f"{TRIALS:,} trials of an instant agent: {1000 * instant / TRIALS:.2f} ms per trial")
    port, loop = slow_server()
    http, _ = run(HTTP.format(port=port), tasks=50, trials=REQUESTS // 50, concurrency=AT_ONCE)
    ideal = REQUESTS / AT_ONCE * SECONDS
    print(f"{REQUESTS} http trials of {SECONDS} s, {AT_ONCE} at once: {http:.1f} s, {http / ideal:.2f} x ideal")
    loop.call_soon_threadsafe(loop.stop)
    few, many = held_after(500), held_after(2_000)
    print(f"memory: {few:.1f} MB at most in 500 trials, {many:.1f} MB in 2,000")
    return 0


if __name__ == "__main__":
    sys.exit(main())
