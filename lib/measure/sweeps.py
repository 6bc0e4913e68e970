"""Series of measurements for one question: one thing is varied, all else is held.

``double_buffer``: when does loading ahead pay? 08's kernel in three forms, tile by tile, and for
each tile with fewer and fewer blocks on an SM. The machine code of a form is the same however many
blocks there are: what keeps the others away is shared memory that the launch asks for and that
nobody touches.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tqdm import tqdm

from lib import device, gpus, kernels
from lib.compiler import Compiled, compile_source
from lib.fingerprint import fingerprint_of
from lib.gpus import Gpu
from lib.measure import cublas
from lib.measure.bench import ClockSampler, copies_of, interleave, refuse_wrong, spread
from lib.models import order
from lib.models.occupancy import occupancy
from lib.problem import Problem
from lib.runner import prepare
from lib.versions import Variant

DOUBLE_BUFFER = "double_buffer"
STEM = "08_warp_tile"
SIZE = 4096
ROUNDS = 5

# The forms: a tile is asked for when the one before is done with; it is asked for before that and
# waits in registers; it has a buffer of its own besides.
LATE, STAGED, DOUBLE = "late", "staged", "double"
FORMS = (LATE, STAGED, DOUBLE)
_BUFFERS = {LATE: 1, STAGED: 1, DOUBLE: 2}

# The lines of 08's source that ask for a tile, and the one before which `loading_late` asks for it.
_FIRST, _NEXT = "    fetch(K);\n", "        fetch(left - BK);\n"
_NEEDED = "        MARK_ARRIVAL(a, b);\n"


@dataclass(frozen=True)
class Tile:
    """Sizes of a block's and a warp's tile, and blocks that registers are left for on an SM."""

    block: tuple[int, int, int]
    warp: tuple[int, int]
    most: int

    @property
    def name(self) -> str:
        """``"128×128×8"``."""
        return "×".join(map(str, self.block))


# From 8 to 43 FLOP a byte. As many blocks as no form has to spill registers for.
TILES = (
    Tile((32, 32, 8), (32, 16), 16), Tile((64, 64, 8), (32, 32), 5),
    Tile((64, 64, 16), (32, 32), 5), Tile((128, 64, 8), (64, 32), 3),
    Tile((128, 128, 8), (64, 32), 2), Tile((128, 128, 16), (64, 32), 1),
    Tile((128, 256, 8), (64, 64), 1),
)


@dataclass(frozen=True)
class Setting:
    """One form of a tile, and so many blocks on an SM."""

    tile: Tile
    form: str
    variant: Variant
    compiled: Compiled
    blocks: int


def loading_late(text: str) -> str:
    """08's source with each tile asked for directly before it is stored to shared memory.

    Behind the computation, as the source goes, would not be late enough: the compiler lets half of
    the multiply-adds, which touch registers only, wait until the loads have been asked for.

    Raises
    ------
    ValueError
        If the source no longer has the lines that are moved.
    """
    if any(text.count(line) != 1 for line in (_FIRST, _NEXT, _NEEDED)):
        raise ValueError(f"cuda/{STEM}.cu has changed: mend lib.measure.sweeps.loading_late")
    text = text.replace(_NEXT, "").replace(_FIRST, "")
    return text.replace(_NEEDED, f"        fetch(left);\n{_NEEDED}")


def source(form: str) -> str:
    """The CUDA text of a form."""
    text = kernels.find(STEM).source.read_text()
    return loading_late(text) if form == LATE else text


def variant(tile: Tile, form: str) -> Variant:
    """A form of a tile, as an instantiation of 08's template."""
    return kernels.warp_tile(form, "", block=tile.block, warp=tile.warp, blocks=tile.most,
                             buffers=_BUFFERS[form])


def hashes(tile: Tile) -> dict[str, str]:
    """Fingerprint of each form's source and constants (see `Kernel.hash`)."""
    kernel = kernels.find(STEM)
    return {
        form: fingerprint_of(source(form), kernel.source, kernel.expression(variant(tile, form)))
        for form in FORMS
    }


def settings(tile: Tile, arch: str, gpu: Gpu) -> list[dict[str, Setting]]:
    """Every number of blocks that a tile is measured at, each with its forms.

    One, two, four and so on, as long as each form has registers and shared memory for them.
    """
    kernel = kernels.find(STEM)
    made = {form: variant(tile, form) for form in FORMS}
    compiled = {
        form: compile_source(source(form), kernel.expression(made[form]), arch,
                             filename=str(kernel.source))
        for form in FORMS
    }
    fit = min(
        occupancy(gpu, c.resources.registers, c.resources.shared_bytes, made[form].threads).blocks
        for form, c in compiled.items()
    )
    found, blocks = [], 1
    while blocks <= min(fit, tile.most):
        found.append({
            form: Setting(
                tile, form,
                replace(made[form], shared_bytes=unused_bytes(
                    gpu, compiled[form].resources.shared_bytes, blocks)),
                compiled[form], blocks,
            )
            for form in FORMS
        })
        blocks *= 2
    return found


def unused_bytes(gpu: Gpu, static_bytes: int, blocks: int) -> int:
    """Dynamic shared memory with which so many blocks fit an SM, and not one more.

    Parameters
    ----------
    gpu : Gpu
    static_bytes : int
        What the kernel has in any case.
    blocks : int
    """
    unit = gpu.shared_allocation_bytes
    share = gpu.shared_bytes_per_sm // blocks // unit * unit - gpu.shared_bytes_reserved
    return max(min(share, gpu.shared_bytes_per_block) - static_bytes, 0)


def work_between(setting: Setting) -> int:
    """FMA that the machine code has between asking for a tile and storing it."""
    return order.work_between([i.opcode for i in setting.compiled.inner_loop])


def measure() -> dict[str, Any]:
    """Measure every sweep.

    Returns
    -------
    dict
        By the sweep's name its `kernel`, `shape` (M, N, K), `method` and `rows`. A row of
        ``double_buffer`` has the sizes of the tile of a `block` and of a `warp`, `blocks` and
        `warps` on an SM, and by form `seconds`, `spread`, `registers`, `hashes`; besides
        `cublas_seconds` and the SM clock in MHz.

    Raises
    ------
    NoGpu
        If there is no GPU.
    WrongResult
        If a result is wrong.
    """
    cp = device.cupy()
    problem = Problem(SIZE, SIZE, SIZE)
    copies = copies_of(problem, cp)
    reference = problem.reference(*problem.inputs(0, cp))
    gpu = gpus.find(device.name())
    rows = [
        _row(forms, problem, copies, reference)
        for tile in tqdm(TILES, desc=DOUBLE_BUFFER)
        for forms in settings(tile, device.arch(), gpu)
    ]
    method = f"median of {ROUNDS} samples, the forms and cuBLAS in turns; otherwise as bench"
    shape = [problem.M, problem.N, problem.K]
    return {DOUBLE_BUFFER: {"kernel": STEM, "shape": shape, "method": method, "rows": rows}}


def _row(
    forms: Mapping[str, Setting], problem: Problem, copies: list[tuple[Any, Any, Any]],
    reference: Any,
) -> dict[str, Any]:
    """Time the forms of one tile at one number of blocks, and cuBLAS, in turns."""
    kernel = kernels.find(STEM)

    def launcher(setting: Setting) -> Callable[[int], None]:
        # The launch is made here, and not from a narrower instantiation: SIZE fits every vector.
        _, launch, args = prepare(kernel, setting.variant, problem, copies, exact=True)
        loaded = device.Loaded(setting.compiled)
        return lambda index: loaded(launch, args[index])

    calls = {form: launcher(setting) for form, setting in forms.items()}
    calls["cuBLAS"] = lambda index: cublas.gemm(problem, *copies[index])
    for name, call in calls.items():
        refuse_wrong(name, call, problem, copies[0][2], reference)
    with ClockSampler() as clock:
        times = dict(zip(calls, interleave(list(calls.values()), len(copies), ROUNDS),
                         strict=True))
    one = forms[LATE]
    return {
        "block": list(one.tile.block), "warp": list(one.tile.warp), "blocks": one.blocks,
        "warps": one.blocks * one.variant.threads // 32,
        "seconds": {form: statistics.median(times[form]) for form in FORMS},
        "spread": {form: spread(times[form]) for form in FORMS},
        "registers": {form: forms[form].compiled.resources.registers for form in FORMS},
        "hashes": hashes(one.tile),
        "cublas_seconds": statistics.median(times["cuBLAS"]),
        "sm_clock_mhz": clock.median,
    }


def stale(sweep: Mapping[str, Any]) -> bool:
    """Whether the source, or a tile's constants, have changed since a sweep was recorded."""
    today = {(tile.block, tile.warp): hashes(tile) for tile in TILES}
    return any(
        today.get((tuple(row["block"]), tuple(row["warp"]))) != row["hashes"]
        for row in sweep["rows"]
    )


def gain(row: Mapping[str, Any], form: str = DOUBLE, over: str = LATE) -> float:
    """How much faster one form is than another in a row of ``double_buffer``: 0.1 is 10 %."""
    return row["seconds"][over] / row["seconds"][form] - 1


def intensity(row: Mapping[str, Any]) -> float:
    """FLOP for each byte that a block loads: 2·BM·BN / (4·(BM + BN)), for any BK."""
    rows, columns, _ = row["block"]
    return 2 * rows * columns / (4 * (rows + columns))


def tile_of(row: Mapping[str, Any]) -> str:
    """``"128×128×8"``."""
    return "×".join(map(str, row["block"]))
