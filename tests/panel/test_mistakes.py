"""Mistakes in the source: their lines and names; and the loop that the PTX editor opens at."""

import json
import re

import pytest

from book.panel.mistakes import MAX_MISTAKES
from lib.kernels.catalogue import find
from lib.panel import render
from lib.panel.bundle import Mistake
from lib.ptx.core.parser import parse


def ask(session, **request):
    return json.loads(session.ask(json.dumps(request)))


def first(session):
    """The instance of a session's first variant."""
    kernel = session.kernel
    return session.bundle.instances[kernel.expression(kernel.variant(session.bundle.variants[0]))]


@pytest.mark.parametrize("stem", ["01_naive", "02_shared_tile", "10_wmma", "16_cp_async", "18_tma"])
def test_each_mistake_is_at_a_line_of_the_kernel_that_runs(sessions, stem):
    session = sessions(stem)
    ran = session.executed(session.bundle.variants[0])
    found = first(session).mistakes
    assert 2 <= len(found) <= MAX_MISTAKES
    for mistake in found:
        with open(mistake.file, encoding="utf-8") as file:
            assert file.read().split("\n")[mistake.line - 1].strip() == mistake.source
        assert mistake.file == str(find(stem).source) and mistake.lines.keys() & ran
        assert len(mistake.name) < 50 and "%" not in mistake.name


def test_a_mistake_is_named_by_what_it_does(sessions):
    names = {mistake.source.split(";")[0]: mistake.name for mistake in first(sessions(
        "16_cp_async")).mistakes}
    assert names["__syncthreads()"] == "barrier left out"
    assert names["copies_commit()"] == "commit of the copies left out"
    assert {one.name for one in first(sessions("16_cp_async")).mistakes} >= {
        "wait for the copies left out", "wait for the copies is over too early"}
    assert {one.name for one in first(sessions("01_naive")).mistakes} == {
        "store to global memory off by one", "load from global memory off by one"}


def test_the_source_marks_the_lines_that_can_have_a_mistake(sessions):
    session = sessions("16_cp_async")
    found = first(session).mistakes
    answer = ask(session, do="source", mistake=1)
    rows = re.findall(r"<li>(.*?)</li>", answer["html"], re.DOTALL)
    marked = {row for row, text in enumerate(rows, 1) if "data-mistake" in text}
    assert marked == {mistake.line for mistake in found} and answer["first"] == min(marked)
    assert answer["html"].count("data-mistake") == len(found)
    assert re.findall(r'data-mistake="(\d+)" aria-pressed="true"', answer["html"]) == ["1"]
    # Two mistakes of one line are two buttons, and the line stands there once.
    both = next(text for text in rows if text.count("data-mistake") == 2)
    assert both.count("<code>") == 1 and both.count("<span>") == 2


def test_an_instantiation_without_mistakes_says_what_to_do(sessions):
    answer = ask(sessions("18_tma"), do="source", variant="wide", M=64, N=64, K=64)
    assert answer["verdict"] == "source"
    assert render.mistakes([], None)["verdict"] == "refused"
    assert "another variant" in render.mistakes([], None)["said"]


def test_an_answer_says_which_mistake_the_kernel_had(sessions):
    answer = ask(sessions("02_shared_tile"), M=64, N=64, K=64, mistake=0)
    assert answer["mistake"] == first(sessions("02_shared_tile")).mistakes[0].said
    assert answer["mistake"] in answer["html"] and "__syncthreads();" in answer["html"]
    assert "mistake" not in ask(sessions("02_shared_tile"), M=64, N=64, K=64)


def test_a_kernel_that_is_stopped_is_not_called_by_its_mangled_name(sessions):
    found = first(sessions("18_tma")).mistakes
    init = next(i for i, one in enumerate(found) if one.name == "init of the mbarrier left out")
    answer = ask(sessions("18_tma"), mistake=init)
    assert answer["verdict"] == "stopped" and "no mbarrier was initialised" in answer["said"]
    assert "_Z" not in answer["said"] and "stopped, error" not in answer["said"]


def test_a_source_line_is_escaped():
    said = Mistake("left out", "x", {}, "/a/b.cu", 3, "if (a < b) copy();")
    shown = render.seeded({"html": ""}, said)["html"]
    assert "left out, b.cu:3" in shown and "a &lt; b" in shown


LOOPS = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry k()
{
.reg .pred %p<3>;
.reg .f32 %f<3>;
.reg .b32 %r<3>;
$outer:
$spin:
setp.eq.u32 %p1, %r1, 0;
@%p1 bra $spin;
fma.rn.f32 %f1, %f1, %f1, %f1;
$inner:
fma.rn.f32 %f1, %f1, %f1, %f1;
fma.rn.f32 %f2, %f1, %f1, %f1;
@%p1 bra $inner;
@%p1 bra $outer;
$tail:
fma.rn.f32 %f1, %f1, %f1, %f1;
@%p1 bra $tail;
ret;
}
"""


def test_the_inner_loop_is_the_innermost_that_multiplies_most():
    instructions = parse(LOOPS).entries["k"].instructions
    begin, end = render.inner_loop(instructions)
    lines = LOOPS.split("\n")
    assert "%f1, %f1, %f1, %f1" in lines[instructions[begin].line - 1]
    assert lines[instructions[end].line - 1] == "@%p1 bra $inner;"
    assert render.inner_loop(instructions[:2]) is None  # it waits, and multiplies nothing


@pytest.mark.parametrize("stem", ["02_shared_tile", "16_cp_async", "18_tma"])
def test_the_editor_s_first_lines_are_the_inner_loop_with_its_label(sessions, stem):
    answer = ask(sessions(stem), do="ptx")
    rows = answer["ptx"].split("\n")[answer["first"] - 1 : answer["last"]]
    assert rows[0].strip() and any(re.match(r"\$L__BB\d+_\d+:", row) for row in rows[:4])
    assert re.search(r"\bbra", rows[-1])
    assert any(re.search(r"fma\.|mma", row) for row in rows)
    assert len(rows) < 0.6 * answer["ptx"].count("\n")
    assert "the inner loop" in answer["said"]
