"""The releases of PySpark that hudi_fast runs on."""

from __future__ import annotations

import pytest

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.spark.session import require_pyspark


@pytest.mark.parametrize("version", ["3.5.0", "4.0.0", "4.3.1", "10.0.0", "4.2.0.dev1"])
def test_a_supported_pyspark_is_taken(version: str) -> None:
    require_pyspark(version)


@pytest.mark.parametrize("version", ["3.4.4", "3.3.0", "2.4.8"])
def test_an_older_pyspark_is_refused_with_what_to_install(version: str) -> None:
    with pytest.raises(
        UnsupportedFeatureError, match=rf"needs PySpark 3.5 or newer; this is {version}. Install it: pip"
    ):
        require_pyspark(version)
