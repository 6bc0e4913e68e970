"""The order of a loop's machine code, by hand."""


from lib.show.instruction_order import work_between

SEED = ["IMAD", "LDG.E", "LDG.E", "STS", "STS", "LDS", "LDS.128", "FFMA", "FFMA",
        "BAR.SYNC.DEFER_BLOCKING", "BRA"]
STAGED = ["LDS", "LDG.E", "FFMA", "FFMA", "STS", "FFMA", "BAR.SYNC", "BRA"]


def test_work_between_a_load_and_its_store():
    assert work_between(SEED) == 0
    assert work_between(STAGED) == 2
    assert work_between(["STS", "FFMA", "LDG.E", "FFMA"]) == 1  # the store of the next round
    assert work_between(["FFMA"]) == 0


def test_products_of_tensor_cores_are_work():
    loop = ["LDG.E.U16", "LDSM.16.M88.4", "HMMA.16816.F32", "HMMA.16816.F32", "STS.U16", "BAR.SYNC"]
    assert work_between(loop) == 2
