"""The table object."""

from hudi_fast.table.hudi_table import HudiTable

__all__ = ["HudiTable"]
