"""Stores that refuse: one HudiError that names the place, the operation and what to do; and the table is as before.

versitygw refuses wrong keys and names missing buckets; a server in between refuses single kinds of requests as Amazon
does, and plays a clock that is wrong, a proxy with pages of its own, and a store without conditional writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.storage.failures import refusal_code, refusal_of_text
from tests.servers.http_faults import Faults, http_faults, refusal
from tests.servers.s3 import S3Server
from tests.support.small_tables import options, plain_rows, rows_of

OLD, NEW = plain_rows(range(10)), plain_rows(range(5, 15), ts=2)
DENIED = refusal("AccessDenied", "Access Denied")
PAGE = b"<!DOCTYPE html><html><body>Please log in</body></html>"


@pytest.fixture
def between(s3_server: S3Server) -> Iterator[Faults]:
    with http_faults(s3_server.url) as faults:
        yield faults


def is_list(request: str) -> bool:
    return request.startswith("GET") and "list-type=2" in request


def is_put(request: str) -> bool:
    return request.startswith("PUT")


def is_data(request: str) -> bool:
    return request.startswith("PUT") and ".parquet" in request and "/.hoodie/" not in request


def is_get(request: str) -> bool:
    return request.startswith(("GET", "HEAD")) and not is_list(request)


def is_delete(request: str) -> bool:
    return request.startswith("DELETE") or (request.startswith("POST") and request.endswith("?delete"))


@pytest.mark.parametrize(
    "kind",
    [is_list, is_get, pytest.param(is_put, marks=pytest.mark.long), is_data],
    ids=lambda kind: kind.__name__,
)
def test_a_missing_permission_is_named_and_the_next_writer_goes_on(
    kind: Callable[[str], bool], s3_server: S3Server, between: Faults
) -> None:
    path = s3_server.path(f"denied-{kind.__name__}")
    hf.write(OLD, path, options(), storage_options=s3_server.options)
    between.answers = lambda request: (403, DENIED, "application/xml") if kind(request) else None
    with pytest.raises(hf.HudiError, match=f"{kind.__name__}.*AccessDenied.*grant it") as caught:
        hf.write(NEW, path, options(), storage_options=s3_server.options_at(between.url))
    assert not isinstance(caught.value, hf.CommitStateUnknownError)
    seen = rows_of(hf.HudiTable.open(path, s3_server.options).to_arrow())
    assert seen == rows_of(OLD)
    hf.write(NEW, path, options(), storage_options=s3_server.options)
    assert rows_of(hf.HudiTable.open(path, s3_server.options).to_arrow()) == rows_of(OLD) | rows_of(NEW)


def test_a_clean_that_may_not_delete_says_so(s3_server: S3Server, between: Faults) -> None:
    path = s3_server.path("denied-delete")
    settings = {**options(), "hoodie.clean.commits.retained": "1", "hoodie.clean.automatic": "false"}
    for ts in (1, 2, 3):
        hf.write(plain_rows(range(10), ts=ts), path, settings, storage_options=s3_server.options)
    between.answers = lambda request: (403, DENIED, "application/xml") if is_delete(request) else None
    with pytest.raises(hf.CommitError, match=r"denied-delete.*AccessDenied.*grant it"):
        hf.HudiTable.open(path, s3_server.options_at(between.url)).services.clean(settings)
    table, storage = hf.HudiTable.open(path, s3_server.options), Storage(path, s3_server.options)
    assert rows_of(table.to_arrow()) == rows_of(plain_rows(range(10), ts=3))
    storage.delete_files([one.path for one in storage.list_dir(".hoodie/.heartbeat")])  # it could not be deleted either
    assert table.services.clean(settings).files_deleted


@pytest.mark.parametrize(
    ("changes", "bucket", "said"),
    [
        ({"secret_key": "not-the-SECRET"}, None, "does not accept the credentials"),
        ({"access_key": "nobody"}, None, "does not accept the credentials"),
        ({}, "s3://no-such-bucket/t", "bucket or container does not exist"),
    ],
    ids=["secret", "key", "bucket"],
)
def test_wrong_keys_and_missing_buckets(
    changes: dict[str, str], bucket: str | None, said: str, s3_server: S3Server
) -> None:
    if s3_server.kind == "moto" and changes:
        pytest.skip("moto lets everybody in; a server that refuses a wrong key is versitygw (Go builds it)")
    path, reach = bucket or s3_server.path("wrong"), {**s3_server.options, **changes}
    calls: list[Callable[[], Any]] = [
        lambda: hf.write(OLD, path, options(), storage_options=reach),
        lambda: hf.HudiTable.open(path, reach),
    ]
    for call in calls:
        with pytest.raises(hf.HudiError, match=said) as caught:
            call()
        assert path in str(caught.value)
        assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "content", "kind", "said"),
    [
        # The AWS SDK repeats these requests, a call takes up to 30 s.
        pytest.param(
            403,
            refusal("RequestTimeTooSkewed", "The difference is too large."),
            "application/xml",
            "set the clock",
            marks=pytest.mark.long,
        ),
        (403, PAGE, "text/html", "proxy or a login page"),
        (200, PAGE, "text/html", "proxy or a login page"),
        (403, refusal("SignatureDoesNotMatch", "no"), "application/xml", "does not accept the credentials"),
    ],
    ids=["clock", "page-403", "page-200", "signature"],
)
def test_answers_that_are_not_about_the_table(
    status: int, content: bytes, kind: str, said: str, s3_server: S3Server, between: Faults
) -> None:
    path = s3_server.path("untouched")
    reach = s3_server.options_at(between.url)
    between.answers = lambda request: (status, content, kind)
    with pytest.raises(hf.StorageAccessError, match=said) as caught:
        hf.write(OLD, path, options(), storage_options=reach)
    assert path in str(caught.value)
    storage = Storage(path, reach)
    calls: list[Callable[[], Any]] = [
        lambda: storage.read_bytes("f"),
        lambda: storage.write_bytes("f", b"1"),
        lambda: storage.create_exclusive("f", b"1"),
        lambda: storage.delete_files(["f"]),
        lambda: storage.delete_files(["f", "g"]),
        lambda: storage.has_file("f"),
    ]
    for call in calls:
        with pytest.raises(hf.StorageAccessError):
            call()
    if status != 200:  # pyarrow takes a page for an empty folder; the requests before it fail
        with pytest.raises(hf.StorageAccessError):
            storage.list_dir("")
    assert Storage(path, s3_server.options).list_dir("") == []


def test_a_store_without_conditional_writes_is_refused(s3_server: S3Server, between: Faults) -> None:
    path = s3_server.path("unconditional")
    text = refusal("NotImplemented", "A header you provided implies functionality that is not implemented.")
    between.conditions = lambda request: (501, text, "application/xml")
    with pytest.raises(hf.UnsupportedFeatureError, match=rf"{between.url} cannot write .*unconditional.*conditional"):
        hf.write(OLD, path, options(), storage_options=s3_server.options_at(between.url))
    assert [one for one in Storage(path, s3_server.options).list_dir("", recursive=True) if not one.is_dir] == []


def test_texts_of_pyarrow_have_codes() -> None:
    text = "When listing: AWS Error ACCESS_DENIED during ListObjectsV2 operation: Access Denied"
    assert refusal_of_text(text) == "AccessDenied"
    assert refusal_of_text("AWS Error SLOW_DOWN during PutObject operation") is None
    assert refusal_of_text("AWS Error UNKNOWN (HTTP status 403) during HeadObject operation") == "AccessDenied"
    assert refusal_code("SlowDown") is None
