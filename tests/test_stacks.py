"""Tests that use a package in which the two stacks differ run on both: one that is not marked so fails."""

from pathlib import Path

import pytest

pytest_plugins = ("pytester",)
pytestmark = pytest.mark.stack
CONFTEST = Path(__file__).with_name("conftest.py")
TESTS = """
import pandas, pytest
import agentic_bayes as ab

@pytest.fixture
def picture():
    import matplotlib.figure

def test_imports(): import nutpie
def test_uses_arviz():
    from agentic_bayes.estimation.io import stacks
    stacks.arviz()
def test_draws():
    table = pandas.DataFrame({"task": ["t"], "successes": [1], "trials": [2]})
    ab.plot_posterior(ab.estimate(ab.outcomes_from_table(table)))
def test_has_a_picture(picture): pass

@pytest.mark.stack
def test_is_marked(picture): pass
def test_counts(): assert ab.numerics.pass_at_k(2, 1, 1) == 0.5
"""


def test_a_test_that_depends_on_the_stack_must_be_marked(pytester: pytest.Pytester) -> None:
    """A test that imports, uses or draws with such a package, itself or in a fixture, fails without the mark."""
    pytester.makeconftest(CONFTEST.read_text("utf-8"))
    pytester.makeini("[pytest]\nmarkers = stack: both stacks\n")
    pytester.makepyfile(test_inner=TESTS)
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:agentic_bayes")
    done.assert_outcomes(failed=4, passed=2)
    for name, package in (("imports", "nutpie"), ("uses_arviz", "arviz"), ("draws", "matplotlib")):
        done.stdout.fnmatch_lines(f"FAILED *test_{name} - Failed: mark it `stack`*")
        assert f"it uses {package}" in done.stdout.str()
