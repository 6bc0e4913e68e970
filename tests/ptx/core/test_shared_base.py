"""Where shared memory begins: at 0, and from sm_90 on behind a KiB of the system's."""

import numpy as np
import pytest

from lib import ptx

from ..conftest import entry

TARGETS = [("sm_75", 0), ("sm_80", 0), ("sm_89", 0), ("sm_90", 1024), ("sm_90a", 1024),
           ("sm_120", 1024)]
DECLARED = ".extern .shared .align 16 .b8 d[];\n"


def launched(body: str, machine: str, *args, shared_mem: int = 0, **options):
    text = entry(body).replace(".visible .entry", DECLARED + ".visible .entry")
    function = ptx.Module(text, machine).get_function("k")
    return function(1, 32, args, shared_mem, **options)


@pytest.mark.parametrize("machine, base", TARGETS)
def test_addresses_are_those_of_the_machine_code(machine, base):
    """Static variables first, the launch's own behind them, in either window."""
    out = np.zeros(4, np.uint64)
    launched("""
    .shared .align 16 .b8 s[40];
    .reg .b64 %o, %a, %g; .reg .b32 %v;
    ld.param.u64 %o, [out];
    mov.u64 %a, s; st.global.u64 [%o], %a;
    mov.u64 %a, d; st.global.u64 [%o+8], %a;
    st.shared.u32 [%a], 7;
    cvta.shared.u64 %g, %a; ld.u32 %v, [%g]; st.global.u32 [%o+16], %v;
    cvta.to.shared.u64 %a, %g; st.global.u64 [%o+24], %a;
    """, machine, out, shared_mem=64)
    assert out.tolist() == [base, base + 48, 7, base + 48]


@pytest.mark.parametrize("machine, base", TARGETS)
def test_what_lies_before_and_behind_is_nobody_s(machine, base):
    for at, fits in ((base, True), (base + 60, True), (base + 64, False), (base - 4, False)):
        body = f".reg .b32 %a; mov.u32 %a, {at}; st.shared.u32 [%a], 1;"
        if fits:
            launched(body, machine, np.zeros(1, np.uint64), shared_mem=64)
        else:
            with pytest.raises(ptx.OutOfBounds):
                launched(body, machine, np.zeros(1, np.uint64), shared_mem=64)


@pytest.mark.parametrize("machine, base", TARGETS)
def test_a_large_alignment_is_of_the_address(machine, base):
    """Kernels flip a bit of it to change buffers."""
    out = np.zeros(1, np.uint64)
    launched("""
    .shared .align 4096 .b8 s[4096]; .reg .b64 %o, %a;
    ld.param.u64 %o, [out]; mov.u64 %a, s; st.global.u64 [%o], %a;
    """, machine, out)
    assert out.tolist() == [4096 if base else 0]
