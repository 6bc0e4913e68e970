"""A GPU whose kernels the emulator runs, and plans that no other test has made."""

import pytest

from lib.run import plans
from tests import driver, played


@pytest.fixture(autouse=True)
def forgotten():
    """Each test plans anew."""
    plans.forget()
    yield
    plans.forget()
    plans._loaded.clear()


@pytest.fixture
def gpu(monkeypatch):
    """A played H100."""
    return driver.play(played.H100, monkeypatch.setattr)
