"""A packed environment with the wheel is all that a job needs on a Spark cluster: the recipe of docs/platforms.md."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.packaging.builds import run
from tests.servers.spark_cluster import HOME, spark_cluster

JOB = """
import sys
import hudi_fast as hf
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
table, options = sys.argv[1], {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hudi_fast.plan": "routed",
}
for turn in (1, 2):
    rows = spark.range(1000).selectExpr("id", "id % 4 as p", f"{turn} as v").repartition(4)
    hf.write(rows, table, options)

def where(batches):
    import pandas
    import hudi_fast
    yield pandas.DataFrame({"file": [hudi_fast.__file__]})

print("ROWS", hf.read(spark, table).where("v = 2").count())
print("FILE", spark.range(2).mapInPandas(where, "file string").first().file)
"""


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.timeout(900)
def test_a_packed_environment_is_all_that_a_job_needs(wheel: Path, tmp_path: Path) -> None:
    environment, archive, job = tmp_path / "environment", tmp_path / "environment.tar.gz", tmp_path / "job.py"
    run([sys.executable, "-m", "venv", environment], tmp_path)
    run([environment / "bin" / "pip", "install", "--quiet", f"{wheel}[pandas]", "venv-pack"], tmp_path)
    run([environment / "bin" / "venv-pack", "--prefix", environment, "--output", archive], tmp_path)
    job.write_text(JOB)
    with spark_cluster(tmp_path / "cluster", modules="") as cluster:
        submit = [HOME / "bin" / "spark-submit", "--master", cluster.url, "--archives", f"{archive}#environment"]
        printed = run(
            [*submit, job, f"file://{tmp_path}/table"],
            tmp_path,
            SPARK_HOME=str(HOME),
            SPARK_LOCAL_IP="127.0.0.1",
            PYSPARK_DRIVER_PYTHON=str(environment / "bin" / "python"),
            PYSPARK_PYTHON="./environment/bin/python",
            PYTHONPATH="",
        )
    assert "ROWS 1000" in printed
    # of the unpacked archive in the working folder of an executor
    assert re.search(rf"FILE {re.escape(str(tmp_path))}/cluster/worker\d/work/\S+/environment/lib/", printed)
