"""``HudiTable.services``: what waits on the timeline."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from hudi_fast.services.scheduling.pending import pending_services, pending_table
from hudi_fast.services.scheduling.run import PendingResult, run_pending_services
from hudi_fast.services.verbs import Options, ServiceVerbs
from hudi_fast.view.table_state import load_state

__all__ = ["SchedulingVerbs"]


class SchedulingVerbs(ServiceVerbs):
    """What was planned and not carried out."""

    def pending(self, options: Options | None = None) -> pa.Table:
        """Services that wait on the timeline or are being carried out, oldest first; one row for each.

        ``instant``, ``action`` and ``state`` as on the timeline; ``service``, the verb that carries it out
        (``compact``, ``log_compact``, ``cluster``, ``clean``, ``index``, ``rollback``, ``restore``); ``file_groups``
        that it is about (null where plans are not made of them); ``alive``, whether somebody is carrying it out now;
        ``seconds`` since it was requested. One that is INFLIGHT and not alive died: the next call of its verb, or
        :meth:`run_pending`, takes it over.

        Args:
            options: ``hoodie.client.heartbeat.interval_in_ms`` and ``.tolerable.misses``.

        Raises:
            CorruptTableError: a plan cannot be understood.
        """
        return pending_table(pending_services(load_state(self._storage), self._session(options).settings))

    def run_pending(self, options: Options | None = None, spark: Any = None) -> list[PendingResult]:
        """Carry out what waits on the timeline, oldest first, and take over what died; nothing new is planned.

        What somebody else is carrying out, or is done with by then, is passed over. Rollbacks that died are finished on
        the way; a restore that died is not: call ``restore`` for its savepoint again.

        Args:
            options: as for the services.
            spark: a Spark session that does the work. Without, threads of this process do.

        Returns:
            The results of the services that were carried out, each as its own verb gives it.

        Raises:
            HudiError: one failed, and waits again; those before it stay, and a note says how many they were.
        """
        return run_pending_services(self._session(options, spark))
