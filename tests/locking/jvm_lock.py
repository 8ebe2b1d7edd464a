"""A process of Apache Hudi's JVM that holds locks: any of its lock providers, by class, with properties.

Data flow: ``LockPeer.java`` beside this file (and further sources that a test has) is compiled once into a cache folder
and runs with the bundle of a release of Hudi and PySpark 3.5's jars, without Spark. The process is a
:class:`locking.contention.LinePeer`: ``lock``, ``unlock``, ``contend`` and ``close`` as there, and beside them::

    open                                opened                 the provider is there; others open it when they need it
    owner                               owner <text>           what the provider tells of who holds the lock
    leave                               left                   closes the provider; the next command opens another one
    contend <rounds> <folder> fresh     done <rounds>          with a provider for each round, as Hudi's transactions do

``HoodieLockException`` from ``tryLock`` is ``busy``; any other exception ``error <exception> <- <its cause> ...``.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.locking.contention import LinePeer
from tests.peer.client import PROJECT
from tests.servers.maven_jars import MavenError, maven_jars
from tests.support.java_classes import compiled_classes, expanded_jars, java_program
from tests.support.jvm import FETCHED

__all__ = [
    "LAST_AWS",
    "escaped_property",
    "hudi_aws_jars",
    "hudi_bundle",
    "jvm_lock",
    "peer_pyspark_jars",
]

BUNDLE = "org.apache.hudi:hudi-spark3.5-bundle_2.12"
LAST_AWS = "0.15.0"
"""The last release of Apache Hudi whose AWS module is on Maven Central; it works through Amazon's lock client."""
LOGGING = """\
appender.file.type=File
appender.file.name=file
appender.file.fileName={file}
appender.file.layout.type=PatternLayout
appender.file.layout.pattern=%d %p %c{1} %m%n%throwable
rootLogger.level=info
rootLogger.appenderRef.file.ref=file
"""


def peer_pyspark_jars() -> Path:
    """The folder of PySpark 3.5's jars: Hadoop, ZooKeeper, Hive's metastore and its clients are among them."""
    found = sorted((PROJECT / ".venv-hudi").glob("lib/python3*/site-packages/pyspark/jars"))
    if not found:
        raise FileNotFoundError(f"No PySpark below {PROJECT / '.venv-hudi'}: run `make setup`.")
    return found[0]


def hudi_bundle(version: str) -> Path:
    """The jar of a release of Apache Hudi; ``MavenError`` where it cannot be had."""
    return maven_jars(FETCHED, [f"{BUNDLE}:{version}"])[0]


def hudi_aws_jars() -> list[Path]:
    """Apache Hudi's AWS module, and Amazon's lock client with all it needs; ``MavenError`` where they cannot be had."""
    client = maven_jars(FETCHED, ["com.amazonaws:dynamodb-lock-client:1.2.0"], transitive=True)
    return [*maven_jars(FETCHED, [f"org.apache.hudi:hudi-aws:{LAST_AWS}"]), *client]


@contextlib.contextmanager
def jvm_lock(
    provider_class: str,
    properties: Mapping[str, object],
    version: str = "1.2.0",
    sources: Sequence[Path] = (),
    jars: Sequence[Path | str] = (),
) -> Iterator[LinePeer]:
    """One provider of one release of Hudi in a process of its own; ended, and its lock with it, after the block.

    The test is skipped where Hudi's jars cannot be had.

    Args:
        provider_class: the provider's Java class.
        properties: ``hoodie...`` keys; of the lock's others Hudi's defaults are taken.
        version: release of Hudi.
        sources: further Java files that the provider needs, compiled against the same jars.
        jars: further jars, or folders of jars with ``/*`` at the end, before the others on the class path.
    """
    try:
        bundle, spark = hudi_bundle(version), peer_pyspark_jars()
    except (MavenError, FileNotFoundError) as error:
        pytest.skip(f"Apache Hudi's jars cannot be had: {error}")
    class_path = expanded_jars([*jars, bundle, f"{spark}/*"])
    classes = compiled_classes([Path(__file__).with_name("LockPeer.java"), *sources], class_path)
    with tempfile.TemporaryDirectory(prefix="jvm-lock-") as scratch:
        file, logging = Path(scratch, "lock.properties"), Path(scratch, "log4j2.properties")
        file.write_text(
            "".join(f"{escaped_property(key)}={escaped_property(str(value))}\n" for key, value in properties.items())
        )
        logging.write_text(LOGGING.replace("{file}", f"{scratch}/log"))
        command = [
            java_program(),
            "-Xmx256m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            f"-Djava.io.tmpdir={scratch}",
        ]
        command += [f"-Dlog4j2.configurationFile={logging}", "-cp", ":".join([str(classes), *class_path])]
        with LinePeer([*command, "LockPeer", provider_class, str(file)]) as peer:
            yield peer


def escaped_property(text: str) -> str:
    """A key or value of a Java properties file."""
    return "".join("\\" + char if char in "\\:=#! " else char for char in text)
