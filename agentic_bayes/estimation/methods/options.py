"""The methods as values: what each assumes, with its own options and priors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from math import inf, isfinite
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from agentic_bayes.checks import check_choice, check_flag
from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.methods.near_zero import NearZero
from agentic_bayes.numerics import Array

__all__ = ["Conjugate", "Crossed", "Frequentist", "Hierarchical"]

LogDensity = Callable[[Array], Array]
Estimator = Literal["unbiased", "plugin"]
MethodName = Literal["hierarchical", "crossed", "conjugate", "frequentist"]


SHARE, POSITIVE = (0.0, 1.0), (0.0, inf)
RANGES = {"rho": SHARE, "mu": SHARE, "kappa": POSITIVE, "tau": POSITIVE, "sigma": POSITIVE}  # others are any number
MOST_OUTSIDE = 1e-6  # of a prior's mass


@dataclass(frozen=True, kw_only=True, repr=False)
class Options:
    """What all methods share: a name, engines, and a form that files keep."""

    name: ClassVar[MethodName]
    engines: ClassVar[tuple[str, ...]] = ()
    priors: ClassVar[tuple[str, ...]] = ()  # options that are prior distributions

    def __post_init__(self) -> None:
        for name in self.priors:
            value = getattr(self, name)
            if value is not None and not callable(value) and not hasattr(value, "logpdf"):
                raise InvalidArgument(
                    f"{name} must be a frozen scipy.stats distribution or a function that returns a log density, "
                    f"got {value!r}"
                )

    def _check_supports(self) -> None:
        """Refuse a distribution of something else: some engines cut it off, others pile its mass up at the ends."""
        for name in self.given_priors:
            prior, (low, high) = getattr(self, name), RANGES.get(name, (-inf, inf))
            if not hasattr(prior, "cdf"):
                continue
            outside = np.asarray(prior.cdf(low) + 1 - prior.cdf(high))
            if outside.ndim:
                raise InvalidArgument(f"{name} must be one distribution, its parameters have shape {outside.shape}")
            if not outside <= MOST_OUTSIDE:
                allowed = "between 0 and 1" if high == 1 else "at 0 or more" if low == 0 else "at finite numbers"
                raise InvalidArgument(
                    f"a prior of {name} must have its mass {allowed}, {_prior_words(prior)} has {outside:.2g} "
                    "elsewhere (scipy.stats.truncnorm is a normal distribution that is cut off)"
                )

    def __repr__(self) -> str:
        shown = []
        for option in fields(self):
            value = getattr(self, option.name)
            if value != option.default:
                shown.append(f"{option.name}={_prior_words(value) if option.name in self.priors else repr(value)}")
        return f"{type(self).__name__}({', '.join(shown)})"

    @property
    def given_priors(self) -> tuple[str, ...]:
        """Names of the priors that are not the default ones."""
        return tuple(name for name in self.priors if getattr(self, name) is not None)

    @property
    def has_function_prior(self) -> bool:
        """Whether one of the priors is a function, which no file can keep."""
        return any(_recorded(getattr(self, name)) is None for name in self.given_priors)

    def log_density(self, name: str) -> LogDensity | None:
        """Log density of one parameter; None where the default prior holds or the method has no such parameter.

        The default prior of ρ is a value like any other.
        """
        value = self.rho_prior if name == "rho" else getattr(self, name, None)
        if value is None:
            return None
        logpdf = value.logpdf if hasattr(value, "logpdf") else value

        def density(x: Array) -> Array:
            with np.errstate(divide="ignore", invalid="ignore"):
                logs = np.asarray(logpdf(x), dtype=np.float64)
            return np.where(np.isnan(logs), -np.inf, logs)

        return density

    @property
    def rho_prior(self) -> Any:
        """The prior of ρ; None for a method without, or with a prior of κ instead."""
        if "rho" not in self.priors or getattr(self, "kappa", None) is not None:
            return None
        given = getattr(self, "rho", None)
        return NearZero() if given is None else given

    def record(self) -> dict[str, Any]:
        """The method as plain JSON values, for a file."""
        options = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        return {"name": self.name, "options": options | {name: _recorded(options[name]) for name in self.given_priors}}


@dataclass(frozen=True, kw_only=True, repr=False)
class Hierarchical(Options):
    """Partial pooling across tasks and agents: a hierarchical Beta-Binomial model.

    ::

        c_ai ~ BetaBinomial(n_ai, μ_a κ_a, (1-μ_a) κ_a),   ρ_a = 1/(1+κ_a)
        logit μ_a = m + τ z_a,   z_a ~ N(0, 1)

    Attributes
    ----------
    rho : distribution, optional
        Prior of the intra-class correlation ρ of each agent, in (0, 1). Default: `NearZero()`, which is
        ¾ Uniform(0, 1) + ¼ Beta(1, 300).
    kappa : distribution, optional
        Prior of the concentration κ = 1/ρ - 1 instead of `rho`.
    mu : distribution, optional
        Prior of each agent's mean success probability, with ``pool_agents=False``. Default: Uniform(0, 1).
    m, tau : distribution, optional
        Priors of the mean and the standard deviation of the agents' logit μ, with ``pool_agents=True``. Defaults:
        Logistic(0, 1) and HalfNormal(1).
    pool_agents : bool
        Whether agents share strength; one agent has nothing to share.
    inflate : bool
        Whether tasks that always or never pass get probabilities of their own: point masses at p = 0 and p = 1 next to
        the Beta distribution, weights ~ Dirichlet(1, 1, 4).

    Raises
    ------
    InvalidArgument
        If an option would not be used, or is outside what is allowed.

    Notes
    -----
    A prior is a frozen distribution of `scipy.stats` with its mass where the parameter can be or, for the exact engine
    only, a function that maps an array to an unnormalised log density (-inf outside its support).

    Examples
    --------
    >>> from scipy import stats
    >>> Hierarchical(rho=stats.beta(2, 5), tau=stats.halfnorm(scale=0.5))
    Hierarchical(rho=beta(2, 5), tau=halfnorm(scale=0.5))
    """

    name = "hierarchical"
    engines = ("quadrature", "pymc")
    priors = ("rho", "kappa", "mu", "m", "tau")

    rho: Any = None
    kappa: Any = None
    mu: Any = None
    m: Any = None
    tau: Any = None
    pool_agents: bool = True
    inflate: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag(self.pool_agents, "pool_agents")
        check_flag(self.inflate, "inflate")
        if self.rho is not None and self.kappa is not None:
            raise InvalidArgument("give a prior of rho or of kappa, not both: rho = 1/(1 + kappa)")
        if self.mu is not None and self.pool_agents:
            raise InvalidArgument("a prior of mu needs pool_agents=False (pooled agents have priors of m and tau)")
        unused = [name for name in ("m", "tau") if getattr(self, name) is not None]
        if unused and not self.pool_agents:
            raise InvalidArgument(f"a prior of {' and '.join(unused)} needs pool_agents=True (separate agents have mu)")
        self._check_supports()


@dataclass(frozen=True, kw_only=True, repr=False)
class Crossed(Options):
    """Agents that attempt the same tasks share the tasks' difficulty, so they are compared task by task.

    ::

        logit μ_ai = θ_a + σ δ_i,   δ_i ~ N(0, 1)
        c_ai ~ BetaBinomial(n_ai, μ_ai κ_a, (1-μ_ai) κ_a),   ρ_a = 1/(1+κ_a)

    Attributes
    ----------
    rho : distribution, optional
        Prior of the intra-class correlation ρ of each agent, in (0, 1). Default: `NearZero()`, which is
        ¾ Uniform(0, 1) + ¼ Beta(1, 300).
    theta : distribution, optional
        Prior of each agent's logit success probability on a task of average difficulty. Default: Logistic(0, 1).
    sigma : distribution, optional
        Prior of the standard deviation of difficulty. Default: HalfNormal(2).
    pool_agents : bool
        Whether agents share strength, which makes comparisons of two agents weak.

    Raises
    ------
    InvalidArgument
        If an option would not be used, or is outside what is allowed.
    """

    name = "crossed"
    engines = ("importance", "pymc")
    priors = ("rho", "theta", "sigma")

    rho: Any = None
    theta: Any = None
    sigma: Any = None
    pool_agents: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag(self.pool_agents, "pool_agents")
        if self.theta is not None and self.pool_agents:
            raise InvalidArgument("a prior of theta needs pool_agents=False")
        self._check_supports()


@dataclass(frozen=True, kw_only=True, repr=False)
class Conjugate(Options):
    """Every task on its own: p | c, n ~ Beta(a + c, b + n - c), in closed form.

    Attributes
    ----------
    prior : (float, float)
        a and b of the Beta prior of p.
    pool_tasks : bool
        Whether all tasks of an agent have one success probability. Only then is there an estimate for a new task.

    Raises
    ------
    InvalidArgument
        If an option is outside what is allowed.
    """

    name = "conjugate"

    prior: tuple[float, float] = (1, 1)
    pool_tasks: bool = False

    def __post_init__(self) -> None:
        check_flag(self.pool_tasks, "pool_tasks")
        values = self.prior if isinstance(self.prior, (tuple, list)) else ()
        numbers = [v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
        if len(values) != 2 or len(numbers) != 2 or not all(isfinite(v) and v > 0 for v in numbers):
            raise InvalidArgument(f"prior must be two positive numbers (a, b) of a Beta prior, got {self.prior!r}")
        object.__setattr__(self, "prior", (values[0], values[1]))


@dataclass(frozen=True, kw_only=True, repr=False)
class Frequentist(Options):
    """Plain estimates with confidence intervals, without a model.

    Attributes
    ----------
    estimator : {"unbiased", "plugin"}
        ``unbiased``: 1 - C(n-c,k)/C(n,k) and C(c,k)/C(n,k) per task, averaged over the tasks with n ≥ k. ``plugin``:
        the pooled rate c/n put into 1-(1-p)^k and p^k, which is biased where tasks differ.

    Raises
    ------
    InvalidArgument
        If there is no such estimator.
    """

    name = "frequentist"

    estimator: Estimator = "unbiased"

    def __post_init__(self) -> None:
        check_choice("estimator", self.estimator, get_args(Estimator))


Method: TypeAlias = Hierarchical | Crossed | Conjugate | Frequentist
METHODS: dict[str, type[Method]] = {kind.name: kind for kind in (Hierarchical, Crossed, Conjugate, Frequentist)}


def method_of(value: object) -> Method:
    """The method itself, or the one of this name with its defaults."""
    if isinstance(value, Hierarchical | Crossed | Conjugate | Frequentist):
        return value
    if isinstance(value, type) and value in METHODS.values():
        return value()  # type: ignore[no-any-return]
    if not isinstance(value, str):
        raise InvalidArgument(
            f"method must be one of {', '.join(map(repr, METHODS))}, or a value such as Hierarchical(), got {value!r}"
        )
    check_choice("method", value, METHODS)
    return METHODS[value]()


def method_from_record(record: Mapping[str, Any]) -> Method:
    """The method that `record` described."""
    check_choice("method", record["name"], METHODS)
    kind = METHODS[record["name"]]
    options = dict(record["options"])
    for name in set(options) & set(kind.priors):
        if options[name] is None:
            raise InvalidArgument(f"the prior of {name} was a function, which is not kept")
        options[name] = _restored(options[name])
    return kind(**options)


def _recorded(value: Any) -> dict[str, Any] | None:
    """Name and parameters of a prior; None for a function."""
    if isinstance(value, NearZero):
        return {"name": "near_zero", "args": [value.weight, value.concentration], "kwds": {}}
    name = getattr(getattr(value, "dist", None), "name", None)
    try:
        of_scipy = isinstance(value.dist, type(_scipy_distribution(name)))
    except (AttributeError, InvalidArgument):
        return None  # a function, or a distribution of the user's own
    if not of_scipy:
        return None
    kwds = {key: float(number) for key, number in value.kwds.items()}
    return {"name": name, "args": [float(a) for a in value.args], "kwds": kwds}


def _restored(record: Mapping[str, Any]) -> Any:
    if record["name"] == "near_zero":
        return NearZero(*record["args"])
    return _scipy_distribution(record["name"])(*record["args"], **record["kwds"])


def _prior_words(value: Any) -> str:
    """A prior as people write it: "beta(2, 5)"."""
    if isinstance(value, NearZero):
        return repr(value)
    known = _recorded(value)
    if known is None:
        return getattr(value, "__name__", type(value).__name__)
    shown = [f"{a:g}" for a in known["args"]] + [f"{key}={number:g}" for key, number in known["kwds"].items()]
    return f"{known['name']}({', '.join(shown)})"


def _scipy_distribution(name: object) -> Any:
    """A continuous distribution of `scipy.stats`, and nothing else that has a name there."""
    from scipy import stats

    kind = getattr(stats, name, None) if isinstance(name, str) else None
    if not isinstance(kind, stats.rv_continuous):
        raise InvalidArgument(f"a prior must be a continuous distribution of scipy.stats, got {name!r}")
    return kind
