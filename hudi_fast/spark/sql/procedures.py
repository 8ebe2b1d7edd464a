"""``CALL``: Apache Hudi's procedures, by their names, parameters and result columns.

::

    arguments, by name or position ─► the procedure's signature ─► values ─► HudiTable.services, history ... ─► rows

Source: ``HoodieProcedures`` of Hudi 1.2.0. Procedures of the timeline are in
:mod:`hudi_fast.spark.sql.timeline_procedures`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.spark.sql.catalog import Entry
from hudi_fast.spark.sql.changes import write_settings
from hudi_fast.spark.sql.reading import constant, read_entry, table_said
from hudi_fast.spark.sql.timeline_procedures import TIMELINE_PROCEDURES
from hudi_fast.spark.storage import storage_of
from hudi_fast.sql.procedures import SIGNATURES, SUPPORTED
from hudi_fast.sql.statements import Call
from hudi_fast.table import HudiTable

__all__ = ["call_procedure", "is_procedure"]

Rows = Iterable[Sequence[Any]]

_DELTA_COMMITS = "hoodie.compact.inline.max.delta.commits"


@dataclass(frozen=True, slots=True)
class _Use:
    """One call.

    Attributes:
        spark: the session.
        name: of the procedure.
        values: of its parameters, by name; None without a value.
    """

    spark: Any
    name: str
    values: Mapping[str, Any]

    @property
    def entry(self) -> Entry:
        """The table of the parameter ``table`` or ``path``."""
        if self.values.get("table") is None and self.values.get("path") is not None:
            return Entry(("", str(self.values["path"])), str(self.values["path"]))
        if self.values.get("table") is None:
            raise ConfigError(f"CALL {self.name}: name the table, as table => 'db.t' or path => '...'.")
        return table_said(self.spark, self.values["table"], f"CALL {self.name}")

    def table(self) -> HudiTable:
        """The table, opened."""
        return HudiTable(storage_of(self.spark, self.entry.path))

    def options(self) -> dict[str, str]:
        """Settings of the session and the table, and those of the parameter ``options``: ``key=value,...``."""
        found = write_settings(self.spark, self.entry)
        for part in filter(None, str(self.values.get("options") or "").split(",")):
            key, sign, value = part.partition("=")
            if not sign:
                raise ConfigError(f"CALL {self.name}: options are key=value, separated by commas; got {part!r}.")
            found[key.strip()] = value.strip()
        return found


def is_procedure(statement: Call) -> bool:
    """Whether Apache Hudi has a procedure of this name."""
    return statement.table.parts[-1].lower() in SIGNATURES


def call_procedure(spark: Any, statement: Call) -> Any:
    """Execute a procedure.

    Returns:
        A DataFrame with the procedure's columns.

    Raises:
        ConfigError: unknown, missing or wrong arguments.
        UnsupportedFeatureError: hudi_fast does not have the procedure.
        HudiError: of the service.
    """
    name = statement.table.parts[-1].lower()
    signature = SIGNATURES[name]
    values = _bound(spark, name, statement.arguments)
    run = _PROCEDURES.get(name)
    if run is not None:
        rows = run(_Use(spark, name, values))
    elif name in TIMELINE_PROCEDURES:
        use = _Use(spark, name, values)
        rows = TIMELINE_PROCEDURES[name](use.table(), values)
    else:
        raise UnsupportedFeatureError(f"CALL {name} is not supported. These are: {', '.join(sorted(SUPPORTED))}.")
    return spark.createDataFrame([tuple(row) for row in rows], signature.columns)


def _bound(spark: Any, name: str, arguments: Sequence[tuple[str | None, str]]) -> dict[str, Any]:
    """The values of all parameters, checked."""
    parameters = SIGNATURES[name].parameters
    names = [one.name for one in parameters]
    given: dict[str, Any] = {}
    for at, (said, expression) in enumerate(arguments):
        if said is None and at >= len(names):
            raise ConfigError(f"CALL {name} has {len(names)} parameters, got {len(arguments)}: {', '.join(names)}.")
        key = names[at] if said is None else next((one for one in names if one.lower() == said.lower()), None)
        if key is None:
            close = difflib.get_close_matches(str(said), names, n=1)
            hint = f" Did you mean {close[0]}?" if close else f" It has {', '.join(names)}."
            raise ConfigError(f"CALL {name} has no parameter {said}.{hint}")
        if key in given:
            raise ConfigError(f"CALL {name}: the parameter {key} is given twice.")
        given[key] = constant(spark, expression)
    for one in parameters:
        if one.required and given.get(one.name) is None:
            raise ConfigError(f"CALL {name}: the parameter {one.name} is missing.")
        given.setdefault(one.name, one.default)
        given[one.name] = _converted(name, one.name, one.kind, given[one.name])
    return given


def _converted(procedure: str, name: str, kind: str, value: Any) -> Any:
    if value is None:
        return None
    text = str(value)
    if kind == "string":
        return text
    if kind == "boolean" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind in ("int", "bigint") and text.lstrip("-").isdigit():
        return int(text)
    raise ConfigError(f"CALL {procedure}: the parameter {name} is a {kind}; got {value!r}.")


# ---- services


def _run_compaction(use: _Use) -> Rows:
    operation = str(use.values["op"]).lower()
    if operation not in ("schedule", "run", "execute", "schedule_and_execute", "scheduleandexecute"):
        raise ConfigError(f"CALL run_compaction: op is {operation!r}; expected schedule, run or schedule_and_execute.")
    services, options = use.table().services, use.options()
    wanted = _instants(use)
    rows = []
    options.setdefault(_DELTA_COMMITS, "5")  # as Apache Hudi, whose procedure waits for that many
    if operation == "schedule":
        planned = services.plan_compact(options)
        return [] if planned is None else [(planned.instant, planned.file_groups, "REQUESTED")]
    pending = services.pending().to_pylist()
    sizes = {one["instant"]: one["file_groups"] for one in pending if one["service"] == "compact"}
    if "and" in operation:
        planned = services.plan_compact(options)
        if planned is not None:
            sizes[planned.instant] = planned.file_groups
    if wanted and not set(wanted) <= set(sizes):
        raise ConfigError(f"CALL run_compaction: {sorted(set(wanted) - set(sizes))} are no pending compactions.")
    if wanted and set(wanted) != set(sizes):
        raise UnsupportedFeatureError("CALL run_compaction: name all pending compactions, or none; oldest come first.")
    if sizes:
        done = services.compact(options, use.spark, pending_only=True)
        rows = [(instant, sizes.get(instant, 0), "COMPLETED") for instant in done.instants]
    return rows


def _run_clustering(use: _Use) -> Rows:
    refused = [one for one in ("predicate", "selected_partitions", "partition_regex_pattern") if use.values.get(one)]
    if refused:
        raise UnsupportedFeatureError(
            f"CALL run_clustering: {refused} are not supported; pass hoodie.clustering.plan.strategy.* as options."
        )
    operation = str(use.values.get("op") or "schedule_and_execute").lower()
    options = use.options()
    if use.values.get("order"):
        options["hoodie.clustering.plan.strategy.sort.columns"] = use.values["order"]
    if use.values.get("order_strategy"):
        options["hoodie.layout.optimize.strategy"] = use.values["order_strategy"]
    services = use.table().services
    if operation == "schedule":
        planned = services.plan_cluster(options)
        return [] if planned is None else [(planned.instant, len(planned.plan.groups), "REQUESTED", "*")]
    if operation not in ("execute", "schedule_and_execute", "scheduleandexecute"):
        raise ConfigError(f"CALL run_clustering: op is {operation!r}; expected schedule, execute or both.")
    if operation != "execute":
        services.plan_cluster(options)
    sizes = {one["instant"]: one["file_groups"] for one in services.pending().to_pylist()}
    done = services.cluster(options, use.spark, pending_only=True)
    return [(instant, sizes.get(instant, done.file_groups), "COMPLETED", "*") for instant in done.instants]


def _instants(use: _Use) -> list[str]:
    said = use.values.get("instants") or use.values.get("timestamp")
    return [] if said is None else [one.strip() for one in str(said).split(",") if one.strip()]


_CLEAN_OPTIONS = {
    "clean_policy": "hoodie.clean.policy",
    "retain_commits": "hoodie.clean.commits.retained",
    "hours_retained": "hoodie.clean.hours.retained",
    "file_versions_retained": "hoodie.clean.fileversions.retained",
    "trigger_strategy": "hoodie.clean.trigger.strategy",
    "trigger_max_commits": "hoodie.clean.trigger.max.commits",
}


def _run_clean(use: _Use) -> Rows:
    options = use.options()
    options |= {key: str(use.values[name]) for name, key in _CLEAN_OPTIONS.items() if use.values.get(name) is not None}
    done = use.table().services.clean(options, use.spark, pending_only=not use.values["schedule_in_line"])
    if not done.instant:
        return []
    return [(done.instant, int(done.seconds * 1000), done.files_deleted, done.earliest_retained, "{}", 2)]


def _archive(use: _Use) -> Rows:
    options = use.options()
    named = {"min_commits": "hoodie.keep.min.commits", "max_commits": "hoodie.keep.max.commits"}
    options |= {key: str(use.values[name]) for name, key in named.items()}
    options["hoodie.clean.commits.retained"] = str(use.values["retain_commits"])
    use.table().services.archive(options)
    return [(0,)]


def _create_savepoint(use: _Use) -> Rows:
    values = use.values
    use.table().services.savepoint(values["commit_time"], values["user"] or "", values["comments"] or "")
    return [(True,)]


def _delete_savepoint(use: _Use) -> Rows:
    services = use.table().services
    instant = use.values["instant_time"] or _newest_savepoint(use)
    services.delete_savepoint(instant)
    return [(True,)]


def _rollback_to_savepoint(use: _Use) -> Rows:
    instant = use.values["instant_time"] or _newest_savepoint(use)
    use.table().services.restore(instant, spark=use.spark)
    return [(True,)]


def _newest_savepoint(use: _Use) -> str:
    found = use.table().services.savepoints().column("instant").to_pylist()
    if not found:
        raise ConfigError(f"CALL {use.name}: the table {use.entry} has no savepoint.")
    return str(max(found))


def _rollback_to_instant(use: _Use) -> Rows:
    use.table().services.rollback(use.values["instant_time"], spark=use.spark)
    return [(True,)]


def _change_version(use: _Use) -> Rows:
    said = str(use.values["to_version"]).upper()
    names = {"SIX": 6, "SEVEN": 7, "EIGHT": 8, "NINE": 9}
    version = names.get(said) or (int(said) if said.isdigit() else None)
    if version is None:
        raise ConfigError(f"CALL {use.name}: to_version is {said!r}; expected a number, or SIX, EIGHT, NINE.")
    use.table().services.upgrade(version)
    return [(True,)]


def _drop_partition(use: _Use) -> Rows:
    paths = [one.strip() for one in str(use.values["partition"]).split(",") if one.strip()]
    use.table().delete_partitions(paths, use.options())
    return [("Success",)]


def _truncate(use: _Use) -> Rows:
    table = use.table()
    paths = str(use.values["partitions"]).split(",") if use.values["partitions"] else ["*"]
    done = table.delete_partitions(paths, use.options())
    return [("SUCCESS", int(getattr(done, "seconds", 0.0) * 1000))]


def _validate(use: _Use) -> Rows:
    found = use.table().services.validate()
    return (
        []
        if found.ok
        else [(one.get("partition"), one.get("file"), None, None, None, None) for one in found.differences.to_pylist()]
    )


def _sync(use: _Use) -> Rows:
    values = use.values
    options = use.options()
    named = {
        "metastore_uri": "hoodie.datasource.hive_sync.metastore.uris",
        "mode": "hoodie.datasource.hive_sync.mode",
        "partition_fields": "hoodie.datasource.hive_sync.partition_fields",
        "partition_extractor_class": "hoodie.datasource.hive_sync.partition_extractor_class",
        "sync_incremental": "hoodie.meta.sync.incremental",
    }
    options |= {key: str(values[name]) for name, key in named.items() if values.get(name)}
    database, table = use.entry.name
    options.setdefault("hoodie.datasource.hive_sync.database", database)
    options.setdefault("hoodie.datasource.hive_sync.table", table)
    use.table().services.sync(options, use.spark)
    return [(f"synced {use.entry}",)]


def _metadata(use: _Use) -> Rows:
    if use.name == "create_metadata_table":
        use.table().services.index("files", spark=use.spark)
        return [("Created Metadata Table",)]
    use.table().services.drop_index("files")
    return [("Removed Metadata Table",)]


def _copy(use: _Use) -> Rows:
    values = use.values
    options = {"hoodie.datasource.query.type": values["query_type"]}
    named = {
        "begin_instance_time": "hoodie.datasource.read.begin.instanttime",
        "end_instance_time": "hoodie.datasource.read.end.instanttime",
        "as_of_instant": "as.of.instant",
    }
    options |= {key: values[name] for name, key in named.items() if values.get(name)}
    frame = read_entry(use.spark, use.entry, options)
    if use.name == "copy_to_temp_view":
        make = {
            (False, False): frame.createTempView,
            (True, False): frame.createOrReplaceTempView,
            (False, True): frame.createGlobalTempView,
            (True, True): frame.createOrReplaceGlobalTempView,
        }[bool(values["replace"]), bool(values["global"])]
        make(values["view_name"])
        return [(0,)]
    if values.get("columns"):
        frame = frame.select(*(one.strip() for one in values["columns"].split(",")))
    frame.write.mode(values["save_mode"]).format("parquet").saveAsTable(values["new_table"])
    return [(0,)]


def _help(use: _Use) -> Rows:
    said = use.values.get("cmd")
    if said:
        signature = SIGNATURES.get(str(said).lower())
        if signature is None:
            raise ConfigError(f"CALL help: there is no procedure {said}.")
        listed = ", ".join(f"{one.name} {one.kind}" for one in signature.parameters)
        return [(f"{said}({listed})",)]
    return [("\n".join(["call command(key1 => value1, key2 => value2)", *sorted(SUPPORTED)]),)]


_PROCEDURES: Mapping[str, Callable[[_Use], Rows]] = {
    "archive_commits": _archive,
    "copy_to_table": _copy,
    "copy_to_temp_view": _copy,
    "create_metadata_table": _metadata,
    "create_savepoint": _create_savepoint,
    "delete_metadata_table": _metadata,
    "delete_savepoint": _delete_savepoint,
    "downgrade_table": _change_version,
    "drop_partition": _drop_partition,
    "help": _help,
    "hive_sync": _sync,
    "rollback_to_instant": _rollback_to_instant,
    "rollback_to_savepoint": _rollback_to_savepoint,
    "run_clean": _run_clean,
    "run_clustering": _run_clustering,
    "run_compaction": _run_compaction,
    "truncate_table": _truncate,
    "upgrade_table": _change_version,
    "validate_metadata_table_files": _validate,
}
