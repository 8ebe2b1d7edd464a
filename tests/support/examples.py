"""How many examples property tests try: a profile of Hypothesis for each run of the tests.

| profile | run | examples |
|---|---|---|
| ``dev`` | ``make check``, ``make test`` | 25 |
| ``ci`` | ``make test-rest`` | 40 |
| ``nightly`` | ``make test-long`` | 500 |

A test whose examples are cheap or costly scales that, in percent: under ``ci`` 4 are tried by
``@settings(max_examples=examples(10))``.
"""

from __future__ import annotations

from hypothesis import settings

__all__ = ["examples", "register_profiles"]

_EXAMPLES = {"dev": 25, "ci": 40, "nightly": 500}


def register_profiles() -> None:
    """Make the profiles known to Hypothesis. None has a deadline: the first call of a kernel compiles it."""
    for name, number in _EXAMPLES.items():
        settings.register_profile(name, max_examples=number, deadline=None)


def examples(number: int) -> int:
    """So many examples of every hundred of the profile in force; at least two."""
    return max(number * settings.default.max_examples // 100, 2)
