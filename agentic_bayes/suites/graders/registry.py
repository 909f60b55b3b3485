"""Graders of a suite, by name: every setting is checked before anything runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agentic_bayes.errors import InvalidArgument, MissingPackage, did_you_mean
from agentic_bayes.evidence.metrics.registry import metric_names
from agentic_bayes.evidence.score import Grade, Unscored
from agentic_bayes.records.base import problems_of
from agentic_bayes.suites.declaration import GraderConfig
from agentic_bayes.suites.graders.command import CommandGrader, CommandGraderSettings
from agentic_bayes.suites.graders.evidence import (
    ReferenceGrader,
    ReferenceSettings,
    ToolRubricGrader,
    TraceMetricGrader,
)
from agentic_bayes.suites.graders.json import JsonMatch
from agentic_bayes.suites.graders.model import ModelGrader, ModelGraderSettings, PairwiseGrader, PairwiseSettings
from agentic_bayes.suites.graders.rules import GraderContext, GradingRule
from agentic_bayes.suites.graders.text import Constraint, Contains, ExactMatch, Regex
from agentic_bayes.suites.trial import AgentReply, SuiteTask, TrialAttempt, TrialGrader

__all__ = ["SuiteGrader", "grader_names", "make_graders"]


@dataclass(slots=True)
class SuiteGrader:
    """A grader with its name and its weight in a suite."""

    name: str  # its type, made unique by a number
    weight: float  # how much its score counts; 0 is 0
    rule: GradingRule  # how it grades

    def check(self, task: SuiteTask) -> str | None:
        """What keeps a task from being graded, such as an expectation that it lacks; None if nothing does."""
        return self.rule.check(task)

    async def grade(self, attempt: TrialAttempt, reply: AgentReply) -> Grade:
        """Grade one trial."""
        problem = self.rule.check(attempt.task)
        return await self.rule.grade(attempt, reply) if problem is None else Unscored(problem)

    def ready(self) -> str | None:
        """What keeps the grader from working here and now, such as a model's package or key that is missing.

        Models are made and not asked. It is worth a call before the first trial, and needs what `make_graders` does
        not: a declaration can be checked on a machine that has no keys.
        """
        prepare = getattr(self.rule, "ready", None)
        try:
            if prepare is not None:
                prepare()
        except (InvalidArgument, MissingPackage) as error:
            return str(error)
        return None


def grader_names() -> list[str]:
    """The types that a grader may have: this package's, and the names of all trace metrics."""
    return sorted({*_MAKERS, *metric_names()})


def make_graders(
    configs: Sequence[GraderConfig], *, pass_threshold: float, folder: Path, problems: list[str]
) -> list[TrialGrader]:
    """Graders as they are declared. Nothing is run, and no model is asked."""
    place = GraderContext(folder, pass_threshold)
    names = grader_names()
    seen: Counter[str] = Counter()
    made: list[TrialGrader] = []
    for config in configs:
        seen[config.type] += 1
        name = config.type if seen[config.type] == 1 else f"{config.type}-{seen[config.type]}"
        if config.type not in names:
            problems.append(f"unknown grader type {config.type!r}: {did_you_mean(config.type, names)}")
            continue
        make = _MAKERS.get(config.type)
        try:
            if make is None:
                rule: GradingRule = TraceMetricGrader.of(config.type, config.config, place)
            else:
                rule = make(config.config, place)
        except ValidationError as error:
            problems += [f"{name}: {_worded(problem)}" for problem in problems_of(error, source="", where="")]
        except (InvalidArgument, MissingPackage) as error:
            problems.append(f"{name}: {error}")
        else:
            if isinstance(rule, CommandGrader) and (missing := rule.settings.missing_program(folder)):
                problems.append(f"{name}: {missing}")
            made.append(SuiteGrader(name, config.weight, rule))
    return made


def _worded(problem: Any) -> str:
    """A problem of settings; that a key is unknown is said without the key before it."""
    unknown = not problem.field or problem.message.startswith("unknown key")
    return str(problem.message if unknown else f"{problem.field} {problem.message}")


_MAKERS: Mapping[str, Callable[[Mapping[str, Any], GraderContext], GradingRule]] = {
    "command": lambda config, place: CommandGrader(CommandGraderSettings.model_validate(config), place),
    "constraint": lambda config, place: Constraint.model_validate(config),
    "contains": lambda config, place: Contains.model_validate(config),
    "exact_match": lambda config, place: ExactMatch.model_validate(config),
    "json_match": lambda config, place: JsonMatch.model_validate(config),
    "llm": lambda config, place: ModelGrader(ModelGraderSettings.model_validate(config), place),
    "pairwise": lambda config, place: PairwiseGrader(PairwiseSettings.model_validate(config), place),
    "reference": lambda config, place: ReferenceGrader(ReferenceSettings.model_validate(config), place),
    "regex": lambda config, place: Regex.model_validate(config),
    "tool_rubric": lambda config, place: ToolRubricGrader.of(config),
}
