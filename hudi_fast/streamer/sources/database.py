"""Rows of a database table that have a larger value in one column than all rows before: PostgreSQL and SQLite.

::

    position ─► SELECT * FROM table WHERE column > position ─► rows, as Arrow ─► position: the largest value

The column must grow with each insert and update, such as the time of the last change. A row whose transaction commits
late, with a smaller value than one that was read, is missed; a change feed (Debezium) misses none.

Source: ``JdbcSource`` (1.2.0), whose keys these are. There a limit that falls between rows with the same value loses
the rest of them; here a turn has all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import ConfigError, SourceError, UnsupportedFeatureError
from hudi_fast.storage.extras import import_extra
from hudi_fast.streamer.settings import StreamSettings
from hudi_fast.streamer.sources.source import Fetched

__all__ = ["DatabaseSource"]

_DRIVERS = {
    "postgresql": ("adbc_driver_postgresql.dbapi", "postgresql"),
    "sqlite": ("adbc_driver_sqlite.dbapi", "sqlite"),
}
_PREFIX = "jdbc."


class DatabaseSource:
    """A source of rows of a table, or of a query in parentheses with a name.

    Args:
        settings: of the streamer: ``hoodie.streamer.jdbc.url`` (``jdbc:postgresql://host/database``), ``.user``,
            ``.password`` or ``.password.file``, ``.table.name``, ``.incr.pull`` and ``.table.incr.column.name``.

    Raises:
        ConfigError: a key is missing or wrong, or the driver is not installed.
        UnsupportedFeatureError: the database is another one.
    """

    def __init__(self, settings: StreamSettings) -> None:
        url = settings.required(f"{_PREFIX}url").removeprefix("jdbc:")
        kind = url.partition(":")[0]
        if kind not in _DRIVERS:
            raise UnsupportedFeatureError(
                f"Databases of {kind!r} are not supported; supported are {', '.join(_DRIVERS)}. Follow another one "
                "with Debezium, or with a source of your own: hf.Streamer(..., source=it)."
            )
        module, extra = _DRIVERS[kind]
        self._driver = import_extra(module, extra, f"A stream from {kind}")
        self._table = settings.required(f"{_PREFIX}table.name")
        self._is_incremental = settings.flag(f"{_PREFIX}incr.pull")
        self._column = settings.required(f"{_PREFIX}table.incr.column.name") if self._is_incremental else ""
        self._repeats = settings.is_set("allow-commit-on-no-checkpoint-change")
        self._uri, self._shown = _address(kind, url, settings), url

    def fetch(self, position: str | None, limit: int | None) -> Fetched:
        """See :class:`~hudi_fast.streamer.sources.source.Source`; the limit is a number of rows.

        Without ``incr.pull`` a stream reads the whole table once, and again in each turn with
        ``--allow-commit-on-no-checkpoint-change``.

        Raises:
            SourceError: the database does not answer, or refuses the query.
        """
        if not self._is_incremental:
            if position is not None and not self._repeats:
                return Fetched(None, position)
            return Fetched(self._rows(f"SELECT * FROM {self._table}"), "")
        condition = f"{self._column} > {_literal(position)}" if position else f"{self._column} IS NOT NULL"
        last = self._last(condition, limit)
        if last is None:
            return Fetched(None, position)
        rows = self._rows(f"SELECT * FROM {self._table} WHERE {condition} AND {self._column} <= {_literal(last)}")
        left = self._value(f"SELECT count(*) FROM {self._table} WHERE {self._column} > {_literal(last)}")
        return Fetched(rows, last, {self._table: int(left or 0)})

    def committed(self, position: str | None) -> None:
        """Nothing to do: the rows stay."""

    def close(self) -> None:
        """Nothing to do: each turn has a connection of its own."""

    def _last(self, condition: str, limit: int | None) -> str | None:
        """The largest value of the turn, as text; None without new rows."""
        newest = f"SELECT max({self._column}) FROM {self._table} WHERE {condition}"
        if limit is None:
            return self._value(newest)
        query = f"SELECT {self._column} FROM {self._table} WHERE {condition} ORDER BY {self._column} LIMIT 1 OFFSET "
        return self._value(query + str(limit - 1)) or self._value(newest)

    def _value(self, query: str) -> str | None:
        """The only value of a query, as text."""
        values = self._rows(query).read_all().column(0)
        if len(values) == 0 or values[0].as_py() is None:
            return None
        if pa.types.is_timestamp(values.type) and values.type.tz is None:
            return str(pc.strftime(values, "%Y-%m-%d %H:%M:%S")[0].as_py())
        return str(values[0].as_py())

    def _rows(self, query: str) -> pa.RecordBatchReader:
        """The rows of a query; its connection is closed after them, or when nobody reads them any more."""
        batches = self._batches(query)
        schema = next(batches)
        return pa.RecordBatchReader.from_batches(schema, batches)

    def _batches(self, query: str) -> Iterator[Any]:
        """The schema of the rows, then their batches."""
        with closing(self._connected()) as connection, closing(connection.cursor()) as cursor:
            try:
                cursor.execute(query)
                reader = cursor.fetch_record_batch()
                yield reader.schema
                yield from reader
            except Exception as error:  # of any driver
                raise self._refused(query, error) from error

    def _connected(self) -> Any:
        try:
            return self._driver.connect(self._uri)
        except Exception as error:  # of any driver
            raise SourceError(f"The database {self._shown} does not answer: {_first_line(error)}") from error

    def _refused(self, query: str, error: Exception) -> SourceError:
        return SourceError(f"The database {self._shown} refused {query!r}: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _literal(text: str) -> str:
    """A text as SQL, which the database converts to the type of the column."""
    return "'" + text.replace("'", "''") + "'"


def _address(kind: str, url: str, settings: StreamSettings) -> str:
    """The address that the driver takes, with user and password.

    Raises:
        ConfigError: the file of the password cannot be read.
    """
    if kind == "sqlite":
        return url.removeprefix("sqlite:").removeprefix("//")
    user, password = settings.stream.get(f"{_PREFIX}user", ""), settings.stream.get(f"{_PREFIX}password", "")
    file = settings.stream.get(f"{_PREFIX}password.file", "")
    if file and not password:
        try:
            with open(file, encoding="utf-8") as opened:
                password = opened.read().strip()
        except OSError as error:
            raise ConfigError(
                f"hoodie.streamer.{_PREFIX}password.file {file} cannot be read: {error.strerror}."
            ) from None
    if not user:
        return url
    secret = f":{quote(password, safe='')}" if password else ""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{quote(user, safe='')}{secret}@{rest}"
