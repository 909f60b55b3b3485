"""Find conversations by session, task and trial."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agentic_bayes.errors import InvalidArgument, did_you_mean
from agentic_bayes.records.identity import TaskIndex, task_label
from agentic_bayes.records.model import Conversation


@dataclass(frozen=True, slots=True)
class SelectedConversation:
    """A selected conversation, with its task and trial."""

    agent: str  # its ids; `task` takes all conversations into account
    session: str
    task: str
    trial: int  # which attempt
    interactions: int  # how many turns it has
    error: str | None  # why it ended early
    conversation: Conversation | None  # the conversation itself; None for the rest of an unfiltered listing


def select(
    conversations: Iterable[Conversation],
    *,
    session: str | None = None,
    task: str | None = None,
    trial: int | None = None,
) -> list[SelectedConversation]:
    """Select the conversations that match every given id; without any, list all."""
    index = TaskIndex()
    kept: list[tuple[Conversation | None, str, str, int, str | None]] = []
    asked = session is not None or task is not None or trial is not None
    for conversation in conversations:
        position = index.add(conversation)
        label = conversation.task_id or task_label(conversation.qa_ids)
        unsure = conversation.error is not None and conversation.task_id is None
        fits = (session in (None, conversation.session_id)) and (task in (None, label) or unsure)
        keep = fits if asked else position == 0
        error = conversation.error or next((t.error for t in conversation.conversation if t.error), None)
        turns = len(conversation.conversation)
        kept.append((conversation if keep else None, conversation.assistant_id, conversation.session_id, turns, error))
    found = [
        SelectedConversation(agent, session_id, identity.task, identity.trial, turns, error, conversation)
        for (conversation, agent, session_id, turns, error), identity in zip(kept, index.resolve(), strict=True)
    ]
    fitting = [
        one
        for one in found
        if session in (None, one.session) and task in (None, one.task) and trial in (None, one.trial)
    ]
    if fitting or not found:
        return fitting
    for name, value, known in (
        ("session", session, [f.session for f in found]),
        ("task", task, [f.task for f in found]),
    ):
        if value is not None and value not in known:
            raise InvalidArgument(f"no conversation has {name} {value!r}: {did_you_mean(value, dict.fromkeys(known))}")
    trials = sorted({f.trial for f in found if task in (None, f.task) and session in (None, f.session)})
    raise InvalidArgument(
        f"no such conversation has trial {trial}; its trials: {', '.join(map(str, trials[:12])) or 'none'}"
    )
