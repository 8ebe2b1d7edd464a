"""``hudi-defaults.conf``: options of every write and table service of this machine, unless a call gives its own.

::

    /etc/hudi/conf/hudi-defaults.conf ─┐  later lines and files win     ┌─► with_defaults: options of a call come first
    $HUDI_CONF_DIR/hudi-defaults.conf ─┴─► MachineDefaults ─────────────┤
                                                                        └─► with_table_defaults: for a new table, too

As in Apache Hudi, reads do not use the file, and options that describe a table (its name, keys, partitions, merging)
apply to new tables only. Lines are ``key=value`` or ``key value``; ``#`` begins a comment; ``include=other.conf``
inserts a file. Files are read again when they have changed. Not used: a file on the class path of the JVM. Unlike here,
Hudi 1.2.0 ignores partition and ordering columns of the file when its data source makes a table: it infers the key
generator and the merge mode before it adds the file.

Source: ``DFSPropertiesConfiguration``, ``HoodieWriterUtils.parametersWithWriteDefaults``,
``ProvidesHoodieConfig.combineOptions``, Hudi 1.2.0.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from hudi_fast.config.option_fields import WRITE
from hudi_fast.config.options import find_option
from hudi_fast.config.properties_file import PROPERTIES_PATH
from hudi_fast.config.table_options import (
    KEY_OPTIONS,
    MERGE_OPTIONS,
    SCHEMA_OPTIONS,
    TABLE_OPTIONS,
    TIMEBASED_OPTIONS,
)
from hudi_fast.config.words import checked_options
from hudi_fast.errors import ConfigError, HudiError
from hudi_fast.storage.base import Storage
from hudi_fast.values import dataclass

__all__ = [
    "MachineDefaults",
    "machine_defaults",
    "name_source",
    "read_settings",
    "with_defaults",
    "with_new_table",
    "with_table_defaults",
]

_FILE = "hudi-defaults.conf"
_FOLDER = "/etc/hudi/conf"
_FOLDER_VARIABLE = "HUDI_CONF_DIR"
_OF_WRITES = frozenset({"hoodie.schema.on.read.enable", "hudi_fast.allow.rounding"})
_OF_TABLES = frozenset(
    key
    for option in (*TABLE_OPTIONS, *SCHEMA_OPTIONS, *KEY_OPTIONS, *TIMEBASED_OPTIONS, *MERGE_OPTIONS)
    if option.key not in _OF_WRITES
    for key in option.keys
)
"""Options that hold for new tables only, when they are in the file."""
_GENERATOR = ("hoodie.datasource.write.keygenerator.class", "hoodie.datasource.write.keygenerator.type")
Stamp = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class MachineDefaults:
    """The options of the files.

    Attributes:
        general: for every write and service.
        of_tables: for new tables.
        files: the files that were read, with their times and sizes.
    """

    general: Mapping[str, str] = field(default_factory=dict, repr=False)
    of_tables: Mapping[str, str] = field(default_factory=dict, repr=False)
    files: tuple[Stamp, ...] = ()


_known: dict[tuple[str, ...], MachineDefaults] = {}


def machine_defaults() -> MachineDefaults:
    """The options of this machine.

    Raises:
        ConfigError: ``HUDI_CONF_DIR`` names no local folder with the file, or a file cannot be read.
    """
    places = tuple(str(path) for path in _places())
    known = _known.get(places)
    if known is None or any(_stamp(path) != (path, at, size) for path, at, size in known.files):
        known = _known[places] = _read(places)
    return known


def with_defaults(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Options of a write or service, completed by the machine's options.

    Raises:
        ConfigError: as :func:`machine_defaults`.
    """
    given = dict(checked_options(options) or {})
    return {**_missing(machine_defaults().general, given), **given}


def with_table_defaults(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """As :func:`with_defaults`, completed by the machine's options for new tables, too.

    Raises:
        ConfigError: as :func:`machine_defaults`.
    """
    given = dict(checked_options(options) or {})
    return with_defaults({**_missing(machine_defaults().of_tables, given), **given})


def with_new_table(options: Mapping[str, Any] | None, storage: Storage, mode: str) -> dict[str, Any]:
    """Options of a write; if it makes a table, completed by the machine's options for new tables.

    Args:
        options: of the call.
        storage: the table's.
        mode: save mode; ``overwrite`` makes a new table.

    Raises:
        ConfigError: as :func:`machine_defaults`.
    """
    given = dict(checked_options(options) or {})
    missing = _missing(machine_defaults().of_tables, given)
    if missing and (mode == "overwrite" or not storage.has_file(PROPERTIES_PATH)):
        return {**missing, **given}
    return given


def name_source(error: HudiError, options: Mapping[str, Any] | None) -> None:
    """Add a note to an error about an option that comes from a file."""
    found = machine_defaults()
    ours = [key for key in (*found.general, *found.of_tables) if key in str(error) and key not in (options or {})]
    if ours:
        error.add_note(f"{', '.join(ours)}: set in {' or '.join(path for path, _, _ in found.files if path)}.")


def _missing(defaults: Mapping[str, str], given: Mapping[str, Any]) -> dict[str, str]:
    """Defaults of options that are not given in any spelling."""
    if not defaults:
        return {}
    said: set[str] = set()
    for key in given:
        option = find_option(key)
        said.update((key,) if option is None else option.keys)
    if not said.isdisjoint(_GENERATOR):
        said.update(_GENERATOR)
    return {key: value for key, value in defaults.items() if key not in said}


def _places() -> list[Path]:
    places = [Path(_FOLDER) / _FILE]
    folder = os.environ.get(_FOLDER_VARIABLE)
    if folder:
        if "://" in folder and not folder.startswith("file://"):
            raise ConfigError(
                f"{_FOLDER_VARIABLE}={folder} is not a local folder: hudi_fast reads {_FILE} from those only."
            )
        local = unquote(folder.partition(":")[2]) if folder.startswith("file:") else folder
        own = Path("/" + local.lstrip("/") if folder.startswith("file:") else local) / _FILE
        places += [own] if own != places[0] else []
    return places


def _stamp(path: str) -> Stamp:
    """Path, time and size of a file; time 0 for one that does not exist."""
    try:
        found = os.stat(path)
    except OSError:
        return path, 0, -1
    return path, found.st_mtime_ns, found.st_size


def _read(places: tuple[str, ...]) -> MachineDefaults:
    values: dict[str, str] = {}
    stamps: list[Stamp] = []
    for place in map(Path, places):
        if place == Path(_FOLDER) / _FILE and _stamp(str(place))[1] == 0:
            stamps.append(_stamp(str(place)))
            continue
        values |= read_settings(
            place,
            "The options of this machine",
            f"{_FOLDER_VARIABLE} names its folder",
            lambda path: stamps.append(_stamp(str(path))),
        )
    found: tuple[dict[str, str], dict[str, str]] = ({}, {})
    for key, value in values.items():
        option = find_option(key)
        if not key.startswith("hoodie.") or (option is not None and WRITE[0] not in option.families):
            continue
        own = key if option is None else option.key
        found[own in _OF_TABLES or key in _OF_TABLES][own] = value
    return MachineDefaults(*found, tuple(stamps))


def read_settings(
    path: Path, what: str, asked: str, read: Callable[[Path], object] = lambda path: None
) -> dict[str, str]:
    """The settings of a file, and of the files that it includes.

    Args:
        path: the file.
        what: what is in it, for messages.
        asked: why it is read, for messages.
        read: called with each file before it is read.

    Raises:
        ConfigError: a file cannot be read, or includes itself.
    """
    values: dict[str, str] = {}
    _add(path, values, read, what, asked, ())
    return values


def _add(
    path: Path,
    values: dict[str, str],
    read: Callable[[Path], object],
    what: str,
    asked: str,
    within: tuple[Path, ...],
) -> None:
    if path in within:
        raise ConfigError(f"{within[-1]} includes {path}, which includes it: a loop. Remove one of the two lines.")
    read(path)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        asked = f"{within[-1]} includes it" if within else asked
        raise ConfigError(f"{what} in {path} cannot be read: {reason} ({asked}).") from None
    for line in lines:
        text = " ".join(line.split())
        if not text or text.startswith("#") or not ("=" in text or " " in text):
            continue
        key, _, value = text.partition("=" if "=" in text else " ")
        if key.strip() == "include":
            other = value.strip().removeprefix("file://")
            _add(path.parent / other, values, read, what, asked, (*within, path))
        else:
            values[key.strip()] = value.strip()
