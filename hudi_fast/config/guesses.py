"""Names from other libraries, with the names of this one, for the message of an ``AttributeError``."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable, Mapping

__all__ = [
    "MERGE_GUESSES",
    "MODULE_GUESSES",
    "RENAMED",
    "SERVICE_GUESSES",
    "TABLE_GUESSES",
    "missing",
    "new_name",
]

RENAMED = {
    "log_compact": "compact_logs",
    "plan_ttl": "plan_expire_partitions",
    "register": "register_data_source",
    "ttl": "expire_partitions",
}
"""Earlier names of public calls, which work for one more release."""

MODULE_GUESSES = {
    **dict.fromkeys(("read_table", "read_hudi", "load", "scan_hudi"), "hudi_fast.read(path) or hudi_fast.scan(path)"),
    **dict.fromkeys(("scan_polars", "read_polars"), "hudi_fast.HudiTable(path).to_polars(lazy=True)"),
    **dict.fromkeys(("write_table", "write_hudi", "write_deltalake", "save"), "hudi_fast.write(rows, path, key=...)"),
    **dict.fromkeys(("open", "open_table", "Table", "load_table", "DeltaTable"), "hudi_fast.HudiTable(path)"),
    **dict.fromkeys(("exists", "table_exists", "is_hudi_table"), "hudi_fast.is_table(path)"),
    **dict.fromkeys(("upsert", "insert"), "hudi_fast.write(rows, path, operation=...) or HudiTable(path).upsert(rows)"),
}
"""Names of other libraries for names of the package."""

TABLE_GUESSES = {
    **dict.fromkeys(("version_history", "snapshots", "commits", "timeline", "versions", "log"), "history()"),
    **dict.fromkeys(("read", "to_pyarrow_table", "to_table", "collect"), "to_arrow()"),
    **dict.fromkeys(("to_pyarrow_dataset", "dataset", "to_lazy"), "scan()"),
    **dict.fromkeys(("plan_files", "get_splits", "splits", "to_ray", "to_dask"), "the method splits of scan()"),
    **dict.fromkeys(("vacuum", "clean", "expire_snapshots"), "services.clean()"),
    **dict.fromkeys(
        ("compact", "rewrite_data_files"), "services.compact() for log files, or services.cluster() for small files"
    ),
    **dict.fromkeys(("optimize", "z_order", "cluster", "sort"), "services.cluster(), which sorts and joins files"),
    **dict.fromkeys(("restore", "rollback", "savepoint", "repair", "validate"), "the method of that name of services"),
    **dict.fromkeys(("metadata", "properties", "options", "details"), "config"),
    **dict.fromkeys(("file_uris", "get_add_actions", "data_files"), "files()"),
    **dict.fromkeys(("partition_columns", "partitioning"), "config.partition_fields"),
    **dict.fromkeys(("load_as_version", "at", "as_of"), "to_arrow(as_of=...)"),
    **dict.fromkeys(("changes", "load_cdf", "change_feed"), "cdc() or incremental()"),
    **dict.fromkeys(("create_index", "index"), "services.index()"),
    **dict.fromkeys(("describe", "info", "detail"), "stats()"),
    **dict.fromkeys(("set_table_properties", "update_properties", "set_option"), "set_properties()"),
    **dict.fromkeys(("alter_table", "add_column", "rename_column", "update_schema"), "alter()"),
}
"""Names of other libraries for methods of a table."""

MERGE_GUESSES = {
    **dict.fromkeys(("when_matched_update_all", "whenMatchedUpdateAll", "whenMatchedUpdate"), "when_matched_update()"),
    **dict.fromkeys(("whenMatchedDelete", "when_matched"), "when_matched_delete() or when_matched_update()"),
    **dict.fromkeys(
        ("when_not_matched_insert_all", "whenNotMatchedInsertAll", "whenNotMatchedInsert", "when_not_matched"),
        "when_not_matched_insert()",
    ),
    **dict.fromkeys(
        ("whenNotMatchedBySourceDelete", "whenNotMatchedBySourceUpdate", "when_not_matched_by_source"),
        "when_not_matched_by_source_delete() or when_not_matched_by_source_update(set)",
    ),
    **dict.fromkeys(("merge", "commit", "collect"), "execute()"),
}
"""Names of other libraries for methods of a merge."""


_SORTING = "cluster({'hoodie.clustering.plan.strategy.sort.columns': 'a,b'"

SERVICE_GUESSES = {
    **dict.fromkeys(("optimize", "bin_pack", "rewrite_data_files"), "cluster(), which joins small files, or compact()"),
    **dict.fromkeys(("sort", "order_by", "sort_by"), f"{_SORTING}}})"),
    **dict.fromkeys(
        ("z_order", "zorder", "z_order_by"), f"{_SORTING}, 'hoodie.layout.optimize.strategy': 'z-order'}})"
    ),
    **dict.fromkeys(("vacuum", "expire_snapshots", "remove_orphan_files", "cleanup"), "clean(), or repair()"),
    **dict.fromkeys(("create_index", "build_index"), "index(kind, columns)"),
    **dict.fromkeys(("snapshot", "tag", "create_savepoint"), "savepoint()"),
    **dict.fromkeys(("fsck", "check", "verify"), "validate(), or repair()"),
}
"""Names of other libraries for the services of a table."""


def new_name(owner: str, name: str, known: Iterable[str]) -> str | None:
    """The present name of a renamed call, after a ``FutureWarning``; None if the owner never had such a call.

    Args:
        owner: of the name, as a user writes it.
        name: the requested name.
        known: existing names.
    """
    present = RENAMED.get(name)
    if present is None or present not in known:
        return None
    warnings.warn(
        f"{owner}.{name} is now {owner}.{present}; the next release has the new name only.",
        FutureWarning,
        stacklevel=3,
    )
    return present


def missing(owner: str, name: str, guesses: Mapping[str, str], known: Iterable[str]) -> AttributeError:
    """The error for a name that an object lacks, with the name that was probably meant.

    Args:
        owner: of the name, as a user writes it.
        name: the requested name.
        guesses: names of this library by the names of other libraries.
        known: existing names.
    """
    text = f"{owner} has no attribute {name!r}"
    close = difflib.get_close_matches(name, [one for one in known if not one.startswith("_")], 1, 0.75)
    if name in guesses:
        text = f"{text}; use {guesses[name]}"
    elif close:
        text = f"{text}; did you mean {close[0]!r}?"
    return AttributeError(text)
