"""A program: try locks, one after the other; its arguments are JSON objects of options. Prints how each ends.

A process of its own, because Kazoo leaves the sockets of refused connections to Python's collector.
"""

from __future__ import annotations

import json
import os
import sys

from hudi_fast.config.concurrency_options import LockOptions
from hudi_fast.locking.provider import open_provider
from hudi_fast.storage.base import Storage

if __name__ == "__main__":
    for text in sys.argv[1:]:
        try:
            lock = open_provider(Storage("/nowhere"), LockOptions.from_options(json.loads(text)))
            print("held" if lock.try_lock(0.3) else "taken", flush=True)
            lock.unlock()
        except Exception as error:
            print(f"{type(error).__name__}: {error}".replace("\n", " "), flush=True)
    os._exit(0)
