"""Public peers: what is expected of a folder, what is compiled, what counts as right and is timed.

No test needs a clone, nvcc or a GPU: a peer is played by NumPy.
"""

import shutil
import subprocess
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from msgspec import structs

from lib.__main__ import main
from lib.kernels.catalogue import KERNELS
from lib.measure import bench, peers, record, rivals
from lib.measure.peers import PEERS, Built, PeerMissing
from lib.problem import Problem
from lib.records import store as records
from lib.records.schema import PublicPeer
from tests import built
from tests.built import BOARD, CHUNK, GPU
from tests.measure.test_rival import SPEED, Timed

FP32_PEER = PEERS["siboehm"]


def clone(folder):
    """A git repository with one commit; its revision."""
    folder.mkdir(exist_ok=True)
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "one"], check=True)
    return peers._revision(folder)


def test_without_a_folder_the_repository_and_the_revision_are_named():
    with pytest.raises(PeerMissing, match="clone siboehm/SGEMM_CUDA at 60cba6f9b20a.*--folder "):
        peers.find_source(FP32_PEER, {})


def test_a_clone_at_another_revision_is_refused_and_the_way_to_it_said(tmp_path):
    with pytest.raises(PeerMissing, match="is no clone, and siboehm/SGEMM_CUDA is expected"):
        peers.find_source(FP32_PEER, {"siboehm": tmp_path})
    revision = clone(tmp_path)
    with pytest.raises(PeerMissing, match=f"is at {revision[:12]}.*git -C .* checkout 60cba6f"):
        peers.find_source(FP32_PEER, {"siboehm": tmp_path})
    right = replace(FP32_PEER, revision=revision)
    assert peers.find_source(right, {"siboehm": tmp_path}) == ([tmp_path / "src"], revision)


def test_cutlass_is_known_by_the_release_in_its_headers(tmp_path):
    with pytest.raises(PeerMissing, match="has no include/cutlass/version.h"):
        peers.find_source(PEERS["cutlass_sm80"], {"CUTLASS": tmp_path})
    file = tmp_path / "include" / "cutlass" / "version.h"
    file.parent.mkdir(parents=True)
    file.write_text("#define CUTLASS_MAJOR 4\n#define CUTLASS_MINOR 2\n#define CUTLASS_PATCH 1\n")
    assert peers.find_source(PEERS["cutlass_sm80"], {"CUTLASS": tmp_path}) == (
        [tmp_path / "include", tmp_path / "tools" / "util" / "include"], "4.2.1")
    revision = clone(tmp_path / "own")
    both = {"CUTLASS": tmp_path, "deepseek-ai": tmp_path / "own"}
    folders, _ = peers.find_source(replace(PEERS["DeepGEMM"], revision=revision), both)
    assert folders == [tmp_path / "own" / "deep_gemm" / "include", tmp_path / "include"]


@pytest.mark.parametrize("name, flag", [
    ("siboehm", "arch=compute_75,code=sm_90"), ("cutlass_sm75", "arch=compute_75,code=sm_90"),
    ("cutlass_sm80", "arch=compute_80,code=sm_90"), ("fast.cu", "arch=compute_90a,code=sm_90a"),
])
def test_a_peer_s_code_is_of_its_own_instructions(name, flag, tmp_path):
    command = peers.command_of(PEERS[name], [tmp_path / "a", tmp_path / "b"], 90)
    # With assertions, ptxas can't let wgmma overlap.
    assert flag in command and {"-shared", "-DNDEBUG"} <= set(command)
    included = [command[i + 1] for i, part in enumerate(command) if part == "-I"]
    assert included == [str(tmp_path / "a"), str(tmp_path / "b")]
    assert ("-DTURING" in command) == (name == "cutlass_sm75")


def test_every_peer_has_a_wrapper_that_offers_the_interface():
    for peer in PEERS.values():
        text = (peers.WRAPPERS / peer.wrapper).read_text()
        for name in ("peer_count", "peer_name", "peer_takes", "peer_prepare", "peer_run"):
            assert f"{name}(" in text, (peer.name, name)


def test_no_nvcc_and_a_failing_one_are_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(peers.shutil, "which", lambda name: None)
    with pytest.raises(PeerMissing, match="nvcc is not on the PATH"):
        peers.build(FP32_PEER, [tmp_path], "1", 90)
    failed = SimpleNamespace(returncode=1, stdout="", stderr="warning: a\nx.cu(1): error: b\nc\n")
    monkeypatch.setattr(peers, "BUILT", tmp_path)
    monkeypatch.setattr(peers.shutil, "which", lambda name: "/nvcc")
    monkeypatch.setattr(peers.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(PeerMissing, match=r"siboehm: nvcc failed: x.cu\(1\): error: b$"):
        peers.build(FP32_PEER, [tmp_path], "1", 90)
    slow = SimpleNamespace(returncode=0, stdout="", stderr="ptxas info : (C7510) Potential ...")
    monkeypatch.setattr(peers.subprocess, "run", lambda *_, **__: slow)
    with pytest.raises(PeerMissing, match="C7510.*would make a slow rival of it"):
        peers.build(FP32_PEER, [tmp_path], "1", 90)


def test_what_was_built_of_the_same_things_is_taken_again_from_any_folder(tmp_path, monkeypatch):
    ran = []

    def run(command, **_):
        ran.append(command)
        (tmp_path / "out").mkdir(exist_ok=True)
        open(command[-1], "w").close()
        return SimpleNamespace(returncode=0, stdout="", stderr="")

    monkeypatch.setattr(peers, "BUILT", tmp_path / "built")
    monkeypatch.setattr(peers.shutil, "which", lambda name: "/nvcc")
    monkeypatch.setattr(peers.subprocess, "run", run)
    first = peers.build(FP32_PEER, [tmp_path / "a"], "1", 90)
    monkeypatch.setattr(peers.shutil, "which", lambda name: None)
    assert peers.build(FP32_PEER, [tmp_path / "b"], "1", 90) == first and len(ran) == 1
    for other in (("2", 90), ("1", 75)):
        with pytest.raises(PeerMissing, match="nvcc is not on the PATH"):
            peers.build(FP32_PEER, [tmp_path], *other)


LIBRARY = """
typedef struct { int m, n, k; const void *a; const float *scales; } Made;
static Made made[8]; static int next;
int peer_count() { return 2; }
const char *peer_name(int c) { return c ? "wide" : "narrow"; }
int peer_takes(int c, int m, int n, int k) { return c == 0 || m % 2 == 0; }
void *peer_prepare(int c, int m, int n, int k, const void *a, const void *b, void *d,
                   const float *s, const float *t)
{ if (k == 0) return 0; Made one = {m, n, k, a, t}; made[next] = one; return &made[next++]; }
int peer_run(int c, void *p) { Made *one = p; return one->m == 7 ? 700 : one->scales ? 701 : 0; }
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler on this machine")
def test_a_library_is_loaded_and_called(tmp_path):
    source, file = tmp_path / "peer.c", tmp_path / "peer.so"
    source.write_text(LIBRARY)
    subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", file], check=True)
    library = Built(file)
    assert library.names == ["narrow", "wide"]
    odd = Problem(7, 4, 4)
    assert library.takes(0, odd) and not library.takes(1, odd)
    matrix = SimpleNamespace(data=SimpleNamespace(ptr=1 << 40))
    copies = [(matrix,) * 3] * 2
    assert library.prepare(0, Problem(8, 8, 0), copies) is None
    first, second = library.prepare(0, Problem(8, 8, 8), copies)
    assert first != second
    library.run(0, first)
    with pytest.raises(RuntimeError, match="error 700"):
        library.run(0, library.prepare(0, odd, copies)[0])
    with pytest.raises(RuntimeError, match="error 701"):
        library.run(0, library.prepare(0, Problem(8, 8, 8), [(matrix,) * 5])[0])


class Fake:
    """A peer of three configurations: one that refuses odd shapes, one that is wrong, a slow one.
    """

    names = ["even", "wrong", "slow"]
    errors = {0: 0.0, 1: 0.5, 2: 0.0}

    def takes(self, place, problem):
        return place or problem.M % 2 == 0

    def prepare(self, place, problem, copies):
        self.copies, self.problem = copies, problem
        return list(range(len(copies)))

    def run(self, place, prepared):
        A, B, C = self.copies[prepared]
        B = B if self.problem.b_layout == "row" else B.T
        # It scales C by 0, so NaN in it would stay.
        C[...] = A.astype("float32") @ B.astype("float32") * (1 + self.errors[place]) + 0 * C
        SPEED["now"] = {0: 2e-6, 1: 1e-6, 2: 3e-6}[place]


@pytest.fixture
def numpy_gpu(monkeypatch):
    """cuBLAS takes 4 µs, and ours 5."""
    def product(problem, A, B, C, half_sums=False):
        SPEED["now"] = 4e-6
        B = B if problem.b_layout == "row" else B.T
        C[...] = A.astype("float32") @ B.astype("float32")

    def ours(self, kernel, variant, ptx_arch=None, exact=False):
        return Timed(lambda index: SPEED.update(now=5e-6), 2), "ours<>"

    monkeypatch.setattr(bench.device, "cupy", lambda: np)
    monkeypatch.setattr(bench, "copies_of", lambda problem, cp, name: [
        problem.inputs(seed, np) for seed in range(2)])
    monkeypatch.setattr(bench, "KernelPlayer", Timed)
    monkeypatch.setattr(bench.Contest, "player", ours)
    monkeypatch.setattr(bench.cublas, "gemm", product)
    monkeypatch.setattr(bench.cublaslt, "candidates", lambda problem, *first: [])
    monkeypatch.setattr(bench.cublaslt, "default_kernels", lambda *_: None)
    monkeypatch.setattr(rivals, "board", lambda: BOARD)
    silent = SimpleNamespace(temperature_c=None, throttle=lambda: None)
    sampler = type("S", (), {"__enter__": lambda self: silent, "__exit__": lambda *_: None})
    monkeypatch.setattr(rivals, "Sampler", sampler)


def of_peer(peer, rows):
    """What is recorded of a peer."""
    return PublicPeer(repository=peer.repository, revision=peer.revision, licence=peer.licence,
                      half_sums=peer.half_sums, rows=rows)


def test_the_best_configuration_that_is_right_is_timed_beside_ours(numpy_gpu):
    said = []
    row = rivals.timed(FP32_PEER, Fake(), 16, said.append, CHUNK)
    assert row.configuration == "even" and row.seconds == pytest.approx(2e-6)
    assert row.cublas_seconds == pytest.approx(4e-6) and row.ratio == pytest.approx(2.0)
    assert row.ours.kernel == "09_fp32_limit"
    assert row.ours.seconds == pytest.approx(5e-6)
    assert len(said) == 1 and "siboehm wrong at 16x16x16: wrong, error" in said[0]


def test_a_shape_that_a_configuration_refuses_is_left_to_the_others(numpy_gpu):
    assert rivals.timed(FP32_PEER, Fake(), 15, lambda line: None, CHUNK).configuration == "slow"


def test_a_peer_of_which_nothing_is_right_is_not_timed(numpy_gpu, monkeypatch):
    said = []
    monkeypatch.setattr(Fake, "errors", {0: 0.5, 1: 0.5, 2: float("nan")})
    assert rivals.timed(FP32_PEER, Fake(), 16, said.append, CHUNK) is None
    assert said[-1] == "siboehm: none of its configurations is right at 16x16x16"


def test_sums_in_fp16_have_their_own_tolerance_and_rank(numpy_gpu, monkeypatch):
    peer = PEERS["alexarmbr"]
    monkeypatch.setattr(Fake, "errors", {0: 2e-3, 1: 0.5, 2: 0.0})
    row = rivals.timed(peer, Fake(), 16, lambda line: None, CHUNK)
    assert row.configuration == "even" and row.ours is None and row.rival is None
    problem = Problem(16, 16, 16, dtype="float16", out="float16")
    assert problem.tolerance < 2e-3 < rivals.half_tolerance(problem)
    lines = rivals.lines({"alexarmbr": of_peer(peer, [row])})
    assert "of cublasHgemm; sums in FP16, not ranked with ours" in lines[0]


def test_what_of_ours_a_peer_is_held_against():
    held = {name: rivals.ours(peer) for name, peer in PEERS.items()}
    assert held["siboehm"][0].stem == "09_fp32_limit"
    assert held["cutlass_sm75"][0].stem == "15_turing_limit"
    assert held["cutlass_sm80"][0].stem == "16_cp_async"
    last = [k for k in KERNELS.values() if k.min_arch == "sm_90a"][-1]
    assert held["cutlass_sm90"][0] is last
    assert held["fast.cu"][1].b_layout == "column" and held["fast.cu"][1].dtype == "bfloat16"
    assert held["DeepGEMM"] == (KERNELS["26_fp8"], KERNELS["26_fp8"].fastest)
    assert held["alexarmbr"] is None


def test_measured_peers_make_a_record_and_others_stay_in_it(numpy_gpu, monkeypatch, tmp_path):
    head = built.parsed(built.record())
    monkeypatch.setattr(record, "provenance", lambda stem: structs.replace(head, kernel=stem))
    monkeypatch.setattr(record.device, "name", lambda: GPU["name"])
    for name in ("siboehm", "fast.cu"):
        peer = PEERS[name]
        rows = [rivals.timed(peer, Fake(), 16, lambda line: None, CHUNK)]
        file = record.write_rivals(
            {name: of_peer(peer, rows)}, CHUNK, head.chunks[CHUNK], tmp_path)
    written = records.read(file)
    assert set(written.peers) == {"siboehm", "fast.cu"} and records.rows(tmp_path) == []
    assert written.peers["siboehm"].licence == "MIT"


def test_the_command_line_says_what_it_expects(capsys):
    assert main(["rivals", "--list"]) == 0
    assert "pranjalssh/fast.cu at 38eb642e0c08, MIT" in capsys.readouterr().out
    for given, said in (
        (["nobody"], "unknown peer 'nobody'"), (["--folder", "here"], "write NAME=FOLDER"),
        (["--folder", "siboehm=/no/such"], "there is no folder /no/such"),
    ):
        assert main(["rivals", *given]) == 2
        error = capsys.readouterr().err
        assert said in error and error.count("\n") == 1


def test_without_any_source_the_first_peer_s_is_named(monkeypatch):
    device = SimpleNamespace(compute_capability="90")
    cp = SimpleNamespace(cuda=SimpleNamespace(Device=lambda: device))
    monkeypatch.setattr(rivals.device, "cupy", lambda: cp)
    monkeypatch.setattr(rivals.device, "arch", lambda: "sm_90a")
    said = []
    with pytest.raises(PeerMissing, match="clone siboehm/SGEMM_CUDA"):
        rivals.measure(["siboehm", "fast.cu"], {}, [64], said.append, CHUNK)
    assert len(said) == 2
    monkeypatch.setattr(rivals.device, "arch", lambda: "sm_75")
    monkeypatch.setattr(rivals.device, "name", lambda: "Tesla T4")
    assert rivals.measure(["fast.cu"], {}, [64], said.append, CHUNK) == {}
    assert said[-1] == "fast.cu: Tesla T4 has not the instructions of sm_90a"
