"""wmma in every shape, type, layout and space, and what it is counted as."""

import numpy as np
import pytest

from lib import ptx
from tests.tables import cases, numbers, rows

from ..conftest import HEAD, function_of, run, u32s
from .test_mma_ldmatrix import encoded, random_matrices

HALVES = ((16, 16, 16), (32, 8, 16), (8, 32, 16))
KINDS = (("f16", "f32"), ("f16", "f16"), ("bf16", "f32"), ("s8", "s32"), ("u8", "s32"))
WMMA = [(shape, *kinds) for shape in HALVES for kinds in KINDS]
WMMA += [((16, 16, 8), "tf32", "f32"), ((8, 8, 4), "f64", "f64")]
# Registers of a matrix, by its rows or columns.
COUNTS = {(kind, size): count for kind, *counts in rows("""
kind 16 32 8
f16  8  8  8
bf16 4  8  2
s8   2  4  1
u8   2  4  1
""")[1:] for size, count in zip((16, 32, 8), counts, strict=True)}
COUNTS |= {("tf32", 16): 4, ("f64", 8): 1}


def wmma_kernel(shape, kind, c_kind, layouts, space) -> str:
    """Write a kernel that multiplies one tile by wmma, from global or from shared memory."""
    m, n, k = shape
    name = f"m{m}n{n}k{k}"
    word = "b64" if kind == "f64" else "b32"
    of_c = 2 if kind == "f64" else 4 if c_kind == "f16" else 8
    counts = {"a": COUNTS[kind, m], "b": COUNTS[kind, n], "c": of_c, "d": of_c}
    text = {u: "{" + ", ".join(f"%{u}{i}" for i in range(c)) + "}" for u, c in counts.items()}
    body = ".reg .b64 %p<9>; .reg .b32 %s<8>;\n"
    body += "".join(f".reg .{word} %{u}<{c}>;\n" for u, c in counts.items())
    body += "".join(f"ld.param.u64 %p{i}, [p{i}];\n" for i in range(4))
    body += "".join(f"ld.param.u32 %s{i}, [s{i}];\n" for i in range(4))
    where = ["%p0", "%p1", "%p2", "%p3"]
    if space == ".shared":
        body += ".shared .align 128 .b8 m[16384]; .reg .b32 %i<9>; .reg .b64 %w; .reg .pred %l;\n"
        body += "mov.u32 %i0, m;\n"
        for at in range(3):
            where[at] = f"%i{at + 1}"
            body += f"""add.u32 %i{at + 1}, %i0, {4096 * at}; mov.u32 %i5, %tid.x;
            copy{at}: mul.wide.u32 %w, %i5, 4; add.u64 %w, %w, %p{at}; ld.global.u32 %i6, [%w];
            shl.b32 %i7, %i5, 2; add.u32 %i7, %i7, %i{at + 1}; st.shared.u32 [%i7], %i6;
            add.u32 %i5, %i5, 32; setp.lt.u32 %l, %i5, 1024; @%l bra copy{at};\n"""
        body += "bar.sync 0;\n"
    la, lb, lc, ld = layouts
    types = f"{c_kind}.{c_kind}" if kind == "f16" else f"{c_kind}.{kind}.{kind}.{c_kind}"
    head = "sync.aligned"
    for use, layout, of, at in (("a", la, kind, 0), ("b", lb, kind, 1), ("c", lc, c_kind, 2)):
        body += f"wmma.load.{use}.{head}.{layout}.{name}{space}.{of} "
        body += f"{text[use]}, [{where[at]}], %s{at};\n"
    operands = ", ".join(text[use] for use in "dabc")
    body += f"wmma.mma.{head}.{la}.{lb}.{name}.{types} {operands};\n"
    body += f"wmma.store.d.{head}.{ld}.{name}.global.{c_kind} [%p3], {text['d']}, %s3;\n"
    return body


@pytest.mark.parametrize("shape, kind, c_kind", WMMA)
def test_wmma(shape, kind, c_kind):
    """In all layouts, and each space with each layout of each matrix."""
    m, n, k = shape
    a, b, c = random_matrices(kind, m, n, k)
    exact = a @ b + c
    for turn in range(16):
        layouts = tuple("col" if turn >> i & 1 else "row" for i in range(4))
        padded = 16 if kind in ("s8", "u8") else 8
        given, strides = [], []
        for matrix, of, layout in zip(
            (a, b, c, c), (kind, kind, c_kind, c_kind), layouts, strict=True
        ):
            lines = matrix if layout == "row" else matrix.T
            stride = lines.shape[1] + padded
            whole = encoded(np.zeros(4096), of)
            whole[: len(lines) * stride].reshape(len(lines), stride)[:, : lines.shape[1]] = encoded(
                lines, of
            )
            given.append(whole)
            strides.append(stride)
        body = wmma_kernel(shape, kind, c_kind, layouts, (".global", ".shared", "")[turn % 3])
        parameters = ", ".join(
            [f".param .u64 p{i}" for i in range(4)] + [f".param .u32 s{i}" for i in range(4)]
        )
        launch = run(body, *given, *strides, parameters=parameters, races=turn == 5)
        rows, columns = (m, n) if layouts[3] == "row" else (n, m)
        got = given[3][: rows * strides[3]].reshape(rows, strides[3])[:, :columns]
        assert np.array_equal(got if layouts[3] == "row" else got.T, exact), layouts
        assert not launch.hazards


def wmma_counts(shape, kind, c_kind, layouts, space, target):
    m, n, k = shape
    parameters = ", ".join(
        [f".param .u64 p{i}" for i in range(4)] + [f".param .u32 s{i}" for i in range(4)]
    )
    body = wmma_kernel(shape, kind, c_kind, layouts, space)
    text = HEAD.replace("sm_80", target) + f".visible .entry k({parameters}) {{\n{body}\nret;\n}}\n"
    given = [encoded(np.zeros(4096), of) for of in (kind, kind, c_kind, c_kind)]
    launch = function_of(text)(1, 32, (*given, *[32] * 4))
    return {
        "".join(site.opcode.split(".")[1:3]): (site.kind, site.requests, site.bytes_per_lane)
        for site in launch.trace.sites
        if site.opcode.startswith("wmma")
    }


# As ptxas 12.9 compiles these for sm_75 and sm_80: kind, requests and bytes a lane of each.
@cases("""
shape    | kinds   | layouts         | space   | target | counts
16 16 16 | f16 f32 | row row row row | .global | sm_80 | load 4 4, load 4 4, load 4 8, store 4 8
16 16 16 | f16 f32 | row row row row | .shared | sm_80 | ldmatrix 1 16, ldmatrix 1 16, load 4 8,
16 16 16 | f16 f32 | row row row row | .shared | sm_75 | ldmatrix 2 16, ldmatrix 2 16,,
16 16 16 | f16 f32 | col col col col | .global | sm_80 | load 4 4,,, store 8 4
32 8 16  | f16 f16 | row row row row | .global | sm_80 | load 8 4, load 2 4,, store 4 4
8 32 16  | f16 f32 | row row row row | .global | sm_80 | ,,, store 8 4
16 16 16 | s8 s32  | row col row row | .shared | sm_80 | ldmatrix 1 16, ldmatrix 1 16,,
16 16 16 | s8 s32  | col row row row | .global | sm_80 | load 8 1, load 8 1,,
""")
def test_wmma_counts_are_those_of_the_sass(shape, kinds, layouts, space, target, counts):
    found = wmma_counts(numbers(shape), *kinds.split(), layouts.split(), space, target)
    for name, count in zip(("loada", "loadb", "loadc", "stored"), counts.split(","), strict=True):
        assert not count or " ".join(map(str, found[name])) == count.strip()


def test_wmma_refuses_what_is_not_aligned():
    parameters = ".param .u64 p"
    body = """.reg .b64 %p; .reg .b32 %r<8>; ld.param.u64 %p, [p];
    wmma.load.a.sync.aligned.row.m16n16k16.global.f16
        {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%p+16], 16;"""
    data = np.zeros(4096, np.float16)
    for odd, match in (("+18], 16", "32 bytes"), ("], 19", "stride")):
        with pytest.raises(ptx.Misaligned, match=match):
            run(body.replace("+16], 16", odd), data, parameters=parameters)
    shared = "mov.u32 %s, m; wmma.load.a.sync.aligned.row.m16n16k16.shared.f16"
    inside = body.replace("wmma.load.a.sync.aligned.row.m16n16k16.global.f16", shared)
    inside = ".shared .align 32 .b8 m[4096]; .reg .b32 %s;" + inside.replace("%p+16", "%s")
    with pytest.raises(ptx.Misaligned, match="stride"):  # ldmatrix wants rows of 16 bytes
        run(inside.replace("], 16", "], 20"), data, parameters=parameters)
    with pytest.raises(ptx.OutOfBounds):
        run(body.replace("+16], 16", "], 24"), np.zeros(300, np.float16), parameters=parameters)


@pytest.mark.parametrize("at, stride", [(16, 16), (16, 24), (8, 16), (0, 20), (4, 18)])
@pytest.mark.parametrize("layout", ["row", "col"])
def test_wmma_loads_what_the_accesses_allow_and_says_what_ptx_wants(at, stride, layout):
    """A load from global memory is 32 bits at a time: PTX asks for more, and the GPU does not."""
    data = np.arange(600).astype(np.float16)
    copying = f"""
    wmma.load.a.sync.aligned.{layout}.m16n16k16.global.f16 {{REGISTERS}}, [%p+{at}], {stride};"""
    fits = data[at // 2:].copy()
    body = """.reg .b64 %p, %o; .reg .b32 %r<8>, %t; ld.param.u64 %p, [p]; ld.param.u64 %o, [o];
    mov.u32 %t, %tid.x; mad.wide.u32 %o, %t, 16, %o;LOAD
    st.global.v4.b32 [%o], {%r0, %r1, %r2, %r3};""".replace(
        "LOAD", copying.replace("REGISTERS", ", ".join(f"%r{i}" for i in range(8))))
    parameters = ".param .u64 p, .param .u64 o"
    out, expected = u32s(128), u32s(128)
    found = run(body, data, out, parameters=parameters)
    assert [h.kind for h in found.hazards] == ["alignment"]
    tight = np.zeros((16, 16), np.float16)
    for row in range(16):
        tight[row] = fits[row * stride : row * stride + 16]
    right = body.replace(f"[%p+{at}], {stride};", "[%p], 16;")
    assert not run(right, tight.reshape(-1).copy(), expected, parameters=parameters).hazards
    assert np.array_equal(out, expected) and out.any()
