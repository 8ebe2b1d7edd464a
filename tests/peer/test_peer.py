"""Real Apache Hudi as a peer: what goes in comes back, and its refusals arrive with their reason."""

from __future__ import annotations

import os
import signal
import stat
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from threading import Timer

import pyarrow as pa
import pytest

from tests.peer.client import REQUESTS_BETWEEN_LOOKS, PeerError, PeerProcessError, RealHudi
from tests.support.rows import assert_same_rows

META = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "seen",
    "hoodie.upsert.shuffle.parallelism": 2,
    "hoodie.metadata.enable": True,
}


def trips(*ids: int, fare: str = "12.50", hour: int = 1) -> pa.Table:
    schema = pa.schema(
        [
            ("id", pa.string()),
            ("city", pa.string()),
            ("fare", pa.decimal128(10, 2)),
            ("seen", pa.timestamp("us", "UTC")),
            ("day", pa.date32()),
            ("tags", pa.map_(pa.string(), pa.float64())),
            ("stops", pa.list_(pa.struct([("at", pa.int32()), ("name", pa.string())]))),
        ]
    )
    rows = [
        {
            "id": f"id-{number:03}",
            "city": f"city-{number % 2}",
            "fare": Decimal(fare) + number,
            "seen": datetime(2026, 1, 2, hour, 4, 5, 678901, UTC),
            "day": date(2026, 1, number + 1),
            "tags": [("a", number / 3)],
            "stops": [{"at": number, "name": None}],
        }
        for number in ids
    ]
    return pa.Table.from_pylist(rows, schema)


@pytest.fixture(params=["hudi_12", "hudi_015"])
def hudi(request) -> RealHudi:
    return request.getfixturevalue(request.param)


with_the_old_one_in_long = pytest.mark.parametrize(
    "hudi", ["hudi_12", pytest.param("hudi_015", marks=pytest.mark.long)], indirect=True
)


@pytest.fixture
def path(tmp_path) -> str:
    return str(tmp_path / "trips")


@pytest.fixture(scope="module")
def stored() -> dict[str, str]:
    """A table of three rows of each release, once a test has asked for it: tests read it."""
    return {}


@pytest.fixture
def three_rows(hudi: RealHudi, stored: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> str:
    if hudi.version not in stored:
        stored[hudi.version] = str(tmp_path_factory.mktemp("stored") / "trips")
        hudi.write(trips(1, 2, 3), stored[hudi.version], OPTIONS)
    return stored[hudi.version]


@pytest.mark.peer
@pytest.mark.timeout(900)
def test_rows_written_come_back_with_their_types_and_meta_columns(hudi, three_rows):
    got = hudi.read(three_rows)
    assert tuple(got.column_names[:5]) == META
    assert got.schema.field("fare").type == pa.decimal128(10, 2)
    assert got.schema.field("seen").type == pa.timestamp("us", "UTC")
    assert_same_rows(got, trips(1, 2, 3), ignore=META, key=["id"])
    # LocalFiles.java sets what Hadoop's own class sets.
    assert {stat.S_IMODE(file.stat().st_mode) for file in Path(three_rows).rglob("*") if file.is_file()} == {0o644}


@with_the_old_one_in_long
@pytest.mark.peer
@pytest.mark.timeout(900)
def test_an_upsert_replaces_rows_and_a_table_can_be_asked_in_part(hudi, path):
    plain = {**OPTIONS, "hoodie.metadata.enable": False}
    hudi.write(trips(1, 2), path, plain)
    hudi.write(trips(2, 4, fare="99.00", hour=5), path, plain)
    expected = pa.concat_tables([trips(1), trips(2, 4, fare="99.00", hour=5)])
    assert_same_rows(hudi.read(path), expected, ignore=META, key=["id"])
    assert hudi.read(path, where="fare > 100", columns=["id"]).sort_by("id")["id"].to_pylist() == ["id-002", "id-004"]
    first, second = sorted(set(hudi.read(path)["_hoodie_commit_time"].to_pylist()))
    assert hudi.read(path, {"as.of.instant": first}).num_rows == 2
    assert first < second


@with_the_old_one_in_long
@pytest.mark.peer
@pytest.mark.timeout(900)
def test_sql_sees_tables_by_path_and_arrow_rows(hudi, three_rows):
    wanted = pa.table({"id": ["id-001", "id-003"]})
    got = hudi.sql("select t.id, t.fare from t join w on t.id = w.id", tables={"t": three_rows}, rows={"w": wanted})
    assert got.sort_by("id").to_pydict() == {"id": ["id-001", "id-003"], "fare": [Decimal("13.50"), Decimal("15.50")]}


@pytest.mark.peer
@pytest.mark.timeout(900)
def test_a_refusal_carries_the_java_class_and_its_message(hudi, path):
    without_name = {key: value for key, value in OPTIONS.items() if key != "hoodie.table.name"}
    with pytest.raises(PeerError, match=r"hoodie\.table\.name") as caught:
        hudi.write(trips(1), path, without_name)
    assert caught.value.java_class.startswith("org.apache.hudi.")
    assert hudi.info()["hudi"] == hudi.version


def test_a_missing_virtual_environment_says_how_to_make_it(tmp_path):
    peer = RealHudi("1.2.0", python=tmp_path / "python")
    with pytest.raises(PeerProcessError, match="make setup"):
        peer.info()


@pytest.mark.slow
def test_an_interrupted_request_leaves_no_answer_for_the_next(tmp_path):
    slow = tmp_path / "python"
    slow.write_text("""#!/bin/sh\necho '{"ok": true, "result": {}}'\nread request\nsleep 30\n""")
    slow.chmod(0o755)

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    peer = RealHudi("1.2.0", python=slow)
    try:
        Timer(1.0, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        with pytest.raises(KeyboardInterrupt):
            peer.info()
        assert not peer.is_running
    finally:
        signal.signal(signal.SIGUSR1, before)
        peer.close()


def test_a_process_that_ends_shows_the_end_of_its_log(tmp_path):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho 'no such bundle' >&2\nexit 3\n")
    broken.chmod(0o755)
    with RealHudi("1.2.0", python=broken) as peer, pytest.raises(PeerProcessError, match="no such bundle"):
        peer.info()


@pytest.mark.parametrize(("used", "stays"), [("0.9", False), ("0.1", True)])
def test_a_process_whose_memory_is_full_is_ended_between_tests(tmp_path, used, stays):
    full = tmp_path / "python"
    answer = f'{{"ok": true, "result": {{"used": {used}}}}}'
    full.write_text(f"#!/bin/sh\necho '{answer}'\nwhile read request; do echo '{answer}'; done\n")
    full.chmod(0o755)
    with RealHudi("1.2.0", python=full) as peer:
        for _ in range(REQUESTS_BETWEEN_LOOKS):
            peer.info()
            peer.rest()
        assert peer.is_running is stays
