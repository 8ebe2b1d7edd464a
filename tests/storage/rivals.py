"""Writers that create one file at the same time."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

__all__ = ["winners"]

_RIVALS = 8


def winners(create: Callable[[int], object]) -> list[int]:
    """The numbers of the rivals whose ``create`` did not find the file there."""
    won: list[int] = []

    def compete(number: int) -> None:
        with contextlib.suppress(FileExistsError):
            create(number)
            won.append(number)

    threads = [threading.Thread(target=compete, args=(number,)) for number in range(_RIVALS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return won
