"""The folders of a new table.

``.hoodie`` and its folders are created first and ``hoodie.properties`` last, with an exclusive create. Until then the
folder is not a table. One of two concurrent creators succeeds, and a crashed creation can be repeated.
Source: HoodieTableMetaClient.initializeTable*, release 1.2.0.
"""

from __future__ import annotations

from collections.abc import Mapping

from hudi_fast.config.properties_file import create_properties
from hudi_fast.errors import CommitError, HudiError, StorageAccessError
from hudi_fast.storage.base import Storage
from hudi_fast.storage.relative_path import check_relative

__all__ = ["create_table_layout"]

_FOLDERS = (".aux/.bootstrap/.partitions", ".aux/.bootstrap/.fileids", ".temp", ".schema")


def create_table_layout(storage: Storage, props: Mapping[str, str], layout: int) -> None:
    """Create the folders for timeline layout 1 or 2, then the properties file.

    Raises:
        TableExistsError: the table exists already; it is not changed.
        StorageAccessError: folders may not be created here.
        CommitError: they cannot be created.
    """
    folders = list(_FOLDERS)
    if layout >= 2:
        timeline = props.get("hoodie.timeline.path", "timeline")
        folders.append(f"{timeline}/{props.get('hoodie.timeline.history.path', 'history')}")
    try:
        for folder in folders:
            storage.make_dir(check_relative(f".hoodie/{folder}"))
    except OSError as error:
        if isinstance(error, HudiError):
            raise
        kind = StorageAccessError if isinstance(error, PermissionError) else CommitError
        raise kind(
            f"No table can be created at {storage.uri}: {error}. Check the path and the rights there."
        ) from error
    create_properties(storage, props)
