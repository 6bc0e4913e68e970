"""What the issue slots are spent on: the inner loop's instructions, a thousand FMA at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

_SPACES = {
    "LDG": "global load", "LD": "global load", "STG": "global store", "ST": "global store",
    "LDS": "shared load", "STS": "shared store", "LDSM": "matrix load", "LDGSTS": "async copy",
    "LDL": "local load", "STL": "local store", "LDC": "constant load", "ULDC": "constant load",
    "LDCU": "constant load",
}
_CONTROL = {
    "BRA", "BRX", "BAR", "BSSY", "BSYNC", "BREAK", "CALL", "RET", "EXIT", "NOP", "WARPSYNC",
    "DEPBAR", "LDGDEPBAR", "YIELD", "NANOSLEEP", "MEMBAR", "ERRBAR", "JMP", "KILL",
}
_TRANSPOSE = {"MOVM"}  # 8×8 halves among the registers of a warp
_FMA = {"FFMA", "FFMA2", "HFMA2", "DFMA"}
_TENSOR = {"HMMA", "IMMA", "HGMMA", "QGMMA", "BMMA"}
_INTEGER = {
    "IMAD", "IADD", "IADD3", "IADD32I", "ISETP", "LEA", "LOP3", "LOP", "SHF", "SHL", "SHR",
    "MOV", "MOV32I", "SEL", "IMNMX", "PRMT", "IABS", "S2R", "S2UR", "CS2R", "R2UR", "BMSK",
    "SGXT", "PLOP3", "POPC", "FLO", "P2R", "R2P", "VIADD", "VIMNMX", "I2F", "F2I", "I2I",
}
FMA, TENSOR, INTEGER, CONTROL, OTHER = "FMA", "tensor", "integer", "control", "other"
TRANSPOSE = "transpose"


def classify(opcode: str) -> str:
    """Return the class of a SASS opcode such as ``LDS.128`` or ``IMAD.WIDE``.

    Loads, stores and copies carry their width in bits: ``"shared load, 128 bit"``. Integer work
    is what computes addresses, predicates and moves; the uniform datapath's opcodes (``UIADD3``)
    count with it, since they take an issue slot all the same.
    """
    parts = opcode.split(".")
    head = parts[0]
    if opcode == "HFMA2.MMA":  # how ptxas writes a constant into a register on the FMA pipe
        return INTEGER
    if head in _FMA:
        return FMA
    if head in _TENSOR:
        return TENSOR
    if head in _SPACES:
        return f"{_SPACES[head]}, {_width(head, parts)} bit"
    if head in _TRANSPOSE:
        return TRANSPOSE
    if head in _CONTROL:
        return CONTROL
    if head in _INTEGER or (head.startswith("U") and head[1:] in _INTEGER):
        return INTEGER
    return OTHER


def _width(head: str, parts: list[str]) -> int:
    if head == "LDSM":  # N matrices of 8 rows of 16 bytes = 32·N bits a lane
        return 32 * int(next((part for part in parts if part in {"1", "2", "4"}), "1"))
    for part in parts[1:]:
        if part in {"64", "128"}:
            return int(part)
        if part in {"U8", "S8"}:
            return 8
        if part in {"U16", "S16"}:
            return 16
    return 32


def per_thousand_fma(opcodes: Iterable[str]) -> dict[str, float]:
    """Return instructions of each class for every 1,000 FMA, most frequent first after FMA.

    Parameters
    ----------
    opcodes : iterable of str
        SASS opcodes of the inner loop's body, one for each instruction. Tensor-core instructions
        stand in for FMA where there is no FFMA.

    Raises
    ------
    ValueError
        If the body has neither an FMA nor a tensor-core instruction.
    """
    counts = Counter(classify(opcode) for opcode in opcodes)
    work = FMA if counts[FMA] else TENSOR
    if not counts[work]:
        raise ValueError("this loop has no FMA and no tensor-core instruction: not the inner loop?")
    scale = 1000 / counts[work]
    others = sorted((name for name in counts if name != work), key=lambda n: (-counts[n], n))
    return {name: counts[name] * scale for name in (work, *others)}
