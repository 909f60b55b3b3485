"""Makes metrics by name: the built-in ones, and those that other packages register as entry points."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from agentic_bayes.errors import InvalidArgument, UnknownName
from agentic_bayes.evidence.score import Grader

__all__ = ["GROUP", "make_metric", "metric_names"]

GROUP = "agentic_bayes.metrics"
"""Entry-point group in which a package names its own metrics: a class or function that makes a grader."""

# name → (module, class)
_BUILT_IN = {
    "argument_correctness": ("model_metrics", "ArgumentCorrectness"),
    "coherence": ("embedding_metrics", "Coherence"),
    "confidence": ("model_metrics", "Confidence"),
    "loop_detection": ("embedding_metrics", "LoopDetection"),
    "plan_adherence": ("model_metrics", "PlanAdherence"),
    "plan_quality": ("model_metrics", "PlanQuality"),
    "step_efficiency": ("model_metrics", "StepEfficiency"),
    "task_completion": ("model_metrics", "TaskCompletion"),
    "tool_correctness": ("model_metrics", "ToolCorrectness"),
}


def metric_names() -> list[str]:
    """The names of all metrics that `make_metric` can make: the built-in ones and those of other packages.

    Returns
    -------
    list of str
    """
    return sorted({*_BUILT_IN, *_registered()})


def make_metric(name: str, *, model: Any = None, **options: Any) -> Grader:
    """Make a metric by its name.

    Parameters
    ----------
    name : str
        One of `metric_names`.
    model : langchain_core.language_models.BaseChatModel or str, optional
        The model, for metrics that ask one.
    **options
        Arguments of the metric: ``threshold``, ``embeddings``, ….

    Returns
    -------
    Grader

    Raises
    ------
    UnknownName
        If there is no such metric.
    InvalidArgument
        If the metric needs a model and gets none, has no such option, or does not make a grader.
    """
    if isinstance(name, str) and name in _BUILT_IN:
        module, class_name = _BUILT_IN[name]
        make: Callable[..., Any] = getattr(import_module(f"{__package__}.{module}"), class_name)
    elif isinstance(name, str) and name in (registered := _registered()):
        try:
            make = registered[name].load()
        except Exception as error:
            raise InvalidArgument(f"the metric {name!r} cannot be loaded: {type(error).__name__}: {error}") from error
    else:
        raise UnknownName("metric", name, metric_names())
    parameters = inspect.signature(make).parameters
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    if "model" in parameters:
        if model is None and parameters["model"].default is parameters["model"].empty:
            raise InvalidArgument(
                f"the metric {name!r} needs a model: give model=…, or on the command line --metrics-model or --judge"
            )
        options = options if model is None else {"model": model, **options}
    for option in options:
        if option not in parameters and not takes_any:
            raise InvalidArgument(f"the metric {name!r} has no option {option!r}; its options: {', '.join(parameters)}")
    metric = make(**options)
    # not isinstance of the protocol: that would ask for the identity, and so make a model that is given by name
    own = getattr(metric, "__dict__", {})
    complete = all(hasattr(type(metric), part) or part in own for part in ("name", "identity", "grade"))
    if isinstance(metric, type) or not complete:
        got = type(metric).__name__
        raise InvalidArgument(f"the metric {name!r} must make a grader (name, identity, grade), got {got}")
    if metric.name != name:
        raise InvalidArgument(f"the metric {name!r} must have this name as its `name`, got {metric.name!r}")
    grader: Grader = metric
    return grader


def _registered() -> dict[str, EntryPoint]:
    """The metrics of other packages that can be imported now."""
    return _registered_on(tuple(sys.path))


@cache
def _registered_on(path: tuple[str, ...]) -> dict[str, EntryPoint]:
    """Looking for entry points reads the metadata of every installed package: once is enough."""
    return {point.name: point for point in entry_points(group=GROUP) if point.name not in _BUILT_IN}
