"""Kernels of others', run on clones: here on kernels of our own in the same form."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from lib.__main__ import main
from lib.measure import foreign
from lib.topics.foreign import model, page

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
    unseen = model.recorded()["nobody/matmul:turned<16>"]["mutants"]["unseen"]
    turned = next(one for one in model.kernels() if one.name == "turned<16>")
    assert unseen and not turned.unexplained(unseen) and turned.unexplained(["bar.sync 1"])
    assert main(command) == 0 and "0 unlike the record" in capsys.readouterr().out
    page.found()
    page.defects()
    assert "2 of 2" in shown[0] and re.search(r"changes? nothing", shown[0])
    assert "The guard lets n through." in shown[1] and "OutOfBounds" in shown[1]
    assert "blob/0123456789abcdef" in shown[1]
    file = clones / "foreign.json"
    record = json.loads(file.read_text())
    record["nobody/matmul:tiled<16>"]["counters"]["global_load_sectors"] += 1
    file.write_text(json.dumps(record))
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


def test_a_missing_clone_is_told_with_how_to_get_it(tmp_path, capsys):
    assert main(["foreign", "--folder", str(tmp_path), "siboehm"]) == 2
    assert "git clone https://github.com/siboehm/SGEMM_CUDA" in capsys.readouterr().err
    assert main(["foreign", "--folder", str(tmp_path), "nobody/knows"]) == 2


def test_a_gpu_counts_what_the_emulator_counts():
    """Whatever is recorded of a GPU: equal, or with a reason, and right."""
    record = model.recorded()
    found = [(one, record[one.key]["gpu"]) for one in model.kernels() if "gpu" in record[one.key]]
    strange = {
        one.key: f"{model.told_of_gpu(one, measured)}: {said}" for one, measured in found
        if (said := model.strange(one, measured)) or measured["launch"] != one.digest
    }
    assert not strange, "record again: python -m lib foreign --folder FOLDER --counters --write"
    assert all(len(measured["ncu"]) == len(record[one.key]["counters"])
               for one, measured in found)
    assert found or not any(one.unlike for one in model.kernels())


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
    gpu = {"ncu": {"a": 1}, "emulated": {"a": 1}, "right": False, "emulated_right": False,
           "launch": kernel.digest, **dict.fromkeys(("gpu", "cuda", "driver", "ncu_release",
                                                     "date"), "–")}
    told = replace(kernel, on_gpu="There it begins at 1,024.")
    assert "doesn't say why" in model.strange(kernel, gpu) and not model.strange(told, gpu)
    assert "right" in model.strange(told, gpu | {"emulated_right": True})
    assert "ALONE" in model.told_of_gpu(told, gpu | {"emulated_right": True})
    assert "and in the emulator" in model.told_of_gpu(told, gpu)
    ended = replace(told, name="ended", on_gpu="Its launch ended the process.")
    monkeypatch.setattr(model, "kernels", lambda: (told, ended))
    monkeypatch.setattr(model, "recorded", lambda: {told.key: {"gpu": gpu}, ended.key: {}})
    page.counted()
    assert "| 1 | 1 of 1 |" in shown[-2] and "| 1 | not counted |" in shown[-2]
    assert "- `swizzled` of nobody/matmul: There it begins at 1,024." in shown[-1]
    assert "- `ended` of nobody/matmul: Its launch ended the process." in shown[-1]


def test_counters_that_differ_are_told_by_their_reason(shown, clones, monkeypatch):
    tiled = model.kernels()[0]
    machine = dict.fromkeys(("gpu", "cuda", "driver", "ncu_release", "date"), "–")
    one, two = (replace(tiled, name=f"{name}<8>", unlike={"a": "its retries"})
                for name in ("one", "two"))
    record = {
        each.key: {"gpu": {"ncu": {"a": 1_000 + i, "b": 2}, "emulated": {"a": 8, "b": 2},
                           "launch": each.digest, **machine}}
        for i, each in enumerate((one, two))
    }
    monkeypatch.setattr(model, "kernels", lambda: (one, two))
    monkeypatch.setattr(model, "recorded", lambda: record)
    page.counted()
    assert "| 2 | 1 of 2 |" in shown[-2]
    assert ("- `one`, `two` of nobody/matmul: its retries. `a` 1,000 in place of 8, "
            "`a` 1,001 in place of 8.") in shown[-1]


def test_the_set_names_revisions_and_knows_its_oracles():
    every = model.kernels()
    assert len(every) >= 15 and len({one.key for one in every}) == len(every)
    assert all(len(one.revision) == 40 and one.check in ("", *model.CHECKS) for one in every)
    record = model.recorded()
    assert set(record) == {one.key for one in every}
    for one in every:
        result = record[one.key]
        assert result["right"] is not False
        if one.defect:
            assert result["hazards"] or result["ended"] != "ran to its end"
        assert not one.unexplained(result["mutants"]["unseen"])
        assert not (one.defect and one.mutants)  # whose every mutant would be "found"
