"""A reader's own kernel, natively: its form, its verdicts, what is refused, its link."""

import json
import lzma
import re

import numpy as np
import pytest

from book.panel import examples, exercises
from book.site import address
from lib.compiler import link
from lib.compiler.raw_module import RawModule
from lib.kernels.catalogue import in_book
from lib.panel import form
from lib.panel.expected import compare
from lib.panel.request import Refused
from lib.panel.trial import DEFAULT, Trial
from lib.ptx.core.parser import parse
from lib.show.zoo import MISSED, specimens
from tests.links import unpacked
from tests.tables import cases

MISTAKES = {one.name: one for one in specimens()}


def ptx_of(name):
    return lzma.decompress((examples.FOREIGN / f"{name}.ptx.xz").read_bytes()).decode()


def ask(trial=None, **request):
    return json.loads((trial or Trial()).ask(json.dumps(request)))


@pytest.fixture(scope="module")
def scale():
    """A kernel that triples an array, as a request."""
    source = ("__global__ void scale(const float* x, float* y, float by, int n)\n"
              "{\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
              "    if (i < n) y[i] = by * x[i];\n}\n")
    module = RawModule(code=source, arch="sm_80")
    kernel = form.kernels(parse(module.ptx), source)[0]
    return {"ptx": module.ptx, "sources": {"module.cu": source}, **kernel, "kernel": kernel["name"]}


@pytest.mark.parametrize("name", MISTAKES)
def test_each_mistake_is_told_with_its_line_and_its_cure(name):
    one = examples._mistake(MISTAKES[name])
    answer = ask(**one)
    says = MISTAKES[name].says
    if says == MISSED:  # a mistake that no detector tells, and whose page says so
        return
    assert answer["verdict"] == "wrong"
    assert says in answer["report"] or says == "hazard or error"
    if says == "Error":  # of a header's wrapper, which no advice is known for
        return
    assert f"{name}.cu:" in answer["report"] and "What to do: " in answer["html"]
    assert 'class="live-now"' in answer["html"]  # the line is marked in the source


@pytest.mark.parametrize("stem", [
    pytest.param(stem, marks=() if stem in ("01_naive", "05_bank_conflicts", "12_wmma_pipeline",
                                            "22_few_tiles") else pytest.mark.slow)
    for stem in in_book() if exercises.name(stem) != stem])
def test_the_bug_that_an_exercise_asks_to_mend_is_told_at_its_file(stem):
    one = examples._bug(stem)
    answer = ask(**one)
    assert answer["verdict"] == "wrong" and one["name"] == f"{stem}_bug"
    assert f"{next(iter(one['sources']))}:" in answer["report"] and "What to do: " in answer["html"]


def test_each_exercise_leads_to_its_kernel_and_the_second_to_its_bug():
    asked = "1. Change a constant.", "2. Mend a bug.", "3. Write the kernel&#8217;s lines."
    body = "".join(f"<p><strong>{one}</strong> Do <em>it</em>.</p>" for one in asked)
    linked = exercises.linked(f"<p><strong>4. None.</strong></p>{body}", "01_naive")
    assert re.findall("#example=(.*?)\"", linked) == ["01_naive", "01_naive_bug", "01_naive"]
    for stem in ("26_fp8", "29_mine"):
        assert "_bug" not in exercises.linked(body, stem) and exercises.bug(stem) is None


@pytest.mark.parametrize("launch, block", [
    ("k<<<rows, 128>>>(x)", "128"), ("k<4><<<dim3(2, 2), dim3(16, 8)>>>(x)", "16 8"),
    ("dim3 block(32, 8);\nk<<<grid, block, 0, stream>>>(x)", "32 8"),
    ("#define BS 64\nk<<<(n + BS - 1) / BS, BS>>>(x)", "64"),
    ("dim3 b = dim3(8, 4, 2); k<<<g, b>>>()", "8 4 2"), ("k<<<g, n / 2>>>()", ""),
    ("int threads = n; k<<<g, threads>>>()", ""), ("k<<<1, 2000>>>()", ""), ("", ""),
])
def test_a_form_reads_the_block_of_the_source_s_own_launch(launch, block):
    assert " ".join(map(str, form._launched(launch, "k"))) == block


def test_a_form_reads_names_types_and_uses(scale):
    assert scale["args"] == ["x=float32[1024]:uniform", "y=float32[1024]:nan", "by=float32:1",
                             "n=int32:1024"]
    assert (scale["plain"], scale["grid"], scale["block"]) == ("scale", [4, 1], [256, 1, 1])


@pytest.mark.parametrize("name, wanted", [
    ("triton_racing_sm_80", ["p0=float32[1024]:uniform", "p1=float32[1024]:uniform",
                             "p2=uint32:1024", "p3=null", "p4=null"]),
    ("numba_saxpy_sm_80", ["p0=null", "p1=null", "p2=int64:1024", "p3=int64:4",
                           "p4=float32[1024]:uniform", "p5=int64:1024", "p6=int64:4"]),
])
def test_a_form_of_ptx_alone_knows_what_is_an_array(name, wanted):
    found = form.kernels(parse(ptx_of(name)))[0]
    assert found["args"][:len(wanted)] == wanted
    assert ask(**{**found, "kernel": found["name"], "ptx": ptx_of(name), "shared": 64}
               )["verdict"] in ("right", "wrong")


def test_what_numpy_expects_is_compared_and_the_first_wrong_element_named(scale):
    right = ask(**scale, expect="y = by * x")
    assert right["verdict"] == "right" and "y is as expected, largest error 0" in right["said"]
    wrong = ask(**{**scale, "args": [*scale["args"][:3], "n=int32:1000"]}, expect="y = by * x")
    assert wrong["verdict"] == "wrong" and "24 of 1,024 elements of y are wrong" in wrong["said"]
    assert "the first, y[1000], is nan and should be" in wrong["said"]
    assert "y[1000]" in wrong["report"]


def test_without_an_expectation_nothing_is_called_right(scale):
    answer = ask(**scale)
    assert "y was written; not compared" in answer["html"]


@pytest.mark.parametrize("line", [
    "y = __import__('os')", "y = x.__class__", "y = np.load('/etc/passwd')", "y = open('a')",
    "y = [i for i in x]", "y = (lambda: 1)()", "y = np.lib.npyio", "y = x.tofile('/tmp/x')",
    "y = np.fromfile('/etc/passwd')", "y = 1 if", "z = x", "x", "y = x[:3]", "y = f'{x}'",
    "y = " + "x+" * 300 + "x", "y = np.frompyfunc(x, 1, 1)", "y = x.dump('a')",
])
def test_an_expectation_is_numpy_and_nothing_else(line):
    x = np.arange(8, dtype=np.float32)
    with pytest.raises(Refused):
        compare(line, {"y": x.copy()}, {"x": x, "y": x})


def test_a_parameter_may_be_called_as_python_s_words_are():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert not compare("out = in.T", {"out": x.T.copy()}, {"in": x, "out": x.T}).wrong


def test_narrow_results_have_their_own_rounding_and_wider_ones_theirs():
    x = np.linspace(0.1, 1, 64)
    for dtype, off in ((np.float16, 1e-3), (np.float32, 1e-6), (np.float64, 1e-15)):
        fine, coarse = x * (1 + off), x * (1 + 100 * off)
        assert not compare("y = x", {"y": fine.astype(dtype)}, {"x": x}).wrong
        assert compare("y = x", {"y": coarse.astype(dtype)}, {"x": x}).wrong
    assert compare("y = x", {"y": np.array([1, 2])}, {"x": np.array([1, 3])}).wrong == 1
    assert compare("y = x", {"y": np.full(64, np.nan)}, {"x": x}).wrong == 64


@cases("""
change                              | said
{"ptx": ""}                         | no PTX
{"ptx": "__global__ void k() {}"}   | source code, not PTX
{"ptx": "LONG"}                     | longer than
{"kernel": "other"}                 | 'other'
{"args": ["x=@/etc/passwd"]}        | No file is read
{"args": ["map[8,8]:@a.npy"]}       | No file
{"args": ["x=float32[100000,100000]:zeros"]} | take smaller ones
{"args": ["MANY"]}                  | at most 64
{"args": ["int:1"]}                 | takes 4 arguments
{"args": null}                      | at most 64
{"kernel": ["k"]}                   | ['k']
{"grid": [1048576]}                 | threads
{"grid": [0]}                       | grid must be
{"block": "8"}                      | block
{"block": [2048]}                   | 2048
{"cluster": [0]}                    | cluster must
{"schedule": "mine"}                | mine
{"shared": -1}                      | shared
{"seed": "x"}                       | seed must
{"do": "stop"}                      | 'stop'
{"do": []}                          | []
{"do": "step"}                      | No warp is recorded
{"sources": ["a"]}                  | Sources are
{"merge": [1]}                      | width by line
{"merge": {"1": 5}}                 | width by line
{"merge": {"x": 1}}                 | width
{"expect": 5}                       | NAME = NUMPY
""")
def test_what_breaks_a_limit_is_refused_in_one_line(scale, change, said):
    change = change.replace("LONG", "x" * 4_000_001).replace("MANY", '", "'.join("x" * 65))
    answer = ask(**{**scale, **json.loads(change)})
    assert answer["verdict"] == "refused" and f"{said}" in answer["said"]


def test_a_line_that_is_chosen_is_stepped_through(scale):
    trial = Trial()
    begun = ask(trial, **scale, do="record", row=4, at_block=1, warp=2)
    assert begun["verdict"] == "step" and "module.cu:4" in begun["html"]
    assert "if (i &lt; n) y[i] = by * x[i];" in begun["html"]
    later = ask(trial, **scale, do="step", at=begun["count"] - 1)
    assert later["at"] == begun["count"] - 1
    assert "has no instruction" in ask(**scale, do="record", row=2)["said"]


def test_the_source_has_its_counts_by_line(scale):
    html = ask(**scale)["html"]
    row = next(part for part in html.split("<tr") if "y[i] = by" in part)
    # 32 warps load and store 128 bytes each: 64 requests of four sectors.
    assert ">64</td>" in row and ">256</td>" in row and 'data-row="4"' in row


def test_a_link_holds_the_request_and_is_bounded(scale):
    request = {**DEFAULT, **{key: scale[key] for key in ("ptx", "sources", "args", "kernel")}}
    address = link.link(request)
    assert address.startswith(link.PAGE) and len(address) < 3000
    back = {**DEFAULT, **unpacked(address)}
    assert back == request
    with pytest.raises(ValueError, match="too long"):
        link.link({"ptx": np.random.default_rng(0).bytes(800_000).hex()})


def test_the_link_leads_to_the_book_as_it_is_published():
    assert f"{address()}chapters/try.html" == link.PAGE
