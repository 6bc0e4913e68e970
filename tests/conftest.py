"""What all tests share: which of them this machine can run, and a plain word on the rest."""

from __future__ import annotations

import os
import shutil

import pytest

from lib import device

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
NO_BROWSER = "no Chrome or Chromium with its driver on this machine"


def find_browser() -> tuple[str, str] | None:
    """Paths of a browser and of its driver, or None."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


def pytest_collection_modifyitems(config, items):
    """Leave out what needs a browser or a GPU where there is none.

    REQUIRE_BROWSER=1 makes a missing browser a failure (`browser_paths` says so).
    """
    browser = find_browser() is not None or os.environ.get("REQUIRE_BROWSER") == "1"
    for item in items:
        if not browser and item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.skip(reason=NO_BROWSER))
        if item.get_closest_marker("gpu") and device.why_unusable():
            item.add_marker(pytest.mark.skip(reason=device.why_unusable()))


@pytest.fixture(scope="session")
def browser_paths() -> tuple[str, str]:
    """Paths of a browser and of its driver."""
    paths = find_browser()
    if paths is None:
        # Without REQUIRE_BROWSER the tests that ask for this were skipped when they were collected.
        pytest.fail("REQUIRE_BROWSER=1 and no Chrome or Chromium with its driver", pytrace=False)
    return paths


def pytest_terminal_summary(terminalreporter):
    """Name the tests that were left out for want of a browser."""
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
