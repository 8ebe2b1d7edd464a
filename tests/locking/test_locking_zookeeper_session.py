"""Sessions with ZooKeeper without a server: what is refused, what is kept for the next lock, how requests fail."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any

import pytest
from kazoo.exceptions import ConnectionLoss, NoAuthError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from hudi_fast.errors import ConfigError, LockError
from hudi_fast.locking.zookeeper_session import ZookeeperServer, ZookeeperSession, borrow_session, return_session


@pytest.fixture
def server() -> ZookeeperServer:
    """Nothing listens there."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return ZookeeperServer(f"127.0.0.1:{taken.getsockname()[1]}", 1.0, 0.2, (0.05, 0.1))


class Client:
    """A client that says that it is connected."""

    connected = True

    def stop(self) -> None:
        self.connected = False

    def close(self) -> None: ...


def connected(server: ZookeeperServer) -> ZookeeperSession:
    session = borrow_session(server)
    session.client = Client()
    return session


def test_hosts_that_cannot_be_parsed_are_a_config_error() -> None:
    with pytest.raises(ConfigError, match=r"hoodie\.write\.lock\.zookeeper\.url='host:port'"):
        ZookeeperSession(ZookeeperServer("host:port", 1.0, 1.0, (0.1, 0.2)))


def test_a_server_that_does_not_answer_is_named(server: ZookeeperServer) -> None:
    session = ZookeeperSession(server)
    with pytest.raises(ConnectionError, match=f"{server.hosts}.*0.2 s"):
        session.connect()
    session.end()
    assert session.broken


def test_a_connected_session_is_kept_for_the_next_lock(server: ZookeeperServer) -> None:
    session = connected(server)
    return_session(session)
    assert borrow_session(server) is session
    other = borrow_session(server)
    assert other is not session
    session.end()
    other.end()


def test_one_session_is_kept_and_the_second_is_ended(server: ZookeeperServer) -> None:
    first, second = connected(server), connected(server)
    return_session(first)
    return_session(second)
    assert second.ended.is_set()
    assert borrow_session(server) is first
    first.end()


def test_a_broken_or_unconnected_session_is_not_kept(server: ZookeeperServer) -> None:
    broken = connected(server)
    broken.broken = True
    for session in (broken, borrow_session(server)):
        return_session(session)
        assert session.ended.is_set()
        assert borrow_session(server) is not session


def test_a_session_of_a_parent_process_is_neither_used_nor_ended(server: ZookeeperServer) -> None:
    session = connected(server)
    session.pid = os.getpid() + 1
    assert not session.is_usable
    session.end()
    assert not session.ended.is_set()


class Answer:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def get(self, timeout: float) -> Any:
        raise self.error


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (NoAuthError(), LockError),
        (NoNodeError(), NoNodeError),
        (ConnectionLoss(), ConnectionError),
        (KazooTimeoutError(), ConnectionError),
    ],
)
def test_errors_of_the_client_say_whether_the_outcome_is_known(
    server: ZookeeperServer, error: Exception, raised: type[Exception]
) -> None:
    session = ZookeeperSession(server)
    request: Callable[..., Answer] = lambda *_: Answer(error)  # noqa: E731
    with pytest.raises(raised):
        session.ask(request, "/lock", seconds=1.0)
    session.end()
