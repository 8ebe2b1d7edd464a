"""The table object: reads, writes, services and inspection without Spark. It delegates and holds no logic.

Each method imports the code that it calls: a process that reads one table loads no code of writes and services.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack, cast

from hudi_fast.config.properties_file import PROPERTIES_PATH, load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.config.words import TableWords, checked_options, with_words
from hudi_fast.errors import ConfigError
from hudi_fast.storage.base import Storage
from hudi_fast.storage.failures import tells_failures
from hudi_fast.table.inspection import TableInspection

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_fast.config.option_names import Operation, TableType
    from hudi_fast.dml.statement import Merge
    from hudi_fast.merging.rules import Merger
    from hudi_fast.reading.scan import Filter
    from hudi_fast.schema.alter import Change
    from hudi_fast.table.services import TableServices
    from hudi_fast.writing.alter import AlterResult
    from hudi_fast.writing.flow import WriteResult
    from hudi_fast.writing.session import TableSession

__all__ = ["HudiTable"]

Keys = Any
"""Rows with the key (and partition) columns: anything with ``__arrow_c_stream__``; or a filter, SQL text
or a ``pyarrow.compute`` expression."""


@tells_failures
class HudiTable(TableInspection):
    """A Hudi table on storage. Every call reads the current table state; the object caches only the path.

    Example:
        >>> import pyarrow as pa, tempfile, hudi_fast as hf
        >>> path = tempfile.mkdtemp() + "/trips"
        >>> schema = pa.schema({"id": pa.int64(), "fare": pa.float64()})
        >>> table = hf.HudiTable.create(path, schema, key="id")
        >>> table.upsert(pa.table({"id": [1, 2], "fare": [9.5, 3.0]})).inserts
        2
        >>> table.upsert(pa.table({"id": [2], "fare": [4.0]})).updates
        1
        >>> table.to_arrow(columns=["id", "fare"]).sort_by("id").to_pylist()
        [{'id': 1, 'fare': 9.5}, {'id': 2, 'fare': 4.0}]
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Storage,
        storage_options: Mapping[str, Any] | None = None,
        merger: Merger | None = None,
    ) -> None:
        self._storage = path if isinstance(path, Storage) else Storage(path, storage_options)
        self._merger = merger
        if not isinstance(path, Storage):
            TableConfig.from_properties(load_properties(self._storage), self._storage.uri)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        storage_options: Mapping[str, Any] | None = None,
        merger: Merger | None = None,
    ) -> HudiTable:
        """Open an existing table.

        Args:
            path: base path.
            storage_options: how to reach the table, see docs/object-stores.md.
            merger: for a table whose merge mode is CUSTOM: ``merge(older, newer)`` gets two Arrow tables with matching
                rows at the same positions and returns the merged rows, with ``_hoodie_is_deleted`` true for deleted
                rows.

        Raises:
            TableNotFoundError: no table at this path.
            CorruptTableError: the table properties cannot be parsed.

        Example:
            >>> hf.HudiTable.open(table.path).schema.names
            ['id', 'fare']
        """
        return cls(path, storage_options, merger)

    @classmethod
    def exists(cls, path: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> bool:
        """Whether there is a table at a path, valid or not.

        Raises:
            HudiError: the storage does not answer.
        """
        return Storage(path, storage_options).has_file(PROPERTIES_PATH)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        schema: pa.Schema,
        options: Mapping[str, Any] | None = None,
        storage_options: Mapping[str, Any] | None = None,
        **words: Unpack[TableWords],
    ) -> HudiTable:
        """Create an empty table.

        Args:
            path: base path.
            schema: data columns.
            options: ``hoodie.*`` keys as for a write.
            storage_options: how to reach the table, see docs/object-stores.md.
            words: as for :func:`hudi_fast.write`: ``key``, ``partition_by``, ``order_by``, ``table_type``, ``name``.

        Raises:
            TableExistsError: the path already holds a table.
            ConfigError: the options do not define a table, or name columns that are not in the schema.

        Example:
            >>> import pyarrow as pa, tempfile, hudi_fast as hf
            >>> schema = pa.schema({"id": pa.int64(), "city": pa.string(), "fare": pa.float64()})
            >>> path = tempfile.mkdtemp() + "/trips"
            >>> hf.HudiTable.create(path, schema, key="id", partition_by="city").config.partition_fields
            ('city',)
        """
        import pyarrow as pa

        from hudi_fast.config.defaults_file import with_table_defaults
        from hudi_fast.config.new_table import create_table_layout, new_table_properties
        from hudi_fast.config.option_conflicts import new_table_from_options
        from hudi_fast.config.write_options import WriteOptions
        from hudi_fast.formats.avro.schema import arrow_to_avro, record_name_of
        from hudi_fast.schema.normalize import normalize_input_schema

        if not isinstance(schema, pa.Schema):
            raise ConfigError(f"schema is a pyarrow.Schema, such as pa.schema({{'id': pa.int64()}}); got {schema!r}.")
        storage = Storage(path, storage_options)
        spec = new_table_from_options(
            WriteOptions.from_options(with_table_defaults(with_words(options, words))), storage.uri
        )
        stored = normalize_input_schema(schema)
        named = [*spec.record_key_fields, *spec.partition_fields, *spec.ordering_fields]
        missing = [name for name in named if name.split(".")[0] not in stored.names]
        if missing:
            raise ConfigError(f"The options of table {spec.name} name columns that the schema lacks: {missing}.")
        spec = replace(spec, create_schema=arrow_to_avro(stored, *record_name_of(spec.name)))
        properties = new_table_properties(spec)
        create_table_layout(storage, properties, int(properties["hoodie.timeline.layout.version"]))
        return cls(storage)

    def __repr__(self) -> str:
        return f"HudiTable({self._storage.uri!r})"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            from hudi_fast.config.words import TABLE_GUESSES, missing

            raise missing("HudiTable", name, {} if name.startswith("_") else TABLE_GUESSES, dir(type(self)))

    def _repr_html_(self) -> str:
        """HTML for notebooks: the table's configuration, its newest instants, its files by partition."""
        from hudi_fast.reading.inspecting.contents import table_html

        return table_html(self._storage)

    # ---- properties

    @property
    def path(self) -> str:
        """Base path."""
        return self._storage.uri

    @property
    def table_type(self) -> TableType:
        """``COPY_ON_WRITE`` or ``MERGE_ON_READ``."""
        return cast("TableType", self.config.table_type)

    @property
    def version(self) -> int:
        """Table version."""
        return self.config.version

    @property
    def schema(self) -> pa.Schema:
        """Data columns, without Hudi's meta columns."""
        import pyarrow as pa

        from hudi_fast.view.table_state import load_state, table_schema

        return table_schema(load_state(self._storage)) or pa.schema([])

    # ---- writing

    def write(
        self,
        data: Any,
        operation: Operation = "upsert",
        options: Mapping[str, Any] | None = None,
        **words: Unpack[TableWords],
    ) -> WriteResult:
        """Write rows.

        Args:
            data: rows of this process, or a stream, as for :func:`hudi_fast.write`.
            operation: ``upsert``, ``insert``, ``bulk_insert``, ``delete``, ``insert_overwrite``,
                ``insert_overwrite_table``, ``delete_partition``.
            options: ``hoodie.*`` keys. Inline services run as after :func:`hudi_fast.write`.
            words: as for :func:`hudi_fast.write`.

        Raises:
            ConfigError: the options name another operation.
            HudiError: see :mod:`hudi_fast.errors`.

        Example:
            >>> table.write([{"id": 3, "fare": 7.0}], "insert").inserts
            1
        """
        return self._write(data, with_words(options, {**words, "operation": operation}))

    def append(self, data: Any, options: Mapping[str, Any] | None = None, **words: Unpack[TableWords]) -> WriteResult:
        """Write rows as :func:`hudi_fast.write` does with the mode ``append``: by default an upsert.

        Rows whose key is stored replace the stored ones; a table without record key keeps all rows. For rows with new
        keys only, :meth:`insert` saves the lookup.
        """
        return self._write(data, with_words(options, words))

    def overwrite(
        self, data: Any, options: Mapping[str, Any] | None = None, **words: Unpack[TableWords]
    ) -> WriteResult:
        """Replace all rows of the table in one commit (``insert_overwrite_table``).

        The table keeps its configuration and history: earlier states can still be read. :meth:`insert_overwrite`
        replaces only the partitions of the given rows.
        """
        return self.write(data, "insert_overwrite_table", options, **words)

    def _write(self, data: Any, options: dict[str, Any]) -> WriteResult:
        from hudi_fast.services.inline import write_with_services
        from hudi_fast.sessions import open_session
        from hudi_fast.writing.flow import run_write
        from hudi_fast.writing.settings import Settings

        if self._merger is not None:
            options.setdefault("hudi_fast.merger", self._merger)
        load_properties(self._storage)
        session = open_session(self._storage, Settings.for_write(options, self._merger))
        with closing(session.backend.engine(data, session.settings.write)) as engine:
            result = write_with_services(session, lambda: run_write(session, engine, "append"))
        assert result is not None
        return result

    def upsert(self, data: Any, options: Mapping[str, Any] | None = None, **words: Unpack[TableWords]) -> WriteResult:
        """Insert new rows and update rows whose key is stored.

        Example:
            >>> result = table.upsert([{"id": 2, "fare": 5.0}, {"id": 3, "fare": 7.0}])
            >>> result.updates, result.inserts
            (1, 1)
        """
        return self.write(data, "upsert", options, **words)

    def insert(self, data: Any, options: Mapping[str, Any] | None = None, **words: Unpack[TableWords]) -> WriteResult:
        """Add rows without looking up their keys."""
        return self.write(data, "insert", options, **words)

    def bulk_insert(
        self, data: Any, options: Mapping[str, Any] | None = None, **words: Unpack[TableWords]
    ) -> WriteResult:
        """Add rows to new file groups."""
        return self.write(data, "bulk_insert", options, **words)

    def delete(
        self,
        keys_or_filter: Keys = None,
        options: Mapping[str, Any] | None = None,
        *,
        where: Filter | None = None,
        **words: Unpack[TableWords],
    ) -> WriteResult:
        """Delete rows by key; or by a filter, SQL text or a ``pyarrow.compute`` expression.

        Args:
            keys_or_filter: rows with the key columns, as for :func:`hudi_fast.write`; or a filter.
            options: ``hoodie.*`` keys as for a write.
            where: the filter.
            words: as for :func:`hudi_fast.write`.

        Raises:
            ConfigError: neither keys nor a filter, or both.
            HudiError: see :mod:`hudi_fast.errors`.

        Example:
            >>> table.delete(where="fare < 5").deletes
            1
        """
        import pyarrow.compute as pc

        if (keys_or_filter is None) == (where is None):
            raise ConfigError('delete takes the keys of rows, or a filter: delete(rows), or delete(where="id = 1").')
        target = keys_or_filter if where is None else where
        if isinstance(target, pc.Expression | str):
            return self._delete_where(target, with_words(options, words))
        return self.delete_keys(target, options, **words)

    def delete_keys(
        self, rows: Any, options: Mapping[str, Any] | None = None, **words: Unpack[TableWords]
    ) -> WriteResult:
        """Delete the rows with the keys of these rows; they need the key (and partition) columns only.

        Args:
            rows: as for :func:`hudi_fast.write`.
            options: ``hoodie.*`` keys as for a write.
            words: as for :func:`hudi_fast.write`.

        Raises:
            HudiError: see :mod:`hudi_fast.errors`.

        Example:
            >>> table.delete_keys([{"id": 1}]).deletes
            1
        """
        return self.write(rows, "delete", options, **words)

    def insert_overwrite(
        self, data: Any, options: Mapping[str, Any] | None = None, **words: Unpack[TableWords]
    ) -> WriteResult:
        """Replace the partitions of the given rows."""
        return self.write(data, "insert_overwrite", options, **words)

    def delete_partitions(self, partitions: Sequence[str], options: Mapping[str, Any] | None = None) -> WriteResult:
        """Delete whole partitions by path; ``*`` matches any text."""
        import pyarrow as pa

        is_list = isinstance(partitions, Sequence) and not isinstance(partitions, str)
        if not is_list or not all(isinstance(one, str) for one in partitions):
            found = f"the text {partitions!r}" if isinstance(partitions, str) else repr(partitions)
            raise ConfigError(f"delete_partitions takes a list of paths; got {found}.")
        named = {"hoodie.datasource.write.partitions.to.delete": ",".join(partitions)}
        return self.write(pa.table({}), "delete_partition", {**(checked_options(options) or {}), **named})

    def truncate(
        self, partitions: Sequence[str] | None = None, options: Mapping[str, Any] | None = None
    ) -> WriteResult:
        """Delete all rows of the table, or of some partitions, in one replace commit.

        The table keeps its columns, settings and history: time travel reads the rows until a clean removes their files.

        Args:
            partitions: exact partition paths; None for the whole table. Unlike in :meth:`delete_partitions`, ``*`` is
                a character like any other.
            options: ``hoodie.*`` keys.

        Raises:
            ConfigError: a partition does not exist.
            CommitConflictError: a pending table service is about to rewrite the rows.
        """
        if partitions is None:
            return self.write(self.schema.empty_table(), "insert_overwrite_table", options)
        from hudi_fast.services.truncation import truncate_partitions
        from hudi_fast.sessions import open_session
        from hudi_fast.writing.partition_deletion import deletion_options
        from hudi_fast.writing.settings import Settings

        settings = Settings.for_write(options, self._merger)
        settings = replace(settings, write=deletion_options(settings.write))
        return truncate_partitions(open_session(self._storage, settings), partitions)

    # ---- changes by condition

    def merge(
        self,
        source: Any,
        options: Mapping[str, Any] | None = None,
        aliases: tuple[str, str] = ("target", "source"),
        **words: Unpack[TableWords],
    ) -> Merge:
        """Start a merge of rows into the table; see :class:`hudi_fast.dml.statement.Merge`.

        Args:
            source: anything with ``__arrow_c_stream__``, or a pandas DataFrame.
            options: ``hoodie.*`` keys as for a write.
            aliases: prefixes of the columns of the table and of the source.
            words: as for :func:`hudi_fast.write`.

        Example:
            >>> rows = [{"id": 2, "fare": None}, {"id": 3, "fare": 7.0}]
            >>> result = (
            ...     table.merge(rows)
            ...     .on("id")
            ...     .when_matched_delete("source.fare is null")
            ...     .when_matched_update()
            ...     .when_not_matched_insert()
            ...     .execute()
            ... )
            >>> result.deletes, result.inserts
            (1, 1)
        """
        from hudi_fast.arrow_input import to_arrow_table
        from hudi_fast.dml.dml import merge_locally
        from hudi_fast.dml.statement import Merge, MergeSpec

        session, rows = self._dml_session(with_words(options, words)), to_arrow_table(source)
        return Merge(lambda spec: merge_locally(session, rows, spec), MergeSpec(aliases=aliases))

    def update(
        self,
        where: Filter | None,
        set: Mapping[str, Any],
        options: Mapping[str, Any] | None = None,
        **words: Unpack[TableWords],
    ) -> WriteResult:
        """Set columns of the rows that a filter selects.

        Args:
            where: SQL text or a ``pyarrow.compute`` expression over the table's columns; None for all rows.
            set: column -> value: a literal, SQL text over the table's columns (``"fare * 2"``, ``"'text'"``), or an
                expression.
            options: ``hoodie.*`` keys as for a write.
            words: as for :func:`hudi_fast.write`.

        Raises:
            ConfigError: the filter or a value does not fit the table, or a key column is set.
            HudiError: see :mod:`hudi_fast.errors`.

        Example:
            >>> table.update(where="id = 1", set={"fare": "fare * 2"}).updates
            1
            >>> table.to_arrow(["fare"], filter="id = 1").to_pylist()
            [{'fare': 19.0}]
        """
        from hudi_fast.dml.dml import update_locally

        return update_locally(self._dml_session(with_words(options, words)), where, set)

    def _delete_where(self, where: Filter, options: Mapping[str, Any] | None) -> WriteResult:
        from hudi_fast.dml.dml import delete_locally

        return delete_locally(self._dml_session(options), where)

    def _dml_session(self, options: Mapping[str, Any] | None) -> TableSession:
        from hudi_fast.dml.dml import dml_settings
        from hudi_fast.sessions import open_session

        given = dict(checked_options(options) or {})
        if self._merger is not None:
            given.setdefault("hudi_fast.merger", self._merger)
        return open_session(self._storage, dml_settings(given))

    # ---- columns

    def alter(self, *changes: Change, options: Mapping[str, Any] | None = None) -> AlterResult:
        """Add, drop, rename, retype and move columns and fields of structs, in one commit; no file is rewritten.

        Reads map older files to the new names and types: a renamed column keeps its values, a column that is dropped
        and added again does not. Columns of record keys, partition paths and ordering values cannot be changed.

        Args:
            changes: ``AddColumn``, ``DropColumn``, ``RenameColumn``, ``ChangeType``, ``MoveColumn``, ``SetNullable``,
                ``SetComment``, in the order in which they apply.
            options: ``hoodie.*`` keys of locks and of the metadata table.

        Raises:
            ConfigError: an unknown or protected column, or a name that already exists.
            SchemaMismatchError: a type that stored values cannot be converted to.
            HudiError: as for a write.

        Example:
            >>> table.alter(hf.AddColumn("tip", pa.float64()), hf.RenameColumn("fare", "price")).instant != ""
            True
            >>> table.schema.names
            ['id', 'price', 'tip']
        """
        from hudi_fast.sessions import open_session
        from hudi_fast.writing.alter import alter_table
        from hudi_fast.writing.settings import Settings

        return alter_table(open_session(self._storage, Settings.from_options(options)), changes)

    def schema_history(self) -> pa.Table:
        """One row for each column of each version of the schema: version, id, column, type, nullable, comment.

        Empty for a table whose schema was never altered. Version 0 is the schema before the first ALTER.
        """
        from hudi_fast.view.schema_versions import schema_versions
        from hudi_fast.view.table_state import load_state

        return schema_versions(load_state(self._storage))

    def schema_changes(self) -> pa.Table:
        """The changes of each schema version: version, change, column, before, after, as text.

        A change is ``added``, ``dropped``, ``renamed``, ``retyped``, ``nullable`` or ``comment``.
        """
        from hudi_fast.view.schema_versions import schema_changes
        from hudi_fast.view.table_state import load_state

        return schema_changes(load_state(self._storage))

    # ---- properties

    def set_properties(
        self, properties: Mapping[str, Any], *, options: Mapping[str, Any] | None = None
    ) -> dict[str, str]:
        """Keep properties of your own with the table, such as its owner; all are set, or none.

        They are stored in ``hoodie.properties``, where Apache Hudi keeps them, and ``table.config.raw`` has them. No
        commit is made.

        Args:
            properties: key to a text, a boolean, a number or a list of names; None removes the key. Of Hudi's keys,
                ``hoodie.database.name`` and ``hoodie.table.partition_extractor_class`` can be set.
            options: ``hoodie.*`` keys of locks.

        Returns:
            The properties of your own that the table has now.

        Raises:
            ConfigError: a key of Hudi that describes stored files, or that is an option of calls. Nothing was changed.
            LockError: the lock cannot be acquired.

        Example:
            >>> table.set_properties({"owner": "city team", "contains.names": False})
            {'owner': 'city team', 'contains.names': 'false'}
            >>> table.set_properties({"contains.names": None})
            {'owner': 'city team'}
        """
        from hudi_fast.sessions import open_session
        from hudi_fast.writing.alter import checked_properties, set_own_properties
        from hudi_fast.writing.settings import Settings

        changes = checked_properties(properties)
        return set_own_properties(open_session(self._storage, Settings.from_options(options)), changes)

    # ---- table services

    @property
    def services(self) -> TableServices:
        """Table services: cleaning, archiving, compaction, clustering, indexes, rollback, restore, upgrades, repair."""
        from hudi_fast.table.services import TableServices

        return TableServices(self._storage, self._merger)
