"""Keys of the base files of a golden table."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.golden import Golden

__all__ = ["stored_keys"]


def stored_keys(golden: Golden) -> list[tuple[str, str, pa.Array]]:
    """Partition, file id and keys of each base file."""
    found = []
    for path in sorted(golden.table.rglob("*.parquet")):
        if ".hoodie" not in path.relative_to(golden.table).parts:
            keys = pq.read_table(path, columns=["_hoodie_record_key"], partitioning=None).column(0)
            found.append((path.parent.name, path.name.split("_")[0], keys.combine_chunks()))
    return found
