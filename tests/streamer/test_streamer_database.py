"""A stream from a database: the rows that changed since the last turn, each once."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hudi_fast as hf
from hudi_fast.streamer.settings import StreamSettings
from hudi_fast.streamer.sources.database import DatabaseSource, _address
from tests.support.examples import examples

KEYS = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.precombine.field": "changed"}


class Orders:
    """A table of orders in a file, and a stream of them."""

    def __init__(self, folder):
        self.path, self.target = folder / "shop.db", folder / "orders"
        self.run("CREATE TABLE orders (id INTEGER, total REAL, note TEXT, changed INTEGER)")

    def run(self, statement, *values):
        with sqlite3.connect(self.path) as connection:
            found = connection.execute(statement, values).fetchall()
        connection.close()
        return found

    def put(self, key, changed, total=1.0):
        self.run("DELETE FROM orders WHERE id = ?", key)
        self.run("INSERT INTO orders VALUES (?, ?, 'it''s', ?)", key, total, changed)

    def stream(self, more=None, **arguments):
        given_ = {
            **KEYS,
            "hoodie.deltastreamer.jdbc.url": f"jdbc:sqlite:{self.path}",
            "hoodie.deltastreamer.jdbc.driver.class": "org.sqlite.JDBC",
            "hoodie.deltastreamer.jdbc.table.name": "orders",
            "hoodie.deltastreamer.jdbc.incr.pull": "true",
            "hoodie.deltastreamer.jdbc.table.incr.column.name": "changed",
            **(more or {}),
        }
        return hf.Streamer(given_, source_class="JdbcSource", target_base_path=str(self.target), **arguments)

    def rows(self):
        found = hf.read(self.target, columns=["id", "total", "changed"]).to_pylist()
        return sorted(tuple(row.values()) for row in found)


@pytest.fixture
def orders(tmp_path):
    return Orders(tmp_path)


def test_turns_bring_in_what_changed(orders):
    orders.put(1, 10)
    orders.put(2, 11)
    first = orders.stream().turn()
    assert (first.inserts, first.position, first.lag) == (2, "11", {"orders": 0})
    assert orders.stream().turn().instant == ""
    orders.put(2, 12, total=5.0)
    orders.put(3, 13)
    turn = orders.stream().turn()
    assert (turn.inserts, turn.updates, turn.position) == (1, 1, "13")
    assert orders.rows() == [(1, 1.0, 10), (2, 5.0, 12), (3, 1.0, 13)]


def test_a_table_of_postgresql_is_read_by_a_column_of_any_type(postgres, tmp_path):
    target = str(tmp_path / "orders")
    postgres.execute("CREATE TABLE orders (id INT PRIMARY KEY, note TEXT, changed TIMESTAMP(6))")
    keys = KEYS | {
        "hoodie.streamer.jdbc.url": f"jdbc:postgresql://127.0.0.1:{postgres.port}/postgres",
        "hoodie.streamer.jdbc.user": "postgres",
        "hoodie.streamer.jdbc.table.name": "orders",
        "hoodie.streamer.jdbc.incr.pull": "true",
        "hoodie.streamer.jdbc.table.incr.column.name": "changed",
    }
    for number, at in enumerate(("2024-01-02 03:04:05", "2024-01-02 03:04:05.000001", "2024-01-02 03:04:05.5")):
        postgres.execute(f"INSERT INTO orders VALUES ({number}, 'it''s \\', '{at}')")
        streamer = hf.Streamer(keys, source_class="JdbcSource", target_base_path=target)
        turn = streamer.turn()
        assert (turn.inserts, turn.updates, turn.lag) == (1, 0, {"orders": 0})
        assert streamer.turn().instant == ""
    assert set(hf.read(target, columns=["note"])["note"].to_pylist()) == {"it's \\"}


def test_a_limit_does_not_part_rows_with_the_same_value(orders):
    for key in range(5):
        orders.put(key, 7 if key else 3)
    turns = [orders.stream(source_limit=2).turn() for _ in range(2)]
    assert [(turn.inserts, turn.position) for turn in turns] == [(5, "7"), (0, "7")]
    orders.put(9, 8)
    orders.put(10, 9)
    turn = orders.stream(source_limit=1).turn()
    assert (turn.inserts, turn.position, turn.lag) == (1, "8", {"orders": 1})


@settings(max_examples=examples(12))
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), max_size=6), min_size=1, max_size=4),
    st.sampled_from([None, 1, 2, 5]),
)
def test_the_table_follows_the_database(tmp_path_factory, history, limit):
    orders, now = Orders(tmp_path_factory.mktemp("shop")), 1
    for changes in history:
        for key, later in changes:
            now += later  # some changes have the same time
            orders.put(key, now, total=float(now))
        now += 1
        stream = orders.stream(source_limit=limit)
        while stream.turn().instant:
            pass
    expected = orders.run("SELECT id, total, changed FROM orders ORDER BY id")
    assert (orders.rows() if hf.is_table(orders.target) else []) == expected


@pytest.mark.parametrize(
    ("kind", "values", "position"),
    [
        ("TEXT", ["2024-01-02 03:04:05", "2024-01-02 03:04:05.5"], "2024-01-02 03:04:05.5"),
        ("TEXT", ["it's", "o'clock"], "o'clock"),
        ("REAL", [0.5, 1.25], "1.25"),
    ],
)
def test_the_column_may_have_any_type_that_has_an_order(orders, kind, values, position):
    orders.run(f"CREATE TABLE other (id INTEGER, at {kind})")
    for number, value in enumerate(values):
        orders.run("INSERT INTO other VALUES (?, ?)", number, value)
    more = {
        "hoodie.deltastreamer.jdbc.table.name": "other",
        "hoodie.deltastreamer.jdbc.table.incr.column.name": "at",
        "hoodie.datasource.write.precombine.field": "at",
    }
    assert orders.stream(more).turn().position == position
    assert orders.stream(more).turn().instant == ""


def test_without_a_column_the_table_is_read_once_or_in_each_turn(orders):
    orders.put(1, 10)
    whole = {"hoodie.deltastreamer.jdbc.incr.pull": "false"}
    assert orders.stream(whole).turn().inserts == 1
    again = orders.stream(whole, allow_commit_on_no_checkpoint_change=True)
    orders.put(2, 11)
    assert [again.turn().inserts for _ in range(2)] == [1, 0]


@pytest.mark.parametrize(
    ("more", "error", "message"),
    [
        (
            {"jdbc.url": "jdbc:oracle:thin:@host"},
            hf.UnsupportedFeatureError,
            r"Databases of 'oracle' are not supported",
        ),
        ({"jdbc.table.name": "no_table"}, hf.SourceError, r"shop\.db refused 'SELECT max.*no such table: no_table"),
        ({"jdbc.table.incr.column.name": ""}, hf.ConfigError, r"needs the property .*table\.incr\.column\.name"),
        ({"jdbc.incr.pull": "yes"}, hf.ConfigError, r"jdbc\.incr\.pull is true or false; got 'yes'"),
        (
            {"jdbc.url": "jdbc:sqlite:/no/such/folder/x.db"},
            hf.SourceError,
            r"The database sqlite:/no/such/folder/x\.db",
        ),
    ],
)
def test_what_cannot_be_read_is_told(orders, more, error, message):
    given_ = {f"hoodie.deltastreamer.{key}": value for key, value in more.items()}
    with pytest.raises(error, match=message):
        orders.stream(given_).turn()


def test_user_and_password_are_part_of_the_address(tmp_path):
    def address(**more):
        keys = {f"hoodie.streamer.jdbc.{key.replace('_', '.')}": value for key, value in more.items()}
        parsed = StreamSettings.of(keys, {"target_base_path": "t", "source_class": "JdbcSource"})
        return _address("postgresql", "postgresql://host:5432/shop", parsed)

    assert address() == "postgresql://host:5432/shop"
    assert address(user="a b") == "postgresql://a%20b@host:5432/shop"
    assert address(user="me", password="p@ss:/") == "postgresql://me:p%40ss%3A%2F@host:5432/shop"
    (tmp_path / "secret").write_text("s3cret\n")
    assert address(user="me", password_file=str(tmp_path / "secret")) == "postgresql://me:s3cret@host:5432/shop"
    with pytest.raises(hf.ConfigError, match=r"password\.file /no/file cannot be read"):
        address(user="me", password_file="/no/file")


@pytest.mark.parametrize("kind", ["postgresql", "mysql", "mariadb"])
@pytest.mark.parametrize("place", ["settings", "user", "query"])
def test_an_error_does_not_show_the_password(kind, place):
    given_ = {"jdbc.user": "me", "jdbc.password": "s3cret"} if place == "settings" else {}
    who, query = "me:s3cret@" * (place == "user"), "?user=me&password=s3cret" * (place == "query")
    keys = {
        "hoodie.streamer.jdbc.url": f"jdbc:{kind}://{who}127.0.0.1:9/shop{query}",
        **{f"hoodie.streamer.{key}": value for key, value in given_.items()},
        "hoodie.streamer.jdbc.table.name": "orders",
    }
    parsed = StreamSettings.of(keys, {"target_base_path": "t", "source_class": "JdbcSource"})
    with pytest.raises(hf.SourceError, match=rf"The database {kind}://127\.0\.0\.1:9/shop does not answer") as told:
        DatabaseSource(parsed).fetch(None, None)
    assert "s3cret" not in str(told.value)
