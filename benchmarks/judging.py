"""The CPU time that prompt, parsing, retries, store and evidence add to a judge's call.

``python benchmarks/judging.py [interactions]`` prints one table. The model replies at once, so all CPU time is
LangChain's or ours. Each round measures all variants in turn, and the ratios are medians over the rounds, so a busy
machine matters little. ``--check`` fails if a ratio is out of bounds.
"""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult

import agentic_bayes as ab
from agentic_bayes.evidence.llm.prompt import Prompt
from agentic_bayes.evidence.llm.reply import REPLY_SCHEMA

INTERACTIONS, ROUNDS, CONCURRENCY = 10_000, 5, 32
VERDICT = {"reasoning": "The answer states the sum that the reference states.", "correctness_score": 0.9}
USAGE = {"input_tokens": 900, "output_tokens": 30, "total_tokens": 930}
MOST_OF_BARE, MOST_OF_CHAIN, MOST_BYTES = 2.5, 0.5, 2048
ANSWER = (
    "Order ORD-1042 was packed on March 14 and ships with Postline; you pay $32.40, and a refund takes five days. " * 34
)
MOST_OF_SPLIT = 20.0


class InstantModel(BaseChatModel):
    """A chat model that replies at once, in text or by a tool call."""

    @property
    def _llm_type(self) -> str:
        return "instant"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Structured output by tool calls."""
        return self.bind(tools=tools)

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        if "tools" in kwargs:
            call = {"name": "verdict", "args": dict(VERDICT), "id": "1"}
            message = AIMessage("", tool_calls=[call], usage_metadata=USAGE)
        else:
            message = AIMessage(json.dumps(VERDICT), usage_metadata=USAGE)
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return self._generate(messages, **kwargs)


def conversations(count: int) -> list[ab.Conversation]:
    """Distinct conversations of two turns each."""
    return [
        ab.Conversation.model_validate(
            {
                "session_id": f"s{number:06}",
                "assistant_id": "v1",
                "task_id": f"t{number // 4:06}",
                "conversation": [
                    {
                        "qa_id": f"q{turn}",
                        "query": f"What is {number} + {turn}?",
                        "assistant": f"The sum of {number} and {turn} is {number + turn}.",
                        "ground_truth_assistant": str(number + turn),
                    }
                    for turn in range(2)
                ],
            }
        )
        for number in range(count // 2)
    ]


def cpu(work: Callable[[], Any]) -> float:
    """The CPU seconds of some work."""
    start = time.process_time()
    work()
    return time.process_time() - start


def bare(call: Callable[[Any], Awaitable[Any]], count: int) -> Callable[[], None]:
    """Only the call, again and again, with a prompt of the same size."""
    prompt = Prompt()
    material = {"query": "What is 5 + 3?", "reference": "8", "answer": "The sum of 5 and 3 is 8."}
    system, human = prompt.opening[0][1], prompt.question(material)

    async def run() -> None:
        for _ in range(count):
            await call([SystemMessage(system), HumanMessage(human)])

    return lambda: asyncio.run(run())


def judged(model: InstantModel, data: list[ab.Conversation], structured: bool, folder: Path) -> Callable[[], None]:
    """The whole of `assess`: prompt, parsing, a store on disk, evidence."""

    def run() -> None:
        store = folder / f"{time.monotonic_ns()}.db"
        judge = ab.LLMJudge(model, use_structured_output=structured, price=(0.15, 0.6))
        evidence = ab.assess(data, judge=judge, store=store, concurrency=CONCURRENCY)
        assert evidence.scored == len(evidence) == 2 * len(data)
        assert {row.answer_score for row in evidence} == {0.9}
        store.unlink()

    return run


def measured(count: int) -> list[tuple[str, float, str]]:
    """The rows of the table: name, ratio or bytes, bound."""
    model, data = InstantModel(), conversations(count)
    chain = model.with_structured_output(dict(REPLY_SCHEMA), include_raw=True)
    few = max(1, count // 10)
    rows: list[tuple[str, float, str]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        judged(model, data[:50], True, folder)()  # imports everything
        ways = {
            "bare": bare(model.ainvoke, count),
            "chain": bare(chain.ainvoke, few),
            "text": judged(model, data, False, folder),
            "structured": judged(model, data, True, folder),
            "half": judged(model, data[: len(data) // 2], False, folder),
        }
        sizes = {"bare": count, "chain": few, "text": count, "structured": count, "half": count // 2}
        rounds = [{way: cpu(work) / sizes[way] for way, work in ways.items()} for _ in range(ROUNDS)]

        def ratio(over: str, under: str) -> float:
            return statistics.median(times[over] / times[under] for times in rounds)

        print(
            f"{count:,} interactions; model.ainvoke alone: {statistics.median(t['bare'] for t in rounds) * 1e6:.0f} µs"
        )
        for mode in ("text", "structured"):
            rows.append((f"{mode}: CPU per judgement / model.ainvoke", ratio(mode, "bare"), f"≤ {MOST_OF_BARE}"))
            rows.append((f"{mode}: … / with_structured_output", ratio(mode, "chain"), f"≤ {MOST_OF_CHAIN}"))
        rows.append(("all interactions / half of them, per judgement", ratio("text", "half"), "≈ 1"))
        rows.append(("bytes in memory at the end, per judgement", kept(model, data, folder), f"≤ {MOST_BYTES}"))
    return rows


def by_rules(length: int) -> Callable[[], None]:
    """The reference judge on a hundred answers of some length, each another one."""
    turns = [
        ab.Interaction(
            qa_id="q", query="Which carrier?", assistant=f"{number} {text}", ground_truth_assistant="Postline"
        )
        for number in range(100)
        if (text := (ANSWER * (length // len(ANSWER) + 1))[:length])
    ]
    asked = ab.Conversation(session_id="s", assistant_id="v1", conversation=turns)
    judge = ab.ReferenceJudge()
    return lambda: [judge.grade(asked, position) for position in range(len(turns))] and None


def split(length: int) -> Callable[[], None]:
    """The least that can be done with such answers: find their words and numbers."""
    text = (ANSWER * (length // len(ANSWER) + 1))[:length]
    return lambda: [re.findall(r"\w+|\S", text.casefold()) for _ in range(100)] and None


def judged_by_rules() -> list[tuple[str, float, str]]:
    """The rows of the reference judge: its cost is linear in the answer, with a small constant."""
    lengths = (100, 3_800, 15_200)
    rounds = [{n: (cpu(by_rules(n)), cpu(split(n))) for n in lengths} for _ in range(ROUNDS)]
    short, long = (statistics.median(times[n][0] for times in rounds) for n in lengths[:2])
    print(f"reference judge: {short * 1e4:.0f} µs for 100 characters, {long * 1e4:.0f} µs for 3,800")
    growth = statistics.median(times[15_200][0] / times[3_800][0] / 4 for times in rounds)
    over = statistics.median(times[3_800][0] / times[3_800][1] for times in rounds)
    return [
        ("reference judge: per character, 15,200 / 3,800 characters", growth, "≤ 1.3"),
        ("reference judge: 3,800 characters / finding their words", over, f"≤ {MOST_OF_SPLIT}"),
    ]


def kept(model: InstantModel, data: list[ab.Conversation], folder: Path) -> float:
    """The bytes that a run keeps per judgement: evidence rows and whatever else grows."""
    few = data[: len(data) // 4]
    judge = ab.LLMJudge(model, price=(0.15, 0.6))
    tracemalloc.start()
    evidence = ab.assess(iter(few), judge=judge, store=folder / "memory.db")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / len(evidence)


def main() -> int:
    """Print the table; with --check, 1 if a ratio is out of bounds."""
    numbers = [argument for argument in sys.argv[1:] if argument.isdigit()]
    rows = [*judged_by_rules(), *measured(int(numbers[0]) if numbers else INTERACTIONS)]
    width = max(len(what) for what, _, _ in rows)
    for what, value, bound in rows:
        print(f"{what.ljust(width)}  {value:8.2f}  {bound}")
    bad = [what for what, value, bound in rows if bound.startswith("≤") and value > float(bound[2:])]
    return 1 if bad and "--check" in sys.argv else 0


if __name__ == "__main__":
    raise SystemExit(main())
