"""What the verbs of all services have in common; each room has its own in ``verbs.py``.

:class:`hudi_fast.services.table_services.TableServices` is all of them together. Verbs resolve options and delegate;
they hold no logic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hudi_fast.merging.rules import Merger
from hudi_fast.services.carriers import Carriers, in_process
from hudi_fast.services.settings import ServiceSettings
from hudi_fast.storage.base import Storage

__all__ = ["Options", "ServiceVerbs", "check_plan"]

Options = Mapping[str, Any]
"""Apache Hudi's own ``hoodie.*`` keys, in old or new spelling."""


def check_plan(plan: object, kind: type) -> None:
    """Make sure that a plan that a caller hands in, if any, is one of this service's.

    Args:
        plan: None, or a plan.
        kind: what it has to be.

    Raises:
        TypeError: it is something else.
    """
    if plan is not None and not isinstance(plan, kind):
        raise TypeError(f"plan must be a {kind.__name__}, not a {type(plan).__name__}: pass what this service planned.")


class ServiceVerbs:
    """The services of one table. Every call sees the table as it is then.

    Args:
        storage: the table's storage.
        on_spark: makes of a Spark session what does the work there.
        merger: merges rows of a table whose merge mode is CUSTOM; None for none.
    """

    def __init__(self, storage: Storage, on_spark: Callable[[Any], Carriers], merger: Merger | None = None) -> None:
        self._storage = storage
        self._on_spark = on_spark
        self._merger = merger

    def _settings(self, options: Options | None) -> ServiceSettings:
        settings = ServiceSettings.from_options(options, self._merger)
        settings.check_storage(self._storage)
        return settings

    def _carriers(self, spark: Any, settings: ServiceSettings) -> Carriers:
        return in_process(settings.write.threads) if spark is None else self._on_spark(spark)
