"""Agents by the type that a suite names; each is checked completely before anything is asked of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, assert_never

from pydantic import ValidationError

from agentic_bayes.errors import SuiteError
from agentic_bayes.records.base import Record, problems_of
from agentic_bayes.suites.agents.command import CommandAgent, CommandSettings
from agentic_bayes.suites.agents.declared import wrong
from agentic_bayes.suites.agents.http import HttpAgent, HttpSettings
from agentic_bayes.suites.agents.langchain import RunnableAgent, RunnableSettings
from agentic_bayes.suites.agents.model import ModelAgent, ModelSettings
from agentic_bayes.suites.agents.python import PythonAgent, PythonSettings
from agentic_bayes.suites.config import AgentConfig
from agentic_bayes.suites.trial import Agent

__all__ = ["make_agent"]

S = TypeVar("S", bound=Record)


def make_agent(config: AgentConfig, *, folder: Path, environment: Mapping[str, str] | None = None) -> Agent:
    """The agent that a suite declares."""
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
            return CommandAgent(_checked(CommandSettings, config), folder, variables)
        case _:
            assert_never(config.type)


def _checked(kind: type[S], config: AgentConfig) -> S:
    given: dict[str, Any] = config.config
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        found = problems_of(error, source="", where="")
        raise SuiteError([wrong(problem.field, problem.message) for problem in found]) from None
