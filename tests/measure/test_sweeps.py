"""The sweeps: their forms are right and what they claim to be, their settings fit the SM."""

import pytest
from msgspec import structs

from lib import gpus
from lib.kernels import catalogue as kernels
from lib.measure import sweeps as measured
from lib.records import store as records
from lib.records import sweeps
from lib.records.schema import Sweep, SweepsRecord, Swept
from lib.run import runner
from lib.show.instruction_order import work_between
from lib.show.occupancy import occupancy
from tests import built

H100 = gpus.GPUS["H100"]
SMALL = sweeps.TILES[0]


# Of the tiles, which differ in sizes, every fifth: the others are slow.
TILES = [pytest.param(tile, id=tile.name, marks=() if place % 5 == 0 else pytest.mark.slow)
         for place, tile in enumerate(sweeps.TILES)]


@pytest.mark.parametrize("form", sweeps.FORMS)
def test_each_form_is_right_and_without_races(form):
    kernel = kernels.find(sweeps.STEM)
    chosen = sweeps.variant(SMALL, form)
    done = runner.run(
        kernel, chosen.problem(70, 52, 36), variant=chosen, backend="emulator", exact=True,
        source=sweeps.source(form), races=True,
    )
    assert done.verdict.ok
    assert not done.launch.hazards


@pytest.mark.parametrize("tile", TILES)
def test_only_the_late_form_has_no_arithmetic_between_loads_and_stores(tile):
    (forms, *_) = measured.settings(tile, "sm_90a", H100)
    work = {form: work_between([each.opcode for each in one.compiled.inner_loop])
            for form, one in forms.items()}
    assert work[sweeps.LATE] == 0
    assert min(work[sweeps.STAGED], work[sweeps.DOUBLE]) > 0


@pytest.mark.parametrize("tile", TILES)
def test_as_many_blocks_fit_as_a_setting_says(tile):
    chosen = measured.settings(tile, "sm_90a", H100)
    assert [forms[sweeps.LATE].blocks for forms in chosen] == [1, 2, 4, 8, 16][: len(chosen)]
    for forms in chosen:
        for one in forms.values():
            used = one.compiled.resources
            assert used.spill_load_bytes + used.spill_store_bytes == 0
            fits = occupancy(H100, used.registers, used.shared_bytes + one.variant.shared_bytes,
                             one.variant.threads)
            assert fits.blocks == one.blocks


def test_source_that_has_lost_the_moved_lines_is_refused():
    with pytest.raises(ValueError, match="loading_late"):
        sweeps.loading_late("__global__ void f() {}")


def row(tile=SMALL):
    return Swept(block=tile.block, warp=tile.warp, hashes=sweeps.hashes(tile),
                 seconds={"late": 3.0, "staged": 2.0, "double": 1.5},
                 spread=dict.fromkeys(sweeps.FORMS, 0.01),
                 registers=dict.fromkeys(sweeps.FORMS, 40), blocks=1, warps=2,
                 cublas_seconds=1.0)


def sweep(*rows):
    return Sweep(kernel=sweeps.STEM, shape=(4096,) * 3, method="in turns", rows=list(rows))


def test_gain_and_intensity():
    assert sweeps.gain(row()) == pytest.approx(1.0)
    assert sweeps.gain(row(), sweeps.STAGED) == pytest.approx(0.5)
    # 32×32: 2·32·32 FLOP for 2·32 floats of 4 bytes, at each step of K
    assert sweeps.intensity(row()) == pytest.approx(8.0)


def test_a_sweep_is_stale_when_a_form_or_a_tile_has_changed():
    assert not sweeps.stale(sweep(row()))
    assert sweeps.stale(sweep(structs.replace(row(), hashes={"late": "0"})))
    assert sweeps.stale(sweep(structs.replace(row(), warp=(8, 8))))
    late, staged = (sweeps.hashes(SMALL)[form] for form in (sweeps.LATE, sweeps.STAGED))
    assert late != staged


def test_a_record_of_sweeps_is_read(tmp_path):
    head = built.parsed(built.machine())
    made = SweepsRecord.of(structs.replace(head, kernel=SweepsRecord.STEM),
                           sweeps={sweeps.DOUBLE_BUFFER: sweep(row())})
    file = records.write(made, tmp_path)
    found = records.load(SweepsRecord, "H100", root=tmp_path)
    assert structs.replace(found, digest="") == made
    file.write_text(file.read_text().replace('"sweeps": {', '"swept": {'))
    with pytest.raises(records.RecordError, match="missing required field `sweeps`|`swept`"):
        records.load(SweepsRecord, "H100", root=tmp_path)


def test_one_row_of_other_constants_makes_a_sweep_stale():
    sweep = records.load(SweepsRecord, "H100").sweeps["double_buffer"]
    today = {(tile.block, tile.warp): sweeps.hashes(tile) for tile in sweeps.TILES}
    rows = [structs.replace(row, hashes=today[row.block, row.warp]) for row in sweep.rows]
    assert not sweeps.stale(structs.replace(sweep, rows=tuple(rows)))
    rows[-1] = structs.replace(rows[-1], hashes={})
    assert sweeps.stale(structs.replace(sweep, rows=tuple(rows)))
