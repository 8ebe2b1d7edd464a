"""Prefetching: produces items in another thread while earlier ones are consumed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future
from typing import TypeVar

from hudi_fast.storage.thread_pool import ThreadPool

__all__ = ["ahead", "side_by_side"]

Item = TypeVar("Item")
Made = TypeVar("Made")

_DEPTH = 2


def ahead(items: Generator[Item], threads: int) -> Generator[Item]:
    """The same items, produced in another thread while earlier ones are consumed.

    Args:
        items: closed at the end, or when the consumer stops.
        threads: with less than 2 nothing is prefetched.
    """
    if threads < 2:
        yield from items
        return

    def following() -> list[Item]:
        return [item for item in [next(items, None)] if item is not None]

    with ThreadPool(1, thread_name_prefix="hudi_fast") as pool:
        try:
            waiting: deque[Future[list[Item]]] = deque(pool.submit(following) for _ in range(_DEPTH))
            while item := waiting.popleft().result():
                waiting.append(pool.submit(following))
                yield item[0]
        finally:
            pool.submit(items.close).result()


def side_by_side(make: Callable[[Item], Made], items: Iterable[Item], threads: int) -> list[Made]:
    """The result for each item, in order, computed by several threads."""
    if threads < 2:
        return [make(item) for item in items]
    with ThreadPool(threads, thread_name_prefix="hudi_fast") as pool:
        return list(pool.map(make, items))
