"""A table on HDFS that asks for Kerberos tickets and encrypts what DataNodes send.

Modules: hudi_fast.storage.hdfs, hudi_fast.storage.hadoop_options.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from tests.servers.hdfs import HdfsCluster
from tests.support.small_tables import options, plain_rows, rows_of

SECURE = {"hadoop.security.authentication": "kerberos", "dfs.data.transfer.protection": "privacy"}


@pytest.fixture
def cluster(secured_hdfs: HdfsCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> HdfsCluster:
    """The cluster, for a process without tickets or tokens."""
    assert secured_hdfs.kdc is not None
    monkeypatch.setenv("KRB5_CONFIG", secured_hdfs.kdc.config)
    monkeypatch.setenv("KRB5CCNAME", str(tmp_path / "no tickets"))
    monkeypatch.delenv("HADOOP_TOKEN_FILE_LOCATION", raising=False)
    everybody = secured_hdfs.hadoop_path(f"{secured_hdfs.uri}/tests")
    secured_hdfs.files.mkdirs(everybody)
    secured_hdfs.files.setPermission(everybody, secured_hdfs.jvm.org.apache.hadoop.fs.permission.FsPermission("777"))
    return secured_hdfs


@pytest.fixture(scope="module")
def alice(secured_hdfs: HdfsCluster) -> Path:
    """A keytab of the principal ``alice``."""
    assert secured_hdfs.kdc is not None
    return secured_hdfs.kdc.keytab("alice", "alice")


def test_a_keytab_says_who_writes_a_table(cluster: HdfsCluster, alice: Path) -> None:
    path = cluster.path("keytab")
    login = {**SECURE, "kerberos_principal": "alice", "kerberos_keytab": str(alice)}
    for ts in (1, 2):
        hf.write(plain_rows(range(40), ts=ts), path, options(), storage_options=login)
    assert rows_of(hf.HudiTable.open(path, storage_options=login).to_arrow()) == rows_of(plain_rows(range(40), ts=2))
    owners = {one.getOwner() for one in cluster.files.listStatus(cluster.hadoop_path(f"{path}/.hoodie"))}
    assert owners == {"alice"}


def test_tickets_of_kinit_are_enough(cluster: HdfsCluster, alice: Path) -> None:
    assert cluster.kdc is not None
    cache = cluster.kdc.ticket_cache("alice", "alice", alice)
    there = Storage(cluster.path("tickets"), {**SECURE, "kerberos_principal": "alice", "kerberos_cache": str(cache)})
    there.write_bytes("a/f", b"x" * 100_000)
    assert there.read_bytes("a/f") == b"x" * 100_000


def test_tickets_without_a_principal_are_refused() -> None:
    with pytest.raises(hf.ConfigError, match="kerberos_cache needs kerberos_principal"):
        Storage("hdfs://namenode/t", {"kerberos_cache": "tickets"})


def test_without_a_ticket_the_error_names_kinit(cluster: HdfsCluster) -> None:
    with pytest.raises(PermissionError, match=r"HDFS does not accept this caller .*kinit"):
        Storage(cluster.path("nobody"), SECURE).write_bytes("f", b"x")


def test_a_keytab_of_another_principal_is_refused(cluster: HdfsCluster, alice: Path) -> None:
    login = {**SECURE, "kerberos_principal": "mallory", "kerberos_keytab": str(alice)}
    with pytest.raises(PermissionError, match=r"HDFS does not accept this caller .*kinit"):
        Storage(cluster.path("mallory"), login).write_bytes("f", b"x")


def test_a_principal_without_the_right_to_write_is_named(cluster: HdfsCluster, alice: Path) -> None:
    login = {**SECURE, "kerberos_principal": "alice", "kerberos_keytab": str(alice)}
    with pytest.raises(PermissionError, match="alice"):
        hf.write(plain_rows(range(4)), f"{cluster.uri}/only-hdfs/t", options(), storage_options=login)


def test_a_delegation_token_needs_no_ticket(cluster: HdfsCluster) -> None:
    _, content = cluster.token()
    path, login = cluster.path("token"), {**SECURE, "delegation_tokens": content}
    hf.write(plain_rows(range(10), ts=1), path, options(), storage_options=login)
    assert rows_of(hf.HudiTable.open(path, storage_options=login).to_arrow()) == rows_of(plain_rows(range(10), ts=1))


def test_files_that_the_cluster_closes_early_are_read_whole(cluster: HdfsCluster, alice: Path) -> None:
    there = Storage(cluster.path("early"), {**SECURE, "kerberos_principal": "alice", "kerberos_keytab": str(alice)})
    for number in range(60):
        there.write_bytes(str(number), b"x" * number)
        assert there.read_bytes(str(number)) == b"x" * number
