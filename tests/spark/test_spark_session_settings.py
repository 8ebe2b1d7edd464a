"""Settings of a session's Hadoop file systems: which count, from where, and that Spark's tasks use them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.spark.storage import file_system_options, prefixed, split_options, storage_of, storage_settings
from tests.servers.s3 import S3Server
from tests.support.sessions import hadoop_settings
from tests.support.small_tables import options

DEFAULT_REDACTION = "(?i)secret|password|token|access[.]?key"
ABFS = "abfss://box@lake.dfs.core.windows.net/t"


class Session:
    """A session whose settings are taken back."""

    def __init__(self, spark: Any) -> None:
        self.spark, self._given = spark, ExitStack()

    def set(self, settings: dict[str, str]) -> None:
        self._given.enter_context(hadoop_settings(self.spark, settings))

    def end(self) -> None:
        self._given.close()


def characters(machine: Any, text: str) -> Any:
    """A text as Java's array of characters."""
    made = machine.java.lang.StringBuilder(text)
    array = machine.java.lang.reflect.Array.newInstance(machine.java.lang.Character.TYPE, len(text))
    made.getChars(0, len(text), array, 0)
    return array


@pytest.fixture
def session(spark: Any) -> Iterator[Session]:
    made = Session(spark)
    yield made
    made.end()


def test_defaults_of_hadoop_and_settings_without_effect_are_left_out(session: Session) -> None:
    assert file_system_options(session.spark, "s3a://lake/t") == {}
    session.set({"fs.s3a.threads.max": "11", "fs.s3a.bucket.lake.endpoint.region": "eu-west-1"})
    assert file_system_options(session.spark, "s3a://lake/t") == {"fs.s3a.endpoint.region": "eu-west-1"}
    assert file_system_options(session.spark, "s3a://other/t") == {}


def test_set_of_a_session_comes_before_the_configuration(session: Session) -> None:
    session.set({"fs.s3a.endpoint.region": "eu-west-1"})
    session.spark.conf.set("fs.s3a.endpoint.region", "eu-north-1")
    try:
        assert storage_settings(session.spark, "s3a://lake/t") == {"fs.s3a.endpoint.region": "eu-north-1"}
    finally:
        session.spark.conf.unset("fs.s3a.endpoint.region")


def test_secrets_in_credential_files_of_hadoop(session: Session, tmp_path: Path) -> None:
    place = f"jceks://file{tmp_path}/keys.jceks"
    machine, hadoop = session.spark._jvm, session.spark._jsc.hadoopConfiguration()
    copy = machine.org.apache.hadoop.conf.Configuration(hadoop)
    copy.set("hadoop.security.credential.provider.path", place)
    provider = machine.org.apache.hadoop.security.alias.CredentialProviderFactory.getProviders(copy).get(0)
    names = {"fs.s3a.access.key": "id-SECRET", "fs.s3a.bucket.lake.secret.key": "hush-SECRET"}
    names["fs.azure.account.key.lake.dfs.core.windows.net"] = "a2V5"
    for name, secret in names.items():
        provider.createCredentialEntry(name, characters(machine, secret))
    provider.flush()
    session.set({"hadoop.security.credential.provider.path": place})
    found = storage_settings(session.spark, "s3a://lake/t")
    assert found == {"fs.s3a.access.key": "id-SECRET", "fs.s3a.secret.key": "hush-SECRET"}
    assert "SECRET" not in repr(storage_of(session.spark, "s3a://lake/t"))
    assert storage_settings(session.spark, ABFS) == {"account_key": "a2V5"}


def test_what_cannot_be_honoured_is_refused_before_anything_is_written(session: Session, s3_server: S3Server) -> None:
    path = s3_server.path("refused").replace("s3://", "s3a://")
    rows = session.spark.range(3).selectExpr("cast(id as string) as id", "'p' as part", "1 as ts", "'a' as text")
    session.set({"fs.s3a.encryption.algorithm": "CSE-KMS", "fs.s3a.encryption.key": "SECRET"})
    with pytest.raises(hf.UnsupportedFeatureError, match="CSE-KMS") as caught:
        hf.write(rows, path, options())
    assert "SECRET" not in str(caught.value)
    session.set({"fs.s3a.encryption.algorithm": "", "fs.s3a.aws.credentials.provider": "com.acme.Vault"})
    with pytest.raises(hf.UnsupportedFeatureError, match=r"com\.acme\.Vault"):
        hf.read(session.spark, path)


def test_plans_of_spark_show_no_storage_options(session: Session) -> None:
    given = {"account_key": "SHOWN-NEVER", "fs.azure.account.oauth2.client.secret": "SHOWN-NEVER"}
    assert split_options({**prefixed(given), "hoodie.table.name": "t"}) == ({"hoodie.table.name": "t"}, given)
    pattern = re.compile(session.spark.conf.get("spark.redaction.regex", DEFAULT_REDACTION))
    assert all(pattern.search(key) for key in prefixed(given))


def test_tasks_use_the_settings_of_the_session(session: Session, s3_server: S3Server) -> None:
    """The keys that count are the bucket's; the class that is named first has none."""
    path = s3_server.path("settings").replace("s3://", "s3a://")
    rows = session.spark.range(20).selectExpr("cast(id as string) as id", "'p' as part", "1 as ts", "'a' as text")
    hadoop = "org.apache.hadoop.fs.s3a"
    session.set(
        {
            "fs.s3a.aws.credentials.provider": f"{hadoop}.TemporaryAWSCredentialsProvider,"
            f"{hadoop}.SimpleAWSCredentialsProvider",
            "fs.s3a.access.key": "not-this-one",
            "fs.s3a.secret.key": s3_server.options["secret_key"],
            f"fs.s3a.bucket.{s3_server.bucket}.access.key": s3_server.options["access_key"],
            "fs.s3a.endpoint": s3_server.url,
            "fs.s3a.endpoint.region": "us-east-1",
            "fs.s3a.encryption.algorithm": "AES256",
        }
    )
    hf.write(rows, path, options())
    assert hf.read(session.spark, path).count() == 20
    assert storage_of(session.spark, path)._store._headers == {"ServerSideEncryption": "AES256"}
