"""Whole kernels: the emulator counts what ncu recorded, at 256 cubed, where a GPU was."""


import numpy as np
import pytest

from lib.kernels.build import compile_kernel
from lib.measure.counters import EMULATED, MATRIX
from lib.records import store as records
from lib.records.schema import KernelRecord
from lib.run.runner import emulate, prepare
from tests.kernels.conftest import REPRESENTATIVES, VARIANTS, executions, one_in, slow_but

SIZE = 256

# ncu counts no wavefronts for a copy of 16 bytes past the L1 that stands under a predicate, as
# ptxas writes 09's copies where they are spread over the steps; with a branch around them they are
# counted as in the calibration set.
PREDICATED = {"09_fp32_limit": {"large", "medium", "whole", "flat", "tall", "spread",
                                 "straight"}}

# Each instantiation for the GPU itself, and the first ones of some as an older GPU's PTX.
CODES = [
    pytest.param(*param.values, ptx_arch, id="-".join(filter(None, (param.id, ptx_arch))))
    for param in VARIANTS
    for ptx_arch in (None, *param.values[0].ptx_archs)
    if ptx_arch is None or param.values[1] is param.values[0].variants[0]
]
# Of those that differ in statements every third one.
COUNTED = {param.id for param in one_in(3, REPRESENTATIVES) if not param.marks}


def main_loop(compiled):
    """PTX lines of the loop that does the arithmetic."""
    return {instruction.ptx_line for instruction in compiled.inner_loop}


def recorded(kernel, variant, ptx_arch):
    """What the record has of a piece of code: its architecture, and its counters at `SIZE`."""
    record = records.load(KernelRecord, "H100", kernel.stem)
    again = f"python -m lib record {kernel.stem}"
    if record is None or variant.name not in record.variants:
        pytest.skip(f"{kernel.stem} {variant.name} was not recorded on an H100 yet: {again}")
    if records.changed(kernel, variant.name, record.variants[variant.name]):
        pytest.skip(f"{kernel.stem} {variant.name} has changed since it was recorded: {again}")
    stored = record.variants[variant.name]
    rows = (stored.ptx[ptx_arch] if ptx_arch else stored).counters
    row = next((c for c in rows if c.is_cube(SIZE)), None)
    if row is None:
        pytest.skip(f"{kernel.stem} {variant.name} has no counters at {SIZE}: {again}")
    return stored.arch, row.metrics


TRIED = slow_but(CODES, [code for code in CODES if code.id in COUNTED or code.values[2]])


@pytest.mark.parametrize("kernel, variant, ptx_arch", TRIED)
def test_the_emulator_counts_what_was_recorded(kernel, variant, ptx_arch):
    arch, metrics = recorded(kernel, variant, ptx_arch)
    problem = variant.problem(SIZE, SIZE, SIZE)
    main = prepare(kernel, variant, problem, [problem.inputs(0, np)], exact=True).steps[0][-1]
    compiled = compile_kernel(kernel, main.variant, arch, ptx_arch=ptx_arch)
    trace = emulate(compiled, main.launch, main.arguments).trace
    emulated = trace.counters()
    if variant.name in PREDICATED.get(kernel.stem, ()) and ptx_arch is None:
        past_l1 = [
            site for site in trace.sites
            if site.opcode.startswith("cp.async.cg") and site.line in main_loop(compiled)
        ]
        emulated["shared_wavefronts"] -= sum(site.wavefronts for site in past_l1)
        emulated["shared_wavefronts_ideal"] -= sum(site.ideal for site in past_l1)
    assert emulated == {name: metrics[name] for name in EMULATED}
    if kernel.group == "FP32":
        return  # few have been recorded since products and copies of fragments are counted
    matrix = trace.matrix_counters()
    matrix["gmma_instructions"] = matrix["wgmma_instructions"]
    # ncu has wgmma's instructions among those of the pipe as well.
    matrix["hmma_instructions"] = (
        matrix["gmma_instructions"] or executions(compiled.sass, trace.lines, "HMMA")
    )
    counted = {name: metrics[name] for name in MATRIX if name in metrics}
    assert {name: matrix[name] for name in counted} == counted
