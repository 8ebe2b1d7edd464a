"""The commands `compact --logs` and `cluster`."""

import hudi_fast as hf
from tests.cli.answers import QUIET, SMALL, answer
from tests.support.mor_tables import mor_options
from tests.support.small_tables import listing, options, plain_rows, table_rows


def test_log_files_are_merged_among_themselves(run, tmp_path):
    settings = mor_options({**QUIET, "hoodie.metadata.enable": "false"})
    for ts in range(4):
        hf.write(plain_rows(range(4), ts=ts), tmp_path / "t", settings)
    rows, few = table_rows(tmp_path / "t"), ["-o", "hoodie.log.compaction.blocks.threshold=2"]
    done = answer(run, "compact", tmp_path / "t", "--logs", *few, *SMALL)
    assert (done["operation"], done["file_groups"]) == ("compact_logs", 2)
    assert table_rows(tmp_path / "t") == rows


def test_clustering_is_shown_planned_and_carried_out(run, tmp_path):
    settings = {**options(), **QUIET, "hoodie.metadata.enable": "false", "hoodie.parquet.small.file.limit": "0"}
    for start in (0, 4, 8):
        rows = plain_rows(range(start, start + 4), partitions=1)
        hf.write(rows, tmp_path / "t", {**settings, "hoodie.datasource.write.operation": "insert"})
    rows, before = table_rows(tmp_path / "t"), listing(tmp_path / "t")
    shown = answer(run, "cluster", tmp_path / "t", "--dry-run", *SMALL)
    assert (shown["file_groups"], len(shown["plan"])) == (3, 3)
    assert "Would be rewritten (3)" in run("cluster", tmp_path / "t", "--dry-run", *SMALL)[1]
    assert listing(tmp_path / "t") == before
    planned = answer(run, "cluster", tmp_path / "t", "--plan-only", *SMALL)
    done = answer(run, "cluster", tmp_path / "t", "--run-pending", *SMALL)
    assert (done["instant"], done["file_groups"], done["files_written"]) == (planned["instant"], 3, 1)
    assert table_rows(tmp_path / "t") == rows
