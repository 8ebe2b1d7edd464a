"""The simulated machine does what machines do: it loses what was not synced, and gives locks of the dead back."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.histories import Op, Setting
from tests.simulation.installed import LOCAL, World
from tests.simulation.kernel import File, Folder, Kernel
from tests.simulation.power import cut_everywhere
from tests.simulation.scheduler import Call, Died
from tests.simulation.serial import Step, explained


def machine() -> tuple[World, Kernel]:
    world = World(1, lambda _, ready: ready[0])
    world.kernel.restore(Folder(1, {"d": Folder(2)}))
    return world, world.kernel


def written(kernel: Kernel, path: str, data: bytes) -> None:
    with kernel.open_stream(path, "xb") as sink:
        sink.write(data)


def synced(kernel: Kernel, path: str) -> None:
    descriptor = kernel.open(path)
    kernel.fsync(descriptor)
    kernel.close(descriptor)


def left(kernel: Kernel) -> set[bytes | None]:
    """Contents of ``/d/x`` after many losses of power; None where it has no name."""
    found = set()
    for seed in range(200):
        folder = kernel.after_loss(random.Random(seed)).entries["d"]
        assert isinstance(folder, Folder)
        node = folder.entries.get("x")
        found.add(node.data if isinstance(node, File) else None)
    return found


def test_a_file_that_was_not_synced_is_whole_or_cut_or_empty_or_gone() -> None:
    _, kernel = machine()
    written(kernel, "/d/x", b"abc")
    assert left(kernel) == {None, b"", b"a", b"ab", b"abc"}


def test_a_synced_file_without_a_synced_name_may_be_gone() -> None:
    _, kernel = machine()
    written(kernel, "/d/x", b"abc")
    synced(kernel, "/d/x")
    assert left(kernel) == {None, b"abc"}


def test_a_file_whose_name_is_synced_too_stays() -> None:
    _, kernel = machine()
    written(kernel, "/d/x", b"abc")
    synced(kernel, "/d/x")
    synced(kernel, "/d")
    assert left(kernel) == {b"abc"}


def test_the_lock_of_a_process_that_died_is_free() -> None:
    world, kernel = machine()
    first, second = world.process("first"), world.process("second")
    with world.alone(first):
        holder = kernel.lockable()("/d", 0)
        holder.lock()
    with world.alone(second):
        other = kernel.lockable()("/d", 0)
        with pytest.raises(BlockingIOError):
            other.lock()
        world.kill(first)
        other.lock()


def test_a_process_that_died_does_nothing_more() -> None:
    world, _ = machine()
    process = world.process("first")
    with world.alone(process):
        world.kill(process)
        with pytest.raises(Died):
            world.step(Call("read", "/d/x", False))


def test_an_order_of_operations_must_explain_all_that_was_told() -> None:
    before = {"k0": 1}
    first = Step("A", Op("upsert", ("k0",), 2), 0, 5, "done")
    second = Step("B", Op("increment", ("k0",)), 1, 6, "done")
    maybe = Step("B", Op("upsert", ("k0",), 9), 1, None, "unknown")

    def read(value: int, begin: int = 10) -> Step:
        return Step("R", Op("read"), begin, begin + 1, "done", {"k0": value})

    assert not explained(before, [first, second, read(3)])
    assert not explained(before, [first, second, read(2)])
    assert explained(before, [first, second, read(1)])
    assert not explained(before, [first, maybe, read(9)])
    assert not explained(before, [first, maybe, read(2)])
    assert explained(before, [first, read(2), read(1, 20)])


def test_what_is_not_synced_is_lost_in_a_cut() -> None:
    setting = Setting(LOCAL, "COPY_ON_WRITE", "9", metadata=False, shared=False)
    assert cut_everywhere("upsert", setting, limit=0, without_sync=True, losses=4).wrong


@pytest.mark.slow
def test_a_history_is_the_same_in_every_process() -> None:
    told = {
        subprocess.run(
            [sys.executable, "-m", "tests.simulation.soak", "--only", "deaths", "--seed", "3"],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1
    assert len(told.pop().splitlines()) > 100
