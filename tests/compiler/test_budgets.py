"""Budgets of a launch: which numbers keep them."""

import numpy as np
import pytest

from lib import ptx
from lib.compiler import budgets
from tests.tables import cases

COPY = """
.version 7.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 p)
{
    .reg .b64 %p, %q; .reg .b32 %t;
    ld.param.u64 %p, [p]; mov.u32 %t, %tid.x;
    mad.wide.u32 %q, %t, 4, %p; st.global.u32 [%q], %t;
    ret;
}
"""


@pytest.fixture(scope="module")
def launch():
    """One store of a warp: 4 sectors in 1 request."""
    return ptx.Module(COPY).get_function("k")(1, 32, (np.zeros(32, np.uint32),))


@cases("""
sign limit message
<    4     True
<=   4     False
==   4     False
<    5     False
<=   5     False
==   5     True
<    3     True
<=   3     True
==   3     True
""")
def test_what_was_counted_keeps_a_budget_or_breaks_it(launch, sign, limit, message):
    found = budgets.broken(launch, budgets.parse([f"sectors_per_request {sign} {limit}"]))
    assert found == [f"budget sectors_per_request {sign} {limit}: it is 4"] * message


def test_a_launch_that_did_not_count_keeps_no_budget():
    quick = ptx.Module(COPY).get_function("k")(1, 32, (np.zeros(32, np.uint32),), trace=False)
    assert budgets.broken(quick, []) == []
    with pytest.raises(ValueError, match="counts nothing"):
        budgets.broken(quick, budgets.parse("bank_conflicts == 0"))
