"""Queries of MySQL and MariaDB, whose rows become Arrow: through PyMySQL, which needs no library of the database.

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

import ssl
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pyarrow as pa

from hudi_fast.errors import ConfigError, InvalidDataError, UnsupportedFeatureError
from hudi_fast.storage.extras import import_extra

__all__ = ["MysqlReader"]

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
