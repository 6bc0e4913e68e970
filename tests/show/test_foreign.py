"""Kernels of others', run on clones: here on kernels of our own in the same form."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from lib.__main__ import main
from lib.measure import foreign
from lib.records import foreign as records
from lib.show import foreign as model
from lib.show import public_files as files

pytestmark = pytest.mark.slow  # kernels of others run at night

SOURCE = r"""
#include <cstdio>
#include <cassert>
template <int TILE>
__global__ void tiled(int n, float alpha, const float* A, const float* B, float beta, float* C)
{
    __shared__ float a[TILE][TILE], b[TILE][TILE];
    const int i = blockIdx.y * TILE + threadIdx.y, j = blockIdx.x * TILE + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < n; k += TILE) {
        a[threadIdx.y][threadIdx.x] = A[i * n + k + threadIdx.x];
        b[threadIdx.y][threadIdx.x] = B[(k + threadIdx.y) * n + j];
        __syncthreads();
        for (int t = 0; t < TILE; t++) sum += a[threadIdx.y][t] * b[t][threadIdx.x];
        __syncthreads();
    }
    C[i * n + j] = alpha * sum + beta * C[i * n + j];
}
__global__ void past(int* x, int n) { if (threadIdx.x <= n) x[threadIdx.x] = 1; }
int main() { printf("nothing\n"); }
"""
SET = """seed = 1
[[kernel]]
repository = "nobody/matmul"
revision = "0123456789abcdef0123456789abcdef01234567"
file = "src/tiled.cu"
name = "tiled<16>"
arch = "sm_80"
grid = [2, 2]
block = [16, 16]
args = ["n=int:32", "alpha=float:0.5", "A=float32[32,32]:uniform", "B=float32[32,32]:uniform",
        "beta=float:3", "C=float32[32,32]:uniform"]
check = "gemm"
mutants = 2

[[kernel]]
repository = "nobody/matmul"
revision = "0123456789abcdef0123456789abcdef01234567"
file = "src/tiled.cu"
name = "past"
arch = "sm_80"
grid = [1]
block = [32]
args = ["x=int32[8]:zeros", "n=int:8"]
defect = "the guard lets n through."

[[kernel]]
repository = "nobody/matmul"
revision = "0123456789abcdef0123456789abcdef01234567"
file = "src/tma.cu"
name = "turned<16>"
arch = "sm_90a"
grid = [2]
block = [32]
args = ["C=bfloat16[32,16]:nan", "a=mapptr[16,64]:A:128", "b=map[1,16,64]:B:128"]
arrays = ["A=bfloat16[16,64]:uniform", "B=bfloat16[32,64]:uniform"]
check = "transposed_gemm"
mutants = 9
[kernel.equivalent]
"bar.sync 0; → nothing" = "the barrier before the loop."
"""
TMA = r"""
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda/barrier>
__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
// C, (N, M), is B times A transposed: a block has ROWS rows of B; chunks of 16 bytes are swizzled.
template <int ROWS>
__global__ void turned(__nv_bfloat16* C, const CUtensorMap* a,
                       const __grid_constant__ CUtensorMap b)
{
    __shared__ alignas(1024) __nv_bfloat16 as[16 * 64], bs[ROWS * 64];
    __shared__ alignas(8) unsigned long long bar;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(at(&bar)));
        asm volatile("fence.mbarrier_init.release.cluster;");
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;"
                     :: "r"(at(&bar)), "r"((16 + ROWS) * 128));
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                     " [%0], [%1, {%2, %3}], [%4];"
                     :: "r"(at(as)), "l"(a), "r"(0), "r"(0), "r"(at(&bar)) : "memory");
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                     " [%0], [%1, {%2, %3, %2}], [%4];" :: "r"(at(bs)), "l"(&b), "r"(0),
                     "r"(blockIdx.x * ROWS), "r"(at(&bar)) : "memory");
    }
    __syncthreads();
    asm volatile("{.reg .pred p; W: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra W;}"
                 :: "r"(at(&bar)) : "memory");
    __syncthreads();
    for (int i = threadIdx.x; i < ROWS * 16; i += 32) {
        const int n = i / 16, m = i % 16;
        float sum = 0;
        for (int k = 0; k < 64; k++)
            sum += __bfloat162float(bs[n * 64 + (k / 8 ^ n % 8) * 8 + k % 8])
                 * __bfloat162float(as[m * 64 + (k / 8 ^ m % 8) * 8 + k % 8]);
        C[(blockIdx.x * ROWS + n) * 16 + m] = __float2bfloat16(sum);
    }
}
"""


@pytest.fixture
def clones(tmp_path, monkeypatch):
    """A folder with a clone, a set of its kernels, and no record."""
    (tmp_path / "matmul" / "src").mkdir(parents=True)
    (tmp_path / "matmul" / "src" / "tiled.cu").write_text(SOURCE)
    (tmp_path / "matmul" / "src" / "tma.cu").write_text(TMA)
    (tmp_path / "set.toml").write_text(SET)
    kernels = model.kernels(tmp_path / "set.toml")
    monkeypatch.setattr(model, "kernels", lambda: kernels)
    record = tmp_path / "foreign.json"
    read, write = model.recorded, model.write
    monkeypatch.setattr(model, "recorded", lambda: read(record))
    monkeypatch.setattr(model, "write", lambda results: write(results, record))
    return tmp_path


def test_results_mutants_and_defects_are_recorded_and_held(clones, capsys, shown):
    command = ["foreign", "--folder", str(clones)]
    assert main([*command, "--write"]) == 0
    out = capsys.readouterr().out
    assert "tiled<16>: ran to its end; right; no hazard; 2 of 2 mutants found" in out
    assert "past: OutOfBounds" in out
    assert "turned<16>: ran to its end; right; no hazard; " in out
    unseen = model.recorded()["nobody/matmul:turned<16>"].mutants.unseen
    turned = next(one for one in model.kernels() if one.name == "turned<16>")
    assert unseen and not turned.unexplained(unseen) and turned.unexplained(["bar.sync 1"])
    assert main(command) == 0 and "0 unlike the record" in capsys.readouterr().out
    files.found()
    files.defects()
    assert "2 of 2" in shown[0] and re.search(r"changes? nothing", shown[0])
    assert "The guard lets n through." in shown[1] and "OutOfBounds" in shown[1]
    assert "blob/0123456789abcdef" in shown[1]
    file = clones / "foreign.json"
    record = model.recorded()
    tiled = record["nobody/matmul:tiled<16>"]
    counters = {**tiled.counters, "global_load_sectors": 641}
    record = {**record, "nobody/matmul:tiled<16>": structs.replace(tiled, counters=counters)}
    whole = file.read_text()
    file.write_text(whole.replace('"global_load_sectors": 640', '"global_load_sectors": 641', 1))
    assert main([*command, "tiled"]) == 2  # one line, and not what an edited file says
    assert "foreign.json was edited since it was written" in capsys.readouterr().err
    file.write_text(whole)
    model.write(record)
    assert main([*command, "tiled"]) == 1
    assert "global_load_sectors: 640, and recorded is 641" in capsys.readouterr().out


def test_a_changed_kernel_is_told(clones, capsys):
    command = ["foreign", "--folder", str(clones), "tiled"]
    main([*command, "--write"])
    file = clones / "matmul" / "src" / "tiled.cu"
    file.write_text(SOURCE.replace("beta * C[i * n + j]", "C[i * n + j]"))
    assert main(command) == 1 and "WRONG" in capsys.readouterr().out
    file.write_text(SOURCE.replace("        __syncthreads();\n    }", "    }"))
    assert main(command) == 1 and "race: tiled.cu:" in capsys.readouterr().out


def test_a_driver_calls_a_kernel_of_which_only_the_host_makes_arguments(clones, monkeypatch):
    lines = SOURCE.splitlines()
    first = lines.index("template <int TILE>") + 1
    driver = clones / "driver.cu"
    driver.write_text(
        f'{model.PLACE}\nextern "C" __global__ void ours(float* C, const float* A, '
        "const float* B)\n{ tiled<WIDTH>(32, 0.5f, A, B, 3.0f, C); }\n")
    monkeypatch.setattr(model, "SET", clones / "set.toml")
    whole = next(one for one in model.kernels() if one.name == "tiled<16>")
    one = replace(
        whole, name="ours", driver="driver.cu", lines=(first, lines.index("}") + 1), mutants=0,
        options=("-DWIDTH=16", "-I{clone}"),
        args=("C=float32[32,32]:uniform", "A=float32[32,32]:uniform", "B=float32[32,32]:uniform"),
        check="")
    assert one.digest != whole.digest and model.run(one, clones).ended == records.ENDED
    driver.write_text(driver.read_text() + "\n")
    changed = one.digest
    driver.write_text(driver.read_text().replace("0.5f", "0.25f"))
    assert one.digest != changed
    with pytest.raises(ValueError, match="have no one __global__"):
        model.run(replace(one, lines=(first + 2, first + 3)), clones)


def test_a_script_s_lines_are_compiled_and_named_as_they_stand_there(clones):
    """CUDA in a string of Python: the lines around it are no CUDA, and lines keep their numbers."""
    script = clones / "matmul" / "src" / "launch.py"
    script.write_text('import torch\nCODE = r"""' + SOURCE + '"""\nlaunch(CODE)\n')
    first = 2 + SOURCE.splitlines().index("__global__ void past(int* x, int n) "
                                          "{ if (threadIdx.x <= n) x[threadIdx.x] = 1; }")
    past = next(one for one in model.kernels() if one.name == "past")
    one = replace(past, file="src/launch.py", lines=(first, first))
    said = model.run(one, clones).ended
    assert "OutOfBounds" in said and f"launch.cu:{first}" in said
    assert one.digest not in (past.digest, replace(one, lines=(first - 1, first)).digest)


PAIR = r"""
__global__ void rank(int* x) { unsigned r; asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
                               x[blockIdx.x] = r; }
"""


def test_a_cluster_is_launched_that_the_kernel_does_not_ask_for(clones, monkeypatch):
    (clones / "matmul" / "src" / "pair.cu").write_text(PAIR)
    past = next(one for one in model.kernels() if one.name == "past")
    one = replace(past, file="src/pair.cu", name="rank", arch="sm_90a", grid=(4,),
                  args=("x=int32[4]:zeros",), check="ranks")
    monkeypatch.setitem(model.CHECKS, "ranks",
                        lambda args, before: args["x"].tolist() == [0, 1, 0, 1])
    assert model.run(one, clones).right is False
    assert model.run(replace(one, cluster=2), clones).right is True
    assert replace(one, cluster=2).digest != one.digest


TWO = r"""
__global__ void past(int* x, int n)
{
    __shared__ volatile int s, t[64];
    s = threadIdx.x;  // two warps race, with the barrier and without
    t[threadIdx.x] = threadIdx.x;
    __syncthreads();
    x[threadIdx.x] = t[63 - threadIdx.x] + n;
}
"""


def test_a_mutant_is_not_found_by_what_the_kernel_reports_itself(clones):
    """A race that was there before is no finding; what the missing barrier adds to it is one."""
    (clones / "matmul" / "src" / "two.cu").write_text(TWO)
    past = next(one for one in model.kernels() if one.name == "past")
    one = replace(past, file="src/two.cu", block=(64,), mutants=9,
                  args=("x=int32[64]:zeros", "n=int:1"))
    found = model.run(one, clones)
    assert found.hazards and found.mutants == records.Mutants(tried=1, unseen=())
    alone = TWO.replace("63 - ", "")
    (clones / "matmul" / "src" / "two.cu").write_text(alone)
    found = model.run(one, clones)
    assert found.hazards and found.mutants.unseen == ("bar.sync 0; → nothing",)


def test_oracles_of_block_scales_fail_on_a_scale_of_a_neighbour():
    random = np.random.default_rng(0)
    args = {"A": random.integers(0, 256, (128, 64)).astype(np.uint8),
            "B": random.integers(0, 256, (128, 64)).astype(np.uint8),
            "SFA": random.integers(40, 72, (1, 2, 32, 4, 4)).astype(np.uint8),
            "SFB": random.integers(40, 72, (1, 2, 32, 4, 4)).astype(np.uint8)}
    table = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])

    def value(name, row, k):
        code = int(args[name][row, k // 2]) >> 4 * (k % 2) & 15
        block = k // 16
        scale = int(args["SF" + name][0, block // 4, row % 32, row // 32, block % 4])
        return table[code] * (1 + scale % 8 / 8) * 2.0 ** (scale // 8 - 7)

    a = np.array([[value("A", row, k) for k in range(128)] for row in range(128)])
    b = np.array([[value("B", row, k) for k in range(128)] for row in range(128)])
    args["C"] = (a @ b.T).astype(np.float16)
    assert model.CHECKS["nvfp4"](args, {})
    args["SFA"] = np.roll(args["SFA"], 1, axis=2)
    assert not model.CHECKS["nvfp4"](args, {})


def test_the_oracle_of_mxfp8_takes_a_scale_for_each_32():
    import ml_dtypes

    random = np.random.default_rng(0)
    args = {name: random.uniform(-1, 1, (8, 256)).astype(ml_dtypes.float8_e4m3fn) for name in "AB"}
    args |= {f"SF{name}": random.integers(125, 130, (2, 8, 4)).astype(np.uint8).view(np.uint32)[
        ..., 0] for name in "AB"}

    def values(name):
        scale = [[2.0 ** ((int(args[f"SF{name}"][k // 128, row]) >> k % 128 // 32 * 8 & 255) - 127)
                  for k in range(256)] for row in range(8)]
        return args[name].astype(float) * np.array(scale)

    args["C"] = (values("A") @ values("B").T).astype(ml_dtypes.bfloat16)
    assert model.CHECKS["mxfp8"](args, {})
    args["SFB"] = args["SFB"] + 1
    assert not model.CHECKS["mxfp8"](args, {})


def test_published_cases_are_written_out():
    word = model.written_out("cases=published:tf32")
    assert word.startswith("cases=uint32[2,17]:") and word.count(",") == 1 + 2 * 17 - 1
    assert model.written_out("n=int:2") == "n=int:2"
    scaled = model.cases("nvfp4")
    assert scaled.shape == (2, 2 * 64 + 1 + 2 * 4) and (scaled[:, -8:] < 0x77).all()
    outputs = np.zeros((2, 128, 4), np.uint32)
    outputs[:, :32] = np.array(model.PUBLISHED["tf32"].words)[:, None, None]
    assert model.right("tf32", {"outputs": outputs}, {})
    outputs[1, 31, 3] ^= 1
    assert not model.right("tf32", {"outputs": outputs}, {})


def test_a_missing_clone_is_told_with_how_to_get_it(tmp_path, capsys):
    assert main(["foreign", "--folder", str(tmp_path), "siboehm"]) == 2
    assert "git clone https://github.com/siboehm/SGEMM_CUDA" in capsys.readouterr().err


def test_a_gpu_counts_what_the_emulator_counts():
    """Whatever is recorded of a GPU: equal, or with a reason, and right."""
    record = model.recorded()
    found = [(one, gpu) for one in model.kernels() if (gpu := record[one.key].gpu)]
    strange = {
        one.key: f"{model.gpu_outcome(one, measured)}: {said}" for one, measured in found
        if (said := model.strange(one, measured)) or measured.launch != one.digest
    }
    assert not strange, "record again: python -m lib foreign --folder FOLDER --counters --write"
    assert all(len(measured.ncu) == len(record[one.key].counters)
               for one, measured in found)
    assert found or not any(one.unlike for one in model.kernels())


ENDED = records.Result(ended=records.ENDED, right=None, hazards=[], counters={},
                       mutants=records.Mutants(tried=0, unseen=[]))


def measured(kernel, ncu, emulated, right=None, emulated_right=None):
    """What a GPU is said to count of a launch."""
    return records.Measured(
        gpu="GPU", arch="sm_90a", driver="1", cuda="13.0", nvrtc="13.0", ncu_release="1",
        date="2026-01-01", launch=kernel.digest, right=right, emulated_right=emulated_right,
        ncu=ncu, emulated=emulated)


SWIZZLED = r"""
extern __shared__ float s[];
__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__global__ void swizzled(int n, float alpha, const float* A, const float* B, float beta, float* C)
{
    const int i = threadIdx.x / 16, j = threadIdx.x % 16;
    s[j * 16 + i] = A[j * n + i];
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < n; k++) {
        unsigned place = at(&s[i * 16 + k]);
        place ^= (place & 1024) >> 8;  // a tile of 1,024 B has no such bit, but its address may
        float a;
        asm("ld.shared.f32 %0, [%1];" : "=f"(a) : "r"(place) : "memory");
        sum += a * B[k * n + j];
    }
    C[i * n + j] = alpha * sum + beta * C[i * n + j];
}
"""


def test_a_wrong_result_is_told_unless_the_set_says_why(shown, clones, monkeypatch):
    """A kernel that is right where shared memory begins at 0, and wrong where it doesn't."""
    (clones / "matmul" / "src" / "tiled.cu").write_text(SWIZZLED)
    tiled = model.kernels()[0]
    kernel = replace(tiled, name="swizzled", grid=(1,), block=(256,), shared=1024, args=tuple(
        one.replace("32", "16").replace("float16", "float32") for one in tiled.args))
    found = {}
    for arch in ("sm_80", "sm_90a"):
        _, found[arch] = foreign._emulated(kernel, foreign._compiled(kernel, clones, arch))
    assert found == {"sm_80": True, "sm_90a": False}
    gpu = measured(kernel, {"a": 1}, {"a": 1}, right=False, emulated_right=False)
    noted = replace(kernel, on_gpu="There it begins at 1,024.")
    assert "doesn't say why" in model.strange(kernel, gpu) and not model.strange(noted, gpu)
    assert "right" in model.strange(noted, structs.replace(gpu, emulated_right=True))
    assert "ALONE" in model.gpu_outcome(noted, structs.replace(gpu, emulated_right=True))
    assert "and in the emulator" in model.gpu_outcome(noted, gpu)
    ended = replace(noted, name="ended", on_gpu="Its launch ended the process.")
    monkeypatch.setattr(model, "kernels", lambda: (noted, ended))
    monkeypatch.setattr(model, "recorded", lambda: {
        noted.key: structs.replace(ENDED, gpu=gpu), ended.key: ENDED})
    files.counted()
    assert "| 1 | 1 of 1 |" in shown[-2] and "| 1 | not counted |" in shown[-2]
    assert "- `swizzled` of nobody/matmul: There it begins at 1,024." in shown[-1]
    assert "- `ended` of nobody/matmul: Its launch ended the process." in shown[-1]


FILES = """[[file]]
repository = "nobody/matmul"
revision = "0123456789abcdef0123456789abcdef01234567"
file = "src/tiled.cu"
kernels = ["tiled<16>"]

[[file]]
repository = "nobody/matmul"
revision = "0123456789abcdef0123456789abcdef01234567"
file = "src/broken.cu"
include = ["include"]
held_out = true
broken = "it names what is nowhere."
"""


def test_public_files_are_compiled_as_they_are(clones, monkeypatch, capsys, shown):
    (clones / "files.toml").write_text(FILES)
    every = files.files(clones / "files.toml")
    monkeypatch.setattr(files, "files", lambda: every)
    monkeypatch.setattr(records, "FILE", clones / "foreign.json")
    read, write = records.read, records.write
    monkeypatch.setattr(records, "read", lambda path=None: read(path or records.FILE))
    monkeypatch.setattr(records, "write", lambda one, path=None: write(one, path or records.FILE))
    (clones / "matmul" / "src" / "broken.cu").write_text(
        '#include "width.h"\n__global__ void f(int* x) { *x = WIDTH + nowhere; }\n')
    (clones / "matmul" / "include").mkdir()
    (clones / "matmul" / "include" / "width.h").write_text("#define WIDTH 4\n")
    command = ["foreign", "--folder", str(clones)]
    assert main([*command, "--files", "--write"]) == 0
    out = capsys.readouterr().out
    assert "matmul:src/tiled.cu: 2 kernels" in out and "1 of 2 files are taken" in out
    assert 'src/broken.cu: refused: src/broken.cu(2): error: identifier "nowhere"' in out
    main([*command, "past", "--write"])  # which leaves what is recorded of files
    assert records.read().files["nobody/matmul:src/tiled.cu"].kernels == 2
    files.compiled()
    assert "| held out | 1 | 0 of 1 |" in shown[-2] and "names what is nowhere." in shown[-1]
    (clones / "matmul" / "src" / "tiled.cu").write_text("__global__ void f() { nowhere(); }\n")
    assert main([*command, "--files", "tiled"]) == 1


def test_eighteen_of_twenty_public_files_are_taken_as_they_are():
    every, record = files.files(), records.read().files
    assert set(record) == {one.key for one in every}
    assert not {one.repository for one in every} & {one.repository for one in model.kernels()}
    assert all(len(one.revision) == 40 for one in every)
    taken = [one for one in every if not record[one.key].said]
    assert all(record[one.key].kernels for one in taken)
    assert [sum(one.held_out == which for one in every) for which in (False, True)] == [20, 10]
    assert sum(not one.held_out for one in taken) >= 18
    assert sum(one.held_out for one in taken) == 10
    assert all(one.broken for one in every if one not in taken)


def test_the_set_names_revisions_and_knows_its_oracles():
    every = model.kernels()
    assert len(every) >= 15 and len({one.key for one in every}) == len(every)
    assert all(len(one.revision) == 40 and one.check in ("", *model.CHECKS) for one in every)
    record = model.recorded()
    assert set(record) == {one.key for one in every}
    for one in every:
        result = record[one.key]
        assert result.right is not False
        if one.defect:
            assert result.hazards or result.ended != records.ENDED
        assert not one.unexplained(result.mutants.unseen)
        # What a kernel reports as it is has a reason; its mutants are found by more than that.
        assert one.defect or not (one.mutants and result.hazards)
