import threading
import time
from datetime import datetime

import pytest

from hudi_fast.errors import CorruptTableError, LockError
from hudi_fast.locking.table_lock import HeldLock
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.timeline.instants import instant_from_ms, ms_from_instant

NOW = 1_795_240_190_123


def still_clock(*times):
    left = list(times)
    return InstantClock("UTC", skew_ms=0, now_ms=lambda: left.pop(0) if len(left) > 1 else left[0])


def test_a_time_is_the_wall_clock_in_the_zone():
    assert still_clock(NOW).next_time() == "20261121054950123"
    local = InstantClock("LOCAL", skew_ms=0, now_ms=lambda: NOW).next_time()
    assert local == datetime.fromtimestamp(NOW // 1000).strftime("%Y%m%d%H%M%S") + "123"


def test_times_increase_while_the_clock_stands_still_or_goes_back():
    clock = still_clock(NOW, NOW, NOW - 60_000)
    assert [clock.next_time() for _ in range(3)] == ["20261121054950123", "20261121054950124", "20261121054950125"]


def test_times_are_later_than_every_floor():
    clock = still_clock(NOW)
    assert clock.next_time("20261231235959999", None, "20260101000000000") == "20270101000000000"
    assert clock.next_time("20280101000000") == "20280101000001000"
    assert clock.next_time("20290101000000000001") == "20290101000000001"


def test_special_times_are_no_obstacle():
    assert still_clock(NOW).next_time("00000000000000002") == "20261121054950123"


def test_a_floor_that_is_no_time_is_named():
    with pytest.raises(CorruptTableError, match="99999999999999999"):
        still_clock(NOW).next_time("99999999999999999")


def test_the_clock_waits_for_the_skew_of_other_hosts():
    clock = InstantClock("UTC", skew_ms=30)
    before = clock.next_time()
    after = clock.next_time()
    assert ms_from_instant(after, "UTC") - ms_from_instant(before, "UTC") >= 30


def test_times_under_a_lock_cost_one_wait_before_it_is_given_up():
    clock, held, taken = InstantClock("UTC", skew_ms=60), HeldLock(), time.monotonic()
    clock.under(held)
    assert clock.next_time() < clock.next_time() < clock.next_time()
    assert time.monotonic() - taken < 0.06
    last = time.monotonic()
    held.end()
    assert time.monotonic() - last > 0.04
    with pytest.raises(LockError, match="already released"):
        clock.next_time()


def test_threads_never_get_one_time_twice():
    clock = InstantClock("UTC", skew_ms=0)
    taken = []

    def take():
        taken.extend(clock.next_time() for _ in range(200))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(taken)) == 800
    assert max(taken) <= instant_from_ms(ms_from_instant(min(taken), "UTC") + 60_000, "UTC")
