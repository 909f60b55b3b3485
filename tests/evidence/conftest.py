"""What the tests of judges share."""

import re
from collections.abc import Iterator

import certifi
import pytest


@pytest.fixture(scope="session", autouse=True)
def one_authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Clients know one certificate authority: all of them take 40 ms, and every judge has clients of its own."""
    found = re.search(r"-----BEGIN.+?END CERTIFICATE-----\n", certifi.contents(), re.DOTALL)
    assert found
    path = tmp_path_factory.mktemp("authorities") / "one.pem"
    path.write_text(found[0], encoding="ascii")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(path))
        yield
