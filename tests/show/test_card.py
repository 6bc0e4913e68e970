"""A card's lines: constants in their places, what changes marked, the whole to take away."""

import pytest

from lib.compiler.compiled import compile_source
from lib.compiler.fingerprint import include_folder
from lib.kernels.catalogue import CATALOGUE, find
from lib.ptx.files import text_of as text_of_file
from lib.show import card
from lib.show import card as page
from lib.show.card import instantiated
from lib.show.numbers import evaluate
from lib.show.version import Version


def text_of(stem, variant=None):
    kernel = find(stem)
    return instantiated(kernel, kernel.variant(variant) if variant else kernel.fastest)


def test_a_notebook_has_the_lines_and_the_page_the_kernel_too(monkeypatch):
    made = []
    monkeypatch.setattr(page, "display", lambda what, raw: made.append(what))
    page.change(Version("02_shared_tile"), ("__shared__ float As", "__shared__"))
    assert made[0]["text/plain"] == "+ __shared__ float As[32][32], Bs[32][32];"
    assert made[0]["text/html"].count('class="code-line changed"') == 1
    assert "template __global__ void shared_tile" in made[0]["text/html"]


def test_a_kernel_reads_as_its_instantiation():
    assert text_of("01_naive") == """\
__global__ void __launch_bounds__(1024)
naive(int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C)
{
    const int row = blockIdx.y * 32 + threadIdx.y;
    const int col = blockIdx.x * 32 + threadIdx.x;
    if (row >= M || col >= N) return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k) {
        float a = A[(size_t)row * K + k];
        float b = B[(size_t)k * N + col];
        sum += a * b;
    }

    update(&C[(size_t)row * N + col], alpha, sum, beta);
}
"""
    assert "const int row = blockIdx.y * 32 + threadIdx.x;" in text_of("01_naive", "swapped")


def test_constants_follow_from_arguments_and_dead_branches_go():
    staged = text_of("07_double_buffer", "staged")
    assert "float As[1][8][128 + 4], Bs[1][8][128];" in staged
    assert "i / 4 * 64" in staged and "#pragma" not in staged and "static_assert" not in staged
    assert "buffer ^= 1" not in staged and staged.count("__syncthreads();") == 2
    ahead = text_of("07_double_buffer", "both")
    assert "buffer ^= 1" in ahead and ahead.count("__syncthreads();") == 1
    assert "STAGED" not in ahead and "    fetch(K);\n" in ahead
    assert "        #pragma unroll 2 " in text_of("04_register_tile")


@pytest.mark.parametrize("stem", [stem for stem in CATALOGUE if stem < "22"])
def test_as_it_reads_it_compiles(stem):
    kernel = find(stem)
    variant = kernel.fastest
    source = text_of_file(kernel.file(variant))
    compile_source(source[:source.index("template <")] + text_of(stem),
                   variant.function or kernel.function, kernel.needs(variant), ("-std=c++17",),
                   include=include_folder(kernel.file(variant)), ptx_only=True)


@pytest.mark.parametrize("stem", [stem for stem in CATALOGUE if stem < "10"])
def test_no_constant_of_a_template_is_left(stem):
    kernel = find(stem)
    assert not {*kernel.fastest.constants} & {
        word for line in text_of(stem).splitlines()
        for word in line.partition("//")[0].replace("(", " ").replace("[", " ").split()}


def test_the_lines_that_the_version_before_has_not_are_marked():
    kernel, before = find("02_shared_tile"), find("01_naive")
    rows, marked = card.lines(
        kernel, kernel.fastest, [("__shared__", "col ="), ("if (row < M && col < N)", "update")],
        (before, before.fastest), {"threadIdx.x": "x"})
    assert rows[0].startswith("__shared__ float As[32][32]") and "// …" in rows
    assert marked == [1, 2, 3, 4, 6]
    with pytest.raises(ValueError, match="a card has room for 30"):
        card.lines(find("09_fp32_limit"), find("09_fp32_limit").fastest, [("const int tid", "}")
                   , ("for (; share", "}")], None, {})
    with pytest.raises(ValueError, match="nothing to replace"):
        card.lines(kernel, kernel.fastest, [("__shared__", "As")], None, {"no such": ""})


@pytest.mark.parametrize("stem", ["05_bank_conflicts", "09_fp32_limit", "23_stream_k"])
def test_the_whole_kernel_compiles_without_a_header_of_ours(stem):
    kernel = find(stem)
    text = card.standing_alone(kernel, kernel.fastest)
    assert '#include "' not in text
    compiled = compile_source(text, kernel.expression(kernel.fastest),
                              kernel.oldest(kernel.fastest), ("-std=c++17",), ptx_only=True)
    assert ".entry" in compiled.ptx


def test_numbers_of_the_pass_are_of_a_version_s_fastest():
    assert evaluate("on_ladder('03_strip') == on_ladder('03_strip/tile_64x32')", "index") == "True"
    assert evaluate("climb('', '01_naive') == on_ladder() / on_ladder('01_naive')",
                    "02_shared_tile") == "True"
    assert 1 < float(evaluate("of_rival()", "09_fp32_limit")) < 1.1
