"""Logs of Inspect, as JSON and as zip files with members of every kind of packing."""

import copy
import io
import json
import os
import random
import struct
import threading
import zipfile
import zlib

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import json_values, reduced

from agentic_bayes.errors import DoubtfulRecords, RecordsError
from agentic_bayes.records.formats.detection import format_of
from agentic_bayes.records.read import read_conversations

STORED, DEFLATED, ZSTANDARD = 0, 8, 93

HEADER = {
    "version": 2,
    "status": "success",
    "eval": {
        "eval_id": "e1",
        "run_id": "r1",
        "created": "2026-01-01T00:00:00Z",
        "task": "weather",
        "task_id": "t1",
        "model": "openai/gpt-x",
        "dataset": {"name": "d", "samples": 3, "sample_ids": ["a", 2, "c"]},
        "config": {"epochs": 2},
    },
    "plan": {"steps": []},
    "results": {"total_samples": 6, "completed_samples": 4},
    "stats": {},
}

MESSAGES = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": [{"type": "text", "text": "attachment://abc"}, {"type": "image", "image": "data:"}]},
    {
        "role": "assistant",
        "content": [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "I look."}],
        "tool_calls": [
            {"id": "c1", "function": "look", "arguments": {"city": "attachment://city"}, "type": "function"}
        ],
    },
    {"role": "tool", "content": "rain", "tool_call_id": "c1", "function": "look"},
    {"role": "assistant", "content": "It rains.", "reasoning": "earlier versions put it here"},
]


def sample(identity, epoch, **changes):
    """A sample that answered and was scored."""
    return {
        "id": identity,
        "epoch": epoch,
        "input": "Weather?",
        "target": ["rain", "It rains."],
        "messages": copy.deepcopy(MESSAGES),
        "output": {"model": "gpt-x", "choices": [{"message": {"role": "assistant", "content": "It rains."}}]},
        "scores": {"match": {"value": "C", "answer": "rain"}, "speed": {"value": 3.5}},
        "metadata": {"level": 1},
        "events": [{"event": "model"}] * 3,
        "model_usage": {"m": {"input_tokens": 10, "output_tokens": 4}, "n": {"input_tokens": 1, "output_tokens": 2}},
        "total_time": 2.5,
        "working_time": 2.0,
        "started_at": "2026-01-01T00:00:01Z",
        "uuid": f"u-{identity}-{epoch}",
        "attachments": {"abc": "Is it wet in Rome?", "city": "Rome"},
        **changes,
    }


SAMPLES = [
    sample("a", 1),
    sample("a", 2, scores={"match": {"value": float("nan")}, "speed": {"value": 1}}),
    sample(2, 1, error={"message": "TimeoutError('sandbox')\nmore", "traceback": "", "traceback_ansi": ""}, output={}),
    sample(2, 2, error={"message": "CancelledError()", "traceback": "", "traceback_ansi": ""}, messages=[], output={}),
    sample("c", 1, scores={"match": {"value": "I"}}, limit={"type": "token", "limit": 100}),
    sample("c", 2, scores={"match": {"value": "P"}}, invalidation={"author": "me", "reason": "wrong key"}),
]


def zip_of(members, *, declared=None):
    """A zip file written by hand: name → (way of packing, data)."""
    file, directory = io.BytesIO(), io.BytesIO()
    for name, (method, data) in members:
        packed = data
        if method == DEFLATED:
            squeeze = zlib.compressobj(wbits=-15)
            packed = squeeze.compress(data) + squeeze.flush()
        elif method == ZSTANDARD:
            packed = zstandard.ZstdCompressor().compress(data)
        size = (declared or {}).get(name, len(data))
        sizes = struct.pack("<HHHHHIIIH", 20, 0, method, 0, 33, zlib.crc32(data), len(packed), size, len(name.encode()))
        offset = file.tell()
        # the header before the data has fields of its own, which may be longer than those in the directory
        file.write(b"PK\x03\x04" + sizes + struct.pack("<H", 4) + name.encode() + b"\x99\x99\x00\x00" + packed)
        directory.write(b"PK\x01\x02" + struct.pack("<H", 20) + sizes)
        directory.write(struct.pack("<HHHHII", 0, 0, 0, 0, 0, offset) + name.encode())
    begin, listed = file.tell(), directory.getvalue()
    file.write(listed)
    file.write(b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, len(members), len(members), len(listed), begin, 0))
    return file.getvalue()


def members_of(samples, header=HEADER, *, name="header.json", methods=(ZSTANDARD, DEFLATED, STORED)):
    """The members of a log, packed in turn in each of these ways."""
    listed = [(name, header), *((f"samples/{one['id']}_epoch_{one['epoch']}.json", one) for one in samples)]
    return [(n, (methods[i % len(methods)], json.dumps(value).encode())) for i, (n, value) in enumerate(listed)]


def as_zip(samples, header=HEADER, **options):
    return zip_of(members_of(samples, header, **options))


def as_json(samples, header=HEADER):
    return json.dumps({**header, "samples": samples}).encode()


@pytest.fixture
def read(tmp_path):
    """The records of these bytes, from a file whose name says nothing."""

    def run(data, **options):
        path = tmp_path / "f"
        path.write_bytes(data)
        return list(read_conversations(path, **options))

    return run


def test_a_zip_log_and_a_json_log_of_the_same_run_give_equal_records(read):
    """However the log is packed, and whatever the file is called."""
    expected = read(as_json(SAMPLES))
    assert len(expected) == 6
    for methods in ((ZSTANDARD,), (DEFLATED,), (STORED,), (ZSTANDARD, DEFLATED, STORED)):
        assert read(as_zip(SAMPLES, methods=methods)) == expected
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, (_, data) in members_of(SAMPLES):
            file.writestr(name, data)
    assert read(buffer.getvalue()) == expected


def test_a_sample_is_a_conversation_of_one_interaction(read):
    """Query, answer, calls with results, target, score, and who and what it was."""
    first = read(as_zip(SAMPLES))[0]
    assert (first.session_id, first.assistant_id, first.task_id, first.trial) == (
        "u-a-1",
        "openai/gpt-x",
        "weather/a",
        0,
    )
    assert first.context == "Be kind."
    assert first.recorded_score == 1
    assert first.error is None
    (turn,) = first.conversation
    assert (turn.qa_id, turn.query, turn.assistant) == ("weather/a", "Weather?", "It rains.")
    assert turn.ground_truth_assistant == "rain or It rains."
    (call,) = turn.agentic.tools_used
    assert (call.tool_name, call.parameters, call.result) == ("look", {"city": "Rome"}, "rain")
    assert turn.metadata["reasoning"] == ["hm", "earlier versions put it here"]
    metadata = first.metadata
    assert metadata["scores"] == {"match": {"value": "C", "answer": "rain"}, "speed": {"value": 3.5}}
    assert metadata["tokens"] == {"input": 11, "output": 6}
    assert metadata["times"] == {"total_time": 2.5, "working_time": 2.0, "started_at": "2026-01-01T00:00:01Z"}
    assert metadata["targets"] == ["rain", "It rains."]
    assert metadata["sample"] == {"level": 1}


def test_epochs_are_trials_and_an_agent_that_is_given_counts(read):
    """Epoch 1 is trial 0; the caller's name for the agent comes before the model's."""
    found = read(as_zip(SAMPLES), agent="mine")
    assert [(c.task_id, c.trial) for c in found][:2] == [("weather/a", 0), ("weather/a", 1)]
    assert {c.assistant_id for c in found} == {"mine"}


def test_a_score_that_is_nan_is_no_score(read):
    """It is not 0, and the record says why there is none."""
    second = read(as_zip(SAMPLES))[1]
    assert second.recorded_score is None
    assert second.error is None
    assert second.metadata["not_scored"] == "scorer 'match' gave no score (null or NaN)"
    assert second.metadata["scores"]["match"]["value"] is None
    assert second.metadata["numbers_not_finite"] == 1


def test_samples_that_broke_or_do_not_count_have_an_error_and_no_score(read):
    """An error, a cancellation and an invalidation are none of the agent's failures; a limit is."""
    found = read(as_zip(SAMPLES))
    assert [c.error for c in found[2:4]] == [
        "infrastructure: TimeoutError('sandbox')",
        "infrastructure: CancelledError()",
    ]
    assert [c.conversation[0].assistant for c in found[2:4]] == ["It rains.", None]
    assert [c.recorded_score for c in found[2:]] == [None, None, 0, None]
    assert found[4].error is None
    assert found[4].metadata["limit"] == {"type": "token", "limit": 100}
    assert found[5].error == "invalidated: wrong key"


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("success", None),
        ("started", "infrastructure: the run did not finish before the sample was scored"),
        ("cancelled", "infrastructure: the run was cancelled before the sample was scored"),
        ("error", "infrastructure: the run ended with an error before the sample was scored"),
    ],
)
def test_a_sample_without_scores_of_a_run_that_broke_off_is_no_attempt(read, status, error):
    """Of a run that came to its end, it is merely unscored; a sample with scores counts either way."""
    header = {**HEADER, "status": status, "results": {"total_samples": 2}}
    found = read(as_json([sample("a", 1, scores=None), sample("a", 2)], header))
    assert [c.error for c in found] == [error, None]
    assert [c.recorded_score for c in found] == [None, 1]


@pytest.mark.parametrize(
    ("value", "score"),
    [
        *[("C", 1), ("I", 0), ("P", 0.5), ("N", 0), (True, 1), (False, 0), (0.25, 0.25), ("0.75", 0.75)],
        *[("yes", 1), ("No", 0), ("maybe", None), ("nan", None), (None, None)],
        *[([1], 1), ({"a": 1}, 1), ([], None), ({}, None), (float("inf"), None), ("", None)],
    ],
)
def test_scores_count_as_in_inspect_where_they_are_a_number_from_0_to_1(read, value, score):
    """Anything else is no score, which the record says."""
    (found,) = read(
        as_json([sample("a", 1, scores={"s": {"value": value}})], {**HEADER, "results": None, "eval": SMALL})
    )
    assert found.recorded_score == score
    assert ("not_scored" in found.metadata) == (score is None)


SMALL = {"task": "weather", "model": "m", "run_id": "r", "dataset": {"samples": 1}}


def test_the_answer_is_the_output_or_what_was_said_last(read):
    """In this order: the completion, the message of the first choice, the last message of the agent."""
    outputs = [
        {"completion": "A", "choices": [{"message": {"content": "B"}}]},
        {"choices": [{"message": {"content": "B"}}]},
    ]
    found = read(
        as_json(
            [sample(n, 1, output=output) for n, output in enumerate([*outputs, {}])],
            {"status": "success", "eval": SMALL | {"dataset": {}}},
        )
    )
    assert [c.conversation[0].assistant for c in found] == ["A", "B", "It rains."]


def test_the_query_is_what_the_user_says_in_the_input(read):
    """An input of several messages is joined; attachments are put in, and what is no text is named."""
    messages = [*MESSAGES[:2], {"role": "user", "content": "Quick!"}]
    (found,) = read(as_json([sample("a", 1, input=messages)], {"status": "success", "eval": SMALL}))
    assert found.conversation[0].query == "Is it wet in Rome?\n(image)\n\nQuick!"


def test_calls_that_fail_or_that_the_provider_makes_are_calls(read):
    """The error of a tool is its result; a call within the model's message has its result there."""
    messages = [
        {"role": "user", "content": "?"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "w", "name": "web", "arguments": '{"q": 1}', "result": "found"}],
            "tool_calls": [{"id": "x", "function": {"name": "run", "arguments": "{bad"}}],
        },
        {"role": "tool", "content": "", "tool_call_id": "x", "error": {"type": "timeout", "message": "slow"}},
    ]
    (found,) = read(as_json([sample("a", 1, messages=messages)], {"status": "success", "eval": SMALL}))
    assert [(c.tool_name, c.parameters, c.result) for c in found.conversation[0].agentic.tools_used] == [
        ("web", {"q": 1}, "found"),
        ("run", {"(not JSON)": "{bad"}, {"error": {"type": "timeout", "message": "slow"}}),
    ]


def test_samples_of_old_logs_without_ids_of_their_own_do_not_collide(tmp_path):
    """Two tasks of one run have samples with the same ids; their sessions and tasks differ."""
    for task in ("one", "two"):
        header = {"status": "success", "eval": {"task": task, "model": "m", "run_id": "r"}}
        (tmp_path / f"{task}.json").write_bytes(as_json([sample(1, 1, uuid=None), sample(1, 2, uuid=None)], header))
    found = list(read_conversations(tmp_path))
    assert [c.session_id for c in found] == [f"r {task}/1 epoch {n}" for task in ("one", "two") for n in (1, 2)]


def test_a_folder_of_logs_is_read(tmp_path):
    """Zip logs end in ``.eval``; a log that names no model has its file's name as the agent."""
    for task in ("one", "two"):
        header = {"status": "success", "eval": {"task": task, "run_id": "r"}}
        (tmp_path / f"{task}.eval").write_bytes(as_zip([sample(1, 1)], header))
    found = list(read_conversations(tmp_path))
    assert [(c.assistant_id, c.task_id) for c in found] == [("one", "one/1"), ("two", "two/1")]


def test_samples_that_the_log_should_hold_and_does_not_are_said(read):
    """By the number of results or, without it, that of the data set times the epochs."""
    with pytest.warns(DoubtfulRecords, match="samples missing from the file: 5 of 6"):
        assert len(read(as_zip(SAMPLES[:1]))) == 1
    with pytest.warns(DoubtfulRecords, match="samples missing from the file: 4 of 6"):
        assert len(read(as_json(SAMPLES[:2], {**HEADER, "results": None}))) == 2


def test_a_log_without_its_last_member_is_that_of_a_run_that_did_not_finish(read):
    """What was scored counts, and the rest is no attempt."""
    with pytest.warns(DoubtfulRecords, match="samples missing from the file: 4 of 6"):
        found = read(
            as_zip(
                [sample("a", 1), sample("a", 2, scores=None)],
                {**HEADER, "status": None, "results": None},
                name="_journal/start.json",
            )
        )
    assert [c.error is None for c in found] == [True, False]


def test_the_order_of_the_members_of_a_json_log_does_not_matter(read):
    """Samples that come before the header wait for it."""
    expected = read(as_json(SAMPLES))
    keys = [*HEADER, "samples"]
    shuffle = random.Random(3)
    for _ in range(10):
        shuffle.shuffle(keys)
        assert read(json.dumps({key: {**HEADER, "samples": SAMPLES}[key] for key in keys}).encode()) == expected


def test_missing_attachments_are_said(read):
    """The reference stays in the place of the text."""
    with pytest.warns(DoubtfulRecords, match="texts whose attachments are missing from the file: 2"):
        (found,) = read(as_json([sample("a", 1, attachments={})], {"status": "success", "eval": SMALL}))
    assert found.conversation[0].agentic.tools_used[0].parameters == {"city": "attachment://city"}


def test_a_zip_file_that_is_no_log_says_so(problems):
    """The message names what a log must hold."""
    data = zip_of([("a.txt", (STORED, b"x"))])
    assert problems(data) == [
        ("", "", "is a zip file but not an Inspect log: it must hold header.json or _journal/start.json, got 'a.txt'")
    ]
    assert "no member" in problems(zip_of([]))[0][2]
    assert problems(as_zip([]))[0][2] == "holds no sample of the 6 that it should hold"


def test_a_zip_log_is_read_from_a_pipe(tmp_path):
    """A pipe cannot be read backwards; its bytes go to a temporary file."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(as_zip(SAMPLES)), daemon=True)
    writer.start()
    found = list(read_conversations(path))
    writer.join(timeout=10)
    assert [c.session_id for c in found] == [f"u-{one['id']}-{one['epoch']}" for one in SAMPLES]


def test_a_bad_member_is_named_and_the_others_are_checked(problems):
    """One report names every bad sample of a zip file."""
    members = members_of([sample(n, 1) for n in range(6)], {**HEADER, "results": None})
    members[2] = ("samples/1_epoch_1.json", (ZSTANDARD, b'{"id": 1, "epoch": 1'))
    members[4] = ("samples/3_epoch_1.json", (DEFLATED, b"[1, 2]"))
    members[5] = ("samples/4_epoch_1.json", (STORED, json.dumps(sample(4, 0)).encode()))
    members[6] = ("samples/5_epoch_1.json", (77, json.dumps(sample(5, 1)).encode()))
    assert problems(zip_of(members)) == [
        ("samples/1_epoch_1.json", "", "is incomplete: the file ends in the middle of it"),
        ("samples/3_epoch_1.json", "", "must be an object, got a list"),
        ("samples/4_epoch_1.json", "epoch", "must be a whole number ≥ 1, got 0"),
        ("samples/5_epoch_1.json", "", "cannot be read: That compression method is not supported"),
    ]


@pytest.mark.parametrize("method", [STORED, DEFLATED, ZSTANDARD])
def test_a_member_with_changed_bytes_is_refused(problems, method):
    """Its checksum tells, whatever the way of packing."""
    data = bytearray(as_zip(SAMPLES, methods=(method,)))
    place = data.index(b"samples/2_epoch_1.json") + 60
    data[place] ^= 0x20
    assert [where for where, *_ in problems(bytes(data))] == ["samples/2_epoch_1.json"]


@pytest.mark.parametrize("method", [DEFLATED, ZSTANDARD])
def test_a_member_that_unpacks_to_more_than_it_declares_is_refused(problems, method):
    """A small member cannot fill the memory; nor can one that declares a thousand times its size."""
    huge = (method, b'"' + b" " * (1 << 20) + b'"')
    name = "samples/a_epoch_1.json"
    members = [*members_of(SAMPLES[1:]), (name, huge)]
    found = problems(zip_of(members, declared={name: 1000}))
    assert found[0][0] == name
    found = problems(zip_of(members, declared={name: 1 << 31}))
    assert "must unpack to at most 200 times its packed size" in found[0][2]


def test_members_that_are_not_read_are_said(read):
    """Those of a log are known; any other is told of, above all one that may be a sample under an odd name."""
    known = ["summaries.json", "reductions.json", "_journal/start.json", "_journal/summaries/1.json", "samples/"]
    members = members_of(SAMPLES) + [(name, (STORED, b"" if name.endswith("/") else b"[]")) for name in known]
    assert len(read(zip_of(members))) == 6
    odd = ["samples/zz.JSON", "/samples/x.json", "Samples/x.json", "samples\\\\x.json", "samples/x.json.bak"]
    members += [(name, (STORED, b"{}")) for name in [*odd, "a.txt", "extra/b.json"]]
    with pytest.warns(DoubtfulRecords, match="members ignored") as caught:
        assert len(read(zip_of(members))) == 6
    messages = sorted(str(warning.message) for warning in caught)
    assert len(messages) == 2
    assert "members ignored because they do not belong to an Inspect log: 2 ('a.txt', 'extra/b.json')" in messages[1]
    assert (
        "members ignored because they are not named like samples (samples/….json): 5 ('samples/zz.JSON'" in messages[0]
    )


@pytest.mark.parametrize("method", [STORED, DEFLATED, ZSTANDARD])
def test_a_member_with_two_names_is_refused(problems, method):
    """The directory at the end of a zip file and what stands before the data must agree."""
    for changed in (b"samples/2_epoch_1.json", b"other.json"):
        members = [*members_of(SAMPLES, methods=(method,)), ("other.json", (method, b"{}"))]
        data = zip_of(members)
        place = data.index(changed)
        data = data[:place] + b"X" + data[place + 1 :]
        other = "X" + changed.decode()[1:]
        assert problems(data) == [
            (changed.decode(), "", f"must have one name, got {other!r} in front of its data"),
        ]


@pytest.mark.parametrize("content", [b"[]", b" [ ] "])
def test_a_member_that_is_an_empty_list_is_no_object(problems, content):
    """It is not taken for an object without any member."""
    name = "samples/x_epoch_1.json"
    assert problems(zip_of([*members_of(SAMPLES), (name, (STORED, content))])) == [
        (name, "", "must be an object, got []")
    ]
    assert problems(zip_of([("header.json", (STORED, content))])) == [("header.json", "", "must be an object, got []")]


def test_a_member_with_an_endless_name_is_named_in_short(problems):
    """A place in a report is short, and no number in it is too long to be read."""
    name = f"samples/{'9' * 5000}.json"
    ((where, _, message),) = problems(zip_of([*members_of(SAMPLES), (name, (STORED, b"[]"))]))
    assert message == "must be an object, got []"
    assert len(where) == 200
    members = [*members_of(SAMPLES), (name, (STORED, json.dumps(sample("a", 1)).encode()))]
    assert "must be unique within an agent" in problems(zip_of(members))[0][2]


@pytest.mark.parametrize("role", ["", "User", "developer", None, 5])
def test_a_message_of_an_unknown_role_is_refused(problems, role):
    """It is nobody's, above all not the system's."""
    bad = sample("a", 1)
    bad["messages"][1]["role"] = role
    ((where, field, message),) = problems(as_json([bad]))
    assert (where, field) == ("samples[0]", "messages[1].role")
    assert message.startswith("must be ")


def test_results_of_no_call_are_said(read):
    """They are counted in the metadata of the turn."""
    messages = copy.deepcopy(MESSAGES)
    messages[3]["tool_call_id"] = "other"
    with pytest.warns(DoubtfulRecords, match="some tool results belong to no recorded call"):
        (found,) = read(as_json([sample("a", 1, messages=messages)], {"status": "success", "eval": SMALL}))
    assert found.conversation[0].metadata["results_without_call"] == 1


def in_pieces(one):
    """The members of a sample of which each holds a part, as Inspect's large logs have them."""
    folder = f"samples/{one['id']}_epoch_{one['epoch']}"
    main = {key: value for key, value in one.items() if key not in ("messages", "attachments", "metadata", "events")}
    texts = json.dumps(one["messages"]).replace("attachment://abc", "attachment://0").replace("//city", "//1")
    pieces = {
        # the agent's last message is in the list twice: ranges say which messages are the sample's, in order
        "sample": {**main, "message_refs": [[0, 4], [5, 6]]},
        "metadata": one["metadata"],
        "messages/0": json.loads(texts)[:3],
        "messages/3": [*json.loads(texts)[3:], json.loads(texts)[4]],
        "attachments/0": ["Is it wet in Rome?"],
        "attachments/1": ["Rome"],
        "events/0": [{"event": "model"}],
        "events/stats": {},
        "skeleton": {},
    }
    return [(f"{folder}/{name}.json", (STORED, json.dumps(value).encode())) for name, value in pieces.items()]


def test_a_sample_in_pieces_is_read_like_a_whole_one(read):
    """Its messages, attachments and metadata are in members of their own; a log may mix both kinds."""
    members = members_of(SAMPLES)
    assert read(zip_of([*members[:1], *members[2:], *in_pieces(SAMPLES[0])]))[-1] == read(as_zip(SAMPLES))[0]


def test_a_sample_in_pieces_of_which_one_is_missing_is_refused(problems):
    """Half of its messages are not all."""
    pieces = [piece for piece in in_pieces(SAMPLES[0]) if not piece[0].endswith("messages/0.json")]
    (found,) = problems(zip_of([*members_of(SAMPLES[1:]), *pieces]))
    place = "samples/a_epoch_1/sample.json"
    missing = "items 0 to 2 are missing: samples/a_epoch_1/messages/3.json begins with item 3"
    assert found == (place, "messages", missing)


def test_a_sample_in_pieces_without_a_message_that_it_refers_to_is_refused(problems):
    """The members at the end may be missing: nothing but the ranges says so."""
    pieces = [piece for piece in in_pieces(SAMPLES[0]) if not piece[0].endswith("messages/3.json")]
    (found,) = problems(zip_of([*members_of(SAMPLES[1:]), *pieces]))
    assert found[1:] == ("message_refs[0]", "must be a range of the 3 messages, got [0, 4]")


def test_a_member_that_is_there_twice_counts_once(read):
    """The later one counts, as in every zip reader."""
    members = members_of(SAMPLES)
    old = ("samples/a_epoch_1.json", (STORED, json.dumps(sample("a", 1, scores={"s": {"value": 0}})).encode()))
    with pytest.warns(DoubtfulRecords, match="members that the zip file holds more than once .*: 1"):
        found = read(zip_of([members[0], old, *members[1:]]))
    assert found[0].recorded_score == 1
    assert len(found) == 6


def test_a_zip_log_cut_at_any_byte_is_refused(problems):
    """Truncation never passes as a shorter log."""
    data = as_zip(SAMPLES)
    for end in [*range(4, len(data), 97), *range(len(data) - 30, len(data))]:
        assert problems(data[:end])
    assert "is not a complete zip file" in problems(data[:-30])[0][2]


def test_a_json_log_cut_at_any_byte_is_refused(problems):
    """The same for JSON."""
    data = as_json(SAMPLES)
    for end in range(0, len(data) - 1, 61):
        assert problems(data[:end], format="inspect")


def test_a_log_is_recognised_by_what_is_in_it(tmp_path):
    """By its keys, in any order; other files with samples are not taken for logs."""

    def recognised(data):
        return format_of(io.BufferedReader(io.BytesIO(data)))

    assert recognised(as_json(SAMPLES)) == recognised(as_zip(SAMPLES)) == "inspect"
    assert recognised(json.dumps({"samples": SAMPLES, **HEADER}).encode()) == "inspect"
    assert recognised(b'{"eval": {"task": 1}, "samples": [{"id": 1}]}') == "native"
    assert recognised(b'{"samples": [{"id": 1, "prompt": "x"}]}') == "native"


def test_wrong_headers_are_named(problems):
    """In the words of the log."""
    assert ("", "eval.task", "must be given, got nothing") in problems(as_json(SAMPLES, {"eval": {}}), format="inspect")
    assert ("", "eval.model", "must be text that is not blank, or a whole number, got 1.5") in problems(
        as_json(SAMPLES, {"status": "success", "eval": {**SMALL, "model": 1.5}})
    )
    assert problems(as_json(None))[0][2] == "holds no sample of the 6 that it should hold"
    assert problems(as_json(7))[0][2] == "must be a list, got 7"


def test_samples_that_are_there_twice_are_refused(problems):
    """A sample is an attempt; the same one cannot count twice."""
    assert "must be unique within an agent" in problems(as_json([SAMPLES[0], SAMPLES[0]]))[0][2]


def test_values_nested_without_end_are_refused(problems):
    """No later step can run out of stack."""
    deep = sample("a", 1)
    for levels in (150, 5000):
        text = json.dumps({**HEADER, "samples": [deep | {"metadata": "DEEP"}]}).replace(
            '"DEEP"', '{"x":' + "[" * levels + "]" * levels + "}"
        )
        assert any("must not be nested deeper" in message for *_, message in problems(text.encode()))


fuzz = settings(max_examples=reduced(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def outcome(tmp_path):
    """The records of these bytes, or None where they were refused."""

    def run(data):
        path = tmp_path / "f"
        path.write_bytes(data)
        try:
            return list(read_conversations(path, format="inspect"))
        except RecordsError as error:
            refusal = error
        assert refusal.problems
        assert str(refusal).encode("utf-8")
        return None

    return run


@given(st.sampled_from([*SAMPLES[0]]), json_values, st.booleans())
@fuzz
@pytest.mark.filterwarnings("ignore::agentic_bayes.errors.DoubtfulRecords")
def test_a_sample_with_any_value_in_any_field_is_read_or_refused(outcome, key, value, packed):
    """No value crashes the reader, and no sample goes missing."""
    samples = [sample("z", 1, uuid="other"), {**sample("a", 1), key: value}]
    if packed:
        data = zip_of(
            [
                members_of([])[0],
                *((f"samples/{n}_epoch_1.json", (ZSTANDARD, json.dumps(s).encode())) for n, s in enumerate(samples)),
            ]
        )
    else:
        data = as_json(samples)
    found = outcome(data)
    assert found is None or len(found) == 2


@given(st.data())
@fuzz
@pytest.mark.filterwarnings("ignore::agentic_bayes.errors.DoubtfulRecords")
def test_a_zip_log_with_changed_bytes_is_read_or_refused(outcome, data):
    """Bytes replaced, inserted or removed anywhere crash nothing and lose nothing silently."""
    content = bytearray(as_zip(SAMPLES))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(content)))
        end = min(len(content), start + data.draw(st.integers(0, 4)))
        content[start:end] = data.draw(st.binary(max_size=4))
    outcome(bytes(content))


@pytest.mark.filterwarnings("ignore::agentic_bayes.errors.DoubtfulRecords")
def test_the_order_of_samples_changes_nothing_but_the_order(read):
    """Each sample gives the same record wherever it is."""
    expected = {c.session_id: c for c in read(as_zip(SAMPLES))}
    shuffled = SAMPLES[::-1]
    assert {c.session_id: c for c in read(as_zip(shuffled))} == expected
    assert {c.session_id: c for c in read(as_json(shuffled))} == expected
