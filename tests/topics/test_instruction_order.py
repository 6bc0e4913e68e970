"""The order of a loop's machine code, by hand."""

import pytest

from lib.topics.code.instruction_order import model as order
from lib.topics.code.instruction_order.model import loads_ahead, places, work_between

SEED = ["IMAD", "LDG.E", "LDG.E", "STS", "STS", "LDS", "LDS.128", "FFMA", "FFMA",
        "BAR.SYNC.DEFER_BLOCKING", "BRA"]
STAGED = ["LDS", "LDG.E", "FFMA", "FFMA", "STS", "FFMA", "BAR.SYNC", "BRA"]


def test_places():
    found = places(SEED)
    assert {name: str(place) for name, place in found.items()} == {
        "global load": "2 to 3 (2)", "shared load": "6 to 7 (2)", "FMA": "8 to 9 (2)",
        "shared store": "4 to 5 (2)", "barrier": "10 (1)",
    }
    assert places(["IADD3"]) == {}


def test_work_between_a_load_and_its_store():
    assert work_between(SEED) == 0
    assert work_between(STAGED) == 2
    assert work_between(["STS", "FFMA", "LDG.E", "FFMA"]) == 1  # the store of the next round
    assert work_between(["FFMA"]) == 0


def test_a_share_of_the_products_is_told_of_loops_that_load_and_store():
    assert order.share_between(STAGED) == (2, 3)
    assert order.share_between(SEED) == (0, 2)
    assert order.share_between(["LDS", "FFMA", "BAR.SYNC"]) is None


def test_products_of_tensor_cores_are_work_and_ldmatrix_is_a_shared_load():
    loop = ["LDG.E.U16", "LDSM.16.M88.4", "HMMA.16816.F32", "HMMA.16816.F32", "STS.U16", "BAR.SYNC"]
    found = places(loop)
    assert str(found["FMA"]) == "3 to 4 (2)" and str(found["shared load"]) == "2 (1)"
    assert work_between(loop) == 2


def test_fetches_are_rounds_of_loads_and_stores():
    ahead = ["LDG.E", "LDG.E", "HMMA.1688.F32", "HMMA.1688.F32", "STS.128", "STS.128", "BAR.SYNC"]
    assert order.fetches(ahead) == order.Fetches(1, 1, (2,))
    late = ["HMMA.1688.F32", "LDG.E", "STS", "LDG.E", "STS", "BAR.SYNC"]
    assert order.fetches(late) == order.Fetches(2, 1, (0, 0))
    # The load is the last instruction but one, and its store the first of the next turn.
    round_the_loop = ["FFMA", "STS", "BAR.SYNC", "FFMA", "LDG.E", "FFMA"]
    assert order.fetches(round_the_loop) == order.Fetches(1, 1, (2,))
    with pytest.raises(ValueError, match="fetches no tiles"):
        order.fetches(["LDG.E", "FFMA"])


def test_a_load_behind_a_store_is_not_ahead_of_it():
    assert loads_ahead(["LDG.E.128", "IADD3", "LDG.E", "STS.128", "LDG.E", "STS", "LDS"]) == 2
    assert loads_ahead(["STS", "LDG.E"]) == 0
    assert loads_ahead(["LDG.E", "LDSM.16.M88.4", "LDG.E"]) == 2
