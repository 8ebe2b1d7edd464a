"""Both sides of a MERGE_ON_READ table: snapshot and read-optimized rows, log files, compactions of either side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tests.interop.sides import Sides, trip_options
from tests.support.rows import assert_same_rows

__all__ = ["QUERY", "MorSides", "mor_options"]

QUERY = "hoodie.datasource.query.type"
EVENT_TIME = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
NOW = {"hoodie.compact.inline.max.delta.commits": 1}


@dataclass
class MorSides(Sides):
    """One MERGE_ON_READ table and those who write to it."""

    def agree_on_base_files(self) -> pa.Table:
        """Both sides read the same by a read-optimized query, meta columns too; what hudi_fast read."""
        ours = self.table.to_arrow(query_type="read_optimized")
        assert_same_rows(ours, self.hudi.read(self.path, {QUERY: "read_optimized"}), ignore=())
        return ours

    def log_files(self, instant: str = "") -> list[Path]:
        """Log files of all slices, old ones too; of one instant, if it is given."""
        found = [
            path for path in self.path.rglob(".*.log.*") if not path.name.endswith(".crc") and instant in path.name
        ]
        return sorted(path for path in found if ".hoodie" not in path.relative_to(self.path).parts)

    def merged_slices(self) -> int:
        """File slices of the snapshot that have log files."""
        return int(pc.sum(pc.greater(self.table.files()["log_files"], 0)).as_py() or 0)

    def hudi_compacts(self, step: str = "scheduleAndExecute", more: Mapping[str, Any] | None = None) -> list[str]:
        """Hudi's procedure; ``step``: ``schedule``, ``execute`` or both at once. The instants that it tells of."""
        settings = {**NOW, **(more or {})}
        if self.plainly:
            settings["hoodie.metadata.enable"] = "false"
        if not self.hudi.version.startswith("0."):
            settings["hoodie.write.auto.upgrade"] = "false"
        text = ",".join(f"{key}={value}" for key, value in settings.items())
        told = self.hudi.sql(f"CALL run_compaction(op => '{step}', path => '{self.path}', options => '{text}')")
        return told["timestamp"].to_pylist() if "timestamp" in told.column_names else []

    def we_compact(self, more: Mapping[str, Any] | None = None) -> Any:
        """A compaction of ours, planned and run."""
        plain = {"hoodie.metadata.enable": "false"} if self.plainly else {}
        return self.table.services.compact({**NOW, **plain, **(more or {})})

    def we_plan_compaction(self) -> Any:
        """A plan of ours on the timeline, not run."""
        return self.table.services.schedule_compact(NOW)

    def operations(self) -> list[str | None]:
        """What the completed instants of the timeline did, oldest first."""
        done = self.table.history().filter(pc.field("state") == "COMPLETED")
        return list(done["operation"].to_pylist())


def mor_options(version: int, **more: Any) -> dict[str, Any]:
    """Options of a MERGE_ON_READ table of :func:`sides.trips`: updates go to logs, nobody compacts unasked."""
    # Release 0.15 would let the later write win.
    payload = {"hoodie.datasource.write.payload.class": EVENT_TIME} if version == 6 else {}
    return {
        **trip_options(version),
        **payload,
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.compact.inline": False,
        # Else inserts find the small base files of a test, which are rewritten then, and there are no logs.
        "hoodie.parquet.small.file.limit": 0,
        **{name.replace("__", "."): value for name, value in more.items()},
    }
