"""In which order machine code loads, computes, stores and waits."""

from __future__ import annotations

from lib import gpus
from lib.kernels.build import compile_kernel
from lib.plotting.display import table
from lib.records import store as records
from lib.topics.code.instruction_order import model as order
from lib.topics.limits.occupancy.model import occupancy
from lib.topics.version import RECORDED_ON, TIMED, Version


def order_table(version: Version, *variants: str, arch: str = "sm_90a") -> None:
    """Display where the machine code of the main loop loads, computes, stores and waits."""
    rows = []
    for name in variants or tuple(v.name for v in version.kernel.variants):
        opcodes = [i.opcode for i in version.compiled(arch, name).inner_loop]
        found = order.places(opcodes)
        rows.append((name, len(opcodes), *(str(found.get(c, "none")) for c in order.CLASSES),
                     order.work_between(opcodes)))
    what = "FMA" if version.kernel.group == "FP32" else "product"
    table(
        ("variant", "instructions", *(f"{c}s".replace(order.FMA, what) for c in order.CLASSES),
         f"{what}{'' if what == 'FMA' else 's'} from load to store"),
        rows, f"modelled: SASS of the inner loop, {arch}, NVRTC {version.compiled(arch).toolkit}; "
        "positions, and in brackets how many",
    )


def fetches(version: Version, *variants: str, arch: str = "sm_90a") -> None:
    """Display in which order machine code fetches tiles, as it is timed and with marks.

    Marks keep the source's order of loads, products and stores; the compiler need not.
    """
    rows = []
    names = variants or tuple(v.name for v in version.kernel.variants)
    for variant in map(version.kernel.variant, names):
        times = version.reader.timeline(variant.name)
        for marks, seconds in ((False, times.seconds_without), (True, times.seconds_with)):
            code = compile_kernel(version.kernel, variant, arch, timeline=marks)
            found = order.fetches([i.opcode for i in code.inner_loop])
            used = code.resources
            fit = occupancy(gpus.GPUS[RECORDED_ON], used.registers, used.shared_bytes,
                            variant.threads)
            rows.append((
                variant.name + (", with marks" if marks else ""),
                f"{found.rounds / found.steps:g}", ", ".join(map(str, found.products)),
                used.registers, fit.blocks, f"{2 * TIMED**3 / seconds / 1e12:.1f}",
            ))
    table(("code", "fetches per step", "products meanwhile", "registers", "blocks per SM",
           f"TFLOP/s at {TIMED:,}"), rows,
          f"modelled: SASS of the inner loops, {arch}, NVRTC {code.toolkit}; "
          f"{records.label(version.record)}; speeds: timed with the timeline")
