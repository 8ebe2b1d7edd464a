"""Whatever request of a write to S3 fails, and however: the old table or the new one, and the next write repairs it."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.storage.conditional import ThrottledError
from tests.servers.http_faults import FAULTS, Faults, http_faults
from tests.servers.s3 import S3Server
from tests.support.small_tables import assert_tidy, options, plain_rows, rows_of, table_rows

CHANGE = plain_rows(range(5, 15), ts=3, text="b")
NEXT = plain_rows([1, 40], ts=4, text="c")
SOME = 6


@pytest.fixture(scope="module")
def broken(s3_server: S3Server) -> Iterator[Faults]:
    with http_faults(s3_server.url) as faults:
        yield faults


@pytest.mark.parametrize(
    ("kind", "version", "sample"),
    [
        ("COPY_ON_WRITE", "9", SOME),
        pytest.param("COPY_ON_WRITE", "9", None, marks=[pytest.mark.long, pytest.mark.timeout(1800)]),
        pytest.param("MERGE_ON_READ", "6", 40, marks=[pytest.mark.long, pytest.mark.timeout(1800)]),
    ],
)
def test_any_failing_request_leaves_the_old_table_or_the_new_one(
    kind: str, version: str, sample: int | None, s3_server: S3Server, broken: Faults
) -> None:
    if s3_server.kind != "versitygw":
        pytest.skip("tables are copied and looked at behind the server's back, which needs versitygw (Go builds it)")
    settings = {**options(table_version=version), "hoodie.datasource.write.table.type": kind}
    settings["hoodie.metadata.enable"] = "false" if sample == SOME else "true"
    reach = s3_server.options_at(broken.url)
    bucket = s3_server.objects / s3_server.bucket
    base, tried = bucket / "faults-base", bucket / "faults-tried"
    shutil.rmtree(base, ignore_errors=True)
    hf.write(plain_rows(range(10)), s3_server.path(base.name), settings, storage_options=s3_server.options)
    old = table_rows(base)
    new = old | rows_of(CHANGE)
    count, landed = _requests(base, tried, settings, broken, reach, s3_server), 0
    cases = [(number, fault) for number in range(count) for fault in FAULTS]
    for number, fault in cases if sample is None else random.Random(1).sample(cases, sample):
        copied(base, tried)
        broken.arm(number, fault)
        error = attempt(s3_server.path(tried.name), settings, reach)
        where = f"{fault} {broken.asked[number : number + 1]}: {error!r}"
        broken.arm()
        seen = table_rows(tried)
        landed += error is None
        if error is None:
            assert_same(seen, new, where)
        elif not isinstance(error, hf.CommitStateUnknownError):
            assert isinstance(error, hf.HudiError | OSError), where
            assert_same(seen, old, where)
        hf.write(NEXT, s3_server.path(tried.name), settings, storage_options=s3_server.options)
        assert_same(table_rows(tried), {**seen, **rows_of(NEXT)}, where)
        assert_tidy(tried)
    assert landed > len(cases if sample is None else range(sample)) * 0.9  # what can be tried again is


def _requests(base: Path, tried: Path, settings: dict, broken: Faults, reach: object, server: S3Server) -> int:
    copied(base, tried)
    broken.arm()
    assert attempt(server.path(tried.name), settings, reach) is None
    return len(broken.asked)


def copied(base: Path, tried: Path) -> None:
    """Attributes of the files hold what the server knows of its objects."""
    shutil.rmtree(tried, ignore_errors=True)
    shutil.copytree(base, tried)


def attempt(path: str, settings: dict[str, str], reach: object) -> Exception | None:
    try:
        hf.write(CHANGE, path, settings, storage_options=reach)  # type: ignore[arg-type]
    except Exception as error:
        return error
    return None


def assert_same(seen: dict, expected: dict, where: str) -> None:
    """Ids and texts; the other values say where a row lies."""
    assert {key: row[-1] for key, row in seen.items()} == {key: row[-1] for key, row in expected.items()}, where


# ---- one request


@pytest.fixture
def storage(s3_server: S3Server, broken: Faults, request: pytest.FixtureRequest) -> Iterator[Storage]:
    made = Storage(s3_server.path(f"broken/{request.node.name}"), s3_server.options_at(broken.url))
    made.create_exclusive("first", b"")  # the client is connected, and the server has proven itself
    broken.arm()
    yield made
    broken.arm()


@pytest.mark.smoke("after")
@pytest.mark.parametrize("kind", FAULTS)
def test_the_outcome_of_a_create_is_found_out(kind: str, storage: Storage, broken: Faults) -> None:
    broken.arm(0, kind)
    storage.create_exclusive("made", b"ours")
    assert storage.read_bytes("made") == b"ours"
    broken.arm(0, kind)
    with pytest.raises(FileExistsError):
        storage.create_exclusive("made", b"ours")
    assert storage.read_bytes("made") == b"ours"


def test_a_create_whose_outcome_cannot_be_found_out_says_so(storage: Storage, broken: Faults) -> None:
    broken.arm(0, "after", lasts=100)
    with pytest.raises(OSError, match="did not"):
        storage.create_exclusive("made", b"ours")
    broken.arm()
    assert storage.read_bytes("made") == b"ours"


@pytest.mark.parametrize(("kind", "written"), [("before", False), ("after", True), ("busy", False)])
def test_a_conditional_write_is_tried_once_and_does_not_guess(
    kind: str, written: bool, storage: Storage, broken: Faults
) -> None:
    store = storage.conditional()
    version = store.create("lock", b"1")
    assert version is not None
    broken.arm(0, kind)
    with pytest.raises(OSError, match="lock") as caught:
        store.replace("lock", b"2", version)
    assert len(broken.asked) == 1
    assert isinstance(caught.value, ThrottledError) == (kind == "busy")
    found = store.read("lock")
    assert found is not None
    assert (found.data == b"2") == written


@pytest.mark.parametrize("kind", FAULTS)
def test_files_are_put_and_deleted_in_spite_of_a_fault(kind: str, storage: Storage, broken: Faults) -> None:
    broken.arm(0, kind)
    storage.write_bytes("f/a", b"1")
    assert storage.read_bytes("f/a") == b"1"
    for at in (0, 1):
        storage.write_bytes("f/a", b"1")
        broken.arm(at, kind)
        assert storage.delete_file("f/a")
        assert not storage.exists("f/a")
    storage.write_bytes("f/b", b"1")
    storage.write_bytes("f/g/c", b"1")
    for names in (["f/b"], ["f/b", "f/g/c"]):
        storage.write_bytes("f/b", b"1")
        broken.arm(0, kind)
        storage.delete_files(names)
        assert not storage.exists("f/b")
    storage.write_bytes("f/b", b"1")
    storage.write_bytes("f/g/c", b"1")
    broken.arm(1, kind)
    assert storage.delete_dir("f")
    assert storage.list_dir("", recursive=True) == storage.list_dir("")
    assert [one.path for one in storage.list_dir("")] == ["first"]
