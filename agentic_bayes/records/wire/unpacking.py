"""The limit on how much packed data may expand, for gzip and for members of zip files."""

from __future__ import annotations

import gzip
from io import BufferedReader, RawIOBase
from typing import Any

RATIO = 200.0
ABSURD = 1 << 26
"""Data that unpack to more than `ABSURD` bytes and more than `RATIO` times their packed size are refused."""


class PackedReader(BufferedReader):
    """The bytes of a file, which may be packed, and how far they may unpack."""

    max_ratio = RATIO


def check_unpacked(unpacked: int, packed: int, max_ratio: float) -> None:
    """Refuse data that unpack too far."""
    if unpacked > max(ABSURD, max_ratio * packed):
        raise OSError(
            f"must unpack to at most {max_ratio:,.0f} times its packed size, got {unpacked:,} bytes packed into "
            f"{packed:,}; raise the limit with max_ratio= (--max-ratio) if you trust the file"
        )


def unpacked_gzip(stream: BufferedReader) -> BufferedReader:
    """The unpacked bytes of a gzipped stream; reading too many raises OSError."""
    return BufferedReader(_LimitedGzip(stream))


class _Counted:
    """A stream that counts what was read from it."""

    def __init__(self, stream: BufferedReader) -> None:
        self._stream = stream
        self.taken = 0

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self.taken += len(data)
        return data


class _LimitedGzip(RawIOBase):
    """The unpacked bytes, checked against the packed ones."""

    def __init__(self, stream: BufferedReader) -> None:
        self._packed = _Counted(stream)
        self._gzip = gzip.GzipFile(fileobj=self._packed)  # type: ignore[call-overload]
        self._max_ratio = getattr(stream, "max_ratio", RATIO)
        self._taken = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._gzip.read1(len(buffer))
        self._taken += len(data)
        check_unpacked(self._taken, self._packed.taken, self._max_ratio)
        buffer[: len(data)] = data
        return len(data)
