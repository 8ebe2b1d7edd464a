"""How many requests to an S3 server calls on a table need, as ``a + b * files``: counted at 5 and at 25 files.

Control requests are all but one write of each data file and the reads of data files.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.metadata_table import last_states
from hudi_fast.storage.base import Storage
from hudi_fast.writing import transaction
from hudi_fast.writing.local import LocalEngine
from hudi_fast.writing.write_plan import WriteOutcome, WritePlan
from tests.servers.http_faults import Faults, Request, Weather, http_faults
from tests.servers.s3 import S3Server
from tests.support.sessions import write_engine
from tests.support.small_tables import options, plain_rows

FEW, MANY = 5, 25
NO_LOCK = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider"}
CLEANED = {"hoodie.clean.commits.retained": "1", "hoodie.clean.automatic": "false"}


@pytest.fixture(scope="module")
def counted(s3_server: S3Server) -> Iterator[Faults]:
    with http_faults(s3_server.url) as faults:
        yield faults


class Tables:
    """Tables on the server with one file in each of some partitions."""

    def __init__(self, server: S3Server, counted: Faults, kind: str, name: str) -> None:
        self.name, self.server, self.counted, self.reach = name, server, counted, server.options_at(counted.url)
        self.settings = {**options(), **CLEANED, "hoodie.datasource.write.table.type": kind}
        self.settings["hoodie.metadata.compact.max.delta.commits"] = "100"

    def path(self, files: int) -> str:
        return self.server.path(f"{self.name}-{files}")

    def write(self, files: int, ts: int) -> hf.WriteResult:
        rows = plain_rows(range(2 * files), ts=ts, partitions=files)
        return hf.write(rows, self.path(files), self.settings, storage_options=self.reach)

    def open(self, files: int) -> hf.HudiTable:
        return hf.HudiTable.open(self.path(files), self.reach)

    def per_file(self, call: Callable[[int], int]) -> tuple[float, float]:
        """Control requests of a call for each file that it writes or deletes; the call returns the number of files.

        Those of the metadata table, which tasks do not send, are the second number.
        """
        found = {}
        for files in (FEW, MANY):
            self.counted.arm()
            assert call(files) == files
            asked = self.counted.asked
            metadata = sum("/.hoodie/metadata" in one for one in asked)
            found[files] = sum(not is_content(one) for one in asked) + written_again(asked) - metadata, metadata
        table, metadata = (many - few for few, many in zip(found[FEW], found[MANY], strict=True))
        return table / (MANY - FEW), metadata / (MANY - FEW)


def is_content(request: str) -> bool:
    """Whether a request reads or writes a data file."""
    method, _, path = request.partition(" ")
    is_data = ".hoodie" not in path and (path.endswith(".parquet") or ".log." in path)
    return method in ("GET", "PUT") and is_data


def written_again(requests: list[str]) -> int:
    """Requests that write a data file before its content is written."""
    puts = [one for one in requests if one.startswith("PUT") and is_content(one)]
    return len(puts) - len(set(puts))


class FailingEngine(LocalEngine):
    """Writes everything and then fails."""

    def execute(self, plan: WritePlan) -> WriteOutcome:
        super().execute(plan)
        raise ArithmeticError("the engine broke")


@pytest.mark.parametrize("kind", [pytest.param("COPY_ON_WRITE", marks=pytest.mark.long), "MERGE_ON_READ"])
def test_control_requests_per_file_are_few(
    kind: str, s3_server: S3Server, counted: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = Tables(s3_server, counted, kind, f"requests-{kind}")
    table, metadata = tables.per_file(lambda files: tables.write(files, 1).files_written)
    assert table <= 3  # a new partition: does its marker exist? its marker; the marker of the file
    assert metadata < 0.2
    table, metadata = tables.per_file(lambda files: tables.write(files, 2).files_written)
    assert table <= 2  # does the partition's marker exist? the marker of the file
    assert metadata < 1  # column ranges that a log file adds to
    table, metadata = tables.per_file(lambda files: roll_back(tables, files, newest(tables, files)))
    assert table + metadata < 0.2
    for files in (FEW, MANY):
        write_and_die(tables, files, monkeypatch)
    table, metadata = tables.per_file(lambda files: roll_back(tables, files, None))
    assert table + metadata < 0.2


def roll_back(tables: Tables, files: int, instant: str | None) -> int:
    return tables.open(files).services.rollback(instant, tables.settings).files_deleted


def write_and_die(tables: Tables, files: int, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FailingEngine(plain_rows(range(2 * files), ts=3, partitions=files))
    storage = Storage(tables.path(files), tables.reach)
    with monkeypatch.context() as patched:
        patched.setattr(transaction, "abandon", lost)
        with pytest.raises(ArithmeticError):
            write_engine(engine, storage, tables.settings, "append")


def test_a_clean_deletes_many_files_in_few_requests(s3_server: S3Server, counted: Faults) -> None:
    tables = Tables(s3_server, counted, "COPY_ON_WRITE", "cleaned")
    for files in (FEW, MANY):
        for ts in (1, 2, 3):
            tables.write(files, ts)
    table, metadata = tables.per_file(lambda files: tables.open(files).services.clean(tables.settings).files_deleted)
    assert table + metadata < 0.2


def newest(tables: Tables, files: int) -> str:
    return str(tables.open(files).history()["instant"].to_pylist()[-1])


def lost(*args: Any) -> None:
    raise OSError("the process is gone")


def test_a_thousand_files_are_deleted_in_one_request(s3_server: S3Server, counted: Faults) -> None:
    storage = Storage(s3_server.path("deleted"), s3_server.options_at(counted.url))
    for name in ("f/1", "f/2", "kept"):
        storage.write_bytes(name, b"1")
    counted.arm()
    storage.delete_files([f"f/{number}" for number in range(2001)])
    assert [one.partition(" ")[0] for one in counted.asked] == ["POST", "POST", "DELETE"]
    assert [one.path for one in storage.list_dir("", recursive=True)] == ["kept"]


def test_a_small_upsert_takes_few_requests(s3_server: S3Server, counted: Faults) -> None:
    """docs/object-stores.md lists them; what its time consists of is the longest chain of them."""
    tables = Tables(s3_server, counted, "COPY_ON_WRITE", "few")
    number: list[int] = []
    for ts, lock in enumerate([{}, {}, {}, NO_LOCK], 1):
        counted.arm()
        rows = plain_rows(range(100), ts=ts, partitions=1)
        hf.write(rows, tables.path(1), {**options(), **lock}, storage_options=tables.reach)
        number.append(len(counted.asked))
        if not lock:
            locks = sum("/.hoodie/.locks/" in one for one in counted.asked)
            answered = counted.answered
    *_, shared, alone = number
    assert shared <= 41
    assert locks == 3  # take the lock, ask for it before the commit is visible, give it back
    assert alone <= 48  # without a lock others are looked for: a heartbeat, and listings of the timeline
    assert longest_chain(answered) <= 36


def longest_chain(answered: Sequence[Request]) -> int:
    """The number of requests that were sent one after the other."""
    chain, end = 0, 0.0
    for one in sorted(answered, key=lambda one: one.begin):
        if one.begin >= end:
            chain, end = chain + 1, one.end
    return chain


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("filter_", [None, "id > 'k00050'"])
def test_a_read_asks_for_each_small_file_once(
    kind: str, filter_: str | None, s3_server: S3Server, counted: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = Tables(s3_server, counted, kind, f"read-{kind}-{filter_ is None}")
    for ts in (1, 2, 3):
        tables.write(1, ts)
    table = tables.open(1)
    monkeypatch.setattr(last_states, "_STATES", OrderedDict())  # a process that has not written the table
    counted.arm()
    assert table.to_arrow(filter=filter_).num_rows == (2 if filter_ is None else 0)
    gets = [one for one in counted.asked if one.startswith("GET") and (".log." in one or ".hfile" in one)]
    assert len(gets) > 3
    assert len(gets) == len(set(gets))
    assert not any(one.startswith("HEAD") for one in counted.asked)
    first = len(counted.asked)
    counted.weather = Weather(delay=0.05)
    counted.arm()
    assert table.to_arrow(filter=filter_).num_rows == (2 if filter_ is None else 0)
    counted.weather = Weather()
    assert not any("/metadata/" in one and (".log." in one or ".hfile" in one) for one in counted.asked)
    assert len(counted.asked) <= 10 < first
    assert longest_chain(counted.answered) <= 6
