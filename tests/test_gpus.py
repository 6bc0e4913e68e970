"""The data sheets, and which GPU a name stands for."""

import pytest

from lib import gpus
from lib.gpus import ARCHITECTURES, GPUS
from lib.paths import ROOT
from lib.run import device


def test_fp32_peaks_are_the_vendor_s():
    """Lanes × 2 × SMs × clock gives the figure that each data sheet prints, TFLOP/s."""
    printed = {"T4": 8.1, "A100": 19.5, "H100": 66.9, "H200": 66.9}
    for key, tflops in printed.items():
        assert GPUS[key].fp32_flops / 1e12 == pytest.approx(tflops, rel=0.01)


def test_ridge_points_of_the_t4():
    assert GPUS["T4"].fp32_ridge == pytest.approx(25.4, rel=0.01)
    assert GPUS["T4"].tensor_ridge == pytest.approx(203, rel=0.01)


@pytest.mark.parametrize(
    "name, key",
    [("T4", "T4"), ("t4", "T4"), ("Tesla T4", "T4"), ("NVIDIA H100 80GB HBM3", "H100"),
     ("NVIDIA A100-SXM4-80GB", "A100"), ("NVIDIA H200", "H200")],
)
def test_a_driver_s_name_finds_its_data_sheet(name, key):
    assert gpus.find(name).key == key


def test_an_unknown_gpu_lists_the_known():
    with pytest.raises(ValueError, match="A100"):
        gpus.find("NVIDIA GeForce RTX 3060")
    with pytest.raises(ValueError, match="did you mean H100"):
        gpus.find("H10")


def test_every_target_has_a_data_sheet():
    assert {gpus.for_arch(arch).arch for arch in ARCHITECTURES} == set(ARCHITECTURES)
    with pytest.raises(ValueError, match="did you mean sm_90a"):
        gpus.check_arch("sm_90")


def test_every_source_is_in_the_bibliography():
    text = (ROOT / "chapters" / "references.bib").read_text()
    for gpu in GPUS.values():
        for source in gpu.sources:
            assert f"{{{source}," in text


@pytest.mark.parametrize(
    "capability, arch", [("75", "sm_75"), ("86", "sm_80"), ("90", "sm_90a"), ("100", "sm_80")]
)
def test_a_device_s_capability_chooses_the_target(capability, arch, monkeypatch):
    monkeypatch.setattr(device, "cupy", lambda: FakeCupy(capability))
    assert device.arch() == arch


def test_a_gpu_older_than_the_book_is_refused(monkeypatch):
    monkeypatch.setattr(device, "cupy", lambda: FakeCupy("70"))
    monkeypatch.setattr(device, "name", lambda: "Tesla V100")
    with pytest.raises(device.NoGpu, match="V100 is older than sm_75"):
        device.arch()


class FakeCupy:
    """As much of CuPy as a compute capability takes."""

    def __init__(self, capability):
        self.cuda = self
        self.Device = lambda: self
        self.compute_capability = capability
