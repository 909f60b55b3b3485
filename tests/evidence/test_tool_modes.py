"""Modes of the tool rubric, scope, aliases, schemas, and what the peers got wrong."""

import json
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import reduced

from agentic_bayes.errors import EvidenceError, InvalidArgument
from agentic_bayes.evidence.tools.rubric import ToolRubric, ToolVerdict
from agentic_bayes.records.model import Interaction

MODES = ("default", "strict", "in_order", "unordered", "subset", "superset")

calls = st.lists(
    st.tuples(st.sampled_from("fgh"), st.dictionaries(st.sampled_from("xyz"), st.integers(0, 2), max_size=2)),
    max_size=5,
)


def turn(expected, made, **expectations):
    def as_calls(pairs):
        return [
            {"tool_name": name, "parameters": arguments, **(more[0] if more else {})}
            for name, arguments, *more in pairs
        ]

    return Interaction(
        qa_id="q",
        query="do it",
        assistant="done",
        agentic={"tools_used": as_calls(made), "final_answer_uses_tools": True},
        ground_truth_agentic={"expected_tools": as_calls(expected), **expectations},
    )


def grade(expected, made, *, rubric=None, expectations=None, **settings):
    return (rubric or ToolRubric(**settings)).grade(turn(expected, made, **(expectations or {})))


def dimensions(expected, made, **options):
    found = grade(expected, made, **options)
    return found.tool_selection_correct, found.parameter_accuracy, found.sequence_correct


F, F1, F2, G = ("f", {}), ("f", {"x": 1}), ("f", {"x": 2}), ("g", {})


@pytest.mark.parametrize(
    ("mode", "equal", "swapped", "extra", "missing"),
    [
        ("default", True, False, False, False),
        ("strict", True, False, False, False),
        ("in_order", True, False, True, False),
        ("unordered", True, True, False, False),
        ("superset", True, True, True, False),
        ("subset", True, True, False, True),
    ],
)
def test_each_mode_accepts_what_its_name_says(mode, equal, swapped, extra, missing):
    """Equal calls, calls in another order, one call more, one call less."""
    expected = [F1, G]
    traces = {"equal": [F1, G], "swapped": [G, F1], "extra": [F1, ("h", {}), G], "missing": [F1]}
    found = {name: grade(expected, made, mode=mode).is_correct for name, made in traces.items()}
    assert found == {"equal": equal, "swapped": swapped, "extra": extra, "missing": missing}


def test_order_counts_in_strict_mode_even_where_the_data_say_it_does_not():
    """`tool_sequence_matters` decides in the default mode only."""
    free = {"tool_sequence_matters": False}
    assert grade([F1, G], [G, F1], expectations=free).is_correct
    assert dimensions([F1, G], [G, F1], expectations=free, mode="strict") == (1, 1, 0.5)
    assert dimensions([F1, G], [G, F1], expectations=free, mode="in_order") == (1, 1, 0.5)
    assert dimensions([F1, G], [G, F1], mode="unordered") == (1, 1, 1)


def test_a_superset_matches_either_way_round():
    """A call that fits two expected ones is given to the one that needs it."""
    ab, a = ("f", {"a": 1, "b": 2}), ("f", {"a": 1})
    for expected in permutations([ab, a]):
        for made in permutations([ab, a]):
            assert grade(expected, made, mode="superset").is_correct


def test_a_subset_asks_for_nothing_and_forgives_nothing_beyond():
    """Scores are over the calls made: none made is perfect, a wrong argument is not."""
    assert dimensions([F1, G], [], mode="subset") == (1, 1, 1)
    assert dimensions([F1, G], [F1, ("h", {})], mode="subset") == (0.5, 0.5, 1)
    assert dimensions([F1, G], [F2], mode="subset") == (1, 0, 1)
    assert dimensions([], [F1], mode="subset") == (0, 0, 1)


def test_extra_calls_are_free_where_the_mode_says_so():
    """Nothing expected and something called is perfect for a superset, and named as no loss."""
    for mode in ("superset", "in_order"):
        found = grade([], [F1], mode=mode)
        assert found.is_correct
        assert "not expected" not in found.reasoning


def test_the_public_failures_of_others():
    """Two equal calls; three for one; nothing at all."""
    assert grade([F, F], [F, F]).overall_correctness == 1
    three = grade([F], [F, F, F])
    assert three.tool_selection_correct == 1 / 3
    assert three.parameter_accuracy <= 1
    assert grade([], []).overall_correctness == 1
    one, other = ("f", {"n": 20}), ("f", {"n": 21})
    assert grade([one], [other], float_tolerance=0.05).parameter_accuracy == 0
    assert grade([("f", {"n": 20.5})], [("f", {"n": 21.5})], float_tolerance=0.05).parameter_accuracy == 1
    assert grade([("f", {"n": True})], [("f", {"n": 1})]).parameter_accuracy == 0
    for empty in ("", None, "{}", {}):
        for none in ("", None, "{}", {}):
            assert grade([("f", empty)], [("f", none)]).overall_correctness == 1


@settings(max_examples=reduced(150), deadline=None)
@given(calls, calls, st.sampled_from(MODES), st.booleans())
def test_scores_lie_in_the_unit_interval_and_equality_is_perfect(expected, made, mode, ordered):
    """Whatever was expected and made, in every mode."""
    expectations = {"tool_sequence_matters": ordered}
    assert all(0 <= one <= 1 for one in dimensions(expected, made, mode=mode, expectations=expectations))
    assert grade(made, made, mode=mode, expectations=expectations).overall_correctness == 1


@settings(max_examples=reduced(150), deadline=None)
@given(calls, calls, st.sampled_from(MODES), st.integers(0, 5), st.booleans())
def test_a_call_of_an_unexpected_tool_never_helps(expected, made, mode, place, ordered):
    """In every mode, wherever it stands, it raises no aspect; a subset is over the calls made, and gains nothing."""
    more = [*made[:place], ("unexpected", {}), *made[place:]]
    expectations = {"tool_sequence_matters": ordered}
    before, after = (grade(expected, m, mode=mode, expectations=expectations) for m in (made, more))
    for name in ("tool_selection_correct", "parameter_accuracy", "sequence_correct", "overall_correctness"):
        assert getattr(after, name) <= getattr(before, name)


@settings(max_examples=reduced(100), deadline=None)
@given(calls, calls, st.randoms(use_true_random=False), st.sampled_from(["unordered", "superset", "subset"]))
def test_permuting_calls_changes_nothing_where_order_is_free(expected, made, random, mode):
    """The calls are multisets."""
    shuffled = list(made)
    random.shuffle(shuffled)
    assert dimensions(expected, made, mode=mode) == dimensions(expected, shuffled, mode=mode)


def test_a_call_outside_of_its_scope_makes_the_overall_zero():
    """A forbidden tool, or one beyond the allowed and expected ones, fails the turn and is named."""
    found = grade([F1], [F1, ("drop", {"table": "users"})], mode="superset", forbidden_tools=["drop"])
    assert (found.overall_correctness, found.is_correct) == (0, False)
    assert "Scope violation: call 2, drop(table='users'), is not an allowed call." in found.reasoning
    assert grade([F1], [F1, G], mode="superset", allowed_tools=["g"]).is_correct
    assert not grade([F1], [F1, G], mode="superset", allowed_tools=[]).is_correct
    expectations = {"forbidden_tools": ["g"]}
    assert not grade([F1], [F1, G], mode="superset", expectations=expectations).is_correct
    assert not grade([F1], [F1, G], mode="superset", expectations={"allowed_tools": ["h"]}).is_correct
    # a tool that is both expected and forbidden is forbidden
    assert not grade([F1], [F1], forbidden_tools=["f"]).is_correct


def test_aliases_are_one_tool():
    """Other names of a tool stand for it on both sides."""
    aliases = {"search": ["find", "lookup"]}
    assert grade([("find", {"q": 1})], [("lookup", {"q": 1})], aliases=aliases).is_correct
    assert not grade([("find", {"q": 1})], [("lookup", {"q": 1})]).is_correct
    assert not grade([F1], [F1, ("find", {})], mode="superset", aliases=aliases, forbidden_tools=["search"]).is_correct


SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 1}, "code": {"type": "string", "pattern": "^[A-Z]{3}$"}},
    "required": ["n"],
    "additionalProperties": False,
}


def test_a_call_that_breaks_its_schema_agrees_with_nothing():
    """What the tool itself would refuse is said, and costs all of the call's parameters."""
    wrong = grade([("f", {"n": 1})], [("f", {"n": 0})], schemas={"f": SCHEMA})
    assert wrong.parameter_accuracy == 0
    assert "its arguments violate the tool's schema: n: 0 is less than the minimum of 1" in wrong.reasoning
    assert grade([("f", {"n": 1, "code": "ABC"})], [("f", {"n": 1, "code": "ABC"})], schemas={"f": SCHEMA}).is_correct
    pattern = grade([("f", {"n": 1, "code": "abc"})], [("f", {"n": 1, "code": "abc"})], schemas={"f": SCHEMA})
    assert "does not match" in pattern.reasoning
    assert grade([F], [F], schemas={"f": {"required": ["n"]}}).parameter_accuracy == 0


def test_a_schema_pattern_cannot_hang_the_run():
    """Patterns of schemas are matched in linear time."""
    schema = {"properties": {"x": {"pattern": "^(a+)+$"}}}
    assert grade([F], [("f", {"x": "a" * 5000 + "!"})], schemas={"f": schema}).parameter_accuracy == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mode": "subsets"}, r"unknown mode 'subsets': did you mean 'subset'"),
        ({"aliases": ["f"]}, r"aliases must map tools"),
        ({"aliases": {"f": "g"}}, r"aliases\['f'\] must be a list of names, got 'g'"),
        ({"aliases": {"f": ["h"], "g": ["h"]}}, r"'h' cannot stand for both 'f' and 'g'"),
        ({"aliases": {"f": ["g"], "g": ["h"]}}, r"'g' must not be both a name and an alias of 'f'"),
        ({"allowed_tools": "f"}, r"allowed_tools must be a list of names, got 'f'"),
        ({"forbidden_tools": [1]}, r"forbidden_tools must be a list of names"),
        ({"forbidden_tools": None}, r"forbidden_tools must be a list of names"),
        ({"schemas": {"f": {"type": "objekt"}}}, r"schemas\['f'\] must be a JSON schema: .*objekt"),
        ({"schemas": {"f": 5}}, r"schemas\['f'\] must be a JSON schema \(an object\), got 5"),
        ({"schemas": {"f": {"pattern": "(?=a)"}}}, r"schemas\['f'\] must be a JSON schema: .*RE2"),
        ({"schemas": {"f": {"$ref": "http://127.0.0.1:1/x.json"}}}, r"\$ref must refer to a part of the schema"),
        ({"schemas": {"f": {"$ref": "#/nowhere"}}}, r"must be a JSON schema"),
        ({"schemas": {"f": {"$ref": "#"}}}, r"must be a JSON schema"),
        ({"schemas": {"f": {"$schema": 5}}}, r"unknown \$schema '?5"),
        ({"schemas": {"f": {"$schema": "https://example.org/none"}}}, r"unknown \$schema"),
        ({"schemas": {"f": {"patternProperties": {"^(a+)+$": {}}}}}, r"patternProperties is not supported"),
        ({"schemas": {"f": json.loads('{"not":' * 900 + "{}" + "}" * 900)}}, r"must be a JSON schema"),
        ({"matchers": {"f": {"a": {"regex": "("}}}}, r"matchers\['f'\]\['a'\].*regex: must be a regular expression"),
        ({"matchers": {"f": {"a": {"reltive": 0.1}}}}, r"unknown key 'reltive': did you mean 'relative'"),
        ({"matchers": {"f": 5}}, r"matchers\['f'\] must map tools"),
    ],
)
def test_settings_are_checked_when_the_rubric_is_made(arguments, message):
    """A bad setting is an error that names it, before anything is judged."""
    with pytest.raises(InvalidArgument, match=message):
        ToolRubric(**arguments)


def test_the_identity_tells_settings_apart():
    """Every setting that changes a score changes the identity, in the same way in every run."""
    rubrics = [
        ToolRubric(),
        ToolRubric(mode="superset"),
        ToolRubric(matchers={"f": {"a": {"ignore": True}}}),
        ToolRubric(matchers={"f": {"a": {"optional": True}}}),
        ToolRubric(matchers={"f": {"a": str.__eq__}}),
        ToolRubric(aliases={"f": ["g"]}),
        ToolRubric(allowed_tools=["f"]),
        ToolRubric(forbidden_tools=["f"]),
        ToolRubric(schemas={"f": SCHEMA}),
    ]
    assert len({rubric.identity for rubric in rubrics}) == len(rubrics)
    assert ToolRubric(matchers={"f": {"a": {"ignore": True}}}).identity == rubrics[2].identity


def test_a_rubric_from_a_file_is_the_same_rubric(tmp_path):
    """What is declared in JSON is what the arguments would be; what is wrong is named with the file."""
    declared = {"mode": "superset", "weights": {"selection": 1}, "matchers": {"f": {"a": {"relative": 0.05}}}}
    file = tmp_path / "rubric.json"
    file.write_text(json.dumps(declared), encoding="utf-8")
    assert ToolRubric.from_file(file) == ToolRubric(**declared)
    for content, message in (
        ('{"mod": 1}', "unknown setting 'mod': did you mean 'mode'"),
        ("[]", "must be an object of the rubric's settings"),
        ("{", "must be JSON"),
        ('{"mode": "strict", "mode": "subset"}', "must be JSON .*mode"),
        ('{"threshold": 70}', r"rubric\.json: threshold must be"),
    ):
        file.write_text(content, encoding="utf-8")
        with pytest.raises(InvalidArgument, match=message):
            ToolRubric.from_file(file)
    with pytest.raises(InvalidArgument, match="no such file"):
        ToolRubric.from_file(tmp_path / "none.json")


def test_the_counts_behind_a_verdict_add_up():
    """Per tool and argument: expected, made, matched, and what was wrong."""
    verdict = ToolRubric().verdict(
        turn([("f", {"a": 1, "b": 2}), G, ("h", {})], [G, ("f", {"a": 1, "b": 3, "c": 4}), ("k", {})])
    )
    assert isinstance(verdict, ToolVerdict)
    assert verdict.tools == {
        "f": {
            "expected": 1,
            "made": 1,
            "matched": 1,
            "wrong_arguments": 1,
            "out_of_order": 1,
            "arguments": {"a": {"agree": 1}, "b": {"unequal": 1}, "c": {"extra": 1}},
        },
        "g": {"expected": 1, "made": 1, "matched": 1, "arguments": {}},
        "h": {"expected": 1, "missed": 1},
        "k": {"made": 1, "extra": 1},
    }


def test_a_schema_may_refer_to_its_own_parts_and_hold_any_data():
    """Local references work, and a default that looks like a pattern is no pattern."""
    schema = {
        "$defs": {"id": {"type": "integer"}},
        "properties": {"a": {"$ref": "#/$defs/id"}, "b": {"default": {"pattern": "(?=x)"}}},
    }
    assert grade([("f", {"a": 1})], [("f", {"a": 1})], schemas={"f": schema}).is_correct
    assert not grade([("f", {"a": "1"})], [("f", {"a": "1"})], schemas={"f": schema}).is_correct


def test_a_schema_that_cannot_be_applied_is_an_error_and_no_verdict():
    """What jsonschema cannot compute is said with the tool; it is not the agent's failure."""
    with pytest.raises(EvidenceError, match="the schema of f cannot be applied: OverflowError"):
        grade([F], [("f", {"a": 10**400})], schemas={"f": {"properties": {"a": {"multipleOf": 0.1}}}})


def test_counts_hold_what_costs_something_in_the_mode():
    """Calls that are free in a mode are made, but not extra; calls that need not be made are not missed."""
    counts = {mode: ToolRubric(mode=mode).verdict(turn([F, G], [F, ("h", {})])).tools for mode in MODES}
    assert "extra" in counts["default"]["h"]
    assert "missed" in counts["default"]["g"]
    assert "extra" not in counts["superset"]["h"]
    assert "missed" in counts["superset"]["g"]
    assert "missed" not in counts["subset"]["g"]
    assert "extra" in counts["subset"]["h"]


def test_functions_that_differ_make_rubrics_that_differ():
    """Two lambdas are two rules."""
    one, other = (ToolRubric(matchers={"f": {"a": rule}}) for rule in (lambda e, m: True, lambda e, m: False))
    assert one.identity != other.identity
    assert ToolRubric(matchers={"f": {"a": one.matchers["f"]["a"]}}).identity == one.identity
