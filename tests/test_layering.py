"""``docs/architecture.md`` is kept: which folder may import which, and who may import what from outside."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "hudi_fast"
KERNELS = ROOT / "kernels"
DOCUMENT = (ROOT / "docs" / "architecture.md").read_text()
NEIGHBOURS = {("writing", "reading")}
OUTSIDE = {
    "spark": {"pyspark", "pyarrow", "numpy", "pandas", "py4j", "mmh3"},
    "spark_api": {"pyspark", "pyarrow", "numpy", "pandas", "py4j"},
    "cli": {"click", "rich", "pyarrow"},
    "kernels": {"numpy", "numba", "llvmlite"},
    "formats": {"pyarrow", "numpy", "fastavro", "pyroaring", "lance"},
    "timeline": {"fastavro", "pyarrow"},
    "config": set(),
    "errors": set(),
    "storage": {"pyarrow"},
    "locking": {"numpy", "kazoo"},
    "hive": {"thriftpy2"},
    "streamer": {"pyarrow", "numpy", "fastavro"},
    "reading": {"pyarrow", "numpy", "pandas", "polars", "duckdb", "matplotlib"},
    "table": {"pyarrow", "pandas", "polars", "duckdb"},
    "expressions": {"pyarrow", "sqlglot"},
    "sql_text": {"pyarrow", "sqlglot"},
    "local_sql": {"pyarrow", "sqlglot", "duckdb"},
}
PLAIN = {"pyarrow", "numpy"}


def sources() -> list[Path]:
    return sorted([*PACKAGE.rglob("*.py"), *KERNELS.rglob("*.py")])


def part_of(path: Path) -> str:
    """The folder, or the module's own name for what lies at the top."""
    if path.is_relative_to(KERNELS):
        return "kernels"
    relative = path.relative_to(PACKAGE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


@cache
def imported(path: Path) -> tuple[str, ...]:
    """Dotted names of imported modules, those inside functions too; relative ones in full."""
    return tuple(_imported(path))


def _imported(path: Path) -> Iterator[str]:
    folder = ("hudi_fast", *path.relative_to(KERNELS.parent if path.is_relative_to(KERNELS) else PACKAGE).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(folder[: len(folder) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, (base, node.module)))
            yield from (f"{module}.{alias.name}" for alias in node.names) if module == "hudi_fast" else (module,)


@cache
def layers() -> list[list[str]]:
    """The lines of the drawing in the document, lowest first."""
    drawing = re.search(r"```\n(.*?)```", DOCUMENT, re.DOTALL)
    assert drawing is not None
    lines = [re.findall(r"\b(\w+)(?:/|\.py)", line[:32]) for line in drawing[1].splitlines()]
    return [line for line in reversed(lines) if line]


def level_of(part: str) -> int:
    return next(level for level, line in enumerate(layers()) if part in line)


def test_every_folder_is_in_the_drawing_and_the_other_way_round() -> None:
    parts = {part_of(path) for path in sources()} - {"__init__"}
    assert parts == {part for line in layers() for part in line}


def imports() -> Iterator[tuple[Path, str, str]]:
    """Each import: the file below the project, its part, and the imported name."""
    return ((path.relative_to(ROOT), part_of(path), name) for path in sources() for name in imported(path))


def test_imports_point_downwards() -> None:
    wrong = []
    for path, part, name in imports():
        if part == "__init__" or not name.startswith("hudi_fast."):
            continue
        other = name.split(".")[1]
        if (PACKAGE / f"{other}.py").exists() or (PACKAGE / other).is_dir() or other == "kernels":
            allowed = other == part or (part, other) in NEIGHBOURS or level_of(other) < level_of(part)
            wrong += [] if allowed else [f"{path} imports {name}"]
    assert wrong == []


def test_libraries_stay_where_they_belong() -> None:
    outside = ((path, part, name.split(".")[0]) for path, part, name in imports())
    library = {(path, part, top) for path, part, top in outside if top not in {*sys.stdlib_module_names, "hudi_fast"}}
    assert [f"{path} imports {top}" for path, part, top in library if top not in OUTSIDE.get(part, PLAIN)] == []


def test_pyspark_is_imported_by_the_spark_engine_and_the_spark_api_alone() -> None:
    users = {part_of(path) for path in sources() for name in imported(path) if name.split(".")[0] == "pyspark"}
    assert users == {"spark", "spark_api"}


NAMES_KERNELS = re.compile(r"^\s*(import|from) .*\bkernels\b", re.MULTILINE)


def test_kernels_are_imported_under_the_name_that_they_are_shipped_with() -> None:
    everything = [*sources(), *(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    for path in everything:
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if NAMES_KERNELS.search(text) else ():
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            assert not any(name.split(".")[0] == "kernels" for name in names), path


MAX_LINES = 600


def test_modules_stay_small() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in sources()}
    assert {path: length for path, length in lengths.items() if length > MAX_LINES} == {}
