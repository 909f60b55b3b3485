"""Fuzz: whatever is done to a file, the answer is a RecordsError or all of its records."""

import gzip
import json

import pytest
from cuts import STEPS, cuts
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from strategies import identifiers, json_values, reduced

from agentic_bayes.errors import RecordsError
from agentic_bayes.records.read import read_conversations

RECORDS = [
    {
        "session_id": f"s{n}",
        "assistant_id": "v1",
        "task_id": "é",
        "metadata": {"a": [1.5, None, True, 'x\\"€']},
        "conversation": [{"qa_id": "q", "query": "?", "assistant": "a"}],
    }
    for n in range(2)
]
LINES = "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in RECORDS).encode()
ARRAY = json.dumps(RECORDS, ensure_ascii=False, indent=1).encode()

fuzz = settings(max_examples=reduced(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def read(tmp_path):
    """The records of these bytes as dicts, or None where they were refused."""

    def run(data):
        path = tmp_path / "f"
        path.write_bytes(data)
        try:
            found = list(read_conversations(path))
        except RecordsError as error:
            problems, text = error.problems, str(error)
        else:
            assert found
            return [c.model_dump(mode="json", exclude_unset=True) for c in found]
        assert problems
        assert all(p.source == str(path) and p.message for p in problems)
        assert text.encode("utf-8").startswith(b"%d problem" % len(problems))
        return None

    return run


@pytest.mark.parametrize("step", STEPS)
def test_an_array_or_gzip_file_cut_anywhere_is_refused(read, step):
    """Truncation never passes as a shorter data set."""
    for data in (ARRAY, gzip.compress(LINES, mtime=0), gzip.compress(ARRAY, mtime=0)):
        assert read(data) == RECORDS
        assert not any(read(data[:end]) for end in cuts(data, step))


@pytest.mark.parametrize("step", STEPS)
def test_json_lines_cut_anywhere_are_refused_or_lose_whole_lines_only(read, step):
    """A cut between two lines cannot be seen; any other is refused."""
    ends = {0: None}
    first = LINES.index(b"\n")
    ends |= {first: RECORDS[:1], first + 1: RECORDS[:1], len(LINES) - 1: RECORDS, len(LINES): RECORDS}
    for end in sorted({*cuts(LINES, step), *ends}):
        assert read(LINES[:end]) == ends.get(end)


@given(st.data())
@fuzz
def test_changed_bytes_are_refused_or_change_what_they_stand_for(read, data):
    """Bytes replaced, inserted or removed anywhere crash nothing and lose no record."""
    content = bytearray(data.draw(st.sampled_from([LINES, ARRAY])))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(content)))
        end = min(len(content), start + data.draw(st.integers(0, 4)))
        content[start:end] = data.draw(st.binary(max_size=4) | st.sampled_from([b'"', b"{", b"]", b"\n", b","]))
    found = read(bytes(content))
    assert found is None or len(found) == 2


@given(st.binary(max_size=200))
@example(b"\x1f\x8b")
@example(b"\xef\xbb")
@example(b"{")
@example(b"[")
@example(b"\xef\xbb\xbf[")
@example(b"-")
@fuzz
def test_arbitrary_bytes_are_refused(read, data):
    """No random bytes are a conversation."""
    assert read(data) is None


@given(json_values)
@fuzz
def test_arbitrary_json_is_refused(read, value):
    """Valid JSON of another kind is refused, on a line or in an array."""
    assert read(json.dumps(value).encode()) is None
    assert read(json.dumps([value]).encode()) is None


PLACES = [
    *[(key,) for key in RECORDS[0]],
    *[("conversation", 0, key) for key in RECORDS[0]["conversation"][0]],
    ("conversation", 0),
    ("trial",),
    ("error",),
    ("recorded_score",),
    ("conversation", 0, "agentic"),
    ("conversation", 0, "ground_truth_agentic"),
    ("conversation", 0, "weight"),
]


@given(st.sampled_from(PLACES), json_values)
@fuzz
def test_any_value_in_any_field_is_kept_or_refused_by_name(read, place, value):
    """A record with a changed field comes back with this value, or the report names the field."""
    changed = json.loads(json.dumps(RECORDS[0]))
    target = changed
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = value
    found = read(json.dumps(changed).encode())
    if found is not None:
        for key in place:
            found = found[0][key] if key == place[0] else found[key]
        assert found == value or str(value) == found


@given(st.lists(identifiers, min_size=1, max_size=5, unique=True), st.randoms(use_true_random=False), st.booleans())
@settings(fuzz, max_examples=reduced(60))
def test_reordered_records_are_all_read_and_repeated_ones_refused(read, sessions, shuffle, repeat):
    """Order changes nothing but the order; a record that occurs twice is never dropped or kept silently."""
    records = [RECORDS[0] | {"session_id": session} for session in sessions]
    records += [shuffle.choice(records)] if repeat else []
    shuffle.shuffle(records)
    for data in (json.dumps(records), "\n".join(map(json.dumps, records))):
        assert read(data.encode()) == (None if repeat else records)
