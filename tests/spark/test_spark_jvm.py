"""Classes of the JVM, and threads of the JVM that call Python and end: their connections are closed on both sides."""

import re
import threading
from pathlib import Path

import pytest
from py4j.protocol import Py4JError
from pyspark.java_gateway import ensure_callback_server_started

import hudi_fast as hf
from hudi_fast.spark.jvm import Called, java_class, open_connections
from tests.support.small_tables import OPTIONS, plain_rows


class Noted:
    """A ``Runnable`` that notes the thread of Python that executes it."""

    def __init__(self):
        self.served_by = []

    def run(self):
        self.served_by.append(threading.current_thread())

    class Java:
        implements = ("java.lang.Runnable",)


@pytest.fixture
def gateway(spark):
    gateway = spark.sparkContext._gateway
    ensure_callback_server_started(gateway)
    return gateway


def execute_in_threads(gateway, runnable, count):
    """Execute it in threads of the JVM that end, one after the other."""
    for _ in range(count):
        thread = gateway.jvm.java.lang.Thread(Called(gateway, runnable))
        thread.start()
        thread.join()


def test_a_class_has_its_constructors_and_static_members(gateway):
    assert java_class(gateway.jvm, "java.lang.StringBuilder")("abc").length() == 3
    assert java_class(gateway.jvm, "java.lang.Integer").MAX_VALUE == 2**31 - 1
    assert java_class(gateway.jvm, "java.lang.Integer").parseInt("7") == 7
    with pytest.raises(Py4JError):
        java_class(gateway.jvm, "java.lang.NoSuchClass")()


def test_no_module_asks_the_jvm_for_each_part_of_a_name():
    chain = re.compile(r"\b_?(?:jvm|machine)\.(?!_)[A-Za-z]")
    chains = [
        f"{path.name}: {line.strip()}"
        for path in Path(hf.__file__).parent.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if chain.search(line) and "``" not in line
    ]
    assert not chains


def test_connections_of_ended_threads_are_closed(gateway):
    noted = Noted()
    execute_in_threads(gateway, noted, 40)
    assert len(noted.served_by) == 40
    for ended in noted.served_by[:-1]:
        ended.join(20)
    assert sum(thread.is_alive() for thread in noted.served_by) == 1, "the last one is closed at the next connection"


def test_a_thread_that_goes_on_keeps_its_connection(gateway):
    noted = Noted()
    pool = gateway.jvm.java.util.concurrent.Executors.newFixedThreadPool(1)
    try:
        for _ in range(3):
            pool.submit(Called(gateway, noted)).get()
            execute_in_threads(gateway, Noted(), 10)
        assert len(noted.served_by) == 3
        assert len(set(noted.served_by)) == 1
        assert noted.served_by[0].is_alive()
    finally:
        pool.shutdown()


def test_a_call_within_a_call_of_python_opens_none(gateway):
    noted = Noted()
    called = Called(gateway, noted)
    gateway.jvm.java.util.concurrent.FutureTask(called, None).run()
    before = len(open_connections())
    gateway.jvm.java.util.concurrent.FutureTask(called, None).run()
    assert len(open_connections()) == before
    assert noted.served_by[0] is noted.served_by[1]


def test_queries_leave_no_connection_of_an_ended_thread(spark, gateway, tmp_path):
    """Spark lists the files of a broadcast table in a thread of a pool; here such threads end at once."""
    for name in ("left", "right"):
        hf.write(plain_rows(range(3)), tmp_path / name, OPTIONS)
    companion = getattr(gateway.jvm.org.apache.spark.sql.execution.exchange, "BroadcastExchangeExec$")
    pool = getattr(companion, "MODULE$").executionContext().executor()
    milliseconds = gateway.jvm.java.util.concurrent.TimeUnit.MILLISECONDS
    usual = pool.getKeepAliveTime(milliseconds)
    pool.setKeepAliveTime(10, milliseconds)
    names = []
    try:
        for _ in range(12):
            left, right = (hf.read(spark, tmp_path / name) for name in ("left", "right"))
            assert left.join(right, "id").count() == 3
            names.append(sum(name.startswith("broadcast-exchange") for name in open_connections()))
    finally:
        pool.setKeepAliveTime(usual, milliseconds)
    assert 0 < max(names) < 8, names
