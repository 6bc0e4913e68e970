"""wgmma.sp against products of the dense matrices, with A packed as the manual's figures say."""

import itertools

import numpy as np
import pytest

from lib import ptx
from lib.ptx.core.rounding import to_float32
from tests.tables import rows

from ..conftest import function_of, kinds, run_on_gpu
from .test_mma_ldmatrix import encoded
from .test_mma_sp import metadata_place, sparse_matrix
from .test_wgmma import (
    BITS,
    deal,
    encode,
    kernel,
    layout,
    place,
    registers_of,
    values_of,
    words_of,
)

# Types of A and B, and of D; K; elements of a chunk, of which half are stored.
FORMS = rows("""
f16  f16  f32 32 4
f16  f16  f16 32 4
bf16 bf16 f32 32 4
tf32 tf32 f32 16 2
e4m3 e4m3 f32 64 4
e5m2 e4m3 f16 64 4
s8   s8   s32 64 4
u8   s8   s32 64 4
""")
# A form's selector: one of two pairs of lanes where two of four hold metadata.
CASES = [(form, s) for form in FORMS for s in range(2 if BITS[form[0]] > 8 else 1)]


def metadata_of(codes, form, selector, random):
    """The metadata register of each lane of a warpgroup; what nobody reads holds anything."""
    out = random.integers(0, 1 << 32, 128, dtype=np.uint64)
    for row, c in itertools.product(range(64), range(codes.shape[1])):
        lane, bit = metadata_place(form[3], form[0], row % 16, c, selector)
        lane += row // 16 * 32
        out[lane] = out[lane] & ~np.uint64(15 << bit) | np.uint64(int(codes[row, c]) << bit)
    return out.astype(np.uint32)


def text_of(form, n, count, selector, a_registers, majors):
    a, b, d, k, _ = form
    tail = ", 1, 1" if d != "s32" else ""
    if BITS[a] == 16:
        tail += "" if a_registers else f", {int(majors[0] == 'mn')}"
        tail += f", {int(majors[1] == 'mn')}"
    text = kernel(f"m64n{n}k{k}", f"{d}.{a}.{b}", count, d, a_registers, tail)
    text = text.replace("wgmma.mma_async.sync", "wgmma.mma_async.sp.sync")
    text = text.replace("%bd, p", f"%bd, %e, {selector}, p")
    text = text.replace(".param .u32 keep,", ".param .u64 pe, .param .u32 keep,")
    load = "ld.param.u64 %g, [pe]; mad.wide.u32 %g, %t, 4, %g; ld.global.b32 %e, [%g];"
    text = text.replace("DONE:", f"DONE: {load}")
    return text.replace(".reg .pred p, q;", ".reg .pred p, q; .reg .b32 %e;")


def operands(form, n, selector=0, modes=(1, 1), majors=("k", "k")):
    """Return the exact product, D before it, and the arguments of a launch."""
    a_kind, b_kind, dtype, k, size = form
    random = np.random.default_rng(n + selector)
    parts = [sparse_matrix(k, a_kind, size, random, True) for _ in range(4)]
    whole, packed, codes = (np.concatenate(part) for part in zip(*parts, strict=True))
    b = random.integers(-8, 9, (n, k)).astype(float)
    c = random.integers(-9, 9, (64, n)).astype(float)
    a_bits, b_bits = (
        np.ascontiguousarray(encoded(v, kind)).view(np.uint8).reshape(len(v), -1)
        for v, kind in ((packed, a_kind), (b, b_kind))
    )
    assert a_bits.shape[1] == 32 and b_bits.shape[1] == 64
    assert (to_float32(b_bits, b_kind).reshape(b.shape) == b).all()
    b_start = 16 * 1024
    a_at, _ = layout(0, 64, modes[0], majors[0])
    b_at, _ = layout(b_start, n, modes[1], majors[1], 32)
    image = np.zeros(48 * 1024, np.uint8)  # what a launch takes without being asked
    for bits, at, major in ((a_bits, a_at, majors[0]), (b_bits, b_at, majors[1])):
        place(image, bits if major == "k" else bits.view(np.uint16), at, major)
    out = words_of(c, dtype)
    metadata = metadata_of(codes, form, selector, random)
    args = [image, registers_of(a_bits), out, np.uint64(encode(a_at)), np.uint64(encode(b_at)),
            metadata, np.uint32(1), np.uint32(len(image))]
    return whole @ b.T + c, out, args


def check(form, n, selector=0, a_registers=False, modes=(1, 1), majors=("k", "k"), gpu=False,
          **launch):
    exact, out, args = operands(form, n, selector, modes, majors)
    text = text_of(form, n, len(out), selector, a_registers, majors)
    if gpu:
        found = run_on_gpu(text, 128, args, len(args[0]))
    else:
        found = function_of(text)(1, 128, args, len(args[0]), **launch)
    # Whole numbers: exact in every type, but for the halves of D.
    np.testing.assert_allclose(values_of(out, form[2]), deal(exact),
                               rtol=1e-3 if form[2] == "f16" else 0)
    return found


@pytest.mark.parametrize("a_registers", [False, True], ids=["shared A", "A in registers"])
@pytest.mark.parametrize("form, selector", CASES, ids=[f"{' '.join(f[:3])} {s}" for f, s in CASES])
def test_a_sparse_product_is_that_of_the_dense_matrices(form, selector, a_registers):
    for n in (8, 64):
        assert not check(form, n, selector, a_registers, races=True).hazards


@pytest.mark.parametrize("modes", [(mode, i) for mode in range(4) for i in range(4)
                                   if (mode + i) % 2])
def test_layouts(modes):
    """Of A and B, each mode with two others."""
    if modes[1] < 3:  # a row of B, 64 bytes of K, is longer than the span of the fourth
        check(FORMS[0], 64, modes=modes)
        check(FORMS[6], 16, modes=modes)
    check(FORMS[0], 64, modes=modes, majors=("mn", "mn"))
    check(FORMS[2], 64, 1, True, modes, ("k", "mn"))


@pytest.mark.gpu
@pytest.mark.parametrize("form, selector", CASES, ids=[f"{' '.join(f[:3])} {s}" for f, s in CASES])
def test_the_hardware_reads_metadata_where_the_figures_say(form, selector):
    for n, a_registers in itertools.product((8, 64, 256), (False, True)):
        check(form, n, selector, a_registers, gpu=True)
    if BITS[form[0]] == 16:
        check(form, 64, selector, modes=(2, 2), majors=("mn", "mn"), gpu=True)
    check(form, 64, selector, modes=(3, 0), gpu=True)


def test_a_span_too_short_for_k_is_refused():
    with pytest.raises(ptx.Error, match="swizzle of 32 bytes, and K is 64 bytes long"):
        check(FORMS[0], 8, modes=(1, 3))


@pytest.mark.parametrize("change, said", [
    (("m64n8k32", "m64n8k16"), "no m64n8k16 of .f16 and .f16, sparse"), ((", %e, 0, p", ", p"),
    "metadata and a sparsity selector"),
])
def test_other_shapes_and_operands_are_refused(change, said):
    text = text_of(FORMS[0], 8, 4, 0, True, ("k", "k")).replace(*change)
    if "%e" in change[0]:
        text = text.replace(", p, 1, 1, 0", ", p")
    with pytest.raises(ptx.ParseError, match=said):
        function_of(text)


def test_shared_memory_read_is_counted_and_watched():
    exact, out, args = operands(FORMS[0], 64)
    text = text_of(FORMS[0], 64, len(out), 0, False, ("k", "k"))
    launch = function_of(text)(1, 128, args, len(args[0]), races=True, trace=True)
    site = next(s for s in launch.trace.sites if s.kind == "wgmma")
    assert site.wavefronts == (64 * 32 + 64 * 64) // 128  # half of A, all of B
    # The last bytes of K of B, which only a sparse product reads, are refilled too early.
    wait = "wgmma.wait_group.sync.aligned 0;"
    early = f"mov.u32 %v, s; @q st.shared.b32 [%v+{16 * 1024 + 48}], 0; {wait}"
    text = text.replace(wait, early.replace("@q", "setp.eq.u32 q, %t, 0; @q"))
    launch = function_of(text)(1, 128, args, len(args[0]), races=True)
    assert "race" in kinds(launch)
