"""WGMMA's descriptors, the swizzle behind them, and the call that makes a tensor map."""

from __future__ import annotations

from lib.plotting.display import table
from lib.topics.memory.descriptor import model
from lib.topics.version import Version

_MEANS = {
    "start address": "where the operand begins, in units of 16 bytes",
    "stride byte offset":
        "from an atom to the next: eight rows of m or n on if K-major, eight of k if MN-major",
    "base offset": "0: the atoms lie on multiples of 1,024 bytes",
}
_MODES = {0: "no swizzle", 128: "swizzled by 128 bytes", 64: "swizzled by 64 bytes",
          32: "swizzled by 32 bytes"}


def fields(version: Version, variant: str | None = None) -> None:
    """Display the descriptors of the kernel's first WGMMA, field by field, from a run of it.

    Parameters
    ----------
    version : Version
        17 or later.
    """
    chosen = version.kernel.variant(variant)
    found = model.observed(version.kernel, chosen)
    parts = {name: model.fields(bits) for name, bits in found.items()}
    rows: list[tuple[str, ...]] = []
    for a, b in zip(*parts.values(), strict=True):
        rows.append((f"{a.first} to {a.last}", a.name, _encoded(a), _encoded(b), _means(a, b)))
    rows.append(("0 to 63", "all of it", *(f"`{bits:016x}`" for bits in found.values()),
                 "in hexadecimal; the other bits are 0"))
    table(("bits", "field", "A", "B", "what it says"), rows,
          f"emulated: the first WGMMA of {version.kernel.stem}, {chosen.name}, block 0")


def swizzle(row: int = 5, chunk: int = 3) -> None:
    """Display how each swizzle makes an address, bit by bit, and one address through it.

    Parameters
    ----------
    row, chunk : int
        The chunk of 16 bytes that the example follows, in rows of 128 bytes: 0 to 7 both.
    """
    bits = (9, 8, 7, 6, 5, 4)
    rows: list[tuple[object, ...]] = [
        (f"{span} bytes", *(" ⊕ ".join(f"a{one}" for one in model.sources(span)[bit])
                            for bit in bits)) for span in (128, 64, 32)]
    before = row << 3 | chunk
    after = [sum(before >> one - 4 & 1 for one in model.sources(128)[bit]) & 1 for bit in bits]
    rows.append((f"example: row {row}, chunk {chunk}", *(before >> bit - 4 & 1 for bit in bits)))
    rows.append(("the same, swizzled by 128 bytes", *after))
    table(("swizzle", *(f"bit {bit}" for bit in bits)), rows,
          "modelled: the emulator's permutation, PTX ISA 9.7.15.5; a7 is bit 7 of the unswizzled "
          "shared address; bits 0 to 3 and all above 9 stay")


def tensor_map(version: Version, matrix: str = "A", size: int = 4096, variant: str | None = None
               ) -> None:
    """Display cuTensorMapEncodeTiled in full, with each argument's value for a matrix.

    Parameters
    ----------
    version : Version
        18 or later.
    matrix : {"A", "B", "C"}

    Raises
    ------
    ValueError
        If the variant has no tensor map of that matrix.
    """
    chosen = version.kernel.variant(variant)
    maps = model.tensor_maps(version.kernel, chosen, size)
    if matrix not in maps:
        raise ValueError(f"{version.kernel.stem} {chosen.name} has tensor maps of "
                         f"{', '.join(maps)}, not of {matrix}")
    rows = [(f"`{one.name}`", f"`{one.value}`", one.meaning)
            for one in model.call(matrix, maps[matrix])]
    table(("argument of `cuTensorMapEncodeTiled`", "value", "what it says"), rows,
          f"modelled: the map of {matrix} that {version.kernel.stem}, {chosen.name}, is given at "
          f"{size:,}³")


def _encoded(one: model.Field) -> str:
    if one.name == "swizzle mode" or one.bytes is None:
        return f"{one.encoded}"
    return f"{one.encoded:,} = {one.bytes:,} B / 16"


def _means(a: model.Field, b: model.Field) -> str:
    if a.name == "swizzle mode":
        return _MODES[a.bytes or 0]
    if a.name == "leading byte offset":
        # A row as long as the swizzle is one atom wide: nothing lies beside it.
        said = [f"of {name} " + ("ignored: one row of an atom holds all 64 of k"
                                 if one.encoded == 1 else "from one slab of 64 columns to the next")
                for name, one in (("A", a), ("B", b))]
        return "; ".join(said)
    return _MEANS[a.name]
