"""The tool rubric: did the agent call the expected tools with the right arguments, in order, and use the results?"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from agentic_bayes.checks import check_choice, check_flag, check_number, check_path, check_probability
from agentic_bayes.errors import InvalidArgument, UnknownName, did_you_mean
from agentic_bayes.evidence.llm.prompt import text_digest
from agentic_bayes.evidence.score import ROUNDING, Unscored
from agentic_bayes.evidence.table import read_json
from agentic_bayes.evidence.tools.arguments import ArgumentRule
from agentic_bayes.evidence.tools.call_rule import CallRule, Compare
from agentic_bayes.evidence.tools.matched_calls import MatchedCalls
from agentic_bayes.evidence.tools.schemas import schema_check
from agentic_bayes.evidence.tools.utilization import answer_uses_results
from agentic_bayes.records.base import problems_of, short
from agentic_bayes.records.matchers import Matcher
from agentic_bayes.records.model import Interaction, ToolCall

__all__ = ["ToolCorrectnessScore", "ToolRubric"]

_VERSION = "tool-rubric/2"
_WEIGHTS = ("selection", "parameters", "sequence", "utilization")

Mode = Literal["default", "strict", "in_order", "unordered", "subset", "superset"]
ParametersRule = Literal["union_keys", "expected_keys"]
UtilizationRule = Literal["auto", "recorded", "measured"]


def _score_or_nan(value: float) -> float:
    if not math.isnan(value) and not 0 <= value <= 1:
        raise ValueError(f"must be a number in [0, 1] or NaN, got {value!r}")
    return value


_UnitScore = Annotated[float, Field(ge=0, le=1)]


class ToolCorrectnessScore(BaseModel):
    """The tool verdict on one interaction.

    Attributes
    ----------
    tool_selection_correct : float
        How far the agent called the expected tools, as often as expected, and no others.
    parameter_accuracy : float
        How far the arguments are the expected ones.
    sequence_correct : float
        How far the calls are in the expected order, if it matters.
    result_utilization : float
        Whether the answer uses the results; NaN if unknown.
    overall_correctness : float
        Weighted mean of the four (of the first three if the fourth is NaN).
    is_correct : bool
        Whether the overall score reaches the rubric's threshold.
    reasoning : str or None
        One sentence for every lost point.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tool_selection_correct: _UnitScore
    parameter_accuracy: _UnitScore
    sequence_correct: _UnitScore
    result_utilization: Annotated[float, AfterValidator(_score_or_nan)]
    overall_correctness: _UnitScore
    is_correct: bool
    reasoning: str | None = None


@dataclass(frozen=True, slots=True)
class ToolVerdict:
    """A tool verdict, and the counts behind it."""

    score: ToolCorrectnessScore
    # tool → numbers of expected, made and matched calls, and what was wrong with which argument (`tool_diagnostics`)
    tools: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ToolRubric:
    """Grades the tool calls of an interaction against the expected calls.

    Parameters
    ----------
    weights : mapping, optional
        Weight of ``selection``, ``parameters``, ``sequence`` and ``utilization``: numbers ≥ 0, not all 0.
        Missing ones are 0, and the weights are divided by their sum. Default: a quarter each.
    threshold : float
        Minimum overall score for a correct verdict, in [0, 1].
    mode : {"default", "strict", "in_order", "unordered", "subset", "superset"}
        Which deviations cost points:

        - default: missing and extra calls, and a wrong order if ``tool_sequence_matters``;
        - strict: missing and extra calls, and a wrong order;
        - unordered: missing and extra calls;
        - in_order: missing calls and a wrong order; extra calls are free;
        - superset: missing calls only;
        - subset: extra calls only.
    parameters : {"union_keys", "expected_keys"}
        Agreement of two calls: the share of equal arguments among the arguments of either call, or among the expected
        ones (so that further arguments cost nothing).
    utilization : {"auto", "recorded", "measured"}
        Source of ``result_utilization``: "recorded" reads the flag ``final_answer_uses_tools``; "measured" looks for
        the recorded results in the answer (see `agentic_bayes.evidence.tools.utilization`); "auto" reads the flag if
        there is one, and else measures.
    float_tolerance : float
        Absolute or relative tolerance for numbers, if at least one has a fraction. Whole numbers are compared
        exactly.
    numeric_strings : bool
        Whether the argument "5" equals 5.
    matchers : mapping
        Tool → argument → how to compare it: a `Matcher`, its declaration (``{"relative": 0.05}``), or a callable that
        gets the expected and the actual value and returns whether they agree. ``*`` stands for every tool or every
        argument; a path like ``user.address.zip`` reaches into an argument. The matchers of an expected call itself
        take precedence.
    aliases : mapping
        Tool → its other names, in expected and actual calls alike.
    allowed_tools : sequence of str, optional
        The only tools that the agent may call, apart from the expected ones.
    forbidden_tools : sequence of str
        Tools that the agent may not call. A single call outside the allowed scope makes the overall score 0.
    schemas : mapping
        Tool → JSON schema of its arguments. A call that violates it agrees with no expected call.

    Raises
    ------
    InvalidArgument
        If a setting is outside what is allowed (`UnknownName` for the name of a weight).

    Notes
    -----
    Of e expected and m actual calls, M pairs are matched one to one within a tool name, so that the total agreement of
    their arguments is largest (and, among equal totals, the most pairs are in order):

    - selection = M / (m + e − M), the Jaccard index of two multisets; M / e if extra calls are free, M / m if missing
      ones are (mode subset);
    - parameters = Σ agreement / e; in mode subset / m;
    - sequence = longest subsequence of matched pairs in order / e if the order counts, else 1; 0 if calls were
      expected and none is matched;
    - utilization = 1 or 0; NaN if unknown, and then the others share its weight.

    If no call was expected and none was made, all are 1. If calls were made although none was expected, and that costs
    points, selection and parameters are 0 and sequence is 1.

    ``step`` only sorts calls: calls with a step are sorted by it (stably) among the positions that they occupy; calls
    without one keep their position. It is never compared for equality.
    """

    weights: Mapping[str, float] | None = field(default=None, hash=False)
    threshold: float = 1.0
    mode: Mode = "default"
    parameters: ParametersRule = "union_keys"
    utilization: UtilizationRule = "auto"
    float_tolerance: float = 1e-9
    numeric_strings: bool = False
    matchers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)
    aliases: Mapping[str, Sequence[str]] = field(default_factory=dict, hash=False)
    allowed_tools: Sequence[str] | None = field(default=None, hash=False)
    forbidden_tools: Sequence[str] = field(default=(), hash=False)
    schemas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", _normalised(self.weights))
        check_probability(self.threshold, "threshold")
        if check_probability(self.float_tolerance, "float_tolerance") == 1:
            raise InvalidArgument("float_tolerance must be below 1, got 1")
        check_flag(self.numeric_strings, "numeric_strings")
        check_choice("value of parameters", self.parameters, get_args(ParametersRule))
        check_choice("value of utilization", self.utilization, get_args(UtilizationRule))
        check_choice("mode", self.mode, get_args(Mode))
        object.__setattr__(self, "matchers", _matchers(self.matchers))
        _names_of(self.aliases)
        for name in ("allowed_tools", "forbidden_tools"):
            names = getattr(self, name)
            if not _is_names(names) and not (names is None and name == "allowed_tools"):
                raise InvalidArgument(f"{name} must be a list of names, got {short(names)}")
        _mapping("schemas", self.schemas)
        self._rule  # noqa: B018 - compiles the schemas, so that errors show here

    @classmethod
    def from_file(cls, path: str | Path) -> ToolRubric:
        """Read a rubric from a file.

        Parameters
        ----------
        path : path
            A JSON object of the parameters above.

        Returns
        -------
        ToolRubric

        Raises
        ------
        InvalidArgument
            If there is no such file, or a setting in it is invalid.
        """
        declared = read_json(check_path(path), error=InvalidArgument)
        if not isinstance(declared, dict):
            raise InvalidArgument(f"{path}: must be an object of the rubric's settings, got {short(declared)}")
        known = [setting.name for setting in fields(cls)]
        for name in declared:
            if name not in known:
                raise InvalidArgument(f"{path}: unknown setting {name!r}: {did_you_mean(name, known)}")
        try:
            return cls(**declared)
        except InvalidArgument as error:
            raise InvalidArgument(f"{path}: {error}") from None

    @property
    def identity(self) -> str:
        """Name, version and every setting that differs from the default."""
        default = ToolRubric()
        parts = [_VERSION]
        if self.weights != default.weights:
            weights = self._weights
            parts.append("weights=" + ",".join(f"{name}:{weights[name]:.12g}" for name in _WEIGHTS if weights[name]))
        for name in ("threshold", "mode", "parameters", "utilization", "float_tolerance", "numeric_strings"):
            if (value := getattr(self, name)) != getattr(default, name):
                parts.append(f"{name}={value:.12g}" if isinstance(value, float) else f"{name}={value}")
        for name in ("matchers", "aliases", "allowed_tools", "forbidden_tools", "schemas"):
            if (value := getattr(self, name)) != getattr(default, name):
                parts.append(f"{name}={text_digest(json.dumps(value, sort_keys=True, default=_declared))[:8]}")
        return " ".join(parts)

    def grade(self, interaction: Interaction) -> ToolCorrectnessScore | Unscored | None:
        """Grade one interaction.

        Parameters
        ----------
        interaction : Interaction
            The turn with its calls and expectations.

        Returns
        -------
        ToolCorrectnessScore, Unscored or None
            None if the interaction says nothing about expected tools; `Unscored` if its calls were not recorded, or if
            every score with a weight is unknown.
        """
        verdict = self.verdict(interaction)
        return verdict.score if isinstance(verdict, ToolVerdict) else verdict

    def verdict(self, interaction: Interaction) -> ToolVerdict | Unscored | None:
        """Grade one interaction and keep the counts behind the verdict.

        Parameters
        ----------
        interaction : Interaction
            As for `grade`.
        """
        if interaction.ground_truth_agentic is None:
            return None
        if interaction.agentic is None:
            return Unscored("tool calls were not recorded")
        names, allowed, forbidden = _names_of(self.aliases), self.allowed_tools, self.forbidden_tools
        calls = MatchedCalls.of(interaction, self._rule, names=names, allowed=allowed, forbidden=forbidden)
        ordered = self.mode in ("strict", "in_order") or (
            self.mode == "default" and interaction.ground_truth_agentic.tool_sequence_matters
        )
        costs = {"missing": self.mode != "subset", "extra": self.mode not in ("in_order", "superset"), "order": ordered}
        if not calls.expected and not calls.made:
            score = self._score((1.0, 1.0, 1.0, 1.0), ["No call was expected and none was made."])
        else:
            used, about_use = self._use(interaction, calls.made)
            reasons = list(calls.lost_points(**costs))
            about_calls = reasons or ["The calls have none of the faults that this rubric looks for."]
            if not reasons and self.mode in ("default", "strict", "unordered"):
                about_calls = ["All expected calls were made as expected."]
            dimensions = (*self._dimensions(calls, ordered=ordered), used)
            score = self._score(dimensions, [*about_calls, *about_use], in_scope=not calls.scope_violations)
        return score if isinstance(score, Unscored) else ToolVerdict(score, calls.counts(**costs))

    def _dimensions(self, calls: MatchedCalls, *, ordered: bool) -> tuple[float, float, float]:
        """Selection, parameters and sequence."""
        expected, made, matched = len(calls.expected), len(calls.made), len(calls.pairs)
        if self.mode == "subset":
            wanted, over = made, made
        elif self.mode in ("in_order", "superset"):
            wanted, over = expected, expected
        else:
            wanted, over = expected, made + expected - matched
        if over == 0:
            return 1.0, 1.0, 1.0
        agreement = sum((pair.agreement for pair in calls.pairs), Fraction())
        parameters = float(agreement / wanted) if wanted else 0.0
        if expected and not matched and self.mode != "subset":
            sequence = 0.0
        else:
            sequence = len(calls.in_order) / expected if expected and ordered else 1.0
        return matched / over, parameters, sequence

    @cached_property
    def _rule(self) -> CallRule:
        arguments = ArgumentRule(self.parameters, self.float_tolerance, self.numeric_strings)
        checks: dict[str, Callable[[Mapping[str, Any]], str | None]] = {
            tool: schema_check(tool, schema) for tool, schema in self.schemas.items()
        }
        return CallRule(arguments, self.matchers, checks)

    @property
    def _weights(self) -> Mapping[str, float]:
        return self.weights or {}

    def _score(
        self, dimensions: Sequence[float], reasons: Sequence[str], *, in_scope: bool = True
    ) -> ToolCorrectnessScore | Unscored:
        scores = dict(zip(_WEIGHTS, dimensions, strict=True))
        known = {name: score for name, score in scores.items() if not math.isnan(score)}
        total = math.fsum(self._weights[name] for name in known)
        if total == 0:
            return Unscored(f"only the use of the results has a weight. {' '.join(reasons)}")
        # both sums are rounded once, so that perfect calls give exactly 1 for all weights
        overall = min(1.0, math.fsum(self._weights[name] * score for name, score in known.items()) / total)
        overall = overall if in_scope else 0.0
        return ToolCorrectnessScore(
            tool_selection_correct=scores["selection"],
            parameter_accuracy=scores["parameters"],
            sequence_correct=scores["sequence"],
            result_utilization=scores["utilization"],
            overall_correctness=overall,
            is_correct=in_scope and overall >= self.threshold - ROUNDING,
            reasoning=" ".join(reasons),
        )

    def _use(self, interaction: Interaction, made: Sequence[ToolCall]) -> tuple[float, list[str]]:
        """The utilization score (NaN if unknown) and the sentences about it."""
        recorded = interaction.agentic.final_answer_uses_tools if interaction.agentic else None
        if recorded is not None and self.utilization != "measured":
            return float(recorded), [] if recorded else ["According to the log, the answer does not use the results."]
        shared = "so the other aspects share its weight."
        if self.utilization == "recorded":
            return math.nan, [f"Use of the results is unknown (the log does not record it), {shared}"]
        measured = answer_uses_results(interaction.query, interaction.assistant, made)
        if measured is None:
            return math.nan, [f"Use of the results is unknown (there is no result to look for in the answer), {shared}"]
        return float(measured), [] if measured else ["The answer contains none of the recorded results."]


def _declared(value: Any) -> Any:
    """The declaration of a setting, for its digest."""
    if isinstance(value, Matcher):
        return value.model_dump(mode="json", exclude_unset=True)
    code = getattr(value, "__code__", None)
    # functions with the same name, for example lambdas, differ in their code
    does = "" if code is None else f" {code.co_code.hex()} {code.co_consts!r} {code.co_names!r}"
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__qualname__)}{does}"


def _mapping(name: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) and key for key in value):
        raise InvalidArgument(f"{name} must map tools to their settings, got {short(value)}")
    return value


def _matchers(declared: object) -> dict[str, dict[str, Compare]]:
    matchers: dict[str, dict[str, Compare]] = {}
    for tool, rules in _mapping("matchers", declared).items():
        matchers[tool] = {}
        for argument, rule in _mapping(f"matchers[{tool!r}]", rules).items():
            where = f"matchers[{tool!r}][{argument!r}]"
            if not isinstance(rule, (Matcher, dict)) and callable(rule):
                matchers[tool][argument] = rule
                continue
            try:
                matchers[tool][argument] = Matcher.model_validate(rule)
            except ValidationError as error:
                wrong = "; ".join(map(str, problems_of(error, source=where, where="")))
                raise InvalidArgument(wrong) from None
    return matchers


def _is_names(value: object) -> bool:
    return isinstance(value, (list, tuple, set, frozenset)) and all(isinstance(v, str) and v.strip() for v in value)


def _names_of(aliases: object) -> dict[str, str]:
    """Alias → name."""
    names: dict[str, str] = {}
    for name, others in _mapping("aliases", aliases).items():
        if not _is_names(others):
            raise InvalidArgument(f"aliases[{name!r}] must be a list of names, got {short(others)}")
        for other in others:
            if names.setdefault(other, name) != name:
                raise InvalidArgument(f"aliases: {other!r} cannot stand for both {names[other]!r} and {name!r}")
    if chained := [name for name in names if name in _mapping("aliases", aliases)]:
        raise InvalidArgument(f"aliases: {chained[0]!r} must not be both a name and an alias of {names[chained[0]]!r}")
    return names


def _normalised(weights: object) -> dict[str, float]:
    if weights is None:
        return dict.fromkeys(_WEIGHTS, 0.25)
    if not isinstance(weights, Mapping):
        raise InvalidArgument(f"weights must map {', '.join(_WEIGHTS)} to numbers ≥ 0, got {weights!r}")
    for name, weight in weights.items():
        if name not in _WEIGHTS:
            raise UnknownName("weight", name, _WEIGHTS)
        check_number(weight, f"weight {name!r}")
    largest = max(weights.values(), default=0)
    if largest == 0:
        raise InvalidArgument(f"at least one weight must be > 0, got {dict(weights)!r}")
    scaled = {name: weights.get(name, 0) / largest for name in _WEIGHTS}
    total = math.fsum(scaled.values())
    return {name: weight / total for name, weight in scaled.items()}
