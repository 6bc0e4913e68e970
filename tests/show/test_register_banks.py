"""Register banks: what two of them can deliver, instruction by instruction."""

import pytest

from lib.compiler.sass import Instruction
from lib.show.register_banks import reading


def loop(*rows):
    return [Instruction(16 * i, text, text.split()[0]) for i, text in enumerate(rows)]


def cycles(*rows):
    return reading(loop(*rows)).cycles


def test_two_reads_of_different_banks_take_a_cycle():
    # The kept operand is read once; then each FFMA reads one even and one odd register.
    rows = [f"FFMA R{30 + i}, R1.reuse, R{2 * i + 2}, R{31 + 2 * i}" for i in range(12)]
    found = reading(loop(*rows))
    assert found.reads == (12, 13)
    assert found.cycles <= len(rows) + 1


def test_two_reads_of_one_bank_take_two_cycles():
    rows = [f"FFMA R{30 + 2 * i}, R1.reuse, R{2 * i + 2}, R{30 + 2 * i}" for i in range(12)]
    found = reading(loop(*rows))
    assert found.reads == (24, 1)
    # The last reads may follow its issue by the window.
    assert 2 * len(rows) - 3 <= found.cycles <= 2 * len(rows)
    assert found.lost == pytest.approx(128 * (found.cycles - 12) / 12)


def test_without_reuse_three_reads_take_one_and_a_half():
    rows = [f"FFMA R{i}, R{i + 1}, R{i + 2}, R{i}" for i in range(40, 240, 2)]
    assert cycles(*rows) >= 1.9 * len(rows)  # two even ones and an odd one each
    mixed = [f"FFMA R{i}, R{i + 1}, R{i + 2}, R{i}" for i in range(40, 240)]
    assert cycles(*mixed) == pytest.approx(1.5 * len(mixed), abs=3)


def test_an_operand_is_kept_for_its_own_place_only():
    reused = ("FFMA R10, R1.reuse, R2, R4", "FFMA R12, R1, R6, R8")
    swapped = ("FFMA R10, R1.reuse, R2, R4", "FFMA R12, R6, R1, R8")
    assert reading(loop(*reused)).reads == (4, 1)
    assert reading(loop(*swapped)).reads == (4, 2)


def test_a_read_that_is_not_marked_ends_what_was_kept():
    rows = ("FFMA R10, R1.reuse, R2, R4", "FFMA R12, R1, R6, R8", "FFMA R14, R1, R6, R8")
    assert reading(loop(*rows)).reads == (6, 2)
    between = ("FFMA R10, R1.reuse, R2, R4", "IADD3 R20, R22, R24, RZ", "FFMA R12, R1, R6, R8")
    assert reading(loop(*between)).reads == (6, 2)


def test_constants_and_negations_take_no_bank_or_their_own():
    assert reading(loop("FFMA R10, R1, c[0x0][0x180], RZ")).reads == (0, 1)
    assert reading(loop("FFMA R10, -R1, R2, R4")).reads == (2, 1)


def test_what_a_loop_costs_for_128_ffma():
    rows = [f"FFMA R{30 + i}, R1.reuse, R{2 * i + 2}, R{31 + 2 * i}" for i in range(8)]
    found = reading(loop(*rows, "BRA `(.L_x_1)"))
    assert found.others == 16 and found.instructions == 9
    with pytest.raises(ValueError, match="no FFMA"):
        reading(loop("IADD3 R1, R2, R3, RZ"))
