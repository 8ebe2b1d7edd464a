import pickle

import pytest

from hudi_fast.config.rewrite_options import CompactionOptions
from hudi_fast.errors import ConfigError


def test_no_options_mean_hudi_s_defaults():
    options = CompactionOptions.from_options({})
    assert options == CompactionOptions()
    assert (options.inline, options.schedule_inline, options.log_inline) == (False, False, False)
    assert (options.trigger, options.max_delta_commits, options.max_delta_seconds) == ("NUM_COMMITS", 5, 3600)
    assert options.strategies == ("org.apache.hudi.table.action.compact.strategy.LogFileSizeBasedCompactionStrategy",)
    assert (options.target_io_mb, options.log_blocks_threshold) == (512_000, 5)
    assert (options.has_trigger, options.has_log_trigger) == (False, False)


def test_text_values_become_typed_ones_and_say_that_a_trigger_was_given():
    options = CompactionOptions.from_options(
        {
            "hoodie.compact.inline": "true",
            "hoodie.compact.inline.max.delta.commits": "2",
            "hoodie.compaction.strategy": "DayBasedCompactionStrategy, BoundedIOCompactionStrategy",
            "hoodie.datasource.write.operation": "upsert",
        }
    )
    assert (options.inline, options.max_delta_commits, options.has_trigger) == (True, 2, True)
    assert options.strategies == ("DayBasedCompactionStrategy", "BoundedIOCompactionStrategy")
    assert pickle.loads(pickle.dumps(options)) == options


def test_a_default_that_is_given_counts_as_a_trigger():
    assert CompactionOptions.from_options({"hoodie.compact.inline.max.delta.commits": 5}).has_trigger
    assert CompactionOptions.from_options({"hoodie.log.compaction.blocks.threshold": 5}).has_log_trigger


def test_compacting_and_only_planning_after_a_write_contradict_each_other():
    with pytest.raises(ConfigError, match="not both"):
        CompactionOptions.from_options({"hoodie.compact.inline": "true", "hoodie.compact.schedule.inline": "true"})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.compact.inline.max.delta.commits", "0"),
        ("hoodie.compact.inline.trigger.strategy", "SOMETIMES"),
        ("hoodie.compaction.target.io", "-1"),
        ("hoodie.log.compaction.blocks.threshold", "many"),
    ],
)
def test_values_that_mean_nothing_are_refused(key: str, value: str):
    with pytest.raises(ConfigError, match=key.replace(".", r"\.")):
        CompactionOptions.from_options({key: value})
