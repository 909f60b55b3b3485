"""Look at the data after every batch, and stop when they suffice, at known error rates.

Whoever looks ten times and stops at the first good look declares false winners three to four times as often as one look
would. So the rule is made before the data: the posterior probability that it requires at every look is raised until,
with the truth exactly at the bar, at most the allowed share of simulated sequences ends in "pass" (or in "fail"). How
often the rule goes wrong, and how many tasks it takes, is part of it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from agentic_bayes.checks import (
    check_choice,
    check_count,
    check_path,
    check_probability,
    check_seed,
    check_type,
    no_such_file,
)
from agentic_bayes.decisions.decision import Decision, remarks
from agentic_bayes.decisions.gate import check_confidence, ruling, shown_beside
from agentic_bayes.decisions.missing import MAX_MISSING
from agentic_bayes.decisions.sequences import (
    Characteristic,
    Sequences,
    described,
    first_look,
    mean_tasks,
    required_probability,
)
from agentic_bayes.decisions.simulate import Cells, metric_of, new_task, unused_words
from agentic_bayes.errors import EstimateError, InvalidArgument
from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.distribution import CIKind
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.formatting import (
    Metric,
    equals,
    exact_percent,
    format_interval,
    format_number,
    format_percent,
    interval_words,
    json_ready,
    plural,
)
from agentic_bayes.outcomes.missing import TrialCounts, counted_as
from agentic_bayes.result_table import Table, Tabular
from agentic_bayes.whole_files import replacing

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["Characteristic", "Look", "StoppingRule", "monitor"]

LookVerdict = Literal["pass", "fail", "narrow enough", "continue", "inconclusive"]
FORMAT = "agentic-bayes-rule/2"
AWAY = 0.1  # how far from the bar the truths lie under which a rule is described
SHARE = 10  # of the sequences: one in so many, where intervals are computed


@dataclass(frozen=True, repr=False)
class Look(Decision):
    """One re-analysis under a rule.

    Attributes
    ----------
    agent : str
    number, tasks : int
        Which look it is (whole batches so far), and tasks with a scored trial.
    verdict : {"pass", "fail", "narrow enough", "continue", "inconclusive"}
        "continue" means that more data are wanted; everything else ends the run, "inconclusive" at the last look.
    probability : float
        Posterior probability that the metric is at least the bar; NaN where there is none.
    mean, lower, upper : float
        Of the metric, on a new task.
    unit, indicator : str
        What was counted.
    rule : StoppingRule
    note : str
        What differs from what the rule was made for, or empty.
    """

    derived: ClassVar[tuple[str, ...]] = ("stop",)

    agent: str
    number: int
    tasks: int
    verdict: LookVerdict
    probability: float
    mean: float
    lower: float
    upper: float
    unit: str
    indicator: str
    rule: StoppingRule = field(repr=False)
    note: str

    @property
    def stop(self) -> bool:
        """Whether the run is over."""
        return self.verdict != "continue"

    def to_pandas(self) -> pd.DataFrame:
        """The look in one row.

        Returns
        -------
        pandas.DataFrame
            The attributes except `rule`, and stop.
        """
        import pandas as pd

        return pd.DataFrame([{name: value for name, value in self.to_dict().items() if name != "sentence"}])

    def __str__(self) -> str:
        rule, asked = self.rule, ""
        if rule.at_least is not None:
            asked = (
                f"P({rule.metric} ≥ {rule.at_least:g}) {equals(shown_beside(self.probability, rule.required))} for "
                f"{self.agent} on new tasks (needs {format_percent(rule.required, 2)} at every look); "
            )
        return (
            f"{self.verdict}: look {self.number} of {rule.looks}, {plural(self.tasks, 'task')}; {asked}"
            f"{rule.metric} {format_number(self.mean)}, {exact_percent(rule.ci_prob)} interval "
            f"{format_number(self.lower)} to {format_number(self.upper)}{remarks(self.note)}"
        )

    def table(self) -> Table:
        """The metric, and the probability that it reaches the bar."""
        rule = self.rule
        rows = [[str(rule.metric), format_number(self.mean), format_interval(self.lower, self.upper)]]
        if rule.at_least is not None:
            bar = f"P({rule.metric} ≥ {rule.at_least:g}), needs {format_percent(rule.required, 2)}"
            rows.append([bar, shown_beside(self.probability, rule.required), ""])
        notes = [
            f"{self.agent}: look {self.number} of {rule.looks}, {plural(self.tasks, 'task')}; posterior mean on a new "
            f"task with {interval_words(rule.ci_prob, rule.ci_kind)}; hierarchical; unit {self.unit}, indicator "
            f"{self.indicator}",
            self.note,
        ]
        header = ["quantity", "posterior", "interval"]
        return Table(title=f"Look: {self.verdict}", header=header, rows=rows, notes=notes)


@dataclass(frozen=True)
class StoppingRule(Tabular):
    """When to stop, and how often that goes wrong. Made by `monitor`, kept in a file, used by `look`.

    Attributes
    ----------
    metric : str
        "pass@k" or "pass^k" with a number.
    at_least : float or None
        The bar of the gate.
    width : float or None
        The interval that is narrow enough to stop.
    batch, trials, looks : int
        Tasks per look, trials per task, looks at most.
    required : float
        Posterior probability that the gate requires at every look; NaN without a bar.
    false_winners : float
        Share of sequences that may end in "pass" with the truth at the bar.
    rho : float
        Intra-class correlation that was assumed.
    ci_prob : float
        Probability of the interval.
    ci_kind : {"eti", "hdi"}
        Its kind.
    simulations : int
        Sequences from which `required` was found; `sequences` describe it.
    random_seed : int
    characteristics : tuple of Characteristic
        The first is the truth at the bar.
    """

    metric: str
    at_least: float | None
    width: float | None
    batch: int
    trials: int
    looks: int
    required: float
    false_winners: float
    rho: float
    ci_prob: float
    ci_kind: CIKind
    simulations: int
    random_seed: int
    characteristics: tuple[Characteristic, ...]

    @property
    def sequences(self) -> int:
        """Simulated sequences per truth behind `characteristics`; fewer where intervals are computed."""
        return self.simulations if self.width is None else self.simulations // SHARE

    def look(self, est: Estimate, agent: str | None = None) -> Look:
        """Analyse the data so far: the hierarchical model of this agent alone, by the exact engine.

        Parameters
        ----------
        est : Estimate
            Of everything so far, by any method: only its counts are used.
        agent : str, optional
            Name; may be left out where there is only one.

        Returns
        -------
        Look

        Raises
        ------
        UnknownName, InvalidArgument
            If the agent is not among them.
        """
        check_type("est", est, Estimate, "estimate() makes one")
        if est.settings.judge is not None:
            raise InvalidArgument("a stopping rule does not allow for judge errors: give it est.uncorrected")
        index = est.agent_index(agent)
        name, cells = est.agents[index], Cells.scored(est.counts, index)
        # a task that crashed or could not be judged is part of its batch all the same
        attempted = int(est.counts.attempted[index].sum())
        number = min(attempted // self.batch, self.looks)
        due = number > 0 and (attempted % self.batch == 0 or number == self.looks)
        posterior = new_task(cells, Metric(self.metric))
        stats = posterior.stats(self.ci_prob, self.ci_kind)
        met = math.nan if self.at_least is None else posterior.at_least(self.at_least)
        missing = TrialCounts.of(est.outcomes, name)
        notes = [*filter(None, (missing.words, unused_words(est), est.differences))]
        notes += self._unlike(cells, attempted, due=due)
        decided = met
        if missing.share_missing > MAX_MISSING and self._turns_on_missing(est.outcomes, name, met):
            decided = math.nan
            notes.append("counted as failed or as passed, the missing trials would change the verdict")
        return Look(
            agent=name,
            number=number,
            tasks=cells.trials.size,
            verdict=self._verdict(number, decided, float(stats.upper - stats.lower)) if due else "continue",
            probability=met,
            mean=float(stats.mean),
            lower=float(stats.lower),
            upper=float(stats.upper),
            unit=str(est.outcomes.attrs["unit"]),
            indicator=str(est.outcomes.attrs["indicator"]),
            rule=self,
            note="; ".join(notes),
        )

    def _unlike(self, cells: Cells, attempted: int, *, due: bool) -> Iterator[str]:
        """How the data differ from what the rule was made for."""
        if attempted > self.batch * self.looks:
            yield f"more than the {self.looks} × {self.batch} tasks that the rule was made for"
        elif not due:
            more = self.batch - attempted % self.batch
            yield f"the rule looks after every {self.batch} tasks: {more} more to the next look"
        if attempted > cells.trials.size:
            yield f"{plural(attempted - cells.trials.size, 'task')} with nothing scored"
        if np.any(cells.trials != self.trials):
            yield f"the rule was made for {plural(self.trials, 'trial')} of every task"

    def _turns_on_missing(self, outcomes: xr.Dataset, agent: str, met: float) -> bool:
        """Whether the gate says something else if the missing trials count as failed, or as passed."""
        if self.at_least is None:
            return False
        sides = set()
        for filled in (counted_as(outcomes, failed=agent), counted_as(outcomes, passed=agent)):
            posterior = new_task(Cells.scored(Counts.of(filled.sel(agent=[agent])), 0), Metric(self.metric))
            sides.add(ruling(posterior.at_least(self.at_least), self.required))
        return sides != {ruling(met, self.required)}

    def _verdict(self, number: int, met: float, width: float) -> LookVerdict:
        if self.at_least is not None and (found := ruling(met, self.required)) != "inconclusive":
            return found
        if self.width is not None and width <= self.width:
            return "narrow enough"
        return "inconclusive" if number == self.looks else "continue"

    def save(self, path: str | Path) -> Path:
        """Write the rule as JSON.

        Parameters
        ----------
        path : path

        Returns
        -------
        pathlib.Path
        """
        target = check_path(path)
        text = json.dumps(json_ready({"format": FORMAT, **asdict(self)}), indent=2, allow_nan=False)
        with replacing(str(target)) as file:
            file.write(f"{text}\n".encode())
        return target

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a rule that `save` wrote.

        Parameters
        ----------
        path : path

        Returns
        -------
        StoppingRule

        Raises
        ------
        EstimateError
            If it is not such a file.
        """
        source = check_path(path)
        if not source.is_file():
            raise EstimateError(no_such_file(source))
        try:
            record = json.loads(source.read_text(encoding="utf-8-sig"))
            if "metric" in record and "k" in record:
                raise ValueError("made by agentic-bayes 0.1, which this version cannot read: make the rule again")
            names = {one.name for one in fields(cls)}
            if record.pop("format", None) != FORMAT or set(record) != names:
                raise ValueError(f"keys must be format ({FORMAT}) and {sorted(names)}")
            described = tuple(
                Characteristic(**{name: math.nan if value is None else float(value) for name, value in one.items()})
                for one in record.pop("characteristics")
            )
            required = math.nan if record["required"] is None else float(record.pop("required"))
            rule = cls(**record | {"required": required, "characteristics": described})._checked()
            if rule.at_least is not None:
                check_confidence(rule.required)
            for one in rule.characteristics:
                rule._check_characteristic(one)
            if not described or rule.at_least not in (None, described[0].truth):
                raise ValueError("the first of the characteristics must be those of the bar")
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise EstimateError(f"{source}: not a stopping rule saved by agentic_bayes ({error})") from None
        return rule

    def _checked(self) -> Self:
        """The same rule as plain numbers, or an error that says which of its settings is not allowed."""
        goals = [name for name in ("at_least", "width") if getattr(self, name) is not None]
        if not goals:
            raise InvalidArgument("say when to stop: at_least (a bar) or width (of the interval), or both")
        check_choice("ci_kind", self.ci_kind, ("eti", "hdi"))
        counts = {name: check_count(getattr(self, name), name) for name in ("batch", "trials", "looks", "simulations")}
        shares = {
            name: check_probability(getattr(self, name), name, open_ends=name != "rho")
            for name in (*goals, "rho", "ci_prob", "false_winners")
        }
        if shares["false_winners"] >= 0.5:
            raise InvalidArgument(f"false_winners must be in (0, 0.5), got {shares['false_winners']:g}")
        settings: dict[str, Any] = {**counts, **shares, "random_seed": check_seed(self.random_seed)}
        return replace(self, metric=str(Metric(self.metric)), **settings)

    def _check_characteristic(self, one: Characteristic) -> None:
        shares = (one.passes, one.fails, one.undecided)
        for name, value in zip(("truth", "passes", "fails", "undecided"), (one.truth, *shares), strict=True):
            if name == "truth" or self.at_least is not None:
                check_probability(value, name)
            elif not math.isnan(value):
                raise ValueError(f"{name} must be null without a bar")
        if self.at_least is not None and abs(sum(shares) - 1) > 1e-9:
            raise ValueError(f"passes, fails and undecided must sum to 1, got {sum(shares):g}")
        if not 0 < one.tasks <= self.batch * self.looks:
            raise ValueError(f"tasks must lie in (0, {self.batch * self.looks}], got {one.tasks:g}")

    def __str__(self) -> str:
        name, ways = self.metric, []
        if self.at_least is not None:
            ways.append(
                f"the probability that {name} is at least {self.at_least:g} is at least "
                f"{format_number(self.required, 4)} (pass) or at most {format_number(1 - self.required, 4)} (fail)"
            )
        if self.width is not None:
            ways.append(f"its {exact_percent(self.ci_prob)} interval is no wider than {self.width:g}")
        head = (
            f"after every {plural(self.batch, 'task')} × {plural(self.trials, 'trial')}, at most {self.looks} times, "
            f"stop if {' or if '.join(ways)}"
        )
        lines = [f"{head}. Simulated {self.sequences:,} times for each truth, with ρ {self.rho:g}:"]
        for one in self.characteristics:
            ends = f"mean {one.tasks:.0f} tasks"
            if not math.isnan(one.passes):
                shares = ((one.passes, "pass"), (one.fails, "fail"), (one.undecided, "neither"))
                ends = ", ".join(f"{word} {format_number(share)}" for share, word in shares) + f", {ends}"
            place = " (the bar)" if one.truth == self.at_least else ""
            lines.append(f"  truth {format_number(one.truth)}{place}: {ends}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"StoppingRule: {str(self).partition(chr(10))[0].rstrip(':')}"

    def table(self) -> Table:
        """How the rule ends, for each truth."""
        rows = [
            [
                format_number(one.truth) + (" (the bar)" if one.truth == self.at_least else ""),
                *(format_number(share) for share in (one.passes, one.fails, one.undecided)),
                f"{one.tasks:.0f}",
            ]
            for one in self.characteristics
        ]
        notes = [
            f"{self.metric} on a new task of this kind; {interval_words(self.ci_prob, self.ci_kind)}; "
            f"shares of {self.sequences:,} simulated runs per truth, ρ {self.rho:g}"
        ]
        return Table(
            title="Stopping rule:",
            text=f" {str(self).partition('. Simulated')[0]}",
            header=[f"true {self.metric}", "P(pass)", "P(fail)", "P(neither)", "mean tasks"],
            rows=rows,
            notes=notes,
            noun="truth",
        )

    def to_dict(self) -> dict[str, Any]:
        """The rule as plain JSON values.

        Returns
        -------
        dict
        """
        return dict(json_ready(asdict(self)))

    def to_pandas(self) -> pd.DataFrame:
        """How the rule ends, for each truth.

        Returns
        -------
        pandas.DataFrame
            Columns truth, passes, fails, undecided, tasks.
        """
        import pandas as pd

        return pd.DataFrame([asdict(one) for one in self.characteristics])


def monitor(
    *,
    at_least: float | None = None,
    width: float | None = None,
    metric: str = "pass^1",
    batch: int = 20,
    trials: int = 3,
    looks: int = 10,
    rho: float = 0.45,
    mu: float = 0.7,
    confidence: float = 0.95,
    false_winners: float = 0.05,
    ci_prob: float = 0.95,
    ci_kind: CIKind = "eti",
    simulations: int = 2000,
    progress: Callable[[int, int | None], None] | None = None,
    random_seed: int = 0,
) -> StoppingRule:
    """Make a stopping rule for a run that is looked at after every batch, and find out how often it goes wrong.

    Parameters
    ----------
    at_least : float, optional
        Stop when a gate at this bar, in (0, 1), passes or fails.
    width : float, optional
        Stop when the interval is no wider than this, in (0, 1). One of the two must be given.
    metric : str
        "pass@k" or "pass^k" with a number.
    batch, trials, looks : int
        New tasks per look, trials of each (at most 100), and how many looks there may be (at most 1,000); their
        product is at most 100,000.
    rho : float
        Intra-class correlation to simulate with, in [0, 1] (.36 to .58 on tau-bench).
    mu : float
        Mean success probability to simulate with where there is only a width, in (0, 1).
    confidence : float
        The least that the gate requires, in (0.5, 1); raised as far as `false_winners` needs.
    false_winners : float
        Share of sequences that may end in "pass", and in "fail", with the truth at the bar, in (0, 0.5).
    ci_prob : float
        Probability of the interval.
    ci_kind : {"eti", "hdi"}
        Its kind.
    simulations : int
        Sequences per truth, ≥ 100; a tenth of them describes a rule with a width, whose intervals take longer.
        Times `batch` at most 20,000,000.
    progress : callable, optional
        Called with looks simulated so far and in all.
    random_seed : int
        Same seed, same rule.

    Returns
    -------
    StoppingRule

    Raises
    ------
    InvalidArgument
        If an argument is not valid, or no rule keeps the promise.
    """
    check_count(simulations, "simulations", least=100)
    rule = StoppingRule(
        metric=metric,
        at_least=at_least,
        width=width,
        batch=batch,
        trials=trials,
        looks=looks,
        required=math.nan,
        false_winners=false_winners,
        rho=rho,
        ci_prob=ci_prob,
        ci_kind=ci_kind,
        simulations=simulations,
        random_seed=random_seed,
        characteristics=(),
    )._checked()
    share = check_probability(mu, "mu", open_ends=True)
    least = check_confidence(confidence)
    wanted, bar, narrow, size = Metric(rule.metric), rule.at_least, rule.width, rule.simulations
    ci = rule.ci_prob, rule.ci_kind
    runs = Sequences(wanted, rule.batch, rule.trials, rule.looks, rule.rho, ci, rule.random_seed, progress)
    runs.check_size(size)
    required, characteristics = math.nan, []
    if bar is not None:
        required = required_probability(runs.probabilities(bar, bar, size, stream=0), least, rule.false_winners)
        truths = [bar, *(truth for truth in (bar - AWAY, bar + AWAY) if 0 < truth < 1)]
        for stream, truth in enumerate(truths, start=1):
            if narrow is None:
                met, widths = runs.probabilities(bar, truth, size, stream=stream), None
            else:
                widths, met = runs.widths(truth, size // SHARE, stream=stream, bar=bar)
            characteristics.append(described(truth, met, widths, required, narrow, runs))
    elif narrow is not None:
        truth, nan = float(metric_of(share, runs.rho, wanted)), math.nan
        last = first_look(runs.widths(truth, size // SHARE, stream=1)[0] <= narrow)
        characteristics.append(Characteristic(truth, nan, nan, nan, mean_tasks(last, runs)))
    return replace(rule, required=required, characteristics=tuple(characteristics))
