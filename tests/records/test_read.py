import gzip
import io
import json
import os
import re
import threading
import tracemalloc

import pytest

from agentic_bayes.errors import InvalidArgument, RecordsError, UnknownName
from agentic_bayes.records.formats.detection import FORMATS
from agentic_bayes.records.read import read_conversations
from agentic_bayes.records.wire.json_text import JsonText


def record(session="s1", **fields):
    turn = {"qa_id": "q", "query": "How much?", "assistant": "3"}
    return {"session_id": session, "assistant_id": "v1", "conversation": [turn], **fields}


def lines(*records):
    return "".join(json.dumps(r) + "\n" for r in records)


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Write content to a file in an empty working folder, read it, give back the session ids."""
    monkeypatch.chdir(tmp_path)

    def run(content, name="f.json", **arguments):
        data = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(data)
        return [c.session_id for c in read_conversations(name, **arguments)]

    return run


def refused(paths, **arguments):
    """The problems that the call itself raises, before anything is iterated."""
    with pytest.raises(RecordsError, match="in the conversations") as caught:
        read_conversations(paths, **arguments)
    return [str(problem) for problem in caught.value.problems]


def test_the_fair_forge_data_set_loads_unchanged(shared_data):
    """Every record equals what the public file says."""
    path = shared_data("fair_forge_dataset_agentic.json")
    found = [c.model_dump(mode="json", exclude_unset=True) for c in read_conversations(path)]
    assert found == json.loads(path.read_text(encoding="utf-8"))


TWO = [record("s1"), record("s2")]


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", ["f.json", "f.jsonl", "f.gz", "f"])
@pytest.mark.parametrize(
    "content",
    [
        json.dumps(TWO),
        json.dumps(TWO, indent=2),
        lines(*TWO),
        lines(*TWO).rstrip("\n"),
        "\n\n" + json.dumps(TWO[0]) + " \r\n \n" + json.dumps(TWO[1]) + "\r\n\n",
        json.dumps(TWO[0], indent=1) + "\n" + json.dumps(TWO[1], indent=1),
        "\ufeff" + json.dumps(TWO),
        "\ufeff" + lines(*TWO),
    ],
    ids=["array", "indented", "lines", "no-newline", "blank-lines", "objects", "bom-array", "bom-lines"],
)
def test_layouts_are_told_apart_by_content(read, content, name, packed):
    """An array, JSON Lines and objects over many lines are read alike, whatever the file is called."""
    data = content.encode()
    assert read(gzip.compress(data) if packed else data, name) == ["s1", "s2"]


def test_one_object_is_one_conversation(read):
    """A single JSON object, on one line or many, is a file of one conversation."""
    assert read(json.dumps(record(), indent=4)) == read(json.dumps(record())) == ["s1"]


def test_all_problems_of_all_files_are_in_one_report(read, tmp_path):
    """Each names file, line or index, field, what is allowed and what came; nothing is yielded."""
    read(lines(record("ok")), "good.jsonl")
    bad = record("s2", trial=-1, taskid="t")
    bad["conversation"][0]["agentic"] = {"tools_used": [{"tool_name": "f"}, {"tool_name": "g", "parameters": 5}]}
    (tmp_path / "a.jsonl").write_text(lines(record("s1")) + "[oops]" + " " * 40 + "\n" + lines(bad, record("s1")))
    (tmp_path / "b.json").write_text(json.dumps([record("s8"), 3, record("s9", language=None)]))
    assert refused(["a.jsonl", "good.jsonl", "b.json"]) == [
        "a.jsonl, line 2: is not valid JSON: Expecting value near '[oops]' (line 2)",
        "a.jsonl, line 3, conversation[0].agentic.tools_used[1].parameters: "
        "must be an object (argument name → value), got 5",
        "a.jsonl, line 3, trial: must be a whole number ≥ 0, got -1",
        "a.jsonl, line 3, taskid: unknown key 'taskid': did you mean 'task_id'?",
        "b.json, index 1: must be an object, got 3",
        "b.json, index 2, language: must be text, got null",
        "a.jsonl, line 4, session_id: must be unique within an agent, got 's1' of agent 'v1' also at a.jsonl, line 1",
    ]


def test_duplicates_in_two_files_name_both_places(read, tmp_path):
    """The same session in a second file is found before anything is yielded."""
    read(lines(record("s1")), "a.jsonl")
    (tmp_path / "b.json").write_text(json.dumps([record("s0"), record("s1")]))
    (problem,) = refused(["a.jsonl", "b.json"])
    assert problem.startswith("b.json, index 1, session_id: must be unique")
    assert "also at a.jsonl, line 1; if the files hold different runs, say where" in problem


def test_no_more_than_a_thousand_problems_are_kept_and_all_are_counted(read):
    """A file that is wrong throughout gives a report of bounded size."""
    with pytest.raises(RecordsError, match=r"^1500 problems in the conversations:") as caught:
        read("\n".join(["{]"] * 1500))
    assert len(caught.value.problems) == 1000
    assert caught.value.total == 1500


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "f.json: holds no conversation"),
        (" \n\n", "f.json: holds no conversation"),
        (b"\xef\xbb\xbf", "f.json: holds no conversation"),
        (gzip.compress(b"", mtime=0), "f.json: holds no conversation"),
        ("[]", "f.json: holds no conversation"),
        ("[ ] x", "line 1: nothing may follow the array, got 'x'"),
        (
            "agent,task,correct\nv1,t,1\n",
            r"line 1: must begin with '\[' or '\{' .JSON., got 'agent,task,correct'",
        ),
        ("\n\n'x'", "line 3: must begin with"),
        ("null", "line 1: must begin with .* got 'null'"),
        (
            "[null, 1.5, [], {}]",
            "index 0: must be an object, got null(.|\n)*index 2: must be an object, got \\[\\]",
        ),
        (json.dumps(record())[:-9], "line 1: is incomplete: the file ends in the middle of it"),
        (
            json.dumps([record(), record("s2")])[:-9],
            "index 1: is incomplete: the file ends in the middle of it; the rest was not checked",
        ),
        (json.dumps([record()])[:-1], "index 0: must be followed by ',' or '\\]', got the end of the file"),
        (json.dumps([record()]) + json.dumps([record()]), "nothing may follow the array, got '\\["),
        (f"[{json.dumps(record())},]", "index 1: is not valid JSON: Expecting value near"),
        (
            f"[{json.dumps(record())} {json.dumps(record('s2'))}]",
            "index 0: must be followed by ',' or '\\]', got '\\{",
        ),
        (
            json.dumps(record()) + json.dumps(record("s2")),
            "line 1: must hold only one record, got '\\{.*after it",
        ),
        (json.dumps(record()) + ",\n", "line 1: must hold only one record, got ',' after it"),
        (json.dumps(record(), indent=1) + "\n}", "line 1[0-9]: is not valid JSON: Expecting value near"),
        (
            json.dumps(record("caf\xe9"), ensure_ascii=False).encode("latin-1"),
            "must be UTF-8 text, got byte 0xE9",
        ),
        (b'[\n1,\n"\xe9"]', "index 1: must be UTF-8 text, got byte 0xE9 at byte 6"),
        (json.dumps(record()).encode("utf-16"), "byte 0: must be UTF-8 text, got byte 0xFF .UTF-16"),
        (
            json.dumps(record()).encode() + b"\n\xff",
            f"line 2: must be UTF-8 text, got byte 0xFF at byte {len(json.dumps(record())) + 1}",
        ),
        (gzip.compress(lines(*TWO).encode(), mtime=0)[:-12], "the gzip data ends too early"),
        (gzip.compress(lines(*TWO).encode(), mtime=0)[:-4], "f.json: the gzip data ends too early"),
        (gzip.compress(lines(*TWO).encode(), mtime=0)[:-8] + b"\0" * 8, "f.json: cannot be read: CRC check failed"),
        (gzip.compress(lines(*TWO).encode(), mtime=0) + b"junk", "f.json: cannot be read: Not a gzipped file"),
        (b"\x1f\x8bnot gzip at all", "f.json: cannot be read: "),
        ("[" * 100_000, "index 0: must not be nested deeper than 100 levels"),
        ('{"a":' * 100_000, "line 1: must not be nested deeper than 100 levels"),
        (
            lines(record(metadata={"a": json.loads("[" * 150 + "]" * 150)})),
            "metadata.a.*nested deeper than 100",
        ),
        (
            lines(record(trial=1)).replace('"trial": 1', '"trial": ' + "9" * 5000),
            "holds a number with too many digits",
        ),
        (lines(record(metadata={"a": [float("nan")]})), r"line 1, metadata.a\[0\]: must be a finite number"),
        (lines(record(metadata={"a": float("inf")})), "line 1, metadata.a: must be a finite number"),
        (
            lines(record(recorded_score=float("nan"))),
            r"recorded_score: must be a number in \[0, 1\], got nan",
        ),
        (
            lines(record(metadata={"a": 1})).replace('"a": 1', '"a": 1e999'),
            "metadata.a: must be a finite number",
        ),
        (lines(record(conversation=[])), "line 1, conversation: must hold at least one interaction"),
        (lines({"agent": "v1", "task": "t", "answer_score": 0.5}), "line 1: unknown format: .*'agent'"),
        (lines({**record(), "agent": "v1"}), "line 1, agent: unknown key 'agent'"),
    ],
)
def test_a_file_that_cannot_be_read_says_what_is_wrong_and_where(read, content, message):
    """Broken files of every kind end in one clear error, never in a crash or a shorter list."""
    with pytest.raises(RecordsError, match=message):
        read(content)


def test_a_key_given_twice_is_refused_with_its_place(read):
    """Of two values for one key, the last does not win silently."""
    text = lines(record(metadata={"a": [{"b": 1, "c": 2}]})).replace('"c"', '"b"').replace('"language"', "")
    text = text.replace('"session_id": "s1"', '"session_id": "s1", "session_id": "s2"')
    with pytest.raises(RecordsError, match="2 problems") as caught:
        read(text)
    assert [p.field for p in caught.value.problems] == ["session_id", "metadata.a[0].b"]
    assert {p.message for p in caught.value.problems} == {"must occur once, but the object gives this key twice"}


def test_after_a_broken_line_the_next_lines_are_still_checked(read):
    """Every broken line is reported, and so is every wrong record between them."""
    good = json.dumps(record())
    content = "\n".join([good, good[:40], good[:-1], "junk", json.dumps(record("s3", trial=True)), good[5:], "[]"])
    with pytest.raises(RecordsError, match="problems in the conversations") as caught:
        read(content)
    assert [p.where for p in caught.value.problems] == ["line 2", "line 3", "line 5", "line 6", "line 7"]


def test_values_in_a_report_are_short(read):
    """A long value is cut to 60 characters."""
    with pytest.raises(RecordsError, match="trial: must be a whole number, got 'xxxx") as caught:
        read(lines(record(trial="x" * 10_000)))
    assert len(caught.value.problems[0].message) < 100


def test_the_agent_is_named_by_the_argument_else_by_the_file(read):
    """Only where the record does not name it; `agent` does not overrule a record."""
    nameless = record()
    del nameless["assistant_id"]
    read(lines(nameless), "gpt-4o.v2.jsonl.gz")
    assert [c.assistant_id for c in read_conversations("gpt-4o.v2.jsonl.gz")] == ["gpt-4o.v2"]
    assert [c.assistant_id for c in read_conversations("gpt-4o.v2.jsonl.gz", agent="x")] == ["x"]
    read(lines(record()), "other.json")
    assert [c.assistant_id for c in read_conversations("other.json", agent="x")] == ["v1"]


def test_what_a_file_leaves_out_stays_out(read):
    """Task and trial are not filled in by reading."""
    read(lines(record()))
    (conversation,) = read_conversations("f.json")
    assert conversation.model_dump(mode="json", exclude_unset=True) == record()


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A folder with files for two agents, and things that are no conversation files."""
    monkeypatch.chdir(tmp_path)
    for name in ("runs/b.json", "runs/a.jsonl", "runs/v2/c.json.gz", "runs/.hidden.json", "runs/.git/x.json"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = json.dumps([record(name)]).encode()
        path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    (tmp_path / "runs/README.md").write_text("not a conversation")
    (tmp_path / "none").mkdir()
    (tmp_path / "odd[1].json").write_text(json.dumps(record("odd")))
    return tmp_path


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        ("runs", ["runs/a.jsonl", "runs/b.json", "runs/v2/c.json.gz"]),
        ("runs/*.json", ["runs/b.json"]),
        ("runs/*.json*", ["runs/a.jsonl", "runs/b.json"]),
        ("**/*.gz", ["runs/v2/c.json.gz"]),
        ("r*", ["runs/a.jsonl", "runs/b.json", "runs/v2/c.json.gz"]),
        (
            ["runs/b.json", "runs", "./runs/../runs/a.jsonl"],
            ["runs/b.json", "runs/a.jsonl", "runs/v2/c.json.gz"],
        ),
        (("runs/b.json", "runs/b.json"), ["runs/b.json"]),
        ("odd[1].json", ["odd"]),
    ],
)
def test_paths_patterns_and_folders_are_expanded_in_order_and_read_once(tree, paths, found):
    """Sorted within a folder or pattern, otherwise as given; hidden files and other files are left alone."""
    assert [c.session_id for c in read_conversations(paths)] == found
    assert [c.session_id for c in read_conversations(iter([paths] if isinstance(paths, str) else paths))] == found


def test_absolute_paths_and_path_objects_are_paths(tree):
    """A path object reads as its text does."""
    assert [c.session_id for c in read_conversations(tree / "runs" / "b.json")] == ["runs/b.json"]
    assert len(list(read_conversations([tree / "runs", "runs"]))) == 3


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("none", "none: holds no file that ends in .json, .jsonl, .json.gz, .jsonl.gz, .eval, .traj"),
        ("runs/bb.json", "runs/bb.json: no such file; did you mean 'b.json'?"),
        ("runs/zzzzzzzzzz", "runs/zzzzzzzzzz: no such file; valid: 'a.jsonl', 'b.json'"),
        ("none/x.json", "none/x.json: no such file"),
        ("nowhere/x.json", "nowhere/x.json: no such file; the folder 'nowhere' does not exist either"),
        ("runs/*.csv", "runs/*.csv: no file matches this pattern"),
        ("none*", "none*: no file matches this pattern"),
    ],
)
def test_a_path_that_leads_nowhere_is_reported_with_the_nearest_file(tree, path, message):
    """The report of a wrong path stands beside the problems of the files that exist."""
    assert refused(path) == [message]
    (tree / "bad.json").write_text("{}")
    assert len(refused([path, "bad.json"])) == 3


def test_a_file_with_several_names_is_read_once(tree):
    """A link to it is the same file; the first name counts."""
    (tree / "runs/link.json").symlink_to(tree / "runs/b.json")
    (tree / "runs/zz.json").symlink_to("link.json")
    (tree / "other").symlink_to(tree / "runs")
    assert [c.session_id for c in read_conversations("runs")] == ["runs/a.jsonl", "runs/b.json", "runs/v2/c.json.gz"]
    assert [c.session_id for c in read_conversations(["runs/zz.json", "other/b.json"])] == ["runs/b.json"]


def test_what_is_no_file_in_a_folder_is_a_problem_of_that_name(tree):
    """A link that leads nowhere, or a pipe, from which nothing may ever come; folders are looked through."""
    (tree / "runs/dead.json").symlink_to("nowhere")
    os.mkfifo(tree / "runs/pipe.jsonl")
    (tree / "runs/folder.json").mkdir()
    assert refused("runs") == [
        "runs/pipe.jsonl: must be a regular file, got a pipe or device",
        "runs/dead.json: cannot be opened: No such file or directory",
    ]


@pytest.mark.parametrize(
    ("content", "keys"),
    [
        ({"samples": []}, "'samples'"),
        ([{"id": 1, "epoch": 1, "input": "x", "target": "y"}], "'id', 'epoch', 'input', 'target'"),
        ({f"k{n}": n for n in range(9)}, "'k0', 'k1', 'k2', 'k3', 'k4', 'k5', 'k6', 'k7', …"),
    ],
)
def test_a_file_in_no_known_format_is_told_so_once(read, content, keys):
    """Where nothing is like the native format, what is missing of that says nothing."""
    many = content * 3 if isinstance(content, list) else content
    with pytest.raises(RecordsError, match="1 problem") as caught:
        read(json.dumps(many))
    message = caught.value.problems[0].message
    assert message.startswith(f"unknown format: an object with the keys {keys}; if it is one of native")
    assert message.endswith(f", {FORMATS[-1]}, choose it with format= (--format on the command line)")
    with pytest.raises(RecordsError, match="session_id: is missing"):
        list(read_conversations(caught.value.problems[0].source, format="native"))


def test_data_that_were_packed_twice_are_told_so(read):
    """They are not called broken text."""
    with pytest.raises(RecordsError, match="the file was gzipped twice; unpack it once first"):
        read(gzip.compress(gzip.compress(lines(*TWO).encode())))


def test_a_packed_record_is_not_scanned_again_for_every_piece(tmp_path):
    """Packed data come in small pieces: one record of many megabytes is scanned a few times, not hundreds."""
    turns = [{"qa_id": "q", "query": "word " * 100, "assistant": "x"}] * 12_000
    data = json.dumps(record(conversation=turns)).encode()
    stream = io.BufferedReader(io.BytesIO(gzip.compress(data, 1)))
    text, scans = JsonText(stream), 0
    decode = text._json.raw_decode

    def counted(*arguments):
        nonlocal scans
        scans += 1
        return decode(*arguments)

    text._json.raw_decode = counted
    assert text.value()[0]["conversation"] == turns
    assert len(data) > 6_000_000
    assert scans < 15


def test_a_file_that_cannot_be_opened_is_a_problem_of_that_file(tree, monkeypatch):
    """The system's reason is given."""

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr("builtins.open", refuse)
        found = refused("runs/b.json")
    assert found == ["runs/b.json: cannot be opened: Permission denied"]


@pytest.mark.parametrize("paths", [None, 3, b"f.json", "", "  ", ["f.json", 3], [None], [b"f.json"], {}, "a\0b"])
def test_what_is_no_path_is_an_invalid_argument(paths):
    """The message shows what came."""
    with pytest.raises(InvalidArgument, match=r"paths must be .*, got "):
        read_conversations(paths)


def test_no_path_at_all_is_an_invalid_argument():
    """An empty list of paths is a mistake, not an empty data set."""
    with pytest.raises(InvalidArgument, match="paths must name at least one file, got none"):
        read_conversations([])


def test_arguments_are_checked_at_the_call():
    """A wrong format or agent is refused before any file is opened."""
    with pytest.raises(UnknownName, match="unknown format 'natve': did you mean 'native'"):
        read_conversations("f.json", format="natve")
    for agent in ("", " ", 3):
        with pytest.raises(InvalidArgument, match="agent must be text that is not blank, or None, got "):
            read_conversations("f.json", agent=agent)


@pytest.fixture
def pipe(tmp_path):
    """A named pipe that a second thread fills."""
    threads = []

    def make(content, name="pipe"):
        path = tmp_path / name
        os.mkfifo(path)
        thread = threading.Thread(target=path.write_bytes, args=[content.encode()])
        thread.start()
        threads.append(thread)
        return path

    yield make
    for thread in threads:
        thread.join(timeout=10)
        assert not thread.is_alive()


def test_a_pipe_gives_what_comes_before_a_bad_record(pipe):
    """What can be read once only is checked when it is reached."""
    content = lines(record("s1"), record("s2"), record("s3", trial="x", zzz=1), record("s4"))
    found = read_conversations(pipe(content))
    assert [next(found).session_id for _ in range(2)] == ["s1", "s2"]
    with pytest.raises(RecordsError, match="2 problems") as caught:
        next(found)
    assert {(p.where, p.field) for p in caught.value.problems} == {("line 3", "trial"), ("line 3", "zzz")}


def test_the_tasks_of_a_pipe_are_checked_when_it_has_ended(pipe, tmp_path):
    """Files and pipes are one data set: a session in both is found, after the last record."""
    (tmp_path / "f.json").write_text(json.dumps(record("s1")))
    found = read_conversations([tmp_path / "f.json", pipe(json.dumps([record("s0"), record("s1")]))])
    assert [next(found).session_id for _ in range(3)] == ["s1", "s0", "s1"]
    with pytest.raises(RecordsError, match=r"pipe, index 1, session_id: .* also at .*f\.json, line 1"):
        next(found)


def test_an_empty_pipe_holds_no_conversation(pipe):
    """Nothing came: that is an error here too."""
    found = read_conversations(pipe(""))
    with pytest.raises(RecordsError, match="pipe: holds no conversation"):
        next(found)


def test_a_file_that_changes_after_the_check_is_refused_where_it_is_bad(read, tmp_path):
    """What was checked is checked again when it is given out."""
    read(lines(record("s1"), record("s2")), "f.jsonl")
    found = read_conversations("f.jsonl")
    (tmp_path / "f.jsonl").write_text(lines(record("s1")) + "{")
    assert next(found).session_id == "s1"
    with pytest.raises(RecordsError, match=re.escape("f.jsonl, line 2: is incomplete")):
        next(found)


@pytest.mark.parametrize("layout", ["lines", "array", "gzip"])
def test_a_large_file_is_never_held_whole(tmp_path, layout):
    """Memory is needed for one record and for the ids, not for the file."""
    path = tmp_path / "large"
    body = record(metadata={"text": "word " * 4000})
    texts = (json.dumps({**body, "session_id": f"s{n}"}) for n in range(500))
    joined = "\n".join(texts) if layout != "array" else f"[{','.join(texts)}]"
    size = len(joined)
    path.write_bytes(gzip.compress(joined.encode(), 1) if layout == "gzip" else joined.encode())
    del joined
    assert size > 10e6
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_conversations(path)) == 500
        assert tracemalloc.get_traced_memory()[1] < size / 10
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("wrap", ["{}", "[{}]"], ids=["object", "array"])
def test_a_record_much_longer_than_a_piece_is_read_whole(read, wrap):
    """The pieces in which a file is read show nowhere, whatever stands at their edges."""
    values = [1.5e-7, 123456789, True, None, '\u00e9\U0001f600\\"\n', {"k": [False, -0.25, ""]}] * 4_000
    big = json.dumps(record(metadata={"v": values}), ensure_ascii=False)
    assert len(big) > 200_000
    read(wrap.replace("{}", big))
    (conversation,) = read_conversations("f.json")
    assert conversation.metadata["v"] == values
