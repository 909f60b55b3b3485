"""Commands, run on few simulations."""

import pytest

from agentic_bayes.decisions.monitor import monitor


@pytest.fixture(autouse=True)
def few_simulations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate stopping rules 100 times: these tests are about commands, those of decisions about the numbers."""
    monkeypatch.setitem(monitor.__kwdefaults__, "simulations", 100)
