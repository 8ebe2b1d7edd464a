"""The demo runs without Java, holds what it promises, and notices when the table does not."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.compute as pc
import pytest

import hudi_fast as hf

pytestmark = pytest.mark.slow

DEMO = Path(__file__).parents[1] / "demo"


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What the demo printed, and the table that it left."""
    path = tmp_path_factory.mktemp("demo") / "flights"
    without_java = {**os.environ, "JAVA_HOME": str(path.parent / "no-java")}
    done = subprocess.run(
        [sys.executable, DEMO / "flights.py", "--keep", path],
        capture_output=True,
        text=True,
        check=False,
        env=without_java,
    )
    return done, path


def test_without_java_it_says_so_and_does_everything_in_one_process(told):
    done, _ = told
    assert (done.returncode, done.stderr) == (0, "")
    assert "There is no Java in JAVA_HOME=" in " ".join(done.stdout.split())
    assert "35 of 35 checks passed." in done.stdout


def test_the_table_it_keeps_holds_the_flights_that_left(told):
    table = hf.HudiTable.open(told[1])
    assert table.stats()["rows"].to_pylist() == [328_521]
    history = table.history().to_pylist()
    assert [row["operation"] or row["action"] for row in history] == [
        *("BULK_INSERT", "UPSERT", "DELETE", "UPSERT"),
        *("restore", "clean", "CLUSTER"),
    ]


def test_the_table_with_log_files_holds_the_same_after_its_compaction(told):
    table = hf.HudiTable.open(told[1].with_name("flights-log"))
    assert table.table_type == "MERGE_ON_READ"
    assert table.stats()["rows"].to_pylist() == [328_521]
    assert table.history()["operation"].to_pylist() == ["BULK_INSERT", "UPSERT", "DELETE", "COMPACT"]
    assert not any(table.files()["log_files"].to_pylist())
    # Before the compaction a snapshot merges the log files, as time travel shows.
    deleted = table.history()["instant"][2].as_py()
    assert sum(len(batch) for batch in table.to_batches(columns=["month"], as_of=deleted)) == 328_521


@pytest.mark.slow
def test_it_does_not_write_into_a_folder_that_is_there(told):
    again = subprocess.run([sys.executable, DEMO / "flights.py", "--keep", told[1]], capture_output=True, check=False)
    assert again.returncode == 2
    assert b"exists already" in again.stdout


@pytest.mark.slow
def test_one_wrong_value_is_noticed(told, monkeypatch):
    monkeypatch.syspath_prepend(str(DEMO))
    from flight_data import load_year, same_rows, widened

    expected = widened(load_year())
    found = hf.HudiTable.open(told[1]).to_arrow()
    assert same_rows(found, expected)
    first = pc.equal(found["_hoodie_commit_seqno"], found["_hoodie_commit_seqno"][0])
    wrong = pc.if_else(first, pc.add(found["distance"], 1), found["distance"])
    assert not same_rows(found.set_column(found.column_names.index("distance"), "distance", wrong), expected)
    assert not same_rows(found.slice(1), expected)
