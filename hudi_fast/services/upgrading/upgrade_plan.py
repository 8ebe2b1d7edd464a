"""Plans a change of the table version, and refuses tables that cannot be changed before anything is written.

::

    properties, timeline, newest slices, metadata partitions ─► refused with a reason ─► steps in words

The steps, as :mod:`hudi_fast.services.upgrading.upgrade` executes them (2 to 6, 6 to 8, 8 to 9, and back to 5; 7 is no
target):

=====================  =================================================================================================
failed writes          rolled back, in the format of the old version
pending compactions    completed, including log compactions
log files              from 6 on, and from 6 to 5, all newest slices of MERGE_ON_READ tables are compacted: names,
                       merging and delete blocks of log files differ
metadata table         2 to 3: deleted. 3 to 4: named in the properties if it can be trusted, else deleted. 6 to 5:
                       deleted, since its records have other columns there. 9 to 8: partitions with an index of version
                       2 are dropped. 8 to 6: all but files, column_stats, bloom_filters and a record index whose keys
                       are unique in the table are dropped. The others are compacted and moved
active timeline        6 to 8 and back: :mod:`hudi_fast.services.upgrading.move`
archived timeline      6 to 8 and back: :mod:`hudi_fast.services.upgrading.move`
index definitions      8 to 9: those without a version get version 1
compaction plans       5 to 6: their copies in ``.hoodie/.aux`` are deleted
properties             :mod:`hudi_fast.services.upgrading.properties`
=====================  =================================================================================================

Everything else is the same in all versions: base files, partition markers, bodies of cleans, rollbacks, savepoints and
plans. Log files of older slices do not change. Version 6 does not find log files that a later version wrote, so time
travel of MERGE_ON_READ tables ends at the downgrade, as it does with Apache Hudi.

Up to version 6 pending compactions and clusterings stay as they are.

Source: UpgradeDowngrade and its handlers, releases 0.15.0 and 1.2.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hudi_fast.config.merge_mode import CUSTOM
from hudi_fast.config.metadata_options import FIRST_WITH_METADATA
from hudi_fast.config.option_names import class_of_key_generator
from hudi_fast.config.table_config import WRITE_VERSIONS, TableConfig, other_layout
from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.keys.partition_path import OLD_DEFAULT_PARTITION, reads_hive_style
from hudi_fast.metadata_table.layout import PartitionKind, index_version, kind_of, load_definitions
from hudi_fast.metadata_table.state import metadata_of
from hudi_fast.metadata_table.table import examine_metadata
from hudi_fast.metadata_table.updates.bookkeeping import has_metadata_folder
from hudi_fast.reading.inspecting.results import ShownResult
from hudi_fast.services.compact_plan import compactable_slices
from hudi_fast.services.upgrading.move import both_tables, leftovers, target_config
from hudi_fast.services.upgrading.properties import TARGETS, PropertyHints, path_between
from hudi_fast.timeline.instants import Instant, State
from hudi_fast.values import dataclass
from hudi_fast.view.lost_files import moved_away
from hudi_fast.view.slices import FileSlice
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.draft import draft_files
from hudi_fast.writing.settings import Settings

__all__ = [
    "UpgradePlan",
    "UpgradeResult",
    "copied_plans",
    "decide",
    "failed_writes",
    "hints_of",
    "leaving_partitions",
    "logged_slices",
    "needs_compaction",
    "refuse",
]

_CARRIED_OUT = frozenset({"commit", "deltacommit", "replacecommit", "compaction", "logcompaction", "rollback"})
"""Actions that an upgrade completes or rolls back when they are pending; it ignores pending savepoints."""

_VERSION_6_KINDS = frozenset(
    {PartitionKind.FILES, PartitionKind.COLUMN_STATS, PartitionKind.BLOOM_FILTERS, PartitionKind.RECORD_INDEX}
)
_IN_PLACE = frozenset({(2, 3), (3, 4), (4, 5), (5, 6), (7, 6)})
"""Steps that change little more than properties: log files and pending services stay as they are."""
_END_OF_TIME = "9" * 17
_AUX = ".hoodie/.aux"
_FIRST_WITH_STYLE = 3
"""From this version on properties store the style of partition paths."""
_LAST_WITHOUT_NAMES = 3
"""Up to this version properties do not name the metadata table's partitions."""
_LAYOUT_1 = 6


@dataclass(frozen=True, slots=True)
class UpgradePlan:
    """The steps of a change of the table version.

    Attributes:
        before: the table version now.
        after: the requested version: 5, 6, 8 or 9.
        steps: the steps in order, in words; empty when there is nothing to do.
    """

    before: int
    after: int
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UpgradeResult(ShownResult):
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
    lost = moved_away(state.storage, config)
    begin = (_putting_back(state, lost),) if lost else ()
    if version == config.version:
        found = sum(len(leftovers(*table)) for table in both_tables(state.storage, config))
        left = f"delete {found} files of the other timeline layout that an earlier change left"
        return UpgradePlan(version, version, (*begin, *((left,) if found else ())))
    hints = hints_of(state, settings)
    if lost:  # what is pending, and which slices have log files, is known once they are back
        return UpgradePlan(config.version, version, (*begin, *_moving(state, version, hints)))
    slices = logged_slices(state) if needs_compaction(config.version, version) else []
    if slices:
        draft_files(_writable(state), settings.write, settings.merger)  # refuses slices that cannot be compacted
    steps = (
        *_preparing(state, slices, version),
        *_metadata_steps(state, version, hints),
        *_moving(state, version, hints),
    )
    return UpgradePlan(config.version, version, steps)


def refuse(state: TableState, version: int, settings: Settings) -> None:
    """Raise if the table cannot get the version; arguments and errors as of :func:`decide`."""
    config = state.config
    where = f"The table {state.storage.uri} of version {config.version}"
    if version not in TARGETS:
        supported = ", ".join(map(str, TARGETS))
        raise UnsupportedFeatureError(f"{where} cannot get table version {version!r}; supported: {supported}.")
    if version == config.version:
        return
    steps = path_between(config.version, version)
    if (8, 6) in steps and not state.storage.sets_times:
        raise UnsupportedFeatureError(
            f"{where} cannot go to version {version}: from version 6 down completion times are the times of files, "
            "which this storage sets itself."
        )
    if not _IN_PLACE.issuperset(steps):
        _refuse_pending(state, where)
        _refuse_features(config, version, where)
        _refuse_merging(config, version, where)
    if (4, 5) in steps and not settings.write.table.skips_default_partition_check:
        _refuse_default_partition(state, where)
    if (2, 3) in steps:
        _refuse_other_style(state, settings, where)
    if settings.write.keys.complex_validation and {(8, 9), (9, 8)} & set(steps):
        _refuse_complex_key(config, where)


def needs_compaction(before: int, after: int) -> bool:
    """Whether a change of the version requires that the newest slices have no log files, and nothing is pending.

    Args:
        before: the version now.
        after: the new version.
    """
    return not _IN_PLACE.issuperset(path_between(before, after))


def hints_of(state: TableState, settings: Settings) -> PropertyHints:
    """Facts that the table's properties may lack, from the options and from the table's files.

    Args:
        state: the table.
        settings: of the call.
    """
    config, write = state.config, settings.write
    fields = write.keys.partition_path_fields
    typed = fields and all(":" in field for field in fields)
    generator = write.keys.generator_class
    if generator is None and write.keys.generator is not None:
        generator = class_of_key_generator(write.keys.generator)
    return PropertyHints(
        ",".join(fields or ()) if typed else None,
        write.merging.delete_field,
        write.merging.delete_marker,
        hive_style=config.version < _FIRST_WITH_STYLE and (_paths_read_hive_style(state) or write.keys.hive_style),
        url_encode=write.keys.url_encode,
        key_generator_class=generator,
        database=write.table.database,
        has_files_partition=write.metadata.enabled and _has_files(state),
    )


def _paths_read_hive_style(state: TableState) -> bool:
    fields, paths = state.config.partition_fields, state.view.lister.partitions()
    return bool(fields) and bool(paths) and all(reads_hive_style(path, fields) for path in paths)


def _has_files(state: TableState) -> bool:
    """Whether the metadata table of a version 3 table, which its properties do not name, can be kept.

    A rollback cannot be recorded in it.
    """
    if state.config.version != _LAST_WITHOUT_NAMES or not has_metadata_folder(state.storage) or failed_writes(state):
        return False
    named = replace(state.config, metadata_partitions=("files",))
    return examine_metadata(state.storage, named, state.timeline)[1] is None


def _writable(state: TableState) -> TableState:
    """The state as if the table had a version that is written, with the same layout."""
    if state.config.version in WRITE_VERSIONS:
        return state
    return replace(state, config=replace(state.config, version=_LAYOUT_1))


def failed_writes(state: TableState) -> list[Instant]:
    """Pending writes that are not table services."""
    planned = {one.requested for one in state.pending_services}
    return [one for one in state.timeline.pending_writes if one.requested not in planned]


def copied_plans(state: TableState) -> list[str]:
    """Paths of the copies of pending compactions' plans that releases before 0.14 keep beside the timeline."""
    planned = [one for one in state.timeline.pending_compactions if one.state is State.REQUESTED]
    paths = [f"{_AUX}/{one.file_name}" for one in planned]
    return [path for path in paths if state.storage.exists(path)]


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
        if (6, 5) in steps:
            going[name] = "version 5 has other records"
        elif (9, 8) in steps and index_version(name, config.version, definitions) != "V1":
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
    if version <= _LAYOUT_1 and config.merge_mode == CUSTOM and payload is None:
        raise UnsupportedFeatureError(
            f"{where} has hoodie.record.merge.mode=CUSTOM without a payload class, which version {version} merges by; "
            "it can go to version 8."
        )


def _refuse_complex_key(config: TableConfig, where: str) -> None:
    if config.key_generator == "COMPLEX" and len(config.record_key_fields) == 1:
        raise ConfigError(
            f"{where} has the complex key generator over the one column {config.record_key_fields[0]}: releases differ "
            "in whether its keys read `value` or `column:value`, and version 9 always writes `column:value`. If its "
            "keys are of that form (or if you set hoodie.write.complex.keygen.new.encoding), set "
            "hoodie.write.complex.keygen.validation.enable=false and run the upgrade again."
        )


def _refuse_default_partition(state: TableState, where: str) -> None:
    fields = state.config.partition_fields
    names = {OLD_DEFAULT_PARTITION, *(f"{field}={OLD_DEFAULT_PARTITION}" for field in fields)}
    found = [path for path in state.view.lister.partitions() if fields and not names.isdisjoint(path.split("/"))]
    if found:
        raise ConfigError(
            f"{where} has the partition {found[0]}: up to version 4 it holds the rows whose partition value is null; "
            "from version 5 on new ones of these go to __HIVE_DEFAULT_PARTITION__. Set "
            "hoodie.skip.default.partition.validation=true for the upgrade, then write the rows of that partition "
            "again and delete it with delete_partitions()."
        )


def _refuse_other_style(state: TableState, settings: Settings, where: str) -> None:
    write = settings.write
    paths = state.view.lister.partitions() if state.config.is_partitioned else []
    given = "hoodie.datasource.write.hive_style_partitioning" in write.explicit
    if given and paths and write.keys.hive_style != _paths_read_hive_style(state):
        raise ConfigError(
            f"{where} has the partition {paths[0]!r}, which contradicts "
            f"hoodie.datasource.write.hive_style_partitioning={str(write.keys.hive_style).lower()}; "
            "leave the option out."
        )


# ---- steps


def _putting_back(state: TableState, lost: Sequence[Instant]) -> str:
    config = state.config
    other = other_layout(config, state.storage.uri).timeline_folder
    return (
        f"put {len(lost)} instants back into {config.timeline_folder} (the first is {lost[0].requested}): a failed "
        f"change of the version by another program moved them to {other}"
    )


def _preparing(state: TableState, slices: list[FileSlice], version: int) -> list[str]:
    steps = [f"roll back the failed {one.action} {one.requested}" for one in failed_writes(state)]
    services = ("compaction", "logcompaction") if needs_compaction(state.config.version, version) else ()
    for one in state.timeline.pending():
        if one.action in (*services, "rollback"):
            what = "complete" if one.state is State.INFLIGHT or one.action == "rollback" else "execute"
            steps.append(f"{what} the pending {one.action} {one.requested}")
    if slices:
        steps.append(f"compact {len(slices)} file groups that have log files")
    if state.config.is_mor and (8, 6) in path_between(state.config.version, version):
        steps.append("end time travel to before now: version 6 looks for older log files under other names")
    return steps


def _metadata_steps(state: TableState, version: int, hints: PropertyHints) -> list[str]:
    config = state.config
    if config.version <= _LAST_WITHOUT_NAMES:
        if hints.has_files_partition:
            return ["keep the metadata table (files)"]
        return ["delete the metadata table"] if has_metadata_folder(state.storage) else []
    if config.version < FIRST_WITH_METADATA and config.metadata_partitions and failed_writes(state):
        return ["delete the metadata table, in which no rollback can be recorded"]
    going = leaving_partitions(state, version)
    steps = [f"drop the metadata partition {name}: {why}" for name, why in going.items()]
    kept = [name for name in config.metadata_partitions if name not in going]
    if kept and metadata_of(state) is None:
        steps.append(f"rebuild the metadata table, which cannot be trusted ({', '.join(kept)})")
    elif kept:
        steps.append(f"move the metadata table ({', '.join(kept)})")
    return steps


def _moving(state: TableState, version: int, hints: PropertyHints) -> list[str]:
    config = state.config
    target = target_config(config.raw, version, hints, state.storage.uri)
    copies = copied_plans(state) if (5, 6) in path_between(config.version, version) else []
    steps = [f"delete {len(copies)} copies of compaction plans in {_AUX}"] if copies else []
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
