import datetime
import gzip
import json

import pytest
from hypothesis import HealthCheck, given, settings
from strategies import conversation_lists, reduced

from agentic_bayes.errors import InvalidArgument, RecordsError
from agentic_bayes.records.model import Conversation, ToolCall
from agentic_bayes.records.read import read_conversations
from agentic_bayes.records.write import write_conversations

NAMES = ["f.json", "f.jsonl", "f.json.gz", "f.jsonl.gz"]
# both layouts and both packings; the other two pairs of them are slow tests
MOST = [pytest.param(name, marks=[pytest.mark.slow] * (name in ("f.jsonl", "f.json.gz"))) for name in NAMES]


def conversation(session="s1", **fields):
    turn = {"qa_id": "q", "query": "How much?", "assistant": "3 €"}
    return Conversation.model_validate({"session_id": session, "assistant_id": "v1", "conversation": [turn], **fields})


def dump(conversations):
    return [c.model_dump(mode="json", exclude_unset=True) for c in conversations]


@pytest.mark.parametrize("name", MOST)
@given(conversation_lists())
@settings(max_examples=reduced(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_reads_back_the_same(tmp_path, name, conversations):
    """Every field, and whether it was set, survives in every layout; the number written is returned."""
    path = tmp_path / name
    assert write_conversations(iter(conversations), path) == len(conversations)
    again = list(read_conversations(path))
    assert again == conversations
    assert dump(again) == dump(conversations)


@pytest.mark.parametrize("name", NAMES)
def test_the_public_file_survives_a_round_trip(shared_data, tmp_path, name):
    """Reading, writing and reading again gives the records of the public file."""
    path = shared_data("fair_forge_dataset_agentic.json")
    write_conversations(read_conversations(path), tmp_path / name)
    assert dump(read_conversations(tmp_path / name)) == json.loads(path.read_text(encoding="utf-8"))


def test_the_layout_follows_the_ending(tmp_path):
    """.jsonl has a record per line, .json an array that any JSON reader takes, .gz is gzip."""
    both = [conversation("s1"), conversation("s2")]
    for name in NAMES:
        write_conversations(both, tmp_path / name)
    as_lines = (tmp_path / "f.jsonl").read_text(encoding="utf-8")
    assert [json.loads(line) for line in as_lines.splitlines()] == dump(both)
    assert "3 €" in as_lines
    assert json.loads((tmp_path / "f.json").read_bytes()) == dump(both)
    for name in ("f.json", "f.jsonl"):
        assert gzip.decompress((tmp_path / f"{name}.gz").read_bytes()) == (tmp_path / name).read_bytes()


def test_the_same_conversations_give_the_same_bytes(tmp_path):
    """Neither the time nor the file's name gets into a gzip file."""
    for name in ("one.jsonl.gz", "two.JSONL.GZ"):
        write_conversations([conversation()], tmp_path / name)
    one, two = (tmp_path / "one.jsonl.gz").read_bytes(), (tmp_path / "two.JSONL.GZ").read_bytes()
    assert one == two
    assert one[4:8] == b"\0\0\0\0"


@pytest.mark.parametrize("name", NAMES)
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, name):
    """A source that fails half-way changes nothing on disk."""

    def failing():
        yield conversation("s2")
        raise KeyboardInterrupt("by hand")

    path = tmp_path / name
    write_conversations([conversation("s1")], path)
    before = path.read_bytes()
    with pytest.raises(KeyboardInterrupt, match="by hand"):
        write_conversations(failing(), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_a_file_may_be_rewritten_from_itself(tmp_path):
    """The old content is there until the new one is complete."""
    path = tmp_path / "f.jsonl"
    write_conversations([conversation(f"s{n}") for n in range(100)], path)
    assert write_conversations(read_conversations(path), path) == 100
    assert len(list(read_conversations(path))) == 100


def test_a_link_keeps_pointing_at_the_file_that_is_replaced(tmp_path):
    """Writing through a symbolic link replaces what it points at."""
    (tmp_path / "real.jsonl").write_text("")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "real.jsonl")
    write_conversations([conversation()], tmp_path / "link.jsonl")
    assert (tmp_path / "link.jsonl").is_symlink()
    assert len(list(read_conversations(tmp_path / "real.jsonl"))) == 1


def test_no_conversations_make_an_empty_file(tmp_path):
    """Zero are written, and reading says that there is none."""
    for name in NAMES:
        assert write_conversations([], tmp_path / name) == 0
        with pytest.raises(RecordsError, match="holds no conversation"):
            read_conversations(tmp_path / name)


@pytest.mark.parametrize("value", [object(), {1, 2, object()}, b"\xff"])
def test_a_value_that_json_cannot_hold_is_named(tmp_path, value):
    """Python values of code-made records are refused with the session where they are."""
    bad = conversation("s7", metadata={"a": value})
    with pytest.raises(RecordsError, match=r"conversations\[1\]: session 's7' holds a value that JSON cannot"):
        write_conversations([conversation(), bad], tmp_path / "f.jsonl")
    assert not list(tmp_path.iterdir())


def test_values_with_one_plain_json_form_are_written_in_it(tmp_path):
    """Tuples become lists and dates become text."""
    call = ToolCall(tool_name="f", parameters={"when": datetime.date(2024, 5, 17), "where": (1, 2)})
    turn = {"qa_id": "q", "query": "?", "assistant": "a", "agentic": {"tools_used": [call]}}
    write_conversations([conversation(conversation=[turn])], tmp_path / "f.jsonl")
    (again,) = read_conversations(tmp_path / "f.jsonl")
    assert again.conversation[0].agentic.tools_used[0].parameters == {"when": "2024-05-17", "where": [1, 2]}


@pytest.mark.parametrize("name", ["f", "f.csv", "f.gz", "f.json.zip", "json"])
def test_other_endings_are_refused(tmp_path, name):
    """The ending decides the layout, so it must be one of four."""
    with pytest.raises(InvalidArgument, match=r"path must end in \.json, \.jsonl, \.json\.gz, \.jsonl\.gz, got"):
        write_conversations([conversation()], tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_target_that_is_no_file_in_a_folder_is_refused(tmp_path):
    """A missing folder, a folder or no path at all: nothing is consumed or written."""
    (tmp_path / "d.json").mkdir()
    with pytest.raises(InvalidArgument, match=r"the folder .*nowhere' does not exist"):
        write_conversations([conversation()], tmp_path / "nowhere" / "f.json")
    with pytest.raises(InvalidArgument, match="is a folder"):
        write_conversations([conversation()], tmp_path / "d.json")
    with pytest.raises(InvalidArgument, match="path must be a file name, got 3"):
        write_conversations([conversation()], 3)


@pytest.mark.parametrize("given_value", [None, 5, "s", {"session_id": "s"}, conversation()])
def test_what_is_no_iterable_of_conversations_is_refused(tmp_path, given_value):
    """A single conversation, a dict or text is a mistake."""
    with pytest.raises(InvalidArgument, match="conversations must be an iterable of Conversation "):
        write_conversations(given_value, tmp_path / "f.json")
    with pytest.raises(InvalidArgument, match=r"conversations\[0\] must be a Conversation, got \{"):
        write_conversations([{"session_id": "s"}], tmp_path / "f.json")
    assert not list(tmp_path.iterdir())
