import json
import os
import pty
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_fast.cli.progress import counted

COMMAND = [sys.executable, "-c", "from hudi_fast.cli.main import main; main()"]


def on_a_terminal(*arguments):
    """Run the command line with standard error on a terminal; gives (standard output, what the terminal got)."""
    outer, inner = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen([*COMMAND, *map(str, arguments)], stdout=-1, stderr=inner, env=environment) as process:
        os.close(inner)
        shown = b""
        try:
            while part := os.read(outer, 4096):
                shown += part
        except OSError:  # how Linux says that nobody has the terminal open any more
            pass
        os.close(outer)
        out = process.stdout.read()
    assert process.returncode == 0, shown
    return out.decode(), shown.decode()


@pytest.mark.slow
def test_long_work_shows_itself_on_a_terminal_and_leaves_standard_output_alone(tmp_path):
    pq.write_table(pa.table({"id": range(5000)}), tmp_path / "rows.parquet")
    named = ["-o", "hoodie.table.name=t", "-o", "hoodie.datasource.write.recordkey.field=id"]
    out, shown = on_a_terminal("write", tmp_path / "t", "--input", tmp_path / "rows.parquet", *named, "--json")
    assert json.loads(out)["inserts"] == 5000
    assert "Reading" in shown
    assert "Writing 5,000 rows" in shown
    out, shown = on_a_terminal("read", tmp_path / "t", "--output", tmp_path / "out.csv")
    assert out == f"5,000 rows written to {tmp_path / 'out.csv'}\n"
    assert "5,000 rows" in shown


def test_counting_passes_batches_on_and_reports_their_rows():
    batches = pa.table({"id": range(5)}).to_batches(max_chunksize=2)
    seen = []
    assert list(counted(batches, seen.append)) == batches
    assert seen == [2, 2, 1]
