"""The file groups that a replace commit replaces (``insert_overwrite``, ``insert_overwrite_table``,
``delete_partition``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import CommitConflictError
from hudi_fast.view.slices import TableView, latest_slices
from hudi_fast.writing.plan import WritePlan

__all__ = ["REPLACING", "replaced_groups"]

_STAR, _ANY = re.compile(r"\*|%2A"), "(?s:.*)"

REPLACING = frozenset({"insert_overwrite", "insert_overwrite_table", "delete_partition"})
"""Operations that replace file groups."""


def replaced_groups(
    plan: WritePlan, view: TableView, options: WriteOptions, written: Iterable[str]
) -> dict[str, list[str]]:
    """Replaced file ids by partition path; empty for operations that do not replace file groups.

    Args:
        plan: the write.
        view: the pinned view of the table, which lacks file groups of the write itself.
        options: names partitions to delete.
        written: partition paths that received rows (or, for ``delete_partition``, that rows named).

    Raises:
        CommitConflictError: a pending service is about to rewrite a file group: a clustering, or for
            ``delete_partition`` a compaction too.
    """
    if plan.committed_as not in REPLACING:
        return {}
    existing = view.lister.partitions()
    if plan.committed_as == "insert_overwrite_table":
        wanted = list(existing)
    elif plan.operation == "delete_partition" and options.partitions_to_delete:
        wanted = [name for name in existing if _matches(name, options.partitions_to_delete)]
    else:
        static = options.static_overwrite_partitions if plan.operation == "insert_overwrite" else ()
        named = set(static or written)
        wanted = [name for name in existing if name in named]
    replaced = {name: [one.file_id for one in latest_slices(view, name)] for name in wanted}
    _refuse_planned(plan, view, replaced)
    return {name: ids for name, ids in replaced.items() if ids}


def _refuse_planned(plan: WritePlan, view: TableView, replaced: Mapping[str, Iterable[str]]) -> None:
    planned = dict.fromkeys(view.pending_groups, "clustering")
    if plan.operation == "delete_partition":
        planned |= {group: f"compaction {instant}" for group, instant in view.pending_compactions.items()}
        planned |= {group: f"log compaction {instant}" for group, instant in view.pending_log_compactions.items()}
    blocked = [
        (name, one, planned[name, one]) for name, ids in replaced.items() for one in ids if (name, one) in planned
    ]
    if blocked:
        raise CommitConflictError(
            f"{plan.committed_as} on {plan.storage.uri} would replace file groups that a pending clustering or "
            f"compaction is going to rewrite: {blocked}. Run or roll back the service first."
        )


def _matches(partition: str, patterns: Iterable[str]) -> bool:
    """A pattern from a partition path: a star, plain or url-encoded, matches any text; other characters are literal."""
    return any(re.fullmatch(_ANY.join(map(re.escape, _STAR.split(each))), partition) for each in patterns)
