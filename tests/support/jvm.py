"""Settings for JVMs of tests: small tables, a short life, two cores that several JVMs share."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

__all__ = ["CLASSES", "HADOOP_CONF", "java_command", "java_options"]

CLASSES = Path(__file__).parents[2] / "artifacts" / "test_servers" / "classes"
"""Compiled classes."""

HADOOP_CONF = Path(__file__).with_name("hadoop_conf")
"""A configuration folder for the Spark of real Hudi (``SPARK_CONF_DIR``), which is first on the class path.

Its files hide those of the same name in Hadoop's jars: 400 KB of XML with 1 300 properties, all defaults of the code.
Hudi parses them for each Parquet file that it merges and sends them with each task, which takes a third of the time of
a small write.
"""


def java_command() -> str | None:
    """The Java that Spark would run: below ``JAVA_HOME``, else on the path; None when there is none."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")


def java_options(heap_mb: int) -> str:
    """Options of a JVM whose heap starts at ``heap_mb``, a third of it for new objects.

    Java's second compiler costs more than it gains where tables are small; without it the default space for compiled
    code is too small, and methods are compiled again and again. The default heap starts at a sixty-fourth of the
    memory, and is then collected eight times per write.
    """
    return (
        f"-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -XX:MetaspaceSize=300m "
        f"-Xms{heap_mb}m -Xmn{heap_mb * 3 // 8}m"
    )
