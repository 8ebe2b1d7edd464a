"""A writer whose base file a clean removed meanwhile is in conflict with the clean, and lands when it runs again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from interleaving import InterleavedEngine, LateEngine, assert_sound, services, settings_for
from small_tables import plain_rows, table_rows, write_to

import hudi_fast as hf
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import CommitConflictError, ConfigError, FileGoneError
from hudi_fast.storage.base import Storage
from hudi_fast.writing.flow import run_write

ONE_VERSION = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.cleaner.fileversions.retained": "1"}


@pytest.mark.parametrize("kind", ["COW", "MOR"])
@pytest.mark.parametrize("retries", [0, 1])
def test_a_file_that_was_cleaned_is_a_conflict(tmp_path: Path, kind: str, retries: int) -> None:
    settings = settings_for(kind, "9", {"hoodie.write.num.retries.on.conflict.failures": str(retries)})
    path = tmp_path / "t"
    write_to(Storage(path), plain_rows([2, 4], text="old"), settings)

    def others() -> None:
        write_to(Storage(path), plain_rows([4], text="new"), settings)
        if kind == "MOR":
            services(path).compact({**settings, "hoodie.compact.inline.max.delta.commits": "1"})
        services(path).clean({**settings, **ONE_VERSION})

    engine = LateEngine(plain_rows([2], text="mine"), others)
    before = hf.HudiTable.open(path).to_arrow()

    def run() -> Any:
        return run_write(engine, Storage(path), WriteOptions.from_options(settings), "append")

    if retries:
        assert run().instant
        texts = sorted(table_rows(path).items())
        assert ["mine" in str(row) for _, row in texts] == [True, False]
        return
    with pytest.raises(CommitConflictError, match="Another process removed a file") as raised:
        run()
    cleaned = hf.HudiTable.open(path).history().filter(pc.field("action") == "clean")["instant"].to_pylist()
    assert raised.value.other == cleaned[-1]
    assert len(raised.value.file_groups) == 1
    assert isinstance(raised.value.__cause__, FileGoneError)
    assert before.num_rows == 2
    assert_sound(path, table_rows(path))


def test_a_reader_is_told_that_the_file_is_gone(tmp_path: Path) -> None:
    settings = settings_for("COW", "9")
    path = tmp_path / "t"
    write_to(Storage(path), plain_rows([2, 4], text="old"), settings)
    scan = hf.HudiTable.open(path).scan()
    write_to(Storage(path), plain_rows([4], text="new"), settings)
    services(path).clean({**settings, **ONE_VERSION})
    with pytest.raises(FileGoneError, match="gone since the table was looked at"):
        scan.to_table()


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_clean_leaves_an_empty_partition_to_who_is_about_to_fill_it(tmp_path: Path, version: str) -> None:
    """The write began before the clean: what the clean says of the whole partition would come after what it says."""
    settings = settings_for("COW", version)
    path = tmp_path / "t"
    write_to(Storage(path), plain_rows([2, 3]), settings)
    hf.HudiTable.open(path).delete_partitions(["p1"], settings)

    def others() -> None:
        assert services(path).clean({**settings, **ONE_VERSION}).files_deleted == 1

    run_write(LateEngine(plain_rows([5]), others), Storage(path), WriteOptions.from_options(settings), "append")
    assert sorted(table_rows(path)) == ["k00002", "k00005"]
    assert_sound(path, table_rows(path))


def test_a_plan_that_is_withdrawn_while_it_is_looked_at_is_nobodys_loss(tmp_path: Path) -> None:
    """Between the listing of the timeline and the reading of a clustering's plan."""
    settings = settings_for("COW", "9")
    path = tmp_path / "t"
    write_to(Storage(path), plain_rows([2, 4]), settings)
    planned = services(path).plan_cluster(settings)
    assert planned is not None

    class Late(Storage):
        """The plan goes right after the timeline was listed."""

        def list_dir(self, path: str, recursive: bool = False) -> list[Any]:
            """See ``Storage``."""
            found = super().list_dir(path, recursive)
            for file in Path(self.uri).rglob(f"{planned.instant}.*"):
                file.unlink()
            return found

    assert hf.HudiTable(Late(path)).to_arrow().num_rows == 2


@pytest.mark.parametrize("metadata", ["true", "false"])
@pytest.mark.parametrize("engine", [LateEngine, InterleavedEngine], ids=["logs after", "logs before"])
def test_what_is_logged_on_a_slice_that_was_rolled_back_is_no_file_group(
    tmp_path: Path, metadata: str, engine: type[InterleavedEngine]
) -> None:
    """Before table version 8, and by the bucket index: the next write makes the bucket anew, and only that one is."""
    bucket = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1", "hoodie.metadata.enable": metadata}
    settings = settings_for("MOR", "6", bucket)
    path = tmp_path / "t"
    write_to(Storage(path), plain_rows([3]), settings)
    first = write_to(Storage(path), plain_rows([2], text="old"), settings).instant
    write = engine(plain_rows([2], text="mine"), lambda: services(path).rollback(first))
    with pytest.raises(CommitConflictError, match="was rolled back in the meantime"):
        run_write(write, Storage(path), WriteOptions.from_options(settings), "append")
    assert not list((path / "p0").glob(".*.log.*"))
    for number in range(3):
        write_to(Storage(path), plain_rows([2], text=f"new{number}"), settings)
        services(path).compact({**settings, "hoodie.compact.inline.max.delta.commits": "1"})
    assert sorted("new2" in str(row) for row in table_rows(path).values()) == [False, True]
    assert_sound(path, table_rows(path))


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("kind", ["COW", "MOR"])
def test_what_a_pending_write_adds_to_a_file_group_stands_for_nothing_that_was_cleaned(
    tmp_path: Path, kind: str, version: str
) -> None:
    """A file group was ended and cleaned: the write that ended it cannot be undone, whoever may still write to it."""
    settings = settings_for(kind, version)
    path = tmp_path / "t"
    write_to(Storage(path), plain_rows([2, 3], text="old"), settings)

    def others() -> None:
        overwriting = {**settings, "hoodie.datasource.write.operation": "insert_overwrite"}
        ended = write_to(Storage(path), plain_rows([2], text="over"), overwriting).instant
        assert services(path).clean({**settings, **ONE_VERSION}).files_deleted
        with pytest.raises(ConfigError, match="deleted what there was before it"):
            services(path).rollback(ended)

    write = InterleavedEngine(plain_rows([2], text="mine"), others)
    with pytest.raises(CommitConflictError):
        run_write(write, Storage(path), WriteOptions.from_options(settings), "append")
    assert sorted("over" in str(row) for row in table_rows(path).values()) == [False, True]
    assert_sound(path, table_rows(path))
