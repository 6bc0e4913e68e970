"""The data sheets, and which GPU a name stands for."""

import pytest

from lib import gpus
from lib.gpus import ARCHITECTURES, GPUS
from lib.paths import ROOT
from tests.tables import cases


def test_fp32_peaks_are_the_vendor_s():
    """Lanes × 2 × SMs × clock gives the figure that each data sheet prints, TFLOP/s."""
    printed = {"T4": 8.1, "A100": 19.5, "H100": 66.9, "H200": 66.9, "B200": 75.0}
    for key, tflops in printed.items():
        assert GPUS[key].fp32_flops / 1e12 == pytest.approx(tflops, rel=0.01)


@cases("""
name                  | key
T4                    | T4
t4                    | T4
Tesla T4              | T4
NVIDIA H100 80GB HBM3 | H100
NVIDIA A100-SXM4-80GB | A100
NVIDIA H200           | H200
""")
def test_a_driver_s_name_finds_its_data_sheet(name, key):
    assert gpus.find(name).key == key


def test_an_unknown_gpu_lists_the_known():
    with pytest.raises(ValueError, match="A100"):
        gpus.find("NVIDIA GeForce RTX 3060")
    with pytest.raises(ValueError, match="did you mean H100"):
        gpus.find("H10")


def test_every_target_has_a_data_sheet():
    assert {gpus.for_arch(arch).arch for arch in ARCHITECTURES} == set(ARCHITECTURES)
    assert gpus.for_arch("sm_100a").key == "B200"
    with pytest.raises(ValueError, match="did you mean sm_90a"):
        gpus.check_arch("sm_90")


def test_every_source_is_in_the_bibliography():
    text = (ROOT / "chapters" / "references.bib").read_text()
    for gpu in GPUS.values():
        for source in gpu.sources:
            assert f"{{{source}," in text
