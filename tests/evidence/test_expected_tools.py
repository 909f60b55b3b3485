"""Expected tool calls from a table or a JSON file, joined by task."""

import json

import pandas as pd
import pytest

import agentic_bayes as ab
from agentic_bayes.records.model import ExpectedCall


def conversation(task, *, qa_ids=("q",), error=None, **turn):
    turns = [
        {"qa_id": qa_id, "query": "?", "assistant": "a", "agentic": {"tools_used": []}, **turn} for qa_id in qa_ids
    ]
    return ab.Conversation(session_id=f"s-{task}", assistant_id="v1", task_id=task, conversation=turns, error=error)


def names(conversation, position=0):
    tools = conversation.conversation[position].ground_truth_agentic
    return None if tools is None else [(call.tool_name, call.parameters) for call in tools.expected_tools]


CSV = """task,tool_name,parameters,step,tool_sequence_matters
1,search,"{""q"": ""x""}",1,false
1,book,"{""id"": 7}",2,false
2,,,,
"""


def test_rows_of_a_table_are_the_calls_of_a_task(tmp_path):
    """One row a call; a row without a tool says that none is expected; other tasks keep what they have."""
    file = tmp_path / "expected.csv"
    file.write_text(CSV, encoding="utf-8")
    joined = list(ab.join_expected_tools([conversation("1"), conversation("2"), conversation("3")], file))
    assert [names(c) for c in joined] == [[("search", {"q": "x"}), ("book", {"id": 7})], [], None]
    assert joined[0].conversation[0].ground_truth_agentic.tool_sequence_matters is False
    frame = pd.read_csv(file)
    assert list(ab.join_expected_tools([conversation("1"), conversation("2")], frame)) == joined[:2]


def test_json_maps_tasks_to_calls(tmp_path):
    """A list of calls, or all that `ExpectedTools` takes, with matchers."""
    expected = {
        "1": [{"name": "search", "arguments": '{"q": "x"}', "matchers": {"q": {"ignore_case": True}}}],
        "2": {"expected_tools": [], "forbidden_tools": ["drop"]},
    }
    file = tmp_path / "expected.json"
    file.write_text(json.dumps(expected), encoding="utf-8")
    for given in (file, str(file), expected):
        one, two = ab.join_expected_tools([conversation("1"), conversation("2")], given)
        assert isinstance(one.conversation[0].ground_truth_agentic.expected_tools[0], ExpectedCall)
        assert two.conversation[0].ground_truth_agentic.forbidden_tools == ("drop",)
    rows = [{"task": "1", "tool_name": "search", "parameters": {"q": "x"}}, {"task": "2", "expected_tools": []}]
    for name, text in (("rows.json", json.dumps(rows)), ("rows.jsonl", "\n".join(map(json.dumps, rows)))):
        (tmp_path / name).write_text(text, encoding="utf-8")
        joined = list(ab.join_expected_tools([conversation("1"), conversation("2")], tmp_path / name))
        assert [names(c) for c in joined] == [[("search", {"q": "x"})], []]


def test_a_question_is_named_where_there_are_several():
    """`qa_id` says which interaction; without it a conversation of several is refused."""
    two = conversation("1", qa_ids=("a", "b"))
    frame = pd.DataFrame({"task": ["1"], "qa_id": ["b"], "tool_name": ["f"], "parameters": ["{}"]})
    (joined,) = ab.join_expected_tools([two], frame)
    assert (names(joined, 0), names(joined, 1)) == (None, [("f", {})])
    with pytest.raises(ab.errors.EvidenceError, match="it has 2 interactions, so give the qa_id of one"):
        list(ab.join_expected_tools([two], {"1": []}))
    with pytest.raises(ab.errors.EvidenceError, match="0 of its interactions have qa_id 'c'"):
        list(ab.join_expected_tools([two], frame.assign(qa_id="c")))
    stopped = conversation("1", qa_ids=("a",), error="crashed")
    assert next(iter(ab.join_expected_tools([stopped, two], frame))) == stopped  # it never came to this question


def test_expectations_are_not_replaced_silently():
    """A conversation that has some is refused, or loses them on request."""
    has = conversation("1", ground_truth_agentic={"expected_tools": []})
    with pytest.raises(ab.errors.EvidenceError, match="already has expected tools; replace=True"):
        list(ab.join_expected_tools([has], {"1": [{"name": "f"}]}))
    (joined,) = ab.join_expected_tools([has], {"1": [{"name": "f"}]}, replace=True)
    assert names(joined) == [("f", {})]


def test_tasks_that_nobody_attempted_are_said():
    """Some unmatched tasks are a warning, all of them an error."""
    with pytest.warns(ab.errors.DoubtfulRecords, match="no conversation attempted '2'"):
        list(ab.join_expected_tools([conversation("1")], {"1": [], "2": []}))
    with pytest.raises(
        ab.errors.EvidenceError,
        match="attempted any of its tasks \\('2'\\); the conversations are of '1'",
    ):
        list(ab.join_expected_tools([conversation("1")], {"2": []}))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("task\n1\n", "there is no column 'tool_name'"),
        ("tool_name\nf\n", "there is no column 'task'"),
        ("task,tool_name\n,f\n", "line 2: task must not be blank"),
        ("task,tool_name,parameters\n1,f,{x\n", "line 2: parameters must be JSON, got '{x'"),
        ("task,tool_name,parameters\n1,f,[1]\n", "parameters: must be an object"),
        ('task,tool_name,matchers\n1,f,"{""a"": {""regx"": 1}}"\n', "unknown key 'regx'"),
        ("task,tool_name,tool_sequence_matters\n1,f,true\n1,g,false\n", "line 3: tool_sequence_matters .* differs"),
        ("task,tool_name,step\n1,f,x\n", "step: must be a whole number"),
        ("task,tool_name,step\n1,f,1.05\n", "step: must be a whole number"),
        ("task,tool_name,step\n1,f," + "9" * 400 + "\n", "step: must be a whole number"),
        ("task,tool_name,paramaters\n1,f,{}\n", "unknown key 'paramaters': did you mean 'parameters'"),
        ("task,tool_name\n1,\n1,f\n", "line 3: says that task '1' expects no call, but this or another row gives one"),
        ("task,tool_name\n1,f\n1,\n", "line 3: says that task '1' expects no call"),
        ('task,tool_name,parameters\n1,,"{}"\n', "line 2: says that task '1' expects no call"),
        ("task,tool_name,expected_tools\n1,f,[]\n", "line 2: must give expected_tools or one call, got both"),
        ("task,expected_tools\n1,[]\n1,[]\n", "line 3: expected_tools of task '1' is given twice"),
    ],
)
def test_bad_tables_are_refused_as_a_whole(tmp_path, content, message):
    """What is wrong is named with its row or task, before any conversation is read."""
    file = tmp_path / "expected.csv"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ab.errors.EvidenceError, match=message):
        ab.join_expected_tools(iter(()), file)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "must be JSON"),
        ("5", "must be an object"),
        ('{"1": 5}', "must be a list"),
        ("[5]", "index 0: must be an object"),
    ],
)
def test_bad_json_is_refused(tmp_path, content, message):
    """The same for JSON."""
    file = tmp_path / "expected.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ab.errors.EvidenceError, match=message):
        ab.join_expected_tools(iter(()), file)


def test_joined_conversations_are_judged():
    """The verdict is that of expectations in the file."""
    made = conversation("1", agentic={"tools_used": [{"name": "f", "arguments": {"a": 1}}]})
    (joined,) = ab.join_expected_tools([made], {"1": [{"name": "f", "arguments": {"a": 1}}]})
    assert ab.ToolRubric().grade(joined.conversation[0]).is_correct


def test_an_interaction_is_named_once():
    """With its qa_id and without, for the same interaction, nobody can tell which is meant."""
    frame = pd.DataFrame({"task": ["1", "1"], "qa_id": ["q", None], "tool_name": ["f", "g"], "parameters": ["{}"] * 2})
    with pytest.raises(ab.errors.EvidenceError, match="one interaction is given both with its qa_id and without"):
        list(ab.join_expected_tools([conversation("1")], frame))


def test_a_tool_may_be_called_na(tmp_path):
    """What is blank in a column of numbers is a name in one of names."""
    file = tmp_path / "e.csv"
    file.write_text("task,tool_name,parameters\nNA,NA,{}\n", encoding="utf-8")
    (joined,) = ab.join_expected_tools([conversation("NA")], file)
    assert names(joined) == [("NA", {})]


def test_a_table_without_parameters_leaves_arguments_unchecked_and_says_so():
    """What nobody wrote down is not an expectation of no arguments."""
    made = [{"tool_name": "f", "parameters": {"city": "Oslo"}}]
    turn = {"qa_id": "q", "query": "?", "assistant": "!", "agentic": {"tools_used": made}}
    called = ab.Conversation.model_validate(
        {"session_id": "s", "assistant_id": "a", "task_id": "1", "conversation": [turn]}
    )
    frame = pd.DataFrame({"task": ["1"], "tool_name": ["f"]})
    with pytest.warns(ab.errors.DoubtfulRecords, match="no column parameters, so the arguments of calls are not"):
        joined = ab.join_expected_tools([called], frame)
    evidence = ab.assess(joined, judge=ab.RecordedJudge())
    assert evidence.rows[0].tools_correct
    assert "arguments of tool calls were not compared" in evidence.to_markdown()
    (row,) = ab.assess(ab.join_expected_tools([called], frame.assign(parameters="{}")), judge=ab.RecordedJudge()).rows
    assert not row.tools_correct
