"""What lives as long as the run is no garbage: it isn't looked through again and again.

24,000 tests are collected, and each full round of Python's collector visits all that they consist
of, about a second: it took a third of the time of the kernels' tests. So nothing is collected
while they are gathered, and what there is then is set aside. Garbage of the tests themselves is
collected in rounds far apart: a kernel that is being decoded makes hundreds of thousands of
objects, all of which stay for as long as it is kept, and go without the collector.
"""

from __future__ import annotations

import gc
import sys
from functools import _lru_cache_wrapper

import pytest

# The default is 700 (from Python 3.13 on 2000) new objects, which decoding makes in a millisecond.
ROUND = 5_000_000


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection():
    """Gather the tests without a round, then set aside all that there is."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(ROUND, *gc.get_threshold()[1:])
        gc.enable()


def forget() -> None:
    """Let go of what functions of the book keep, such as kernels that are decoded.

    At its end pytest looks through all that is left, three times.
    """
    for name, module in list(sys.modules.items()):
        if name.startswith(("lib.", "book.")):
            for one in vars(module).values():
                if isinstance(one, _lru_cache_wrapper):
                    one.cache_clear()
