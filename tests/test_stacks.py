"""Tests that use a package in which the two stacks differ run on both: one that is not marked so fails."""

from pathlib import Path

import pytest

pytest_plugins = ("pytester",)
CONFTEST = Path(__file__).with_name("conftest.py")
TESTS = """
import pytest
import agentic_bayes as ab

@pytest.fixture
def sampler():
    import nutpie

def test_imports(): import nutpie
def test_uses_arviz():
    from agentic_bayes.estimation.io import stacks
    stacks.is_major_one()
def test_has_a_sampler(sampler): pass

@pytest.mark.stack
def test_is_marked(sampler): pass
def test_counts(): assert ab.numerics.pass_at_k(2, 1, 1) == 0.5
"""


def test_a_test_that_depends_on_the_stack_must_be_marked(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test that imports or uses such a package, itself or in a fixture, fails without the mark."""
    pytester.makeconftest(CONFTEST.read_text("utf-8"))
    pytester.makeini("[pytest]\nmarkers = stack: both stacks\n")
    # stand-ins, since the packages themselves take seconds to import
    pytester.makepyfile(test_inner=TESTS, nutpie="", arviz="__version__ = '1.0'")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # nor other packages' plugins
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    done.assert_outcomes(failed=3, passed=2)
    for name, package in (("imports", "nutpie"), ("uses_arviz", "arviz"), ("has_a_sampler", "nutpie")):
        done.stdout.fnmatch_lines(f"FAILED *test_{name} - Failed: mark it `stack`*")
        assert f"it uses {package}" in done.stdout.str()
