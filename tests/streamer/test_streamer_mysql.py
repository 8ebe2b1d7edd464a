"""A stream from a real MariaDB: its types, its texts and numbers, and what changed since the last turn, each once."""

from __future__ import annotations

import datetime
import gc
import itertools
import sys
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hudi_fast as hf
from hudi_fast.streamer.settings import StreamSettings
from hudi_fast.streamer.sources.database import DatabaseSource, MysqlReader
from tests.servers.mariadb import PASSWORD, USER
from tests.support.examples import examples

_numbers = itertools.count()
KEYS = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.precombine.field": "changed"}


class Orders:
    """A table of orders, and a stream of it."""

    def __init__(self, server, folder, columns="id INT PRIMARY KEY, total DOUBLE, note VARCHAR(20), changed BIGINT"):
        self.server, self.target, self.name = server, folder / "orders", f"orders{next(_numbers)}"
        server.execute(f"CREATE TABLE {self.name} ({columns})")

    def put(self, *values):
        marks = ", ".join(["%s"] * len(values))
        self.server.execute(f"REPLACE INTO {self.name} VALUES ({marks})", *values)

    def keys(self, more=None):
        jdbc = {
            "url": self.server.url,
            "user": USER,
            "password": PASSWORD,
            "driver.class": "org.mariadb.jdbc.Driver",
            "table.name": self.name,
            "incr.pull": "true",
            "table.incr.column.name": "changed",
            **(more or {}),
        }
        return {f"hoodie.streamer.jdbc.{key}": value for key, value in jdbc.items()}

    def stream(self, more=None, **arguments):
        return hf.Streamer(
            KEYS | self.keys(more), source_class="JdbcSource", target_base_path=str(self.target), **arguments
        )

    def source(self, more=None):
        return DatabaseSource(
            StreamSettings.of(self.keys(more), {"target_base_path": "t", "source_class": "JdbcSource"})
        )

    def rows(self, *names):
        return sorted(tuple(row.values()) for row in hf.read(self.target, columns=[*names]).to_pylist())


@pytest.fixture
def orders(mariadb, tmp_path):
    return Orders(mariadb, tmp_path)


def test_turns_bring_in_what_changed(orders):
    orders.put(1, 1.5, "it's", 10)
    orders.put(2, 1.0, "a\\'b", 11)
    first = orders.stream().turn()
    assert (first.inserts, first.position, first.lag) == (2, "11", {orders.name: 0})
    assert orders.stream().turn().instant == ""
    orders.put(2, 5.0, None, 12)
    orders.put(3, 1.0, "ü 😀", 13)
    turn = orders.stream().turn()
    assert (turn.inserts, turn.updates, turn.position) == (1, 1, "13")
    assert orders.rows("id", "total", "note") == [(1, 1.5, "it's"), (2, 5.0, None), (3, 1.0, "ü 😀")]


TYPES = {
    "a": ("TINYINT(1)", 5, pa.bool_(), True),
    "b": ("TINYINT", -128, pa.int32(), -128),
    "c": ("TINYINT UNSIGNED", 255, pa.int32(), 255),
    "d": ("SMALLINT UNSIGNED", 65535, pa.int32(), 65535),
    "e": ("MEDIUMINT", -(2**23), pa.int32(), -(2**23)),
    "f": ("INT", 2**31 - 1, pa.int32(), 2**31 - 1),
    "g": ("INT UNSIGNED", 2**32 - 1, pa.int64(), 2**32 - 1),
    "h": ("BIGINT", -(2**63), pa.int64(), -(2**63)),
    "i": ("BIGINT UNSIGNED", 2**64 - 1, pa.decimal128(20, 0), Decimal(2**64 - 1)),
    "j": ("DECIMAL(10, 2)", "-12.34", pa.decimal128(10, 2), Decimal("-12.34")),
    "k": ("DECIMAL(5, 5)", "0.12345", pa.decimal128(5, 5), Decimal("0.12345")),
    "l": ("DECIMAL(38, 0) UNSIGNED", "9" * 38, pa.decimal128(38, 0), Decimal("9" * 38)),
    "m": ("FLOAT", 1.5, pa.float32(), 1.5),
    "n": ("DOUBLE", 0.1, pa.float64(), 0.1),
    "o": ("VARCHAR(20)", "ü", pa.string(), "ü"),
    "p": ("CHAR(3)", "ab", pa.string(), "ab"),
    "q": ("LONGTEXT", "x" * 70000, pa.string(), "x" * 70000),
    "r": ("BLOB", b"\0\xff", pa.binary(), b"\0\xff"),
    "s": ("VARBINARY(5)", b"\xff", pa.binary(), b"\xff"),
    "t": ("DATE", "1000-01-01", pa.date32(), datetime.date(1000, 1, 1)),
    "u": (
        "DATETIME(6)", "2024-02-29 23:59:59.123456",
        pa.timestamp("us"), datetime.datetime(2024, 2, 29, 23, 59, 59, 123456)
    ),
    "v": (
        "TIMESTAMP(3) NULL", "2024-01-01 05:00:00.250",  # the server's zone is +05:00
        pa.timestamp("us", "UTC"), datetime.datetime(2024, 1, 1, 0, 0, 0, 250000, datetime.UTC)
    ),
    "w": ("TIME", "-100:30:00", pa.string(), "-100:30:00"),
    "x": ("YEAR", 2024, pa.int32(), 2024),
    "y": ("BIT(1)", 1, pa.bool_(), True),
    "z": ("BIT(9)", 256, pa.binary(), b"\1\0"),
    "aa": ("JSON", '{"a": 1}', pa.string(), '{"a": 1}'),
    "ab": ("ENUM('one', 'two')", "two", pa.string(), "two"),
    "ac": ("SET('one', 'two')", "one,two", pa.string(), "one,two"),
    "ad": ("UUID", "123e4567-e89b-12d3-a456-426655440000", pa.string(), "123e4567-e89b-12d3-a456-426655440000"),
}  # fmt: skip


def test_each_type_has_the_type_of_connector_j(mariadb, tmp_path):
    columns = ", ".join(f"{name} {kind}" for name, (kind, *_) in TYPES.items())
    orders = Orders(mariadb, tmp_path, f"id INT, changed INT, {columns}")
    orders.put(1, 1, *(value for _, value, *_ in TYPES.values()))
    orders.put(2, 2, *[None] * len(TYPES))
    table = orders.source().fetch(None, None).rows.read_all().sort_by("id")
    found = {name: (table.schema.field(name).type, table[name][0].as_py()) for name in TYPES}
    assert found == {name: (kind, value) for name, (_, _, kind, value) in TYPES.items()}
    assert all(table[name][1].as_py() is None for name in TYPES)
    table.validate(full=True)
    assert orders.stream().turn().inserts == 2


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("BIGINT", ["9007199254740992", "9007199254740993", "9223372036854775807"]),  # equal as doubles
        ("BIGINT UNSIGNED", ["18446744073709551614", "18446744073709551615"]),
        ("DECIMAL(30, 10)", ["1.0000000001", "12345678901234567890.0000000001", "12345678901234567890.0000000002"]),
        ("DOUBLE", ["0.1", "0.30000000000000004", "1e100"]),
        ("DATETIME(6)", ["2024-01-02 03:04:05", "2024-01-02 03:04:05.000001", "2024-01-02 03:04:05.5"]),
        ("TIMESTAMP(6)", ["2024-01-02 03:04:05", "2024-01-02 03:04:05.000001", "2024-01-02 03:04:05.5"]),
        ("DATE", ["2024-01-02", "2024-01-03"]),
        ("VARCHAR(20) COLLATE utf8mb4_bin", ["a'b", "a\\", "a\\'b"]),
    ],
)
def test_the_column_may_have_any_type_that_has_an_order(mariadb, tmp_path, kind, values):
    orders = Orders(mariadb, tmp_path, f"id INT PRIMARY KEY, changed {kind}")
    for number, value in enumerate(sorted(values, key=lambda one: (len(one), one)) if "INT" in kind else values):
        orders.put(number, value)
        turn = orders.stream().turn()
        assert (turn.inserts, turn.updates, turn.lag) == (1, 0, {orders.name: 0})
        assert orders.stream().turn().instant == ""


@settings(max_examples=examples(8), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), max_size=6), min_size=1, max_size=4),
    st.sampled_from([None, 1, 2, 5]),
)
def test_the_table_follows_the_database(mariadb, tmp_path_factory, history, limit):
    orders, now = Orders(mariadb, tmp_path_factory.mktemp("shop")), 1
    for changes in history:
        for key, later in changes:
            now += later  # some changes have the same time
            orders.put(key, float(now), "", now)
        now += 1
        stream = orders.stream(source_limit=limit)
        while stream.turn().instant:
            pass
    expected = mariadb.execute(f"SELECT id, total, changed FROM {orders.name} ORDER BY id")
    assert (orders.rows("id", "total", "changed") if hf.is_table(orders.target) else []) == expected


def test_rows_are_streamed_and_a_turn_that_ends_early_leaves_nothing_behind(mariadb, tmp_path):
    orders = Orders(mariadb, tmp_path, "id INT PRIMARY KEY, changed INT")
    mariadb.execute(f"INSERT INTO {orders.name} SELECT seq, seq FROM seq_1_to_25000")
    rows = orders.source().fetch(None, None).rows
    assert rows.read_next_batch().num_rows == 10_000
    del rows
    gc.collect()
    assert [batch.num_rows for batch in orders.source().fetch(None, None).rows] == [10_000, 10_000, 5_000]
    open_ = "SELECT count(*) FROM information_schema.processlist WHERE user = %s"
    assert mariadb.execute(open_, USER) == [(0,)]


def test_a_query_in_parentheses_is_a_table(mariadb, tmp_path):
    orders = Orders(mariadb, tmp_path)
    orders.put(1, 2.0, "x", 10)
    query = f"(SELECT id, total * 2 AS twice, changed FROM {orders.name}) AS q"
    assert orders.stream({"table.name": query}).turn().inserts == 1
    assert orders.rows("id", "twice") == [(1, 4.0)]


@pytest.mark.parametrize(
    ("parameters", "has_tls"),
    [
        ("sslMode=REQUIRED", True),
        ("useSSL=true", True),
        ("sslMode=VERIFY_CA&serverSslCert={authority}", True),
        ("sslMode=verify-full&serverSslCert={authority}", True),
        ("sslMode=disable", False),
    ],
)
def test_connections_are_encrypted_as_the_address_says(orders, parameters, has_tls):
    address = f"{orders.server.url}?{parameters.format(authority=orders.server.certificates.authority)}"
    query = (
        "(SELECT variable_value AS cipher FROM information_schema.session_status WHERE variable_name='Ssl_cipher') AS s"
    )
    found = orders.source({"url": address, "table.name": query, "incr.pull": "false"}).fetch(None, None).rows.read_all()
    assert bool(found["cipher"][0].as_py()) == has_tls


def test_a_certificate_of_another_authority_is_refused(orders):
    address = f"{orders.server.url}?sslMode=verify-ca&serverSslCert={orders.server.certificates.stranger}"
    with pytest.raises(hf.SourceError, match=r"does not answer: .*certificate verify failed"):
        orders.source({"url": address}).fetch(None, None)


@pytest.mark.parametrize(
    ("more", "error", "message"),
    [
        ({"table.name": "no_table"}, hf.SourceError, r"refused 'SELECT changed.*no_table"),
        ({"password": "wrong"}, hf.SourceError, r"The database mariadb://127.*/shop does not answer: .*Access denied"),
        ({"table.incr.column.name": "ratio"}, hf.UnsupportedFeatureError, r"ratio of .* is a FLOAT.*make it a DOUBLE"),
        ({}, hf.InvalidDataError, r"column day does not fit date32\[day\]: '0000-00-00'\. Give a query"),
        ({"table.name": "(SELECT 1 AS changed, CAST(1 AS DECIMAL(40, 0)) AS e) AS q"},
         hf.UnsupportedFeatureError, r"The column e has 40 digits, more than 38"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_told(mariadb, tmp_path, more, error, message):
    orders = Orders(mariadb, tmp_path, "id INT, changed INT, ratio FLOAT, day DATE")
    mariadb.execute(f"INSERT IGNORE INTO {orders.name} VALUES (1, 1, 0.1, '0000-00-00')")
    with pytest.raises(error, match=message) as told:
        orders.source(more).fetch(None, None).rows.read_all()
    assert PASSWORD not in str(told.value)


def test_a_position_of_another_source_is_refused(orders):
    orders.put(1, 1.0, "", 1)
    with pytest.raises(hf.ConfigError, match=r"The position 't,0:5' is not a number.*--ignore-checkpoint"):
        orders.source().fetch("t,0:5", None)


@pytest.mark.parametrize(
    "url", ["mysql:shop", "mysql://host", "mysql://host:x/shop", "mysql:loadbalance://a,b/shop", "mysql:///shop"]
)
def test_a_wrong_address_is_refused(url):
    with pytest.raises(
        hf.ConfigError, match=r"jdbc\.url is the address of a database, such as jdbc:mysql://host:3306/"
    ):
        MysqlReader(url, "", "")


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        (
            "zeroDateTimeBehavior=round&tinyInt1isBit=false",
            hf.UnsupportedFeatureError,
            r"tinyInt1isBit, zeroDateTimeBe",
        ),
        ("sslMode=maybe", hf.ConfigError, r"sslMode .* is one of disable, .*; got 'maybe'"),
    ],
)
def test_wrong_parameters_of_an_address_are_refused(parameters, error, message):
    with pytest.raises(error, match=message):
        MysqlReader(f"mysql://host/shop?{parameters}", "", "")


@pytest.mark.parametrize("address", ["a%20b:p%40ss@host", "host"])
def test_user_and_password_are_of_the_settings_or_of_the_address(address):
    more = "" if "@" in address else "?user=a%20b&password=p%40ss"
    found = MysqlReader(f"mysql://{address}/shop{more}", "", "")._settings
    assert (found["host"], found["user"], found["password"], found["port"]) == ("host", "a b", "p@ss", 3306)
    given = MysqlReader(f"mysql://{address}/shop{more}", "me", "own")._settings
    assert (given["user"], given["password"]) == ("me", "own")


@pytest.mark.parametrize(
    ("module", "url", "extra"),
    [
        ("pymysql", "jdbc:mysql://host/shop", "mysql"),
        ("pymysql", "jdbc:mariadb://host/shop", "mysql"),
        ("adbc_driver_postgresql.dbapi", "jdbc:postgresql://host/shop", "postgresql"),
        ("adbc_driver_sqlite.dbapi", "jdbc:sqlite:/x", "sqlite"),
    ],
)
def test_a_database_without_its_driver_names_the_extra(monkeypatch, module, url, extra):
    monkeypatch.setitem(sys.modules, module, None)
    keys = {"hoodie.streamer.jdbc.url": url, "hoodie.streamer.jdbc.table.name": "t"}
    parsed = StreamSettings.of(keys, {"target_base_path": "t", "source_class": "JdbcSource"})
    with pytest.raises(hf.ConfigError, match=rf"requires the package .*pip install 'hudi-fast\[{extra}\]'"):
        DatabaseSource(parsed)
