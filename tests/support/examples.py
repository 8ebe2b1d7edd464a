"""How many examples property tests try: a profile of Hypothesis for each run of the tests.

| profile | run | examples |
|---|---|---|
| ``dev`` | ``make check``, ``make test`` | 25 |
| ``ci`` | ``make test-full`` | 100 |
| ``nightly`` | ``make test-long`` | 500 |

A test whose examples are cheap or costly says how many it tries under ``ci``: ``@settings(max_examples=examples(10))``.
"""

from __future__ import annotations

from hypothesis import settings

__all__ = ["examples", "register_profiles"]

_EXAMPLES = {"dev": 25, "ci": 100, "nightly": 500}


def register_profiles() -> None:
    """Make the profiles known to Hypothesis. None has a deadline: the first call of a kernel compiles it."""
    for name, number in _EXAMPLES.items():
        settings.register_profile(name, max_examples=number, deadline=None)


def examples(number: int) -> int:
    """The examples under the profile in force, of a test that tries ``number`` under ``ci``; at least two."""
    return max(number * settings.default.max_examples // _EXAMPLES["ci"], 2)
