"""How the answer depends on the threshold at which a judge's score counts as a success."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from agentic_bayes.checks import check_choice, check_probability, check_type
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.estimate import Estimate, estimate
from agentic_bayes.estimation.methods.options import Method
from agentic_bayes.estimation.posterior import Estimand
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.formatting import Metric, format_estimate, format_number, interval_kind
from agentic_bayes.outcomes.count import count_outcomes
from agentic_bayes.result_table import Table, Tabular

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["ThresholdCurve", "threshold_curve"]

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdPoint:
    """One agent's number at one threshold."""

    threshold: float
    agent: str
    mean: float
    lower: float
    upper: float
    passed: int  # trials
    scored: int
    flags: str


@dataclass(frozen=True, kw_only=True, repr=False)
class ThresholdCurve(Tabular):
    """One metric of every agent, estimated at several thresholds of the judge's score.

    Attributes
    ----------
    points : tuple of ThresholdPoint
        By threshold, then agent.
    metric, estimand, method : str
        What was estimated, and how.
    ci_prob, ci_kind : float, str
        Of the intervals.
    """

    points: tuple[ThresholdPoint, ...]
    metric: str
    estimand: str
    method: str
    ci_prob: float
    ci_kind: str

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents, in the order of the estimate."""
        return tuple(dict.fromkeys(point.agent for point in self.points))

    def to_pandas(self) -> pd.DataFrame:
        """One row per threshold and agent.

        Returns
        -------
        pandas.DataFrame
            Columns threshold, agent, metric, estimand, mean, lower, upper, passed, scored (trials), flags, method.
        """
        import pandas as pd

        frame = pd.DataFrame([asdict(point) for point in self.points], columns=list(ThresholdPoint.__annotations__))
        frame.insert(2, "metric", self.metric)
        frame.insert(3, "estimand", self.estimand)
        return frame.assign(method=self.method)

    def plot(self, *, ax: Any = None) -> Any:
        """Draw the metric of every agent over the threshold, with intervals.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from agentic_bayes.reports.plots.thresholds import draw_threshold_curve

        return draw_threshold_curve(self, ax)

    def __repr__(self) -> str:
        spans = []
        for agent in self.agents:
            own = [point for point in self.points if point.agent == agent]
            spans.append(
                f"{agent} {format_number(own[0].mean)} at {own[0].threshold:g} to {format_number(own[-1].mean)} at "
                f"{own[-1].threshold:g}"
            )
        return f"{self.metric} by threshold of the judge's score: {'; '.join(spans)}"

    def table(self) -> Table:
        """One row per threshold, agents next to each other."""
        cells: dict[float, list[str]] = {}
        for point in self.points:
            text = format_estimate(point.mean, point.lower, point.upper)
            cells.setdefault(point.threshold, []).append(text.replace(" ", "* ", 1) if point.flags else text)
        title = f"{self.metric} by threshold of the judge's score"
        notes = [
            f"estimand {self.estimand}, {self.method}, {interval_kind(self.method, self.ci_prob, self.ci_kind)}; "
            "a success is a score at or above the threshold",
            "* flagged at this threshold" if any(point.flags for point in self.points) else "",
        ]
        rows = [[f"{threshold:g}", *line] for threshold, line in cells.items()]
        return Table(title=title, header=["threshold", *self.agents], rows=rows, notes=notes)


def threshold_curve(
    evidence: Evidence,
    *,
    thresholds: Iterable[float] = THRESHOLDS,
    metric: str = "pass^1",
    estimand: Estimand = "population",
    method: Method | str = "auto",
    ci_prob: float = 0.95,
    random_seed: int = 0,
    **counting: Any,
) -> ThresholdCurve:
    """Estimate one metric at several thresholds of the judge's score.

    Parameters
    ----------
    evidence : Evidence
        Scored interactions.
    thresholds : iterable of float
        Minimum scores for an answer to count as correct, each in [0, 1].
    metric : str
        "pass@k" or "pass^k" with a number.
    estimand : {"population", "tasks"}
        A new task of this kind, or the mean over the observed tasks.
    method, ci_prob, random_seed : as in `estimate`
        How each is estimated.
    **counting
        Other arguments of `count_outcomes`: ``unit``, ``indicator`` (answer or joint), ``tool_threshold``, ….

    Returns
    -------
    ThresholdCurve

    Raises
    ------
    InvalidArgument
        If an argument is outside what is allowed.
    OutcomesError
        If there is nothing to count.

    Examples
    --------
    >>> import pandas as pd
    >>> from agentic_bayes import threshold_curve
    >>> from agentic_bayes.judges import evidence_from_table
    >>> scores = [0.95, 0.75, 0.55, 0.85, 0.65, 0.4, 0.9, 0.8, 0.7, 0.6]
    >>> table = pd.DataFrame({"task": [i // 2 for i in range(10)], "trial": [0, 1] * 5, "score": scores})
    >>> found = threshold_curve(evidence_from_table(table), thresholds=(0.5, 0.7, 0.9)).to_pandas()
    >>> found["passed"].tolist()
    [9, 6, 2]
    """
    check_type("evidence", evidence, Evidence, "assess() makes one")
    cuts = sorted({check_probability(value, "thresholds") for value in thresholds})
    if not cuts:
        raise InvalidArgument("thresholds must hold at least one number in [0, 1], got none")
    check_choice("indicator", counting.setdefault("indicator", "answer"), ("answer", "joint"))
    check_choice("estimand", estimand, ("population", "tasks"))
    wanted, points = Metric(metric), list[ThresholdPoint]()

    def fit(outcomes: xr.Dataset) -> Estimate:
        return estimate(outcomes, method, k=wanted.k, ci_prob=ci_prob, random_seed=random_seed)  # type: ignore[arg-type]

    for cut, est in estimates_at(evidence, cuts, fit, counting):
        defined = estimand if estimand in est.posterior.estimands else "tasks"
        for index, agent in enumerate(est.agents):
            stats = est.posterior.stats(index, defined, wanted, ci_prob, est.settings.ci_kind)
            points.append(
                ThresholdPoint(
                    threshold=cut,
                    agent=agent,
                    **{name: float(getattr(stats, name)) for name in ("mean", "lower", "upper")},
                    passed=int(est.counts.successes[index].sum()),
                    scored=int(est.counts.trials[index].sum()),
                    flags=", ".join(est.checks.row_flags(index, defined, wanted)),
                )
            )
    return ThresholdCurve(
        points=tuple(points),
        metric=str(wanted),
        estimand=defined,
        method=est.method.name,
        ci_prob=ci_prob,
        ci_kind=est.settings.ci_kind,
    )


def estimates_at(
    evidence: Evidence,
    thresholds: Iterable[float],
    fit: Callable[[xr.Dataset], Estimate],
    counting: Mapping[str, Any],
) -> Iterator[tuple[float, Estimate]]:
    """The estimate at each threshold; one that changes no count is not fitted again."""
    known = dict[tuple[bytes, ...], Estimate]()
    for threshold in thresholds:
        outcomes = count_outcomes(evidence, threshold=threshold, **counting)
        # a failed turn settles a conversation whose other turns have no score: trials change, too
        same = tuple(outcomes[name].values.tobytes() for name in ("successes", "trials", "unscored"))
        if same not in known:
            known[same] = fit(outcomes)
        yield threshold, known[same]
