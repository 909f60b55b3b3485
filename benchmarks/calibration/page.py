"""The summary pages, written from the files of a study alone: what was run, the main results, every bad cell."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import pandas as pd

from agentic_bayes.formatting import format_number
from calibration.coverage import ESTIMANDS, METHODS, METRICS
from calibration.tables import Tables

LOW = 0.90
# kinds of cells, with the condition of `pandas.DataFrame.query` that selects them
KINDS = {
    "ρ = 0": "rho == 0",
    "ρ ≥ .2, n = 1": "rho > 0 and n == 1",
    "ρ ≥ .2, n ≥ 3, T = 5": "rho > 0 and n >= 3 and T == 5",
    "ρ ≥ .2, n ≥ 3, T ≥ 20, k ≤ n": "rho > 0 and n >= 3 and T >= 20 and k <= n",
    "ρ ≥ .2, n ≥ 3, T ≥ 20, k > n": "rho > 0 and n >= 3 and T >= 20 and k > n",
}


def intervals_page(tables: Tables) -> str:
    """`docs/calibration.md` as Markdown."""
    run, frames = tables.run, tables.frames
    bad = bad_entries(frames["fixed_truths"])
    return joined(
        _INTERVALS.format(run=run_words(run, _INTERVAL_SIZES)),
        "## Requirements",
        requirements_table(frames["requirements"]),
        "## Coverage at fixed truths",
        _FIXED,
        _averages(frames["fixed_truths_averages"]),
        _SHORT,
        _shortfalls(frames["fixed_truths"]),
        "### Every entry of ours below .90",
        _BAD.format(bad=len(bad), edge=int((bad["rho"] == 0).sum())),
        _bad_table(bad),
        "## Coverage with truth from the prior",
        _PRIOR.format(error=format_number(frames["prior_coverage"]["standard_error"].max(), 4)),
        _prior(frames["prior_coverage"]),
        "## Simulation-based calibration",
        _SBC,
        _sbc(frames["sbc"]),
        "## Two engines, one posterior",
        _engines(run, frames["engines"]),
        "## Predicting held-out trials",
        _HELD_OUT,
        _held_out(frames["held_out"]),
        filled(_PUBLISHED.format(**run["published_mean_error"])),
        "## The files",
        _INTERVAL_FILES,
    )


def decisions_page(tables: Tables) -> str:
    """`docs/calibration_decisions.md` as Markdown."""
    frames = tables.frames
    return joined(
        _DECISIONS.format(run=run_words(tables.run, _DECISION_SIZES)),
        "## Requirements",
        requirements_table(frames["requirements"]),
        "## Decisions",
        _COMPARED,
        _paired(frames["paired"]),
        _GATES.format(designs=len(frames["gates"])),
        _gates(frames["gates"]),
        _HALVES,
        _halves(frames["halves"]),
        _RULES.format(looks=frames["rules"]["looks"].max()),
        _rules(frames["rules"]),
        "## Judges that err",
        _JUDGED,
        _judged(frames["judges"]),
        _JUDGED_TWICE,
        _judged_comparisons(frames["judged_comparisons"]),
        "## The files",
        _DECISION_FILES,
    )


def bad_entries(fixed_truths: pd.DataFrame) -> pd.DataFrame:
    """Our own equal-tailed intervals whose coverage is below .90."""
    return fixed_truths[(fixed_truths["method"] == "ours") & (fixed_truths["coverage"] < LOW)]


_INTERVALS = """\
# Calibration

A 95 % interval should contain the true value 95 times in 100. One data set cannot show whether it does; thousands of
simulated ones can. This page summarises those simulations for intervals, [calibration of
decisions](calibration_decisions.md) does the same for comparisons, gates and judges, and [calibration of paired and
grouped estimates](calibration_models.md) for agents on shared tasks and for groups of tasks. The full tables are CSV
files: [the files](#the-files).

{run}

Unless a line says otherwise, the intervals are those of the hierarchical model with its default priors, computed by the
exact engine, 95 % and equal-tailed. Coverage below .90 is **bold**, ours and everyone else's. The tests in
`tests/calibration` run a smaller form of the same code."""

_DECISIONS = """\
# Calibration of decisions

Are decisions wrong as rarely as they claim? [Calibration](calibration.md) asks the same of intervals. The full tables
are CSV files: [the files](#the-files).

{run}"""

_INTERVAL_SIZES = (
    "{size:,} simulated data sets per study and cell, {sets} data sets fitted by both engines, "
    "{held_out} simulated agents and random splits"
)
_DECISION_SIZES = "{size:,} simulated data sets per study"
_RUN = "{form} run: {sizes}; seed {seed}. Versions: {versions}."
_EARLIER = (
    "**These tables were made with the defaults of version 0.1**: ρ ~ Uniform(0, 1), the hierarchical model for all "
    "data, and unpaired plans. They have not been made again since a quarter of the prior of ρ moved near 0 and agents "
    "that share tasks became crossed by default. `tests/calibration` checks the new defaults in a reduced form."
)
_AGAIN = """\
To run it again: `make calibrate`, an hour on two idle cores. `python benchmarks/calibrate.py --help` lists
the options of smaller runs. Both rewrite this page and its files; the same seed and versions give the same numbers."""

_FIXED = """\
A cell is a true mean μ, a true spread between tasks ρ, T tasks and n trials per task: 81 cells. *Coverage* is the share
of data sets whose interval contained the truth; the mean width is in parentheses. The five alternatives:

- *plug-in*: Wilson's interval of the pooled rate, put through p^k;
- *conjugate pooled*: one Beta posterior for all trials, put through p^k;
- *clustered t*, *logit-t*, *bootstrap* (percentile, 1,000 resamples): intervals of the mean over tasks of the unbiased
  values, for k ≤ n. Logit-t is undefined where all values are equal; its coverage is over the data sets where it is
  defined.

None of the five distinguishes `population` from `tasks`. Averages over the cells with T ≥ 20, n ≥ 3, k ≤ n and ρ ≥ .2,
with the lowest coverage among them:"""

_SHORT = """\
Where our own intervals fall short, counting every cell and metric once (k > n is extrapolation; `hdi` was computed for
k = 3 at ρ = 0):"""

_BAD = """\
{bad} entries, {edge} of them at ρ = 0, where every task is equally hard: that is the edge of the prior, and an
equal-tailed interval leaves the edge out on one side. An empty field is .90 or above."""

_PRIOR = """\
Here μ and ρ are drawn from the prior for every data set, so a correct 95 % interval has a coverage of .95, give or take
a standard error of {error}. `task` is one task, chosen before looking at the data. Coverage, and mean width in
parentheses:"""

_SBC = """\
The truth is drawn from the prior, data from the truth, and the truth's rank in the posterior is recorded: from the
engine's distribution function for μ, ρ and `population`, among 4,000 independent draws for the rest. If the posterior
is right, ranks are uniform (Talts et al. 2018). The table has the probability that uniform ranks leave the pointwise
binomial limits of their ECDF as far as these do at any of 99 points (Säilynoja et al. 2022). Below .01 the ECDF is
outside its 99 % simultaneous envelope. A correct engine fails one such check with probability .01, and at least one of
the eleven with probability .11 at most.

One agent: 5 to 40 tasks with 1 to 6 trials each. Two agents: 5 to 20 tasks. The wrong prior, ρ ~ Beta(1, 10), is fitted
to data whose ρ is uniform and has to fail."""

_ENGINES = """\
Quadrature and NUTS (4 × 1,000 draws) each fitted {sets} random data sets (2 agents, up to 12 tasks, 0 to 6 trials per
cell). The sampler's own diagnostics passed in {converged} of {sets}. Means are compared by (difference)/MCSE, quantiles
by (F(q̂_p) − p)/√(p(1−p)/ESS) at p = .025, .25, .5, .75 and .975, for ρ, population pass^1 (= μ), pass^3, pass@3 and
tasks pass^3 of each agent.

Of {checks} checks {beyond_2} differ by more than 2 standard errors, {beyond_3} by more than 3 and {beyond_4} by more
than 4. With two correct engines a check exceeds 4 with probability 6e-5, and more than {allowed_beyond_4} of {checks}
do with probability .001 at most. The largest is {largest:.2f} (data set {data}, {quantity}, {what})."""

_HELD_OUT = """\
Some trials of every task are fitted, the others predicted. *Log score*: mean log predictive probability of a task's
held-out count (higher is better). *Error*: |predicted − observed| pass^2 per agent, where observed is the unbiased
estimate from the held-out trials. The plug-in rate is kept half a trial away from 0 and 1, or one surprise would cost
it an infinite score.

*Simulated agents* have μ and ρ from the prior and 40 tasks: 3 trials are fitted, 2 predicted. *tau-bench airline,
gpt-4o* has 50 tasks: 2 trials are fitted and 2 predicted, in random splits."""

_PUBLISHED = """\
Nine agents have published their pass^1 to pass^4 on tau-bench. From pass^1 and pass^2 alone, a Beta population with
ρ = (pass^2 − m²)/(m(1 − m)), m = pass^1, predicts pass^4 with a mean error of {beta_population:.3f}; the plug-in m^4
errs by {plugin:.3f}."""

_INTERVAL_FILES = """\
Coverage has three decimals, p four, widths two, so a width of 0.00 is below .005 and a p of 0.0000 below .00005 or
equal to it.

- [requirements.csv](calibration/intervals/requirements.csv): the table at the top.
- [fixed_truths.csv](calibration/intervals/fixed_truths.csv): every cell, estimand, metric and method. `exists` is the
  share of data sets in which the method has an interval, to two decimals; blank where all have one.
- [fixed_truths_averages.csv](calibration/intervals/fixed_truths_averages.csv): the averages above.
- [prior_coverage.csv](calibration/intervals/prior_coverage.csv): truth from the prior.
- [sbc.csv](calibration/intervals/sbc.csv): p-values, and the ranks as a histogram of 20 bins (a full bar is 1.5 × the
  expected count).
- [engines.csv](calibration/intervals/engines.csv): the five largest differences between the engines.
- [held_out.csv](calibration/intervals/held_out.csv), [published.csv](calibration/intervals/published.csv): predictions.
- [run.json](calibration/intervals/run.json): sizes, seed, versions and counts."""

_COMPARED = """\
Two agents attempt the same tasks, 4 trials each. The data do not come from our model: each agent deviates uniformly on
every task, and the better one is shifted on the logit scale. Tasks of *three kinds* are 40, their easiness a mixture of
three normals (easy, hard, between), with a shift of .9. Tasks of *one kind* are 50, their easiness one normal with a
spread of 1.3, with a shift of .55. *Equal agents* have no shift. *t* is the paired t-test on the tasks' unbiased
values, *z* the two-sample z-test that ignores the pairing. The true difference comes from two million tasks. At k = 1
our interval is as wide as the t's and finds as much; what the model adds shows at k = 3."""

_GATES = """\
A gate that requires 95 % confidence, with the truth exactly at its bar, should pass in 5 % of data sets and fail in
5 %. The lowest and highest share of the {designs} designs: where tasks differ, ρ = .2 and .45 with 30 tasks × 3 trials,
50 × 4 and 200 × 3; where they are alike (ρ = 0, success rate .9), 20 and 50 tasks × 3 and 5 trials. That is the edge of
the prior: there a gate on pass@3 fails more often than 5 %, for the data leave it open that a few tasks are hard:"""

_HALVES = """\
Two equal agents, 60 tasks × 4 trials; the second tried only half of the tasks. How often are they called “better” or
“worse”? `compare` takes the tasks that both tried. With `tasks="own"` each agent keeps its own, as if chance had dealt
them out:"""

_RULES = """\
A stopping rule made by `monitor` for {looks} looks at 20 tasks × 3 trials each, with the truth exactly at its bar,
followed look by look with the exact engine. In parentheses is the figure that the rule states about itself:"""

_JUDGED = """\
50 tasks × 5 trials, μ = .7, ρ = .45, judged with sensitivity .95 and specificity .60; 60 of the attempts have a human
label. *Corrected* is `estimate(judge_labels=…)`, *uncorrected* takes the verdicts at face value. In the last design
every task has its own error rates (Beta with precision 4); the labels of twelve whole tasks show how much errors
cluster. Coverage, and mean width in parentheses:"""

_JUDGED_TWICE = """\
The same with two equal agents on the same tasks. The judge's sensitivity and specificity are .98 and .5 with one of
them, .85 and .85 with the other; 60 attempts of each have a label that names its agent:"""

_DECISION_FILES = """\
- [requirements.csv](calibration/decisions/requirements.csv): the table at the top.
- [paired.csv](calibration/decisions/paired.csv), [rules.csv](calibration/decisions/rules.csv),
  [judges.csv](calibration/decisions/judges.csv): the tables above.
- [halves.csv](calibration/decisions/halves.csv),
  [judged_comparisons.csv](calibration/decisions/judged_comparisons.csv): the tables on different tasks, and on a judge
  that errs differently with each agent.
- [gates.csv](calibration/decisions/gates.csv): every gate, with its ρ, tasks and trials.
- [run.json](calibration/decisions/run.json): sizes, seed and versions."""


def joined(*parts: str) -> str:
    """Parts of a page with blank lines between."""
    return "\n\n".join(parts) + "\n"


def run_words(run: dict[str, Any], sizes: str) -> str:
    """How the study was run, and how to run it again."""
    versions = ", ".join(f"{name} {number}" for name, number in run["versions"].items())
    form = "Full" if run["form"] == "full" else "REDUCED"
    run_line = _RUN.format(form=form, sizes=sizes.format(**run), seed=run["seed"], versions=versions)
    if "rho" not in run:
        run_line += f"\n\n{_EARLIER}"
    return f"{filled(run_line)}\n\n{_AGAIN}"


def filled(text: str) -> str:
    """Paragraphs wrapped anew, once their numbers are in."""
    wrap = partial(textwrap.fill, width=120, break_long_words=False, break_on_hyphens=False)
    return "\n\n".join(map(wrap, text.split("\n\n")))


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table of Markdown."""
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in (header, ["---"] * len(header), *rows)]
    return "\n".join(lines)


def marked(coverage: float) -> str:
    """A coverage, bold where it is below .90."""
    return f"**{format_number(coverage)}**" if coverage < LOW else format_number(coverage)


def with_width(coverage: float, width: float, digits: int = 2) -> str:
    """A coverage, and the mean width in parentheses."""
    return f"{marked(coverage)} ({format_number(width, digits)})"


def requirements_table(frame: pd.DataFrame) -> str:
    """The table at the top of a page."""
    rows = [(row.requirement, row.result, "yes" if row.holds else "**no**") for row in frame.itertuples()]
    return markdown_table(("requirement", "result", "holds"), rows)


def _averages(frame: pd.DataFrame) -> str:
    methods = [method for method in METHODS if (frame["method"] == method).any()]
    rows = []
    for (estimand, metric), part in frame.groupby(["estimand", "metric"], sort=False):
        by_method = part.set_index("method")
        entries = [by_method.loc[method] for method in methods]
        cells = [f"{marked(e['coverage'])}, lowest {marked(e['lowest'])} ({e['width']:.2f})" for e in entries]
        rows.append((estimand, metric, *cells))
    return markdown_table(("estimand", "metric", *methods), rows)


def _shortfalls(fixed_truths: pd.DataFrame) -> str:
    """How many of our own entries fall short, by kind of cell."""
    frame = fixed_truths.assign(k=fixed_truths["metric"].str.extract(r"(\d+)", expand=False).astype(int))
    kinds = [(name, "ours", where) for name, where in KINDS.items()]
    kinds.insert(1, ("ρ = 0, `hdi`", "ours hdi", "rho == 0"))
    rows = []
    for name, method, where in kinds:
        chosen = frame[frame["method"] == method].query(where)
        for estimand in ESTIMANDS:
            part = chosen[chosen["estimand"] == estimand]
            if not part.empty:
                coverage = part["coverage"]
                rows.append((name, estimand, len(part), int((coverage < LOW).sum()), marked(coverage.min())))
    return markdown_table(("cells", "estimand", "entries", "below .90", "lowest"), rows)


def _bad_table(bad: pd.DataFrame) -> str:
    """One row per cell, one column per estimand and metric, with coverages below .90 only."""
    columns = [(estimand, metric) for estimand in ESTIMANDS for metric in METRICS]
    rows = []
    for (tasks, trials, rho, mu), part in bad.groupby(["T", "n", "rho", "mu"]):
        coverage = part.set_index(["estimand", "metric"])["coverage"]
        cells = [marked(coverage[column]) if column in coverage.index else "" for column in columns]
        rows.append((tasks, trials, f"{rho:g}", f"{mu:g}", *cells))
    return markdown_table(("T", "n", "ρ", "μ", *(f"{estimand} {metric}" for estimand, metric in columns)), rows)


def _prior(frame: pd.DataFrame) -> str:
    estimands = ("population", "tasks", "task")
    parts = frame["quantity"].str.split(" ", n=1, expand=True)
    frame = frame.assign(estimand=parts[0], metric=parts[1])
    rows = []
    for (design, metric), part in frame.groupby(["design", "metric"], sort=False):
        by_estimand = part.set_index("estimand")
        cells = [
            with_width(by_estimand.loc[name, "coverage"], by_estimand.loc[name, "mean_width"], 3)
            if name in by_estimand.index
            else "–"
            for name in estimands
        ]
        rows.append((design, metric, *cells))
    return markdown_table(("design", "metric", *estimands), rows)


def _sbc(frame: pd.DataFrame) -> str:
    table = frame.assign(
        shown=[p_value(p) if inside else f"**{p_value(p)}**" for p, inside in zip(frame.p, frame.inside, strict=True)]
    ).pivot(index="quantity", columns="design", values="shown")
    designs = list(dict.fromkeys(frame["design"]))
    rows = [(name, *table.loc[name, designs].fillna("–")) for name in dict.fromkeys(frame["quantity"])]
    return markdown_table(("quantity", *designs), rows)


def p_value(p: float) -> str:
    """A p-value to four decimals."""
    return "<0.0001" if p < 0.0001 else f"{p:.4f}"


def _engines(run: dict[str, Any], frame: pd.DataFrame) -> str:
    largest = frame.iloc[0]
    text = _ENGINES.format(
        **run["engines"],
        sets=run["sets"],
        largest=abs(largest["standard_errors"]),
        **largest[["data", "quantity", "what"]],
    )
    return filled(text)


def _held_out(frame: pd.DataFrame) -> str:
    parts = {name: part.set_index("method") for name, part in frame.groupby("data", sort=False)}
    rows = [
        (
            method,
            *(f"{p.loc[method, 'log_score']:.3f}, {format_number(p.loc[method, 'error'], 4)}" for p in parts.values()),
        )
        for method in dict.fromkeys(frame["method"])
    ]
    return markdown_table(("log score, error of pass^2", *parts), rows)


def _paired(frame: pd.DataFrame) -> str:
    header = ("tasks", "k", "coverage, ours", "t", "width, ours / t", "power, ours", "t", "unpaired z")
    plain = ("width_ratio", "power", "t_power", "z_power", "false_verdicts", "t_false")
    rows = [
        (
            row["tasks"],
            int(row["k"]),
            marked(row["coverage"]),
            marked(row["t_coverage"]),
            *(format_number(row[name]) for name in plain),
            marked(row["null_coverage"]),
        )
        for _, row in frame.iterrows()
    ]
    return markdown_table((*header, "equal agents: false verdicts, ours", "t", "coverage, ours"), rows)


def _gates(frame: pd.DataFrame) -> str:
    rows = []
    for (metric, bar, alike), part in frame.assign(alike=frame["rho"] == 0).groupby(
        ["metric", "bar", "alike"], sort=False
    ):
        ends = [f"{part[end].min():.3f} to {part[end].max():.3f}" for end in ("pass", "fail", "inconclusive")]
        rows.append((f"{metric} ≥ {bar:g}", "alike" if alike else "differ", *ends))
    return markdown_table(("gate", "tasks", "pass", "fail", "inconclusive"), rows)


def _judged_comparisons(frame: pd.DataFrame) -> str:
    rows = [
        (
            f"pass^{row['k']:g}",
            *(with_width(row[name], row[f"{name}_width"]) for name in ("corrected", "uncorrected")),
            *(f"{row[f'{name}_false']:.3f}" for name in ("corrected", "uncorrected")),
        )
        for _, row in frame.iterrows()
    ]
    return markdown_table(
        ("difference in", "corrected", "uncorrected", "false verdicts, corrected", "uncorrected"), rows
    )


def _halves(frame: pd.DataFrame) -> str:
    rows = [(row.half, row.sets, f"{row.shared:.3f}", f"{row.own:.3f}") for row in frame.itertuples()]
    return markdown_table(("half that one agent tried", "data sets", "on the shared tasks", 'with tasks="own"'), rows)


def _rules(frame: pd.DataFrame) -> str:
    rows = [
        (
            f"pass^{row['k']:g} ≥ {row['bar']:g}",
            f"{row['required']:.4f}",
            *(f"{row[end]:.3f} ({row[f'stated_{end}']:.3f})" for end in ("pass", "fail")),
            f"{row['tasks']:.0f} ({row['stated_tasks']:.0f})",
        )
        for _, row in frame.iterrows()
    ]
    return markdown_table(("rule", "required at every look", "pass", "fail", "mean tasks"), rows)


def _judged(frame: pd.DataFrame) -> str:
    rows = [
        (
            row["design"],
            row["estimand"],
            row["metric"],
            *(with_width(row[name], row[f"{name}_width"]) for name in ("corrected", "uncorrected")),
        )
        for _, row in frame.iterrows()
    ]
    return markdown_table(("design", "estimand", "metric", "corrected", "uncorrected"), rows)
