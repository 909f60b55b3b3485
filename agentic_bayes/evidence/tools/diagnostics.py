"""Tool diagnostics: how often which tool and which argument goes wrong, by agent."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from agentic_bayes.checks import check_count, check_probability, check_type
from agentic_bayes.errors import EvidenceError
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.score import FailureKind
from agentic_bayes.formatting import exact_percent, format_interval, format_number, json_ready, one_line, plural
from agentic_bayes.numerics import Floats, wilson_interval
from agentic_bayes.result_table import Table, Tabular

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ToolDiagnostics", "tool_diagnostics"]

# problem → (dimension, count of failures, count of opportunities), the counts per tool
_PROBLEMS = {
    "not called": ("selection", "missed", "expected"),
    "not expected": ("selection", "extra", "made"),
    "wrong arguments": ("parameters", "wrong_arguments", "matched"),
    "out of order": ("sequence", "out_of_order", "matched"),
    "schema broken": ("parameters", "invalid", "matched"),
    "scope violation": ("scope", "scope_violations", "made"),
}
_IF_ASKED = ("schema broken", "scope violation")  # only if the rubric or the data ask for it
_LOST = ("unequal", "missing", "extra")
_SHARE = ("failed", "of", "share", "lower", "upper", "tasks")
_SHOWN = 10

# (agent, tool, problem or argument) → task → (failed, of, …)
_TaskCounts = defaultdict[tuple[str, str, str], defaultdict[str, Floats]]


@dataclass(frozen=True, repr=False)
class ToolDiagnostics(Tabular):
    """How often each tool and argument goes wrong, by agent.

    Attributes
    ----------
    tools : pandas.DataFrame
        One row per agent, tool and problem: ``agent, tool, problem, dimension, failed, of, share, lower, upper,
        tasks``. `problem` is "not called" (of the expected calls), "not expected" or "scope violation" (of the actual
        calls), "wrong arguments", "out of order" or "schema broken" (of the matched calls).
    arguments : pandas.DataFrame
        One row per agent, tool and argument of matched calls: ``agent, tool, argument, unequal, missing, extra,
        failed, of, share, lower, upper, tasks``.
    ci_prob : float
        Probability of the intervals.
    """

    tools: pd.DataFrame
    arguments: pd.DataFrame
    ci_prob: float

    def worst(self, n: int = _SHOWN) -> pd.DataFrame:
        """The problems and arguments with the most failures.

        Parameters
        ----------
        n : int
            Maximum number of rows.

        Returns
        -------
        pandas.DataFrame
            The first rows of `to_pandas` that have failures.
        """
        check_count(n, "n")
        table = self.to_pandas()
        return table[table["failed"] > 0].head(n)

    def to_pandas(self) -> pd.DataFrame:
        """All problems and arguments in one table, those with the most failures first.

        Returns
        -------
        pandas.DataFrame
            ``agent, tool, what, failed, of, share, lower, upper``; the single arguments replace "wrong arguments".
        """
        import pandas as pd

        problems = self.tools[self.tools["problem"] != "wrong arguments"].rename(columns={"problem": "what"})
        arguments = self.arguments.assign(what="argument " + self.arguments["argument"].astype(str))
        columns = ["agent", "tool", "what", "failed", "of", "share", "lower", "upper"]
        table = pd.concat([part[columns] for part in (problems, arguments) if len(part)] or [problems[columns]])
        order = ["failed", "share", "agent", "tool", "what"]
        return table.sort_values(order, ascending=[False, False, True, True, True]).reset_index(drop=True)

    def to_dict(self) -> dict[str, Any]:
        """Both tables as an object that JSON can hold.

        Returns
        -------
        dict
            ``tools`` and ``arguments``, a list of rows each, and ``ci_prob``.
        """
        tables = {"tools": self.tools.to_dict("records"), "arguments": self.arguments.to_dict("records")}
        return dict(json_ready({**tables, "ci_prob": self.ci_prob}))

    def __repr__(self) -> str:
        first = "".join(f"; most: {row['agent']}, {row['tool']}: {row['what']}" for row in self._worst_rows()[:1])
        return one_line(f"ToolDiagnostics: {plural(self.tools['tool'].nunique(), 'tool')}{first}")

    def _worst_rows(self) -> list[dict[Any, Any]]:
        return self.worst().to_dict("records")

    def table(self) -> Table:
        """The problems and arguments with the most failures."""
        rows = [
            [
                *(row["agent"], row["tool"], _what_words(row["what"]), f"{row['failed']:,} of {row['of']:,}"),
                *(format_number(row["share"]), format_interval(row["lower"], row["upper"])),
            ]
            for row in self._worst_rows()
        ]
        header = ["agent", "tool", "what", "calls", "share", "interval"]
        intervals = f"{exact_percent(self.ci_prob)} intervals, which allow for the calls of one task being alike"
        notes = ["" if rows else "nothing was wrong with any call", f"counted in calls, not in trials; {intervals}"]
        unexpected = self.tools["failed"][self.tools["problem"] == "not expected"].sum()
        if 2 * unexpected > self.tools["failed"].sum():
            notes.append("most faults are calls that were not expected; a rubric with mode superset allows them")
        return Table(title="What goes wrong with tools", header=header, rows=rows, notes=notes)

    def __str__(self) -> str:
        table = self.table()
        return "\n".join([*("{}, {}: {} {}, {} {}".format(*row) for row in table.rows), *filter(None, table.notes)])


def tool_diagnostics(evidence: Evidence, *, ci_prob: float = 0.95) -> ToolDiagnostics:
    """Count what went wrong, by tool and by argument.

    Parameters
    ----------
    evidence : Evidence
        Interactions with tool verdicts, from `assess`.
    ci_prob : float
        Probability of the intervals, in (0, 1).

    Returns
    -------
    ToolDiagnostics

    Raises
    ------
    EvidenceError
        If no interaction has a tool verdict with its counts.

    Notes
    -----
    Attempts of one task are alike, so n calls inform a share p less well than n independent ones would. With v the
    linearised variance of the ratio Σf/Σn over tasks, the interval is Wilson's at the effective number of calls
    min(n, p(1 - p)/v). If every call failed, or none did, or there is only one task, the data do not show how alike
    the calls are; then the number of tasks is used.

    References
    ----------
    Franco, Little, Louis and Slud (2019), J. Surv. Stat. Methodol. 7, 334-364, doi:10.1093/jssam/smy019.
    """
    check_type("evidence", evidence, Evidence, "assess() makes one")
    check_probability(ci_prob, "ci_prob", open_ends=True)
    rows = [row for row in evidence.rows if row.tool_overall is not None and row.tool_details]
    if not rows:
        raise EvidenceError("no interaction has a tool verdict with counts, so there is nothing to diagnose")
    problems: _TaskCounts = defaultdict(lambda: defaultdict(lambda: np.zeros(2)))
    arguments: _TaskCounts = defaultdict(lambda: defaultdict(lambda: np.zeros(2 + len(_LOST))))
    for row in rows:
        for tool, counts in row.tool_details.items():
            for problem, (_, failed, of) in _PROBLEMS.items():
                numbers = [int(counts.get(name, 0)) for name in (failed, of)]
                if numbers[1] and (numbers[0] or problem not in _IF_ASKED):
                    problems[row.agent, tool, problem][row.task] += numbers
            for argument, tally in counts.get("arguments", {}).items():
                if sum(tally.values()):
                    lost = [int(tally.get(kind, 0)) for kind in _LOST]
                    compared = sum(lost) + int(tally.get("agree", 0))
                    arguments[row.agent, tool, argument][row.task] += [sum(lost), compared, *lost]
    import pandas as pd

    of_tools = [
        (agent, tool, problem, _PROBLEMS[problem][0], *_share(cells, ci_prob).values())
        for (agent, tool, problem), cells in sorted(problems.items())
    ]
    of_arguments = [
        (*place, *np.sum([*cells.values()], axis=0)[2:].astype(int).tolist(), *_share(cells, ci_prob).values())
        for place, cells in sorted(arguments.items())
    ]
    return ToolDiagnostics(
        pd.DataFrame(of_tools, columns=["agent", "tool", "problem", "dimension", *_SHARE]),
        pd.DataFrame(of_arguments, columns=["agent", "tool", "argument", *_LOST, *_SHARE]),
        ci_prob,
    )


def _what_words(what: str) -> str:
    """A problem, or an argument that went wrong, in words."""
    return f"wrong {what}" if what.startswith("argument ") else what


def faulty_conversations(evidence: Evidence) -> Counter[tuple[str, str, str]]:
    """In how many conversations each problem of `ToolDiagnostics.to_pandas` occurred, by agent, tool and problem."""
    found = set()
    for row in evidence.rows:
        for tool, counts in row.tool_details.items() if row.tool_overall is not None else ():
            whats = [what for what, (_, failed, _) in _PROBLEMS.items() if int(counts.get(failed, 0))]
            for argument, tally in counts.get("arguments", {}).items():
                whats += [f"argument {argument}"] if any(int(tally.get(kind, 0)) for kind in _LOST) else []
            found |= {(row.agent, tool, what, row.task, row.trial) for what in whats}
    return Counter(one[:3] for one in found)


def tool_failures(tools: Mapping[str, Any], utilization: float | None) -> list[FailureKind]:
    """The kinds of failure in the counts of one interaction; a call that replaces a missing one is a wrong tool."""

    def total(name: str) -> int:
        return sum(int(counts.get(name, 0)) for counts in tools.values())

    missed, forbidden = total("missed"), total("scope_violations")
    extra = max(total("extra") - forbidden, 0)
    found: dict[FailureKind, bool] = {
        "wrong tool": bool(missed and extra),
        "missing call": missed > extra,
        "extra call": extra > missed,
        "argument": bool(total("wrong_arguments") or total("invalid")),
        "order of calls": bool(total("out_of_order")),
        "forbidden call": bool(forbidden),
    }
    found["unused result"] = utilization == 0 and not any(found.values())
    return [kind for kind, is_there in found.items() if is_there]


def _share(cells: Mapping[str, Floats], ci_prob: float) -> dict[str, Any]:
    """Failures, opportunities, their ratio and its interval, with tasks as clusters."""
    table = np.array([cell[:2] for cell in cells.values()])
    failed, of = (float(total) for total in table.sum(axis=0))
    share, tasks = failed / of, len(table)
    effective = of
    if share in (0.0, 1.0) or tasks == 1:
        effective = min(of, tasks)
    else:
        variance = tasks / (tasks - 1) * float(((table[:, 0] - share * table[:, 1]) ** 2).sum()) / of**2
        effective = min(of, share * (1 - share) / variance) if variance > 0 else of
    lower, upper = (float(end) for end in wilson_interval(share * effective, effective, ci_prob))
    return dict(zip(_SHARE, (int(failed), int(of), share, lower, upper, tasks), strict=True))
