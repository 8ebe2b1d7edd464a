"""Spark on HDFS: driver and tasks reach the table with the session's Hadoop settings; Spark itself scans its files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.spark.storage import hdfs_settings, is_default, reached_by_spark, storage_of
from tests.servers.hdfs import HdfsCluster
from tests.spark.programs import run_program
from tests.support.sessions import hadoop_settings
from tests.support.small_tables import assert_tidy, options


def rows(spark: Any, start: int, ts: int) -> Any:
    return spark.range(start, start + 20).selectExpr(
        "concat('k', id) as id", "concat('p', id % 2) as part", f"{ts} as ts", f"concat('{ts}-', id) as text"
    )


@pytest.fixture
def on_hdfs(spark: Any, hdfs: HdfsCluster) -> Iterator[Any]:
    """A session whose name service ``lake`` is the cluster."""
    settings = {
        "fs.defaultFS": "hdfs://lake",
        "dfs.nameservices": "lake",
        "dfs.ha.namenodes.lake": "nn1,nn2",
        "dfs.namenode.rpc-address.lake.nn1": "localhost:9",
        "dfs.namenode.rpc-address.lake.nn2": hdfs.uri.removeprefix("hdfs://"),
        "dfs.client.failover.proxy.provider.lake": (
            "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
        ),
        "dfs.client.failover.sleep.base.millis": "10",
        "dfs.replication": "1",
    }
    with hadoop_settings(spark, settings):
        yield spark


@pytest.mark.long
def test_a_session_that_knows_hdfs_needs_to_be_told_nothing(on_hdfs: Any, hdfs: HdfsCluster) -> None:
    path, settings = "/tests/spark/told", {**options(), "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    for ts in (1, 2):
        hf.write(rows(on_hdfs, ts * 10, ts), path, settings)
    assert hf.read(on_hdfs, path).count() == 30
    hf.update(on_hdfs, path, "id = 'k20'", {"text": "'new'"})
    storage = storage_of(on_hdfs, path)
    assert storage.uri == "hdfs://lake/tests/spark/told"
    assert reached_by_spark(on_hdfs, storage)
    table = hf.HudiTable.open(hdfs.uri + path)
    assert len(table.services.compact(options=settings, spark=on_hdfs).instants) == 1
    found = hf.read(on_hdfs, path)
    assert "FileScan parquet" in found._jdf.queryExecution().executedPlan().toString()
    assert {row.text for row in found.filter("id = 'k20'").collect()} == {"new"}
    assert_tidy(hdfs.uri + path)


def test_only_what_differs_from_hadoops_defaults_is_passed_on(on_hdfs: Any) -> None:
    found = hdfs_settings(on_hdfs, "hdfs://lake/t")
    assert found["dfs.namenode.rpc-address.lake.nn1"] == "localhost:9"
    assert found["dfs.replication"] == "1"
    assert "dfs.blocksize" not in found
    assert is_default(on_hdfs._jsc.hadoopConfiguration(), "hadoop.security.authentication")


def test_a_setting_that_a_program_has_unset_is_not_passed_on(spark: Any) -> None:
    hadoop = spark._jsc.hadoopConfiguration()
    with hadoop_settings(spark, {"dfs.replication": "2", "fs.defaultFS": "hdfs://lake"}):
        hadoop.unset("dfs.replication")
        hadoop.unset("fs.defaultFS")
        assert hdfs_settings(spark, "hdfs://lake/t") == {}
    assert hadoop.get("fs.defaultFS") == "file:///"


def test_spark_connect_shows_what_the_session_was_told() -> None:
    class Conf:
        def get(self, key: str, default: Any) -> Any:
            told = {"dfs.nameservices": "a,b", "dfs.ha.namenodes.a": "1", "dfs.namenode.rpc-address.a.1": "one:8020"}
            return told.get(key.removeprefix("spark.hadoop."), default)

    class Session:
        conf = Conf()

    assert hdfs_settings(Session(), "hdfs://a/t") == {
        "dfs.nameservices": "a,b",
        "dfs.ha.namenodes.a": "1",
        "dfs.namenode.rpc-address.a.1": "one:8020",
    }


def test_a_session_with_a_keytab_gives_its_tasks_tokens(
    secured_hdfs: HdfsCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kdc = secured_hdfs.kdc
    assert kdc is not None
    monkeypatch.setenv("KRB5_CONFIG", kdc.config)
    monkeypatch.setenv("KRB5CCNAME", str(tmp_path / "no tickets"))
    monkeypatch.delenv("HADOOP_TOKEN_FILE_LOCATION", raising=False)
    home = secured_hdfs.hadoop_path(f"{secured_hdfs.uri}/spark-user")
    secured_hdfs.files.mkdirs(home)
    secured_hdfs.files.setOwner(home, "spark-user", "users")
    keytab = kdc.keytab("spark-user", "spark-user")
    principals = [f"{name}@{kdc.realm}" for name in ("spark-user", "hdfs/localhost")]
    path = f"{secured_hdfs.uri}/spark-user/t"
    lines = run_program("kerberos_session", kdc.config, principals[0], keytab, secured_hdfs.uri, principals[1], path)
    assert lines[-1] == "200 50"
    files = secured_hdfs.files.listFiles(secured_hdfs.hadoop_path(path), True)
    owners = set()
    while files.hasNext():
        owners.add(files.next().getOwner())
    assert owners == {"spark-user"}
