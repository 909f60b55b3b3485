"""Session scores: how reliable and how consistent the agent was in a conversation, from its trace metrics."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from agentic_bayes.checks import check_bootstrap, check_number, check_probability, check_type
from agentic_bayes.errors import InvalidArgument, UnknownName
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.metrics.registry import metric_names
from agentic_bayes.evidence.row import EvidenceRow
from agentic_bayes.evidence.score import Score, Unscored
from agentic_bayes.formatting import exact_percent, format_interval, format_number, plural
from agentic_bayes.numerics import Floats
from agentic_bayes.records.base import is_share, short
from agentic_bayes.result_table import Table, Tabular

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["WEIGHTS", "SessionScore", "agent_consistency", "agent_reliability", "session_scores"]

WEIGHTS: Mapping[str, float] = {"confidence": 1.0, "loop_detection": 1.0, "tool_correctness": 0.8, "coherence": 1.0}
"""The signals and their weights."""

Signals = Mapping[str, float]

BOOTSTRAP = "percentile bootstrap over traces, which cannot show a trace worse than the worst observed one"

_FLAGGED = 0.5
_WORST, _MEAN = 0.1, 0.9
_CHUNK = 1_000_000  # numbers at a time


@dataclass(frozen=True, slots=True, repr=False)
class SessionScore(Tabular):
    """A score of a session, with its interval and the risk of every trace.

    Attributes
    ----------
    score : float
        In [0, 1].
    lower, upper : float
        Ends of the percentile bootstrap interval over traces; NaN with fewer than two.
    ci_prob : float
        Probability of the interval.
    risks : tuple of float
        Risk of every trace that has a signal, in order; NaN for the others.
    flagged : tuple of int
        Indices of traces whose risk is above .5.
    note : str
        A caveat, or where the interval comes from.
    """

    score: float
    lower: float
    upper: float
    ci_prob: float
    risks: tuple[float, ...]
    flagged: tuple[int, ...]
    note: str = ""

    def __repr__(self) -> str:
        interval = f"{exact_percent(self.ci_prob)} interval {format_interval(self.lower, self.upper)}"
        return (
            f"SessionScore: {format_number(self.score)}, {interval}, "
            f"{len(self.flagged):,} of {plural(len(self.risks), 'trace')} flagged"
        )

    def to_pandas(self) -> pd.DataFrame:
        """One row per trace.

        Returns
        -------
        pandas.DataFrame
            Columns trace (its index), risk, flagged.
        """
        import pandas as pd

        traces = range(len(self.risks))
        flagged = [trace in self.flagged for trace in traces]
        return pd.DataFrame({"trace": list(traces), "risk": self.risks, "flagged": flagged})

    def table(self) -> Table:
        """One row: the score, its interval, and which traces are flagged."""
        interval, flagged = format_interval(self.lower, self.upper), ", ".join(map(str, self.flagged)) or "none"
        row = [format_number(self.score), interval, f"{len(self.risks):,}", flagged]
        header = ["score", f"{exact_percent(self.ci_prob)} interval", "traces", "flagged"]
        return Table(title="Session score", header=header, rows=[row], notes=[self.note])


def agent_reliability(
    signals: Sequence[Signals],
    *,
    weights: Mapping[str, float] | None = None,
    tail: float = 0.15,
    ci_prob: float = 0.95,
    resamples: int = 2000,
    random_seed: int = 0,
) -> SessionScore:
    """How reliable an agent was in a session, judged by its worst traces.

    Parameters
    ----------
    signals : sequence of mapping
        One per trace: metric → score in [0, 1]. Metrics without a weight are ignored, and so are scores of None.
    weights : mapping, optional
        Metric → weight ≥ 0 (default: `WEIGHTS`).
    tail : float
        Share of the traces (those with the highest risk) whose mean risk counts, in (0, 1].
    ci_prob : float
        Probability of the interval, in (0, 1).
    resamples, random_seed : int
        Number of bootstrap samples of the traces, and their seed.

    Returns
    -------
    SessionScore

    Raises
    ------
    InvalidArgument
        If an argument is outside what is allowed.

    Notes
    -----
    The risk of a trace is max over its signals of w (1 - s). With k = max(1, ⌈tail · n⌉) the score is
    1 - (.9 · mean of the k highest risks + .1 · the highest), clamped to [0, 1]; 1 without any trace.
    """
    used = _weighted_signals(signals, weights)
    if check_probability(tail, "tail") == 0:
        raise InvalidArgument(f"tail must be a number in (0, 1], got {tail!r}")
    check_bootstrap(ci_prob, resamples, random_seed)
    risks = [max((w * (1 - s) for w, s in trace.values()), default=math.nan) for trace in used]

    def value(sample: Floats) -> Floats:
        k = max(1, math.ceil(tail * sample.shape[-1] - 1e-9))
        worst = np.sort(sample, axis=-1)[..., -k:]
        return np.asarray(np.clip(1 - (_MEAN * worst.mean(axis=-1) + _WORST * worst[..., -1]), 0, 1))

    undefined = SessionScore(1.0, math.nan, math.nan, ci_prob, tuple(risks), (), "no trace has a signal")
    return _session(value, risks, ci_prob, resamples, random_seed) or undefined


def agent_consistency(
    signals: Sequence[Signals],
    *,
    weights: Mapping[str, float] | None = None,
    ci_prob: float = 0.95,
    resamples: int = 2000,
    random_seed: int = 0,
) -> SessionScore | Unscored:
    """How consistent an agent was in a session: its lack of confidence, made worse by low scores of other signals.

    Parameters
    ----------
    signals, weights, ci_prob, resamples, random_seed : as in `agent_reliability`
        The traces, their weights, and the bootstrap.

    Returns
    -------
    SessionScore or Unscored
        Over the traces with ``confidence``; `Unscored` where there is none.

    Raises
    ------
    InvalidArgument
        If an argument is outside what is allowed.

    Notes
    -----
    A trace's value is (1 + Σ w (1 - s) over its other signals) · w_confidence (1 - confidence); the score is 1 - the
    root mean square of these values, clamped to [0, 1].
    """
    used = _weighted_signals(signals, weights)
    check_bootstrap(ci_prob, resamples, random_seed)
    risks = []
    for trace in used:
        lost = {name: w * (1 - s) for name, (w, s) in trace.items()}
        uncertain = lost.pop("confidence", math.nan)
        risks.append((1 + sum(lost.values())) * uncertain)

    def value(sample: Floats) -> Floats:
        return np.asarray(np.clip(1 - np.sqrt(np.mean(sample**2, axis=-1)), 0, 1))

    return _session(value, risks, ci_prob, resamples, random_seed) or Unscored("no trace has confidence")


def session_scores(
    evidence: Evidence,
    *,
    weights: Mapping[str, float] | None = None,
    tail: float = 0.15,
    ci_prob: float = 0.95,
    resamples: int = 2000,
    random_seed: int = 0,
) -> pd.DataFrame:
    """Both session scores of every conversation.

    Parameters
    ----------
    evidence : Evidence
        Scored interactions whose metrics include the signals.
    weights, tail, ci_prob, resamples, random_seed : mapping, float, float, int, int
        As for `agent_reliability`.

    Returns
    -------
    pandas.DataFrame
        ``agent, task, trial, session_id, traces, measured`` (traces with a signal), ``agent_reliability,
        reliability_lower, reliability_upper, agent_consistency, consistency_lower, consistency_upper, flagged``; NaN
        where a score is undefined.

    Raises
    ------
    InvalidArgument
        If an argument is outside what is allowed, or the evidence has none of the signals.

    Notes
    -----
    How high a cosine means coherent depends on the embedding, so coherence is rescaled: 0, its threshold and 1 become
    0, .5 and 1.
    """
    import pandas as pd

    check_type("evidence", evidence, Evidence, "assess() makes one")
    metrics = {name for row in evidence.rows for name in row.metrics}
    _weighted_signals([], weights)
    wanted = WEIGHTS if weights is None else weights
    if not metrics & set(wanted):
        got = ", ".join(sorted(metrics)) or "none"
        raise InvalidArgument(f"the evidence needs at least one of the metrics {', '.join(wanted)}; it has: {got}")
    sessions: dict[tuple[str, str, int], list[EvidenceRow]] = {}
    for row in evidence.rows:
        sessions.setdefault((row.agent, row.task, row.trial), []).append(row)
    options: Any = {"weights": weights, "ci_prob": ci_prob, "resamples": resamples, "random_seed": random_seed}
    scores = []
    for (agent, task, trial), rows in sessions.items():
        signals = [
            {
                name: threshold_as_half(name, grade)
                for name, grade in row.metrics.items()
                if name in wanted and isinstance(grade, Score)
            }
            for row in rows
        ]
        reliability = agent_reliability(signals, tail=tail, **options)
        grade = agent_consistency(signals, **options)
        consistency = None if isinstance(grade, Unscored) else grade
        scores.append(
            {
                "agent": agent,
                "task": task,
                "trial": trial,
                "session_id": rows[0].session_id,
                "traces": len(rows),
                "measured": sum(map(bool, signals)),
                "agent_reliability": reliability.score if any(signals) else math.nan,
                "reliability_lower": reliability.lower,
                "reliability_upper": reliability.upper,
                "agent_consistency": consistency.score if consistency else math.nan,
                "consistency_lower": consistency.lower if consistency else math.nan,
                "consistency_upper": consistency.upper if consistency else math.nan,
                "flagged": len(reliability.flagged),
            }
        )
    return pd.DataFrame(scores)


def threshold_as_half(name: str, grade: Score) -> float:
    """The score of a metric; coherence is stretched so that its threshold becomes .5."""
    threshold: Any = grade.details.get("threshold")
    if name != "coherence" or not is_share(threshold) or threshold in (0, 1):
        return grade.value
    return float(np.interp(grade.value, [0, threshold, 1], [0, 0.5, 1]))


def _session(
    value: Callable[[Floats], Floats], risks: Sequence[float], ci_prob: float, resamples: int, random_seed: int
) -> SessionScore | None:
    """The score with its interval, or None if no trace has a risk."""
    known = np.array([risk for risk in risks if not math.isnan(risk)])
    if not known.size:
        return None
    lower = upper = math.nan
    note = "an interval needs at least two traces"
    if known.size > 1:
        rng = np.random.default_rng(random_seed)
        ordered = np.sort(known)  # the same draws whatever the order of the traces
        step = max(1, _CHUNK // known.size)
        drawn = [
            value(ordered[rng.integers(known.size, size=(min(step, resamples - start), known.size))])
            for start in range(0, resamples, step)
        ]
        ends = np.quantile(np.concatenate(drawn), [(1 - ci_prob) / 2, (1 + ci_prob) / 2])
        lower, upper, note = float(ends[0]), float(ends[1]), BOOTSTRAP
    flagged = tuple(index for index, risk in enumerate(risks) if risk > _FLAGGED)
    return SessionScore(float(value(known)), lower, upper, ci_prob, tuple(risks), flagged, note)


def _weighted_signals(signals: object, weights: object) -> list[dict[str, tuple[float, float]]]:
    """Per trace: signal → (weight, score)."""
    counted = WEIGHTS if weights is None else weights
    if not isinstance(counted, Mapping) or not counted:
        raise InvalidArgument(f"weights must map signals to numbers ≥ 0, got {short(counted)}")
    for name, weight in counted.items():
        check_number(weight, f"weight of {name!r}")
    if isinstance(signals, (str, Mapping)) or not isinstance(signals, Sequence):
        raise InvalidArgument(f"signals must be a list with one mapping per trace, got {short(signals)}")
    used = []
    for index, trace in enumerate(signals):
        if not isinstance(trace, Mapping):
            raise InvalidArgument(f"signals[{index}] must map metrics to scores, got {short(trace)}")
        kept = {}
        for name, score in trace.items():
            if name not in counted:
                if name not in metric_names():
                    raise UnknownName("signal", name, counted)
                continue
            if score is None or (isinstance(score, Real) and math.isnan(score)):
                continue
            kept[name] = (float(counted[name]), check_probability(score, f"signals[{index}][{name!r}]"))
        used.append(kept)
    return used
