"""The result of a grader: a score with a reason, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from agentic_bayes.errors import InvalidArgument

if TYPE_CHECKING:
    from agentic_bayes.records.model import Conversation

__all__ = ["Grade", "Grader", "Score", "Unscored"]

ROUNDING = 1e-9  # missing the threshold by a rounding error is not a failure

NO_REFERENCE = "no reference answer"
"""Why a judge that needs a reference gives no score."""
FailureKind = Literal[
    "missing fact",
    "wrong number",
    "wrong answer",
    "contradiction",
    "no clear answer",
    "refusal",
    "no answer",
    "format",
    "missing call",
    "wrong tool",
    "extra call",
    "argument",
    "order of calls",
    "forbidden call",
    "unused result",
    "crash",
]
KINDS = "failure_kinds"
"""Key in the details of a `Score`: a list that says what went wrong, `FailureKind` or a grader's own words."""


@dataclass(frozen=True, slots=True)
class Score:
    """A score with its reason.

    Attributes
    ----------
    value : float
        The score, in [0, 1].
    reason : str
        One or two sentences.
    details : mapping
        Anything else that the grader wants to keep. A report groups failures by ``failure_kinds``, a list of what went
        wrong ("missing fact", "refusal", …, or words of your own); without it, by the words of the reasons.
    """

    value: float
    reason: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Real includes NumPy's numbers
        value: Any = self.value
        number = isinstance(value, (float, int, Real)) and not isinstance(value, bool)
        if not number or not 0 <= value <= 1:
            raise InvalidArgument(f"a score must be a number in [0, 1], got {value!r}")
        object.__setattr__(self, "value", float(value))


@dataclass(frozen=True, slots=True)
class Unscored:
    """No score, and the reason why. It never counts as zero.

    Attributes
    ----------
    reason : str
        Why there is no score.
    """

    reason: str

    def __post_init__(self) -> None:
        if not isinstance(self.reason, str) or not self.reason.strip():
            raise InvalidArgument(f"Unscored needs a reason, got {self.reason!r}")


Grade = Score | Unscored


def flawed(value: float, reason: str, *kinds: FailureKind) -> Score:
    """A score that lost points, and to which kinds of failure."""
    return Score(value, reason, {KINDS: list(kinds)} if kinds else {})


def named_kinds(details: Mapping[str, Any]) -> tuple[str, ...]:
    """The kinds of failure that the details of a score name; none if they hold anything else there."""
    kinds = details.get(KINDS)
    kinds = kinds if isinstance(kinds, (list, tuple)) else ()
    return tuple(kind.strip() for kind in kinds if isinstance(kind, str) and kind.strip())


@runtime_checkable
class Grader(Protocol):
    """Anything that grades one interaction."""

    @property
    def name(self) -> str:
        """Column name of its scores."""

    @property
    def identity(self) -> str:
        """Name, version and everything else that changes its scores; kept with every score."""

    def grade(self, conversation: Conversation, position: int) -> Grade | Awaitable[Grade]:
        """Grade one interaction; may be ``async``.

        Parameters
        ----------
        conversation : Conversation
            The conversation. A grader looks at this turn and, if it must, at earlier ones.
        position : int
            Index of the interaction.

        Returns
        -------
        Score or Unscored
            An exception becomes `Unscored`, never a zero.
        """
