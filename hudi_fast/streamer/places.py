"""Opens the places of a stream: its table, folders, and files of schemas and of SQL.

One set of storage options is for all places in stores. A stream may read a folder of this machine and write to a table
in S3, so places of this machine are opened without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_fast.errors import ConfigError
from hudi_fast.sessions import open_storage
from hudi_fast.storage.base import Storage
from hudi_fast.storage.places import scheme_of
from hudi_fast.streamer.settings import StreamSettings

__all__ = ["open_place", "require_store"]

_PLACES = (
    *("source.dfs.root", "source.hoodieincr.path"),
    *("schemaprovider.source.schema.file", "schemaprovider.target.schema.file"),
)
_SQL_FILE = "transformer.sql.file"


def open_place(spark: Any, path: str, storage_options: Mapping[str, Any] | None) -> Storage:
    """The storage of a place.

    Args:
        spark: the session of the stream, whose settings count without storage options; None without one.
        path: of the place.
        storage_options: of the stream.

    Raises:
        HudiError: the path or an option is invalid.
    """
    return open_storage(spark, path, None if scheme_of(path) == "file" else storage_options)


def require_store(settings: StreamSettings, storage_options: Mapping[str, Any] | None) -> None:
    """Check that storage options have a place that takes them.

    Raises:
        ConfigError: all places of the stream are on this machine.
    """
    named = [settings.stream.get(key, "") for key in _PLACES]
    named += [value for key, value in settings.stream.items() if key.startswith(_SQL_FILE)]
    named += [settings.errors.get("base.path", ""), settings.arguments.get("proto-descriptor-file", "")]
    if storage_options and all(scheme_of(one) == "file" for one in (settings.path, *named)):
        raise ConfigError(
            f"Local paths do not support storage options; got {sorted(storage_options)}, and all paths of the stream "
            f"into {settings.path} are local."
        )
