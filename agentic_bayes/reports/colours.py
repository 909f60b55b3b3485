"""Which colour an agent has, the same in the report and in every plot: no two agents share one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.formatting import Metric

# Okabe and Ito's colours, told apart by colour-blind readers too; then a grey, which is nobody's own
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GREY = len(COLOURS)
PALETTE = (*COLOURS, "#8A8A8A")
MOST_COLOURED = 6  # agents, where there are more than colours: black next to grey would look like one of them


def agent_colours(est: Estimate) -> list[int]:
    """The place of each agent's colour in the palette; of more agents than colours, those that succeed most have one.

    That is by the plain success rate, whatever a picture shows, so that an agent has one colour everywhere.
    """
    agents, estimand = range(len(est.agents)), est.posterior.estimands[0]
    if len(agents) <= len(COLOURS):
        return list(agents)
    return emphasised([float(est.posterior.distribution(i, estimand, Metric("pass^1")).mean) for i in agents])


def emphasised(means: Sequence[float]) -> list[int]:
    """Colours for so many means: one each while there are enough, else for the highest, and grey for the others."""
    if len(means) <= len(COLOURS):
        return list(range(len(means)))
    order = sorted(range(len(means)), key=lambda i: math.inf if math.isnan(means[i]) else -means[i])
    place = {i: colour for colour, i in enumerate(order[:MOST_COLOURED])}
    return [place.get(i, GREY) for i in range(len(means))]
