"""Read the bytes of blobs: inline, or a range of a file that the blob refers to.

Each file is opened once for all its ranges. Source: ``read_blob``, ``BatchedBlobReader`` (Hudi 1.2.0).
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from hudi_fast.errors import CorruptTableError, InvalidDataError
from hudi_fast.formats.blobs import BLOB, INLINE, is_blob
from hudi_fast.storage.base import Storage

__all__ = ["blob_bytes"]


def blob_bytes(storage: Storage, blobs: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The bytes of each blob, binary[n]; null for a null.

    Args:
        storage: the table's storage. Its options apply to files on the same kind of storage.
        blobs: values of a blob column.

    Raises:
        InvalidDataError: the values are not blobs, or a blob that is not inline has no reference.
        CorruptTableError: a file is missing, or shorter than the range.
    """
    if not is_blob(blobs.type):
        raise InvalidDataError(f"read_blobs takes the values of a blob column ({BLOB}); got {blobs.type}.")
    values: list[dict[str, Any] | None] = blobs.to_pylist()
    found: list[bytes | None] = [None] * len(values)
    by_path: dict[str, list[int]] = {}
    for row, value in enumerate(values):
        if value is None:
            continue
        if value["type"] == INLINE:
            found[row] = value["data"]
        elif value["reference"] is None:
            raise InvalidDataError(f"Blob {row} is {value['type']} and has no reference.")
        else:
            by_path.setdefault(value["reference"]["external_path"], []).append(row)
    for path, rows in by_path.items():
        place, name = _place(storage, path)
        try:
            with place.open_input(name) as source:
                for row in rows:
                    found[row] = _range(source, path, values[row]["reference"])  # type: ignore[index]
        except FileNotFoundError as error:
            raise CorruptTableError(f"{len(rows)} blobs of {storage.uri} refer to {path}, which is missing.") from error
    return pa.array(found, pa.binary())


def _place(storage: Storage, path: str) -> tuple[Storage, str]:
    folder, _, name = path.rpartition("/")
    return Storage(folder or path[: -len(name)] or ".", storage.options if "://" in folder else None), name


def _range(source: pa.NativeFile, path: str, reference: dict[str, Any]) -> bytes:
    start, size = reference["offset"] or 0, source.size()
    length = size - start if reference["length"] is None else reference["length"]
    if start < 0 or length < 0 or start + length > size:
        raise CorruptTableError(f"A blob is bytes {start} to {start + length} of {path}, which has {size} bytes.")
    source.seek(start)
    return bytes(source.read(length))
