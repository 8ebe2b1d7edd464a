"""A streamer from Kafka: messages a second, seconds from message to row, memory, and ten thousand small turns.

::

    python -m benchmarks.scale.streamer [--messages 2000000] [--turns 10000] [--folder FOLDER] [--only json,avro,...]

    json, avro   a topic of four partitions with messages of 300 bytes is read into a COPY_ON_WRITE table to its end
    latency      1 000 messages a second are sent for a minute; the table is MERGE_ON_READ, with inline services
    turns        turns of 100 rows from a source in memory; each thousandth is printed

A broker and, for Avro, a schema registry run on this machine, as the tests start them. Peak memory is that of the
process of the streamer, which is another one than that of the producer.
"""

from __future__ import annotations

import argparse
import io
import json
import multiprocessing
import random
import resource
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa

import hudi_fast as hf
from hudi_fast.storage.allocator import choose_allocator
from tests.servers.kafka import KafkaBroker, start_kafka
from tests.servers.schema_registry import start_schema_registry
from tests.support.jvm import FETCHED

CITIES = ("Oslo", "Bergen", "Rome", "Paris", "Lima")
KEYS = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
}
KNOWN_KEYS = 30_000
SCHEMA = {
    "type": "record",
    "name": "trip",
    "fields": [
        *({"name": name, "type": "long"} for name in ("id", "ts")),
        *({"name": name, "type": "string"} for name in ("city", "rider", "driver", "note")),
        {"name": "fare", "type": "double"},
    ],
}


def trip(number: int, chance: random.Random) -> dict[str, Any]:
    """A row; 300 bytes as JSON."""
    return {
        "id": number,
        "ts": time.time_ns() // 1000,
        "city": CITIES[number % len(CITIES)],
        "rider": f"rider-{chance.randrange(10**9)}",
        "driver": f"driver-{chance.randrange(10**9)}",
        "note": "x" * 150,
        "fare": round(chance.random() * 100, 2),
    }


def stream(given: dict[str, str], arguments: dict[str, Any], path: str, answers: Any) -> None:
    """Read a topic to its end, in a process of its own."""
    end = {"max.rounds.without.new.data.to.shutdown": "1"}
    streamer = hf.Streamer(
        given | end,
        target_base_path=path,
        continuous=True,
        post_write_termination_strategy_class="NoNewDataTerminationStrategy",
        **arguments,
    )
    started, turns = time.monotonic(), []
    for turn in streamer.run():
        turns.append(turn.inserts + turn.updates)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    answers.put((time.monotonic() - started, turns, peak))


def throughput(name: str, kafka: KafkaBroker, messages: int, folder: Path, registry: str = "") -> None:
    """Print messages a second and peak memory."""
    chance, number = random.Random(1), 0
    kafka.create_topic(name, 4)
    if registry:
        from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

        client = SchemaRegistryClient({"url": registry})
        number = client.register_schema(f"{name}-value", Schema(json.dumps(SCHEMA), "AVRO"))
    parsed, size = fastavro.parse_schema(SCHEMA), 0
    for begin in range(0, messages, 100_000):
        rows = [trip(at, chance) for at in range(begin, min(messages, begin + 100_000))]
        values = [_avro(row, parsed, number) if registry else json.dumps(row).encode() for row in rows]
        size += sum(map(len, values))
        kafka.send(name, values)
    given = KEYS | {
        "bootstrap.servers": kafka.servers,
        "auto.offset.reset": "earliest",
        "hoodie.streamer.source.kafka.topic": name,
    }
    given |= {"schema.registry.url": registry} if registry else {}
    source = "AvroKafkaSource" if registry else "JsonKafkaSource"
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    arguments = {"source_class": source, "op": "INSERT"}
    process = context.Process(target=stream, args=(given, arguments, str(folder / name), answers))
    process.start()
    seconds, turns, peak = answers.get()
    process.join()
    assert hf.HudiTable.open(folder / name).count() == messages
    print(
        f"{name}: {messages / seconds:,.0f} messages of {size / messages:.0f} bytes a second; {len(turns)} turns, "
        f"{seconds:.1f} s with the start of the streamer, peak memory {peak} MB"
    )


def _avro(row: dict[str, Any], schema: Any, number: int) -> bytes:
    out = io.BytesIO(b"\0" + number.to_bytes(4, "big"))
    out.seek(5)
    fastavro.schemaless_writer(out, schema, row)
    return out.getvalue()


def latency(kafka: KafkaBroker, folder: Path, seconds: int = 60, rate: int = 1000) -> None:
    """Print the seconds from a message to the commit that has its row."""
    kafka.create_topic("latency", 4)
    given = KEYS | {
        "bootstrap.servers": kafka.servers,
        "auto.offset.reset": "earliest",
        "hoodie.streamer.source.kafka.topic": "latency",
    }
    streamer = hf.Streamer(
        given,
        source_class="JsonKafkaSource",
        target_base_path=str(folder / "latency"),
        table_type="MERGE_ON_READ",
        continuous=True,
    )

    def send() -> None:
        chance, begun = random.Random(2), time.monotonic()
        for tick in range(seconds * 10):
            first = tick * rate // 10
            kafka.send("latency", [json.dumps(trip(at, chance)).encode() for at in range(first, first + rate // 10)])
            time.sleep(max(0.0, begun + (tick + 1) / 10 - time.monotonic()))

    sender = threading.Thread(target=send)
    sender.start()
    waits, done = list[float](), 0
    table = None
    for turn in streamer.run():
        if turn.instant:
            now, done = time.time(), done + turn.inserts + turn.updates
            table = table or hf.HudiTable.open(folder / "latency")
            sent = table.to_arrow(["ts"], filter=f"_hoodie_commit_time = '{turn.instant}'")["ts"]
            waits += [now - sent[0].as_py() / 1e6, now - sent[-1].as_py() / 1e6]
        if done >= seconds * rate:
            streamer.stop()
    sender.join()
    waits.sort()
    print(
        f"latency: {rate} messages a second for {seconds} s; seconds from message to row: median "
        f"{statistics.median(waits):.2f}, 95 % {waits[int(len(waits) * 0.95)]:.2f}, longest {waits[-1]:.2f}"
    )


class Numbers:
    """A source in memory: 100 rows a turn, of :data:`KNOWN_KEYS` keys, as changes of a database are."""

    def fetch(self, position: str | None, limit: int | None) -> Any:
        """See ``Source``."""
        from hudi_fast.streamer.sources.source import Fetched

        begin = int(position or 0)
        chance = random.Random(begin)
        rows = [trip((begin + at) % KNOWN_KEYS, chance) for at in range(100)]
        return Fetched(pa.Table.from_pylist(rows).to_reader(), str(begin + 100))

    def committed(self, position: str | None) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to do."""


def turns(count: int, folder: Path) -> None:
    """Print seconds, memory, files and instants as the number of turns grows."""
    path = folder / "turns"
    streamer = hf.Streamer(
        KEYS, source=Numbers(), target_base_path=str(path), table_type="MERGE_ON_READ", continuous=True
    )
    taken: list[float] = []
    for number, turn in enumerate(streamer.run(), 1):
        taken.append(turn.seconds)
        if number % max(1, count // 10) == 0:
            files = sum(1 for one in path.rglob("*") if one.is_file())
            active = sum(1 for one in (path / ".hoodie/timeline").iterdir() if one.is_file())
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
            print(
                f"turns: {number:6}: median {statistics.median(taken) * 1000:.0f} ms, longest {max(taken):.2f} s, "
                f"{files} files, {active} on the timeline, peak memory {peak} MB",
                flush=True,
            )
            taken = []
        if number == count:
            streamer.stop()


def from_kafka(only: Sequence[str], messages: int, folder: Path) -> None:
    """Measure what reads topics of a broker of this machine."""
    with start_kafka(FETCHED, folder / "kafka") as kafka:
        if "json" in only:
            throughput("json", kafka, messages, folder)
        if "latency" in only:
            latency(kafka, folder)
        if "avro" in only:
            with start_schema_registry(FETCHED, folder) as registry:
                throughput("avro", kafka, messages, folder, registry)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run it from a command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=2_000_000)
    parser.add_argument("--turns", type=int, default=10_000)
    parser.add_argument("--folder", default="", help="folder for tables and the broker's data")
    parser.add_argument("--only", default="json,avro,latency,turns")
    given = parser.parse_args(arguments)
    choose_allocator()  # in the processes that are started from now on, as the command does
    folder = Path(given.folder or tempfile.mkdtemp(prefix="hudi_fast-streamer-"))
    (folder / "kafka").mkdir(parents=True)
    only = given.only.split(",")
    try:
        if set(only) - {"turns"}:
            from_kafka(only, given.messages, folder)
        if "turns" in only:
            turns(given.turns, folder)
    finally:
        if not given.folder:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
