"""Mistakes that are planted in the product, one at a time: a simulation that does not find them is worth nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import hudi_fast.locking.table_lock as table_lock_module
import hudi_fast.writing.flow as flow_module
import hudi_fast.writing.rollback_plan as failed_writes_module
from tests.simulation.objects import Objects

__all__ = ["BUGS", "planted"]


@contextlib.contextmanager
def _free(*_: Any, **__: Any) -> Iterator[None]:
    yield


def _checked_too_early(check: Callable[..., Any]) -> Callable[..., Any]:
    def early(instant: Any, metadata: Any, before: Any, _now: Any, plan: Any, options: Any) -> Any:
        return check(instant, metadata, before, before, plan, options)

    return early


def _put(self: Objects, name: str, data: bytes, *_: str) -> str:
    self.put(name, data)
    return self.stored[name].version


BUGS: dict[str, tuple[tuple[Any, str, Any], ...]] = {
    "no lock": ((table_lock_module, "machine_lock", _free),),
    "conflicts are looked for in the table of the beginning": (
        (flow_module, "require_no_conflicts", _checked_too_early(flow_module.require_no_conflicts)),
    ),
    "nobody asks whether the lock was held to the end": ((table_lock_module.HeldLock, "confirm", lambda _: None),),
    "heartbeats are not looked at": ((failed_writes_module, "is_alive", lambda *_: False),),
    "files are created and replaced without a condition": ((Objects, "create", _put), (Objects, "replace", _put)),
}
"""Names and the parts of the product, or of its store, that are replaced."""


@contextlib.contextmanager
def planted(name: str) -> Iterator[None]:
    """The product with a mistake."""
    kept = [(owner, attribute, getattr(owner, attribute)) for owner, attribute, _ in BUGS[name]]
    for owner, attribute, value in BUGS[name]:
        setattr(owner, attribute, value)
    try:
        yield
    finally:
        for owner, attribute, value in kept:
            setattr(owner, attribute, value)
