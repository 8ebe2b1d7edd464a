"""Plans of bootstraps, and the rows that they copy."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_fast.bootstrapping.bootstrap import copied_batches, copied_rows
from hudi_fast.bootstrapping.bootstrap_plan import BootstrapPlan, bootstrap_plan
from hudi_fast.errors import ConfigError, InvalidDataError
from hudi_fast.storage.base import Storage

OPTIONS = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
SELECTOR = "hoodie.bootstrap.mode.selector"
FULL = "org.apache.hudi.client.bootstrap.selector.FullRecordBootstrapModeSelector"


@pytest.fixture
def source(tmp_path: Path) -> Storage:
    """Two files in two folders, ``city=Rome`` and ``city=Oslo``."""
    for number, city in enumerate(("Rome", "Oslo")):
        (tmp_path / f"city={city}").mkdir()
        rows = pa.table({"id": [f"k{number}"], "n": pa.array([number], pa.int32())})
        pq.write_table(rows, tmp_path / f"city={city}" / "f.parquet")
    return Storage(tmp_path)


def plan(source: Storage, **more: str) -> BootstrapPlan:
    return bootstrap_plan(source, {**OPTIONS, **more}, "/lake/table")


def test_each_file_gets_a_skeleton_in_the_partition_of_its_folder(source: Storage) -> None:
    made = plan(source)
    assert [(one.partition, one.size) for one in made.skeletons] == [
        (one.folder, file.size) for one in made.source.partitions for file in one.files
    ]
    assert len({one.file_id for one in made.skeletons}) == 2
    assert made.copied == ()
    assert made.schema.names == ["id", "n", "city"]
    assert made.properties["hoodie.table.partition.fields"] == "city"
    assert made.properties["hoodie.datasource.write.hive_style_partitioning"] == "true"
    assert made.properties["hoodie.bootstrap.base.path"] == source.uri


def test_rows_are_copied_when_the_options_say_so(source: Storage) -> None:
    made = plan(source, **{SELECTOR: FULL})
    assert made.skeletons == ()
    assert [dict(one.values) for one in made.copied] == [{"city": "Oslo"}, {"city": "Rome"}]
    rows = [
        row for one in made.copied for batch in copied_batches(source, one, made.schema) for row in batch.to_pylist()
    ]
    assert rows == [{"id": "k1", "n": 1, "city": "Oslo"}, {"id": "k0", "n": 0, "city": "Rome"}]
    units = copied_rows(made)
    assert units.schema == made.schema
    assert [row for unit in units.units for batch in units.read(unit) for row in batch.to_pylist()] == rows


def test_a_folder_must_be_the_partition_of_its_rows(source: Storage) -> None:
    with pytest.raises(ConfigError, match="hive_style_partitioning"):
        plan(source, **{"hoodie.datasource.write.hive_style_partitioning": "false"})
    with pytest.raises(ConfigError, match=r"1 level.*\['city', 'n'\]"):
        plan(source, **{"hoodie.datasource.write.partitionpath.field": "city,n"})


def test_a_key_needs_its_columns(source: Storage) -> None:
    with pytest.raises(InvalidDataError, match=r"record key.*\['nope'\]"):
        plan(source, **{"hoodie.datasource.write.recordkey.field": "nope"})
