import pytest

from hudi_fast.config.properties_file import (
    BACKUP_PATH,
    CHECKSUM_KEY,
    PROPERTIES_PATH,
    UPDATED_PATH,
    create_properties,
    load_properties,
    table_checksum,
    update_properties,
)
from hudi_fast.errors import CommitConflictError, CorruptTableError, TableExistsError, TableNotFoundError
from hudi_fast.storage.base import Storage
from tests.config.stored_properties import stored_properties

PROPS = {"hoodie.table.name": "t", "hoodie.table.version": "9"}


@pytest.fixture
def storage(tmp_path):
    return Storage(tmp_path / "table")


class Crash(OSError):
    pass


class CrashingStorage(Storage):
    """Dies before its n-th change."""

    def __init__(self, uri, changes_left):
        super().__init__(uri)
        self.changes_left = changes_left

    def _count(self):
        if self.changes_left == 0:
            raise Crash("the process died here")
        self.changes_left -= 1

    def write_bytes(self, path, data):
        self._count()
        super().write_bytes(path, data)

    def create_exclusive(self, path, data, *more):
        self._count()
        super().create_exclusive(path, data, *more)

    def delete_file(self, path):
        self._count()
        return super().delete_file(path)


def test_checksums_are_those_of_apache_hudi():
    for name, props in stored_properties().items():
        found = table_checksum(props["hoodie.table.name"], props.get("hoodie.database.name"))
        assert found == props[CHECKSUM_KEY], name


def test_a_new_file_gets_a_checksum_and_is_read_back(storage):
    create_properties(storage, PROPS)
    assert load_properties(storage) == {**PROPS, CHECKSUM_KEY: "498511606"}
    assert storage.read_bytes(PROPERTIES_PATH).startswith(b"#Properties saved on 20")


def test_a_second_creation_leaves_the_first_alone(storage):
    create_properties(storage, PROPS)
    with pytest.raises(TableExistsError, match="already"):
        create_properties(storage, {"hoodie.table.name": "other"})
    assert load_properties(storage)["hoodie.table.name"] == "t"


def test_nothing_there_is_no_table(storage):
    with pytest.raises(TableNotFoundError, match="No Hudi table at"):
        load_properties(storage)


def test_a_creation_that_crashed_is_no_table(storage):
    storage.make_dir(".hoodie/timeline")
    with pytest.raises(TableNotFoundError):
        load_properties(storage)


def test_a_timeline_without_properties_is_corrupt(storage):
    storage.write_bytes(".hoodie/timeline/20260101000000000.commit.requested", b"")
    with pytest.raises(CorruptTableError, match=r"neither hoodie\.properties nor its backup"):
        load_properties(storage)


def test_readers_fall_back_to_the_backup_when_the_checksum_is_wrong(storage):
    create_properties(storage, PROPS)
    good = storage.read_bytes(PROPERTIES_PATH)
    storage.write_bytes(PROPERTIES_PATH, good.replace(b"498511606", b"1"))
    with pytest.raises(CorruptTableError, match="expected 498511606"):
        load_properties(storage)
    storage.write_bytes(BACKUP_PATH, good)
    assert load_properties(storage)[CHECKSUM_KEY] == "498511606"


def test_a_file_without_the_table_name_is_corrupt(storage):
    storage.write_bytes(PROPERTIES_PATH, b"hoodie.table.version=9\n")
    with pytest.raises(CorruptTableError, match=r"lack hoodie\.table\.name"):
        load_properties(storage)


def test_an_old_file_without_checksum_is_read_and_gets_one_when_changed(storage):
    storage.write_bytes(PROPERTIES_PATH, b"hoodie.table.name=t\n")
    assert load_properties(storage) == {"hoodie.table.name": "t"}
    assert update_properties(storage, {"x": "1"}) == {"hoodie.table.name": "t", "x": "1", CHECKSUM_KEY: "498511606"}


def test_an_update_sets_removes_and_keeps(storage):
    create_properties(storage, {**PROPS, "gone": "1", "kept": "é"})
    updated = update_properties(storage, {"gone": None, "new": "2", "never.there": None})
    assert updated == {**PROPS, "kept": "é", "new": "2", CHECKSUM_KEY: "498511606"}
    assert load_properties(storage) == updated
    assert storage.read_bytes(PROPERTIES_PATH).startswith(b"#Updated at 20")
    assert not storage.exists(BACKUP_PATH)


def test_an_update_of_the_name_renews_the_checksum(storage):
    create_properties(storage, PROPS)
    updated = update_properties(storage, {"hoodie.table.name": "tmi", "hoodie.database.name": "default"})
    assert updated[CHECKSUM_KEY] == "3042992476"


def test_an_update_without_change_writes_nothing(storage):
    create_properties(storage, PROPS)
    before = storage.read_bytes(PROPERTIES_PATH)
    update_properties(storage, {"hoodie.table.version": "9", "absent": None})
    assert storage.read_bytes(PROPERTIES_PATH) == before


@pytest.mark.parametrize("changes", range(4))
def test_a_crash_at_any_step_leaves_old_or_new_and_can_be_repeated(storage, changes):
    create_properties(storage, PROPS)
    old, new = load_properties(storage), {**PROPS, CHECKSUM_KEY: "498511606", "key": "value"}
    with pytest.raises(Crash):
        update_properties(CrashingStorage(storage.uri, changes), {"key": "value"})
    assert load_properties(storage) in (old, new)
    assert update_properties(storage, {"key": "value"}) == new
    assert not storage.exists(BACKUP_PATH)


def test_a_broken_backup_beside_a_good_file_is_dropped(storage):
    create_properties(storage, PROPS)
    storage.write_bytes(BACKUP_PATH, b"hoodie.table.name=t\nhoodie.table.checksum=7\n")
    update_properties(storage, {"key": "value"})
    assert load_properties(storage)["key"] == "value"
    assert not storage.exists(BACKUP_PATH)


def test_a_change_that_another_process_began_meanwhile_is_a_conflict(storage):
    create_properties(storage, PROPS)

    class Racing(Storage):
        def create_exclusive(self, path, data, *more):
            super().write_bytes(path, b"the other one")
            super().create_exclusive(path, data, *more)

    with pytest.raises(CommitConflictError, match="Another process"):
        update_properties(Racing(storage.uri), {"key": "value"})


def test_a_backup_without_checksum_is_put_back_only_over_a_broken_file(storage):
    """Tables of versions 2 and 3 have no checksum; release 0.10.1 copies the file to the backup, byte by byte."""
    old, new = b"hoodie.table.name=t\nhoodie.table.version=3\n", b"hoodie.table.name=t\nhoodie.table.version=4\n"
    for main, backup, expected in (
        (None, old, "3"),  # died before it wrote the new file
        (new[:25], old, "3"),  # while it wrote it
        (new, old, "4"),  # before it deleted the backup
        (old, old[:30], "3"),  # while it wrote the backup
        (old, b"", "3"),
    ):
        storage.delete_file(PROPERTIES_PATH)
        if main is not None:
            storage.write_bytes(PROPERTIES_PATH, main)
        storage.write_bytes(BACKUP_PATH, backup)
        assert load_properties(storage)["hoodie.table.version"] == expected
        assert update_properties(storage, {"x": "1"})["hoodie.table.version"] == expected
        assert not storage.exists(BACKUP_PATH)


def test_the_new_properties_of_an_upgrade_that_failed_are_named(storage):
    storage.write_bytes(".hoodie/20210101000000.commit", b"{}")
    storage.write_bytes(UPDATED_PATH, b"hoodie.table.name=t\nhoodie.table.version=2\n")
    with pytest.raises(CorruptTableError, match=r"rename it to hoodie\.properties"):
        load_properties(storage)


@pytest.mark.parametrize("content", [b"", b"\n", b"#Properties saved on 2024-01-01T00:00:00Z\n"])
@pytest.mark.parametrize("name", [PROPERTIES_PATH, BACKUP_PATH])
def test_an_empty_file_is_named_as_empty(storage, content, name):
    storage.write_bytes(name, content)
    with pytest.raises(CorruptTableError, match=r"are empty: .*restore the file.*hoodie\.properties"):
        load_properties(storage)
    other = BACKUP_PATH if name == PROPERTIES_PATH else PROPERTIES_PATH
    storage.write_bytes(other, b"hoodie.table.name=t\n")
    assert load_properties(storage)["hoodie.table.name"] == "t"
