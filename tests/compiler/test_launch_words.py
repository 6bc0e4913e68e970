"""The words of a launch: variables of the module, maps of their own arrays, the list of them."""

from __future__ import annotations

import shlex

import numpy as np
import pytest

import lib.ptx
from lib.compiler import arguments, command
from lib.compiler.cu_file import CudaFile
from lib.compiler.raw_module import RawModule
from tests.compiler.test_cu_file import left_out
from tests.tables import cases

CONSTANTS = r"""
namespace filter { __constant__ float taps[3]; }
__constant__ int limit;
__global__ void k(float* o)
{
    if (threadIdx.x < limit) o[threadIdx.x] = filter::taps[threadIdx.x % 3];
}
"""
MAPPED = r"""
#include <cuda.h>
#include <cstdint>
struct alignas(64) Map { uint64_t words[16]; };
__global__ void k(PARAMETER, float* o)
{
    __shared__ alignas(128) float tile[32 * 32];
    __shared__ alignas(8) uint64_t full;
    const uint32_t bar = (uint32_t)__cvta_generic_to_shared(&full);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;"
                     "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 4096;" :: "r"(bar));
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile"
                     ".mbarrier::complete_tx::bytes [%0], [%1, {%2, %2}], [%3];"
                     :: "r"((uint32_t)__cvta_generic_to_shared(tile)), "l"(MAP), "r"(0), "r"(bar)
                     : "memory");
    }
    __syncthreads();
    uint32_t done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;"
                     " selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(bar) : "memory");
    for (int i = threadIdx.x; i < 1024; i += 32) o[i] = tile[i];
}
"""


def run(tmp_path, text: str, *words: str) -> int:
    file = tmp_path / "k.cu"
    file.write_text(text)
    return command.main([str(file), "--block", "32", *words])


def test_variables_of_the_module(tmp_path, capsys):
    out = tmp_path / "o.npy"
    words = ["--arg", "o=float32[32]:zeros", "--out", f"o={out}", "--constant",
             "taps=float32[3]:1,2,3", "--constant", "limit=int:7"]
    assert run(tmp_path, CONSTANTS, *words) == 0
    assert np.load(out).tolist() == [1, 2, 3, 1, 2, 3, 1] + [0] * 25
    for word, message in (("tap=int:1", "no such variable; there are: limit, taps"),
                          ("taps=float32[4]:1", "has 16 bytes, the variable 12"),
                          ("int:1", "NAME=TYPE:NUMBER"), ("limit=null", "NAME=TYPE:NUMBER")):
        assert run(tmp_path, CONSTANTS, "--arg", "o=float32[32]", "--constant", word) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize("parameter,address,word", [
    ("const __grid_constant__ Map map", "&map", "map[32,32]:float32[64,64]:arange"),
    ("const void* map", "map", "mapptr[32,32]:float32[64,64]:arange"),
])
def test_a_map_of_an_array_of_its_own(tmp_path, parameter, address, word):
    out = tmp_path / "o.npy"
    text = MAPPED.replace("PARAMETER", parameter).replace("MAP)", f"{address})")
    words = ["--arch", "sm_90a", "--arg", "o=float32[1024]:nan", "--out", f"o={out}"]
    assert run(tmp_path, text, "--arg", word, *words) == 0
    expected = np.arange(64 * 64).reshape(64, 64)[:32, :32]
    assert (np.load(out).reshape(32, 32) == expected).all()


def test_a_map_where_a_pointer_to_one_is_asked_for(tmp_path, capsys):
    text = MAPPED.replace("PARAMETER", "const void* map").replace("MAP)", "map)")
    assert run(tmp_path, text, "--arch", "sm_90a", "--arg", "map[32,32]:float32[64,64]",
               "--arg", "float32[1024]") == 2
    assert "mapptr[BOX] in the place of map[BOX]" in capsys.readouterr().err


def test_a_map_passed_by_value(tmp_path, capsys):
    text = MAPPED.replace("PARAMETER", "Map map").replace("MAP)", "&map)")
    assert run(tmp_path, text, "--arch", "sm_90a", "--arg", "map[32,32]:float32[64,64]",
               "--arg", "float32[1024]") == 1
    assert "__grid_constant__" in capsys.readouterr().out


def test_maps_from_words(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((64, 64), np.float16))
    made, again, other = arguments.parse([
        "A=map[8,32]:float16[64,64]:uniform:64", "B=map[4,32]:A",
        f"map[8,64]:@{tmp_path / 'a.npy'}:128"])
    assert made.value.swizzle == 64 and made.value.array.dtype == np.float16
    assert again.value.array is made.value.array and again.value.box == (4, 32)
    assert other.value.swizzle == 128 and (other.value.array == 1).all()
    with pytest.raises(ValueError, match="no matrix 'nobody' before it; name one, or write it"):
        arguments.parse(["map[8,8]:nobody"])


def test_the_grammar_is_in_the_readme_and_in_the_help():
    with open(lib.ptx.__path__[0] + "/README.md", encoding="utf-8") as file:
        assert f"```text\n{arguments.GRAMMAR}\n```" in file.read()
    with pytest.raises(ValueError, match="--help has all"):
        arguments.parse(["a b"])


def test_a_class_whose_head_is_the_hosts(tmp_path):
    file = tmp_path / "errors.cu"
    file.write_text("""#include <exception>
class Failed : public std::exception { const char* what() const noexcept override; };
struct Plain { float x; __device__ float twice() const { return 2 * x; } };
__global__ void k(float* x) { x[0] = Plain{1.0f}.twice(); }
int main() { try { throw Failed(); } catch (const std::exception&) { } }
""")
    cut = CudaFile(file)
    cut.compile([], "compute_80")
    assert left_out(cut) == [("errors.cu", 2, 2), ("errors.cu", 5, 5)]
    x = np.zeros(1, np.float32)
    RawModule(path=file).get_function("k")(1, 1, (x,))
    assert x[0] == 2


def test_one_entry_of_several_has_the_same_accesses():
    text = "template <int N> __global__ void k(float* x) { __shared__ float s[32 * N];\n" \
           "for (int i = 0; i < N; ++i) s[threadIdx.x * N + i] = x[i];\n" \
           "__syncthreads(); float t = 0; for (int i = 0; i < N; ++i) t += s[i]; x[0] = t; }"
    module = RawModule(code=text, name_expressions=["k<4>", "k<8>"])
    kernels = [module.get_function(name) for name in ("k<4>", "k<8>")]
    single = RawModule(code=text, name_expressions=["k<4>"]).get_function("k<4>")
    assert kernels[0].merge and len(kernels[0].merge) == len(single.merge)


SAME = r"""
__global__ void k(float* x, int* flag)
{
    x[0] = 3.0f;                    // all lanes, all warps, all blocks
    if (threadIdx.x % 2) flag[0] = 1;
#ifdef TWO
    asm volatile("" ::: "memory");
    if (threadIdx.x == 40) flag[0] = 1;
#endif
    __shared__ float mean;
    mean = 2.0f;
    __syncthreads();
    x[threadIdx.x + 1 + 64 * blockIdx.x] = mean;
}
"""


@cases("""
words                         | status | said
                              | 0      | same value
--strict                      | 1      | same value
--strict --allow 'same value' | 0      | same value
-D TWO                        | 1      | warning
-D TWO --allow warning        | 0      | warning
""")
def test_one_value_of_many_lanes_is_a_note(tmp_path, capsys, words, status, said):
    assert run(tmp_path, SAME, "--grid", "2", "--block", "64", "--arg", "x=float32[129]:nan",
               "--arg", "flag=int32[1]", "--races", *shlex.split(words)) == status
    out = capsys.readouterr().out
    assert f"{said}: k.cu" in out and "syncthreads" not in out


UNCOMMITTED = r"""
__global__ void k(const float* a, float* o)
{
    __shared__ float s[64];
    const unsigned to = (unsigned)__cvta_generic_to_shared(&s[threadIdx.x]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to), "l"(a + threadIdx.x));
#ifdef COMMIT
    asm volatile("cp.async.commit_group;");
#endif
    asm volatile("cp.async.wait_group N;" ::: "memory");
    __syncthreads();
    o[threadIdx.x] = s[63 - threadIdx.x];
}
"""


@pytest.mark.parametrize("text,words,said,unsaid", [
    (UNCOMMITTED.replace("N;", "0;"), (), "commit_group (__pipeline_commit) between the copy at k",
     "newest N groups"),
    (UNCOMMITTED.replace("N;", "1;"), ("-D", "COMMIT"), "newest N groups", "__pipeline_commit)"),
])
def test_the_advice_names_what_is_missing(tmp_path, capsys, text, words, said, unsaid):
    assert run(tmp_path, text, "--block", "64", "--arg", "float32[64]:uniform", "--arg",
               "float32[64]", "--races", *words) == 1
    out = capsys.readouterr().out
    assert said in out and unsaid not in out


def test_a_trap_comes_with_the_compilers_reason(tmp_path, capsys):
    text = """#include <mma.h>
using namespace nvcuda::wmma;
__global__ void k(const half* a, float* c)
{
    half own[256];
    for (int i = 0; i < 256; ++i) own[i] = a[i];
    fragment<matrix_a, 16, 16, 16, half, row_major> x;
    load_matrix_sync(x, own, 16);
    c[threadIdx.x] = x.x[0];
}
"""
    assert run(tmp_path, text, "--arg", "float16[256]:uniform", "--arg", "float32[32]") == 1
    said = capsys.readouterr()
    assert "wmma load or store on local memory (load_matrix_sync, called at k.cu:8)" in said.out
    assert said.err.startswith("warning: mma.hpp:")


@pytest.mark.parametrize("index,said", [
    ("(int)threadIdx.x - 3", "12 bytes before argument 0: the index is negative:"),
    ("(int)(n * n + threadIdx.x)", "32 bits becomes that runs over 2^31; compute it in 64 bits"),
    ("(size_t)n * n + threadIdx.x", "9,999,999,744 bytes behind argument 0, which has 256"),
])
def test_an_index_that_is_negative_or_wrapped(tmp_path, capsys, index, said):
    text = f"__global__ void k(float* x, int n) {{ x[{index}] = 1; }}"
    assert run(tmp_path, text, "--arg", "float32[64]", "--arg", "int:50000") == 1
    assert said in capsys.readouterr().out


def test_warnings_of_the_compiler_are_shown(tmp_path, capsys):
    text = "__global__ void k(float* x) { float v; x[0] = v; }\nint main() { int j; return 0; }"
    run(tmp_path, text, "--arg", "float32[64]")
    assert capsys.readouterr().err == (
        'warning: k.cu:1: variable "v" is used before its value is set\n')
