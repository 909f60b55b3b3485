import csv
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from agentic_bayes.evidence.reference.judge import ReferenceJudge
from agentic_bayes.evidence.score import Score
from agentic_bayes.evidence.tools.rubric import ToolCorrectnessScore, ToolRubric
from agentic_bayes.records.model import Conversation

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "support_agent"
FILES = ("v1.jsonl", "v2.jsonl", "results.csv")
KINDS = {
    "wrong_fact",
    "omitted_part",
    "wrong_tool",
    "missing_tool_call",
    "extra_tool_call",
    "wrong_parameter_value",
    "missing_parameter",
    "extra_parameter",
    "wrong_order",
    "result_not_used",
    "right_answer_wrong_tools",
    "empty_answer",
    "repeated_call",
    "crashed",
}


def read(name: str) -> list[Conversation]:
    lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    return [Conversation.model_validate(json.loads(line)) for line in lines]


@pytest.fixture(scope="module")
def conversations() -> list[Conversation]:
    """The conversations of both versions, each one validated."""
    return read("v1.jsonl") + read("v2.jsonl")


def intended(conversation: Conversation) -> str:
    """What results.csv should say: 1 all answers right, 0 not, blank for a crash."""
    if conversation.error is not None:
        return ""
    return "0" if conversation.metadata["wrong_answers"] else "1"


@pytest.mark.parametrize("hash_seed", ["0", "271"])
def test_files_are_what_the_generator_writes(tmp_path: Path, hash_seed: str) -> None:
    """The committed files are, byte for byte, what make_data.py writes, whatever the hash seed."""
    subprocess.run(
        [sys.executable, "-B", str(FOLDER / "make_data.py"), "--output", str(tmp_path)],
        check=True,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        timeout=60,
    )
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes(), name


def test_every_task_is_attempted_four_times_by_both_versions(conversations: list[Conversation]) -> None:
    """At least 24 tasks, trials 0 to 3 of each by both versions, two to four turns where nothing crashed."""
    trials = Counter((c.assistant_id, c.task_id) for c in conversations)
    assert {agent for agent, _ in trials} == {"support-v1", "support-v2"}
    tasks = {task for _, task in trials}
    assert len(tasks) >= 24
    assert set(trials.values()) == {4}
    assert len({(c.assistant_id, c.task_id, c.trial) for c in conversations}) == 2 * 4 * len(tasks)
    assert {c.trial for c in conversations} == {0, 1, 2, 3}
    assert len({c.session_id for c in conversations}) == len(conversations)
    assert {len(c.conversation) for c in conversations if c.error is None} <= {2, 3, 4}


def test_all_attempts_of_a_task_ask_the_same(conversations: list[Conversation]) -> None:
    """Queries, references and expected calls of a question are the same in every trial."""
    asked: dict[str, tuple[object, ...]] = {}
    for conversation in conversations:
        for turn in conversation.conversation:
            given = (turn.query, turn.ground_truth_assistant, turn.ground_truth_agentic)
            assert asked.setdefault(turn.qa_id, given) == given


@pytest.mark.parametrize("name", ["v1.jsonl", "v2.jsonl"])
def test_every_kind_of_failure_occurs(name: str) -> None:
    """Each file holds every kind of failure, and conversations in which nothing fails."""
    found = {c.metadata["failure"] for c in read(name)}
    assert found == KINDS | {None}


def test_crashed_agents_gave_no_answer(conversations: list[Conversation]) -> None:
    """Two to four conversations crashed: an error, one turn without an answer, and nothing else wrong."""
    crashed = [c for c in conversations if c.error is not None]
    assert 2 <= len(crashed) <= 4
    for conversation in crashed:
        assert conversation.metadata == {"failure": "crashed", "wrong_answers": [], "wrong_tools": []}
        assert [turn.assistant for turn in conversation.conversation].count(None) == 1
    for conversation in conversations:
        if conversation.error is None:
            assert all(turn.assistant is not None for turn in conversation.conversation)


def test_the_versions_differ_in_both_directions(conversations: list[Conversation]) -> None:
    """Version 2 is better overall and clearly worse on some tasks; tasks run from never to always solved."""
    passed: Counter[tuple[str, str | None]] = Counter()
    scored: Counter[str] = Counter()
    for conversation in conversations:
        scored[conversation.assistant_id] += conversation.error is None
        passed[conversation.assistant_id, conversation.task_id] += intended(conversation) == "1"
    tasks = {c.task_id for c in conversations}
    rate = {agent: sum(passed[agent, task] for task in tasks) / scored[agent] for agent in scored}
    assert rate["support-v1"] == pytest.approx(0.52, abs=0.03)
    assert rate["support-v2"] == pytest.approx(0.70, abs=0.03)
    drop = {task: passed["support-v1", task] - passed["support-v2", task] for task in tasks}
    assert 3 <= sum(lost >= 2 for lost in drop.values()) <= 4
    for agent in scored:
        assert {passed[agent, task] for task in tasks} == {0, 1, 2, 3, 4}


def test_reference_judge_agrees_with_what_was_intended(conversations: list[Conversation]) -> None:
    """Every answer written as right scores .7 or more, every answer written as wrong less."""
    judge = ReferenceJudge()
    for conversation in conversations:
        for position, turn in enumerate(conversation.conversation):
            if turn.assistant is None:
                continue
            grade = judge.grade(conversation, position)
            assert isinstance(grade, Score), (conversation.session_id, turn.qa_id, grade)
            right = turn.qa_id not in conversation.metadata["wrong_answers"]
            assert (grade.value >= 0.7) is right, (conversation.session_id, turn.qa_id, turn.assistant, grade)


def test_tool_rubric_agrees_with_what_was_intended(conversations: list[Conversation]) -> None:
    """Tool use written as right scores 1 and tool use written as wrong less, wherever calls are expected."""
    rubric = ToolRubric()
    for conversation in conversations:
        for turn in conversation.conversation:
            if turn.assistant is None:
                continue
            verdict = rubric.grade(turn)
            wrong = turn.qa_id in conversation.metadata["wrong_tools"]
            if verdict is None:
                assert turn.ground_truth_agentic is None
                assert not wrong
                continue
            assert isinstance(verdict, ToolCorrectnessScore), (conversation.session_id, turn.qa_id, verdict)
            assert verdict.is_correct is not wrong, (conversation.session_id, turn.qa_id, verdict)


def test_table_holds_the_same_results(conversations: list[Conversation]) -> None:
    """results.csv has one row per conversation: 1 right, 0 wrong, blank where the agent crashed."""
    with (FOLDER / "results.csv").open(encoding="utf-8", newline="") as table:
        rows = list(csv.DictReader(table))
    expected = [
        {"agent": c.assistant_id, "task": c.task_id, "trial": str(c.trial), "correct": intended(c)}
        for c in conversations
    ]
    assert rows == expected


def test_parameters_are_as_varied_as_real_ones(conversations: list[Conversation]) -> None:
    """Floats, nested objects, lists, non-ASCII text; one tool expected twice; a turn that wants no call."""
    expected = [
        turn.ground_truth_agentic
        for conversation in conversations
        for turn in conversation.conversation
        if turn.ground_truth_agentic is not None
    ]
    values = [v for e in expected for call in e.expected_tools for v in call.parameters.values()]
    for kind in (str, int, float, dict, list):
        assert any(type(value) is kind for value in values), kind
    assert not json.dumps(values, ensure_ascii=False).isascii()
    assert any(
        len({call.tool_name for call in e.expected_tools}) < len(e.expected_tools) and not e.tool_sequence_matters
        for e in expected
    )
    assert any(not e.expected_tools for e in expected)
    assert any(turn.ground_truth_agentic is None for c in conversations for turn in c.conversation)


def test_files_stay_small() -> None:
    """Both files together take less than 900 kB."""
    assert sum((FOLDER / name).stat().st_size for name in FILES[:2]) < 900_000


def test_readme_counts_the_failures(conversations: list[Conversation]) -> None:
    """The table in the README has the number of conversations per version and kind of failure."""
    counts = Counter((c.metadata["failure"], c.assistant_id) for c in conversations)
    rows = re.findall(
        r"^\| `(\w+)` \|[^|]*\| (\d+) \| (\d+) \|$", (FOLDER / "README.md").read_text(encoding="utf-8"), re.M
    )
    shown = {kind: (int(v1), int(v2)) for kind, v1, v2 in rows}
    assert shown == {kind: (counts[kind, "support-v1"], counts[kind, "support-v2"]) for kind in KINDS}
