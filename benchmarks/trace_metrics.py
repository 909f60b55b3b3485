"""The speed of the embedding metrics, with the offline model, in one process.

``python benchmarks/trace_metrics.py [interactions]`` prints the interactions per second of coherence, alone and within
`assess`, compared with the model alone on the same texts in one batch; and the time per trace of loop detection in
sessions of 100 and of 1,000 traces, which is the same if it is linear.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import agentic_bayes as ab
from agentic_bayes.evidence.metrics.embedding_metrics import Coherence, LoopDetection
from agentic_bayes.evidence.metrics.embeddings import offline_embeddings

INTERACTIONS = 10_000
WORDS = [
    *("refund", "order", "ship", "carton", "price", "status", "laptop", "return"),
    *("address", "delivery", "window", "credit", "card", "gift", "invoice"),
]


def text(number: int, length: int) -> str:
    """A text of some words, different for every number."""
    return " ".join(WORDS[(number * 7 + i * i) % len(WORDS)] for i in range(length)) + f" {number}"


def conversations(count: int, turns: int) -> list[ab.Conversation]:
    """`count` interactions in conversations of `turns` turns."""
    return [
        ab.Conversation(
            session_id=f"s{start}",
            assistant_id="v1",
            task_id=f"t{start}",
            conversation=[
                {"qa_id": f"q{i}", "query": text(i, 12), "assistant": text(i + 1, 30)}
                for i in range(start, min(start + turns, count))
            ],
        )
        for start in range(0, count, turns)
    ]


def seconds(work: Callable[[], object]) -> float:
    """How long a function takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> int:
    """Print the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else INTERACTIONS
    data = conversations(count, 5)
    texts = [part for c in data for turn in c.conversation for part in (turn.query, turn.assistant or "")]
    offline_embeddings().embed_documents(["warm"])
    batch = seconds(lambda: offline_embeddings().embed_documents(texts))
    metric = Coherence()
    alone = seconds(lambda: [metric.grade(c, i) for c in data for i in range(len(c.conversation))])
    whole = seconds(lambda: ab.assess(data, judge=ab.RecordedJudge(), metrics=[Coherence()]))
    print(f"{count:,} interactions, texts of 13 and 31 words")
    print(f"the model alone, one batch     {count / batch:10,.0f} interactions/s   1.00")
    print(f"coherence                      {count / alone:10,.0f} interactions/s   {batch / alone:4.2f}")
    print(f"assess with coherence          {count / whole:10,.0f} interactions/s   {batch / whole:4.2f}")
    per_trace = {}
    for length in (100, 1000):
        (session,) = conversations(length, length)
        loops = LoopDetection()
        per_trace[length] = seconds(lambda s=session, m=loops, n=length: [m.grade(s, i) for i in range(n)]) / length
    print(f"loop detection, per trace: {1e6 * per_trace[100]:.0f} µs in 100, {1e6 * per_trace[1000]:.0f} µs in 1,000")
    return 0


if __name__ == "__main__":
    sys.exit(main())
