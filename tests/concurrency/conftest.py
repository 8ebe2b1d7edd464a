"""Writers that are started once for all histories of a session, and a folder in memory for their tables."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.concurrency.history import WriterPool
from tests.concurrency.writer_process import Nursery
from tests.support.memory import memory_folder


@pytest.fixture(scope="session")
def writers() -> Iterator[WriterPool]:
    """Processes that wait for scripts."""
    with Nursery() as nursery:
        pool = WriterPool(nursery)
        yield pool
        pool.close()


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder for many small tables, one after the other."""
    folder = Path(tempfile.mkdtemp(dir=memory_folder()))
    yield folder
    shutil.rmtree(folder)
