"""The Avro schemas that real Hudi put into the commits of the golden tables."""

from __future__ import annotations

import io
import json
from pathlib import Path

import fastavro

from tests.support.golden import Golden

__all__ = ["base_files_of", "commit_schemas"]

ENDINGS = (".commit", ".deltacommit", ".replacecommit")


def commit_schemas(table: Golden) -> dict[str, str]:
    """Requested instant -> the commit's ``schema`` text, oldest first; for completed instants that have one."""
    found = {}
    hoodie = table.table / ".hoodie"
    for path in [*hoodie.glob("*commit"), *hoodie.glob("timeline/*commit")]:
        # ._* is what macOS leaves in archives
        if path.suffix in ENDINGS and path.stat().st_size and not path.name.startswith("._"):
            text = _schema_text(path)
            if text:
                found[path.name.split(".")[0].split("_")[0]] = text
    return dict(sorted(found.items()))


def base_files_of(table: Golden, instant: str) -> list[Path]:
    """The Parquet files that were written at an instant."""
    found = table.table.rglob(f"*_{instant}.parquet")
    return sorted(path for path in found if ".hoodie" not in path.parts and not path.name.startswith((".", "_")))


def _schema_text(path: Path) -> str | None:
    body = path.read_bytes()
    record = next(fastavro.reader(io.BytesIO(body))) if body[:3] == b"Obj" else json.loads(body)
    return (record["extraMetadata"] or {}).get("schema")
