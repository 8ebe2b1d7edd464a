"""HDFS in a process of its own: Hadoop's ``MiniDFSCluster``, with a NameNode and two DataNodes, and Kerberos if asked.

The process is a bare JVM that takes calls from Python through py4j, which comes with PySpark: tests stop DataNodes, set
safe mode, issue tokens and count calls on the cluster's own objects.
"""

from __future__ import annotations

import base64
import contextlib
import getpass
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.servers.hive_metastore import OPENED
from tests.servers.kerberos import KDC_JARS, KDC_JVM, Kdc
from tests.servers.maven_jars import MavenError, maven_jars
from tests.servers.s3 import ServerError
from tests.support.jvm import java_command

__all__ = ["EARLY_CLOSES", "HdfsCluster", "start_hdfs"]

EARLY_CLOSES = {"dfs.namenode.file.close.num-committed-allowed": "1"}
"""Writers may close a file before the DataNodes have reported its last block."""

JARS = ("org.apache.hadoop:hadoop-client-minicluster:3.3.4", "ch.qos.reload4j:reload4j:1.2.22")
SETTINGS = {
    "dfs.replication": "2",
    "dfs.namenode.fs-limits.min-block-size": "1024",
    "dfs.namenode.delegation.token.always-use": "true",
    "dfs.client.block.write.replace-datanode-on-failure.policy": "NEVER",
    "dfs.namenode.servicerpc-address": "localhost:0",
}
"""DataNodes have a port of the NameNode for themselves, so that calls of clients can be counted."""

JVM = ["-Xmx512m", "-XX:+UseSerialGC", "-Duser.timezone=UTC"]
QUICK_START = "-XX:TieredStopAtLevel=1"
"""Without the second compiler: a short test is over sooner."""


class HdfsCluster:
    """A running cluster.

    Attributes:
        jvm: classes of its process, through py4j.
        cluster: Hadoop's ``MiniDFSCluster``.
        configuration: Hadoop's ``Configuration`` of the cluster.
        kdc: that the cluster asks; None without Kerberos.
    """

    def __init__(self, gateway: Any, folder: Path, settings: Mapping[str, str], kerberos: bool) -> None:
        self.jvm = gateway.jvm
        self.kdc = Kdc(gateway, folder / "kdc") if kerberos else None
        self.configuration = self.jvm.org.apache.hadoop.hdfs.HdfsConfiguration()
        own = {"hdfs.minidfs.basedir": str(folder / "data"), **self._secured(), **settings}
        for name, value in {**SETTINGS, **own}.items():
            self.configuration.set(name, value)
        if kerberos:
            user = self.jvm.org.apache.hadoop.security.UserGroupInformation
            user.setConfiguration(self.configuration)
            keys = "dfs.namenode.kerberos.principal", "dfs.namenode.keytab.file"
            user.loginUserFromKeytab(*map(self.configuration.get, keys))
        self.cluster = (
            self.jvm.org.apache.hadoop.hdfs.MiniDFSCluster.Builder(self.configuration).numDataNodes(2).build()
        )
        self.cluster.waitActive()

    def _secured(self) -> dict[str, str]:
        """Settings of a cluster with Kerberos, whose DataNodes encrypt what they send."""
        if self.kdc is None:
            return {}
        keytab = str(self.kdc.keytab("services", "hdfs/localhost", "HTTP/localhost"))
        settings = {
            "hadoop.security.authentication": "kerberos",
            "dfs.block.access.token.enable": "true",
            "dfs.data.transfer.protection": "privacy",
            "ignore.secure.ports.for.testing": "true",
            "dfs.web.authentication.kerberos.principal": f"HTTP/localhost@{self.kdc.realm}",
            "dfs.web.authentication.kerberos.keytab": keytab,
        }
        for node in ("namenode", "datanode"):
            settings[f"dfs.{node}.kerberos.principal"] = f"hdfs/localhost@{self.kdc.realm}"
            settings[f"dfs.{node}.keytab.file"] = keytab
        return settings

    @property
    def uri(self) -> str:
        """``hdfs://host:port``."""
        return str(self.cluster.getURI().toString())

    @property
    def files(self) -> Any:
        """Hadoop's ``DistributedFileSystem``."""
        return self.cluster.getFileSystem()

    def path(self, name: str) -> str:
        """A folder of a test."""
        return f"{self.uri}/tests/{name}"

    def hadoop_path(self, name: str) -> Any:
        """Hadoop's ``Path``."""
        return self.jvm.org.apache.hadoop.fs.Path(name)

    def answered(self) -> int:
        """Calls of clients that the NameNode has answered so far."""
        return int(self.cluster.getNameNodeRpc().getClientRpcServer().getRpcMetrics().getProcessingSampleCount())

    @contextlib.contextmanager
    def safe_mode(self) -> Iterator[None]:
        """The NameNode takes no writes during the block."""
        self.cluster.getNameNodeRpc().setSafeMode(self._action("SAFEMODE_ENTER"), False)
        try:
            yield
        finally:
            self.cluster.getNameNodeRpc().setSafeMode(self._action("SAFEMODE_LEAVE"), False)

    @contextlib.contextmanager
    def without_data_node(self) -> Iterator[None]:
        """One DataNode is down during the block, and the NameNode knows."""
        gone = self.cluster.getDataNodes().get(0).getDatanodeId()
        properties = self.cluster.stopDataNode(0)
        self.cluster.setDataNodeDead(gone)
        try:
            yield
        finally:
            self.cluster.restartDataNode(properties, True)
            self.cluster.waitActive()

    def token(self) -> tuple[Any, str]:
        """A new delegation token, and a file with it in base64."""
        token = self.files.getDelegationToken(getpass.getuser())
        credentials = self.jvm.org.apache.hadoop.security.Credentials()
        credentials.addToken(token.getService(), token)
        output = self.jvm.java.io.ByteArrayOutputStream()
        credentials.writeTokenStorageToStream(self.jvm.java.io.DataOutputStream(output))
        return token, base64.b64encode(bytes(output.toByteArray())).decode()

    def _action(self, name: str) -> Any:
        return getattr(self.jvm.org.apache.hadoop.hdfs.protocol.HdfsConstants.SafeModeAction, name)


@contextlib.contextmanager
def start_hdfs(
    cache: Path,
    folder: Path,
    settings: Mapping[str, str] | None = None,
    *,
    quick_start: bool = True,
    kerberos: bool = False,
) -> Iterator[HdfsCluster]:
    """A cluster that runs for the duration of the block.

    Args:
        cache: where lists of jars are kept.
        folder: for its data and output.
        settings: of Hadoop, beside :data:`SETTINGS`.
        quick_start: whether its JVM starts fast, and stays slower.
        kerberos: whether callers must have tickets.

    Raises:
        ServerError: it cannot be had.
    """
    try:
        import pyspark
        from py4j.java_gateway import JavaGateway
        from py4j.protocol import Py4JError
    except ImportError as error:
        raise ServerError(f"HDFS needs py4j of PySpark: {error}") from error
    try:
        jars = maven_jars(cache, (*JARS, *KDC_JARS) if kerberos else JARS, transitive=True)
    except MavenError as error:
        raise ServerError(str(error)) from error
    py4j = next(Path(pyspark.__file__).parent.glob("jars/py4j-*.jar"))
    with open(folder / "output", "w") as output:
        gateway = JavaGateway.launch_gateway(
            jarpath=str(py4j),
            classpath=":".join(str(jar) for jar in jars),
            javaopts=[
                *JVM,
                *KDC_JVM,
                *([QUICK_START] if quick_start else []),
                *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED),
            ],
            java_path=java_command(),
            die_on_exit=True,
            redirect_stdout=output,
            redirect_stderr=output,
        )
        try:
            yield HdfsCluster(gateway, folder, settings or {}, kerberos)
        except Py4JError as error:
            raise ServerError(f"No HDFS: {error}. {(folder / 'output').read_text()[-2000:]}") from error
        finally:
            gateway.shutdown()
            gateway.java_process.kill()
            gateway.java_process.stdin.close()
            gateway.java_process.wait()
