"""Covariates of tasks or agents in the PyMC models."""

import runpy
import shutil
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from fits import counts
from pages import ROOT, blocks

from agentic_bayes import build_model
from agentic_bayes.errors import InvalidArgument

pytestmark = pytest.mark.stack

OUTCOMES = counts({"v1": [(1, 4), (2, 4), (4, 4)], "v2": [(3, 4), (2, 4), (4, 4)]})
TASKS = list(OUTCOMES["task"].values)


@pytest.mark.parametrize("method", ["hierarchical", "crossed"])
def test_a_column_of_tasks_shifts_each_tasks_mean(method):
    """The log density of the counts is that of a mean shifted by the standardised column times its coefficient."""
    length = pd.DataFrame({"length": [30.0, 10.0, 20.0]}, index=[TASKS[2], TASKS[0], TASKS[1]])
    model = build_model(OUTCOMES, method=method, covariates=length)
    assert model.coords["covariate"] == ("length",)
    plain = build_model(OUTCOMES, method=method)
    value = plain.initial_point()
    # two evaluations do not pay for a compiler
    log_density, of_plain = (
        each.compile_logp(vars=[each["successes"]], mode="FAST_COMPILE") for each in (model, plain)
    )
    assert log_density({**value, "beta": np.zeros(1)}) == pytest.approx(of_plain(value))
    # v1 and v2 solve the long task more often than the short one
    assert log_density({**value, "beta": np.ones(1)}) > log_density({**value, "beta": -np.ones(1)})


def test_a_column_of_agents_is_told_by_its_labels():
    """A table indexed by the agents shifts agents."""
    model = build_model(OUTCOMES, covariates=pd.DataFrame({"size": [7, 70]}, index=["v1", "v2"]))
    assert model.coords["covariate"] == ("size",)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pd.DataFrame({"x": [1.0, 2.0]}, index=["a", "b"]), "indexed by all 3 tasks or by all 2 agents, got 2 rows"),
        (pd.DataFrame({"x": [1.0, 1.0, 1.0]}, index=TASKS), "columns that are not constant"),
        (pd.DataFrame({"x": [1.0, np.nan, 2.0]}, index=TASKS), "finite columns"),
        (pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0]}, index=[*TASKS, TASKS[0]]), "one row per label"),
    ],
)
def test_covariates_that_do_not_fit_are_refused(table, message):
    """The message says what covariates must be and what came."""
    with pytest.raises(InvalidArgument, match=message):
        build_model(OUTCOMES, covariates=table)


def test_the_recipe_extends_the_model(tmp_path, monkeypatch, capsys):
    """The file covariate.py of the cookbook adds a term to the model; what it then does is sample it."""
    import pymc as pm

    def sample(**options):
        model = pm.modelcontext(None)
        assert model["small_effects"].eval({model["beta"]: [1.5]}, mode="FAST_COMPILE") == -3
        return SimpleNamespace(posterior={"beta": np.zeros((4, 10, 1))})

    (recipe,) = (each for each in blocks(ROOT / "docs" / "cookbook.md") if each.language == "python covariate.py")
    shutil.copy(ROOT / "examples" / "support_agent" / "results.csv", tmp_path)
    (tmp_path / "covariate.py").write_text(recipe.text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pm, "sample", sample)
    runpy.run_path("covariate.py")
    assert capsys.readouterr().out == "0.0\n"
