"""Which fields of logs to take as agent, task, trial and reference, and whether that works."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from agentic_bayes.describe.description import Description, Proposal, call_of, command_of
from agentic_bayes.errors import AgenticBayesError
from agentic_bayes.evidence.joins.references import read_references
from agentic_bayes.evidence.table import whole_number
from agentic_bayes.formatting import ELLIPSIS, first_few, plural
from agentic_bayes.records.base import short
from agentic_bayes.records.identity import task_label
from agentic_bayes.records.read import raw_records
from agentic_bayes.records.roles import named
from agentic_bayes.records.sources import Problems, Source, find_sources
from agentic_bayes.records.survey import Survey, survey
from agentic_bayes.records.wire.options import NOTHING, ReadOptions, at_path
from agentic_bayes.records.wire.scores import GIVE_ENDS, NOT_SCORED, RECORDED_METRICS
from agentic_bayes.reports.record_tables import survey_lines
from agentic_bayes.result_table import Table

MOST_RECORDS = 1_000
MOST_AGENTS = 20
_DEEPEST = 4
_LONGEST = 200
_NEITHER = "no reference answers and no scores in the files: answers need --references FILE, or an LLM as --judge"
_TABLES = (".csv", ".tsv")
_FIELDS = ("agent", "task", "trial", "reference")
_BY_FOLDER = "{parent}"
_NATIVE = frozenset(
    {"session_id", "assistant_id", "task_id", "ground_truth_assistant", "language", "context", "format", NOT_SCORED}
)


@dataclass
class LogFields:
    """The plain values in the records of logs, by path; and which identity the records have already."""

    files: int = 0
    records: int = 0
    values: dict[str, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))  # path → record → value
    known: dict[str, list[str | None]] = field(default_factory=lambda: defaultdict(list))  # role → value per record
    folders: list[str] = field(default_factory=list)  # of each record
    scores: dict[str, None] = field(default_factory=dict)  # names of the scores of the records and their turns

    def everywhere(self) -> dict[str, list[str]]:
        """The paths that every record has, with their values."""
        whole = {path: found for path, found in self.values.items() if len(found) == self.records}
        return {path: [found[i] for i in range(self.records)] for path, found in whole.items()}

    def lacks(self, role: str) -> bool:
        """Whether a record does not say this of itself."""
        return None in self.known[role]

    def lacks_all(self, role: str) -> bool:
        """Whether no record says this of itself."""
        return not any(self.known[role])


@dataclass(frozen=True)
class _WayToRead:
    """A way to read logs, and what it gives."""

    options: ReadOptions
    agent: str | None  # a rule, where the folders name the agents
    skip: bool  # whether records that cannot be read are left out
    overview: Survey

    @classmethod
    def tried(cls, paths: Sequence[str], options: ReadOptions, agent: str | None) -> _WayToRead:
        """Read them; bad records are left out if that is needed, but not those with scores off the scale."""
        whole = cls(options, agent, False, survey(paths, agent=agent, options=options))
        if not whole.overview.n_problems or whole.off_scale:
            return whole
        return cls(options, agent, True, survey(paths, agent=agent, options=options, skip=True))

    @property
    def off_scale(self) -> bool:
        """Whether the ends of the scale must be given."""
        return any(GIVE_ENDS in problem.message for problem in self.overview.problems)

    @property
    def is_scored(self) -> bool:
        """Whether all can be read, scores among them."""
        return bool(self.overview.recorded and not self.overview.n_problems)


def describe_logs(paths: Sequence[str]) -> Description:
    """What is in files of conversations, with the fields that tell agents, tasks and trials apart."""
    found = _fields_of(find_sources(list(paths), None, "auto", Problems()))
    proposals = list(_proposals(found))
    way = _with_a_score(paths, _read_as(paths, proposals), found.scores)
    overview, fields, scorer = way.overview, way.options.fields, way.options.scorer
    if scorer is not None:
        others = ", ".join(name for name in found.scores if name != scorer)
        reason = f"of {plural(len(found.scores), 'score')}, the first that can be read; --scorer chooses: {others}"
        proposals.append(Proposal(role="score", source=scorer, reason=reason))
    references = None
    if not overview.recorded and "reference" not in fields and found.lacks("reference"):
        references = next(_reference_files(paths, _tasks_of(found, fields)), None)
    if references is not None:
        reason = "a table whose tasks are those of the logs"
        proposals.append(Proposal(role="references", source=references, reason=reason))
    judged = overview.recorded or references is not None or "reference" in fields or not found.lacks_all("reference")
    notes = [*overview.doubts]
    if overview.left_out:
        notes.append(f"left out: {overview.left_out} that could not be read")
    if not judged:
        notes.append(_NEITHER)
    return Description(
        name=", ".join(paths),
        kind=_kind(overview),
        proposals=proposals,
        commands=list(_commands(paths, way, references, gate=bool(judged))),
        code=list(_code(paths, way, references, estimate=bool(judged))),
        outcome="" if overview.n_problems else survey_lines(overview)[0].removeprefix("valid: "),
        failure="; ".join(map(str, overview.problems[:3])) if overview.n_problems else "",
        notes=notes,
        parts=list(_fields_table(found)),
    )


def _read_as(paths: Sequence[str], proposals: Sequence[Proposal]) -> _WayToRead:
    """What reading by the proposed fields gives."""
    fields = {one.role: one.source for one in proposals if one.role in _FIELDS}
    agent = fields.pop("agent") if fields.get("agent") == _BY_FOLDER else None
    return _WayToRead.tried(paths, ReadOptions(fields), agent)


def _with_a_score(paths: Sequence[str], way: _WayToRead, names: Iterable[str]) -> _WayToRead:
    """The same or, if there are several scores and none counts, with the first that can be read."""
    scorers = list(names)
    if len(scorers) < 2 or way.overview.recorded or way.overview.n_problems:
        return way
    ways = (_WayToRead.tried(paths, replace(way.options, scorer=name), way.agent) for name in scorers)
    return next((one for one in ways if one.is_scored), way)


def _commands(paths: Sequence[str], way: _WayToRead, references: str | None, *, gate: bool) -> Iterator[str]:
    """The commands that judge the logs and, if anything can be judged, say whether the agent is good enough."""
    yield command_of(
        "assess",
        *paths,
        agent=way.agent,
        fields=",".join(f"{role}={path}" for role, path in way.options.fields.items()) or None,
        scorer=way.options.scorer,
        scale="LOW,HIGH" if way.off_scale else None,
        skip_bad=way.skip or None,
        judge="recorded" if way.overview.recorded else None,
        references=references,
        o="evidence.jsonl",
    )
    if gate:
        agents = list(way.overview.agents)
        yield command_of("gate", "evidence.jsonl", agent=agents[-1] if len(agents) > 1 else None, at_least=0.8)


def _code(paths: Sequence[str], way: _WayToRead, references: str | None, *, estimate: bool) -> Iterator[str]:
    """The same in Python."""
    given: dict[str, Any] = {"agent": way.agent, "fields": way.options.fields or None}
    given |= {"scorer": way.options.scorer, "on_error": "skip" if way.skip else None}
    yield "import agentic_bayes as ab"
    yield f"conversations = {_call_of_reading(paths, given)}"
    if references is not None:
        call = call_of("ab.join_references", references).replace("(", "(conversations, ", 1)
        yield f"conversations = {call}"
    judge = "RecordedJudge" if way.overview.recorded else "ReferenceJudge"
    yield f"evidence = ab.assess(conversations, judge=ab.{judge}())"
    if estimate:
        yield "est = ab.estimate(ab.count_outcomes(evidence))"


def _kind(overview: Survey) -> str:
    formats = Counter(file.format for file in overview.files)
    shown = ", ".join(f"{count:,} {name}" for name, count in formats.most_common())
    return f"conversations in {plural(len(overview.files), 'file')} ({shown})"


def _call_of_reading(paths: Sequence[str], options: Mapping[str, Any]) -> str:
    call = call_of("ab.read_conversations", paths[0], **options)
    if len(paths) == 1:
        return call
    one, several = call_of("", paths[0])[1:-1], "[" + ", ".join(call_of("", path)[1:-1] for path in paths) + "]"
    return call.replace(one, several, 1)


def _fields_of(sources: Sequence[Source]) -> LogFields:
    """The values in the first records of every file."""
    found = LogFields()
    for source in sources:
        if source.once:
            continue
        found.files += 1
        for objects, record in islice(raw_records(source), max(MOST_RECORDS - found.records, 1)):
            number = found.records
            found.records += 1
            found.folders.append(os.path.basename(os.path.dirname(os.path.abspath(source.name))))
            for value in reversed([*objects, record]):
                for path, text in _plain_values(value):
                    if at_path(value, path) is not NOTHING:
                        found.values[path][number] = text
            own = record.get("assistant_id")
            turns = record.get("conversation") or [{}]
            last = turns[-1] if isinstance(turns[-1], Mapping) else {}
            reference = last.get("ground_truth_assistant")
            found.scores |= dict.fromkeys(_scores_in(record.get("metadata"), *turns))
            task = record.get("task_id")
            for role, value in (
                ("agent", None if own == source.origin.own_agent else own),
                ("task", task if task != record.get("session_id") else None),
                ("trial", record.get("trial")),
                ("reference", reference),
                ("qa_ids", task_label(str(turn.get("qa_id")) for turn in turns if isinstance(turn, Mapping))),
            ):
                found.known[role].append(None if value is None else str(value))
    return found


def _scores_in(about: Any, *turns: Any) -> Iterator[str]:
    """The names of the scores of a record, which its metadata hold as metrics, and of its turns."""
    yield from (about.get(RECORDED_METRICS) or ()) if isinstance(about, Mapping) else ()
    for turn in turns:
        scores = at_path(turn, "metadata.scores")
        yield from scores if isinstance(scores, Mapping) else ()


def _plain_values(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Short texts and whole numbers in an object, with their dotted paths."""
    if isinstance(value, Mapping) and depth < _DEEPEST:
        for key, item in value.items():
            yield from _plain_values(item, f"{path}.{key}" if path else str(key), depth + 1)
    elif path and isinstance(value, (str, int)) and not isinstance(value, bool):
        text = str(value)
        if text.strip() and len(text) <= _LONGEST:
            yield path, text


def _proposals(found: LogFields) -> Iterator[Proposal]:
    """A field for every part of the identity that records do not say in the usual place."""
    whole = {path: values for path, values in found.everywhere().items() if path.rpartition(".")[2] not in _NATIVE}
    counts = {path: len(set(values)) for path, values in whole.items()}

    def by_name(role: str) -> list[str]:
        last = {path.rpartition(".")[2]: path for path in sorted(whole, key=len, reverse=True)}
        return [last[name] for name in named(role, last)]

    task = next((path for path in by_name("task") if 1 < counts[path] < found.records), None)
    if found.lacks("task") and task is not None:
        yield Proposal(role="task", source=task, reason=f"its name; {plural(counts[task], 'value')}, which repeat")
    if found.lacks("agent"):
        fewest = 1 if found.files > 1 else 2  # one file is one agent anyway
        agent = next((path for path in by_name("agent") if fewest <= counts[path] <= MOST_AGENTS), None)
        folders = Counter(found.folders)
        if agent is not None:
            yield Proposal(role="agent", source=agent, reason=f"its name; {plural(counts[agent], 'value')}")
        elif 1 < len(folders) <= MOST_AGENTS and min(folders.values()) > 1:
            yield Proposal(
                role="agent", source=_BY_FOLDER, reason=f"the folders of the files: {', '.join(sorted(folders))}"
            )
    tasks = whole.get(task or "") or [value or "" for value in found.known["task"]]
    if found.lacks("trial"):
        for path in by_name("trial"):
            agents = _agents(found, by_name("agent")[:1], whole)
            places = list(zip(agents, tasks, whole[path], strict=True))
            if all(whole_number(value) is not None for value in whole[path]) and len(set(places)) == len(places):
                yield Proposal(role="trial", source=path, reason="its name; whole numbers, none twice within a task")
                break
    if found.lacks("reference"):
        for path in by_name("reference")[:1]:
            yield Proposal(role="reference", source=path, reason="its name")


def _agents(found: LogFields, paths: Sequence[str], whole: Mapping[str, list[str]]) -> list[str]:
    if not found.lacks("agent"):
        return [str(value) for value in found.known["agent"]]
    return whole[paths[0]] if paths else found.folders


def _tasks_of(found: LogFields, fields: Mapping[str, str]) -> set[str]:
    if "task" in fields:
        return set(found.values[fields["task"]].values())
    return {task or other or "" for task, other in zip(found.known["task"], found.known["qa_ids"], strict=True)}


def _fields_table(found: LogFields) -> Iterator[Table]:
    """The fields that may tell records apart."""
    rows = []
    for path, values in found.values.items():
        counts = Counter(values.values())
        if "conversation" in path.split(".") or path.rpartition(".")[2] in _NATIVE:
            continue
        examples = first_few([short(value, 24).strip("'") for value, _ in counts.most_common(4)], 3, rest=ELLIPSIS)
        rows.append([path, f"{len(values):,} of {found.records:,}", f"{len(counts):,}", examples])
    if rows:
        yield Table(title="Fields", header=["field", "records", "distinct", "for example"], rows=rows, noun="field")


def _reference_files(paths: Sequence[str], tasks: set[str]) -> Iterator[str]:
    """Tables in or next to the folders of the logs whose tasks are those of the logs."""
    folders = dict.fromkeys(folder for path in paths for folder in (Path(path), Path(path).parent) if folder.is_dir())
    for file in (file for folder in folders for file in sorted(folder.iterdir()) if file.suffix.lower() in _TABLES):
        try:
            named_tasks = {task for task, _ in read_references(file)[1]}
        except AgenticBayesError:
            continue
        if 2 * len(named_tasks & tasks) >= len(tasks):
            yield str(file)
