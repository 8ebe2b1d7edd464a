"""Catalogs after a write, and as a call of the table's services.

Modules: hudi_fast.services.inline.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from hudi_fast.errors import CatalogError, HudiWarning
from tests.catalogs.conftest import HIVE, rides, trip_options
from tests.servers.hive_entries import entries_at

NOWHERE = "thrift://127.0.0.1:1"


def synced_options(uri: str, database: str, **more: Any) -> dict[str, Any]:
    given = {f"{HIVE}enable": "true", f"{HIVE}metastore.uris": uri, f"{HIVE}database": database}
    return {**trip_options(), **given, **{HIVE + name: value for name, value in more.items()}}


def test_write_syncs_its_catalog(tmp_path: Path, hive_metastore: Any) -> None:
    options = synced_options(hive_metastore.uri, "after_write")
    hf.write(rides(("a", "Oslo")), tmp_path, options)
    last = hf.write(rides(("b", "Rome")), tmp_path, options)
    entries = entries_at(hive_metastore.port, "after_write")
    assert [one["values"] for one in entries["trips"]["partitions"]] == [["Oslo"], ["Rome"]]
    assert entries["trips"]["table"]["parameters"]["last_commit_time_sync"] == last.instant


def test_failed_sync_leaves_the_write_committed(tmp_path: Path) -> None:
    with pytest.raises(
        hf.PostCommitError, match=r"is committed; a service after it failed\. sync: .*did not answer"
    ) as caught:
        hf.write(rides(("a", "Oslo")), tmp_path, synced_options(NOWHERE, "d"))
    assert hf.HudiTable.open(tmp_path).to_arrow().num_rows == 1
    instant = hf.HudiTable.open(tmp_path).history()["instant"][0].as_py()
    assert caught.value.instant == instant
    assert caught.value.services == ("sync",)
    assert isinstance(caught.value.__cause__, CatalogError)


def test_failed_sync_may_be_a_warning(tmp_path: Path) -> None:
    options = synced_options(NOWHERE, "d", ignore_exceptions="true")
    with pytest.warns(HudiWarning, match=r"is committed; a service after it failed\. sync: The Hive metastore at"):
        hf.write(rides(("a", "Oslo")), tmp_path, options)


def test_sync_that_was_left_out_is_made_up_for(tmp_path: Path, hive_metastore: Any) -> None:
    options = synced_options(hive_metastore.uri, "made_up")
    hf.write(rides(("a", "Oslo")), tmp_path, options)
    with pytest.raises(hf.PostCommitError):
        hf.write(rides(("b", "Rome")), tmp_path, {**options, f"{HIVE}metastore.uris": NOWHERE})
    hf.write(rides(("c", "Lima")), tmp_path, options)
    entries = entries_at(hive_metastore.port, "made_up")
    assert [one["values"] for one in entries["trips"]["partitions"]] == [["Lima"], ["Oslo"], ["Rome"]]


def test_merge_and_delete_sync_too(tmp_path: Path, hive_metastore: Any) -> None:
    options = synced_options(hive_metastore.uri, "merged")
    hf.write(rides(("a", "Oslo")), tmp_path, trip_options())
    hf.merge(None, tmp_path, rides(("b", "Rome")), options).on("id").when_not_matched_insert().execute()
    entries = entries_at(hive_metastore.port, "merged")
    assert [one["values"] for one in entries["trips"]["partitions"]] == [["Oslo"], ["Rome"]]


def test_catalog_without_an_address_is_refused_before_the_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HIVE_CONF_DIR", raising=False)
    with pytest.raises(hf.ConfigError, match=r"needs hoodie\.datasource\.hive_sync\.metastore\.uris"):
        hf.write(rides(("a", "Oslo")), tmp_path / "t", {**trip_options(), f"{HIVE}enable": "true"})
    assert not (tmp_path / "t").exists()
