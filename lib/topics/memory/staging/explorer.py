"""A tile in shared memory: block, warp, GPU, against the FLOP for each byte."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from lib.gpus import GPUS
from lib.plotting.frames import Control, Explorer
from lib.records import store as records
from lib.records.schema import MachineRecord
from lib.topics.limits.roofline.model import Roofs
from lib.topics.memory.staging import figure as staging_figure
from lib.topics.memory.staging.model import Staging


def staged_tiles(
    blocks: Sequence[tuple[int, int] | None] = (
        None, (32, 64), (64, 64), (128, 128), (256, 128),
    ),
    warps: Sequence[tuple[int, int]] = ((16, 16), (32, 32), (64, 32), (64, 64)),
    gpus: Sequence[str] = ("T4", "H100"), default: tuple[int, int, int] = (2, 1, 0),
) -> Explorer:
    """Block tile and warp tile against what each level of memory can feed.

    Parameters
    ----------
    blocks : sequence of (int, int) or None
        Rows and columns of C that a block owns; None for warps that load for themselves.
    warps : sequence of (int, int)
        Rows and columns of C that a warp owns.
    """
    roofs = {key: _roofs(key) for key in gpus}
    controls = [
        Control("Block's tile", [(f"{b[0]}×{b[1]}" if b else "none", b) for b in blocks],
                default=default[0]),
        Control("Warp's tile", [(f"{m}×{n}", (m, n)) for m, n in warps], default=default[1]),
        Control("GPU", [(key, key) for key in gpus], default=default[2]),
    ]

    def frame(block: tuple[int, int] | None, warp: tuple[int, int], key: str,
              narrow: bool = False) -> Figure:
        if block and (block[0] % warp[0] or block[1] % warp[1]):
            return staging_figure.impossible(block, warp, narrow=narrow)
        return staging_figure.draw(Staging(block, warp), roofs[key], gpu=key, narrow=narrow)

    return Explorer(controls, frame, "Tiles, and the bytes that they leave")


def _roofs(key: str) -> Roofs:
    """Roofs as measured on that GPU, or, where none were, of its data sheet: the figure says it."""
    machine = records.load(MachineRecord, key)
    return Roofs.from_record(machine, GPUS[key]) if machine else Roofs.from_gpu(GPUS[key])
