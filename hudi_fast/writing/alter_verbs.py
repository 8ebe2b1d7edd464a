"""``HudiTable``: altering columns, and the schema history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hudi_fast.storage.failures import tells_failures

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_fast.schema.alter import Change
    from hudi_fast.storage.base import Storage
    from hudi_fast.writing.alter import AlterResult

__all__ = ["SchemaVerbs"]


@tells_failures
class SchemaVerbs:
    """The columns of a table."""

    _storage: Storage

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
        """
        from hudi_fast.writing.alter import alter_table
        from hudi_fast.writing.open_session import open_session
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
