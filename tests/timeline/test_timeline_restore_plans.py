"""Bodies of restores: those of Apache Hudi are written back alike, any plan survives the way there and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.avro.container import read_single_record
from hudi_fast.timeline.plans import RollbackMetadata, RollbackPartition
from hudi_fast.timeline.service_plans import (
    RestoreMetadata,
    RestorePlan,
    decode_restore_metadata,
    decode_restore_plan,
    encode_restore_metadata,
    encode_restore_plan,
)
from tests.timeline.stored_timelines import bodies

TIMES = st.text("0123456789", min_size=17, max_size=17)
INSTANTS = st.lists(st.tuples(TIMES, st.sampled_from(["commit", "deltacommit", "replacecommit"]))).map(tuple)
LOGS = st.dictionaries(st.text(), st.integers(0, 2**62), max_size=3)
PARTITIONS = st.builds(
    RollbackPartition, st.text(), st.lists(st.text()).map(tuple), st.lists(st.text()).map(tuple), LOGS, LOGS
)


def rollback_of(instant: str, action: str, parts: list[RollbackPartition]) -> RollbackMetadata:
    by_path = {one.partition_path: one for one in parts}
    return RollbackMetadata("20300101000000001", instant, action, 7, tuple(by_path.values()))


def test_bodies_of_apache_hudi_are_written_back_alike() -> None:
    ((_, requested),) = bodies("cow_v9_restored", "restore.requested")
    plan = decode_restore_plan(requested)
    assert plan.savepoint == "20261121054955320"
    assert plan.instants == (("20261121054957494", "commit"), ("20261121054956363", "commit"))
    assert read_single_record(encode_restore_plan(plan)) == read_single_record(requested)
    ((_, completed),) = bodies("cow_v9_restored", ".restore")
    metadata = decode_restore_metadata(completed)
    assert (metadata.start_time, metadata.instants) == ("20261121054959727", plan.instants)
    assert metadata.rollbacks["20261121054956363"].start_time == "20261121054959974"
    assert len(metadata.rollbacks["20261121054956363"].partitions) == 3
    assert read_single_record(encode_restore_metadata(metadata)) == read_single_record(completed)


@given(TIMES, INSTANTS)
def test_any_plan_is_read_as_it_was_written(savepoint: str, instants: tuple[tuple[str, str], ...]) -> None:
    plan = RestorePlan(savepoint, instants)
    assert decode_restore_plan(encode_restore_plan(plan)) == plan


@given(TIMES, st.integers(0, 2**62), INSTANTS, st.lists(PARTITIONS, max_size=3))
def test_any_metadata_is_read_as_it_was_written(
    start: str, millis: int, instants: tuple[tuple[str, str], ...], parts: list[RollbackPartition]
) -> None:
    rollbacks = {instant: rollback_of(instant, action, parts) for instant, action in instants}
    metadata = RestoreMetadata(start, millis, instants, rollbacks)
    assert decode_restore_metadata(encode_restore_metadata(metadata)) == metadata


@pytest.mark.parametrize("decode", [decode_restore_plan, decode_restore_metadata])
def test_another_record_or_damage_is_named(decode: object) -> None:
    ((_, savepoint),) = bodies("cow_v9_restored", ".savepoint")
    for body in (savepoint, b"", savepoint[:40]):
        with pytest.raises(CorruptTableError):
            decode(body, "x")  # type: ignore[operator]
