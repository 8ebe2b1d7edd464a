"""A program: a Spark application whose Python drivers come and go, as in Livy, Zeppelin and notebook services.

Arguments: URL of the master. It prints port and secret of the JVM's gateway, then waits until its input ends. Drivers
(:mod:`tests.cluster.driver_process`) attach to the JVM. A driver that is killed leaves the JVM, the executors and its
own running tasks behind; whoever kills the JVM as well ends all of them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from tests.support.jvm import java_options, pyspark_jars

__all__ = ["NETWORK_SECONDS", "SETTINGS", "TASKS"]

TASKS = 4
NETWORK_SECONDS = 8
"""An executor that does not answer for so long counts as lost."""

SETTINGS = {
    "spark.executorEnv.NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", str(Path.home() / ".cache")),
    "spark.python.daemon.module": "hudi_fast.spark.daemon",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": java_options(128, pyspark_jars()),
    "spark.sql.shuffle.partitions": str(TASKS),
    "spark.locality.wait": "0s",
    "spark.network.timeout": f"{NETWORK_SECONDS}s",
    "spark.network.timeoutInterval": "2s",
    "spark.executor.heartbeatInterval": "2s",
    "spark.speculation": "true",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "2",
    "spark.speculation.minTaskRuntime": "2s",
    "spark.decommission.enabled": "true",
    "spark.storage.decommission.enabled": "true",
    "spark.storage.decommission.shuffleBlocks.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
}


def main(url: str) -> None:
    """Keep the JVM alive until the input ends."""
    spark = SparkSession.builder.master(url).appName("writes").config(map=SETTINGS).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    gateway = spark.sparkContext._gateway.gateway_parameters
    print("ready", gateway.port, gateway.auth_token, flush=True)
    sys.stdin.read()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
