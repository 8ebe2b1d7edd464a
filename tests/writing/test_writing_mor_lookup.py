"""Where keys are found when slices have log files: in base files, and in logs that have no base file beside them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hudi_fast as hf
from tests.support.mor_tables import (
    VERSIONS,
    blocks_of,
    log_files,
    make_logs_alone,
    mor_options,
    newest_commit,
    stats_of,
)
from tests.support.small_tables import plain_rows, table_rows


@pytest.mark.slow
@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE"])
@pytest.mark.parametrize("version", VERSIONS)
def test_keys_of_log_files_without_base_file_are_found(version: str, index: str, tmp_path: Path) -> None:
    settings = make_logs_alone(tmp_path, version, index=index)
    (group,) = {log.file_id for log in log_files(tmp_path)}
    result = hf.write(plain_rows([1, 7], ts=6, text="new"), tmp_path, settings)
    assert (result.inserts, result.updates) == (1, 1)
    logged, inserted = sorted(stats_of(tmp_path), key=lambda stat: stat.num_inserts)
    assert (logged.file_id, inserted.file_id == group) == (group, False)
    old = version == "6"
    assert logged.prev_commit == (log_files(tmp_path)[0].instant if old else newest_commit(tmp_path)[0].requested)
    assert logged.base_file == ""
    assert blocks_of(tmp_path)[-1].positions is None
    rows = table_rows(tmp_path)
    assert (rows["k00001"][1:3], rows["k00003"][1:3], rows["k00007"][1:3]) == ((6, "new1"), (5, "log3"), (6, "new7"))
    hf.HudiTable.open(tmp_path).delete(plain_rows([3]), {"hoodie.index.type": index})
    assert "k00003" not in table_rows(tmp_path)


def test_rows_in_log_files_alone_move_and_are_compared(tmp_path: Path) -> None:
    settings = make_logs_alone(tmp_path, "9", index="GLOBAL_SIMPLE")
    rows = pa.concat_tables([plain_rows([1], ts=4, text="m"), plain_rows([3], ts=6, text="m")])
    hf.write(rows.set_column(1, "part", pa.array(["p0"] * 2)), tmp_path, settings)
    found = {key: row[:3] for key, row in table_rows(tmp_path).items()}
    assert (found["k00001"], found["k00003"]) == (("p1", 5, "log1"), ("p0", 6, "m3"))


@pytest.mark.slow
@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_key_that_moved_is_compared_where_it_is_now_and_not_where_it_was(
    version: str, index: str, tmp_path: Path
) -> None:
    settings = mor_options(table_version=version, index=index)
    hf.write(plain_rows(range(4)), tmp_path, settings)

    def write(ts: int, part: str) -> None:
        hf.write(plain_rows([1], ts=ts).set_column(1, "part", pa.array([part])), tmp_path, settings)

    write(10, "p0")
    # Its old base file still holds the key, with an ordering value that this row would beat.
    write(5, "p1")
    assert table_rows(tmp_path)["k00001"][:2] == ("p0", 10)
    write(12, "p1")
    write(11, "p0")
    assert table_rows(tmp_path)["k00001"][:2] == ("p1", 12)
    write(13, "p2")
    assert table_rows(tmp_path)["k00001"][:2] == ("p2", 13)
    assert len(table_rows(tmp_path)) == 4
    hf.HudiTable.open(tmp_path).services.compact()
    assert len(table_rows(tmp_path)) == 4


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("policy", ["drop", "fail"])
def test_inserts_of_stored_keys_are_dropped_or_refused(policy: str, version: str, tmp_path: Path) -> None:
    settings = {
        **make_logs_alone(tmp_path, version),
        "hoodie.datasource.write.operation": "insert",
        "hoodie.datasource.insert.dup.policy": policy,
    }
    rows = plain_rows([1, 0, 50], ts=9, text="again")
    if policy == "fail":
        with pytest.raises(hf.DuplicateKeyError, match=r"k0000[01]"):
            hf.write(rows, tmp_path, settings)
    else:
        assert hf.write(rows, tmp_path, settings).inserts == 1
        found = {key: row[2] for key, row in table_rows(tmp_path).items()}
        assert (found["k00001"], found["k00000"], found["k00050"]) == ("log1", "a0", "again50")


@pytest.mark.slow("6")
@pytest.mark.parametrize("version", ["6", "9"])
def test_a_key_that_only_the_log_has_deleted_is_logged_on(version: str, tmp_path: Path) -> None:
    settings = mor_options(table_version=version)
    hf.write(plain_rows(range(10)), tmp_path, settings)
    hf.HudiTable.open(tmp_path).delete(plain_rows([1]))
    result = hf.write(plain_rows([1], ts=3, text="back"), tmp_path, settings)
    assert (result.inserts, result.updates) == (0, 1)
    assert table_rows(tmp_path)["k00001"] == ("p1", 3, "back1")
