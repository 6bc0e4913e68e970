"""Which thread copies what of 09's stage: the model's indices against the emulator's addresses."""

import pytest

from lib.kernels.catalogue import CATALOGUE
from lib.plotting import display
from lib.problem import Problem
from lib.topics.memory.copies import page
from lib.topics.memory.copies.model import Piece, stage
from lib.topics.version import Version

KERNEL = CATALOGUE["09_fp32_limit"]


@pytest.mark.parametrize("warp", [0, 2, 7])
def test_copies_go_where_the_emulator_writes_them(warp):
    """Of the first tile, which the prologue copies: all six of each lane, in their order."""
    variant = KERNEL.variant("large")
    one = stage(variant)
    done = Version(KERNEL.stem).run(Problem(128, 256, 8), "large", backend="emulator", exact=True,
                                    watch=(0, warp), arch="sm_80")
    (shared,) = [one for one in done.launch.shared if one.argument == "shared"]
    traced = done.launch.traced
    first = sorted(
        (accesses[0] for site in traced.sites if site.kind == "copy" and site.space == "shared"
         and (accesses := traced.watched.get(site.line))), key=lambda access: access.step)
    assert len(first) == one.copies == 6
    for copy, access in enumerate(first):
        pieces = [one.piece(32 * warp + lane, copy) for lane in range(32)]
        assert [int(at) - shared.base for at in access.addresses] == [p.offset for p in pieces]
        assert access.bytes_per_lane == 4 * pieces[0].floats


def test_a_stage_is_filled_once_by_steps_in_turn():
    spread, at_once = (stage(KERNEL.variant(name)) for name in ("large", "at_once"))
    filled = [(piece.tile, piece.row, piece.column + i) for copy in range(spread.copies)
              for thread in range(spread.threads)
              for piece in [spread.piece(thread, copy)] for i in range(piece.floats)]
    assert len(filled) == len(set(filled)) == 8 * (128 + 256)
    assert [spread.step(copy) for copy in range(6)] == [0, 1, 2, 3, 4, 5]
    assert {at_once.step(copy) for copy in range(6)} == {0}
    assert spread.piece(70, 4) == Piece("B", 1, 24, 4, 8 * 132 * 4 + 4 * (256 + 24))
    assert spread.nbytes == KERNEL.variant("large").shared_bytes // 3
    with pytest.raises(ValueError, match="warp_64x64 spreads no copies"):
        stage(CATALOGUE["08_warp_tile"].variant("warp_64x64"))


def test_a_stage_s_copies_are_drawn_with_their_formulae():
    with display.collected() as figures:
        page.draw(Version(KERNEL.stem), "at_once", "large")
    (scene,) = figures
    assert scene.title == "Each thread issues 1 copy in each of 6 steps, and none in the last 2"
    assert "m = t / 8 + 32 i" in scene.text and "byte 4,224 + 1,024 k + 4 n" in scene.text
    assert "0–5" in scene.text
    # Thread 70's copy 5: of B, k = 5, from column 24 on.
    own = scene.body.split("B, 8×256")[1].partition('class="focus" d="')[2].partition('"')[0]
    assert len(own.split("M")[1:]) == 2
