import json
import math
from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import reduced

from agentic_bayes.errors import InvalidArgument, UnknownName
from agentic_bayes.evidence.score import Unscored
from agentic_bayes.evidence.tools.rubric import ToolCorrectnessScore, ToolRubric
from agentic_bayes.records.model import Conversation, Interaction

WEIGHT_NAMES = ("selection", "parameters", "sequence", "utilization")


def turn(expected, made, *, ordered=True, flag=True, answer="done", query="do it", results=None):
    """An interaction with (name, arguments) pairs as expected and made calls."""
    calls = [call(*spec) for spec in made]
    for tool_call, result in zip(calls, results or [], strict=False):
        tool_call["result"] = result
    return Interaction(
        qa_id="q",
        query=query,
        assistant=answer,
        agentic={"tools_used": calls, "final_answer_uses_tools": flag},
        ground_truth_agentic={
            "expected_tools": [call(*spec) for spec in expected],
            "tool_sequence_matters": ordered,
        },
    )


def call(name, arguments=None, step=None):
    return {"tool_name": name, "parameters": arguments, "step": step}


def scores(expected, made, *, rubric=None, **options):
    verdict = (rubric or ToolRubric()).grade(turn(expected, made, **options))
    return (
        verdict.tool_selection_correct,
        verdict.parameter_accuracy,
        verdict.sequence_correct,
        verdict.result_utilization,
    )


F1, F2, F3 = ("f", {"x": 1}), ("f", {"x": 2}), ("f", {"x": 3})
G1 = ("g", {"y": "a"})

names = st.sampled_from("fgh")
arguments = st.dictionaries(st.sampled_from("xyz"), st.integers(0, 2), max_size=3)
calls = st.lists(st.tuples(names, arguments), max_size=6)


# --- what is graded at all


def test_nothing_said_about_expected_tools_is_no_verdict():
    """Without expectations there is no tool verdict, neither passed nor unscored."""
    interaction = Interaction(qa_id="q", query="?", assistant="a", agentic={"tools_used": [call("f")]})
    assert ToolRubric().grade(interaction) is None


def test_unrecorded_calls_are_unscored_and_not_zero():
    """Expectations without recorded calls give the reason instead of a score."""
    interaction = Interaction(qa_id="q", query="?", assistant="a", ground_truth_agentic={"expected_tools": [call("f")]})
    assert ToolRubric().grade(interaction) == Unscored("tool calls were not recorded")


def test_public_conversations_have_the_known_tool_scores(shared_data):
    """In the public file only `units` of conversation 3's second turn is missing; q3's two calls are both right."""
    conversations = [
        Conversation.model_validate(c)
        for c in json.loads(shared_data("fair_forge_dataset_agentic.json").read_text(encoding="utf-8"))
    ]
    verdicts = {(c.session_id, t.qa_id): ToolRubric().grade(t) for c in conversations for t in c.conversation}
    lacking = verdicts.pop(("agentic_eval_session3", "q2_weather"))
    assert (lacking.parameter_accuracy, lacking.overall_correctness, lacking.is_correct) == (0.5, 0.875, False)
    assert lacking.reasoning == "weather_api (step 1): units is missing, expected 'celsius'."
    assert len(verdicts) == 8
    assert all(v.overall_correctness == 1.0 and v.is_correct for v in verdicts.values())


# --- faults that must be impossible


def test_the_same_tool_called_twice_with_right_arguments_is_perfect():
    """Each of two expected calls of one tool is compared with its own call, not always with the first."""
    assert scores([F1, F2], [F1, F2]) == (1, 1, 1, 1)


def test_two_equal_calls_expected_and_made_are_perfect():
    """Equal calls are matched one to one."""
    assert scores([("f", {}), ("f", {})], [("f", {}), ("f", {})]) == (1, 1, 1, 1)


def test_calls_beyond_the_expected_one_cost_selection():
    """Three calls of a tool of which one is expected score a third on selection."""
    assert scores([F1], [F1, F1, F1]) == (1 / 3, 1, 1, 1)
    assert scores([F1], [F1] * 5)[0] == pytest.approx(0.2, abs=1e-15)


def test_an_expected_tool_that_was_never_called_scores_zero_on_selection():
    """No call although one was expected is a zero, not "no score"."""
    assert scores([F1], []) == (0, 0, 0, 1)
    assert scores([F1], [], ordered=False)[:3] == (0, 0, 0)


def test_no_tool_expected_and_none_used_is_perfect():
    """Nothing expected and nothing called is 1 on every aspect, whatever the utilization flag says."""
    for flag in (True, False, None):
        verdict = ToolRubric().grade(turn([], [], flag=flag))
        assert (verdict.overall_correctness, verdict.is_correct) == (1.0, True)
        assert verdict.reasoning == "No call was expected and none was made."


def test_calls_although_none_was_expected_lose_selection_and_parameters():
    """A call where `expected_tools` is empty is a wrong call."""
    assert scores([], [F1]) == (0, 0, 1, 1)


def test_zero_based_steps_keep_a_right_order():
    """Steps only sort: numbering from 0 where 1 was expected costs nothing."""
    expected = [("f", {"x": 1}, 1), ("g", {}, 2)]
    assert scores(expected, [("f", {"x": 1}, 0), ("g", {}, 1)]) == (1, 1, 1, 1)


def test_an_extra_leading_call_does_not_break_the_order():
    """One call before the expected ones shifts every step and costs selection only."""
    expected = [("f", {"x": 1}, 1), ("g", {}, 2)]
    made = [("login", {}, 1), ("f", {"x": 1}, 2), ("g", {}, 3)]
    assert scores(expected, made) == (2 / 3, 1, 1, 1)


def test_reversed_calls_without_steps_lose_order():
    """Order is judged by order, with or without step numbers."""
    assert scores([F1, G1], [G1, F1]) == (1, 1, 0.5, 1)
    assert scores([F1, F2], [F2, F1]) == (1, 1, 0.5, 1)


def test_steps_sort_the_calls_made():
    """A log that lists calls out of order and numbers them is put in order; a call without step keeps its place."""
    assert scores([F1, G1], [("g", {"y": "a"}, 2), ("f", {"x": 1}, 1)])[2] == 1
    assert scores([F1, F2, F3], [(*F3, 9), F2, (*F1, 4)])[2] == 1


def test_order_that_does_not_matter_is_not_judged():
    """Without `tool_sequence_matters` any order scores 1."""
    assert scores([F1, G1], [G1, F1], ordered=False) == (1, 1, 1, 1)


def test_sequence_skips_over_other_calls():
    """The longest run in order need not be adjacent."""
    made = [("a", {}), F1, ("b", {}), G1, ("c", {}), F2]
    assert scores([F1, G1, F2], made)[2] == 1


def test_equal_calls_are_matched_so_that_order_is_kept():
    """Among equal totals the matching across all tools that keeps the most order is taken."""
    assert scores([("f", {}), ("g", {})], [("f", {}), ("g", {}), ("f", {})])[2] == 1
    assert scores([("g", {}), ("f", {})], [("f", {}), ("g", {}), ("f", {})])[2] == 1


def test_agreement_decides_before_order():
    """A better agreement is preferred to a kept order, and a tie is decided by order."""
    assert scores([F1, F2], [F2, F3]) == (1, 0.5, 0.5, 1)
    # matching {x, y} with {x, y}, or both halves crosswise: 1 either way, and the second keeps the order
    a, b, half_x, half_y = ("f", {"x": 1, "y": 1}), ("f", {"x": 1, "y": 1}), ("f", {"x": 1}), ("f", {"y": 1})
    assert scores([a, half_x], [half_y, b]) == (1, 0.5, 1, 1)


@pytest.mark.parametrize(
    ("expected", "made", "equal"),
    [
        ("5", 5, False),
        (0.1 + 0.2, 0.3, True),
        (True, 1, False),
        (False, 0, False),
        (None, 0, False),
        (5, 5.0, True),
        (2**53, 2**53 + 1, False),
        (10**400, 10**400, True),
        (10**400, 1e308, False),
        (2**53 + 1, float(2**53), False),
        (10_000_000_000, 10_000_000_001.0, False),
        ([1, {"a": 0.1 + 0.2}], [1.0, {"a": 0.3}], True),
        ([1, 2], [2, 1], False),
        ({"a": {"b": None}}, {"a": {}}, False),
        ("San Francisco", "san francisco", False),
        ([], {}, False),
    ],
)
def test_arguments_are_compared_by_type_and_value(expected, made, equal):
    """A boolean is no number, text is no number, whole numbers are exact, floats have a tolerance."""
    assert scores([("f", {"x": expected})], [("f", {"x": made})])[1] == float(equal)
    assert scores([("f", {"x": made})], [("f", {"x": expected})])[1] == float(equal)


def test_a_missing_argument_is_not_none():
    """`None` given where nothing was expected, or the reverse, is a difference."""
    assert scores([("f", {"x": None})], [("f", {})])[1] == 0
    assert scores([("f", {})], [("f", {"x": None})])[1] == 0
    assert scores([("f", {"x": None})], [("f", {"x": None})])[1] == 1


def test_arguments_as_json_text_and_openai_names_are_read():
    """`name`/`arguments` and a JSON string mean the same as `tool_name`/`parameters` on both sides."""
    interaction = Interaction(
        qa_id="q",
        query="?",
        assistant="a",
        agentic={"tools_used": [{"name": "f", "arguments": '{"x": 1}'}], "final_answer_uses_tools": True},
        ground_truth_agentic={"expected_tools": [{"name": "f", "arguments": {"x": 1}}]},
    )
    assert ToolRubric().grade(interaction).overall_correctness == 1.0


def test_parameters_none_is_no_arguments():
    """`None` and an empty object are both "no arguments"."""
    assert scores([("f", None)], [("f", {})])[1] == 1


def test_text_numbers_equal_numbers_only_when_asked():
    """`numeric_strings` lets "5" equal 5, but never makes two texts equal."""
    lenient = ToolRubric(numeric_strings=True)
    assert scores([("f", {"x": "5"})], [("f", {"x": 5.0})], rubric=lenient)[1] == 1
    assert scores([("f", {"x": "007"})], [("f", {"x": "7"})], rubric=lenient)[1] == 0
    assert scores([("f", {"x": "1"})], [("f", {"x": True})], rubric=lenient)[1] == 0


def test_the_float_tolerance_is_the_stated_one():
    """A wider tolerance accepts a coarser value."""
    near = [("f", {"x": 0.301})]
    assert scores([("f", {"x": 0.3})], near)[1] == 0
    assert scores([("f", {"x": 0.3})], near, rubric=ToolRubric(float_tolerance=0.01))[1] == 1


def test_agreement_counts_the_union_of_keys_or_the_expected_ones():
    """An argument beyond the expected ones costs under `union_keys` and not under `expected_keys`."""
    expected, made = [("f", {"x": 1, "y": 2})], [("f", {"x": 1, "y": 2, "z": 3})]
    assert scores(expected, made)[1] == 2 / 3
    assert scores(expected, made, rubric=ToolRubric(parameters="expected_keys"))[1] == 1


def test_tool_names_are_case_sensitive():
    """A tool with another spelling is another tool."""
    assert scores([("Search", {})], [("search", {})]) == (0, 0, 0, 1)


# --- weights and threshold


def test_a_perfect_trace_is_exactly_one_for_every_weighting():
    """No weighting on a grid of .05 gives .9999999999999999."""
    perfect = turn([F1, G1], [F1, G1])
    steps = range(21)
    for a, b, c in product(steps, steps, steps):
        if a + b + c <= 20:
            weights = dict(zip(WEIGHT_NAMES, (a / 20, b / 20, c / 20, (20 - a - b - c) / 20), strict=True))
            assert ToolRubric(weights=weights).grade(perfect).overall_correctness == 1.0
    for weights in ({"selection": 0.7, "parameters": 0.1, "sequence": 0.1, "utilization": 0.1}, {"sequence": 3}):
        assert ToolRubric(weights=weights).grade(perfect).is_correct


def test_partial_weights_are_completed_with_zero_and_normalised():
    """A weight that is not given is 0."""
    verdict = ToolRubric(weights={"selection": 1, "parameters": 3}).grade(turn([F1], [F2]))
    assert verdict.overall_correctness == 0.25


def test_weights_that_sum_to_two_do_not_pass_a_wrong_tool():
    """Weights are divided by their sum before the threshold is applied."""
    verdict = ToolRubric(weights=dict.fromkeys(WEIGHT_NAMES, 0.5)).grade(turn([F1], [("g", {})], ordered=False))
    assert (verdict.overall_correctness, verdict.is_correct) == (0.25, False)


def test_very_large_and_very_small_weights_are_normalised():
    """The scale of the weights does not matter."""
    for scale in (1e308, 1e-308):
        rubric = ToolRubric(weights=dict.fromkeys(WEIGHT_NAMES, scale))
        assert rubric.grade(turn([F1], [F1])).overall_correctness == 1.0
        assert rubric == ToolRubric()


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"weights": {"selecton": 1}}, "did you mean 'selection'"),
        ({"weights": {"selection": -0.1}}, "'selection' must be a number ≥ 0, got -0.1"),
        ({"weights": {"selection": math.nan}}, "must be a number ≥ 0, got nan"),
        ({"weights": {"selection": 10**400}}, "must be a number ≥ 0"),
        ({"weights": {"selection": True}}, "must be a number ≥ 0, got True"),
        ({"weights": {"selection": "1"}}, "must be a number ≥ 0, got '1'"),
        ({"weights": {"selection": 0}}, "at least one weight must be > 0"),
        ({"weights": {}}, "at least one weight must be > 0"),
        ({"weights": [1, 1, 1, 1]}, "weights must map selection"),
        ({"threshold": 70}, r"threshold must be a number in \[0, 1\], got 70"),
        ({"threshold": True}, r"threshold must be a number in \[0, 1\], got True"),
        ({"threshold": math.nan}, r"threshold must be a number in \[0, 1\], got nan"),
        ({"float_tolerance": -1}, r"float_tolerance must be a number in \[0, 1\], got -1"),
        ({"numeric_strings": 1}, "numeric_strings must be True or False, got 1"),
        ({"parameters": "union"}, "did you mean 'union_keys'"),
        ({"utilization": "automatic"}, "did you mean 'auto'"),
        ({"utilization": ["auto"]}, "unknown value of utilization"),
    ],
)
def test_bad_settings_are_refused_at_once(settings_, message):
    """The message says what is allowed and what came."""
    with pytest.raises(InvalidArgument, match=message):
        ToolRubric(**settings_)


def test_an_unknown_weight_is_an_unknown_name():
    """The error of an unknown weight is the one for names."""
    with pytest.raises(UnknownName, match="utilization"):
        ToolRubric(weights={"utilisation": 1})


def test_the_threshold_is_inclusive_and_forgives_rounding():
    """An overall that equals the threshold is correct."""
    near = turn([("f", {"a": 1, "b": 2})], [("f", {"a": 1})])
    assert ToolRubric(threshold=0.875).grade(near).is_correct
    assert ToolRubric(threshold=0.875 + 5e-10).grade(near).is_correct
    assert not ToolRubric(threshold=0.876).grade(near).is_correct


def test_the_identity_names_every_setting_that_is_not_the_default():
    """Equal rubrics have equal identities, and another setting another one."""
    assert ToolRubric().identity == "tool-rubric/2"
    assert ToolRubric(weights=dict.fromkeys(WEIGHT_NAMES, 7)).identity == "tool-rubric/2"
    assert ToolRubric(weights={"parameters": 1, "selection": 3}, threshold=0.75).identity == (
        "tool-rubric/2 weights=selection:0.75,parameters:0.25 threshold=0.75"
    )
    others = [
        ToolRubric(parameters="expected_keys"),
        ToolRubric(utilization="measured"),
        ToolRubric(float_tolerance=0),
        ToolRubric(numeric_strings=True),
        ToolRubric(threshold=0),
    ]
    assert len({rubric.identity for rubric in others} | {"tool-rubric/2"}) == 6
    assert len({hash(rubric) for rubric in others}) == 5


def test_the_rubric_does_not_keep_the_callers_weights():
    """Changing the mapping afterwards changes nothing."""
    weights = {"selection": 1.0}
    rubric = ToolRubric(weights=weights)
    weights["selection"] = 0.0
    assert rubric.grade(turn([F1], [F2])).overall_correctness == 1.0


# --- utilization


def test_an_unknown_use_of_results_is_left_out_and_its_weight_shared():
    """Without flag and results, utilization is NaN, the reasoning says so, and the others decide."""
    verdict = ToolRubric().grade(turn([F1], [F1], flag=None))
    assert math.isnan(verdict.result_utilization)
    assert (verdict.overall_correctness, verdict.is_correct) == (1.0, True)
    assert "no result to look for" in verdict.reasoning
    half = ToolRubric(weights={"parameters": 1, "utilization": 3}).grade(turn([F1], [F2], flag=None))
    assert half.overall_correctness == 0


def test_a_rubric_that_weighs_only_an_unknown_use_is_unscored():
    """If nothing that is weighed could be told there is no score."""
    grade = ToolRubric(weights={"utilization": 1}).grade(turn([F1], [F1], flag=None))
    assert isinstance(grade, Unscored)
    assert "Use of the results is unknown" in grade.reason


def test_the_recorded_flag_is_taken_where_there_is_one():
    """`auto` and `recorded` take the flag, `measured` looks at the results."""
    lying = turn([F1], [F1], flag=False, answer="It is 42.", results=[42])
    assert ToolRubric().grade(lying).result_utilization == 0
    assert "the answer does not use the results" in ToolRubric().grade(lying).reasoning
    assert ToolRubric(utilization="recorded").grade(lying).result_utilization == 0
    assert ToolRubric(utilization="measured").grade(lying).result_utilization == 1
    silent = turn([F1], [F1], flag=None, answer="It is 42.", results=[42])
    assert ToolRubric().grade(silent).result_utilization == 1
    assert math.isnan(ToolRubric(utilization="recorded").grade(silent).result_utilization)


@pytest.mark.parametrize(
    ("results", "answer", "used"),
    [
        ([42], "The sum is 42.", 1),
        ([42], "The sum is 53.", 0),
        ([42], "The sum is 420.", 0),
        ([{"temperature": 18, "condition": "partly cloudy"}], "It's 18 degrees.", 1),
        ([{"temperature": 18, "condition": "partly cloudy"}], "PARTLY CLOUDY skies", 1),
        ([{"temperature": 18, "condition": "partly cloudy"}], "It is sunny.", 0),
        ([36, 32.4], "You pay $32.40.", 1),
        ([1234567], "There are 1,234,567 people.", 1),
        ([3.14159], "About 3.14.", 1),
        ([0.30000000000000004], "It is 0.3", 1),
        ([0.25], "That is 25%.", 1),
        (['{"price": 300}'], "It costs $300.", 1),
        (["Flight HAT123 from JFK to SEA leaves at 10:30 and costs 300"], "Take HAT123.", 1),
        (["The museum opens daily except Mondays and entrance remains free"], "I don't know.", 0),
        ([{"flight": "HAT123"}, {"status": "ok"}], "You are on HAT123.", 1),
        ([10**5000], "huge", 0),
    ],
)
def test_measured_use_looks_for_the_results_in_the_answer(results, answer, used):
    """One informative value of the results in the answer is enough; none is zero."""
    made = [("f", {})] * len(results)
    assert scores(made, made, flag=None, answer=answer, results=results)[3] == used


@pytest.mark.parametrize(
    ("results", "query"),
    [
        ([None], "?"),
        ([True], "?"),
        ([""], "?"),
        ([{}], "?"),
        (["ok"], "?"),
        ([{"status": "Success"}], "?"),
        ([7], "7?"),
    ],
)
def test_results_that_say_nothing_leave_the_use_open(results, query):
    """Blank results, booleans, bare status words and echoes of the query cannot show any use."""
    verdict = ToolRubric().grade(turn([F1], [F1], flag=None, answer="ok, 7", query=query, results=results))
    assert math.isnan(verdict.result_utilization)


# --- reasoning


def test_the_reasoning_names_every_lost_point():
    """Missing and extra calls, each differing argument and the order are named with both values."""
    verdict = ToolRubric().grade(
        turn(
            [("f", {"a": 1, "b": "x"}), ("g", {}), ("h", {"c": 1})],
            [("g", {}), ("f", {"a": 2, "d": "y" * 500}), ("k", {"z": 0})],
            flag=False,
        )
    )
    for part in (
        "f (call 2): a = 2, expected 1.",
        "f (call 2): b is missing, expected 'x'.",
        "f (call 2): d = 'yyy",
        "Expected call 3, h(c=1), was not made.",
        "Call 3, k(z=0), was not expected.",
        "f (call 2) is out of order: it answers expected call 1.",
        "According to the log, the answer does not use the results.",
    ):
        assert part in verdict.reasoning
    assert len(verdict.reasoning) < 600


def test_a_perfect_trace_says_so():
    """Nothing lost is said in a sentence."""
    assert ToolRubric().grade(turn([F1], [F1])).reasoning == "All expected calls were made as expected."


def test_numbers_too_long_to_print_do_not_stop_the_verdict():
    """A whole number of thousands of digits is described instead of printed."""
    verdict = ToolRubric().grade(turn([("f", {"x": 10**5000})], [("f", {"x": 1})]))
    assert "a very long int" in verdict.reasoning


def test_the_score_is_frozen_and_in_range():
    """A verdict cannot be changed, and scores outside [0, 1] are refused."""
    verdict = ToolRubric().grade(turn([F1], [F1]))
    with pytest.raises(ValueError, match="frozen"):
        verdict.is_correct = False
    good = verdict.model_dump()
    for name in ("tool_selection_correct", "result_utilization"):
        with pytest.raises(ValueError, match=r"1\.5"):
            ToolCorrectnessScore(**{**good, name: 1.5})
    with pytest.raises(ValueError, match="overall_correctness"):
        ToolCorrectnessScore(**{**good, "overall_correctness": math.nan})


# --- properties


@settings(max_examples=reduced(150), deadline=None)
@given(calls, calls, st.booleans(), st.sampled_from([True, False, None]))
def test_scores_lie_in_the_unit_interval(expected, made, ordered, flag):
    """Whatever was expected and made, every score is in [0, 1] (or NaN for an unknown use)."""
    verdict = ToolRubric().grade(turn(expected, made, ordered=ordered, flag=flag))
    for name, value in verdict.model_dump(exclude={"reasoning", "is_correct"}).items():
        assert 0 <= value <= 1 or (name == "result_utilization" and math.isnan(value))
    assert verdict.is_correct == (verdict.overall_correctness >= 1 - 1e-9)


@settings(max_examples=reduced(150), deadline=None)
@given(calls, calls, st.randoms(use_true_random=False))
def test_permuting_calls_changes_nothing_where_order_does_not_matter(expected, made, random):
    """The calls are multisets unless their order matters."""
    shuffled, other = list(made), list(expected)
    random.shuffle(shuffled)
    random.shuffle(other)
    assert scores(expected, made, ordered=False) == scores(other, shuffled, ordered=False)


@settings(max_examples=reduced(150), deadline=None)
@given(calls, calls, st.integers(0, 6), st.booleans(), st.booleans())
def test_a_call_of_an_unexpected_tool_never_helps(expected, made, place, ordered, flag):
    """After one more call of a tool that is not expected no aspect is higher, and so neither is the overall."""
    more = [*made[:place], ("unexpected", {}), *made[place:]]
    before, after = (ToolRubric().grade(turn(expected, m, ordered=ordered, flag=flag)) for m in (made, more))
    for name in ("tool_selection_correct", "parameter_accuracy", "sequence_correct", "overall_correctness"):
        assert getattr(after, name) <= getattr(before, name)


@settings(max_examples=reduced(100), deadline=None)
@given(calls, st.booleans())
def test_a_trace_equals_itself(made, ordered):
    """Calls that were made exactly as expected are perfect."""
    assert scores(made, made, ordered=ordered) == (1, 1, 1, 1)


@settings(max_examples=reduced(100), deadline=None)
@given(st.permutations(range(5)))
def test_sequence_is_the_longest_increasing_subsequence(order):
    """With five different calls the sequence score is the longest increasing subsequence over five, by search."""
    expected = [("f", {"x": i}) for i in range(5)]
    longest = max(
        size for size in range(1, 6) for part in permutations(range(5), size)
        if list(part) == sorted(part) and [order[i] for i in part] == sorted(order[i] for i in part)
    )  # fmt: skip
    assert scores(expected, [expected[i] for i in order])[2] == longest / 5


@pytest.mark.parametrize("kind", ["equal", "different", "few", "floats"])
def test_a_thousand_calls_are_graded_in_bounded_time(kind):
    """Long traces cost seconds, not minutes."""
    make = {
        "equal": lambda i: {"x": 1},
        "different": lambda i: {"x": i},
        "few": lambda i: {"x": i * 7 % 5, "y": i * 11 % 3},
        "floats": lambda i: {"x": i / 7},
    }[kind]
    expected = [("f", make(i)) for i in range(1000)]
    assert scores(expected, expected[::-1])[:2] == (1, 1)
