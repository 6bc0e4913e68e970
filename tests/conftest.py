"""What all tests share: which of them this machine can run, and a plain word on the rest."""

from __future__ import annotations

import gc
import os
import re
import shutil
import sys
import time
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

from book import pdf
from lib.kernels.catalogue import CATALOGUE
from lib.kernels.spec import Kernel, Variant
from lib.records import store
from lib.run import device

NO_BROWSER = "no Chrome or Chromium with its driver on this machine"


def find_browser() -> tuple[str, str] | None:
    """Paths of a browser and of its driver, or None."""
    browser = pdf.browser()
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


GPU_TESTS = pytest.StashKey[int]()
SLOW_ON_GPU = pytest.StashKey[int]()
KERNEL = re.compile(rf"\[.*?({'|'.join(CATALOGUE)})")
GIB = 1 << 30
_stayed = 0  # bytes that this process had after its last round of the collector


class ByKernel(LoadScopeScheduling):
    """Hand a worker all tests of a kernel, wherever they are: it is decoded once. Else a module's.

    The pages stay together, which are parsed once, and so do panels: they share a browser.
    """

    def _split_scope(self, nodeid: str) -> str:
        shared = re.match("tests/(book|panel)/", nodeid)
        kernel = KERNEL.search(nodeid)
        return shared[0] if shared else kernel[1] if kernel else super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Schedule by kernel where `--dist loadscope` is asked for."""
    return ByKernel(config, log) if config.getvalue("dist") == "loadscope" else None


def pytest_configure():
    """Limit this process to 8 GiB, or TEST_MEMORY_GIB, on Linux, which counts what is allocated.

    The collector looks through no garbage while thousands of tests are gathered.
    """
    gc.disable()
    if sys.platform == "linux":
        import resource

        bound = int(float(os.environ.get("TEST_MEMORY_GIB", "8")) * GIB)
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        bound = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (bound, hard))


def pytest_collection_finish():
    """What lives as long as the run is no garbage; what decoding makes, hundreds of thousands of
    objects, stays as long as it is kept. A third of the kernels' time went into such rounds."""
    gc.freeze()
    gc.set_threshold(5_000_000, *gc.get_threshold()[1:])
    gc.enable()


def pytest_runtest_setup():
    """Collect garbage where a process has grown by a gibibyte: errors hold their frames."""
    global _stayed
    if sys.platform == "linux":
        def allocated():
            pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[5]
            return int(pages) * os.sysconf("SC_PAGE_SIZE")

        if allocated() > _stayed + GIB:
            gc.collect()
            _stayed = allocated()


def why_not_here(item):
    """Why the GPU here can't run a test, by the kernel and variant that are its parameters."""
    given = getattr(item, "callspec", None)
    kernel, variant = (given.params.get(name) if given else None for name in ("kernel", "variant"))
    if not isinstance(kernel, Kernel) or not isinstance(variant, Variant):
        return None
    return device.why_not(kernel, variant)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config, items):
    """Leave out what needs a browser or a GPU where there is none, or another GPU than is here.

    REQUIRE_BROWSER=1 makes a missing browser a failure (`browser_paths` says so). Thousands of
    tests need a GPU: without one they are collected, so that a mistake in their parameters is
    found, and deselected; `-m gpu` names each and skips it.
    """
    slow = sum(bool(item.get_closest_marker("gpu") and item.get_closest_marker("slow"))
               for item in items)
    yield  # those that -m leaves out are deselected
    browser = find_browser() is not None or os.environ.get("REQUIRE_BROWSER") == "1"
    why = device.why_unusable()
    named = "gpu" in config.option.markexpr.split()
    selected, left_out = [], []
    for item in items:
        if not browser and item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.skip(reason=NO_BROWSER))
        if why and item.get_closest_marker("gpu"):
            if not named:
                left_out.append(item)
                continue
            item.add_marker(pytest.mark.skip(reason=why))
        elif item.get_closest_marker("gpu") and (other := why_not_here(item)):
            item.add_marker(pytest.mark.skip(reason=other))
        selected.append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = selected
    config.stash[GPU_TESTS] = len(left_out)
    config.stash[SLOW_ON_GPU] = slow if named and "not slow" in config.option.markexpr else 0


@pytest.fixture(autouse=True)
def _until_the_time_is_over(request):
    """Skip what would begin after `make test-gpu`'s minutes."""
    end = os.environ.get("GPU_TESTS_END")
    if end and time.time() > float(end) and request.node.get_closest_marker("gpu"):
        pytest.skip("no time is left: MINUTES=60 make test-gpu")


@pytest.fixture
def shown(monkeypatch) -> list[str]:
    """Whatever a page displays, as text."""
    seen: list[str] = []
    monkeypatch.setattr("IPython.display.display", lambda *things, **_: seen.extend(
        t["text/html"] if isinstance(t, dict) else t.data for t in things))
    return seen


@pytest.fixture
def results(tmp_path, monkeypatch) -> Path:
    """An empty folder in the place of that with the records."""
    monkeypatch.setattr(store, "RESULTS", tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def browser_paths() -> tuple[str, str]:
    """Paths of a browser and of its driver."""
    paths = find_browser()
    if paths is None:
        # Without REQUIRE_BROWSER the tests that ask for this were skipped when they were collected.
        pytest.fail("REQUIRE_BROWSER=1 and no Chrome or Chromium with its driver", pytrace=False)
    return paths


def pytest_sessionfinish(session):
    """Hand on what a worker has left out; spare pytest the last look through all that is kept."""
    gc.freeze()
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["gpu_tests"] = [
            session.config.stash.get(key, 0) for key in (GPU_TESTS, SLOW_ON_GPU)]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Take what a worker has left out."""
    counts = getattr(node, "workeroutput", {}).get("gpu_tests", (0, 0))
    node.config.stash[GPU_TESTS], node.config.stash[SLOW_ON_GPU] = counts


def pytest_terminal_summary(terminalreporter, config):
    """Say what was left out for want of a GPU or a browser."""
    if many := config.stash.get(GPU_TESTS, 0):
        terminalreporter.section(f"{many} tests left out: {device.why_unusable()}")
        terminalreporter.line("`pytest -m gpu --collect-only -q` lists them")
    if slow := config.stash.get(SLOW_ON_GPU, 0):
        terminalreporter.section(f'{slow} tests left to `pytest -m "gpu and slow"`')
    left_out = [
        report.nodeid
        for report in terminalreporter.stats.get("skipped", [])
        if NO_BROWSER in str(report.longrepr)
    ]
    if left_out:
        terminalreporter.section(f"{len(left_out)} tests left out: {NO_BROWSER}")
        for name in left_out:
            terminalreporter.line(name)
        terminalreporter.line("Debian, Ubuntu: apt-get install chromium chromium-driver")
