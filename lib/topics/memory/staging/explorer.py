"""A tile in shared memory: block, warp, GPU, against the FLOP for each byte."""

from __future__ import annotations

from lib.gpus import GPUS
from lib.plotting.frames import Control, Explorer
from lib.records import store as records
from lib.records.schema import MachineRecord
from lib.show.scene import Scene
from lib.show.words import sides
from lib.topics.limits.roofline.model import Roofs
from lib.topics.memory.staging import figure as staging_figure
from lib.topics.memory.staging.model import Staging

# Rows and columns of C that a block and a warp own; None for warps that load for themselves.
BLOCKS = (None, (32, 64), (64, 64), (128, 128), (256, 128))
WARPS = ((16, 16), (32, 32), (64, 32), (64, 64))


def staged_tiles() -> Explorer:
    """Block tile and warp tile against what each level of memory can feed."""
    roofs = {key: _roofs(key) for key in ("T4", "H100")}

    def frame(block: tuple[int, int] | None, warp: tuple[int, int], key: str) -> Scene:
        if block and (block[0] % warp[0] or block[1] % warp[1]):
            return staging_figure.impossible(block, warp)
        return staging_figure.draw(Staging(block, warp), roofs[key], gpu=key)

    return Explorer([
        Control.of("Block's tile", BLOCKS, 2, lambda tile: sides(tile) if tile else "none"),
        Control.of("Warp's tile", WARPS, 1, sides), Control.of("GPU", roofs),
    ], frame, "Tiles, and the bytes that they leave")


def _roofs(key: str) -> Roofs:
    """Roofs as measured on that GPU, or, where none were, of its data sheet: the figure says it."""
    machine = records.load(MachineRecord, key)
    return Roofs.from_record(machine, GPUS[key]) if machine else Roofs.from_gpu(GPUS[key])
