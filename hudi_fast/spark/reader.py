"""Reading with Spark: base files go through Spark's own vectorised Parquet scan, so columns and filters are pushed down
and adaptive execution works as always. The plan of what to read is the core's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from hudi_fast.config.read_options import ReadOptions
from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.reading.scan import ScanPlan, plan_scan
from hudi_fast.reading.time_travel import state_for_query
from hudi_fast.storage.base import Storage

__all__ = ["read"]


def read(spark: Any, path: str, options: Mapping[str, Any]) -> Any:
    """A lazy DataFrame of the table; meta columns first.

    Raises:
        HudiError: as the local reader.
    """
    settings = ReadOptions.from_options(options)
    settings.check_supported()
    state = state_for_query(Storage(path), settings.as_of)
    plan = plan_scan(state)
    schema = from_arrow_schema(plan.scan.output, prefer_timestamp_ntz=True)
    if not plan.slices:
        return spark.createDataFrame([], schema)
    if state.config.drop_partition_columns and state.config.is_partitioned:
        raise UnsupportedFeatureError(
            f"{path} keeps its partition columns in the path only; reading such a table with Spark is not supported "
            "yet. HudiTable.open(path).to_arrow() reads it."
        )
    return _scan(spark, plan, schema)


def _scan(spark: Any, plan: ScanPlan, schema: StructType) -> Any:
    storage = plan.scan.storage
    files = [storage.absolute(one.base_file.path) for one in plan.slices if one.base_file is not None]
    frame = spark.read.schema(schema).parquet(*files)
    return frame.select(*[F.col(f"`{name}`") for name in schema.names])
