"""A chat model whose replies are written beforehand, and short ways to write conversations."""

import json
from collections.abc import Callable
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from agentic_bayes.records.model import Conversation, Interaction


def verdict(score: object, reasoning: object = "as the reference says") -> str:
    """A well-formed reply in text."""
    return json.dumps({"reasoning": reasoning, "correctness_score": score})


class ScriptedChatModel(BaseChatModel):
    """Answers every call with `script(messages)`: text, a message, or an exception to raise.

    `calls` keeps the messages of every call. With `tools`, it has structured output by tool calls.
    """

    script: Callable[[list[BaseMessage]], Any]
    calls: list[list[BaseMessage]] = Field(default_factory=list)
    tools: bool = False
    model_name: str = "scripted"

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Structured output by tool calls, where the script has it."""
        if not self.tools:
            raise NotImplementedError
        return self.bind(tools=tools)

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self.calls.append(messages)
        reply = self.script(messages)
        if isinstance(reply, BaseException):
            raise reply
        message = reply if isinstance(reply, AIMessage) else AIMessage(reply)
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return self._generate(messages)


def in_turn(*replies: Any) -> ScriptedChatModel:
    """A model that gives these replies one after the other, and the last one for ever."""
    waiting = list(replies)
    return ScriptedChatModel(script=lambda _: waiting.pop(0) if len(waiting) > 1 else waiting[0])


def by_answer(replies: dict[str, Any], **kwargs: Any) -> ScriptedChatModel:
    """A model that looks for the answer under judgement, whatever the order of the calls."""

    def script(messages: list[BaseMessage]) -> Any:
        text = str(messages[1].content)
        answer = text.split("\n[end of answer")[0].split("\n")[-1]
        return replies[answer]

    return ScriptedChatModel(script=script, **kwargs)


def turn(qa_id: str = "q1", answer: str | None = "8", **fields: Any) -> Interaction:
    """One interaction with a reference."""
    values = {"query": "What is 5 + 3?", "ground_truth_assistant": "8", "assistant": answer, "qa_id": qa_id}
    return Interaction.model_validate(values | fields)


def conversation(*turns: Interaction, session: str = "s1", agent: str = "v1", **fields: Any) -> Conversation:
    """One conversation."""
    values = {"session_id": session, "assistant_id": agent, "conversation": turns or (turn(),)}
    return Conversation.model_validate(values | fields)
