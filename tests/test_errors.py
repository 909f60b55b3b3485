"""Errors say what is wrong, subclass the nearest builtin and survive a trip between processes."""

import inspect
import pickle
import re

import pytest

from agentic_bayes import errors
from agentic_bayes.errors import (
    AgenticBayesError,
    AgenticBayesWarning,
    InvalidArgument,
    Problem,
    RecordsError,
    UnknownName,
    did_you_mean,
)

CLASSES = [value for value in vars(errors).values() if inspect.isclass(value) and issubclass(value, Exception)]
BUILTINS = {
    "AgentError": RuntimeError,
    "AgenticBayesError": Exception,
    "InvalidArgument": ValueError,
    "UnknownName": LookupError,
    "RecordsError": ValueError,
    "EvidenceError": ValueError,
    "OutcomesError": ValueError,
    "EstimateError": ValueError,
    "ExecutorError": RuntimeError,
    "MissingPackage": ImportError,
    "ReplyError": ValueError,
    "SuiteError": ValueError,
    "AgenticBayesWarning": UserWarning,
    "DoubtfulRecords": UserWarning,
    "DamagedRun": UserWarning,
    "HookFailed": UserWarning,
    "NothingScored": UserWarning,
    "StoppedEarly": UserWarning,
    "NotConverged": UserWarning,
    "NotReproducible": UserWarning,
}


def test_the_tree_is_drawn_as_it_is():
    """Every class is in the drawing, with its builtin and under its parent."""
    drawn = re.findall(r"^[│ ]*[├└]── (\w+)(?: \((\w+)\))?", errors.__doc__ or "", flags=re.MULTILINE)
    assert {name for name, _ in drawn} == {c.__name__ for c in CLASSES} - {"AgenticBayesError", "AgenticBayesWarning"}
    for name, builtin in drawn:
        assert not builtin or BUILTINS[name].__name__ == builtin
    assert {c.__name__ for c in CLASSES} == set(BUILTINS)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_is_also_a_builtin(cls):
    """Whoever catches the nearest builtin catches ours; all errors have one base, all warnings another."""
    assert issubclass(cls, BUILTINS[cls.__name__])
    assert issubclass(cls, AgenticBayesWarning if issubclass(cls, Warning) else AgenticBayesError)


def test_an_unknown_name_is_an_invalid_argument():
    """A name that does not exist is an invalid argument, and carries what would have been valid."""
    error = UnknownName("agent", "supprot-v1", ["support-v1", "support-v2"])
    assert isinstance(error, InvalidArgument)
    assert str(error) == "unknown agent 'supprot-v1': did you mean 'support-v1'?"
    assert error.valid == ("support-v1", "support-v2")


@pytest.mark.parametrize(
    ("name", "valid", "hint"),
    [
        ("threshhold", ["unit", "threshold"], "did you mean 'threshold'?"),
        ("zzz", ["unit", "threshold"], "valid: 'unit', 'threshold'"),
        ("zzz", [], "there are none"),
        ("zzz", [f"n{i}" for i in range(14)], "'n11' and 2 more"),
    ],
)
def test_the_hint_names_the_nearest_or_lists_all(name, valid, hint):
    """A near name is proposed; without one the valid names are listed, a long list is cut."""
    assert did_you_mean(name, valid).endswith(hint)


def test_a_problem_says_where_it_is():
    """File, place and field come before the message; what is not known is left out."""
    assert str(Problem("a.json", "line 3", "trial", "must be ≥ 0")) == "a.json, line 3, trial: must be ≥ 0"
    assert str(Problem("a.json", "", "", "is empty")) == "a.json: is empty"
    assert str(Problem("", "", "", "is empty")) == "is empty"


def test_records_error_shows_all_problems_and_cuts_a_flood():
    """Every problem has a line; of more than fifty the rest is counted."""
    few = RecordsError([Problem("a", f"line {i}", "", "bad") for i in range(3)])
    assert str(few).count("bad") == 3
    assert str(few).startswith("3 problems")
    assert str(RecordsError([Problem("a", "", "", "bad")])).startswith("1 problem in")
    many = RecordsError([Problem("a", f"line {i}", "", "bad") for i in range(60)], total=900)
    assert str(many).count("bad") == 50
    assert str(many).startswith("900 problems")
    assert str(many).endswith("… and 850 more")


@pytest.mark.parametrize(
    "error",
    [
        UnknownName("agent", "x", ("a", "b")),
        RecordsError([Problem("f", "line 1", "trial", "bad")], total=7),
        *(cls("some text") for cls in CLASSES if cls not in (UnknownName, RecordsError)),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_comes_back_from_another_process(error):
    """Pickled and read back, an error is of the same kind, says the same and carries the same."""
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)
