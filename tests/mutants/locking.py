"""Mistakes in locks: two writers at once."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

__all__ = ["LOCKING"]

LOCKING = (
    Mutant(
        name="locking-drift-of-clocks-shortens-a-lease",
        file="hudi_fast/locking/lock_record.py",
        before="now_ms <= record.valid_until + DRIFT_MS",
        after="now_ms <= record.valid_until - DRIFT_MS",
        harm="A writer on another machine takes the lock while its holder still relies on it.",
        near=("tests/locking/test_locking_in_storage_records.py", "tests/locking/test_locking_in_storage.py"),
    ),
    Mutant(
        name="locking-lease-is-trusted-to-its-end",
        file="hudi_fast/locking/in_storage.py",
        before="return started + self._validity - 2 * self._renew",
        after="return started + self._validity",
        harm="A commit that storage delays becomes visible after another writer has taken the lock.",
        near=("tests/locking/test_locking_in_storage.py", "tests/locking/test_locking_in_storage_faults.py"),
    ),
    Mutant(
        name="locking-lock-file-is-trusted-to-its-expiry",
        file="hudi_fast/locking/file_system.py",
        before="time.monotonic() > self._confirmed + self._expire / 2",
        after="time.monotonic() > self._confirmed + self._expire",
        harm="A writer that was suspended commits although another one may take its lock file at any moment.",
        near=("tests/locking/test_locking_file_system.py",),
    ),
    Mutant(
        name="locking-replaced-lock-file-counts",
        file="hudi_fast/locking/machine.py",
        before="            if _is_same_file(file.descriptor, path):\n",
        after="            if file.descriptor >= 0:\n",
        harm="After an overwrite of the table two writers of one machine hold its lock.",
        near=("tests/locking/test_locking_machine.py", "tests/writing/test_writing_overwrite.py"),
    ),
    Mutant(
        name="locking-released-lock-keeps-its-callbacks",
        file="hudi_fast/locking/table_lock.py",
        before="callbacks, self._callbacks = self._callbacks, []  # they refer to this lock",
        after="callbacks = self._callbacks",
        harm="Connections stay open until garbage is collected; a process that writes for days has no descriptor left.",
        near=("tests/storage/test_storage_open_files.py",),
    ),
    Mutant(
        name="locking-clients-of-stores-are-not-closed",
        file="hudi_fast/storage/forks.py",
        before="finalize(self, _end_of, self._process, self._end, made)",
        after="finalize(self, _end_of, -1, self._end, made)",
        harm="Each write to an object store leaves its connections open until garbage is collected.",
        near=("tests/storage/test_storage_open_files.py",),
    ),
)
