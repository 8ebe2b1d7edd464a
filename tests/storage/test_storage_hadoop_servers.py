"""Settings of Hadoop's file systems reach real servers: an account's key, a shared access signature, a proxy.

Modules: hudi_fast.storage.hadoop_options, hudi_fast.storage.azure, hudi_fast.storage.gcs, hudi_fast.storage.s3_options.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import hudi_fast as hf
from tests.servers.http_faults import http_faults
from tests.servers.object_stores import start_azurite, start_fake_gcs
from tests.servers.s3 import S3Server, ServerError
from tests.support.jvm import FETCHED
from tests.support.small_tables import options, plain_rows

ACCOUNT = "devstoreaccount1"
HOST = f"{ACCOUNT}.dfs.core.windows.net"


@pytest.fixture(scope="module")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    try:
        with start_azurite(FETCHED, tmp_path_factory.mktemp("azure")) as reach:
            yield reach
    except ServerError as error:
        pytest.skip(str(error))


def rows_in(path: str, settings: Mapping[str, str]) -> int:
    """Rows of a table."""
    return hf.HudiTable.open(path, settings).count()


def written_twice(path: str, settings: Mapping[str, str]) -> int:
    """Rows of a table after two writes."""
    for ts in (1, 2):
        hf.write(plain_rows(range(ts, ts + 6), ts=ts), path, options(), storage_options=settings)
    return rows_in(path, settings)


@pytest.mark.long
def test_a_table_on_azure_by_the_key_of_its_account(azure: Mapping[str, str]) -> None:
    path, server = f"abfs://tables@{HOST}/key", {"endpoint_url": azure["endpoint_url"]}
    assert written_twice(path, {**server, f"fs.azure.account.key.{HOST}": azure["account_key"]}) == 7
    with pytest.raises(hf.StorageAccessError, match="tables"):
        written_twice(path, {**server, f"fs.azure.account.key.{HOST}": azure["account_key"][::-1]})


@pytest.mark.long
def test_a_table_on_azure_by_a_shared_access_signature(azure: Mapping[str, str]) -> None:
    from azure.storage.blob import generate_container_sas

    path = f"abfs://tables@{HOST}/signature"
    expiry = datetime.now(UTC) + timedelta(hours=1)
    for permission, writes in (("racwdl", True), ("rl", False)):
        token = generate_container_sas(ACCOUNT, "tables", azure["account_key"], permission=permission, expiry=expiry)
        settings = {
            "endpoint_url": azure["endpoint_url"],
            f"fs.azure.account.auth.type.{HOST}": "SAS",
            f"fs.azure.sas.fixed.token.{HOST}": token,
        }
        if writes:
            assert written_twice(path, settings) == 7
            continue
        assert rows_in(path, settings) == 7
        with pytest.raises(hf.CommitError, match="AccessDenied"):
            written_twice(path, settings)


@pytest.mark.long
@pytest.mark.server
def test_a_table_on_google_cloud_storage_without_credentials(tmp_path: Path) -> None:
    try:
        with start_fake_gcs(FETCHED, tmp_path) as reach:
            settings = {"fs.gs.auth.type": "UNAUTHENTICATED", "fs.gs.storage.root.url": reach["endpoint_url"]}
            assert written_twice("gs://tables/plain", settings) == 7
    except ServerError as error:
        pytest.skip(str(error))


def test_a_table_on_s3_through_a_proxy_with_a_password(moto: S3Server) -> None:
    with http_faults(moto.url) as proxy:
        address = urlsplit(proxy.url)
        settings = {
            **moto.options,
            "fs.s3a.proxy.host": str(address.hostname),
            "fs.s3a.proxy.port": str(address.port),
            "fs.s3a.proxy.username": "me",
            "fs.s3a.proxy.password": "SECRET",
        }
        assert written_twice(moto.path("through-a-proxy"), settings) == 7
        assert proxy.proxied == {"me:SECRET"}
        assert any(what.startswith("PUT") for what in proxy.asked)
    assert rows_in(moto.path("through-a-proxy"), moto.options) == 7
