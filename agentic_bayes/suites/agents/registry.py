"""Make the agent that a suite declares, and check its whole declaration first."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar, assert_never

from pydantic import ValidationError

from agentic_bayes.errors import SuiteError
from agentic_bayes.records.base import Record, problems_of
from agentic_bayes.suites.agents.command import CommandAgent, CommandAgentSettings
from agentic_bayes.suites.agents.declared import wrong
from agentic_bayes.suites.agents.http import HttpAgent, HttpSettings
from agentic_bayes.suites.agents.langchain import RunnableAgent, RunnableSettings
from agentic_bayes.suites.agents.model import ModelAgent, ModelSettings
from agentic_bayes.suites.agents.python import PythonAgent, PythonSettings
from agentic_bayes.suites.declaration import AgentConfig
from agentic_bayes.suites.trial import Agent

_SettingsType = TypeVar("_SettingsType", bound=Record)


def make_agent(config: AgentConfig, *, folder: Path, environment: Mapping[str, str] | None = None) -> Agent:
    """Make the agent that a suite declares."""
    folder = folder.resolve()
    variables = os.environ if environment is None else environment
    match config.type:
        case "python":
            return PythonAgent(_checked(PythonSettings, config), folder)
        case "openai" | "anthropic" as provider:
            return ModelAgent(provider, _checked(ModelSettings, config), variables)
        case "langchain":
            return RunnableAgent(_checked(RunnableSettings, config), folder)
        case "http":
            return HttpAgent(_checked(HttpSettings, config))
        case "command":
            return CommandAgent(_checked(CommandAgentSettings, config), folder, variables)
        case _:
            assert_never(config.type)


async def close_agent(agent: object) -> None:
    """Close the connections of an agent that has any."""
    close = getattr(agent, "close", None)
    if close is not None:
        await close()


def _checked(kind: type[_SettingsType], config: AgentConfig) -> _SettingsType:
    try:
        return kind.model_validate(config.config)
    except ValidationError as error:
        problems = problems_of(error, source="", where="")
        raise SuiteError([wrong(problem.field, problem.message) for problem in problems]) from None
