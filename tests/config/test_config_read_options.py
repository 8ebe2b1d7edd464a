from datetime import datetime

import pytest

from hudi_fast.config.read_options import EARLIEST, ReadOptions
from hudi_fast.errors import ConfigError, HudiWarning, UnsupportedFeatureError

QUERY = "hoodie.datasource.query.type"
BEGIN = "hoodie.datasource.read.begin.instanttime"
END = "hoodie.datasource.read.end.instanttime"


def test_no_options_mean_a_snapshot_of_the_newest_state():
    options = ReadOptions.from_options({"path": "/t"})
    assert (options.query_type, options.as_of, options.path) == ("snapshot", None, "/t")
    assert repr(options) == "ReadOptions(path='/t')"


def test_a_moment_is_a_time_of_a_query():
    moment = datetime(2024, 2, 29, 1, 2, 3, 4567)
    assert ReadOptions.from_options({"as.of.instant": moment}).as_of == "20240229010203004"
    options = ReadOptions.from_options({QUERY: "incremental", BEGIN: moment, END: moment})
    assert (options.begin, options.end) == ("20240229010203004", "20240229010203004")


def test_the_bounds_of_an_incremental_query_are_instants():
    options = ReadOptions.from_options({QUERY: "incremental", BEGIN: "earliest", END: "20240101000000000"})
    assert (options.begin, options.end) == (EARLIEST, "20240101000000000")


def test_changes_and_unmerged_log_files_may_be_asked_for():
    cdc = {QUERY: "incremental", BEGIN: "000", "hoodie.datasource.query.incremental.format": "cdc"}
    assert ReadOptions.from_options(cdc).incremental_format == "cdc"
    assert ReadOptions.from_options({"hoodie.datasource.merge.type": "skip_merge"}).merge_type == "skip_merge"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({QUERY: "incremental"}, BEGIN),
        ({QUERY: "incremental", BEGIN: "000", "as.of.instant": "20240101000000"}, r"as\.of\.instant"),
        ({BEGIN: "20240102000000000", END: "20240101000000000"}, "ends before it begins"),
        ({END: "earliest"}, END),
        ({BEGIN: "yesterday"}, BEGIN),
        ({QUERY: "latest"}, "snapshot, read_optimized, incremental"),
    ],
)
def test_a_range_that_makes_no_sense_is_refused(given, said):
    with pytest.raises(ConfigError, match=said):
        ReadOptions.from_options(given)


def test_reading_options_that_would_change_the_rows_are_refused():
    with pytest.raises(UnsupportedFeatureError, match=r"hoodie\.datasource\.read\.paths"):
        ReadOptions.from_options({"hoodie.datasource.read.paths": "/a,/b"})
    with pytest.raises(UnsupportedFeatureError, match=r"Set hoodie\.datasource\.query\.type"):
        ReadOptions.from_options({"hoodie.datasource.view.type": "read_optimized"})


def test_a_merger_is_a_function() -> None:
    assert ReadOptions.from_options({"hudi_fast.merger": max}).merger is max
    assert ReadOptions.from_options({}).merger is None
    with pytest.raises(ConfigError, match=r"hudi_fast\.merger='max' is not a function"):
        ReadOptions.from_options({"hudi_fast.merger": "max"})


def test_positions_are_used_when_asked_for() -> None:
    assert not ReadOptions.from_options({}).use_positions
    assert ReadOptions.from_options({"hoodie.merge.use.record.positions": "true"}).use_positions


@pytest.mark.parametrize("kind", ["snapshot", "read_optimized"])
def test_bounds_of_a_range_are_named_where_they_have_no_effect(kind):
    with pytest.warns(HudiWarning, match=f"{BEGIN}, {END} have no effect on a {kind} query.*query.type=incremental"):
        ReadOptions.from_options({QUERY: kind, BEGIN: "20240101000000000", END: "20240102000000000"})
    with pytest.warns(HudiWarning, match=r"incr\.path\.glob has no effect"):
        ReadOptions.from_options({QUERY: kind, "hoodie.datasource.read.incr.path.glob": "/a/*"})
