"""Conversations that a report is made of: harmless ones, and such as would like to be code."""

from __future__ import annotations

from typing import Any

from agentic_bayes.evidence.assess import assess
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.reference.judge import ReferenceJudge
from agentic_bayes.records.model import Conversation

HOSTILE = [
    "<script>window.hacked = 1</script>",
    "</script><script>window.hacked = 1</script>",
    "<!--<script>",
    "--></svg></title><img src=x onerror='window.hacked = 1'>",
    "<a href='javascript:window.hacked=1'>javascript:window.hacked=1</a>",
    "{{ 7 * 7 }} {% raw %} ${7 * 7}",
    "a\u202egnp.exe\u202c \u2066b\u2069 zero\u200bwidth\u200d \ufeff",
    "NUL \x00 bell \x07 escape \x1b[2J line \u2028 paragraph \u2029",
    "'\" onmouseover=window.hacked=1 x='",
    "שלום عالم",
]


def record(agent: str, task: str, trial: int, *, passed: bool, **more: Any) -> Conversation:
    """One conversation of one turn with a call; its answer is the reference, or is not."""
    name = task.replace("\0", "")  # ids with NUL are refused
    call = {"tool_name": "get_price", "parameters": {"item": task}, "result": {"eur": 12}}
    turn = {
        "qa_id": f"{name}-1",
        "query": f"What does {task} cost?",
        "assistant": "It costs 12 EUR." if passed else "It costs 99 EUR.",
        "ground_truth_assistant": "12 EUR",
        "agentic": {"tools_used": [call]},
        "ground_truth_agentic": {"expected_tools": [call]},
    } | more
    place = {"session_id": f"{agent} {name} {trial}", "assistant_id": agent, "task_id": name, "trial": trial}
    return Conversation.model_validate(place | {"conversation": [turn]})


def conversations(tasks: int = 12, trials: int = 3, agents: tuple[str, ...] = ("v1", "v2")) -> list[Conversation]:
    """Conversations of agents of which the later ones pass more often."""
    return [
        record(agent, f"task {i + 1}", trial, passed=(7 * i + 3 * trial) % 10 < 4 + 3 * place)
        for place, agent in enumerate(agents)
        for i in range(tasks)
        for trial in range(trials)
    ]


def judged(found: list[Conversation]) -> Evidence:
    """Their scores, by the offline judge."""
    return assess(found, judge=ReferenceJudge())


def hostile() -> list[Conversation]:
    """Conversations in which names, words, calls and errors would like to be code, or are very long."""
    long = "W" * 200_000
    found = []
    for place, agent in enumerate((f"v1 {HOSTILE[0]}", f"v2 {HOSTILE[6]} {long[:500]}")):
        for i, text in enumerate([*HOSTILE, long]):
            call = {"tool_name": f"tool {text}", "parameters": {text: text}, "result": {text: [text]}}
            for trial in range(2):
                passed = (i + trial + place) % 3 > 0
                more = {
                    "query": text,
                    "assistant": f"{'12 EUR' if passed else '99 EUR'} {text}",
                    "agentic": {"tools_used": [call]},
                    "ground_truth_agentic": {"expected_tools": [call]},
                }
                if i == 2 and trial:
                    more |= {"error": f"crashed: {text}", "assistant": None}
                found.append(record(agent, f"{i} {text}", trial, passed=passed, **more))
    return found
