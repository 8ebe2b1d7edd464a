"""A program: tables by name in a session with Hive's catalog, made in one application and used in the next.

Arguments: a scratch folder; ``make`` or ``use``. Prints the rows as JSON.
"""

from __future__ import annotations

import json
import os
import sys

from pyspark.sql import SparkSession

import hudi_fast as hf


def main(folder, step):
    """Make the tables, or change them by name."""
    os.chdir(folder)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").enableHiveSupport()
    spark = builder.config("spark.sql.warehouse.dir", f"{folder}/warehouse").getOrCreate()
    hf.accelerate(spark)
    if step == "make":
        spark.sql("CREATE DATABASE rides")
        spark.sql("CREATE TABLE rides.t (id int, city string) USING hudi TBLPROPERTIES (primaryKey = 'id')")
        spark.sql("INSERT INTO rides.t VALUES (1, 'x'), (2, 'y')")
        spark.sql("CREATE VIEW rides.v AS SELECT id, city FROM rides.t")
        rows = spark.sql("SELECT * FROM rides.v ORDER BY id").collect()
    else:
        assert spark.catalog.tableExists("rides.t")
        spark.sql("DELETE FROM rides.t WHERE id = 1")
        spark.sql("ALTER TABLE rides.t ADD COLUMNS (extra string)")
        spark.sql("INSERT INTO rides.t VALUES (3, 'z', 'new')")
        assert spark.sql("SELECT * FROM rides.v").count() == 2
        assert [row[0] for row in spark.sql("DESCRIBE rides.t").collect()][-3:] == ["id", "city", "extra"]
        rows = spark.sql("SELECT id, city, extra FROM rides.t ORDER BY id").collect()
    print(json.dumps([list(row) for row in rows]))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
