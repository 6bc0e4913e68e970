"""The grammar's corners, and mutated text: nothing but ptx.Error ever comes out."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import ptx
from lib.ptx.core.parser import parse
from lib.ptx.core.syntax import Address, Immediate, Register, Vector
from tests.tables import cases

from ..conftest import HEAD, entry, function_of, run, u32s
from ..fuzz import attempt


def test_scopes_repeat_labels_and_registers():
    """Inline assembly in a loop that was unrolled: the same block of text twice."""
    block = """
    { .reg .pred p; .reg .b32 x;
      mov.u32 x, 1;
      AGAIN: add.u32 x, x, x; setp.lt.u32 p, x, 64; @p bra AGAIN;
      add.u32 %v, %v, x; }
    """
    body = ".reg .b32 %v; .reg .b64 %o; mov.u32 %v, 0;" + block * 2
    out = u32s(1)
    run(body + "ld.param.u64 %o, [out]; st.global.u32 [%o], %v;", out, block=1)
    assert out[0] == 128


def test_operands():
    body = """
    .reg .b32 %r<4>; .reg .f32 f; .reg .f64 d; .reg .b64 %a; .reg .v4 .b32 q;
    """
    with pytest.raises(ptx.ParseError, match="PTX line 7.*vector registers"):
        parse(entry(body))
    text = entry("""
    .reg .b32 %r<4>; .reg .f32 f; .reg .f64 d; .reg .b64 %a;
    mov.f32 f, 0fBF800000; mov.f64 d, 0d4008000000000000; mov.b64 {%r0, %r1}, %a;
    ld.global.u32 %r2, [%a+-8]; ld.global.u32 %r3, [%a-4+0x10]; mov.u32 %r3, -5; mov.u32 %r3, 017;
    """)
    instructions = parse(text).entries["k"].instructions
    assert instructions[0].operands[1] == Immediate("f32", 0xBF800000)
    assert instructions[1].operands[1] == Immediate("f64", 0x4008000000000000)
    assert isinstance(instructions[2].operands[0], Vector)
    assert [i.operands[1].offset for i in instructions[3:5]] == [-8, 12]
    assert isinstance(instructions[3].operands[1], Address)
    assert isinstance(instructions[3].operands[1].base, Register)
    assert [i.operands[1].bits for i in instructions[5:7]] == [-5, 15]


def test_inlined_code_has_its_own_line_and_those_of_the_calls():
    program = parse(HEAD + """
    .file 1 "kernel.cu"
    .file 2 "vector.cuh"
    .visible .entry k()
    {
      .loc 1 5 1
      membar.gl;
      .loc 2 39 5, function_name $L__info_string2, inlined_at 1 83 13
      .loc 2 12 9, function_name $L__info_string0 + 4, inlined_at 2 39 5
      membar.gl;
      .loc 2 0 9
      .loc 2 12 9
      membar.gl;
      .loc 1 6 1
      ret;
    }
    """)
    first, second, again, last = program.entries["k"].instructions
    assert (first.cuda, first.callers) == (("kernel.cu", 5), ())
    assert second.cuda == ("vector.cuh", 12)
    assert second.callers == (("vector.cuh", 39), ("kernel.cu", 83))
    assert (again.cuda, again.callers) == (second.cuda, second.callers)
    assert (last.cuda, last.callers) == (("kernel.cu", 6), ())


def test_directives_and_lines():
    text = (
        HEAD
        + """
    .file 1 "a.cu"
    .extern .shared .align 16 .b8 dynamic[];
    .const .align 4 .b8 bytes[4] = {1, 2, 3, 0xff};
    .global .f32 g = 0f3F800000;
    .extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
    /* a comment
       of two lines */
    .weak .entry k(.param .align 64 .b8 map[128], .param .u64 .ptr .global .align 4 p)
    .maxntid 256, 1, 1
    .minnctapersm 2
    {
      .pragma "nounroll";
      .loc 1 7 3
      membar.gl;
      .loc 1 0 0
      ret;
    }
    .section .debug_str { .b8 1 }
    """
    )
    program = parse(text)
    kernel = program.entries["k"]
    assert kernel.limits["maxntid"] == (256, 1, 1)
    assert [p.nbytes for p in kernel.parameters] == [128, 8]
    assert [i.cuda for i in kernel.instructions] == [("a.cu", 7)] * 2
    assert program.variables["dynamic"].count == 0 and "vprintf" in program.functions
    function_of(text)(1, 1, (b"\0" * 128, np.zeros(1)))
    with pytest.raises(ptx.LaunchError, match="compiled for"):
        function_of(text)(1, 512, (b"\0" * 128, np.zeros(1)))


@cases("""
body                            | message
() { ret;                       | text ends
() { add.u32                    | expected a number, found .end of text
() { bra NOWHERE; }             | unknown label
() { @%p ret; }                 | no predicate
() { A: A: ret; }               | stands twice
() { \x01 }                     | cannot read
() { ret; } .entry k() { ret; } | stands twice
""")
def test_broken_text(body, message):
    with pytest.raises(ptx.ParseError, match=message):
        ptx.Module(f"{HEAD}.entry k{body}")


@cases("""
text  | message
hello | unexpected 'hello'
3     | must be a str
""")
def test_what_is_no_module(text, message):
    with pytest.raises(ptx.ParseError, match=message):
        ptx.Module(text)


@cases("""
statement                    | message
add.u32 %r, %r;              | 2 operands, not 3
add.u64 %d, %r, %d;          | narrower
add.u32 %p, %r, %r;          | used as
mov.u32 %r, nobody;          | unknown name
mov.u32 %r, %nobody;         | no register %nobody
ld.global.u32 %r, %d;        | square brackets
add.frob.u32 %r, %r, %r;     | no modifier .frob
add.frob.f32 %r, %r, %r;     | no modifier .frob
setp.lt.u32 5, %r, %r;       | cannot be written
mul.u32 %r, %r, %r;          | lo
add.f32 %r, %r, 1;           | whole number
rsqrt.f32 %r, %r;            | need .approx
fma.rn.relu.f32 %r, %r, %r, %r; | .relu with f16
""")
def test_instructions_that_do_not_fit(statement, message):
    declared = ".reg .b32 %r; .reg .b64 %d; .reg .pred %p; "
    function_of(entry(f"{declared}add.u32 %d, %r, %r;"))
    with pytest.raises(ptx.Error, match=message) as caught:
        function_of(entry(declared + statement))
    assert "PTX line 6" in str(caught.value)


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=60))
def test_any_text_raises_nothing_else(text):
    attempt(text)
    attempt(entry(text))


STATEMENTS = """
@!p mad.lo.s32 a, b, -3, c;
@p bra done;
@p ret;
@!p ret;
ld.shared.v2.f32 {f, g}, [w+-16];
st.shared.f32 [w], 0f3F800000;
setp.eq.s32 p|q, a, 010;
selp.b32 a, b, c, !p;
mov.u64 w, %clock64;
st.shared.u32 [here+8], a;
cp.async.ca.shared::cta.global [w], [w+16], 4;
"""


def test_instructions_of_one_line_are_those_read_word_by_word():
    head = ".reg .pred p, q; .reg .b32 a, b, c, f, g; .reg .b64 w; .shared .b32 here[4];\n"
    one, many = (
        parse(entry(f"{head}{text}\ndone:")).entries["k"]
        for text in (STATEMENTS, STATEMENTS.replace(" ", "\n").replace(",", " , /* */ "))
    )
    assert len(one.instructions) == len(many.instructions) == 12
    for first, second in zip(one.instructions, many.instructions, strict=True):
        assert replace(second, line=first.line) == first
    assert one.registers == many.registers


def test_a_name_declared_again_is_another_register_from_there_on():
    body = ".reg .b32 a; mov.b32 a, 1;\n{ .reg .b32 a;\nmov.b32 a, 2;\n}\nmov.b32 a, 3;"
    slots = [i.operands[0].slot for i in parse(entry(body)).entries["k"].instructions[:3]]
    assert slots[0] == slots[2] != slots[1]


def test_managed_variables_are_variables():
    text = """.version 8.0
.target sm_80
.address_size 64
.visible .global .attribute(.managed) .align 4 .u32 total;
.visible .entry k()
{
    .reg .b32 %v;
    ld.global.u32 %v, [total]; add.u32 %v, %v, 7; st.global.u32 [total], %v;
    ret;
}
"""
    module = ptx.Module(text)
    module.get_function("k")(1, 1, ())
    assert module.get_global("total").view(np.uint32).tolist() == [7]
    with pytest.raises(ptx.ParseError, match="ends inside of an attribute"):
        ptx.Module(text[: text.index("managed")])
