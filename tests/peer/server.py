"""Real Apache Hudi behind a pipe: runs under the interpreter of ``.venv-hudi``, never inside the tests' own process.

Data flow: one JSON object per line on stdin, one JSON object per line back on the descriptor that was stdout when the
process began. Rows travel beside the pipe, as Parquet files that the request names. Spark, Ivy and log4j print to
descriptor 1 whenever they like, so it is pointed at stderr (the caller's log file) before Spark starts.

Requests carry ``op`` (``info``, ``write``, ``read``, ``sql``, ``hfile``, ``sync``, ``stop``) and the arguments of the
function of that name here; answers are ``{"ok": true, "result": {...}}`` or ``{"ok": false, "error": {...}}``. The
first line, before any request, is the answer to ``info``: the peer is ready. End of input ends the process.

The interpreter decides the Spark: releases before 0.14 need PySpark 3.1 to 3.3 (:mod:`tests.peer.old_releases`).

Usage: ``python -m tests.peer.server <hudi version> <scratch folder> <more settings, as JSON>``, with the checkout on
the import path.
"""

from __future__ import annotations

import glob
import json
import os
import sys
import traceback
from pathlib import Path

import pyspark
from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark.sql import DataFrame, SparkSession

from tests.peer.hfile_scan import scan_hfile
from tests.support.java_classes import CompilerError, compiled_classes
from tests.support.jvm import java_options

SPARK_LINE = ".".join(pyspark.__version__.split(".")[:2])
SCALA = "2.12"
OPENED = " ".join(
    f"--add-opens=java.base/{name}=ALL-UNNAMED"
    for name in (
        "java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.util java.util.concurrent "
        "java.util.concurrent.atomic java.util.concurrent.locks jdk.internal.ref sun.nio.ch sun.nio.cs "
        "sun.security.action sun.util.calendar"
    ).split()
)
"""Packages of Java 17 that Spark before 3.3 and Kryo reach into."""

UNVERIFIED = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""The twenty thousand classes of Spark and Hudi are loaded as they are: none is in doubt."""

WITHOUT_AGENT = "-Djol.skipHotspotSAAttach=true"
"""Hudi's estimates of sizes would start three JVMs, which look at this one, to learn how Java aligns objects."""

EXTRA_CLASSES = "spark.driver.extraClassPath"

PLAIN = {"parquet.encryption.footer.key": "", "parquet.encryption.column.keys": ""}
"""Options of a file that is not encrypted, whatever the session says."""


def release_of(version: str) -> tuple[int, ...]:
    """The numbers of a release, for comparisons."""
    return tuple(map(int, version.split(".")))


def bundle_of(version: str) -> str:
    """The coordinates of a release's bundle for the Spark of this interpreter."""
    line = "3" if release_of(version) < (0, 11) else SPARK_LINE
    return f"org.apache.hudi:hudi-spark{line}-bundle_{SCALA}:{version}"


def release_settings(version: str) -> dict[str, str]:
    """Classes that a release's documentation says to configure, and that older ones do not have."""
    settings = {}
    if release_of(version) >= (0, 13):
        settings["spark.kryo.registrator"] = "org.apache.spark.HoodieSparkKryoRegistrar"
    if release_of(version) >= (0, 11) and SPARK_LINE != "3.1":
        settings["spark.sql.catalog.spark_catalog"] = "org.apache.spark.sql.hudi.catalog.HoodieCatalog"
    return settings


def local_files() -> dict[str, str]:
    """Settings for the local file system of ``LocalFiles.java``; none where Java has no compiler."""
    jars = sorted(map(str, Path(pyspark.__file__).with_name("jars").glob("hadoop-*.jar")))
    try:
        classes = compiled_classes([Path(__file__).with_name("LocalFiles.java")], jars)
    except CompilerError:
        return {}
    return {EXTRA_CLASSES: str(classes), "spark.hadoop.fs.file.impl": "LocalFiles"}


def ivy_jar(version: str) -> Path | None:
    """The bundle in Ivy's cache, where ``make servers`` puts it; None before that, and for Sparks of old releases."""
    group, name, _ = bundle_of(version).split(":")
    jar = Path.home() / ".ivy2" / "cache" / group / name / "jars" / f"{name}-{version}.jar"
    return jar if SPARK_LINE == "3.5" and jar.exists() else None


def start_session(version: str, scratch: str, more: dict[str, str] | None = None) -> SparkSession:
    """A small local session with the bundle of that Hudi release on its class path."""
    files, bundle, given = local_files(), ivy_jar(version), more or {}
    if bundle is not None:  # last on the class path; Spark would ask Ivy for it, and copy it for its tasks
        os.environ["SPARK_DIST_CLASSPATH"] = str(bundle)
    settings = {
        **({"spark.jars.packages": bundle_of(version)} if bundle is None else {}),
        # The JVM takes its home from the password database; the cache belongs below $HOME.
        "spark.jars.ivy": os.path.join(os.path.expanduser("~"), ".ivy2"),
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": os.path.join(scratch, "warehouse"),
        "spark.local.dir": os.path.join(scratch, "local"),
        # A broadcast value is copied into blocks of the whole size, however small it is.
        "spark.broadcast.blockSize": "64k",
        # Kryo copies a lock when the bloom index asks the metadata table. Spark's compiler is left alone, since release
        # 0.15 answers change queries wrongly without.
        "spark.driver.extraJavaOptions": (
            f"-Duser.timezone=UTC -XX:+ExitOnOutOfMemoryError {java_options(2048)} {UNVERIFIED} {WITHOUT_AGENT} "
            f"{OPENED}"
        ),
        "spark.driver.memory": os.environ.get("HUDI_PEER_MEMORY", "4g"),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **release_settings(version),
        **files,
        **given,
    }
    if EXTRA_CLASSES in files and EXTRA_CLASSES in given:
        settings[EXTRA_CLASSES] = f"{given[EXTRA_CLASSES]}:{files[EXTRA_CLASSES]}"
    builder = SparkSession.builder.master("local[2]").appName(f"hudi-{version}")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


class Peer:
    """The operations; one session, no other state."""

    def __init__(self, version: str, scratch: str, more: dict[str, str]) -> None:
        self.version = version
        self.spark = start_session(version, scratch, more)
        if release_of(version) < (0, 11):  # its HBase accepts no other name of a Java; Spark has read the true one
            self.spark.sparkContext._jvm.System.setProperty("java.version", "1.8.0_402")

    def info(self) -> dict:
        """Versions, and the id of the JVM's process."""
        jvm = self.spark.sparkContext._jvm
        return {
            "hudi": self.version,
            "spark": self.spark.version,
            "java": jvm.System.getProperty("java.version"),
            "jvm_pid": jvm.java.lang.ProcessHandle.current().pid(),
        }

    def write(self, rows: str, path: str, options: dict, mode: str) -> dict:
        """Write the rows of a Parquet file through Hudi's data source."""
        frame = self.spark.read.parquet(rows)
        frame.write.format("hudi").options(**options).mode(mode).save(path)
        return {}

    def read(
        self,
        path: str,
        options: dict,
        out: str,
        columns: list | None = None,
        where: str | None = None,
        schema: str | None = None,
    ) -> dict:
        """A query of Hudi's data source, kept as one Parquet file below ``out``."""
        reader = self.spark.read.format("hudi").options(**options)
        frame = (reader if schema is None else reader.schema(schema)).load(path)
        if where is not None:
            frame = frame.where(where)
        if columns is not None:
            frame = frame.select(*columns)
        return self._keep(frame, out)

    def sql(self, statement: str, out: str, tables: dict, rows: dict) -> dict:
        """One SQL statement; ``tables`` (name -> Hudi path) and ``rows`` (name -> Parquet file) are views meanwhile."""
        for name, path in tables.items():
            self.spark.read.format("hudi").load(path).createOrReplaceTempView(name)
        for name, path in rows.items():
            self.spark.read.parquet(path).createOrReplaceTempView(name)
        try:
            return self._keep(self.spark.sql(statement), out)
        finally:
            for name in (*tables, *rows):
                self.spark.catalog.dropTempView(name)

    def hfile(self, path: str, keys: list) -> dict:
        """What this release's reader of HFiles says of one: all entries, and those of ``keys``; see `hfile_scan`."""
        return scan_hfile(self.spark._jvm, self.version, path, keys)

    def sync(self, options: dict) -> dict:
        """Run Hudi's own tool that syncs a Hive metastore."""
        jvm = self.spark._jvm
        properties = jvm.java.util.Properties()
        for key, value in options.items():
            properties.setProperty(key, value)
        configuration = jvm.org.apache.hadoop.conf.Configuration(self.spark._jsc.hadoopConfiguration())
        jvm.org.apache.hudi.hive.HiveSyncTool(properties, configuration).syncHoodieTable()
        return {}

    def checkpoint(self, path: str) -> dict:
        """The position of HoodieStreamer in the newest commit that has one, as Hudi's own classes read it."""
        common = self.spark._jvm.org.apache.hudi.common
        builder = common.table.HoodieTableMetaClient.builder().setBasePath(path)
        conf = self.spark._jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(
            self.spark._jsc.hadoopConfiguration()
        )
        timeline = builder.setConf(conf).build().getActiveTimeline().getCommitsTimeline().filterCompletedInstants()
        for instant in timeline.getReverseOrderedInstants().toArray():
            metadata = common.table.timeline.TimelineUtils.getCommitMetadata(instant, timeline)
            if release_of(self.version) < (1,):
                names = {"position": "key", "reset": "reset_key", "ignored": "ignore_key"}
                found = {name: metadata.getMetadata(f"deltastreamer.checkpoint.{key}") for name, key in names.items()}
            elif any("streamer.checkpoint" in key for key in metadata.getExtraMetadata()):
                read = common.table.checkpoint.CheckpointUtils.getCheckpoint(metadata)
                parts = read.getCheckpointKey(), read.getCheckpointResetKey(), read.getCheckpointIgnoreKey()
                found = dict(zip(("position", "reset", "ignored"), parts, strict=True))
            else:
                continue
            if found["position"] or found["reset"]:
                return found
        return {"position": None, "reset": None, "ignored": None}

    def stream_in(self, source: str, columns: str, path: str, options: dict, checkpoint: str) -> dict:
        """Stream the Parquet files of a folder, one in a batch, into a table through Hudi's sink, up to the last."""
        files = self.spark.readStream.schema(columns).option("maxFilesPerTrigger", "1").parquet(source)
        writer = files.writeStream.format("hudi").options(**options).option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start(path).awaitTermination()
        return {}

    def stream_out(self, path: str, options: dict, checkpoint: str, out: str) -> dict:
        """All that a stream of Hudi's source has brought under that checkpoint, as one Parquet file below ``out``."""
        target = f"{checkpoint}-rows"
        frame = self.spark.readStream.format("hudi").options(**options).load(path)
        writer = frame.writeStream.format("parquet").option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start(target).awaitTermination()
        return self._keep(self.spark.read.schema(frame.schema).parquet(target), out)

    def forget_cached_tables(self) -> None:
        """Others write to the tables between two requests: a cached relation would list the files of before."""
        self.spark._jsparkSession.sessionState().catalog().invalidateAllCachedTables()

    def memory(self) -> dict:
        """Share of the heap that is in use once all garbage has been collected."""
        runtime = self.spark.sparkContext._jvm.java.lang.Runtime.getRuntime()
        runtime.gc()
        return {"used": (runtime.totalMemory() - runtime.freeMemory()) / runtime.maxMemory()}

    def forget_persisted_rows(self) -> None:
        """Hudi persists what it writes, and leaves some of it behind."""
        for rows in self.spark.sparkContext._jsc.getPersistentRDDs().values():
            rows.unpersist()

    def _keep(self, frame: DataFrame, out: str) -> dict:
        if not frame.columns:
            return {"file": None}
        key = "spark.sql.parquet.outputTimestampType"
        before = self.spark.conf.get(key)
        # INT96, Spark's default, would come back as nanoseconds without a zone.
        self.spark.conf.set(key, "TIMESTAMP_MICROS")
        try:
            frame.coalesce(1).write.options(**PLAIN).mode("overwrite").parquet(out)
        finally:
            self.spark.conf.set(key, before)
        (file,) = glob.glob(os.path.join(glob.escape(out), "part-*.parquet"))
        return {"file": file}


def describe(error: BaseException) -> dict:
    """An exception as text: its class, its message, and the Java causes below it, outermost first."""
    origin = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
    if origin is None:
        return {"class": type(error).__name__, "message": str(error), "causes": [], "stack": traceback.format_exc()}
    chain = []
    current = origin
    while current is not None and len(chain) < 20:
        chain.append(f"{current.getClass().getName()}: {current.getMessage()}")
        current = current.getCause()
    return {
        "class": origin.getClass().getName(),
        "message": str(origin.getMessage()),
        "causes": chain[1:],
        "stack": traceback.format_exc(),
    }


def serve(peer: Peer, answers: int) -> None:
    """Answer requests until end of input or ``stop``; a failing request is answered, not fatal."""

    def answer(value: dict) -> None:
        data = (json.dumps(value) + "\n").encode()
        while data:
            data = data[os.write(answers, data) :]

    names = ("info", "write", "read", "sql", "hfile", "memory", "sync", "checkpoint", "stream_in", "stream_out")
    operations = {name: getattr(peer, name) for name in names}
    answer({"ok": True, "result": peer.info()})
    for line in sys.stdin:
        request = json.loads(line)
        name = request.pop("op")
        if name == "stop":
            return
        try:
            peer.forget_cached_tables()
            result = operations[name](**request)
            peer.forget_persisted_rows()
            answer({"ok": True, "result": result})
        except (Py4JNetworkError, ConnectionError):  # the JVM is gone, and this process is of no use without it
            raise
        except Exception as error:
            answer({"ok": False, "error": describe(error)})


def main() -> None:
    """Move the protocol away from descriptor 1, start Spark, serve."""
    answers = os.dup(1)
    os.dup2(2, 1)
    version, scratch, more = sys.argv[1:4]
    peer = Peer(version, scratch, json.loads(more))
    serve(peer, answers)
    peer.spark.stop()


if __name__ == "__main__":
    main()
