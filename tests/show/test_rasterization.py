"""The order of tiles: the kernels' own, and waves."""

from lib.kernels.catalogue import CATALOGUE
from lib.run.runner import run
from lib.show.rasterization import Raster


def test_every_tile_has_a_place():
    for group in (1, 8, 3):
        raster = Raster(2560, 1280, 64, (128, 256), group)
        places = {raster.place(index) for index in range(raster.rows * raster.columns)}
        assert places == {(row, column) for row in range(20) for column in range(5)}


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


def test_waves_that_are_not_full():
    raster = Raster(4096, 4096, 4096, (128, 256))
    assert raster.waves == 4 and raster.full == 512 / (4 * 132)
