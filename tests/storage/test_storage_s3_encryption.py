"""Encryption, storage class and access list of objects on S3: on every object of a table, whoever writes it.

Streams with these headers are an :class:`hudi_fast.storage.s3.S3Stream`. The server is moto, which keeps the
headers; versitygw does not.
"""

from __future__ import annotations

from typing import Any

import boto3
import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.storage.s3 import PART_BYTES
from tests.servers.http_faults import Faults
from tests.servers.s3 import S3Server
from tests.support.small_tables import options, plain_rows, rows_of

KMS = {"sse": "SSE-KMS", "sse_kms_key_id": "arn:aws:kms:us-east-1:1:key/mine", "sse_kms_context": "team=lake"}


def heads(server: S3Server, folder: str) -> dict[str, dict[str, Any]]:
    client = boto3.client(
        "s3",
        endpoint_url=server.url,
        aws_access_key_id=server.options["access_key"],
        aws_secret_access_key=server.options["secret_key"],
        region_name=server.options["region"],
    )
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=server.bucket, Prefix=f"{folder}/")
    keys = [one["Key"] for page in pages for one in page["Contents"]]
    return {key: client.head_object(Bucket=server.bucket, Key=key) for key in keys}


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(KMS, id="kms"),
        pytest.param({"sse": "AES256", "storage_class": "STANDARD_IA"}, id="aes", marks=pytest.mark.long),
    ],
)
def test_every_object_of_a_table_is_encrypted(given: dict[str, str], moto: S3Server) -> None:
    name = f"encrypted-{given['sse']}"
    path, reach = moto.path(name), {**moto.options, **given}
    settings = {
        **options(),
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.clean.commits.retained": "1",
    }
    for ts in (1, 2):
        hf.write(plain_rows(range(20), ts=ts), path, settings, storage_options=reach)
    table = hf.HudiTable.open(path, reach)
    table.services.compact()
    assert rows_of(table.to_arrow()) == rows_of(plain_rows(range(20), ts=2))
    found = heads(moto, name)
    assert {".parquet", ".properties"} <= {f".{key.rpartition('.')[2]}" for key in found}
    assert any(".log." in key for key in found)
    for key, head in found.items():
        assert head["ServerSideEncryption"] == {"SSE-KMS": "aws:kms"}.get(given["sse"], given["sse"]), key
        assert head.get("SSEKMSKeyId") == given.get("sse_kms_key_id"), key
        assert head.get("StorageClass") == given.get("storage_class"), key


def test_a_large_stream_goes_in_parts(moto: S3Server, watched: Faults) -> None:
    storage = Storage(moto.path("parts"), {**moto.options_at(watched.url), **KMS})
    part = bytes(range(256)) * 4096  # 1 MiB
    watched.arm(3, "after")  # the answer to a part is lost
    with storage.open_output("large") as sink:
        for _ in range(21):
            sink.write(part)
        assert sink.tell() == 21 << 20
    assert sum("partNumber=" in one for one in watched.asked) == 4  # three parts, one of them twice
    assert storage.read_bytes("large") == part * 21
    assert heads(moto, "parts")["parts/large"]["ServerSideEncryption"] == "aws:kms"


def test_an_upload_whose_last_answer_is_lost_is_complete(moto: S3Server, watched: Faults) -> None:
    storage = Storage(moto.path("lost"), {**moto.options_at(watched.url), **KMS})
    storage.write_bytes("large", b"old")
    watched.arm(4, "after")  # begin, two parts, the rest; then completion
    with storage.open_output("large") as sink:
        sink.write(b"n" * (2 * PART_BYTES + 1))
    assert watched.asked[4].startswith("POST")
    assert len(storage.read_bytes("large")) == 2 * PART_BYTES + 1


def test_an_upload_that_fails_leaves_no_parts(moto: S3Server, watched: Faults) -> None:
    storage = Storage(moto.path("failed"), {**moto.options_at(watched.url), **KMS})
    watched.arm(1, "expired", lasts=1)

    def upload() -> None:  # parts are on their way together: the error comes with a later one, or at the end
        with storage.open_output("large") as sink:
            sink.write(b"n" * PART_BYTES * 4)

    with pytest.raises(OSError, match="expired"):
        upload()
    assert watched.asked[-1].startswith("DELETE")
    assert not storage.exists("large")


def test_small_streams_take_one_request(moto: S3Server, watched: Faults) -> None:
    storage = Storage(moto.path("small"), {**moto.options_at(watched.url), "sse": "AES256"})
    watched.arm()
    with storage.open_output("small") as sink:
        sink.write(b"1")
    assert [one.partition(" ")[0] for one in watched.asked] == ["PUT"]
