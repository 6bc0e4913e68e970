"""What a record says twice, in its own words and by what follows from others, is compared."""

import copy
from typing import Any

import pytest

from lib.kernels.catalogue import CATALOGUE
from lib.records import store as records
from lib.records.consistency import faults
from tests import built
from tests.tables import cases

RECORD = built.record(rows=[built.spreading(built.row(1024), 0.01)])
RECORD["variants"]["swapped"]["bench"][0] = {
    **built.spreading(built.row(1024), 0.02),
    "instantiation": RECORD["variants"]["swapped"]["bench"][0]["instantiation"]}
RECORD["variants"]["coalesced"]["counters"][0]["metrics"] |= {
    "cycles": 1e6, "nanoseconds": 1e6, "l2_bytes": 1e9, "ffma_thread_instructions": 256**3,
    "l1_data_percent": 50.0}


def said(record):
    return list(faults(built.parsed(record)))


def test_a_sound_record_has_no_fault():
    assert said(RECORD) == []


def first(record):
    return record["variants"]["coalesced"]["bench"][0]


def metrics(record):
    return record["variants"]["coalesced"]["counters"][0]["metrics"]


def slower(row, times=4.0):
    """A row whose time is another, and all that follows from it by the row alone."""
    row |= {"seconds": row["seconds"] * times, "tflops": row["tflops"] / times,
            "ratio": row["ratio"] / times}


def swapped(record):
    """The series, and the times by it, of one variant in the row of the other."""
    one, other = (record["variants"][name]["bench"][0] for name in ("coalesced", "swapped"))
    other |= {key: one[key] for key in ("series", "seconds", "spread", "tflops", "ratio")}


@cases("""
place | figure | word
row.spread | 0.0 | spread is 0, and that of its series is 0.01
row.rounds | 21 | 21 samples are no whole number for 5 series
row.chunk | nowhere | its chunk nowhere is none of the record's
row.instantiation | persistent<half, 64> | persistent<half, 64> is no function of 01_naive
row.dtype | float16 | is of float16, float32, row, and coalesced of
row.clock | (0.001, 99999.0, 5) | : clock of 99,999 MHz, where 2,079 are the most
row.alone.clock | (0.001, 2100.0) | alone: clock of 2,100 MHz
row.sustained.cublas.clock | (0.0005, 2100.0, 2) | sustained.cublas: clock of 2,100 MHz
row.turns.0.cublas_clock | (0.0005, 2100.0) | turns: cublas_clock of 2,100 MHz
row.clock.mhz | 1700.0 | clock is 1700 MHz, and its series' median is 1755
row.clock.cycles | 1755001.0 | 1,755,001 cycles, and 1,755 MHz for 0.001 s are 1,755,000
row.alone.clock.cycles | 1825200.0 | alone: clock: 1,825,200 cycles
row.pair.clock.sms | 133 | of 133 SMs, and the GPU has 132
row.clock | (0.001, 60.0, 5) | 271 FLOP per cycle and SM, and the H100's pipe does 256
row.rival.best.clock | (0.0005, 100.0) | rival.best: clock: 4.295 TFLOP/s at 100 MHz
row.sustained.own.joules | 0.74 | 740 W, and the H100's board may
row.sustained.cublas.joules | 0.04 | 80 W, and the idle GPU takes
row.sustained.own.spread | 0.1 | spread is 0.1, and that of its
row.sustained.own.tflops | 3.0 | sustained.own: tflops is 3
row.rival.best.tflops | 1.0 | rival.best: tflops
row.turns.0.seconds | 0.01 | seconds and turns are 0.001 and 0.01
row.other_inputs.0.cublas_seconds | 0.01 | cublas_seconds and other_inputs
row.trials.cublas_tflops | 1.0 | trials: cublas_tflops is 1
row.packing.seconds | 0.002 | takes 0.002 s, and all of the product 0.001
row.pair.tflops | 2.0 | pair: tflops is 2
row.pair.ratio | 1.0 | pair: ratio is 1, and the times' is 0.25
row.board | ffffffffffffffff | its board is ffff
metrics.cycles | 10000000.0 | cycles in that time are 10,000 MHz
metrics.l2_bytes | 786431 | 786431 B through the L2, and A, B and C have
metrics.ffma_thread_instructions | 16777215 | FMA, and the product has
metrics.l1_data_percent | 101.0 | l1_data_percent is 101
record.date | 2026-11-20 | is of 2026-11-22, and the record of 2026-11-20
""")
def test_a_figure_that_contradicts_the_rest_is_told(place, figure, word):
    """A clock is given by seconds, MHz and series."""
    record = copy.deepcopy(RECORD)
    at: Any = {"record": record, "row": first(record), "metrics": metrics(record)}
    *way, last = place.split(".")
    for step in way:
        at = at[int(step) if step.isdigit() else step]
    at[last] = built.clock(*figure) if isinstance(figure, tuple) else figure
    found = said(record)
    assert any(word in clause for clause in found), found


@pytest.mark.parametrize("spoil, word", [
    (lambda r: slower(first(r)), "seconds is 0.004, and its series' median is 0.001"),
    (lambda r: r["variants"]["coalesced"]["bench"].append(first(r)), "is there twice"),
    (swapped, "its series is that of coalesced, 1024×1024×1024"),
    (lambda r: first(r).update(instantiation=r["variants"]["swapped"]["bench"][0]["instantiation"]),
     "is swapped"),
    (lambda r: first(r)["clock"].update(series_mhz=[1755.0]), "1 series, and the times 5"),
    (lambda r: first(r)["alone"].update(seconds=0.004, tflops=first(r)["tflops"] / 4),
     "seconds and alone are 0.001 and 0.004"),
    (lambda r: first(r)["rival"]["best"].update(
        seconds=5e-5, tflops=10 * first(r)["cublas_tflops"]), "cublas_seconds and rival"),
    (lambda r: r["variants"]["coalesced"].update(
        counters=2 * r["variants"]["coalesced"]["counters"]), "are there twice"),
    (lambda r: r["variants"]["coalesced"]["timeline"].update(overview=[[0, 0, 9]] * 65),
     "65 blocks of 64"),
    (lambda r: r["variants"]["coalesced"]["timeline"]["blocks"][0]["warps"][0].append([1, 9]),
     "a mark is of none of its 1 events"),
    (lambda r: r["variants"]["coalesced"]["timeline"]["blocks"][0].update(warps=[[[0, 1]]] * 9),
     "9 warps of 8"),
    (lambda r: r["chunks"][built.CHUNK].update(started="2026-11-22T11:00:00Z"),
     "should be called 20261122T110000-0123"),
])
def test_what_contradicts_the_rest_is_told(spoil, word):
    record = copy.deepcopy(RECORD)
    spoil(record)
    found = said(record)
    assert any(word in clause for clause in found), found


@pytest.mark.parametrize("wander, refused", [(0.04, True), (0.06, False)])
def test_medians_differ_by_no_more_than_the_clock_wanders(wander, refused):
    record = copy.deepcopy(RECORD)
    clock = first(record)["alone"]["clock"]
    clock["series_mhz"] = [clock["mhz"] * (1 + wander * (place / 4 - 0.5)) for place in range(5)]
    clock["cycles"] *= 1.05
    assert any("alone: clock:" in clause for clause in said(record)) == refused


# What pages have shown of Hopper: speeds of bursts beside NVML's clock, and joules of a
# longer run at the burst's rate. Neither can be true.
@cases("""
tflops | mhz    | joules | word
867.0  | 1575.0 | None   | are 4,170 FLOP per cycle and SM, and the H100's pipe does
848.0  | 1575.0 | None   | None
720.0  | 1980.0 | 0.1561 | are 818 W, and the H100's board may draw 700 W
720.0  | 1980.0 | 0.1336 | None
""")
def test_speed_clock_and_joules_are_all_true_or_none_is_taken(tflops, mhz, joules, word):
    seconds = 2.0 * 4096**3 / tflops / 1e12
    row = built.row(4096, seconds, seconds, seconds)
    kernel = CATALOGUE["21_clusters"]
    row |= {"dtype": "float16", "clock": built.clock(seconds, mhz, 5)}
    if not joules:
        row = built.plain(row)
    else:
        row["sustained"]["own"] |= {"joules": joules, "clock": built.clock(seconds, mhz, 2)}
    record = built.record(kernel.stem, [row])
    found = [clause for clause in said(record) if "FLOP per cycle" in clause or " W," in clause]
    assert bool(found) == bool(word) and all(word in clause for clause in found), found


def test_a_gpu_without_a_data_sheet_has_no_pipe_to_pass():
    record = copy.deepcopy(RECORD)
    record["gpu"] |= {"key": "RTX-4090", "name": "NVIDIA GeForce RTX 4090"}
    for variant in record["variants"].values():
        variant["bench"][0]["clock"] = built.clock(1e-3, 60.0, 5)
    assert not [clause for clause in said(record) if "pipe" in clause]


def document(stem):
    return built.document_of(records.read(records.path("H100", stem)))


def rows(record):
    return next(iter(record["variants"].values()))["bench"]


@pytest.mark.parametrize("stem, spoil, word", [
    ("cublas", lambda r: rows(r)[0].update(cublas_seconds=rows(r)[0]["seconds"] * 1.01),
     "cuBLAS takes"),
    ("rivals", lambda r: r["peers"]["alexarmbr"].update(half_sums=False), "half_sums is False"),
    ("search", lambda r: next(iter(r["searches"].values()))["hashes"].popitem(), "candidates are"),
    ("sweeps", lambda r: r["sweeps"]["double_buffer"]["rows"][0].update(warps=77), "77 warps"),
    ("sweeps", lambda r: r["sweeps"]["double_buffer"]["rows"][0]["spread"].popitem(),
     "are of other forms"),
    ("calibration", lambda r: r["metrics"].pop(), "40 counts of 39 metrics"),
    ("calibration", lambda r: next(iter(r["patterns"].values()))["offsets"].pop(), "31 lanes"),
])
def test_other_kinds_hang_together_too(stem, spoil, word):
    record = document(stem)
    spoil(record)
    found = said(record)
    assert any(word in clause for clause in found), found
