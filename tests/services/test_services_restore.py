"""Tables that are taken back to a savepoint."""

from __future__ import annotations

from pathlib import Path

import pytest
from metadata_truth import assert_metadata_true
from mor_tables import VERSIONS
from small_tables import assert_tidy, plain_rows, table_rows
from test_services_rollback import TYPES, services, settings_of

import hudi_fast as hf


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", TYPES)
def test_everything_since_the_savepoint_is_undone(kind: str, version: str, tmp_path: Path) -> None:
    settings = settings_of(kind, version)
    hf.write(plain_rows(range(8)), tmp_path, settings)
    saved = hf.write(plain_rows(range(2, 4), ts=2, text="b"), tmp_path, settings).instant
    before, indexes = table_rows(tmp_path), assert_metadata_true(tmp_path)
    services(tmp_path).savepoint()
    undone = [hf.write(plain_rows([1, 3, 20], ts=3, text="c"), tmp_path, settings).instant]
    if kind == TYPES[1]:
        undone.append(services(tmp_path).compact(settings).instant)
    deleted = {**settings, "hoodie.datasource.write.operation": "delete"}
    undone.append(hf.write(plain_rows([0, 1], ts=4), tmp_path, deleted).instant)
    overwrite = {**settings, "hoodie.datasource.write.operation": "insert_overwrite"}
    undone.append(hf.write(plain_rows([30, 32], ts=5), tmp_path, overwrite).instant)
    planned = services(tmp_path).plan_restore(saved)
    assert [instant for instant, _ in planned.instants] == undone[::-1]
    result = services(tmp_path).restore(saved, settings, plan=planned)
    assert (result.savepoint, result.rolled_back) == (saved, tuple(undone[::-1]))
    assert table_rows(tmp_path) == before
    assert_tidy(tmp_path)
    assert assert_metadata_true(tmp_path) == indexes
    hf.write(plain_rows([1, 20], ts=6, text="d"), tmp_path, settings)
    assert table_rows(tmp_path) == {**before, "k00001": ("p1", 6, "d1"), "k00020": ("p0", 6, "d20")}
    assert assert_metadata_true(tmp_path) == indexes
