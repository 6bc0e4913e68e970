"""The built book, served on this machine, and a browser to open it in."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from book import serve
from lib.paths import ROOT


@pytest.fixture(scope="session")
def site(testrun_uid) -> Path:
    """The built book; built now where it is missing or older than its sources, once a run.

    The first worker that asks builds it, the others wait; where BOOK_BUILT=1, `make` just has.
    """
    output = ROOT / "_build"
    output.mkdir(exist_ok=True)
    with open(output / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        of_this_run = output / "built-for-tests"
        done = os.environ.get("BOOK_BUILT") == "1" or (
            of_this_run.exists() and of_this_run.read_text() == testrun_uid)
        if not (done and (output / "built").exists()):
            build_book()
            of_this_run.write_text(testrun_uid)
    return output / "html"


def build_book() -> None:
    """Build the book as `make book` does."""
    build = subprocess.run([sys.executable, "-m", "book.build"], cwd=ROOT, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if build.returncode:
        pytest.fail(f"the book does not build:\n{build.stdout[-4000:]}", pytrace=False)


@contextlib.contextmanager
def serving(folder: Path, handler=serve.Handler, port: int = 0):
    """Serve a folder for a while; the server's `address` ends with a slash."""
    with serve.Server(("127.0.0.1", port), functools.partial(
            handler, directory=str(folder))) as server:
        server.address = f"http://127.0.0.1:{server.server_port}/"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()


@pytest.fixture(scope="session")
def address(site) -> str:
    """Where the built book is served, with a slash at its end."""
    with serving(site) as server:
        yield server.address


@pytest.fixture(scope="session")
def browser(browser_paths, tmp_path_factory):
    """Headless Chrome or Chromium, driven by selenium."""
    chrome = start_browser(browser_paths, tmp_path_factory.mktemp("browser"))
    yield chrome
    chrome.quit()


def start_browser(paths: tuple[str, str], profile: Path):
    """Start a headless browser with a profile of its own: `paths` of `find_browser`."""
    from selenium import webdriver

    binary, driver = paths
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (
        "--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--disable-quic", "--hide-scrollbars", "--force-color-profile=srgb",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(flag)
    if os.geteuid() == 0 or os.environ.get("CI"):
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    chrome.set_page_load_timeout(30)
    chrome.set_script_timeout(30)
    return chrome
