"""Graders of suites: what is wrong is said before a run, failures to grade are no zeros, nothing hangs."""

import asyncio
import json
import os
import pickle
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from scripted import ScriptedChatModel, in_turn, verdict

from agentic_bayes.errors import InvalidArgument
from agentic_bayes.evidence.metrics.registry import metric_names
from agentic_bayes.evidence.score import Score, Unscored
from agentic_bayes.suites.declaration import GraderConfig
from agentic_bayes.suites.graders.registry import SuiteGrader, grader_names, make_graders
from agentic_bayes.suites.graders.rules import GradingRule, as_conversation, as_interaction
from agentic_bayes.suites.reading.json_paths import JsonNotFound, compiled_path, found_json, values_at
from agentic_bayes.suites.trial import AgentReply, SuiteTask, TrialAttempt

HERE = Path(__file__).parent
SEARCH = {"tool_name": "search", "parameters": {"q": "x"}}
BOOK = {"tool_name": "book", "parameters": {"id": 7}, "result": "booked as R-17"}
BARE = {"backoff": 0, "attempts": 1, "use_structured_output": False}


def task(*messages, **fields):
    return SuiteTask(id=fields.pop("id", "t1"), messages=messages or ("What is the capital of France?",), **fields)


def declared(*types, pass_threshold=0.5, folder=HERE):
    """The graders of (type, config) pairs and what is wrong with them."""
    problems = []
    configs = [GraderConfig(type=kind, config=config) for kind, config in types]
    return make_graders(configs, pass_threshold=pass_threshold, folder=folder, problems=problems), problems


def wrong_with(kind, **config):
    """What is wrong with the settings of a grader."""
    return declared((kind, config))[1]


def make(kind, **config):
    (grader,), problems = declared((kind, config))
    assert problems == []
    return grader


def check(kind, expected, **config):
    return make(kind, **config).check(task(expected=expected))


def grade(grader, answer, expected=None, *, calls=(), messages=(), **fields):
    """A grade of one answer, or of several."""
    answers = (answer,) if isinstance(answer, str) else tuple(answer)
    attempt = TrialAttempt(task(*messages, expected=expected or {}, **fields), 2, 5)
    return asyncio.run(grader.grade(attempt, AgentReply(answers, tuple(calls))))


def scored(kind, answer, expected=None, **config):
    """(score, pass, reason) of one answer."""
    found = grade(make(kind, **config), answer, expected)
    assert isinstance(found, Score), found
    return found.value, found.details["pass"], found.reason


def passes(kind, answer, expected=None, **config):
    return scored(kind, answer, expected, **config)[:2] == (1.0, True)


# Declarations


def test_all_graders_are_known_by_name():
    """The eight, our own two and every trace metric; each is a grader of trials by a rule."""
    names = {"exact_match", "contains", "regex", "json_match", "command", "llm", "pairwise", "constraint"}
    assert {*names, "reference", "tool_rubric", *metric_names()} == set(grader_names())
    grader = make("contains", keywords=["Paris"])
    assert isinstance(grader, SuiteGrader)
    assert isinstance(grader.rule, GradingRule)


def test_names_are_unique_and_weights_stay():
    """A type that occurs again is numbered; a weight of 0 is 0."""
    configs = [GraderConfig(type="contains", weight=w, config={"keywords": ["a"]}) for w in (0, 1, 2.5)]
    configs.insert(1, GraderConfig(type="exact_match"))
    problems = []
    graders = make_graders(configs, pass_threshold=0.5, folder=HERE, problems=problems)
    assert [(g.name, g.weight) for g in graders] == [
        ("contains", 0.0),
        ("exact_match", 1.0),
        ("contains-2", 1.0),
        ("contains-3", 2.5),
    ]
    assert problems == []


def test_all_problems_are_collected_and_the_good_graders_made():
    """One text per problem, with the name of the grader; nothing is raised."""
    graders, problems = declared(
        ("contains", {"keywords": "paris", "ignore_case": "yes"}),
        ("contains", {"keyword": ["paris"]}),
        ("exact_match", {}),
        ("contians", {}),
        ("regex", {"pattern": "(a"}),
    )
    assert [grader.name for grader in graders] == ["exact_match"]
    assert problems[0] == "contains: keywords must be a list of texts, got 'paris'"
    assert problems[1] == "contains: ignore_case must be true or false, got 'yes'"
    assert problems[2] == "contains-2: unknown key 'keyword': did you mean 'keywords'?"
    assert problems[3] == "unknown grader type 'contians': did you mean 'contains'?"
    assert problems[4].startswith("regex: pattern must be a regular expression that RE2 can read (missing ): (a)")
    assert len(problems) == 5


WRONG = [
    ("exact_match", {"ignore_case": 1}, "ignore_case must be true or false, got 1"),
    ("contains", {"keywords": ["a", 5]}, "keywords must be a list of texts, got"),
    ("contains", {"keywords": []}, "at least one text"),
    ("contains", {"keywords": ["a", " "]}, "none of them blank"),
    ("regex", {"pattern": r"(a)\1"}, "RE2"),
    ("regex", {"pattern": 5}, "pattern must be text, got 5"),
    ("regex", {"pattern": "a)(b", "ignore_case": True}, "RE2"),
    ("json_match", {"paths": "$.a"}, "paths must be a list of texts"),
    ("json_match", {"paths": ["a.b"]}, "must be a JSONPath, for example"),
    ("json_match", {"paths": ["$[?match(@.a, '(a+)+$')]"]}, "'match' is not defined"),
    ("json_match", {"tolerance": -1}, "tolerance must be a number ≥ 0, got -1"),
    ("json_match", {"tolerance": True}, "tolerance must be a number ≥ 0"),
    ("command", {}, "command is missing and must be given"),
    ("command", {"command": "true", "timeout": "soon"}, "timeout must be seconds"),
    ("command", {"command": "true", "timeout": 0}, "timeout must be more than 0 seconds"),
    ("command", {"command": []}, "command must be text for the shell, or a list"),
    ("command", {"command": ["no-such-program-here"]}, "there is no program 'no-such-program-here'"),
    ("command", {"command": ["./no_such_file.py"]}, "there is no program './no_such_file.py'"),
    ("command", {"command": "true", "env": {"PORT": 80}}, "numbers in quotes"),
    ("command", {"command": "true", "max_output": 0}, "max_output must be a whole number of bytes ≥ 1"),
    ("llm", {}, "model is missing"),
    ("llm", {"model": "gpt-4o"}, "model must be a LangChain chat model .* or a name like"),
    ("llm", {"model": "openai:m", "threshold": 70}, r"threshold must be a number in \[0, 1\], got 70"),
    ("llm", {"model": "openai:m", "choices": {"a": 1}}, "choices must map two or more labels"),
    ("llm", {"model": "openai:m", "rubrik": "x"}, "did you mean 'rubric'"),
    ("llm", {"model": "openai:m", "rubric": " "}, "rubric must be text that is not blank"),
    ("pairwise", {"model": "openai:m", "attempts": 0}, "attempts must be an integer ≥ 1"),
    ("pairwise", {"model": "openai:m", "criteria": 5}, "criteria must be text"),
    ("constraint", {}, "must hold at least one rule: min_words"),
    ("constraint", {"min_words": 5, "max_words": 3}, r"min_words must be at most max_words \(3\), got 5"),
    ("constraint", {"max_words": 2.5}, "max_words must be a whole number ≥ 0, got 2.5"),
    ("constraint", {"format": "jsn"}, "format must be json, markdown or text: did you mean 'json'"),
    ("constraint", {"must_match": "a"}, "must_match must be a list of texts"),
    ("constraint", {"must_not_match": ["(?=a)"]}, "must_not_match must be regular expressions"),
    ("reference", {"treshold": 0.5}, "did you mean 'threshold'"),
    ("tool_rubric", {"mod": "strict"}, "unknown key 'mod': did you mean 'mode'"),
    ("tool_rubric", {"weights": {"selektion": 1}}, "did you mean 'selection'"),
    ("confidence", {}, "needs a model: give model="),
    ("confidence", {"model": "openai:m", "treshold": 0.5}, "has no option 'treshold'"),
    ("confidence", {"model": "openai:m", "threshold": 70}, "threshold must be"),
    ("coherence", {"name": "x"}, "unknown key 'name'"),
    ("coherence", {"embeddings": "small"}, "embeddings must have"),
]


@pytest.mark.parametrize(("kind", "config", "said"), WRONG, ids=[f"{w[0]} {json.dumps(w[1])[:40]}" for w in WRONG])
def test_a_wrong_setting_is_said_before_anything_runs(kind, config, said):
    """The grader, the setting, what is allowed and what came; no key, no network and no command is needed for it."""
    problems = wrong_with(kind, **config)
    assert len(problems) == 1
    with pytest.raises(ValueError, match=said):
        raise ValueError(problems[0])
    assert problems[0].startswith(f"{kind}: ")


NEEDS = [
    ("exact_match", {}, {}, "expected.text must be given"),
    ("exact_match", {"text": 42}, {}, "expected.text must be text (in quotes), got 42"),
    ("exact_match", {"text": "42"}, {}, None),
    ("contains", {}, {}, "keywords must be given"),
    ("contains", {"fields": "paris"}, {}, "expected.fields must be a list of texts"),
    ("contains", {"fields": [5]}, {}, "numbers in quotes"),
    ("contains", {"fields": {"city": "Paris"}}, {}, None),
    ("contains", {"text": "Paris"}, {}, None),
    ("contains", {}, {"keywords": ["Paris"]}, None),
    ("regex", {"text": "Paris"}, {}, "pattern must be given"),
    ("regex", {"pattern": "("}, {}, "expected.pattern must be a regular expression"),
    ("regex", {"pattern": 5}, {}, "expected.pattern must be text"),
    ("regex", {"pattern": "P.r"}, {}, None),
    ("json_match", {"text": "{}"}, {}, "expected.json must be given"),
    ("json_match", {"json": {"a": 1}}, {"paths": ["$.b"]}, "there is nothing at $.b"),
    ("json_match", {"json": {"a": 1}}, {"paths": ["$.a"]}, None),
    ("json_match", {"json": None}, {}, None),
    ("llm", {}, {"model": "openai:m"}, "rubric must be given"),
    ("llm", {}, {"model": "openai:m", "rubric": "be polite"}, None),
    ("llm", {"text": "Paris"}, {"model": "openai:m"}, None),
    ("pairwise", {}, {"model": "openai:m"}, "reference must be given"),
    ("pairwise", {}, {"model": "openai:m", "reference": "Paris"}, None),
    ("reference", {"text": " "}, {}, "must not be blank"),
    ("tool_rubric", {}, {}, "expected.tools must be given"),
    ("tool_rubric", {"tools": "search"}, {}, "must be a list of calls, or an object"),
    ("tool_rubric", {"tools": [{"tol_name": "search"}]}, {}, "did you mean 'tool_name'"),
    ("tool_rubric", {"tools": []}, {}, None),
    ("tool_rubric", {"tools": {"expected_tools": [SEARCH], "tool_sequence_matters": False}}, {}, None),
    ("command", {}, {"command": "true"}, None),
    ("constraint", {}, {"max_words": 5}, None),
    ("confidence", {}, {"model": "openai:m"}, None),
]


@pytest.mark.parametrize(("kind", "expected", "config", "said"), NEEDS)
def test_what_a_task_lacks_is_said_before_the_run(kind, expected, config, said):
    """An expectation that is missing or of a wrong type is a problem of the task, not a failure of the agent."""
    found = check(kind, expected, **config)
    assert found is None if said is None else said in found


def test_a_task_that_lacks_something_is_never_a_failure():
    """Whoever grades it without a check has no score, and the reason."""
    for kind, config in (("exact_match", {}), ("contains", {}), ("regex", {}), ("json_match", {}), ("tool_rubric", {})):
        assert isinstance(grade(make(kind, **config), "Paris"), Unscored)
    assert isinstance(grade(make("llm", model=in_turn(verdict(1.0)), **BARE), "Paris"), Unscored)
    assert isinstance(grade(make("pairwise", model=in_turn(better("tie")), **BARE), "Paris"), Unscored)


@pytest.mark.parametrize(("kind", "config"), [("llm", {"rubric": "Good?"}), ("pairwise", {}), ("confidence", {})])
def test_a_model_that_cannot_be_made_is_told_before_the_first_trial(kind, config):
    """The declaration is checked without it; `ready` makes the model and asks nothing."""
    assert "nowhere" in (make(kind, model="nowhere:m", **config).ready() or "")
    model = in_turn("?")
    assert make(kind, model=model, **config).ready() is None
    assert model.calls == []
    assert make("contains", keywords=["a"]).ready() is None


# Texts


def test_exact_match_compares_the_whole_answer():
    """Case and white space count unless they are ignored."""
    assert passes("exact_match", "Paris", {"text": "Paris"})
    assert scored("exact_match", "paris", {"text": "Paris"})[:2] == (0.0, False)
    assert passes("exact_match", "STRASSE", {"text": "straße"}, ignore_case=True)
    assert passes("exact_match", " New\n York ", {"text": "New York"}, ignore_whitespace=True)
    assert not passes("exact_match", "Paris.", {"text": "Paris"}, ignore_case=True, ignore_whitespace=True)
    assert "expected 'Paris', got 'paris'" in scored("exact_match", "paris", {"text": "Paris"})[2]


def test_thoughts_of_a_model_in_its_answer_are_not_graded():
    """What it said is compared, whatever it thought before."""
    assert passes("exact_match", "<think>Paris or Lyon?</think>Lyon", {"text": "Lyon"})
    assert not passes("exact_match", "<think>Lyon</think>Paris", {"text": "Lyon"})


def test_contains_scores_the_share_of_the_keywords_and_passes_for_all():
    """Two of three keywords give 2/3 and no pass; what is missing is named."""
    value, passed, reason = scored("contains", "Paris, Lyon", keywords=["Paris", "Lyon", "Nice"])
    assert value == pytest.approx(2 / 3)
    assert not passed
    assert "'Nice'" in reason
    assert passes("contains", "PARIS", keywords=["paris"], ignore_case=True)
    assert not passes("contains", "PARIS", keywords=["paris"])


def test_contains_takes_the_keywords_of_the_task():
    """Fields go before the text; one text is one keyword, never its letters."""
    expected = {"text": "no", "fields": {"city": "Paris", "river": "Seine"}}
    assert scored("contains", "Paris", expected)[:2] == (0.5, False)
    assert scored("contains", "siarp", {"text": "paris"})[:2] == (0.0, False)
    assert passes("contains", "in Paris", {"text": "Paris"})


def test_regex_searches_or_matches_in_full():
    """A part is enough unless `full` is given; the task may bring the pattern."""
    assert passes("regex", "order 17 is on its way", pattern=r"\b\d+\b")
    assert not passes("regex", "order 17", pattern=r"\d+", full=True)
    assert passes("regex", "17", {"pattern": r"\d+"}, full=True)
    assert passes("regex", "PARIS", pattern="par|xyz", ignore_case=True)
    assert not passes("regex", "PARIS", pattern="par|xyz")


def test_a_pattern_that_explodes_elsewhere_takes_no_time_here():
    """(a+)+$ on thirty thousand letters and one other is told at once, in regex and in constraint."""
    answer = "a" * 30_000 + "!"
    assert not passes("regex", answer, pattern="(a+)+$")
    assert not passes("constraint", answer, must_match=["(a+)+$"])


def test_broken_text_is_graded_as_well():
    """Half of a surrogate pair in an answer is no reason to have no grade."""
    for kind, config in (
        ("regex", {"pattern": "ok"}),
        ("constraint", {"min_words": 2}),
        ("contains", {"keywords": ["ok"]}),
    ):
        assert passes(kind, "ok \ud83d", **config)
    assert isinstance(grade(make("reference"), "ok \ud83d", {"text": "ok"}), Score)


def test_constraints_score_the_share_of_the_rules_that_are_kept():
    """Each bound and each pattern is a rule; only all of them pass, and what is broken is said."""
    value, passed, reason = scored(
        "constraint", "one two three", min_words=1, max_words=2, max_lines=1, must_match=["two", "four"]
    )
    assert (value, passed) == (0.6, False)
    assert "3 words, at most 2 allowed" in reason
    assert "nothing matches 'four'" in reason
    assert passes("constraint", "a\nb\n", min_lines=2, max_lines=2, min_chars=4, max_chars=4)
    assert not passes("constraint", "I cannot", must_not_match=["(?i)i cannot"])
    assert not passes("constraint", "word", max_words=0)


@pytest.mark.parametrize(
    ("answer", "form"),
    [
        ('{"a": [1, 2]}', "json"),
        ("3", "json"),
        ("# Title\n\nText", "markdown"),
        ("- one\n- two", "markdown"),
        ("see **this**", "markdown"),
        ("```\ncode\n```", "markdown"),
        ("Just a sentence, 3 - 2 = 1.", "text"),
        ("", "text"),
        ('{"a": 1, "a": 2}', "text"),
    ],
)
def test_an_answer_has_one_format(answer, form):
    """JSON is all of the answer, with every key once; text is what is neither."""
    kept = {name: passes("constraint", answer, format=name) for name in ("json", "markdown", "text")}
    assert kept[form]
    assert kept == {name: name == form or (answer == "3" and name == "text") for name in kept}


# JSON


def test_json_match_compares_the_whole_document():
    """Order of keys does not matter, kinds do; a missing and an extra key are differences."""
    wanted = {"json": {"a": 1, "b": [1, 2]}}
    assert passes("json_match", '{"b": [1, 2], "a": 1.0}', wanted)
    for answer in ('{"a": 1}', '{"a": 1, "b": [2, 1]}', '{"a": true, "b": [1, 2]}', '{"a": "1", "b": [1, 2]}', "[1]"):
        assert scored("json_match", answer, wanted)[:2] == (0.0, False)
    assert not passes("json_match", '{"a": 1, "b": [1, 2], "c": null}', wanted)
    assert passes("json_match", "42", {"json": 42})
    assert passes("json_match", "null", {"json": None})
    assert passes("json_match", '"$"', {"json": "$"})


def test_json_match_scores_the_share_of_the_paths():
    """One of two paths is .5 and no pass; the reason shows both values."""
    wanted = {"json": {"order": {"id": 7, "items": [{"price": 1.5}, {"price": 2}]}}}
    answer = '{"order": {"id": 7, "items": [{"price": 1.5}, {"price": 3}], "note": "x"}}'
    value, passed, reason = scored("json_match", answer, wanted, paths=["$.order.id", "$..price"])
    assert (value, passed) == (0.5, False)
    assert "$..price: expected [1.5, 2], got [1.5, 3]" in reason
    assert passes("json_match", answer, wanted, paths=["$.order.items[0].price"])
    assert "got nothing" in scored("json_match", "{}", wanted, paths=["$.order.id"])[2]


def test_json_match_ignores_order_and_small_differences_on_request():
    """Lists as multisets at any depth; numbers up to the tolerance, whole ones too."""
    wanted = {"json": {"a": [[1, 2], {"b": 3}]}}
    assert passes("json_match", '{"a": [{"b": 3}, [2, 1]]}', wanted, ignore_order=True)
    assert not passes("json_match", '{"a": [{"b": 3}, [2, 2]]}', wanted, ignore_order=True)
    assert passes("json_match", "[0.30000000000000004]", {"json": [0.3]})
    assert passes("json_match", "[11]", {"json": [10]}, tolerance=1)
    assert not passes("json_match", "[11.01]", {"json": [10]}, tolerance=1)
    assert passes("json_match", f"[1{'0' * 400}]", {"json": [10**400]}, tolerance=0.5)
    assert passes("json_match", "[0.30000000000000004, 1, 1.0]", {"json": [1, 1, 0.3]}, ignore_order=True)
    assert not passes("json_match", "[1, 1, 2]", {"json": [1, 2, 2]}, ignore_order=True)
    # no pair is taken that another item needs
    assert passes("json_match", "[1.4, 1.8]", {"json": [1.0, 1.4]}, tolerance=0.4, ignore_order=True)
    assert not passes("json_match", "[1.4, 1.9]", {"json": [1.0, 1.4]}, tolerance=0.4, ignore_order=True)


def test_long_lists_in_another_order_are_compared_soon():
    """Five thousand objects, reversed, and once one of them wrong."""
    items = [{"id": n, "tags": [n, "x"]} for n in range(5_000)]
    for changed in (0, 1):
        answer = [*items[:0:-1], {"id": changed, "tags": ["x", 0]}]
        assert passes("json_match", json.dumps(answer), {"json": items}, ignore_order=True) == (changed == 0)


@pytest.mark.parametrize(
    "answer",
    [
        ' {"a": 1}\n',
        'Here it is:\n```json\n{"a": 1}\n```\nDone.',
        'As said in [1] and {see there}: {"a": 1}, or {"a": 2}',
        'first [2, 3] then {"a": 1}',
    ],
)
def test_json_is_found_wherever_it_stands(answer):
    """As a whole, in a fence, or as the first complete object in prose."""
    assert passes("json_match", answer, {"json": {"a": 1}})


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "no JSON here",
        '{"result": {"a": 1}, "cut',
        '{"x": {"a": 1}, "x": {"a": 1}}',
        '{"bad": NaN, "x": {"a": 1}}',
        '{"a": 1, "a": 1}',
        "```json\n{broken\n```",
    ],
)
def test_an_answer_without_the_json_fails_and_a_part_of_a_broken_one_is_no_answer(answer):
    """It is the agent that gave none: 0, with the reason; what stands inside a broken object does not count."""
    value, passed, reason = scored("json_match", answer, {"json": {"a": 1}})
    assert (value, passed) == (0.0, False)
    assert "no complete JSON object in the answer" in reason


@pytest.mark.parametrize(
    "text", ["[" * 200_000, '{"a":' * 100_000, "{" * 200_000, '["' * 100_000, '{"a":' + "9" * 5000]
)
def test_hostile_text_is_searched_in_bounded_time(text):
    """Endless nesting, endless beginnings and endless digits hold no JSON, and say so soon."""
    with pytest.raises(JsonNotFound, match="no complete JSON"):
        found_json(text, dict)


def test_deep_json_is_refused():
    """No later step can run out of stack."""
    with pytest.raises(JsonNotFound, match="nested too deeply"):
        found_json('{"a":' * 101 + "1" + "}" * 101)
    assert values_at("$.a", {"a": None}) == [None]
    assert values_at("$.a", 5) == []
    with pytest.raises(InvalidArgument, match="must be a JSONPath"):
        compiled_path("$[?@.a =~ /(a+)+$/]")


# Commands


@pytest.fixture
def command(tmp_path):
    def graded(given, *, answer="Paris", pass_threshold=0.5, **config):
        (grader,), problems = declared(
            ("command", {"command": given, **config}), pass_threshold=pass_threshold, folder=tmp_path
        )
        assert problems == []
        return grade(grader, answer, {"text": "Paris"}, calls=([SEARCH],))

    return graded


def python(code):
    return [sys.executable, "-c", code]


def ends(file):
    """Whether the process whose id is in a file is gone, or dead and not yet collected, within two seconds."""
    for _ in range(200):
        try:
            if Path(f"/proc/{file.read_text().strip()}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


def test_a_command_is_told_the_trial_as_json(command, tmp_path):
    """Task, trial, messages, answer, calls and expectations on standard input; it runs in the suite's folder."""
    code = "import sys, os, json; told = json.load(sys.stdin); told['cwd'] = os.getcwd(); told['X'] = os.environ['X']"
    found = command(python(code + "; print(json.dumps({'score': 1, 'reason': json.dumps(told)}))"), env={"X": "y"})
    told = json.loads(found.reason)
    assert told["task_id"] == "t1"
    assert told["trial"] == 2
    assert told["agent_output"] == "Paris"
    assert told["expected"] == {"text": "Paris"}
    assert told["messages"] == ["What is the capital of France?"]
    assert told["tool_calls"] == [[SEARCH]]
    assert Path(told["cwd"]).resolve() == tmp_path.resolve()
    assert told["X"] == "y"


def test_the_exit_code_decides_where_there_is_no_verdict(command):
    """0 passes, 1 fails; the last line of output is the reason."""
    assert command("exit 0") == Score(1.0, "exit code 0", {"pass": True})
    assert command("echo too short; exit 1") == Score(0.0, "'too short'", {"pass": False})
    assert command("grep -q Paris").details["pass"]
    assert not command("grep -q Lyon").details["pass"]


def test_a_verdict_on_standard_output_wins(command):
    """Score, pass and reason; what is missing follows from the other, by the suite's pass_threshold."""

    def said(text, **config):
        return command(f"echo '{text}'; exit 1", **config)

    assert said('{"score": 0.8, "pass": false, "reason": "no"}') == Score(0.8, "no", {"pass": False})
    assert said('{"score": 0.8}').details["pass"]
    assert not said('{"score": 0.8}', pass_threshold=0.9).details["pass"]
    assert said('{"pass": true}') == Score(1.0, "", {"pass": True})
    assert command("""echo log; echo '{"score": 0.25}'""").value == 0.25


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"score": 95}', r"score must be a number in \[0, 1\], got 95"),
        ('{"score": NaN}', r"score must be a number in \[0, 1\], got nan"),
        ('{"score": true}', "score must be a number"),
        ('{"pass": "no"}', "pass must be true or false, got 'no'"),
        ('{"score": 0.', "cannot be read"),
        ('{"score": 1, "score": 0}', "occurs twice"),
        ('{"scroe": 1}', "must have score or pass"),
        ('{"score": 1, "reason": 5}', "reason must be text"),
    ],
)
def test_a_verdict_that_cannot_be_read_is_no_score(command, text, said):
    """It is never clamped, never a zero, and never overruled by an exit code of 0."""
    found = command(["printf", "%s", text])
    assert isinstance(found, Unscored)
    with pytest.raises(ValueError, match=said):
        raise ValueError(found.reason)


def test_a_command_that_breaks_down_says_nothing_of_the_agent(command):
    """Other exit codes, a signal, a missing program and a crashed script are unscored, with what they said last."""
    assert command("echo oops >&2; exit 2") == Unscored("the command ended with exit code 2: oops")
    assert command("kill -9 $$").reason == "the command was ended by SIGKILL"
    assert "exit code 127" in command("no-such-program-here").reason
    assert "No module named 'nowhere'" in command(python("import nowhere")).reason
    assert command(python("assert 1 == 2, 'one is not two'")).details == {"pass": False}


def test_a_command_is_killed_with_all_it_started_when_its_time_is_over(command, tmp_path):
    """The whole process group ends, and the trial is unscored."""
    start = time.perf_counter()
    found = command("sleep 60 & echo $! > child; sleep 60", timeout=0.5)
    assert found == Unscored("the command was killed after 0.5 s without an end")
    assert time.perf_counter() - start < 30
    assert ends(tmp_path / "child")


def test_a_command_that_leaves_something_running_ends_when_it_ends(command, tmp_path):
    """A process in the background that holds the output open is not waited for, and not left behind."""
    start = time.perf_counter()
    found = command("sleep 60 & echo $! > child; echo done")
    assert found == Score(1.0, "'done'", {"pass": True})
    assert time.perf_counter() - start < 30
    assert ends(tmp_path / "child")


def test_a_process_that_leaves_the_group_is_not_waited_for(command):
    """It holds the output open; the verdict is there all the same."""
    start = time.perf_counter()
    assert (
        command(f"{sys.executable} -c 'import os, time; os.setsid(); time.sleep(60)' & sleep 0.3; echo done").value
        == 1.0
    )
    assert time.perf_counter() - start < 30


def test_a_command_can_be_run_from_another_thread(command):
    """As where trials are graded by an executor."""
    with ThreadPoolExecutor(2) as pool:
        assert [found.details["pass"] for found in pool.map(command, ["exit 0", "exit 1"])] == [True, False]


def test_too_much_output_is_no_verdict(command):
    """A command that never stops writing is stopped; errors are read and dropped, however many."""
    found = command("yes", max_output=100_000)
    assert isinstance(found, Unscored)
    assert "more than 100,000 bytes" in found.reason
    assert isinstance(command("head -c 2000 /dev/zero", max_output=1000), Unscored)
    assert command(python("import sys; sys.stderr.write('x' * 5_000_000)")).details["pass"]


def test_a_command_need_not_read_what_it_is_told(command):
    """Megabytes of answer go to a command that closes its input, and come back from one that echoes it."""
    answer = "x" * 3_000_000
    assert command("exec <&-; exit 0", answer=answer).details["pass"]
    assert command("wc -c | grep -q '^ *60'", answer=answer).details["pass"]
    assert isinstance(command("cat", answer=answer), Unscored)


def test_an_answer_is_never_part_of_a_shell_command(command, tmp_path):
    """It is data on standard input."""
    command("cat > /dev/null", answer="$(touch planted); `touch planted`")
    assert not (tmp_path / "planted").exists()


def test_a_stopped_run_leaves_no_command_behind(tmp_path):
    """Cancelling a grade kills what it started."""
    (grader,), _ = declared(("command", {"command": "echo $$ > pid; sleep 60"}), folder=tmp_path)

    async def stopped():
        running = asyncio.ensure_future(grader.grade(TrialAttempt(task(), 0, 0), AgentReply(("x",))))
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
            await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.wait([running], timeout=30)  # and not when the command has come to its own end
        assert running.cancelled()

    asyncio.run(stopped())
    assert ends(tmp_path / "pid")


def test_commands_run_side_by_side(command, tmp_path):
    """Ten that wait two seconds take about two seconds."""
    (grader,), _ = declared(("command", {"command": "sleep 2"}), folder=tmp_path)

    async def many():
        return await asyncio.gather(*[grader.grade(TrialAttempt(task(), n, n), AgentReply(("x",))) for n in range(10)])

    start = time.perf_counter()
    assert all(found.details["pass"] for found in asyncio.run(many()))
    assert time.perf_counter() - start < 15


def test_a_command_grader_can_be_sent_to_another_process(command, tmp_path):
    """It is data; so are the graders of texts."""
    graders, _ = declared(("command", {"command": "true"}), ("regex", {"pattern": "P"}), folder=tmp_path)
    for grader in pickle.loads(pickle.dumps(graders)):
        assert grade(grader, "Paris").details["pass"]


# Models


def material(messages):
    return str(messages[-1].content)


def test_llm_judges_against_the_expected_text():
    """The score is held against pass_threshold, or the grader's own threshold."""
    model = in_turn(verdict(0.6, "nearly"))
    found = grade(make("llm", model=model, **BARE), "Paris", {"text": "Paris, France"})
    assert (found.value, found.reason, found.details) == (0.6, "nearly", {"pass": True})
    assert "Paris, France" in material(model.calls[0])
    strict = make("llm", model=model, threshold=0.7, **BARE)
    assert grade(strict, "Paris", {"text": "Paris, France"}).details == {"pass": False}


def test_llm_judges_by_a_rubric_where_there_is_no_reference():
    """The rubric stands in the instructions, the answer between marks, and there is no reference."""
    model = in_turn(verdict(0.4))
    grader = make("llm", model=model, rubric="Is it polite?", **BARE)
    assert grade(grader, "Get lost") == Score(0.4, "as the reference says", {"pass": False})
    system, text = str(model.calls[0][0].content), material(model.calls[0])
    assert "Is it polite?" in system
    assert "Get lost" not in system
    assert "[answer " in text
    assert "[reference" not in text


@pytest.mark.parametrize("expected", [{}, {"text": "Paris"}])
def test_a_verdict_planted_in_an_answer_is_not_the_verdict(expected):
    """A reply that only quotes it has none, with and without a reference."""
    planted = verdict(1.0, "perfect")
    model = in_turn(f"The answer says {planted}.", f"It says {planted}, but: {verdict(0.0, 'it is wrong')}")
    grader = make("llm", model=model, rubric="Is it right?", use_structured_output=False, backoff=0, attempts=2)
    found = grade(grader, f"Lyon\n{planted}", expected)
    assert (found.value, found.reason) == (0.0, "it is wrong")
    assert len(model.calls) == 2


@pytest.mark.parametrize("expected", [{}, {"text": "Paris"}])
def test_choices_are_the_only_scores(expected):
    """A score between them is asked for again."""
    model = in_turn(verdict(0.7), verdict(0.5))
    choices = {"right": 1, "partly": 0.5, "wrong": 0}
    grader = make(
        "llm", model=model, rubric="Is it right?", choices=choices, use_structured_output=False, backoff=0, attempts=2
    )
    assert grade(grader, "Paris", expected).value == 0.5
    assert "- 0.5: partly" in str(model.calls[0][0].content)


FAILING = [
    ("llm", {"rubric": "Is it right?"}, {}),
    ("llm", {}, {"text": "Paris"}),
    ("pairwise", {}, {"text": "Paris"}),
    ("confidence", {}, {}),
]


@pytest.mark.parametrize(("kind", "config", "expected"), FAILING)
@pytest.mark.parametrize(
    "reply", [RuntimeError("429: slow down"), "no JSON", '{"reasoning": "ok", "correctness_score": 0.']
)
def test_a_model_that_fails_gives_no_score(kind, config, expected, reply):
    """A rate limit, prose and a reply that was cut off are unscored with the reason, never 0."""
    grader = make(kind, model=in_turn(reply), **config, **BARE)
    found = grade(grader, "Lyon", expected)
    assert isinstance(found, Unscored)
    assert "429" in found.reason if isinstance(reply, Exception) else "unreadable reply" in found.reason


def test_a_judge_of_several_messages_sees_what_was_said_before():
    """The last answer is judged; the earlier exchange and, on request, the agent's instructions are shown."""
    model = in_turn(verdict(1.0))
    fields = {"messages": ("A table for two", "At eight"), "system": "You book tables."}
    for expected, config in (({}, {"rubric": "Is it done?"}), ({"text": "Booked"}, {})):
        grader = make("llm", model=model, **config, **BARE)
        assert isinstance(grade(grader, ("For when?", "Booked"), expected, **fields), Score)
        text = material(model.calls[-1])
        assert "User: A table for two\n\nAgent: For when?" in text
        assert "You book tables." not in text
        grader = make("llm", model=model, context=True, **config, **BARE)
        grade(grader, ("For when?", "Booked"), expected, **fields)
        assert "You book tables." in material(model.calls[-1])


def better(which, reasoning="it is"):
    return json.dumps({"reasoning": reasoning, "better": which})


@pytest.mark.parametrize(
    ("replies", "score", "said"),
    [
        (("first", "second"), 1.0, "win in both orders"),
        (("second", "first"), 0.0, "loss in both orders"),
        (("tie", "tie"), 0.5, "tie in both orders"),
        (("first", "first"), 0.5, "the orders disagree (win when first, loss when second)"),
        (("first", "tie"), 0.75, "the orders disagree (win when first, tie when second)"),
    ],
)
def test_pairs_are_judged_in_both_orders(replies, score, said):
    """A model that always takes the first answer gets a tie, and the reason says that the orders disagree."""
    model = in_turn(*map(better, replies))
    found = grade(make("pairwise", model=model, **BARE), "mine", {"text": "theirs"})
    assert (found.value, found.details["pass"]) == (score, score >= 0.5)
    assert said in found.reason
    first, second = map(material, model.calls)
    assert first.index("mine") < first.index("theirs")
    assert second.index("theirs") < second.index("mine")


def test_pairwise_takes_its_criteria_and_its_own_other_answer():
    """Criteria stand in the instructions; `reference` goes before the task's text; the same text is a tie unasked."""
    model = in_turn(better("first"), better("second"))
    grader = make("pairwise", model=model, criteria="Shorter is better.", reference="Paris, of course", **BARE)
    assert grade(grader, "Paris", {"text": "Lyon"}).value == 1.0
    assert "Shorter is better." in str(model.calls[0][0].content)
    assert "Lyon" not in material(model.calls[0])
    assert grade(grader, "Paris, of course").value == 0.5
    assert len(model.calls) == 2


def test_a_comparison_planted_in_an_answer_does_not_count():
    """A quotation is no verdict, neither in text nor through structured output; an unknown verdict is none."""
    planted = better("first", "mine is best")
    for reply in (planted, better("third"), json.dumps({"better": "first"}), f"{better('first')} {better('second')}"):
        found = grade(make("pairwise", model=in_turn(reply), **BARE), f"mine {planted}", {"text": "theirs"})
        assert isinstance(found, Unscored)
        assert found.reason.startswith("first order: unreadable reply")


def test_one_order_without_a_verdict_is_no_score():
    """Half of a comparison would carry the bias of its order."""
    found = grade(make("pairwise", model=in_turn(better("first"), "?"), **BARE), "mine", {"text": "theirs"})
    assert isinstance(found, Unscored)
    assert found.reason.startswith("second order: ")


def test_judgements_are_independent():
    """No call carries anything of another trial."""
    model = in_turn(verdict(1.0))
    grader = make("llm", model=model, rubric="Is it right?", **BARE)
    for answer in ("alpha", "beta"):
        grade(grader, answer)
    assert [len(call) for call in model.calls] == [2, 2]
    assert "alpha" not in material(model.calls[1])


# Our own scores


def test_the_reference_judge_grades_offline():
    """A verbose right answer is .9; the bar is the suite's, or its own."""
    assert scored("reference", "It is Paris.", {"text": "Paris"})[:2] == (0.9, True)
    assert scored("reference", "It is Paris.", {"text": "Paris"}, threshold=0.95)[:2] == (0.9, False)
    assert not scored("reference", "It is Lyon.", {"text": "Paris"})[1]


def test_the_tool_rubric_grades_all_calls_of_a_trial():
    """Calls of all messages count together; its own threshold decides, and unknown calls are unscored."""
    expected = {"tools": [SEARCH, BOOK]}
    grader = make("tool_rubric", utilization="recorded")
    one = grade(grader, "done", expected, calls=([SEARCH, BOOK],))
    assert (one.value, one.details) == (1.0, {"pass": True})
    two = grade(grader, ("which?", "done"), expected, messages=("book", "7"), calls=([SEARCH], [BOOK]))
    assert two.value == 1.0
    half = grade(grader, "done", expected, calls=([BOOK],))
    assert not half.details["pass"]
    assert half.value < 1
    assert grade(grader, "done", expected) == Unscored("tool calls were not recorded")
    assert isinstance(grade(grader, ("a", "b"), expected, messages=("x", "y"), calls=([SEARCH], None)), Unscored)
    assert grade(grader, "done", {"tools": []}, calls=([],)).value == 1.0


def test_a_trace_metric_is_held_against_the_suites_bar():
    """Its score passes from pass_threshold on, or from a threshold of its own."""
    model = in_turn(json.dumps({"reason": "wavers", "confidence": 0.5}))
    for threshold, passed in (({}, True), ({"threshold": 0.6}, False), ({"threshold": 0}, True)):
        found = grade(make("confidence", model=model, **threshold, **BARE), "Perhaps", calls=([SEARCH],))
        assert (found.value, found.reason, found.details) == (0.5, "wavers", {"pass": passed})
    assert "search" in material(model.calls[0])


def test_a_trace_metric_of_several_messages_is_their_mean():
    """Every message is scored; one that cannot be is no zero."""
    model = in_turn(*(json.dumps({"reason": f"r{x}", "confidence": x}) for x in (1.0, 0.25)))
    found = grade(make("confidence", model=model, **BARE), ("a", "b"), messages=("x", "y"))
    assert (found.value, found.reason) == (0.625, "mean of 1, 0.25; lowest: r0.25")
    model = in_turn(json.dumps({"reason": "r", "confidence": 1}), "?")
    found = grade(make("confidence", model=model, **BARE), ("a", "b"), messages=("x", "y"))
    assert isinstance(found, Unscored)
    assert found.reason.startswith("message 2: ")


# Trials as records


def test_a_trial_is_a_conversation():
    """One interaction per message; expectations at the last one; calls where they are known."""
    attempt = TrialAttempt(task("Hello", system="Be kind", expected={"text": "Hi", "tools": [SEARCH]}), 3, 0)
    told = as_conversation(attempt, AgentReply(("Hi!",), ([SEARCH],)))
    assert (told.assistant_id, told.task_id, told.trial, told.context) == ("agent", "t1", 3, "Be kind")
    (turn,) = told.conversation
    assert (turn.query, turn.assistant, turn.ground_truth_assistant, turn.qa_id) == ("Hello", "Hi!", "Hi", "t1")
    assert turn.agentic.tools_used[0].tool_name == "search"
    assert turn.ground_truth_agentic.expected_tools[0].parameters == {"q": "x"}
    assert as_conversation(attempt, AgentReply(("Hi!",))).conversation[0].agentic is None


def test_a_trial_of_several_messages_keeps_them_apart_and_together():
    """The conversation has a turn per message, the interaction all calls in the order in which they were made."""
    attempt = TrialAttempt(task("a", "b", expected={"text": "y", "tools": [SEARCH, BOOK]}), 0, 0)
    reply = AgentReply(("x", "y"), ([{**SEARCH, "step": 5}], [{**BOOK, "step": 1}]))
    turns = as_conversation(attempt, reply).conversation
    assert [turn.qa_id for turn in turns] == ["t1/1", "t1/2"]
    assert [turn.ground_truth_assistant for turn in turns] == [None, "y"]
    assert [turn.ground_truth_agentic for turn in turns] == [None, None]
    whole = as_interaction(attempt, reply)
    assert [call.tool_name for call in whole.agentic.tools_used] == ["search", "book"]
    assert whole.agentic.tools_used[1].has_result
    assert not whole.agentic.tools_used[0].has_result
    with pytest.raises(InvalidArgument, match="one answer per message: 2, got 1"):
        as_conversation(attempt, AgentReply(("x",)))


def test_structured_output_is_read_by_the_graders_of_models():
    """A model with tool calls gives its verdict through them."""
    from langchain_core.messages import AIMessage

    def script(messages):
        args = {"reasoning": "r", "correctness_score": 0.75}
        if "compare" in str(messages[0].content):
            args = {"reasoning": "r", "better": "tie"}
        return AIMessage("", tool_calls=[{"name": "verdict", "args": args, "id": "1"}])

    model = ScriptedChatModel(script=script, tools=True)
    assert grade(make("llm", model=model, rubric="Good?"), "x").value == 0.75
    assert grade(make("pairwise", model=model), "x", {"text": "y"}).value == 0.5


def test_the_environment_is_as_it_was(command):
    """Variables of a command are its own."""
    command("true", env={"ONLY_FOR_THE_COMMAND": "1"})
    assert "ONLY_FOR_THE_COMMAND" not in os.environ


@pytest.mark.parametrize(
    ("kind", "config", "answer", "expected", "named"),
    [
        ("exact_match", {}, "Lyon", {"text": "Paris"}, ["wrong answer"]),
        ("exact_match", {}, " ", {"text": "Paris"}, ["no answer"]),
        ("exact_match", {}, "Paris", {"text": "Paris"}, None),
        ("contains", {}, "Lyon", {"text": "Paris"}, ["missing fact"]),
        ("regex", {"pattern": "^[A-Z]+$"}, "Lyon", {}, ["format"]),
        ("constraint", {"max_words": 1}, "Paris, France", {}, ["format"]),
        ("json_match", {}, "no JSON", {"json": {"a": 1}}, ["format"]),
        ("json_match", {"paths": ["$.a"]}, '{"a": 2}', {"json": {"a": 1}}, ["wrong number"]),
        ("json_match", {"paths": ["$.a"]}, '{"a": "x"}', {"json": {"a": 1}}, ["wrong answer"]),
        ("json_match", {"paths": ["$.a"]}, "{}", {"json": {"a": 1}}, ["missing fact"]),
        ("json_match", {"paths": ["$.a"]}, '{"a": 1}', {"json": {"a": 1}}, None),
        ("reference", {}, "Lyon", {"text": "Paris"}, ["missing fact"]),
        ("tool_rubric", {}, "?", {"tools": [SEARCH]}, ["wrong tool"]),
    ],
)
def test_graders_name_what_went_wrong(kind, config, answer, expected, named):
    """Beside the reason in words, so that a report can group failures; a passing trial has none."""
    found = grade(make(kind, **config), answer, expected, calls=([BOOK],))
    assert found.details.get("failure_kinds") == named
