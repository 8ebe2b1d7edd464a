import pytest

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.avro.container import read_single_record
from hudi_fast.timeline import plans, service_plans
from hudi_fast.timeline.service_plans import RequestedReplace
from tests.timeline.stored_timelines import NAMES, bodies

KINDS = {
    "rollback.requested": (plans.decode_rollback_plan, plans.encode_rollback_plan, 2),
    ".rollback": (plans.decode_rollback_metadata, plans.encode_rollback_metadata, 2),
    "clean.requested": (plans.decode_clean_plan, plans.encode_clean_plan, 5),
    ".clean": (plans.decode_clean_metadata, plans.encode_clean_metadata, 5),
    ".savepoint": (plans.decode_savepoint, plans.encode_savepoint, 2),
    "compaction.requested": (service_plans.decode_compaction_plan, service_plans.encode_compaction_plan, 7),
    "replacecommit.requested": (service_plans.decode_requested_replace, service_plans.encode_requested_replace, 2),
    "clustering.requested": (service_plans.decode_requested_replace, service_plans.encode_requested_replace, 2),
}
NEW_MEMBERS = {"missingSchedulePartitions"}


@pytest.mark.parametrize("ending", KINDS)
def test_bodies_of_apache_hudi_are_written_back_alike(ending):
    decode, encode, expected = KINDS[ending]
    found = [body for name in NAMES for _, body in bodies(name, ending)]
    assert len(found) >= expected
    for body in found:
        theirs, ours = read_single_record(body), read_single_record(encode(decode(body)))
        assert {k: v for k, v in ours.items() if k in theirs} == theirs
        assert ours.keys() - theirs.keys() <= NEW_MEMBERS


def test_a_clean_says_what_can_still_be_read():
    ((_, body),) = [one for one in bodies("cow_v9_archived", ".clean") if one[0].startswith("20261121054933947_")]
    metadata = plans.decode_clean_metadata(body)
    assert metadata.earliest_instant_to_retain == "20261121054930362"
    assert [one.partition_path for one in metadata.partitions] == ["p0", "p1", "p2"]
    assert metadata.partitions[0].deleted == (
        "43582ed6-0aaf-4687-9eb4-47b1cc876a47-0_0-3274-7858_20261121054926579.parquet",
    )


def test_rollbacks_of_both_layouts():
    ((_, new),) = bodies("cow_v9_savepoint_rollback", "rollback.requested")
    plan = plans.decode_rollback_plan(new)
    assert (plan.instant, plan.action, len(plan.requests)) == ("20261121054951416", "commit", 3)
    assert plan.requests[0].files_to_be_deleted[0].endswith("0-3718-8809_20261121054951416.parquet")
    ((_, old),) = bodies("h015_mor_rollback_compacted", "rollback.requested")
    request = plans.decode_rollback_plan(old).requests[0]
    assert request.latest_base_instant == "20261121055215805"
    assert list(request.log_blocks_to_be_deleted.values()) == [1278]


def test_a_compaction_plan_names_slices():
    (_, body), *_ = bodies("mor_v6_compacted", "compaction.requested")
    operation = service_plans.decode_compaction_plan(body).operations[0]
    assert operation.base_instant == "20261121054608988"
    assert operation.base_file.endswith("_20261121054608988.parquet")
    assert all(name.startswith(f".{operation.file_id}_") for name in operation.log_files)


def test_a_clustering_plan_names_slices():
    (_, body), *_ = bodies("cow_v9_clustered", "clustering.requested")
    requested = service_plans.decode_requested_replace(body)
    assert requested.operation_type == "CLUSTER"
    group = requested.clustering.groups[0]
    assert {one.partition_path for one in group.slices} == {"p0"}
    assert all(one.base_path.endswith(".parquet") for one in group.slices)


def test_an_insert_overwrite_requests_nothing():
    record = read_single_record(service_plans.encode_requested_replace(RequestedReplace()))
    assert set(record.values()) == {None}
    assert service_plans.decode_requested_replace(b"") == RequestedReplace()


@pytest.mark.parametrize("ending", KINDS)
def test_another_record_or_damage_is_named(ending):
    decode = KINDS[ending][0]
    (_, commit), *_ = bodies("cow_v8_mixed", ".commit")
    for data in (commit, commit[:50], b"\x00"):
        with pytest.raises(CorruptTableError, match="some/file"):
            decode(data, "some/file")
