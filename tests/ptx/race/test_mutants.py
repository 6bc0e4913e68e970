"""The emulator's own kernels without each thing that orders them: tensor cores, TMA, flags.

The table of mutants and verdicts is written to _build/mutants-emulator.md.
"""

import numpy as np
import pytest

from lib import ptx
from lib.ptx.mutants import SETTINGS, mutants
from tools.mutation import BUILD, Table

from .. import test_hopper
from ..conftest import HERE, compile_kernels, function_of
from . import test_blocks


@pytest.fixture(scope="module")
def table():
    """The table, written down when all kernels are through."""
    table = Table("Mutants of the emulator's test kernels", ())
    yield table
    table.write(BUILD / "mutants-emulator.md")


@pytest.mark.parametrize("arch, name", [
    pytest.param("compute_75", "wmma_gemm", marks=pytest.mark.slow),
    pytest.param("compute_75", "mma_m16n8k8", marks=pytest.mark.slow), ("compute_80", "pipelined"),
])
def test_tensor_kernels(arch, name, table):
    K = 256
    random = np.random.default_rng(0)
    a, b = (random.uniform(-1, 1, shape).astype(np.float16) for shape in ((64, K), (K, 64)))
    exact = a.astype(float) @ b.astype(float)

    def runs(text):
        function = function_of(text, name)

        def run(**options):
            c = np.full((64, 64), np.nan, np.float32)
            launch = function((1, 1), 128, (64, 64, K, a, b, c), **options)
            return launch, np.allclose(c, exact, atol=1e-3)

        return run

    table.check(name, [(compile_kernels(arch, str(HERE / "tensor.cu")), name, runs)])


@pytest.mark.parametrize("name", ["gemm", pytest.param("pair_gemm", marks=pytest.mark.slow)])
def test_kernels_of_tma_and_wgmma(name, table):
    def runs(text):
        def run(**options):
            launch, c, exact = test_hopper.product(
                name, (256 if name == "pair_gemm" else 128, 128, 9 * 64), text=text, **options
            )
            return launch, np.allclose(c, exact, atol=1e-4)

        return run

    text = compile_kernels("compute_90a", str(HERE / "hopper.cu"))
    table.check(name, [(text, name, runs)], SETTINGS[:3])


@pytest.mark.parametrize("pattern", test_blocks.PATTERNS)
def test_blocks_that_wait_for_each_other(pattern, table, monkeypatch):
    name = pattern.__name__

    def runs(text):
        def run(**options):
            monkeypatch.setattr(test_blocks, "compile_kernels", lambda *_: text)
            return pattern(turns=1 << 14, **options)

        return run

    text = compile_kernels("compute_75", str(HERE / "blocks.cu"))
    table.check(name, [(text, name, runs)])


def test_mutants_keep_their_lines():
    text = compile_kernels("compute_90a", str(HERE / "hopper.cu"))
    found = list(mutants(text, "gemm"))
    assert len({m.text for m in found}) == len(found) > 12
    for mutant in found:
        assert mutant.text.count("\n") == text.count("\n")
        assert mutant.opcode in text.split("\n")[mutant.line - 1]
    with pytest.raises(ptx.Error, match="no kernel 'none'"):
        list(mutants(text, "none"))


INITS = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry inits(.param .u64 p)
{{
.shared .align 8 .b64 bar;
.reg .pred %p0; .reg .b32 %r0; .reg .b64 %rd0;
mov.u32 %r0, bar;
{before}
@%p0 mbarrier.init.shared::cta.b64 [%r0], 1;
@%p0 {fence}
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
{between}
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
ret;
}}
"""


@pytest.mark.parametrize("parts, lines", [
    ({}, []),  # nothing else is written before either barrier
    ({"between": "st.shared.u32 [%r0], 1;"}, [15]),
    ({"between": "mbarrier.arrive.shared::cta.b64 %rd0, [%r0];"}, [15]),
    ({"before": "st.shared.u32 [%r0], 1;"}, [12, 15]),
    ({"fence": "fence.acq_rel.cluster;"}, [12, 15]),
])
def test_an_arrival_behind_inits_alone_is_not_weakened(parts, lines):
    """Their own fence orders them; what else is written needs the release."""
    text = INITS.format(**{"before": "", "between": "",
                           "fence": "fence.mbarrier_init.release.cluster;"} | parts)
    found = [one.line for one in mutants(text.lstrip(), "inits") if "relaxed" in one.change]
    assert found == lines
