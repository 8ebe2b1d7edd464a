"""A lock in ZooKeeper: who has it, what its nodes look like, and what becomes of it when somebody goes silent."""

from __future__ import annotations

import contextlib
import itertools
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_acl

from hudi_fast.config.concurrency_options import LockOptions
from hudi_fast.config.properties_file import create_properties
from hudi_fast.errors import ConfigError, LockError
from hudi_fast.locking.provider import LockProvider, open_provider, path_hash
from hudi_fast.locking.zookeeper import queue_order
from hudi_fast.storage.base import Storage
from tests.locking.contention import LinePeer, contend, python_lock
from tests.locking.jvm_lock import jvm_lock, peer_pyspark_jars
from tests.servers.tcp_proxy import tcp_proxy
from tests.servers.zookeeper import ZookeeperServer, start_zookeeper

PROVIDER = "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider"
IMPLICIT = "org.apache.hudi.client.transaction.lock.ZookeeperBasedImplicitBasePathLockProvider"
LOCK = "hoodie.write.lock."
KEYS = itertools.count()
SESSION_SECONDS = 1.0


def properties(url: str, provider: str = PROVIDER, **more: Any) -> dict[str, Any]:
    """A lock of its own for each test."""
    named = {"base_path": "/hudi/locks", "lock_key": f"key{next(KEYS)}"} if provider == PROVIDER else {}
    return {
        f"{LOCK}provider": provider,
        f"{LOCK}wait_time_ms_between_retry": "100",
        f"{LOCK}zookeeper.url": url,
        f"{LOCK}zookeeper.session_timeout_ms": str(round(SESSION_SECONDS * 1000)),
        f"{LOCK}zookeeper.connection_timeout_ms": "5000",
    } | {f"{LOCK}zookeeper.{name}": value for name, value in (named | more).items()}


def path_of(settings: dict[str, Any]) -> str:
    return f"{settings[f'{LOCK}zookeeper.base_path']}/{settings[f'{LOCK}zookeeper.lock_key']}"


def opened(settings: dict[str, Any], uri: str = "/nowhere") -> LockProvider:
    return open_provider(Storage(uri), LockOptions.from_options(settings))


@contextlib.contextmanager
def held(settings: dict[str, Any]) -> Iterator[LockProvider]:
    provider = opened(settings)
    try:
        assert provider.try_lock(10)
        yield provider
    finally:
        provider.close()


@contextlib.contextmanager
def client(url: str) -> Iterator[Any]:
    """A view of the server from beside."""
    kazoo = KazooClient(url)
    kazoo.start()
    try:
        yield kazoo
    finally:
        kazoo.stop()
        kazoo.close()


@pytest.fixture
def view(zookeeper: ZookeeperServer) -> Iterator[Any]:
    with client(zookeeper.url) as kazoo:
        yield kazoo


def until(condition: Callable[[], object], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# ---- names


def test_the_queue_is_sorted_by_what_comes_after_the_last_lock():
    names = ["_c_b-lock-0000000002", "_c_a-lock-0000000010", "lock-x-lock-0000000001", "9", "_c_lock-lock-0000000003"]
    assert queue_order(names) == [names[2], names[0], names[4], names[1], names[3]]


@pytest.mark.parametrize(("base", "key"), [("hudi", "k"), ("/hudi/", "k"), ("/a//b", "k"), ("/a", "k/"), ("/a", "..")])
def test_paths_that_zookeeper_does_not_take_are_refused(base, key):
    with pytest.raises(ConfigError, match="base_path"):
        opened(properties("127.0.0.1:1", base_path=base, lock_key=key))


def test_servers_that_are_none_are_refused():
    with pytest.raises(ConfigError, match=r"zookeeper\.url"), held(properties("localhost:port")):
        pass


def test_nodes_are_named_as_hudis_are_and_go_with_their_session(zookeeper, view):
    settings = properties(zookeeper.url)
    with held(settings):
        (name,) = view.get_children(path_of(settings))
        data, stat = view.get(f"{path_of(settings)}/{name}")
        assert re.fullmatch(r"_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-lock-\d{10}", name)
        assert data.startswith(b"application_id=hudi_fast-")
        assert stat.ephemeralOwner
    assert view.get_children(path_of(settings)) == []
    assert view.get(path_of(settings))[1].ephemeralOwner == 0


def test_the_key_is_the_tables_name_unless_there_is_another(zookeeper, view, tmp_path):
    create_properties(Storage(tmp_path / "t"), {"hoodie.table.name": "trips"})
    settings = properties(zookeeper.url, base_path="/hudi/by-name")
    del settings[f"{LOCK}zookeeper.lock_key"]
    provider = opened(settings, str(tmp_path / "t"))
    assert provider.try_lock(1)
    assert len(view.get_children("/hudi/by-name/trips")) == 1
    provider.close()


def test_the_implicit_path_follows_from_the_base_path(zookeeper, view):
    provider = opened(properties(zookeeper.url, IMPLICIT), "/some/table")
    assert provider.try_lock(1)
    assert len(view.get_children(f"/tmp/{path_hash('/some/table')}/lock_key")) == 1
    provider.close()


def test_all_is_below_the_path_in_the_url(zookeeper, view):
    view.ensure_path("/root")
    settings = properties(f"{zookeeper.url}/root")
    with held(settings) as provider:
        provider.require_held()
        assert len(view.get_children(f"/root{path_of(settings)}")) == 1


def test_a_path_in_the_url_that_is_not_there_is_named(zookeeper):
    with pytest.raises(LockError, match=r"end of hoodie\.write\.lock\.zookeeper\.url"):
        opened(properties(f"{zookeeper.url}/missing")).try_lock(1)


# ---- one holder


def test_the_queue_is_served_in_order(zookeeper, view):
    settings = properties(zookeeper.url)
    order: list[int] = []

    def take(number: int) -> None:
        with held(settings):
            order.append(number)

    with held(settings):
        threads = [threading.Thread(target=take, args=(number,)) for number in range(4)]
        for number, thread in enumerate(threads):
            thread.start()
            until(lambda: len(view.get_children(path_of(settings))) == number + 2)  # noqa: B023
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3]


def test_a_lock_is_taken_again_in_the_session_of_the_last(zookeeper, view):
    settings = properties(zookeeper.url, session_timeout_ms="2000")

    def owner() -> int:
        with held(settings):
            return owner_of(view, path_of(settings))

    assert owner() == owner()
    with held(settings | {f"{LOCK}zookeeper.lock_key": "another"}):
        assert owner() != owner_of(view, "/hudi/locks/another")


def owner_of(view: Any, path: str) -> int:
    (name,) = view.get_children(path)
    return int(view.exists(f"{path}/{name}").ephemeralOwner)


def test_hudi_waits_for_python_and_python_for_hudi(zookeeper, tmp_path):
    settings = properties(zookeeper.url)
    other = opened(settings)
    with jvm_lock(PROVIDER, settings) as jvm:
        with held(settings):
            assert jvm.ask("lock 0.3").startswith("busy")
            jvm.send("lock 10")
            time.sleep(0.2)
        assert jvm.answer() == "locked"
        assert not other.try_lock(0.2)
        assert other.holder.endswith("application_id=Unknown")
        jvm.send("unlock")
        assert other.try_lock(5)
        assert jvm.answer() == "unlocked"
        other.close()
        with python_lock("/nowhere", settings) as one, python_lock("/nowhere", settings) as two:
            contend(tmp_path, [jvm, one, two], 75)


@pytest.mark.long
def test_hudis_implicit_lock_is_ours(zookeeper):
    settings = properties(zookeeper.url, IMPLICIT)
    with jvm_lock(IMPLICIT, settings | {"hoodie.base.path": "/some/table"}) as jvm:
        assert jvm.ask("lock 5") == "locked"
        provider = opened(settings, "/some/table")
        assert not provider.try_lock(0.1)
        assert opened(settings, "/some/other").try_lock(0.1)
        assert jvm.ask("unlock") == "unlocked"
        assert provider.try_lock(1)
        provider.close()


@pytest.mark.long
@pytest.mark.parametrize("version", ["1.2.0", "0.15.0"])
def test_processes_of_both_exclude_each_other_thousands_of_times(zookeeper, tmp_path, version):
    settings = properties(zookeeper.url)
    with contextlib.ExitStack() as stack:
        peers: list[LinePeer] = [stack.enter_context(jvm_lock(PROVIDER, settings, version)) for _ in range(2)]
        peers += [stack.enter_context(python_lock("/nowhere", settings)) for _ in range(2)]
        contend(tmp_path, peers, 1500, 280)
        peers[0].send(f"contend 50 {tmp_path} fresh")  # with a session for each round, as Hudi's transactions have
        peers[2].send(f"contend 50 {tmp_path}")
        assert [peers[0].answer(), peers[2].answer()] == ["done 50"] * 2


# ---- holders that go silent


@pytest.mark.long
def test_the_lock_of_a_hudi_that_was_killed_is_free_after_its_session(zookeeper):
    settings = properties(zookeeper.url)
    with jvm_lock(PROVIDER, settings) as holder:
        assert holder.ask("lock 10") == "locked"
        holder.signal(signal.SIGKILL)
        began = time.monotonic()
        with held(settings):
            assert time.monotonic() - began < SESSION_SECONDS + 2


@pytest.mark.long
def test_a_waiter_that_was_suspended_queues_again(zookeeper, view):
    settings = properties(zookeeper.url)
    with python_lock("/nowhere", settings) as sleeper:
        with held(settings):
            sleeper.send("lock 20")
            until(lambda: len(view.get_children(path_of(settings))) == 2)
            sleeper.signal(signal.SIGSTOP)
            until(lambda: len(view.get_children(path_of(settings))) == 1)
            sleeper.signal(signal.SIGCONT)
            until(lambda: len(view.get_children(path_of(settings))) == 2)
        assert sleeper.answer() == "locked"
        assert sleeper.ask("held") == "held"


def test_a_child_of_fork_neither_has_the_lock_nor_takes_it_away(zookeeper):
    settings = properties(zookeeper.url)
    script = """
import os, sys
from hudi_fast.config.concurrency_options import LockOptions
from hudi_fast.errors import LockError
from hudi_fast.locking.provider import open_provider
from hudi_fast.storage.base import Storage

options = LockOptions.from_options(eval(sys.argv[1]))
earlier = open_provider(Storage("/nowhere"), options)
assert earlier.try_lock(5)
earlier.close()
provider = open_provider(Storage("/nowhere"), options)
assert provider.try_lock(5)
child = os.fork()
if child == 0:
    code = 1
    try:
        provider.require_held()
    except LockError:
        provider.unlock()
        provider.close()
        code = 0 if not open_provider(Storage("/nowhere"), options).try_lock(0.2) else 2
    os._exit(code)
_, status = os.waitpid(child, 0)
provider.require_held()
provider.close()
sys.exit(os.waitstatus_to_exitcode(status))
"""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script, repr(settings)]  # fork and threads
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# ---- a server that goes silent


def test_a_lock_outlives_a_connection(zookeeper):
    with tcp_proxy(zookeeper.port) as proxy:
        settings = properties(f"127.0.0.1:{proxy.port}", session_timeout_ms="8000")
        with held(settings) as provider, held(settings | {f"{LOCK}zookeeper.lock_key": "another"}):
            proxy.refuses = True
            proxy.cut()
            timer = threading.Timer(0.3, lambda: setattr(proxy, "refuses", False))
            timer.start()
            provider.require_held()
            proxy.cut()
            provider.unlock()


@pytest.mark.long
def test_connections_that_break_at_any_moment_let_nobody_else_in(zookeeper, tmp_path):
    settings = properties(zookeeper.url, session_timeout_ms="6000")
    over, chance = threading.Event(), random.Random(7)

    with contextlib.ExitStack() as stack:
        proxy = stack.enter_context(tcp_proxy(zookeeper.port))
        broken = settings | {f"{LOCK}zookeeper.url": f"127.0.0.1:{proxy.port}"}
        peers = [stack.enter_context(python_lock("/nowhere", broken)) for _ in range(2)]
        peers.append(stack.enter_context(jvm_lock(PROVIDER, settings)))

        def break_them() -> None:
            while not over.wait(chance.uniform(0.05, 0.6)):
                if chance.random() < 0.5:
                    proxy.loses_answers = True
                else:
                    proxy.cut()

        thread = threading.Thread(target=break_them)
        thread.start()
        try:
            contend(tmp_path, peers, 40, 250)
        finally:
            over.set()
            thread.join()


def test_a_silent_server_is_no_proof_of_the_lock(zookeeper):
    with tcp_proxy(zookeeper.port) as proxy:
        settings = properties(f"127.0.0.1:{proxy.port}", connection_timeout_ms="300")
        with held(settings) as provider:
            proxy.silent = True
            with pytest.raises(LockError, match="did not answer"):
                provider.require_held()
            with pytest.raises(OSError, match="did not answer"):
                provider.unlock()
            with pytest.raises(OSError, match="cannot be reached"):
                opened(settings).try_lock(0)
            proxy.silent = False
    with held(settings | {f"{LOCK}zookeeper.url": zookeeper.url}):  # the node went with its session
        pass


@pytest.mark.long
def test_a_lock_outlives_a_restart_of_the_server(java, tmp_path):
    with start_zookeeper(peer_pyspark_jars(), tmp_path) as server:
        settings = properties(server.url, session_timeout_ms="8000")
        with held(settings) as provider, python_lock("/nowhere", settings) as waiter:
            waiter.send("lock 60")
            time.sleep(0.5)
            server.stop()
            server.start()
            provider.require_held()
            provider.unlock()
            assert waiter.answer() == "locked"
            assert waiter.ask("held") == "held"


def test_a_server_that_is_away_is_tried_for_as_long_as_the_lock_is_waited_for(zookeeper):
    with tcp_proxy(zookeeper.port) as proxy:
        proxy.refuses = True
        settings = properties(f"127.0.0.1:{proxy.port}", connection_timeout_ms="300")
        with pytest.raises(OSError, match="cannot be reached"):
            opened(settings).try_lock(0.5)
        timer = threading.Timer(0.6, lambda: setattr(proxy, "refuses", False))
        timer.start()
        with held(settings) as provider:
            provider.require_held()


def test_a_node_that_could_not_be_deleted_goes_with_the_next_connection(zookeeper, view):
    with tcp_proxy(zookeeper.port) as proxy:
        settings = properties(f"127.0.0.1:{proxy.port}", session_timeout_ms="9000", connection_timeout_ms="300")
        with held(settings) as provider:
            proxy.refuses = True
            proxy.cut()
            with pytest.raises(OSError, match="did not answer"):
                provider.unlock()
        assert len(view.get_children(path_of(settings))) == 1
        proxy.refuses = False
        began = time.monotonic()
        until(lambda: not view.get_children(path_of(settings)))
        assert time.monotonic() - began < 4


@pytest.mark.parametrize("step", ["lock", "held", "unlock"])
def test_an_answer_that_is_lost_changes_nothing(zookeeper, view, step):
    with tcp_proxy(zookeeper.port) as proxy:
        settings = properties(f"127.0.0.1:{proxy.port}", session_timeout_ms="4000")
        provider = opened(settings)
        with held(settings):  # its session is the one that is gone on with
            pass
        proxy.loses_answers = step == "lock"
        assert provider.try_lock(5)
        assert len(view.get_children(path_of(settings))) == 1
        proxy.loses_answers = step == "held"
        provider.require_held()
        proxy.loses_answers = step == "unlock"
        provider.unlock()
        assert not proxy.loses_answers
        provider.close()
        assert view.get_children(path_of(settings)) == []


def test_nodes_that_others_must_not_change_are_a_lock_that_cannot_be_had(zookeeper, view):
    settings = properties(zookeeper.url, base_path="/closed", lock_key="k")
    view.create("/closed", acl=[make_acl("digest", "somebody:nobody", all=True)])
    with pytest.raises(LockError, match="denies access"):
        opened(settings).try_lock(5)
