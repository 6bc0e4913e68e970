"""Which worker of a spread run gets which tests, and in which order."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

from lib.kernels.catalogue import CATALOGUE

ROOT = Path(__file__).resolve().parent.parent
# CPU seconds of test files and of kernels: in the last run here, and in one elsewhere.
SECONDS = (ROOT / "tools" / "seconds.json", ROOT / "_build" / "test-seconds.json")
UNKNOWN = 1.0  # of a file that neither has: those of less than 2 s are left out there
KERNEL = re.compile(rf"\[.*?({'|'.join(CATALOGUE)})")


def kernel_of(nodeid: str) -> str | None:
    """The kernel that a test is of, wherever it stands; None for those that stay with their module.

    The pages stay together, and so do the panels: they share a browser, and an emulator in it that
    takes seconds to start.
    """
    if nodeid.startswith(("tests/book/", "tests/panel/")):
        return None
    found = KERNEL.search(nodeid)
    return found[1] if found else None


def stored_seconds() -> dict[str, float]:
    """What test files and kernels took, by path and by stem."""
    return {name: took for stored in SECONDS if stored.exists()
            for name, took in json.loads(stored.read_text(encoding="utf-8")).items()}


def expected(scope: str, seconds: dict[str, float]) -> float:
    """CPU seconds that a kernel's or a module's tests may take; a kernel of no record comes first.
    """
    unknown = float("inf") if scope in CATALOGUE else UNKNOWN
    return seconds.get(scope.partition("::")[0], unknown)


class ByKernel(LoadScopeScheduling):
    """Hand a worker all tests of a kernel, wherever they stand, and else of a module.

    So no worker waits for the longest module, and each decodes the kernels that it runs, not all.
    What takes longest is handed out first: what is left at the end is short, and the workers end
    together. (By itself xdist begins with what has the most tests, and ends with single long ones.)
    """

    def __init__(self, *arguments, **options) -> None:
        super().__init__(*arguments, **options)
        self._seconds = stored_seconds()

    def _split_scope(self, nodeid: str) -> str:
        return kernel_of(nodeid) or super()._split_scope(nodeid)

    def _assign_work_unit(self, node) -> None:
        longest = max(self.workqueue, key=lambda scope: expected(scope, self._seconds))
        self.workqueue.move_to_end(longest, last=False)
        super()._assign_work_unit(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Schedule by kernel where `--dist loadscope` is asked for."""
    return ByKernel(config, log) if config.getvalue("dist") == "loadscope" else None
