"""How an estimate is asked for: its settings, checked before anything is computed."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, Self, get_args

from agentic_bayes.checks import check_choice, check_ks, check_probability, check_seed
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.judge_labels import JudgeLabels
from agentic_bayes.estimation.methods.frequentist import Estimator
from agentic_bayes.estimation.posterior import CIKind
from agentic_bayes.estimation.prior import Prior

__all__ = ["Engine", "Method", "Settings"]

Method = Literal["frequentist", "conjugate", "hierarchical", "crossed"]
Engine = Literal["auto", "quadrature", "importance", "pymc"]
ENGINES: dict[Method, tuple[str, ...]] = {
    "frequentist": (),
    "conjugate": (),
    "hierarchical": ("quadrature", "pymc"),
    "crossed": ("importance", "pymc"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How an estimate was asked for; see `estimate` for every field."""

    method: Method
    k: tuple[int, ...]
    ci_prob: float
    ci_kind: CIKind
    engine: Engine
    estimator: Estimator
    prior: Prior | None
    pool_agents: bool
    pool_tasks: bool
    inflate: bool
    random_seed: int
    judge: JudgeLabels | None = None

    def __post_init__(self) -> None:
        closed: tuple[tuple[str, tuple[str, ...]], ...] = (
            ("method", get_args(Method)),
            ("ci_kind", get_args(CIKind)),
            ("engine", get_args(Engine)),
            ("estimator", get_args(Estimator)),
        )
        for name, allowed in closed:
            check_choice(name, getattr(self, name), allowed)
        object.__setattr__(self, "k", check_ks(self.k))
        check_probability(self.ci_prob, "ci_prob", open_ends=True)
        for name in ("pool_agents", "pool_tasks", "inflate"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidArgument(f"{name} must be True or False, got {getattr(self, name)!r}")
        object.__setattr__(self, "random_seed", check_seed(self.random_seed))
        if self.prior is not None and not isinstance(self.prior, Prior):
            raise InvalidArgument(f"prior must be a Prior, got {self.prior!r}")
        if self.method == "frequentist" and self.ci_kind == "hdi":
            raise InvalidArgument("ci_kind must be 'eti' for the frequentist method (it has no density), got 'hdi'")
        if self.engine != "auto" and self.engine not in ENGINES[self.method]:
            engines = " or ".join(repr(name) for name in ("auto", *ENGINES[self.method]))
            raise InvalidArgument(f"engine of method {self.method!r} must be {engines}, got {self.engine!r}")
        if self.engine == "importance" and self.pool_agents:
            raise InvalidArgument("engine 'importance' has no pooled agents: use engine='pymc' or pool_agents=False")
        if self.inflate and (self.method != "hierarchical" or self.engine == "pymc"):
            raise InvalidArgument("inflate=True needs method='hierarchical' and engine='auto' or 'quadrature'")
        if self.judge is not None:
            self._check_judge()
        self._check_nothing_is_ignored()
        if self.engine == "importance" and not self.prior_is_default:
            raise InvalidArgument("engine 'importance' has the default priors only: use engine='pymc' for others")
        self._check_prior_fits()

    def _check_judge(self) -> None:
        """Judge errors are corrected by the exact engine, agent by agent."""
        if self.method != "hierarchical":
            raise InvalidArgument(f"judge_labels need method='hierarchical', got method={self.method!r}")
        if self.engine == "pymc" or self.inflate:
            raise InvalidArgument("judge_labels need engine='auto' or 'quadrature', and inflate=False")
        if self.pool_agents and not (self.judge is not None and self.judge.perfect):
            raise InvalidArgument("with judge_labels agents do not share strength: leave pool_agents out, or say False")

    def _check_nothing_is_ignored(self) -> None:
        """Refuse settings of other methods. The baseline of an estimate keeps its pooling, which it does not use."""
        if self.estimator == "plugin" and self.method != "frequentist":
            raise InvalidArgument(f"estimator='plugin' needs method='frequentist', got method={self.method!r}")
        if self.pool_tasks and self.method not in ("conjugate", "frequentist"):
            raise InvalidArgument(f"pool_tasks=True needs method='conjugate', got method={self.method!r}")
        if self.pool_agents and self.method == "conjugate":
            raise InvalidArgument("pool_agents=True needs method='hierarchical' or 'crossed', got method='conjugate'")

    def _check_prior_fits(self) -> None:
        given = [] if self.prior is None else [f.name for f in fields(self.prior) if getattr(self.prior, f.name)]
        every = ("mu", "rho", "kappa", "m", "tau")
        usable = {"frequentist": (), "conjugate": ("mu",)}.get(self.method, every)
        unused = [name for name in given if name not in usable]
        if unused:
            raise InvalidArgument(f"method {self.method!r} has no prior of {', '.join(unused)}")
        if self.method == "conjugate":
            self.beta_prior()

    @property
    def prior_is_default(self) -> bool:
        """Whether every prior is the default one."""
        return self.prior is not None and self.prior.as_dict() is None

    def beta_prior(self) -> tuple[float, float]:
        """(a, b) of the conjugate method's Beta prior."""
        mu = None if self.prior is None else self.prior.mu
        if mu is None:
            return 1.0, 1.0
        name = getattr(getattr(mu, "dist", None), "name", None)
        if name in ("beta", "uniform"):
            shapes, loc, scale = mu.dist._parse_args(*mu.args, **mu.kwds)
            if (loc, scale) == (0, 1):
                return (float(shapes[0]), float(shapes[1])) if shapes else (1.0, 1.0)
        raise InvalidArgument("the conjugate method's prior of mu must be scipy.stats.beta(a, b) on (0, 1)")

    def record(self) -> dict[str, Any]:
        """Plain JSON values, for a file."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        judge = None if self.judge is None else self.judge.record()
        return values | {
            "k": list(self.k),
            "prior": None if self.prior is None else self.prior.as_dict(),
            "judge": judge,
        }

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        """What `record` wrote; a prior given as a function is not kept there and becomes None."""
        plain = {"k": tuple(record["k"]), "prior": Prior.from_dict(record["prior"])}
        return cls(**{**record, **plain, "judge": JudgeLabels.from_record(record.get("judge"))})
