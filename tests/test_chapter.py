"""What pages show: every recorded number equals its record, and each says what kind it is."""

import html
import re

import pytest

from lib import chapter
from lib.chapter import Chapter
from lib.dispatch.plan import plan
from lib.kernels.catalogue import CATALOGUE, in_book
from lib.problem import Problem
from lib.records import ladder, predictions
from lib.records import store as records
from lib.records.reader import RecordedRival, counted
from lib.records.schema import CalibrationRecord, KernelRecord, MachineRecord
from lib.run import device
from lib.show.counters import calibrated
from lib.show.ladder import draw as draw_ladder
from lib.show.roofline import roofs_table
from lib.show.speed import SPEED_SIZES, provenance
from lib.show.version import Version, roof, short_name
from tests.pages import cells

PAGES = [pytest.param(Chapter(stem), id=stem) for stem in in_book()]
# A version is there before it was measured: then it has no record to show.
RECORDED = [
    pytest.param(Chapter(stem), id=stem) for stem in in_book()
    if records.load(KernelRecord, chapter.RECORDED_ON, stem)
]
# Some parts set a version beside the one before.
RECORDED_TOO = [
    one for one in RECORDED if (before := one.values[0].version.before) is None
    or records.load(KernelRecord, chapter.RECORDED_ON, before.kernel.stem)
]


def every_third(pages):
    """Mark two thirds of the pages slow: each of them is a run of its kernel."""
    return [page if place % 3 == 0 else pytest.param(*page.values, id=page.id,
                                                     marks=pytest.mark.slow)
            for place, page in enumerate(pages)]


def dealt(pages, parts):
    """Parts with pages: each part with every seventh, each page with one or two; others slow."""
    return [pytest.param(*page.values, *part, id=f"{part[0]}-{page.id}",
                         marks=() if (3 * place + number) % 7 == 0 else pytest.mark.slow)
            for place, page in enumerate(pages) for number, part in enumerate(parts)]


@pytest.mark.parametrize("page", RECORDED)
def test_speeds_are_those_of_the_record(page, shown, monkeypatch):
    monkeypatch.setattr(device, "available", lambda: False)
    page.speed()
    record = records.load(KernelRecord, chapter.RECORDED_ON, page.kernel.stem)
    if lacking := [v.name for v in page.kernel.variants if v.name not in record.variants]:
        assert "Not recorded yet" in shown[0] and lacking[0] in shown[0]
        return
    expected = [
        [name, f"{row.M:,}", f"{row.tflops:.2f}", f"{row.cublas_tflops:.2f}",
         f"{row.ratio:.1%}", f"{100 * row.spread:.1g}%"]
        for name in (variant.name for variant in page.kernel.variants)
        for row in record.variants[name].bench
        if row.M == row.N == row.K and row.M in SPEED_SIZES
    ]
    assert cells(shown[0]) == expected and expected
    assert records.label(record) in shown[0]


def test_the_ladder_s_bars_are_those_of_the_records(shown):
    draw_ladder()
    bars = dict(re.findall(r"<span>(\d\d [^<]+)</span>.+?<b>([\d.]+)\*?</b>",
                           html.unescape(shown[0])))
    # What does more than a product, scales its operands or is for other shapes has no bar.
    expected = {short_name(step.kernel): round(100 * step.share)
                for step in ladder.steps(ladder.load()) if step.row.out == "float32"
                and not step.elsewhere and step.kernel.stem in in_book()}
    assert {*bars} == {*expected} and "01 naive" in bars
    assert all(abs(float(bars[name]) - share) <= 1 for name, share in expected.items())
    assert "not recorded yet" not in shown[0]  # what isn't there has no bar
    assert "recorded: H100" in shown[0]


def test_what_is_not_recorded_is_said_with_the_command_that_records_it(shown, monkeypatch):
    monkeypatch.setattr(records, "load", lambda *_, **__: None)
    monkeypatch.setattr(device, "available", lambda: False)
    for part in ("speed", "timeline", "busiest"):
        getattr(Chapter("02_shared_tile"), part)()
        assert "python -m lib record 02_shared_tile" in shown.pop()
    with pytest.raises(records.RecordError, match="python -m lib record cublas"):
        RecordedRival("H100").counters(4096, "fp32")
    assert not shown


def test_a_page_goes_on_where_nothing_is_recorded_and_says_so(shown, monkeypatch):
    monkeypatch.setattr(device, "available", lambda: False)
    with chapter.once_recorded():
        chapter.note("before")
        Chapter("02_shared_tile").version.recorded(12345)
        chapter.note("after")
    assert shown[0] == "before" and len(shown) == 2
    assert shown[1].startswith("*Not recorded yet: ") and "12,345" in shown[1]
    assert "python -m lib record 02_shared_tile" in shown[1]
    with pytest.raises(records.RecordError, match="torn"), chapter.once_recorded():
        raise records.RecordError("torn")
    version = Chapter("02_shared_tile").version
    for missing in (lambda: version.metrics(12345),
                    lambda: version.reader.bench(4096, ptx_arch="sm_75"), lambda: roof("none")):
        with pytest.raises(records.NotRecorded):
            missing()


@pytest.mark.parametrize("stem", [stem for stem, kernel in in_book().items()
                                  if kernel.group == "FP16" and kernel.ptx_archs])
def test_the_emulator_counts_of_older_ptx_what_ncu_counted(stem):
    """Of the first variant, whose code of sm_75 is recorded, assembled for the recorded GPU."""
    version = Version(stem)
    first = version.kernel.variants[0].name
    measured = counted(version.reader.code(first, "sm_75").counters, 256)
    trace = version.run(Problem(256, 256, 256), first, backend="emulator", arch="sm_75",
                        exact=True).trace
    matrix = trace.matrix_counters()
    counts = {**trace.counters(), "ldmatrix_instructions": matrix["ldmatrix_instructions"]}
    # What wmma.load becomes differs between sm_75 and the GPU that ran it; mma is one HMMA.
    if not matrix["wmma_instructions"]:
        counts["hmma_instructions"] = matrix["mma_instructions"]
        both = {name: count for name, count in counts.items() if name in measured}
        assert len(both) > 8 and both == {name: measured[name] for name in both}


def test_a_stale_record_is_marked_on_the_ladder_and_in_the_table(shown, monkeypatch):
    monkeypatch.setattr(records, "current", lambda kernel, name, variant: None)
    monkeypatch.setattr(ladder, "stale", lambda *_: True)
    draw_ladder()
    Chapter("01_naive").speed()
    assert all("stale" in text for text in shown)


# Versions whose first variant's lanes neither read nor write global memory: TMA loads and stores.
# And a variant whose lanes do, if there is one.
ALL_BY_TMA = {
    "20_persistent": ["persistent"], "21_clusters": ["waiting"], "23_stream_k": [],
    "25_epilogue": ["residual"], "27_tcgen05": ["unstaged"], "28_cta_pairs": ["unstaged"],
}


@pytest.mark.parametrize("page, part, kind", dealt(PAGES, [
    ("resources", "modelled"), ("occupancy", "modelled"), ("check", "emulated"),
    ("counters", "emulated"), ("coalescing", "emulated")]) + dealt(RECORDED_TOO, [
        ("speed", "recorded"), ("timeline", "recorded"), ("roofline", "recorded"),
        ("busiest", "modelled"), ("issue_slots", "recorded")]))
def test_every_part_says_what_kind_of_evidence_it_is(page, part, kind, shown, monkeypatch):
    monkeypatch.setattr(device, "available", lambda: False)
    first = [page.kernel.variants[0].name] if part in ("check", "counters", "coalescing") else []
    if part == "coalescing" and page.kernel.stem in ALL_BY_TMA:
        with pytest.raises(ValueError, match="draw its boxes instead"):
            page.coalescing(*first)
        first = ALL_BY_TMA[page.kernel.stem]
        if not first:
            return
    getattr(page, part)(*first)
    if part == "timeline" and page.version.record.variants[
            page.kernel.variants[0].name].timeline is None:
        kind = "Not recorded yet"
    assert re.search(rf"\b{kind}: ", "\n".join(shown))


def test_predictions_are_of_variants_and_of_single_steps():
    for stem, guesses in predictions.PREDICTIONS.items():
        assert set(guesses) <= {variant.name for variant in CATALOGUE[stem].measured}
        assert all(abs(guess.gain) < 1 and guess.because for guess in guesses.values())


def test_counters_are_those_of_the_trace(shown):
    page = Chapter("02_shared_tile")
    page.counters()
    counted = page.run(backend="emulator").launch.trace.counters()
    table = {row[0]: row[1] for row in cells(shown[0])}
    assert {key: f"{value:,}" for key, value in counted.items()}.items() <= {
        key.replace(" ", "_"): value for key, value in table.items()
    }.items()


def test_a_version_is_traced_where_it_has_several_blocks():
    assert Chapter("02_shared_tile").version.problem == chapter.TRACED
    for stem in in_book():
        page = Chapter(stem)
        for variant in page.kernel.variants:
            problem = variant.typed(page.version.problem)
            assert plan(page.kernel, variant, problem, exact=True).launch.grid != (1, 1, 1)


@pytest.mark.parametrize("page", every_third(PAGES))
def test_a_trace_has_addresses(page):
    assert any(page.version.traced().launch.trace.watched.values())


def test_a_wrong_kernel_shows_in_the_table_of_checks(shown, monkeypatch):
    monkeypatch.setattr("lib.problem.ROUNDING_MARGIN", 1e-9)
    Chapter("02_shared_tile").check()
    assert "**wrong" in shown[0]


def test_roofs_and_provenance_come_from_the_records(shown):
    roofs_table()
    provenance()
    # The L2's copy is passed by kernels, and is no roof.
    roofs = [(record.gpu.key, roof.method) for record in records.every()
             if isinstance(record, MachineRecord)
             for kind, roof in record.roofs.named().items() if kind != "l2"]
    rows = cells(shown[0])
    assert chapter.RECORDED_ON in {key for key, _ in roofs}
    assert sorted((row[0].partition(",")[0], row[-1]) for row in rows) == sorted(roofs)
    words = shown[1]
    assert words.startswith("<details>") and "in turns" in words
    stored = [one for one in records.every() if not one.revision.endswith("-dirty")]
    assert all(f"| {one.kernel} | {one.gpu.key} |" in words for one in stored)
    assert "-dirty" not in words and stored[0].gpu.driver in words


def test_every_recorded_pattern_is_of_an_access_that_the_page_names(shown):
    calibrated()
    record = records.load(CalibrationRecord, chapter.RECORDED_ON)
    counts = [int(count) for _, count in cells(shown[0])]
    baselines = [name for name in record.patterns if name.endswith(": baseline")]
    assert min(counts) > 0 and sum(counts) == len(record.patterns) - len(baselines)
