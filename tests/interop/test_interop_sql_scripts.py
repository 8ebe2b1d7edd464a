"""One SQL script on hudi_fast and on Apache Hudi: the same answers; and one table that both change in turns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hudi_fast as hf
from tests.peer.client import PeerError, RealHudi

TIMES = {"commit_time", "state_transition_time", "timestamp", "instant_time", "total_bytes_written", "avg_record_size"}
"""Columns whose values differ from run to run."""

FIRST_DAY = """
CREATE TABLE {t} (id int, name string, city string, price double, ts bigint) USING hudi
    TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts') PARTITIONED BY (city) LOCATION '{folder}/t'
DESCRIBE {t}
SHOW TBLPROPERTIES {t} ('primaryKey')
INSERT INTO {t} VALUES (1, 'a', 10.0, 1, 'x'), (2, 'b', 20, 1, 'y'), (3, 'c', 30, 1, 'y')
INSERT INTO {t} (id, name, ts, city) VALUES (6, 'f', 1, 'x')
SELECT id, name, price, ts, city FROM {t} ORDER BY id
SELECT _hoodie_record_key, _hoodie_partition_path FROM {t} ORDER BY id
SHOW PARTITIONS {t}
SHOW PARTITIONS {t} PARTITION (city = 'x')
CALL show_commits(table => '{t}', limit => 2)
UPDATE {t} SET price = price * 2, name = upper(name) WHERE id IN (SELECT 2)
DELETE FROM {t} WHERE city = 'x' AND id > 1
MERGE INTO {t} AS a USING (SELECT 2 AS id, 'm' AS name, 5.0D AS price, 9L AS ts, 'y' AS city UNION ALL
    SELECT 8, 'n', 1.0D, 9L, 'z') AS b ON a.id = b.id
    WHEN MATCHED AND b.ts > 3 THEN UPDATE SET price = a.price + b.price, ts = b.ts
    WHEN NOT MATCHED THEN INSERT *
SELECT id, name, price, ts, city FROM {t} ORDER BY id
ALTER TABLE {t} ADD COLUMNS (extra string COMMENT 'c')
INSERT INTO {t} VALUES (9, 'i', 9.0, 1, 'ee', 'x')
WITH dear AS (SELECT * FROM {t} WHERE price > 10)
    SELECT count(*) AS n, max(t.price) AS m FROM {t} t JOIN dear USING (id)
INSERT OVERWRITE TABLE {t} PARTITION (city = 'y') SELECT 10, 'j', 1.0, 2, 'f'
SELECT id, name, price, ts, extra, city FROM {t} ORDER BY id
CALL create_savepoint(table => '{t}')
CALL show_commit_extra_metadata(table => '{t}', metadata_key => 'nothing')
ALTER TABLE {t} DROP PARTITION (city = 'z')
SHOW PARTITIONS {t}
INSERT OVERWRITE {t} SELECT 11, 'k', 1.0, 2, 'g', 'w'
SELECT id, name, price, ts, extra, city FROM {t} ORDER BY id
"""
MERGE_ON_READ = """
CREATE TABLE {t} (id int, price decimal(10,2), ts bigint, tags array<string>, day date) USING hudi
    TBLPROPERTIES (type = 'mor', primaryKey = 'id', preCombineField = 'ts') PARTITIONED BY (day) LOCATION '{folder}/m'
INSERT INTO {t} SELECT id, id * 1.5, 1, array('a'), date_add(DATE '2024-01-01', CAST(id % 2 AS int))
    FROM range(1, 7) AS r(id)
INSERT INTO {t} BY NAME SELECT 20 AS id, 5L AS ts, DATE '2024-01-01' AS day, 91 AS price, array() AS tags
SET hoodie.spark.sql.insert.into.operation=upsert
INSERT INTO {t} VALUES (1, 99.99, 2, array('b', 'c'), DATE '2024-01-02'), (2, 0, 0, NULL, DATE '2024-01-01')
RESET hoodie.spark.sql.insert.into.operation
UPDATE {t} SET price = price + CASE WHEN price > 5 THEN (SELECT 1) ELSE 0.25 END, ts = ts + 1
    WHERE day = DATE '2024-01-01'
SELECT id, price, ts, tags, day FROM {t}
DELETE FROM {t} WHERE id IN (SELECT id FROM {t} WHERE price > 90) OR price IS NULL
MERGE INTO {t} AS target USING (SELECT 3 AS id, 7L AS ts, DATE '2024-01-02' AS day, 'u' AS op
    UNION ALL SELECT 4, 8L, DATE '2024-01-01', 'd'
    UNION ALL SELECT 9, 9L, DATE '2024-01-03', 'i') AS source
    ON target.id = source.id
    WHEN MATCHED AND source.op = 'd' THEN DELETE
    WHEN MATCHED AND source.op = 'u' THEN UPDATE SET ts = source.ts, price = 7.5
    WHEN NOT MATCHED AND source.op = 'i' THEN INSERT (id, ts, day) VALUES (source.id, source.ts, source.day)
SELECT id, price, ts, tags, day FROM {t}
SELECT day, count(*) AS n, sum(price) AS total FROM {t} GROUP BY day HAVING count(*) >= 1
SELECT count(*) AS n FROM hudi_table_changes('{t}', 'latest_state', 'earliest')
CALL run_compaction(op => 'schedule', table => '{t}')
CALL show_compaction(table => '{t}')
CALL run_compaction(op => 'schedule', table => '{t}', options => 'hoodie.compact.inline.max.delta.commits=1')
CALL show_compaction(table => '{t}')
CALL run_compaction(op => 'run', table => '{t}')
CALL show_compaction(table => '{t}')
SELECT id, price FROM {t} TIMESTAMP AS OF '2020-01-01'
SELECT id, price, ts, tags, day FROM {t}
TRUNCATE TABLE {t}
SELECT count(*) AS n FROM {t}
"""
PARTITIONS = """
CREATE TABLE {t} (uuid int, name string COMMENT 'the name', price double, dt string, hh string) USING hudi
    OPTIONS (primaryKey = 'uuid', orderingFields = 'price') COMMENT 'a table' PARTITIONED BY (dt, hh)
    LOCATION '{folder}/p'
INSERT INTO {t} PARTITION (dt = '2024-01-01', hh = '10') SELECT 1, 'a', 10
INSERT INTO {t} PARTITION (dt, hh) SELECT 2, 'b', 20, '2024-01-01' AS dt, '11' AS hh
INSERT INTO {t} PARTITION (dt = '2024-01-02', hh) SELECT 3, 'c', 30, '12'
SELECT uuid, name, price, dt, hh FROM {t}
SHOW PARTITIONS {t}
SHOW PARTITIONS {t} PARTITION (dt = '2024-01-01')
SHOW PARTITIONS {t} PARTITION (dt = '2024-01-01', hh = '11')
INSERT OVERWRITE {t} PARTITION (dt = '2024-01-01', hh) SELECT 7, 'g', 70, '11'
SELECT uuid, name, price, dt, hh FROM {t}
INSERT INTO {t} PARTITION (dt = '2024-01-01', hh = '10') SELECT 1, 'a', 10
SET hoodie.datasource.overwrite.mode = dynamic
INSERT OVERWRITE {t} PARTITION (dt = '2024-01-01', hh) SELECT 8, 'h', 80, '11'
SELECT uuid, name, price, dt, hh FROM {t}
RESET hoodie.datasource.overwrite.mode
"""
DEFINITIONS = """
CREATE TABLE {t} (uuid int, name string COMMENT 'the name', price double, dt string, hh string) USING hudi
    OPTIONS (primaryKey = 'uuid', orderingFields = 'price') COMMENT 'a table' PARTITIONED BY (dt, hh)
    LOCATION '{folder}/d'
INSERT INTO {t} PARTITION (dt, hh) SELECT id, concat('n', id), id, '2024-01-01' AS dt, concat(9 + id) AS hh
    FROM range(1, 3) AS r(id)
SHOW PARTITIONS {t} PARTITION (dt = '2024-01-01')
SHOW PARTITIONS {t} PARTITION (dt = '2024-01-01', hh = '11')
DESCRIBE {t}
ALTER TABLE {t} ADD COLUMNS (remark string COMMENT 'free', place struct<x: int, y: double>)
INSERT INTO {t} VALUES (4, 'd', 40.5, 'none', named_struct('x', 1, 'y', 2.5), '2024-01-02', '12')
SELECT uuid, remark, place.x, place.y FROM {t}
ALTER TABLE {t} SET TBLPROPERTIES (hoodie.keep.max.commits = '40', note = 'x')
SHOW TBLPROPERTIES {t} ('note')
ALTER TABLE {t} UNSET TBLPROPERTIES ('note')
ALTER TABLE {t} RENAME TO {t}_renamed
SELECT count(*) AS n FROM {t}_renamed
ALTER TABLE {t}_renamed RENAME TO {t}
ALTER TABLE {t} DROP PARTITION (dt = '2024-01-01', hh = '10')
SELECT uuid FROM {t}
TRUNCATE TABLE {t} PARTITION (dt = '2024-01-02', hh = '12')
SELECT uuid FROM {t}
CREATE TABLE {t}_like LIKE {t} USING hudi LOCATION '{folder}/l'
INSERT INTO {t}_like VALUES (9, 'z', 1, NULL, NULL, 'x', 'y')
SELECT uuid, name, dt, hh FROM {t}_like
DROP TABLE {t}_like
CREATE VIEW {t}_view AS SELECT uuid, price * 2 AS price FROM {t}
SELECT * FROM {t}_view
DROP VIEW {t}_view
CREATE TABLE {t}_of USING hudi OPTIONS (primaryKey = 'uuid', type = 'mor') PARTITIONED BY (dt) LOCATION '{folder}/o'
    AS SELECT uuid, name, dt FROM {t}
SELECT uuid, name, dt FROM {t}_of
SELECT _hoodie_record_key, _hoodie_partition_path FROM {t}_of
DROP TABLE {t}_of
"""
# One more case of what the scripts above do: of a long row, and of each kind of table.
CHANGES = """
CREATE TABLE {t} (id int, name string, price decimal(10,2), ts bigint, tags array<string>, day date) USING hudi
    TBLPROPERTIES (type = '{kind}', primaryKey = 'id', preCombineField = 'ts') PARTITIONED BY (day)
    LOCATION '{folder}/c'
INSERT INTO {t} SELECT id, concat('n', id), id * 1.5, 1, array('a'), date_add(DATE '2024-01-01', CAST(id % 2 AS int))
    FROM range(1, 7) AS r(id)
SELECT id, name, price, ts, tags, day FROM {t}
INSERT INTO {t} BY NAME SELECT 20 AS id, 5L AS ts, DATE '2024-01-01' AS day, 1 AS price, 'x' AS name, array() AS tags
SET hoodie.spark.sql.insert.into.operation=upsert
INSERT INTO {t} VALUES (1, 'again', 99.99, 2, array('b', 'c'), DATE '2024-01-02'),
    (2, 'late', 0, 0, NULL, DATE '2024-01-01')
RESET hoodie.spark.sql.insert.into.operation
SELECT id, name, price, ts, tags, day FROM {t}
UPDATE {t} SET name = CASE WHEN price > 5 THEN 'dear' ELSE lower(name) END, ts = ts + 1 WHERE day = DATE '2024-01-01'
UPDATE {t} SET price = price + (SELECT 1)
DELETE FROM {t} WHERE id IN (SELECT id FROM {t} WHERE price > 90) OR name IS NULL
SELECT id, name, price, ts, tags, day FROM {t}
MERGE INTO {t} AS target USING (SELECT 3 AS id, 'm' AS name, 7L AS ts, DATE '2024-01-02' AS day, 'u' AS op
    UNION ALL SELECT 4, 'gone', 8L, DATE '2024-01-01', 'd'
    UNION ALL SELECT 9, 'new', 9L, DATE '2024-01-03', 'i') AS source
    ON target.id = source.id
    WHEN MATCHED AND source.op = 'd' THEN DELETE
    WHEN MATCHED AND source.op = 'u' THEN UPDATE SET name = source.name, ts = source.ts, price = 7.5
    WHEN NOT MATCHED AND source.op = 'i'
    THEN INSERT (id, name, ts, day) VALUES (source.id, source.name, source.ts, source.day)
SELECT id, name, price, ts, tags, day FROM {t}
INSERT OVERWRITE {t} PARTITION (day) SELECT 30, 'o', 3, 1, NULL, DATE '2024-01-03'
SELECT id, name, price, ts, tags, day FROM {t}
WITH some AS (SELECT * FROM {t} WHERE id < 10) SELECT s.id, t.name FROM some s JOIN {t} t ON s.id = t.id AND t.price > 1
SELECT day, count(*) AS n, sum(price) AS total FROM {t} GROUP BY day HAVING count(*) >= 1
SELECT count(*) AS n FROM hudi_table_changes('{t}', 'latest_state', 'earliest')
INSERT OVERWRITE {t} VALUES (40, 'all', 4, 1, NULL, DATE '2024-01-04')
SELECT id, name, price, ts, tags, day FROM {t}
CALL show_commits(table => '{t}', limit => 3)
CALL show_commits_metadata(table => '{t}', limit => 0)
"""
WITHOUT_KEY = """
CREATE TABLE {t} USING hudi LOCATION '{folder}/k' AS SELECT 1 AS a, 'x' AS b
INSERT INTO {t} VALUES (1, 'x')
SELECT a, b FROM {t}
DESCRIBE {t}
"""


SHOWN = """
show_rollbacks(table => '{t}')
show_rollback_detail(table => '{t}', instant_time => '{rollback}')
show_archived_commits(table => '{t}')
show_archived_commits(table => '{t}', start_ts => '2020', end_ts => '2100', limit => 2)
show_archived_commits_metadata(table => '{t}', start_ts => '2020', end_ts => '2100')
show_clean_plans(table => '{t}')
show_cleans_metadata(table => '{t}')
show_cleans(table => '{t}')
show_fsview_all(table => '{t}', limit => 50)
show_fsview_all(table => '{t}', path_regex => 'city=x')
show_fsview_latest(table => '{t}', partition_path => 'city=x')
show_metadata_table_partitions(table => '{t}')
show_metadata_table_files(table => '{t}')
show_metadata_table_files(table => '{t}', partition => 'city=y')
show_metadata_table_column_stats(table => '{t}')
show_metadata_table_column_stats(table => '{t}', targetColumns => 'id,name,ts')
show_metadata_table_column_stats(table => '{t}', targetColumns => 'name', partition => 'city=y')
commits_compare(table => '{t}', path => '{folder}/t')
stats_file_sizes(table => '{t}')
stats_wa(table => '{t}')
show_invalid_parquet(path => '{folder}/t')
show_commits(table => '{t}')
show_commits_metadata(table => '{t}')
show_compaction(table => '{t}')
show_savepoints(table => '{t}')
"""
"""Procedures that show what Apache Hudi wrote."""


@pytest.fixture
def fast(spark: Any) -> Iterator[Any]:
    session = spark.newSession()
    hf.accelerate(session)
    yield session
    for one in session.catalog.listTables():
        if one.name.startswith("script_"):
            session.sql(f"DROP TABLE IF EXISTS {one.name}")
    hf.accelerate(session, False)


@pytest.fixture(scope="module")
def empty_tables(spark: Any, hudi_12: RealHudi, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a table of each side that refuses every statement, and so is the same for each of them."""
    yield tmp_path_factory.mktemp("refused")
    hudi_12.sql("DROP TABLE IF EXISTS refused")
    session = spark.newSession()
    hf.accelerate(session)
    session.sql("DROP TABLE IF EXISTS refused")
    hf.accelerate(session, False)


def statements(script: str) -> list[str]:
    """One statement for each line that is not indented, with the indented lines after it."""
    return [one for one in script.strip().replace("\n    ", " ").split("\n") if one]


def ours(session: Any, statement: str) -> list[tuple[Any, ...]]:
    found = session.sql(statement)
    kept = [name for name in found.columns if name not in TIMES]
    return sorted((tuple(row[name] for name in kept) for row in found.collect()), key=str)


def rounded(row: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(round(value, 6) if isinstance(value, float) else value for value in row)


def theirs(hudi: RealHudi, statement: str) -> list[tuple[Any, ...]]:
    found = hudi.sql(statement)
    kept = [at for at, name in enumerate(found.column_names) if name not in TIMES]
    rows = zip(*(found.column(at).to_pylist() for at in kept), strict=True) if kept else []
    return sorted((tuple(row) for row in rows), key=str)


@pytest.mark.long("first_day", "mor")
@pytest.mark.spark
@pytest.mark.parametrize(
    "script",
    [
        pytest.param(FIRST_DAY, id="first_day"),
        pytest.param(MERGE_ON_READ, id="mor"),
        pytest.param(WITHOUT_KEY, id="without_key"),
        pytest.param(DEFINITIONS, id="definitions"),
        pytest.param(PARTITIONS, id="partitions", marks=pytest.mark.long),
        pytest.param(CHANGES.replace("{kind}", "cow"), id="changes_cow", marks=pytest.mark.long),
        pytest.param(CHANGES.replace("{kind}", "mor"), id="changes_mor", marks=pytest.mark.long),
    ],
)
@pytest.mark.timeout(600)
def test_a_script_has_the_same_answers(fast: Any, hudi_12: RealHudi, tmp_path: Path, script: str) -> None:
    name = f"script_{abs(hash(str(tmp_path))) % 10**8}"
    hudi_12.sql("SET hoodie.metadata.enable = false")  # half of Hudi's time, and no part of an answer
    try:
        for statement in statements(script):
            here = ours(fast, statement.format(t=name, folder=tmp_path / "ours"))
            there = theirs(hudi_12, statement.format(t=name, folder=tmp_path / "theirs"))
            assert here == there, statement
        hudi_12.sql(f"DROP TABLE {name}")
    finally:
        hudi_12.sql("RESET hoodie.metadata.enable")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("creator", "kind"),
    [
        ("ours", "mor"),
        pytest.param("theirs", "cow", marks=pytest.mark.long),
        pytest.param("ours", "cow", marks=pytest.mark.long),
        pytest.param("theirs", "mor", marks=pytest.mark.long),
    ],
)
@pytest.mark.timeout(600)
def test_a_table_is_changed_by_sql_of_both_in_turns(
    fast: Any, hudi_12: RealHudi, tmp_path: Path, kind: str, creator: str
) -> None:
    name = f"script_turns_{kind}_{creator}"
    made = "(id int, name string, ts bigint, city string) USING hudi PARTITIONED BY (city) "
    made += f"TBLPROPERTIES (type = '{kind}', primaryKey = 'id', preCombineField = 'ts') LOCATION '{tmp_path}/t'"
    known = f"CREATE TABLE {name} USING hudi LOCATION '{tmp_path}/t'"
    if creator == "ours":
        fast.sql(f"CREATE TABLE {name} {made}")
        hudi_12.sql(known)
    else:
        hudi_12.sql(f"CREATE TABLE {name} {made}")
        fast.sql(known)
    changes = [
        "INSERT INTO {t} VALUES (1, 'a', 1, 'x'), (2, 'b', 1, 'y'), (3, 'c', 1, 'y')",
        "UPDATE {t} SET name = concat(name, '!'), ts = ts + 1 WHERE city = 'y'",
        "MERGE INTO {t} t USING "
        "(SELECT 3 AS id, 'd' AS name, 5L AS ts, 'y' AS city UNION ALL SELECT 4, 'e', 5L, 'z') s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        "DELETE FROM {t} WHERE id = 1",
        "INSERT INTO {t} VALUES (7, 'g', 1, 'x')",
        "INSERT OVERWRITE {t} PARTITION (city = 'z') SELECT 9, 'z', 1",
    ]
    for at, change in enumerate(changes):
        (fast.sql if at % 2 else hudi_12.sql)(change.format(t=name))
        if at % 2:  # the statement before it was Apache Hudi's
            query = f"SELECT * FROM {name}"
            assert ours(fast, query) == theirs(hudi_12, query), change
    assert [row[-4:] for row in ours(fast, f"SELECT id, name, ts, city FROM {name} ORDER BY id")] == [
        (2, "b!", 2, "y"),
        (3, "d", 5, "y"),
        (7, "g", 1, "x"),
        (9, "z", 1, "z"),
    ]
    hudi_12.sql(f"DROP TABLE {name}")


@pytest.mark.spark
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO {t} VALUES (1, 'abc')",
        "INSERT INTO {t} VALUES (1, 2.0, 3)",
        "UPDATE {t} SET nope = 1",
        "UPDATE {t} SET id = 5",
        "CREATE TABLE {t} (id int) USING hudi",
        "CALL run_compaction(op => 'schedule', table => '{t}')",
        "CALL show_commit_files(table => '{t}', instant_time => 'x')",
        "DROP INDEX nothing ON {t}",
        "SELECT * FROM nothing",
        "CALL show_commits(tabel => '{t}')",
    ],
)
def test_what_apache_hudi_refuses_is_refused(fast: Any, hudi_12: RealHudi, empty_tables: Path, statement: str) -> None:
    for run, folder in ((fast.sql, "ours"), (hudi_12.sql, "theirs")):
        made = "(id int, price double) USING hudi TBLPROPERTIES (primaryKey = 'id')"
        run(f"CREATE TABLE IF NOT EXISTS refused {made} LOCATION '{empty_tables}/{folder}'")
    with pytest.raises(PeerError):
        hudi_12.sql(statement.format(t="refused"))
    with pytest.raises(Exception) as caught:  # noqa: PT011 - Spark's own for names that it does not know
        fast.sql(statement.format(t="refused")).collect()
    assert str(caught.value)
    assert fast.sql("SELECT * FROM refused").collect() == []


@pytest.mark.spark
@pytest.mark.parametrize("kind", [pytest.param("cow", marks=pytest.mark.long), "mor"])
@pytest.mark.timeout(600)
def test_procedures_show_the_same_of_a_table_of_apache_hudi(
    fast: Any, hudi_12: RealHudi, tmp_path: Path, kind: str
) -> None:
    name = f"script_shown_{kind}"
    made = "(id int, name string, ts bigint, city string) USING hudi PARTITIONED BY (city) "
    made += f"TBLPROPERTIES (type = '{kind}', primaryKey = 'id', preCombineField = 'ts') LOCATION '{tmp_path}/t'"
    hudi_12.sql(f"CREATE TABLE {name} {made}")
    settings = {
        "hoodie.keep.min.commits": 4,
        "hoodie.keep.max.commits": 5,
        "hoodie.clean.commits.retained": 2,
        "hoodie.compact.inline.max.delta.commits": 4,
    }
    for key, value in settings.items():
        hudi_12.sql(f"SET {key}={value}")
    try:
        hudi_12.sql(f"INSERT INTO {name} VALUES (1, 'a', 1, 'x'), (2, 'b', 1, 'y'), (3, 'c', 1, 'y')")
        for number in range(7):
            hudi_12.sql(f"UPDATE {name} SET name = '{number}', ts = ts + 1 WHERE city = '{'xy'[number % 2]}'")
        if kind == "mor":
            newest = hudi_12.sql(f"CALL show_commits(table => '{name}', limit => 1)").to_pylist()[0]["commit_time"]
            hudi_12.sql(f"CALL rollback_to_instant(table => '{name}', instant_time => '{newest}')")
    finally:
        for key in settings:
            hudi_12.sql(f"RESET {key}")
    fast.sql(f"CREATE TABLE {name} USING hudi LOCATION '{tmp_path}/t'")
    rollbacks = hudi_12.sql(f"CALL show_rollbacks(table => '{name}')").to_pylist()
    assert len(rollbacks) == (kind == "mor")
    for call in filter(None, SHOWN.split("\n")):
        if kind == "cow" and ("{rollback}" in call or "compaction" in call):
            continue
        rollback = rollbacks[0]["instant"] if rollbacks else ""
        text = "CALL " + call.format(t=name, folder=tmp_path, rollback=rollback)
        here = sorted((rounded(row) for row in fast.sql(text).collect()), key=str)
        there = sorted((rounded(row.values()) for row in hudi_12.sql(text).to_pylist()), key=str)
        assert here == there, text
    files = f"SELECT * FROM hudi_filesystem_view('{name}', 'city=y')"
    assert ours(fast, files) == theirs(hudi_12, files)
    copies = [tmp_path / "ours", tmp_path / "theirs"]
    for folder, run in zip(copies, (fast.sql, hudi_12.sql), strict=True):
        folder.mkdir()
        run(f"CALL export_instants(table => '{name}', local_folder => '{folder}')")
    here, there = ({one.name: one.read_bytes() for one in folder.glob("2*commit")} for folder in copies)
    assert {name: here.get(name) for name in there} == there
    hudi_12.sql(f"DROP TABLE {name}")
