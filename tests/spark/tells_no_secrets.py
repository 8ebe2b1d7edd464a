"""A program: all kinds of calls with credentials, in a session with event log and UI; then it searches both for them.

Arguments: a scratch folder, the server's URL, a table's path, its key, its secret. Prints, one a line, where the secret
was found, and "searched" with the number of characters searched. What the program logs is searched by who runs it.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import sys
import traceback
import urllib.request
import warnings
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.functions import lit

import hudi_fast as hf
from hudi_fast.spark.storage import storage_of
from hudi_fast.storage.base import Storage
from tests.spark.spark_writes import batch, frame
from tests.support.small_tables import options


def main(folder: Path, url: str, path: str, key: str, secret: str) -> None:
    """Call, then search."""
    logging.basicConfig(level=logging.INFO)
    logging.getLogger("hudi_fast").setLevel(logging.DEBUG)
    (folder / "events").mkdir(parents=True)
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": f"file://{folder}/events",
        "spark.ui.port": "0",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.hadoop.fs.s3a.endpoint": url,
        "spark.hadoop.fs.s3a.access.key": key,
        "spark.hadoop.fs.s3a.secret.key": secret,
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    reach = {"endpoint_url": url, "access_key": key, "secret_key": secret, "region": "us-east-1"}
    texts: dict[str, str] = {}
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        _use(spark, path, reach, texts)
    texts["warnings"] = "\n".join(str(one.message) for one in warned)
    texts["objects"] = _objects(path, reach)
    texts |= _ui(spark)
    spark.stop()
    texts |= {
        f"event log {one.name}": one.read_text("utf-8", "replace")
        for one in (folder / "events").rglob("*")
        if one.is_file()
    }
    assert path in "".join(text for name, text in texts.items() if name.startswith("event log")), "nothing was logged"
    for name, text in texts.items():
        if secret in text:
            at = text.index(secret)
            print(f"{name}: {text[max(0, at - 300) : at + 20]!r}")
    print("searched", sum(map(len, texts.values())))


def _use(spark: Any, path: str, reach: dict[str, str], texts: dict[str, str]) -> None:
    source = {f"hudi_fast.storage.{name}": value for name, value in reach.items()}
    given = options() | {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    hf.write(frame(spark, batch(range(20))), path, {**given, "hudi_fast.plan": "fused"}, storage_options=reach)
    read = hf.read(spark, path, storage_options=reach)
    read.filter("ts > 0").count()
    texts["explain of read"] = _explained(read)
    texts["representations"] = repr(read) + repr(hf.HudiTable.open(path, reach)) + repr(storage_of(spark, path, reach))
    hf.update(spark, path, "ts > 0", {"number": "7"}, storage_options=reach)
    table = hf.HudiTable.open(path, reach)
    table.services.compact(spark=spark)
    texts["history"] = json.dumps(table.history().to_pylist(), default=str) + repr(table.config)
    hf.register_data_source(spark)
    found = spark.read.format("hudi_fast").options(**source).load(path)
    texts["explain of source"] = _explained(found) + repr(found)
    found.count()
    frame(spark, batch(range(5))).write.format("hudi_fast").options(**given, **source).mode("append").save(path)
    failing = {
        "wrong path": lambda: hf.read(spark, path + "-none", storage_options=reach),
        "wrong option": lambda: hf.write(
            frame(spark, batch(range(5))), path, given, storage_options={**reach, "x": "1"}
        ),
        "wrong value": lambda: hf.write(
            frame(spark, batch(range(5))),
            path,
            given,
            storage_options={**reach, "force_path_style": reach["secret_key"]},
        ),
        "wrong rows": lambda: hf.write(
            frame(spark, batch(range(5))).withColumn("id", lit(None).cast("string")),
            path,
            {**given, "hudi_fast.plan": "fused"},
            storage_options=reach,
        ),
        "wrong bucket": lambda: hf.write(
            frame(spark, batch(range(5))),
            "s3://nobucket/t",
            {**given, "hudi_fast.plan": "fused"},
            storage_options=reach,
        ),
        "wrong source": lambda: spark.read.format("hudi_fast").options(**source).load(path + "-none").count(),
    }
    for name, act in failing.items():
        try:
            act()
        except Exception as error:
            texts[name] = traceback.format_exc() + repr(error)
        else:
            raise AssertionError(f"{name} did not fail")


def _explained(rows: Any) -> str:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        for mode in ("extended", "formatted", "cost"):
            rows.explain(mode)
    return text.getvalue()


def _objects(path: str, reach: dict[str, str]) -> str:
    """All that was written to the table."""
    storage = Storage(path, reach)
    files = [one for one in storage.list_dir("", recursive=True) if not one.is_dir]
    return "".join(one.path + storage.read_bytes(one.path).decode("latin-1") for one in files)


def _ui(spark: Any) -> dict[str, str]:
    """Pages and answers of Spark's UI."""
    url, application = spark.sparkContext.uiWebUrl, spark.sparkContext.applicationId
    api = f"{url}/api/v1/applications/{application}"
    pages = [
        f"{api}/{name}"
        for name in ("environment", "jobs", "stages?details=true", "executors", "sql?details=true&length=1000")
    ]
    pages += [f"{url}/{name}/" for name in ("environment", "SQL", "jobs", "stages", "executors")]
    found = {page: _page(page) for page in pages}
    return found


def _page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read().decode()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:6])
