"""A test that would take the machine's memory fails, by name: each process of a run has a limit."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator

import pytest

GIB = 1 << 30
# What a process may take more than after its last round of the collector before there is another.
# A round looks through all that the tests hold, for seconds: not one at each test, however much
# stays.
GROWTH = GIB
# Linux alone counts what is allocated, and not what is only reserved, as browsers do in terabytes.
LIMITED = sys.platform == "linux"


def limit() -> int:
    """Bytes that a process may allocate: 8 GiB, or TEST_MEMORY_GIB of them."""
    return int(float(os.environ.get("TEST_MEMORY_GIB", "8")) * GIB)


def pytest_configure() -> None:
    """Limit this process, and those that it starts."""
    if LIMITED:
        import resource  # there is none on Windows

        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        bound = limit() if hard == resource.RLIM_INFINITY else min(limit(), hard)
        resource.setrlimit(resource.RLIMIT_DATA, (bound, hard))


def _allocated() -> int:
    """Bytes of data that this process has."""
    with open("/proc/self/statm", encoding="ascii") as text:
        return int(text.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")


def _free() -> None:
    """Drop what an earlier test's error still holds: its frames, in cycles seldom collected."""
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        vars(sys).pop(name, None)
    gc.collect()


class Growth:
    """How much this process has taken since garbage was last collected between two tests."""

    def __init__(self) -> None:
        self._stayed = 0

    def collect(self) -> None:
        """Collect garbage if there may be much."""
        if _allocated() > self._stayed + GROWTH:
            _free()
            self._stayed = _allocated()


_growth = Growth()


def _reported(item: pytest.Item) -> Iterator[None]:
    if LIMITED:
        _growth.collect()
    before = _allocated() if LIMITED else 0
    try:
        return (yield)
    except MemoryError as error:
        if not LIMITED:
            raise
        raise MemoryError(
            f"{item.nodeid} met the limit of a test process, {limit() / GIB:g} GiB; it began with "
            f"{before / GIB:.1f} GiB ({error}). TEST_MEMORY_GIB sets another limit"
        ) from error


pytest_runtest_setup = pytest.hookimpl(wrapper=True)(_reported)
pytest_runtest_call = pytest.hookimpl(wrapper=True)(lambda item: (yield from _reported(item)))
