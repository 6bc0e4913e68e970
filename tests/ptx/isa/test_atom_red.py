"""atom and red against one lane after another: operations, types, pairs, vectors, spaces."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import ptx
from tests.tables import cases

from ..conftest import f32s, run, u32s

LANES = 32
DTYPE = {
    "u32": "u4", "s32": "i4", "b32": "u4", "u64": "u8", "s64": "i8", "b64": "u8", "f32": "f4",
    "f64": "f8", "f16": "f2", "b16": "u2",
}


def wrapped(value, kind):
    if DTYPE[kind][0] == "f":
        return value
    bits = 8 * np.dtype(DTYPE[kind]).itemsize
    value = int(value) & (1 << bits) - 1
    return value - (1 << bits) if DTYPE[kind][0] == "i" and value >> bits - 1 else value


OPERATIONS = {
    "add": lambda old, b: old + b, "min": min, "max": max, "and": lambda old, b: old & b,
    "or": lambda old, b: old | b, "xor": lambda old, b: old ^ b, "exch": lambda old, b: b,
    "inc": lambda old, b: 0 if old >= b else old + 1,
    "dec": lambda old, b: b if old == 0 or old > b else old - 1,
}
CASES = [
    *((op, t) for op in ("add", "min", "max") for t in ("u32", "s32", "u64", "s64")),
    *(("add", t) for t in ("f32", "f64", "f16")),
    *((op, t) for op in ("and", "or", "xor", "exch") for t in ("b32", "b64")),
    ("inc", "u32"), ("dec", "u32"),
]


def execute(opcode, kind, memory, where, values, more=None, space="global"):
    """Let 32 lanes do an atomic at words of a memory; returns the memory and what they saw."""
    size, register = np.dtype(DTYPE[kind]).itemsize, kind if kind != "f16" else "b16"
    third = "" if more is None else ", %c"
    body = f"""
    .shared .align 8 .b8 s[64];
    .reg .b32 %t, %w, %s; .reg .b64 %m, %i, %v, %x, %o, %k; .reg .{register} %b, %c, %d, %e;
    mov.u32 %t, %tid.x; ld.param.u64 %m, [memory]; ld.param.u64 %i, [where];
    ld.param.u64 %v, [values]; ld.param.u64 %x, [more]; ld.param.u64 %o, [out];
    mad.wide.u32 %i, %t, 4, %i; mad.wide.u32 %v, %t, {size}, %v; mad.wide.u32 %x, %t, {size}, %x;
    mad.wide.u32 %o, %t, {size}, %o;
    ld.global.u32 %w, [%i]; ld.global.{register} %b, [%v]; ld.global.{register} %c, [%x];
    mad.wide.u32 %k, %t, {size}, %m; mov.u32 %s, s; mad.lo.u32 %s, %t, {size}, %s;
    """
    if space == "shared":
        body += f""".reg .pred %p; setp.ge.u32 %p, %t, 4; @%p bra READY;
        ld.global.{register} %e, [%k]; st.shared.{register} [%s], %e;
        READY: bar.sync 0; mov.u32 %t, s; mad.lo.u32 %s, %w, {size}, %t;"""
        address = "[%s]"
    else:
        body += f"mad.wide.u32 %m, %w, {size}, %m;"
        address = "[%m]"
    if opcode.startswith("atom"):
        body += f"{opcode}.{kind} %d, {address}, %b{third}; st.global.{register} [%o], %d;"
    else:
        body += f"{opcode}.{kind} {address}, %b{third};"
    if space == "shared":
        body += f"""bar.sync 0; @%p bra DONE; mov.u32 %t, %tid.x; mov.u32 %s, s;
        mad.lo.u32 %s, %t, {size}, %s; ld.shared.{register} %e, [%s];
        st.global.{register} [%k], %e; DONE:"""
    out = np.zeros(LANES, DTYPE[kind])
    arrays = [np.array(a, DTYPE[kind]) for a in (memory, values, more or [0] * LANES)]
    names = ("memory", "where", "values", "more", "out")
    declared = ", ".join(f".param .u64 {name}" for name in names)
    run(body, arrays[0], np.array(where, np.uint32), *arrays[1:], out, parameters=declared)
    return arrays[0], out


def numbers(kind):
    if DTYPE[kind][0] == "f":
        return st.integers(-64, 64).map(lambda n: n / 4)  # sums are exact in every order
    info = np.iinfo(DTYPE[kind])
    return st.integers(info.min, info.max) | st.sampled_from([info.min, info.max, 0, 1])


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize("operation, kind", CASES)
@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_lanes_go_one_after_another(operation, kind, space, data):
    memory = data.draw(st.lists(numbers(kind), min_size=4, max_size=4))
    values = data.draw(st.lists(numbers(kind), min_size=LANES, max_size=LANES))
    where = data.draw(st.lists(st.integers(0, 3), min_size=LANES, max_size=LANES))
    flush = ".noftz" if kind == "f16" else ""
    after, seen = execute(f"atom.{space}.{operation}{flush}", kind, memory, where, values,
                          space=space)
    reduced, _ = execute(f"red.{space}.{operation}{flush}", kind, memory, where, values,
                         space=space) if operation != "exch" else (after, None)
    expected, old = list(memory), []
    for at, value in zip(where, values, strict=True):
        old.append(expected[at])
        expected[at] = wrapped(OPERATIONS[operation](expected[at], value), kind)
    assert seen.tolist() == old and after.tolist() == reduced.tolist() == expected


@pytest.mark.parametrize("kind", ["b16", "b32", "b64"])
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_compare_and_swap(kind, data):
    few = st.integers(0, 3)
    memory = data.draw(st.lists(few, min_size=4, max_size=4))
    where, compare, put = (
        data.draw(st.lists(few, min_size=LANES, max_size=LANES)) for _ in range(3)
    )
    after, seen = execute("atom.global.cas", kind, memory, where, compare, put)
    expected, old = list(memory), []
    for at, wanted, value in zip(where, compare, put, strict=True):
        old.append(expected[at])
        expected[at] = value if expected[at] == wanted else expected[at]
    assert seen.tolist() == old and after.tolist() == expected


def brain(bits):
    return (np.asarray(bits, np.uint32) << 16).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize("opcode", [
    "atom.global.add.noftz.f16x2", "red.global.add.noftz.f16x2", "atom.global.add.noftz.bf16x2",
    "red.relaxed.gpu.global.add.noftz.bf16x2",
])
def test_pairs_of_halves(opcode):
    random = np.random.default_rng(1)
    values = random.integers(-8, 8, (LANES, 2)) / 4
    memory, out = u32s(2), u32s(LANES)
    if "bf16" in opcode:
        words = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    else:
        words = values.astype(np.float16).view(np.uint16)
    given_ = np.ascontiguousarray(words).view(np.uint32)[:, 0].copy()
    seen = "%d, " if opcode.startswith("atom") else ""
    run(f"""
    .reg .b32 %t, %b, %d; .reg .b64 %m, %v, %o; mov.u32 %t, %tid.x; mov.u32 %d, 0;
    ld.param.u64 %m, [m]; ld.param.u64 %v, [v]; ld.param.u64 %o, [o];
    mad.wide.u32 %v, %t, 4, %v; mad.wide.u32 %o, %t, 4, %o; ld.global.u32 %b, [%v];
    {opcode} {seen}[%m+4], %b; st.global.u32 [%o], %d;
    """, memory, given_, out, parameters=".param .u64 m, .param .u64 v, .param .u64 o")

    def halves(words):
        bits = np.ascontiguousarray(words).view(np.uint16).reshape(-1, 2)
        return brain(bits) if "bf16" in opcode else bits.view(np.float16).astype(np.float32)

    # Quarters up to 64 are exact in both types.
    assert memory[0] == 0 and np.array_equal(halves(memory)[1], values.sum(axis=0))
    if seen:
        before = np.concatenate([np.zeros((1, 2)), np.cumsum(values, axis=0)[:-1]])
        assert np.array_equal(halves(out), before)


def test_bf16_sums_round_once():
    """1 + 2^-9 lies in the middle of two numbers of 8 bits: to even, each time."""
    memory, values = np.array([0x3F80], np.uint16), np.array([0x3B00] * LANES, np.uint16)
    body = """.reg .b32 %t; .reg .b64 %m, %v; .reg .b16 %b; mov.u32 %t, %tid.x;
    ld.param.u64 %m, [m]; ld.param.u64 %v, [v]; mad.wide.u32 %v, %t, 2, %v;
    ld.global.b16 %b, [%v]; red.global.add.noftz.bf16 [%m], %b;"""
    run(body, memory, values, parameters=".param .u64 m, .param .u64 v")
    assert brain(memory)[0] == 1.0


@pytest.mark.parametrize("width", [2, 4])
def test_vectors(width):
    memory, out = f32s((3, width)), f32s((LANES, width))
    names = ", ".join(f"%f{i}" for i in range(width))
    text = f"""
    .reg .b32 %t, %w; .reg .b64 %m, %o; .reg .f32 %f<8>; mov.u32 %t, %tid.x;
    ld.param.u64 %m, [m]; ld.param.u64 %o, [o]; rem.u32 %w, %t, 3;
    mad.wide.u32 %m, %w, {4 * width}, %m; mad.wide.u32 %o, %t, {4 * width}, %o;
    cvt.rn.f32.u32 %f0, %t; """ + "".join(
        f"add.f32 %f{i}, %f0, 0f3F800000;" for i in range(1, width)
    )
    run(text + f"""atom.global.add.v{width}.f32 {{{names}}}, [%m], {{{names}}};
    st.global.v{width}.f32 [%o], {{{names}}};""", memory, out,
        parameters=".param .u64 m, .param .u64 o")
    for word in range(3):
        mine = [t for t in range(LANES) if t % 3 == word]
        assert memory[word].tolist() == [sum(t + (i > 0) for t in mine) for i in range(width)]
        assert out[mine[1]].tolist() == [mine[0] + (i > 0) for i in range(width)]


@cases("""
statement                                        | message
atom.global.mul.u32 %d, [%o], %d;                | operations are
atom.global.add.b8 %d, [%o], %d;                 | atomics on
atom.shared.add.v2.f32 {%f, %f}, [%d], {%f, %f}; | in global memory
red.global.add.v2.f32 [%o], {%f, %f, %f};        | 2 registers are needed
red.global.xor.f16x2 [%o], %d;                   | add, min and max
atom.global.cas.b32 %d, [%o], %d;                | 3 operands
""")
def test_refused(statement, message):
    with pytest.raises(ptx.Error, match=message):
        run(f".reg .b32 %d; .reg .f32 %f; .reg .b64 %o; ld.param.u64 %o, [out]; {statement}",
            f32s(4))


def test_atomics_are_checked_like_any_access():
    body = ".reg .b64 %o; ld.param.u64 %o, [out]; "
    with pytest.raises(ptx.Misaligned):
        run(body + "red.global.add.u32 [%o+2], 1;", u32s(4))
    with pytest.raises(ptx.OutOfBounds):
        run(body + "red.global.add.u32 [%o+16], 1;", u32s(4))
    with pytest.raises(ptx.UninitialisedRead):
        run(".shared .b32 s; red.shared.add.u32 [s], 1;", u32s(4))
