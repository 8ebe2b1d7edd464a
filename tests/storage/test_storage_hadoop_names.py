"""Settings of Hadoop's file systems as storage options: what they become, and which are refused by name.

Providers of credentials (:mod:`hudi_fast.storage.s3_credentials`) are among them.
"""

from __future__ import annotations

from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.storage.gcs import GcsOptions
from hudi_fast.storage.hadoop_options import counts, from_hadoop, secret_names
from hudi_fast.storage.s3_credentials import Role
from hudi_fast.storage.s3_options import S3Options

HADOOP, SDK = "org.apache.hadoop.fs.s3a", "software.amazon.awssdk.auth.credentials"
KEYS = {"fs.s3a.access.key": "AKIA-SECRET", "fs.s3a.secret.key": "hush-SECRET"}
PROVIDER = "fs.s3a.aws.credentials.provider"
ABFS = "abfss://box@lake.dfs.core.windows.net/t"
OAUTH = "fs.azure.account.oauth2."


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)


def s3(settings: dict[str, str], uri: str = "s3a://lake/t") -> S3Options:
    return S3Options.of(from_hadoop(uri, settings))


def test_settings_of_the_bucket_come_first_and_those_of_others_do_not_count() -> None:
    found = s3(
        {
            **KEYS,
            "fs.s3a.endpoint.region": "eu-north-1",
            "fs.s3a.bucket.lake.endpoint.region": "eu-west-1",
            "fs.s3a.bucket.other.endpoint.region": "us-west-2",
        }
    )
    assert (found.region, found.access_key) == ("eu-west-1", "AKIA-SECRET")
    assert counts("fs.s3a.bucket.lake.access.key")
    assert not counts("fs.s3a.threads.max")
    assert from_hadoop("s3a://lake/t", {"fs.s3a.threads.max": "9"}, others=False) == {}
    with pytest.raises(hf.ConfigError, match=r"'fs.s3a.acces.key' is unknown"):
        Storage("s3a://lake/t", {"fs.s3a.acces.key": "SECRET"})


@pytest.mark.parametrize(
    ("providers", "token", "expected"),
    [
        (f"{HADOOP}.SimpleAWSCredentialsProvider", "", ("AKIA-SECRET", None, False)),
        (f"{HADOOP}.TemporaryAWSCredentialsProvider", "t", ("AKIA-SECRET", "t", False)),
        (f"{HADOOP}.TemporaryAWSCredentialsProvider,\n {HADOOP}.AnonymousAWSCredentialsProvider", "", (None, None, True)),  # noqa: E501
        (f"{SDK}.EnvironmentVariableCredentialsProvider , {HADOOP}.SimpleAWSCredentialsProvider", "", ("AKIA-SECRET", None, False)),  # noqa: E501
        ("com.amazonaws.auth.InstanceProfileCredentialsProvider", "t", (None, None, False)),
        (f"{HADOOP}.auth.IAMInstanceCredentialsProvider", "", (None, None, False)),
        (f"{SDK}.WebIdentityTokenFileCredentialsProvider", "", (None, None, False)),
        (f"{SDK}.ContainerCredentialsProvider", "", (None, None, False)),
        ("com.amazonaws.auth.DefaultAWSCredentialsProviderChain", "", (None, None, False)),
        (f"{SDK}.DefaultCredentialsProvider", "", (None, None, False)),
    ],
)  # fmt: skip
def test_the_first_provider_with_credentials_is_used(providers: str, token: str, expected: tuple[Any, ...]) -> None:
    found = s3({**KEYS, PROVIDER: providers, "fs.s3a.session.token": token})
    assert (found.access_key, found.session_token if found.access_key and token else None, found.anonymous) == expected


def test_credentials_of_the_environment_come_where_the_list_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    both = f"{SDK}.EnvironmentVariableCredentialsProvider,{HADOOP}.SimpleAWSCredentialsProvider"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    assert s3({**KEYS, PROVIDER: both}).access_key is None
    assert s3({**KEYS, PROVIDER: ",".join(both.split(",")[::-1])}).access_key == "AKIA-SECRET"


def test_a_role_is_assumed_with_the_credentials_of_its_own_provider() -> None:
    role = {
        PROVIDER: f"{HADOOP}.auth.AssumedRoleCredentialProvider",
        "fs.s3a.assumed.role.arn": "arn:aws:iam::1:role/r",
        "fs.s3a.assumed.role.session.name": "job",
        "fs.s3a.assumed.role.external.id": "x",
        "fs.s3a.assumed.role.session.duration": "30m",
        "fs.s3a.assumed.role.sts.endpoint": "sts.eu-west-1.amazonaws.com",
    }
    found = s3({**KEYS, **role, "fs.s3a.assumed.role.credentials.provider": f"{HADOOP}.SimpleAWSCredentialsProvider"})
    assert found.access_key == "AKIA-SECRET"
    assert found.role == Role("arn:aws:iam::1:role/r", "job", "x", 1800, None, "https://sts.eu-west-1.amazonaws.com")
    assert s3({**KEYS, **role, PROVIDER: f"{HADOOP}.SimpleAWSCredentialsProvider"}).role is None
    with pytest.raises(hf.ConfigError, match="15 minutes"):
        s3({**role, "fs.s3a.assumed.role.session.duration": "5m"})
    with pytest.raises(hf.ConfigError, match=r"fs.s3a.assumed.role.arn"):
        s3({PROVIDER: f"{HADOOP}.auth.AssumedRoleCredentialProvider"})


def test_a_proxy_is_one_url_that_nobody_sees() -> None:
    login = {"fs.s3a.proxy.username": "me", "fs.s3a.proxy.password": "p@ss-SECRET"}
    found = s3({"fs.s3a.proxy.host": "squid", "fs.s3a.proxy.port": "3128", **login})
    assert found.proxy == "http://me:p%40ss-SECRET@squid:3128"
    assert "SECRET" not in repr(found)
    assert s3({"fs.s3a.proxy.host": "squid", "fs.s3a.proxy.ssl.enabled": "true"}).proxy == "https://squid:443"
    for wrong in ({"fs.s3a.proxy.port": "1"}, {"fs.s3a.proxy.host": "h", "fs.s3a.proxy.username": "u"}):
        with pytest.raises(hf.ConfigError, match="proxy"):
            s3(wrong)


ENCRYPTION = "fs.s3a.encryption.algorithm"


@pytest.mark.parametrize(
    ("settings", "headers"),
    [
        ({ENCRYPTION: "AES256"}, {"ServerSideEncryption": "AES256"}),
        ({"fs.s3a.server-side-encryption-algorithm": "SSE-KMS", "fs.s3a.server-side-encryption.key": "k"}, {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "k"}),  # noqa: E501
        ({ENCRYPTION: "DSSE-KMS", "fs.s3a.encryption.context": "a=b, c=d"}, {"ServerSideEncryption": "aws:kms:dsse", "SSEKMSEncryptionContext": "eyJhIjogImIiLCAiYyI6ICJkIn0="}),  # noqa: E501
        ({"fs.s3a.acl.default": "BucketOwnerFullControl", "fs.s3a.create.storage.class": "standard_ia"}, {"ACL": "bucket-owner-full-control", "StorageClass": "STANDARD_IA"}),  # noqa: E501
    ],
)  # fmt: skip
def test_encryption_is_sent_with_every_object(settings: dict[str, str], headers: dict[str, str]) -> None:
    assert s3(settings).headers() == headers


def test_plain_names_of_encryption() -> None:
    found = S3Options.of({"sse": "aws:kms", "sse_kms_key_id": "k", "sse_kms_context": '{"a": "b"}'})
    assert found.headers()["SSEKMSKeyId"] == "k"


@pytest.mark.parametrize(
    ("uri", "settings", "error", "said"),
    [
        ("s3a://b/t", {ENCRYPTION: "SSE-C", "fs.s3a.encryption.key": "SECRET"}, hf.UnsupportedFeatureError, "SSE-C"),
        ("s3a://b/t", {ENCRYPTION: "CSE-KMS", "fs.s3a.encryption.key": "SECRET"}, hf.UnsupportedFeatureError, "CSE-KMS"),  # noqa: E501
        ("s3a://b/t", {ENCRYPTION: "rot13"}, hf.ConfigError, "must be AES256"),
        ("s3a://b/t", {"fs.s3a.encryption.key": "SECRET"}, hf.ConfigError, "need sse"),
        ("s3a://b/t", {PROVIDER: "com.acme.Vault"}, hf.UnsupportedFeatureError, "com.acme.Vault.*storage_options"),
        ("s3a://b/t", {PROVIDER: f"{HADOOP}.TemporaryAWSCredentialsProvider", **KEYS}, hf.ConfigError, "none of these has"),  # noqa: E501
        ("s3a://b/t", {"fs.s3a.requester.pays.enabled": "true"}, hf.UnsupportedFeatureError, "requester"),
        ("s3a://b/t", {"fs.s3a.bucket.b.accesspoint.arn": "arn"}, hf.UnsupportedFeatureError, "accesspoint.arn"),
        ("s3a://b/t", {"fs.s3a.endpoint.fips": "true"}, hf.UnsupportedFeatureError, "endpoint.fips"),
        ("s3://b/t", {"fs.s3.cse.enabled": "true"}, hf.UnsupportedFeatureError, "fs.s3.cse.enabled"),
        ("s3://b/t", {"fs.s3.customAWSCredentialsProvider": "com.acme.Vault"}, hf.UnsupportedFeatureError, "com.acme.Vault"),  # noqa: E501
        ("s3://b/t", {"fs.s3.authorization.roleMapping": "arn"}, hf.UnsupportedFeatureError, "authorization.rolemapping"),  # noqa: E501
        (ABFS, {"fs.azure.account.auth.type": "Custom"}, hf.UnsupportedFeatureError, "CUSTOM.*use SharedKey"),
        (ABFS, {"fs.azure.account.auth.type": "SAS"}, hf.UnsupportedFeatureError, "sas.fixed.token"),
        (ABFS, {"fs.azure.account.auth.type": "OAuth", "fs.azure.account.oauth.provider.type": "x.RefreshTokenBasedTokenProvider"}, hf.UnsupportedFeatureError, "RefreshToken"),  # noqa: E501
        (ABFS, {"fs.azure.account.auth.type": "OAuth", "fs.azure.account.oauth.provider.type": "x.ClientCredsTokenProvider", f"{OAUTH}client.secret": "SECRET"}, hf.ConfigError, "client.endpoint"),  # noqa: E501
        (ABFS, {"fs.azure.encryption.encoded.client-provided-key.lake.dfs.core.windows.net": "SECRET"}, hf.UnsupportedFeatureError, "client-provided-key"),  # noqa: E501
        ("gs://b/t", {"fs.gs.encryption.key": "SECRET"}, hf.UnsupportedFeatureError, "fs.gs.encryption.key"),
        ("gs://b/t", {"fs.gs.auth.type": "USER_CREDENTIALS"}, hf.UnsupportedFeatureError, "USER_CREDENTIALS"),
        ("gs://b/t", {"fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE"}, hf.ConfigError, "keyfile is not "),
        ("gs://b/t", {"fs.gs.auth.access.token.provider": "com.acme.T"}, hf.UnsupportedFeatureError, "token.provider"),
    ],
)  # fmt: skip
def test_what_cannot_be_honoured_is_refused_by_name(uri: str, settings: dict[str, str], error: type, said: str) -> None:
    with pytest.raises(error, match=said) as caught:
        Storage(uri, settings)
    assert "SECRET" not in str(caught.value)


def test_emrfs_comes_before_s3a_for_its_scheme_only() -> None:
    settings = {
        **KEYS,
        ENCRYPTION: "AES256",
        "fs.s3.enableServerSideEncryption": "true",
        "fs.s3.serverSideEncryption.kms.keyId": "k",
        "fs.s3.customAWSCredentialsProvider": "com.amazonaws.auth.InstanceProfileCredentialsProvider",
        "fs.s3.consistent": "true",
    }
    found = s3(settings, "s3://lake/t")
    assert (found.sse, found.sse_kms_key_id, found.access_key) == ("aws:kms", "k", None)
    found = s3(settings, "s3a://lake/t")
    assert (found.sse, found.access_key) == ("AES256", "AKIA-SECRET")


def test_settings_of_an_account_and_a_container_of_azure() -> None:
    host = "lake.dfs.core.windows.net"
    keys = {f"fs.azure.account.key.{host}": "mine", "fs.azure.account.key": "all", "fs.azure.account.key.other": "no"}
    assert from_hadoop(ABFS, keys) == {"account_key": "mine"}
    assert from_hadoop("abfss://box@third.dfs.core.windows.net/t", keys) == {"account_key": "all"}
    fixed = {f"fs.azure.account.auth.type.{host}": "SAS", f"fs.azure.sas.fixed.token.{host}": "account"}
    assert from_hadoop(ABFS, {**keys, **fixed}) == {"sas_token": "account"}
    assert from_hadoop(ABFS, {**fixed, f"fs.azure.sas.fixed.token.box.{host}": "box"}) == {"sas_token": "box"}
    wasb = {"fs.azure.sas.box.lake.blob.core.windows.net": "wasb"}
    assert from_hadoop("wasbs://box@lake.blob.core.windows.net/t", wasb) == {"sas_token": "wasb"}
    oauth = {
        "fs.azure.account.auth.type": "OAuth",
        f"fs.azure.account.oauth.provider.type.{host}": "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider",
        f"{OAUTH}client.id": "id",
        f"{OAUTH}client.secret.{host}": "secret",
        f"{OAUTH}client.endpoint": "https://login.microsoftonline.com/tenant/oauth2/token",
    }
    assert from_hadoop(ABFS, oauth) == {"tenant_id": "tenant", "client_id": "id", "client_secret": "secret"}
    msi = {"fs.azure.account.oauth.provider.type": "x.MsiTokenProvider", "fs.azure.account.auth.type": "OAuth"}
    assert from_hadoop(ABFS, {**msi, f"{OAUTH}client.id": "id"}) == {"client_id": "id"}
    assert f"fs.azure.account.key.{host}" in secret_names(ABFS)


def test_settings_of_google() -> None:
    file = {"google.cloud.auth.service.account.json.keyfile": "/k.json", "fs.gs.project.id": "p"}
    assert from_hadoop("gs://b/t", file) == {"service_account_file": "/k.json", "project_id": "p"}
    assert GcsOptions.of({"service_account_file": "/k.json"}).service_account_file == "/k.json"
    assert from_hadoop("gs://b/t", {"fs.gs.auth.type": "COMPUTE_ENGINE", "fs.gs.block.size": "1"}) == {}
    assert from_hadoop("gs://b/t", {"fs.gs.auth.type": "UNAUTHENTICATED"}) == {"anonymous": "true"}
