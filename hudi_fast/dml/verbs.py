"""``HudiTable``: merges and updates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

from hudi_fast.config.words import TableWords, with_words
from hudi_fast.storage.failures import tells_failures

if TYPE_CHECKING:
    from hudi_fast.dml.statement import Merge
    from hudi_fast.merging.rules import Merger
    from hudi_fast.reading.scan import Filter
    from hudi_fast.storage.base import Storage
    from hudi_fast.writing.flow import WriteResult
    from hudi_fast.writing.session import TableSession

__all__ = ["DmlVerbs"]


@tells_failures
class DmlVerbs:
    """Merges and updates of a table, in this process. Each is one commit."""

    _storage: Storage
    _merger: Merger | None

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
        """
        from hudi_fast.arrow_input import to_arrow_table
        from hudi_fast.dml.run import merge_locally
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
        """
        from hudi_fast.dml.run import update_locally

        return update_locally(self._dml_session(with_words(options, words)), where, set)

    def _delete_where(self, where: Filter, options: Mapping[str, Any] | None) -> WriteResult:
        from hudi_fast.dml.run import delete_locally

        return delete_locally(self._dml_session(options), where)

    def _dml_session(self, options: Mapping[str, Any] | None) -> TableSession:
        from hudi_fast.dml.run import dml_settings
        from hudi_fast.writing.open_session import open_session

        given = dict(options or {})
        if self._merger is not None:
            given.setdefault("hudi_fast.merger", self._merger)
        return open_session(self._storage, dml_settings(given))
