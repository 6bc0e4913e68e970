"""What of PTX the emulator knows by name and hasn't: README's list is this one."""

from __future__ import annotations

from collections.abc import Sequence

# By mnemonic: what it is for.
MNEMONICS = {
    "multimem": "the memory of several GPUs behind one address",
    "txq": "sizes and formats of a texture; pass them as arguments",
    "suq": "sizes and formats of a surface; pass them as arguments",
    "istypep": "whether an address is a texture's; of textures only elements are read",
    "sured": "reductions on surfaces",
    "pmevent": "marks for a profiler",
}
# By mnemonic and modifier.
FORMS = {
    ("cp", "tile::gather4"): "four rows of a tensor that lie apart",
    ("cp", "tile::scatter4"): "the same as a store",
    ("cp", "im2col::w"): "images by columns, padded",
    ("cp", "im2col::w::128"): "the same for 128 pixels",
    ("cvt", "rs"): "rounding by random bits",
    ("fma", "oob"): "products of which NaN counts as nothing",
    ("ldmatrix", "m16n16"): "tiles of bytes, transposed",
    ("ldmatrix", "m8n16"): "tiles of 4 and 6 bits, widened",
    ("stmatrix", "m16n8"): "tiles of bytes",
    ("mma", "kind::f8f6f4"): "sm_120's products of 4, 6 and 8 bits",
    ("mma", "kind::mxf8f6f4"): "the same with block scales",
    ("mma", "kind::mxf4"): "sm_120's products of 4 bits with block scales",
    ("mma", "kind::mxf4nvf4"): "the same, scales of NVFP4 too",
    ("tcgen05", "red"): "loads of tensor memory with a minimum or maximum",
    ("tcgen05", "sp"): "sparse A",
    ("tcgen05", "ashift"): "rows of A moved by one",
    ("wgmma", "b1"): "products of single bits",
}


def missing(parts: Sequence[str]) -> str:
    """Say what an opcode needs that the emulator hasn't; empty if it is none that it knows of."""
    if parts[0] in MNEMONICS:
        return f"{parts[0]} is not emulated: {MNEMONICS[parts[0]]}"
    for part in parts[1:]:
        if (what := FORMS.get((parts[0], part))) is not None:
            return f"{parts[0]} with .{part} is not emulated: {what}"
    return ""


def listed() -> str:
    """README's list, as Markdown."""
    rows = [f"- `{name}`: {what}" for name, what in MNEMONICS.items()]
    rows += [f"- `{name}` with `.{part}`: {what}" for (name, part), what in FORMS.items()]
    return "\n".join(rows)
