"""An S3 server that accepts all credentials (moto), and a proxy that watches its requests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers.http_faults import Faults, http_faults
from tests.servers.s3 import S3Server, start_s3


@pytest.fixture(scope="module")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    folder = tmp_path_factory.mktemp("moto")
    with start_s3(folder, folder, "moto") as server:
        yield server


@pytest.fixture
def watched(moto: S3Server) -> Iterator[Faults]:
    with http_faults(moto.url) as faults:
        yield faults
