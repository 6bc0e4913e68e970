"""A test that takes too much memory is named, with the limit; the tests behind it run."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from lib.paths import ROOT

from . import conftest, memory_limit

HOG = """
import numpy as np

def test_before(): pass
def test_hog(): np.full(1 << 29, 1, np.uint64)
def test_small_steps():
    held = []
    while True:
        held.append(bytearray(1 << 24))
def test_reserved(): np.zeros(1 << 20)
def test_after(): assert np.ones(1 << 20).sum() == 1 << 20
"""


@pytest.mark.skipif(not memory_limit.LIMITED, reason="only Linux counts what is allocated")
def test_a_hog_is_named_and_the_others_run(tmp_path):
    (tmp_path / "test_planted.py").write_text(HOG)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-c", os.devnull, "-q",
         "-p", "no:cacheprovider", f"--rootdir={tmp_path}", str(tmp_path)],
        cwd=ROOT, env={**os.environ, "TEST_MEMORY_GIB": "2.5"}, capture_output=True, text=True,
        timeout=120,
    )
    said = done.stdout
    assert done.returncode == 1 and "2 failed, 3 passed" in said, said + done.stderr
    for name in ("test_hog", "test_small_steps"):
        line = f"test_planted.py::{name} met the limit of a test process, 2.5 GiB; it began with"
        assert line in said.replace(f"{tmp_path}/", ""), said


def test_every_process_of_a_run_has_the_limit():
    assert conftest.pytest_configure is memory_limit.pytest_configure
    if memory_limit.LIMITED:
        import resource

        assert resource.getrlimit(resource.RLIMIT_DATA)[0] <= memory_limit.limit()


def test_what_stays_after_a_round_brings_no_further_one(monkeypatch):
    """A round at each test once took an hour: the process held more than it could give back."""
    rounds, gib = [], memory_limit.GIB
    taken = iter(n * gib for n in (0.5, 1.5, 1.4, 2.3, 2.5, 2.5, 0.2, 1.3))
    monkeypatch.setattr(memory_limit, "_allocated", lambda: next(taken))
    monkeypatch.setattr(memory_limit, "_free", lambda: rounds.append(len(rounds)))
    growth = memory_limit.Growth()
    growth.collect()
    assert not rounds
    growth.collect()  # 1.5 GiB, of which 1.4 stay
    growth.collect()
    assert len(rounds) == 1
    growth.collect()  # 2.5 GiB
    assert len(rounds) == 2
