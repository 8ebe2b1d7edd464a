"""How a lock in Azure signs in when it is not to do so as the table does."""

from __future__ import annotations

from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.config.concurrency_options import LockOptions
from hudi_fast.locking.in_storage import azure_sign_in, lock_storage
from hudi_fast.storage.base import Storage

CONNECTION = "connection__string"
CLIENT = {"client__tenant__id": "t", "client__id": "c", "client__secret": "not-to-be-told"}


def options(**given: Any) -> LockOptions:
    return LockOptions.from_options(
        {f"hoodie.write.lock.azure.{name.replace('__', '.')}": value for name, value in given.items()}
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        ({"sas__token": "?sv=1&sig=2"}, {"sas_token": "sv=1&sig=2"}),
        ({"managed__identity__client__id": "m"}, {"client_id": "m"}),
        (CLIENT, {"tenant_id": "t", "client_id": "c", "client_secret": "not-to-be-told"}),
        ({"sas__token": "s", "managed__identity__client__id": "m", **CLIENT}, {"sas_token": "s"}),
        ({"managed__identity__client__id": "m", **CLIENT}, {"client_id": "m"}),
        (
            {CONNECTION: "AccountName=a;AccountKey=a2V5==;EndpointSuffix=core.windows.net"},
            {"account_key": "a2V5=="},
        ),
        (
            {CONNECTION: "BlobEndpoint=https://a.blob.core.windows.net/;SharedAccessSignature=sv=1&sig=2"},
            {"sas_token": "sv=1&sig=2"},
        ),
        (
            {CONNECTION: "AccountName=a;AccountKey=k;BlobEndpoint=http://127.0.0.1:1/a;", "sas__token": "s"},
            {"account_key": "k", "endpoint_url": "http://127.0.0.1:1"},
        ),
    ],
)
def test_the_first_way_in_hudis_order_counts(given: dict[str, str], expected: dict[str, str]) -> None:
    assert azure_sign_in(options(**given)) == expected


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({CONNECTION: "AccountName=not-to-be-told"}, "neither AccountKey nor"),
        ({"client__secret": "not-to-be-told"}, "Give all of"),
    ],
)
def test_credentials_that_are_incomplete_are_not_told(given: dict[str, str], match: str) -> None:
    with pytest.raises(hf.ConfigError, match=match) as failure:
        azure_sign_in(options(**given))
    assert "not-to-be-told" not in str(failure.value)


def test_the_locks_own_credentials_replace_the_tables() -> None:
    table = Storage("abfs://c@a.dfs.core.windows.net/t", {"account_key": "a2V5", "timeout": "5"})
    assert lock_storage(table, options()) is table
    own = lock_storage(table, options(sas__token="sv=1&sig=not-to-be-told"))
    assert dict(own.options) == {"timeout": "5", "sas_token": "sv=1&sig=not-to-be-told"}
    assert "not-to-be-told" not in repr(own) + repr(own.conditional()) + repr(own.options)


def test_they_are_of_no_matter_elsewhere(tmp_path: Any) -> None:
    table = Storage(tmp_path)
    assert lock_storage(table, options(sas__token="s")) is table
