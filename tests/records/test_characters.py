"""Text that is no text, ids in two Unicode forms, bytes that are no UTF-8: the same for every reader."""

import gzip
import json
import unicodedata

import pytest

import agentic_bayes as ab
from agentic_bayes.errors import DoubtfulRecords, EvidenceError, RecordsError
from agentic_bayes.records.wire.characters import readable

HALF = "ok \ud83d"
WHOLE = "ok \ufffd"


def native(**changes):
    turn = {"qa_id": "q", "query": "?", "assistant": "!"}
    return {"session_id": "s", "assistant_id": "a", "task_id": "t", "conversation": [turn], **changes}


def attribute(name, value):
    return {"key": name, "value": {"stringValue": value}}


def logs(text):
    """One log with this answer in each format."""
    said = [{"type": "text", "content": text}]
    spoken = [{"role": "assistant", "parts": said, "finish_reason": "stop"}]
    asked = [{"role": "user", "parts": [{"type": "text", "content": "?"}]}]
    span = {"traceId": "1" * 32, "spanId": "1" * 16, "name": "chat m", "startTimeUnixNano": "1", "endTimeUnixNano": "2"}
    span["attributes"] = [
        attribute("gen_ai.operation.name", "chat"),
        attribute("gen_ai.input.messages", json.dumps(asked)),
        attribute("gen_ai.output.messages", json.dumps(spoken)),
    ]
    messages = [{"role": "user", "content": "?"}, {"role": "assistant", "content": text}]
    sample = {"id": 1, "epoch": 1, "input": "?", "target": "x", "messages": [], "scores": {}}
    evaluation = {"task": "t", "model": "m", "created": "2025-01-01T00:00:00+00:00", "dataset": {}, "config": {}}
    return {
        "native": [native(conversation=[{"qa_id": "q", "query": "?", "assistant": text}])],
        "openai": messages,
        "langchain": [{"type": "human", "content": "?"}, {"type": "ai", "content": text}],
        "tau-bench": [{"task_id": 1, "trial": 0, "reward": 1.0, "info": {"task": {}}, "traj": messages}],
        "inspect": {
            "version": 2,
            "status": "success",
            "eval": evaluation,
            "samples": [sample | {"output": {"completion": text, "choices": []}}],
        },
        "otel": {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"spans": [span]}]}]},
    }


@pytest.mark.parametrize("format", list(logs("")))
@pytest.mark.parametrize("broken", [HALF, "ok \0"])
def test_half_a_surrogate_pair_or_nul_is_replaced_counted_and_said_by_every_reader(tmp_path, format, broken):
    """The rest of the file is read."""
    path = tmp_path / "log.json"
    path.write_text(json.dumps(logs(broken)[format]))
    with pytest.warns(DoubtfulRecords, match=r"half a surrogate pair, or NUL\) were replaced") as said:
        (found,) = ab.read_conversations(path, format=format)
    assert found.conversation[0].assistant == WHOLE
    assert found.metadata["replaced_characters"] == 1
    assert len([one for one in said if "surrogate" in str(one.message)]) == 1


@pytest.mark.parametrize("format", ["openai", "langchain"])
@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
def test_an_answer_of_white_space_is_the_answer_for_every_reader(tmp_path, format, blank):
    """What the agent said is kept as it is."""
    path = tmp_path / "log.json"
    path.write_text(json.dumps(logs(blank)[format]))
    (found,) = ab.read_conversations(path, format=format)
    assert found.conversation[0].assistant == blank


def test_keys_that_only_differ_in_what_is_replaced_are_refused(tmp_path):
    """No value is lost to a replacement."""
    path = tmp_path / "log.json"
    path.write_text(json.dumps([native(metadata={chr(0xD83D): 1, chr(0xD83E): 2})]))
    with pytest.raises(RecordsError, match="without lone surrogates"):
        ab.read_conversations(path)


@pytest.mark.parametrize("field", ["session_id", "assistant_id", "task_id"])
def test_nul_in_an_id_is_refused_with_its_place(tmp_path, field):
    """A replacement could make two ids one."""
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, [native(), native(session_id="s2") | {field: "x\0y"}])))
    with pytest.raises(RecordsError, match=f"line 2, {field}: must not contain the character NUL"):
        ab.read_conversations(path)
    path.write_text(json.dumps(native(conversation=[{"qa_id": "q\0", "query": "?", "assistant": "!"}])))
    with pytest.raises(RecordsError, match=r"line 1, conversation\[0\]\.qa_id: must not contain the character NUL"):
        ab.read_conversations(path)


def test_nul_in_a_task_of_a_table_is_refused_with_its_row():
    """It is refused when it is read, not after the work is done."""
    import pandas as pd

    with pytest.raises(EvidenceError, match="row 2: task must not contain the character NUL"):
        ab.judges.evidence_from_table(pd.DataFrame({"task": ["a", "b\0"], "score": [1, 0]}))


def test_ids_have_one_unicode_form_and_it_is_said_once_where_that_merged_two(tmp_path):
    """Composed and decomposed letters look the same and are the same."""
    composed, apart = (unicodedata.normalize(form, "é") for form in ("NFC", "NFD"))
    path = tmp_path / "log.jsonl"
    records = [native(session_id=f"s{n}", task_id=name) for n, name in enumerate([composed, apart, apart, composed])]
    path.write_text("\n".join(map(json.dumps, records)))
    with pytest.warns(
        DoubtfulRecords, match="tasks whose names differ only in their Unicode form are the same"
    ) as said:
        found = list(ab.read_conversations(path))
    assert {one.task_id for one in found} == {composed}
    assert len(said) == 1
    path.write_text("\n".join(map(json.dumps, records[1:3])))
    assert {one.task_id for one in ab.read_conversations(path)} == {composed}


def test_a_readable_record_is_not_copied():
    """The usual case costs a look, no copy."""
    record = native(metadata={"é": ["😀", 1, None]})
    assert readable(record)[0] is record


@pytest.mark.parametrize("packed", [False, True])
def test_a_record_in_another_encoding_is_named_and_the_others_are_read(tmp_path, packed):
    """One line of Latin-1 among many of UTF-8 does not end the file."""
    lines = [json.dumps(native(session_id=f"é{n}"), ensure_ascii=False).encode() for n in range(1000)]
    lines[500] = lines[500].decode().encode("latin-1")
    data = b"\n".join(lines)
    path = tmp_path / "log.jsonl"
    path.write_bytes(gzip.compress(data) if packed else data)
    place = data.index(b"\xe9")
    with pytest.raises(RecordsError, match=f"line 501: must be UTF-8 text, got byte 0xE9 at byte {place}\n") as refused:
        ab.read_conversations(path)
    assert len(refused.value.problems) == 1
    with pytest.warns(DoubtfulRecords, match="1 of 1,000 records"):
        assert len(list(ab.read_conversations(path, on_error="skip"))) == 999


@pytest.mark.parametrize("form", ["native", "openai"])
def test_a_bad_byte_in_an_item_of_a_list_costs_that_item(tmp_path, form):
    """The rest of the list is checked."""
    chat = {"messages": logs("!")["openai"]}
    items = [native(session_id=f"s{n}") if form == "native" else chat | {"id": f"s{n}"} for n in range(3)]
    data = json.dumps(items).encode().replace(b"s1", b"s\xff")
    path = tmp_path / "log.json"
    path.write_bytes(data)
    with pytest.raises(RecordsError, match="index 1: must be UTF-8 text, got byte 0xFF at byte") as refused:
        ab.read_conversations(path)
    assert len(refused.value.problems) == 1
    with pytest.warns(DoubtfulRecords, match="1 of 3 records"):
        assert len(list(ab.read_conversations(path, on_error="skip"))) == 2


def test_objects_in_memory_are_read_as_files_are():
    """LangChain messages with half a surrogate pair give what their file would give."""
    from agentic_bayes.records.formats.messages.langchain import conversation_from_langchain

    with pytest.warns(DoubtfulRecords, match="half a surrogate pair"):
        found = conversation_from_langchain(logs(HALF)["langchain"], session_id="s", agent="a")
    assert found.conversation[0].assistant == WHOLE
