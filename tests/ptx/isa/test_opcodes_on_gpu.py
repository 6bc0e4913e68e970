"""The same opcodes on a GPU and in the emulator: the same bits wherever PTX defines them."""

import re

import numpy as np
import pytest

from ..conftest import entry, run_on_gpu
from .test_opcodes import DTYPE, EXACT, INTEGER, N, apply, lines_of

pytestmark = pytest.mark.gpu

# A division by zero gives whatever the machine gives, and so do 1 << 63 of a NaN and the like.
# Pairs and .relu need sm_90, and the text is one of sm_80.
UNDEFINED = re.compile(r"div|rem|x2|relu")
FLOATS = [
    (f"{name}.{mode}.{kind}", kind, (kind,) * (3 if name == "fma" else 2))
    for name in EXACT for mode in ("rn", "rz", "rm", "rp") for kind in ("f32", "f64")
]
CONVERSIONS = [
    (f"cvt.{mode}.{to}.f32", to, ("f32",))
    for mode in ("rni", "rzi", "rmi", "rpi") for to in ("u8", "s8", "u16", "s32", "u32")
] + [
    (f"cvt.{mode}.f32.{source}", "f32", (source,))
    for mode in ("rn", "rz", "rm", "rp") for source in ("s32", "u32", "s64", "u64", "f64")
] + [("cvt.rn.f16.f32", "f16", ("f32",)), ("cvt.f32.f16", "f32", ("f16",))]


def values(kind: str, seed: int) -> np.ndarray:
    """Random bits of a type, and its limits; no NaN, whose bits PTX leaves open."""
    random, dtype = np.random.default_rng(seed), np.dtype(DTYPE[kind])
    found = np.frombuffer(random.bytes(N * dtype.itemsize), dtype).copy()
    if dtype.kind == "f":
        special = np.array([0, -0.0, 1, -1.5, np.inf, -np.inf], dtype)
        found[: len(special)] = special
        return np.where(np.isnan(found), dtype.type(1), found)
    info = np.iinfo(dtype)
    found[:4] = 0, 1, info.min, info.max
    return found


@pytest.mark.parametrize("opcode, result, sources", [
    *(case[:3] for case in INTEGER if not UNDEFINED.search(case[0])), *FLOATS, *CONVERSIONS,
])
def test_the_same_bits(opcode, result, sources):
    for seed in range(4):
        columns = [values(kind, 7 * seed + i) for i, kind in enumerate(sources)]
        columns = [c % 70 if kind == "by" else c for kind, c in zip(sources, columns, strict=True)]
        arrays, mine = apply(opcode, result, sources, columns)
        theirs = np.zeros_like(mine)
        body, parameters = lines_of(opcode, result, tuple(sources))
        run_on_gpu(entry(body, parameters), N, (theirs, *arrays), 0)
        if mine.dtype.kind == "f":
            assert np.array_equal(np.isnan(mine), np.isnan(theirs))
            mine, theirs = (np.nan_to_num(v, nan=0.0, posinf=np.inf) for v in (mine, theirs))
        assert mine.tobytes() == theirs.tobytes(), (arrays, mine, theirs)
