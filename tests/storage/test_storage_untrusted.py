"""A table is data: whatever it names, nothing outside its base path is opened, written or deleted."""

from __future__ import annotations

import ast
import contextlib
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from hudi_fast.formats.hfile.reader import HFileReader
from hudi_fast.formats.hfile.writer import encode_hfile
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.plans import CleanPlan, encode_clean_plan
from tests.support.small_tables import options, plain_rows

PACKAGE = Path(hf.__file__).parent
HOSTILE = [
    "../outside",
    "/etc/passwd",
    "a/../../outside",
    "..",
    "a\\..\\..\\outside",
    "p0/nul\0.parquet",
    "p0/" + "n" * 300,
]
REFUSED = hf.CorruptTableError
SECRET = "of another table"

# ---- the boundary


@pytest.mark.parametrize("path", HOSTILE, ids=range(len(HOSTILE)))
def test_every_access_to_a_path_outside_is_refused(path: str, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("as it was")
    storage = Storage(tmp_path / "table")
    storage.write_bytes("inside", b"1")
    calls: list[Callable[[], Any]] = [
        lambda: storage.read_bytes(path),
        lambda: storage.open_input(path),
        lambda: storage.open_output(path),
        lambda: storage.stat(path),
        lambda: storage.exists(path),
        lambda: storage.list_dir(path),
        lambda: storage.write_bytes(path, b"x"),
        lambda: storage.create_exclusive(path, b"x"),
        lambda: storage.make_dir(path),
        lambda: storage.delete_file(path),
        lambda: storage.delete_dir(path),
        lambda: storage.move("inside", path),
        lambda: storage.move(path, "inside"),
        lambda: storage.set_modified(path, 0),
    ]
    for call in calls:
        with pytest.raises(hf.CorruptTableError, match="names a file"):
            call()
    assert (tmp_path / "outside").read_text() == "as it was"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["outside", "table"]
    assert [one.path for one in storage.list_dir("", recursive=True)] == ["inside"]


def test_names_with_dots_and_backslashes_in_them_are_names(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    for name in ("a..b", "...", "p=1..2/f", "a\\b", "ü" * 100):
        storage.write_bytes(name, b"1")
        assert storage.read_bytes(name) == b"1"


# ---- forged tables


def folder_with_table(tmp_path: Path, kind: str, version: str, **more: str) -> Path:
    """``outer/t``, a table whose second partition is ``p0``, and beside it files of those names with other rows."""
    path = tmp_path / "outer" / "t"
    settings = {**options(table_version=version), "hoodie.datasource.write.table.type": kind, **more}
    hf.write(plain_rows(range(10)), path, settings)
    hf.write(plain_rows(range(4), ts=2), path, settings)
    other = tmp_path / "other"
    hf.write(plain_rows(range(0, 10, 2), ts=9, text=SECRET), other, options())
    (stolen,) = (other / "p0").glob("*.parquet")
    for file in (path / "p0").iterdir():
        if file.name.endswith(".parquet"):
            shutil.copy(stolen, path.parent / file.name)
    return path


def forge(path: Path, old: bytes = b"p0", new: bytes = b"..") -> int:
    """Let everything that the table says of one partition name its parent folder; how many files said something."""
    forged = 0
    for file in (path / ".hoodie").rglob("*"):
        if file.is_dir() or file.name == "hoodie.properties":
            continue
        content = file.read_bytes()
        changed = _forged_hfile(content, old, new) if file.suffix == ".hfile" else content.replace(old, new)
        if changed != content:
            file.write_bytes(changed)
            forged += 1
    return forged


def _forged_hfile(content: bytes, old: bytes, new: bytes) -> bytes:
    with HFileReader.open(pa.BufferReader(content), "forged.hfile") as reader:
        parts = list(reader.scan())
        schema = reader.file_info[b"schema" if b"schema" in reader.file_info else "schema"]
    entries = {
        key.as_py().encode() if isinstance(key.as_py(), str) else key.as_py(): value.as_py()
        for keys, values in parts
        for key, value in zip(keys, values, strict=True)
    }
    if not any(old in part for entry in entries.items() for part in entry):
        return content
    forged = sorted((key.replace(old, new), value.replace(old, new)) for key, value in entries.items())
    keys, values = (pa.array(each, pa.binary()) for each in zip(*forged, strict=True))
    text = schema.decode() if isinstance(schema, bytes) else schema
    return b"".join(bytes(part) for part in encode_hfile(keys, values, text))


def snapshot(folder: Path, but: Path) -> dict[str, bytes]:
    """Everything below a folder that is not in the table."""
    files = (Path(at) / name for at, _, names in os.walk(folder) for name in names)
    return {str(file): file.read_bytes() for file in files if not file.is_relative_to(but)}


def use_everything(path: Path, settings: dict[str, str]) -> dict[str, str]:
    """Try all that reads, writes and deletes; what was refused, and rows that came from elsewhere are an error."""
    table = hf.HudiTable.open(path)
    services = table.services
    newest = max(table.history()["instant"].to_pylist())
    acts: dict[str, Callable[[], Any]] = {
        "read": lambda: table.to_arrow(["text"])["text"].to_pylist(),
        "filtered": lambda: table.to_arrow(["text"], pc.field("id") == "k00002")["text"].to_pylist(),
        "time travel": lambda: table.to_arrow(["text"], as_of=newest)["text"].to_pylist(),
        "incremental": lambda: table.incremental(0)["text"].to_pylist(),
        "files": table.files,
        "validate": services.validate,
        "repair": lambda: services.repair(),
        "upsert": lambda: table.upsert(plain_rows(range(4), ts=5), settings),
        "replace": lambda: table.insert_overwrite(plain_rows([2], ts=6), settings),
        "compact": lambda: services.compact(options=settings),
        "cluster": lambda: services.cluster(options=settings),
        "clean": lambda: services.clean(options={**settings, "hoodie.clean.commits.retained": "1"}),
        "rollback": lambda: services.rollback(newest),
        "archive": lambda: services.archive(options=settings),
    }
    refused = {}
    for name, act in acts.items():
        try:
            answer = act()
        except hf.HudiError as error:
            refused[name] = f"{type(error).__name__}: {error}"
            continue
        assert not isinstance(answer, list) or not any(SECRET in text for text in answer), name
    return refused


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::hudi_fast.HudiWarning")
@pytest.mark.parametrize(
    ("kind", "version"),
    [
        pytest.param("COPY_ON_WRITE", "6", marks=pytest.mark.long),
        ("MERGE_ON_READ", "9"),
        pytest.param("COPY_ON_WRITE", "9", marks=pytest.mark.long),
        pytest.param("MERGE_ON_READ", "6", marks=pytest.mark.long),
    ],
)
def test_a_forged_timeline_touches_nothing_outside(kind: str, version: str, tmp_path: Path) -> None:
    settings = {**options(table_version=version), "hoodie.metadata.enable": "false"}
    path = folder_with_table(tmp_path, kind, version, **settings)
    assert forge(path) >= 2
    before = snapshot(tmp_path / "outer", path)
    refused = use_everything(path, settings)
    assert snapshot(tmp_path / "outer", path) == before
    assert "rollback" in refused


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::hudi_fast.HudiWarning")
def test_a_forged_metadata_table_touches_nothing_outside(tmp_path: Path) -> None:
    indexed = {
        "hoodie.metadata.compact.max.delta.commits": "1",
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
    }
    settings = {**options(), **indexed}
    path = folder_with_table(tmp_path, "COPY_ON_WRITE", "9", **settings)
    assert forge(path) >= 4
    before = snapshot(tmp_path / "outer", path)
    refused = use_everything(path, settings)
    assert snapshot(tmp_path / "outer", path) == before
    assert "names a file '../" in refused["read"]


@pytest.mark.slow(but="p0/../../../outside")
@pytest.mark.parametrize("line", ["../../outside", "/etc/outside", "p0/../../../outside"])
def test_a_forged_marker_deletes_nothing_outside(line: str, tmp_path: Path) -> None:
    settings = {**options(), "hoodie.metadata.enable": "false"}
    path = folder_with_table(tmp_path, "COPY_ON_WRITE", "9")
    pending = "20300101000000000"
    (path / f".hoodie/timeline/{pending}.commit.requested").write_bytes(b"")
    (path / f".hoodie/timeline/{pending}.inflight").write_bytes(b"")
    markers = path / ".hoodie/.temp" / pending
    markers.mkdir(parents=True)
    (markers / "MARKERS.type").write_text("TIMELINE_SERVER_BASED")
    (markers / "MARKERS0").write_text(f"{line}.marker.CREATE\n")
    before = snapshot(tmp_path, path)
    with pytest.raises(REFUSED, match="outside"):
        hf.write(plain_rows([1]), path, settings)
    assert snapshot(tmp_path, path) == before


@pytest.mark.slow(but="../victim")
@pytest.mark.filterwarnings("ignore::hudi_fast.HudiWarning")
@pytest.mark.parametrize("named", ["../victim", "p0/../../victim", "/{outer}/victim", "file:/{outer}/victim"])
def test_a_forged_clean_plan_deletes_nothing_outside(named: str, tmp_path: Path) -> None:
    settings = {**options(), "hoodie.metadata.enable": "false"}
    path = folder_with_table(tmp_path, "COPY_ON_WRITE", "9")
    victim = path.parent / "victim"
    victim.write_text("as it was")
    named = named.format(outer=str(path.parent).lstrip("/"))
    newest = max(hf.HudiTable.open(path).history()["instant"].to_pylist())
    requested = "20300101000000000"
    files = {"..": (named,), "p0": (named,)}
    plan = CleanPlan("KEEP_LATEST_COMMITS", newest, "commit", newest, files, ("..",))
    (path / f".hoodie/timeline/{requested}.clean.requested").write_bytes(encode_clean_plan(plan))
    with contextlib.suppress(REFUSED):
        hf.HudiTable.open(path).services.clean(options=settings)
    assert victim.read_text() == "as it was"


@pytest.mark.slow("hoodie.timeline.history.path")
@pytest.mark.parametrize("key", ["hoodie.timeline.path", "hoodie.timeline.history.path"])
def test_forged_properties_name_no_folder_outside(key: str, tmp_path: Path) -> None:
    path = folder_with_table(tmp_path, "COPY_ON_WRITE", "9")
    file = path / ".hoodie/hoodie.properties"
    lines = [line for line in file.read_text().splitlines() if not line.startswith(key)]
    file.write_text("\n".join([*lines, f"{key}=../../../other/.hoodie/timeline"]) + "\n")
    with pytest.raises(REFUSED, match="leaves the table's base path"):
        hf.HudiTable.open(path).to_arrow()


# ---- code


def sources_with(pattern: str) -> Iterator[tuple[Path, str]]:
    """The modules of the package whose text has the pattern somewhere; the others need not be parsed."""
    wanted = re.compile(pattern)
    for file in PACKAGE.rglob("*.py"):
        text = file.read_text()
        if wanted.search(text):
            yield file, text


def test_nothing_of_a_table_is_executed() -> None:
    """No call makes code of data; what Spark's own tasks answer is pickled, and comes from no table."""
    allowed = {
        ("__init__.py", "import_module"),
        ("storage/extras.py", "import_module"),
        ("formats/parquet/encryption.py", "import_module"),  # the class that an option of the caller names
        ("spark_api/dropin/install.py", "import_module"),
        ("writing/backend.py", "import_module"),
        ("values.py", "exec"),  # names of fields of the library's own classes
    }
    found = set()
    for file, text in sources_with(r"\b(eval|exec|compile|__import__|import_module|loads?)\("):
        inside = str(file.relative_to(PACKAGE))
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call):
                continue
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            owner = getattr(getattr(called, "value", None), "id", "")
            if name in ("eval", "exec", "compile", "__import__") and owner in ("", "builtins"):
                found.add((inside, name))
            if name == "import_module" or (owner in ("pickle", "marshal", "dill") and name in ("load", "loads")):
                found.add((inside, name))
    unexpected = {one for one in found - allowed if not (one[0].startswith("spark/") and one[1] == "loads")}
    assert unexpected == set()


def test_no_module_that_reads_tables_can_unpickle() -> None:
    """Spark's adapter alone imports pickle: for its own tasks."""
    importing = set()
    for file, text in sources_with(
        r"import .*(pickle|marshal|shelve|dill|yaml)|from .*(pickle|marshal|shelve|dill|yaml)"
    ):
        for node in ast.walk(ast.parse(text)):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if {name.partition(".")[0] for name in names} & {
                "pickle",
                "marshal",
                "shelve",
                "dill",
                "cloudpickle",
                "yaml",
            }:
                importing.add(str(file.relative_to(PACKAGE)))
    assert {one for one in importing if not one.startswith("spark/")} <= {"kernels/_jit.py"}


def test_json_of_tables_is_parsed_by_one_function() -> None:
    """Others parse the package's own texts, what Spark and Arrow say, and the user's own input.

    ``untrusted`` bounds what a text of a table may be.
    """
    trusted = {"timeline/archive/log_archive.py", "kernels/_kernel.py"}
    trusted |= {"formats/lance/decoder.py"}
    trusted |= {
        "storage/untrusted.py",
        "spark_api/sql/catalog.py",
        "spark_api/dropin/names.py",
        "spark/incoming/file_scan.py",
        "spark/incoming/chosen_scan.py",
        "spark/reading/python_scan.py",
        "storage/s3_options.py",
        "cli/rows.py",
    }
    calling = {
        str(file.relative_to(PACKAGE))
        for file in PACKAGE.rglob("*.py")
        if "json.loads(" in file.read_text().replace("stored_json.loads(", "") or "json.load(" in file.read_text()
    }
    assert calling <= trusted


def test_links_below_the_base_path_are_refused_and_the_base_path_may_be_one(tmp_path: Path) -> None:
    real = Storage(tmp_path / "real")
    real.write_bytes("p/f", b"1")
    (tmp_path / "base").symlink_to(tmp_path / "real", target_is_directory=True)
    (tmp_path / "outside").mkdir()
    storage = Storage(tmp_path / "base")
    assert storage.read_bytes("p/f") == b"1"
    (tmp_path / "real/link").symlink_to(tmp_path / "outside", target_is_directory=True)
    calls: list[Callable[[], Any]] = [
        lambda: storage.list_dir(""),
        lambda: storage.list_dir("link", recursive=True),
        lambda: storage.write_bytes("link/f", b"2"),
        lambda: storage.open_output("link/f"),
        lambda: storage.delete_dir("link"),
        lambda: storage.move("p/f", "link/f"),
    ]
    for call in calls:
        with pytest.raises(hf.CorruptTableError, match="a symbolic link"):
            call()
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_name_cannot_forge_lines_of_a_log(tmp_path: Path) -> None:
    path = folder_with_table(tmp_path, "COPY_ON_WRITE", "9")
    error = hf.CorruptTableError("Expected something.", "p0/a\nINFO all is well\x1b[2J.parquet")
    assert str(error) == r"Expected something. [file p0/a\nINFO all is well\x1b[2J.parquet]"
    with pytest.raises(hf.CorruptTableError, match="is not UTF-8"):
        Storage(path).read_bytes("p0/\udcff")
