"""Functions are called: they return to whom they came from, with what was theirs."""

import math
from functools import cache

import numpy as np
import pytest

from lib import ptx
from lib.ptx.core.linking import link
from lib.ptx.core.parser import parse
from tests.tables import cases

from ..conftest import (
    HEAD,
    HERE,
    compile_kernels,
    compile_text,
    each_schedule,
    entry,
    f32s,
    function_of,
    s32s,
    u32s,
)

T = np.arange(64)


@cache
def module(arch: str = "compute_75") -> ptx.Module:
    return ptx.Module(compile_kernels(arch, str(HERE / "calls.cu")))


def launch(name, grid, block, args, **options):
    done = module().get_function(name)(grid, block, args, **options)
    assert not done.hazards, done.hazards[:2]
    return done


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def nested(depth, seed):
    mine = [seed * 7 + i * depth for i in range(4)]
    return (nested(depth - 1, seed + 1) if depth else 0) * 3 + mine[(seed + depth) & 3]


@each_schedule
def test_recursion_with_another_depth_in_each_lane(schedule):
    n = (np.arange(80) * 7) % 11
    out = s32s((80, 3))
    out[:, 0] = n
    launch("recursion", 2, 40, (out,), schedule=schedule, races=True)
    for t in range(80):
        k = int(n[t])
        assert out[t].tolist() == [fib(k), int((k + 3) % 2 == 0) if k & 1 else k & 1,
                                   nested(k, t)], t


def test_recursion_without_end_is_stopped():
    with pytest.raises(ptx.Error, match="does its recursion end.*lane 0") as error:
        launch("endless", 1, 32, (s32s(2),))
    assert "function '_Z7foreveri'" in str(error.value) and "calls.cu:" in str(error.value)


def test_structures_go_in_and_out():
    out = s32s(32)
    launch("structs", 1, 32, (out,))
    t = T[:32]
    assert (out == t + t % 5 + 100 + t + (t + 1) % 5 + 2 * t + 1).all()


@each_schedule
def test_virtual_functions(schedule):
    kind = (T % 3 == 0).astype(np.int32)
    out = kind.copy()
    launch("virtuals", 1, 64, (out,), schedule=schedule, races=True)
    assert (out == np.where(kind, T * T + T, T + 1)).all()


def test_pointers_from_a_table():
    out = (T % 2).astype(np.int32)
    launch("pointers", 1, 64, (out,))
    assert (out == np.where(T % 2, T * 2, T + 1)).all()
    out[:] = 0
    out[7] = 2
    with pytest.raises(ptx.Error, match="a pointer to 0x0, which is null.*lane 7"):
        launch("pointers", 1, 64, (out,))


def test_a_race_inside_of_a_function():
    out = s32s(64)
    launch("exchange", 1, 64, (out, True), races=True)
    assert (out == (T ^ 33) ** 2).all()
    found = module().get_function("exchange")(1, 64, (out, False), races=True).hazards
    assert any(h.kind == "race" for h in found)


def test_callers_come_together_behind_a_call():
    x, out = T.astype(np.float32), f32s(64)
    done = launch("come_together", 1, 64, (out, x))
    assert (out == np.where(T & 1, x * x + 1, x + 1)).all()
    counters = done.trace.counters()
    assert counters["global_store_requests"] == 2 == counters["global_load_requests"]


def test_printf_by_blocks_and_threads(capsys):
    launch("prints", 2, 32, (np.int32(2),))
    said = [
        f"{b}/{t} {'odd' if t & 1 else 'even'}|{t * 1.5:5.2f}|{chr(97 + t):<4}|{1 << 40}|0xff|-0042"
        f"|+1.235e+04|%|     7" for b in range(2) for t in range(2)
    ]
    assert capsys.readouterr().out.splitlines() == said


@cases("""
format  | values | expected
%s      | 1      | <1>
%i%d;   | -3, 4  | -34;
%hhd %hu | 300, 65537 | 44 1
%o %#o  | 8, 8   | 10 010
%llx %X | 0xabcdef012345ull, 0xab | abcdef012345 AB
%g %G   | 0.5, 1e20 | 0.5 1E+20
%zu;    | (size_t)5 | 5;
%.3s;   | 2      | <2>;
%5s;%-5s; | 3, 4 | <3>;<4>  ;
%.0f %c%c | 2.5, 'o', 'k' | 2 ok
""")
def test_printf_formats(capsys, format, values, expected):
    if "s" in format:
        values = ", ".join(f'"<{v}>"' for v in f"{values}".split(", "))
    source = f'extern "C" __global__ void k() {{ printf("{format}\\n", {values}); }}'
    function_of(compile_text(source))(1, 1, ())
    assert capsys.readouterr().out.strip(" ") == f"{expected}\n"


def test_assertions():
    out = s32s(32)
    launch("asserts", 1, 32, (out, 32))
    assert out.all()
    with pytest.raises(ptx.Error) as error:
        launch("asserts", 1, (8, 4), (out, 3))
    said = str(error.value)
    assert "assertion 'threadIdx.x < n' failed" in said and "thread (3, 0, 0)" in said
    assert "block (0, 0, 0)" in said and "calls.cu:" in said


def test_the_heap():
    out = s32s(64)
    launch("heap", 1, 64, (out, 0), races=True)
    assert (out == 45 * T).all()
    with pytest.raises(ptx.OutOfBounds):
        launch("heap", 1, 64, (out, 1))
    with pytest.raises(ptx.Error, match="freed before"):
        launch("heap", 1, 64, (out, 2))
    launch("heap", 1, 64, (out, 3))
    assert (out == -1).all()  # more than there is: a null pointer


def test_functions_of_doubles():
    x = np.linspace(0.1, 9, 32)
    out = np.zeros((4, 32))
    launch("doubles", 1, 32, (x, out, 32))
    exact = [x**2.5, np.sin(x * 1e6), [math.gamma(v) for v in x], np.sin(x * 1e15)]
    assert np.allclose(out, exact, rtol=1e-15 * 8, atol=1e-15)


# -- PTX by hand ----------------------------------------------------------------------------------

ADD = """
.func (.reg .b32 %sum) add(.reg .b32 %a, .reg .b32 %b)
{ add.u32 %sum, %a, %b; ret; }
.func done() { exit; }
"""


def by_hand(functions: str, body: str):
    text = entry(body).replace(HEAD, HEAD + functions)
    out = u32s(32)
    function_of(text)(1, 32, (out,))
    return out


STORE = """
.reg .b32 %t, %r, %f; .reg .b64 %o, %o2; .reg .pred %p;
mov.u32 %t, %tid.x; ld.param.u64 %o, [out]; mad.wide.u32 %o, %t, 4, %o; mov.u32 %r, 5;
setp.gt.u32 %p, %t, 9;
CALL
st.global.u32 [%o], %r;
"""


@pytest.mark.parametrize("call, expected", [
    ("call (%r), add, (%t, 7);", T[:32] + 7),
    ("@%p call (%r), add, (%t, %t);", np.where(T[:32] > 9, 2 * T[:32], 5)),
    ("@!%p call done;", np.where(T[:32] > 9, 5, 0)),
    ("mov.b64 %o2, add;\n p: .callprototype (.reg .b32 _) _ (.reg .b32 _, .reg .b32 _);\n"
     "call (%r), %o2, (%t, 1), p;", T[:32] + 1),
])
def test_calls_by_hand(call, expected):
    body = STORE.replace("CALL", call)
    assert (by_hand(ADD, body) == expected).all()


@pytest.mark.parametrize("functions, call, said", [
    (".extern .func elsewhere(.param .b32 x);", "call elsewhere, (%t);", "defined elsewhere"),
    (".extern .func (.param .b64 r) cudaGetParameterBufferV2(.param .b32 x);",
     "{ .param .b64 r; call (r), cudaGetParameterBufferV2, (%t); }", "dynamic parallelism"),
    (ADD, "call (%r), add, (%t);", "1 arguments"),
    (".func broken() { .nonsense; }", "call broken;", "unexpected directive"),
])
def test_what_cannot_be_called(functions, call, said):
    with pytest.raises(ptx.Error, match=said):
        by_hand(functions, STORE.replace("CALL", call))
    by_hand(functions, STORE.replace("CALL", ""))  # and it concerns nobody else


@pytest.mark.parametrize("initial, said", [
    ("{generic(other)+4, other, add}", None), ("{nowhere, 0, 0}", "nowhere"),
])
def test_variables_that_hold_addresses(initial, said):
    variables = f".global .u32 other[3] = {{7, 8, 9}}; .global .u64 table[3] = {initial};" + ADD
    body = STORE.replace("CALL", "ld.global.u64 %o2, [table]; ld.u32 %r, [%o2];")
    if said is None:
        assert (by_hand(variables, body) == 8).all()
    else:
        with pytest.raises(ptx.LaunchError, match=said):
            by_hand(variables, body)
        by_hand(variables, STORE.replace("CALL", ""))  # who doesn't reach it is not refused


def test_a_kernel_that_cannot_be_read_refuses_no_other():
    text = entry("mov.u32 %x, 1;", "", "good").replace("mov.u32 %x, 1;", "")
    text += entry(".nonsense;", "", "bad").replace(HEAD, "")
    module = ptx.Module(text)
    module.get_function("good")(1, 32, ())
    with pytest.raises(ptx.ParseError, match="unexpected directive"):
        module.get_function("bad")
    with pytest.raises(ptx.ParseError):
        ptx.Module(entry(".nonsense;"))


def test_functions_stand_in_the_order_of_their_names_in_every_process():
    """Else diverged warps would go in the order of Python's hashes, another in each process."""
    names = [f"f{i}" for i in range(8)]
    text = HEAD + "".join(f".func {name}()\n{{\n ret;\n}}\n" for name in names) + (
        ".entry k()\n{\n" + "".join(f" call {name};\n" for name in reversed(names)) + " ret;\n}\n")
    program = parse(text)
    (kernel,) = program.entries.values()
    assert [*link(program, kernel).functions] == names
