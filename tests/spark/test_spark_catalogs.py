"""A write on Spark syncs the metastore of the session.

Module: hudi_fast.spark.session.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hudi_fast as hf
from hudi_fast.config.sync_options import SyncOptions
from hudi_fast.spark.session import sync_defaults
from tests.catalogs.conftest import HIVE, rides, trip_options
from tests.servers.hive_entries import entries_at
from tests.support.sessions import hadoop_settings


def test_write_syncs_the_metastore_of_the_session(spark: Any, tmp_path: Path, hive_metastore: Any) -> None:
    rows = spark.createDataFrame(rides(("a", "Oslo"), ("b", "Rome")).to_pandas())
    options = {**trip_options(), f"{HIVE}enable": "true", f"{HIVE}database": "from_spark"}
    with hadoop_settings(spark, {"hive.metastore.uris": hive_metastore.uri}):
        hf.write(rows, tmp_path, options)
    entries = entries_at(hive_metastore.port, "from_spark")
    assert len(entries["trips"]["partitions"]) == 2
    assert entries["trips"]["table"]["parameters"]["spark.sql.create.version"] == spark.version


def test_options_come_before_those_of_the_session(spark: Any) -> None:
    given = SyncOptions(metastore_uris="thrift://one", spark_version="3")
    assert sync_defaults(spark, given) == given
    assert sync_defaults(spark, SyncOptions()) == SyncOptions(spark_version=spark.version)
