"""``CALL`` in a Spark session: tables of its catalog, its settings, its tasks, and results as DataFrames.

Source: ``HoodieProcedures`` of Hudi 1.2.0.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import Any

from hudi_fast.procedures.call import Use, bound, rows_of
from hudi_fast.procedures.values import Rows
from hudi_fast.spark.storage import storage_of
from hudi_fast.spark_api.sql.catalog import Entry
from hudi_fast.spark_api.sql.changes import write_settings
from hudi_fast.spark_api.sql.reading import constant, read_entry, table_said
from hudi_fast.sql_text.procedures import SIGNATURES
from hudi_fast.sql_text.statements import Call
from hudi_fast.table import HudiTable

__all__ = ["call_procedure"]


def call_procedure(spark: Any, statement: Call) -> Any:
    """Execute a procedure.

    Returns:
        A DataFrame with the procedure's columns.

    Raises:
        ConfigError: unknown, missing or wrong arguments.
        UnsupportedFeatureError: hudi_fast does not have the procedure.
        HudiError: of the service.
    """
    name = statement.table.parts[-1].lower()
    values = bound(name, statement.arguments, partial(constant, spark))
    entry_of = cache(lambda said: table_said(spark, said, f"CALL {name}"))
    use = Use(
        name,
        values,
        lambda said: HudiTable(storage_of(spark, entry_of(said).path)),
        lambda said: write_settings(spark, entry_of(said)),
        spark,
    )
    if name in ("copy_to_table", "copy_to_temp_view"):
        rows = _copy(use, entry_of(use.said))
    elif name == "hive_sync":
        rows = rows_of(replace(use, entry=entry_of(use.said).name))
    else:
        rows = rows_of(use)
    return spark.createDataFrame([tuple(row) for row in rows], SIGNATURES[name].columns)


def _copy(use: Use, entry: Entry) -> Rows:
    values = use.values
    options = {"hoodie.datasource.query.type": values["query_type"]}
    named = {
        "begin_instance_time": "hoodie.datasource.read.begin.instanttime",
        "end_instance_time": "hoodie.datasource.read.end.instanttime",
        "as_of_instant": "as.of.instant",
    }
    options |= {key: values[name] for name, key in named.items() if values.get(name)}
    frame = read_entry(use.spark, entry, options)
    if use.name == "copy_to_temp_view":
        make = {
            (False, False): frame.createTempView,
            (True, False): frame.createOrReplaceTempView,
            (False, True): frame.createGlobalTempView,
            (True, True): frame.createOrReplaceGlobalTempView,
        }[bool(values["replace"]), bool(values["global"])]
        make(values["view_name"])
        return [(0,)]
    if values.get("columns"):
        frame = frame.select(*(one.strip() for one in values["columns"].split(",")))
    frame.write.mode(values["save_mode"]).format("parquet").saveAsTable(values["new_table"])
    return [(0,)]
