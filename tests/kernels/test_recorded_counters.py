"""Whole kernels: the emulator counts what ncu recorded, at 256 cubed, where a GPU was."""

import pytest

from lib.measure import records
from lib.measure.counters import EMULATED
from lib.runner import run
from tests.kernels.conftest import VARIANTS

SIZE = 256

# ncu counts no wavefronts for a copy of 16 bytes past the L1 that stands under a predicate, as
# ptxas writes 09's copies where they are spread over the steps; with a branch around them they are
# counted as in the calibration set.
PREDICATED = {"09_fp32_limit": {"large", "medium", "whole", "flat", "tall", "spread"}}


def main_loop(compiled):
    """PTX lines of the loop that does the arithmetic."""
    return {instruction.ptx_line for instruction in compiled.inner_loop}


@pytest.mark.parametrize("kernel, variant", VARIANTS)
def test_the_emulator_counts_what_was_recorded(kernel, variant):
    record = records.load("H100", kernel.stem)
    again = f"python -m lib record {kernel.stem}"
    if record is None or variant.name not in record["variants"]:
        pytest.skip(f"{kernel.stem} {variant.name} was not recorded on an H100 yet: {again}")
    if records.stale(record, variant.name):
        pytest.skip(f"{kernel.stem} {variant.name} has changed since it was recorded: {again}")
    kept = record["variants"][variant.name]
    row = next((c for c in kept["counters"] if (c["M"], c["N"], c["K"]) == (SIZE,) * 3), None)
    if row is None:
        pytest.skip(f"{kernel.stem} {variant.name} has no counters at {SIZE}: {again}")
    done = run(kernel, variant.problem(SIZE, SIZE, SIZE), variant=variant, backend="emulator",
               arch=kept["arch"])
    counted = {name: row["metrics"][name] for name in EMULATED}
    emulated = done.launch.trace.counters()
    if variant.name in PREDICATED.get(kernel.stem, ()):
        past_l1 = [
            site for site in done.launch.trace.sites
            if site.opcode.startswith("cp.async.cg") and site.line in main_loop(done.compiled)
        ]
        emulated["shared_wavefronts"] -= sum(site.wavefronts for site in past_l1)
        emulated["shared_wavefronts_ideal"] -= sum(site.ideal for site in past_l1)
    assert emulated == counted
