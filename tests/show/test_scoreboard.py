"""The scoreboard holds all that is recorded, at the records' own shares, and its CSV is whole."""

import csv
import io

import pytest
from bs4 import BeautifulSoup
from msgspec import structs

from lib.__main__ import main
from lib.kernels.catalogue import CATALOGUE, KERNELS
from lib.kernels.shapes import CUBES
from lib.records import store as records
from lib.records.schema import KernelRecord, RivalsRecord
from lib.show import scoreboard as model
from lib.show.version import short_name
from tests import built

GPU = "H100"
EVERY = (*model.TYPES, *model.SCALED)
BY_KEY = {types.key: types for types in EVERY}


@pytest.fixture(scope="module")
def boards():
    """The groups of the committed records."""
    return {types.key: model.board(GPU, types) for types in EVERY}


def lines(board):
    """All lines, variants' too."""
    return [one for line in board for one in (line, *line.variants)]


def drafts(record):
    """The chunks of a record that are of no commit."""
    return {name for name, chunk in record.chunks.items() if chunk.revision.endswith("-dirty")}


def test_every_recorded_variant_is_in_the_group_of_its_types(boards):
    for stem in CATALOGUE:
        record = records.load(KernelRecord, GPU, stem)
        for name, variant in record.variants.items() if record else ():
            for row in variant.bench:
                if row.chunk in drafts(record):
                    continue
                if not any(types.has(row) for types in EVERY):
                    # What isolates a layout, say, is compared with its neighbour and in no group;
                    # nor are 8-bit floats with fast sums, or with C in FP32.
                    assert row.scaling or name in {step.name for step in CATALOGUE[stem].steps}
                    continue
                (key,) = [types.key for types in EVERY if types.has(row)]
                mine = [one for one in lines(boards[key]) if one.record.endswith(f"{stem}.json")
                        and name in (one.name, one.note)]
                assert len(mine) == 1, (stem, name)
                cell = mine[0].cells[row.shape]
                assert (cell.tflops, cell.share) == (row.tflops, row.ratio)
                assert cell.noise == row.noise and row.board.startswith(
                    cell.board.partition(",")[0].removeprefix("board "))
                assert cell.capped == model.held_down(row, record.gpu.key)


def test_no_line_says_not_recorded_above_rows_that_are(boards):
    for board in boards.values():
        for line in board:
            assert line.note != model.NOT_YET or not (line.cells or line.variants)
    assert all("26 FP8" in {line.name for line in boards[types.key]} for types in model.SCALED)


def test_what_a_draft_measured_stands_on_no_board(results):
    record = built.record()
    for chunk in record["chunks"].values():
        chunk["revision"] = "abc-dirty"
    built.write(record)
    assert model.board(GPU, BY_KEY["fp32"]) == []
    record["chunks"] = built.chunks()
    built.write(record)
    first, second, *_ = model.board(GPU, BY_KEY["fp32"])
    assert (first.name, bool(first.cells)) == ("01 naive", True)
    assert (second.name, second.cells, second.note) == ("02 shared tile", {}, model.NOT_YET)
    text = model.cubes_html(GPU, [(BY_KEY["fp32"], [first, second])])
    row = BeautifulSoup(text, "html.parser").select("tbody tr")[-1]
    assert row.get_text(" ", strip=True) == "02 shared tile not recorded yet"


def test_the_share_comes_first_and_a_capped_one_is_marked(results):
    # By the clock of the launches: what NVML saw at some moments is neither here nor there.
    high, low = ({"clock": built.clock(seconds, mhz, 5)} for seconds, mhz in (
        (1e-3, 1980.0), (8e-3, 1600.0)))
    built.write(built.record(rows=[
        built.row(1024) | high | {"throttle": ["power cap"]},
        built.row(2048, 8e-3, 5e-3, 4e-3) | low | {"throttle": []}]))
    (line, *_) = model.board(GPU, BY_KEY["fp32"])
    soup = BeautifulSoup(model.cubes_html(GPU, [(BY_KEY["fp32"], [line])]), "html.parser")
    free, capped = soup.select_one("tbody tr").find_all("td")
    assert free.get_text(" ", strip=True) == "50.0% ± 0.5 2.1"
    assert capped.get_text(" ", strip=True) == "50.0% ▾ below the clock of the peak ± 0.5 2.1"


def test_every_recorded_peer_stands_behind_the_version_that_it_met(boards):
    record = records.load(RivalsRecord, GPU)
    for name, peer in record.peers.items():
        for row in peer.rows:
            (key,) = [types.key for types in EVERY if types.has(row)]
            names = [line.name for line in boards[key]]
            line = boards[key][names.index(name)]
            assert line.cells[row.shape].share == row.ratio
            if peer.half_sums:
                assert names[-1] == name and "not ranked" in line.note
                assert line.cells[row.shape].of == model.HALF_SUMS
            elif row.ours.kernel in CATALOGUE:  # else it met what is gone
                before = [one for one in boards[key][:names.index(name)] if not one.peer][-1]
                assert before.name == short_name(CATALOGUE[row.ours.kernel])


def test_a_peer_that_met_none_of_ours_stands_last(results):
    built.write(built.record())
    built.write(rivals(theirs=False, halves=True))
    names = [line.name for line in model.board(GPU, BY_KEY["fp32"])]
    assert names[:3] == ["01 naive", "theirs", "02 shared tile"] and names[-1] == "halves"


def rivals(**peers):
    """A record of public kernels: by name whether it adds up in FP16."""
    row = {key: value for key, value in built.row(1024).items()
           if key not in ("cublas_spread", "instantiation", "rounds", "series", "spread_within",
                          "inputs", "turns", "sustained", "alone", "cublas_alone", "pair",
                          "trials", "packing", "other_inputs", "rival")}
    row["clock"] = built.clock(row["seconds"])
    ours = {"ours": {"kernel": "01_naive", "variant": "coalesced", "seconds": 1e-3, "spread": 0.0,
                     "tflops": row["tflops"]}, "rival": built.row(1024)["rival"]}
    made = built.head("rivals") | {"chunks": built.chunks()}
    return made | {"peers": {
        name: {"repository": "a/b", "revision": "abc", "licence": "MIT", "half_sums": half,
               "rows": [row | {"configuration": "64x64"} | ({} if half else ours)]}
        for name, half in peers.items()
    }}


def test_the_default_is_named_where_a_record_has_no_better(results):
    built.write(built.record(rows=[
        built.by_default(built.row()) | {"clock": built.clock(1e-3, 1980.0, 5)}]))
    line, *_ = model.board(GPU, BY_KEY["fp32"])
    assert line.cells[(1024,) * 3].of == model.DEFAULT
    text = model.cubes_html(GPU, [(BY_KEY["fp32"], [line])])
    cell = BeautifulSoup(text, "html.parser").select_one("tbody td")
    assert cell.get_text(" ", strip=True).startswith("50.0% of its default")


def test_stale_cells_are_marked(monkeypatch, results):
    built.write(built.record())
    for changed in (False, True):
        monkeypatch.setattr(records, "current", lambda kernel, name, stored, changed=changed: (
            None if changed else stored))
        board = model.board(GPU, BY_KEY["fp32"])
        text = model.cubes_html(GPU, [(BY_KEY["fp32"], board)])
        assert ("(stale)" in text) == changed


def test_a_missing_cell_says_so_and_every_other_leads_to_its_record(boards):
    soup = BeautifulSoup(
        model.cubes_html(
            GPU, [(BY_KEY[key], board) for key, board in boards.items()]),
        "html.parser")
    head = [cell.get_text() for cell in soup.find("thead").find_all("th")]
    columns = [size for size in CUBES if any(
        (size,) * 3 in line.cells for board in boards.values() for line in board)]
    assert head == ["version", *(f"{size:,}" for size in columns)]
    cells = soup.select("tbody td")
    whole = [one for board in boards.values() for one in lines(board)]
    recorded = [one for one in whole if one.note != model.NOT_YET]
    assert len(cells) == len(columns) * len(recorded) + len(whole) - len(recorded)
    empty = [cell for cell in cells if not cell.find("a")]
    assert empty and all("not recorded" in cell.get_text() for cell in empty)
    for link in soup.select("tbody td a"):
        folder, file = link["href"].split("/results/")
        assert folder == ".." and (records.RESULTS / file).is_file()


def test_the_switch_and_the_handles_have_names_and_what_they_show(boards):
    shown = [(BY_KEY[key], board) for key, board in boards.items()]
    soup = BeautifulSoup(model.cubes_html(GPU, shown), "html.parser")
    radios = soup.select("input[type=radio]")
    assert [one["value"] for one in radios] == [part["data-types"] for part in
                                                soup.select(".board-part")]
    assert len({one["name"] for one in radios}) == 1
    assert [one.has_attr("checked") for one in radios] == [True] + [False] * (len(radios) - 1)
    assert all(one.parent.name == "label" and one.parent.get_text(strip=True)
               for one in soup.find_all("input"))
    # A check box wherever there is something to show, and nowhere else.
    for body in soup.select(".board-line"):
        assert bool(body.select(".board-variant")) == bool(body.select("input[type=checkbox]"))
    # Each group has a rule that hides it while another is checked.
    style = soup.find("style").get_text()
    assert all(f"input[value={one['value']}]:checked" in style for one in radios)
    other = BeautifulSoup(model.others_html(GPU, shown), "html.parser")
    assert other.find("input")["name"] != radios[0]["name"], "one switch would move the other"


def test_names_of_others_can_t_become_markup():
    line = model.Line("<b>x", 'h100/"><i>.json', {(512,) * 3: model.Cell(1.0, 0.5)}, "<u>")
    text = model.cubes_html("<i>", [(BY_KEY["fp32"], [line])])
    assert not {"b", "i", "u"} & {tag.name for tag in BeautifulSoup(text, "html.parser").find_all()}


def test_the_csv_gives_back_every_row():
    read = list(csv.DictReader(io.StringIO(model.csv_text())))
    ours = [row for row in read if row["kernel"] in KERNELS]
    stored = records.rows()
    assert len(ours) == len(stored)
    for line, row in zip(ours, stored, strict=True):
        for key in model.CSV_KEYS:
            value = getattr(row, key)
            assert line[key] == str(value)
            if isinstance(value, float):
                assert float(line[key]) == value
    peers = {(gpu, name) for gpu in (GPU, "H200") for name in records.load(RivalsRecord, gpu).peers}
    assert {(row["gpu"], row["kernel"]) for row in read if row["kernel"] not in KERNELS} == peers


def test_what_runs_below_the_clock_of_the_peak_is_held_down(results):
    built.write(built.record(rows=[built.row(2048, 0.1, 0.06, 0.05) | {
        "clock": built.clock(0.1, 1975.0, 5)}]))
    # Where no clock is recorded, NVML's reasons are asked.
    bench, *_ = (v.bench for v in records.load(KernelRecord, GPU, "01_naive").variants.values())
    bare = structs.replace(bench[0], clock=None, throttle=["power cap"])
    assert model.held_down(bare, GPU)
    assert not model.held_down(structs.replace(bare, throttle=[]), GPU)
    assert not model.held_down(structs.replace(bare, throttle=None), GPU)
    # Tensor cores' peak is at a clock of its own, 1,830 MHz of an H100.
    fast = structs.replace(bench[0].clock, mhz=1815.0)
    assert model.held_down(structs.replace(bare, clock=fast), GPU)
    assert not model.held_down(structs.replace(bare, clock=fast, dtype="float16"), GPU)


def test_without_records_it_names_the_command(results):
    with pytest.raises(records.NotRecorded, match="python -m lib record"):
        model.cubes()


def test_the_command_line_prints_the_same_csv(capsys):
    assert main(["results", "--csv"]) == 0
    assert capsys.readouterr().out == model.csv_text()
