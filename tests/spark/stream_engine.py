"""A streamer with and without Spark as its engine, on whatever PySpark runs it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import hudi_fast as hf

SCHEMA = {
    "type": "record",
    "name": "trip",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "ts", "type": "long"},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        {"name": "seen", "type": ["null", {"type": "long", "logicalType": "local-timestamp-micros"}]},
        {"name": "rider", "type": {"type": "record", "name": "r", "fields": [{"name": "city", "type": "string"}]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}


def twice(batch):
    return batch.append_column("twice", pa.array([2 * one for one in batch["ts"].to_pylist()], pa.int64()))


def streamed_rows(spark: SparkSession, place: Path) -> list[int]:
    """Number of rows of three tables, each with other transformers, that both engines write alike."""
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    (place / "in").mkdir(parents=True)
    (place / "s.avsc").write_text(json.dumps(SCHEMA))
    properties = {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.streamer.source.dfs.root": str(place / "in"),
        "hoodie.streamer.schemaprovider.source.schema.file": str(place / "s.avsc"),
        "hoodie.streamer.transformer.sql": "SELECT * FROM <SRC> WHERE ts >= 0",
    }
    found = []
    for classes in ("", "FlatteningTransformer", "SqlQueryBasedTransformer"):
        for turn in range(2):
            rows = [
                {"id": f"k{one}", "ts": one - 1, "at": 1_700_000_000_123, "seen": one, "rider": {"city": "Oslo"}}
                | {"tags": ["a"]}
                for one in range(turn * 2, turn * 2 + 3)
            ]
            file = place / "in" / f"{turn}.json"
            file.write_text("\n".join(map(json.dumps, rows)))
            os.utime(file, (time.time() - 9 + turn,) * 2)
            for engine, session in (("process", None), ("spark", spark)):
                if engine == "process" and classes.startswith("Sql"):  # duckdb may not be installed
                    continue
                streamer = hf.Streamer(
                    properties,
                    source_class="JsonDFSSource",
                    target_base_path=str(place / f"{engine}{classes}"),
                    transformer_class=classes,
                    transforms=[twice],
                    spark=session,
                )
                streamer.turn()
        same = "process" if classes.startswith("Sql") else f"process{classes}"
        process = hf.read(place / same, filter="ts >= 0" if same == "process" and classes else None).sort_by("id")
        names = [name for name in process.column_names if not name.startswith("_hoodie")]
        on_spark = hf.read(place / f"spark{classes}").sort_by("id").select(names)
        assert on_spark.equals(process.select(names)), (on_spark.schema, process.schema)
        found.append(process.num_rows)
        for file in (place / "in").iterdir():
            file.unlink()
    return found
