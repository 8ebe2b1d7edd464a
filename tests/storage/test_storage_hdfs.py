"""Files on HDFS: exclusive creation, replacing, folders, times, and errors in words."""

from __future__ import annotations

import contextlib
import os
import pickle
from types import SimpleNamespace
from typing import Any, cast

import pytest

import hudi_fast as hf
from hudi_fast.storage import hdfs as hdfs_files
from hudi_fast.storage.base import Storage
from hudi_fast.storage.hadoop_options import HdfsOptions
from hudi_fast.storage.hdfs import HdfsClient, HdfsStore, _whole_reader, explained
from tests.servers.hdfs import HdfsCluster
from tests.storage.rivals import winners


def storage(hdfs: HdfsCluster, name: str, options: dict[str, str] | None = None) -> Storage:
    return Storage(hdfs.path(name), options)


def names(there: Storage, path: str = "") -> list[str]:
    return [one.path for one in there.list_dir(path, recursive=True)]


def test_one_of_many_writers_creates_a_file(hdfs: HdfsCluster) -> None:
    there = storage(hdfs, "create")
    for content in (b"", b"x" * 1000):
        path = f"a/{len(content)}"

        def create(number: int, path: str = path, content: bytes = content) -> None:
            there.create_exclusive(path, content and content + b"%d" % number)

        won = winners(create)
        assert len(won) == 1
        assert there.read_bytes(path) == (content and content + b"%d" % won[0])
    assert names(there) == ["a", "a/0", "a/1000"]


def test_files_and_folders_are_as_on_local_disk(hdfs: HdfsCluster) -> None:
    there = storage(hdfs, "files")
    assert there.list_dir("") == []
    assert there.stat("a") is None
    there.write_bytes("a/b/f", b"one")
    there.write_bytes("a/b/f", b"three")
    with there.replacing("a/b/f") as sink:
        sink.write(b"no")
        assert there.read_bytes("a/b/f") == b"three"
    with contextlib.suppress(ZeroDivisionError), there.replacing("a/b/f") as sink:
        sink.write(b"lost")
        raise ZeroDivisionError
    there.make_dir("a/empty")
    there.make_dir("a/empty")
    assert names(there) == ["a", "a/b", "a/b/f", "a/empty"]
    found = there.stat("a/b/f")
    assert found is not None
    assert (found.size, found.is_dir) == (2, False)
    there.set_modified("a/b/f", 1_700_000_000_123)
    assert [one.modified_ms for one in there.list_dir("a/b")] == [1_700_000_000_123]
    there.move("a/b/f", "c/ü g")
    assert there.read_bytes("c/ü g") == b"no"
    with pytest.raises(FileNotFoundError):
        there.read_bytes("a/b/f")
    assert [there.delete_file("c/ü g"), there.delete_file("c/ü g")] == [True, False]
    assert [there.delete_dir("a"), there.delete_dir("a")] == [True, False]
    assert names(there) == ["c"]
    assert pickle.loads(pickle.dumps(there)).list_dir("")[0].name == "c"


def test_files_are_read_in_parts_and_past_their_end(hdfs: HdfsCluster) -> None:
    there, content = storage(hdfs, "parts", {"dfs.blocksize": "1m"}), os.urandom(3 << 20)
    with there.open_output("f") as sink:
        for start in range(0, len(content), 1 << 20):
            sink.write(memoryview(content)[start : start + (1 << 20)])
    with there.open_input("f") as source:
        assert source.read_at(100, len(content) - 10) == content[-10:]
        source.seek((1 << 20) - 5)
        assert source.read(10) == content[(1 << 20) - 5 : (1 << 20) + 5]
        assert source.read() == content[(1 << 20) + 5 :]
    status = hdfs.files.getFileStatus(hdfs.hadoop_path(f"{hdfs.path('parts')}/f"))
    assert (status.getBlockSize(), status.getReplication()) == (1 << 20, 2)


def test_settings_of_new_files_are_hadoops(hdfs: HdfsCluster) -> None:
    there = storage(hdfs, "settings", {"dfs.replication": "1", "fs.permissions.umask-mode": "007"})
    there.write_bytes("d/f", b"x")
    there.make_dir("e")
    status = [hdfs.files.getFileStatus(hdfs.hadoop_path(f"{hdfs.path('settings')}/{name}")) for name in ("d/f", "e")]
    assert [one.getPermission().toString() for one in status] == ["rw-rw----", "rwxrwx---"]
    assert status[0].getReplication() == 1


def test_a_rename_whose_answer_was_lost_counts(hdfs: HdfsCluster) -> None:
    client = HdfsClient(HdfsOptions.of({}, hdfs.uri))

    class AnswersLost:
        """Carries calls out, and answers renames as the client does that repeats them after a lost answer."""

        def rename(self, source: str, target: str, replaces: bool) -> None:
            client.get().rename(source, target, replaces)
            client.get().rename(source, target, replaces)

        def __getattr__(self, name: str) -> Any:
            return getattr(client.get(), name)

    class Losing(HdfsClient):
        def get(self) -> Any:
            return AnswersLost()

    store = HdfsStore(Losing(client.options))
    store.create("/tests/lost/f", b"ours")
    with pytest.raises(FileExistsError):
        HdfsStore(client).create("/tests/lost/f", b"theirs")
    store.replace("/tests/lost/f", b"ours again")
    there = storage(hdfs, "lost")
    assert there.read_bytes("f") == b"ours again"
    assert names(there) == ["f"]


def test_a_process_that_was_forked_is_refused_instead_of_hanging(hdfs: HdfsCluster) -> None:
    there = storage(hdfs, "fork")
    there.write_bytes("f", b"x")
    child = os.fork()
    if not child:
        try:
            there.read_bytes("f")
        except hf.ConfigError as error:
            os._exit(7 if "spawn" in str(error) else 1)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_tokens_say_who_writes_until_they_are_cancelled(hdfs: HdfsCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_TOKEN_FILE_LOCATION", raising=False)
    monkeypatch.setenv("HADOOP_USER_NAME", "nobody-known")
    token, content = hdfs.token()
    secure = {"delegation_tokens": content, "hadoop.security.authentication": "kerberos"}
    there = storage(hdfs, "tokens", secure)
    there.write_bytes("f", b"x")
    owner = hdfs.files.getFileStatus(hdfs.hadoop_path(f"{hdfs.path('tokens')}/f")).getOwner()
    assert owner == token.decodeIdentifier().getUser().getShortUserName()
    hdfs.cluster.getNameNodeRpc().cancelDelegationToken(token)
    later = storage(hdfs, "tokens", {**secure, "dfs.client.socket-timeout": "60001"})
    with pytest.raises(PermissionError, match=r"HDFS does not accept this caller .*kinit"):
        later.read_bytes("f")
    assert content not in repr(there) + repr(there.options)
    os.unlink(os.environ["HADOOP_TOKEN_FILE_LOCATION"])
    monkeypatch.delenv("HADOOP_TOKEN_FILE_LOCATION")


def of_java(name: str, text: str) -> RuntimeError:
    return RuntimeError(f'RPCError("org.apache.hadoop.{name}", "{text}")')


@pytest.mark.parametrize(
    ("raised", "kind", "said"),
    [
        (of_java("security.AccessControlException", r"no\n\tat x"), PermissionError, "^/f: no$"),
        (of_java("hdfs.protocol.DSQuotaExceededException", "over"), OSError, "DSQuota.*over"),
        (RuntimeError("NoSASLMechanism"), PermissionError, "kinit"),
        (RuntimeError('GSSAPIError(Failure, 0, "no ticket")'), PermissionError, "kinit"),
        (RuntimeError('InvalidArgument("No NameNode hosts found")'), OSError, "hdfs-site.xml"),
        (FileNotFoundError("gone\n\tat java"), FileNotFoundError, "^/f: gone$"),
        (OSError("Connection refused"), OSError, "HDFS failed at /f: Connection refused"),
        (NotImplementedError("XOR"), hf.UnsupportedFeatureError, "does not support XOR"),
        (type("PanicException", (BaseException,), {})("bad"), OSError, "HDFS failed at /f: bad"),
    ],
)
def test_errors_are_of_their_kind(raised: BaseException, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said), explained("/f"):
        raise raised


class Reported:
    """A client of a cluster whose DataNode reports the last block of a file after some reads."""

    def __init__(self, reads: int) -> None:
        self.reads = reads

    def get(self) -> Reported:
        return self

    def get_file_info(self, path: str) -> SimpleNamespace:
        return SimpleNamespace(length=700)

    def read(self, path: str) -> bytes:
        self.reads -= 1
        return bytes(700 if self.reads <= 0 else 512)


def test_a_reader_waits_for_the_last_block(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(_whole_reader(cast(HdfsClient, Reported(3)), "/f")) == 700
    monkeypatch.setattr(hdfs_files, "_REPORT_SECONDS", 0.01)
    with pytest.raises(OSError, match="/f has no complete last block"):
        _whole_reader(cast(HdfsClient, Reported(10**9)), "/f")
