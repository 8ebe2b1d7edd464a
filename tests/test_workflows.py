"""The workflows and templates of the repository parse, and say what pyproject.toml says."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
FILES = [ROOT / "mkdocs.yml", ROOT / ".pre-commit-config.yaml", *sorted((ROOT / ".github").rglob("*.yml"))]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def workflow(name: str) -> dict:
    return yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8"))


def run_script(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_parses(path: Path) -> None:
    assert isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict)


@pytest.mark.parametrize("name", ["documentation.yml", "nightly.yml", "release.yml", "tests.yml"])
def test_a_workflow_has_few_rights_and_every_job_ends(name: str) -> None:
    found = workflow(name)
    assert found["permissions"] == {"contents": "read"}
    assert all(job["timeout-minutes"] <= 360 for job in found["jobs"].values())


def test_actions_are_named_by_commit() -> None:
    """A tag can move to other code; only the publisher of PyPI is named by its branch, as its page says."""
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        for action in re.findall(r"uses: (\S+)", path.read_text(encoding="utf-8")):
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action) or action == "pypa/gh-action-pypi-publish@release/v1"


def test_every_supported_python_is_tested() -> None:
    named = [re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line) for line in PROJECT["classifiers"]]
    pythons = [match[1] for match in named if match is not None]
    assert workflow("tests.yml")["jobs"]["tests"]["strategy"]["matrix"]["python"] == pythons
    assert PROJECT["requires-python"] == f">={pythons[0]}"


def test_the_nightly_run_takes_the_lower_bounds_of_the_project() -> None:
    core = run_script(".github/lowest_versions.py").stdout.split()
    assert [pin.partition("==")[0] for pin in core] == [need.partition(">=")[0] for need in PROJECT["dependencies"]]
    assert all(pin.endswith(".*") for pin in core)
    spark = run_script(".github/lowest_versions.py", "spark").stdout.split()
    assert set(core) < set(spark)
    assert any(pin.startswith("pyspark==") for pin in spark)


def test_the_page_of_versions_says_what_the_project_and_the_workflows_say() -> None:
    page = (ROOT / "docs" / "supported.md").read_text(encoding="utf-8").partition("## Versions")[2].partition("## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("|")]
    said = {row[0].split(",")[0]: row[1:] for row in rows[2:]}
    needs = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["spark"]]
    lowest = {need.partition(">=")[0]: need.partition(">=")[2].partition(",")[0] for need in needs}
    for name in ("pyarrow", "numpy", "numba", "pyspark"):
        row = next(row for shown, row in said.items() if shown.lower() == name)
        assert row[0] == lowest[name], name
    tested = workflow("tests.yml")["jobs"]["tests"]["strategy"]["matrix"]["python"]
    nightly = {
        step["with"]["python-version"]
        for job in workflow("nightly.yml")["jobs"].values()
        for step in job["steps"]
        if "python-version" in step.get("with", {})
    }
    assert said["Python"] == [tested[0], ", ".join(tested), " and ".join(sorted(nightly))]


def test_a_release_without_its_files_or_tag_is_refused(tmp_path: Path) -> None:
    done = run_script(".github/check_release.py", "v999", str(tmp_path))
    assert done.returncode == 1
    assert f"expected the tag v{PROJECT['version']}" in done.stdout
    assert "Expected one wheel and at most one source archive" in done.stdout


@pytest.mark.slow
def test_the_program_of_the_release_check_runs(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / ".github" / "try_release.py")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"hudi_fast {PROJECT['version']} works\n"


def test_the_hooks_run_tools_of_the_environment() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][0]["hooks"]
    assert [hook["id"] for hook in hooks] == ["ruff", "ruff-format", "mypy"]
    assert all(hook["entry"].startswith(".venv/bin/") and hook["language"] == "system" for hook in hooks)
