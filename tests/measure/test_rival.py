"""The rival at its best: what is asked of cublasLt, what is timed, and which one is taken."""

import ctypes
import enum
from types import SimpleNamespace

import numpy as np
import pytest
from msgspec import structs

from lib.measure import bench, cublas, cublaslt
from lib.measure.probe import Sample
from lib.measure.summary import summary
from lib.problem import Problem, WrongResult
from tests import built


class Tile(enum.IntEnum):
    TILE_UNDEFINED = 0
    TILE_128x256 = 21


class Lt:
    """nvmath-python's binding of cublasLt, which offers three algorithms, one of them unusable."""

    MatmulDescAttribute = SimpleNamespace(TRANSA=3)
    MatmulPreferenceAttribute = SimpleNamespace(MAX_WORKSPACE_BYTES=1)
    MatmulAlgoConfigAttribute = SimpleNamespace(
        ID=0, TILE_ID=1, SPLITK_NUM=2, STAGES_ID=6, CLUSTER_SHAPE_ID=8)
    MatmulTile = MatmulStages = ClusterShape = Tile
    cuBLASLtError = RuntimeError

    def __init__(self):
        self.layouts, self.transposed, self.asked, self.launched = [], None, None, []

    def MatmulHeuristicResult(self, count):
        self.found = SimpleNamespace(
            algo={"data_": np.arange(count * 8, dtype=np.uint64).reshape(count, 8)}, ptr=0,
            state=np.array([0, 7, 0] + [0] * (count - 3)), workspace_size=[64] * count)
        return self.found

    def create(self):
        return 1

    def matmul_desc_create(self, compute, scale):
        assert (compute, scale) == (68, 0)  # sums and scalars in FP32, whatever the operands
        return 2

    def matmul_desc_set_attribute(self, desc, attribute, address, size):
        self.transposed = ctypes.c_int32.from_address(address).value

    def matrix_layout_create(self, kind, rows, columns, stride):
        self.layouts.append((kind, rows, columns, stride))
        return len(self.layouts)

    def matmul_preference_create(self):
        return 3

    def matmul_preference_set_attribute(self, preference, attribute, address, size):
        self.workspace = ctypes.c_uint64.from_address(address).value

    def matmul_algo_get_heuristic(self, *arguments):
        self.asked = arguments[7]
        ctypes.c_int32.from_address(arguments[9]).value = 3

    def matmul_algo_config_get_attribute(self, algorithm, attribute, address, size, written):
        value = {0: 66, 1: 21, 2: 0, 6: 99, 8: 0}[attribute]
        ctypes.c_int32.from_address(address).value = value

    def matmul(self, *arguments):
        self.launched.append(ctypes.c_uint64.from_address(arguments[12]).value)

    def matmul_desc_destroy(self, *_): ...

    matrix_layout_destroy = matmul_preference_destroy = matmul_desc_destroy


def placed(address):
    """Memory there."""
    return SimpleNamespace(data=SimpleNamespace(ptr=address))


def bound(made, monkeypatch):
    """A binding in cublasLt's place."""
    cp = SimpleNamespace(cuda=SimpleNamespace(get_current_stream=lambda: SimpleNamespace(ptr=5)))
    for room, name, value in ((cublaslt, "binding", made), (cublaslt, "_handle", 1),
                              (cublaslt, "_workspace", placed(99)), (cublaslt.device, "cupy", cp)):
        monkeypatch.setattr(room, name, lambda value=value: value)
    return made


@pytest.fixture
def lt(monkeypatch):
    return bound(Lt(), monkeypatch)


@pytest.mark.parametrize("name, layouts, transposed", [
    ("fp32", [(0, 5, 6, 5), (0, 6, 4, 6), (0, 5, 4, 5)], 0),
    ("fp16", [(2, 5, 6, 5), (2, 6, 4, 6), (0, 5, 4, 5)], 0),
    ("fp16_out", [(2, 5, 6, 5), (2, 6, 4, 6), (2, 5, 4, 5)], 0),
    ("bf16_column", [(14, 6, 5, 6), (14, 6, 4, 6), (14, 5, 4, 5)], 1),
])
def test_cublaslt_is_asked_for_all_it_has_of_the_same_product(lt, name, layouts, transposed):
    """Column-major: Cᵀ (N×M) = Bᵀ·Aᵀ, as for cublasGemmEx."""
    problem = cublas.problem(name, 4, 5, 6)
    offered = cublaslt.candidates(problem)
    assert lt.layouts == layouts and lt.transposed == transposed
    assert lt.asked >= 100 and lt.workspace >= 64 << 20
    assert [one.place for one in offered] == [0, 1]  # the unusable one is left out
    assert offered[0].about == cublaslt.About(66, "128x256", "99", None, 1)
    assert offered[0].workspace_bytes == 64
    for one in offered:
        one.gemm(*[placed(0)] * 3)
    assert lt.launched == [0, 16]  # the first and the third of the heuristic's algorithms


def test_what_cublaslt_does_not_take_has_no_candidates(lt, monkeypatch):
    def refuse(*_):
        raise lt.cuBLASLtError("not supported")

    assert cublaslt.candidates(Problem(4, 5, 0)) == []
    monkeypatch.setattr(lt, "matmul_algo_get_heuristic", refuse)
    assert cublaslt.candidates(Problem(4, 5, 6)) == []


def test_without_the_binding_there_are_none(monkeypatch):
    monkeypatch.setattr(cublaslt, "binding", lambda: None)
    assert cublaslt.candidates(Problem(4, 5, 6)) == []


class Timed:
    """A player that takes as long as its call says."""

    def __init__(self, call, copies):
        self._call = call

    def once(self):
        return self.take(1).seconds

    def take(self, launches):
        self._call(0)
        return Sample(SPEED["now"], launches)


SPEED = {"now": 0.0}


@pytest.fixture
def contest(monkeypatch):
    """A contest on NumPy; `take` says how long cuBLAS and its candidates take."""
    monkeypatch.setattr(bench.device, "cupy", lambda: np)
    monkeypatch.setattr(bench, "copies_of", lambda problem, cp, name: [problem.inputs(0, np)] * 2)
    monkeypatch.setattr(bench, "KernelPlayer", Timed)
    monkeypatch.setattr(bench.cublaslt, "kernels", lambda call: ["a_kernel"])
    monkeypatch.setattr(bench.cublaslt, "default_kernels", lambda *_: ("default_kernel",))

    def gemm(seconds, more=0.0):
        def run(A, B, C):
            SPEED["now"] = seconds
            C[...] = A @ B + more
        return run

    def make(default, *offered):
        monkeypatch.setattr(bench.cublas, "gemm",
                            lambda problem, A, B, C: gemm(default)(A, B, C))
        monkeypatch.setattr(bench.cublaslt, "candidates", lambda problem, *first: [
            cublaslt.Candidate(gemm(*one), place, cublaslt.About(66, None, None, None, 1), 0)
            for place, one in enumerate(offered)])
        return bench.Contest(Problem(8, 8, 8))

    return make


def test_the_best_of_the_candidates_is_the_rival(contest):
    made = contest(3e-3, (4e-3,), (2e-3,), (5e-3,))
    about = made.rival.about
    assert about.candidates == 3 and about.best.place == 1
    assert about.default.seconds == 3e-3 and about.best.seconds == 2e-3
    assert about.default.kernels == ("default_kernel",)
    assert made.cublas().take(1).seconds == 2e-3


def test_the_default_is_the_rival_where_it_is_faster(contest):
    made = contest(1e-3, (4e-3,), (2e-3,))
    assert made.rival.about.best.seconds == 2e-3 and made.cublas().take(1).seconds == 1e-3


def test_a_candidate_that_is_wrong_is_no_rival(contest):
    made = contest(3e-3, (1e-3, 0.5), (2e-3,))
    assert made.rival.about.candidates == 1 and made.rival.about.best.place == 1


def test_without_candidates_the_default_is_the_rival_and_a_line_says_why(contest, monkeypatch):
    monkeypatch.setattr(bench.cublaslt, "binding", lambda: None)
    about = contest(3e-3).rival.about
    assert about.best is None and about.why_not == cublaslt.MISSING
    row = structs.replace(
        built.parsed_row(built.plain(built.row(8))),
        tflops=1.0, ratio=0.5, cublas_tflops=2.0, cublas_clock=None,
        temperature_c=None, throttle=["power cap", "hardware slowdown"], rival=about)
    lines = list(summary("k", "v", row))
    assert "cuBLAS's default 2.00, ratio 0.500" in lines[0]
    assert "1,755 MHz, 1,755,000 cycles, cuBLAS clock not measured, °C not read" in lines[0]
    assert "pip install nvmath-python" in lines[2]
    assert lines[3] == "the clock was held down by: hardware slowdown; don't trust the times"


def test_a_default_that_is_wrong_is_not_timed(contest, monkeypatch):
    made = contest(3e-3)
    monkeypatch.setattr(bench.cublas, "gemm", lambda problem, A, B, C: None)
    with pytest.raises(WrongResult, match="cuBLAS at 8x8x8"):
        made._fastest()
