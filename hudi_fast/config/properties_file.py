r"""``.hoodie/hoodie.properties``: its text form, reading, creating and changing it.

``.hoodie/hoodie.properties``: reading, creating and changing the configuration of a table.

A change writes a backup first. Readers find a complete file at any moment, and the next change undoes a crashed one::

    recover -> read -> write the backup -> delete the file -> write the new file -> check -> delete the backup

Readers try the file, then the backup, several times with a short wait. A file is complete if its checksum (over the
names of database and table) is correct. Files of table versions 2 and 3 have no checksum; they are complete if they end
with a line break, and if no key of the backup is missing. The table lock excludes concurrent changes; a backup of a
complete file is therefore a leftover and is deleted.
Source: HoodieTableConfig.modify and ConfigUtils, release 1.2.0; HoodieTableConfig.recover, release 0.10.1.

The text form of Java ``Properties``, used by ``hoodie.properties`` and partition metafiles.

Data flow: bytes (ISO-8859-1) -> text -> :func:`parse_properties` -> ``dict``, and back by :func:`format_properties`.
A line is ``key=value``, ``key:value`` or ``key value``; ``#`` and ``!`` begin comments. A backslash escapes the next
character, continues a line, or begins ``\uXXXX``, a UTF-16 unit (a character beyond the basic plane needs two).
Source: java.util.Properties (load and store), as used by HoodieTableConfig 1.2.0.
"""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache

from hudi_fast.errors import (
    CommitConflictError,
    CorruptTableError,
    StorageAccessError,
    TableExistsError,
    TableNotFoundError,
)
from hudi_fast.storage.base import Storage

__all__ = [
    "BACKUP_PATH",
    "CHECKSUM_KEY",
    "PROPERTIES_PATH",
    "UPDATED_PATH",
    "create_properties",
    "format_properties",
    "load_properties",
    "parse_properties",
    "table_checksum",
    "update_properties",
]

_BLANKS = " \t\f"
_KEY = re.compile(r"(?:[^\\=: \t\f]|\\.?)*", re.DOTALL)
_NAMED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", "\\": "\\\\"} | {c: "\\" + c for c in "=:#!"}
# Java's line ends; str.splitlines() also splits at U+0085 and others.
_LINE_END = re.compile(r"\r\n|\r|\n")


def parse_properties(text: str) -> dict[str, str]:
    """Parse properties text (decoded from ISO-8859-1); of a repeated key the last value counts.

    Raises:
        CorruptTableError: a ``\\u`` without four hexadecimal digits.
    """
    return dict(_parsed(text))


# One write reads a table's properties several times, since another writer may have changed them; mostly none has.
@lru_cache(maxsize=32)
def _parsed(text: str) -> Mapping[str, str]:
    props: dict[str, str] = {}
    for line in _logical_lines(text):
        end = _key_end(line)
        props[_unescape(line[:end])] = _unescape(_value_part(line[end:]))
    return props


def format_properties(props: Mapping[str, str], comments: Sequence[str]) -> str:
    """Format properties as ASCII text: one line per comment, then one per key in the given order."""
    lines = ["#" + _ascii(_LINE_END.sub("\n#", comment)) for comment in comments]
    lines += [f"{_escape(key, all_blanks=True)}={_escape(value, all_blanks=False)}" for key, value in props.items()]
    return "".join(line + "\n" for line in lines)


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without leading blanks; comments and empty lines are dropped, continued lines joined."""
    parts: list[str] = []  # of a continued line
    for raw in _LINE_END.split(text):
        line = raw.lstrip(_BLANKS)
        if not parts and (not line or line[0] in "#!"):
            continue
        if _ends_in_open_backslash(line):
            parts.append(line[:-1])
        else:
            yield "".join([*parts, line])
            parts = []
    if any(parts):
        yield "".join(parts)


def _ends_in_open_backslash(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _key_end(line: str) -> int:
    found = _KEY.match(line)
    return 0 if found is None else found.end()


def _value_part(rest: str) -> str:
    rest = rest.lstrip(_BLANKS)
    return rest[1:].lstrip(_BLANKS) if rest[:1] in ("=", ":") else rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        position += 1
        if char == "\\" and position < len(text):
            char = text[position]
            position += 1
            if char == "u":
                char = _unit(text[position : position + 4])
                position += 4
            else:
                char = _NAMED.get(char, char)
        elif char == "\\":
            break
        out.append(char)
    return "".join(out).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _unit(digits: str) -> str:
    if re.fullmatch("[0-9a-fA-F]{4}", digits) is None:
        raise CorruptTableError(f"Expected four hexadecimal digits after \\u in a properties file, found {digits!r}.")
    return chr(int(digits, 16))


def _escape(text: str, *, all_blanks: bool) -> str:
    out = "".join(_ESCAPED.get(char, char) for char in text)
    if all_blanks:
        out = out.replace(" ", "\\ ")
    elif out.startswith(" "):
        out = "\\" + out
    return _ascii(out)


def _ascii(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if " " <= char <= "~" or char == "\n" else _units(char) for char in text)


def _units(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02X}{units[i + 1]:02X}" for i in range(0, len(units), 2))


PROPERTIES_PATH = ".hoodie/hoodie.properties"
BACKUP_PATH = ".hoodie/hoodie.properties.backup"
CHECKSUM_KEY = "hoodie.table.checksum"
"""Paths of the properties file and of its backup, and the key of its checksum."""
UPDATED_PATH = ".hoodie/hoodie.properties.updated"
"""New properties that Apache Hudi before 0.10 renames to the properties file at the end of an upgrade."""

_NAME_KEY = "hoodie.table.name"
_DATABASE_KEY = "hoodie.database.name"
_ATTEMPTS = 5
_WAIT_SECONDS = 0.05


def table_checksum(name: str, database: str | None = None) -> str:
    """The value of ``hoodie.table.checksum``: decimal CRC-32 of ``<database>.<name>`` in UTF-8 (no database: empty)."""
    return str(zlib.crc32(f"{database or ''}.{name}".encode()))


def load_properties(storage: Storage) -> dict[str, str]:
    """The table's properties, from the main file or, during a change, from its backup.

    Raises:
        TableNotFoundError: neither file exists, and the timeline has no instants.
        CorruptTableError: a file cannot be decoded, or the table has instants but no properties.
        StorageAccessError: a file may not be read.
    """
    problem: CorruptTableError | None = None
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(_WAIT_SECONDS)
        for path in (PROPERTIES_PATH, BACKUP_PATH):
            try:
                return _read_valid(storage, path)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except CorruptTableError as error:
                problem = problem or error
            except StorageAccessError:
                raise
            except PermissionError as error:
                raise _forbidden(storage, path, error) from error
        if problem is None and not storage.exists(".hoodie"):
            break
    if problem is not None:
        raise problem
    if _has_instants(storage) and storage.exists(UPDATED_PATH):
        raise CorruptTableError(
            f"The table {storage.uri} has no hoodie.properties: an upgrade by Apache Hudi before 0.10 failed after it "
            "wrote hoodie.properties.updated. Check that this file is complete, and rename it to hoodie.properties.",
            UPDATED_PATH,
        )
    if _has_instants(storage):
        raise CorruptTableError(
            f"The table {storage.uri} has a timeline but neither hoodie.properties nor its backup; restore the file.",
            PROPERTIES_PATH,
        )
    raise TableNotFoundError(f"No Hudi table at {storage.uri}: expected {PROPERTIES_PATH}. Create it or fix the path.")


def _forbidden(storage: Storage, path: str, error: PermissionError) -> StorageAccessError:
    return StorageAccessError(
        f"{storage.absolute(path)} cannot be read: {error.strerror or error}. This user needs the right to read the "
        "files of the table."
    )


def create_properties(storage: Storage, props: Mapping[str, str]) -> None:
    """Create the file of a new table; a missing checksum is added.

    Raises:
        TableExistsError: the file exists already.
    """
    complete = dict(props)
    complete.setdefault(CHECKSUM_KEY, _checksum_of(complete))
    try:
        storage.create_exclusive(PROPERTIES_PATH, _encode(complete, "Properties saved on"))
    except FileExistsError as error:
        raise TableExistsError(f"A Hudi table exists at {storage.uri} already ({PROPERTIES_PATH}).") from error


def update_properties(storage: Storage, changes: Mapping[str, str | None]) -> dict[str, str]:
    """Set keys, remove keys whose new value is None, and return all properties after the change.

    The caller must hold the table lock. Nothing is written if nothing changes.

    Raises:
        TableNotFoundError: the table does not exist.
        CorruptTableError: the file cannot be decoded, before or after the change.
        CommitConflictError: another process began a change at the same time.
    """
    _recover(storage)
    current = load_properties(storage)
    merged = {**current, **{key: value for key, value in changes.items() if value is not None}}
    updated = {key: value for key, value in merged.items() if changes.get(key, value) is not None}
    if CHECKSUM_KEY not in updated or not {_NAME_KEY, _DATABASE_KEY}.isdisjoint(changes):
        updated[CHECKSUM_KEY] = _checksum_of(updated)
    if updated == current:
        return updated
    try:
        backup = current if CHECKSUM_KEY in current else {**current, CHECKSUM_KEY: _checksum_of(current)}
        storage.create_exclusive(BACKUP_PATH, _encode(backup, "Updated at"))
    except FileExistsError as error:
        raise CommitConflictError(
            f"Another process is changing the properties of {storage.uri} (it created {BACKUP_PATH}); retry."
        ) from error
    storage.sync()  # the backup, and the files that the new properties rely on
    storage.delete_file(PROPERTIES_PATH)
    storage.write_bytes(PROPERTIES_PATH, _encode(updated, "Updated at"))
    if _read_valid(storage, PROPERTIES_PATH) != updated:
        storage.delete_file(PROPERTIES_PATH)
        raise CorruptTableError(
            f"The properties of {storage.uri} differ from what was written when read back; the backup file keeps the "
            "old properties.",
            PROPERTIES_PATH,
        )
    storage.sync()
    storage.delete_file(BACKUP_PATH)
    return updated


def _recover(storage: Storage) -> None:
    """Undo a crashed change."""
    if not storage.exists(BACKUP_PATH):
        return
    main, backup = _read_or_none(storage, PROPERTIES_PATH), _read_or_none(storage, BACKUP_PATH)
    is_complete = main is not None and (CHECKSUM_KEY in main or main.keys() >= (backup or {}).keys())
    if backup is not None and not is_complete:
        storage.write_bytes(PROPERTIES_PATH, storage.read_bytes(BACKUP_PATH))
        storage.sync()
    storage.delete_file(BACKUP_PATH)


def _read_or_none(storage: Storage, path: str) -> dict[str, str] | None:
    try:
        return _read_valid(storage, path)
    except (FileNotFoundError, CorruptTableError):
        return None


def _read_valid(storage: Storage, path: str) -> dict[str, str]:
    body = storage.read_bytes(path)
    try:
        props = parse_properties(body.decode("iso-8859-1"))
    except CorruptTableError as error:
        raise CorruptTableError(f"Table {storage.uri}: {error}", path) from error
    if not props:
        found_instead = "comments only" if body.strip() else f"{len(body)} bytes"
        raise CorruptTableError(
            f"The properties of {storage.uri} are empty: expected lines of key=value, found {found_instead}. A "
            "writer or a copy was interrupted; restore the file from a copy of the table.",
            path,
        )
    found = props.get(CHECKSUM_KEY)
    if found is None and not body.endswith(b"\n"):
        raise CorruptTableError(f"The properties of {storage.uri} end in the middle of a line; restore the file.", path)
    if _NAME_KEY not in props:
        raise CorruptTableError(f"The properties of {storage.uri} lack {_NAME_KEY}; restore the file.", path)
    if found is not None and found != _checksum_of(props):
        raise CorruptTableError(
            f"The checksum in the properties of {storage.uri} is wrong: expected {_checksum_of(props)} for database "
            f"{props.get(_DATABASE_KEY, '')!r} and table {props[_NAME_KEY]!r}, found {found}; restore the file.",
            path,
        )
    return props


def _checksum_of(props: Mapping[str, str]) -> str:
    return table_checksum(props.get(_NAME_KEY, ""), props.get(_DATABASE_KEY))


def _encode(props: Mapping[str, str], what: str) -> bytes:
    now = datetime.now(UTC)
    comments = [f"{what} {now.isoformat(timespec='microseconds')[:-6]}Z", now.strftime("%a %b %d %H:%M:%S UTC %Y")]
    ordered = {key: props[key] for key in sorted(props)}
    return format_properties(ordered, comments).encode("iso-8859-1")


def _has_instants(storage: Storage) -> bool:
    entries = storage.list_dir(".hoodie") + storage.list_dir(".hoodie/timeline")
    return any(entry.name[:1].isdigit() and not entry.is_dir for entry in entries)
