"""A row of evidence: the fields of one scored interaction, their allowed values, and its JSON form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentic_bayes.errors import EvidenceError, did_you_mean
from agentic_bayes.evidence.score import Grade, Score, Unscored
from agentic_bayes.records.base import is_share, short

AGENT_ERROR = "agent error: "
"""The beginning of `EvidenceRow.unscored_reason` if and only if the agent crashed."""


def _is_id(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_index(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _or_none(check: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or check(value)


_ID = (_is_id, "text that is not blank")
_INDEX = (_is_index, "a whole number ≥ 0")
_SCORE = (_or_none(is_share), "a number in [0, 1], or null")
_TEXT = (_or_none(lambda value: isinstance(value, str)), "text, or null")
_REASON = (_or_none(_is_id), "text that is not blank, or null")
_BOOLEAN = (_or_none(lambda value: isinstance(value, bool)), "true or false, or null")

# field → (is it allowed, what is allowed); the order is the order of the columns
_ALLOWED: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "agent": _ID,
    "task": _ID,
    "trial": _INDEX,
    "session_id": _ID,
    "interaction": _INDEX,
    "qa_id": _ID,
    "answer_score": _SCORE,
    "answer_reason": _TEXT,
    "selection": _SCORE,
    "parameters": _SCORE,
    "sequence": _SCORE,
    "utilization": _SCORE,
    "tool_overall": _SCORE,
    "tools_correct": _BOOLEAN,
    "tool_reason": _TEXT,
    "unscored_reason": _REASON,
    "judge": _ID,
    "tool_rubric": _ID,
}
_DETAILS = ("answer_details", "tool_details", "graders", "metadata")
SAID = ("answer_reason", "tool_reason", "unscored_reason", "answer_details", "tool_details")  # texts of graders
COLUMNS = tuple(name for name in _ALLOWED if name != "tool_rubric")
INDEX_COLUMNS = tuple(name for name, rule in _ALLOWED.items() if rule is _INDEX)
RESERVED = frozenset({*COLUMNS, "tool_rubric", "metrics", "answer", "tools", "joint"})  # no metric may have these names
SCORE_COLUMNS = tuple(name for name, rule in _ALLOWED.items() if rule is _SCORE)


LONGEST_LABEL = 100  # characters of a value of the metadata that is kept
COUNTS = (
    *("expected", "made", "matched", "missed", "extra", "wrong_arguments", "out_of_order", "invalid"),
    "scope_violations",
)
"""The counts of every tool in `EvidenceRow.tool_details`."""
ARGUMENT_COUNTS = frozenset({"agree", "unequal", "missing", "extra"})


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRow:
    """Everything known about one interaction."""

    agent: str
    task: str
    trial: int  # number of the attempt, within (agent, task)
    session_id: str  # the conversation
    interaction: int  # index of the turn, from 0
    qa_id: str  # the question
    # the judge's score in [0, 1]; None if there is none, and then `unscored_reason` says why
    answer_score: float | None = None
    answer_reason: str | None = None  # the judge's reason
    # The tool rubric's scores. If all are None there is no tool verdict: `tool_reason` says why, or is None if no tools
    # were expected. If only `utilization` is None, it could not be measured.
    selection: float | None = None
    parameters: float | None = None
    sequence: float | None = None
    utilization: float | None = None
    tool_overall: float | None = None
    tools_correct: bool | None = None  # the rubric's verdict, at its own threshold
    tool_reason: str | None = None  # the rubric's explanation, or why there is no verdict
    # why there is no answer score; begins with ``agent error: `` if and only if the agent crashed
    unscored_reason: str | None = None
    judge: str  # identity of the graders
    tool_rubric: str
    # What else the judge gave: its choice, the scores and the spread of several judgements. Not to be changed.
    answer_details: Mapping[str, Any] = field(default_factory=dict, hash=False)
    # Tool → how many of its calls were expected, made and matched, and what was wrong with which argument. Not to be
    # changed.
    tool_details: Mapping[str, Any] = field(default_factory=dict, hash=False)
    # Further metrics: name → `Score` or `Unscored`. Not to be changed.
    metrics: Mapping[str, Grade] = field(default_factory=dict, hash=False)
    # Identities of the further metrics, by name. Not to be changed.
    graders: Mapping[str, str] = field(default_factory=dict, hash=False)
    # What the first row of a conversation keeps of its metadata; see `kept_metadata`. Not to be changed.
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        wrong = _row_problems({name: getattr(self, name) for name in _ALLOWED})
        if wrong:
            raise EvidenceError("not a valid row of evidence: " + "; ".join(f"{name}: {text}" for name, text in wrong))
        for name in SCORE_COLUMNS:
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else float(value))
        for name in _DETAILS:
            object.__setattr__(self, name, _plain(getattr(self, name)))
        object.__setattr__(self, "metrics", {name: kept_grade(self.metrics[name]) for name in sorted(self.metrics)})

    @property
    def key(self) -> tuple[str, str, int, int]:
        """Agent, task, trial and interaction: no two rows share them."""
        return self.agent, self.task, self.trial, self.interaction

    @property
    def crashed(self) -> bool:
        """Whether the agent crashed here, so there was nothing to judge."""
        return self.unscored_reason is not None and self.unscored_reason.startswith(AGENT_ERROR)

    @property
    def tools_unscored(self) -> bool:
        """Whether tools were expected but there is no verdict."""
        return self.tool_overall is None and self.tool_reason is not None


def kept_metadata(metadata: Mapping[str, Any], *, depth: int = 3) -> dict[str, Any]:
    """The short values of a conversation's metadata, by which tasks can be grouped or weighed."""
    kept: dict[str, Any] = {}
    for key, value in metadata.items():
        if isinstance(value, Mapping):
            if depth > 1 and (part := kept_metadata(value, depth=depth - 1)):
                kept[str(key)] = part
        elif isinstance(value, (bool, int, float)) or (isinstance(value, str) and len(value) <= LONGEST_LABEL):
            kept[str(key)] = value
    return kept


def place_name(place: tuple[str, str, int, int | None]) -> str:
    """Agent, task, trial and, unless it is None, the interaction in words."""
    agent, task, trial, turn = place
    return f"agent {agent!r}, task {task!r}, trial {trial}" + ("" if turn is None else f", interaction {turn}")


def _row_problems(values: Mapping[str, object]) -> list[tuple[str, str]]:
    """Everything wrong with the fields of a row, as (field, message)."""
    wrong = [
        (name, f"must be {allowed}, got {short(values[name])}")
        for name, (is_allowed, allowed) in _ALLOWED.items()
        if name in values and not is_allowed(values[name])
    ]
    if wrong:
        return wrong
    if (values.get("answer_score") is None) == (values.get("unscored_reason") is None):
        wrong.append(("answer_score", "must be given if and only if unscored_reason is null"))
    overall = values.get("tool_overall")
    for name in ("selection", "parameters", "sequence", "tools_correct"):
        if (values.get(name) is None) != (overall is None):
            wrong.append((name, "must be given if and only if tool_overall is"))
    if overall is None and values.get("utilization") is not None:
        wrong.append(("utilization", "must be null if tool_overall is"))
    return wrong


def kept_grade(grade: Grade) -> Grade:
    """The grade with details that a JSON file can hold."""
    return Score(grade.value, grade.reason, _plain(grade.details)) if isinstance(grade, Score) else grade


def _plain(value: Any) -> Any:
    """The value in JSON's types; NaN and infinities become None, anything else that JSON lacks becomes text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    if isinstance(value, (dict, Mapping)):  # the first is faster
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(str(item) for item in value)
    return _plain(value.tolist()) if hasattr(value, "tolist") else str(value)


def row_to_json(row: EvidenceRow) -> dict[str, Any]:
    """The row as an object that a JSON file can hold."""
    record: dict[str, Any] = {name: getattr(row, name) for name in _ALLOWED}
    record |= {name: details for name in _DETAILS if (details := getattr(row, name))}
    record["metrics"] = {
        name: {"score": grade.value, "reason": grade.reason, "details": grade.details}
        if isinstance(grade, Score)
        else {"unscored": grade.reason}
        for name, grade in row.metrics.items()
    }
    return record


def row_from_json(record: Mapping[str, Any]) -> EvidenceRow:
    """The row that `row_to_json` gave; `record_problems` must have found nothing."""
    return EvidenceRow(**{**record, "metrics": {name: _to_grade(g) for name, g in record["metrics"].items()}})


def record_problems(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Everything wrong with a row in its JSON form, as (field, message)."""
    required = (*_ALLOWED, "metrics")
    known = (*required, *_DETAILS)
    wrong = [(str(key), f"unknown key: {did_you_mean(key, known)}") for key in record if key not in known]
    wrong += [(key, "is missing") for key in required if key not in record]
    if wrong:
        return wrong
    wrong = _row_problems(record)
    wrong += [
        (name, f"must be an object, got {short(record[name])}")
        for name in _DETAILS
        if not isinstance(record.get(name, {}), dict)
    ]
    if not wrong and not _are_tool_counts(record.get("tool_details", {})):
        wrong.append(("tool_details", "must map tools to counts (whole numbers ≥ 0), and their arguments likewise"))
    graders = record.get("graders", {})
    if isinstance(graders, dict) and not all(isinstance(identity, str) for identity in graders.values()):
        wrong.append(("graders", "must map metrics to the identities of their graders"))
    metrics = record["metrics"]
    if not isinstance(metrics, dict):
        return [*wrong, ("metrics", f"must be an object (name → score), got {short(metrics)}")]
    for name, grade in metrics.items():
        try:
            _to_grade(grade)
        except (KeyError, TypeError, ValueError):
            allowed = '{"score": number in [0, 1], "reason": text, "details": object} or {"unscored": text}'
            wrong.append((f"metrics.{name}", f"must be {allowed}, got {short(grade)}"))
    return wrong


def _are_tool_counts(tools: Mapping[str, Any]) -> bool:
    """Whether these are valid counts of the tool rubric."""
    for counts in tools.values():
        if not isinstance(counts, dict) or not set(counts) <= {*COUNTS, "arguments"}:
            return False
        arguments = counts.get("arguments", {})
        if not isinstance(arguments, dict) or not all(isinstance(tally, dict) for tally in arguments.values()):
            return False
        if any(not set(tally) <= ARGUMENT_COUNTS for tally in arguments.values()):
            return False
        numbers = [counts[name] for name in COUNTS if name in counts]
        if not all(map(_is_index, [*numbers, *(n for tally in arguments.values() for n in tally.values())])):
            return False
        matched, expected, made = (counts.get(name, 0) for name in ("matched", "expected", "made"))
        parts = [("missed", expected - matched), ("extra", made - matched), ("scope_violations", made)]
        parts += [(name, matched) for name in ("wrong_arguments", "out_of_order", "invalid")]
        if matched > min(expected, made) or any(counts.get(name, 0) > most for name, most in parts):
            return False
    return True


def _to_grade(record: Mapping[str, Any]) -> Grade:
    match record:
        case {"unscored": str(reason), **rest} if not rest:
            return Unscored(reason)
        case {"score": value, "reason": str(reason), "details": dict(details), **rest} if not rest:
            return Score(value, reason, details)
    raise ValueError("neither a score nor unscored")
