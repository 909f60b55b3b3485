"""Read members of zip files piece by piece: stored, deflated or compressed with Zstandard (method 93)."""

from __future__ import annotations

import struct
import zipfile
import zlib
from io import BufferedReader, RawIOBase
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from agentic_bayes.records.wire.unpacking import RATIO, check_unpacked

_ZSTANDARD = 93
_ENCRYPTED = 0x1
_UTF8 = 0x800
_LOCAL_HEADER = struct.Struct("<4s22xHH")
_IN_MEMORY = 1 << 26
_CHUNK = 1 << 16
# the errors that zipfile raises for a damaged file
_BAD = (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, struct.error, zlib.error, EOFError, OSError)


def begins_zip(stream: BufferedReader) -> bool:
    """Whether the stream begins like a zip file."""
    return stream.peek(4)[:4] in (b"PK\x03\x04", b"PK\x05\x06")


def seekable(stream: BufferedReader) -> IO[bytes]:
    """The stream, or a temporary copy if it is a pipe: a zip file has its directory at the end."""
    if stream.seekable():
        return stream
    spooled = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - the caller closes it
    while data := stream.read(_CHUNK):
        spooled.write(data)
    spooled.seek(0)
    return spooled


class PackedFiles(zipfile.ZipFile):
    """A zip file, and how far its members may unpack."""

    max_ratio = RATIO


def directory(stream: IO[bytes]) -> zipfile.ZipFile:
    """The directory of a zip file."""
    try:
        found = PackedFiles(stream)
        found.max_ratio = getattr(stream, "max_ratio", RATIO)
        return found
    except _BAD as error:
        raise OSError(f"is not a complete zip file ({error}); was it cut off?") from None


def opened(packed: zipfile.ZipFile, member: zipfile.ZipInfo) -> BufferedReader:
    """The bytes of a member; reading damaged ones raises OSError."""
    check_unpacked(member.file_size, member.compress_size, getattr(packed, "max_ratio", RATIO))
    if member.flag_bits & _ENCRYPTED:
        raise OSError("must not be encrypted")
    try:
        source = _zstandard(packed, member) if member.compress_type == _ZSTANDARD else packed.open(member)
    except _BAD as error:
        raise OSError(str(error)) from None
    return BufferedReader(_Checked(source, member), _CHUNK)


def named_otherwise(packed: zipfile.ZipFile, member: zipfile.ZipInfo) -> str | None:
    """The name in front of a member's data if it differs from the directory's; None otherwise, or if unreadable."""
    try:
        name, _ = _local(packed, member)
    except OSError:
        return None  # reading the member will report what is wrong
    text = name.decode("utf-8" if member.flag_bits & _UTF8 else "cp437", "replace")
    return None if text == member.orig_filename else text


def _local(packed: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[bytes, int]:
    """The name in front of a member's data, and where the data begins."""
    raw = packed.fp
    assert raw is not None  # it is open
    raw.seek(member.header_offset)
    header = raw.read(_LOCAL_HEADER.size)
    if len(header) < _LOCAL_HEADER.size or header[:4] != b"PK\x03\x04":
        raise OSError("is not where the directory of the zip file says")
    _, name, extra = _LOCAL_HEADER.unpack(header)
    return raw.read(name), member.header_offset + _LOCAL_HEADER.size + name + extra


def _zstandard(packed: zipfile.ZipFile, member: zipfile.ZipInfo) -> IO[bytes]:
    """Unpack a member; the zip file's directory says where its bytes are."""
    import zstandard

    _, begin = _local(packed, member)
    slice_ = BufferedReader(_Slice(packed.fp, begin, begin + member.compress_size), _CHUNK)
    unpacked: IO[bytes] = zstandard.ZstdDecompressor().stream_reader(slice_, read_across_frames=True)
    return unpacked


class _Slice(RawIOBase):
    """A range of a file's bytes as a stream."""

    def __init__(self, file: Any, begin: int, end: int) -> None:
        self._file, self._at, self._end = file, begin, end

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._file.seek(self._at)
        data = self._file.read(min(len(buffer), self._end - self._at))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


class _Checked(RawIOBase):
    """The unpacked bytes, checked against the size and checksum that the member declares."""

    def __init__(self, source: IO[bytes], member: zipfile.ZipInfo) -> None:
        self._source, self._member = source, member
        self._taken = self._sum = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._source.read(len(buffer))
        except Exception as error:  # every compression method has its own errors
            raise OSError(f"the packed data is damaged ({error})") from None
        self._taken += len(data)
        self._sum = zlib.crc32(data, self._sum)
        declared = self._member.file_size
        if self._taken > declared or (not data and self._taken < declared):
            got = "more" if self._taken > declared else f"{self._taken:,}"
            raise OSError(f"must hold the {declared:,} bytes that it declares, got {got}")
        if not data and self._sum != self._member.CRC:
            raise OSError("the packed data is damaged (the checksum differs)")
        buffer[: len(data)] = data
        return len(data)
