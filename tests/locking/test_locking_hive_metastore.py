"""A lock in a Hive metastore: who has it, what is left behind, and what answers that are lost do to it."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hudi_fast.config.concurrency_options import LockOptions
from hudi_fast.errors import ConfigError, LockError, UnsupportedFeatureError
from hudi_fast.locking.hive_metastore import HiveMetastoreLock, LockEntry, LockGoneError, Metastore
from hudi_fast.locking.provider import LockProvider, open_provider
from hudi_fast.storage.base import Storage
from tests.locking.contention import contend, python_lock
from tests.locking.jvm_lock import jvm_lock, peer_pyspark_jars
from tests.servers.hive_metastore import start_hive_metastore
from tests.servers.tcp_proxy import tcp_proxy
from tests.support.jvm import FETCHED

PROVIDER = "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider"
LOCK = "hoodie.write.lock."
TABLES = itertools.count()
DATABASE = "trips_db"


def properties(uris: str, **more: Any) -> dict[str, Any]:
    """A lock of its own for each test."""
    return {
        f"{LOCK}provider": PROVIDER,
        f"{LOCK}hivemetastore.uris": uris,
        f"{LOCK}hivemetastore.database": DATABASE,
        f"{LOCK}hivemetastore.table": f"table{next(TABLES)}",
    } | {f"{LOCK}{name}": value for name, value in more.items()}


def opened(settings: dict[str, Any]) -> LockProvider:
    return open_provider(Storage("/nowhere"), LockOptions.from_options(settings))


@contextlib.contextmanager
def held(settings: dict[str, Any]) -> Iterator[LockProvider]:
    provider = opened(settings)
    try:
        assert provider.try_lock(10)
        yield provider
    finally:
        provider.close()


@pytest.fixture
def view(hive_metastore) -> Iterator[Metastore]:
    metastore = Metastore([("127.0.0.1", hive_metastore.port)], 20)
    yield metastore
    metastore.close()


def entries(view: Metastore, settings: dict[str, Any]) -> list[LockEntry]:
    return view.entries(DATABASE, settings[f"{LOCK}hivemetastore.table"])


def until(condition: Callable[[], object], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# ---- where it is


@pytest.mark.parametrize("uris", ["localhost:9083", "http://localhost:9083", "thrift://localhost:port", "thrift://"])
def test_metastores_that_are_none_are_refused(uris):
    with pytest.raises(ConfigError, match="thrift://host:port"):
        opened(properties(uris))


def test_without_a_metastore_hive_site_is_asked(tmp_path, monkeypatch):
    monkeypatch.setenv("HIVE_CONF_DIR", str(tmp_path))
    with pytest.raises(ConfigError, match=r"hoodie\.write\.lock\.hivemetastore\.uris"):
        opened(properties(""))
    site = "<configuration><property><name>{}</name><value>{}</value></property></configuration>"
    (tmp_path / "hive-site.xml").write_text(site.format("hive.metastore.uris", " thrift://one:9083, thrift://two"))
    provider = opened(properties(""))
    assert isinstance(provider, HiveMetastoreLock)
    assert provider._metastore.name == "one:9083,two:9083"
    (tmp_path / "hive-site.xml").write_text(site.format("hive.metastore.sasl.enabled", "true"))
    with pytest.raises(UnsupportedFeatureError, match="sasl"):
        opened(properties("thrift://one:9083"))
    (tmp_path / "hive-site.xml").write_text("<configuration>")
    with pytest.raises(ConfigError, match="not valid XML"):
        opened(properties(""))


def test_a_metastore_that_is_away_is_an_error_of_this_try():
    with pytest.raises(OSError, match="did not answer"):
        opened(properties("thrift://127.0.0.1:1,thrift://127.0.0.1:2")).try_lock(0)


# ---- one holder


def test_a_lock_is_an_entry_in_the_first_metastore_that_answers(hive_metastore, view):
    settings = properties(f"thrift://127.0.0.1:1,{hive_metastore.uri}")
    with held(settings) as provider:
        provider.require_held()
        (entry,) = entries(view, settings)
        assert entry.is_acquired
        assert entry.agent.startswith("hudi_fast-")
        assert "@" in entry.owner
    assert entries(view, settings) == []


def test_hudi_and_python_exclude_each_other(hive_metastore, view, tmp_path):
    settings = properties(hive_metastore.uri)
    other = opened(settings)
    with jvm_lock(PROVIDER, settings) as jvm:
        with held(settings):
            assert jvm.ask("lock 5").startswith("busy")
        assert jvm.ask("lock 5") == "locked"
        assert not other.try_lock(0.1)
        assert "@" in other.holder
        assert jvm.ask("unlock") == "unlocked"
        assert other.try_lock(0)
        other.close()
        with python_lock("/nowhere", settings) as python:
            contend(tmp_path, [jvm, python], 15)
    assert entries(view, settings) == []


@pytest.mark.long
def test_processes_of_both_exclude_each_other_hundreds_of_times(hive_metastore, view, tmp_path):
    settings = properties(hive_metastore.uri)
    with (
        jvm_lock(PROVIDER, settings) as jvm,
        jvm_lock(PROVIDER, settings, "0.15.0") as older,
        python_lock("/nowhere", settings) as one,
        python_lock("/nowhere", settings) as two,
    ):
        contend(tmp_path, [jvm, older, one, two], 60, 280)
    assert entries(view, settings) == []


# ---- what is lost


def test_a_lock_that_the_metastore_dropped_is_lost(hive_metastore, view):
    settings = properties(hive_metastore.uri, heartbeat_interval_ms="40")
    with held(settings) as first, held(properties(hive_metastore.uri)) as second:
        first.require_held()
        time.sleep(0.2)
        first.require_held()  # heartbeats go on
        (entry,) = entries(view, settings)
        view.unlock(entry.lock_id)
        until(lambda: not first._released.is_set() and first._lost)
        with pytest.raises(LockError, match="no longer knows it"):
            first.require_held()
        second.require_held()
    with pytest.raises(LockGoneError):
        view.heartbeat(entry.lock_id)


@pytest.mark.parametrize("step", ["lock", "wait", "held", "unlock"])
def test_an_answer_that_is_lost_changes_nothing(hive_metastore, view, step):
    with tcp_proxy(hive_metastore.port) as proxy:
        settings = properties(f"thrift://127.0.0.1:{proxy.port}")
        provider = opened(settings)
        if step in ("lock", "wait"):
            with held(settings) if step == "wait" else contextlib.nullcontext():
                proxy.loses_answers = True
                with pytest.raises(OSError, match="did not answer lock"):
                    provider.try_lock(0)
                assert [each.is_acquired for each in entries(view, settings)] in ([True], [True, False])
        assert provider.try_lock(0)
        (entry,) = entries(view, settings)
        proxy.loses_answers = step == "held"
        provider.require_held()
        proxy.loses_answers = step == "unlock"
        provider.unlock()
        assert not proxy.loses_answers
        assert entry.is_acquired
        assert entries(view, settings) == []
        provider.close()


def test_a_try_that_was_not_answered_is_given_up_at_the_end(hive_metastore, view):
    with tcp_proxy(hive_metastore.port) as proxy:
        settings = properties(f"thrift://127.0.0.1:{proxy.port}")
        provider = opened(settings)
        proxy.loses_answers = True
        with pytest.raises(OSError, match="did not answer lock"):
            provider.try_lock(0)
        assert len(entries(view, settings)) == 1
        provider.close()
        assert entries(view, settings) == []


def test_a_metastore_that_cannot_be_reached_is_no_proof_of_the_lock(hive_metastore):
    with tcp_proxy(hive_metastore.port) as proxy, held(properties(f"thrift://127.0.0.1:{proxy.port}")) as provider:
        proxy.refuses = True
        proxy.cut()
        with pytest.raises(LockError, match="did not answer heartbeat"):
            provider.require_held()
        proxy.refuses = False
        provider.require_held()


def test_a_lock_is_given_up_as_soon_as_the_metastore_is_back(hive_metastore, view):
    with tcp_proxy(hive_metastore.port) as proxy:
        settings = properties(f"thrift://127.0.0.1:{proxy.port}")
        with held(settings) as provider:
            proxy.refuses = True
            proxy.cut()
            timer = threading.Timer(0.4, lambda: setattr(proxy, "refuses", False))
            timer.start()
            provider.unlock()
            assert entries(view, settings) == []


@pytest.mark.long
def test_who_cannot_give_the_lock_up_says_so(hive_metastore):
    with tcp_proxy(hive_metastore.port) as proxy, held(properties(f"thrift://127.0.0.1:{proxy.port}")) as provider:
        proxy.refuses = True
        proxy.cut()
        with pytest.raises(OSError, match="did not answer unlock"):
            provider.unlock()


@pytest.mark.long
def test_a_lock_outlives_a_restart_of_the_metastore(java, tmp_path):
    with start_hive_metastore(peer_pyspark_jars(), FETCHED, tmp_path / "server") as server:
        settings = properties(server.uri, heartbeat_interval_ms="100")
        with held(settings) as provider:
            server.stop()
            with pytest.raises(LockError, match="did not answer heartbeat"):
                provider.require_held()
            server.start()
            provider.require_held()
            other = opened(settings)
            assert not other.try_lock(0)
            other.close()
