"""Pictures of signals: registers that roles hand on."""

import pytest

from lib.show import signals


def test_registers_that_move_stay_within_what_was_launched():
    assert signals.registers(168, 40, 232)["after setmaxnreg"] == (40, 232, 232)
    with pytest.raises(ValueError, match="more than"):
        signals.registers(168, 40, 240)
