"""Chapters on a GPU that is too old for some kernels: all run, and each output says where."""

import subprocess
import sys

import pytest

from lib.chapter import RECORDED_ON, Chapter
from lib.kernels.catalogue import CATALOGUE, in_book
from lib.measure import cublaslt
from lib.paths import ROOT
from lib.records import store as records
from lib.records.schema import KernelRecord
from tests import played
from tests.pages import cells

MEASURED, MEASURED_H100 = "measured: Tesla T4", "measured: H100"
NOT_RECORDED = "Not recorded yet"
# Every third in the book, those that a T4 runs and those that it doesn't among them.
PAGES = [pytest.param(Chapter(stem), id=stem, marks=pytest.mark.slow if place % 3 else ())
         for place, stem in enumerate(in_book())]


def shows(verb, stem, shown):
    """Let a page show what it has; whether it has anything to show on this GPU."""
    kernel, record = CATALOGUE[stem], records.load(KernelRecord, RECORDED_ON, stem)
    verb()
    if kernel.min_arch == "sm_75" or NOT_RECORDED not in shown[0]:
        return True
    assert record is None or any(v.name not in record.variants for v in kernel.variants)
    assert NOT_RECORDED in shown.pop() and not shown
    return False


@pytest.fixture
def turing(monkeypatch):
    """A machine that seems to have a T4."""
    played.play(played.T4, monkeypatch.setattr)


def test_a_gpu_is_played_without_the_tests_own_packages():
    """As on a played Colab, whose environment has none of them (`tests/colab`)."""
    code = ("import sys\n"
            "sys.modules |= dict.fromkeys(('pytest', 'xdist', 'hypothesis', 'selenium'))\n"
            "from tests import played\n"
            "played.play(played.T4)\n")
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


@pytest.mark.parametrize("verb", ["speed", "timeline"])
@pytest.mark.parametrize("page", PAGES)
def test_what_the_gpu_can_is_measured_and_the_rest_recorded(page, verb, shown, turing):
    if not shows(getattr(Chapter(page.kernel.stem), verb), page.kernel.stem, shown):
        return
    here = page.kernel.min_arch == "sm_75"
    assert (MEASURED in shown[0], "recorded: H100" in shown[0]) == (here, not here)
    assert verb == "timeline" or ({row[2] for row in cells(shown[0])} == {"1.25"}) == here


def test_without_an_optional_package_the_record_is_shown_and_what_to_install(shown, monkeypatch):
    lacking = cublaslt.lacking
    played.play(played.H100, monkeypatch.setattr)
    monkeypatch.setattr(cublaslt, "lacking", lacking)
    for package in ("nvmath", "pynvml", "torch"):
        monkeypatch.setitem(sys.modules, package, None)
    page = Chapter("26_fp8")
    for verb in (page.speed, page.timeline):
        verb()
        assert "recorded: H100" in shown[-1] and MEASURED_H100 not in shown[-1]
        assert "not measured here: " in shown[-1] and "pip install -U nvmath-python" in shown[-1]
    for verb in (page.roofline, page.busiest):
        verb()
        assert "recorded: H100" in shown[-1] and MEASURED_H100 not in shown[-1]
    page.check("two_parts")
    assert MEASURED_H100 in shown[-1]  # which needs none of them


def test_variants_that_do_not_fit_are_recorded_and_the_others_measured(shown, monkeypatch):
    played.play(played.L4, monkeypatch.setattr)
    Chapter("16_cp_async").speed("tile_256x128", "step_64")
    assert "measured: L4 (16 tile_256x128); recorded: H100" in shown[0]
    assert "(16 step_64)" in shown[0]
    speeds = {row[0]: row[2] for row in cells(shown[0])}
    assert speeds["tile_256x128"] == "1.25" != speeds["step_64"]


def test_results_are_checked_on_the_gpu_or_in_the_emulator(shown, turing):
    Chapter("02_shared_tile").check()
    assert MEASURED in shown[0] and "emulat" not in shown[0]
    Chapter("16_cp_async").check("tile_256x128")
    assert "emulated: sm_80 code" in shown[1] and "since Tesla T4 doesn't run" in shown[1]
    assert "measured" not in shown[1]


def test_a_gpu_that_is_too_old_for_the_fastest_variant_runs_another_of_the_version(shown, turing):
    assert Chapter("16_cp_async").fastest == CATALOGUE["16_cp_async"].fastest.name  # runs none
    for stem in ("14_ldmatrix", "15_turing_limit"):
        page = Chapter(stem)
        assert page.fastest == page.kernel.variants[0].name != page.kernel.fastest.name
        page.check(page.fastest)
        page.speed(page.fastest)
    assert len(shown) == 4 and all(MEASURED in text and "emulated" not in text for text in shown)


def test_the_gpu_here_has_a_dot_of_its_own_among_the_recorded_ones(shown, turing):
    Chapter("03_strip").roofline()
    assert "yours: Tesla T4: 1.25 TFLOP/s" in shown[0] and "03 strip (this chapter)" in shown[0]
    assert "measured: Tesla T4 (yours); recorded: H100" in shown[0]
    Chapter("16_cp_async").roofline()  # a T4 can't run it
    assert "yours" not in shown[1]


def test_the_units_of_the_gpu_here_come_before_those_of_the_recorded_one(shown, turing):
    Chapter("03_strip").busiest()
    assert "T4 data sheet" in shown[0] and MEASURED in shown[0] and "H100" in shown[1]
    Chapter("16_cp_async").busiest()
    assert len(shown) == 3 and "H100" in shown[2]
