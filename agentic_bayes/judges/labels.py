"""What people said of attempts or turns: whom to ask, and what the judge said of the same."""

from __future__ import annotations

import csv
import io
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from agentic_bayes.checks import check_choice, check_k, check_type
from agentic_bayes.errors import EvidenceError, InvalidArgument
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.row import EvidenceRow
from agentic_bayes.evidence.table import (
    is_blank,
    labels,
    no_repetition,
    read_columns,
    refuse,
    require_columns,
    whole_numbers,
    zero_one,
)
from agentic_bayes.records.base import short
from agentic_bayes.records.write import replacing

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "HumanLabel",
    "LabelledBy",
    "Place",
    "Said",
    "judged",
    "place_name",
    "read_human_labels",
    "sample_for_labelling",
]

LabelledBy = Literal["attempt", "task"]
# agent, task, trial, and the turn or, of a whole attempt, None
Place = tuple[str, str, int, int | None]


@dataclass(frozen=True, slots=True)
class Said:
    """What the judge said of an attempt or turn."""

    agent: str  # of the conversation
    task: str
    session_id: str
    scores: tuple[float | None, ...]  # one for each turn
    crashed: bool = False  # whether the agent crashed at some turn

    @property
    def score(self) -> float | None:
        """The lowest score of its turns, which decides; None where a turn has none."""
        known = [score for score in self.scores if score is not None]
        return min(known) if len(known) == len(self.scores) else None

    def passes(self, threshold: float) -> bool | None:
        """Whether every turn reaches the threshold; None where that cannot be told."""
        if any(score is not None and score < threshold for score in self.scores):
            return False
        return None if None in self.scores else True


@dataclass(frozen=True, slots=True)
class HumanLabel:
    """What a person said of an attempt or turn."""

    place: Place
    passes: bool


def judged(evidence: Evidence, *, turns: bool) -> dict[Place, Said]:
    """What the judge said, attempt by attempt or turn by turn."""
    rows: dict[Place, list[EvidenceRow]] = defaultdict(list)
    for row in evidence.rows:
        rows[row.agent.strip(), row.task.strip(), row.trial, row.interaction if turns else None].append(row)
    said = {}
    for place, found in rows.items():
        scores = tuple(row.answer_score for row in found)
        crashed = any(row.crashed for row in found)
        said[place] = Said(found[0].agent, found[0].task, found[0].session_id, scores, crashed)
    return said


def read_human_labels(
    table: pd.DataFrame | str | Path, *, agents: Sequence[str]
) -> tuple[tuple[HumanLabel, ...], bool, int]:
    """Read labels."""
    source, columns = read_columns(table, error=EvidenceError)
    needed = ["task", "human", *(["agent"] if len(agents) > 1 else [])]
    require_columns(
        source, columns, needed, hint="A table of labels has agent, task, trial and human (0 or 1)", error=EvidenceError
    )
    problems: list[str] = []
    size = len(columns["task"])
    of_agent = labels(columns.get("agent", [*agents, ""][:1] * size), "agent", problems)
    of_task = labels(columns["task"], "task", problems)
    trials = whole_numbers(columns, "trial", size, problems)
    turns = not all(map(is_blank, columns.get("interaction", [None])))
    at = whole_numbers(columns, "interaction", size, problems) if turns else [None] * size
    places: list[Place] = list(zip(of_agent, of_task, trials, at, strict=True))
    no_repetition(places, place_name, problems)
    found = []
    for i, (place, cell) in enumerate(zip(places, columns["human"], strict=True)):
        label = zero_one(cell)
        if label in (0, 1):
            found.append(HumanLabel(place, label == 1))
        elif label is not None:
            problems.append(f"row {i + 1}: human must be 0, 1, true, false or blank, got {short(cell)}")
    refuse(source, problems, error=EvidenceError)
    found.sort(key=lambda label: (*label.place[:3], label.place[3] or 0))
    return tuple(found), turns, size - len(found)


def place_name(place: Place) -> str:
    """A place as people read it."""
    agent, task, trial, turn = place
    return f"agent {agent!r}, task {task!r}, trial {trial}" + ("" if turn is None else f", interaction {turn}")


def sample_for_labelling(
    evidence: Evidence,
    *,
    n: int,
    by: LabelledBy = "attempt",
    path: str | os.PathLike[str] | None = None,
    random_seed: int = 0,
) -> pd.DataFrame:
    """Draw attempts for people to label.

    Parameters
    ----------
    evidence : Evidence
        Scored interactions.
    n : int
        How many attempts or tasks.
    by : {"attempt", "task"}
        Whether single attempts are drawn at random, or tasks, with all their attempts by all agents. Attempts tell
        more per label; whole tasks are quicker to label, and their labels are alike.
    path : path, optional
        A CSV file to fill in. A file that exists is not replaced, since it may hold labels.
    random_seed : int
        Same seed, same sample.

    Returns
    -------
    pandas.DataFrame
        ``agent, task, trial, session_id, human``, sorted, with ``human`` empty: 1 where the whole attempt is right,
        else 0. What the judge said is left out, so that nobody is led by it. Attempts without any scored turn, and
        those in which the agent crashed, are not drawn.

    Raises
    ------
    InvalidArgument
        If fewer than `n` can be drawn, or the file exists.
    """
    import pandas as pd

    check_type("evidence", evidence, Evidence, "assess() makes one")
    check_k(n, "n")
    check_choice("by", by, get_args(LabelledBy))
    said = judged(evidence, turns=False)
    attempts = sorted(
        (agent, task, trial)
        for (agent, task, trial, _), what in said.items()
        if not what.crashed and any(score is not None for score in what.scores)
    )
    drawn_from = attempts if by == "attempt" else sorted({task for _, task, _ in attempts})
    if n > len(drawn_from):
        raise InvalidArgument(f"n must be at most {len(drawn_from)}, as many {by}s as can be drawn, got {n}")
    chosen = np.random.default_rng(random_seed).choice(len(drawn_from), size=n, replace=False)
    kept = {drawn_from[i] for i in chosen}
    rows = [
        (*attempt, said[(*attempt, None)].session_id)
        for attempt in attempts
        if (attempt if by == "attempt" else attempt[1]) in kept
    ]
    header = ["agent", "task", "trial", "session_id"]
    if path is not None:
        _write_new(Path(path), [[*header, "human"], *([*row, ""] for row in rows)])
    return pd.DataFrame(rows, columns=header).assign(human=None)


def _write_new(path: Path, rows: Sequence[Sequence[object]]) -> None:
    if path.exists():
        raise InvalidArgument(f"{path} exists and may hold labels: give another name, or delete it first")
    if not path.absolute().parent.is_dir():
        raise InvalidArgument(f"path must lie in a folder that exists, got {str(path)!r}")
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    with replacing(str(path)) as file:
        # half a character, which JSON can hold, has no place in UTF-8
        file.write(text.getvalue().encode(errors="backslashreplace"))
