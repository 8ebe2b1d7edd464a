"""The commands `services` and `upgrade`."""

import hudi_fast as hf
from tests.cli.answers import QUIET, SMALL, answer, answers
from tests.support.mor_tables import mor_options
from tests.support.small_tables import listing, options, plain_rows, table_rows


def test_whatever_waits_is_carried_out_at_once(run, tmp_path):
    settings = mor_options({**QUIET, "hoodie.metadata.enable": "false"})
    for ts in range(3):
        hf.write(plain_rows(range(4), ts=ts), tmp_path / "t", settings)
    planned = answer(run, "compact", tmp_path / "t", "--plan-only", *SMALL)
    (done,) = answers(run, "services", tmp_path / "t", "--run", *SMALL)
    assert (done["service"], done["instant"]) == ("compact", planned["instant"])
    assert answers(run, "services", tmp_path / "t", "--run", *SMALL) == []
    assert "No pending service" in run("services", tmp_path / "t", "--run", *SMALL)[1]


def test_an_upgrade_is_shown_step_by_step(run, tmp_path):
    settings = {**options(table_version="8"), **QUIET, "hoodie.metadata.enable": "false"}
    hf.write(plain_rows(range(4)), tmp_path / "t", settings)
    rows, before = table_rows(tmp_path / "t"), listing(tmp_path / "t")
    plan = answer(run, "upgrade", tmp_path / "t", "9", "--dry-run", *SMALL)
    assert (plan["before"], plan["after"], plan["plan"][0]["step"]) == (8, 9, 1)
    assert listing(tmp_path / "t") == before
    done = answer(run, "upgrade", tmp_path / "t", "9", *SMALL)
    assert (done["before"], done["after"], len(done["steps"])) == (8, 9, len(plan["plan"]))
    assert "has version 9" in run("upgrade", tmp_path / "t", "9", *SMALL)[1]
    assert table_rows(tmp_path / "t") == rows
