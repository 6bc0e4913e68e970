"""What a session answers, natively: the same code as in the browser."""

import html
import itertools
import json
import re

import numpy as np
import pytest

from book.panel.bundler import bundle, offered
from lib import bfloat16
from lib.kernels.catalogue import CATALOGUE, find
from lib.panel import render
from lib.panel.bundle import carried_over
from lib.panel.request import DEFAULT, wrong_elements
from lib.panel.session import Session
from lib.paths import ROOT
from lib.problem import Problem
from lib.run import runner
from tests.tables import cases

SMALL = {"M": 64, "N": 64, "K": 64}


def ask(session, **request):
    return json.loads(session.ask(json.dumps(request)))


def test_a_right_kernel_is_right_and_has_the_counters_of_any_other_run(sessions):
    answer = ask(sessions("02_shared_tile"), **SMALL)
    assert answer["verdict"] == "right"
    kernel = find("02_shared_tile")
    done = runner.run(kernel, Problem(64, 64, 64), backend="emulator")
    counters = done.launch.trace.counters()
    assert {k: answer["counters"][k] for k in counters} == counters


@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_alpha_and_beta_are_taken(sessions, beta):
    answer = ask(sessions("02_shared_tile"), **SMALL, alpha=-2.5, beta=beta)
    assert answer["verdict"] == "right"
    assert f"α = -2.5, β = {beta:g}" in answer["said"]


def test_another_variant_stands_beside_the_first(sessions):
    answer = ask(sessions("05_bank_conflicts"), **SMALL, variant="padded", races=False)
    assert "spread, unchanged" in answer["html"]
    row = re.search(r"shared wavefronts</th><td[^>]*>([\d,]+)</td><td[^>]*>([\d,]+)",
                    answer["html"])
    assert int(row[1].replace(",", "")) > int(row[2].replace(",", ""))
    first = ask(sessions("05_bank_conflicts"), **SMALL, races=False)
    assert "unchanged" not in first["html"]  # nothing beside itself


def test_a_missing_barrier_is_reported_with_line_and_lanes(sessions):
    answer = ask(sessions("02_shared_tile"), **SMALL, mistake=0)
    assert answer["verdict"] in ("suspicious", "wrong")
    assert re.search(r"02_shared_tile\.cu:\d+", answer["html"])
    assert re.search(r"warp \d+ lane \d+", answer["html"])
    assert "; races: " in answer["said"] and " found" in answer["said"]


def test_wrong_elements_are_drawn_on_c(sessions):
    session = sessions("02_shared_tile")
    text = ask(session, do="ptx")["ptx"]
    wrong = re.sub(r"st\.global\.[fb]32\s*(\[[^\]]+\]), (%\w+);",
                   r"add.f32 \2, \2, 0f3F800000; st.global.f32 \1, \2;", text)
    assert wrong != text
    answer = ask(session, **SMALL, ptx=wrong)
    assert answer["verdict"] == "wrong"
    assert "4,096 of 4,096 elements of C are off" in answer["said"]
    assert "your PTX" in answer["html"] and "tile32, unchanged" in answer["html"]
    assert "C, 64×64: 4,096 wrong, rows 0 to 63, columns 0 to 63" in answer["html"]


def test_edited_ptx_that_does_the_same_has_the_same_counters(sessions):
    session = sessions("06_vectorized")
    same = {"M": 128, "N": 128, "K": 32, "races": False}
    text = ask(session, do="ptx", **same)["ptx"]
    edited = text.replace("\tret;", "\t// nothing\n\n\tret;")
    assert edited != text
    assert ask(session, **same, ptx=edited)["counters"] == ask(session, **same)["counters"]


@pytest.mark.parametrize("change, said", [
    (lambda text: text.replace("ret;", "rte;"), "unsupported instruction|parse error"),
    (lambda text: "nonsense", "parse error"),
    (lambda text: re.sub(r"\[(%rd\d+)\], (%f\d+);", r"[\1+4000000], \2;", text, count=9),
     "out of bounds"),
])
def test_ptx_that_can_not_run_is_one_line_of_words(sessions, change, said):
    session = sessions("02_shared_tile")
    text = ask(session, do="ptx")["ptx"]
    answer = ask(session, **SMALL, ptx=change(text))
    assert answer["verdict"] == "stopped"
    assert re.search(said, answer["said"])
    assert "Traceback" not in answer["html"]


def test_an_endless_loop_is_stopped(sessions):
    session = sessions("02_shared_tile")
    text = ask(session, do="ptx")["ptx"]
    endless = text.replace("\tret;", "$AGAIN:\n\tbra.uni $AGAIN;\n\tret;", 1)
    answer = ask(session, M=1, N=1, K=1, ptx=endless, races=False)
    assert answer["verdict"] == "stopped" and "endless" in answer["said"]


def test_a_wrong_phase_deadlocks(sessions):
    session = sessions("18_tma")
    names = [m.name for m in next(iter(session.bundle.instances.values())).mistakes]
    phase = next(i for i, name in enumerate(names) if "phase" in name)
    answer = ask(session, mistake=phase)
    assert answer["verdict"] == "stopped" and "deadlock" in answer["said"]


@cases("""
request_                        | said
{"M": 257}                      | M must be a whole number from 1 to 256
{"M": 0}                        | M must be
{"K": -1}                       | K must be a whole number from 0
{"N": 1.5}                      | N must be
{"M": true}                     | M must be
{"N": "many"}                   | N must be
{"alpha": "much"}               | alpha must be a number
{"beta": 1e9}                   | beta must be a number
{"variant": "tile23"}           | did you mean tile32
{"schedule": "lowst"}           | lowest
{"landing": "later"}            | late
{"do": "rum"}                   | run
{"mistake": 99}                 | mistakes
{"ptx": "LONG"}                 | shorten
{"ptx": "x", "mistake": 0}      | not both
{"do": "step"}                  | record one first
{"do": "record", "warp": 99}    | warp must be
{"do": "record", "first": 1000000} | begin earlier
{"do": "task", "task": -1}      | whole number from 0
{"do": "task", "task": 3}       | whole number from 0
""")
def test_what_breaks_a_limit_is_refused_in_a_line(sessions, request_, said):
    session = Session(sessions("02_shared_tile").bundle)
    answer = json.loads(session.ask(request_.replace("LONG", "x" * 4_000_001)))
    assert answer["verdict"] == "refused"
    assert said in answer["said"] and "\n" not in answer["said"]


@pytest.mark.parametrize("message", [
    "", "null", "[]", "3", '"run"', "not JSON", "[" * 100_000, '{"do":' * 100_000,
    '{"M": 1' + "0" * 5000,
    "\ud800", '{"do": []}', '{"do": {}}', '{"do": null}', '{"variant": {}}', '{"variant": 5}',
    '{"schedule": []}', '{"landing": {}}', '{"mistake": [0]}', '{"mistake": true}', '{"ptx": 5}',
    '{"M": 1e400}', '{"alpha": NaN}', '{"do": "task", "task": [0]}', '{"do": "task", "task": true}',
    '{"do": "record", "warp": "0"}', '{"do": "step", "at": {}}', '{"do": "ptx", "ptx": "nonsense"}',
    '{"do": "ptx", "ptx": ""}',
])
def test_what_is_no_request_has_an_answer(sessions, message):
    answer = json.loads(Session(sessions("02_shared_tile").bundle).ask(message))
    assert answer["verdict"] == "refused" and answer["said"] and "<p" in answer["html"]


@pytest.mark.parametrize("number, name", [*enumerate([
    "/etc/passwd", "/etc/passwd.cu", "/dev/zero.cu", "a" * 5000 + ".cu", "", ".", "//", "\\000.cu",
    "\\377\\377.cu", "../../README.md", str(ROOT / "README.md"),
])])
def test_an_edited_file_shows_nothing_and_stops_nothing(sessions, number, name):
    do = ("run", "record", "ptx")[number % 3]
    session = Session(sessions("02_shared_tile").bundle)
    text = ask(session, do="ptx")["ptx"]
    own = re.search(r'\.file\s+1 "(.*)"', text)[1]
    answer = ask(session, do=do, **SMALL, ptx=text.replace(f'1 "{own}"', f'1 "{name}"'))
    assert answer["verdict"] == {"run": "right", "record": "step", "ptx": "listed"}[do]
    assert "root:" not in answer["html"] and not answer.get("cuda")


def test_a_shape_that_no_packed_instantiation_takes_says_what_to_do(sessions):
    answer = ask(sessions("08_warp_tile"), variant="warp_64x64", M=64, N=63, K=64)
    assert answer["verdict"] == "refused" and "multiples of 8" in answer["said"]
    answer = ask(sessions("08_warp_tile"), M=64, N=63, K=64, races=False)
    assert answer["verdict"] == "right" and "no multiple of 4" in answer["html"]


def test_a_warp_that_copies_nothing_but_zeros_has_no_copy_to_draw(sessions):
    answer = ask(sessions("17_wgmma"), M=136, N=72, K=64, races=False)
    assert answer["verdict"] == "right"
    assert not [one for one in answer["accesses"] if " copy A" in one["label"]]
    whole = ask(sessions("17_wgmma"), races=False)
    assert [one for one in whole["accesses"] if one["label"].startswith("global copy A")]


def test_a_warp_that_reads_other_blocks_shared_memory_has_its_own_accesses_drawn(sessions):
    answer = ask(sessions("22_few_tiles"), M=64, N=64, K=32, variant="split", races=False)
    assert answer["verdict"] == "right"
    assert any(one["label"].startswith("shared store") for one in answer["accesses"])


ENDING_INSIDE = [(136, 72, 64), (130, 67, 33), (1, 1, 0)]


@pytest.mark.parametrize("stem, M, N, K", [
    # Dealt in turn; the others are slow.
    pytest.param(stem, *shape, marks=() if place % 3 == turn else pytest.mark.slow)
    for place, stem in enumerate(CATALOGUE) for turn, shape in enumerate(ENDING_INSIDE)
])
def test_shapes_that_end_inside_a_tile_have_an_answer(sessions, stem, M, N, K):
    session = sessions(stem)
    answer = ask(session, M=M, N=N, K=K, beta=0.5, races=False)
    if answer["verdict"] == "refused":
        first = CATALOGUE[stem].variants[0]
        assert first.row_bytes and not first.packing
        assert N % 8 and "multiple of" in answer["said"]
    else:
        assert answer["verdict"] == "right"
        assert ask(session, do="record", M=M, N=N, K=K, beta=0.5)["verdict"] == "step"


@pytest.mark.parametrize("beta", [0.0, -0.5])
def test_bfloat16_runs_on_bits_as_it_does_on_ml_dtypes(sessions, monkeypatch, beta):
    asked = {"variant": "bf16_column", "M": 72, "N": 136, "K": 64, "beta": beta, "alpha": 1.5}
    carried = sessions("18_tma").bundle
    native = Session(carried).ask(json.dumps(asked))
    assert '"verdict": "right"' in native
    monkeypatch.setattr(bfloat16, "as_bits", lambda: True)
    assert isinstance(Problem(1, 1, 1, dtype="bfloat16").inputs()[0], bfloat16.Bits)
    assert Session(carried).ask(json.dumps(asked)) == native


def test_memory_that_runs_out_is_said(sessions, monkeypatch):
    session = sessions("02_shared_tile")

    def exhausted(*_):
        raise MemoryError

    monkeypatch.setattr(session, "run", exhausted)
    answer = ask(session, M=100)
    assert answer["verdict"] == "refused" and "smaller shape" in answer["said"]


# -- what is packed -----------------------------------------------------------------------------

@pytest.mark.parametrize("stem", ["01_naive", "14_ldmatrix"])
def test_a_bundle_names_no_folder_of_this_machine(stem):
    packed = bundle(find(stem)).dumps()
    assert str(ROOT) not in packed and "site-packages" not in packed
    assert f"@/cuda/{stem}.cu" in packed


def test_what_is_offered_is_the_catalogues():
    for kernel in CATALOGUE.values():
        names = [v.name for v in offered(kernel)]
        assert names[0] == kernel.variants[0].name
        assert {v.name for v in kernel.exhibits} <= set(names)


@pytest.mark.parametrize("stem", ["02_shared_tile", "10_wmma", "16_cp_async", "18_tma"])
def test_every_seeded_mistake_can_be_found(sessions, stem):
    session = sessions(stem)
    first = session.bundle.variants[0]
    expression = find(stem).expression(find(stem).variant(first))
    mistakes = session.bundle.instances[expression].mistakes
    assert len(mistakes) >= 2
    for number, mistake in enumerate(mistakes):
        verdicts = []
        for settings in ({}, {"landing": "late"}, {"schedule": "highest"}, {"schedule": "random"}):
            verdicts.append(ask(session, M=64, N=64, mistake=number, **settings)["verdict"])
            if verdicts[-1] != "right":
                break
        assert verdicts[-1] != "right", mistake.name


def test_a_run_leaves_the_inputs_as_they_were_drawn(sessions):
    session = Session(sessions("02_shared_tile").bundle)
    text = ask(session, do="ptx")["ptx"]
    spoilt = re.sub(r"ld\.global\.([fb])32\s*(%\w+), (\[[^\]]+\]);",
                    r"ld.global.\g<1>32 \2, \3; st.global.\g<1>32 \3, 0f00000000;", text)
    assert spoilt != text
    assert ask(session, **SMALL, ptx=spoilt)["verdict"] in ("wrong", "suspicious")
    assert ask(session, **SMALL)["verdict"] == "right"


def test_merged_accesses_follow_their_lines():
    before, after = "a\nb\nc\nd\ne", "a\nnew\nb\nx\nd\ne"
    merge = {1: (0, 8), 2: None, 3: (0, 16), 5: (4, 4)}
    assert carried_over(merge, before, after) == {1: (0, 8), 3: None, 6: (4, 4)}
    assert carried_over(merge, before, before) == merge


# -- a warp, step by step -----------------------------------------------------------------------

def test_a_warp_is_stepped_through_forward_and_back(sessions):
    session = sessions("02_shared_tile")
    first = ask(session, do="record", **SMALL)
    assert first["at"] == 0 and first["count"] > 100 and "ld.param" in first["said"]
    later = ask(session, do="step", at=200)
    back = ask(session, do="step", at=0)
    assert later["said"] != first["said"] and back["html"] == first["html"]


def test_a_warp_walks_the_kernel_line_by_line(sessions):
    session = sessions("02_shared_tile")
    starts = ask(session, do="record", **SMALL)["starts"]
    source = session.kernel.source.read_text(encoding="utf-8").split("\n")

    def shown(at):
        text = ask(session, do="step", at=at)["html"]
        [place], [line] = (re.findall(pattern, text) for pattern in (
            r"<p>02_shared_tile\.cu:(\d+)</p>", r"<li class=live-now aria-current=step>(.*?)</li>"))
        assert source[int(place) - 1] == html.unescape(line)
        return place, line

    lines = [shown(at) for at in starts]
    assert all(one != other for one, other in itertools.pairwise(lines))
    assert sum("__syncthreads();" in line for _, line in lines) >= 2
    # Until the next start the line stays.
    within = next(i for i, (one, other) in enumerate(itertools.pairwise(starts)) if other > one + 1)
    assert shown(starts[within + 1] - 1) == lines[within]


def test_what_has_moved_in_the_ring_is_marked(sessions):
    session = sessions("18_tma")
    count = ask(session, do="record", M=128, N=256, K=128)["count"]
    marked = [re.findall(r'<li class="live-moved"><strong>(.*?)</strong>',
                         ask(session, do="step", at=at)["html"]) for at in range(count)]
    assert marked[0] == [] and 0 < sum(map(bool, marked)) < count / 2
    assert any("arrivals" in one for found in marked for one in found)


def test_a_step_shows_lanes_registers_and_banks(sessions):
    session = sessions("02_shared_tile")
    memory = ask(session, do="record", **SMALL)["memory"]
    pictures = [ask(session, do="step", at=at)["html"] for at in memory[:60]]
    assert any("<strong>store</strong>" in picture and "wavefront" in picture
               for picture in pictures)
    assert any("<strong>load</strong>" in picture and "4 sectors" in picture
               for picture in pictures)
    assert all("32 of 32 lanes are active" in picture for picture in pictures)
    watched = ask(session, do="step", at=150, registers="%r1 %nothing")["html"]
    assert "%r1" in watched and "not written since" in watched


def test_a_hopper_warp_shows_phases_and_what_is_in_flight(sessions):
    session = sessions("18_tma")
    count = ask(session, do="record", M=128, N=256, K=128, landing="late")["count"]
    text = " ".join(ask(session, do="step", at=at)["html"] for at in range(0, count, 5))
    assert "bytes in flight" in text and "phase 1" in text and "wgmma in flight" in text


# -- numbers and pictures -----------------------------------------------------------------------

@cases("""
stem              | asked                                       | number | text | more
05_bank_conflicts | together shared load Bs wavefronts          | 8  | wavefronts per shared load \
 | 8 wavefronts, ideal 4
10_wmma           | one_fragment global load A bytes_per_sector | 16 \
 | bytes used of each sector, global load | 128 of 256 bytes used
16_cp_async       | step_64 shared copy storage wavefronts      | 4  | wavefronts per shared copy \
 | 4 wavefronts, ideal 4
""")
def test_a_question_on_an_access_comes_with_its_line(sessions, stem, asked, number, text, more):
    found, said, shown = sessions(stem).predict(asked)
    assert found == number and said.startswith(text)
    assert f"{stem}.cu:" in shown and shown.endswith(more)


@pytest.mark.parametrize("asked", ["padded shared_waves", "paded shared_wavefronts",
                                   "padded shared store Xs wavefronts", "padded", "padded a b",
                                   "padded global load A wavefronts",
                                   "padded shared load As bytes_per_sector"])
def test_a_question_that_the_run_can_not_answer_is_an_error(sessions, asked):
    with pytest.raises(ValueError):
        sessions("05_bank_conflicts").predict(asked)


def test_wrong_elements_are_found_among_bits():
    problem = Problem(8, 8, 8, dtype="bfloat16", out="bfloat16")
    reference = problem.reference(*problem.inputs()).C
    got = bfloat16.rounded(reference)
    got[3, 4] ^= 1 << 15  # its sign
    assert np.argwhere(wrong_elements(problem, got, reference)).tolist() == [[3, 4]]


def test_text_of_a_reader_is_escaped():
    assert "<script" not in render.refused("<script>")["html"]


def test_a_request_without_anything_is_the_recorded_run(sessions):
    session = sessions("02_shared_tile")
    assert ask(session)["html"] == ask(session, **DEFAULT)["html"]


