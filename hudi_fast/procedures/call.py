"""Apache Hudi's procedures, by their names, parameters and result columns.

::

    arguments, by name or position ─► bound: the procedure's signature ─► Use ─► HudiTable.services, history ... ─► rows

Source: ``HoodieProcedures`` of Hudi 1.2.0.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hudi_fast.api import bootstrap
from hudi_fast.config.option_names import SaveMode
from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.procedures.files import FILE_PROCEDURES
from hudi_fast.procedures.timeline import TIMELINE_PROCEDURES
from hudi_fast.procedures.values import Rows, Values, refuse_given
from hudi_fast.sql_text.procedures import SIGNATURES, SUPPORTED
from hudi_fast.table import HudiTable
from hudi_fast.values import dataclass

__all__ = ["Use", "bound", "is_procedure", "rows_of"]

_DELTA_COMMITS = "hoodie.compact.inline.max.delta.commits"


@dataclass(frozen=True, slots=True)
class Use:
    """One call.

    Attributes:
        name: of the procedure.
        values: of its parameters, by name; None without a value.
        find: finds the table of a name or path.
        settings: options of the session or the caller for that name or path.
        spark: a Spark session whose tasks do the work; None for this process.
        entry: (database, table) in a catalog; None without one.
    """

    name: str
    values: Values
    find: Callable[[str], HudiTable]
    settings: Callable[[str], Mapping[str, str]]
    spark: Any = None
    entry: tuple[str, str] | None = None

    @property
    def said(self) -> str:
        """The value of the parameter ``table`` or ``path``.

        Raises:
            ConfigError: there is none.
        """
        said = self.values.get("table") if self.values.get("table") is not None else self.values.get("path")
        if said is None:
            raise ConfigError(f"CALL {self.name}: name the table, as table => 'db.t' or path => '...'.")
        return str(said)

    def table(self) -> HudiTable:
        """The table, opened."""
        return self.find(self.said)

    def options(self) -> dict[str, str]:
        """Options of the session or the caller, overridden by the parameter ``options``: ``key=value,...``."""
        return {**self.settings(self.said), **given_options(self)}


def given_options(use: Use) -> dict[str, str]:
    """The options in the parameter ``options``.

    Raises:
        ConfigError: it is not ``key=value,...``.
    """
    found = {}
    for part in filter(None, str(use.values.get("options") or "").split(",")):
        key, sign, value = part.partition("=")
        if not sign:
            raise ConfigError(f"CALL {use.name}: options are key=value, separated by commas; got {part!r}.")
        found[key.strip()] = value.strip()
    return found


def is_procedure(name: str) -> bool:
    """Whether Apache Hudi has a procedure of this name."""
    return name.lower() in SIGNATURES


def rows_of(use: Use) -> Rows:
    """Execute a procedure.

    Returns:
        Rows of the columns in its signature.

    Raises:
        UnsupportedFeatureError: hudi_fast does not have the procedure.
        HudiError: of the service.
    """
    run = _PROCEDURES.get(use.name)
    if run is not None:
        return run(use)
    shown = TIMELINE_PROCEDURES.get(use.name) or FILE_PROCEDURES.get(use.name)
    if shown is not None:
        return shown(use.table(), use.values)
    raise UnsupportedFeatureError(f"CALL {use.name} is not supported. These are: {', '.join(sorted(SUPPORTED))}.")


def bound(name: str, arguments: Sequence[tuple[str | None, str]], constant: Callable[[str], Any]) -> dict[str, Any]:
    """The values of all parameters of a procedure.

    Args:
        name: of the procedure, one of ``SIGNATURES``.
        arguments: names, or None by position, and expressions.
        constant: the value of an expression.

    Raises:
        ConfigError: unknown, missing or wrong arguments.
    """
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
        given[key] = constant(expression)
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


def _run_compaction(use: Use) -> Rows:
    operation = str(use.values["op"]).lower()
    if operation not in ("schedule", "run", "execute", "schedule_and_execute", "scheduleandexecute"):
        raise ConfigError(f"CALL run_compaction: op is {operation!r}; expected schedule, run or schedule_and_execute.")
    services, options = use.table().services, use.options()
    wanted = _instants(use)
    rows = []
    options.setdefault(_DELTA_COMMITS, "5")  # as Apache Hudi, whose procedure waits for that many
    if operation == "schedule":
        planned = services.schedule_compact(options)
        return [] if planned is None else [(planned.instant, planned.file_groups, "REQUESTED")]
    pending = services.pending().to_pylist()
    sizes = {one["instant"]: one["file_groups"] for one in pending if one["service"] == "compact"}
    if "and" in operation:
        planned = services.schedule_compact(options)
        if planned is not None:
            sizes[planned.instant] = planned.file_groups
    if wanted and not set(wanted) <= set(sizes):
        raise ConfigError(f"CALL run_compaction: {sorted(set(wanted) - set(sizes))} are no pending compactions.")
    if wanted and set(wanted) != set(sizes):
        raise UnsupportedFeatureError("CALL run_compaction: name all pending compactions, or none; oldest come first.")
    if sizes:
        done = services.compact(options, spark=use.spark, pending_only=True)
        rows = [(instant, sizes.get(instant, 0), "COMPLETED") for instant in done.instants]
    return rows


def _run_clustering(use: Use) -> Rows:
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
        planned = services.schedule_cluster(options)
        return [] if planned is None else [(planned.instant, len(planned.plan.groups), "REQUESTED", "*")]
    if operation not in ("execute", "schedule_and_execute", "scheduleandexecute"):
        raise ConfigError(f"CALL run_clustering: op is {operation!r}; expected schedule, execute or both.")
    if operation != "execute":
        services.schedule_cluster(options)
    sizes = {one["instant"]: one["file_groups"] for one in services.pending().to_pylist()}
    done = services.cluster(options, spark=use.spark, pending_only=True)
    return [(instant, sizes.get(instant, done.file_groups), "COMPLETED", "*") for instant in done.instants]


def _instants(use: Use) -> list[str]:
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


def _run_clean(use: Use) -> Rows:
    options = use.options()
    options |= {key: str(use.values[name]) for name, key in _CLEAN_OPTIONS.items() if use.values.get(name) is not None}
    done = use.table().services.clean(options, spark=use.spark, pending_only=not use.values["schedule_in_line"])
    if not done.instant:
        return []
    return [(done.instant, int(done.seconds * 1000), done.files_deleted, done.earliest_retained, "{}", 2)]


def _archive(use: Use) -> Rows:
    options = use.options()
    named = {"min_commits": "hoodie.keep.min.commits", "max_commits": "hoodie.keep.max.commits"}
    options |= {key: str(use.values[name]) for name, key in named.items()}
    options["hoodie.clean.commits.retained"] = str(use.values["retain_commits"])
    use.table().services.archive(options)
    return [(0,)]


def _create_savepoint(use: Use) -> Rows:
    values = use.values
    use.table().services.savepoint(values["commit_time"], values["user"] or "", values["comments"] or "")
    return [(True,)]


def _delete_savepoint(use: Use) -> Rows:
    services = use.table().services
    instant = use.values["instant_time"] or _newest_savepoint(use)
    services.delete_savepoint(instant)
    return [(True,)]


def _rollback_to_savepoint(use: Use) -> Rows:
    instant = use.values["instant_time"] or _newest_savepoint(use)
    use.table().services.restore(instant, spark=use.spark)
    return [(True,)]


def _newest_savepoint(use: Use) -> str:
    found = use.table().services.savepoints().column("instant").to_pylist()
    if not found:
        raise ConfigError(f"CALL {use.name}: the table {use.table().path} has no savepoint.")
    return str(max(found))


def _rollback_to_instant(use: Use) -> Rows:
    use.table().services.rollback(use.values["instant_time"], spark=use.spark)
    return [(True,)]


def _change_version(use: Use) -> Rows:
    said = str(use.values["to_version"]).upper()
    names = {"FIVE": 5, "SIX": 6, "SEVEN": 7, "EIGHT": 8, "NINE": 9}
    version = names.get(said) or (int(said) if said.isdigit() else None)
    if version is None:
        raise ConfigError(f"CALL {use.name}: to_version is {said!r}; expected a number, or FIVE, SIX, EIGHT, NINE.")
    use.table().services.upgrade(version)
    return [(True,)]


def _drop_partition(use: Use) -> Rows:
    paths = [one.strip() for one in str(use.values["partition"]).split(",") if one.strip()]
    use.table().delete_partitions(paths, use.options())
    return [("Success",)]


def _truncate(use: Use) -> Rows:
    table = use.table()
    said = use.values["partitions"]
    done = table.delete_partitions(str(said).split(","), use.options()) if said else table.truncate(None, use.options())
    return [("SUCCESS", int(done.seconds * 1000))]


def _validate(use: Use) -> Rows:
    found = use.table().services.validate().differences.to_pylist()
    return [(one.get("partition"), one.get("file"), None, None, None, None) for one in found]


_TTL_OPTIONS = {
    "ttl_policy": "hoodie.partition.ttl.management.strategy.type",
    "retain_days": "hoodie.partition.ttl.strategy.days.retain",
}


def _run_ttl(use: Use) -> Rows:
    named = {key: str(use.values[name]) for name, key in _TTL_OPTIONS.items() if use.values[name] is not None}
    done = use.table().services.expire_partitions({**use.settings(use.said), **named, **given_options(use)})
    return [(partition,) for partition in done.partitions]


def _sync(use: Use) -> Rows:
    values, options = use.values, use.options()
    named = {
        "metastore_uri": "hoodie.datasource.hive_sync.metastore.uris",
        "mode": "hoodie.datasource.hive_sync.mode",
        "partition_fields": "hoodie.datasource.hive_sync.partition_fields",
        "partition_extractor_class": "hoodie.datasource.hive_sync.partition_extractor_class",
        "sync_incremental": "hoodie.meta.sync.incremental",
    }
    options |= {key: str(values[name]) for name, key in named.items() if values.get(name)}
    if use.entry is not None:
        options.setdefault("hoodie.datasource.hive_sync.database", use.entry[0])
        options.setdefault("hoodie.datasource.hive_sync.table", use.entry[1])
    done = use.table().services.sync(options, spark=use.spark)
    return [(f"synced {', '.join(one.name for one in done)}",)]


def _metadata(use: Use) -> Rows:
    if use.name == "create_metadata_table":
        use.table().services.index("files", spark=use.spark)
        return [("Created Metadata Table",)]
    use.table().services.drop_index("files")
    return [("Removed Metadata Table",)]


_BOOTSTRAP_OPTIONS = {
    "table": "hoodie.table.name",
    "table_type": "hoodie.datasource.write.table.type",
    "rowKey_field": "hoodie.datasource.write.recordkey.field",
    "partition_path_field": "hoodie.datasource.write.partitionpath.field",
    "base_file_format": "hoodie.table.base.file.format",
    "selector_class": "hoodie.bootstrap.mode.selector",
    "key_generator_class": "hoodie.datasource.write.keygenerator.class",
    "payload_class": "hoodie.datasource.write.payload.class",
}


def _bootstrap(use: Use) -> Rows:
    values = use.values
    unsupported = ("enable_hive_sync", "props_file_path", "schema_provider_class")
    refuse_given("run_bootstrap", values, *unsupported, advice="; pass options")
    options = {key: values[name] for name, key in _BOOTSTRAP_OPTIONS.items() if values.get(name)}
    options |= given_options(use)
    mode: SaveMode = "overwrite" if values["bootstrap_overwrite"] else "errorifexists"
    bootstrap(values["bootstrap_path"], values["base_path"], options, spark=use.spark, mode=mode)
    return [(0,)]


def _help(use: Use) -> Rows:
    said = use.values.get("cmd")
    if said:
        signature = SIGNATURES.get(str(said).lower())
        if signature is None:
            raise ConfigError(f"CALL help: there is no procedure {said}.")
        listed = ", ".join(f"{one.name} {one.kind}" for one in signature.parameters)
        return [(f"{said}({listed})",)]
    return [("\n".join(["call command(key1 => value1, key2 => value2)", *sorted(SUPPORTED)]),)]


_PROCEDURES: Mapping[str, Callable[[Use], Rows]] = {
    "archive_commits": _archive,
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
    "run_bootstrap": _bootstrap,
    "run_clean": _run_clean,
    "run_clustering": _run_clustering,
    "run_compaction": _run_compaction,
    "run_ttl": _run_ttl,
    "truncate_table": _truncate,
    "upgrade_table": _change_version,
    "validate_metadata_table_files": _validate,
}
