"""Packed files unpack so far and no further."""

import gzip
import io
import json
import time
import zipfile

import pytest

from agentic_bayes.errors import InvalidArgument, RecordsError
from agentic_bayes.records.read import read_conversations
from agentic_bayes.records.wire import unpacking

TURN = {"qa_id": "q", "query": "?", "assistant": "a" * 300_000}
RECORD = json.dumps({"session_id": "s", "assistant_id": "a", "conversation": [TURN]}).encode()


@pytest.fixture
def small(monkeypatch):
    """The limit holds from a hundred kilobytes on, so that the tests need no large files."""
    monkeypatch.setattr(unpacking, "ABSURD", 100_000)


def test_gzip_that_unpacks_too_far_is_refused_with_the_way_to_allow_it(tmp_path, small):
    """The ratio and both sizes are stated."""
    path = tmp_path / "log.json.gz"
    path.write_bytes(gzip.compress(RECORD))
    with pytest.raises(RecordsError, match=r"at most 200 times its packed size, got .* bytes packed into .*-max-ratio"):
        read_conversations(path)
    assert len(list(read_conversations(path, max_ratio=2000))) == 1
    with pytest.raises(InvalidArgument, match="max_ratio must be a number ≥ 1"):
        read_conversations(path, max_ratio=0)


def test_usual_logs_unpack_without_a_word(tmp_path):
    """Below 64 MiB any ratio is fine."""
    path = tmp_path / "log.json.gz"
    path.write_bytes(gzip.compress(RECORD))
    assert len(list(read_conversations(path))) == 1


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path):
    """A gigabyte of blanks in a megabyte: only the first 64 MiB are read."""
    path = tmp_path / "bomb.json.gz"
    blanks = gzip.compress(b" " * (1 << 22), 9)
    path.write_bytes(blanks * 256)
    begin = time.process_time()
    with pytest.raises(RecordsError, match="--max-ratio"):
        read_conversations(path)
    assert time.process_time() - begin < 10


def test_members_of_zip_files_have_the_same_limit(tmp_path, small):
    """Inspect's logs are zip files."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("header.json", " " * 500_000)
    path = tmp_path / "log.eval"
    path.write_bytes(packed.getvalue())
    with pytest.raises(RecordsError, match="at most 200 times its packed size"):
        read_conversations(path)
    with pytest.raises(RecordsError, match="problem") as other:
        read_conversations(path, max_ratio=2000)
    assert "packed size" not in str(other.value)
