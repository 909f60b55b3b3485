"""Write v1.jsonl, v2.jsonl and results.csv: recorded runs of two versions of a support agent.

    python examples/support_agent/make_data.py

The same seed gives the same bytes: each conversation has its own random generator, seeded by its name.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tasks import CRASHES, TASKS, Call, Change, Crash, Failure, Task, Turn

FOLDER = Path(__file__).resolve().parent
# one of several hundred tried: both files contain every kind of failure, and the success rates come out
# close to the intended ones
SEED = 386
TRIALS = 4
AGENTS = ("support-v1", "support-v2")
FILES = {"support-v1": "v1.jsonl", "support-v2": "v2.jsonl"}
# how often a conversation with right answers has a flaw in its tool use
TOOL_FLAW = {"support-v1": 0.3, "support-v2": 0.15}
CONTEXT = "You are the support agent of Marlow & Finch, a small web shop for kitchen and garden goods."


def recorded_calls(calls: list[Call], *, results: bool = True) -> list[dict[str, Any]]:
    """Convert calls to the record format; expected calls have no result."""
    return [
        {
            "tool_name": c.name,
            "parameters": c.parameters,
            **({"result": c.result} if results else {}),
            "step": step,
        }
        for step, c in enumerate(calls, start=1)
    ]


def record_turn(task: Task, position: int, change: Change, rng: random.Random) -> dict[str, Any]:
    """Build one interaction; `change` says what goes wrong in it."""
    turn = task.turns[position]
    answer = rng.choice(list(turn.answers))
    calls = list(turn.calls or ()) if change.calls is None else list(change.calls)
    agentic: dict[str, Any] = {"tools_used": recorded_calls(calls)}
    if calls:
        agentic["final_answer_uses_tools"] = change.uses_results is not False
    elif turn.calls:
        agentic["final_answer_uses_tools"] = False
    record = {
        "qa_id": f"{task.id}-{position + 1}",
        "query": turn.query,
        "assistant": answer if change.answer is None else change.answer,
        "ground_truth_assistant": turn.reference,
        "agentic": agentic,
    }
    return record | expectations(turn)


def expectations(turn: Turn) -> dict[str, Any]:
    """Return the expected calls of a turn, if it expects anything about tools."""
    if turn.calls is None:
        return {}
    return {
        "ground_truth_agentic": {
            "expected_tools": recorded_calls(list(turn.calls), results=False),
            "tool_sequence_matters": turn.ordered,
        }
    }


def misuses_tools(turn: Turn, change: Change) -> bool:
    """Tell whether the calls differ from the expected ones (results aside), or their results are ignored."""
    if turn.calls is None:
        return False
    made = turn.calls if change.calls is None else change.calls
    same = [(c.name, c.parameters) for c in made] == [(c.name, c.parameters) for c in turn.calls]
    return not same or change.uses_results is False


def draw_failure(task: Task, agent: str, rng: random.Random) -> Failure | None:
    """Draw what goes wrong in this trial, or None."""
    answers_right = rng.random() < task.p[AGENTS.index(agent)]
    tools_flawed = rng.random() < TOOL_FLAW[agent]
    if answers_right and not tools_flawed:
        return None
    candidates = [failure for failure in task.failures if failure.answers_stay_right == answers_right]
    if not candidates and not answers_right:
        raise ValueError(f"task {task.id!r} can fail but has no failure with a wrong answer")
    return rng.choice(candidates) if candidates else None


def crash(turns: list[dict[str, Any]], accident: Crash) -> list[dict[str, Any]]:
    """Return the turns as recorded when the agent crashes."""
    broken = turns[accident.turn] | {"assistant": None}
    made = broken["agentic"]["tools_used"]
    # the last call got no reply
    broken["agentic"] = {"tools_used": [{k: v for k, v in c.items() if k != "result"} for c in made[:1]]}
    rest = turns[accident.turn + 1 :] if accident.continues else []
    return [*turns[: accident.turn], broken, *rest]


def converse(task: Task, agent: str, trial: int, *, seed: int = SEED) -> dict[str, Any]:
    """Make one conversation. Its metadata records what goes wrong in it, and in which turns."""
    rng = random.Random(f"{seed}/{agent}/{task.id}/{trial}")
    accident = CRASHES.get((agent, task.id, trial))
    failure = None if accident else draw_failure(task, agent, rng)
    changes = {change.turn: change for change in (failure.changes if failure else ())}
    turns = [
        record_turn(task, position, changes.get(position, Change(position)), rng) for position in range(len(task.turns))
    ]
    wrong_answers = [p for p, change in changes.items() if change.answer is not None]
    wrong_tools = [p for p, change in changes.items() if misuses_tools(task.turns[p], change)]
    record: dict[str, Any] = {
        "session_id": f"{agent.removeprefix('support-')}-{task.id}-{trial}",
        "assistant_id": agent,
        "task_id": task.id,
        "trial": trial,
        "language": task.language,
        "context": CONTEXT,
        "conversation": crash(turns, accident) if accident else turns,
    }
    if accident:
        record["error"] = accident.error
    record["metadata"] = {
        "failure": "crashed" if accident else failure.kind if failure else None,
        "wrong_answers": [turns[p]["qa_id"] for p in wrong_answers],
        "wrong_tools": [turns[p]["qa_id"] for p in wrong_tools],
    }
    return record


def conversations(agent: str, *, seed: int = SEED) -> Iterator[dict[str, Any]]:
    """Yield all conversations of one agent, by task and trial."""
    for task in TASKS:
        for trial in range(TRIALS):
            yield converse(task, agent, trial, seed=seed)


def outcome(record: dict[str, Any]) -> str:
    """Return the intended result: 1 if all answers are right, else 0; blank if the agent crashed."""
    if record.get("error"):
        return ""
    return "0" if record["metadata"]["wrong_answers"] else "1"


def write(folder: Path, *, seed: int = SEED) -> None:
    """Write both conversation files and the table of results."""
    with (folder / "results.csv").open("w", encoding="utf-8", newline="") as table:
        rows = csv.writer(table, lineterminator="\n")
        rows.writerow(["agent", "task", "trial", "correct"])
        for agent in AGENTS:
            with (folder / FILES[agent]).open("w", encoding="utf-8", newline="\n") as file:
                for record in conversations(agent, seed=seed):
                    file.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n")
                    rows.writerow([agent, record["task_id"], record["trial"], outcome(record)])


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the recorded runs of the support agents.")
    parser.add_argument("-o", "--output", type=Path, default=FOLDER, help="folder to write to (default: here)")
    write(parser.parse_args().output)


if __name__ == "__main__":
    main()
