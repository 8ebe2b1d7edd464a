"""The folders of a new table.

``.hoodie`` and its folders are created first and ``hoodie.properties`` last, with an exclusive create. Until then the
folder is not a table. One of two concurrent creators succeeds, and a crashed creation can be repeated.
Source: HoodieTableMetaClient.initializeTable*, release 1.2.0.
"""

from __future__ import annotations

from collections.abc import Mapping

from hudi_fast.config.properties_file import create_properties
from hudi_fast.storage.base import Storage
from hudi_fast.storage.relative_path import check_relative

__all__ = ["create_table_layout"]

_FOLDERS = (".aux/.bootstrap/.partitions", ".aux/.bootstrap/.fileids", ".temp", ".schema")


def create_table_layout(storage: Storage, props: Mapping[str, str], layout: int) -> None:
    """Create the folders for timeline layout 1 or 2, then the properties file.

    Raises:
        TableExistsError: the table exists already; it is not changed.
    """
    folders = list(_FOLDERS)
    if layout >= 2:
        timeline = props.get("hoodie.timeline.path", "timeline")
        folders.append(f"{timeline}/{props.get('hoodie.timeline.history.path', 'history')}")
    for folder in folders:
        storage.make_dir(check_relative(f".hoodie/{folder}"))
    create_properties(storage, props)
