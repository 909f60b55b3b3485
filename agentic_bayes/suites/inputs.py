"""Open the file or run that a user names, by its content, as outcomes or an estimate."""

from __future__ import annotations

import gzip
import json
import re
import warnings
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentic_bayes.checks import check_choice, no_such_file
from agentic_bayes.errors import DoubtfulRecords, InvalidArgument
from agentic_bayes.estimation.estimate import Estimate, estimate, estimate_as
from agentic_bayes.estimation.fitting import posterior_of
from agentic_bayes.evidence.results.detection import results_format_of
from agentic_bayes.formatting import first_few
from agentic_bayes.outcomes.coordinates import METADATA, column_name
from agentic_bayes.outcomes.dataset import combine_outcomes
from agentic_bayes.outcomes.table import outcomes_from_table
from agentic_bayes.suites.stores.run_index import find_run

# runs, evidence and other tools' results are imported where a file turns out to be one: a table needs none of them
if TYPE_CHECKING:
    import xarray as xr

    from agentic_bayes.evidence.evidence import Evidence, EvidenceFile
    from agentic_bayes.evidence.results.evidence import ToolResults
    from agentic_bayes.suites.results import RunResults

    Opened = RunResults | Estimate | Evidence | EvidenceFile | ToolResults | Path

HDF5 = b"\x89HDF"
HEAD = 1 << 22  # the first record of conversations may hold a long context before its other keys
START = 64  # bytes in which a file of JSON begins
SHOWN = 5  # names in a warning
_TASK_COLUMNS = ("group", "weight")
_NOT_RESULTS = "not the results of another tool"
_TABLE_ONLY = {"agent", "task", "trial", "correct", "successes", "trials", "error"}


def open_input(
    path: str | Path,
    *,
    columns: Mapping[str, Any] | None = None,
    results: Mapping[str, Any] | None = None,
    whole: bool = True,
) -> Opened:
    """Open a run, an estimate, evidence, or results of another tool unless `columns` make them a table.

    A table is left as its path, since its columns need names, and so is evidence unless it is wanted as a `whole`.
    `results` are options of `evidence_from_results`.
    """
    if (run := find_run(str(path))) is not None:
        from agentic_bayes.suites.results import RunResults

        return RunResults.of(run)
    source = Path(path)
    if source.is_dir():
        if all((source / name).is_file() for name in ("manifest.json", "estimate.nc")):  # as `estimate -o` writes it
            return Estimate.load(source / "estimate.nc")
        return _tool_results(source, results)
    if not source.is_file():
        raise InvalidArgument(no_such_file(source))
    with source.open("rb") as stream:
        head = stream.read(4)
    if head[:2] == b"PK" and source.suffix.lower() in (".xlsx", ".xlsm", ".ods"):
        return source  # the reader of tables says what to do
    if head == HDF5:
        return Estimate.load(source)
    if "answer_score" in _first_keys(source):
        from agentic_bayes.evidence.evidence import Evidence, EvidenceFile

        return Evidence.read(source) if whole else EvidenceFile(source)
    if not _TABLE_ONLY & (columns or {}).keys() and results_format_of(source) is not None:
        return _tool_results(source, results)
    if begins_like_conversations(source):
        raise InvalidArgument(
            f"{source} holds conversations: assess them first (agentic-bayes assess {source.name} -o evidence.jsonl)"
        )
    return source


def _tool_results(source: Path, options: Mapping[str, Any] | None) -> ToolResults:
    from agentic_bayes.evidence.results.evidence import read_results

    return read_results(source, **(options or {}))


def begins_like_conversations(path: str | Path) -> bool:
    """Whether a file begins like conversations do."""
    with open(path, "rb") as stream:
        start = stream.peek(START)[:START].removeprefix(b"\xef\xbb\xbf").lstrip()
        if start and not start.startswith((b"{", b"[", b"PK", b"\x1f\x8b")):
            return False  # a table
        from agentic_bayes.records.formats.detection import format_of  # imports every reader

        return "conversation" in _first_keys(Path(path)) or format_of(stream) != "native"


def check_not_conversations(path: Path, option: str) -> None:
    """Refuse to overwrite a file of conversations."""
    if path.exists() and begins_like_conversations(path):
        raise InvalidArgument(f"{option} would overwrite the conversations in {path}")


def _first_keys(path: Path) -> frozenset[str]:
    """Keys near the beginning of a JSON or JSONL file; empty where it does not begin with an object or array."""
    opener: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig") as stream:
            head = stream.read(HEAD).lstrip()
    except (OSError, EOFError, UnicodeDecodeError, zlib.error):
        return frozenset()
    try:
        first = json.loads(head.partition("\n")[0])
    except (ValueError, RecursionError):  # an object over several lines, or longer than what was read
        return frozenset(re.findall(r'"(\w+)"\s*:', head) if head[:1] in ("{", "[") else ())
    if isinstance(first, list):
        first = next(iter(first), None)
    return frozenset(first) if isinstance(first, dict) else frozenset()


@dataclass(frozen=True)
class _FileReading:
    """What the caller says of a file; what does not apply to a file of its kind is refused."""

    path: str | Path
    columns: Mapping[str, Any] = field(default_factory=dict)  # names of columns; group and weight, also of evidence
    counting: Mapping[str, Any] = field(default_factory=dict)  # arguments of `count_outcomes`
    needed: Mapping[str, str] = field(default_factory=dict)  # what the estimate groups and weighs tasks by
    results: Mapping[str, Any] = field(default_factory=dict)  # options of `evidence_from_results`

    def open(self) -> Opened:
        """Open the file; evidence stays on disk."""
        return open_input(self.path, columns=self.columns, results=self.results, whole=False)

    def outcomes_of(self, opened: Opened) -> xr.Dataset:
        """The outcomes of what the file was opened as."""
        if isinstance(opened, Path):
            return outcomes_from_table(opened, **self.table_arguments())
        from agentic_bayes.evidence.evidence import EvidenceFile
        from agentic_bayes.evidence.results.evidence import ToolResults
        from agentic_bayes.outcomes.count import count_outcomes
        from agentic_bayes.suites.results import RunResults

        if not isinstance(opened, ToolResults):
            self._refuse(self.results, _NOT_RESULTS)
        columns, counting = self.columns, self.counting
        match opened:
            case RunResults():
                asked = {**self.needed, **columns}
                self._refuse({**asked, **counting}, "a run of a suite", but=("group", "errors"))
                by = column_name(asked["group"]) if "group" in asked else None
                return replace(opened, by=by, errors=counting.get("errors", opened.errors)).outcomes
            case Estimate():
                self._refuse({**columns, **counting}, "a saved estimate")
                return opened.outcomes
            case _:
                self._refuse(columns, "evidence", but=_TASK_COLUMNS)
                task_columns = {name: columns[name] for name in _TASK_COLUMNS if name in columns}
                fields = {role: f"{METADATA}{name.removeprefix(METADATA)}" for role, name in self.needed.items()}
                evidence, rules = (
                    (opened.path, counting) if isinstance(opened, EvidenceFile) else evidence_in(opened, counting)
                )
                outcomes = count_outcomes(evidence, **fields | dict(rules) | task_columns)
                if isinstance(opened, ToolResults):
                    outcomes.attrs |= {"source": str(self.path), "taken": opened.taken}
                return outcomes

    def table_arguments(self) -> dict[str, Any]:
        """The arguments of `outcomes_from_table`."""
        self._refuse(self.results, _NOT_RESULTS)
        rules = {name: value for name, value in self.counting.items() if name in ("errors", "threshold")}
        self._refuse(self.counting, "a table", but=(*rules, *_TASK_COLUMNS))
        return dict(self.needed) | dict(self.columns) | rules

    def _refuse(self, options: Mapping[str, Any], kind: str, *, but: Collection[str] = ()) -> None:
        if unused := sorted(options.keys() - set(but)):
            raise InvalidArgument(f"{self.path} is {kind}, which does not use {', '.join(unused)}")


def read_outcomes(path: str | Path, **reading: Mapping[str, Any]) -> xr.Dataset:
    """Outcomes of a table, evidence, another tool's results, a saved estimate or a run (folder, or id in ``results``).

    `reading` is what `_FileReading` holds: ``columns``, ``counting``, ``needed``, ``results``.
    """
    asked = _FileReading(path, **reading)
    return asked.outcomes_of(asked.open())


def table_arguments(path: str | Path, **reading: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `outcomes_from_table` for a file; any other file is refused."""
    asked = _FileReading(path, **reading)
    if not isinstance(open_input(path, columns=asked.columns, results=asked.results), Path):
        raise InvalidArgument(f"{path} is not a table, which --split needs")
    return asked.table_arguments()


def evidence_in(opened: Evidence | ToolResults, counting: Mapping[str, Any]) -> tuple[Evidence, dict[str, Any]]:
    """The evidence of a file, and how it is counted: a tool may have its own threshold."""
    from agentic_bayes.evidence.results.evidence import ToolResults
    from agentic_bayes.outcomes.results import counting_of

    if isinstance(opened, ToolResults):
        return opened.evidence, counting_of(opened, counting)
    return opened, dict(counting)


def read_estimate(
    path: str | Path,
    *,
    settings: Mapping[str, Any],
    agents: Sequence[str | None] = (),
    choose: str = "",
    **reading: Mapping[str, Any],
) -> Estimate:
    """A saved estimate with the settings that are given, or a new one; it is fitted only if it holds these agents.

    `choose` is the option for the first agent, where there must be one; `reading` is as for `read_outcomes`.
    """
    asked = _FileReading(path, **reading)
    opened = asked.open()
    outcomes = asked.outcomes_of(opened)
    names = [str(label) for label in outcomes["agent"].values]
    for agent in agents:
        if agent is not None:
            check_choice("agent", agent, names)
    if choose:
        _check_chosen(agents[0], names, path, choose)
    if not isinstance(opened, Estimate) or settings.keys() & {"method", "judge_labels", "by", "weights"}:
        return estimate(outcomes, **settings)
    changed = replace(opened.settings, **settings)
    if opened.draws is None or "random_seed" not in settings:
        return replace(opened, settings=changed, posterior=posterior_of(opened.counts, changed, opened.draws))
    return estimate_as(outcomes, changed)


def _check_chosen(agent: str | None, names: Sequence[str], path: str | Path, option: str) -> None:
    if agent is None and len(names) > 1:
        raise InvalidArgument(f"several agents in {path}; choose one with {option}: {', '.join(names)}")


def combine_two(
    old: str | Path,
    new: str | Path,
    *,
    baseline: str | None = None,
    agent: str | None = None,
    **reading: Mapping[str, Any],
) -> tuple[xr.Dataset, str, str]:
    """Outcomes of one agent of each of two files, and their names; agents of the same name are named by file."""
    _warn_of_unlike_tasks(old, new)
    parts = []
    for path, option, name in ((old, "--baseline", baseline), (new, "--agent", agent)):
        outcomes = read_outcomes(path, **reading)
        names = [str(label) for label in outcomes["agent"].values]
        _check_chosen(name, names, path, option)
        if name is not None:
            check_choice("agent", name, names)
        parts.append(outcomes.isel(agent=[0 if name is None else names.index(name)]))
    labels = [str(part["agent"].values[0]) for part in parts]
    if labels[0] == labels[1]:
        if old == new:
            raise InvalidArgument(f"compare needs two agents, got {labels[0]!r} of {old} twice")
        stems = [Path(old).stem, Path(new).stem]
        labels = stems if stems[0] != stems[1] else [str(old), str(new)]
    return combine_outcomes(*parts, names=labels), labels[0], labels[1]


def _warn_of_unlike_tasks(old: str | Path, new: str | Path) -> None:
    """Warn if tasks of a suite changed between two runs: they then compare agents and graders at once."""
    runs = find_run(str(old)), find_run(str(new))
    if runs[0] is None or runs[1] is None:
        return
    from agentic_bayes.suites.results import unlike_tasks

    if not (unlike := unlike_tasks(runs[0], runs[1])):
        return
    named = first_few(unlike, SHOWN)
    what = "input, expectations, graders or pass threshold"
    warnings.warn(f"{what} differ between the runs in {named}", DoubtfulRecords, stacklevel=3)
