"""Lock names derived from the base path of a table: 16 hexadecimal digits.

::

    base path ─► s3a:// to s3:// ─► UTF-8 ─► xxHash64 with Hudi's seed ─► upper case, most significant digit first

The path is not normalised further: ``/t``, ``/t/`` and ``file:///t`` have different locks.

Source: ``ZookeeperBasedImplicitBasePathLockProvider`` (Apache Hudi 1.2.0).
"""

from __future__ import annotations

import re

import numpy as np

from hudi_fast.kernels.xx_hash import xx_hash64

__all__ = ["path_hash"]

_SEED = 0xFFFF_FFFF_DABA_DABA
_S3A = re.compile("^s3a://", re.IGNORECASE)


def path_hash(base_path: str) -> str:
    """The lock name of a table: 16 upper-case hexadecimal digits.

    Args:
        base_path: base path of the table; all writers must spell it alike.
    """
    data = np.frombuffer(_S3A.sub("s3://", base_path).encode(), np.uint8)
    out = np.empty(1, np.uint64)
    xx_hash64(np.array([0, data.size], np.int32), data, np.uint64(_SEED), out)
    return f"{int(out[0]):016X}"
