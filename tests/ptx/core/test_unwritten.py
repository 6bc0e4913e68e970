"""What is read from memory that nobody wrote may lie in a register; using it is an error."""

import numpy as np
import pytest

from lib import ptx

from ..conftest import run, u32s

LANES = 32
# Words 0 to 30 of `s` are written, word 31 is not. Each lane loads its own word.
READ = """
.reg .b32 %t, %a, %v, %w, %x, %y, %z<9>; .reg .b64 %o, %g, %h; .reg .pred %p, %q;
.shared .align 16 .b8 s[256]; .shared .align 16 .b8 more[256];
mov.u32 %t, %tid.x; ld.param.u64 %o, [out]; mad.wide.u32 %g, %t, 4, %o;
mov.u32 %a, s; mad.lo.u32 %a, %t, 4, %a;
setp.lt.u32 %p, %t, 31;
@%p st.shared.u32 [%a], %t;
bar.sync 0;
ld.shared.u32 %v, [%a];
"""
SAFE = "setp.lt.u32 %q, %t, 31; @%q st.global.u32 [%g], %w;"  # all lanes but the doubtful one


def outcome(body: str, **options):
    out = np.full(LANES, 77, np.uint32)
    run(READ + body, out, **options)
    return out.tolist()


def test_what_is_not_used_stops_nothing_unless_asked_for():
    assert outcome("mov.u32 %w, %t;" + SAFE)[:31] == list(range(31))
    with pytest.raises(ptx.UninitialisedRead, match="before anybody wrote"):
        outcome("mov.u32 %w, %t;" + SAFE, strict=True)


# The ways on of a value are those of a register's, below.
USES = {
    "stored": ("st.global.u32 [%g], %v;", "is stored"),
    "computed": ("mad.lo.u32 %w, %v, 3, 4; cvt.rn.f32.u32 %x, %w; st.global.u32 [%g], %x;",
                 "is stored"),
    "vote": ("setp.eq.u32 %p, %v, 5; vote.sync.any.pred %q, %p, -1;", "is given to it"),
    "through shared memory": (
        "mov.u32 %x, more; mad.lo.u32 %x, %t, 4, %x; st.shared.u32 [%x], %v; bar.sync 0;"
        "ld.shared.u32 %w, [%x]; st.global.u32 [%g], %w;", "is stored"),
    "shuffled": ("shfl.sync.bfly.b32 %w, %v, 1, 31, -1; st.global.u32 [%g], %w;",
                 "is stored: .*lane 30"),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("schedule", ["lowest", "random"])
def test_a_use_stops_the_kernel_and_names_the_read(use, schedule):
    body, how = USES[use]
    with pytest.raises(ptx.UninitialisedRead, match=how) as error:
        outcome(body, schedule=schedule)
    assert "PTX line" in str(error.value) and "before anybody wrote" in str(error.value)
    assert str(error.value).count("ld.shared.u32") == 1  # the read, not one that it came by
    assert "lane 3" in str(error.value)  # 31 read it, 30 got it by a shuffle


HARMLESS = {
    "shuffled away": ("shfl.sync.up.b32 %w, %v, 1, 0, -1; selp.b32 %w, %t, %t, %p;", SAFE),
    "overwritten in shared memory": (
        "mov.u32 %x, more; mad.lo.u32 %x, %t, 4, %x; st.shared.u32 [%x], %v;"
        "st.shared.u32 [%x], %t; ld.shared.u32 %w, [%x];", "st.global.u32 [%g], %w;"),
    "part of a vector": (
        "mov.u32 %x, s; ld.shared.v4.u32 {%z1, %z2, %z3, %z4}, [%x+112]; add.u32 %w, %z3, %t;"
        "sub.u32 %w, %w, 30;", "st.global.u32 [%g], %w;"),
}


@pytest.mark.parametrize("body, stored", HARMLESS.values(), ids=HARMLESS)
def test_a_value_that_goes_nowhere_is_followed_no_further(body, stored):
    assert outcome(body + stored)[:31] == list(range(31))


def test_the_result_and_the_counters_are_those_of_a_run_without_doubts():
    written = READ.replace("%t, 31", "%t, 99")
    out, same = (u32s(LANES) for _ in range(2))
    doubtful = run(READ + "mov.u32 %w, %t;" + SAFE, out)
    sound = run(written + "mov.u32 %w, %t;" + SAFE, same)
    assert out.tolist() == same.tolist()
    first, second = doubtful.trace.counters(), sound.trace.counters()
    assert {k: v for k, v in first.items() if "store" not in k} == {
        k: v for k, v in second.items() if "store" not in k
    }


MMA = """
.reg .b32 %a<4>, %b<2>, %f<4>, %t, %r, %c; .reg .b64 %o, %g; .reg .pred %p;
.shared .align 16 .b8 s[512];
mov.u32 %t, %tid.x; ld.param.u64 %o, [out];
mov.u32 %r, s; mad.lo.u32 %c, %t, 16, %r;
setp.lt.u32 %p, %t, ROWS;
@%p st.shared.v4.b32 [%c], {ONE, ONE, ONE, ONE};
bar.sync 0;
ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%a0, %a1, %a2, %a3}, [%c];
mov.b32 %b0, ONE; mov.b32 %b1, ONE; mov.b32 %f0, 0; mov.b32 %f1, 0; mov.b32 %f2, 0; mov.b32 %f3, 0;
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%a0, %a1, %a2, %a3},
    {%b0, %b1}, {%f0, %f1, %f2, %f3};
mad.wide.u32 %g, %t, 8, %o;
st.global.v2.b32 [%g], {%f0, %f1};
LOWER
""".replace("ONE", str(0x3C003C00))
LOWER = "add.u64 %g, %g, 256; st.global.v2.b32 [%g], {%f2, %f3};"


def test_rows_of_a_product_that_nobody_wrote_matter_where_they_are_stored():
    """Matrices 0 and 2 of A, rows 0 to 7, are written; 1 and 3, rows 8 to 15, are not."""
    text = MMA.replace("%p, %t, ROWS", "%p, %q, 1").replace(
        "setp.lt.u32", "shr.u32 %q, %t, 3; and.b32 %q, %q, 1; setp.lt.u32").replace(
        "%t, %r, %c;", "%t, %r, %c, %q;")
    out = np.full((2, LANES, 2), np.nan, np.float32)
    run(text.replace("LOWER", ""), out)
    assert (out[0] == 16).all()
    with pytest.raises(ptx.UninitialisedRead, match=r"ldmatrix.*is stored"):
        run(text.replace("LOWER", LOWER), out)


def test_local_arrays_are_followed_too():
    body = """.local .align 4 .b8 l[8]; .reg .b32 %v; .reg .b64 %o; ld.param.u64 %o, [out];
    mov.u32 %v, 5; st.local.u32 [l], %v; ld.local.u32 %v, [l+WHERE]; st.global.u32 [%o], %v;"""
    out = u32s(1)
    run(body.replace("WHERE", "0"), out, block=1)
    assert out[0] == 5
    with pytest.raises(ptx.UninitialisedRead, match="local memory .*is stored"):
        run(body.replace("WHERE", "4"), out, block=1)


def test_a_generic_load_from_two_memories_into_its_own_address():
    """Half of the lanes read an array, half shared memory, whose last word nobody wrote."""
    body = """
    .reg .b32 %t, %a, %v; .reg .b64 %o, %g, %h, %x; .reg .pred %p, %q;
    .shared .align 16 .b8 s[256];
    mov.u32 %t, %tid.x; ld.param.u64 %o, [out]; mad.wide.u32 %g, %t, 8, %o;
    mov.u32 %a, s; mad.lo.u32 %a, %t, 8, %a; cvt.u64.u32 %x, %t;
    setp.lt.u32 %p, %t, 31; @%p st.shared.u64 [%a], %x; bar.sync 0;
    cvt.u64.u32 %h, %a; cvta.shared.u64 %h, %h;
    setp.lt.u32 %q, %t, 16; selp.b64 %h, %g, %h, %q;
    ld.u64 %h, [%h];
    @%p st.global.u64 [%g], %h;"""
    out = np.arange(100, 132, dtype=np.uint64)
    run(body, out)
    assert out.tolist() == [*range(100, 116), *range(16, 31), 131]


def test_an_atomic_operation_on_what_nobody_wrote_stops_also_while_a_value_is_followed():
    with pytest.raises(ptx.UninitialisedRead, match=r"red\.shared"):
        outcome("mov.u32 %x, more; red.shared.add.u32 [%x], 1;")


def test_products_that_were_put_off_behind_the_read_are_not_lost():
    """Six products before the read of unwritten memory and two behind it may be one step."""
    products = [f"fma.rn.f32 %f{i}, %f8, %f8, %f{i};" for i in range(8)]
    ones = "".join(f"mov.f32 %f{i}, 0f3F800000;" for i in range(8))
    read = "ld.shared.u32 %v, [%a];"
    body = ".reg .f32 %f<10>;" + READ.replace(read, "".join((
        ones, "cvt.rn.f32.u32 %f8, %t;", *products[:6], read, *products[6:])))
    body += "mov.f32 %f9, 0f00000000;" + "".join(f"add.f32 %f9, %f9, %f{i};" for i in range(8))
    out = np.full(LANES, 77, np.uint32)
    run(body + "cvt.rzi.u32.f32 %w, %f9;" + SAFE, out)
    assert out.tolist() == [*(8 * (t * t + 1) for t in range(31)), 77]


# -- registers ----------------------------------------------------------------------------------

# %n is written by no lane, %h by the lower half of a warp alone; all lanes store %w.
REGISTERS = """
.reg .b32 %t, %n, %h, %v, %w, %x, %i, %a; .reg .f32 %f, %e; .reg .b64 %o, %g, %l;
.reg .pred %p, %q, %u; .local .align 4 .b8 own[8]; .shared .align 16 .b8 s[256];
mov.u32 %t, %tid.x; ld.param.u64 %o, [out]; mad.wide.u32 %g, %t, 4, %o; mov.u32 %w, %t;
setp.lt.u32 %p, %t, 16; @%p mov.u32 %h, %t;
"""
STORED = "st.global.u32 [%g], %w;"
UNWRITTEN_USES = {
    "stored": ("st.global.u32 [%g], %n;", r"st\.global.*register %n .*is stored"),
    "summed in a loop": (
        "mov.u32 %i, 0;\nL: add.u32 %n, %n, %t; add.u32 %i, %i, 1; setp.lt.u32 %q, %i, 9;"
        "@%q bra L; st.global.u32 [%g], %n;", r"\(add.u32\): register %n .*is stored"),
    "of half of the lanes": ("st.global.u32 [%g], %h;", "%h .*lane 16.*is stored.*lane 16; .* 12 "),
    "copied": ("mov.u32 %v, %n; mov.u32 %x, %v; mul.lo.u32 %w, %x, 3;" + STORED,
               r"\(mul.lo.u32\): register %n .*is stored"),
    "chosen by a branch": ("setp.eq.u32 %q, %n, 5; @%q bra D; mov.u32 %w, 1;\nD:" + STORED,
                           r"setp.*%n .*is stored"),
    "branch": ("@%u bra D; st.global.u32 [%g], %w;\nD:", "%u .*decides where lanes go"),
    "turns of a loop": ("mov.u32 %i, 0;\nL: add.u32 %i, %i, 1; setp.lt.u32 %q, %i, %h;"
                        "@%q bra L; st.global.u32 [%g], %i;", "%h .*is stored.*lane 16"),
    "guard": ("@%u st.global.u32 [%g], %t;", "%u .*decides whether it runs"),
    "address": ("mad.wide.u32 %l, %n, 4, %o; ld.global.u32 %w, [%l];" + STORED, "is its address"),
    "shared memory": (
        "mov.u32 %a, s; mad.lo.u32 %a, %t, 4, %a; st.shared.u32 [%a], %h; bar.sync 0;"
        "ld.shared.u32 %w, [%a];" + STORED, "%h .*is stored"),
    "another lane's": ("shfl.sync.bfly.b32 %w, %h, 16, 31, -1;" + STORED, "%h .*is stored.*lane 0"),
    "local array": ("st.local.u32 [own], %n; ld.local.u32 %w, [own];" + STORED, "%n .*is stored"),
    "reduced": ("red.global.add.u32 [%g], %n;", "is given to it"),
}
UNWRITTEN_HARMLESS = {
    "in lanes that store nothing": ("add.u32 %w, %h, 0; @%p st.global.u32 [%g], %w;"),
    "a branch of lanes that store nothing": (
        "setp.gt.u32 %q, %h, 3; mov.u32 %v, 0; @%q bra D; add.u32 %v, %h, 1;\nD:"
        "@%p st.global.u32 [%g], %w;"),
    "dropped": "selp.b32 %w, %h, %t, %p;" + STORED,
    "written at last": "mov.u32 %v, %n; mov.u32 %n, %t; mov.u32 %w, %n;" + STORED,
    "of two halves": "@!%p mov.u32 %h, %t; mov.u32 %w, %h;" + STORED,
    "dead": "add.u32 %n, %n, 1; mul.lo.u32 %n, %n, %n;" + STORED,
    "in a local array that is written": (
        "st.local.u32 [own], %n; st.local.u32 [own+4], %n; st.local.u32 [own], %t;"
        "ld.local.u32 %w, [own];" + STORED),
    "in a loop that writes it first": (
        "mov.u32 %i, 0;\nL: setp.eq.u32 %q, %i, 0; @%q bra F; mov.u32 %w, %n;\nF:"
        "mov.u32 %n, %t; add.u32 %i, %i, 1; setp.lt.u32 %q, %i, 3; @%q bra L;" + STORED),
}


MATRIX = """mov.u32 %a, s; mad.lo.u32 %x, %t, 16, %a;
stmatrix.sync.aligned.m8n8.x1.shared.b16 [%x], {%h}; bar.sync 0;
mad.lo.u32 %x, %t, 4, %a; ld.shared.u32 %w, [%x];"""
UNWRITTEN_USES["rows of a matrix"] = MATRIX + STORED, "%h .*is stored.*lane 16"
UNWRITTEN_HARMLESS["other rows of a matrix"] = MATRIX + "@%p st.global.u32 [%g], %w;"


@pytest.mark.parametrize("schedule", ["lowest", "random"])
@pytest.mark.parametrize("use", UNWRITTEN_USES)
def test_a_register_that_nobody_wrote_stops_the_kernel_where_it_is_used(use, schedule):
    body, what = UNWRITTEN_USES[use]
    with pytest.raises(ptx.UninitialisedRead, match=what):
        run(REGISTERS + body, u32s(LANES), schedule=schedule)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("body", UNWRITTEN_HARMLESS.values(), ids=UNWRITTEN_HARMLESS)
def test_a_register_that_no_result_depends_on_is_no_mistake(body, strict):
    out = u32s(LANES)
    run(REGISTERS + body, out, strict=strict and "stmatrix" not in body)
    assert out[:16].tolist() == list(range(16))
