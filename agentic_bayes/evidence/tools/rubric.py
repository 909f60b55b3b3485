"""The tool rubric: were the expected tools called, with the right arguments, in order, and were they used?"""

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

from agentic_bayes.checks import check_choice, check_probability, no_such_file
from agentic_bayes.errors import InvalidArgument, UnknownName, did_you_mean
from agentic_bayes.evidence.llm.prompt import text_digest
from agentic_bayes.evidence.score import Unscored
from agentic_bayes.evidence.tools.arguments import ArgumentRule
from agentic_bayes.evidence.tools.call_rule import CallRule, Compare
from agentic_bayes.evidence.tools.schemas import schema_check
from agentic_bayes.evidence.tools.trace import Trace
from agentic_bayes.evidence.tools.utilization import answer_uses_results
from agentic_bayes.records.base import problems_of, short
from agentic_bayes.records.matchers import Matcher
from agentic_bayes.records.model import Interaction, ToolCall
from agentic_bayes.records.wire.strict_json import strict_json

__all__ = ["ROUNDING", "ToolCorrectnessScore", "ToolRubric", "ToolVerdict"]

_VERSION = "tool-rubric/2"
_WEIGHTS = ("selection", "parameters", "sequence", "utilization")
# An overall that misses the threshold by rounding only is not a failure.
ROUNDING = 1e-9

Mode = Literal["default", "strict", "in_order", "unordered", "subset", "superset"]
ParametersRule = Literal["union_keys", "expected_keys"]
UtilizationRule = Literal["auto", "recorded", "measured"]


def _score_or_nan(value: float) -> float:
    if not math.isnan(value) and not 0 <= value <= 1:
        raise ValueError(f"must be a number in [0, 1] or NaN, got {value!r}")
    return value


_Unit = Annotated[float, Field(ge=0, le=1)]


class ToolCorrectnessScore(BaseModel):
    """The tool verdict on one interaction.

    Attributes
    ----------
    tool_selection_correct : float
        Whether the expected tools were called, as often as expected, and no others.
    parameter_accuracy : float
        Whether the arguments are the expected ones.
    sequence_correct : float
        Whether the calls were made in the expected order, where it matters.
    result_utilization : float
        Whether the answer uses the results; NaN where that could not be told.
    overall_correctness : float
        Weighted mean of the four (of the first three where the fourth is NaN).
    is_correct : bool
        Whether the overall reaches the rubric's threshold.
    reasoning : str or None
        Every lost point, in sentences.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tool_selection_correct: _Unit
    parameter_accuracy: _Unit
    sequence_correct: _Unit
    result_utilization: Annotated[float, AfterValidator(_score_or_nan)]
    overall_correctness: _Unit
    is_correct: bool
    reasoning: str | None = None


@dataclass(frozen=True, slots=True)
class ToolVerdict:
    """A tool verdict, and the counts behind it."""

    score: ToolCorrectnessScore  # the verdict
    # tool → how many of its calls were expected, made and matched, and what was wrong with which argument; for
    # `tool_diagnostics`
    tools: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ToolRubric:
    """Grades the tool calls of an interaction against the expected ones.

    Parameters
    ----------
    weights : mapping, optional
        Weight of ``selection``, ``parameters``, ``sequence`` and ``utilization``: numbers ≥ 0, not all 0.
        Those left out are 0, and the weights are divided by their sum. Default: a quarter each.
    threshold : float
        Overall from which a verdict is "correct", in [0, 1].
    mode : {"default", "strict", "in_order", "unordered", "subset", "superset"}
        Which calls cost something:

        - default: missing and extra calls; their order where ``tool_sequence_matters``;
        - strict: the same, and their order always;
        - unordered: the same, and their order never;
        - in_order: missing calls, and their order always; extra calls are free;
        - superset: missing calls only;
        - subset: extra calls only: nothing beyond the expected was called.
    parameters : {"union_keys", "expected_keys"}
        Agreement of two calls: equal keys over the keys of either, or over the expected keys (so that
        arguments beyond the expected ones cost nothing).
    utilization : {"auto", "recorded", "measured"}
        Where ``result_utilization`` comes from: the flag ``final_answer_uses_tools``; the recorded results,
        looked for in the answer (see `agentic_bayes.evidence.tools.utilization`); or the flag if there is one,
        else the results.
    float_tolerance : float
        Numbers of which at least one has a fraction are equal up to this, absolutely or relatively. Whole
        numbers are compared exactly.
    numeric_strings : bool
        Whether the argument "5" equals 5.
    matchers : mapping
        Tool → argument → how it is compared: a `Matcher`, what declares one (``{"relative": 0.05}``), or a callable
        that is given the expected and the made value and tells whether they agree. ``*`` stands for every tool, or
        every argument; a path such as ``user.address.zip`` reaches into an argument. What an expected call itself
        says goes before this.
    aliases : mapping
        Tool → other names of it, in expected and made calls alike.
    allowed_tools : sequence of str, optional
        The only tools that may be called, beside the expected ones.
    forbidden_tools : sequence of str
        Tools that may not be called. One call outside of its scope makes the overall 0.
    schemas : mapping
        Tool → JSON schema of its arguments. A call that breaks it agrees with no expected call.

    Raises
    ------
    InvalidArgument
        If a setting is outside what is allowed (`UnknownName` for the name of a weight).

    Notes
    -----
    With e calls expected and m made, matched one to one within a tool name so that the total agreement of
    their arguments is largest (and, among equal totals, the most pairs stand in order), M pairs are
    matched:

    - selection = M / (m + e − M), the Jaccard index of two multisets; M / e where extra calls are free, M / m where
      missing ones are (mode subset);
    - parameters = Σ agreement / e; in mode subset / m;
    - sequence = longest run of matched pairs in order (others may stand between) / e where the order counts, else 1;
      0 where calls were expected and none is matched;
    - utilization = 1 or 0; where it could not be told it is NaN, and the others share its weight.

    Nothing expected and nothing called: all are 1. Calls although none was expected, where that costs something:
    selection and parameters are 0, sequence 1.

    ``step`` only sorts calls: those that have one are put in its order (stably) into the places that they
    hold together, and calls without one keep their place. It is never compared for equality.
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
        if not _is_number(self.float_tolerance) or not 0 <= self.float_tolerance < 1:
            raise InvalidArgument(f"float_tolerance must be a number in [0, 1), got {self.float_tolerance!r}")
        if not isinstance(self.numeric_strings, bool):
            raise InvalidArgument(f"numeric_strings must be True or False, got {self.numeric_strings!r}")
        for name, allowed in (
            ("parameters", get_args(ParametersRule)),
            ("utilization", get_args(UtilizationRule)),
        ):
            check_choice(f"value of {name}", getattr(self, name), allowed)
        check_choice("mode", self.mode, get_args(Mode))
        object.__setattr__(self, "matchers", _matchers(self.matchers))
        _names_of(self.aliases)
        for name in ("allowed_tools", "forbidden_tools"):
            names = getattr(self, name)
            if not _is_names(names) and not (names is None and name == "allowed_tools"):
                raise InvalidArgument(f"{name} must be a list of names, got {short(names)}")
        _mapping("schemas", self.schemas)
        self._rule  # noqa: B018 - compiles the schemas: check first

    @classmethod
    def from_file(cls, path: str | Path) -> ToolRubric:
        """A rubric that was declared in a file.

        Parameters
        ----------
        path : path
            JSON: an object of the parameters above.

        Returns
        -------
        ToolRubric

        Raises
        ------
        InvalidArgument
            If there is no such file, or something in it is not allowed.
        """
        source = Path(path)
        if not source.is_file():
            raise InvalidArgument(no_such_file(source))
        try:
            declared = strict_json(source.read_text(encoding="utf-8"), finite=False)
        except ValueError as error:
            raise InvalidArgument(f"{source}: must be JSON ({error})") from None
        if not isinstance(declared, dict):
            raise InvalidArgument(f"{source}: must be an object of the rubric's settings, got {short(declared)}")
        known = [one.name for one in fields(cls)]
        for name in declared:
            if name not in known:
                raise InvalidArgument(f"{source}: unknown setting {name!r}: {did_you_mean(name, known)}")
        try:
            return cls(**declared)
        except InvalidArgument as error:
            raise InvalidArgument(f"{source}: {error}") from None

    @property
    def identity(self) -> str:
        """Name, version and every setting that is not the default."""
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
            None where nothing is said about expected tools; `Unscored` where the calls were not recorded,
            or where all that is weighed could not be told.
        """
        verdict = self.verdict(interaction)
        return verdict.score if isinstance(verdict, ToolVerdict) else verdict

    def verdict(self, interaction: Interaction) -> ToolVerdict | Unscored | None:
        """The same as `grade`, with the counts behind it.

        Parameters
        ----------
        interaction : Interaction
            The turn with its calls and expectations.

        Returns
        -------
        ToolVerdict, Unscored or None
        """
        if interaction.ground_truth_agentic is None:
            return None
        if interaction.agentic is None:
            return Unscored("tool calls were not recorded")
        trace = Trace.of(
            interaction,
            self._rule,
            names=_names_of(self.aliases),
            allowed=self.allowed_tools,
            forbidden=self.forbidden_tools,
        )
        ordered = self.mode in ("strict", "in_order") or (
            self.mode == "default" and interaction.ground_truth_agentic.tool_sequence_matters
        )
        costs = {"missing": self.mode != "subset", "extra": self.mode not in ("in_order", "superset"), "order": ordered}
        if not trace.expected and not trace.made:
            score = self._score(1.0, 1.0, 1.0, 1.0, ["No call was expected and none was made."])
        else:
            used, about_use = self._use(interaction, trace.made)
            reasons = list(trace.lost_points(**costs))
            about_calls = reasons or ["Nothing that this rubric looks for was wrong with the calls."]
            if not reasons and self.mode in ("default", "strict", "unordered"):
                about_calls = ["All expected calls were made as expected."]
            dimensions = self._dimensions(trace, ordered=ordered)
            scope = not trace.scope_violations
            score = self._score(*dimensions, used, [*about_calls, *about_use], in_scope=scope)
        return score if isinstance(score, Unscored) else ToolVerdict(score, trace.counts(**costs))

    def _dimensions(self, trace: Trace, *, ordered: bool) -> tuple[float, float, float]:
        """Selection, parameters and sequence."""
        expected, made, matched = len(trace.expected), len(trace.made), len(trace.pairs)
        if self.mode == "subset":
            wanted, over = made, made
        elif self.mode in ("in_order", "superset"):
            wanted, over = expected, expected
        else:
            wanted, over = expected, made + expected - matched
        if over == 0:
            return 1.0, 1.0, 1.0
        agreement = sum((pair.agreement for pair in trace.pairs), Fraction())
        parameters = float(agreement / wanted) if wanted else 0.0
        if expected and not matched and self.mode != "subset":
            sequence = 0.0
        else:
            sequence = len(trace.in_order) / expected if expected and ordered else 1.0
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
        self,
        selection: float,
        parameters: float,
        sequence: float,
        used: float,
        reasons: Sequence[str],
        *,
        in_scope: bool = True,
    ) -> ToolCorrectnessScore | Unscored:
        scores = dict(zip(_WEIGHTS, (selection, parameters, sequence, used), strict=True))
        told = {name: score for name, score in scores.items() if not math.isnan(score)}
        total = math.fsum(self._weights[name] for name in told)
        if total == 0:
            return Unscored(f"only the use of the results is weighed, and it could not be told. {' '.join(reasons)}")
        # Both sums are rounded once, so that a perfect trace gives exactly 1 for every weighting.
        overall = min(1.0, math.fsum(self._weights[name] * score for name, score in told.items()) / total)
        overall = overall if in_scope else 0.0
        return ToolCorrectnessScore(
            tool_selection_correct=selection,
            parameter_accuracy=parameters,
            sequence_correct=sequence,
            result_utilization=used,
            overall_correctness=overall,
            is_correct=in_scope and overall >= self.threshold - ROUNDING,
            reasoning=" ".join(reasons),
        )

    def _use(self, interaction: Interaction, made: Sequence[ToolCall]) -> tuple[float, list[str]]:
        """The utilization score, NaN where it could not be told, and what to say about it."""
        recorded = interaction.agentic.final_answer_uses_tools if interaction.agentic else None
        if recorded is not None and self.utilization != "measured":
            return float(recorded), [] if recorded else ["The answer was recorded as not using the results."]
        left_out = "so it is left out and the other aspects share its weight."
        if self.utilization == "recorded":
            return math.nan, [f"Whether the answer uses the results was not recorded, {left_out}"]
        measured = answer_uses_results(interaction.query, interaction.assistant, made)
        if measured is None:
            return math.nan, [
                f"Whether the answer uses the results could not be told (no result to look for), {left_out}"
            ]
        return float(measured), [] if measured else ["No value of the recorded results is in the answer."]


def _declared(value: Any) -> Any:
    """What a setting is declared as, for its digest."""
    if isinstance(value, Matcher):
        return value.model_dump(mode="json", exclude_unset=True)
    code = getattr(value, "__code__", None)
    # two functions of one name, as lambdas are, differ in what they do
    does = "" if code is None else f" {code.co_code.hex()} {code.co_consts!r} {code.co_names!r}"
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__qualname__)}{does}"


def _mapping(name: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) and key for key in value):
        raise InvalidArgument(f"{name} must map names of tools to their settings, got {short(value)}")
    return value


def _matchers(declared: object) -> dict[str, dict[str, Compare]]:
    found: dict[str, dict[str, Compare]] = {}
    for tool, rules in _mapping("matchers", declared).items():
        found[tool] = {}
        for argument, rule in _mapping(f"matchers[{tool!r}]", rules).items():
            where = f"matchers[{tool!r}][{argument!r}]"
            if not isinstance(rule, (Matcher, dict)) and callable(rule):
                found[tool][argument] = rule
                continue
            try:
                found[tool][argument] = Matcher.model_validate(rule)
            except ValidationError as error:
                wrong = "; ".join(map(str, problems_of(error, source=where, where="")))
                raise InvalidArgument(wrong) from None
    return found


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
        raise InvalidArgument(f"aliases: {chained[0]!r} is a name and an alias of {names[chained[0]]!r}")
    return names


def _normalised(weights: object) -> dict[str, float]:
    if weights is None:
        return dict.fromkeys(_WEIGHTS, 0.25)
    if not isinstance(weights, Mapping):
        raise InvalidArgument(f"weights must map {', '.join(_WEIGHTS)} to numbers ≥ 0, got {weights!r}")
    for name, weight in weights.items():
        if name not in _WEIGHTS:
            raise UnknownName("weight", name, _WEIGHTS)
        if not _is_number(weight) or weight < 0:
            raise InvalidArgument(f"weight {name!r} must be a finite number ≥ 0, got {weight!r}")
    largest = max(weights.values(), default=0)
    if largest == 0:
        raise InvalidArgument(f"at least one weight must be > 0, got {dict(weights)!r}")
    scaled = {name: weights.get(name, 0) / largest for name in _WEIGHTS}
    total = math.fsum(scaled.values())
    return {name: weight / total for name, weight in scaled.items()}


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
