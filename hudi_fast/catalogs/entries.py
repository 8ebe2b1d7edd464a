"""The entries of a catalog for a table, as values, and the calls that all catalogs have.

A Hive metastore and AWS Glue store the same attributes: Hive types, input formats, serde and parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

__all__ = ["Catalog", "CatalogColumn", "CatalogPartition", "CatalogTable"]


@dataclass(frozen=True, slots=True)
class CatalogColumn:
    """A column.

    Attributes:
        name: its name; a Hive metastore stores it in lower case.
        type: its Hive type, in lower case: ``array<struct<a:int>>``.
        comment: empty for none.
    """

    name: str
    type: str
    comment: str = ""


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A table of a catalog.

    Attributes:
        database: its database.
        name: its name.
        columns: without partition columns.
        partition_columns: in the order of the values of a partition.
        location: base path.
        input_format: class of Hive's input format.
        output_format: class of Hive's output format.
        serde: class of Hive's serde.
        serde_properties: parameters of the serde.
        properties: parameters of the table.
        handle: the table as the catalog returned it; an update keeps its other attributes.
    """

    database: str
    name: str
    columns: tuple[CatalogColumn, ...]
    partition_columns: tuple[CatalogColumn, ...]
    location: str
    input_format: str
    output_format: str
    serde: str
    serde_properties: Mapping[str, str]
    properties: Mapping[str, str]
    handle: Any = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class CatalogPartition:
    """A partition of a table of a catalog.

    Attributes:
        values: one text for each partition column.
        location: its folder.
    """

    values: tuple[str, ...]
    location: str


class Catalog(Protocol):
    """A catalog. All calls raise :class:`~hudi_fast.errors.CatalogError` if it refuses or does not answer."""

    @property
    def name(self) -> str:
        """The catalog, for messages: "the Hive metastore at host:port"."""
        ...

    def has_database(self, name: str) -> bool:
        """Whether the database exists."""
        ...

    def create_database(self, name: str) -> None:
        """Create a database; does nothing if it exists already."""
        ...

    def table(self, database: str, name: str) -> CatalogTable | None:
        """A table; None if it does not exist."""
        ...

    def create_table(self, table: CatalogTable) -> None:
        """Create a table."""
        ...

    def replace_table(self, table: CatalogTable) -> None:
        """Drop a table with its partitions, but not its files, and create another one with its name."""
        ...

    def update_table(self, table: CatalogTable, cascade: bool = False) -> None:
        """Store a table that :meth:`table` returned, with changes.

        Args:
            table: the table.
            cascade: whether its partitions get its columns, too.
        """
        ...

    def partitions(self, table: CatalogTable, values: Sequence[tuple[str, ...]] | None) -> list[CatalogPartition]:
        """The partitions of a table.

        Args:
            table: from :meth:`table`.
            values: of the partitions to look up, without missing partitions in the result; None for all.
        """
        ...

    def add_partitions(self, table: CatalogTable, partitions: Sequence[CatalogPartition]) -> None:
        """Add partitions; partitions that exist already stay unchanged."""
        ...

    def move_partitions(self, table: CatalogTable, partitions: Sequence[CatalogPartition]) -> None:
        """Change the locations of partitions."""
        ...

    def drop_partitions(self, table: CatalogTable, values: Sequence[tuple[str, ...]]) -> None:
        """Drop partitions but not their files; missing partitions are ignored."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...
