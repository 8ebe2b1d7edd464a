"""An S3 server that asks to slow down, once in a while or everybody for some time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_fast as hf
from hudi_fast.formats.parquet.base_file import open_base_file
from hudi_fast.storage.base import Storage
from hudi_fast.storage.conditional import ExpiredCredentialsError
from tests.servers.http_faults import Faults, Weather, http_faults
from tests.servers.s3 import S3Server
from tests.support.small_tables import assert_tidy, options, plain_rows, rows_of, table_rows

STORM_SECONDS = 4.0
"""Longer than all pauses between attempts after a failure of another kind."""


@pytest.fixture
def slow(s3_server: S3Server) -> Iterator[Faults]:
    with http_faults(s3_server.url) as faults:
        yield faults


@pytest.mark.parametrize(
    "share", [pytest.param(0.1, marks=pytest.mark.long), 0.5, pytest.param(0.9, marks=pytest.mark.long)]
)
def test_a_write_outlasts_a_storm(share: float, s3_server: S3Server, slow: Faults) -> None:
    name, reach = f"storm-{share}", s3_server.options_at(slow.url)
    path, settings = s3_server.path(name), {**options(), "hudi_fast.threads": "4"}
    for ts in (1, 2):
        slow.arm()
        hf.write(plain_rows(range(12), ts=ts, partitions=6), path, settings, storage_options=reach)
    begins = int(len(slow.asked) * share)
    slow.arm()
    storm = threading.Thread(target=refuse_all, args=(slow, begins))
    storm.start()
    last = plain_rows(range(12), ts=3, partitions=6)
    hf.write(last, path, settings, storage_options=reach)
    storm.join()
    assert sum(one.status == 503 for one in slow.answered) > 3
    if s3_server.kind == "versitygw":
        assert_tidy(s3_server.objects / s3_server.bucket / name)
        assert table_rows(s3_server.objects / s3_server.bucket / name) == rows_of(last)
    else:
        assert rows_of(hf.HudiTable.open(path, reach).to_arrow()) == rows_of(last)


def refuse_all(slow: Faults, after: int) -> None:
    while len(slow.asked) < after:
        time.sleep(0.001)
    slow.weather = Weather(busy=1.0)
    time.sleep(STORM_SECONDS)
    slow.weather = Weather()


def test_streams_have_no_budget_of_retries_for_the_life_of_a_process(s3_server: S3Server, slow: Faults) -> None:
    storage = Storage(s3_server.path("budget"), s3_server.options_at(slow.url))
    storage.write_bytes("f", b"1")
    slow.arm()
    slow.weather = Weather(busy=0.4)
    for _ in range(200):
        assert storage.fs.get_file_info(storage.fs_path("f")).size == 1
    assert sum(one.status == 503 for one in slow.answered) > 100


def test_a_head_request_that_is_refused_is_sent_again(s3_server: S3Server, slow: Faults) -> None:
    storage = Storage(s3_server.path("looked-at"), s3_server.options_at(slow.url))
    storage.write_bytes("f", b"1")
    slow.arm(0, "busy", lasts=12)  # more than after a failure of another kind
    assert storage.has_file("f")
    assert len(slow.asked) == 13


@pytest.fixture
def base_file(s3_server: S3Server, slow: Faults) -> tuple[Storage, pa.Table]:
    """A file whose column ``same`` takes fewer bytes of a row group than the text of a refusal.

    Without statistics, which would tell a reader the one value of that column without a request.
    """
    rows = pa.table({"random": np.random.default_rng(1).random(400_000), "same": ["x"] * 400_000})
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, row_group_size=100_000, write_statistics=False)
    storage = Storage(s3_server.path("ranges"), s3_server.options_at(slow.url))
    storage.write_bytes("f.parquet", sink.getvalue().to_pybytes())
    return storage, rows


def test_a_refused_read_of_a_few_bytes_is_sent_again(base_file: tuple[Storage, pa.Table], slow: Faults) -> None:
    storage, rows = base_file
    with open_base_file(storage, "f.parquet") as file:
        slow.arm()
        assert file.read(["same"], [1]).num_rows == 100_000
        count = len(slow.asked)
        slow.arm(0, "busy", lasts=2)
        assert file.read(["same"], [1]).column(0).to_pylist() == ["x"] * 100_000
        assert len(slow.asked) > count + 2
        for at in range(8):
            slow.arm(at, "busy")
            batches = list(file.batches(["same", "random"], 30_000))
            assert pa.Table.from_batches(batches).select(rows.column_names) == rows
            assert len(slow.asked) > at


def test_a_refused_read_of_a_few_bytes_tells_of_expired_credentials(
    base_file: tuple[Storage, pa.Table], slow: Faults
) -> None:
    storage, _ = base_file
    with open_base_file(storage, "f.parquet") as file:
        slow.arm(0, "expired", lasts=100)
        with pytest.raises(ExpiredCredentialsError, match=r"ranges/f\.parquet"):
            file.read(["same"], [1])
