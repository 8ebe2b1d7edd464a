"""Index definitions: what an index of the metadata table is over, as ``.hoodie/.index_defs/index.json`` says it.

::

    index.json ─ load_definitions ─► {metadata partition: IndexDefinition} ─ save_definitions ─► index.json, whole

Unknown fields are ignored when read. Source: metadata reference 4; HoodieIndexMetadata and HoodieIndexDefinition,
release 1.2.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hudi_fast.config.table_config import TableConfig
from hudi_fast.storage.base import Storage

__all__ = ["DEFINITIONS_PATH", "IndexDefinition", "index_version", "load_definitions", "save_definitions"]

DEFINITIONS_PATH = ".hoodie/.index_defs/index.json"
"""Where definitions are, unless the table's properties say otherwise."""


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """One index of the metadata table.

    Attributes:
        name: partition of the metadata table: ``column_stats``, ``secondary_index_x`` ...
        kind: ``column_stats``, ``record_index``, ``secondary_index``, ``bloom_filters`` ... (``indexType``).
        function: ``column_stats``, ``identity``, ``upper``, ``from_unixtime`` ...; empty for a record index.
        source_fields: the columns it is over.
        options: of the index: ``isPartitioned``, ``expr``, ``format`` ...
        version: ``V1`` or ``V2``; None where the file does not say (table versions below 9).
    """

    name: str
    kind: str
    function: str = ""
    source_fields: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    version: str | None = None


def load_definitions(storage: Storage, config: TableConfig) -> Mapping[str, IndexDefinition]:
    """The definitions of a data table by partition of its metadata table; empty when it has none.

    Raises:
        CorruptTableError: the file cannot be understood.
    """
    raise NotImplementedError


def save_definitions(storage: Storage, config: TableConfig, definitions: Mapping[str, IndexDefinition]) -> None:
    """Write the file anew with these definitions; call it under the table's lock.

    Raises:
        ConfigError: the table's properties name a path outside the table.
    """
    raise NotImplementedError


def index_version(partition: str, table_version: int, definitions: Mapping[str, IndexDefinition]) -> str:
    """``V1`` or ``V2``: how the records of a metadata partition are written.

    Args:
        partition: of the metadata table.
        table_version: of the data table.
        definitions: of the data table.

    Raises:
        UnsupportedFeatureError: an unknown kind of partition.
    """
    raise NotImplementedError
