"""The likelihood of the crossed model through a judge that errs: the number of true passes is summed over, too.

::

    p(c_ai | δ) = Σ_z p(c_ai | z, s₁, s₀) BetaBinomial(z; n_ai, μ_a(δ), ρ_a)

The judge's confusion p(c | z) is a linear map from the table of true passes to the one of verdicts: one small matrix
product per draw, agent and number of trials. Labelled attempts are true outcomes (see `engines.grid.judged`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import Any, Literal

import numpy as np

from agentic_bayes.errors import EstimateError
from agentic_bayes.estimation.counts import Counts
from agentic_bayes.estimation.engines.grid.judge_rates import pmf
from agentic_bayes.estimation.engines.grid.judged import Kinds
from agentic_bayes.estimation.methods.crossed_likelihood import COARSEST, CrossedLikelihood, Space, Tables
from agentic_bayes.estimation.methods.judge_labels import JudgeLabels
from agentic_bayes.numerics import Array

MOST_TRIALS = 50  # of a task: sums over true passes take time with their square
Times = Literal["one", "passed", "failed"]
LEAST_SEEN = 1e-37  # of a verdict's probability relative to the likeliest number of true passes


@dataclass(frozen=True)
class _Block:
    """The cells of one agent with equally many trials."""

    agent: int
    kinds: Array  # rows of these in the table of kinds
    truths: slice  # rows of 0, …, n true passes in the table of these
    cells: list[
        tuple[int, int, int]
    ]  # of each kind: c and n without labelled attempts, and labelled ones that are right


class JudgedCrossedLikelihood(CrossedLikelihood):
    """Log likelihood of (θ, σ, ρ) given the judge's confusion of every draw; see `confusions`."""

    def __init__(self, counts: Counts, labels: JudgeLabels, step: float = COARSEST) -> None:
        if int(counts.trials.max(initial=0)) > MOST_TRIALS:
            raise EstimateError(
                f"the crossed method corrects judge errors for tasks with at most {MOST_TRIALS} trials, the largest "
                f"has {int(counts.trials.max())}: method='hierarchical' takes more"
            )
        self.counts, self.labels, agents = counts, labels, range(len(counts.agents))
        kinds = [Kinds.of(counts, agent, labels, nothing=True) for agent in agents]
        trials = [one.n + one.labelled for one in kinds]
        known = [(one.c + one.right, n) for one, n in zip(kinds, trials, strict=True)]
        self._number_patterns(counts, known, np.stack([one.place for one in kinds], axis=1))
        truths = [np.array([(z, n) for n in np.unique(own) for z in range(n + 1)]).T for own in trials]
        first = self._tabulate([(z, n) for z, n in truths])
        self.blocks = []
        for agent, (one, own, (_, total)) in enumerate(zip(kinds, trials, truths, strict=True)):
            cells = np.stack([one.c, one.n, one.right], axis=1)
            for n in np.unique(own).tolist():
                which, start = np.flatnonzero(own == n), int(first[agent] + np.flatnonzero(total == n)[0])
                rows = self.first[agent] + which
                self.blocks.append(
                    _Block(agent, rows, slice(start, start + n + 1), list(map(tuple, cells[which].tolist())))
                )
        # the row of each kind's trials among those of true passes
        self.tried_row = np.empty(len(self._row_size), np.int64)
        for block in self.blocks:
            self.tried_row[block.kinds] = block.truths.start
        self.set_step(step)
        self.verdicts = np.sum([one.size @ np.stack([one.c, one.n - one.c], axis=1) for one in kinds], axis=0)

    def _precision(self, longest: int) -> Any:
        return np.float64 if self.uses_loose else super()._precision(longest)

    @property
    def uses_loose(self) -> bool:
        """Whether labels whose attempt is not known count: not where each agent has rates of its own."""
        return any(self.labels.loose) and not self.labels.per_agent(self.counts.agents)

    def _make_tables(self, space: Space, *draws: Array) -> Tables:
        return JudgedTables(self, space, draws[:4], draws[4:])

    def confusions(self, sensitivity: Array, specificity: Array, times: Times = "one") -> tuple[Array, ...]:
        """C(n, z) p(c | z) for every block, shapes (draws, kinds, n + 1), at rates of shape (draws, 1 or agents).

        Also times the expected number of right attempts among the passed, or among the failed.
        """
        draws, columns = sensitivity.shape
        verdicts = _JudgeVerdicts(sensitivity.ravel(), specificity.ravel(), self.labels.clustering)
        made = {
            (c, n): verdicts.confusion(c, n, times).reshape(n + 1, draws, columns)
            for c, n in sorted({cell[:2] for block in self.blocks for cell in block.cells})
        }
        found = []
        for block in self.blocks:
            out = np.zeros((len(block.cells), block.truths.stop - block.truths.start, draws))
            for kind, (c, n, right) in zip(out, block.cells, strict=True):
                kind[right : right + n + 1] = made[c, n][:, :, block.agent if columns > 1 else 0]
            found.append(out.transpose(2, 0, 1))
        return tuple(found)

    def confusion_slopes(self, *draws: Array) -> tuple[Array, ...]:
        """Log likelihood and its derivatives with respect to the confusions."""
        return self._with(lambda tables, share: tables.truths(share)[1], *draws)

    def with_slopes(self, *draws: Array) -> tuple[Array, ...]:
        """Log likelihood and its derivatives with respect to θ, σ, ρ and the confusions."""

        def both(tables: JudgedTables, share: Array) -> tuple[Array, ...]:
            truths, by_confusion = tables.truths(share)
            return *tables.slopes(truths), *by_confusion

        return self._with(both, *draws)


class JudgedTables(Tables):
    """Log likelihood of every agent's distinct cells, and what slopes need of the true passes."""

    model: JudgedCrossedLikelihood

    def __init__(
        self, model: JudgedCrossedLikelihood, space: Space, draws: tuple[Array, ...], confusions: tuple[Array, ...]
    ) -> None:
        super().__init__(model, space, *draws)
        true, self.tried = self.terms, self.tried[model.tried_row]
        self.terms = space("kinds", (len(model.tried_row) + 2, *true.shape[1:]), true.dtype)
        self.terms[-2:] = true[-2:]
        self._parts = []
        for block, confusion in zip(model.blocks, confusions, strict=True):
            share = true[block.truths]
            top = share.max(axis=0)
            share -= top
            np.exp(share, out=share)
            weight, by_draw = np.ascontiguousarray(confusion, true.dtype), share.transpose(1, 0, 2)
            seen = np.maximum(weight @ by_draw, LEAST_SEEN)  # shape (draws, kinds, δ nodes)
            self.terms[block.kinds] = (np.log(seen) + top[:, None]).transpose(1, 0, 2)
            self._parts.append((block, weight, by_draw, seen))
        self._true = true[:-2]

    def truths(self, share: Array) -> tuple[Array, tuple[Array, ...]]:
        """How much each number of true passes counts, given how much each kind does; and slopes of the confusions."""
        out, by_confusion = np.empty_like(self._true), []
        for block, weight, true, seen in self._parts:
            own = share[block.kinds].transpose(1, 0, 2) / seen
            by_confusion.append((own @ true.transpose(0, 2, 1)).astype(np.float64))
            out[block.truths] = (true * (weight.transpose(0, 2, 1) @ own)).transpose(1, 0, 2)
        return out, tuple(by_confusion)


class _JudgeVerdicts:
    """The judge's verdicts at draws of its rates."""

    def __init__(self, sensitivity: Array, specificity: Array, clustering: float) -> None:
        self.rates, self.clustering = (sensitivity, 1 - specificity), clustering
        self._made: dict[tuple[int, int], Array] = {}

    def _passed(self, which: int, n: int) -> Array:
        """Probabilities that k of n right ones (0) or wrong ones (1) are passed, shape (n + 1, draws)."""
        if (which, n) not in self._made:
            self._made[which, n] = np.ascontiguousarray(pmf(n, self.rates[which], self.clustering).T)
        return self._made[which, n]

    def confusion(self, c: int, n: int, times: Times) -> Array:
        """C(n, z) p(c | z) for z = 0, …, n, shape (n + 1, draws)."""
        found = np.empty((n + 1, self.rates[0].size))
        for z in range(n + 1):
            k = np.arange(max(c - n + z, 0), min(c, z) + 1)
            right, slipped = self._passed(0, z)[k], self._passed(1, n - z)[c - k]
            if times != "one":
                right *= (k if times == "passed" else z - k)[:, None]
            np.einsum("kd,kd->d", right, slipped, out=found[z])
            found[z] *= comb(n, z)
        return found
