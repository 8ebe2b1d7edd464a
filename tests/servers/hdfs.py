"""HDFS in a process of its own: Hadoop's ``MiniDFSCluster``, with a NameNode and two DataNodes.

The process is a bare JVM that takes calls from Python through py4j, which comes with PySpark: tests stop DataNodes, set
safe mode, issue tokens and count calls on the cluster's own objects.
"""

from __future__ import annotations

import base64
import contextlib
import getpass
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.peer.client import java_command
from tests.servers.hive_metastore import OPENED
from tests.servers.maven_jars import MavenError, maven_jars
from tests.servers.s3 import ServerError

__all__ = ["HdfsCluster", "start_hdfs"]

JARS = ("org.apache.hadoop:hadoop-client-minicluster:3.3.4", "ch.qos.reload4j:reload4j:1.2.22")
SETTINGS = {
    "dfs.replication": "2",
    "dfs.namenode.fs-limits.min-block-size": "1024",
    "dfs.namenode.delegation.token.always-use": "true",
    "dfs.client.block.write.replace-datanode-on-failure.policy": "NEVER",
}
JVM = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC"]


class HdfsCluster:
    """A running cluster.

    Attributes:
        jvm: classes of its process, through py4j.
        cluster: Hadoop's ``MiniDFSCluster``.
        configuration: Hadoop's ``Configuration`` of the cluster.
    """

    def __init__(self, gateway: Any, folder: Path) -> None:
        self.jvm = gateway.jvm
        self.configuration = self.jvm.org.apache.hadoop.hdfs.HdfsConfiguration()
        for name, value in {**SETTINGS, "hdfs.minidfs.basedir": str(folder / "data")}.items():
            self.configuration.set(name, value)
        self.cluster = (
            self.jvm.org.apache.hadoop.hdfs.MiniDFSCluster.Builder(self.configuration).numDataNodes(2).build()
        )
        self.cluster.waitActive()

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
        """Calls that the NameNode has answered so far, those of DataNodes included."""
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
def start_hdfs(cache: Path, folder: Path) -> Iterator[HdfsCluster]:
    """A cluster that runs for the duration of the block.

    Args:
        cache: where lists of jars are kept.
        folder: for its data and output.

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
        jars = maven_jars(cache, JARS, transitive=True)
    except MavenError as error:
        raise ServerError(str(error)) from error
    py4j = next(Path(pyspark.__file__).parent.glob("jars/py4j-*.jar"))
    with open(folder / "output", "w") as output:
        gateway = JavaGateway.launch_gateway(
            jarpath=str(py4j),
            classpath=":".join(str(jar) for jar in jars),
            javaopts=[*JVM, *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED)],
            java_path=java_command(),
            die_on_exit=True,
            redirect_stdout=output,
            redirect_stderr=output,
        )
        try:
            yield HdfsCluster(gateway, folder)
        except Py4JError as error:
            raise ServerError(f"No HDFS: {error}. {(folder / 'output').read_text()[-2000:]}") from error
        finally:
            gateway.shutdown()
            gateway.java_process.kill()
            gateway.java_process.stdin.close()
            gateway.java_process.wait()
