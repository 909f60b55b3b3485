"""A chat model that gives the replies it was given, one per call, and counts what it is sent."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult


class Scripted(BaseChatModel):
    """Replies in order."""

    replies: list[str]
    sent: list[int]
    model_name: str = "scripted"

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self.sent.append(sum(len(str(message.content)) for message in messages))
        reply = AIMessage(self.replies[len(self.sent) - 1])
        return ChatResult(generations=[ChatGeneration(message=reply)])

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return self._generate(messages)


def scripted(replies: list[str]) -> Scripted:
    """A new model with these replies."""
    return Scripted(replies=replies, sent=[])
