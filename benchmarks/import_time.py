"""Start-up time of a worker before its first row; each run uses a new interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

ONE_KERNEL = "from hudi_fast.kernels.key_table import count_distinct; import numpy as np; " + (
    "count_distinct(np.zeros(1, np.int32), np.zeros(0, np.uint8))"
)
ALL_KERNELS = "from hudi_fast.kernels import warm_up; warm_up()"


def run(program, cache):
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


class Warm:
    """With a filled cache of compiled kernels."""

    timeout = 120

    def setup_cache(self):
        cache = tempfile.mkdtemp(prefix="hudi_fast-asv-")
        run(ALL_KERNELS, cache)
        return cache

    def time_import(self, cache):
        run("import hudi_fast", cache)

    def time_import_kernels(self, cache):
        run("import hudi_fast.kernels.bloom, hudi_fast.kernels.key_table, hudi_fast.kernels.gather", cache)

    def time_one_kernel(self, cache):
        run(ONE_KERNEL, cache)

    def time_all_kernels(self, cache):
        run(ALL_KERNELS, cache)


class Cold:
    """With an empty cache: all kernels are compiled."""

    number = 1
    repeat = 2
    warmup_time = 0
    timeout = 300

    def setup(self):
        self.folder = tempfile.TemporaryDirectory(prefix="hudi_fast-asv-")

    def teardown(self):
        self.folder.cleanup()

    def time_one_kernel(self):
        run(ONE_KERNEL, self.folder.name)

    def time_all_kernels(self):
        run(ALL_KERNELS, self.folder.name)
