"""Commands, run on few simulations."""

import pytest

from agentic_bayes.decisions.monitor import monitor
from agentic_bayes.estimation.engines import mixture


@pytest.fixture(autouse=True)
def few_simulations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate stopping rules 100 times, sample mixtures by ten chains: these tests are about commands."""
    monkeypatch.setitem(monitor.__kwdefaults__, "simulations", 100)
    monkeypatch.setattr(mixture, "CHAINS", 10)
