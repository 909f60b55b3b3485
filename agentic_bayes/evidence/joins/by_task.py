"""Joins per-task data from a table to conversations: to their only turn, or to the turn that the table names."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from agentic_bayes.checks import check_type
from agentic_bayes.errors import DoubtfulRecords, EvidenceError
from agentic_bayes.formatting import ELLIPSIS, first_few, plural
from agentic_bayes.records.identity import task_label
from agentic_bayes.records.model import Conversation, Interaction, check_conversations

TurnPlace = str | int | None
"""A turn of a conversation: its qa_id, its position from 0, or None for the only one."""

SHOWN = 5


def join_by_task(
    conversations: Iterable[Conversation],
    source: str,
    wanted: Mapping[tuple[str, TurnPlace], Any],
    *,
    field: str,
    what: str,
    replace: bool,
    way: str = "",
    every_task: bool = False,
) -> Iterator[Conversation]:
    """The conversations with `field` of their turns as `wanted`.

    `way` ends the message about a row that names no turn where there are several; `every_task` warns of tasks without.
    """
    by_task: dict[str, dict[TurnPlace, Any]] = {}
    for (task, place), value in wanted.items():
        by_task.setdefault(task, {})[place] = value
    check_conversations(conversations)
    met: set[str] = set()
    without: set[str] = set()
    for conversation in conversations:
        check_type("conversations", conversation, Conversation, "read_conversations() yields them")
        task = conversation.task_id or task_label(conversation.qa_ids)
        places = by_task.get(task)
        if places is None:
            if all(_is_free(turn, field) for turn in conversation.conversation):
                without.add(task)
            met.add(task)
            yield conversation
            continue
        met.add(task)
        where = f"{source}: task {task!r}, session {conversation.session_id!r}"
        turns = _turns_with(conversation, places, where, field=field, what=what, way=way, replace=replace)
        yield conversation.model_copy(update={"conversation": tuple(turns)})
    if met and not met & by_task.keys():
        raise EvidenceError(
            f"{source}: no conversation attempted any of its tasks ({_listed(by_task, 3)}); the conversations are of "
            f"{_listed(met, 3)}"
        )
    if unmet := by_task.keys() - met if met else set():
        warnings.warn(DoubtfulRecords(f"{source}: no conversation attempted {_listed(unmet)}"), stacklevel=3)
    if every_task and without:
        warnings.warn(DoubtfulRecords(f"{source}: nothing for {_listed(without)}: {what} is missing"), stacklevel=3)


def _listed(tasks: Collection[str], most: int = SHOWN) -> str:
    """How many tasks there are, if several, and the first of them."""
    shown = first_few(list(map(repr, sorted(tasks))), most, rest=ELLIPSIS)
    return shown if len(tasks) == 1 else f"{len(tasks):,} tasks: {shown}"


def _is_free(turn: Interaction, field: str) -> bool:
    return getattr(turn, field) in (None, "")


def _turns_with(
    conversation: Conversation,
    places: Mapping[TurnPlace, Any],
    where: str,
    *,
    field: str,
    what: str,
    way: str,
    replace: bool,
) -> list[Interaction]:
    turns = list(conversation.conversation)
    done: set[int] = set()
    for place, value in places.items():
        names: Iterable[TurnPlace] = range(len(turns)) if isinstance(place, int) else [turn.qa_id for turn in turns]
        at = [i for i, name in enumerate(names) if place is None or place == name]
        if len(at) != 1:
            if place is not None and not at and conversation.error is not None:
                continue  # the agent crashed before this turn
            have = ", ".join(repr(turn.qa_id) for turn in turns[:SHOWN])
            if place is None:
                raise EvidenceError(
                    f"{where}: it has {len(turns)} interactions, so give the qa_id of one: {have}; {what} for "
                    f"one turn says nothing about the others, so give one row per turn{way}"
                )
            if isinstance(place, int):
                raise EvidenceError(f"{where}: has no turn {place + 1}; it has {plural(len(turns), 'turn')}: {have}")
            raise EvidenceError(f"{where}: {len(at)} of its interactions have qa_id {place!r}; it has: {have}")
        if at[0] in done:
            raise EvidenceError(f"{where}: one interaction is given both with its qa_id and without")
        done.add(at[0])
        if not _is_free(turns[at[0]], field) and not replace:
            raise EvidenceError(f"{where} already has {what}; replace=True (--replace) overwrites it")
        turns[at[0]] = turns[at[0]].model_copy(update={field: value})
    return turns
