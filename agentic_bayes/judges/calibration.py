"""Calibrates a judge: compares its verdicts with those of people, with intervals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from agentic_bayes.checks import check_choice, check_probability, check_type
from agentic_bayes.errors import EvidenceError, did_you_mean
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.row import place_name
from agentic_bayes.formatting import exact_percent, first_problems, format_interval, format_number, one_line, plural
from agentic_bayes.judges.error_rates import PRIOR, Proportion, labels_for_width
from agentic_bayes.judges.labels import HumanLabel, JudgeScores, judge_scores, read_human_labels
from agentic_bayes.judges.raters import AgreementMeasure, agreement
from agentic_bayes.judges.roc import Roc, auc_interval, reliability, roc
from agentic_bayes.numerics import wilson_interval
from agentic_bayes.records.base import short
from agentic_bayes.result_table import Table, Tabular

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["JudgeCalibration", "calibrate_judge"]

ErrorRate = Literal["sensitivity", "specificity"]
RATES = ("sensitivity", "specificity", "agreement", "precision")
BINS = 10
SHOWN = 20


@dataclass(frozen=True, repr=False, eq=False)
class JudgeCalibration(Tabular):
    """A judge's verdicts compared with human labels.

    Attributes
    ----------
    judge : str
        Identity of the judge.
    threshold : float
        Minimum score for the judge to pass an answer.
    unit : {"attempt", "turn"}
        What people labelled. An attempt passes if all its turns do; its score is that of its worst turn.
    true_passes, missed_passes, true_fails, false_passes : int
        Numbers of labels that pass with both; with people only; with neither; with the judge only.
    sensitivity : Proportion
        P(judge passes | people pass).
    specificity : Proportion
        P(judge fails | people fail).
    agreement : Proportion
        P(judge and people agree). Depends on how many attempts are right.
    precision : Proportion
        P(people pass | judge passes). Depends on how many attempts are right.
    kappa : AgreementMeasure
        Cohen's kappa, with a bootstrap interval over tasks (over labels, if no task has several).
    auc, auc_lower, auc_upper : float
        Area under the ROC, and its interval (Newcombe's).
    best_threshold, best_youden : float
        The threshold with the largest sensitivity + specificity - 1, and that number; the one nearest to `threshold`
        if there are several. Chosen on these labels, so it is optimistic; NaN if one class is empty.
    labels : int
        Number of labels used.
    blank : int
        Number of rows without a label.
    unjudged : tuple of str
        Labelled, but the judge gave no verdict.
    unmatched : tuple of str
        Labelled, but not in the evidence.
    ci_prob : float
        Probability of all intervals.
    notes : tuple of str
        Caveats.
    """

    judge: str
    threshold: float
    unit: Literal["attempt", "turn"]
    true_passes: int
    missed_passes: int
    true_fails: int
    false_passes: int
    sensitivity: Proportion
    specificity: Proportion
    agreement: Proportion
    precision: Proportion
    kappa: AgreementMeasure
    auc: float
    auc_lower: float
    auc_upper: float
    best_threshold: float
    best_youden: float
    labels: int
    blank: int
    unjudged: tuple[str, ...]
    unmatched: tuple[str, ...]
    ci_prob: float
    notes: tuple[str, ...]
    _pairs: tuple[tuple[int, int, str, str, int], ...]
    _roc: Roc
    _bins: tuple[tuple[float, float, int, float, float, float, float], ...]

    def roc_points(self) -> pd.DataFrame:
        """Shares of passes at every threshold, over the labels whose turns all have a score.

        Returns
        -------
        pandas.DataFrame
            ``threshold`` (falling from infinity, where nothing passes), ``sensitivity``, ``false_pass_rate``
            (1 - specificity) and ``youden`` (their difference).
        """
        import pandas as pd

        columns = {name: getattr(self._roc, name).copy() for name in ("sensitivity", "false_pass_rate", "youden")}
        return pd.DataFrame({"threshold": self._roc.thresholds.copy(), **columns})

    def reliability(self) -> pd.DataFrame:
        """How often people pass an answer, by the judge's score.

        Returns
        -------
        pandas.DataFrame
            One row per tenth of the scale that has scores: ``from, to, labels, mean_score, human_pass`` (the share
            that people passed), ``lower, upper`` (its Wilson interval).
        """
        import pandas as pd

        header = ["from", "to", "labels", "mean_score", "human_pass", "lower", "upper"]
        return pd.DataFrame(list(self._bins), columns=header)

    def to_judge_labels(self) -> pd.DataFrame:
        """The labels in the form that `estimate(judge_labels=…)` takes.

        Returns
        -------
        pandas.DataFrame
            ``judge, human`` (0/1), ``agent, task, trial``. Labels of attempts fit counts of conversations; for labels
            of turns, the task is the session and the trial the turn, as in counts with ``unit="interaction"``.
        """
        import pandas as pd

        return pd.DataFrame(list(self._pairs), columns=["judge", "human", "agent", "task", "trial"])

    def labels_needed(self, width: float, *, of: ErrorRate = "specificity") -> int:
        """Number of further labels that makes the interval of an error rate this narrow.

        Parameters
        ----------
        width : float
            Width of the Beta interval at `ci_prob`, in (0, 1).
        of : {"sensitivity", "specificity"}
            Which rate.

        Returns
        -------
        int
            Further labels of attempts drawn at random, if the judge and the share of right attempts stay as they are.
            0 if the interval is narrow enough.
        """
        check_choice("of", of, get_args(ErrorRate))
        rate: Proportion = getattr(self, of)
        a, b = PRIOR[0] + rate.successes, PRIOR[1] + rate.total - rate.successes
        more = labels_for_width(width, a, b, rate.mean, self.ci_prob)
        return math.ceil(more * (self.labels + 2) / (rate.total + 1))

    def to_pandas(self) -> pd.DataFrame:
        """One row per measure.

        Returns
        -------
        pandas.DataFrame
            ``measure, value, mean, lower, upper, wilson_lower, wilson_upper, successes, total, ci_prob``; missing if
            a measure has no such number.
        """
        import pandas as pd

        names = ("value", "mean", "lower", "upper", "wilson_lower", "wilson_upper", "successes", "total")
        rows = [{"measure": name, **{key: getattr(getattr(self, name), key) for key in names}} for name in RATES]
        kappa = {"value": self.kappa.value, "lower": self.kappa.lower, "upper": self.kappa.upper}
        area = {"value": self.auc, "lower": self.auc_lower, "upper": self.auc_upper}
        rows += [{"measure": "kappa", **kappa}, {"measure": "auc", **area}]
        table = pd.DataFrame(rows, columns=["measure", *names]).assign(ci_prob=self.ci_prob)
        return table.astype({"successes": "Int64", "total": "Int64"})

    def __repr__(self) -> str:
        return one_line(
            f"JudgeCalibration: {self.judge} at threshold {self.threshold:g}, {plural(self.labels, 'human label')} of "
            f"{self.unit}s; sensitivity {self.sensitivity}, specificity {self.specificity}; "
            f"{exact_percent(self.ci_prob)} intervals"
        )

    def table(self) -> Table:
        """One row per measure, with the caveats as notes."""
        rows = []
        for name in RATES:
            rate: Proportion = getattr(self, name)
            value = [format_number(rate.mean), format_interval(rate.lower, rate.upper)]
            rows.append([name, *value, f"{rate.successes:,} of {rate.total:,}"])
        rows += [["kappa", *self._kappa(), ""], ["AUC", *self._auc(), ""]]
        notes = [
            f"{exact_percent(self.ci_prob)} intervals (of rates: mean and equal-tailed, of the Beta posterior); "
            f"{self.blank:,} rows unlabelled, {len(self.unjudged):,} labelled but without a verdict, "
            f"{len(self.unmatched):,} labelled but not in the evidence",
            *self.notes,
        ]
        header = ["measure", "value", "interval", "labels"]
        return Table(title=f"Judge {self.judge}", header=header, rows=rows, text=self._basis(), notes=notes)

    def _kappa(self) -> tuple[str, str]:
        return format_number(self.kappa.value), format_interval(self.kappa.lower, self.kappa.upper)

    def _auc(self) -> tuple[str, str]:
        return format_number(self.auc), format_interval(self.auc_lower, self.auc_upper)

    def _basis(self) -> str:
        return f" at threshold {self.threshold:g}, compared with {plural(self.labels, 'human label')} of {self.unit}s"

    def __str__(self) -> str:
        best = f"{self.best_threshold:g}" if math.isfinite(self.best_threshold) else "–"
        lines = [
            f"{self.judge}{self._basis()}; {exact_percent(self.ci_prob)} intervals",
            f"  sensitivity {self.sensitivity}",
            f"  specificity {self.specificity}",
            f"  agreement {self.agreement}; kappa {' '.join(self._kappa())}; AUC {' '.join(self._auc())}",
            f"  both pass {self.true_passes:,}, only people pass {self.missed_passes:,}, "
            f"only the judge passes {self.false_passes:,}, neither passes {self.true_fails:,}",
            f"  best threshold on these labels: {best} (J {format_number(self.best_youden)})",
        ]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


def calibrate_judge(
    evidence: Evidence, labels: pd.DataFrame | str | Path, *, threshold: float = 0.7, ci_prob: float = 0.95
) -> JudgeCalibration:
    """Compare a judge's verdicts with those of people.

    Parameters
    ----------
    evidence : Evidence
        Interactions scored by one judge.
    labels : pandas.DataFrame or path
        The human labels: columns ``agent`` (optional if there is only one), ``task``, ``trial`` and ``human``: 1 if
        the whole attempt is right, 0 if it is not, blank if nobody has looked. With a column ``interaction`` the
        labels are of turns. CSV, TSV, JSONL or Parquet.
    threshold : float
        Minimum score for the judge to pass an answer, in [0, 1].
    ci_prob : float
        Probability of the intervals, in (0, 1).

    Returns
    -------
    JudgeCalibration

    Raises
    ------
    EvidenceError
        If the labels are malformed, the evidence has none of them, or it has several judges.
    InvalidArgument
        If an argument is outside what is allowed.

    Notes
    -----
    An attempt passes if every turn reaches the threshold, and fails if one does not, as in counts of conversations. If
    an unscored turn leaves that open, the label is not used but listed in ``unjudged``. Rates have a Beta(2, 1) prior,
    which leans towards a judge that is right, and treat labels as independent. Labels of whole tasks are less
    informative than that; a note says so.

    References
    ----------
    Youden (1950), Cancer 3, 32-35, doi:10.1002/1097-0142(1950)3:1<32::AID-CNCR2820030106>3.0.CO;2-3.
    Newcombe (2006), Stat. Med. 25, 559-573, doi:10.1002/sim.2324.
    """
    check_type("evidence", evidence, Evidence, "assess() makes one")
    check_probability(threshold, "threshold")
    check_probability(ci_prob, "ci_prob", open_ends=True)
    agents = sorted({row.agent.strip() for row in evidence.rows})
    human_labels, turns, blank = read_human_labels(labels, agents=agents)
    judged = judge_scores(evidence, turns=turns)
    matched = [(label, judged[label.place]) for label in human_labels if label.place in judged]
    unmatched = tuple(place_name(label.place) for label in human_labels if label.place not in judged)
    if not matched:
        raise EvidenceError(_nothing_matches(human_labels, blank, judged))
    used = [(label, scores) for label, scores in matched if scores.passes(threshold) is not None]
    unjudged = tuple(place_name(label.place) for label, scores in matched if scores.passes(threshold) is None)
    if not used:
        raise EvidenceError(f"the judge gave no verdict on any of the {plural(len(matched), 'labelled attempt')}")
    judge = _only_judge(evidence)
    human = np.array([label.passes for label, _ in used])
    passed = np.array([bool(scores.passes(threshold)) for _, scores in used])
    counts = Counter(zip(human.tolist(), passed.tolist(), strict=True))
    tp, fn, fp, tn = (counts[pair] for pair in ((True, True), (True, False), (False, True), (False, False)))
    kappa, repeated = _kappa(used, human, passed, ci_prob)
    result = JudgeCalibration(
        judge=judge,
        threshold=float(threshold),
        unit="turn" if turns else "attempt",
        true_passes=tp,
        missed_passes=fn,
        true_fails=tn,
        false_passes=fp,
        sensitivity=Proportion.of(tp, tp + fn, ci_prob),
        specificity=Proportion.of(tn, tn + fp, ci_prob),
        agreement=Proportion.of(tp + tn, len(used), ci_prob),
        precision=Proportion.of(tp, tp + fp, ci_prob),
        kappa=kappa,
        **_score_measures(used, threshold, ci_prob),
        labels=len(used),
        blank=blank,
        unjudged=unjudged,
        unmatched=unmatched,
        ci_prob=ci_prob,
        notes=(),
        _pairs=tuple(_pair(label, scores, threshold, turns=turns) for label, scores in used),
    )
    return replace(result, notes=tuple(_notes(result, repeated)))


def _only_judge(evidence: Evidence) -> str:
    judges = sorted({row.judge for row in evidence.rows})
    if len(judges) > 1:
        raise EvidenceError(
            f"calibration needs the evidence of one judge, but this one has {len(judges)}: "
            f"{short('; '.join(judges), 200)}"
        )
    return judges[0]


def _nothing_matches(labels: Sequence[HumanLabel], blank: int, judged: dict[Any, JudgeScores]) -> str:
    if not labels:
        return f"there are no labels: all {plural(blank, 'cell')} of the column 'human' are blank"
    first = place_name(labels[0].place)
    hint = did_you_mean(first, [place_name(place) for place in judged])
    return f"the evidence has none of the {plural(len(labels), 'label')}. The first is {first}: {hint}"


def _kappa(
    used: Sequence[tuple[HumanLabel, JudgeScores]], human: Any, passed: Any, ci_prob: float
) -> tuple[AgreementMeasure, int]:
    """Cohen's kappa, and the number of tasks with several labels."""
    import pandas as pd

    tasks = [label.place[1] for label, _ in used]
    repeated = sum(number > 1 for number in Counter(tasks).values())
    table = pd.DataFrame({"judge": passed.astype(int), "human": human.astype(int), "task": tasks})
    cluster = "task" if repeated else None
    return agreement(table, raters=["judge", "human"], cluster=cluster, ci_prob=ci_prob).kappa(), repeated


def _score_measures(used: Sequence[tuple[HumanLabel, JudgeScores]], threshold: float, ci_prob: float) -> dict[str, Any]:
    """ROC, best threshold and reliability, from the scores themselves."""
    scored = [(label.passes, scores.score) for label, scores in used if scores.score is not None]
    truth = np.array([passes for passes, _ in scored], dtype=np.bool_)
    scores = np.array([score for _, score in scored], dtype=np.float64)
    curve = roc(scores, truth)
    lower, upper = auc_interval(curve.auc, int(truth.sum()), int((~truth).sum()), ci_prob)
    best, youden = _best(scores, truth, curve, threshold)
    bins = reliability(scores, truth, BINS)
    low, high = wilson_interval(bins["positives"], bins["items"], ci_prob)
    shares = bins["positives"] / bins["items"]
    columns = (bins["from"], bins["to"], bins["items"].astype(int), bins["mean_score"], shares, low, high)
    return {
        "auc": curve.auc,
        "auc_lower": lower,
        "auc_upper": upper,
        "best_threshold": best,
        "best_youden": youden,
        "_roc": curve,
        "_bins": tuple(zip(*(column.tolist() for column in columns), strict=True)),
    }


def _best(scores: Any, truth: Any, curve: Roc, threshold: float) -> tuple[float, float]:
    """The threshold with the largest J, and that J; the one nearest to the present threshold if several have it."""
    if not truth.any() or truth.all():
        return math.nan, math.nan
    present = float(np.mean(scores[truth] >= threshold) - np.mean(scores[~truth] >= threshold))
    candidates = [(threshold, present), *zip(curve.thresholds[1:].tolist(), curve.youden[1:].tolist(), strict=True)]
    largest = max(j for _, j in candidates)
    # equal shares may differ in the last bit
    best = [t for t, j in candidates if j >= largest - 1e-12]
    return min(best, key=lambda t: (abs(t - threshold), t)), largest


def _pair(label: HumanLabel, scores: JudgeScores, threshold: float, *, turns: bool) -> tuple[int, int, str, str, int]:
    trial = label.place[3] if turns else label.place[2]
    task = scores.session_id if turns else scores.task
    return int(bool(scores.passes(threshold))), int(label.passes), scores.agent, task, int(trial or 0)


def _notes(result: JudgeCalibration, repeated: int) -> list[str]:
    notes = []
    if not result.sensitivity.total or not result.specificity.total:
        lacking = "pass" if not result.sensitivity.total else "fail"
        notes.append(f"people {lacking} none of these, so one error rate rests on the prior alone")
    else:
        notes.append("the best threshold was chosen on these labels, so its J is optimistic: check it on new ones")
    if result.sensitivity.mean + result.specificity.mean <= 1:
        notes.append("the judge does no better than chance on these labels")
    if repeated:
        notes.append(
            f"{plural(repeated, 'task')} with several labels: errors on one task are alike, but the intervals of "
            "rates and AUC treat labels as independent (that of kappa does not)"
        )
    for problem, names in (("not in the evidence", result.unmatched), ("without a verdict", result.unjudged)):
        if names:
            notes.append(f"{plural(len(names), 'label')} {problem}: {first_problems(names, SHOWN)}")
    if result.blank:
        notes.append(f"{plural(result.blank, 'row')} without a label")
    return notes
