"""Plans a change of the table version, and refuses tables that cannot be changed before anything is written.

::

    properties, timeline, newest slices, metadata partitions ─► refused with a reason ─► steps in words

The steps, as :mod:`hudi_fast.services.upgrading.run` executes them (6 to 8, 8 to 9 and back; 7 is no target):

=====================  =================================================================================================
failed writes          rolled back, in the format of the old version
pending compactions    completed, including log compactions
log files              all newest slices of MERGE_ON_READ tables are compacted: names and merging of log files differ
metadata table         9 to 8: partitions with an index of version 2 are dropped. 8 to 6: all but files, column_stats,
                       bloom_filters and a record index whose keys are unique in the table are dropped. The others are
                       compacted and moved
active timeline        6 to 8 and back: :mod:`hudi_fast.services.upgrading.timeline`
archived timeline      6 to 8 and back: :mod:`hudi_fast.services.upgrading.history`
index definitions      8 to 9: those without a version get version 1
properties             :mod:`hudi_fast.services.upgrading.properties`
=====================  =================================================================================================

Everything else is the same in all versions: base files, partition markers, bodies of cleans, rollbacks, savepoints and
plans. Log files of older slices do not change. Version 6 does not find those that a later version wrote, so time travel
of MERGE_ON_READ tables ends at the downgrade, as it does with Apache Hudi.

Source: UpgradeDowngrade and its handlers, release 1.2.0.
"""

from __future__ import annotations

from dataclasses import dataclass

from hudi_fast.config.merge_mode import CUSTOM
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.metadata_table.definitions import index_version, load_definitions
from hudi_fast.metadata_table.layout import PartitionKind, kind_of
from hudi_fast.metadata_table.state import metadata_of
from hudi_fast.reading.inspecting.results import HtmlResult
from hudi_fast.services.compaction.plan import compactable_slices
from hudi_fast.services.upgrading.halfway import refuse_halfway
from hudi_fast.services.upgrading.move import both_tables, leftovers, target_config
from hudi_fast.services.upgrading.properties import VERSIONS, PropertyHints, path_between
from hudi_fast.timeline.instant import State
from hudi_fast.view.slices import FileSlice
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.draft import draft_files
from hudi_fast.writing.settings import Settings

__all__ = ["UpgradePlan", "UpgradeResult", "decide", "hints_of", "leaving_partitions", "logged_slices", "refuse"]

_CARRIED_OUT = frozenset({"commit", "deltacommit", "replacecommit", "compaction", "logcompaction", "rollback"})
"""Actions that an upgrade completes or rolls back when they are pending; it ignores pending savepoints."""

_VERSION_6_KINDS = frozenset(
    {PartitionKind.FILES, PartitionKind.COLUMN_STATS, PartitionKind.BLOOM_FILTERS, PartitionKind.RECORD_INDEX}
)
_END_OF_TIME = "9" * 17


@dataclass(frozen=True, slots=True)
class UpgradePlan:
    """The steps of a change of the table version.

    Attributes:
        before: the table version now.
        after: the requested version: 6, 8 or 9.
        steps: the steps in order, in words; empty when there is nothing to do.
    """

    before: int
    after: int
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UpgradeResult(HtmlResult):
    """The result of a change of the table version.

    Attributes:
        before: the table version before.
        after: the version now.
        steps: the executed steps in order, in words; empty when there was nothing to do.
        seconds: duration.
    """

    before: int
    after: int
    steps: tuple[str, ...]
    seconds: float


def decide(state: TableState, version: int, settings: Settings) -> UpgradePlan:
    """Plan the change for a table.

    Args:
        state: the table.
        version: the requested version.
        settings: of the call.

    Raises:
        ConfigError: the table has something that must be resolved first, or that the version does not support.
        CorruptTableError: a failed upgrade left the table between two versions.
        UnsupportedFeatureError: an unsupported version, or a feature that the other version does not have.
    """
    config = state.config
    refuse(state, version, settings)
    if version == config.version:
        found = sum(len(leftovers(*table)) for table in both_tables(state.storage, config))
        left = f"delete {found} files of the other timeline layout that an earlier change left"
        return UpgradePlan(version, version, (left,) if found else ())
    slices = logged_slices(state)
    if slices:
        draft_files(state, settings.write, settings.merger)  # refuses slices that cannot be compacted
    steps = (*_preparing(state, slices, version), *_metadata_steps(state, version), *_moving(state, version, settings))
    return UpgradePlan(config.version, version, steps)


def refuse(state: TableState, version: int, settings: Settings) -> None:
    """Raise if the table cannot get the version; arguments and errors as of :func:`decide`."""
    config = state.config
    where = f"The table {state.storage.uri} of version {config.version}"
    if config.version in VERSIONS:
        refuse_halfway(state.storage, config)
    if version not in VERSIONS:
        raise UnsupportedFeatureError(f"{where} cannot get table version {version!r}; supported: 6, 8, 9.")
    if version == 6 < config.version and not state.storage.sets_times:
        raise UnsupportedFeatureError(
            f"{where} cannot go to version 6: that version takes completion times from the times of files, which this "
            "storage sets itself."
        )
    if version == config.version:
        return
    if config.version not in VERSIONS:
        raise UnsupportedFeatureError(
            f"{where} cannot be upgraded here: only 6, 8 and 9 are. Upgrade it to version 6 with a release of "
            "Apache Hudi before 1.0."
        )
    _refuse_pending(state, where)
    _refuse_features(config, version, where)
    _refuse_merging(config, version, where)
    steps = path_between(config.version, version)
    if settings.write.complex_validation and {(8, 9), (9, 8)} & set(steps):
        _refuse_complex_key(config, where)


def hints_of(settings: Settings) -> PropertyHints:
    """Facts that the options have and the table's properties may lack."""
    write = settings.write
    fields = write.partition_path_fields
    typed = fields and all(":" in field for field in fields)
    return PropertyHints(",".join(fields or ()) if typed else None, write.delete_field, write.delete_marker)


def logged_slices(state: TableState) -> list[FileSlice]:
    """The newest slices with log files; empty for a COPY_ON_WRITE table."""
    if not state.config.is_mor:
        return []
    partitions = state.view.lister.partitions()
    return list(compactable_slices(state, partitions, _END_OF_TIME, (), set()))


def leaving_partitions(state: TableState, version: int) -> dict[str, str]:
    """Partitions of the metadata table that the version does not support, with the reasons.

    Args:
        state: the table.
        version: the requested version.
    """
    config, steps = state.config, path_between(state.config.version, version)
    definitions = load_definitions(state.storage, config)
    table = metadata_of(state)
    going: dict[str, str] = {}
    for name in config.metadata_partitions:
        if (9, 8) in steps and index_version(name, config.version, definitions) != "V1":
            going[name] = "an index of version 2"
        elif (8, 6) in steps and kind_of(name) not in _VERSION_6_KINDS:
            going[name] = "not known to version 6"
        elif (8, 6) in steps and table is not None and table.is_by_partition(name):
            going[name] = "by partition, not known to version 6"
    return going


# ---- refusals


def _refuse_pending(state: TableState, where: str) -> None:
    planned = {one.requested for one in state.pending_services}
    for instant in state.timeline.pending():
        if instant.action == "savepoint" or (instant.action in _CARRIED_OUT and instant.requested not in planned):
            continue
        action = "clustering" if instant.requested in planned else instant.action
        raise ConfigError(
            f"{where} has a pending {action} ({instant.requested}); complete it or roll it back before you change the "
            "version."
        )
    building = state.config.metadata_partitions_inflight
    if building:
        raise ConfigError(
            f"{where} has indexes that are being built ({', '.join(building)}); complete or drop them before you "
            "change the version."
        )


def _refuse_features(config: TableConfig, version: int, where: str) -> None:
    raw = config.raw
    if raw.get("hoodie.bootstrap.base.path"):
        raise UnsupportedFeatureError(
            f"{where} is bootstrapped (hoodie.bootstrap.base.path); change its version with Apache Hudi."
        )
    if raw.get("hoodie.table.format", "native").lower() != "native":
        raise UnsupportedFeatureError(
            f"{where} has hoodie.table.format={raw['hoodie.table.format']}; only native tables change their version."
        )
    if config.slash_separated_dates and version < 9:
        raise UnsupportedFeatureError(
            f"{where} has hoodie.datasource.write.slash.separated.date.partitioning, which version {version} does not "
            "support: its partition paths would change."
        )


def _refuse_merging(config: TableConfig, version: int, where: str) -> None:
    payload = config.payload_class or config.legacy_payload_class
    if version == 6 and config.merge_mode == CUSTOM and payload is None:
        raise UnsupportedFeatureError(
            f"{where} has hoodie.record.merge.mode=CUSTOM without a payload class, which version 6 merges by; it can "
            "go to version 8."
        )


def _refuse_complex_key(config: TableConfig, where: str) -> None:
    if config.key_generator == "COMPLEX" and len(config.record_key_fields) == 1:
        raise ConfigError(
            f"{where} has the complex key generator over the one column {config.record_key_fields[0]}: releases differ "
            "in whether its keys read `value` or `column:value`, and version 9 always writes `column:value`. If its "
            "keys are of that form (or if you set hoodie.write.complex.keygen.new.encoding), set "
            "hoodie.write.complex.keygen.validation.enable=false and run the upgrade again."
        )


# ---- steps


def _preparing(state: TableState, slices: list[FileSlice], version: int) -> list[str]:
    planned = {one.requested for one in state.pending_services}
    failed = [one for one in state.timeline.pending_writes if one.requested not in planned]
    steps = [f"roll back the failed {one.action} {one.requested}" for one in failed]
    for one in state.timeline.pending():
        if one.action in ("compaction", "logcompaction", "rollback"):
            what = "complete" if one.state is State.INFLIGHT or one.action == "rollback" else "execute"
            steps.append(f"{what} the pending {one.action} {one.requested}")
    if slices:
        steps.append(f"compact {len(slices)} file groups that have log files")
    if state.config.is_mor and (8, 6) in path_between(state.config.version, version):
        steps.append("end time travel to before now: version 6 looks for older log files under other names")
    return steps


def _metadata_steps(state: TableState, version: int) -> list[str]:
    config = state.config
    going = leaving_partitions(state, version)
    steps = [f"drop the metadata partition {name}: {why}" for name, why in going.items()]
    kept = [name for name in config.metadata_partitions if name not in going]
    if kept and metadata_of(state) is None:
        steps.append(f"rebuild the metadata table, which cannot be trusted ({', '.join(kept)})")
    elif kept:
        steps.append(f"move the metadata table ({', '.join(kept)})")
    return steps


def _moving(state: TableState, version: int, settings: Settings) -> list[str]:
    config = state.config
    target = target_config(config.raw, version, hints_of(settings), state.storage.uri)
    steps = []
    if target.layout_version != config.layout_version:
        forms = "with completion times in names and bodies in Avro" if version >= 8 else "bodies of commits in JSON"
        steps.append(f"write the timeline to {target.timeline_folder}, {forms}")
        steps.append(f"write the archived timeline to {target.history_folder}")
    if (8, 9) in path_between(config.version, version):
        steps.append("set version 1 in index definitions that have no version")
    before, after = config.raw, target.raw
    changed = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    steps.append(
        "change hoodie.properties: " + "; ".join(_change_of(before.get(key), after.get(key), key) for key in changed)
    )
    if target.layout_version != config.layout_version:
        steps.append(f"delete the timeline in {config.timeline_folder} and the archived one in {config.history_folder}")
    return steps


def _change_of(before: str | None, after: str | None, key: str) -> str:
    if after is None:
        return f"{key} removed (was {before})"
    return f"{key}={after}" + ("" if before is None else f" (was {before})")
