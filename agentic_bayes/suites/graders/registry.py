"""Make the graders that a suite declares, and check every setting first."""

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
from agentic_bayes.suites.trial import AgentReply, SuiteTask, TrialAttempt


@dataclass(slots=True)
class SuiteGrader:
    """A grader with its name and its weight in a suite."""

    name: str  # its type, with a number if the type occurs more than once
    weight: float  # of its score in the trial's mean score
    rule: GradingRule

    def check(self, task: SuiteTask) -> str | None:
        """Why the task cannot be graded; None if it can."""
        check = getattr(self.rule, "check", None)
        return None if check is None else check(task)

    async def grade(self, attempt: TrialAttempt, reply: AgentReply) -> Grade:
        """A `Score` whose details hold ``pass`` (bool), or `Unscored`, also where the task cannot be graded."""
        problem = self.check(attempt.task)
        return await self.rule.grade(attempt, reply) if problem is None else Unscored(problem)

    def ready(self) -> str | None:
        """Why the grader cannot work on this machine, for example without a key; None if it can."""
        prepare = getattr(self.rule, "ready", None)
        try:
            if prepare is not None:
                prepare()
        except (InvalidArgument, MissingPackage) as error:
            return str(error)
        return None


def grader_names() -> list[str]:
    """All types of graders: the built-in ones and the names of all trace metrics."""
    return sorted({*_MAKERS, *metric_names()})


def make_graders(
    configs: Sequence[GraderConfig], *, pass_threshold: float, folder: Path, problems: list[str]
) -> list[SuiteGrader]:
    """Make the declared graders, without running a command or asking a model."""
    context = GraderContext(folder, pass_threshold)
    names = grader_names()
    seen: Counter[str] = Counter()
    made: list[SuiteGrader] = []
    for config in configs:
        seen[config.type] += 1
        name = config.type if seen[config.type] == 1 else f"{config.type}-{seen[config.type]}"
        if config.type not in names:
            problems.append(f"unknown grader type {config.type!r}: {did_you_mean(config.type, names)}")
            continue
        make = _MAKERS.get(config.type)
        try:
            if make is None:
                rule: GradingRule = TraceMetricGrader.of(config.type, config.config, context)
            else:
                rule = make(config.config, context)
        except ValidationError as error:
            problems += [f"{name}: {_problem_text(problem)}" for problem in problems_of(error, source="", where="")]
        except (InvalidArgument, MissingPackage) as error:
            problems.append(f"{name}: {error}")
        else:
            if isinstance(rule, CommandGrader) and (missing := rule.settings.missing_program(folder)):
                problems.append(f"{name}: {missing}")
            made.append(SuiteGrader(name, config.weight, rule))
    return made


def _problem_text(problem: Any) -> str:
    """A problem with a setting, which the message names itself if the key is unknown."""
    unknown = not problem.field or problem.message.startswith("unknown key")
    return str(problem.message if unknown else f"{problem.field} {problem.message}")


_MAKERS: Mapping[str, Callable[[Mapping[str, Any], GraderContext], GradingRule]] = {
    "command": lambda config, context: CommandGrader(CommandGraderSettings.model_validate(config), context),
    "constraint": lambda config, context: Constraint.model_validate(config),
    "contains": lambda config, context: Contains.model_validate(config),
    "exact_match": lambda config, context: ExactMatch.model_validate(config),
    "json_match": lambda config, context: JsonMatch.model_validate(config),
    "llm": lambda config, context: ModelGrader(ModelGraderSettings.model_validate(config), context),
    "pairwise": lambda config, context: PairwiseGrader(PairwiseSettings.model_validate(config), context),
    "reference": lambda config, context: ReferenceGrader(ReferenceSettings.model_validate(config), context),
    "regex": lambda config, context: Regex.model_validate(config),
    "tool_rubric": lambda config, context: ToolRubricGrader.of(config),
}
