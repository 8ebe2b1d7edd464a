"""A Kafka broker in its own process, which is its own controller (KRaft)."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.servers.maven_jars import MavenError, maven_jars
from tests.servers.s3 import ServerError, free_port
from tests.support.jvm import java_command

__all__ = ["JARS", "KafkaBroker", "start_kafka"]

JARS = ("org.apache.kafka:kafka_2.13:3.9.1",)
START_SECONDS = 60.0
JVM = ["-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
CLUSTER = "c3RyZWFtLXRlc3RzLW9uZQ"
SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={folder}/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
log.retention.check.interval.ms=200
log.initial.task.delay.ms=200
log.segment.delete.delay.ms=0
"""


class KafkaBroker:
    """One broker, which can be stopped and started with what it knows."""

    def __init__(self, jars: Sequence[Path], folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self._class_path = ":".join(map(str, jars))
        self._process: subprocess.Popen[bytes] | None = None
        settings = folder / "server.properties"
        settings.write_text(SETTINGS.format(folder=folder, port=self.port, controller=free_port()))
        self._run("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(settings)).wait(START_SECONDS)

    @property
    def servers(self) -> str:
        """``host:port``, for ``bootstrap.servers``."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it answers.

        Raises:
            ServerError: it ended, or does not answer.
        """
        from confluent_kafka.admin import AdminClient

        self._process = self._run("kafka.Kafka", str(self.folder / "server.properties"))
        admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(Exception):
                admin.list_topics(timeout=1)
                return
        self.stop()
        raise ServerError(f"No Kafka: {(self.folder / 'output').read_text()[-2000:]}")

    def stop(self) -> None:
        """End its process at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def create_topic(self, name: str, partitions: int = 1, **settings: str) -> None:
        """Create a topic; settings have underscores in place of dots."""
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": self.servers})
        made = NewTopic(name, partitions, 1, config={key.replace("_", "."): value for key, value in settings.items()})
        admin.create_topics([made])[name].result(START_SECONDS)

    def has_topic(self, name: str) -> bool:
        """Whether there is such a topic."""
        from confluent_kafka.admin import AdminClient

        return name in AdminClient({"bootstrap.servers": self.servers}).list_topics(timeout=5).topics

    def delete_topic(self, name: str) -> None:
        """Delete a topic, and wait until it is gone."""
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({"bootstrap.servers": self.servers})
        admin.delete_topics([name])[name].result(START_SECONDS)
        while name in admin.list_topics(timeout=5).topics:
            time.sleep(0.05)

    def send(self, topic: str, values: Sequence[bytes | None], partition: int | None = None) -> None:
        """Send messages, in turn to the partitions where none is given."""
        from confluent_kafka import Producer

        settings = {"linger.ms": 5, "queue.buffering.max.messages": 2_000_000}
        producer = Producer({"bootstrap.servers": self.servers, **settings})
        partitions = len(producer.list_topics(topic, timeout=10).topics[topic].partitions)
        for number, value in enumerate(values):
            producer.produce(topic, value, partition=number % partitions if partition is None else partition)
            if number % 1000 == 0:
                producer.poll(0)
        producer.flush(START_SECONDS)

    def send_transactions(self, topic: str, committed: Sequence[bytes], aborted: Sequence[bytes]) -> None:
        """Send messages to partition 0 in a transaction that is committed, and then others in one that is aborted."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.servers, "transactional.id": topic})
        producer.init_transactions(START_SECONDS)
        for values, end in ((committed, producer.commit_transaction), (aborted, producer.abort_transaction)):
            producer.begin_transaction()
            for value in values:
                producer.produce(topic, value, partition=0)
            producer.flush(START_SECONDS)
            end(START_SECONDS)

    def _run(self, main: str, *arguments: str) -> subprocess.Popen[bytes]:
        java = java_command()
        assert java is not None
        command = [java, *JVM, "-cp", self._class_path, main, *arguments]
        with open(self.folder / "output", "ab") as output:
            return subprocess.Popen(command, stdout=output, stderr=output, cwd=self.folder)


@contextlib.contextmanager
def start_kafka(cache: Path, folder: Path) -> Iterator[KafkaBroker]:
    """A broker that runs for the duration of the block.

    Args:
        cache: where lists of jars are kept.
        folder: for its data and output.

    Raises:
        ServerError: it cannot be had.
    """
    try:
        broker = KafkaBroker(maven_jars(cache, JARS, transitive=True), folder)
    except MavenError as error:
        raise ServerError(str(error)) from error
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()
