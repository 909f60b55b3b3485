"""Reports and pictures, with a short run of what they only show."""

from collections.abc import Iterator

import pytest

from agentic_bayes.estimation.engines import mixture


@pytest.fixture(scope="module", autouse=True)
def _few_chains() -> Iterator[None]:
    """A tenth of the mixture's chains, behind the table of other models: tests of estimation are about its numbers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mixture, "CHAINS", 10)
        yield
