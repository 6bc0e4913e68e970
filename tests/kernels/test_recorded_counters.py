"""Whole kernels: the emulator counts what ncu recorded, at 256 cubed, where a GPU was."""

import pytest

from lib.measure import records
from lib.measure.counters import EMULATED
from lib.runner import run
from tests.kernels.conftest import VARIANTS

SIZE = 256


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
    assert done.launch.trace.counters() == counted
