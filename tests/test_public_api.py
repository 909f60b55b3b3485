"""What people may rely on: the public names, their documentation, and the signatures that scripts use."""

import inspect
import re
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

import agentic_bayes as ab

# the root, then each namespace
ROOT = [
    "AgenticBayesError",
    "AgenticBayesWarning",
    "Conjugate",
    "Conversation",
    "Crossed",
    "Estimate",
    "Evidence",
    "Frequentist",
    "Hierarchical",
    "Interaction",
    "LLMJudge",
    "NearZero",
    "RecordedJudge",
    "ReferenceJudge",
    "Score",
    "ToolRubric",
    "Unscored",
    "assess",
    "assess_async",
    "build_model",
    "check_outcomes",
    "classify",
    "combine_outcomes",
    "compare",
    "count_outcomes",
    "errors",
    "estimate",
    "estimate_many",
    "evidence_from_results",
    "gate",
    "gaussia",
    "join_expected_tools",
    "join_references",
    "judges",
    "mean_scores",
    "metrics",
    "monitor",
    "numerics",
    "outcomes_from_results",
    "outcomes_from_table",
    "plan",
    "plot_comparison",
    "plot_diagnostics",
    "plot_forest",
    "plot_heatmap",
    "plot_judge_calibration",
    "plot_pass_curves",
    "plot_plan",
    "plot_posterior",
    "plot_prior",
    "plot_shrinkage",
    "plot_tools",
    "rank",
    "read_conversations",
    "reproduce",
    "threshold_curve",
    "types",
    "write_conversations",
    "write_report",
    "write_results",
]
NAMESPACES = {
    "gaussia": [
        "Agentic",
        "AgenticMetric",
        "AgenticResult",
        "Batch",
        "BayesianMode",
        "Dataset",
        "FrequentistMode",
        "Retriever",
        "ToolCorrectnessScore",
    ],
    "judges": [
        "Agreement",
        "AgreementMeasure",
        "JudgeCalibration",
        "MeanScores",
        "Proportion",
        "agreement",
        "calibrate_judge",
        "evidence_from_table",
        "judge_agreement",
        "labels_needed",
        "mean_scores",
        "sample_for_labelling",
    ],
    "metrics": [
        "agent_consistency",
        "agent_reliability",
        "make_metric",
        "metric_correlations",
        "metric_names",
        "session_scores",
        "tool_diagnostics",
    ],
    "types": [
        "Comparison",
        "Diagnostics",
        "ExpectedCall",
        "ExpectedTools",
        "Gate",
        "Grader",
        "ManyEstimates",
        "ManyGates",
        "Matcher",
        "Plan",
        "ProgressBar",
        "Ranking",
        "Reproduction",
        "Sensitivity",
        "SessionScore",
        "StoppingRule",
        "Store",
        "ThresholdCurve",
        "TierProbabilities",
        "ToolCall",
        "ToolDiagnostics",
        "ToolUse",
        "TrialCounts",
        "Usage",
    ],
}
PUBLIC = [*ROOT, *(f"{space}.{name}" for space, names in NAMESPACES.items() for name in names)]
# the root of 0.1, of which every name stands or is in the changelog
FIRST_EDITION = """
Agentic AgenticBayesError AgenticBayesWarning AgenticMetric AgenticResult Agreement Batch BayesianMode Comparison
Conversation Dataset Diagnostics DoubtfulRecords Estimate EstimateError Evidence EvidenceError ExpectedCall
ExpectedTools FrequentistMode Gate Grader Interaction InvalidArgument JudgeCalibration LLMJudge Matcher
MissingPackage NotConverged NotReproducible NothingScored OutcomesError Plan Prior ProgressBar RecordedJudge
RecordsError ReferenceJudge Reproduction Retriever Score StoppedEarly SuiteError StoppingRule Store
TierProbabilities ToolCall ToolCorrectnessScore ToolDiagnostics ToolRubric ToolUse UnknownName Unscored Usage
agreement assess assess_async build_model calibrate_judge check_outcomes classify combine_outcomes compare
count_outcomes estimate evidence_from_table gate join_expected_tools judge_agreement labels_needed make_metric
metric_correlations metric_names monitor numerics outcomes_from_table plan plot_comparison plot_diagnostics
plot_forest plot_heatmap plot_judge_calibration plot_pass_curves plot_plan plot_posterior plot_prior plot_shrinkage
plot_tools rank read_conversations reproduce sample_for_labelling session_scores superiority tool_diagnostics
write_conversations write_report write_results
"""
REQUIRED = inspect.Parameter.empty
# function → its positional parameters, then its keyword-only ones with their defaults
SIGNATURES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "count_outcomes": (
        ["evidence"],
        {
            "unit": "conversation",
            "indicator": "answer",
            "threshold": 0.7,
            "tool_threshold": 1.0,
            "agents": "separate",
            "errors": "unscored",
        },
    ),
    "outcomes_from_table": (
        ["table"],
        {
            "agent": "agent",
            "task": "task",
            "trial": "trial",
            "correct": "correct",
            "successes": None,
            "trials": None,
        },
    ),
    "combine_outcomes": (["outcomes"], {"names": None, "allow": ()}),
    "check_outcomes": (["outcomes"], {}),
    "estimate": (
        ["outcomes", "method"],
        {
            "k": (1, 3, 5),
            "ci_prob": 0.95,
            "ci_kind": "eti",
            "engine": "auto",
            "judge_labels": None,
            "random_seed": 0,
        },
    ),
    "Hierarchical": (
        [],
        {
            "rho": None,
            "kappa": None,
            "mu": None,
            "m": None,
            "tau": None,
            "pool_agents": True,
            "inflate": False,
        },
    ),
    "Crossed": ([], {"rho": None, "theta": None, "sigma": None, "pool_agents": False}),
    "Conjugate": ([], {"prior": (1.0, 1.0), "pool_tasks": False}),
    "Frequentist": ([], {"estimator": "unbiased"}),
    "compare": (
        ["est", "agent"],
        {"baseline": REQUIRED, "metric": "pass^1", "estimand": "population", "rope": 0.02, "tasks": "shared"},
    ),
    "rank": (["est"], {"metric": "pass^1", "estimand": "population", "tasks": "shared"}),
    "gate": (
        ["est", "agent"],
        {
            "at_least": REQUIRED,
            "confidence": 0.95,
            "metric": "pass^1",
            "estimand": "population",
            "baseline": None,
            "margin": 0.0,
        },
    ),
    "plan": (
        ["est", "agent"],
        {
            "metric": "pass^1",
            "mu": None,
            "rho": None,
            "budget": None,
            "width": None,
            "at_least": None,
            "confidence": 0.95,
            "cost_per_trial": 1,
            "cost_per_task": 0,
            "random_seed": 0,
        },
    ),
    "monitor": ([], {"at_least": None, "width": None, "metric": "pass^1", "confidence": 0.95, "random_seed": 0}),
    "assess": (
        ["conversations"],
        {
            "judge": REQUIRED,
            "tool_rubric": ab.ToolRubric(),
            "metrics": (),
            "concurrency": 8,
            "progress": None,
            "store": None,
        },
    ),
    "read_conversations": (["paths"], {"format": "auto", "agent": None}),
    "write_conversations": (["conversations", "path"], {}),
    "write_report": (
        ["est", "path"],
        {
            "evidence": None,
            "conversations": None,
            "agent": None,
            "baseline": None,
            "metric": "pass^1",
            "estimand": None,
            "at_least": None,
            "confidence": 0.95,
            "store": None,
            "source": "FILE",
        },
    ),
    "write_results": (["est", "folder"], {"evidence": None, "counting": None, "command": (), "also": ()}),
    "reproduce": (["folder"], {}),
    "LLMJudge": (["model"], {"use_structured_output": True}),
    "ToolRubric": ([], {"weights": None, "threshold": 1.0}),
    "gaussia.Agentic.run": (
        ["retriever"],
        {
            "model": REQUIRED,
            "k": 3,
            "threshold": 0.7,
            "tool_threshold": 1.0,
            "tool_weights": None,
            "statistical_mode": ab.gaussia.FrequentistMode(),
            "use_structured_output": True,
            "require_tools": False,
            "verbose": False,
        },
    ),
    "plot_posterior": (["est"], {"metric": "pass^1", "ref_val": None, "rope": None}),
    "plot_comparison": (["comparison"], {"ax": None}),
    "plot_diagnostics": (["est"], {"ax": None}),
    "plot_forest": (
        ["est"],
        {"of": "agents", "agent": None, "metric": "pass^1", "estimand": "population", "ref_val": None},
    ),
    "plot_heatmap": (["est"], {"metric": "pass^1", "ax": None}),
    "plot_prior": (["est"], {"agent": None, "metric": "pass^1", "ax": None}),
    "plot_shrinkage": (["est"], {"agent": None, "metric": "pass^1", "ax": None}),
    "numerics.pass_at_k": (["n", "c", "k"], {}),
    "numerics.pass_pow_k": (["n", "c", "k"], {}),
}
BAYESIAN_MODE = {
    "mc_samples": 5000,
    "ci_level": 0.95,
    "dirichlet_prior": 1.0,
    "beta_prior_a": 1.0,
    "beta_prior_b": 1.0,
    "rng_seed": 42,
}


def public(name: str) -> Any:
    """What a public name stands for: of the root, or of a namespace."""
    return attrgetter(name)(ab)


def test_the_public_names_are_these():
    """`__all__` of the root is exactly the list above, sorted, and so is that of every namespace."""
    assert ab.__all__ == ROOT
    for space, names in NAMESPACES.items():
        assert public(space).__all__ == names
    for names in (ROOT, *NAMESPACES.values()):
        assert sorted(names) == names


def test_names_of_the_first_edition_stand_or_are_in_the_changelog():
    """A public name of 0.1 is still in the root, or the section on 0.2 says where it went."""
    changelog = (Path(__file__).resolve().parents[1] / "CHANGELOG.md").read_text("utf-8")
    (section,) = re.findall(r"^## 0\.2\.0 .*?(?=^## )", changelog, re.MULTILINE | re.DOTALL)
    first = set(FIRST_EDITION.split())
    named = set(re.findall(r"`(\w+)[`(]", section))
    assert first - set(ROOT) - named == set()
    moved = {name.rpartition(".")[2] for name in PUBLIC if "." in name} | set(ab.errors.__all__)
    assert first - set(ROOT) - moved == {"Prior", "superiority"}


def test_the_root_fits_on_a_screen():
    """The root has at most 60 names, of which completion shows no others."""
    assert len(ROOT) <= 60
    assert [name for name in dir(ab) if not name.startswith("_")] == ROOT


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_resolves_and_is_documented(name):
    """Every public name is there, is listed by `dir`, and says what it is."""
    value = public(name)
    space, _, last = name.rpartition(".")
    assert last in dir(public(space) if space else ab)
    # of a class a docstring of its own, not one that a base class or `dataclass` made
    text = (vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__) or ""
    assert len(text.strip()) > 15
    assert not text.startswith(f"{last}(")


def test_an_unknown_name_is_an_attribute_error():
    """A name that does not exist is refused as Python does it."""
    with pytest.raises(AttributeError, match="'agentic_bayes' has no attribute 'estimat'"):
        _ = ab.estimat  # type: ignore[attr-defined]
    with pytest.raises(ImportError, match="cannot import name 'estimat'"):
        from agentic_bayes import estimat  # type: ignore[attr-defined]  # noqa: F401


def test_names_of_gaussia_are_the_same_records():
    """`Dataset` and `Batch` are `Conversation` and `Interaction` themselves."""
    assert ab.gaussia.Dataset is ab.Conversation
    assert ab.gaussia.Batch is ab.Interaction


def parameters(value: Any) -> dict[str, inspect.Parameter]:
    """What can be given by name."""
    found = inspect.signature(value).parameters
    return {
        name: parameter
        for name, parameter in found.items()
        if name not in ("self", "cls")
        and not name.startswith("_")
        and parameter.kind is not inspect.Parameter.VAR_KEYWORD
    }


def documented(value: Any) -> set[str]:
    """Names described under Parameters or Attributes of a numpydoc docstring."""
    text = inspect.cleandoc(value.__doc__ or "")
    sections = re.split(r"^(\w[\w ]*)\n-{3,}$", text, flags=re.MULTILINE)
    bodies = dict(zip(sections[1::2], sections[2::2], strict=True))
    lines = "\n".join(bodies.get(name, "") for name in ("Parameters", "Attributes")).splitlines()
    entries = [line.split(" : ")[0] for line in lines if " : " in line and not line.startswith(" ")]
    return {name.strip().lstrip("*") for entry in entries for name in entry.split(",")}


CALLABLES = [
    name
    for name in PUBLIC
    if callable(public(name)) and not getattr(public(name), "_is_protocol", False) and name != "assess_async"
]


def has_own_parameters(value: Any) -> bool:
    """Whether it is a function, or a class that says what it takes."""
    if not inspect.isclass(value):
        return True
    return not issubclass(value, Warning | Exception) or "__init__" in vars(value)


@pytest.mark.parametrize("name", [name for name in CALLABLES if has_own_parameters(public(name))])
def test_every_parameter_is_documented(name):
    """Every parameter of every public function and class is described in its numpydoc docstring."""
    value = public(name)
    assert set(parameters(value)) - documented(value) == set()


# methods that modules of the package call on each other's objects: one line says enough
PLUMBING = {
    "AgenticResult.of",
    "BayesianMode.pass_values",
    "Estimate.agent_index",
    "FrequentistMode.pass_values",
    "NearZero.cdf",
    "NearZero.isf",
    "NearZero.logpdf",
    "NearZero.ppf",
    "NearZero.rvs",
    "Prior.from_dict",
    "Store.add_all",
    "Store.get",
}
METHODS = [
    (name, method)
    for name in PUBLIC
    if inspect.isclass(public(name)) and public(name).__module__.startswith("agentic_bayes")
    for method, value in vars(public(name)).items()
    if not method.startswith("_") and inspect.isroutine(getattr(value, "__func__", value))
]


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_every_public_method_is_documented(name, method):
    """Every public method says what it does and describes its parameters."""
    value = getattr(public(name), method)
    assert (value.__doc__ or "").strip()
    assert f"{public(name).__name__}.{method}" in PLUMBING or set(parameters(value)) <= documented(value)


def test_the_check_of_documentation_sees_a_gap():
    """A parameter without description is found; joint and starred entries count."""

    def f(a, b, *c, d):
        """Do.

        Parameters
        ----------
        a, b : int
            Two.
        *c : int
            More, d : not an entry.
        """

    assert set(parameters(f)) - documented(f) == {"d"}


def test_assess_async_takes_what_assess_takes():
    """The two ways to assess have one signature, described once."""
    assert inspect.signature(ab.assess_async).parameters == inspect.signature(ab.assess).parameters
    assert "`assess`" in (ab.assess_async.__doc__ or "")


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_are_what_scripts_rely_on(name):
    """Data comes first and by position, everything else by keyword, with the documented defaults."""
    positional, keywords = SIGNATURES[name]
    found = parameters(public(name))
    by_position = [n for n, parameter in found.items() if parameter.kind is not inspect.Parameter.KEYWORD_ONLY]
    assert by_position == positional
    assert {n: found[n].default for n in keywords if n in found} == keywords
    assert all(found[n].default is not REQUIRED for n in found if n not in (*positional, *keywords))


def test_bayesian_mode_has_gaussias_arguments():
    """`BayesianMode` takes Gaussia's arguments, in Gaussia's order, with Gaussia's defaults."""
    found = parameters(ab.gaussia.BayesianMode)
    assert [(name, parameter.default) for name, parameter in found.items()] == list(BAYESIAN_MODE.items())
    assert parameters(ab.gaussia.FrequentistMode) == {}
