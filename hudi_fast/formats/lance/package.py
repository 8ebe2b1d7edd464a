"""The package pylance: loaded when a table has Lance files, with its errors as errors of the file.

pylance reports a damaged file by various exceptions of Python, a missing one by ``ValueError``, and a failed check of
its own by ``PanicException``, which is not an :class:`Exception`. Where such a check fails within a stream of batches,
pylance ends the process: no caller can prevent that.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from hudi_fast.errors import HudiError
from hudi_fast.formats.base_file import file_errors
from hudi_fast.storage.base import Storage
from hudi_fast.storage.extras import import_extra

__all__ = ["lance_errors", "lance_files"]

_PANIC = "PanicException"
"""Name of the exception of a Rust panic; no module exports it."""

_MISSING = "Not found"
"""How pylance's message about a missing file begins."""


def lance_files() -> Any:
    """The module of single Lance files.

    Raises:
        ConfigError: pylance is not installed.
    """
    return import_extra("lance.file", "lance", "A table with Lance base files")


@contextmanager
def lance_errors(path: str, storage: Storage) -> Iterator[None]:
    """Raise errors of pylance as errors of the file.

    Args:
        path: the file, for messages.
        storage: its storage.

    Raises:
        FileGoneError: the file is missing.
        CorruptTableError: any other error.
    """
    with file_errors(path, storage, "Lance"):
        try:
            yield
        except (HudiError, OSError, pa.ArrowException):
            raise
        except (ValueError, RuntimeError, OverflowError) as error:
            text = _first_line(error)
            raise FileNotFoundError(text) if text.startswith(_MISSING) else pa.ArrowInvalid(text) from error
        except BaseException as error:
            if type(error).__name__ != _PANIC:
                raise
            raise pa.ArrowInvalid(_first_line(error)) from error


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
