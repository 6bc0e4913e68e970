"""The claims ledger: every claim once, every verdict from evidence, and able to change."""

import re
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import nbformat
import pytest

from lib.claims import evidence
from lib.claims import ledger as claims
from lib.claims.evidence import Missing, fits, gpu
from lib.claims.ledger import CLAIMS, CONTRADICTED, KINDS, NOT_TESTABLE, NOT_YET, judged
from lib.compiler.compiled import Resources
from lib.kernels.catalogue import CATALOGUE
from lib.measure import counters
from lib.paths import CHAPTERS
from lib.records.schema import Swept
from tests import built
from tests.built import record, row
from tests.tables import rows, settings

READ = "dram_read_bytes"
BY_ID = {claim.id: claim for claim in CLAIMS}


@cache
def kind(claim_id):
    return judged(BY_ID[claim_id]).kind


def test_every_id_of_the_sources_is_there_once_and_its_source_is_cited():
    ids = [claim.id for claim in CLAIMS]
    assert len(ids) == len(set(ids))
    assert set(ids) == {f"D{i}" for i in range(1, 17)} | {f"W{i}" for i in range(1, 62)}
    assert {claim.chapter for claim in CLAIMS} <= {*CATALOGUE, "method"}
    bibliography = (CHAPTERS / "references.bib").read_text()
    assert all(f"{{{claim.source}," in bibliography for claim in CLAIMS)


def test_a_claim_is_decided_by_figures_or_by_a_word_and_says_where_it_looked():
    for claim in CLAIMS:
        assert bool(claim.holds) != bool(claim.kind) and claim.verdict and claim.where
        assert claim.evidence and set(claim.evidence) <= set(KINDS)
        assert claim.kind in ("", NOT_TESTABLE)


def test_the_page_is_the_table_as_it_is_judged_today():
    """Every verdict and every figure in it, as committed."""
    said = [output.data["text/markdown"] for cell in nbformat.read(
        CHAPTERS / "claims.ipynb", 4).cells for output in cell.get("outputs", ())]
    assert said == [claims.summary(), claims.markdown()], "run `make chapter NAME=claims`"
    lines = said[1].splitlines()
    assert len(lines) == 2 + len(CLAIMS)
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 4 for line in lines)
    late = [f"**{NOT_YET}**" in line for line in lines[2:]]
    assert late == sorted(late)
    assert sum(map(int, re.findall(r"\*\*(\d+)\*\*", said[0]))) == len(CLAIMS)
    of_chapter = claims.markdown("01_naive").splitlines()[2:]
    assert sorted(line.split("|")[1].strip() for line in of_chapter) == sorted(
        claim.id for claim in CLAIMS if claim.chapter == "01_naive")


def swept(size, warps, late):
    """A row of the sweep: square tiles, the time when loads are late over that of two buffers."""
    return Swept(block=(size, size, 8), warp=(size, size), blocks=1, warps=warps,
                 seconds={"late": late, "double": 1.0}, spread={}, registers={}, hashes={},
                 cublas_seconds=1.0)


# Much to gain with one small block of few warps, and more with a large tile.
FEW_WARPS_LARGE_TILES = [
    swept(32, 2, 3.0), swept(32, 8, 1.5), swept(128, 8, 2.0), swept(128, 16, 1.1)]
# Figures with which each claim's verdict is the other one. Where there are several, each of them
# is needed: with all but one the verdict stays.
OTHERWISE = [(claim, settings(figures)) for claim, figures in rows("""
id  | figures
D1  | busy=50, seed=0.3
D2  | double=8448
D2  | single=4224
D7  | compute=77.0
D9  | extra=1
D11 | work=0
D11 | before=1
D14 | busy=520
D15 | took=5.0
D16 | busy=40
D16 | left=2
D16 | waiting=0.5
W2  | by_traffic=0.25, needed=1
W3  | l1=4.3e09, active=8
W5  | each=2
W6  | fewer=13
W8  | rows=8
W10 | sectors=4
W11 | last=0.9, limit=0.9
W13 | cycles=2
W14 | nbytes=2e09
W15 | bears_out=True
W17 | with_c=0
W18 | of_a=8
W19 | change=-0.05, growth=4
W20 | used=36864, fit=1
W22 | scattered=64
W23 | overlaps=0
W24 | full=False
W25 | gained=5.7
W26 | ours=0, published=1.7e13
W27 | new=0
W28 | ceiling=1.4e13
W31 | growth=0.52
W32 | several=0
W33 | ridge=12
W35 | by_table=37, by_text=37
W37 | per_sm=64
W38 | needed=6.5e13
W39 | slower=4
W40 | ours=1.0
W41 | split=False
W42 | left=0.5
W44 | below=900, used=0.005
W45 | count=1
W46 | l1=1
W47 | row=1
W49 | l1=2.7e08
W50 | shared_cycles=1
W51 | share=0.5
W52 | lanes=1
W52 | tensor=1
W53 | shared=1
W54 | nbytes=32
W55 | instructions=512
W56 | with_beta=0
W57 | unit=DRAM
W61 | more=9
""")[1:]] + [
    ("D3", {"seed": [1, 1, 1]}), ("D4", {"with_it": [1, 0]}), ("D4", {"without": [3, 0]}),
    ("D6", {"double": {key: Resources(40, 16896, 0, 0, 0) for key in ("T4", "A100", "H100")}}),
    ("D8", {"rows": FEW_WARPS_LARGE_TILES}),
    ("D10", {"rates": {"T4": 128, "A100": 256, "H100": 512}}), ("D12", {"count": 32**3 // 2}),
    ("D13", {"seed": [(0, 0), (1, 1)]}), ("W1", {"pairs": [(320e9, 300e9)]}),
    ("W4", {"efficiency": 1 / 32, "slower": {2048: 32, 8192: 30}}), ("W7", {"t4": gpu("A100")}),
    ("W9", {"registers": {"sm_75": 80, "sm_90a": 80}}), ("W12", {"slower": [1.4, 1.3, 1.0]}),
    ("W16", {"gains": [0.9, 1.2]}), ("W21", {"ours": Resources(140, 18944, 0, 0, 0)}),
    ("W24", {"each": {"A": 2.0, "B": 4.0}}), ("W30", {"same": []}), ("W48", {"rows": {False}}),
    ("W58", {"before": fits("T4", 128, 0, 512), "now": 99}),
    ("W59", {"t4": fits("T4", 32, 0, 256)}), ("W60", {"copies": [True, True]}),
]
# What nobody has recorded yet, by figures that contradict it, and one that doesn't.
UNRECORDED = {"D5": ({"over_padded": 0.2, "tiled": 1, "over_tiled": 0, "staged": 0}, 0.05),
              "W34": ({"asked": 9, "fetched": 4}, 8.9)}


@pytest.mark.parametrize(("claim_id", "given"), OTHERWISE)
def test_a_changed_figure_changes_the_verdict(claim_id, given):
    claim = BY_ID[claim_id]
    before = kind(claim_id)
    assert {before, judged(claim, given).kind} == {claims.REPRODUCED, CONTRADICTED}
    if len(given) > 1:
        for name in given:
            rest = {other: value for other, value in given.items() if other != name}
            assert judged(claim, rest).kind == before, f"{name} isn't needed"


@pytest.mark.parametrize("claim_id", UNRECORDED)
def test_claims_that_wait_for_a_record_can_go_either_way(claim_id):
    claim, (given, changed) = BY_ID[claim_id], UNRECORDED[claim_id]
    last = "fetched" if claim_id == "W34" else "over_padded"
    assert judged(claim, given).kind == CONTRADICTED
    assert judged(claim, {**given, last: changed}).kind == claims.REPRODUCED


def test_every_claim_that_figures_decide_is_tried():
    tried = {claim_id for claim_id, _ in OTHERWISE} | set(UNRECORDED)
    assert tried == {claim.id for claim in CLAIMS if claim.holds not in ("", "False")}


def test_d6_needs_more_registers_on_every_gpu():
    two = {"T4": Resources(32, 8192, 0, 0, 0),
           **dict.fromkeys(("A100", "H100"), Resources(40, 16896, 0, 0, 0))}
    assert judged(BY_ID["D6"], {"double": two}).kind == CONTRADICTED


@pytest.mark.parametrize("more", [swept(32, 16, 4.0), swept(256, 8, 1.2)])
def test_d8_needs_both_few_warps_and_large_tiles(more):
    rows = [*FEW_WARPS_LARGE_TILES, more]
    assert judged(BY_ID["D8"], {"rows": rows}).kind == CONTRADICTED


def test_dram_traffic_is_compared_where_matrices_exceed_the_l2_as_far(monkeypatch):
    t4, h100 = gpu("T4"), gpu("H100")
    for n, expected in ((2048, 8192), (4096, 16384)):
        size = evidence.comparable_size(n)
        assert size == expected
        assert size**2 / h100.l2_bytes >= n**2 / t4.l2_bytes > (size / 2) ** 2 / h100.l2_bytes


def test_what_is_missing_is_named(monkeypatch):
    def missing(name, n, metric):
        raise Missing(f"{metric} of {name}")

    monkeypatch.setitem(claims.NAMES, "counter", missing)
    verdict = judged(BY_ID["W40"])
    assert verdict.kind == NOT_YET
    assert verdict.sentence == f"Not recorded yet: {READ} of 01_naive/coalesced."


def test_records_are_read(results):
    made = record(rows=[row(2048)])
    del made["variants"]["swapped"]
    made["variants"]["coalesced"]["counters"] = [
        {**dict.fromkeys("MNK", 2048), "metrics": {READ: 34e6}}]
    built.write(made)
    for name in ("01_naive/coalesced", "01_naive"):
        assert evidence.bench(name, 2048).tflops == row(2048)["tflops"]
        assert evidence.counter(name, 2048, READ) == 34e6
    for missing, said in (
        (lambda: evidence.bench("01_naive", 4096), "4,096"),
        (lambda: evidence.counter("01_naive", 2048, "l2_bytes"), "l2_bytes"),
        (lambda: evidence.bench("01_naive/swapped", 2048), "swapped"),
        (lambda: evidence.bench("no_such_kernel", 2048), "no_such_kernel"),
    ):
        with pytest.raises(Missing, match=said):
            missing()


def test_claims_ask_for_counters_that_are_recorded():
    lines = [line for claim in CLAIMS for line in claim.figures.values()]
    asked = {name for line in lines for name in re.findall(
        r'"(\w+_(?:bytes|percent)|stall_\w+)"', line)}
    assert len(asked) > 10 and asked <= set(counters.HARDWARE)


def test_claims_about_a_t4_that_another_gpu_judged_wait_for_one():
    def verdict(name, kinds, where, kind=CONTRADICTED):
        claim = replace(CLAIMS[0], id=name, evidence=kinds, where=where)
        return claims.Verdict(claim, kind, "It is.")

    h100 = ("recorded",), "`results/h100/01_naive.json`"
    found = [
        verdict("W1", *h100), verdict("W2", ("recorded",), "`results/t4/01_naive.json`"),
        verdict("W3", ("emulated",), "`cuda/01_naive.cu`"), verdict("D1", *h100),
        verdict("W4", *h100, NOT_YET)]
    assert [one.claim.id for one in claims.waiting(found)] == ["W1"]
    assert "judged by what another GPU measured" in claims.summary()


def test_a_version_that_a_verdict_names_is_the_one_that_it_divides_by(monkeypatch):
    """W12: with the named version twice as slow the ratio is half."""
    def slower():
        said = judged(BY_ID["W12"]).sentence
        return re.search(r"slower than (\d\d): ([\d.]+)×", said).groups()

    def bench(name, *rest):
        was = evidence.bench(name, *rest)
        return SimpleNamespace(seconds=was.seconds * (1 + name.startswith(number)))

    number, ratio = slower()
    monkeypatch.setitem(claims.NAMES, "bench", bench)
    assert float(slower()[1]) == pytest.approx(float(ratio) / 2, abs=0.01)
