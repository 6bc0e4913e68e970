"""What the method page alone shows: an SM, and data sheets."""

from __future__ import annotations

from lib import gpus
from lib.gpus import Gpu
from lib.show.columns import Column, compared
from lib.show.scene import Drawing, Scene, column, row, words
from lib.show.words import article, quantity

_WIDE, _SUB = 349.0, 86.0  # px: the SM, a sub-partition


def draw(gpu: Gpu) -> Scene:
    """Draw one SM of a GPU by its data sheet, and beside each part why a warp waits there."""
    rate = gpus.data_bytes_per_clock(gpu)
    levels = (
        ("queues of loads and stores", "LG: global, MIO: shared", ("LG, MIO throttle",
         "the queue is full")),
        (f"L1 and shared memory, up to {gpu.shared_bytes_per_sm // 1024} KiB shared",
         f"32 banks, {rate} bytes per cycle", ("short scoreboard", "a value from shared memory")),
        (f"L2, {gpu.l2_bytes // 2**20} MiB, for all SMs", "sectors of 32 bytes",
         ("long scoreboard", "a value from global memory: L1, L2 or DRAM")),
        ("DRAM", quantity(gpu.dram_bytes_per_s, "B/s"), ("", "")),
    )
    stalls = (("barrier", "for the block’s other warps"),
              ("not selected", "ready, another was issued"),
              ("dispatch", "held back by the dispatcher"), ("wait", "a fixed number of cycles"),
              ("math pipe throttle", "the lanes are busy"))
    rows = [words(f"SM: 1 of {gpu.sms}", bold=True),
            _row(_sub_partitions(gpu), *stalls)]
    for number, (name, what, stall) in enumerate(levels):
        drawing, box = Drawing(_WIDE, 44), (1.0, 1.0, _WIDE - 2, 40.0)
        drawing.boxes([box] if number else [], "load", pale=True).frames([box])
        rows += [words("outside the SM", bold=True)] if number == 2 else []
        rows.append(_row(drawing.label(box, f"{name}\n{what}"), *([stall] if stall[0] else [])))
    return Scene(
        f"An SM of {article(gpu.key)} issues up to {gpus.ISSUE_SLOTS} warp instructions per cycle; "
        "a warp that waits has a reason with a name",
        column(*rows), f"modelled: data sheet of {gpu.name}")


def _row(drawing: Drawing, *stalls: tuple[str, str]) -> str:
    """A part of the machine, with the stalls that arise in it."""
    return row(drawing.html(), column(*(
        words(name, bold=True) + words(what) for name, what in stalls), width=300))


def _sub_partitions(gpu: Gpu) -> Drawing:
    lanes = gpu.fp32_lanes_per_sm // gpus.ISSUE_SLOTS
    registers = gpu.registers_per_sm // gpus.ISSUE_SLOTS // 1024
    warps = gpu.warps_per_sm // gpus.ISSUE_SLOTS
    drawing = Drawing(_WIDE, 190)
    for number in range(gpus.ISSUE_SLOTS):
        x = 1 + number * (_SUB + 1)
        drawing.frames([(x, 1, _SUB - 3, 186)]).text(x + 3, 15, "sub-partition")
        for y, tall, text, colour in (
            (22.0, 28.0, f"{warps} warps", ""), (54.0, 28.0, "1 issue slot", "focus"),
            (86.0, 38.0, f"{registers}K\nregisters", ""),
            (128.0, 54.0, f"{lanes} FP32\nlanes,\ntensor core", "compute"),
        ):
            box = (x + 3, y, _SUB - 9, tall)
            drawing.boxes([box] if colour else [], colour or "other", pale=True)
            drawing.frames([box]).label(box, text)
    return drawing


SHEET: tuple[Column[Gpu], ...] = (
    Column("compiled for", lambda g: g.arch), Column("SMs", lambda g: g.sms),
    Column("boost clock, MHz", lambda g: g.clock_hz / 1e6, ",.0f"),
    Column("FP32 lanes per SM", lambda g: g.fp32_lanes_per_sm),
    Column("FP32 peak at that clock, TFLOP/s", lambda g: g.fp32_flops / 1e12, ".1f"),
    Column("FP16 tensor peak at that clock, TFLOP/s", lambda g: g.tensor_boost_flops / 1e12,
           ",.0f"),
    Column("FP16 tensor peak as the vendor prints it, TFLOP/s",
           lambda g: g.tensor_fp16_flops / 1e12, ",.0f"),
    Column("the clock that it is at, MHz", lambda g: g.tensor_clock_hz / 1e6, ",.0f"),
    Column("DRAM bandwidth, GB/s", lambda g: g.dram_bytes_per_s / 1e9, ",.0f"),
    Column("L2 cache, MiB", lambda g: g.l2_bytes // gpus.MIB),
    Column("shared memory per SM, KiB", lambda g: g.shared_bytes_per_sm // gpus.KIB),
    Column("registers per SM", lambda g: g.registers_per_sm, ","),
    Column("resident warps per SM", lambda g: g.warps_per_sm),
)


def gpu_table() -> None:
    """Display the data sheets of `lib.gpus`."""
    compared("", SHEET, [(sheet.key, sheet) for sheet in gpus.GPUS.values()],
             "reported: the vendor's data sheets and programming guide")
