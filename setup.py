"""Lists the packages; everything else stands in pyproject.toml. ``kernels/`` is shipped as ``hudi_fast.kernels``."""

from setuptools import find_packages, setup

setup(packages=[*find_packages(include=["hudi_fast", "hudi_fast.*"]), "hudi_fast.kernels"])
