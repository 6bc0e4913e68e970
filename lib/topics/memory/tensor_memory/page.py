"""What a chapter shows of a kernel whose sums lie in tensor memory."""

from __future__ import annotations

from collections.abc import Sequence

from lib import gpus
from lib.plotting.display import both, show, table
from lib.problem import ITEM_BYTES
from lib.topics.memory.tensor_memory import figure, model
from lib.topics.version import Version, short_name

MEGA = 1e6


def costs(version: Version, *variants: str, above: Sequence[str] = ()) -> None:
    """Display what variants ask of the machine per FLOP: bytes and instructions.

    Parameters
    ----------
    *variants : str
        The first if none is named; the last one's figures are predicted beside.
    above : sequence of str
        Of other versions, as ``"stem/variant"``, on the same tile.
    """
    rows = version.rows(variants, above)
    found = [model.asked(row.page.kernel.stem, row.variant.name, model.SHAPE) for row in rows]
    last = rows[-1].variant
    BM, BN = last.tile[0] * last.grid.cluster, last.tile[1]
    early = [model.begun_early(model.followed(row.page.kernel.stem, row.variant.name))
             if one.in_tensor_memory else None for row, one in zip(rows, found, strict=True)]
    # Per multiply-add of a step of one k: BM + BN elements of two bytes for BM · BN of them.
    per_flop = 2 * (BM + BN) / (2 * BM * BN)
    blocks = last.grid.cluster
    lines: list[tuple[object, ...]] = [
        ("bytes that TMA loads, per kFLOP", *(f"{1e3 * a.loaded / a.flops:.1f}" for a in found),
         f"2 · ({BM} + {BN}) / (2 · {BM} · {BN}) = {1e3 * per_flop:.1f}"),
        ("bytes that TMA writes to shared memory",
         *(f"{1e3 * a.written / a.flops:.1f}" for a in found), f"the same: {1e3 * per_flop:.1f}"),
        ("bytes of shared memory that MMAs have as operands",
         *(f"{1e3 * a.read / a.flops:.1f}" for a in found),
         f"each once: {1e3 * per_flop:.1f}"),
        ("MMA instructions, per MFLOP",
         *(f"{MEGA * a.products / a.flops:.2f}" for a in found),
         f"2 · {BM} · {BN} · 16 FLOP each: {MEGA / (2 * BM * BN * 16):.2f}"),
        ("tiles begun while the one before is loaded",
         *("–" if e is None else f"{e[0]} of {e[1]}" for e in early),
         f"{model.WALK - 1} of {model.WALK - 1}"),
    ]
    table(("", *(f"{short_name(row.page.kernel)}, {row.variant.name}" for row in rows),
           f"predicted for {last.name}"), lines,
          f"emulated: one block{' or pair' if blocks > 1 else ''}, "
          f"{' × '.join(map(str, model.SHAPE))}{' for each block' if blocks > 1 else ''}, "
          f"last row: {model.WALK} tiles of 3 steps of K; operands: MMAs counted times their sizes")


def timeline_of_blocks(version: Version, variant: str, *blocks: str) -> None:
    """Draw what each warp of each block of a cluster does, by the emulator's steps.

    Parameters
    ----------
    variant : str
    *blocks : str
        What the blocks are called, in order of their ranks.
    """
    rows = [(name, model.followed(version.kernel.stem, variant, block=rank, landing="early"))
            for rank, name in enumerate(blocks)]
    issue = [name for name, found in rows if any(one.kind == "mma" for one in found.changes)]
    title = f"All MMAs are issued in the {' and the '.join(issue)}; each block loads and stores"
    show(figure.timeline(
        rows, version.kernel.variant(variant).roles.warps, title=title,
        evidence=f"emulated: sm_100a, {variant}, {model.WALK} tiles of 3 steps of K, warps in "
                 "random order; copies and MMAs complete at once"))


def emulated_timeline(version: Version, *variants: str) -> None:
    """Draw in which order each warp of a block does what, variant by variant."""
    rows = [(name, model.followed(version.kernel.stem, name, landing="early"))
            for name in variants]
    early = {name: model.begun_early(found) for name, found in rows}
    first, last = variants[0], variants[-1]
    title = (f"With one accumulator {early[first][0]} of {early[first][1]} tiles begin while the "
             f"one before leaves, with two {early[last][0]} of {early[last][1]}")
    roles = version.kernel.variant(last).roles.warps
    show(figure.timeline(
        rows, roles, title=title, together=False,
        evidence=f"emulated: sm_100a, {model.WALK} tiles of 3 steps of K, warps in random order; "
                 "copies and MMAs complete at once"))


def by_intensity(version: Version, before: str, key: str = "B200", size: int = 4096) -> None:
    """Draw a data sheet's roofs, and where two versions stand under them by intensity alone.

    Parameters
    ----------
    before : str
        ``"stem/variant"`` of the version that is compared, on the same tile.
    key : str
        Of `lib.gpus.GPUS`.
    size : int
        M = N = K of which DRAM's bytes are: each matrix once.
    """
    gpu = gpus.GPUS[key]
    stem, _, name = before.partition("/")
    ours, theirs = (model.asked(page, variant, model.SHAPE) for page, variant in (
        (version.kernel.stem, version.kernel.variants[0].name), (stem, name)))
    # Both axes at one clock, that at which the tensor cores' peak is the sheet's.
    clock = gpu.tensor_fp16_flops / (gpu.sms * gpu.tensor_fp16_per_cycle)
    shared = gpus.data_bytes_per_clock(gpu) * gpu.sms * clock
    per_cycle = [gpu.tensor_fp16_per_cycle * one.read / one.flops for one in (theirs, ours)]
    out = ITEM_BYTES[version.kernel.variants[0].out]
    dram = 2.0 * size**3 / ((2 * ITEM_BYTES["float16"] + out) * size**2)
    at = [(f"shared memory, {stem[:2]}", theirs.flops / theirs.read, "shared memory"),
          (f"shared memory, {version.kernel.stem[:2]}", ours.flops / ours.read, "shared memory"),
          (f"DRAM, {size:,}³", dram, "DRAM")]
    title = (f"At their peak the tensor cores want {per_cycle[0]:.0f} bytes of shared memory per "
             f"cycle as {stem[:2]} reads it, {per_cycle[1]:.0f} as {version.kernel.stem[:2]} does, "
             f"of {gpus.data_bytes_per_clock(gpu)}")
    both(figure.roofs, [("shared memory", shared), ("DRAM", gpu.dram_bytes_per_s)],
         gpu.tensor_fp16_flops, at, title=title,
         evidence=f"modelled: data sheet of {gpu.name}, at the {clock / 1e9:.2f} GHz of its peak; "
                  "intensity emulated; no speed")
