"""The GPU that is here, if one is: what it can run, and in which form it gets its code."""

import gc
import re
import weakref
from types import SimpleNamespace

import pytest

from lib.kernels import catalogue as kernels
from lib.kernels.build import compile_kernel
from lib.kernels.grid import Launch
from lib.paths import ROOT
from lib.run import device, launching
from tests import played
from tests.tables import cases

ELF = b"\x7fELF"


@pytest.mark.parametrize("gpu, arch", [
    (played.T4, "sm_75"), (played.L4, "sm_80"), (played.H100, "sm_90a"), (played.B200, "sm_80")])
def test_a_device_s_capability_chooses_the_target(gpu, arch, monkeypatch):
    played.play(gpu, monkeypatch.setattr)
    assert device.arch() == arch


def test_a_gpu_older_than_the_book_is_as_none(monkeypatch):
    import cupy
    from cupy.cuda import runtime

    monkeypatch.setattr(runtime, "driverGetVersion", lambda: 12080)
    monkeypatch.setattr(runtime, "runtimeGetVersion", lambda: 12080)
    monkeypatch.setattr(runtime, "getDeviceCount", lambda: 1)
    monkeypatch.setattr(cupy.cuda, "Device", lambda: SimpleNamespace(id=0))
    monkeypatch.setattr(runtime, "getDeviceProperties", lambda index: {
        "name": b"Tesla V100-SXM2-16GB", "major": 7, "minor": 0})
    device.why_unusable.cache_clear()
    try:
        said = device.why_unusable()
        assert "V100-SXM2-16GB is older than sm_75" in said and not device.available()
        with pytest.raises(device.NoGpu, match="older than sm_75"):
            device.arch()
    finally:
        device.why_unusable.cache_clear()


@cases("""
gpu  | name                          | why
T4   | 09_fp32_limit/flat            | None
T4   | 15_turing_limit/tile_128x256  | None
T4   | 16_cp_async/tile_256x128      | Tesla T4 doesn't run sm_80 code
A100 | 16_cp_async/step_64           | None
A100 | 20_persistent/wide            | NVIDIA A100-SXM4-40GB doesn't run sm_90a code
T4   | 14_ldmatrix/k8                | None
T4   | 14_ldmatrix/k16               | Tesla T4 doesn't run sm_80 code, and 14_ldmatrix/k16 is that
T4   | 15_turing_limit/k16           | doesn't run sm_80 code, and 15_turing_limit/k16 is that
A100 | 15_turing_limit/k16           | None
L4   | 16_cp_async/tile_256x128      | None
L4   | 16_cp_async/step_64           | takes 147,456
L4   | 18_tma/wide                   | NVIDIA L4 doesn't run sm_90a code
H100 | 20_persistent/wide            | None
B200 | 18_tma/wide                   | NVIDIA B200 doesn't run sm_90a code
B200 | 16_cp_async/step_64           | None
""")
def test_what_a_gpu_can_run(gpu, name, why, monkeypatch):
    """What is specific to sm_90a runs on nothing later."""
    played.play(getattr(played, gpu), monkeypatch.setattr)
    kernel, variant = kernels.named(name)
    said = device.why_not(kernel, variant)
    assert (said is None) == (why is None) and (why is None or why in said)
    assert device.runs(kernel, variant) == (why is None)


@pytest.mark.parametrize("gpu, arch", [
    (played.T4, "sm_75"), (played.L4, "sm_75"), (played.L4, "sm_80"), (played.H100, "sm_75"),
    (played.H100, "sm_90a"), (played.B200, "sm_75"), (played.B200, "sm_80")])
def test_a_gpu_gets_machine_code_and_never_ptx(gpu, arch, monkeypatch):
    cupy = played.play(gpu, monkeypatch.setattr)
    compiled = compile_kernel(kernels.find("01_naive"), arch=arch)
    device.Loaded(compiled)
    (code,) = cupy.loaded
    assert code.startswith(ELF)
    # Machine code of another major version would be refused.
    same_major = int(arch[3:5]) // 10 == gpu.capability // 10
    assert (code == compiled.cubin) == same_major


def test_nothing_else_hands_code_to_the_driver():
    loads = re.compile(r"function\.Module|[mM]oduleLoad|[lL]ibraryLoad|[lL]inkAdd")
    found = {path.name for path in (ROOT / "lib").rglob("*.py") if loads.search(path.read_text())}
    assert found == {"device.py"}


@pytest.fixture
def gpcs(monkeypatch):
    """A driver of a GPU with two GPCs of 9 SMs each: what it is asked, by a cluster's blocks."""
    asked = []

    def answer(found, function, reference):
        settings = reference._obj
        attribute = launching._Attribute.from_address(settings.attributes)
        size = attribute.value[0]
        asked.append((function.value, attribute.id, size, settings.shared, settings.count))
        found._obj.value = 9 // size * 2
        return 0 if size <= 8 else 1

    monkeypatch.setattr(launching, "_driver",
                        lambda: SimpleNamespace(cuOccupancyMaxActiveClusters=answer))
    return asked


def test_the_driver_is_asked_how_many_clusters_run_at_once(gpcs):
    assert [launching.clusters_at_once(5, size, 1 << 16) for size in (1, 2, 4)] == [18, 8, 4]
    assert gpcs[-1] == (5, 4, 4, 1 << 16, 1)  # 4: CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    with pytest.raises(RuntimeError, match="clusters of 16 blocks run at once: CUresult 1"):
        launching.clusters_at_once(5, 16, 0)


def test_sms_that_no_cluster_fills_are_left_over(gpcs, monkeypatch):
    limit = 227 * 1024
    probe = SimpleNamespace(kernel=SimpleNamespace(ptr=5), max_dynamic_shared_size_bytes=0)
    module = SimpleNamespace(get_function=lambda name: probe)
    monkeypatch.setattr(device, "cupy", lambda: SimpleNamespace(RawModule=lambda code: module))
    monkeypatch.setattr(device, "sms", lambda: 18)
    monkeypatch.setattr(device, "shared_limit", lambda: limit)
    monkeypatch.setattr(device, "current", lambda: 0)
    device._filled.cache_clear()
    try:
        assert [device.filled(size) for size in (1, 2, 4, 4)] == [18, 16, 16, 16]
    finally:
        device._filled.cache_clear()
    assert len(gpcs) == 2  # it is asked once a size
    assert probe.max_dynamic_shared_size_bytes == limit and gpcs[-1][3] == limit


def test_a_launch_that_is_laid_out_keeps_its_code_loaded(monkeypatch):
    class Module:
        """What unloads its functions when nothing holds it."""

    monkeypatch.setattr(launching, "_driver", lambda: SimpleNamespace(
        cuLaunchKernelEx=lambda *given: 0))
    code = device.Loaded.__new__(device.Loaded)
    code._module, code._function, code._shared_bytes = Module(), SimpleNamespace(ptr=1), 1 << 20
    module = weakref.ref(code._module)
    ready = code.ready(Launch((1, 1, 1), (32, 1, 1)), ())
    del code
    gc.collect()
    assert module() is not None
    ready(0)
    del ready
    gc.collect()
    assert module() is None
