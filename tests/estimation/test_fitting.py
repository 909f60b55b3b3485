"""Which method `auto` means, which engine runs, and what happens when one finds itself unreliable."""

from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from fits import NEVER, STRONGER, WEAKER, counts
from scipy import stats

from agentic_bayes.errors import InvalidArgument
from agentic_bayes.estimation.engines import nuts as mcmc
from agentic_bayes.estimation.engines.diagnostics import Diagnostics, Fit, ImportanceDiagnostics
from agentic_bayes.estimation.engines.importance import sampler
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.methods.options import Crossed, Hierarchical

TWO = {"v1": WEAKER, "v2": STRONGER}
UNSCORED = (0, 0, 2)


@pytest.mark.parametrize(
    ("agents", "method", "reason"),
    [
        ({"solo": WEAKER}, "hierarchical", "there is one agent"),
        (TWO, "crossed", "11 of 12 tasks were attempted by two agents or more"),
        (
            {"v1": [(1, 2), (1, 2), NEVER, NEVER], "v2": [(1, 2), (1, 2), (1, 2), (1, 2)]},
            "crossed",
            "2 of 4 tasks were attempted by two agents or more",
        ),
        (
            {"v1": [(1, 2), NEVER, NEVER, NEVER], "v2": [(1, 2), (1, 2), (1, 2), (1, 2)]},
            "hierarchical",
            "1 of 4 tasks were attempted by two agents or more",
        ),
        (
            {"v1": [(1, 2), UNSCORED], "v2": [(1, 2), (1, 2)]},
            "crossed",
            "2 of 2 tasks were attempted by two agents or more",
        ),
    ],
)
def test_auto_takes_the_crossed_method_where_half_of_the_tasks_are_shared(agents, method, reason):
    """From half of the tasks on, attempted by two agents, scored or not; the estimate's note says why."""
    est = estimate(counts(agents), method="auto", k=1)
    assert (est.method.name, est.note.split(";")[0]) == (method, reason)


def test_auto_is_the_default():
    """Agents that share tasks are crossed unless something else is asked for, up to 25 of them."""
    assert estimate(counts(TWO), k=1).method == Crossed()
    many = estimate(counts({f"agent {i}": [(i % 3, 2)] * 2 for i in range(26)}), k=1)
    assert (many.method, many.note) == (Hierarchical(), "there are 26 agents, more than 25")
    exact = estimate(counts(TWO), k=1, engine="quadrature")
    assert (exact.method, exact.note) == (Hierarchical(), "engine 'quadrature' was asked for")


def unreliable(found, _method, _judge, **_):
    """Importance draws that say of themselves that they are not to be trusted."""
    agents = len(found.agents)
    draws = np.full((4000, agents), 0.5)
    return SimpleNamespace(
        theta=draws,
        sigma=draws[:, 0],
        rho=draws,
        weight=np.full(4000, 1 / 4000),
        rates={},
        diagnostics=ImportanceDiagnostics(pareto_k=0.9, ess=50, draws=4096),
    )


def sampled(outcomes, method, **_):
    """What NUTS gives, without running it."""
    shape = {"chain": 4, "draw": 1000, "agent": outcomes.sizes["agent"]}
    cells = xr.DataArray(np.full(tuple(shape.values()), 0.25), dims=tuple(shape))
    posterior = xr.Dataset({"theta": cells, "rho": cells, "sigma": cells.isel(agent=0)})
    posterior = posterior.assign_coords(agent=outcomes["agent"].values)
    diagnostics = Diagnostics(rhat=1.0, ess_bulk=2000.0, ess_tail=2000.0, divergences=0, draws=4000, target_accept=0.97)
    return Fit(posterior, None, diagnostics)


def test_nuts_takes_over_where_importance_sampling_is_unreliable(monkeypatch, caplog):
    """With engine `auto` the draws are by NUTS, and note and log say why; asked for, they stay and are flagged."""
    monkeypatch.setattr(sampler, "fit_crossed", unreliable)
    monkeypatch.setattr(mcmc, "fit", sampled)
    est = estimate(counts(TWO), method="crossed", k=1)
    assert float(est.draws["theta"].mean()) == 0.25
    assert est.note.startswith("importance sampling was NOT RELIABLE: Pareto k 0.90")
    assert est.note.endswith("sampled by NUTS instead")
    assert caplog.messages[0].startswith("importance sampling was NOT RELIABLE: Pareto k 0.90")
    assert caplog.messages[0].endswith("NUTS takes over, which may take minutes")
    assert est.diagnostics.passed
    kept = estimate(counts(TWO), method="crossed", engine="importance", k=1)
    assert float(kept.draws["theta"].mean()) == 0.5
    assert set(kept.summary(columns="all")["flags"].str.split(", ").str[0]) == {"not_converged"}


def test_the_importance_engine_takes_other_priors_but_no_functions():
    """What is asked for is what runs; a function has no quantiles, so it is refused where it is given."""
    both = counts({"a": [(1, 2)] * 8, "b": [(2, 2)] * 8})
    narrow = estimate(both, Crossed(rho=stats.beta(200, 200)), engine="importance", k=1)
    assert narrow.posterior.hyper_draws()["rho"].mean() == pytest.approx(0.5, abs=0.02)
    with pytest.raises(InvalidArgument, match=r"priors of Crossed must be scipy.stats distributions, got Crossed"):
        estimate(both, Crossed(rho=np.zeros_like))
