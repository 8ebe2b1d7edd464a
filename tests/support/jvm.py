"""Settings for JVMs of tests: small tables, a short life, two cores that several JVMs share."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
from pathlib import Path

__all__ = [
    "CLASSES",
    "FETCHED",
    "HADOOP_CONF",
    "archive_of",
    "class_path_of",
    "java_command",
    "java_options",
    "pyspark_jars",
]

FETCHED = Path(__file__).parents[2] / "artifacts" / "test_servers"
"""The folder of what tests fetch from Maven Central, and of what they compile."""

CLASSES = FETCHED / "classes"
"""Compiled classes, and archives of classes."""

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


def pyspark_jars() -> Path | None:
    """The folder of the jars of this interpreter's PySpark; None where it has none."""
    found = importlib.util.find_spec("pyspark")
    return None if found is None or found.origin is None else Path(found.origin).resolve().with_name("jars")


def class_path_of(jars: Path) -> str:
    """The class path that Spark's own launcher makes of its jars: an archive of classes fits no other."""
    return ":".join([*map(str, jars.glob("slf4j-api-*.jar")), f"{jars}/*"])


def archive_of(jars: Path) -> Path | None:
    """Where the archive of classes of a Spark is, or would be (:mod:`tests.support.shared_classes`).

    Java takes an archive only with the very files that it was made with, so their times are part of its name.
    """
    java = java_command()
    if java is None:
        return None
    files = [Path(java).resolve(), *sorted(jars.iterdir())]
    parts = [f"{file} {file.stat().st_mtime_ns}" for file in files]
    return CLASSES / f"{hashlib.sha256(chr(10).join(parts).encode()).hexdigest()[:16]}.jsa"


def java_options(heap_mb: int, jars: Path | None = None) -> str:
    """Options of a JVM whose heap starts at ``heap_mb``, a third of it for new objects.

    Java's second compiler costs more than it gains where tables are small; without it the default space for compiled
    code is too small, and methods are compiled again and again. The default heap starts at a sixty-fourth of the
    memory, and is then collected eight times per write.

    Args:
        heap_mb: megabytes.
        jars: those of Spark if the JVM has no others before them; it then takes the archive of their classes.
    """
    archive = None if jars is None else archive_of(jars)
    shared = f"-XX:SharedArchiveFile={archive} -Xlog:cds*=off " if archive is not None and archive.exists() else ""
    return (
        f"{shared}-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -XX:MetaspaceSize=300m "
        f"-Xms{heap_mb}m -Xmn{heap_mb * 3 // 8}m"
    )
