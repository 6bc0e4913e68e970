"""The two accounts: predicted from emulated counters, and read from recorded ones."""

import pytest

from lib.gpus import GPUS
from lib.topics.accounts import model, page
from lib.topics.version import Version

H100 = GPUS["H100"]


@pytest.mark.parametrize("stem, name, each", [
    ("01_naive", "coalesced", 2.0), ("01_naive", "swapped", 33.0),
    ("02_shared_tile", "tile32", 1.625), ("10_wmma", "one_fragment", 0.501),
])
def test_wavefronts_are_predicted(stem, name, each):
    assert model.predicted(stem, name, H100, 4096) == pytest.approx(each, rel=2e-3)


def test_a_size_that_tiles_do_not_divide_is_refused():
    with pytest.raises(ValueError, match="4100 is no multiple of coalesced's tile"):
        model.predicted("01_naive", "coalesced", H100, 4100)


@pytest.mark.parametrize("size", [1024, 4096])
def test_cap_times_busy_is_the_share(size):
    cycles, served = 10.0 * size, 3.0 * size**3 / 32
    found = model.wavefronts({"cycles": cycles, "l1_wavefronts": served}, size, 100, 256)
    assert found.each == pytest.approx(3.0) and found.cap == pytest.approx(1 / 12)
    assert found.cap * found.busy == pytest.approx(found.share)
    older = model.wavefronts(
        {"cycles": cycles, "l1_data_percent": 100 * served / (cycles * 100)}, size, 100, 256)
    assert older == pytest.approx(found) or older.each == pytest.approx(found.each)


def test_flop_per_busy_cycle_times_busy_is_the_share():
    found = model.tensor({"cycles": 1e6, "tensor_pipe_percent": 40.0}, 4096, 132, 4096)
    assert found.each * found.busy / 4096 == pytest.approx(found.share)
    assert found.each == pytest.approx(2 * 4096**3 / 132e6 / 0.4)
    with pytest.raises(ValueError, match="did nothing"):
        model.tensor({"cycles": 1e6, "tensor_pipe_percent": 0.0}, 4096, 132, 4096)


def test_a_row_without_a_record_says_so_and_the_others_stand(shown, monkeypatch):
    from lib.records import store

    class Bare(Version):
        def of(self, stem):
            other = Version(stem)

            def missing(*_):
                raise store.NotRecorded("python -m lib record 01_naive")

            other.metrics = other.recorded = missing
            return other

    page.wavefronts(Bare("02_shared_tile"))
    page.tensor(Bare("14_ldmatrix"))
    first, second = shown
    above, own = first.splitlines()[2:4]
    assert above == "| 01 naive | 2 | 12.5% | not recorded yet |  |  |  | not recorded yet |"
    assert own.startswith("| 02 shared tile | 1.63 | 15.4% |")
    assert "| 4,096 | not recorded yet |" in second.splitlines()[2]


def test_the_first_of_a_group_stands_alone(shown):
    page.wavefronts(Version("10_wmma"))
    assert [line[:8] for line in shown[0].splitlines()[2:4]] == ["| 10 WMM", ""]


def test_variants_and_others_are_named(shown):
    page.wavefronts(Version("02_shared_tile"), above=("01_naive/swapped",))
    assert "| 01 swapped | 33 | 0.8% |" in shown[0] and "multiply-adds" in shown[0]
