"""Run a LangChain Runnable as the agent: a chat model, a graph, a chain, or a function that returns one."""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from agentic_bayes.errors import AgentError, SuiteError
from agentic_bayes.evidence.llm.asking import to_langchain
from agentic_bayes.evidence.llm.models import for_one_loop, parameters
from agentic_bayes.records.base import Record, short
from agentic_bayes.suites.agents.declared import identity, wrong
from agentic_bayes.suites.agents.importing import ImportPath, load_object
from agentic_bayes.suites.agents.reply import AgentTurn, reply_of, turn_of, turn_of_langchain
from agentic_bayes.suites.trial import AgentReply, TrialAttempt

InputForm = Literal["messages", "state", "text"]


class RunnableSettings(Record):
    """Declaration of an agent of type langchain."""

    # ``module:name`` of a Runnable or chat model, or of a function without arguments that returns one, in the suite's
    # folder or on PYTHONPATH
    object: ImportPath
    # Its input: the list of messages, ``{"messages": [...]}``, or the user's message as text. "auto" follows the
    # object's input schema.
    input: Literal["auto", "messages", "state", "text"] = "auto"


class RunnableAgent:
    """Invokes a Runnable once per message; its config says which thread, task, trial and seed it is for."""

    def __init__(self, settings: RunnableSettings, folder: Path) -> None:
        from agentic_bayes.evidence.llm.judge import ChatModel

        self._settings = settings
        runnable = _runnable(load_object(settings.object, folder=folder, field="object"), settings.object)
        self._is_model = isinstance(runnable, ChatModel)
        self._facts = parameters(runnable) if self._is_model else None
        self._runnable, self._close = for_one_loop(runnable) if self._is_model else (runnable, None)
        self._form = _form_of(runnable, settings) if settings.input == "auto" else settings.input

    @property
    def identity(self) -> str:
        """The object's name, the form of its input and, for a chat model, its parameters."""
        return identity("langchain", object=self._settings.object, input=self._form, model=self._facts or None)

    async def close(self) -> None:
        """Close the connections that this agent opened."""
        if self._close is not None:
            await self._close()

    async def attempt(self, attempt: TrialAttempt) -> AgentReply:
        """Invoke the object, once per message."""
        task = attempt.task
        known = {"task_id": task.id, "trial": attempt.trial, "seed": attempt.seed}
        thread = f"{task.id}/{attempt.trial}/{uuid.uuid4().hex}"
        config = {"configurable": {"thread_id": thread, "params": dict(task.params), **known}, "metadata": known}
        dialogue = to_langchain([("system", task.system)] if task.system else [])
        turns: list[AgentTurn] = []
        for prompt in task.messages:
            dialogue = [*dialogue, *to_langchain([("human", prompt)])]
            inputs = {"messages": list(dialogue), "state": {"messages": list(dialogue)}, "text": prompt}
            output = await self._runnable.ainvoke(inputs[self._form], config=config)
            turn, dialogue = _turn(output, dialogue, prompt)
            turns.append(turn)
        return reply_of(turns)


def _runnable(loaded: Any, name: str) -> Any:
    """The object itself if it is a Runnable, else what it returns when called."""
    verb = "is"
    if not _is_runnable(loaded) and callable(loaded):
        verb = "returned"
        try:
            loaded = loaded()
        except Exception as error:
            message = f"{name} must be a Runnable, or a function without arguments that returns one; calling it raised"
            raise SuiteError(
                [wrong("object", f"{message} {type(error).__name__}: {short(str(error), 200)}")]
            ) from error
    if not _is_runnable(loaded):
        if inspect.iscoroutine(loaded):
            loaded.close()
        came = f"{name} {verb} {short(loaded)} ({type(loaded).__name__})"
        raise SuiteError([wrong("object", f"must be a LangChain Runnable or chat model, but {came}")])
    return loaded


def _is_runnable(found: object) -> bool:
    return not inspect.isclass(found) and callable(getattr(found, "ainvoke", None))


def _form_of(runnable: Any, settings: RunnableSettings) -> InputForm:
    """The form of input that the object's schema asks for."""
    try:
        schema = runnable.get_input_jsonschema()
    except Exception:  # the schema is only a hint
        return "messages"
    fields = schema.get("properties") if isinstance(schema, Mapping) else None
    if fields:
        if "messages" in fields:
            return "state"
        if len(fields) == 1:
            return "text"
        names = ", ".join(fields)
        message = f"{settings.object} expects {names}: it must accept messages, {{messages: […]}} or one text"
        raise SuiteError([wrong("object", message)])
    return "text" if isinstance(schema, Mapping) and schema.get("type") == "string" else "messages"


def _turn(output: Any, dialogue: list[Any], prompt: str) -> tuple[AgentTurn, list[Any]]:
    """Read the turn from a Runnable's output, and add it to the dialogue."""
    if _is_message(output):
        return turn_of_langchain([output], prompt=prompt), [*dialogue, output]
    if isinstance(output, Mapping) and isinstance(output.get("messages"), (list, tuple)):
        messages = list(output["messages"])
        if all(map(_is_message, messages)):
            asked = [n for n, message in enumerate(messages) if message.type == "human"]
            # a graph returns the whole dialogue; a chain may return only the new messages
            new = messages[asked[-1] + 1 :] if asked else messages
            turn = turn_of_langchain(new, prompt=prompt)
            return turn, messages if asked else [*dialogue, *new]
        turn = turn_of({"messages": messages}, prompt=prompt)
    elif isinstance(output, str) or (isinstance(output, Mapping) and "answer" in output):
        turn = turn_of(output, prompt=prompt)
    elif isinstance(output, Mapping) and isinstance(output.get("output"), str):
        turn = turn_of(output["output"], prompt=prompt)
    else:
        raise AgentError(
            f"the agent must return a message, text or an object with messages, got {short(output)} "
            f"({type(output).__name__})"
        )
    return turn, [*dialogue, *to_langchain([("ai", turn.answer)])]


def _is_message(value: object) -> bool:
    return isinstance(getattr(value, "type", None), str) and hasattr(value, "content")
