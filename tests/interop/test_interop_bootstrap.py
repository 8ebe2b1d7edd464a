"""Bootstrapped tables of both sides, written to in turns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from tests.peer.client import RealHudi
from tests.support.bootstrap_services import CASES, Boot, boot
from tests.support.bootstrap_tables import BY_REGEX, bootstrap_options, changed, data, make_source, unpack
from tests.support.rows import assert_same_rows

W = "hoodie.datasource.write."
SMALL = {
    f"hoodie.{name}.parallelism": 2
    for name in ("upsert.shuffle", "insert.shuffle", "delete.shuffle", "bulkinsert.shuffle", "bloom.index")
}


def peer_options(table: hf.HudiTable, hudi: RealHudi) -> dict[str, Any]:
    config = table.config
    options = {
        **bootstrap_options(),
        **SMALL,
        f"{W}partitionpath.field": ",".join(config.partition_fields),
        f"{W}hive_style_partitioning": config.hive_style,
        f"{W}table.type": config.table_type,
    }
    if not config.partition_fields:
        options[f"{W}keygenerator.class"] = "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
    if not hudi.version.startswith("0."):
        options |= {"hoodie.write.auto.upgrade": False, "hoodie.write.table.version": config.version}
        options["hoodie.write.complex.keygen.validation.enable"] = False
    return options


def take_turns(table: hf.HudiTable, hudi: RealHudi) -> None:
    """Either side changes and deletes rows, and both read the same after each step."""
    options = peer_options(table, hudi)

    def agree(expected: int) -> pa.Table:
        found = table.to_arrow()
        assert_same_rows(found, hudi.read(table.path), ignore=())
        assert found.num_rows == expected
        return data(found)

    count = table.to_arrow([]).num_rows
    rows = agree(count)
    hudi.write(changed(rows.slice(0, 3), note="theirs"), table.path, options)
    rows = agree(count)
    assert rows.column("note").to_pylist().count("theirs") == 3
    table.upsert(changed(rows.slice(30, 4), 200, "ours"))
    rows = agree(count)
    assert rows.column("note").to_pylist().count("ours") == 4
    table.delete(rows.slice(30, 1))
    agree(count - 1)
    hudi.write(rows.slice(31, 1), table.path, {**options, f"{W}operation": "delete"})
    agree(count - 2)
    if table.config.is_mor:
        table.services.compact()
        agree(count - 2)
    table.services.cluster()
    agree(count - 2)
    assert table.services.validate().ok


def ours(folder: Path, style: str, version: int, **more: Any) -> hf.HudiTable:
    rows = data(make_source(folder / "source", style))
    options = bootstrap_options(**more, hoodie__write__table__version=version)
    hf.bootstrap(folder / "source", folder / "t", options)
    table = hf.HudiTable.open(folder / "t")
    assert data(table.to_arrow()).equals(rows)
    return table


@pytest.mark.smoke
def test_hudi_goes_on_with_a_table_that_we_bootstrapped(hudi_12: RealHudi, tmp_path: Path) -> None:
    more = {f"{W}table.type": "MERGE_ON_READ", **BY_REGEX}
    take_turns(ours(tmp_path, "hive", 9, **more), hudi_12)


@pytest.mark.long
@pytest.mark.parametrize("version", [9, 6])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("style", ["hive", "number", "two", "none"])
def test_hudi_goes_on_with_tables_of_every_kind(
    hudi_12: RealHudi, style: str, kind: str, version: int, tmp_path: Path
) -> None:
    take_turns(ours(tmp_path, style, version, **{f"{W}table.type": kind}), hudi_12)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("style", ["hive", "none"])
def test_hudi_0_15_goes_on_with_ours(hudi_015: RealHudi, style: str, kind: str, tmp_path: Path) -> None:
    take_turns(ours(tmp_path, style, 6, **{f"{W}table.type": kind}), hudi_015)


@pytest.mark.long
def test_we_go_on_with_a_table_that_hudi_bootstrapped(hudi_12: RealHudi, tmp_path: Path) -> None:
    """Hudi does not look where a folder was moved to, so it reads no more once we have made whole files of all."""
    real = unpack("bootstrapped_v9", tmp_path)
    table = real.table
    rows = data(table.to_arrow())
    table.upsert(changed(rows.slice(0, 3)))
    table.services.cluster()
    found = table.to_arrow()
    assert data(found).column("note").to_pylist().count("changed") == 3
    assert_same_rows(found, hudi_12.read(real.path), ignore=())


QUICK = ("archive", "compact_logs", "restore", "truncate")
LEFT_OUT = {("cow", "index"), ("cow", "change_version"), ("mor6", "change_version")}
"""Cases in which Hudi writes partition statistics without those of bootstrapped files."""


@pytest.mark.parametrize(
    ("kind", "service"),
    [
        pytest.param(
            kind,
            service,
            id=f"{kind}-{service.__name__}",
            marks=() if kind == "mixed" and service.__name__ in QUICK else pytest.mark.long,
        )
        for kind, service in CASES
        if kind in ("cow", "mixed", "mor6")
    ],
)
def test_hudi_reads_and_writes_a_bootstrapped_table_after_each_service(
    hudi_12: RealHudi, kind: str, service: Callable[[Boot], None], tmp_path: Path
) -> None:
    made = boot(tmp_path, kind)
    service(made)
    made.check()
    found = made.table.to_arrow()
    assert_same_rows(found, hudi_12.read(made.table.path), ignore=())
    if not found.num_rows:
        return
    hudi_12.write(changed(data(found).slice(0, 2), 500, "theirs"), made.table.path, peer_options(made.table, hudi_12))
    after = made.table.to_arrow()
    assert after.num_rows == found.num_rows
    assert after["note"].to_pylist().count("theirs") == 2
    assert_same_rows(after, hudi_12.read(made.table.path), ignore=())
    assert made.table.to_arrow(["id"], filter="id >= 'k0050'").num_rows == sum(
        key >= "k0050" for key in after["id"].to_pylist()
    )
    wrong = set(made.services.validate().differences["partition"].to_pylist())
    assert wrong == ({"partition_stats"} if (kind, service.__name__) in LEFT_OUT else set())
