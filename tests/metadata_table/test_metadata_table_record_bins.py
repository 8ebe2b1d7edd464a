"""Records of file groups: sorted, one per key, whether memory or local disk holds them."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_fast.errors import InvalidDataError
from hudi_fast.metadata_table.updates import record_bins
from hudi_fast.metadata_table.updates.record_bins import RECORDS, Entries, GroupBins, combined
from tests.support.examples import examples

Pairs = list[tuple[str, bytes | None]]


def table_of(pairs: Iterable[tuple[str, bytes | None]]) -> pa.Table:
    listed = list(pairs)
    return pa.table([[key for key, _ in listed], [value for _, value in listed]], schema=RECORDS)


def pairs_of(entries: Entries) -> Pairs:
    keys, values = entries
    return list(zip(keys.to_pylist(), values.to_pylist(), strict=True))


def taken(bins: GroupBins, name: tuple[str, int]) -> Pairs:
    return [pair for piece in bins.take(name) for pair in pairs_of(piece)]


def test_a_value_wins_over_deletes_of_its_key() -> None:
    records = pa.table([["b", "a", "b", "a", "c"], [None, b"1", b"2", None, None]], schema=RECORDS)
    assert pairs_of(combined("record_index", records)) == [("a", b"1"), ("b", b"2"), ("c", None)]


def test_one_key_in_two_places_is_refused_and_named() -> None:
    records = pa.table([["b", "a", "b"], [b"1", b"1", b"2"]], schema=RECORDS)
    with pytest.raises(InvalidDataError, match=r"record_index would get 1 keys twice.*'b'"):
        combined("record_index", records)


def test_the_same_record_twice_is_one() -> None:
    records = pa.table([["b", "b"], [b"1", b"1"]], schema=RECORDS)
    assert pairs_of(combined("record_index", records)) == [("b", b"1")]


# Long shared beginnings and endings, zero bytes and characters of all lengths: whatever a comparison could cut off.
KEYS = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "a" * 9]),
    st.text(st.sampled_from("ab\x00é€\U0001f600"), max_size=3),
    st.sampled_from(["", "\x00", "z" * 9]),
)


@settings(max_examples=examples(200))
@given(st.lists(KEYS, max_size=12))
def test_keys_come_in_the_order_of_their_bytes(keys: list[str]) -> None:
    found = pairs_of(combined("files", table_of((key, key.encode()) for key in keys)))
    assert [key for key, _ in found] == sorted(set(keys), key=str.encode)
    assert all(value == key.encode() for key, value in found)


PUTS = st.lists(
    st.tuples(st.integers(0, 2), st.lists(st.tuples(KEYS, st.booleans()), min_size=1, max_size=8)), max_size=12
)


@pytest.mark.slow
@given(PUTS, st.integers(1, 400), st.integers(1, 60))
def test_runs_on_disk_give_what_memory_gives(
    puts: list[tuple[int, list[tuple[str, bool]]]], budget: int, batch: int
) -> None:
    expected: dict[int, dict[str, bytes | None]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_bins, "_BATCH", batch)
        patch.setattr(record_bins, "_RANGE", 2)
        with GroupBins(budget) as bins:
            for group, keys in puts:
                pairs = [(key, f"v{key}".encode() if alive else None) for key, alive in keys]
                bins.put(("files", group), table_of(pairs))
                known = expected.setdefault(group, {})
                for key, value in pairs:
                    known[key] = known.get(key) or value
            assert bins.names() == [("files", group) for group in sorted(expected)]
            for group, known in expected.items():
                assert taken(bins, ("files", group)) == sorted(known.items(), key=lambda one: one[0].encode())


def test_one_key_in_two_places_is_refused_although_they_are_in_two_runs() -> None:
    with GroupBins(budget=1) as bins:
        bins.put(("record_index", 0), table_of([("a", b"1"), ("b", b"2")]))
        bins.put(("record_index", 0), table_of([("b", b"3")]))
        bins.names()
        with pytest.raises(InvalidDataError, match="'b'"):
            list(bins.take(("record_index", 0)))


def test_threads_put_and_take_at_the_same_time(tmp_path: Path) -> None:
    with GroupBins(budget=10_000, folder=str(tmp_path)) as bins, ThreadPoolExecutor(4) as pool:

        def put(number: int) -> None:
            for start in range(number, 4000, 8):
                bins.put(("files", start % 3), table_of([(f"k{start:05}", b"v" * 50)]))

        list(pool.map(put, range(8)))
        assert len(list(tmp_path.iterdir())) == 1
        found = list(pool.map(lambda name: taken(bins, name), bins.names()))
    assert not list(tmp_path.iterdir())
    assert found == [[(f"k{start:05}", b"v" * 50) for start in range(group, 4000, 3)] for group in range(3)]


def test_unordered_records_are_all_kept_with_their_repetitions() -> None:
    table = table_of([("b", b"1"), ("a", b"2"), ("b", b"3")])
    with GroupBins(budget=2 * table.nbytes, ordered=False) as bins:
        for _ in range(10):
            bins.put(("files", 0), table)
        bins.names()
        assert sorted(taken(bins, ("files", 0))) == sorted([("b", b"1"), ("a", b"2"), ("b", b"3")] * 10)
