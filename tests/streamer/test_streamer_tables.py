"""Streams of several tables from one property file."""

from __future__ import annotations

import json

import pytest

import hudi_fast as hf
from hudi_fast.streamer.tables import _complete_registry, table_streams

INGESTION = "hoodie.deltastreamer.ingestion."


@pytest.fixture
def job(tmp_path):
    """Properties of two tables, whose files are in a folder; each table has a folder of input."""
    (tmp_path / "conf").mkdir()
    for number, name in enumerate(("orders", "customers"), 1):
        (tmp_path / name).mkdir()
        rows = [{"id": key} for key in range(number)]
        (tmp_path / name / "1.json").write_text("\n".join(map(json.dumps, rows)))
        (tmp_path / "conf" / f"shop_{name}_config.properties").write_text(
            f"hoodie.streamer.source.dfs.root={tmp_path}/{name}\nhoodie.datasource.write.recordkey.field=id\n"
        )
    return {f"{INGESTION}tablesToBeIngested": "shop.orders, shop.customers", "hoodie.metadata.enable": "false"}


def streams(job, tmp_path, **more):
    folder = {"base_path_prefix": f"{tmp_path}/lake/", "config_folder": f"{tmp_path}/conf"}
    return list(table_streams(job, **{**folder, "source_class": "JsonDFSSource", **more}))


def test_each_table_has_its_own_file_and_path(job, tmp_path):
    found = streams(job, tmp_path)
    assert [one.name for one in found] == ["shop.orders", "shop.customers"]
    assert [one.streamer.turn().inserts for one in found] == [1, 2]
    for name, count in (("orders", 1), ("customers", 2)):
        table = hf.HudiTable.open(tmp_path / "lake" / "shop" / name)
        assert (table.count(), table.config.name) == (count, name)


def test_a_file_may_be_elsewhere_and_name_the_path(job, tmp_path):
    file = tmp_path / "special.properties"
    file.write_text(
        f"hoodie.streamer.source.dfs.root={tmp_path}/orders\nhoodie.datasource.write.recordkey.field=id\n"
        f"{INGESTION}targetBasePath={tmp_path}/special\nhoodie.streamer.transformer.class=a.FlatteningTransformer\n"
    )
    job |= {f"{INGESTION}tablesToBeIngested": "orders", f"{INGESTION}default.orders.configFile": str(file)}
    (one,) = streams(job, tmp_path, base_path_prefix=None, config_folder=None)
    assert (one.name, one.streamer.path) == ("default.orders", f"{tmp_path}/special")
    assert one.streamer.check()["transformers"] == 1


def test_properties_of_a_table_win_over_those_of_all(job, tmp_path):
    job["hoodie.datasource.write.recordkey.field"] = "other"
    assert [one.streamer.turn().inserts for one in streams(job, tmp_path)] == [1, 2]


@pytest.mark.parametrize(
    ("change", "more", "message"),
    [
        ({f"{INGESTION}tablesToBeIngested": " "}, {}, r"need the property hoodie\.streamer\.ingestion\.tablesToBe"),
        ({}, {"config_folder": None}, r"The table shop\.orders has no property file: set .*shop_orders_config\.prop"),
        ({}, {"base_path_prefix": None}, r"The table shop\.orders has no path: give --base-path-prefix"),
        ({f"{INGESTION}tablesToBeIngested": "shop.nothing"}, {}, r"shop_nothing_config\.properties cannot be read"),
    ],
)
def test_what_is_missing_is_told(job, tmp_path, change, more, message):
    with pytest.raises(hf.ConfigError, match=message):
        streams(job | change, tmp_path, **more)


def test_the_address_of_a_schema_is_made_of_that_of_the_registry_and_the_topic():
    given = {
        "hoodie.deltastreamer.schemaprovider.registry.baseUrl": "http://host:8081/subjects/",
        "hoodie.deltastreamer.schemaprovider.registry.urlSuffix": "-value/versions/latest",
        "hoodie.streamer.source.kafka.topic": "orders",
    }
    _complete_registry(given)
    expected = "http://host:8081/subjects/orders-value/versions/latest"
    assert given["hoodie.streamer.schemaprovider.registry.url"] == expected
