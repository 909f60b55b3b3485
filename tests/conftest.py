"""Fixtures shared by all tests."""

from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    """Path of a public data file beside the project; the test is skipped where it is absent."""

    def find(name: str) -> Path:
        path = ROOT.parent / "shared" / "data" / name
        if not path.exists():
            pytest.skip(f"the public data file {name} is not beside this checkout")
        return path

    return find
