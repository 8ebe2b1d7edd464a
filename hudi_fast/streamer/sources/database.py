"""Rows of a database table that have a larger value in one column than all rows before.

::

    position ─► SELECT * FROM table WHERE column > position ─► rows, as Arrow ─► position: the largest value

The column must grow with each insert and update, such as the time of the last change. A row whose transaction commits
late, with a smaller value than one that was read, is missed; a change feed (Debezium) misses none. PostgreSQL and
SQLite are read by ADBC's drivers, MySQL and MariaDB by PyMySQL: ADBC's driver of MySQL is not in the
Python Package Index.

Source: ``JdbcSource`` (1.2.0), whose keys these are. There a limit that falls between rows with the same value loses
the rest of them; here a turn has all of them.

Queries of MySQL and MariaDB, whose rows become Arrow: through PyMySQL, which needs no library of the database.

::

    address of JDBC ─► connection in UTC ─► query ─► fields of the result ─► columns, 10 000 rows at a time

Types:

================================  ==============================================================================
MySQL                             Arrow
================================  ==============================================================================
TINYINT(1), BIT(1)                bool; other numbers than 0 are true
TINYINT to INT, YEAR              int32; INT UNSIGNED int64
BIGINT; BIGINT UNSIGNED           int64; decimal128(20, 0)
DECIMAL, FLOAT, DOUBLE            decimal128 of the same precision and scale, float, double
DATE, DATETIME                    date32, timestamp in microseconds without a zone
TIMESTAMP                         timestamp in microseconds, UTC
CHAR, TEXT, JSON, ENUM, SET       string; and the text of a TIME, which may be longer than a day
BINARY, BLOB, BIT, GEOMETRY       binary
================================  ==============================================================================

Source: the types are those of Connector/J and of Spark's JDBC source, which ``JdbcSource`` (1.2.0) uses, but for TIME
(there a timestamp) and YEAR (there a date).
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from decimal import Decimal
from typing import Any, Protocol
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import ConfigError, HudiError, InvalidDataError, SourceError, UnsupportedFeatureError
from hudi_fast.storage.extras import import_extra
from hudi_fast.streamer.settings import StreamSettings
from hudi_fast.streamer.sources.source import Fetched

__all__ = ["DatabaseSource", "MysqlReader"]

_DRIVERS = {
    "postgresql": ("adbc_driver_postgresql.dbapi", "postgresql"),
    "sqlite": ("adbc_driver_sqlite.dbapi", "sqlite"),
}
_MYSQL = ("mysql", "mariadb")
_PREFIX = "jdbc."
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")


class _Reader(Protocol):
    """Executes queries of a kind of database."""

    def connect(self) -> Any:
        """A new connection."""

    def read(self, connection: Any, query: str) -> Iterator[Any]:
        """The schema of the rows of a query, then their batches."""


class _AdbcReader:
    """Executes queries by a driver of ADBC.

    Args:
        driver: its module.
        uri: of the database, with user and password.
    """

    def __init__(self, driver: Any, uri: str) -> None:
        self._driver, self._uri = driver, uri

    def connect(self) -> Any:
        """A new connection."""
        return self._driver.connect(self._uri)

    def read(self, connection: Any, query: str) -> Iterator[Any]:
        """The schema of the rows of a query, then their batches."""
        with closing(connection.cursor()) as cursor:
            cursor.execute(query)
            reader = cursor.fetch_record_batch()
            yield reader.schema
            yield from reader


class DatabaseSource:
    """A source of rows of a table, or of a query in parentheses with a name.

    Args:
        settings: of the streamer: ``hoodie.streamer.jdbc.url`` (``jdbc:postgresql://host/database``,
            ``jdbc:mysql://host/database``, ``jdbc:mariadb://host/database`` or ``jdbc:sqlite:/file``), ``.user``,
            ``.password`` or ``.password.file``, ``.table.name``, ``.incr.pull`` and ``.table.incr.column.name``.

    Raises:
        ConfigError: a key is missing or wrong, or the driver is not installed.
        UnsupportedFeatureError: the database is another one.
    """

    def __init__(self, settings: StreamSettings) -> None:
        url = settings.required(f"{_PREFIX}url").removeprefix("jdbc:")
        kind = url.partition(":")[0]
        self._reader = _reader(kind, url, settings)
        self._is_mysql = kind in _MYSQL
        self._table = settings.required(f"{_PREFIX}table.name")
        self._is_incremental = settings.flag(f"{_PREFIX}incr.pull")
        self._column = settings.required(f"{_PREFIX}table.incr.column.name") if self._is_incremental else ""
        self._repeats = settings.is_set("allow-commit-on-no-checkpoint-change")
        self._shown = re.sub(r"//[^/@]*@", "//", url.partition("?")[0])  # without a password

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
        is_number = self._is_number() if self._is_mysql else False
        condition = f"{self._column} > {_literal(position, is_number)}" if position else f"{self._column} IS NOT NULL"
        last = self._last(condition, limit)
        if last is None:
            return Fetched(None, position)
        end = _literal(last, is_number)
        rows = self._rows(f"SELECT * FROM {self._table} WHERE {condition} AND {self._column} <= {end}")
        left = self._value(f"SELECT count(*) FROM {self._table} WHERE {self._column} > {end}")
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

    def _is_number(self) -> bool:
        """Whether the column has numbers, which MySQL compares with a text as doubles: not exactly.

        Raises:
            UnsupportedFeatureError: they are floats, which are not equal to their texts.
        """
        (kind,) = self._rows(f"SELECT {self._column} FROM {self._table} WHERE 1 = 0").schema.types
        if pa.types.is_float32(kind):
            raise UnsupportedFeatureError(
                f"The column {self._column} of {self._table} is a FLOAT, whose values MySQL rounds when it shows them. "
                "Give another column as hoodie.streamer.jdbc.table.incr.column.name, or make it a DOUBLE."
            )
        return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_floating(kind))

    def _value(self, query: str) -> str | None:
        """The only value of a query, as text."""
        values = self._rows(query).read_all().column(0)
        if len(values) == 0 or values[0].as_py() is None:
            return None
        if pa.types.is_timestamp(values.type) and self._is_mysql:
            values = values.cast(pa.timestamp("us"))  # the connection is in UTC
        if pa.types.is_timestamp(values.type) and values.type.tz is None:
            return str(pc.strftime(values, "%Y-%m-%d %H:%M:%S")[0].as_py())
        value = values[0].as_py()
        return format(value, "f") if isinstance(value, Decimal) else str(value)

    def _rows(self, query: str) -> pa.RecordBatchReader:
        """The rows of a query; its connection is closed after them, or when nobody reads them any more."""
        batches = self._batches(query)
        schema = next(batches)
        return pa.RecordBatchReader.from_batches(schema, batches)

    def _batches(self, query: str) -> Iterator[Any]:
        """The schema of the rows, then their batches."""
        with closing(self._connected()) as connection:
            try:
                yield from self._reader.read(connection, query)
            except HudiError:
                raise
            except Exception as error:  # of any driver
                raise self._refused(query, error) from error

    def _connected(self) -> Any:
        try:
            return self._reader.connect()
        except Exception as error:  # of any driver
            raise SourceError(f"The database {self._shown} does not answer: {_first_line(error)}") from error

    def _refused(self, query: str, error: Exception) -> SourceError:
        return SourceError(f"The database {self._shown} refused {query!r}: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _literal(text: str, is_number: bool = False) -> str:
    """A text as SQL, which the database converts to the type of the column; or a number.

    Raises:
        ConfigError: it is no number.
    """
    if not is_number:
        return "'" + text.replace("'", "''") + "'"
    if not _NUMBER.fullmatch(text):
        raise ConfigError(
            f"The position {text!r} is not a number, as the column is. Give --ignore-checkpoint if the source has "
            "changed, or --checkpoint with a number."
        )
    return text


def _reader(kind: str, url: str, settings: StreamSettings) -> _Reader:
    if kind in _MYSQL:
        return MysqlReader(url, *_user(settings))
    if kind not in _DRIVERS:
        raise UnsupportedFeatureError(
            f"Databases of {kind!r} are not supported; supported are {', '.join((*_DRIVERS, *_MYSQL))}. Follow another "
            "one with Debezium, or with a source of your own: hf.Streamer(..., source=it)."
        )
    module, extra = _DRIVERS[kind]
    return _AdbcReader(import_extra(module, extra, f"A stream from {kind}"), _address(kind, url, settings))


def _user(settings: StreamSettings) -> tuple[str, str]:
    """User and password of the settings.

    Raises:
        ConfigError: the file of the password cannot be read.
    """
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
    return user, password


def _address(kind: str, url: str, settings: StreamSettings) -> str:
    """The address that ADBC's driver takes, with user and password."""
    if kind == "sqlite":
        return url.removeprefix("sqlite:").removeprefix("//")
    user, password = _user(settings)
    if not user:
        return url
    secret = f":{quote(password, safe='')}" if password else ""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{quote(user, safe='')}{secret}@{rest}"


_PORT = 3306
_ROWS = 10_000
_CONNECT_SECONDS = 30
_BINARY_CHARACTERS = 63
_UNSIGNED = 32
_DIGITS = 38
_ADDRESS = "jdbc:mysql://host:3306/database"
_SESSION = "SET time_zone = '+00:00', sql_mode = CONCAT_WS(',', NULLIF(@@sql_mode, ''), 'NO_BACKSLASH_ESCAPES')"
"""Times in UTC, and texts of SQL in which a quote is the only character that is escaped."""
_TLS = {
    "disabled": "off", "disable": "off", "required": "any", "trust": "any", "verify_ca": "authority",
    "verify-ca": "authority", "verify_identity": "host", "verify-full": "host",
}  # fmt: skip
"""Values of ``sslMode`` of both databases' JDBC drivers, and what of the server's certificate is checked."""

_WHOLE = ("TINY", "SHORT", "INT24", "LONG", "YEAR")
_TEXTS = ("JSON", "TIME", "TIME2", "NEWDATE", "NULL", "ENUM", "SET")
_CHARACTERS = ("VARCHAR", "VAR_STRING", "STRING", "TINY_BLOB", "BLOB", "MEDIUM_BLOB", "LONG_BLOB")
_TIMES = {
    "DATE": pa.date32(),
    "DATETIME": pa.timestamp("us"),
    "DATETIME2": pa.timestamp("us"),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "TIMESTAMP2": pa.timestamp("us", "UTC"),
}


class MysqlReader:
    """Executes queries.

    Args:
        url: of JDBC, without ``jdbc:``.
        user: name of the user; empty for that of the address.
        password: of the user; empty for that of the address.

    Raises:
        ConfigError: the address is wrong, or PyMySQL is not installed.
        UnsupportedFeatureError: the address has a parameter that is not supported.
    """

    def __init__(self, url: str, user: str, password: str) -> None:
        self._driver = _module("pymysql")
        self._cursor = _module("pymysql.cursors").SSCursor
        kinds = _module("pymysql.constants").FIELD_TYPE
        self._names = {number: name for name, number in vars(kinds).items() if isinstance(number, int)}
        converters = _module("pymysql.converters").conversions
        self._settings = _settings(url, user, password) | {
            "conv": {key: value for key, value in converters.items() if key != kinds.TIME},
            "charset": "utf8mb4",
            "init_command": _SESSION,
            "connect_timeout": _CONNECT_SECONDS,
        }

    def connect(self) -> Any:
        """A new connection."""
        return self._driver.connect(**self._settings)

    def read(self, connection: Any, query: str) -> Iterator[Any]:
        """The schema of the rows of a query, then their batches.

        Raises:
            InvalidDataError: a value does not fit its column, such as the date 0000-00-00.
            UnsupportedFeatureError: a column has a type that is not supported.
        """
        cursor = self._cursor(connection)
        try:
            cursor.execute(query)
            fields = cursor._result.fields
            kinds = [self._kind(one) for one in fields]
            schema = pa.schema([(one.name, kind) for one, kind in zip(fields, kinds, strict=True)])
            yield schema
            while rows := cursor.fetchmany(_ROWS):
                columns = zip(schema, zip(*rows, strict=True), strict=True)
                yield pa.RecordBatch.from_arrays([_column(one, values) for one, values in columns], schema=schema)
        finally:
            if cursor._result is not None:
                cursor._result.unbuffered_active = False  # else close() fetches all rows that nobody wants any more
            cursor.close()

    def _kind(self, one: Any) -> pa.DataType:
        name, is_unsigned = self._names.get(one.type_code, ""), bool(one.flags & _UNSIGNED)
        if name in ("TINY", "CHAR") and one.length == 1 and not is_unsigned:
            return pa.bool_()
        if name == "CHAR" or name in _WHOLE:
            return pa.int64() if name == "LONG" and is_unsigned else pa.int32()
        if name == "LONGLONG":
            return pa.decimal128(20, 0) if is_unsigned else pa.int64()
        if name in ("DECIMAL", "NEWDECIMAL"):
            digits = one.length - (not is_unsigned) - (one.scale > 0)
            if digits > _DIGITS:
                raise UnsupportedFeatureError(
                    f"The column {one.name} has {digits} digits, more than {_DIGITS}. Give a query in parentheses with "
                    "CAST(... AS DECIMAL(38, n)) as hoodie.streamer.jdbc.table.name."
                )
            return pa.decimal128(digits, one.scale)
        if name in _CHARACTERS:
            return pa.binary() if one.charsetnr == _BINARY_CHARACTERS else pa.string()
        plain = {"FLOAT": pa.float32(), "DOUBLE": pa.float64(), "GEOMETRY": pa.binary(), **_TIMES}
        if name == "BIT":
            return pa.bool_() if one.length == 1 else pa.binary()
        if name in plain:
            return plain[name]
        if name in _TEXTS:
            return pa.string()
        raise UnsupportedFeatureError(
            f"The column {one.name} has the type {name or one.type_code} of MySQL, which is not supported. Give a "
            "query in parentheses without it, or with CAST(... AS CHAR), as hoodie.streamer.jdbc.table.name."
        )


def _module(name: str) -> Any:
    return import_extra(name, "mysql", "A stream from MySQL or MariaDB")


def _column(one: pa.Field, values: Sequence[Any]) -> pa.Array:
    try:
        if pa.types.is_boolean(one.type):
            return pa.array([None if v is None else v not in (0, b"\0") for v in values], one.type)
        return pa.array(values, one.type)
    except (pa.ArrowException, TypeError) as error:
        example = next((v for v in values if _fault(v, one.type)), None)
        raise InvalidDataError(
            f"A value of the column {one.name} does not fit {one.type}: {example!r}. Give a query in parentheses that "
            "replaces it, as hoodie.streamer.jdbc.table.name."
        ) from error


def _fault(value: Any, kind: pa.DataType) -> bool:
    try:
        pa.array([value], kind)
    except (pa.ArrowException, TypeError):
        return True
    return False


def _settings(url: str, user: str, password: str) -> dict[str, Any]:
    """Arguments of PyMySQL for an address of JDBC."""
    at = urlsplit(url)
    try:
        port = at.port or _PORT
    except ValueError:
        port = 0
    database = unquote(at.path.strip("/"))
    if not at.hostname or not port or not database or "/" in database:
        raise ConfigError(
            f"hoodie.streamer.jdbc.url is the address of a database, such as {_ADDRESS}; got 'jdbc:"
            f"{url.partition('?')[0].rpartition('@')[2]}'."
        )
    given = dict(parse_qsl(at.query, keep_blank_values=True))
    made = {
        "host": at.hostname,
        "port": port,
        "database": database,
        "user": user or given.pop("user", "") or unquote(at.username or ""),
        "password": password or given.pop("password", "") or unquote(at.password or ""),
    }
    given = {name: value for name, value in given.items() if name not in ("user", "password")}
    made |= _tls(given)
    if given:
        raise UnsupportedFeatureError(
            f"Parameters of the address hoodie.streamer.jdbc.url that are not supported: {', '.join(sorted(given))}. "
            "Supported are user, password, sslMode, useSSL and serverSslCert. Remove the others."
        )
    return made


def _tls(given: dict[str, str]) -> Mapping[str, Any]:
    """Takes the parameters about TLS, and returns PyMySQL's."""
    mode, uses = given.pop("sslMode", ""), given.pop("useSSL", "").lower()
    authority = given.pop("serverSslCert", "") or None
    checked = _TLS.get(mode.lower(), "") if mode else {"true": "any", "false": "off", "": ""}.get(uses, "")
    if mode and not checked:
        raise ConfigError(f"sslMode of hoodie.streamer.jdbc.url is one of {', '.join(sorted(_TLS))}; got {mode!r}.")
    if checked == "off":
        return {"ssl_disabled": True}
    if not checked:
        return {}
    context = ssl.create_default_context(cafile=authority)
    if checked != "host":
        context.check_hostname = False
    if checked == "any":
        context.verify_mode = ssl.CERT_NONE
    return {"ssl": context}
