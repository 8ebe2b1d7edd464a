"""Spark's JVM, through py4j: its classes by name, and objects of Python that it calls.

**Classes.** py4j resolves a chain of names, as in ``jvm.org.apache.hadoop.fs.Path``, name by name: at each dot the JVM
looks for a class in all jars of Spark, some 300. :func:`java_class` asks for nothing.

**Calls.** py4j gives each JVM thread that calls Python a connection of its own, which a thread of Python serves. It
keeps them all until the gateway ends. Spark plans and executes queries in threads of pools, which end after a minute
without work: a driver that runs for days would leave a socket on both sides and a thread here for each of them.

::

    a thread of the JVM ── first call ──► Called ── remembers the thread and its connection, closes those of ended ones
                        ── every call ──► Called ──► the object

Source: ``py4j.PythonClient`` and ``py4j.ClientServerConnection`` of py4j 0.10.9.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

__all__ = [
    "Called",
    "ComparedByText",
    "java_class",
    "java_schema",
    "open_connections",
    "scala_items",
    "scala_map",
    "scala_seq",
]

_PYTHON_UTILS = "org.apache.spark.api.python.PythonUtils"


_CHECKED = 4
"""Connections to look at for each new one: each is a call, and more than one is needed for all to be closed."""


class _Connection(NamedTuple):
    """A connection that a JVM thread opened; all three are py4j's names for Java objects."""

    thread: Any
    connection: Any
    client: Any


_open: deque[_Connection] = deque()
_known = threading.local()
"""Of a thread of Python: ``here`` is set once the connection that it serves is among the open ones."""


def java_class(machine: Any, name: str) -> Any:
    """A class of the JVM, for its constructors and its static members.

    Args:
        machine: ``_jvm`` of a session.
        name: with its package; the class itself, or what py4j raises when there is none, comes with the first use.
    """
    from py4j.java_gateway import JavaClass

    return JavaClass(name, machine._gateway_client)


def scala_map(machine: Any, pairs: Mapping[str, str]) -> Any:
    """Scala's immutable map of the pairs."""
    return java_class(machine, _PYTHON_UTILS).toScalaMap(dict(pairs))


def scala_seq(machine: Any, items: Sequence[Any]) -> Any:
    """Scala's sequence of the items: text, numbers or Java objects."""
    return java_class(machine, _PYTHON_UTILS).toSeq(list(items))


def scala_items(sequence: Any) -> list[Any]:
    """The Java objects of Scala's sequence."""
    return [sequence.apply(at) for at in range(sequence.size())]


def java_schema(machine: Any, schema: Any) -> Any:
    """Spark's schema in Java, all of whose columns may have nulls."""
    return java_class(machine, "org.apache.spark.sql.types.DataType").fromJson(schema.json()).asNullable()


class ComparedByText(ABC):
    """What the JVM asks of an object that it compares: two objects with one text are equal."""

    @abstractmethod
    def toString(self) -> str:
        """The text."""

    def hashCode(self) -> int:
        """A number of the text."""
        return int(hashlib.sha256(self.toString().encode()).hexdigest()[:7], 16)

    def equals(self, other: Any) -> bool:
        """Whether a Java object has the same text; it is a Java object even if it is this one."""
        return bool(other is not None and other.toString() == self.toString())


class Called:
    """An object that the JVM calls by a Java interface: its class has py4j's inner class ``Java``.

    Args:
        gateway: py4j's gateway of the session.
        answering: the object; its methods are called by the JVM from any thread.
    """

    def __init__(self, gateway: Any, answering: Any) -> None:
        self._gateway = gateway
        self._answering = answering

    def __getattr__(self, name: str) -> Any:
        if not hasattr(_known, "here"):
            _remember(self._gateway)
            _known.here = True
        return getattr(self._answering, name)


def open_connections() -> list[str]:
    """Names of the JVM's threads that have opened connections; those of threads that ended are closed by and by."""
    return [str(each.thread.getName()) for each in list(_open)]


def _remember(gateway: Any) -> None:
    """Note the connection that this thread serves, if the JVM opened it, and close those of threads that have ended."""
    from py4j.clientserver import ClientServerConnection
    from py4j.protocol import Py4JError

    serving = getattr(gateway._gateway_client, "get_thread_connection", lambda: None)()
    if not isinstance(serving, ClientServerConnection) or serving.initiated_from_client:
        return  # a thread of Python called the JVM, which calls back; without pinned threads py4j closes connections
    with contextlib.suppress(Py4JError):  # better an open connection than a query that fails
        client = gateway.java_gateway_server.getCallbackClient()
        thread = java_class(gateway.jvm, "java.lang.Thread").currentThread()
        _open.append(_Connection(thread, client.getPerThreadConnection(), client))
    for _ in range(min(_CHECKED, len(_open))):
        with contextlib.suppress(IndexError, Py4JError):  # other threads took the rest; its JVM has ended
            _close_if_ended(_open.popleft())


def _close_if_ended(opened: _Connection) -> None:
    if opened.thread.isAlive():
        _open.append(opened)
    else:
        opened.connection.shutdown()
        opened.client.connectionStopped(opened.connection)
