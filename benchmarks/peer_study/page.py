"""`docs/peers.md`, written from the results alone; sentences that say who is ahead follow from the numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
from calibration.page import filled, joined, markdown_table

from agentic_bayes.formatting import format_number
from peer_study import growth
from peer_study.intervals import METRICS, TRUTHS
from peer_study.judging import LABELS, MU, REPLIES, SENSITIVITY, SPECIFICITY, TASKS, TRIALS, TURNS

Results = Mapping[str, Any]
OURS = "agentic-bayes"
LOW, ENOUGH = 0.90, 0.94  # a coverage below the first is bold; widths are compared where the mean reaches the second
SAME = 0.01  # widths, times and errors this close are called equal
MEMORY_BAR = 5  # MB


def page(results: Results) -> str:
    """The whole page."""
    intervals = results["intervals"]
    frame = pd.DataFrame(intervals["rows"])
    return joined(
        filled(_TOP),
        filled(_RUN.format(**_sizes(results))),
        "## The peers",
        _peers(results["peers"]["rows"]),
        "## Intervals",
        filled(_INTERVALS),
        markdown_table(("truth", "as simulated"), [(i + 1, kind) for i, kind in enumerate(TRUTHS)]),
        "### For a new task",
        filled(_NEW),
        _summary(frame, "population"),
        _list(width_verdicts(frame, "population")),
        "### For these tasks",
        filled(_THESE),
        _summary(frame, "tasks"),
        _list(width_verdicts(frame, "tasks")),
        "### By kind of truth",
        "Coverage of the intervals for a new task:",
        *(part for metric in METRICS for part in (f"{metric}:", _by_truth(frame, metric))),
        "## What an interval costs",
        filled(_COSTS),
        _costs(intervals["costs"]),
        _list(cost_verdicts(intervals["costs"])),
        "## Held-out trials",
        filled(_HELD_OUT),
        _held_out(results["held_out"]["rows"]),
        _list(held_out_verdicts(results["held_out"]["rows"])),
        "## Judges that err",
        filled(_JUDGED.format(**_SETTINGS, sets=results["judged"]["sets"])),
        _judged(results["judged"]["rows"]),
        _list(judged_verdicts(results["judged"]["rows"])),
        "## Malformed replies of a judge",
        filled(_MALFORMED),
        _malformed(results["replies"]["malformed"]),
        _list(reply_verdicts(results["replies"]["malformed"])),
        "## A long run of judgements",
        filled(_LONG),
        _long_run(results["replies"]["long_run"]),
        "## How a fit grows",
        filled(_GROWTH),
        _growth(results["growth"]["times"]),
        "## Memory",
        filled(_MEMORY),
        _memory(results["growth"]["memory"]),
        _list(memory_verdicts(results["growth"]["memory"])),
        _files(results["growth"]["files"]),
        _list(file_verdicts(results["growth"]["files"])),
        "## Run it again",
        filled(_AGAIN),
    )


def width_verdicts(frame: pd.DataFrame, estimand: str) -> list[str]:
    """Per metric: our coverage, and our width next to the narrowest other on the same sets that covers enough."""
    found = []
    for metric in METRICS:
        table = _averaged(frame, estimand, metric)
        ours = table.loc[OURS]
        others = table.drop(OURS)[lambda t, sets=ours["sets"]: (t["coverage"] >= ENOUGH) & (t["sets"] == sets)]
        said = f"{metric}: ours cover {ours['coverage']:.3f} on average, at least {ours['lowest']:.3f}"
        if others.empty:
            found.append(f"{said}; no other's mean coverage reaches {ENOUGH:.2f}.")
            continue
        name = str(others["width"].idxmin())
        ratio = float(ours["width"] / others.loc[name, "width"])
        how = _than(ratio, "narrower", "wider", "as wide")
        found.append(
            f"{said}; they are {how} those of {name}, the narrowest other whose mean coverage reaches {ENOUGH:.2f}."
        )
    return found


def cost_verdicts(costs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Who is quicker than we are, and who is not."""
    largest = [row for row in costs if row["tasks"] == max(row["tasks"] for row in costs) and "error" not in row]
    ours = next(row for row in largest if row["peer"] == OURS)
    others = [row for row in largest if row is not ours]
    quicker = [
        f"{r['peer']} ({ours['seconds'] / r['seconds']:.0f} ×)" for r in others if r["seconds"] < ours["seconds"]
    ]
    slower = [
        f"{r['peer']} ({r['seconds'] / ours['seconds']:.1f} ×)" for r in others if r["seconds"] >= ours["seconds"]
    ]
    return [f"Quicker than ours: {_listed(quicker)}.", f"Slower than ours: {_listed(slower)}."]


def held_out_verdicts(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Per data set: the smallest error, and our place."""
    found = []
    for name, part in _grouped(rows, "data"):
        errors = {row["peer"]: row["error_mean"] for row in part if "error" not in row}
        best = min(errors, key=errors.__getitem__)
        place = 1 + sum(error < errors[OURS] - 1e-9 for error in errors.values())
        winners = [peer for peer, error in errors.items() if error <= errors[best] + 1e-9]
        found.append(
            f"{name}: the smallest error is {format_number(errors[best])}, of {_listed(winners)}; "
            f"ours is {format_number(errors[OURS])}, place {place} of {len(errors)}."
        )
    return found


def judged_verdicts(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Per way of labelling: who covers enough, and our width next to theirs."""
    found = []
    for labels, part in _grouped(rows, "labels"):
        table = pd.DataFrame([row for row in part if "error" not in row]).set_index("peer")
        short = [f"{name} ({row['coverage']:.2f})" for name, row in table.iterrows() if row["coverage"] < LOW]
        widths = table.drop(OURS)["width"] / table.loc[OURS, "width"]
        wider = ", ".join(f"{name} {ratio:.2f} ×" for name, ratio in widths.items())
        found.append(
            f"Labels on {labels}: ours cover {table.loc[OURS, 'coverage']:.2f}; below {LOW:.2f}: {_listed(short)}. "
            f"Widths as multiples of ours: {wider}."
        )
    return found


def reply_verdicts(malformed: Mapping[str, Any]) -> list[str]:
    """Per package: replies read right, left unscored and turned into a wrong number."""
    found = []
    for name, scores in malformed.items():
        if isinstance(scores, str):
            found.append(f"{name}: failed: {scores}.")
            continue
        outcome = [_outcome(scores[reply], score) for reply, (_, score) in REPLIES.items()]
        right, unscored = outcome.count("right"), outcome.count("lost")
        wrong = len(outcome) - right - unscored
        found.append(
            f"{name}: {right} of {len(outcome)} as a reader would, {wrong} as a wrong number, {unscored} readable ones "
            "left unscored."
        )
    return found


def memory_verdicts(memory: Mapping[str, Any]) -> list[str]:
    """Whether memory grows by more than the bar after the first tenth of the calls."""
    found = []
    for what, measured in memory.items():
        more = measured["held"][-1] - measured["held"][0]
        holds = "within" if more <= MEMORY_BAR else "**more than**"
        done = f"{measured['calls'][0]:,} to {measured['calls'][-1]:,} {what}"
        found.append(f"{done}: {more:+.1f} MB, {holds} the {MEMORY_BAR} MB allowed.")
    return found


def file_verdicts(files: Sequence[Mapping[str, Any]]) -> list[str]:
    """How the peak grows with the turns of a file."""
    small, large = files[0], files[-1]
    if large["turns"] == small["turns"]:
        return []
    each = 1e3 * (large["peak_mb"] - small["peak_mb"]) / (large["turns"] - small["turns"])
    return [f"The peak grows by {each:.1f} KB per turn, since the evidence keeps a row for each; texts are not kept."]


def _than(ratio: float, less: str, more: str, same: str) -> str:
    """A ratio as a comparison, ready for a name."""
    if abs(ratio - 1) <= SAME:
        return f"within {100 * SAME:.0f} % {same} as"
    return f"{100 * abs(ratio - 1):.0f} % {less if ratio < 1 else more} than"


def _outcome(got: float | str | None, score: float | None) -> str:
    if got == score:
        return "right"
    return "lost" if got is None else "wrong"


def _averaged(frame: pd.DataFrame, estimand: str, metric: str) -> pd.DataFrame:
    """Means over truths and designs by peer, and the lowest coverage."""
    part = frame[(frame["estimand"] == estimand) & (frame["metric"] == metric)].groupby("peer", sort=False)
    table = part.agg(coverage=("coverage", "mean"), lowest=("coverage", "min"), width=("width", "mean"))
    return table.assign(sets=part["sets"].sum())


def _summary(frame: pd.DataFrame, estimand: str) -> str:
    tables = {metric: _averaged(frame, estimand, metric) for metric in METRICS}
    rows = []
    for peer in dict.fromkeys(frame.loc[frame["estimand"] == estimand, "peer"]):
        cells = []
        for table in tables.values():
            if peer not in table.index:
                cells.append("–")
                continue
            row = table.loc[peer]
            # the lowest of a few data sets per cell would say nothing
            lowest = f", lowest {_marked(row['lowest'])}" if row["sets"] == table["sets"].max() else ""
            cells.append(f"{_marked(row['coverage'])}{lowest} ({row['width']:.3f})")
        rows.append((peer, f"{int(tables['pass^1'].loc[peer, 'sets']):,}", *cells))
    return markdown_table(("coverage, lowest coverage (mean width)", "data sets", *METRICS), rows)


def _by_truth(frame: pd.DataFrame, metric: str) -> str:
    part = frame[(frame["estimand"] == "population") & (frame["metric"] == metric)]
    peers = list(dict.fromkeys(part["peer"]))
    rows = []
    for (tasks, trials), design in part.groupby(["tasks", "trials"], sort=False):
        for i, kind in enumerate(TRUTHS):
            cells = design[design["truth"] == kind].set_index("peer")
            shown = [_with_width(cells.loc[p]) if p in cells.index else "–" for p in peers]
            rows.append((f"{tasks} × {trials}", i + 1, *shown))
    return markdown_table(("tasks × trials", "truth", *peers), rows)


def _with_width(row: pd.Series) -> str:
    return f"{_marked(row['coverage'])} ({row['width']:.2f})"


def _marked(coverage: float) -> str:
    return f"**{coverage:.3f}**" if coverage < LOW else f"{coverage:.3f}"


def _peers(rows: Sequence[Mapping[str, str]]) -> str:
    cells = [(r["peer"], f"not installed: {r['reason']}" if r["reason"] else r["version"], r["uses"]) for r in rows]
    return markdown_table(("peer", "version", "what is used of it"), cells)


def _costs(costs: Sequence[Mapping[str, Any]]) -> str:
    largest = [row for row in costs if row["tasks"] == max(row["tasks"] for row in costs)]
    ours = next(row["seconds"] for row in largest if row["peer"] == OURS)
    rows = []
    for row in largest:
        if "error" in row:
            rows.append((row["peer"], f"failed: {row['error']}", "", "", "", ""))
            continue
        times = _seconds(row["seconds"]), f"{row['seconds'] / ours:.2g} ×", _seconds(row["first_seconds"])
        rows.append((row["peer"], *times, f"{row['imported_mb']} MB", f"{row['peak_mb']} MB"))
    return markdown_table(("peer", "each data set", "of ours", "the first", "memory, imported", "peak"), rows)


def _held_out(rows: Sequence[Mapping[str, Any]]) -> str:
    cells = []
    for row in rows:
        if "error" in row:
            cells.append((row["data"], row["peer"], f"failed: {row['error']}", ""))
            continue
        error = f"{format_number(row['error_mean'])} ± {format_number(row['standard_error'])}"
        cells.append((row["data"], row["peer"], error, f"{row['bias']:+.3f}".replace("-", "−")))
    return markdown_table(("data", "peer", "error ± its standard error", "mean of predicted − observed"), cells)


def _judged(rows: Sequence[Mapping[str, Any]]) -> str:
    cells = [
        (r["labels"], r["peer"], f"failed: {r['error']}", "", "")
        if "error" in r
        else (r["labels"], r["peer"], _marked(r["coverage"]), f"{r['width']:.3f}", _seconds(r["seconds"]))
        for r in rows
    ]
    return markdown_table(("labels on", "peer", "coverage", "mean width", "each data set"), cells)


def _malformed(malformed: Mapping[str, Any]) -> str:
    peers = [name for name, scores in malformed.items() if not isinstance(scores, str)]
    rows = []
    for reply, (_, score) in REPLIES.items():
        got = [malformed[name][reply] for name in peers]
        shown = [_score(x) if _outcome(x, score) == "right" else f"**{_score(x)}**" for x in got]
        rows.append((reply, _score(score), *shown))
    return markdown_table(("reply", "a reader's score", *peers), rows)


def _score(value: float | str | None) -> str:
    return "unscored" if value is None else f"{value:g}" if isinstance(value, float) else value


def _long_run(rows: Sequence[Mapping[str, Any]]) -> str:
    cells = [
        (r["peer"], f"failed: {r['error']}", "", "")
        if "error" in r
        else (r["peer"], _seconds(r["seconds"]), f"{r['first']:,} and {r['last']:,}", f"{r['total']:,}")
        for r in rows
    ]
    return markdown_table(("peer", "CPU", "characters sent, first and last call", "in all"), cells)


def _growth(times: Mapping[str, list[float]]) -> str:
    rows = []
    for name, measured in times.items():
        sizes = growth.GROWING[name][1]
        ends = [" × ".join(f"{part:,}" for part in size[:3]) + f", k ≤ {size[3]}" for size in (sizes[0], sizes[-1])]
        shown = ", ".join(map(_seconds, measured))
        rows.append((name, *ends, shown, f"{growth.slope(name, measured):.2f}"))
    return markdown_table(("grows", "from", "to", "CPU", "slope"), rows)


def _memory(memory: Mapping[str, Any]) -> str:
    rows = [
        (what, *(f"{held:.1f} MB after {calls:,}" for held, calls in zip(row["held"], row["calls"], strict=True)))
        for what, row in memory.items()
    ]
    return markdown_table(("calls", "held", "held", "held"), rows)


def _files(files: Sequence[Mapping[str, Any]]) -> str:
    header = ("file of conversations", "turns", "CPU", "memory before", "peak")
    rows = [
        (
            f"{f['megabytes']:.0f} MB",
            f"{f['turns']:,}",
            _seconds(f["seconds"]),
            f"{f['before_mb']:.0f} MB",
            f"{f['peak_mb']:.0f} MB",
        )
        for f in files
    ]
    return markdown_table(header, rows)


def _seconds(value: float) -> str:
    if value < 0.001:
        return f"{1e6 * value:.0f} µs"
    return f"{1e3 * value:.3g} ms" if value < 1 else f"{value:.3g} s"


def _list(sentences: Iterable[str]) -> str:
    return "\n".join(f"- {sentence}" for sentence in sentences)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "none"


def _grouped(rows: Sequence[Mapping[str, Any]], key: str) -> list[tuple[str, list[Mapping[str, Any]]]]:
    """Rows by their value of `key`, in the order in which the values come."""
    return [(value, [row for row in rows if row[key] == value]) for value in dict.fromkeys(row[key] for row in rows)]


def _sizes(results: Results) -> dict[str, Any]:
    sets, seed = (results["intervals"][name] for name in ("sets", "seed"))
    sizes = {"splits": results["held_out"]["splits"], "judged_sets": results["judged"]["sets"]}
    return {
        "sets": sets,
        "seed": seed,
        "error": (0.95 * 0.05 / sets) ** 0.5,
        "python": results["peers"]["python"],
        **sizes,
    }


_SETTINGS = {
    "tasks": TASKS,
    "trials": TRIALS,
    "sensitivity": SENSITIVITY,
    "specificity": SPECIFICITY,
    "labels": LABELS,
    "mu": MU,
}


_TOP = """\
# Peers

Other packages answer some of the same questions. This page runs them next to this one, on the same data, and shows
ties and losses as they are. `make peers` writes it: each peer is installed into its own environment and called
through its public functions by a short script in `benchmarks/peer_study/workers`."""

_RUN = """\
This run: {sets:,} simulated data sets per kind of truth and design (sampling takes long, so PyMC and nutpie saw the
first tenth), {judged_sets:,} judged data sets per design, {splits:,} random splits; seed {seed}; Python {python}, one
thread. With {sets:,} data sets the standard error of a coverage of .95 in one cell is about {error:.3f}. Times are CPU
time on a busy machine: read their ratios. The numbers are in [results.json](peers/results.json)."""

_INTERVALS = """\
95 % intervals of one agent, for 50 tasks × 5 trials and 20 tasks × 4 trials. There are six kinds of truth; the last
three do not come from the model that this package fits. Coverage below .90 is **bold**, ours and everyone else's."""

_NEW = """\
The truth is the metric's mean over all tasks of that kind. evalstats has no pass^k; it gets each task's unbiased value.
gaussia and bayesbench have no tasks: they count all attempts. Means over the twelve cells; the sentences below leave
out who saw fewer data sets:"""

_THESE = """\
The truth is the mean over the tasks that were tried, which is what scorio's intervals are about:"""

_COSTS = """\
One data set of 50 tasks × 5 trials, three metrics: the median after the first, and the first, which includes imports
on first use and, for PyMC, compilation. Ours computes both kinds of intervals, means and the table of the summary.
Memory is that of the worker's process."""

_HELD_OUT = """\
Two of four trials of every task are seen, the other two are predicted: |predicted − observed| pass^2, averaged over
random splits. "bootstrap" stands for (c/n)² of each task, averaged; inspect_ai's `pass_k` is the unbiased value;
gaussia raises the share of all attempts to the power. In the telecom data every task either always passed or always
failed, so all splits are the same, and whoever trusts two trials fully is right."""

_JUDGED = """\
A judge scores {tasks} tasks × {trials} trials with sensitivity {sensitivity:g} and specificity {specificity:g};
{labels} attempts have a human label too. The truth is the success rate of a new task, {mu:g}. {sets:,} data sets per
design. Where whole tasks are labelled, truescore gets them as clusters and ppi_py one mean per task, as their manuals
ask; otherwise both take attempts as independent, and evalstats always does."""

_MALFORMED = """\
The replies go through `assess` with an `LLMJudge`, and through gaussia's `Agentic` in its mode for text
(`use_structured_output=False`), without retries. "A reader's score" is what a careful person would take from the
reply. What differs from it is **bold**."""

_LONG = f"""\
{TURNS} turns of {TURNS} conversations, judged with a model that answers at once:"""

_GROWTH = """\
CPU of `estimate(...).summary()` of this package alone, and the slope of log time over log size by least squares (1:
twice the size, twice the time; 0: not at all). Sizes are agents × tasks × trials:"""

_MEMORY = """\
What the process holds after a tenth, half and all of the calls, once the C library has given back what is free (else it
keeps some 40 MB of freed memory for the next fits): `estimate(...).summary()` of one agent's 10 tasks, every fifth of
them hierarchical and the others conjugate, and turns judged by `assess` with the reference judge. Below, the peak of
assessing a file of conversations of about 20 KB each:"""

_AGAIN = """\
`make peers` runs everything and needs the network for pip the first time; `python benchmarks/peers.py --help` lists
the sizes, and `--only` runs one part again. The peers' environments are kept in `~/.cache/agentic-bayes-peers`."""
