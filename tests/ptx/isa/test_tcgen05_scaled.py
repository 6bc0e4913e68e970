"""Block-scaled tcgen05.mma: where scales lie in tensor memory, and what orders their copies.

Sums are held against `scaled_product`, which has tests of its own; where each scale lies, by an
index formula of this file: row r in lane r mod 32 of column r / 32, byte by byte.
"""


import numpy as np
import pytest

from lib import ptx
from lib.ptx.isa.tcgen05_arithmetic import scaled_product
from tests.ptx.isa import test_tcgen05 as alone
from tests.ptx.isa import test_tcgen05_pair as pair
from tests.ptx.isa.test_tcgen05 import BITS, CODES, desc, kinds, laid_out, some
from tests.tables import cases

from ..conftest import u32s

SCALES_AT = 0xC000, 0xC400
LOAD = """.reg .b64 %sfa, %sfb;
mov.b64 %sfa, FIRST; add.u64 %sfa, %sfa, %x; mov.b64 %sfb, SECOND; add.u64 %sfb, %sfb, %x;
@%issues tcgen05.cp.cta_group::GROUP.32x128b.warpx4 [%t+64], %sfa;
@%issues tcgen05.cp.cta_group::GROUP.SHAPE [%t+68], %sfb;
"""
MMA = ("@%issues tcgen05.mma.cta_group::GROUP.kind::KIND.block_scaleSIZE "
       "[%t], %a, %b, %idesc, [%t+64], [%t+68], %q;\n")
CONSTANTS = {
    name: str(desc(at, 16, 128, 0))
    for name, at in zip(("FIRST", "SECOND"), SCALES_AT, strict=True)
}


def idesc(a, b, m, n, ids, scale_type, packed):
    codes = (1, 1) if packed else (CODES[a], CODES[b])
    by_exponent = scale_type == "ue8m0"
    return (ids[1] << 4 | codes[0] << 7 | codes[1] << 10 | n // 8 << 17 | by_exponent << 23
            | m // 16 << 24 | ids[0] << 29)


def image_of_scales(scales, first):
    """32 rows of 16 bytes: a copy puts scale r of column c where row r + 32 c looks for it."""
    out = np.zeros((4, 32, 4), np.uint8)
    for row, codes in enumerate(scales[:128]):
        out[row // 32, row % 32, first : first + len(codes)] = codes
    return np.ascontiguousarray(out.transpose(1, 0, 2)).reshape(-1)


def operands(kind, a_kind, b_kind, m, n, many, scale_type):
    rng = np.random.default_rng(m + n + many)
    k = 32 if kind == "mxf8f6f4" else 64
    a, b = some(rng, a_kind, (m, k)), some(rng, b_kind, (n, k))
    low, high = (120, 134) if scale_type == "ue8m0" else (0, 0x7F)
    scales = [rng.integers(low, high, (rows, many)).astype(np.uint8) for rows in (m, n)]
    return a, b, scales


def placed(codes, kind, packed, start):
    if not packed:
        return laid_out(codes, kind, 0 if kind in BITS else 128, 0, start)
    both = codes.astype(np.uint8)
    return laid_out(both[:, ::2] | both[:, 1::2] << 4, "u8", 128, 0, start)


def multiply(kind, size, a_kind, b_kind, m, n, many, scale_type, ids=(0, 0), blocks=1,
             change=lambda text: text, **options):
    """Run one mma; returns the launch, D and what it should be."""
    packed = kind != "mxf8f6f4"
    a, b, scales = operands(kind, a_kind, b_kind, m, n, many, scale_type)
    images = []
    for rank in range(blocks):
        rows, columns = (
            slice(rank * each // blocks, (rank + 1) * each // blocks) for each in (m, n)
        )
        a_image, a_desc = placed(a[rows], a_kind, packed, 0)
        b_image, b_desc = placed(b[columns], b_kind, packed, 1 << 15)
        image = a_image | b_image
        image[SCALES_AT[0] : SCALES_AT[0] + 512] = image_of_scales(scales[0][rows], ids[0])
        if blocks == 2 and m == 128:
            for half in range(2):
                part = image_of_scales(scales[1][half * n // 2 : (half + 1) * n // 2], ids[1])
                at = SCALES_AT[1] + 512 * half
                image[at : at + 512] = part
        else:
            image[SCALES_AT[1] : SCALES_AT[1] + 512] = image_of_scales(scales[1], ids[1])
        images.append(image)
    given = (a_desc, b_desc, np.uint32(idesc(a_kind, b_kind, m, n, ids, scale_type, packed)),
             np.uint32(0))
    module = pair if blocks == 2 else alone
    shape = "64x128b.warpx2::01_23" if blocks == 2 and m == 128 else "32x128b.warpx4"
    load = LOAD.replace("SHAPE", shape)
    base = "cvt.u64.u32 %x, %s; shr.u64 %x, %x, 4;\n"
    load = load.replace("mov.b64 %sfa", base + "mov.b64 %sfa", 1)
    text = module.PROGRAM.replace(module.MMA, load + MMA)
    for name, value in {**CONSTANTS, "GROUP": str(blocks), "SIZE": size,
                        "KIND": kind,
                        "%issues": "%leader" if blocks == 2 else "%one"}.items():
        text = text.replace(name, value)
    out = u32s((blocks, 128, 64))
    images = np.stack(images) if blocks == 2 else images[0]
    launch = module.run(change(text), out if blocks == 2 else out[0], images, given=given,
                        columns=128, **options)
    found = pair.gathered(out, m, n) if blocks == 2 else out[0, :, :n]
    right = scaled_product(a.astype(np.uint32), b.astype(np.uint32), None, (a_kind, b_kind),
                           tuple(scales), scale_type, not packed)
    return launch, found, right


@cases("""
kind     | size           | a_kind | b_kind | n | many | scale_type | first
mxf8f6f4 |                | e4m3 | e5m2 | 64 | 1 | ue8m0 | 03
mxf8f6f4 | .scale_vec::1X | e2m1 | e3m2 | 16 | 1 | ue8m0 | 21
mxf4     |                | e2m1 | e2m1 | 64 | 2 | ue8m0 | 20
mxf4     | .block32       | e2m1 | e2m1 | 48 | 2 | ue8m0 | 02
mxf4nvf4 | .scale_vec::2X | e2m1 | e2m1 | 32 | 2 | ue8m0 | 00
mxf4nvf4 | .scale_vec::4X | e2m1 | e2m1 | 64 | 4 | ue4m3 | 00
mxf4nvf4 | .block16       | e2m1 | e2m1 | 64 | 4 | ue8m0 | 00
""")
def test_products(kind, size, a_kind, b_kind, n, many, scale_type, first):
    launch, found, right = multiply(kind, size, a_kind, b_kind, 128, n, many, scale_type,
                                    [*map(int, str(first))], races=True)
    assert not launch.hazards
    assert (found == right).all()


@pytest.mark.parametrize("m", [256, 128])
@pytest.mark.parametrize("case,more", [
    (("mxf8f6f4", "", "e4m3", "e5m2"), (1, "ue8m0", (0, 3))),
    (("mxf4nvf4", ".scale_vec::4X", "e2m1", "e2m1"), (4, "ue4m3", (0, 0)))])
def test_products_of_a_pair(case, more, m):
    launch, found, right = multiply(*case, m, 64, *more, 2, races=True, landing="late")
    assert not launch.hazards
    assert (found == right).all()


NVFP4 = ("mxf4nvf4", ".scale_vec::4X", "e2m1", "e2m1", 128, 64, 4, "ue4m3")


def test_scales_copied_anew_under_an_mma():
    """A copy behind an mma is in no order (PTX ISA 9.7.16.6.2); a copy before it is."""

    def again(text):
        copy = next(line for line in text.splitlines() if "warpx4 [%t+64]" in line)
        mma = next(line for line in text.splitlines() if ".block_scale" in line)
        return text.replace(mma, mma + "\n" + copy)

    launch, *_ = multiply(*NVFP4, change=again, races=True)
    assert kinds(launch) == {"tensor memory in flight"}
    assert any(".block_scale" in h.first.opcode and "reads lanes 0-127, columns 64-67" in h.message
               for h in launch.hazards)


def test_scales_of_one_quarter_alone():
    """Without .warpx4 the other lanes have none, or others."""
    launch, *_ = multiply(*NVFP4, change=lambda text: text.replace(
        "32x128b.warpx4 [%t+68]", "128x128b [%t+68]"))
    assert kinds(launch) == {"tensor memory"}
    assert "differ between lanes 0-31 and 32-63" in launch.hazards[0].message
    elsewhere = {"change": lambda text: text.replace("[%t+68], %sfb", "[%t+72], %sfb")}
    launch, *_ = multiply(*NVFP4, **elsewhere)
    assert any("reads the scales of B in tensor memory that nobody wrote" in h.message
               for h in launch.hazards)


@cases("""
case                                                            | what
('mxf4', '.scale_vec::4X', 'e2m1', 'e2m1', 128, 64, 2, 'ue8m0') | needs .block_scale, and
('mxf4nvf4', '', 'e2m1', 'e2m1', 128, 64, 4, 'ue4m3')           | needs .block_scale, and
('mxf4nvf4', '.block32', 'e2m1', 'e2m1', 128, 64, 2, 'ue4m3')   | scales of type UE4M3
('mxf4', '', 'e2m1', 'e2m1', 128, 64, 2, 'ue8m0', (1, 0))       | must be multiples of 2
('mxf4', '', 'e2m1', 'e2m1', 256, 64, 2, 'ue8m0')               | M = 256, N = 64
""")
def test_refusals(case, what):
    with pytest.raises(ptx.Error, match=what):
        multiply(*case)
