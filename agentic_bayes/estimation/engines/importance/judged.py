"""The crossed posterior through a judge that errs: its error rates are coordinates, too."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from agentic_bayes.errors import EstimateError
from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.engines.grid.axes import logsumexp
from agentic_bayes.estimation.engines.grid.judge_rates import PRIOR, SPREAD_SCALE
from agentic_bayes.estimation.engines.importance.normal_scale import rising
from agentic_bayes.estimation.engines.importance.shared_strength import LEAST, SMOOTH, SharedStrength
from agentic_bayes.estimation.engines.importance.target import FIRST_STEP, Target
from agentic_bayes.estimation.methods.crossed_likelihood import delta_grid, expit_pair
from agentic_bayes.estimation.methods.judge_labels import RATE_NAMES, JudgeLabels
from agentic_bayes.estimation.methods.judged_likelihood import JudgedCrossedLikelihood, Times
from agentic_bayes.estimation.methods.options import Crossed
from agentic_bayes.numerics import Array

STEP = 1e-3  # of u, for slopes in the rates
LEVELS = 25  # nodes of M, whose τ is wider than that of θ
NEW_STEP = 0.5  # of δ, for new tasks
MEANS = np.linspace(-20, 20, 801)  # of logits, where the integral over M is tabulated
BLOCK = 1024  # draws at a time, to bound memory


@lru_cache(maxsize=8)
def _rate_strength(columns: int, least: float) -> SharedStrength:
    return _RateStrength(rising(), SPREAD_SCALE, columns, least, LEVELS)


class _RateStrength(SharedStrength):
    """Shared strength with the integral over M, for each τ a function of the mean alone, tabulated."""

    def __init__(self, *options: Any) -> None:
        super().__init__(*options)
        m = MEANS[:, None, None] + (self.tau / np.sqrt(self.agents))[:, None] * self.x
        self.log_level = logsumexp(self.level.log_density(m) + self.log_weight, axis=2) + self.log_mass

    def _joint(self, theta: Array) -> tuple[Array, Array]:
        centre, step = theta.mean(axis=1), MEANS[1] - MEANS[0]
        deviation = theta - centre[:, None]
        place = np.clip((centre - MEANS[0]) / step, 0, MEANS.size - 1.001)
        node = place.astype(np.int64)
        level = self.log_level[node]
        rise = self.log_level[node + 1] - level
        level += (place - node)[:, None] * rise
        terms = level - np.sum(deviation**2, axis=1)[:, None] / (2 * self.tau**2)
        value = logsumexp(terms, axis=1)
        by_tau = np.exp(terms - value[:, None])
        by_centre = np.sum(by_tau * rise, axis=1)[:, None] / (step * self.agents)
        return value, by_centre - (by_tau @ (1 / self.tau**2))[:, None] * deviation


class JudgedTarget(Target):
    """Log posterior density of u: coordinates are θ, then sensitivities, specificities, σ and ρ.

    Rates are on the scale of their prior Beta(2, 1); where each agent has its own, of that of M, and M and τ are
    integrated out as those of shared θ are. Fixed rates are no coordinates.
    """

    likelihood: JudgedCrossedLikelihood

    def __init__(self, counts: Counts, method: Crossed, labels: JudgeLabels) -> None:
        self.labels, self.fixed = labels, labels.calibration == "fixed"
        super().__init__(counts, method)
        self.by_column = [labels]
        if labels.per_agent(counts.agents):
            self.by_column = [labels.of_agent(agent) for agent in counts.agents]
        self.columns = 0 if self.fixed else len(self.by_column)
        self.level += 2 * self.columns
        self._count()
        self.rate = rising()
        self._share_rates(SMOOTH)
        if self.fixed and not all(
            block.any(axis=2).all() for block in self.likelihood.confusions(*self._rates(np.zeros((1, 0)))[:2])
        ):
            raise EstimateError(
                f"sensitivity {labels.sensitivity:g} and specificity {labels.specificity:g} cannot give these counts"
            )

    def _likelihood(self, counts: Counts) -> JudgedCrossedLikelihood:
        return JudgedCrossedLikelihood(counts, self.labels, FIRST_STEP)

    def _share_rates(self, least: float) -> None:
        self.shared_rates = None
        if self.columns > 1:
            self.shared_rates = _rate_strength(self.columns, least)

    def sharpen(self) -> None:
        """Take the priors as they are, cusps included."""
        super().sharpen()
        self._share_rates(LEAST)

    def start(self) -> Array:
        """A rough guess, of the rates from their labels."""
        from scipy.special import ndtri

        u = super().start()
        told = np.array([(one.hits, one.misses, one.rejections, one.false_alarms) for one in self.by_column])
        good, bad = told[:, ::2].T, told[:, 1::2].T
        if self.columns:  # the distribution function of Beta(2, 1) is the square
            u[self.agents : self.level] = ndtri(((good + PRIOR[0]) / (good + bad + sum(PRIOR))) ** 2).ravel()
        return u

    def _own(self, u: Array) -> Array:
        """The coordinates that are rates, shape (2, draws, columns)."""
        return u[:, self.agents : self.level].reshape(len(u), 2, self.columns).transpose(1, 0, 2)

    def _rates(self, u: Array) -> Array:
        """Sensitivity and specificity, shape (2, draws, columns), or (2, draws, 1) where they are fixed."""
        if self.fixed:
            fixed = np.array([self.labels.sensitivity, self.labels.specificity], dtype=np.float64)
            return np.broadcast_to(fixed[:, None, None], (2, len(u), 1))
        rates, _ = expit_pair(self.rate(self._own(u))[0])
        return rates

    def rates(self, u: Array) -> dict[str, Array]:
        """Error rates, shape (draws,) or (draws, agents); none where they are fixed."""
        if self.fixed:
            return {}
        return {
            name: own if self.columns > 1 else own[:, 0] for name, own in zip(RATE_NAMES, self._rates(u), strict=True)
        }

    def _told(self, u: Array) -> Array:
        """What labels whose attempt is known say of each rate, shape (2, draws, columns)."""
        rates = self._rates(u)
        said = np.zeros((2, len(u), self.columns))
        for column in range(self.columns):
            said[:, :, column] = self.by_column[column].log_likelihood(*rates[:, :, column])
        return said

    def _prior(self, u: Array) -> tuple[Array, Array]:
        """Log prior of the rates where agents share strength, relative to independent ones, and its slope in u."""
        value, slope = np.zeros(len(u)), np.zeros((2, len(u), self.columns))
        if self.shared_rates is not None:
            for own, out in zip(self._own(u), slope, strict=True):
                logit, rise = self.rate(own)
                more, by_logit, by_own = self.shared_rates(logit, own)
                value += more
                out[:] = by_logit * rise + by_own
        return value, slope

    def _loose(self, u: Array, parameters: tuple[Array, ...], by_confusion: tuple[Array, ...]) -> Array:
        """What labels whose attempt is not known say of the shares of right attempts among passed and failed ones."""
        theta, sigma = parameters[:2]
        sensitivity, specificity = (one[:, 0] for one in self._rates(u))
        nodes, log_weight = delta_grid(NEW_STEP)
        mu = np.mean(expit_pair(theta[:, :, None] + sigma[:, None, None] * nodes)[0] @ np.exp(log_weight), axis=1)
        passed = sensitivity * mu + (1 - specificity) * (1 - mu)  # of one attempt of a new task
        shares = []
        kinds: tuple[tuple[Times, Array, Array, int], ...] = (
            ("passed", passed, sensitivity * mu, self.likelihood.verdicts[0]),
            ("failed", 1 - passed, (1 - sensitivity) * mu, self.likelihood.verdicts[1]),
        )
        for times, new, right, verdicts in kinds:
            counted = self.likelihood.confusions(sensitivity[:, None], specificity[:, None], times)
            right = right + sum(np.einsum("dkz,dkz->d", *parts) for parts in zip(by_confusion, counted, strict=True))
            shares.append(np.clip(right / (new + verdicts), 1e-300, 1 - 1e-16))
        found: Array = self.labels.log_predictive(*shares)
        return found

    def _loose_at(self, u: Array) -> Array:
        """The same, at any u."""
        parameters = self.parameters(u)
        return np.concatenate(
            [
                self._loose(
                    u[part],
                    own,
                    self.likelihood.confusion_slopes(*own, *self.likelihood.confusions(*self._rates(u[part])))[1:],
                )
                for part, own in _blocks(len(u), *parameters)
            ]
        )

    def log_likelihood(self, u: Array, *parameters: Array) -> Array:
        """Of counts and labels at u, with what shared strength adds."""
        found: Array = self._told(u).sum(axis=(0, 2)) + self._prior(u)[0]
        for part, own in _blocks(len(u), *parameters):
            confusions = self.likelihood.confusions(*self._rates(u[part]))
            if self.likelihood.uses_loose:
                value, *by_confusion = self.likelihood.confusion_slopes(*own, *confusions)
                found[part] += value + self._loose(u[part], own, tuple(by_confusion))
            else:
                found[part] += self.likelihood(*own, *confusions)
        return found

    def with_slopes(self, u: Array, *parameters: Array) -> tuple[Array, Array, Array, Array, Array]:
        """The same and its derivatives with respect to θ, σ, ρ and u; in the rates by differences."""
        prior, size = self._prior(u), len(u)
        shifts = np.zeros((4 if self.columns else 0, u.shape[1]))  # of all sensitivities, then of all specificities
        for kind in range(len(shifts) // 2):
            start = self.agents + kind * self.columns
            shifts[2 * kind : 2 * kind + 2, start : start + self.columns] = np.array([STEP, -STEP])[:, None]
        near = np.concatenate([u, *(u + shift for shift in shifts)])
        told, confusions = self._told(near), self.likelihood.confusions(*self._rates(near))
        found = self.likelihood.with_slopes(*parameters, *(one[:size] for one in confusions))
        value, by_theta, by_sigma, by_rho, *by_confusion = found
        value = value + told[:, :size].sum(axis=(0, 2)) + prior[0]
        more, by_rate = np.zeros_like(u), prior[1]
        for kind in range(len(shifts) // 2):
            above, below = (slice(i * size, (i + 1) * size) for i in (2 * kind + 1, 2 * kind + 2))
            by_rate[kind] += (told[kind, above] - told[kind, below]) / (2 * STEP)
            for block, slope, table in zip(self.likelihood.blocks, by_confusion, confusions, strict=True):
                change = np.einsum("dkz,dkz->d", slope, table[above] - table[below])
                by_rate[kind, :, block.agent if self.columns > 1 else 0] += change / (2 * STEP)
        more[:, self.agents : self.level] = by_rate.transpose(1, 0, 2).reshape(len(u), -1)
        if self.likelihood.uses_loose:
            value = value + self._loose(u, parameters, tuple(by_confusion))
            shifts = STEP * np.eye(u.shape[1])
            around = np.concatenate([u[:, None] + shifts, u[:, None] - shifts], axis=1)
            loose = self._loose_at(around.reshape(-1, u.shape[1])).reshape(len(u), 2, -1)
            more += (loose[:, 0] - loose[:, 1]) / (2 * STEP)
        return value, by_theta, by_sigma, by_rho, more


def _blocks(count: int, *values: Array) -> Iterator[tuple[slice, tuple[Array, ...]]]:
    """Some draws at a time."""
    for start in range(0, count, BLOCK):
        part = slice(start, start + BLOCK)
        yield part, tuple(one[part] for one in values)
