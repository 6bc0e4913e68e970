"""FP8's sums as pages tell of them: errors, an interval's cost, the scales of a step."""

import re
from itertools import product

import numpy as np
import pytest

from lib.gpus import GPUS
from lib.problem import with_scales
from lib.problem.scales import decoded
from lib.ptx.isa import wgmma_fp8
from lib.records import store as records
from lib.records.schema import CalibrationRecord
from lib.show import bottleneck as busiest
from lib.show import chart as style
from lib.show import fp8 as model
from lib.show import fp8_errors
from lib.show.version import Version

PLAIN, PROMOTED = "no_promotion_float", "tensor_float"


@pytest.fixture(scope="module")
def curves():
    return [model.emulated("26_fp8", name, signs, (128, 1024))
            for signs in fp8_errors.SIGNS for name in (PLAIN, PROMOTED)]


def test_the_error_grows_with_k_unless_sums_are_promoted(curves):
    for plain, promoted in (curves[:2], curves[2:]):
        (_, short), (_, long) = plain.errors
        assert promoted.errors[0][1] == short  # of 128 of K there is nothing to promote
        assert long > 4 * short and promoted.errors[1][1] < 1.2 * short
    random, one_sign = curves[0].errors[1][1], curves[2].errors[1][1]
    assert one_sign > 10 * random


def test_a_gpu_s_sums_are_as_far_off_as_the_emulator_s(monkeypatch):
    record = records.load(CalibrationRecord, "H200")
    recorded = {(one.kernel, one.signs, one.K): one.error for one in record.sums}
    assert len(recorded) == len(fp8_errors.COMPARED) * len(fp8_errors.SIGNS) * len(model.DEPTHS)
    # Its scales were drawn by a float32 exp2, which processors round by a bit apart.
    drawn, bits = fp8_errors.drawn, {}
    monkeypatch.setattr(fp8_errors, "drawn", lambda *asked: (given := drawn(*asked))._replace(
        **{name: (getattr(given, name).view("int32") + bits[name]).view("float32")
           for name in ("scale_a", "scale_b")}))

    def errors(name, signs, K):
        for bits["scale_a"], bits["scale_b"] in sorted(
                product((0, 1, -1), repeat=2), key=lambda both: abs(both[0]) + abs(both[1])):
            yield fp8_errors.errors_by_depth("26_fp8", name, signs, "emulator", (K,))[0][1]

    for name in fp8_errors.COMPARED:
        for signs in fp8_errors.SIGNS:
            for K in (128, 512):
                expected = pytest.approx(recorded[f"26_fp8/{name}", signs, K], rel=1e-9)
                assert any(error == expected for error in errors(name, signs, K)), (name, signs, K)


@pytest.mark.parametrize("place, interval, signs", [
    (0, None, fp8_errors.RANDOM), (1, 128, fp8_errors.RANDOM), (2, None, fp8_errors.ONE_SIGN),
    (3, 128, fp8_errors.ONE_SIGN),
])
def test_the_model_s_errors_are_the_kernel_s(curves, place, interval, signs):
    K, emulated = curves[place].errors[1]
    # α, the scales' product, is rounded once more.
    assert model.error(K, interval, signs) == pytest.approx(emulated, rel=1e-2)


def test_an_interval_s_cost_is_one_ffma_an_element():
    gpu = GPUS["H100"]
    # 32 / L: 8,192 FLOP and 128 FFMA per cycle and SM.
    assert [model.share(length, gpu) for length in (32, 64, 128, 256)] == [1, 1 / 2, 1 / 4, 1 / 8]
    found = model.sums_by_interval(512, gpu)
    assert [one.length for one in found] == [*model.INTERVALS, None]
    assert found[-1].share == 0
    assert found[-1].errors == found[-2].errors  # every 512 of 512 is never
    for shorter, longer in zip(found, found[1:], strict=False):
        assert all(a <= b for a, b in zip(shorter.errors, longer.errors, strict=True))


@pytest.mark.parametrize("product", [0.25, 0.3, 1.0, 6.0])
def test_sums_stop_growing_where_it_says(product):
    """32 products of one size, added to a sum: below that sum something is kept."""
    a = np.array([[product] + 31 * [0]], "f4")
    one = np.zeros((1, 32), "f4")
    one[0, 0] = 1
    end = np.float32(model.stops_growing(product))
    for old, grows in ((end, False), (end / 2, True)):
        found = wgmma_fp8.sums(a, one, np.array([[old]]), ("e4m3", "e4m3"))
        assert (found[0, 0] > old) == grows


def test_inputs_of_one_sign_are_the_same_numbers():
    problem = with_scales(8, 8, 64, scaling="tensor")
    random, positive = (fp8_errors.drawn(problem, signs) for signs in fp8_errors.SIGNS)
    assert (decoded(random.A) < 0).any() and (decoded(positive.A) >= 0).all()
    np.testing.assert_array_equal(abs(decoded(random.B)), decoded(positive.B))


@pytest.mark.parametrize("narrow", [False, True])
def test_the_figure_says_what_the_worst_sums_lose(curves, narrow):
    fig = model.draw(curves, evidence="emulated: sm_90a PTX", narrow=narrow)
    worst, like = curves[2].errors[1][1], curves[3].errors[1][1]
    assert fig.finding == (f"At K = 1,024 a sum of one sign is off by {100 * worst:.2g}%; promoted "
                           f"every 128, by {100 * like:.2g}%")
    assert fig.alt.count("Promoted, ") == fig.alt.count("Not promoted, ") == 2
    assert fig.get_figwidth() == (style.NARROW if narrow else style.WIDTH)


# -- which scales a step takes -------------------------------------------------------------------


def test_scales_differ_in_one_way_alone():
    problem = with_scales(16, 128, 512)
    alike, rows, depth, both = (model.scaled_by(problem, kind) for kind in model.KINDS)
    assert (alike.scale_a == 1).all()
    assert (np.ptp(rows.scale_a, 1) == 0).all() and np.ptp(rows.scale_a, 0).any()
    assert (np.ptp(depth.scale_a, 0) == 0).all() and np.ptp(depth.scale_a, 1).any()
    assert np.ptp(both.scale_a, 0).any() and np.ptp(both.scale_a, 1).any()


def test_seeded_mistakes_are_told_apart_by_their_scales(capsys):
    from lib.kernels.source import edited
    from lib.show.fp8 import verdicts

    version = Version("26_fp8")
    text = version.kernel.source.read_text()
    for old, new, wrong in (
        ("scales(at, step - 1 + AHEAD)", "scales(at, step - 1 + AHEAD)", ""),
        ("scales(at, step - 1 + AHEAD)", "scales(at, step - 2 + AHEAD)", "along K, by both"),
        ("M, N, at.x, at.y, min(step", "M, N, at.x + 1, at.y, min(step", "by rows of A, by both"),
    ):
        verdicts(version, edited(text, old, new) if new != old else text)
        found = re.findall(r"([\w ]+): wrong", capsys.readouterr().out)
        assert ", ".join(one.strip() for one in found) == wrong


# -- the roofs of 8-bit floats --------------------------------------------------------------------

def test_8_bit_products_have_twice_the_peak():
    gpu = GPUS["H100"]
    assert gpu.flops_per_cycle("float8_e4m3fn") == 2 * gpu.flops_per_cycle("float16")
    assert gpu.flops("float8_e4m3fn") == pytest.approx(2 * gpu.flops("float16"), rel=1e-3)
    with pytest.raises(ValueError, match="T4 multiplies no 8-bit floats"):
        GPUS["T4"].flops("float8_e4m3fn")
    assert busiest.fp8_flops(gpu, gpu.clock_hz / 2) == gpu.flops("float8_e4m3fn") / 2
