"""Fixtures and rules shared by all tests."""

import builtins
import os
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]

# the same examples on every run of `make test`; `make fuzz` draws new ones
settings.register_profile("fixed", derandomize=True, print_blob=True, deadline=None, max_examples=10)
settings.register_profile("random", print_blob=True, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

# packages in which the two stacks differ; the package imports them inside functions only, so that every use is seen
STACKED = ("arviz", "nutpie", "pymc")
IMPORTED = pytest.StashKey[set[str]]()


@contextmanager
def stacked_imports() -> Iterator[set[str]]:
    """The packages of `STACKED` that our own code, or a test, imports meanwhile: loaded before or not."""
    imported: set[str] = set()
    original = builtins.__import__

    def watched(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        if name.startswith(STACKED):  # hundreds of thousands of imports do not
            package, importer = name.partition(".")[0], (globals or {}).get("__name__", "")
            if package in STACKED and importer.startswith(("agentic_bayes", "test_", "fits")):
                imported.add(package)
        return original(name, globals, locals, fromlist, level)

    builtins.__import__ = watched
    try:
        yield imported
    finally:
        builtins.__import__ = original


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the variants of tests that run the PyMC engine, as their parameters say."""
    for item in items:
        if "pymc" in item.name.partition("[")[2]:
            item.add_marker("stack")
        if item.get_closest_marker("stack") and not says_stack(item.path):
            raise pytest.UsageError(f"{item.nodeid} is marked `stack`, but .ci/run would not find its file")
    # each process compiles each shape of the data once, for some ten seconds: one worker gets the first tests
    items.sort(key=lambda item: not samples(item))


@cache
def says_stack(path: Path) -> bool:
    """Whether .ci/run finds a file, by the same words, among those that may hold tests marked `stack`."""
    return re.search(r"mark\.stack|ENGINES|pymc", path.read_text("utf-8")) is not None


def samples(item: pytest.Item) -> bool:
    """Whether a test names PyMC, NUTS or the engines: in its parameters, or in the code of it and its fixtures."""
    fixtures = getattr(item, "_fixtureinfo", None)
    found = [one.func for defined in fixtures.name2fixturedefs.values() for one in defined] if fixtures else []
    codes = [getattr(function, "__code__", None) for function in (getattr(item, "function", None), *found)]
    words = " ".join((item.name, *(text for code in codes for text in texts_in(code)))).lower()
    return any(word in words for word in ("pymc", "nuts", "sampler")) or "engines" in words.split()


def texts_in(code: Any) -> Iterator[str]:
    """The names in a function and its constants that are texts, its docstring among them."""
    yield from getattr(code, "co_names", ())
    for constant in getattr(code, "co_consts", ()):
        if isinstance(constant, str):
            yield constant
        elif hasattr(constant, "co_consts"):
            yield from texts_in(constant)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Note what a test and its fixtures import."""
    with stacked_imports() as item.stash[IMPORTED]:
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Fail a test that needs one of these packages and would not run on both stacks."""
    yield
    if item.stash[IMPORTED] and not item.get_closest_marker("stack"):
        used = ", ".join(sorted(item.stash[IMPORTED]))
        pytest.fail(f"mark it `stack`, so that it runs on both stacks: it uses {used}", pytrace=False)


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests note their runs in an index of their own, not in the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture
def small_files() -> Callable[[int], AbstractContextManager[None]]:
    """A limit to the bytes of any file that is written meanwhile: the disk is full, as far as a program can tell."""
    resource = pytest.importorskip("resource", reason="limits are set by Unix")

    @contextmanager
    def limited(size: int) -> Iterator[None]:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return limited


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    """Path of a public data file next to the project; the test is skipped where it is absent."""

    def find(name: str) -> Path:
        path = ROOT.parent / "shared" / "data" / name
        if not path.exists():
            pytest.skip(f"the public data file {name} is not next to this checkout")
        return path

    return find
