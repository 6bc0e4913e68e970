"""Each way to get it wrong is reported, with both accesses, their PTX lines and CUDA lines."""

import re

import pytest

from lib import ptx
from lib.ptx import advice
from lib.show import zoo as model

from ..conftest import HERE, compile_kernels, f32s, function_of

SPECIMENS = {one.name: one for one in model.specimens()}
SOURCE = HERE / "hazards.cu"
LINES = SOURCE.read_text().splitlines()
REPORTED = {
    "shared_race": "race", "shared_write_after_read": "race", "warp_race": "race",
    "global_race": "race", "global_race_in_a_block": "race", "cluster_race": "race",
    "missing_wait_group": "race", "missing_proxy_fence": "missing proxy fence",
    "bulk_store_unread": "race", "wgmma_operand": "race", "wgmma_accumulator": "wgmma in flight",
    "wgmma_fence": "missing wgmma.fence", "mbarrier_expect_too_little": "mbarrier",
    "block_exits": "block exited", "barrier_divergence": "barrier divergence",
    "exits_before_barrier": "exited before barrier",
}
STOPPED = {
    "mbarrier_wrong_count": ptx.Deadlock, "mbarrier_too_many": ptx.Error,
    "mbarrier_wrong_phase": ptx.Deadlock, "deadlock": ptx.Deadlock,
    "out_of_bounds": ptx.OutOfBounds, "shared_out_of_bounds": ptx.OutOfBounds,
    "misaligned": ptx.Misaligned, "uninitialised": ptx.UninitialisedRead,
}


def marked(kernel: str, mark: str) -> set[int]:
    """List the lines of a kernel that bear a mark, from 1."""
    start = next(i for i, line in enumerate(LINES) if re.search(rf"void .*\b{kernel}\(", line))
    end = next(i for i in range(start + 1, len(LINES)) if LINES[i].startswith("}"))
    found = {
        i + 1 for i in range(start, end + 1) if mark in LINES[i].partition("//")[2].split()
    }
    assert found, f"{kernel} has no line marked {mark}"
    return found


def run(kernel: str, lineinfo: bool = True, **options):
    text = compile_kernels("compute_90a", str(SOURCE))
    if not lineinfo:
        text = re.sub(r"^\s*\.loc\b.*$", "", text, flags=re.M)
    wgmma = kernel.startswith("wgmma")
    blocks = 2 if kernel.startswith(("global_race", "cluster", "block_exits")) else 1
    blocks = 1 if kernel == "global_race_in_a_block" else blocks
    function = function_of(text, kernel)
    return function(blocks, 128 if wgmma else 64, (f32s(512),), **options)


@pytest.mark.parametrize("kernel", REPORTED)
def test_a_report_names_both_accesses(kernel):
    ptx_lines = compile_kernels("compute_90a", str(SOURCE)).split("\n")
    found = [h for h in run(kernel, races=True).hazards if h.kind == REPORTED[kernel]]
    assert found
    for hazard in found[:1]:
        for access, mark in ((hazard.first, "first"), (hazard.second, "second")):
            assert access.opcode in ptx_lines[access.line - 1]
            assert access.cuda[0].endswith("hazards.cu")
            assert access.cuda[1] in marked(kernel, mark), f"{mark}: {hazard}"
            place = f"PTX line {access.line} ({access.opcode}), CUDA hazards.cu:{access.cuda[1]}"
            assert place in hazard.message


@pytest.mark.parametrize("kernel", ["shared_race", "missing_proxy_fence", "wgmma_accumulator"])
def test_without_line_information_ptx_lines_are_named(kernel):
    found = [
        h for h in run(kernel, lineinfo=False, races=True).hazards if h.kind == REPORTED[kernel]
    ]
    assert found[0].first.cuda is None and "CUDA" not in found[0].message
    for access in (found[0].first, found[0].second):
        assert f"PTX line {access.line} ({access.opcode})" in found[0].message


@pytest.mark.parametrize("kernel", STOPPED)
def test_what_stops_a_kernel_names_kernel_and_lines(kernel):
    with pytest.raises(STOPPED[kernel]) as error:
        run(kernel)
    said = str(error.value)
    assert f"kernel '{kernel}'" in said and re.search(r"PTX line \d+ \(", said)
    assert re.search(r"warp \d+ lane \d+|block \(", said)
    for line in marked(kernel, "here"):
        assert f"CUDA hazards.cu:{line}" in said


def test_every_kernel_is_run():
    names = set(re.findall(r"__global__ void .*?(\w+)\(float\* out\)", SOURCE.read_text()))
    assert names == set(REPORTED) | set(STOPPED)


# -- advice, and lines of wrappers ----------------------------------------------------------------


@pytest.mark.parametrize("name", ["copy_over_a_read", "load_over_a_read"])
def test_a_refill_is_told_to_wait_for_the_readers_and_where_they_read(name):
    kernel = model.compiled(SPECIMENS[name], False)
    specimen = SPECIMENS[name]
    args = [one.value for one in specimen.args()]
    found = kernel(specimen.grid, specimen.block, args, races=True).hazards
    hazard = next(h for h in found if h.kind == "race" and "write after read" in h.message)
    said = advice.for_hazard(hazard)
    assert said.startswith("a barrier") and "wait for the copy" not in said
    assert f"the read at {specimen.name}.cu:{hazard.first.cuda[1]} and this copy" in said


def test_an_error_in_a_header_s_wrapper_names_the_line_that_called_it_first():
    specimen = SPECIMENS["mbarrier_too_many"]
    with pytest.raises(ptx.Deadlock) as stopped:
        model.compiled(specimen, False)(
            specimen.grid, specimen.block, [one.value for one in specimen.args()])
    line = 1 + next(i for i, text in enumerate(specimen.path.read_text().split("\n"))
                    if "wait_for(&barrier" in text)
    assert f"CUDA mbarrier_too_many.cu:{line}, inlined from asm.cuh:" in str(stopped.value)
