"""Kernels whose blocks wait for each other without each thing that orders them.

The table of mutants and verdicts is written to _build/mutants-emulator.md.
"""

import pytest

from lib import ptx
from lib.ptx.mutants import mutants
from tools.mutation import BUILD, Table

from ..conftest import HERE, compile_kernels
from . import test_blocks


@pytest.fixture(scope="module")
def table():
    """The table, written down when all kernels are through."""
    table = Table("Mutants of the emulator's test kernels", ())
    yield table
    table.write(BUILD / "mutants-emulator.md")


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
