"""What a process remembers of a write belongs to its table and instant, and to few writes."""

from __future__ import annotations

from pathlib import Path

from hudi_fast.storage.base import Storage
from hudi_fast.writing.markers import ensure_partition_marker, memory_of


def test_a_write_has_one_memory_whichever_storage_object_asks(tmp_path: Path) -> None:
    memory_of(Storage(tmp_path), "1").partitions.add("p")
    assert memory_of(Storage(tmp_path), "1").partitions == {"p"}
    assert memory_of(Storage(tmp_path), "2").partitions == set()
    assert memory_of(Storage(tmp_path / "other"), "1").partitions == set()


def test_memories_of_old_writes_are_dropped(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    memory_of(storage, "old").partitions.add("p")
    for number in range(100):
        memory_of(storage, f"new {number}")
    assert memory_of(storage, "old").partitions == set()


def test_the_next_write_looks_for_the_partition_marker_again(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    ensure_partition_marker(storage, "p", "1", in_base_format=False)
    marker = tmp_path / "p" / ".hoodie_partition_metadata"
    marker.unlink()
    ensure_partition_marker(storage, "p", "1", in_base_format=False)
    assert not marker.exists()
    ensure_partition_marker(storage, "p", "2", in_base_format=False)
    assert marker.exists()
