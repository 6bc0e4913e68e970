"""What the desk answers, natively: the same code as in the browser."""

import json
import re

import numpy as np
import pytest

from lib import bfloat16
from lib.kernels.catalogue import CATALOGUE, find
from lib.live import page, svg
from lib.live.desk import DEFAULT, Desk, moved, wrong_elements
from lib.live.family import loads
from lib.live.pack import family, offered
from lib.paths import ROOT
from lib.problem import Problem
from lib.run import runner
from lib.topics.banks import model as banks
from lib.topics.coalescing import model as coalescing

SMALL = {"M": 64, "N": 64, "K": 64}


@pytest.fixture(scope="module")
def desks():
    """`desks(stem)`: a desk of the chapter's family, as a page gives it."""
    made = {}

    def desk(stem):
        if stem not in made:
            made[stem] = Desk(loads(family(find(stem)).dumps()))
        return made[stem]

    return desk


def ask(desk, **request):
    return json.loads(desk.ask(json.dumps(request)))


def test_a_right_kernel_is_right_and_has_the_counters_of_any_other_run(desks):
    answer = ask(desks("02_shared_tile"), **SMALL)
    assert answer["verdict"] == "right"
    kernel = find("02_shared_tile")
    done = runner.run(kernel, Problem(64, 64, 64), backend="emulator")
    counters = done.launch.trace.counters()
    assert {k: answer["counters"][k] for k in counters} == counters


@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_alpha_and_beta_are_taken(desks, beta):
    answer = ask(desks("02_shared_tile"), **SMALL, alpha=-2.5, beta=beta)
    assert answer["verdict"] == "right"
    assert f"α = -2.5, β = {beta:g}" in answer["said"]


def test_another_variant_stands_beside_the_first(desks):
    answer = ask(desks("03_bank_conflicts"), **SMALL, variant="transposed", races=False)
    assert "padded, unchanged" in answer["html"]
    row = re.search(r"shared wavefronts</th><td[^>]*>([\d,]+)</td><td[^>]*>([\d,]+)",
                    answer["html"])
    assert int(row[1].replace(",", "")) > int(row[2].replace(",", ""))


def test_a_missing_barrier_is_reported_with_line_and_lanes(desks):
    answer = ask(desks("02_shared_tile"), **SMALL, mistake=0)
    assert answer["verdict"] in ("suspicious", "wrong")
    assert re.search(r"02_shared_tile\.cu:\d+", answer["html"])
    assert re.search(r"warp \d+ lane \d+", answer["html"])
    assert "Which mistake was it?" in answer["html"]


def test_wrong_elements_are_drawn_on_c(desks):
    desk = desks("02_shared_tile")
    text = ask(desk, do="ptx")["ptx"]
    wrong = re.sub(r"st\.global\.[fb]32\s*(\[[^\]]+\]), (%\w+);",
                   r"add.f32 \2, \2, 0f3F800000; st.global.f32 \1, \2;", text)
    assert wrong != text
    answer = ask(desk, **SMALL, ptx=wrong)
    assert answer["verdict"] == "wrong"
    assert "4,096 of 4,096 elements of C are off" in answer["said"]
    assert "your PTX" in answer["html"] and "tile32, unchanged" in answer["html"]
    assert 'aria-label="C of 64×64 elements, of which 4096 are wrong' in answer["html"]


def test_edited_ptx_that_does_the_same_has_the_same_counters(desks):
    desk = desks("07_vectorized")
    same = {"M": 128, "N": 128, "K": 32, "races": False}
    text = ask(desk, do="ptx", **same)["ptx"]
    edited = text.replace("\tret;", "\t// nothing\n\n\tret;")
    assert edited != text
    assert ask(desk, **same, ptx=edited)["counters"] == ask(desk, **same)["counters"]


@pytest.mark.parametrize("change, said", [
    (lambda text: text.replace("ret;", "rte;"), "unsupported instruction|parse error"),
    (lambda text: "nonsense", "parse error"),
    (lambda text: re.sub(r"\[(%rd\d+)\], (%f\d+);", r"[\1+4000000], \2;", text, count=9),
     "out of bounds"),
])
def test_ptx_that_can_not_run_is_one_line_of_words(desks, change, said):
    desk = desks("02_shared_tile")
    text = ask(desk, do="ptx")["ptx"]
    answer = ask(desk, **SMALL, ptx=change(text))
    assert answer["verdict"] == "stopped"
    assert re.search(said, answer["said"])
    assert "Traceback" not in answer["html"]


def test_an_endless_loop_is_stopped(desks):
    desk = desks("02_shared_tile")
    text = ask(desk, do="ptx")["ptx"]
    endless = text.replace("\tret;", "$AGAIN:\n\tbra.uni $AGAIN;\n\tret;", 1)
    answer = ask(desk, M=1, N=1, K=1, ptx=endless, races=False)
    assert answer["verdict"] == "stopped" and "endless" in answer["said"]


def test_a_wrong_phase_deadlocks(desks):
    desk = desks("18_tma")
    names = [m.name for m in next(iter(desk.family.instances.values())).mistakes]
    phase = next(i for i, name in enumerate(names) if "phase" in name)
    answer = ask(desk, mistake=phase)
    assert answer["verdict"] == "stopped" and "deadlock" in answer["said"]


@pytest.mark.parametrize("request_, said", [
    ({"M": 257}, "M must be a whole number from 1 to 256"),
    ({"M": 0}, "M must be"), ({"K": -1}, "K must be a whole number from 0"),
    ({"N": 1.5}, "N must be"), ({"M": True}, "M must be"), ({"N": "many"}, "N must be"),
    ({"alpha": "much"}, "alpha must be a number"), ({"beta": 1e9}, "beta must be a number"),
    ({"variant": "tile23"}, "did you mean tile32"), ({"schedule": "lowst"}, "lowest"),
    ({"landing": "later"}, "late"), ({"do": "rum"}, "run"), ({"mistake": 99}, "mistakes"),
    ({"ptx": "x" * 4_000_001}, "shorten"), ({"ptx": "x", "mistake": 0}, "not both"),
    ({"do": "step"}, "record one first"), ({"do": "record", "warp": 99}, "warp must be"),
    ({"do": "record", "first": 10**6}, "begin earlier"),
])
def test_what_breaks_a_limit_is_refused_in_a_line(desks, request_, said):
    answer = ask(Desk(desks("02_shared_tile").family), **request_)
    assert answer["verdict"] == "refused"
    assert said in answer["said"] and "\n" not in answer["said"]


def test_a_shape_that_no_packed_instantiation_takes_says_what_to_do(desks):
    answer = ask(desks("08_warp_tile"), variant="small", M=64, N=63, K=64)
    assert answer["verdict"] == "refused" and "multiples of 8" in answer["said"]
    answer = ask(desks("08_warp_tile"), M=64, N=63, K=64, races=False)
    assert answer["verdict"] == "right" and "no multiple of 4" in answer["html"]


def test_a_warp_that_copies_nothing_but_zeros_has_no_copy_to_draw(desks):
    answer = ask(desks("17_wgmma"), M=136, N=72, K=64, races=False)
    assert answer["verdict"] == "right"
    assert not [one for one in answer["accesses"] if " copy A" in one["label"]]
    whole = ask(desks("17_wgmma"), races=False)
    assert [one for one in whole["accesses"] if one["label"].startswith("global copy A")]


ENDING_INSIDE = [(136, 72, 64), (130, 67, 33), (1, 1, 0)]


@pytest.mark.parametrize("stem, M, N, K", [
    # Dealt in turn; the others are slow.
    pytest.param(stem, *shape, marks=() if place % 3 == turn else pytest.mark.slow)
    for place, stem in enumerate(CATALOGUE) for turn, shape in enumerate(ENDING_INSIDE)
])
def test_shapes_that_end_inside_a_tile_have_an_answer(desks, stem, M, N, K):
    desk = desks(stem)
    answer = ask(desk, M=M, N=N, K=K, beta=0.5, races=False)
    if answer["verdict"] == "refused":
        assert stem in ("17_wgmma", "18_tma", "19_warp_specialization", "20_hopper_limit")
        assert N % 8 and "multiple of" in answer["said"]
    else:
        assert answer["verdict"] == "right"
        assert ask(desk, do="record", M=M, N=N, K=K, beta=0.5)["verdict"] == "step"


def test_rows_that_tma_can_not_load_are_refused_with_the_rule(desks):
    answer = ask(desks("18_tma"), M=64, N=63, K=64)
    assert answer["verdict"] == "refused" and "multiple of" in answer["said"]


@pytest.mark.parametrize("beta", [0.0, -0.5])
def test_bfloat16_runs_on_bits_as_it_does_on_ml_dtypes(desks, monkeypatch, beta):
    asked = {"variant": "bf16_column", "M": 72, "N": 136, "K": 64, "beta": beta, "alpha": 1.5}
    family = desks("18_tma").family
    native = Desk(family).ask(json.dumps(asked))
    assert '"verdict": "right"' in native
    monkeypatch.setattr(bfloat16, "as_bits", lambda: True)
    assert isinstance(Problem(1, 1, 1, dtype="bfloat16").inputs()[0], bfloat16.Bits)
    assert Desk(family).ask(json.dumps(asked)) == native


def test_memory_that_runs_out_is_said(desks, monkeypatch):
    desk = desks("02_shared_tile")

    def exhausted(*_):
        raise MemoryError

    monkeypatch.setattr(desk, "run", exhausted)
    answer = ask(desk, M=100)
    assert answer["verdict"] == "refused" and "smaller shape" in answer["said"]


# -- what is packed -----------------------------------------------------------------------------

@pytest.mark.parametrize("stem", ["01_naive", "14_ldmatrix"])
def test_a_family_names_no_folder_of_this_machine(stem):
    packed = family(find(stem)).dumps()
    assert str(ROOT) not in packed and "site-packages" not in packed
    assert f"@/cuda/{stem}.cu" in packed


def test_what_is_offered_is_the_catalogues():
    for kernel in CATALOGUE.values():
        names = [v.name for v in offered(kernel)]
        assert names[0] == kernel.variants[0].name
        assert {v.name for v in kernel.exhibits} <= set(names)


@pytest.mark.parametrize("stem", ["02_shared_tile", "06_register_tile", "12_wmma_pipeline",
                                  "16_cp_async", "18_tma"])
def test_every_seeded_mistake_can_be_found(desks, stem):
    desk = desks(stem)
    first = desk.family.variants[0]
    K = 2 * find(stem).variant(first).step
    expression = find(stem).expression(find(stem).variant(first))
    mistakes = desk.family.instances[expression].mistakes
    assert len(mistakes) >= 2
    for number, mistake in enumerate(mistakes):
        verdicts = []
        for settings in ({}, {"landing": "late"}, {"schedule": "highest"}, {"schedule": "random"}):
            verdicts.append(ask(desk, M=64, N=64, K=K, mistake=number, **settings)["verdict"])
            if verdicts[-1] != "right":
                break
        assert verdicts[-1] != "right", mistake.name


def test_merged_accesses_follow_their_lines():
    before, after = "a\nb\nc\nd\ne", "a\nnew\nb\nx\nd\ne"
    merge = {1: (0, 8), 2: None, 3: (0, 16), 5: (4, 4)}
    assert moved(merge, before, after) == {1: (0, 8), 3: None, 6: (4, 4)}
    assert moved(merge, before, before) == merge


# -- a warp, step by step -----------------------------------------------------------------------

def test_a_warp_is_stepped_through_forward_and_back(desks):
    desk = desks("02_shared_tile")
    first = ask(desk, do="record", **SMALL)
    assert first["at"] == 0 and first["count"] > 100 and "ld.param" in first["said"]
    later = ask(desk, do="step", at=200)
    back = ask(desk, do="step", at=0)
    assert later["said"] != first["said"] and back["html"] == first["html"]


def test_a_step_shows_lanes_registers_and_banks(desks):
    desk = desks("02_shared_tile")
    memory = ask(desk, do="record", **SMALL)["memory"]
    pictures = [ask(desk, do="step", at=at)["html"] for at in memory[:60]]
    assert any("Shared store" in picture for picture in pictures)
    assert any("Global load" in picture and "4 sectors" in picture for picture in pictures)
    assert all("32 of 32 lanes are active" in picture for picture in pictures)
    watched = ask(desk, do="step", at=150, registers="%r1 %nothing")["html"]
    assert "%r1" in watched and "not written since" in watched


def test_a_hopper_warp_shows_phases_and_what_is_in_flight(desks):
    desk = desks("18_tma")
    count = ask(desk, do="record", M=128, N=256, K=128, landing="late")["count"]
    told = " ".join(ask(desk, do="step", at=at)["html"] for at in range(0, count, 5))
    assert "bytes in flight" in told and "phase 1" in told and "wgmma in flight" in told


# -- numbers and pictures -----------------------------------------------------------------------

def test_a_prediction_is_judged_by_the_run(desks):
    desk = desks("03_bank_conflicts")
    assert desk.predict("transposed shared store As wavefronts")[0] == 32
    assert desk.predict("padded shared store As wavefronts")[0] == 1
    counter = ask(desk, races=False)["counters"]["shared_wavefronts"]
    number, told, _ = desk.predict("padded shared_wavefronts")
    assert number == counter and "shared wavefronts of padded" in told


@pytest.mark.parametrize("stem, asked, number, told, more", [
    ("03_bank_conflicts", "transposed shared store As wavefronts", 32,
     "wavefronts per shared store", "32 wavefronts, ideal 1"),
    ("10_wmma", "one global load A bytes_per_sector", 16,
     "bytes used of each sector, global load", "128 of 256 bytes used"),
    ("16_cp_async", "wide shared copy storage wavefronts", 4,
     "wavefronts per shared copy", "4 wavefronts, ideal 4"),
])
def test_a_question_on_an_access_comes_with_its_line(desks, stem, asked, number, told, more):
    found, said, shown = desks(stem).predict(asked)
    assert found == number and said.startswith(told)
    assert f"{stem}.cu:" in shown and shown.endswith(more)


@pytest.mark.parametrize("asked", ["padded shared_waves", "paded shared_wavefronts",
                                   "padded shared store Xs wavefronts", "padded", "padded a b",
                                   "padded global load A wavefronts",
                                   "padded shared load As bytes_per_sector"])
def test_a_question_that_the_run_can_not_answer_is_an_error(desks, asked):
    with pytest.raises(ValueError):
        desks("03_bank_conflicts").predict(asked)


def test_banks_are_drawn_as_the_model_has_them():
    access = coalescing.Access(np.arange(32) * 128, np.ones(32, bool), 4)
    drawn = svg.banks(banks.describe(access), "load", "x")
    assert "32 wavefronts, ideal 1" in drawn and "24 more wavefronts" in drawn
    assert drawn.count("<text") < 80


def test_sectors_are_drawn_as_the_model_has_them():
    drawn = svg.sectors(coalescing.strided(2), 0, "load", "x")
    assert "8 sectors in 2 lines of 128 bytes, 128 of 256 bytes used" in drawn


def test_only_wrong_elements_are_marked():
    problem = Problem(8, 8, 8)
    A, B, C = problem.inputs()
    reference = problem.reference(A, B, C).C
    got = reference.astype("float32")
    got[3, 4] += 1
    got[7, 7] = np.nan
    wrong = wrong_elements(problem, got, reference)
    assert np.argwhere(wrong).tolist() == [[3, 4], [7, 7]]
    assert "rows 3 to 7, columns 4 to 7" in svg.elements(wrong)


def test_wrong_elements_are_found_among_bits():
    problem = Problem(8, 8, 8, dtype="bfloat16", out="bfloat16")
    reference = problem.reference(*problem.inputs()).C
    got = bfloat16.rounded(reference)
    got[3, 4] ^= 1 << 15  # its sign
    assert np.argwhere(wrong_elements(problem, got, reference)).tolist() == [[3, 4]]


def test_text_of_a_reader_is_escaped():
    assert "<script" not in page.refused("<script>")["html"]


def test_a_request_without_anything_is_the_recorded_run(desks):
    assert ask(desks("02_shared_tile"))["html"] == ask(desks("02_shared_tile"), **DEFAULT)["html"]


def test_a_lane_of_several_words_is_one_box():
    wide = coalescing.Access(np.arange(32) * 16, np.ones(32, bool), 16)
    narrow = coalescing.Access(np.arange(32) * 4, np.ones(32, bool), 4)
    for access, boxes, rows in ((wide, 32, 4), (narrow, 32, 1)):
        drawn = svg.banks(banks.describe(access), "load", "x")
        assert drawn.count("<text") == boxes + rows + 10  # lanes, rows, the scale of banks
