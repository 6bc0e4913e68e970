"""The claims ledger: every claim once, every verdict from evidence, and able to change."""

import dataclasses
import re
from importlib import import_module
from pkgutil import iter_modules
from typing import NamedTuple

import numpy as np
import pytest

from lib import gpus
from lib.claims import checks as judges
from lib.claims import ledger as claims
from lib.claims.checks import worklog_ladder
from lib.claims.checks.shared import comparable_size
from lib.claims.evidence import (
    CONTRADICTED,
    DRAM_READ,
    FMA_PIPE,
    L1_DATA,
    L2_BYTES,
    LONG_SCOREBOARD,
    NOT_TESTABLE,
    NOT_YET,
    REPRODUCED,
    STALLS,
    WARPS_ACTIVE,
    Evidence,
    Loads,
    Missing,
    SharedLoads,
    Verdict,
)
from lib.compiler.compiled import Resources
from lib.kernels.catalogue import CATALOGUE
from lib.measure import counters
from lib.paths import ROOT
from lib.records import store as records
from lib.records.reader import RecordedRival
from lib.records.schema import Sweep, Swept
from tests import built
from tests.built import record, row

NAIVE_64 = {"global_load_requests": 2 * 64**3 // 32, "global_load_sectors": 5 * 64**3 // 32,
            "ffma_thread_instructions": 64**3}
TILED_64 = {"global_load_sectors": 64**3 // 128, "ffma_thread_instructions": 64**3,
            "shared_wavefronts": 11264, "shared_wavefronts_ideal": 11264}
PADDED_64 = {"shared_wavefronts": 66 * 256, "shared_wavefronts_ideal": 66 * 256}
TILED_32 = {"ffma_thread_instructions": 32**3}
# 04's tiles loaded by single floats and 06's by fours, and the worklog's warp tile.
LOADED_128 = {"global_load_sectors": 4096, "ffma_thread_instructions": 128**3}
# For each FMA of a warp 3/8 of a shared load in 03, and 12/64 in 06.
STRIP_128 = {"ffma_thread_instructions": 128**3, "shared_load_instructions": 128**2 * 3 // 2}
SQUARE_128 = {**LOADED_128, "global_load_requests": 1024,
              "shared_load_instructions": 128**2 * 3 // 4}
VECTOR_128 = {**LOADED_128, "global_load_requests": 256, "shared_wavefronts": 13312}
SEED_128 = {"ffma_thread_instructions": 128**3, "shared_wavefronts": 26624}
SEED_TILES = ("seed", "seed16", "seed32")


def swept(size, warps, late):
    """A row of the sweep: square tiles, the time when loads are late over that of two buffers."""
    return Swept(block=(size, size, 8), warp=(size, size), blocks=1, warps=warps,
                 seconds={"late": late, "double": 1.0}, spread={}, registers={}, hashes={},
                 cublas_seconds=1.0)


class Time(NamedTuple):
    """As much of a row as judges ask for."""

    seconds: float = 0.0
    ratio: float = 0.0
    tflops: float = 0.0


class Fixed(Evidence):
    """Evidence with the numbers of two right kernels, any of which a test may change."""

    def __init__(self):
        self.gpus = dict(gpus.GPUS)
        self.all_counters = {("01_naive", "coalesced", 64): NAIVE_64,
                             ("02_shared_tile", "tile32", 64): TILED_64,
                             ("02_shared_tile", "tile32", 32): TILED_32,
                             ("03_strip", "columns_first", 128): STRIP_128,
                             ("05_bank_conflicts", "spread", 128): SQUARE_128,
                             ("06_vectorized", "float4", 128): VECTOR_128,
                             ("08_warp_tile", "seed", 128): SEED_128,
                             ("13_wmma_vectorized", "vectors_32x64", 64): {
                                 "ffma_thread_instructions": 0},
                             ("05_bank_conflicts", "tile_padded", 64): PADDED_64}
        self.all_shared = {("03_strip", "columns_first"): {"As": SharedLoads(100, 200, 200)},
                           ("03_strip", "strips_first"): {"As": SharedLoads(100, 3200, 400)}}
        self.registers = {"02_shared_tile": 32, "03_strip": 64, "05_bank_conflicts": 110}
        self.all_loads = {("01_naive", "coalesced"): {"A": Loads(100, 100), "B": Loads(100, 400)},
                          ("01_naive", "swapped"): {"A": Loads(100, 3200), "B": Loads(100, 100)},
                          ("13_wmma_vectorized", "vectors_32x64"): {"A": Loads(16, 256),
                                                           "B": Loads(32, 512)},
                          ("14_ldmatrix", "k8"): dict.fromkeys("AB", Loads(64, 1024))}
        # At 2,048 the matrices fit an H100's L2, and no DRAM traffic tells kernels apart there.
        self.metrics = {("01_naive", 2048, WARPS_ACTIVE): 98.0,
                        ("02_shared_tile", 2048, WARPS_ACTIVE): 98.0,
                        ("03_strip", 2048, WARPS_ACTIVE): 50.0,
                        ("05_bank_conflicts", 2048, WARPS_ACTIVE): 25.0,
                        ("01_naive", 2048, DRAM_READ): 34e6, ("cublas", 2048, DRAM_READ): 34e6,
                        ("01_naive", 8192, DRAM_READ): 69e9, ("cublas", 8192, DRAM_READ): 4.6e9,
                        ("02_shared_tile", 8192, DRAM_READ): 69e9,
                        ("01_naive", 8192, L2_BYTES): 172e9,
                        ("02_shared_tile", 8192, L2_BYTES): 171e9,
                        ("01_naive", 16384, L2_BYTES): 1400e9,
                        ("01_naive", 16384, DRAM_READ): 700e9,
                        ("08_warp_tile", 4096, DRAM_READ): 1.2e9,
                        ("cublas", 4096, DRAM_READ): 0.34e9,
                        ("05_bank_conflicts", 2048, FMA_PIPE): 11.0,
                        ("05_bank_conflicts", 2048, L1_DATA): 90.0,
                        ("05_bank_conflicts", 2048, LONG_SCOREBOARD): 3.2,
                        **{("02_shared_tile", 2048, stall): 1.0 for stall in STALLS}}
        self.of_variant = {("tile_two_buffers", LONG_SCOREBOARD): 2.5,
                           ("tile_both", LONG_SCOREBOARD): 0.01}
        self.benches = {("coalesced", 2048): Time(seconds=2.7e-3),
                        ("swapped", 2048): Time(seconds=35e-3),
                        ("coalesced", 8192): Time(seconds=0.23),
                        ("swapped", 8192): Time(seconds=2.19),
                        ("float4", 4096): Time(seconds=3.2e-3, ratio=0.83),
                        ("warp_64x64_k16", 4096): Time(seconds=2.9e-3, ratio=0.90),
                        ("tuned", 4096): Time(seconds=2.5e-3, ratio=1.05),
                        **{(name, 4096): Time(seconds=4.5e-3) for name in SEED_TILES}}
        self.loops = {"13_wmma_vectorized": {"tensor": 32, "matrix load, 64 bit": 12},
                      "14_ldmatrix": {"tensor": 64, "matrix load, 128 bit": 12}}
        self.stopped_at = 2 * np.arange(32)
        self.longest = {"14_ldmatrix": "shared memory", "15_turing_limit": "tensor pipe"}
        for n, times in ((1024, (2.6, 3.2, 3.3, 3.1)), (2048, (1.9, 2.4, 2.5, 2.4))):
            for name, seconds in zip(
                ("tile32", "tile_padded", "tile_two_buffers", "tile_both"), times, strict=True):
                self.benches[name, n] = Time(seconds=seconds)
        self.all_resources = {
            ("05_bank_conflicts", "tile_padded"): Resources(32, 8448, 0, 0, 0),
            ("07_double_buffer", "tile_two_buffers"): Resources(32, 16896, 0, 0, 0),
            ("13_wmma_vectorized", "vectors_32x64"): Resources(72, 12288, 0, 0, 0),
            ("13_wmma_vectorized", "vectors_128x128"): Resources(136, 36864, 0, 0, 0),
            ("14_ldmatrix", "k8"): Resources(106, 18944, 0, 0, 0),
            ("15_turing_limit", "tile_128x256"): Resources(220, 49152, 0, 0, 0),
        }
        self.work = {"tile_two_buffers": 0, "tile_both": 30}
        self.hazards = {"": 0, "the next tiles are whole": 3}
        self.fills_and_reads = [(1, 0), (0, 1), (1, 0)]
        self.cycles = 900.0
        self.before_loop = 2
        # Each step is relieved at one level but the last, and the tensor pipe is never the longest.
        self.costs = {stem: {"L1": 0.1, "L2 and DRAM": 0.1, "shared memory": 1.0, "registers": 1}
                      for stem in worklog_ladder.STAGES}
        self.costs["08_warp_tile"] = {"L1": 0.1, "L2 and DRAM": 0.05, "shared memory": 0.5,
                                      "registers": 1}
        self.units = {stem: f"unit {place}" for place, stem in enumerate(
            dict.fromkeys(stem for pair in worklog_ladder.STEPS for stem in pair))}
        self.units["10_wmma"] = self.units["06_vectorized"]
        self.takes = {("cp_async.cuh", "sm_80"), ("tma.cuh", "sm_90a")}
        self.firsts = {"14_ldmatrix": 3.0, "15_turing_limit": 1.2, "16_cp_async": 1.0}
        self._tell_of_wmma()
        # Much to gain with one small block of few warps, and more with a large tile.
        self.rows = [swept(32, 2, 3.0), swept(32, 8, 1.5), swept(128, 8, 2.0), swept(128, 16, 1.1)]

    def _tell_of_wmma(self):
        self.all_counters |= {
            ("10_wmma", "one_fragment", 64): {"global_load_sectors": 4096},
            ("11_wmma_shared", "tile_32x64", 64): {"global_load_sectors": 768},
            ("12_wmma_pipeline", "at_once", 64): {"ffma_thread_instructions": 0},
        }
        self.metrics |= {("10_wmma", 2048, DRAM_READ): 0.02e9,
                         ("10_wmma", 4096, DRAM_READ): 0.4e9,
                         ("11_wmma_shared", 4096, DRAM_READ): 0.2e9}
        for n in (2048, 4096):
            self.benches |= {("10_wmma", "one_fragment", n): Time(seconds=1.7e-3),
                             ("11_wmma_shared", "tile_32x64", n): Time(seconds=1e-3),
                             ("11_wmma_shared", "warps_32x32", n): Time(seconds=0.9e-3),
                             ("12_wmma_pipeline", "at_once", n): Time(seconds=0.9e-3),
                             ("12_wmma_pipeline", "staged", n): Time(seconds=0.8e-3),
                             ("12_wmma_pipeline", "roles", n): Time(seconds=0.8e-3)}
        # The tensor cores' versions: 13 a little slower than 12 at 2,048, and 15 faster than 14.
        for stem, name, n, tflops in (
            ("06_vectorized", "float4", 2048, 45.0), ("10_wmma", "one_fragment", 2048, 40.0),
            ("11_wmma_shared", "tile_32x64", 2048, 70.0),
            ("12_wmma_pipeline", "at_once", 2048, 100.0),
            ("13_wmma_vectorized", "vectors_32x64", 2048, 96.0),
            ("12_wmma_pipeline", "at_once", 4096, 110.0),
            ("13_wmma_vectorized", "vectors_32x64", 4096, 105.0),
            ("13_wmma_vectorized", "vectors_128x128", 4096, 240.0),
            ("14_ldmatrix", "k8", 4096, 250.0),
            ("15_turing_limit", "tile_128x256", 4096, 320.0),
        ):
            before = self.benches.get((stem, name, n), Time())
            self.benches[stem, name, n] = before._replace(tflops=tflops)
        self.ffma_with_beta = 64 * 64
        both, roles = frozenset({"load", "multiply"}), ("load", "multiply")
        self.warps = {"at_once": [both, both], "roles": [frozenset({one}) for one in roles]}

    def counters_with_beta(self, stem, variant, n=64):
        return {"ffma_thread_instructions": self.ffma_with_beta}

    def work_of_warps(self, stem, variant, n=64):
        return self.warps[variant]

    def gpu(self, key):
        return self.gpus[key]

    def counters(self, stem, variant, n=64):
        return self.all_counters[stem, variant, n]

    def loads(self, stem, variant, n=64):
        return self.all_loads[stem, variant]

    def shared_loads(self, stem, variant, n=128):
        return self.all_shared[stem, variant]

    def counter(self, gpu, stem, variant, n, metric):
        if (variant, metric) in self.of_variant:
            return self.of_variant[variant, metric]
        return self.metrics[stem, n, metric]

    def bench(self, gpu, stem, variant, n, ptx_arch=None):
        key = (stem, variant, n)
        return self.benches[key if key in self.benches else key[1:]]

    def loop(self, stem, variant, arch):
        return self.loops[stem]

    def refused(self, stem, variant):
        return self.stopped_at

    def unit_times(self, gpu, stem, variant, n):
        return {unit: 2.0 if unit == self.longest[stem] else 1.0
                for unit in ("tensor pipe", "shared memory")}

    def resources(self, stem, variant, arch="sm_75"):
        if (stem, variant) in self.all_resources:
            return self.all_resources[stem, variant]
        return Resources(self.registers[stem], 8192, 0, 0, 0)

    def work_between(self, stem, variant, arch):
        return self.work[variant]

    def prologue_loads(self, stem, variant, arch):
        return self.before_loop

    def races(self, stem, variant, without=""):
        return self.hazards[without]

    def buffers(self, stem, variant):
        return self.fills_and_reads

    def per_fma(self, stem, n=128):
        return self.costs[stem]

    def busiest(self, gpu, stem, n):
        return self.units[stem]

    def legal(self, header, call, arch):
        return (header, arch) in self.takes

    def first(self, gpu, stem, n):
        return Time(seconds=self.firsts[stem])

    def sweep(self, gpu, name):
        return Sweep(kernel="08_warp_tile", shape=(4096,) * 3, method="in turns", rows=self.rows)

    def arrival(self, gpu, stem, variant):
        return self.cycles

    def change_gpu(self, key, **values):
        self.gpus[key] = dataclasses.replace(self.gpus[key], **values)


def kind(claim_id, evidence):
    return claims.judged(claims.find(claim_id), evidence).kind


def test_every_id_of_the_sources_is_there_once():
    ids = [claim.id for claim in claims.CLAIMS]
    assert len(ids) == len(set(ids))
    assert set(ids) == {f"D{i}" for i in range(1, 17)} | {f"W{i}" for i in range(1, 62)}


def test_every_chapter_is_on_the_ladder_or_the_method_page():
    known = set(CATALOGUE) | {claims.METHOD}
    assert {claim.chapter for claim in claims.CLAIMS} <= known


def test_the_sources_are_cited():
    bibliography = (ROOT / "chapters" / "references.bib").read_text()
    for claim in claims.CLAIMS:
        assert f"{{{claim.source}," in bibliography


EXPECTED = {
    REPRODUCED: "D2 D4 D7 D8 D10 D11 D13 D16 W1 W5 W14 W16 W17 W18 W21 W23 W24 W40 W45 W48 W52 "
                "W53 W60",
    CONTRADICTED: "D1 D3 D5 D6 D9 D12 D14 D15 W2 W3 W4 W6 W7 W8 W9 W10 W11 W12 W13 W15 W19 W20 "
                  "W22 W25 W26 W27 W28 W30 W31 W32 W33 W34 W35 W36 W37 W38 W39 W41 W42 W43 W44 "
                  "W46 W47 W49 W50 W51 W54 W55 W56 W57 W58 W59 W61",
    NOT_TESTABLE: "W29",
}


def test_verdicts_on_two_right_kernels():
    for expected, ids in EXPECTED.items():
        assert {i: kind(i, Fixed()) for i in ids.split()} == dict.fromkeys(ids.split(), expected)


def test_a_claim_has_a_judge_or_is_not_yet_judged():
    judged = {i for ids in EXPECTED.values() for i in ids.split()}
    for claim in claims.CLAIMS:
        verdict = claims.judged(claim, Fixed())
        if claim.id in judged:
            assert verdict.evidence and verdict.where and verdict.sentence
        else:
            assert verdict.kind == NOT_YET
            if claim.judge is None:
                assert claim.chapter in verdict.sentence
            else:
                assert verdict.sentence.startswith("Not recorded yet: ")


def test_every_judge_belongs_to_a_claim():
    modules = [import_module(f"{judges.__name__}.{m.name}") for m in iter_modules(judges.__path__)]
    functions = {
        name for module in modules for name in vars(module) if re.search(r"_[dw]\d+$", name)
    }
    assert functions == {claim.judge.__name__ for claim in claims.CLAIMS if claim.judge}
    for claim in claims.CLAIMS:
        if claim.judge:
            assert claim.judge.__name__.endswith(f"_{claim.id.lower()}")


@pytest.mark.parametrize(
    ("claim_id", "changed", "becomes"),
    [
        ("D8", lambda e: e.rows.append(swept(32, 16, 4.0)), CONTRADICTED),
        ("W14", lambda e: e.all_counters.update(
            {("10_wmma", "one_fragment", 64): {"global_load_sectors": 2048}}), CONTRADICTED),
        ("W16", lambda e: e.benches.update(
            {("12_wmma_pipeline", "at_once", 4096): Time(seconds=0.5e-3)}), CONTRADICTED),
        ("W17", lambda e: setattr(e, "ffma_with_beta", 0), CONTRADICTED),
        ("W41", lambda e: e.warps.update(at_once=e.warps["roles"]), REPRODUCED),
        ("D8", lambda e: e.rows.append(swept(256, 8, 1.2)), CONTRADICTED),
        ("W1", lambda e: e.change_gpu("T4", dram_bytes_per_s=300e9), CONTRADICTED),
        ("W33", lambda e: e.change_gpu("T4", dram_bytes_per_s=640e9), REPRODUCED),
        ("W7", lambda e: e.change_gpu("T4", shared_bytes_per_sm=164 * 1024), REPRODUCED),
        ("W53", lambda e: e.change_gpu("T4", shared_bytes_per_sm=32 * 1024), CONTRADICTED),
        ("W52", lambda e: e.change_gpu("T4", sms=36), CONTRADICTED),
        ("W44", lambda e: e.change_gpu("T4", fp32_lanes_per_sm=640), REPRODUCED),
        ("W21", lambda e: e.change_gpu("T4", registers_per_sm=32768), CONTRADICTED),
        ("W21", lambda e: e.all_resources.update(
            {("14_ldmatrix", "k8"): Resources(140, 18944, 0, 0, 0)}), CONTRADICTED),
        ("W28", lambda e: e.change_gpu("T4", dram_bytes_per_s=400e9), REPRODUCED),
        ("D10", lambda e: e.change_gpu("T4", tensor_fp16_flops=130e12), CONTRADICTED),
        ("W38", lambda e: e.change_gpu("T4", tensor_fp16_flops=650e12), REPRODUCED),
        ("W13", lambda e: e.change_gpu("T4", tensor_fp16_flops=1300e12), REPRODUCED),
        ("W46", lambda e: e.change_gpu("T4", dram_bytes_per_s=2e12), REPRODUCED),
        ("W5", lambda e: e.all_loads["01_naive", "coalesced"].update(A=Loads(1, 2)), CONTRADICTED),
        ("W47", lambda e: e.all_loads["01_naive", "coalesced"].update(B=Loads(1, 1)), REPRODUCED),
        ("W45", lambda e: change_naive(e, ffma_thread_instructions=1), CONTRADICTED),
        ("D9", lambda e: change_tiled(e, shared_wavefronts=22528), REPRODUCED),
        ("D1", lambda e: (e.metrics.update({("05_bank_conflicts", 2048, FMA_PIPE): 50.0}),
                          e.benches.update({("tile_two_buffers", 2048): Time(seconds=1.9)})),
         REPRODUCED),
        ("D2", lambda e: e.all_resources.update(
            {("07_double_buffer", "tile_two_buffers"): Resources(32, 8448, 0, 0, 0)}),
         CONTRADICTED),
        ("D3", lambda e: e.work.update(tile_two_buffers=20), REPRODUCED),
        ("D4", lambda e: e.hazards.update({"": 1}), CONTRADICTED),
        ("D4", lambda e: e.hazards.update({"the next tiles are whole": 0}), CONTRADICTED),
        ("D5", lambda e: e.benches.update({("tile_two_buffers", 1024): Time(seconds=3.08)}),
         REPRODUCED),
        ("D6", lambda e: e.all_resources.update(
            {("07_double_buffer", "tile_two_buffers"): Resources(40, 16896, 0, 0, 0)}), REPRODUCED),
        ("D11", lambda e: e.work.update(tile_both=0), CONTRADICTED),
        ("D13", lambda e: e.fills_and_reads.reverse() or e.fills_and_reads.pop(0), CONTRADICTED),
        ("D15", lambda e: setattr(e, "cycles", 5.0), REPRODUCED),
        ("D16", lambda e: e.metrics.update({("05_bank_conflicts", 2048, L1_DATA): 40.0}),
         CONTRADICTED),
        ("W51", lambda e: e.metrics.update({("02_shared_tile", 2048, "stall_barrier"): 9.0}),
         REPRODUCED),
        ("W50", lambda e: change_tiled(e, shared_wavefronts=2000), REPRODUCED),
        ("W49", lambda e: change_tiled(e, global_load_sectors=64**3 // 1024), REPRODUCED),
        ("W34", lambda e: e.metrics.update({("01_naive", 16384, DRAM_READ): 1390e9}), REPRODUCED),
        ("W40", lambda e: e.metrics.update({("cublas", 8192, DRAM_READ): 69e9}), CONTRADICTED),
        ("W6", lambda e: e.metrics.update({("02_shared_tile", 8192, DRAM_READ): 5e9}), REPRODUCED),
        ("W8", lambda e: e.all_shared["03_strip", "columns_first"].update(
            As=SharedLoads(100, 1600, 200)), REPRODUCED),
        ("W9", lambda e: e.registers.update({"05_bank_conflicts": 80}), REPRODUCED),
        ("W59", lambda e: e.registers.update({"05_bank_conflicts": 80}), REPRODUCED),
        ("W10", lambda e: change_vectorized(e, global_load_sectors=1024), REPRODUCED),
        ("W11", lambda e: e.benches.update(
            {(name, 4096): Time(ratio=0.9) for name in ("float4", "tuned")}), REPRODUCED),
        ("W30", lambda e: e.units.update({"10_wmma": "another unit"}), REPRODUCED),
        ("W32", lambda e: e.costs.update({"08_warp_tile": e.costs["06_vectorized"]}), REPRODUCED),
        ("W60", lambda e: e.takes.add(("cp_async.cuh", "sm_75")), CONTRADICTED),
        ("W61", lambda e: e.firsts.update({"15_turing_limit": 2.5}), REPRODUCED),
        ("W18", lambda e: e.all_loads["13_wmma_vectorized", "vectors_32x64"].update(
            A=Loads(64, 256)), CONTRADICTED),
        ("W19", lambda e: set_speed(e, "13_wmma_vectorized", "vectors_32x64", 4096, 400.0),
         REPRODUCED),
        ("W20", lambda e: e.all_resources.update(
            {("13_wmma_vectorized", "vectors_32x64"): Resources(136, 36864, 0, 0, 0)}), REPRODUCED),
        ("W22", lambda e: e.loops["13_wmma_vectorized"].update({"shared load, 16 bit": 64}),
         REPRODUCED),
        ("W23", lambda e: setattr(e, "stopped_at", 16 * np.arange(32)), CONTRADICTED),
        ("W24", lambda e: e.all_loads["14_ldmatrix", "k8"].update(A=Loads(128, 1024)),
         CONTRADICTED),
        ("W27", lambda e: set_speed(e, "15_turing_limit", "tile_128x256", 4096, 200.0), REPRODUCED),
        ("W39", lambda e: set_speed(e, "06_vectorized", "float4", 2048, 110.0), REPRODUCED),
        ("W56", lambda e: setattr(e, "ffma_with_beta", 0), REPRODUCED),
        ("W57", lambda e: e.longest.update({"15_turing_limit": "shared memory"}), REPRODUCED),
        ("W12", lambda e: e.benches.update({("seed32", 4096): Time(seconds=3e-3)}), REPRODUCED),
    ],
)
def test_a_changed_datum_changes_the_verdict(claim_id, changed, becomes):
    evidence = Fixed()
    before = kind(claim_id, evidence)
    changed(evidence)
    assert before != becomes
    assert kind(claim_id, evidence) == becomes


def set_speed(evidence, stem, variant, n, tflops):
    evidence.benches[stem, variant, n] = Time(tflops=tflops)


def change_naive(evidence, **values):
    evidence.all_counters["01_naive", "coalesced", 64] = {**NAIVE_64, **values}


def change_tiled(evidence, **values):
    evidence.all_counters["02_shared_tile", "tile32", 64] = {**TILED_64, **values}


def change_vectorized(evidence, **values):
    evidence.all_counters["06_vectorized", "float4", 128] = {**VECTOR_128, **values}


def test_d6_needs_more_registers_on_every_gpu():
    class OnTwo(Fixed):
        def resources(self, stem, variant, arch="sm_75"):
            of_one = stem == "07_double_buffer" and arch != "sm_75"
            return Resources(40, 16896, 0, 0, 0) if of_one else Resources(32, 8192, 0, 0, 0)

    assert kind("D6", OnTwo()) == CONTRADICTED


def test_w3_and_w4_need_both_of_their_halves():
    evidence = Fixed()
    change_naive(evidence, global_load_sectors=64**3 // 64)  # a tenth of the traffic, 4.3 GB
    assert kind("W3", evidence) == CONTRADICTED
    evidence.metrics["01_naive", 2048, WARPS_ACTIVE] = 8.0
    assert kind("W3", evidence) == REPRODUCED

    evidence.all_loads["01_naive", "swapped"]["A"] = Loads(1, 128)
    assert kind("W4", evidence) == CONTRADICTED
    evidence.benches["swapped", 2048] = Time(seconds=32 * 2.7e-3)
    assert kind("W4", evidence) == REPRODUCED


def test_w58_needs_more_warps_on_both_gpus():
    evidence = Fixed()
    evidence.registers |= {"02_shared_tile": 40, "03_strip": 40}
    evidence.change_gpu("T4", registers_per_sm=40 * 1024, warps_per_sm=64)
    assert kind("W58", evidence) == CONTRADICTED
    evidence.registers["03_strip"] = 20
    assert kind("W58", evidence) == CONTRADICTED  # not on the H100 as recorded
    evidence.metrics["03_strip", 2048, WARPS_ACTIVE] = 99.0
    assert kind("W58", evidence) == REPRODUCED


def test_dram_traffic_is_compared_where_matrices_exceed_the_l2_as_far():
    evidence = Fixed()
    t4, h100 = evidence.gpu("T4"), evidence.gpu("H100")
    for n, expected in ((2048, 8192), (4096, 16384)):
        size = comparable_size(evidence, n)
        assert size == expected
        assert size**2 / h100.l2_bytes >= n**2 / t4.l2_bytes > (size / 2) ** 2 / h100.l2_bytes
    # The claim's own size, at which the H100's L2 hides the difference, must not decide.
    for stem in ("01_naive", "cublas"):
        evidence.metrics[stem, 2048, DRAM_READ] = 1.0
    assert kind("W40", evidence) == REPRODUCED


def test_sentences_carry_the_numbers():
    def sentence(claim_id):
        return claims.judged(claims.find(claim_id), Fixed()).sentence

    assert "42.9 GB" in sentence("W3")
    assert "1,860 GB/s" in sentence("W2") and "4.0 FLOP/byte" in sentence("W2")
    assert "13.0×" in sentence("W4") and "12.5%" in sentence("W4")
    assert "2.15 GB" in sentence("W49")
    assert "36%" in sentence("W31")
    assert "8.1 TB/s" in sentence("W38")
    assert "64%" in sentence("D14")
    assert "1.78 FLOP" in sentence("W8") and "5.33 FLOP" in sentence("W8")
    assert "8-way" in sentence("W8") and "without a conflict" in sentence("W8")
    assert "110 for a T4" in sentence("W9") and "10.7 per load" in sentence("W9")
    assert "16 warps" in sentence("W59") and "50% of its slots" in sentence("W59")


def test_what_is_missing_is_named():
    class Bare(Fixed):
        def counter(self, gpu, stem, variant, n, metric):
            raise Missing(f"{metric} of {stem}")

    verdict = claims.judged(claims.find("W40"), Bare())
    assert verdict.kind == NOT_YET
    assert DRAM_READ in verdict.sentence and "01_naive" in verdict.sentence
    assert not verdict.evidence


def test_counters_of_cublas_are_read_from_its_own_record():
    found = Evidence().counter("H100", "cublas", "fp32", 8192, DRAM_READ)
    assert found == RecordedRival("H100").counters(8192, "fp32")[DRAM_READ]


def test_records_that_are_not_there_are_missing():
    with pytest.raises(Missing, match="no_such_kernel"):
        Evidence().bench("H100", "no_such_kernel", "coalesced", 2048)


def test_records_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "RESULTS", tmp_path)
    made = record(rows=[row(2048)])
    del made["variants"]["swapped"]
    made["variants"]["coalesced"]["counters"] = [
        {**dict.fromkeys("MNK", 2048), "metrics": {DRAM_READ: 34e6}}
    ]
    built.write(made)
    evidence = Evidence()
    assert evidence.bench("H100", "01_naive", "coalesced", 2048).tflops == row(2048)["tflops"]
    assert evidence.counter("H100", "01_naive", "coalesced", 2048, DRAM_READ) == 34e6
    with pytest.raises(Missing, match="4,096"):
        evidence.bench("H100", "01_naive", "coalesced", 4096)
    with pytest.raises(Missing, match=WARPS_ACTIVE):
        evidence.counter("H100", "01_naive", "coalesced", 2048, WARPS_ACTIVE)
    with pytest.raises(Missing, match="swapped"):
        evidence.bench("H100", "01_naive", "swapped", 2048)


def test_judges_ask_for_counters_that_are_recorded():
    asked = {DRAM_READ, FMA_PIPE, L1_DATA, L2_BYTES, WARPS_ACTIVE, *STALLS}
    assert asked <= set(counters.HARDWARE)


def test_a_verdict_needs_evidence():
    with pytest.raises(ValueError, match="needs a sentence"):
        Verdict(REPRODUCED, "It is so.", (), "")
    with pytest.raises(ValueError, match="no verdict"):
        Verdict("plausible", "It is so.", ("measured",), "here")
    with pytest.raises(ValueError, match="kind of evidence"):
        Verdict(REPRODUCED, "It is so.", ("guessed",), "here")


def test_the_table_is_whole():
    lines = claims.markdown(evidence=Fixed()).splitlines()
    assert len(lines) == 2 + len(claims.CLAIMS)
    for line in lines:
        assert len(re.findall(r"(?<!\\)\|", line)) == 4
    judged = [f"**{NOT_YET}**" not in line for line in lines[2:]]
    assert judged == sorted(judged, reverse=True)
    of_chapter = claims.markdown("01_naive", Fixed()).splitlines()[2:]
    assert [line.split("|")[1].strip() for line in of_chapter] == [
        claim.id for claim in claims.CLAIMS if claim.chapter == "01_naive"
    ]


def test_the_summary_counts_every_claim():
    counted = [int(number) for number in re.findall(r"\*\*(\d+)\*\*", claims.summary(Fixed()))]
    assert sum(counted) == len(claims.CLAIMS)


def test_an_unknown_id_is_refused():
    with pytest.raises(ValueError, match="W61"):
        claims.find("W99")


def test_emulated_evidence_of_both_kernels():
    evidence = Evidence()
    loads = evidence.loads("01_naive", "coalesced")
    assert {m: loads[m].sectors_per_request for m in "AB"} == {"A": 1, "B": 4}
    swapped = evidence.loads("01_naive", "swapped")
    assert {m: swapped[m].sectors_per_request for m in "AB"} == {"A": 32, "B": 1}
    for claim_id in ("W5", "W45"):
        assert kind(claim_id, evidence) == REPRODUCED
    for claim_id in ("W46", "W47", "W49", "W50", "D12", "W8", "W9"):
        assert kind(claim_id, evidence) == CONTRADICTED


def test_emulated_conflicts_of_the_strip_s_two_mappings():
    evidence = Evidence()
    rows, strips = (evidence.shared_loads("03_strip", v)
                    for v in ("columns_first", "strips_first"))
    assert (rows["As"].conflict, rows["Bs"].conflict) == (1, 1)
    assert (strips["As"].conflict, strips["Bs"].conflict) == (8, 1)
    assert rows["As"].instructions == strips["As"].instructions == 2 * rows["Bs"].instructions


def test_evidence_of_two_buffers():
    evidence = Evidence()
    assert evidence.buffers("07_double_buffer", "tile_two_buffers")[:3] == [(1, 0), (0, 1), (1, 0)]
    assert evidence.work_between("07_double_buffer", "tile_two_buffers", "sm_90a") == 0
    assert evidence.work_between("07_double_buffer", "tile_both", "sm_90a") > 16
    assert evidence.prologue_loads("07_double_buffer", "tile_both", "sm_75") == 2
    for claim_id in ("D2", "D4", "D11", "D13"):
        assert kind(claim_id, evidence) == REPRODUCED
    assert kind("D6", evidence) == CONTRADICTED


def test_the_assembler_says_who_may_copy_asynchronously():
    evidence = Evidence()
    assert not evidence.legal("cp_async.cuh", "copies_commit()", "sm_75")
    assert evidence.legal("cp_async.cuh", "copies_commit()", "sm_80")
    assert kind("W60", evidence) == REPRODUCED


def test_costs_of_a_multiply_add_and_busiest_units_are_those_of_the_repository():
    evidence = Evidence()
    assert evidence.per_fma("02_shared_tile")["shared memory"] == pytest.approx(50 / 32 / 32)
    assert evidence.busiest("H100", "02_shared_tile", 2048) == "shared memory"
    with pytest.raises(Missing, match="3,000"):
        evidence.busiest("H100", "02_shared_tile", 3000)
    assert kind("W32", evidence) == CONTRADICTED


def test_evidence_of_the_last_turing_versions():
    evidence = Evidence()
    refused = evidence.refused("14_ldmatrix", "swapped")
    assert refused.shape == (32,) and (refused % 16 != 0).sum() == 28
    assert not len(evidence.refused("14_ldmatrix", "k8"))
    for claim_id in ("W18", "W21", "W23", "W24"):
        assert kind(claim_id, evidence) == REPRODUCED
    for claim_id in ("W20", "W22", "W56", "W57"):
        assert kind(claim_id, evidence) == CONTRADICTED


def test_w15_finds_half_of_the_gain_in_whole_sectors():
    sentence = claims.judged(claims.find("W15"), Fixed()).sentence
    assert sentence.startswith("5.33× less from L1 is right")
    assert "2.67× less. The other 2× comes" in sentence and "1.70× at 2,048" in sentence


def test_what_warps_do_is_read_off_their_own_accesses():
    warps = Evidence().work_of_warps("12_wmma_pipeline", "roles")
    assert warps == [frozenset({"multiply"})] * 4 + [frozenset({"load"})] * 4
    both = frozenset({"load", "multiply"})
    assert Evidence().work_of_warps("12_wmma_pipeline", "at_once") == [both] * 4
    with_c = Evidence().counters_with_beta("12_wmma_pipeline", "at_once")
    assert with_c["ffma_thread_instructions"] == 64 * 64


def test_claims_about_a_t4_that_another_gpu_judged_wait_for_one():
    def row(name, evidence, where):
        claim = claims.Claim(name, "method", "so it is")
        return claims.Row(claim, Verdict("reproduced", "It is.", evidence, where))

    found = [
        row("W1", ("recorded",), "`results/h100/01_naive.json`"),
        row("W2", ("recorded",), "`results/t4/01_naive.json`"),
        row("W3", ("emulated",), "`cuda/01_naive.cu`"),
        row("D1", ("recorded",), "`results/h100/01_naive.json`"),
    ]
    assert [one.claim.id for one in claims.waiting(found)] == ["W1"]
    assert "judged by what another GPU measured" in claims.summary()


def test_a_version_that_a_verdict_names_is_the_one_that_it_divides_by():
    """W12: with the named version twice as slow the ratio is half."""
    claim = next(one for one in claims.CLAIMS if one.id == "W12")

    def slower(evidence):
        return re.search(r"slower than (\d\d): ([\d.]+)×", claim.judge(evidence).sentence).groups()

    evidence = Fixed()
    number, ratio = slower(evidence)
    (stem,) = [stem for stem in CATALOGUE if stem.startswith(number)]
    first = CATALOGUE[stem].variants[0].name
    was = evidence.bench("H100", stem, first, 4096)
    evidence.benches[stem, first, 4096] = was._replace(seconds=2 * was.seconds)
    assert float(slower(evidence)[1]) == pytest.approx(float(ratio) / 2, abs=0.01)
