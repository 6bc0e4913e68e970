"""What all tests share: which of them this machine can run, and a plain word on the rest."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
NO_BROWSER = "no Chrome or Chromium with its driver on this machine"
NO_GPU = "no NVIDIA GPU on this machine"


def find_browser() -> tuple[str, str] | None:
    """Paths of a browser and of its driver, or None."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


def pytest_collection_modifyitems(config, items):
    """Leave out what needs a browser or a GPU where there is none.

    REQUIRE_BROWSER=1 makes a missing browser a failure (the `browser` fixture says so).
    """
    browser = find_browser() is not None or os.environ.get("REQUIRE_BROWSER") == "1"
    gpu = Path("/proc/driver/nvidia/version").exists()
    for item in items:
        if not browser and item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.skip(reason=NO_BROWSER))
        if not gpu and item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason=NO_GPU))


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
