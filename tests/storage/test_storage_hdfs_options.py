"""Options of HDFS: addresses, Hadoop's files, and wrong values."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_fast.errors import ConfigError
from hudi_fast.storage.base import Storage
from hudi_fast.storage.hadoop_options import HdfsOptions

SITE = """<?xml version="1.0"?>
<configuration>
  <property><name>fs.defaultFS</name><value>hdfs://{name}</value></property>
  <property><name>cluster</name><value>lake</value></property>
  <property><name>dfs.ha.namenodes.lake</name><value>nn1,nn2</value></property>
  <property><name>dfs.namenode.rpc-address.lake.nn1</name><value>one:9000</value></property>
  <property><name>dfs.replication</name><value>4</value><final>true</final></property>
  <property><name>dfs.blocksize</name><value>64m</value></property>
  <property><name>fs.permissions.umask-mode</name><value>002</value></property>
</configuration>
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "core-site.xml").write_text(SITE.replace("{name}", "${cluster}"))
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    return tmp_path


def test_hadoops_files_say_where_and_how(site: Path) -> None:
    found = HdfsOptions.of({}, "hdfs:///user/t")
    assert found.url == "hdfs://lake"
    assert (found.replication, found.block_size, found.umask) == (4, 64 << 20, 0o002)
    assert found.settings == ()
    assert HdfsOptions.of({"dfs.replication": 2}, "hdfs://lake/t").replication == 2
    (site / "core-site.xml").write_text("<configuration>")
    with pytest.raises(ConfigError, match=r"core-site\.xml cannot be read"):
        HdfsOptions.of({}, "hdfs://lake/t")


def test_an_address_that_is_no_name_service_is_one_name_node(site: Path) -> None:
    for uri, url in (("hdfs://other/t", "hdfs://other:8020"), ("hdfs://me@one:9000/t", "hdfs://one:9000")):
        found = HdfsOptions.of({}, uri)
        assert found.url == url
        assert dict(found.settings) == {"dfs.client.failover.max.attempts": "4"}
    assert HdfsOptions.of({}, "viewfs://c/t").url == "viewfs://c"


@pytest.mark.parametrize(
    ("uri", "given", "said"),
    [
        ("hdfs:///t", {}, "names no NameNode"),
        ("hdfs://n/t", {"usr": "x"}, "'usr' is unknown"),
        ("hdfs://n/t", {"config_dir": "/no/such"}, "not a folder"),
        ("hdfs://n/t", {"dfs.replication": "two"}, "dfs.replication=two"),
        ("hdfs://n/t", {"fs.permissions.umask-mode": "u=rwx"}, "octal"),
        ("hdfs://n", {}, "not the path of a table"),
        ("hdfs://n/a//b", {}, "empty folder names"),
    ],
)
def test_wrong_options_are_refused(uri: str, given: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("HADOOP_HOME", raising=False)
    with pytest.raises(ConfigError, match=said):
        Storage(uri, given)
