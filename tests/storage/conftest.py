"""One S3 server for all tests here. botocore finds it by environment variables, as it finds an operator's
server.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.storage.server import StorageServer, storage_server


@pytest.fixture(scope="session")
def running() -> Iterator[StorageServer]:
    with storage_server() as server:
        yield server


@pytest.fixture
def storage(running: StorageServer, monkeypatch: pytest.MonkeyPatch) -> StorageServer:
    for name, value in running.environment.items():
        monkeypatch.setenv(name, value)
    return running
