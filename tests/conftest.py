"""What all tests share: which of them this machine can run, and a plain word on the rest."""

from __future__ import annotations

import os
import shutil
import time

import pytest

from lib.kernels.spec import Kernel, Variant
from lib.plotting import display
from lib.run import device

from . import cpu_seconds, garbage

# Hooks: pytest takes them from here.
from .cpu_seconds import pytest_runtest_protocol  # noqa: F401
from .garbage import pytest_collection  # noqa: F401
from .memory_limit import (  # noqa: F401
    pytest_configure,
    pytest_runtest_call,
    pytest_runtest_setup,
)
from .scheduling import pytest_xdist_make_scheduler  # noqa: F401

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
NO_BROWSER = "no Chrome or Chromium with its driver on this machine"


def find_browser() -> tuple[str, str] | None:
    """Paths of a browser and of its driver, or None."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


GPU_TESTS = pytest.StashKey[int]()
SLOW_ON_GPU = pytest.StashKey[int]()


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
    monkeypatch.setattr(display, "display", lambda *things: seen.extend(t.data for t in things))
    return seen


@pytest.fixture(scope="session")
def browser_paths() -> tuple[str, str]:
    """Paths of a browser and of its driver."""
    paths = find_browser()
    if paths is None:
        # Without REQUIRE_BROWSER the tests that ask for this were skipped when they were collected.
        pytest.fail("REQUIRE_BROWSER=1 and no Chrome or Chromium with its driver", pytrace=False)
    return paths


def pytest_sessionfinish(session):
    """Hand on what a worker of a spread run has counted; let go of what is kept for the next test.
    """
    garbage.forget()
    cpu_seconds.hand_on(session.config)
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["gpu_tests"] = [
            session.config.stash.get(key, 0) for key in (GPU_TESTS, SLOW_ON_GPU)]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Take what a worker has counted."""
    cpu_seconds.take(node)
    counts = getattr(node, "workeroutput", {}).get("gpu_tests", (0, 0))
    node.config.stash[GPU_TESTS], node.config.stash[SLOW_ON_GPU] = counts


def pytest_terminal_summary(terminalreporter, config):
    """Say what the tests cost, and what was left out for want of a GPU or a browser."""
    cpu_seconds.summarise(terminalreporter)
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
