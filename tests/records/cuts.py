"""Where a file is cut to show that a truncated one is never taken for a whole one."""

from __future__ import annotations

import pytest

STEPS = [pytest.param(1, marks=pytest.mark.slow), 11]
"""How many bytes apart the cuts are: each byte among the slow tests."""


def cuts(data: bytes, step: int) -> list[int]:
    """Every `step`-th length shorter than the data; also within characters of several bytes and just after `}` or `]`.

    A cut just after a bracket leaves a part that may be complete in itself.
    """
    return [
        end
        for end in range(len(data))
        if end % step == 0 or data[end] & 0xC0 == 0x80 or data[end - 1 : end] in (b"}", b"]")
    ]
