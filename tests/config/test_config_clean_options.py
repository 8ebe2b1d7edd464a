import pickle

import pytest

from hudi_fast.config.service_options import CleanOptions
from hudi_fast.errors import ConfigError


def test_no_options_mean_hudi_s_defaults():
    options = CleanOptions.from_options({})
    assert options == CleanOptions()
    assert (options.automatic, options.before_write, options.incremental) == (True, "NONE", True)
    assert options.policy == "KEEP_LATEST_COMMITS"
    assert (options.commits_retained, options.hours_retained, options.versions_retained) == (10, 24, 3)
    assert (options.trigger_commits, options.has_trigger) == (1, False)
    assert (options.max_commits_to_clean, options.empty_clean_hours) == (None, -1)
    assert not options.filters_partitions


@pytest.mark.parametrize(
    ("key", "policy"),
    [
        ("hoodie.clean.commits.retained", "KEEP_LATEST_COMMITS"),
        ("hoodie.cleaner.hours.retained", "KEEP_LATEST_BY_HOURS"),
        ("hoodie.cleaner.fileversions.retained", "KEEP_LATEST_FILE_VERSIONS"),
    ],
)
def test_one_retention_alone_says_the_policy(key: str, policy: str):
    assert CleanOptions.from_options({key: "2"}).policy == policy
    both = {key: "2", "hoodie.cleaner.policy": "keep_latest_commits"}
    assert CleanOptions.from_options(both).policy == "KEEP_LATEST_COMMITS"
    other = "hoodie.clean.hours.retained" if "versions" in key else "hoodie.clean.fileversions.retained"
    assert CleanOptions.from_options({key: "2", other: "4"}).policy == "KEEP_LATEST_COMMITS"


def test_old_and_new_spellings_are_one_option():
    old = {
        "hoodie.cleaner.policy": "KEEP_LATEST_BY_HOURS",
        "hoodie.cleaner.commits.retained": "3",
        "hoodie.clean.max.commits": "4",
        "hoodie.cleaner.incremental.mode": "false",
        "hoodie.cleaner.partition.filter.regex": "2026.*",
        "hoodie.clean.async": "true",
    }
    new = {
        "hoodie.clean.policy": "KEEP_LATEST_BY_HOURS",
        "hoodie.clean.commits.retained": 3,
        "hoodie.clean.trigger.max.commits": 4,
        "hoodie.clean.incremental.enabled": False,
        "hoodie.clean.partition.filter.regex": "2026.*",
        "hoodie.clean.async.enabled": True,
    }
    assert CleanOptions.from_options(old) == CleanOptions.from_options(new)
    options = CleanOptions.from_options(old)
    assert (options.has_trigger, options.filters_partitions) == (True, True)
    assert pickle.loads(pickle.dumps(options)) == options


def test_what_a_write_takes_is_fine_and_clean_keys_that_change_nothing_too():
    given = {
        "hoodie.clean.optimize.using.local.engine.context": "true",
        "hoodie.cleaner.parallelism": "7",
        "hoodie.clean.allow.multiple": "true",
    }
    assert CleanOptions.from_options({**given, "hoodie.datasource.write.operation": "upsert"}) == CleanOptions()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.clean.async.enabled", "perhaps"),
        ("hoodie.clean.commits.retained", "0"),
        ("hoodie.clean.hours.retained", "-1"),
        ("hoodie.clean.fileversions.retained", "0"),
        ("hoodie.clean.policy", "KEEP_EVERYTHING"),
        ("hoodie.clean.trigger.max.commits", "0"),
        ("hoodie.clean.trigger.strategy", "SOMETIMES"),
        ("hoodie.clean.max.commits.to.clean", "0"),
        ("hoodie.prewrite.cleaner.policy", "PERHAPS"),
        ("hoodie.write.empty.clean.interval.hours", "-2"),
    ],
)
def test_values_that_mean_nothing_are_refused(key: str, value: str):
    with pytest.raises(ConfigError, match=key.replace(".", r"\.")):
        CleanOptions.from_options({key: value})


def test_partitions_are_filtered_only_where_no_later_clean_relies_on_this_one():
    with pytest.raises(ConfigError, match="incremental"):
        CleanOptions.from_options({"hoodie.clean.partition.filter.selected": "a,b"})
    whole = {"hoodie.clean.incremental.enabled": "false"}
    assert CleanOptions.from_options(
        {**whole, "hoodie.clean.partition.filter.selected": "a,b"}
    ).partitions_selected == (
        "a",
        "b",
    )
    with pytest.raises(ConfigError, match="regular expression"):
        CleanOptions.from_options({**whole, "hoodie.clean.partition.filter.regex": "(a"})
