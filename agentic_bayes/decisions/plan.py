"""How many new tasks, and how many trials of each, are worth paying for? By simulation.

A design is a number of new tasks and of trials per task. Data are simulated under it, added to what there is, and
analysed as they will be; what the design is worth is the average over the simulations. For the success rate alone
there is a formula, sd = √(μ(1-μ)(ρ + (1-ρ)/n)/T), which is shown next to it as a check.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from agentic_bayes.checks import check_choice, check_count, check_number, check_probability, check_seed, check_type
from agentic_bayes.decisions.decision import Decision, remarks
from agentic_bayes.decisions.gate import check_confidence, ruling
from agentic_bayes.decisions.simulate import (
    NO_DATA,
    Cells,
    ManyPosteriors,
    PairedDifference,
    Quantile,
    correlations,
    exact_posterior,
    histograms,
    metric_of,
    mu_with_metric,
    simulate_pair,
    simulate_successes,
    unused_words,
)
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.distribution import CIKind
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.formatting import Metric, exact_percent, format_number, interval_words, plural
from agentic_bayes.numerics import Array
from agentic_bayes.result_table import Table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Design", "Plan", "plan"]

Goal = Literal["width", "conclusive", "detected"]
TRIALS = (1, 2, 3, 4, 5, 8)
FEWEST, MOST = 2, 20_000  # tasks of a design
MOST_TRIALS, MOST_SIMULATIONS = 1000, 100_000
FRACTIONS = (0.25, 0.5, 1.0)  # of a budget, so that a picture shows what more money buys
SIMULATIONS: dict[Goal, int] = {"width": 100, "conclusive": 300, "detected": 200}
FIRST = 50  # tasks with which a search begins
STEPS: dict[Goal, int] = {"width": 6, "conclusive": 3, "detected": 3}  # a count of successes is too noisy to chase
NEAR = 0.02  # relative change of the number of tasks at which a search ends
SLOWEST = 0.1  # power of the number of tasks with which a width must fall for a search to go on
DEAREST = 1e100  # amount of money; with more, the cost of a design is no number
TOO_DEAR = 1.5  # times the cheapest design that reaches the target: not looked at
TOGETHER = 100  # data sets on one grid
SHARED = 0.7  # correlation of two agents' chances on a task, where nobody knows better


@dataclass(frozen=True, slots=True)
class Design:
    """New tasks × trials per task, and what they are worth."""

    tasks: int
    trials: int
    cost: float  # tasks × (trials × cost per trial + cost per task); trials of both where two are to be told apart
    width: float  # mean width of the interval
    conclusive: float | None  # probability that the gate passes or fails; None if that was not asked
    detected: float | None  # probability that the interval of the difference excludes 0; None if that was not asked
    rate_sd: float  # √(μ(1-μ)(ρ + (1-ρ)/n)/T): standard error of the success rate from the new tasks alone


@dataclass(frozen=True, repr=False)
class Plan(Decision):
    """The recommended design, and those that were looked at.

    Attributes
    ----------
    metric : str
        "pass@k" or "pass^k" with a number.
    mu, rho : float
        The truth that was assumed; with an estimate their posterior means (the simulations draw from the posterior).
    ci_prob : float
        Probability of the interval.
    ci_kind : {"eti", "hdi"}
        Its kind.
    goal : {"width", "conclusive", "detected"}
        What is wanted.
    target : float or None
        How narrow or how probable; None where a budget alone was given.
    budget : float or None
        What may be spent.
    designs : tuple of Design
        All that were simulated, cheapest first.
    best : Design or None
        The cheapest that reaches the target (a width within 1 %, a probability within one standard error of the
        simulations) or, without a target, the best within the budget; None if none of those simulated does.
    asked : str
        The goal in words.
    note : str
        What else a reader must know, or empty.
    simulations : int
        Data sets per design.
    random_seed : int
    """

    metric: str
    mu: float
    rho: float
    ci_prob: float
    ci_kind: CIKind
    goal: Goal
    target: float | None
    budget: float | None
    designs: tuple[Design, ...]
    best: Design | None
    asked: str
    note: str
    simulations: int
    random_seed: int

    def to_pandas(self) -> pd.DataFrame:
        """All designs, cheapest first.

        Returns
        -------
        pandas.DataFrame
            Columns tasks, trials, cost, width, conclusive, detected, rate_sd; NaN where that was not asked.
        """
        import pandas as pd

        frame = pd.DataFrame([asdict(one) for one in self.designs], columns=list(Design.__annotations__))
        return frame.astype({"conclusive": float, "detected": float})

    @property
    def frontier(self) -> tuple[Design, ...]:
        """One design per number of trials: the cheapest that does what is asked, else the dearest that was tried."""
        aim, found = _Aim(self.goal, self.target, self.budget, self.simulations), []
        for trials in sorted({one.trials for one in self.designs}):
            own = [one for one in self.designs if one.trials == trials]
            found.append(aim.best(own) or max(own, key=lambda one: one.cost))
        return tuple(found)

    def __str__(self) -> str:
        if self.best is None:
            head = "no simulated design reaches it" if self.designs else "the budget buys no design"
            return f"{head}: {self.asked}{remarks(self.note)}"
        one = self.best
        worth = f"mean width {format_number(one.width)}"
        if self.goal != "width":
            worth = f"probability {format_number(getattr(one, self.goal))}, {worth}"
        each = " for each of the two agents, on the same tasks" if self.goal == "detected" else ""
        truth = f"simulated {self.simulations} times at μ {format_number(self.mu)}, ρ {format_number(self.rho)}"
        design = f"{plural(one.tasks, 'new task')} × {plural(one.trials, 'trial')}{each}, cost {one.cost:,.6g}"
        return f"{design}: {self.asked}; {worth}; {truth}{remarks(self.note)}"

    def table(self) -> Table:
        """One design per number of trials; `to_pandas` has all of them."""
        asked = self.goal if self.goal != "width" else None
        words = {"conclusive": "P(conclusive)", "detected": "P(told apart)"}
        rows = [
            [
                f"{one.tasks:,}",
                str(one.trials),
                f"{one.cost:,.6g}",
                format_number(one.width),
                *([format_number(getattr(one, asked))] if asked else []),
                format_number(one.rate_sd),
                "recommended" if one == self.best else "",
            ]
            for one in self.frontier
        ]
        header = ["new tasks", "trials each", "cost", f"width of {self.metric}", *([words[asked]] if asked else [])]
        notes = [
            f"{self.metric} on a new task of this kind; mean width of the "
            f"{interval_words(self.ci_prob, self.ci_kind)}; sd of the rate from the new tasks alone, by formula",
            "one design per number of trials: the cheapest that reaches the goal, else the most expensive one "
            "simulated; "
            f".to_pandas() has all {len(self.designs):,}",
        ]
        header += ["sd of rate", "choice"]
        return Table(title="Plan:", text=f" {self}", header=header, rows=rows, notes=notes, noun="design")


def plan(
    est: Estimate | None = None,
    agent: str | None = None,
    *,
    metric: str = "pass^1",
    mu: float | None = None,
    rho: float | None = None,
    budget: float | None = None,
    width: float | None = None,
    at_least: float | None = None,
    confidence: float = 0.95,
    difference: float | None = None,
    power: float = 0.8,
    shared: float = SHARED,
    trials: int | Iterable[int] | None = None,
    cost_per_trial: float = 1,
    cost_per_task: float = 0,
    ci_prob: float = 0.95,
    ci_kind: CIKind = "eti",
    simulations: int | None = None,
    progress: Callable[[int, int | None], None] | None = None,
    random_seed: int = 0,
) -> Plan:
    """Find the cheapest design that reaches a goal, or the best that a budget buys.

    Parameters
    ----------
    est : Estimate, optional
        What is known already: its tasks stay in the analysis, and the truth is drawn from its posterior (the
        hierarchical model of this agent alone).
    agent : str, optional
        Whose; may be left out where there is only one.
    metric : str
        What is to be known: "pass@k" or "pass^k" with a number.
    mu, rho : float, optional
        A guess instead of `est`: mean success probability, in (0, 1), and intra-class correlation, in [0, 1] (.36 to
        .58 on tau-bench).
    budget : float, optional
        Most that may be spent. Alone: the narrowest interval that it buys.
    width : float, optional
        Goal: a mean width of the interval of at most this, in (0, 1).
    at_least : float, optional
        Goal: a `gate` with this bar and `confidence` that passes or fails with probability `power`.
    confidence : float
        What the gate requires, in (0.5, 1).
    difference : float, optional
        Goal: two agents whose metrics differ by this, in (0, 1), are told apart (the interval of the difference
        excludes 0) with probability `power`. Both attempt the same tasks and are compared on these, as `compare` does.
    power : float
        In (0, 1).
    shared : float
        For a difference, in [0, 1): the correlation (of a Gaussian copula) of two agents' chances on the same task. 0:
        what is hard for one says nothing about the other.
    trials : int or iterable of int, optional
        Trials per task to consider, up to 1,000; default 1, 2, 3, 4, 5, 8 and k (up to 20).
    cost_per_trial, cost_per_task : float
        ≥ 0, not both 0; in any currency.
    ci_prob : float
        Probability of the interval; an estimate's own where there is one.
    ci_kind : {"eti", "hdi"}
        Its kind; an estimate's own where there is one.
    simulations : int, optional
        Data sets per design, 10 to 100,000. Default: 100 for a width, 300 for a gate, 200 for a difference.
    progress : callable, optional
        Called with data sets simulated so far and in all (None: not known).
    random_seed : int
        Same seed, same plan.

    Returns
    -------
    Plan

    Raises
    ------
    InvalidArgument
        If an argument is not valid, or nothing or too much is asked.
    """
    wanted = Metric(metric)
    goal, target = _goal(width, at_least, difference, power, budget)
    required = check_confidence(confidence)
    prices = _amount(cost_per_trial, "cost_per_trial"), _amount(cost_per_task, "cost_per_task")
    if sum(prices) == 0:
        raise InvalidArgument("cost_per_trial and cost_per_task must not both be 0")
    most = None if budget is None else _amount(budget, "budget")
    options = _trials(trials, wanted.k)
    if not check_probability(shared, "shared") < 1:
        raise InvalidArgument(f"shared must be in [0, 1), got {shared:g}")
    size = SIMULATIONS[goal] if simulations is None else check_count(simulations, "simulations", least=10)
    if size > MOST_SIMULATIONS:
        raise InvalidArgument(f"simulations must be at most {MOST_SIMULATIONS:,}")
    seed = check_seed(random_seed)
    if est is not None:
        check_type("est", est, Estimate, "estimate() makes one")
        ci_prob, ci_kind = est.settings.ci_prob, est.settings.ci_kind
    check_choice("ci_kind", ci_kind, ("eti", "hdi"))
    ci_prob = check_probability(ci_prob, "ci_prob", open_ends=True)
    known, truth = _truth(est, agent, mu, rho, wanted, size, seed)
    aim = _Aim(goal, target, most, size)
    study = _Study(
        aim=aim,
        metric=wanted,
        known=known,
        mu=truth[0],
        rho=truth[1],
        ci=(ci_prob, ci_kind),
        bar=at_least,
        required=required,
        better=None if difference is None else _better(truth, difference, wanted),
        shared=float(shared),
        prices=prices,
        seed=seed,
        progress=progress,
    )
    for n in options:
        study.search(n)
    designs = tuple(sorted(study.seen.values(), key=lambda one: (one.cost, one.trials)))
    return Plan(
        metric=str(wanted),
        mu=float(np.mean(truth[0])),
        rho=float(np.mean(truth[1])),
        ci_prob=ci_prob,
        ci_kind=ci_kind,
        goal=goal,
        target=target,
        budget=budget,
        designs=designs,
        best=aim.best(designs),
        asked=_asked(aim, wanted, ci_prob, at_least, required, difference),
        note=_note(options, wanted, known, aim, est, shared),
        simulations=size,
        random_seed=seed,
    )


@dataclass(frozen=True, slots=True)
class _Aim:
    """What is wanted of a design."""

    goal: Goal
    target: float | None  # None: the narrowest interval within the budget
    budget: float | None
    simulations: int

    def reached(self, design: Design) -> bool:
        """Whether a design does what is wanted, as far as the simulations can tell."""
        assert self.target is not None
        if self.goal == "width":
            return design.width <= self.target * (1 + NEAR / 2)
        return bool(getattr(design, self.goal) >= self.target - self.error)

    @property
    def error(self) -> float:
        """The standard error of a simulated probability."""
        power = self.target or 0.5
        return math.sqrt(power * (1 - power) / self.simulations)

    def best(self, designs: Iterable[Design]) -> Design | None:
        """The cheapest design that reaches the target, or the one with the narrowest interval within the budget."""
        most = math.inf if self.budget is None else self.budget
        affordable = [one for one in designs if one.cost <= most * (1 + 1e-12)]
        if self.target is None:
            return min(affordable, key=lambda one: (one.width, one.cost), default=None)
        return min(filter(self.reached, affordable), key=lambda one: (one.cost, one.width), default=None)


def _goal(
    width: float | None, at_least: float | None, difference: float | None, power: float, budget: float | None
) -> tuple[Goal, float | None]:
    """What is wanted, and how much of it."""
    given = {"width": width, "at_least": at_least, "difference": difference}
    wanted = [name for name, value in given.items() if value is not None]
    if len(wanted) > 1:
        raise InvalidArgument(f"one goal at a time: width, at_least or difference, got {' and '.join(wanted)}")
    likely = check_probability(power, "power", open_ends=True)
    if not wanted:
        if budget is None:
            raise InvalidArgument("give a goal (width, at_least or difference) or a budget")
        return "width", None
    if width is not None:
        return "width", check_probability(width, "width", open_ends=True)
    if at_least is not None:
        check_probability(at_least, "at_least")
        return "conclusive", likely
    check_probability(difference, "difference", open_ends=True)
    return "detected", likely


def _amount(value: object, name: str) -> float:
    if isinstance(value, (int, float)) and DEAREST < value < math.inf:
        raise InvalidArgument(f"{name} must be at most {DEAREST:g}")
    return check_number(value, name)


def _trials(trials: int | Iterable[int] | None, k: int) -> tuple[int, ...]:
    if trials is None:
        return tuple(sorted({*TRIALS, *([k] if k <= 20 else [])}))
    several: Iterable[object] = trials if isinstance(trials, Iterable) and not isinstance(trials, bytes) else [trials]
    options = tuple(sorted({check_count(n, "trials") for n in several}))
    if not options:
        raise InvalidArgument("trials must hold at least one number of trials per task, got none")
    if options[-1] > MOST_TRIALS:
        raise InvalidArgument(f"trials must be at most {MOST_TRIALS:,}")
    return options


def _truth(
    est: Estimate | None, agent: str | None, mu: float | None, rho: float | None, metric: Metric, size: int, seed: int
) -> tuple[Cells, tuple[Array, Array]]:
    """What is known already, and μ and ρ of every simulation."""
    if est is None:
        if agent is not None:
            raise InvalidArgument(f"an agent needs an estimate, got agent {agent!r} without one")
        if mu is None or rho is None:
            raise InvalidArgument("give an estimate, or a guess of both mu and rho")
        share = check_probability(mu, "mu", open_ends=True)
        return NO_DATA, (np.full(size, share), np.full(size, check_probability(rho, "rho")))
    if mu is not None or rho is not None:
        raise InvalidArgument("give an estimate or a guess of mu and rho, not both")
    index = est.agent_index(agent)
    if est.settings.judge is not None:
        raise InvalidArgument("plan does not simulate judge errors: give it est.uncorrected, or a guess of mu and rho")
    known = Cells.scored(est.counts, index)
    drawn = exact_posterior(known, metric, random_seed=seed).hyper_draws()
    drawn_mu, drawn_rho = drawn["mu"][:, 0], drawn["rho"][:, 0]
    chosen = np.random.default_rng([seed, 0]).choice(drawn_mu.size, size=size, replace=size > drawn_mu.size)
    return known, (drawn_mu[chosen], drawn_rho[chosen])


def _better(truth: tuple[Array, Array], difference: float, metric: Metric) -> Array:
    """μ of a second agent whose metric is higher by `difference`, or lower where there is no room above."""
    own = metric_of(*truth, metric)
    up, down = own + difference, own - difference
    if np.all((up >= 1) & (down <= 0)):
        raise InvalidArgument(
            f"difference must leave room for the metric of {float(own.mean()):.3g}, got {difference:g}"
        )
    goal = np.where(up < 1, up, np.maximum(down, 1e-6))
    return mu_with_metric(goal, truth[1], metric)


@dataclass
class _Study:
    """Designs simulated so far, and how to simulate another."""

    aim: _Aim
    metric: Metric
    known: Cells
    mu: Array
    rho: Array
    ci: tuple[float, CIKind]
    bar: float | None
    required: float
    better: Array | None
    shared: float
    prices: tuple[float, float]
    seed: int
    progress: Callable[[int, int | None], None] | None
    seen: dict[tuple[int, int], Design] = field(default_factory=dict)
    paired: PairedDifference = field(default_factory=PairedDifference)

    def cost(self, tasks: int, trials: int) -> float:
        """Of a design."""
        per_trial, per_task = self.prices
        return tasks * (trials * per_trial * (1 if self.better is None else 2) + per_task)

    def at(self, tasks: int, trials: int) -> Design:
        """Simulate a design, once."""
        if (tasks, trials) not in self.seen:
            self.seen[tasks, trials] = self._simulated(tasks, trials)
        return self.seen[tasks, trials]

    def _simulated(self, tasks: int, trials: int) -> Design:
        widths, conclusive, detected = np.empty(self.mu.size), [], []
        for start in range(0, self.mu.size, TOGETHER):
            part = slice(start, start + TOGETHER)
            if self.progress is not None:
                self.progress(len(self.seen) * self.mu.size + start, None)
            data = self._data(tasks, trials, part)
            own = histograms(data[:, 0], trials)
            posteriors = ManyPosteriors(self.metric, trials, own, known=self.known)
            lower, upper = posteriors.intervals(*self.ci)
            widths[part] = upper - lower
            if self.bar is not None:
                met = posteriors.at_least(self.bar).tolist()
                conclusive += [ruling(one, self.required) != "inconclusive" for one in met]
            if self.better is not None:
                others = ManyPosteriors(self.metric, trials, histograms(data[:, 1], trials)).quantiles
                # tasks that the first agent tried alone say nothing about the second
                alike = correlations(data) * math.sqrt(tasks / (tasks + self.known.trials.size))
                both = zip(posteriors.quantiles, others, alike.tolist(), strict=True)
                detected += [self._told_apart(*one) for one in both]
        mu, rho = float(self.mu.mean()), float(self.rho.mean())
        return Design(
            tasks=tasks,
            trials=trials,
            cost=self.cost(tasks, trials),
            width=float(np.mean(widths)),
            conclusive=float(np.mean(conclusive)) if conclusive else None,
            detected=float(np.mean(detected)) if detected else None,
            rate_sd=math.sqrt(mu * (1 - mu) * (rho + (1 - rho) / trials) / tasks),
        )

    def _data(self, tasks: int, trials: int, part: slice) -> Array:
        """Simulated successes of an agent, or of it and a better one, shape (data sets, 1 or 2, tasks)."""
        found = []
        for i in range(*part.indices(self.mu.size)):
            rng, mu, rho = np.random.default_rng([self.seed, 1, trials, i]), float(self.mu[i]), float(self.rho[i])
            if self.better is None:
                found.append(simulate_successes(rng, mu, rho, tasks, trials)[None])
            else:
                found.append(simulate_pair(rng, (mu, float(self.better[i])), rho, self.shared, tasks, trials))
        return np.array(found)

    def _told_apart(self, own: Quantile, other: Quantile, correlation: float) -> bool:
        """Whether the interval of the difference excludes 0."""
        lower, upper = self.paired.interval(own, other, correlation, self.ci[0])
        return lower > 0 or upper < 0

    def search(self, trials: int) -> None:
        """Simulate the designs with this many trials that matter."""
        aim, most = self.aim, MOST
        if aim.budget is not None:
            most = int(min(aim.budget / self.cost(1, trials) + 1e-9, MOST))
            if most < FEWEST:
                return
        if aim.target is None:
            for fraction in FRACTIONS:
                self.at(max(FEWEST, int(most * fraction)), trials)
            return
        tasks = min(FIRST, most)
        cheapest = min((one.cost for one in self.seen.values() if aim.reached(one)), default=math.inf)
        for _ in range(STEPS[aim.goal]):
            now = self.at(tasks, trials)
            following = min(max(math.ceil(self._wanted(now, aim.target)), FEWEST), most)
            if following == tasks or self.cost(following, trials) > TOO_DEAR * cheapest:
                return
            then = self.at(following, trials)
            settled = abs(following - tasks) <= NEAR * tasks and aim.reached(then)
            grown = math.log(following / tasks)
            if settled or (grown > 1 and math.log(now.width / then.width) < SLOWEST * grown):
                return
            tasks = following

    def _wanted(self, design: Design, target: float) -> float:
        """How many tasks would do, if widths went with 1/√tasks and power with the normal distribution."""
        from scipy.special import ndtri

        goal = self.aim.goal
        if goal == "width":
            factor = min(design.width / target, 4) ** 2
        else:
            z = float(ndtri(self.required if goal == "conclusive" else (1 + self.ci[0]) / 2))
            rare = 0.5 / self.mu.size
            found = min(max(getattr(design, goal), rare), 1 - rare)
            factor = ((float(ndtri(target)) + z) / max(float(ndtri(found)) + z, 0.1)) ** 2
        return design.tasks * min(max(factor, 1 / 16), 16)


def _asked(
    aim: _Aim, metric: Metric, ci_prob: float, at_least: float | None, required: float, difference: float | None
) -> str:
    """The goal in words."""
    interval, within = f"{exact_percent(ci_prob)} interval of {metric}", ""
    if aim.budget is not None:
        within = f" within {aim.budget:,.6g}"
    if aim.target is None:
        return f"the narrowest {interval}{within}"
    if aim.goal == "width":
        return f"the cheapest whose {interval} is on average no wider than {aim.target:g}{within}"
    if aim.goal == "conclusive":
        asked = f"a gate at {metric} ≥ {at_least:g} (confidence {required:g}) passes or fails"
    else:
        asked = f"two agents whose {metric} differ by {difference:g} are told apart"
    return f"the cheapest with which {asked} with probability {aim.target:g}{within}"


def _note(
    options: tuple[int, ...], metric: Metric, known: Cells, aim: _Aim, est: Estimate | None, shared: float
) -> str:
    parts = []
    if aim.goal == "detected":
        parts.append(f"both agents on the same tasks, on which their chances correlate {shared:g} (shared=…)")
    if aim.goal != "width":
        near = "" if aim.target is None else f": a design that comes this close to {aim.target:g} counts as reaching it"
        parts.append(f"the probability has a simulation error of {aim.error:.2g}{near}")
    if known.trials.size:
        parts.append(f"added to the {plural(known.trials.size, 'task')} already tried")
    if est is not None:
        parts += filter(None, (unused_words(est), est.differences))
    if metric.k > 1 and 1 in options and known.trials.max(initial=1) == 1:
        parts.append(
            "with 1 trial per task the spread between tasks cannot be estimated, so the "
            f"{metric} interval never gets narrower than the prior allows"
        )
    return "; ".join(parts)
