"""The files of an action, by partition."""

from __future__ import annotations

from hudi_fast.metadata_table.state import AddedFile, TableDelta, change_of_clean


def added(partition: str, name: str) -> AddedFile:
    return AddedFile(partition, name, 10, "group", False, "1")


def test_written_and_deleted_files_stand_under_their_partitions() -> None:
    new, other = added("a", "new.parquet"), added("", "root.parquet")
    change = TableDelta("1", "UPSERT", (new, other), removed={"a": ("old.parquet",), "b": ("gone.parquet",)})
    assert change.files() == {
        "a": {"new.parquet": new, "old.parquet": None},
        "": {"root.parquet": other},
        "b": {"gone.parquet": None},
    }
    assert change.emptied == ()


def test_a_deleted_partition_has_no_files() -> None:
    change = change_of_clean("1", {"a": ("a/old.parquet",), "b": ()}, ["a"])
    assert change.emptied == ("a",)
    assert change.files() == {"b": {}}


def test_a_partition_with_a_written_file_is_not_deleted() -> None:
    new = added("a", "new.parquet")
    change = TableDelta("1", "INSERT_OVERWRITE", (new,), {"a": ("old.parquet",)}, ("a", "b"))
    assert change.emptied == ("b",)
    assert change.files() == {"a": {"new.parquet": new, "old.parquet": None}}
