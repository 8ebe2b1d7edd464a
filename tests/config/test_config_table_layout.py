import pytest

from hudi_fast.config.new_table import create_table_layout
from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import NewTable, new_table_properties
from hudi_fast.errors import TableExistsError
from hudi_fast.storage.base import Storage


@pytest.mark.parametrize(("version", "layout"), [(6, 1), (8, 2), (9, 2)])
def test_the_folders_of_a_new_table(tmp_path, version, layout):
    storage = Storage(tmp_path / "table")
    props = new_table_properties(NewTable("t", version=version))
    create_table_layout(storage, props, layout)
    folders = {entry.path for entry in storage.list_dir(".hoodie", recursive=True) if entry.is_dir}
    assert {".hoodie/.aux/.bootstrap/.fileids", ".hoodie/.aux/.bootstrap/.partitions"} <= folders
    assert {".hoodie/.temp", ".hoodie/.schema"} <= folders
    assert (".hoodie/timeline/history" in folders) == (layout == 2)
    assert load_properties(storage) == props


def test_a_table_that_is_there_is_left_alone(tmp_path):
    storage = Storage(tmp_path / "table")
    create_table_layout(storage, new_table_properties(NewTable("first")), 2)
    with pytest.raises(TableExistsError):
        create_table_layout(storage, new_table_properties(NewTable("second")), 2)
    assert load_properties(storage)["hoodie.table.name"] == "first"


def test_a_creation_that_crashed_before_the_properties_can_be_repeated(tmp_path):
    storage = Storage(tmp_path / "table")
    storage.make_dir(".hoodie/.aux/.bootstrap/.partitions")
    create_table_layout(storage, new_table_properties(NewTable("t")), 2)
    assert load_properties(storage)["hoodie.table.name"] == "t"
