"""The command `sync`."""

from __future__ import annotations

import hudi_fast as hf
from tests.catalogs.conftest import rides, trip_options
from tests.cli.answers import answer, answers


def test_sync_shows_what_it_did(run, tmp_path, hive_metastore):
    hf.write(rides(("a", "Oslo"), ("b", "Rome")), tmp_path / "t", trip_options())
    place = ("--metastore", hive_metastore.uri, "--database", "by_command", "--table", "Journeys")
    (created,) = answers(run, "sync", tmp_path / "t", *place)
    assert (created["name"], created["action"], created["added"]) == ("by_command.Journeys", "created", 2)
    assert answer(run, "sync", tmp_path / "t", *place)["action"] == "unchanged"
    assert answer(run, "sync", tmp_path / "t", "--full", *place)["action"] == "updated"
    code, shown, _ = run("sync", tmp_path / "t", *place)
    assert code == 0
    assert "by_command.Journeys" in shown


def test_metastore_that_is_not_there_is_one_line(run, tmp_path):
    hf.write(rides(("a", "Oslo")), tmp_path / "t", trip_options())
    code, _, error = run("sync", tmp_path / "t", "--metastore", "thrift://127.0.0.1:1")
    assert code == 1
    assert "did not answer get_database" in error.replace("\n", " ")
