"""What notebooks show of a table."""

from __future__ import annotations

import shutil
from html.parser import HTMLParser

import pyarrow as pa
import pytest

import hudi_fast as hf
from tests.support.mor_tables import mor_options
from tests.support.small_tables import options, plain_rows

VOID = {"br"}


class Reader(HTMLParser):
    """Cells of all tables, and whether every element is closed in its order."""

    def __init__(self):
        super().__init__()
        self.open, self.rows, self.texts = [], [], []

    def handle_starttag(self, tag, attrs):
        assert tag not in VOID
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def read(table):
    reader = Reader()
    reader.feed(table._repr_html_())
    assert reader.open == []
    return reader


def test_a_notebook_shows_what_the_table_is_and_what_happened_to_it(tmp_path):
    hf.write(plain_rows(range(6)), tmp_path / "t", mor_options())
    hf.write(plain_rows([0, 2], ts=2), tmp_path / "t", mor_options())
    table = hf.HudiTable.open(tmp_path / "t")
    planned = table.services.schedule_compact()
    rows = read(table).rows
    assert ["type", "MERGE_ON_READ, version 9"] in rows
    assert ["record key", "id"] in rows
    assert ["instants", "3 on the active timeline, 1 pending"] in rows
    (compaction,) = [row for row in rows if row[0] == planned.instant]
    assert compaction[1:3] == ["compaction", "REQUESTED"]
    (update,) = [row for row in rows if row[1] == "deltacommit" and row[6] == "2"]
    assert update[5:9] == ["0", "2", "0", "1"]
    assert {row[0]: (row[1], row[3]) for row in rows if row[0] in ("p0", "p1")} == {"p0": ("1", "1"), "p1": ("1", "0")}


def test_whatever_a_table_is_called_is_text_and_no_markup(tmp_path):
    odd = "<img src=x onerror=alert(1)>&'\""
    rows = plain_rows(range(2), partitions=1).set_column(1, "part", pa.array(["<b>&x"] * 2))
    hf.write(rows, tmp_path / "<i>t", {**options(), "hoodie.table.name": odd})
    html = hf.HudiTable.open(tmp_path / "<i>t")._repr_html_()
    assert "<img" not in html
    assert "<i>" not in html
    assert "<b>&x" not in html
    reader = read(hf.HudiTable.open(tmp_path / "<i>t"))
    assert ["name", odd] in reader.rows
    assert "<b>&x" in [row[0] for row in reader.rows]


@pytest.mark.slow
def test_newest_instants_and_largest_partitions_stand_for_many(tmp_path):
    for number in range(12):
        hf.write(plain_rows(range(number * 2, number * 2 + 2), partitions=24), tmp_path / "t", options())
    rows = read(hf.HudiTable.open(tmp_path / "t")).rows
    assert len([row for row in rows if "COMPLETED" in row]) == 10
    assert [row[:2] for row in rows if row[0].endswith("others")] == [["14 others", "14"]]


def test_an_empty_table_has_no_history_to_show(tmp_path):
    table = hf.HudiTable.create(tmp_path / "t", pa.schema({"id": pa.string()}), {"hoodie.table.name": "t"})
    assert ["last write", "none"] in read(table).rows


def test_a_table_that_is_gone_says_so(tmp_path):
    hf.write(plain_rows(range(2)), tmp_path / "t", options())
    table = hf.HudiTable.open(tmp_path / "t")
    shutil.rmtree(tmp_path / "t")
    assert "No Hudi table at" in "".join(read(table).texts)
