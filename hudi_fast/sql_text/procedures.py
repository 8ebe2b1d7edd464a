"""Apache Hudi's procedures: parameters with defaults, result columns, and which of them hudi_fast has.

Source: ``HoodieProcedures`` of Hudi 1.2.0.
"""

from __future__ import annotations

from collections.abc import Iterator

from hudi_fast.values import dataclass

__all__ = ["SIGNATURES", "SUPPORTED", "Parameter", "Signature"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter: its SQL type, whether a value is required, and its default."""

    name: str
    kind: str
    required: bool
    default: str | None


@dataclass(frozen=True, slots=True)
class Signature:
    """A procedure: parameters in order, and the columns of its result as Spark's DDL."""

    parameters: tuple[Parameter, ...]
    columns: str


def _parameters(text: str) -> Iterator[Parameter]:
    """``name kind``, with ``!`` if a value is required, or ``=default``; separated by ``; ``."""
    for one in filter(None, text.split("; ")):
        name, said = one.split(" ", 1)
        kind, sign, default = said.partition("=")
        yield Parameter(name, kind.rstrip("!"), kind.endswith("!"), default if sign else None)


def _signature(parameters: str, columns: str) -> Signature:
    return Signature(tuple(_parameters(parameters)), columns)


SIGNATURES = {
    "archive_commits": _signature(
        "table string; path string; min_commits int=20; max_commits int=30; retain_commits int=10; "
        "enable_metadata boolean=True",
        "result int",
    ),
    "cleanup_audit_lock": _signature(
        "table string; path string; dry_run boolean=False; age_days int=7",
        "table string, files_cleaned int, dry_run boolean, age_days int, message string",
    ),
    "commits_compare": _signature(
        "table string!; path string!",
        "compare_detail string",
    ),
    "copy_to_table": _signature(
        "table string!; query_type string=snapshot; new_table string!; begin_instance_time string; "
        "end_instance_time string; as_of_instant string; save_mode string=overwrite; columns string",
        "status int",
    ),
    "copy_to_temp_view": _signature(
        "table string!; query_type string=snapshot; view_name string!; begin_instance_time string; "
        "end_instance_time string; as_of_instant string; replace boolean=False; global boolean=False",
        "status int",
    ),
    "create_metadata_table": _signature(
        "table string!",
        "result string",
    ),
    "create_savepoint": _signature(
        "table string; commit_time string; user string; comments string; path string",
        "create_savepoint_result boolean",
    ),
    "delete_marker": _signature(
        "table string!; instant_time string!",
        "delete_marker_result boolean",
    ),
    "delete_metadata_table": _signature(
        "table string!",
        "result string",
    ),
    "delete_savepoint": _signature(
        "table string; instant_time string; path string",
        "delete_savepoint_result boolean",
    ),
    "downgrade_table": _signature(
        "table string!; to_version string!",
        "result boolean",
    ),
    "drop_partition": _signature(
        "table string!; partition string!",
        "result string",
    ),
    "export_instants": _signature(
        "table string!; local_folder string!; limit int=-1; actions "
        "string=clean,commit,deltacommit,rollback,savepoint,restore; desc boolean=False",
        "export_detail string",
    ),
    "hdfs_parquet_import": _signature(
        "table string!; table_type string!; src_path string!; target_path string!; row_key string!; "
        "partition_key string!; schema_file_path string!; command string=insert; retry int=0; parallelism "
        "int=1; props_file_path string",
        "import_result int",
    ),
    "help": _signature(
        "cmd string",
        "result string",
    ),
    "hive_sync": _signature(
        "table string!; metastore_uri string; username string; password string; use_jdbc string; mode "
        "string; partition_fields string; partition_extractor_class string; strategy string; "
        "sync_incremental string",
        "result string",
    ),
    "init_metadata_table": _signature(
        "table string!; read_only boolean=False",
        "result string",
    ),
    "partition_bucket_index_manager": _signature(
        "table string!; overwrite string; bucket_number int=-1; add string; dry_run boolean=True; "
        "rollback string; show_config boolean=False; rule string=regex; options string",
        "result string, operation string, details string",
    ),
    "repair_add_partition_meta": _signature(
        "table string!; dry_run boolean=True",
        "partition_path string, metadata_is_present string, action string",
    ),
    "repair_corrupted_clean_files": _signature(
        "table string!",
        "result boolean",
    ),
    "repair_deduplicate": _signature(
        "table string!; duplicated_partition_path string!; repaired_output_path string!; dry_run "
        "boolean=True; dedupe_type string=insert_type",
        "result string",
    ),
    "repair_migrate_partition_meta": _signature(
        "table string!; dry_run boolean=True",
        "partition_path string, text_metafile_present string, base_metafile_present string, action string",
    ),
    "repair_overwrite_hoodie_props": _signature(
        "table string!; new_props_file_path string!",
        "property string, old_value string, new_value string",
    ),
    "rollback_to_instant": _signature(
        "table string!; instant_time string!",
        "rollback_result boolean",
    ),
    "rollback_to_savepoint": _signature(
        "table string; instant_time string; path string",
        "rollback_savepoint_result boolean",
    ),
    "run_bootstrap": _signature(
        "table string!; table_type string!; bootstrap_path string!; base_path string!; rowKey_field "
        "string!; base_file_format string=PARQUET; partition_path_field string; bootstrap_index_class "
        "string=org.apache.hudi.common.bootstrap.index.hfile.HFileBootstrapIndex; selector_class "
        "string=org.apache.hudi.client.bootstrap.selector.MetadataOnlyBootstrapModeSelector; "
        "key_generator_class string=org.apache.hudi.keygen.SimpleKeyGenerator; "
        "full_bootstrap_input_provider "
        "string=org.apache.hudi.bootstrap.SparkParquetBootstrapDataProvider; schema_provider_class "
        "string; payload_class string=org.apache.hudi.common.model.OverwriteWithLatestAvroPayload; "
        "parallelism int=1500; enable_hive_sync boolean=False; props_file_path string; "
        "bootstrap_overwrite boolean=False; options string",
        "status int",
    ),
    "run_clean": _signature(
        "table string!; schedule_in_line boolean=True; clean_policy string; retain_commits int; "
        "hours_retained int; file_versions_retained int; trigger_strategy string; trigger_max_commits "
        "int; options string",
        "start_clean_time string, time_taken_in_millis bigint, total_files_deleted int, "
        "earliest_commit_to_retain string, bootstrap_part_metadata string, version int",
    ),
    "run_clustering": _signature(
        "table string; path string; predicate string; order string; show_involved_partition "
        "boolean=False; op string; order_strategy string; options string; instants string; "
        "selected_partitions string; partition_regex_pattern string; limit int",
        "timestamp string, input_group_size int, state string, involved_partitions string",
    ),
    "run_compaction": _signature(
        "op string!; table string; path string; timestamp bigint; options string; instants string; limit int",
        "timestamp string, operation_size int, state string",
    ),
    "run_rollback_inflight_tableservice": _signature(
        "table string; path string; pending_instant string!; delete_request_instant_file boolean=False",
        "instant string, time_cost string",
    ),
    "run_ttl": _signature(
        "table string!; ttl_policy string; retain_days int; options string",
        "deleted_partitions string",
    ),
    "set_audit_lock": _signature(
        "table string; path string; state string!",
        "table string, audit_state string, message string",
    ),
    "show_archived_commits": _signature(
        "table string!; limit int=10; start_ts string; end_ts string",
        "commit_time string, state_transition_time string, total_bytes_written bigint, total_files_added "
        "bigint, total_files_updated bigint, total_partitions_written bigint, total_records_written "
        "bigint, total_update_records_written bigint, total_errors bigint",
    ),
    "show_archived_commits_metadata": _signature(
        "table string!; limit int=10; start_ts string; end_ts string",
        "commit_time string, state_transition_time string, action string, partition string, file_id "
        "string, previous_commit string, num_writes bigint, num_inserts bigint, num_deletes bigint, "
        "num_update_writes bigint, total_errors bigint, total_log_blocks bigint, total_corrupt_log_blocks "
        "bigint, total_rollback_blocks bigint, total_log_records bigint, total_updated_records_compacted "
        "bigint, total_bytes_written bigint",
    ),
    "show_audit_lock_status": _signature(
        "table string; path string",
        "table string, audit_enabled boolean, config_path string, audit_folder_path string",
    ),
    "show_bootstrap_mapping": _signature(
        "table string; path string; partition_path string; file_ids string; limit int=10; sort_by "
        "string=partition; desc boolean=False; filter string",
        "partition string, file_id string, source_base_path string, source_partition string, source_file string",
    ),
    "show_bootstrap_partitions": _signature(
        "table string; path string; filter string",
        "indexed_partitions string",
    ),
    "show_clean_plans": _signature(
        "table string!; limit int=10; showArchived boolean=False; filter string",
        "plan_time string, state string, action string, earliest_instant_to_retain string, "
        "last_completed_commit_timestamp string, policy string, version int, total_partitions_to_clean "
        "int, total_partitions_to_delete int, extra_metadata string",
    ),
    "show_cleans": _signature(
        "table string!; limit int=10; showArchived boolean=False; filter string",
        "clean_time string, state_transition_time string, action string, start_clean_time string, "
        "time_taken_in_millis bigint, total_files_deleted int, earliest_commit_to_retain string, "
        "last_completed_commit_timestamp string, version int",
    ),
    "show_cleans_metadata": _signature(
        "table string!; limit int=10; showArchived boolean=False; filter string",
        "clean_time string, state_transition_time string, action string, start_clean_time string, "
        "partition_path string, policy string, delete_path_patterns int, success_delete_files int, "
        "failed_delete_files int, is_partition_deleted boolean, time_taken_in_millis bigint, "
        "total_files_deleted int",
    ),
    "show_clustering": _signature(
        "table string; path string; limit int=20; show_involved_partition boolean=False",
        "timestamp string, input_group_size int, state string, involved_partitions string",
    ),
    "show_commit_extra_metadata": _signature(
        "table string!; limit int=100; instant_time string; metadata_key string",
        "instant_time string, action string, metadata_key string, metadata_value string",
    ),
    "show_commit_files": _signature(
        "table string!; limit int=10; instant_time string!",
        "action string, partition_path string, file_id string, previous_commit string, "
        "total_records_updated bigint, total_records_written bigint, total_bytes_written bigint, "
        "total_errors bigint, file_size bigint",
    ),
    "show_commit_partitions": _signature(
        "table string!; limit int=10; instant_time string!",
        "action string, partition_path string, total_files_added bigint, total_files_updated bigint, "
        "total_records_inserted bigint, total_records_updated bigint, total_bytes_written bigint, "
        "total_errors bigint",
    ),
    "show_commit_write_stats": _signature(
        "table string!; limit int=10; instant_time string!",
        "action string, total_bytes_written bigint, total_records_written bigint, avg_record_size bigint",
    ),
    "show_commits": _signature(
        "table string!; limit int=10",
        "commit_time string, state_transition_time string, action string, total_bytes_written bigint, "
        "total_files_added bigint, total_files_updated bigint, total_partitions_written bigint, "
        "total_records_written bigint, total_update_records_written bigint, total_errors bigint",
    ),
    "show_commits_metadata": _signature(
        "table string!; limit int=10",
        "commit_time string, state_transition_time string, action string, partition string, file_id "
        "string, previous_commit string, num_writes bigint, num_inserts bigint, num_deletes bigint, "
        "num_update_writes bigint, total_errors bigint, total_log_blocks bigint, total_corrupt_log_blocks "
        "bigint, total_rollback_blocks bigint, total_log_records bigint, total_updated_records_compacted "
        "bigint, total_bytes_written bigint",
    ),
    "show_compaction": _signature(
        "table string; path string; limit int=20",
        "timestamp string, operation_size int, state string",
    ),
    "show_file_status": _signature(
        "table string; path string; partition string; file string!; filter string",
        "status string, action string, instant string, timeline string, full_path string",
    ),
    "show_fs_path_detail": _signature(
        "path string!; is_sub boolean=False; sort boolean=True; limit int=100; filter string",
        "path_num bigint, file_num bigint, storage_size bigint, `storage_size(unit)` string, storage_path "
        "string, space_consumed bigint, quota bigint, space_quota bigint",
    ),
    "show_fsview_all": _signature(
        "table string; path string; max_instant string; include_max boolean=False; include_in_flight "
        "boolean=False; exclude_compaction boolean=False; limit int=10; path_regex string=ALL_PARTITIONS; "
        "filter string",
        "partition string, file_id string, base_instant string, data_file string, data_file_size bigint, "
        "num_delta_files bigint, total_delta_file_size bigint, delta_files string",
    ),
    "show_fsview_latest": _signature(
        "table string; path string; max_instant string; include_max boolean=False; include_in_flight "
        "boolean=False; exclude_compaction boolean=False; limit int=10; path_regex string=ALL_PARTITIONS; "
        "filter string; partition_path string=ALL_PARTITIONS; merge boolean=True",
        "partition string, file_id string, base_instant string, data_file string, data_file_size bigint, "
        "num_delta_files bigint, total_delta_file_size bigint, delta_size_compaction_scheduled bigint, "
        "delta_size_compaction_unscheduled bigint, delta_to_base_radio_compaction_scheduled double, "
        "delta_to_base_radio_compaction_unscheduled double, delta_files_compaction_scheduled string, "
        "delta_files_compaction_unscheduled string",
    ),
    "show_invalid_parquet": _signature(
        "path string!; parallelism int=100; limit int=100; needDelete boolean=False; partitions string; "
        "instants string; filter string",
        "path string",
    ),
    "show_logfile_metadata": _signature(
        "table string; path string; log_file_path_pattern string!; limit int=10; filter string",
        "instant_time string, record_count int, block_type string, header_metadata string, footer_metadata string",
    ),
    "show_logfile_records": _signature(
        "table string; path string; log_file_path_pattern string!; merge boolean=False; limit int=10; filter string",
        "records string",
    ),
    "show_metadata_table_column_stats": _signature(
        "table string; path string; partition string; targetColumns string; filter string",
        "file_name string, column_name string, min_value string, max_value string, null_number bigint",
    ),
    "show_metadata_table_files": _signature(
        "table string; path string; partition string; limit int=100; filter string",
        "file_path string",
    ),
    "show_metadata_table_partitions": _signature(
        "table string; path string; filter string",
        "partition string",
    ),
    "show_metadata_table_stats": _signature(
        "table string; path string; filter string",
        "stat_key string, stat_value string",
    ),
    "show_rollback_detail": _signature(
        "table string!; limit int=10; instant_time string!",
        "instant string, rollback_instant string, partition string, deleted_file string, succeeded boolean",
    ),
    "show_rollbacks": _signature(
        "table string!; limit int=10",
        "instant string, rollback_instant string, total_files_deleted int, time_taken_in_millis bigint, "
        "total_partitions int",
    ),
    "show_savepoints": _signature(
        "table string; path string",
        "savepoint_time string",
    ),
    "show_table_properties": _signature(
        "table string; path string; limit int=10; filter string",
        "key string, value string",
    ),
    "show_timeline": _signature(
        "table string; path string; limit int=20; showArchived boolean=False; filter string; startTime "
        "string; endTime string",
        "instant_time string, action string, state string, requested_time string, inflight_time string, "
        "completed_time string, timeline_type string, rollback_info string",
    ),
    "stats_file_sizes": _signature(
        "table string!; partition_path string; limit int=10",
        "commit_time string, min bigint, `10th` double, `50th` double, avg double, `95th` double, max "
        "bigint, num_files int, std_dev double",
    ),
    "stats_wa": _signature(
        "table string!; limit int=10",
        "commit_time string, total_upserted bigint, total_written bigint, write_amplification_factor string",
    ),
    "sync_validate": _signature(
        "src_table string!; dst_table string!; mode string!; hive_server_url string!; hive_pass string!; "
        "src_db string=rawdata; target_db string=dwh_hoodie; partition_cnt int=5; hive_user string",
        "result string",
    ),
    "truncate_table": _signature(
        "table string!; partitions string",
        "result string, time_cost bigint",
    ),
    "upgrade_table": _signature(
        "table string!; to_version string!",
        "result boolean",
    ),
    "validate_audit_lock": _signature(
        "table string; path string",
        "table string, validation_result string, transactions_validated int, issues_found int, details string",
    ),
    "validate_metadata_table_files": _signature(
        "table string!; verbose boolean=False",
        "partition string, file_name string, is_present_in_fs boolean, is_present_in_metadata boolean, "
        "fs_size bigint, metadata_size bigint",
    ),
}
"""By name."""

SUPPORTED = frozenset(
    (
        "archive_commits",
        "commits_compare",
        "copy_to_table",
        "copy_to_temp_view",
        "create_metadata_table",
        "create_savepoint",
        "delete_marker",
        "delete_metadata_table",
        "delete_savepoint",
        "downgrade_table",
        "drop_partition",
        "export_instants",
        "help",
        "hive_sync",
        "rollback_to_instant",
        "rollback_to_savepoint",
        "run_bootstrap",
        "run_clean",
        "run_clustering",
        "run_compaction",
        "run_ttl",
        "show_archived_commits",
        "show_archived_commits_metadata",
        "show_bootstrap_partitions",
        "show_bootstrap_mapping",
        "show_clean_plans",
        "show_cleans",
        "show_cleans_metadata",
        "show_clustering",
        "show_commit_extra_metadata",
        "show_commit_files",
        "show_commit_partitions",
        "show_commit_write_stats",
        "show_commits",
        "show_commits_metadata",
        "show_compaction",
        "show_fsview_all",
        "show_fsview_latest",
        "show_metadata_table_column_stats",
        "show_invalid_parquet",
        "show_metadata_table_files",
        "show_metadata_table_partitions",
        "show_rollback_detail",
        "show_rollbacks",
        "show_savepoints",
        "show_table_properties",
        "show_timeline",
        "stats_file_sizes",
        "stats_wa",
        "truncate_table",
        "upgrade_table",
        "validate_metadata_table_files",
    )
)
"""The procedures that hudi_fast has."""
