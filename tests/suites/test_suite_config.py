"""A suite as it is declared: every problem at once, with its line, and no surprises of YAML."""

import pytest

from agentic_bayes.errors import SuiteError
from agentic_bayes.suites.config import json_schema, load_suite
from agentic_bayes.suites.reading.yaml_text import read_yaml

GOOD = """
name: demo
agent: {type: python, config: {function: "m:f"}}
defaults:
  trials_per_task: 3
  graders: [{type: contains, config: {keywords: [a]}}]
tasks:
  - {id: one, input: {prompt: "say a"}}
"""


@pytest.fixture
def load(tmp_path):
    def run(text, **environment):
        path = tmp_path / "eval.yaml"
        path.write_text(text, encoding="utf-8")
        return load_suite(path, environment=environment)

    return run


def plain(text, tmp_path, **environment):
    path = tmp_path / "x.yaml"
    path.write_text(text, encoding="utf-8")
    return read_yaml(path, environment=environment)


def test_a_suite_is_read_with_its_defaults(load):
    """What is not declared is what AgentEval's suites have."""
    suite = load(GOOD)
    config = suite.config
    assert (config.execution.concurrency, config.execution.timeout, config.execution.max_retries) == (1, 60, 0)
    assert (config.defaults.pass_threshold, config.output.dir, config.cache.enabled) == (0.5, "./results", False)
    (task,) = suite.tasks
    assert suite.trials_of(task) == 3
    assert suite.graders_of(task)[0].type == "contains"
    assert suite.graders_of(task)[0].weight == 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("012", "012"),
        ("1:30", "1:30"),
        ("0x1F", "0x1F"),
        ("1_000", "1_000"),
        ("2024-05-20", "2024-05-20"),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("true", True),
        ("False", "False"),
        ("null", None),
        ("~", None),
        ("", None),
        ("12", 12),
        ("-0", 0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("'12'", "12"),
        ("9" * 30, float("9" * 30)),
    ],
)
def test_yaml_without_surprises(text, value, tmp_path):
    """Only JSON's words and numbers are more than text."""
    document = plain(f"key: {text}\n", tmp_path)
    assert not document.problems
    found = document.value["key"]
    assert (found, type(found)) == (value, type(value))


def test_variables_come_from_the_environment(tmp_path):
    """`${VAR}` and `${VAR:-default}`; `$$` is a dollar; one that is not set is a problem with its line."""
    text = "a: ${ONE}\nb: ${TWO:-two}\nc: '${EMPTY:-x} costs $$5'\nd:\n  - ${THREE}\n  - ${1BAD}\n"
    document = plain(text, tmp_path, ONE="1", EMPTY="")
    assert document.value["a"] == "1"
    assert (document.value["b"], document.value["c"]) == ("two", "x costs $5")
    assert [problem.where for problem in document.problems] == ["line 5", "line 6"]
    assert "THREE is not set" in document.problems[0].message


def test_a_variable_is_what_its_place_asks_for(load):
    """A number or a truth value where the suite takes one, a text where it takes a text, quoted or not."""
    text = GOOD.replace("trials_per_task: 3", "trials_per_task: ${N}\n  pass_threshold: ${BAR:-0.25}")
    text = text.replace("name: demo", "name: ${N}").replace("say a", "${N}") + 'cache: {enabled: "${CACHED}"}\n'
    suite = load(text, N="12", CACHED="true")
    assert (suite.config.name, suite.tasks[0].input.prompt) == ("12", "12")
    assert (suite.trials_of(suite.tasks[0]), suite.config.defaults.pass_threshold) == (12, 0.25)
    assert suite.config.cache.enabled is True
    with pytest.raises(SuiteError, match=r"line 5, defaults.trials_per_task: must be a whole number ≥ 1.*got 'twelve'"):
        load(text, N="twelve", CACHED="true")
    with pytest.raises(SuiteError, match=r"trials_per_task: must be a whole number ≥ 1, or auto, got '12'"):
        load(text.replace("trials_per_task: ${N}", "trials_per_task: '12'"), N="12", CACHED="true")


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("${AA:-${BB}} ${CC", ["'${AA:-${BB}' must not contain the ${ of another", "'${CC' has no closing }"]),
        ("x ${CC", ["'${CC' has no closing }"]),
        ("${AA:-costs $$5} $${CC", []),
        ("${AA:-$${}", []),
    ],
)
def test_a_variable_that_is_torn_or_within_another_is_a_problem(tmp_path, text, messages):
    """Neither passes as text, and both have their line; a `$$` is a dollar, also in a default."""
    document = plain(f"a: 1\nb: '{text}'\n", tmp_path)
    assert [problem.where for problem in document.problems] == ["line 2"] * len(messages)
    for problem, message in zip(document.problems, messages, strict=True):
        assert message in problem.message
    if not messages:
        assert document.value["b"] in ("costs $5 ${CC", "${")


@pytest.mark.parametrize("text", ["a: {z: &a [*a , *a ]}\n", "a: &a {x: [*a], y: [*a]}\n"])
def test_an_alias_of_itself_is_one_problem(text, tmp_path):
    """However often it stands within itself; one that is used twice side by side is none."""
    assert [str(problem.message) for problem in plain(text, tmp_path).problems] == ["holds an alias of itself"]
    document = plain("a: &a [1]\nb: [*a, *a]\n", tmp_path)
    assert (document.value["b"], document.problems) == ([[1], [1]], [])


def test_what_is_too_deep_is_one_problem(tmp_path):
    """Also where aliases make it too deep in many places."""
    lines = ["a0: &a0 [x]", *(f"a{i}: &a{i} [*a{i - 1}]" for i in range(1, 80))]
    assert len(plain("\n".join(lines), tmp_path).problems) == 1


def test_a_tag_says_that_a_value_is_text_and_nothing_else(tmp_path):
    """`!!str 5` is "5"; other tags are refused with their line, wherever they stand."""
    document = plain("a: !!str 5\nb: ! true\nc: !!str 1e3\n!!str 6: !!str ''\n", tmp_path)
    assert (document.value, document.problems) == ({"a": "5", "b": "true", "c": "1e3", "6": ""}, [])
    document = plain("a: !!int '5'\nb: !mine {x: 1}\nc: !!set [1]\n!!int 6: 1\n", tmp_path)
    assert [problem.where for problem in document.problems] == ["line 1", "line 2", "line 3", "line 4"]
    assert "the tag '!!int' is not supported; only !!str before text is" in document.problems[0].message


def test_all_problems_come_at_once_with_their_lines(load):
    """Unknown and repeated keys, wrong types, missing ones: one report."""
    with pytest.raises(SuiteError, match="problems in the suite") as caught:
        load(
            """
name: demo
agent: {type: pithon}
execution: {concurency: 3, timeout: soon}
defaults: {trials_per_task: 0, graders: [{type: contains}]}
tasks:
  - id: one
    input: {prompt: a}
    tags: paris
  - id: one
    id: two
    input: {prompt: a, messages: [b]}
"""
        )
    text = str(caught.value)
    for part in (
        "line 3, agent.type: must be 'openai', 'anthropic'",
        "line 4, execution.concurency: unknown key: did you mean 'concurrency'?",
        "line 4, execution.timeout: must be seconds, or text like 90s or 1m30s, got 'soon'",
        "line 5, defaults.trials_per_task: must be a whole number ≥ 1, or auto, got 0",
        "line 9, tasks[0].tags: must be a list, for example [paris], got 'paris'",
        "line 11: the key 'id' is given twice",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD + "  - {id: one, input: {prompt: b}}\n", "tasks.1..id: must be unique, got 'one' also at"),
        (GOOD.replace('prompt: "say a"', "system: x"), "tasks.0..input: must give prompt, or messages"),
        (
            GOOD.replace("graders: [{type: contains, config: {keywords: [a]}}]", "graders: []"),
            "graders: must be given here",
        ),
        (GOOD.replace("type: contains,", "type: contains, weight: 0,"), "must have at least one weight > 0"),
        (GOOD.replace("trials_per_task: 3", "trials_per_task: auto"), "defaults.budget: must be given"),
        (GOOD.replace("tasks:", "task_files: [none/*.yaml]\ntasks:"), "'none/.*' matches no file"),
        (
            GOOD.replace("trials_per_task: 3", "trials_per_task: 3\n  target: {metric: pass^x}"),
            r'defaults.target.metric: must be "pass@k" or "pass\^k" with a number, e.g. "pass\^3", got \'pass\^x\'$',
        ),
        (GOOD.split("tasks:")[0], "tasks: must hold at least one task"),
        ("a: [1", "line 1: is not YAML|line 2: is not YAML"),
        ("5", "must be an object, got 5"),
        ("", "must be an object, got null"),
        ("a: &x [*x]\n", "line 1: holds an alias of itself"),
        ("a: " + "[" * 70 + "]" * 70, "too many values, or too deep"),
        ("a: {<<: {b: 1}}", "merge keys"),
        ("? [1, 2]\n: 3\n", "a key must be text"),
    ],
)
def test_what_cannot_be_run_is_refused(load, text, message):
    """Also what takes more than one field to see, and YAML that is hostile."""
    with pytest.raises(SuiteError, match=message):
        load(text)


def test_an_alias_bomb_is_refused_in_no_time(load):
    """A small file that stands for a billion values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    with pytest.raises(SuiteError, match="too many values"):
        load("\n".join(lines))


def test_tasks_come_from_files_too(load, tmp_path):
    """A file holds one task or a list; its problems name the file."""
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "a.yaml").write_text("id: two\ninput: {prompt: b}\n", encoding="utf-8")
    (tmp_path / "tasks" / "b.yaml").write_text("- id: three\n  input: {messages: [b, c]}\n", encoding="utf-8")
    suite = load(GOOD.replace("tasks:", "task_files: ['tasks/*.yaml']\ntasks:"))
    assert [task.id for task in suite.tasks] == ["one", "two", "three"]
    (tmp_path / "tasks" / "b.yaml").write_text("- id: three\n  inputs: {}\n", encoding="utf-8")
    with pytest.raises(SuiteError, match=r"b\.yaml, line 2, \[0\]\.inputs: unknown key: did you mean 'input'"):
        load(GOOD.replace("tasks:", "task_files: ['tasks/*.yaml']\ntasks:"))


def test_the_digest_knows_what_a_trial_is(load):
    """Agent, input, expectations and graders change it; names, tags and numbers of trials do not."""
    base = load(GOOD).digest
    for same in (
        GOOD.replace("trials_per_task: 3", "trials_per_task: 9"),
        GOOD.replace("id: one", "id: one, tags: [x], name: y"),
    ):
        assert load(same).digest == base
    for other in (
        GOOD.replace("m:f", "m:g"),
        GOOD.replace("say a", "say b"),
        GOOD.replace("keywords: [a]", "keywords: [b]"),
        GOOD.replace("id: one", "id: one, expected: {text: a}"),
        GOOD.replace("trials_per_task: 3", "trials_per_task: 3\n  pass_threshold: 0.9"),
    ):
        assert load(other).digest != base


def test_the_schema_describes_a_suite():
    """Editors check suites with it; it knows every part."""
    schema = json_schema()
    assert schema["additionalProperties"] is False
    assert {"agent", "defaults", "execution", "hooks", "tasks", "task_files"} <= set(schema["properties"])
