"""The chapters as they are executed now: those of the book's build, or executed here."""

import fcntl
from pathlib import Path

import pytest

from book import executed
from lib.paths import ROOT


@pytest.fixture(scope="session")
def up_to_date() -> Path:
    """The repository, its chapters executed; one worker executes them, the others wait."""
    (ROOT / "_build").mkdir(exist_ok=True)
    with open(ROOT / "_build" / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        executed.bring_up_to_date(ROOT)
    return ROOT
