"""Ask a provider's model as the agent, through its LangChain package."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic_core import InitErrorDetails

from agentic_bayes.errors import SuiteError, did_you_mean
from agentic_bayes.evidence.llm.models import for_one_loop, resolve
from agentic_bayes.records.base import Metadata, Number, Probability, Record, field_of, problem_at
from agentic_bayes.suites.agents.declared import Plain, digest, identity, without_secrets, wrong
from agentic_bayes.suites.agents.reply import reply_of, turn_of_langchain
from agentic_bayes.suites.trial import AgentReply, TrialAttempt

_KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
_SETTINGS = ("base_url", "temperature", "top_p", "max_tokens")
_NO_KEY_NEEDED = "none"
_SECRET = re.compile(r"key|secret|token\b|password|header|auth", re.IGNORECASE)
_NO_KEY_HERE = "must not be written here: name the environment variable that holds it in api_key_env"
_FOR_EVERY_AGENT = "must be given in the suite's execution section, which holds for every agent"
_NOT_RUN = "This tool was not run: the model was tested without its tools."


class ModelSettings(Record):
    """Declaration of an agent of type openai or anthropic."""

    model: Plain  # its name at the provider
    base_url: Plain | None = None  # URL to use instead of the provider's
    temperature: Annotated[Number, Field(ge=0)] | None = None  # default: the provider's
    top_p: Probability | None = None
    max_tokens: Annotated[int, Field(ge=1, strict=True)] | None = None  # of an answer
    # name of the environment variable that holds the key; default: the provider's usual one
    api_key_env: Plain | None = None
    # Tools that the model may call, in OpenAI's form. They are not run: the calls themselves are graded.
    tools: tuple[dict[str, Any], ...] = ()
    tool_choice: str | dict[str, Any] | None = None  # whether it must call one, as the LangChain package defines it
    options: Metadata = Field(default_factory=dict)  # further arguments of the LangChain class

    @classmethod
    def _across_fields(cls, data: Any) -> list[InitErrorDetails]:
        options = field_of(data, "options")
        misplaced = {name: f"must be given outside options: agent.config.{name}" for name in cls.model_fields}
        misplaced |= dict.fromkeys(("api_key", "openai_api_key", "anthropic_api_key"), _NO_KEY_HERE)
        misplaced |= dict.fromkeys(("max_retries", "timeout", "request_timeout"), _FOR_EVERY_AGENT)
        given = [name for name in options if name in misplaced] if isinstance(options, dict) else []
        problems = [problem_at(("options", name), misplaced[name], None) for name in given]
        if field_of(data, "tool_choice") is not None and not field_of(data, "tools"):
            problems.append(problem_at(("tool_choice",), "needs tools, and none are given", None))
        return problems


class ModelAgent:
    """Asks a model; its replies become part of the dialogue."""

    def __init__(
        self, provider: Literal["openai", "anthropic"], settings: ModelSettings, environment: Mapping[str, str]
    ) -> None:
        self._provider, self._settings = provider, settings
        self._model, self._close = for_one_loop(_model(provider, settings, environment))
        if settings.tools:
            choice = {} if settings.tool_choice is None else {"tool_choice": settings.tool_choice}
            try:
                self._model = self._model.bind_tools([dict(tool) for tool in settings.tools], **choice)
            except Exception as error:
                reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
                raise SuiteError([wrong("tools", f"cannot be given to the model: {reason}")]) from error

    @property
    def identity(self) -> str:
        """Provider, model and its settings."""
        settings = self._settings
        options = {name: value for name, value in settings.options.items() if not _SECRET.search(name)}
        tools = {"tools": settings.model_dump(mode="json")["tools"], "tool_choice": settings.tool_choice}
        return identity(
            self._provider,
            model=settings.model,
            base_url=None if settings.base_url is None else without_secrets(settings.base_url),
            temperature=settings.temperature,
            top_p=settings.top_p,
            max_tokens=settings.max_tokens,
            tools=digest(tools) if settings.tools else None,
            options=digest(options) if options else None,
        )

    async def close(self) -> None:
        """Close the connections."""
        if self._close is not None:
            await self._close()

    async def attempt(self, attempt: TrialAttempt) -> AgentReply:
        """Ask the model, once per message."""
        system = attempt.task.system
        dialogue: list[Any] = [{"role": "system", "content": system}] if system else []
        turns = []
        for prompt in attempt.task.messages:
            dialogue.append({"role": "user", "content": prompt})
            message = await self._model.ainvoke(list(dialogue))
            turns.append(turn_of_langchain([message], prompt=prompt))
            dialogue.append(message)
            # providers refuse a dialogue in which a call has no result
            dialogue += [
                {"role": "tool", "content": _NOT_RUN, "tool_call_id": call["id"]} for call in message.tool_calls
            ]
        return reply_of(turns)


def _model(provider: str, settings: ModelSettings, environment: Mapping[str, str]) -> Any:
    variable = settings.api_key_env or _KEYS[provider]
    key = environment.get(variable)
    if not key and settings.base_url is not None and settings.api_key_env is None:
        key = _NO_KEY_NEEDED  # a local model needs none, but the package insists on one
    if not key:
        raise SuiteError(
            [wrong("api_key_env", f"the environment variable {variable} must hold the key, but it is not set")]
        )
    declared = {name: value for name in _SETTINGS if (value := getattr(settings, name)) is not None}
    with warnings.catch_warnings():
        # LangChain warns of an unknown option, which is an error here
        warnings.simplefilter("ignore", UserWarning)
        model = resolve(f"{provider}:{settings.model}", {**settings.options, **declared, "api_key": key})
    passed_on = getattr(model, "model_kwargs", None) or {}
    unknown = [name for name in settings.options if name in passed_on]
    if unknown:
        known = [name for name in type(model).model_fields if name not in _SETTINGS]
        raise SuiteError(
            [
                wrong(f"options.{name}", f"{type(model).__name__} has no such option: {did_you_mean(name, known)}")
                for name in unknown
            ]
        )
    return model
