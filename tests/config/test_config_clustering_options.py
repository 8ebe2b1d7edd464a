"""Options of clustering: defaults of Apache Hudi, spellings, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_fast.config.rewrite_options import ClusteringOptions, allows_updates
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import ConfigError, UnsupportedFeatureError

PLAN = "hoodie.clustering.plan.strategy."
UPDATES = "hoodie.clustering.updates.strategy"
PACKAGE = "org.apache.hudi.client.clustering.update.strategy."


def test_no_options_mean_hudi_s_defaults() -> None:
    options = ClusteringOptions.from_options({})
    assert options == ClusteringOptions()
    assert (options.inline, options.schedule_inline, options.asynchronous, options.max_commits) == (False,) * 3 + (0,)
    assert (options.inline_max_commits, options.async_max_commits) == (4, 4)
    assert (options.small_file_limit, options.target_bytes) == (314572800, 1073741824)
    assert (options.max_group_bytes, options.max_groups, options.single_groups) == (2147483648, 30, True)
    assert (options.sort_columns, options.slice_order, options.partition_filter) == ((), ("SIZE",), "NONE")
    assert (options.curve, options.curve_build, options.curve_sample_rows) == ("LINEAR", "DIRECT", 200000)
    assert not options.allows_updates
    assert options.explicit == frozenset()


def test_a_working_dictionary_resolves_in_old_and_new_spellings() -> None:
    options = ClusteringOptions.from_options(
        {
            "hoodie.datasource.clustering.inline.enable": "true",
            "hoodie.clustering.inline.max.commits": "2",
            f"{PLAN}sort.columns": "city, ts",
            f"{PLAN}file.slices.sort.by": "instant_time,size",
            "hoodie.file.stitching.binary.copy.schema.evolution.enable": "true",
            "hoodie.layout.optimize.strategy": "zorder",
            UPDATES: f"{PACKAGE}SparkAllowUpdateStrategy",
            "hoodie.datasource.write.recordkey.field": "id",
        }
    )
    assert (options.inline, options.max_commits, options.sort_columns) == (True, 2, ("city", "ts"))
    assert options.slice_order == ("INSTANT_TIME", "SIZE")
    assert (options.copy_evolved, options.curve, options.allows_updates) == (True, "ZORDER", True)


@pytest.mark.parametrize(
    ("given", "curve"), [("z-order", "ZORDER"), ("Z-Order", "ZORDER"), ("zorder", "ZORDER"), ("hilbert", "HILBERT")]
)
def test_curves_have_the_spellings_of_apache_hudi(given: str, curve: str) -> None:
    assert ClusteringOptions.from_options({"hoodie.layout.optimize.strategy": given}).curve == curve


@pytest.mark.parametrize(
    ("given", "commits"),
    [
        ({"hoodie.clustering.inline": "true"}, 3),
        ({"hoodie.clustering.schedule.inline": "true"}, 7),
        ({"hoodie.clustering.async.enabled": "true"}, 7),
        ({"hoodie.datasource.clustering.async.enable": "true", "hoodie.clustering.inline": "true"}, 7),
    ],
)
def test_the_mode_that_is_on_says_how_many_commits_to_wait_for(given: dict[str, str], commits: int) -> None:
    limits = {"hoodie.clustering.inline.max.commits": "3", "hoodie.clustering.async.max.commits": "7"}
    assert ClusteringOptions.from_options({**limits, **given}).max_commits == commits


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({f"{PLAN}file.slices.sort.by": "NAME"}, ConfigError, "SIZE, INSTANT_TIME"),
        ({"hoodie.clustering.plan.partition.filter.mode": "WEEKLY"}, ConfigError, "DAY_ROLLING"),
        ({f"{PLAN}max.num.groups": "0"}, ConfigError, "at least 1"),
        ({"hoodie.layout.optimize.strategy": "PEANO"}, ConfigError, "HILBERT"),
        ({UPDATES: "com.example.Update"}, UnsupportedFeatureError, "SparkAllowUpdateStrategy"),
    ],
)
def test_values_that_mean_nothing_are_refused(given: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        ClusteringOptions.from_options(given)


def test_a_write_knows_what_it_may_do_to_clusterings_that_wait() -> None:
    assert not WriteOptions().allows_clustering_updates
    assert WriteOptions.from_options({UPDATES: "SparkAllowUpdateStrategy"}).allows_clustering_updates
    assert not allows_updates(f"{PACKAGE}SparkRejectUpdateStrategy")
    assert not allows_updates(f"{PACKAGE}SparkConsistentBucketDuplicateUpdateStrategy")
    with pytest.raises(UnsupportedFeatureError, match=UPDATES):
        WriteOptions.from_options({UPDATES: "com.example.Update"})
