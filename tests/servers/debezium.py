"""Debezium in a process of Kafka Connect, which sends the changes of PostgreSQL's tables to topics."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tests.servers.kafka import KafkaBroker
from tests.servers.maven_jars import MavenError, maven_jars
from tests.servers.postgres import USER, PostgresServer
from tests.servers.s3 import ServerError, free_port
from tests.support.jvm import java_command

__all__ = ["JARS", "Debezium", "start_debezium"]

KAFKA = "3.9.1"
VERSION = "3.4.3.Final"
JARS = (
    f"org.apache.kafka:connect-runtime:{KAFKA}",
    f"org.apache.kafka:connect-json:{KAFKA}",
    f"io.debezium:debezium-connector-postgres:{VERSION}",
    "io.apicurio:apicurio-registry-utils-converter:2.6.13.Final",
)
START_SECONDS = 60.0
JVM = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
MAIN = "org.apache.kafka.connect.cli.ConnectStandalone"
WORKER = """\
bootstrap.servers={kafka}
listeners=http://127.0.0.1:{port}
offset.storage.file.filename={folder}/offsets
offset.flush.interval.ms=500
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable=false
value.converter.schemas.enable=false
plugin.discovery=service_load
"""
CONNECTOR = {
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "plugin.name": "pgoutput",
    "publication.autocreate.mode": "filtered",
    "decimal.handling.mode": "string",
    "poll.interval.ms": "20",
    "topic.creation.default.replication.factor": "1",
    "topic.creation.default.partitions": "2",
}
AVRO = {
    "value.converter": "io.apicurio.registry.utils.converter.AvroConverter",
    "value.converter.apicurio.registry.auto-register": "true",
    "value.converter.apicurio.registry.as-confluent": "true",
    "value.converter.apicurio.registry.use-id": "contentId",
    "value.converter.apicurio.registry.headers.enabled": "false",
}
LOGGING = """\
log4j.rootLogger=WARN, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=%p %c %m%n
"""


class Debezium:
    """A worker of Kafka Connect, with a connector for each table that is followed."""

    def __init__(self, jars: Sequence[Path], folder: Path, kafka: KafkaBroker, postgres: PostgresServer) -> None:
        self.folder, self.port, self._kafka, self._postgres = folder, free_port(), kafka, postgres
        self._class_path = ":".join(map(str, jars))
        self._process: subprocess.Popen[bytes] | None = None
        settings = WORKER.format(kafka=kafka.servers, port=self.port, folder=folder)
        (folder / "worker.properties").write_text(settings)
        (folder / "log4j.properties").write_text(LOGGING)

    def start(self) -> None:
        """Start it, and wait until it answers.

        Raises:
            ServerError: it ended, or does not answer.
        """
        java = java_command()
        if java is None:
            raise ServerError("Debezium needs Java.")
        command = [java, *JVM, f"-Dlog4j.configuration=file:{self.folder}/log4j.properties", "-cp", self._class_path]
        with open(self.folder / "output", "ab") as output:
            self._process = subprocess.Popen(
                [*command, MAIN, "worker.properties"], stdout=output, stderr=output, cwd=self.folder
            )
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(OSError):
                self._ask("/")
                return
            time.sleep(0.1)
        self.stop()
        raise ServerError(f"No Debezium: {self._output()}")

    def stop(self) -> None:
        """End its process at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def follow(self, table: str, registry: str | None = None, **settings: str) -> str:
        """Follow a table of the schema ``public``, which has rows, from a snapshot of them on until the server ends.

        Args:
            table: its name.
            registry: address of a schema registry, for values in Avro; None for JSON.
            settings: of the connector, with underscores in place of dots.

        Returns:
            The topic of its changes, which begins with the rows.

        Raises:
            ServerError: Kafka Connect refuses that, or sends nothing.
        """
        of_database = {"hostname": "127.0.0.1", "port": str(self._postgres.port), "user": USER, "dbname": "postgres"}
        given = CONNECTOR | {f"database.{key}": value for key, value in of_database.items()}
        given |= {"topic.prefix": f"of_{table}", "table.include.list": f"public.{table}"}
        given |= {"slot.name": f"slot_{table}", "publication.name": f"publication_{table}"}
        if registry is not None:
            address = registry.partition("/apis/")[0]  # Apicurio's converter needs its own interface
            given |= {**AVRO, "value.converter.apicurio.registry.url": f"{address}/apis/registry/v2"}
        given |= {key.replace("_", "."): value for key, value in settings.items()}
        try:
            self._ask("/connectors", {"name": table, "config": given})
        except HTTPError as error:
            raise ServerError(f"Kafka Connect refuses a connector: {error.read().decode()}") from error
        topic, deadline = f"of_{table}.public.{table}", time.monotonic() + START_SECONDS
        while not self._kafka.has_topic(topic):
            if time.monotonic() > deadline:
                told = self._ask(f"/connectors/{table}/status")
                raise ServerError(f"Debezium sends nothing about {table}: {told}; {self._output()}")
            time.sleep(0.05)
        return topic

    def wait_until_stored(self, table: str, place: str) -> None:
        """Wait until it has stored that it is behind a place of the database's log: there it continues after a kill.

        Args:
            table: that it follows.
            place: of :meth:`PostgresServer.place`, with changes of the table behind it.

        Raises:
            ServerError: it stores nothing.
        """
        query = f"SELECT confirmed_flush_lsn > '{place}' FROM pg_replication_slots WHERE slot_name = 'slot_{table}'"
        deadline = time.monotonic() + START_SECONDS
        while self._postgres.execute(query).strip() != "t":
            if time.monotonic() > deadline:
                raise ServerError(f"Debezium stores no offsets: {self._output()}")
            time.sleep(0.05)

    def _ask(self, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        asked = Request(f"http://127.0.0.1:{self.port}{path}", data, {"Content-Type": "application/json"})
        with urlopen(asked, timeout=START_SECONDS) as answer:
            return json.load(answer)

    def _output(self) -> str:
        return (self.folder / "output").read_text()[-3000:]


@contextlib.contextmanager
def start_debezium(cache: Path, folder: Path, kafka: KafkaBroker, postgres: PostgresServer) -> Iterator[Debezium]:
    """A worker that runs for the duration of the block.

    Args:
        cache: where lists of jars are kept.
        folder: for its settings and output.
        kafka: the broker that it sends changes to.
        postgres: the server whose tables it follows.

    Raises:
        ServerError: it cannot be had.
    """
    try:
        server = Debezium(maven_jars(cache, JARS, transitive=True), folder, kafka, postgres)
    except MavenError as error:
        raise ServerError(str(error)) from error
    try:
        server.start()
        yield server
    finally:
        server.stop()
