"""How good is the judge? Its verdicts beside those of people, with intervals."""

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
from agentic_bayes.formatting import format_interval, format_number, html_block, one_line, plural
from agentic_bayes.judges.agreement import Measure, agreement
from agentic_bayes.judges.error_rates import PRIOR, Share, labels_for_width
from agentic_bayes.judges.labels import HumanLabel, Said, judged, place_name, read_human_labels
from agentic_bayes.judges.roc import Roc, auc_interval, reliability, roc
from agentic_bayes.numerics import wilson_interval
from agentic_bayes.records.base import short

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["JudgeCalibration", "calibrate_judge"]

ErrorRate = Literal["sensitivity", "specificity"]
BINS = 10
SHOWN = 20


@dataclass(frozen=True, repr=False, eq=False)
class JudgeCalibration:
    """A judge's verdicts beside human labels.

    Attributes
    ----------
    judge : str
        Identity of the judge.
    threshold : float
        From which score on it passes an answer.
    unit : {"attempt", "turn"}
        What was labelled. An attempt passes if all its turns do; its score is that of its worst turn.
    true_passes, missed_passes, true_fails, false_passes : int
        Passed by both; by people only; by neither; by the judge only.
    sensitivity : Share
        P(judge passes | people pass).
    specificity : Share
        P(judge fails | people fail).
    agreement : Share
        P(judge and people say the same). Depends on how many attempts are right.
    precision : Share
        P(people pass | judge passes). Depends on how many attempts are right.
    kappa : Measure
        Cohen's kappa, with a bootstrap interval over tasks (over labels, where each has a task of its own).
    auc, auc_lower, auc_upper : float
        Area under the ROC, and Newcombe's interval of it.
    best_threshold, best_youden : float
        Where sensitivity + specificity - 1 is largest, and that number; of equal ones the nearest to `threshold`.
        Chosen on these labels, so it flatters; NaN where one class is empty.
    labels : int
        How many labels were used.
    blank : int
        Rows without a label.
    unjudged : tuple of str
        Labelled, but without a verdict of the judge.
    unmatched : tuple of str
        Labelled, but not in the evidence.
    ci_prob : float
        Probability of all intervals.
    notes : tuple of str
        What must be known to read it.
    """

    judge: str
    threshold: float
    unit: Literal["attempt", "turn"]
    true_passes: int
    missed_passes: int
    true_fails: int
    false_passes: int
    sensitivity: Share
    specificity: Share
    agreement: Share
    precision: Share
    kappa: Measure
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
        """Shares of passes at every threshold, over what has a score at every turn.

        Returns
        -------
        pandas.DataFrame
            ``threshold`` (falling from infinity, where nothing passes), ``sensitivity``, ``false_pass_rate``
            (1 - specificity) and ``youden`` (their difference).
        """
        import pandas as pd

        return pd.DataFrame(
            {
                "threshold": self._roc.thresholds.copy(),
                "sensitivity": self._roc.sensitivity.copy(),
                "false_pass_rate": self._roc.false_pass_rate.copy(),
                "youden": self._roc.youden,
            }
        )

    def reliability(self) -> pd.DataFrame:
        """What people said, by score.

        Returns
        -------
        pandas.DataFrame
            One row per tenth of the scores that occurs: ``from, to, labels, mean_score, human_pass`` (the share that
            people passed), ``lower, upper`` (Wilson's interval of it).
        """
        import pandas as pd

        return pd.DataFrame(
            list(self._bins), columns=["from", "to", "labels", "mean_score", "human_pass", "lower", "upper"]
        )

    def to_judge_labels(self) -> pd.DataFrame:
        """The labels as `estimate(judge_labels=…)` takes them.

        Returns
        -------
        pandas.DataFrame
            ``judge, human`` (0/1), ``agent, task, trial``. Labels of attempts fit counts of conversations; of labelled
            turns the task is the session and the trial the turn, as in counts with ``unit="interaction"``.
        """
        import pandas as pd

        return pd.DataFrame(list(self._pairs), columns=["judge", "human", "agent", "task", "trial"])

    def labels_needed(self, width: float, *, of: ErrorRate = "specificity") -> int:
        """How many more labels make the interval of an error rate this narrow.

        Parameters
        ----------
        width : float
            Of the Beta interval at `ci_prob`, in (0, 1).
        of : {"sensitivity", "specificity"}
            Which rate.

        Returns
        -------
        int
            Further labels of attempts drawn at random, if the judge and the share of right attempts are as so far. 0
            where the interval is narrow enough.
        """
        check_choice("of", of, get_args(ErrorRate))
        share: Share = getattr(self, of)
        a, b = PRIOR[0] + share.successes, PRIOR[1] + share.total - share.successes
        more = labels_for_width(width, a, b, share.mean, self.ci_prob)
        return math.ceil(more * (self.labels + 2) / (share.total + 1))

    def summary(self) -> pd.DataFrame:
        """One row per measure.

        Returns
        -------
        pandas.DataFrame
            ``measure, value, mean, lower, upper, wilson_lower, wilson_upper, successes, total, ci_prob``; NaN and None
            where a measure has no such number.
        """
        import pandas as pd

        shares = {name: getattr(self, name) for name in ("sensitivity", "specificity", "agreement", "precision")}
        names = ("value", "mean", "lower", "upper", "wilson_lower", "wilson_upper", "successes", "total")
        rows = [{"measure": name, **{key: getattr(share, key) for key in names}} for name, share in shares.items()]
        kappa = {"value": self.kappa.value, "lower": self.kappa.lower, "upper": self.kappa.upper}
        area = {"value": self.auc, "lower": self.auc_lower, "upper": self.auc_upper}
        rows += [{"measure": "kappa", **kappa}, {"measure": "auc", **area}]
        table = pd.DataFrame(rows, columns=["measure", *names]).assign(ci_prob=self.ci_prob)
        return table.astype({"successes": "Int64", "total": "Int64"})

    def __repr__(self) -> str:
        return one_line(
            f"JudgeCalibration: {self.judge} at threshold {self.threshold:g}, {plural(self.labels, 'human label')} of "
            f"{self.unit}s; sensitivity {self.sensitivity}, specificity {self.specificity}; "
            f"{100 * self.ci_prob:g} % intervals"
        )

    def _repr_html_(self) -> str:
        names = ("sensitivity", "specificity", "agreement", "precision")
        shares: list[tuple[str, Share]] = [(name, getattr(self, name)) for name in names]
        rows = [
            [name, format_number(s.value), format_interval(s.lower, s.upper), f"{s.successes:,} of {s.total:,}"]
            for name, s in shares
        ]
        kappa = format_interval(self.kappa.lower, self.kappa.upper)
        rows.append(["kappa", format_number(self.kappa.value), kappa, ""])
        rows.append(["AUC", format_number(self.auc), format_interval(self.auc_lower, self.auc_upper), ""])
        notes = [
            f"{100 * self.ci_prob:g} % equal-tailed intervals; of shares that of the Beta posterior; unlabelled "
            f"{self.blank:,}, labelled but without a verdict {len(self.unjudged):,}, not in the evidence "
            f"{len(self.unmatched):,}",
            *self.notes,
        ]
        text = f" at threshold {self.threshold:g}, beside {plural(self.labels, 'human label')} of {self.unit}s"
        header = ["measure", "value", "interval", "labels"]
        return html_block(f"Judge {self.judge}", header, rows, text=text, notes=notes)

    def __str__(self) -> str:
        auc = f"{format_number(self.auc)} {format_interval(self.auc_lower, self.auc_upper)}"
        kappa = f"{format_number(self.kappa.value)} {format_interval(self.kappa.lower, self.kappa.upper)}"
        best = f"{self.best_threshold:g}" if math.isfinite(self.best_threshold) else "–"
        lines = [
            f"{self.judge} at threshold {self.threshold:g}, beside {plural(self.labels, 'human label')} "
            f"of {self.unit}s; {100 * self.ci_prob:g} % intervals",
            f"  sensitivity {self.sensitivity}",
            f"  specificity {self.specificity}",
            f"  agreement {self.agreement}; kappa {kappa}; AUC {auc}",
            f"  both pass {self.true_passes:,}, only people pass {self.missed_passes:,}, "
            f"only the judge passes {self.false_passes:,}, neither passes {self.true_fails:,}",
            f"  best threshold on these labels: {best} (J {format_number(self.best_youden)})",
        ]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


def calibrate_judge(
    evidence: Evidence, labels: pd.DataFrame | str | Path, *, threshold: float = 0.7, ci_prob: float = 0.95
) -> JudgeCalibration:
    """Set a judge's verdicts beside those of people.

    Parameters
    ----------
    evidence : Evidence
        What one judge said.
    labels : pandas.DataFrame or path
        What people said: columns ``agent`` (may be missing where there is one), ``task``, ``trial`` and ``human``: 1
        where the whole attempt is right, 0 where it is not, blank where nobody has looked. With a column
        ``interaction`` the labels are of turns. CSV, TSV, JSONL or Parquet.
    threshold : float
        From which score on the judge passes an answer, in [0, 1].
    ci_prob : float
        Probability of the intervals, in (0, 1).

    Returns
    -------
    JudgeCalibration

    Raises
    ------
    EvidenceError
        If the labels are malformed, none of them is in the evidence, or the evidence is of several judges.
    InvalidArgument
        If an argument is outside what is allowed.

    Notes
    -----
    An attempt passes if every turn reaches the threshold, and fails if one does not, as in counts of conversations;
    where neither can be told, since a turn is unscored, the label is not used and named in ``unjudged``. Rates have
    Beta(2, 1) as their prior, which leans towards a judge that is right, and independent labels; labels of whole tasks
    are less informative than so many, which is said in a note.

    References
    ----------
    Youden (1950), Cancer 3, 32-35, doi:10.1002/1097-0142(1950)3:1<32::AID-CNCR2820030106>3.0.CO;2-3.
    Newcombe (2006), Stat. Med. 25, 559-573, doi:10.1002/sim.2324.
    """
    check_type("evidence", evidence, Evidence, "assess() makes one")
    check_probability(threshold, "threshold")
    check_probability(ci_prob, "ci_prob", open_ends=True)
    agents = sorted({row.agent.strip() for row in evidence.rows})
    found, turns, blank = read_human_labels(labels, agents=agents)
    said = judged(evidence, turns=turns)
    matched = [(label, said[label.place]) for label in found if label.place in said]
    unmatched = tuple(place_name(label.place) for label in found if label.place not in said)
    if not matched:
        raise EvidenceError(_nothing_matches(found, blank, said))
    used = [(label, what) for label, what in matched if what.passes(threshold) is not None]
    unjudged = tuple(place_name(label.place) for label, what in matched if what.passes(threshold) is None)
    if not used:
        raise EvidenceError(f"the judge gave no verdict on any of the {plural(len(matched), 'labelled attempt')}")
    judge = _only_judge(evidence)
    human = np.array([label.passes for label, _ in used])
    passed = np.array([bool(what.passes(threshold)) for _, what in used])
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
        sensitivity=Share.of(tp, tp + fn, ci_prob),
        specificity=Share.of(tn, tn + fp, ci_prob),
        agreement=Share.of(tp + tn, len(used), ci_prob),
        precision=Share.of(tp, tp + fp, ci_prob),
        kappa=kappa,
        **_of_scores(used, threshold, ci_prob),
        labels=len(used),
        blank=blank,
        unjudged=unjudged,
        unmatched=unmatched,
        ci_prob=ci_prob,
        notes=(),
        _pairs=tuple(_pair(label, what, threshold, turns=turns) for label, what in used),
    )
    return replace(result, notes=tuple(_notes(result, repeated)))


def _only_judge(evidence: Evidence) -> str:
    judges = sorted({row.judge for row in evidence.rows})
    if len(judges) > 1:
        raise EvidenceError(
            f"the evidence must be of one judge, whose error rates are its own; it is of {len(judges)}: "
            f"{short('; '.join(judges), 200)}"
        )
    return judges[0]


def _nothing_matches(found: Sequence[HumanLabel], blank: int, said: dict[Any, Said]) -> str:
    if not found:
        return f"there are no labels: all {plural(blank, 'cell')} of the column 'human' are blank"
    names = [place_name(place) for place in said]
    wanted = place_name(found[0].place)
    return f"none of the {plural(len(found), 'label')} is in the evidence. The first is {wanted}: " + did_you_mean(
        wanted, names
    )


def _kappa(used: Sequence[tuple[HumanLabel, Said]], human: Any, passed: Any, ci_prob: float) -> tuple[Measure, int]:
    """Cohen's kappa, and how many tasks have several labels."""
    import pandas as pd

    tasks = [label.place[1] for label, _ in used]
    repeated = sum(number > 1 for number in Counter(tasks).values())
    table = pd.DataFrame({"judge": passed.astype(int), "human": human.astype(int), "task": tasks})
    cluster = "task" if repeated else None
    return agreement(table, raters=["judge", "human"], cluster=cluster, ci_prob=ci_prob).kappa(), repeated


def _of_scores(used: Sequence[tuple[HumanLabel, Said]], threshold: float, ci_prob: float) -> dict[str, Any]:
    """What the scores themselves tell, beyond the verdicts."""
    scored = [(label.passes, what.score) for label, what in used if what.score is not None]
    truth = np.array([passes for passes, _ in scored], dtype=np.bool_)
    scores = np.array([score for _, score in scored], dtype=np.float64)
    curve = roc(scores, truth)
    lower, upper = auc_interval(curve.auc, int(truth.sum()), int((~truth).sum()), ci_prob)
    best, youden = _best(scores, truth, curve, threshold)
    part = reliability(scores, truth, BINS)
    low, high = wilson_interval(part["positives"], part["items"], ci_prob)
    numbers = (
        part["from"],
        part["to"],
        part["items"].astype(int),
        part["mean_score"],
        part["positives"] / part["items"],
    )
    return {
        "auc": curve.auc,
        "auc_lower": lower,
        "auc_upper": upper,
        "best_threshold": best,
        "best_youden": youden,
        "_roc": curve,
        "_bins": tuple(zip(*(column.tolist() for column in (*numbers, low, high)), strict=True)),
    }


def _best(scores: Any, truth: Any, curve: Roc, threshold: float) -> tuple[float, float]:
    """The threshold with the largest J and that J; of equal ones the nearest to the present threshold."""
    if not truth.any() or truth.all():
        return math.nan, math.nan
    present = float(np.mean(scores[truth] >= threshold) - np.mean(scores[~truth] >= threshold))
    candidates = [(threshold, present), *zip(curve.thresholds[1:].tolist(), curve.youden[1:].tolist(), strict=True)]
    largest = max(j for _, j in candidates)
    # equal shares may differ in the last bit
    best = [t for t, j in candidates if j >= largest - 1e-12]
    return min(best, key=lambda t: (abs(t - threshold), t)), largest


def _pair(label: HumanLabel, what: Said, threshold: float, *, turns: bool) -> tuple[int, int, str, str, int]:
    trial = label.place[3] if turns else label.place[2]
    task = what.session_id if turns else what.task
    return int(bool(what.passes(threshold))), int(label.passes), what.agent, task, int(trial or 0)


def _notes(result: JudgeCalibration, repeated: int) -> list[str]:
    notes = []
    if not result.sensitivity.total or not result.specificity.total:
        lacking = "pass" if not result.sensitivity.total else "fail"
        notes.append(f"people {lacking} none of these: the labels say nothing of that side, and the prior stands alone")
    else:
        notes.append("the best threshold was chosen on these labels, so its J is flattered: check it on new ones")
    if result.sensitivity.mean + result.specificity.mean <= 1:
        notes.append("the judge does no better than chance on these labels")
    if repeated:
        notes.append(
            f"{plural(repeated, 'task')} with several labels: errors on one task are alike, but the intervals of "
            "shares and AUC take labels as independent (that of kappa does not)"
        )
    for what, names in (("not in the evidence", result.unmatched), ("without a verdict of the judge", result.unjudged)):
        if names:
            more = f"; … and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            notes.append(f"{plural(len(names), 'label')} {what}: {'; '.join(names[:SHOWN])}{more}")
    if result.blank:
        notes.append(f"{plural(result.blank, 'row')} without a label")
    return notes
