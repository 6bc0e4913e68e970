"""Numbers of narrow types as fractions, for slow models of what tensor cores add up."""

from fractions import Fraction

import numpy as np

from lib.ptx.isa.tcgen05_arithmetic import FORMATS


def number(code: int, kind: str) -> tuple[Fraction, int]:
    """The value of a finite number and its raw exponent."""
    wide, bits, bias, _ = FORMATS[kind]
    if kind == "tf32":
        code >>= 13
    exponent, fraction = code >> bits & (1 << wide) - 1, code & (1 << bits) - 1
    raw = max(exponent, 1) - bias
    value = Fraction(fraction + ((exponent > 0) << bits)) * Fraction(2) ** (raw - bits)
    return (-value if code >> wide + bits & 1 else value), raw


def cut(value: Fraction, exponent: int) -> Fraction:
    """The next multiple of a power of two, toward zero."""
    return int(value / Fraction(2) ** exponent) * Fraction(2) ** exponent


def toward_zero(value: Fraction) -> int:
    """The bits of a float32."""
    if abs(value) >= 2**128:
        return 0x7F800000 | (value < 0) << 31
    near = np.float32(float(value))
    if abs(float(near)) > abs(value):
        near = np.nextafter(near, np.float32(0))
    return int(near.view(np.uint32)) if near else 0
