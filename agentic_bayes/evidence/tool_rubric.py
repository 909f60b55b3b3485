"""The tool rubric: were the expected tools called, with the right arguments, in order, and were they used?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Literal, assert_never, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from agentic_bayes.errors import InvalidArgument, UnknownName, check_choice
from agentic_bayes.evidence.arguments import ArgumentRule
from agentic_bayes.evidence.matching import Pair, longest_in_order, match_calls
from agentic_bayes.evidence.score import Unscored
from agentic_bayes.evidence.utilization import answer_uses_results
from agentic_bayes.formatting import plural
from agentic_bayes.numerics import check_probability
from agentic_bayes.records.model import Interaction, ToolCall

__all__ = ["ROUNDING", "ToolCorrectnessScore", "ToolRubric"]

_VERSION = "tool-rubric/1"
_WEIGHTS = ("selection", "parameters", "sequence", "utilization")
# An overall that misses the threshold by rounding only is not a failure.
ROUNDING = 1e-9

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
    parameters : {"union_keys", "expected_keys"}
        Agreement of two calls: equal keys over the keys of either, or over the expected keys (so that
        arguments beyond the expected ones cost nothing).
    utilization : {"auto", "recorded", "measured"}
        Where ``result_utilization`` comes from: the flag ``final_answer_uses_tools``; the recorded results,
        looked for in the answer (see `agentic_bayes.evidence.utilization`); or the flag if there is one,
        else the results.
    float_tolerance : float
        Numbers of which at least one has a fraction are equal up to this, absolutely or relatively. Whole
        numbers are compared exactly.
    numeric_strings : bool
        Whether the argument "5" equals 5.

    Raises
    ------
    InvalidArgument
        If a setting is outside what is allowed (`UnknownName` for the name of a weight).

    Notes
    -----
    With e calls expected and m made, matched one to one within a tool name so that the total agreement of
    their arguments is largest (and, among equal totals, the most pairs stand in order), M pairs are
    matched:

    - selection = M / (m + e − M), the Jaccard index of two multisets;
    - parameters = Σ agreement / e;
    - sequence = longest run of matched pairs in order (others may stand between) / e where
      ``tool_sequence_matters``, else 1;
    - utilization = 1 or 0; where it could not be told it is NaN, and the others share its weight.

    Nothing expected and nothing called: all are 1. Calls although none was expected: selection and
    parameters are 0, sequence 1. No call although some were expected: selection, parameters and sequence
    are 0.

    ``step`` only sorts calls: those that have one are put in its order (stably) into the places that they
    hold together, and calls without one keep their place. It is never compared for equality.
    """

    weights: Mapping[str, float] | None = field(default=None, hash=False)
    threshold: float = 1.0
    parameters: ParametersRule = "union_keys"
    utilization: UtilizationRule = "auto"
    float_tolerance: float = 1e-9
    numeric_strings: bool = False

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

    @property
    def identity(self) -> str:
        """Name, version and every setting that is not the default."""
        default = ToolRubric()
        parts = [_VERSION]
        if self.weights != default.weights:
            weights = self._weights
            parts.append("weights=" + ",".join(f"{name}:{weights[name]:.12g}" for name in _WEIGHTS if weights[name]))
        for name in ("threshold", "parameters", "utilization", "float_tolerance", "numeric_strings"):
            if (value := getattr(self, name)) != getattr(default, name):
                parts.append(f"{name}={value:.12g}" if isinstance(value, float) else f"{name}={value}")
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
        if interaction.ground_truth_agentic is None:
            return None
        if interaction.agentic is None:
            return Unscored("tool calls were not recorded")
        expected = _in_order(interaction.ground_truth_agentic.expected_tools)
        made = _in_order(interaction.agentic.tools_used)
        in_order = interaction.ground_truth_agentic.tool_sequence_matters
        if not expected and not made:
            return self._verdict(1.0, 1.0, 1.0, 1.0, ["No call was expected and none was made."])
        pairs = match_calls(expected, made, self._rule)
        kept = longest_in_order(pairs)
        selection = len(pairs) / (len(made) + len(expected) - len(pairs))
        parameters = float(sum((p.agreement for p in pairs), Fraction()) / len(expected)) if expected else 0.0
        if expected and not made:
            sequence = 0.0
        else:
            sequence = kept / len(expected) if expected and in_order else 1.0
        used, about_use = self._use(interaction, made)
        reasons = list(self._lost_points(expected, made, pairs))
        if len(pairs) > kept and in_order:
            reasons.append(f"Of {plural(len(pairs), 'call')} matched, {kept} stood in the expected order.")
        if not reasons:
            reasons.append("All expected calls were made as expected.")
        return self._verdict(selection, parameters, sequence, used, [*reasons, *about_use])

    @property
    def _rule(self) -> ArgumentRule:
        return ArgumentRule(self.parameters, self.float_tolerance, self.numeric_strings)

    @property
    def _weights(self) -> Mapping[str, float]:
        return self.weights or {}

    def _verdict(
        self, selection: float, parameters: float, sequence: float, used: float, reasons: Sequence[str]
    ) -> ToolCorrectnessScore | Unscored:
        scores = dict(zip(_WEIGHTS, (selection, parameters, sequence, used), strict=True))
        told = {name: score for name, score in scores.items() if not math.isnan(score)}
        total = math.fsum(self._weights[name] for name in told)
        if total == 0:
            return Unscored(f"only the use of the results is weighed, and it could not be told. {' '.join(reasons)}")
        # Both sums are rounded once, so that a perfect trace gives exactly 1 for every weighting.
        overall = min(1.0, math.fsum(self._weights[name] * score for name, score in told.items()) / total)
        return ToolCorrectnessScore(
            tool_selection_correct=selection,
            parameter_accuracy=parameters,
            sequence_correct=sequence,
            result_utilization=used,
            overall_correctness=overall,
            is_correct=overall >= self.threshold - ROUNDING,
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

    def _lost_points(
        self, expected: Sequence[ToolCall], made: Sequence[ToolCall], pairs: Sequence[Pair]
    ) -> Iterator[str]:
        answered = {pair.expected: pair.made for pair in pairs}
        for index, call in enumerate(expected):
            if index not in answered:
                yield f"Expected call {index + 1}, {_shown(call)}, was not made."
                continue
            place = answered[index]
            for lost in self._rule.differences(call.parameters, made[place].parameters):
                where = f"{call.tool_name} (call {place + 1}): {lost.key}"
                match lost.kind:
                    case "missing":
                        yield f"{where} is missing, expected {_short(lost.expected)}."
                    case "extra":
                        yield f"{where} = {_short(lost.made)} was not expected."
                    case "unequal":
                        yield f"{where} = {_short(lost.made)}, expected {_short(lost.expected)}."
                    case _:
                        assert_never(lost.kind)
        used = set(answered.values())
        for index, call in enumerate(made):
            if index not in used:
                yield f"Call {index + 1}, {_shown(call)}, was not expected."


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


def _in_order(calls: Sequence[ToolCall]) -> list[ToolCall]:
    """Calls with a step in its order, in the places that they hold together; the others keep their place."""
    stepped = iter(sorted((call for call in calls if call.step is not None), key=lambda call: call.step or 0))
    return [call if call.step is None else next(stepped) for call in calls]


def _shown(call: ToolCall) -> str:
    return _cut(f"{call.tool_name}({', '.join(f'{k}={_short(v)}' for k, v in call.parameters.items())})", 160)


def _short(value: object) -> str:
    try:
        return _cut(repr(value), 60)
    except ValueError:  # whole numbers of thousands of digits have no repr
        return f"a very long {type(value).__name__}"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
