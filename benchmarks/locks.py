"""Locks: the time to open a provider, take a free lock, release it and close the provider.

Uses the servers of the tests, on this machine: ZooKeeper, DynamoDB Local, a Hive metastore, an S3 server.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa

from hudi_fast import write
from hudi_fast.config.concurrency_options import LockOptions
from hudi_fast.locking.table_lock import table_lock
from hudi_fast.storage.base import Storage

sys.path.append(str(Path(__file__).resolve().parents[1]))
PROVIDERS = ("machine", "file", "object", "zookeeper", "dynamodb", "hive", "s3")
LOCK = "hoodie.write.lock."
PACKAGE = "org.apache.hudi."
TABLE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.metadata.enable": "false",
}


@contextmanager
def provider(name: str, folder: Path) -> Iterator[tuple[str, dict[str, str], Mapping[str, str]]]:
    """Yields path of the table, lock options without prefix, and storage options, while the server runs."""
    from tests.locking.jvm_lock import peer_pyspark_jars
    from tests.servers.dynamodb import CREDENTIALS, start_dynamodb
    from tests.servers.hive_metastore import start_hive_metastore
    from tests.servers.s3 import start_s3
    from tests.servers.zookeeper import start_zookeeper
    from tests.support.jvm import FETCHED

    table, transaction = str(folder / "table"), f"{PACKAGE}client.transaction.lock."
    with ExitStack() as servers:
        if name == "machine":
            yield table, {"provider": f"{transaction}InProcessLockProvider"}, {}
        elif name == "file":
            yield table, {"provider": f"{transaction}FileSystemBasedLockProvider"}, {}
        elif name == "object":
            yield table, {"provider": f"{transaction}StorageBasedLockProvider"}, {}
        elif name == "s3":
            server = servers.enter_context(start_s3(FETCHED, folder))
            yield server.path("table"), {"provider": f"{transaction}StorageBasedLockProvider"}, server.options
        elif name == "zookeeper":
            url = servers.enter_context(start_zookeeper(peer_pyspark_jars(), folder / name)).url
            options = {"zookeeper.url": url, "zookeeper.base_path": "/locks", "zookeeper.lock_key": "t"}
            yield table, {"provider": f"{transaction}ZookeeperBasedLockProvider", **options}, {}
        elif name == "dynamodb":
            os.environ.update(CREDENTIALS)
            url = servers.enter_context(start_dynamodb(FETCHED, folder))
            options = {"dynamodb.endpoint_url": url, "dynamodb.table": "locks", "dynamodb.partition_key": "t"}
            options["dynamodb.region"] = CREDENTIALS["AWS_REGION"]
            yield table, {"provider": f"{PACKAGE}aws.transaction.lock.DynamoDBBasedLockProvider", **options}, {}
        else:
            uri = servers.enter_context(start_hive_metastore(peer_pyspark_jars(), FETCHED, folder / name)).uri
            options = {"hivemetastore.uris": uri, "hivemetastore.database": "d", "hivemetastore.table": "t"}
            yield table, {"provider": f"{PACKAGE}hive.transaction.lock.HiveMetastoreBasedLockProvider", **options}, {}


class Locks:
    """Take and release a free lock."""

    params = PROVIDERS
    param_names = ("provider",)
    timeout = 120

    def setup(self, name: str) -> None:
        self.ended = ExitStack()
        folder = self.ended.enter_context(tempfile.TemporaryDirectory(prefix="hudi_fast-asv-"))
        uri, lock, storage_options = self.ended.enter_context(provider(name, Path(folder)))
        options = {f"{LOCK}{key}": value for key, value in lock.items()}
        write(pa.table({"id": ["a"]}), uri, TABLE, storage_options=storage_options)
        self.storage = Storage(uri, storage_options)
        mode = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
        self.options = LockOptions.from_options({**mode, **options})
        self.time_free(name)

    def teardown(self, name: str) -> None:
        self.ended.close()

    def time_free(self, name: str) -> None:
        with table_lock(self.storage, self.options):
            pass


if __name__ == "__main__":
    for name in sys.argv[1:] or PROVIDERS:
        bench, seconds = Locks(), []
        bench.setup(name)
        for _ in range(100):
            started = time.perf_counter()
            bench.time_free(name)
            seconds.append(time.perf_counter() - started)
        bench.teardown(name)
        print(f"{name:10} {statistics.median(seconds) * 1000:6.2f} ms, worst of 100 {max(seconds) * 1000:6.2f} ms")
