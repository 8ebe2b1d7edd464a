"""An archive of Java's classes that all Sparks of the tests share.

A JVM with Spark loads and verifies ten thousand classes before its first answer, which is half of what a short program
costs. Java keeps them ready to use in a file (class data sharing)::

    make_archive: one Spark writes, reads and streams ─► artifacts/test_servers/classes/<key>.jsa
    java_options of each later Spark                  ─► -XX:SharedArchiveFile, if the file is there

The key is of the Java and of Spark's jars. Java itself compares both once more, and ignores an archive that does not
fit. ``python -m tests.support.shared_classes`` is the program whose classes are kept.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.jvm import archive_of, java_options, pyspark_jars

__all__ = ["make_archive"]

PROJECT = Path(__file__).parents[2]


def make_archive() -> None:
    """Make the archive for the PySpark of this interpreter, unless it is there. Without it the tests take longer."""
    jars = pyspark_jars()
    archive = None if jars is None else archive_of(jars)
    if archive is None or archive.exists():
        return
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        fresh = Path(folder, archive.name)
        options = f"{java_options(768)} -XX:ArchiveClassesAtExit={fresh} -Xlog:disable"
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_SUBMIT_OPTS": options}
        command = [sys.executable, "-m", "tests.support.shared_classes", folder]
        subprocess.run(command, env=environment, cwd=PROJECT, capture_output=True, timeout=600, check=False)
        if fresh.exists():
            fresh.replace(archive)


def main(folder: Path) -> None:
    """What most tests do with Spark: write both types of table, change, read and stream them."""
    from pyspark.sql import SparkSession

    import hudi_fast as hf
    from tests.spark.quick_start import keyless
    from tests.spark.stream_files import assert_streams

    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.driver.host": "127.0.0.1"}
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    session = spark.newSession()
    hf.accelerate(session)
    keyless(session, str(folder / "keyless"), "MERGE_ON_READ")
    assert_streams(spark, folder / "streams")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
