"""A program: a session that logged in with a keytab writes a table on HDFS with Kerberos, changes it and reads it.

Arguments: ``krb5.conf``, principal, keytab, address of the NameNode, its principal, path of a table. The Python
processes of driver and workers have no tickets. Prints the number of rows and of changed rows.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

import hudi_fast as hf
from tests.support.small_tables import options


def main(krb5: str, principal: str, keytab: str, uri: str, namenode: str, path: str) -> None:
    """Write, change, read."""
    settings = {
        "spark.driver.extraJavaOptions": f"-Djava.security.krb5.conf={krb5}",
        "spark.driver.host": "127.0.0.1",
        "spark.kerberos.principal": principal,
        "spark.kerberos.keytab": keytab,
        "spark.hadoop.fs.defaultFS": uri,
        "spark.hadoop.hadoop.security.authentication": "kerberos",
        "spark.hadoop.dfs.namenode.kerberos.principal": namenode,
        "spark.hadoop.dfs.data.transfer.protection": "privacy",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    rows = spark.range(200).selectExpr("concat('k', id) as id", "concat('p', id % 4) as part", "1 as ts", "'a' as text")
    hf.write(rows, path, options(operation="bulk_insert"))  # the tasks write
    hf.write(rows.filter("ts = 1 and part = 'p1'").selectExpr("id", "part", "2 as ts", "'b' as text"), path, options())
    found = hf.read(spark, path)
    print(found.count(), found.filter("text = 'b'").count())
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
