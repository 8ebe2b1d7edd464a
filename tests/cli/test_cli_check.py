"""The command `check`."""

from __future__ import annotations

from tests.cli.answers import lines


def test_options_and_statements_of_files(run, tmp_path):
    (tmp_path / "job.conf").write_text(
        "# a job\nspark.app.name  x\nspark.hoodie.metrics.lock.enable true\nhoodie.table.name = t\n", encoding="utf-8"
    )
    (tmp_path / "job.sql").write_text("SELECT 1; CALL show_file_status(table => 't', file => 'f')", encoding="utf-8")
    place = ("--options", tmp_path / "job.conf", "--sql", tmp_path / "job.sql")
    code, shown, _ = run("check", *place, "--json")
    assert code == 1
    rows = lines(shown)
    assert [(row["name"], row["verdict"]) for row in rows] == [
        ("hoodie.metrics.lock.enable", "missed"),
        ("hoodie.table.name", "honoured"),
        ("SELECT 1", "honoured"),
        ("CALL show_file_status(table => 't', file => 'f')", "refused"),
    ]
    code, shown, _ = run("check", "--option", "hoodie.table.name=t")
    assert code == 0
    assert "honoured" in shown


def test_nothing_to_check_is_wrong_usage(run):
    code, _, error = run("check")
    assert code == 2
    assert "--sql" in error
