"""How far the book comes: one answer, from the records, and the same wherever it is printed."""

import re

import nbformat
import pytest
import yaml
from msgspec import structs

from book import site
from lib.kernels.catalogue import KERNELS, RULES
from lib.paths import ROOT
from lib.records import ladder, reach, scoreboard
from lib.records import store as records
from lib.records.schema import KernelRecord
from lib.show.rivals import taken_apart
from tests import built

README = (ROOT / "README.md").read_text(encoding="utf-8")


def bench(**parts):
    """A row of the made record, as the store reads it, with some parts changed."""
    (row, *_) = built.parsed(built.record(rows=[built.row()])).variants["coalesced"].bench
    return structs.replace(row, **parts)


def test_noise_is_the_larger_of_spreads_and_of_what_cublas_moved():
    row = bench(spread=0.004, cublas_spread=0.002)
    still = row.rival.fastest.tflops
    assert structs.replace(row, cublas_tflops=still).noise == 0.004
    assert structs.replace(row, cublas_tflops=1.03 * still).noise == pytest.approx(0.03)
    assert structs.replace(row, cublas_tflops=still, cublas_spread=0.02).noise == 0.02


def step(share, noise=0.01, **parts):
    """A step of the ladder that reaches so much of a cuBLAS that does not move."""
    row = bench(spread=noise, **{"sustained": None} | parts)
    figure = ladder.Figure(4096, "float32", "float32", "row", "", row.tflops / share, 0.0)
    kernel = KERNELS["01_naive"]
    return ladder.Step(kernel, kernel.fastest, row, figure, None, False)


@pytest.mark.parametrize("share, verdict", [
    (1.02, "past"), (1.009, "level"), (0.991, "level"), (0.98, "below")])
def test_what_lies_within_the_noise_is_level(share, verdict):
    one = reach.Reach("FP32", step(share))
    assert one.verdict == verdict
    assert reach.short(one).startswith("level (") == (verdict == "level")


def test_who_is_past_in_short_turns_alone_is_level():
    (row,) = [row for row in ladder.load().entries["hopper/tuned"].bench if row.is_cube(4096)]
    for ratio, verdict in ((0.9, "level"), (1.3, "past")):
        own = structs.replace(row.sustained.own, seconds=row.sustained.cublas.seconds / ratio)
        long = structs.replace(row.sustained, own=own)
        one = reach.Reach("FP16", step(1.1, sustained=long))
        assert one.verdict == verdict
        assert ("sustained" in reach.short(one)) == (verdict == "level")


def test_a_share_is_never_without_its_spread():
    assert reach.give_or_take(1.0521, 0.00001) == "105.2 ± 0.1%"
    assert reach.give_or_take(0.2432, 0.057) == "24.3 ± 1.4%"
    said = reach.answer()
    assert len(re.findall(r"\d%", said)) == said.count("±") + said.count("within") + len(
        reach.PRICED)


def test_cublas_has_no_hopper_kernel_in_fp32_as_the_answer_says():
    met = {name for stem, kernel in KERNELS.items() if kernel.group == "FP32"
           for record in [records.load(KernelRecord, reach.GPU, stem)] if record
           for variant in record.variants.values() for row in variant.bench
           if row.dtype == "float32" for side in row.rival.sides for name in side.kernels or ()
           if "splitKreduce" not in name}
    assert met and not {name for name in met if taken_apart(name).arch.startswith("sm_9")}


def test_programmatic_launch_is_priced_by_a_pair_of_one_board():
    for size in reach.PRICED:
        rows = [next(row for row in reach._rows("22_few_tiles", reach.GPU, name)
                     if row.is_cube(size)) for name in (reach.WITHOUT, reach.WITH)]
        assert len({row.board for row in rows}) == 1
        assert reach.overlap(size) == pytest.approx(rows[1].tflops / rows[0].tflops - 1)
    assert reach.reach("FP16").programmatic and not reach.reach("FP32").programmatic


def test_nothing_recorded_is_said(results):
    with pytest.raises(records.NotRecorded, match="python -m lib record --ladder"):
        reach.reach("FP32")


@pytest.mark.parametrize("name", ["README.md", "CITATION.cff", "book/site.py"])
def test_whoever_says_how_far_says_the_verdict_of_the_records(name):
    text = " ".join((ROOT / name).read_text(encoding="utf-8").replace('"', " ").split())
    assert reach.reach("FP32").verdict == "past" and reach.reach("FP16").verdict == "level", (
        "the verdict has changed: README.md, CITATION.cff, book/site.py and paper/jose/paper.md "
        "say it in words")
    assert re.search(r"past the best of cuBLAS in FP32,? and\s+level with it in FP16", text)
    assert "beats cuBLAS" not in text


def test_the_descriptions_agree_with_readme():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["abstract"]
    for text in (citation, site.DESCRIPTION):
        assert "past the best of cuBLAS in FP32 and level with it in FP16" in text
        assert f"{reach.SIZE:,} on an {reach.GPU}" in text


def test_readme_s_answer_and_table_are_today_s():
    assert scoreboard.written(README) == README, "run `python -m lib results --readme`"
    assert reach.answer() in README


@pytest.mark.parametrize("page", ["rivals", "choosing"])
def test_a_page_that_answers_prints_the_same(page):
    document = nbformat.read(ROOT / f"chapters/{page}.ipynb", 4)
    printed = [str(output.data.get("text/markdown", "")) for cell in document.cells
               if cell.cell_type == "code" for output in cell.outputs
               if output.output_type == "display_data"]
    assert any(reach.answer() in text for text in printed)


def readme_parts():
    """README's sentences outside its table, and the table's rows by version."""
    head, _, rest = README.partition(scoreboard.BEGIN)
    table, _, tail = rest.partition(scoreboard.END)
    rows = {line.split("|")[1].strip().rstrip("†"): line for line in table.splitlines()
            if line.startswith("| ") and line.split("|")[1].strip().rstrip("†") in KERNELS}
    return re.split(r"(?<=[.:])\s+|\n\n", head + tail), rows


def test_no_sentence_of_readme_says_of_a_version_what_its_table_contradicts():
    sentences, rows = readme_parts()
    recorded = {name.partition("/")[0] for name in ladder.load().entries}
    assert set(rows) == recorded
    for sentence in sentences:
        named = {stem for stem in KERNELS if stem not in RULES and stem in sentence}
        if re.search(r"not (been )?recorded|no record|emulator alone|no speed", sentence):
            assert not named & recorded, sentence
    taken = {name[:2] for rule in RULES.values() for variant in rule.variants
             for name in variant.candidates}
    said = re.findall(r"\b\d\d\b", rows["hopper"].split("|")[2])
    assert set(said) == taken
    # What is timed of a version that does more than a product is named, with its types.
    first = KERNELS["25_epilogue"].fastest
    assert f"`{first.name}`" in rows["25_epilogue"] and first.meaning in rows["25_epilogue"]
    assert scoreboard.TYPES[first.dtype] in rows["25_epilogue"]


def test_readme_shows_no_version_at_a_size_that_it_is_not_for():
    _, rows = readme_parts()
    for stem in ("22_few_tiles", "24_any_row"):
        assert "for other shapes" in rows[stem] and "%" not in rows[stem]
    shares = [cell for line in rows.values() for cell in line.split("|")[5:7] if "%" in cell]
    assert shares and all("±" in cell for cell in shares)
    for stem, line in rows.items():
        marked = line.startswith(f"| {stem}†")
        assert marked == KERNELS[stem].fastest.programmatic_launch
