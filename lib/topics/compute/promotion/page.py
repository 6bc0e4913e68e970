"""What a chapter shows of promotion: the error over K, and what an interval costs."""

from __future__ import annotations

from lib import gpus
from lib.plotting.display import both, table
from lib.problem.scales import DTYPE
from lib.topics.compute.promotion import figure, model
from lib.topics.version import RECORDED_ON, Version

K = 4096


def errors(version: Version, plain: str, promoted: str) -> None:
    """Draw the error over K of two instantiations with FP32 C, for random signs and one sign.

    Parameters
    ----------
    plain, promoted : str
        Without promotion and with it.
    """
    curves = [model.emulated(version.kernel.stem, name, signs)
              for signs in model.SIGNS for name in (plain, promoted)]
    evidence = f"emulated: {version.kernel.min_arch} PTX, {model.SIDE}×{model.SIDE}×K"
    both(figure.draw, curves, evidence=evidence)


def intervals() -> None:
    """Display what promotion after 32, 64, … of K costs, in error and in FP32 units' time."""
    sheet = gpus.GPUS[RECORDED_ON]
    rows = []
    for one in model.intervals(K, sheet):
        name = f"every {one.length}" if one.length else "never"
        if one.length == 128:
            name = f"**{name}**"
        rows.append((name, *(f"{error:.1e}" for error in one.errors), f"{one.share:.1%}"))
    table(("promoted", *(f"error, {signs}" for signs in model.SIGNS),
           "FP32 units' time over tensor cores'"), rows,
          f"modelled: the emulator's arithmetic, K = {K:,}; {sheet.fp32_lanes_per_sm} FFMA and "
          f"{sheet.flops_per_cycle(DTYPE):,} FLOP per cycle and SM, from the data sheet")
