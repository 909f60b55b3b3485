"""The settings of an estimate, checked before anything is computed."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, Self, get_args

from agentic_bayes.checks import check_choice, check_ks, check_probability, check_seed
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.distribution import CIKind
from agentic_bayes.estimation.groups import Weights, check_groups, plain_weights
from agentic_bayes.estimation.methods.judge_labels import JudgeLabels
from agentic_bayes.estimation.methods.options import Crossed, Hierarchical, Method, method_from_record

Engine = Literal["auto", "quadrature", "importance", "pymc"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How an estimate was asked for; see `estimate` for every field."""

    method: Method
    k: tuple[int, ...]
    ci_prob: float
    ci_kind: CIKind
    engine: Engine
    random_seed: int
    judge: JudgeLabels | None = None
    by: str | None = None
    weights: Weights | None = None

    def __post_init__(self) -> None:
        check_choice("ci_kind", self.ci_kind, get_args(CIKind))
        check_choice("engine", self.engine, get_args(Engine))
        object.__setattr__(self, "k", check_ks(self.k))
        check_probability(self.ci_prob, "ci_prob", open_ends=True)
        object.__setattr__(self, "random_seed", check_seed(self.random_seed))
        name = self.method.name
        if name == "frequentist" and self.ci_kind == "hdi":
            raise InvalidArgument("ci_kind must be 'eti' for the frequentist method (it has no density), got 'hdi'")
        if self.engine not in ("auto", *self.method.engines):
            engines = " or ".join(repr(engine) for engine in ("auto", *self.method.engines))
            raise InvalidArgument(f"engine of method {name!r} must be {engines}, got {self.engine!r}")
        if isinstance(self.method, Crossed) and self.method.has_function_prior:
            raise InvalidArgument(f"priors of Crossed must be scipy.stats distributions, got {self.method!r}")
        if isinstance(self.method, Hierarchical) and self.method.inflate and self.engine == "pymc":
            raise InvalidArgument("inflate=True needs engine='auto' or 'quadrature', got 'pymc'")
        by, weights = check_groups(self.by, self.weights)
        object.__setattr__(self, "weights", weights)
        if by is not None:
            self._check_by()
        if self.corrects_judge:
            self._check_judge()

    def _check_by(self) -> None:
        """Groups share strength in the hierarchical model by quadrature; other methods average over their tasks."""
        if self.judge is not None:
            raise InvalidArgument("by cannot be combined with judge_labels: no model here has groups and judge errors")
        if not isinstance(self.method, Hierarchical):
            return
        if self.method.inflate:
            raise InvalidArgument("by cannot be combined with inflate=True: point masses per group are not identified")
        if self.engine == "pymc":
            raise InvalidArgument("by needs engine='auto' or 'quadrature' with the hierarchical method, got 'pymc'")
        if self.method.mu is not None:
            raise InvalidArgument("by: the means of groups share strength, so give priors of m and tau instead of mu")

    def _check_judge(self) -> None:
        """Judge errors are corrected by the exact engine, agent by agent, or by importance sampling, paired."""
        if not isinstance(self.method, Hierarchical | Crossed):
            raise InvalidArgument(
                f"judge_labels need the crossed or the hierarchical method, got {self.method!r}: no other sums "
                "over what may be true"
            )
        if self.engine == "pymc" or (isinstance(self.method, Hierarchical) and self.method.inflate):
            raise InvalidArgument("judge_labels need engine='auto', 'importance' or 'quadrature', and inflate=False")

    @property
    def corrects_judge(self) -> bool:
        """Whether a judge's errors are part of the posterior."""
        return self.judge is not None and not self.judge.perfect

    def record(self) -> dict[str, Any]:
        """The settings as plain JSON values, for a file."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        judge = None if self.judge is None else self.judge.record()
        return values | {
            "k": list(self.k),
            "method": self.method.record(),
            "judge": judge,
            "weights": plain_weights(self.weights),
        }

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        """What `record` wrote."""
        plain = {"k": tuple(record["k"]), "method": method_from_record(record["method"])}
        return cls(**{**record, **plain, "judge": JudgeLabels.from_record(record.get("judge"))})
