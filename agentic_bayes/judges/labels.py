"""Human labels of attempts or turns: samples to label, labels to read, and the judge's scores of the same."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from agentic_bayes.checks import check_choice, check_count, check_seed, check_type
from agentic_bayes.errors import EvidenceError, InvalidArgument
from agentic_bayes.evidence import table as tables
from agentic_bayes.evidence.csv_text import csv_text
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.evidence.row import EvidenceRow, place_name
from agentic_bayes.records.base import short
from agentic_bayes.whole_files import replacing

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["sample_for_labelling"]

LabelledBy = Literal["attempt", "task"]
# agent, task, trial, and the turn or, for a whole attempt, None
LabelPlace = tuple[str, str, int, int | None]


@dataclass(frozen=True, slots=True)
class JudgeScores:
    """The judge's scores of an attempt or turn."""

    agent: str  # of the conversation
    task: str
    session_id: str
    scores: tuple[float | None, ...]  # one per turn
    crashed: bool = False  # whether the agent crashed at some turn

    @property
    def score(self) -> float | None:
        """The lowest score of its turns, which decides; None if a turn has none."""
        known = [score for score in self.scores if score is not None]
        return min(known) if len(known) == len(self.scores) else None

    def passes(self, threshold: float) -> bool | None:
        """Whether every turn reaches the threshold; None if missing scores leave that open."""
        if any(score is not None and score < threshold for score in self.scores):
            return False
        return None if None in self.scores else True


@dataclass(frozen=True, slots=True)
class HumanLabel:
    """A person's verdict on an attempt or turn."""

    place: LabelPlace
    passes: bool


def judge_scores(evidence: Evidence, *, turns: bool) -> dict[LabelPlace, JudgeScores]:
    """The judge's scores, attempt by attempt or turn by turn."""
    rows_at: dict[LabelPlace, list[EvidenceRow]] = defaultdict(list)
    for row in evidence.rows:
        rows_at[row.agent.strip(), row.task.strip(), row.trial, row.interaction if turns else None].append(row)
    judged = {}
    for place, rows in rows_at.items():
        scores = tuple(row.answer_score for row in rows)
        crashed = any(row.crashed for row in rows)
        judged[place] = JudgeScores(rows[0].agent, rows[0].task, rows[0].session_id, scores, crashed)
    return judged


def read_human_labels(
    table: pd.DataFrame | str | Path, *, agents: Sequence[str]
) -> tuple[tuple[HumanLabel, ...], bool, int]:
    """The labels of a table, whether they are of turns, and the number of blank cells."""
    whole = tables.read_whole(table, error=EvidenceError)
    columns = whole.columns
    needed = ["task", "human", *(["agent"] if len(agents) > 1 else [])]
    hint = "A table of labels has agent, task, trial and human (0 or 1)"
    tables.require_columns(whole.source, columns, needed, hint=hint, error=EvidenceError)
    problems: list[str] = []
    size = len(columns["task"])
    of_agent = tables.labels(columns.get("agent", [*agents, ""][:1] * size), "agent", problems, whole.place)
    of_task = tables.labels(columns["task"], "task", problems, whole.place)
    trials = tables.whole_numbers(columns, "trial", size, problems, whole.place)
    turns = not all(map(tables.is_blank, columns.get("interaction", [None])))
    at = tables.whole_numbers(columns, "interaction", size, problems, whole.place) if turns else [None] * size
    places: list[LabelPlace] = list(zip(of_agent, of_task, trials, at, strict=True))
    tables.no_repetition(places, place_name, problems, whole.place)
    human_labels = []
    for i, (place, cell) in enumerate(zip(places, columns["human"], strict=True)):
        label = tables.zero_one(cell)
        if label in (0, 1):
            human_labels.append(HumanLabel(place, label == 1))
        elif label is not None:
            problems.append(f"{whole.place(i)}: human must be 0, 1, true, false or blank, got {short(cell)}")
    tables.refuse(whole.source, problems, error=EvidenceError)
    human_labels.sort(key=lambda label: (*label.place[:3], label.place[3] or 0))
    return tuple(human_labels), turns, size - len(human_labels)


def sample_for_labelling(
    evidence: Evidence,
    *,
    n: int,
    by: LabelledBy = "attempt",
    path: str | os.PathLike[str] | None = None,
    random_seed: int = 0,
) -> pd.DataFrame:
    """Draw a random sample of attempts for people to label.

    Parameters
    ----------
    evidence : Evidence
        Scored interactions.
    n : int
        Number of attempts or tasks.
    by : {"attempt", "task"}
        Whether to draw single attempts, or tasks with all their attempts by all agents. Single attempts are more
        informative per label; whole tasks are quicker to label, but their labels are alike.
    path : path, optional
        Where to write a CSV file to fill in. An existing file is never replaced, since it may hold labels.
    random_seed : int
        The same seed gives the same sample.

    Returns
    -------
    pandas.DataFrame
        ``agent, task, trial, session_id, human``, sorted, with ``human`` empty: fill in 1 if the whole attempt is
        right, else 0. The judge's verdict is left out, so that it does not influence the labels. Attempts without any
        scored turn and attempts in which the agent crashed are never drawn.

    Raises
    ------
    InvalidArgument
        If there are fewer than `n` to draw from, or the file exists.
    """
    import pandas as pd

    check_type("evidence", evidence, Evidence, "assess() makes one")
    check_count(n, "n")
    check_seed(random_seed)
    check_choice("by", by, get_args(LabelledBy))
    judged = judge_scores(evidence, turns=False)
    attempts = sorted(
        (agent, task, trial)
        for (agent, task, trial, _), attempt in judged.items()
        if not attempt.crashed and any(score is not None for score in attempt.scores)
    )
    drawn_from = attempts if by == "attempt" else sorted({task for _, task, _ in attempts})
    if n > len(drawn_from):
        raise InvalidArgument(f"n must be at most {len(drawn_from)}, the number of {by}s to draw from, got {n}")
    chosen = np.random.default_rng(random_seed).choice(len(drawn_from), size=n, replace=False)
    kept = {drawn_from[i] for i in chosen}
    rows = [
        (*place, judged[(*place, None)].session_id)
        for place in attempts
        if (place if by == "attempt" else place[1]) in kept
    ]
    sample = pd.DataFrame(rows, columns=["agent", "task", "trial", "session_id"]).assign(human=None)
    if path is not None:
        _write_new(Path(path), sample)
    return sample


def _write_new(path: Path, table: pd.DataFrame) -> None:
    if path.exists():
        raise InvalidArgument(f"{path} already exists and may hold labels: choose another name, or delete it first")
    if not path.absolute().parent.is_dir():
        raise InvalidArgument(f"path must lie in a folder that exists, got {str(path)!r}")
    with replacing(str(path)) as file:
        # JSON can hold half of a surrogate pair, UTF-8 cannot
        file.write(csv_text(table).encode(errors="backslashreplace"))
