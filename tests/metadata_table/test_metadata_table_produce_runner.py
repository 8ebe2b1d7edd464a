"""The runner: records reach their file groups in order, one per key, whatever is held in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.errors import InvalidDataError
from hudi_fast.metadata_table.layout import group_numbers
from hudi_fast.metadata_table.updates.groups import run_in_threads
from hudi_fast.metadata_table.updates.produce_base import EncodedRecords
from hudi_fast.metadata_table.updates.record_bins import Entries
from hudi_fast.timeline.commit_metadata import WriteStat

Pairs = list[tuple[str, bytes | None]]


@dataclass(frozen=True)
class Listed:
    """A source of records that are known."""

    partition: str
    pairs: Pairs
    weight: int = 0

    def read(self, schema: str) -> Iterator[EncodedRecords]:
        assert schema == "the schema"
        for start in range(0, len(self.pairs), 3):
            keys, values = zip(*self.pairs[start : start + 3], strict=True)
            yield EncodedRecords(self.partition, pa.array(keys, pa.string()), pa.array(values, pa.binary()))


@dataclass(frozen=True)
class Kept:
    """Writes file groups into a dictionary."""

    groups: int = 3
    schema: str = "the schema"
    written: dict[tuple[str, int], Pairs] = field(default_factory=dict)

    def route(self, records: EncodedRecords) -> npt.NDArray[np.int32]:
        return group_numbers(records.keys, self.groups)

    def write(self, partition: str, group: int, entries: Iterable[Entries]) -> WriteStat:
        assert (partition, group) not in self.written
        pairs = [pair for keys, values in entries for pair in zip(keys.to_pylist(), values.to_pylist(), strict=True)]
        self.written[partition, group] = pairs
        return WriteStat(partition_path=partition, file_id=str(group), num_writes=len(pairs))


def obvious(sources: Sequence[Listed], groups: int) -> dict[tuple[str, int], Pairs]:
    found: dict[tuple[str, int], dict[str, bytes | None]] = {}
    for source in sources:
        for key, value in source.pairs:
            group = int(group_numbers(pa.array([key]), groups)[0])
            records = found.setdefault((source.partition, group), {})
            records[key] = records[key] if records.get(key) is not None else value
    return {name: sorted(records.items(), key=lambda one: one[0].encode()) for name, records in found.items()}


# A key has one value; deletes of it come before, after and beside.
PAIRS = st.lists(st.tuples(st.text(max_size=3), st.booleans())).map(
    lambda found: [(key, f"v{key}".encode() if alive else None) for key, alive in found]
)


@given(st.lists(st.tuples(st.sampled_from(["files", "record_index"]), PAIRS), max_size=4))
def test_each_group_gets_its_records_in_order_and_each_key_once(given: list[tuple[str, Pairs]]) -> None:
    sources = [Listed(*one) for one in given]
    writer = Kept()
    stats = run_in_threads(sources, writer, 2)
    assert writer.written == obvious(sources, 3)
    assert sorted((stat.partition_path, int(stat.file_id)) for stat in stats) == sorted(writer.written)


def test_an_error_of_a_source_is_raised() -> None:
    source = Listed("files", [("a", b"1"), ("a", b"2")])
    with pytest.raises(InvalidDataError):
        run_in_threads([source], Kept(), 2)
