"""Every kernel on a real GPU: right, clean under compute-sanitizer, and equal to the emulator."""

import json
import shutil
import subprocess
import sys

import pytest

from lib.kernels.catalogue import find
from lib.kernels.fused import EPILOGUE, EVERY
from lib.measure.counters import counters
from lib.paths import ROOT
from lib.run import device
from lib.run.runner import run
from tests.kernels.conftest import (
    REPRESENTATIVES,
    SCALARS,
    SHAPES,
    VARIANTS,
    legal,
    problem_of,
)

pytestmark = pytest.mark.gpu


def slow_but(few, params):
    """Parameters of which these alone are no slow ones."""
    return [pytest.param(*each.values, id=each.id, marks=[] if each in few else [pytest.mark.slow])
            for each in params]


# One of each kind of statement; of each version its own kernel; of these every seventh.
EACH = slow_but(REPRESENTATIVES, VARIANTS)
OWN = [each for each in VARIANTS if each.values[1] is each.values[0].variants[0]]


@pytest.mark.parametrize("shape", [*SHAPES, (2048, 2047, 2049)], ids=str)
@pytest.mark.parametrize("kernel, variant", EACH)
def test_right_on_every_shape_and_scalar(kernel, variant, shape):
    for alpha, beta in SCALARS:
        problem = variant.problem(*legal(variant, *shape), alpha, beta)
        verdict = run(kernel, problem, variant=variant, backend="gpu", exact=True).verdict
        assert verdict.ok, f"α = {alpha}, β = {beta}: {verdict}"


@pytest.mark.parametrize("kernel, variant", [
    pytest.param(find("hopper"), each, id=each.name, marks=[pytest.mark.slow] if place % 8 else [])
    for place, each in enumerate(find("hopper").menu)])
def test_every_candidate_is_right_on_ragged_tiles(kernel, variant):
    rows, columns = variant.tile
    for shape in ((rows + 9, 2 * columns + 24, 1000), (1000, 520, 328), (501, 259, 1163)):
        problem = variant.problem(*shape, 0.5, -2.0)
        verdict = run(kernel, problem, variant=variant, backend="gpu", exact=True).verdict
        assert verdict.ok, f"{shape}: {verdict}"


# What is laid out for calls alone, and gates: no page measures them.
LAID = [pytest.param(kernel, each, id=f"{kernel.stem}-{each.name}")
        for kernel, every in ((EPILOGUE, EVERY), *((one, one.laid) for one in map(
            find, ("26_fp8", "28_cta_pairs")))) for each in every if each not in kernel.measured]


@pytest.mark.parametrize("kernel, variant", LAID)
@pytest.mark.parametrize("shape, beta", [
    ((1, 16, 32), 0.0), ((67, 144, 416), -2.0), ((1000, 1040, 2080), 0.0), ((3, 16, 0), 0.5),
    ((4096, 4096, 1024), 0.0),
], ids=str)
def test_what_is_laid_out_for_calls_is_right(kernel, variant, shape, beta):
    problem = problem_of(variant, *shape, beta=beta)
    verdict = run(kernel, problem, variant=variant, backend="gpu", exact=True).verdict
    assert verdict.ok, verdict


@pytest.mark.parametrize("kernel, variant", EACH)
def test_long_sums_stay_under_the_figure(kernel, variant):
    verdict = run(kernel, variant.problem(512, 512, 4096), variant=variant, backend="gpu").verdict
    assert verdict.ok
    if variant.out == "float32":  # otherwise the error is that of C's own type
        assert verdict.error <= (1e-5 if kernel.group == "FP32" else 4e-5)


@pytest.mark.parametrize("shape", [(100, 99, 101), (128, 128, 128), (33, 65, 31)], ids=str)
@pytest.mark.parametrize("kernel, variant", [p for p in EACH if p.values[0].group == "FP32"])
def test_gpu_and_emulator_give_the_same_bits(kernel, variant, shape):
    """Each sum is a chain of fma in the order of k, and fma rounds once on both.

    A tensor core's sums have no such rule.
    """
    problem = variant.problem(*shape, 0.5, -2.0)
    theirs, mine = (
        run(kernel, problem, variant=variant, backend=where, arch=device.arch(), exact=True,
            given=problem.inputs(7)) for where in ("gpu", "emulator"))
    assert theirs.C.tobytes() == mine.C.tobytes()


@pytest.mark.parametrize("shape", [(256, 256, 256), (100, 99, 101)], ids=str)
@pytest.mark.parametrize("kernel, variant", slow_but(OWN, VARIANTS))
def test_emulated_counters_equal_the_hardware_s(kernel, variant, shape):
    if shutil.which("ncu") is None:
        pytest.skip("ncu is not installed")
    shape = legal(variant, *shape)
    emulated = run(kernel, variant.problem(*shape), variant=variant, backend="emulator",
                   arch=device.arch()).launch.trace.counters()
    (measured,) = counters(kernel.stem, variant.name, [shape])
    if (kernel.stem, shape) == ("17_wgmma", (100, 104, 104)):
        # Rows of 208 bytes, whose sectors the swizzle parts, and warps of which some lanes write
        # zeros: see `count.cp_async`, whose rules don't meet these two.
        for name in ("shared_wavefronts", "shared_wavefronts_ideal"):
            assert measured[name] > emulated.pop(name)
    assert {name: measured[name] for name in emulated} == emulated


@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "synccheck", "initcheck"])
@pytest.mark.parametrize("kernel, variant", slow_but(OWN[::7], VARIANTS))
def test_clean_under_compute_sanitizer(kernel, variant, tool):
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        pytest.skip("compute-sanitizer is not installed")
    for shape, beta in ((legal(variant, 100, 99, 101), "-2"), ((64, 64, 64), "0")):
        done = subprocess.run(
            [sanitizer, "--tool", tool, "--error-exitcode", "9", sys.executable, "-m", "lib",
             "launch", f"{kernel.stem}/{variant.name}", "--shape",
             "x".join(map(str, shape)), "--beta", beta],
            capture_output=True, text=True, cwd=ROOT, check=False,
        )
        assert done.returncode == 0, done.stdout[-2000:]
        assert "0 errors" in done.stdout or "0 hazards" in done.stdout


@pytest.mark.parametrize("kernel, variant", EACH)
def test_the_timeline_has_phases_in_the_kernel_s_order(kernel, variant):
    from lib.measure.timeline import PHASES, timeline

    # The SM that notes must have a block: it has where there are more than all SMs hold at once.
    # Of fewer nobody says which SMs get them, and beside other processes' it is not always this.
    found = timeline(kernel, variant, variant.problem(4096, 4096, 512))
    assert found.mark_cycles > 0
    assert found.blocks
    for warp in found.blocks[0].warps:
        # Lanes of a producer's warp that mark nothing write their end over its first event.
        cycles = [cycle for _, cycle in warp][PHASES[warp[0][0]] == "end" :]
        assert [*cycles] == sorted(cycles)
        # Where roles are divided, one waits for a free tile, others for a full one or for the end.
        # 12's consumers wait at a named barrier, and its producers load before they wait.
        first = ("load",) if kernel.stem == "12_wmma_pipeline" else ()
        assert PHASES[warp[0][0]] in (
            ("wait", "barrier", "end", *first) if variant.roles.warps else ("load",))


def test_check_says_that_it_ran_on_the_gpu():
    done = subprocess.run(
        [sys.executable, "-m", "lib", "check", "01_naive", "--shape", "100x99x101", "--json"],
        capture_output=True, text=True, cwd=ROOT, check=True,
    )
    document = json.loads(done.stdout)
    assert document["backend"] == "gpu" and document["ok"]
