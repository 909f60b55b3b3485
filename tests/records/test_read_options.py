"""Identity from anywhere in a record, bad records left out, and what is said about both."""

import json

import pytest

from agentic_bayes.errors import DoubtfulRecords, InvalidArgument, RecordsError
from agentic_bayes.records.read import read_conversations
from agentic_bayes.records.wire.options import ReadOptions, at_path

TURNS = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]
CHATS = [
    {"messages": TURNS, "metadata": {"agent_version": "v1", "gen.task": {"name": f"t{n % 2}"}, "run": n // 2}}
    for n in range(4)
]
FIELDS = {"agent": "metadata.agent_version", "task": "metadata.gen.task.name", "trial": "metadata.run"}
NATIVE = {
    "session_id": "s",
    "assistant_id": "a",
    "task_id": "t",
    "metadata": {"version": 7, "case": "c", "gold": "!"},
    "conversation": [{"qa_id": "q", "query": "?", "assistant": "!"}],
}


@pytest.fixture
def file(tmp_path):
    """Writes records as JSON Lines."""

    def write(*records, name="log.jsonl"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in records))
        return path

    return write


def test_identity_comes_from_dotted_paths_anywhere_in_a_record(file):
    """Keys may hold dots themselves."""
    found = read_conversations(file(*CHATS), fields=FIELDS)
    assert [(c.assistant_id, c.task_id, c.trial) for c in found] == [
        ("v1", "t0", 0),
        ("v1", "t1", 0),
        ("v1", "t0", 1),
        ("v1", "t1", 1),
    ]


def test_fields_come_before_what_a_native_record_says(file):
    """Numbers become ids; a reference goes to the last turn."""
    fields = {"agent": "metadata.version", "task": "metadata.case", "reference": "metadata.gold", "session": "task_id"}
    (found,) = read_conversations(file(NATIVE), fields=fields)
    assert (found.assistant_id, found.task_id, found.session_id) == ("7", "c", "t")
    assert found.conversation[0].ground_truth_assistant == "!"


def test_fields_are_found_in_messages_too(file, tmp_path):
    """By their place in a conversation, or in whichever message has them where there are only messages."""
    tagged = [TURNS[0] | {"tags": {"case": "oslo"}}, TURNS[1]]
    (found,) = read_conversations(file({"id": "s", "messages": tagged}), fields={"task": "messages.0.tags.case"})
    assert found.task_id == "oslo"
    for path in (file(*tagged, name="lines.jsonl"), file(tagged, name="list.json")):
        (found,) = read_conversations(path, fields={"task": "tags.case"})
        assert found.task_id == "oslo"
    with pytest.raises(RecordsError, match=r"fields takes the task from here, but this record has 'messages', 'id'"):
        read_conversations(file({"id": "s", "messages": tagged}), fields={"task": "tags.case"})


def test_a_trial_that_is_null_is_absent(file):
    """Trials are then numbered as usual."""
    (found,) = read_conversations(file(NATIVE | {"metadata": {"run": None}}), fields={"trial": "metadata.run"})
    assert found.trial is None


def test_a_path_that_a_record_lacks_is_refused_with_what_is_there(file):
    """The record, the path and the members next to its end are named."""
    with pytest.raises(RecordsError, match=r"line 1, metadata\.task: .* in metadata 'version', 'case', 'gold'"):
        read_conversations(file(NATIVE), fields={"task": "metadata.task"})
    with pytest.raises(RecordsError, match=r"7 at metadata\.version"):
        read_conversations(file(NATIVE), fields={"task": "metadata.version.major"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fields": {"tusk": "x"}}, "did you mean 'task'"),
        ({"fields": {"task": "a..b"}}, "must be a path"),
        ({"fields": "task=a"}, "must map names"),
        ({"scorer": ""}, "name of a score"),
        ({"scale": (10, 1)}, "lowest and the highest"),
        ({"scale": 10}, "lowest and the highest"),
    ],
)
def test_options_are_checked(options, message):
    """Each names what is allowed and what came."""
    with pytest.raises(InvalidArgument, match=message):
        ReadOptions(**options)


def test_a_number_in_a_path_is_a_place_in_a_list():
    """Lists are reached into as objects are."""
    assert at_path({"a": [{"b": 1}, {"b": 2}]}, "a.1.b") == 2


def test_bad_records_are_left_out_on_request_and_counted(file):
    """The default refuses the file."""
    path = file(CHATS[0], "{bad", CHATS[1], CHATS[2] | {"messages": 3})
    with pytest.raises(RecordsError, match="2 problems"):
        read_conversations(path)
    with pytest.warns(DoubtfulRecords, match=r"2 of 4 records could not be read and were left out: .*line 2"):
        found = read_conversations(path, on_error="skip")
    assert len(list(found)) == 2
    assert found.left_out.records == 2
    with pytest.warns(DoubtfulRecords, match=r"3 of 4 records .* line 1: .* line 2: .* line 3: "):
        read_conversations(file("{bad", "{worse", "{worst", CHATS[0]), format="openai", on_error="skip")


def test_a_file_that_breaks_off_or_holds_nothing_readable_is_refused_anyway(file):
    """No partial read passes for a whole one."""
    with pytest.raises(RecordsError, match="the rest was not checked"):
        read_conversations(file(json.dumps([NATIVE])[:-1] + ", {]"), on_error="skip")
    with pytest.raises(RecordsError, match="line 1"):
        read_conversations(file("{bad"), on_error="skip")
    with pytest.raises(InvalidArgument, match="on_error"):
        read_conversations(file(NATIVE), on_error="ignore")
