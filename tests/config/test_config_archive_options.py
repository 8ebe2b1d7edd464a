import pickle

import pytest

from hudi_fast.config.service_options import ArchiveOptions
from hudi_fast.errors import ConfigError


def test_no_options_mean_hudi_s_defaults():
    options = ArchiveOptions.from_options({})
    assert options == ArchiveOptions()
    assert (options.automatic, options.min_commits, options.max_commits) == (True, 20, 30)
    assert (options.asynchronous, options.limit_instants) == (False, None)
    assert (options.batch_records, options.beyond_savepoint, options.block_on_clean) == (10, False, False)
    assert (options.merge, options.merge_files, options.merge_small_bytes) == (False, 10, 20 << 20)
    assert (options.compaction_files, options.compaction_target_bytes, options.manifests_retained) == (
        10,
        1000 << 20,
        3,
    )


def test_text_values_become_typed_ones():
    options = ArchiveOptions.from_options(
        {
            "hoodie.keep.min.commits": "3",
            "hoodie.keep.max.commits": "4",
            "hoodie.archive.automatic": "false",
            "hoodie.archive.beyond.savepoint": "true",
            "hoodie.timeline.compaction.batch.size": "2",
            "hoodie.archive.async": "true",
            "hoodie.archive.limit.instants": "7",
            "hoodie.datasource.write.operation": "upsert",
        }
    )
    assert (options.min_commits, options.max_commits, options.automatic) == (3, 4, False)
    assert (options.beyond_savepoint, options.compaction_files) == (True, 2)
    assert (options.asynchronous, options.limit_instants) == (True, 7)
    assert pickle.loads(pickle.dumps(options)) == options


@pytest.mark.parametrize(("least", "limit"), [(5, 5), (6, 5), (30, 30)])
def test_archiving_must_leave_fewer_commits_than_it_begins_at(least: int, limit: int):
    with pytest.raises(ConfigError, match=rf"hoodie\.keep\.max\.commits={limit} to be greater than .*commits={least}"):
        ArchiveOptions.from_options({"hoodie.keep.min.commits": least, "hoodie.keep.max.commits": limit})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.keep.min.commits", "0"),
        ("hoodie.archive.limit.instants", "-1"),
        ("hoodie.archive.async", "later"),
        ("hoodie.commits.archival.batch", "0"),
        ("hoodie.timeline.compaction.batch.size", "1"),
        ("hoodie.timeline.manifest.retained.versions", "none"),
    ],
)
def test_values_that_mean_nothing_are_refused(key: str, value: str):
    with pytest.raises(ConfigError, match=key.replace(".", r"\.")):
        ArchiveOptions.from_options({key: value})
