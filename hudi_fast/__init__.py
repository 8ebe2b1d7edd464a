"""hudi_fast: reads and writes Apache Hudi tables natively, on Spark or in one process.

Public names are imported on first use: importing the package is quick and loads neither PySpark nor Numba.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

    from hudi_fast.api import bootstrap, delete, is_table, merge, plan_write, read, scan, update, write
    from hudi_fast.arrow_input import read_rows
    from hudi_fast.bootstrapping.bootstrap import BootstrapResult
    from hudi_fast.checking import CheckResult, Finding, check
    from hudi_fast.config.option_names import Operation, QueryType, SaveMode, TableType
    from hudi_fast.errors import (
        CatalogError,
        CommitConflictError,
        CommitError,
        CommitStateUnknownError,
        ConfigError,
        CorruptTableError,
        DuplicateKeyError,
        FileGoneError,
        HudiError,
        HudiWarning,
        InvalidDataError,
        LockError,
        LockTimeoutError,
        PostCommitError,
        SchemaMismatchError,
        ServiceTakenError,
        SourceError,
        StorageAccessError,
        StorageFailedError,
        StorageUnreachableError,
        TableExistsError,
        TableNotFoundError,
        UnsupportedFeatureError,
        ValidationError,
    )
    from hudi_fast.local_sql.sql import sql
    from hudi_fast.monitoring.progress import progress
    from hudi_fast.reading.inspecting.results import show
    from hudi_fast.schema.alter import (
        AddColumn,
        ChangeType,
        DropColumn,
        MoveColumn,
        RenameColumn,
        SetComment,
        SetNullable,
    )
    from hudi_fast.schema.evolution import SchemaChange
    from hudi_fast.services.clustering.cluster_plan import ScheduledClustering
    from hudi_fast.services.clustering.cluster_work import ClusteringResult
    from hudi_fast.services.compact_plan import ScheduledCompaction
    from hudi_fast.services.merge_slices import CompactionResult
    from hudi_fast.services.repairing.findings import RepairPlan, RepairResult
    from hudi_fast.spark_api.dropin.install import accelerate
    from hudi_fast.spark_api.source.entry import register_data_source
    from hudi_fast.spark_api.streaming.changes import stream_changes
    from hudi_fast.spark_api.streaming.sink import sink
    from hudi_fast.streamer.sources.source import Fetched
    from hudi_fast.streamer.streamer import Streamer, Turn
    from hudi_fast.table import HudiTable
    from hudi_fast.writing.alter import AlterResult
    from hudi_fast.writing.backend import WritePreview
    from hudi_fast.writing.flow import WriteResult

    __version__: str

__all__ = [
    "AddColumn",
    "AlterResult",
    "BootstrapResult",
    "CatalogError",
    "ChangeType",
    "CheckResult",
    "ClusteringResult",
    "CommitConflictError",
    "CommitError",
    "CommitStateUnknownError",
    "CompactionResult",
    "ConfigError",
    "CorruptTableError",
    "DropColumn",
    "DuplicateKeyError",
    "Fetched",
    "FileGoneError",
    "Finding",
    "HudiError",
    "HudiTable",
    "HudiWarning",
    "InvalidDataError",
    "LockError",
    "LockTimeoutError",
    "MoveColumn",
    "Operation",
    "PostCommitError",
    "QueryType",
    "RenameColumn",
    "RepairPlan",
    "RepairResult",
    "SaveMode",
    "ScheduledClustering",
    "ScheduledCompaction",
    "SchemaChange",
    "SchemaMismatchError",
    "ServiceTakenError",
    "SetComment",
    "SetNullable",
    "SourceError",
    "StorageAccessError",
    "StorageFailedError",
    "StorageUnreachableError",
    "Streamer",
    "TableExistsError",
    "TableNotFoundError",
    "TableType",
    "Turn",
    "UnsupportedFeatureError",
    "ValidationError",
    "WritePreview",
    "WriteResult",
    "accelerate",
    "bootstrap",
    "check",
    "delete",
    "is_table",
    "merge",
    "plan_write",
    "progress",
    "read",
    "read_rows",
    "register_data_source",
    "scan",
    "show",
    "sink",
    "sql",
    "stream_changes",
    "update",
    "write",
]

_MODULES = {
    **dict.fromkeys(
        ("AddColumn", "ChangeType", "DropColumn", "MoveColumn", "RenameColumn", "SetComment", "SetNullable"),
        "hudi_fast.schema.alter",
    ),
    **dict.fromkeys(("Operation", "QueryType", "SaveMode", "TableType"), "hudi_fast.config.option_names"),
    "AlterResult": "hudi_fast.writing.alter",
    "BootstrapResult": "hudi_fast.bootstrapping.bootstrap",
    "CheckResult": "hudi_fast.checking",
    "ClusteringResult": "hudi_fast.services.clustering.cluster_work",
    "CompactionResult": "hudi_fast.services.merge_slices",
    "Fetched": "hudi_fast.streamer.sources.source",
    "Finding": "hudi_fast.checking",
    "HudiTable": "hudi_fast.table",
    "RepairPlan": "hudi_fast.services.repairing.findings",
    "RepairResult": "hudi_fast.services.repairing.findings",
    "ScheduledClustering": "hudi_fast.services.clustering.cluster_plan",
    "ScheduledCompaction": "hudi_fast.services.compact_plan",
    "SchemaChange": "hudi_fast.schema.evolution",
    "Streamer": "hudi_fast.streamer.streamer",
    "Turn": "hudi_fast.streamer.streamer",
    "WritePreview": "hudi_fast.writing.backend",
    "WriteResult": "hudi_fast.writing.flow",
    "accelerate": "hudi_fast.spark_api.dropin.install",
    "bootstrap": "hudi_fast.api",
    "check": "hudi_fast.checking",
    "delete": "hudi_fast.api",
    "is_table": "hudi_fast.api",
    "merge": "hudi_fast.api",
    "plan_write": "hudi_fast.api",
    "progress": "hudi_fast.monitoring.progress",
    "read": "hudi_fast.api",
    "read_rows": "hudi_fast.arrow_input",
    "register_data_source": "hudi_fast.spark_api.source.entry",
    "scan": "hudi_fast.api",
    "show": "hudi_fast.reading.inspecting.results",
    "sink": "hudi_fast.spark_api.streaming.sink",
    "sql": "hudi_fast.local_sql.sql",
    "stream_changes": "hudi_fast.spark_api.streaming.changes",
    "update": "hudi_fast.api",
    "write": "hudi_fast.api",
}

_FOLDER = os.path.dirname(__file__)
_CHECKOUT_KERNELS = os.path.join(os.path.dirname(_FOLDER), "kernels", "__init__.py")

if not os.path.isdir(os.path.join(_FOLDER, "kernels")) and os.path.isfile(_CHECKOUT_KERNELS):

    class _CheckoutFinder:
        """Finds ``hudi_fast.kernels`` in an uninstalled checkout, where ``kernels/`` is next to ``hudi_fast/``."""

        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
            from importlib.util import spec_from_file_location

            return spec_from_file_location(name, _CHECKOUT_KERNELS) if name == "hudi_fast.kernels" else None

    sys.meta_path.append(_CheckoutFinder())


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    if name not in __all__:
        if name.startswith("_"):
            raise AttributeError(f"module 'hudi_fast' has no attribute {name!r}")
        from hudi_fast.config.words import MODULE_GUESSES, missing, new_name

        present = new_name("hudi_fast", name, __all__)
        if present is None:
            raise missing("module 'hudi_fast'", name, MODULE_GUESSES, __all__)
        name = present
    return getattr(importlib.import_module(_MODULES.get(name, "hudi_fast.errors")), name)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("hudi-fast")
    except PackageNotFoundError:  # an uninstalled source tree
        return "0.0.0"


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
