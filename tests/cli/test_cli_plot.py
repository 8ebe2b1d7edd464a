"""Pictures of tables: what is in them, and that they are files of their kind."""

import json
import subprocess
import sys
from datetime import datetime, timedelta

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.reading.inspecting.history import HISTORY_SCHEMA
from hudi_fast.reading.inspecting.plot import bars_of, draw_history, size_bins
from tests.support.mor_tables import mor_options
from tests.support.small_tables import options, plain_rows

BEGINNINGS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t"
    hf.write(plain_rows(range(6)), path, mor_options())
    hf.write(plain_rows([0, 2], ts=2), path, mor_options())
    hf.HudiTable.open(path).services.schedule_compact()
    return path


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["png", "svg", "pdf", "PNG"])
def test_a_picture_is_a_file_of_the_kind_that_its_name_says(run, table, tmp_path, ending):
    code, out, err = run("history", table, "--plot", tmp_path / f"out.{ending}")
    assert (code, err) == (0, "")
    assert out == f"3 instants drawn to {tmp_path / f'out.{ending}'}\n"
    content = (tmp_path / f"out.{ending}").read_bytes()
    assert content.startswith(BEGINNINGS[ending.lower()])
    assert len(content) > 5_000


@pytest.mark.slow
def test_a_table_draws_itself(table, tmp_path):
    hf.HudiTable(table).plot(tmp_path / "x.svg")
    assert (tmp_path / "x.svg").read_bytes().startswith(BEGINNINGS["svg"])


def test_a_picture_of_an_unknown_kind_is_refused(table):
    for path in ("x.gif", "x"):
        with pytest.raises(hf.ConfigError, match=r"ends with one of \.png, \.svg, \.pdf"):
            hf.HudiTable(table).plot(path)


@pytest.mark.slow
def test_machines_are_told_where_the_picture_is(run, table, tmp_path):
    _, out, _ = run("history", table, "--plot", tmp_path / "x.svg", "--limit", 1, "--json")
    assert json.loads(out) == {"instants": 1, "output": str(tmp_path / "x.svg")}


def test_lanes_are_kinds_of_actions_and_bars_last_from_request_to_completion(table):
    opened = hf.HudiTable.open(table)
    history = opened.history()
    first, second, pending = bars_of(history, "UTC")
    assert [bar.lane for bar in (first, second, pending)] == ["delta commit", "delta commit", "compaction"]
    row = history.to_pylist()[0]
    assert first.begun.strftime("%Y%m%d%H%M%S") == row["instant"][:14]
    assert (first.done - first.begun).total_seconds() * 1000 == pytest.approx(row["duration_ms"], abs=1)
    assert pending.done is None


def test_compactions_and_clusterings_have_lanes_of_their_own(golden):
    lanes = {bar.lane for name in ("mor_v9_compacted", "cow_v9_clustered") for bar in bars(golden, name)}
    assert {"compaction", "clustering", "delta commit", "commit"} <= lanes


def test_a_savepoint_is_a_mark_at_its_completion(golden):
    history = hf.HudiTable.open(golden("cow_v9_savepoint_rollback").table).history()
    (row,) = [row for row in history.to_pylist() if row["action"] == "savepoint"]
    (saved,) = [bar for bar in bars_of(history, "UTC") if bar.lane == "savepoint"]
    assert saved.begun == saved.done
    assert saved.done.strftime("%Y%m%d%H%M%S") == row["completion"][:14]


def bars(golden, name):
    return bars_of(hf.HudiTable.open(golden(name).table).history(), "UTC")


def test_bars_of_a_copied_table_stay_where_its_instants_were(golden):
    found = bars(golden, "h015_cow")
    assert max(bar.done for bar in found) - min(bar.begun for bar in found) < timedelta(hours=1)


def test_times_that_are_no_dates_are_left_out():
    rows = [{"instant": time, "action": "deltacommit", "state": "COMPLETED"} for time in ("00000000000001", "20240229")]
    assert bars_of(pa.Table.from_pylist(rows, HISTORY_SCHEMA), "UTC") == []


@pytest.mark.parametrize(
    ("sizes", "edges"),
    [
        ([], [0.0, 1.0]),
        ([5], [4.0, 8.0]),
        ([4, 8, 9], [4.0, 8.0, 16.0]),
        ([0, 4], [0.0, 4.0, 8.0]),
        ([1], [1.0, 2.0]),
    ],
)
def test_bins_double_and_hold_every_size(sizes, edges):
    assert size_bins(sizes) == edges


def test_there_are_never_too_many_bins():
    edges = size_bins([1, 2**62])
    assert len(edges) <= 26
    assert edges[0] <= 1
    assert edges[-1] > 2**62


@pytest.mark.slow
def test_odd_names_are_drawn_as_text(tmp_path):
    names = ["_hidden", "$x^2$", "a$b", "データ", "x" * 200, "back\\slash"]
    rows = plain_rows(range(6)).set_column(1, "part", pa.array(names))
    settings = {**options(), "hoodie.table.name": "$t_{1}$"}
    hf.write(rows, tmp_path / "t", settings)
    table = hf.HudiTable.open(tmp_path / "t")
    draw_history(str(tmp_path / "x.png"), "$t_{1}$", table.history(), table.files(), "LOCAL")
    assert (tmp_path / "x.png").read_bytes().startswith(BEGINNINGS["png"])


def test_an_empty_table_can_be_drawn(run, tmp_path):
    hf.HudiTable.create(tmp_path / "t", plain_rows([]).schema, options())
    code, out, _ = run("history", tmp_path / "t", "--plot", tmp_path / "x.png")
    assert (code, out.split()[0]) == (0, "0")


@pytest.mark.slow
def test_drawing_leaves_the_state_of_the_library_alone(table, tmp_path):
    code = (
        "import sys; sys.argv[1:] = ['history', sys.argv[1], '--plot', sys.argv[2]]\n"
        "from hudi_fast.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as left:\n    assert left.code == 0\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code, table, tmp_path / "x.png"], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.slow
def test_without_the_extra_an_error_names_it_and_nothing_else_needs_it(table, tmp_path):
    code = "import sys; sys.modules['matplotlib'] = None\nfrom hudi_fast.cli.main import main\nmain()\n"
    command = [sys.executable, "-c", code, "history", str(table)]
    plain = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (plain.returncode, plain.stderr) == (0, "")
    drawn = subprocess.run([*command, "--plot", tmp_path / "x.png"], capture_output=True, text=True, check=False)
    assert (drawn.returncode, drawn.stdout) == (1, "")
    assert drawn.stderr.startswith("Error: Plots need matplotlib")
    assert "pip install 'hudi-fast[plot]'" in drawn.stderr
    assert not (tmp_path / "x.png").exists()


def test_local_times_are_drawn_as_the_timeline_spells_them(table):
    (first, *_) = bars_of(hf.HudiTable.open(table).history(), "LOCAL")
    assert isinstance(first.begun, datetime)
    assert first.begun.strftime("%Y%m%d%H%M%S") == hf.HudiTable.open(table).history()["instant"][0].as_py()[:14]
