"""The two accounts: predicted from emulated counters, and read from recorded ones."""

import re
import statistics

import pytest
from msgspec import structs

from lib import paths
from lib.compiler.arch import BLACKWELL
from lib.gpus import GPUS
from lib.kernels.catalogue import CATALOGUE, in_book
from lib.records import noise
from lib.show import accounts as model
from lib.show.numbers import Numbers
from lib.show.version import Version, short_name
from tests.pages import cells

H100 = GPUS["H100"]


@pytest.mark.parametrize("stem, name, each", [
    ("01_naive", "coalesced", 2.0), ("01_naive", "swapped", 33.0),
    ("02_shared_tile", "tile32", 1.625), ("10_wmma", "one_fragment", 0.501),
    # Asynchronous copies take wavefronts of shared memory, and none for the lines that they read.
    ("09_fp32_limit", "copies", 0.1333),
    # Half of the warps load and the other half multiply; both are counted.
    ("12_wmma_pipeline", "roles", 0.1101),
])
def test_wavefronts_are_predicted(stem, name, each):
    assert model.predicted(stem, name, H100, 4096) == pytest.approx(each, rel=2e-3)


def test_a_size_that_tiles_do_not_divide_is_refused():
    with pytest.raises(ValueError, match="4100 is no multiple of coalesced's tile"):
        model.predicted("01_naive", "coalesced", H100, 4100)


@pytest.mark.parametrize("size", [1024, 4096])
def test_cap_times_busy_is_the_share(size):
    cycles, served = 10.0 * size, 3.0 * size**3 / 32
    found = model.wavefront_account({"cycles": cycles, "l1_wavefronts": served}, size, 100, 256)
    assert found.each == pytest.approx(3.0) and found.cap == pytest.approx(1 / 12)
    assert found.cap * found.busy == pytest.approx(found.share)


def test_three_factors_are_the_share():
    """An SM of two at work for half of the time, its tensor cores busy in a half of that."""
    found = {"cycles": 1000.0, "active_cycles": 4 * 2 * 500.0, "tensor_pipe_percent": 50.0}
    flops = 2 * 500 * 0.5 * model.RATES["wgmma"]
    size = (flops / 2) ** (1 / 3)
    account = model.tensor_account(found, size, 2, 4096)
    assert (account.busy, account.active) == (0.5, 0.5)
    assert account.share == pytest.approx(account.busy * account.active)
    assert model.rate(found, flops) == pytest.approx(4096)
    with pytest.raises(ValueError, match="did nothing"):
        model.tensor_account({**found, "tensor_pipe_percent": 0.0}, size, 2, 4096)


@pytest.mark.parametrize("instruction", model.RATES)
def test_the_rate_is_a_constant_of_the_instruction(instruction):
    """Over all records; busy and active cycles are counted in two passes, which differ."""
    measured = model.measured_rates()[instruction]
    off = [abs(one / model.RATES[instruction] - 1) for one in measured]
    assert len(off) > 10 and statistics.median(off) < 0.01 and max(off) < 0.07
    assert sum(one > 0.04 for one in off) <= 0.06 * len(off)


def test_a_profiled_launch_that_differs_from_the_timed_ones_says_so(shown):
    model.every()
    rows = {row[0][1:3]: row for row in cells(shown[1])}
    for stem, apart in (("25_epilogue", True), ("14_ldmatrix", False)):
        numbers = Numbers(stem)
        share = rows[stem[:2]][3]
        cycles, rate = numbers.row().clock.cycles, H100.flops_per_cycle("float16")
        timed = model.share(cycles, 4096, H100.sms, rate)
        assert (abs(numbers.metric("cycles") / cycles - 1) > model.APART) is apart
        assert share.endswith(f"; timed {timed:.1%}") is apart


def test_no_page_but_the_method_s_shows_a_rate():
    """It is a constant of the instruction, and none of a kernel."""
    stems = [path.stem for path in paths.CHAPTERS.glob("*.ipynb")
             if re.search(r"FLOP per (tensor-)?busy cycle", path.read_text())]
    assert stems == ["method"]


def test_a_row_without_a_record_says_so_and_the_others_stand(shown, monkeypatch):
    from lib.records import store

    class Bare(Version):
        def of(self, stem):
            other = Version(stem)

            def missing(*_):
                raise store.NotRecorded("python -m lib record 01_naive")

            other.metrics = other.recorded = missing
            return other

    model.wavefronts(Bare("02_shared_tile"))
    model.tensor(Bare("14_ldmatrix"))
    first, second = shown
    above, own = first.splitlines()[2:4]
    assert above == ("| 01 naive | 2 / not recorded yet | 12.5% |  | not recorded yet | "
                     "not recorded yet |")
    assert re.match(r"\| 02 shared tile \| 1\.63 / 1\.6\d \| 15\.\d% \| \d+\.\d% \|", own)
    assert all(float(number.replace(",", "")) > 1 for number in own.strip("| ").split(" | ")[4:6])
    assert "| not recorded yet | not recorded yet | not recorded yet |" in second.splitlines()[2]


def of_change(text, change):
    """The cells of a pair, by the beginning of what is changed."""
    return next(row for row in cells(text) if row[0].startswith(f"**{change}"))


def test_an_isolated_change_is_a_row_with_what_was_predicted(shown):
    version = Version("15_turing_limit")
    model.isolated(version)
    head = shown[0].partition("\n")[0]
    assert head.split(" | ")[:3] == ["| one thing changed", "speed predicted", "TFLOP/s at 2,048"]
    own, other = (of_change(shown[0], change) for change in (
        "a second buffer", "chunks XORed, after padding"))
    assert own[:2] == ["**a second buffer, one barrier per tile**: `one_buffer` → `two_buffers`",
                       "+12.0%"]
    assert all(" → " in cell for cell in own[2:]) and "‡" not in shown[0]
    before, after = (version.recorded(4096, name).clock.cycles
                     for name in ("one_buffer", "two_buffers"))
    assert f"{before / 1e3:,.1f} → {after / 1e3:,.1f}, {after / before - 1:+.1%}" in own
    assert other[:2] == ["**chunks XORed, after padding**: `padded` → `swizzled`", "+5.0%"]


def test_a_change_says_what_is_not_recorded_of_it(shown, monkeypatch):
    from lib.records import store

    def missing(*_):
        raise store.NotRecorded("python -m lib record 16_cp_async")

    version = Version("16_cp_async")
    monkeypatch.setattr(Version, "metrics", missing)
    model.isolated(version)
    change = "copies past the L1"
    _, at_small, at_size, cycles, *counted = of_change(shown[0], change)
    assert at_small.count("→") == at_size.count("→") == cycles.count("→") == 1
    assert counted == [model.NOT_YET, ""]
    # Times of one size alone.
    found = Version.recorded
    monkeypatch.setattr(Version, "recorded", lambda self, size, *rest: (
        missing() if size == model.SMALL else found(self, size, *rest)))
    model.isolated(version)
    _, at_small, at_size, cycles, *counted = of_change(shown[1], change)
    assert at_small == model.NOT_YET and "→" in at_size and counted == [model.NOT_YET, ""]
    assert "→" in cycles
    # Nothing of today's source.
    monkeypatch.setattr("lib.records.reader.Recorded.current", missing)
    model.isolated(version)
    assert of_change(shown[2], change)[1:] == [model.NOT_YET, "", "", "", ""]
    model.isolated(Version("11_wmma_shared"), account="wavefronts")
    assert len(cells(shown[3])) == len(Version("11_wmma_shared").kernel.pairs)
    assert "L1 busy" in shown[3]


def test_both_accounts_are_told_of_every_version_that_a_gpu_here_has_run(shown):
    model.every()
    by_wavefronts, by_tensor = (cells(one) for one in shown)
    stems = [stem for stem, kernel in in_book().items() if kernel.min_arch != BLACKWELL]
    assert [row[0] for row in (*by_wavefronts, *by_tensor)] == [
        f"[{short_name(CATALOGUE[stem])}]({stem}.ipynb)" for stem in stems]
    assert by_wavefronts[-1][0].startswith("[13 ") and by_tensor[0][0].startswith("[14 ")
    naive = by_wavefronts[0]
    found = Version("01_naive").metrics(4096)
    account = model.wavefront_account(found, 4096, 132, H100.flops_per_cycle("float32"))
    assert naive[1:4] == [f"{account.each:.3g}", f"{account.cap:.1%}", f"{account.busy:.0%}"]
    assert naive[6] == f"{account.share:.1%}"
    # The same empty slots as on the versions' own pages.
    fastest = CATALOGUE["06_vectorized"].fastest.name
    assert by_wavefronts[5][5] == f"{Numbers('06_vectorized').slot('empty', fastest):.0%}"
    assert "128 in FP32, 2,048 in FP16" in shown[0]
    # A share of the peak times the clock of the launches that were timed is the speed.
    for stem, row in zip(stems[len(by_wavefronts):], by_tensor, strict=True):
        rate = H100.flops_per_cycle(CATALOGUE[stem].variants[0].dtype)
        peak = 132 * rate * float(row[4].replace(",", "")) * 1e-6
        share = float(row[3].rpartition("timed ")[2].rstrip("%")) / 100
        assert share * peak == pytest.approx(float(row[5]), rel=model.APART + 0.01)


def test_a_variant_that_is_far_ahead_is_named_where_a_version_has_shapes_of_its_own(
        shown, monkeypatch):
    model.every()
    assert "22's `split`, where its `swapped_256` does" in shown[1] and "14's" not in shown[1]
    monkeypatch.setattr(model, "AHEAD", 1000.0)
    model.every()
    assert "made for other shapes" not in shown[3]


def test_a_difference_within_the_noise_is_none_and_two_boards_are_not_compared(shown):
    model.isolated(Version("20_persistent"))
    within, apart = (of_change(shown[0], change) for change in (
        "products of two steps in flight, C", "persistent"))
    assert within[3].endswith(", none") and within[4].endswith("%")
    assert [cell.rpartition(", ")[2] for cell in apart[2:5]] == ["two boards"] * 3


def test_noise_is_the_larger_of_both_spreads_and_of_what_the_rival_moved():
    version = Version("18_tma")
    row = version.recorded(4096, "wide")
    still = structs.replace(row, spread=0.001, series=[row.seconds])
    assert noise.of_speed(still, still) == 0.001
    assert noise.of_speed(still, structs.replace(still, spread=0.02)) == 0.02
    drifted = structs.replace(still, cublas_seconds=1.03 * row.cublas_seconds)
    assert noise.of_speed(still, drifted) == pytest.approx(0.03)
    clock = structs.replace(row.cublas_clock, cycles=1.04 * row.cublas_clock.cycles)
    assert noise.of_cycles(still, still) == 0
    assert noise.of_cycles(still, structs.replace(still, cublas_clock=clock)) == pytest.approx(0.04)
    assert not noise.one_board(row, structs.replace(row, board="another"))


def test_a_profiled_launch_of_other_cycles_is_marked_beside_the_timed_ones(shown):
    model.isolated(Version("25_epilogue"))
    model.isolated(Version("14_ldmatrix"))
    assert of_change(shown[0], "a bias")[-1].count("‡") == 2
    assert "‡: that launch took over 3%" in shown[0]
    assert "‡" not in "".join(of_change(shown[1], "m16n8k16"))
