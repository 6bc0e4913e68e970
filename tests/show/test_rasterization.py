"""The order of tiles: the kernels' own, waves, and the bytes that they need."""

import pytest

from lib.kernels.catalogue import CATALOGUE
from lib.run.runner import run
from lib.show.rasterization import Raster


def test_every_tile_is_in_one_wave():
    for group, cluster in ((1, 1), (8, 1), (8, 2), (3, 2)):
        raster = Raster(2560, 1280, 64, (128, 256), group, cluster, 12)
        tiles = [tile for number in range(raster.waves) for tile in raster.wave(number)]
        assert len(tiles) == len(set(tiles)) == 20 * 5
        assert set(tiles) == {(row, column) for row in range(20) for column in range(5)}


def test_the_order_is_the_kernel_s():
    """Blocks of 16's smallest variant store where the model says that they do."""
    kernel = CATALOGUE["16_cp_async"]
    variant = min(kernel.variants, key=lambda v: v.tile[0] * v.tile[1] * v.step)
    rows, columns = variant.tile
    M, N = 10 * rows, 2 * columns
    raster = Raster(M, N, 64, variant.tile, variant.schedule.group)
    for block in (0, 9, 17, 19):
        done = run(kernel, variant.problem(M, N, 64), variant=variant, backend="emulator",
                   watch=(block, 0), exact=True)
        base = next(a.base for a in done.launch.allocations if a.argument == 7)
        stored = min(
            int(access.addresses[access.active].min())
            for site in done.launch.trace.sites if site.kind == "store" and site.space == "global"
            for access in done.launch.trace.watched[site.line]
        )
        row, column = divmod((stored - base) // 4, N)
        assert (row // rows, column // columns) == raster.place(block)


def test_a_wave_in_a_band_needs_less_than_one_row_by_row():
    wide = Raster(8192, 8192, 8192, (128, 256), 1)
    band = Raster(8192, 8192, 8192, (128, 256), 8)
    assert wide.needed(0) == (5 * 128 + 32 * 256) * 8192 * 2
    assert band.needed(0) == (8 * 128 + 17 * 256) * 8192 * 2
    # At 4,096 a wave is eight rows of sixteen tiles in either order, and four tiles more: of one
    # row, or of four.
    near = [Raster(4096, 4096, 4096, (128, 256), group).needed(0) for group in (1, 8)]
    assert near[1] - near[0] == 3 * 128 * 4096 * 2


def test_waves_that_are_not_full():
    raster = Raster(4096, 4096, 4096, (128, 256))
    assert raster.waves == 4 and raster.full == 512 / (4 * 132)
    assert len(raster.wave(3)) == 512 - 3 * 132
    with pytest.raises(ValueError, match="wave 4 of 4"):
        raster.wave(4)
    with pytest.raises(ValueError, match="no cluster of 2"):
        Raster(128, 128, 64, (128, 128), cluster=2, sms=1)
