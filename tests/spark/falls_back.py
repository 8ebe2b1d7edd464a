"""A program: a session with Apache Hudi on its class path, switched on, that leaves to it what hudi_fast refuses.

Arguments: a scratch folder. Fails, or prints what came back and how many warnings there were.
"""

from __future__ import annotations

import sys
import warnings

import hudi_fast as hf
from tests.peer.server import start_session

TABLE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
}
READ_OPTIMIZED = "hoodie.query.as.ro.table"


def main(folder):
    """A table that hudi_fast makes, and calls that it refuses."""
    spark = start_session("1.2.0", folder)
    hf.accelerate(spark, fallback=True)
    rows = spark.createDataFrame([("a", 1, "x")], "id string, v int, part string")
    path = f"{folder}/t"
    warnings.simplefilter("error")
    rows.write.format("hudi").options(**TABLE).save(path)
    assert hf.HudiTable.open(path).config.raw.get("hoodie.table.initial.version") == "9"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", hf.HudiWarning)
        print(*spark.read.format("hudi").option(READ_OPTIMIZED, True).load(path).select("part", "v", "id").collect())
        more = spark.createDataFrame([("b", 2, "y")], rows.schema)
        elsewhere = {**TABLE, "hoodie.write.record.positions": "true", "hoodie.table.base.file.format": "HFILE"}
        more.write.format("hudi").options(**elsewhere).mode("append").save(f"{folder}/other")
        more.write.format("hudi").options(**TABLE).option("path", f"{folder}/named").saveAsTable("named")
        print(spark.table("named").count())
    said = [str(one.message) for one in caught if issubclass(one.category, hf.HudiWarning)]
    print(len(said), all(text.startswith("Falling back to Apache Hudi's own data source") for text in said))
    hf.accelerate(spark)
    refused = False
    try:
        spark.read.format("hudi").option(READ_OPTIMIZED, True).load(path)
    except hf.UnsupportedFeatureError:
        refused = True
    print(refused)
    hf.accelerate(spark, False)
    print(spark.read.format("hudi").load(path).count())
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
