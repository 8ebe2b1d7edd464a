"""``HudiTable.services``: pending services."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from hudi_fast.services.scheduling.pending import pending_services, pending_table
from hudi_fast.services.scheduling.run import PendingResult, run_pending_services
from hudi_fast.services.verbs import Options, ServiceVerbs
from hudi_fast.view.table_state import load_state

__all__ = ["SchedulingVerbs"]


class SchedulingVerbs(ServiceVerbs):
    """Listing and executing pending services."""

    def pending(self, options: Options | None = None) -> pa.Table:
        """List pending services, oldest first, one row each.

        Columns: ``instant``, ``action`` and ``state`` as on the timeline; ``service``, the verb that executes it
        (``compact``, ``log_compact``, ``cluster``, ``clean``, ``index``, ``rollback``, ``restore``); ``file_groups``,
        the number of file groups in its plan (null for plans without file groups); ``alive``, whether a live process
        runs it; ``seconds`` since it was requested. An INFLIGHT service that is not alive is abandoned: the next call
        of its verb, or :meth:`run_pending`, executes it.

        Args:
            options: ``hoodie.client.heartbeat.interval_in_ms`` and ``.tolerable.misses``.

        Raises:
            CorruptTableError: a plan is damaged.
        """
        return pending_table(pending_services(load_state(self._storage), self._session(options).settings))

    def run_pending(self, options: Options | None = None, *, spark: Any = None) -> list[PendingResult]:
        """Execute pending services, oldest first, abandoned ones included; nothing new is planned.

        Services that another process runs or has completed are skipped. Abandoned rollbacks are finished, too. An
        abandoned restore comes first.

        Args:
            options: as for the services.
            spark: a Spark session: its tasks do the work. Without, threads of this process do.

        Returns:
            The result of each executed service, as its verb returns it.

        Raises:
            ConfigError: an abandoned restore does not name its savepoint.
            HudiError: a service failed, and is pending again. A note says how many were executed before it; their
                results stay.
        """
        return run_pending_services(self._session(options, spark))
