"""What the emulator lacks: named as such where it is met, and README's list is the code's."""

import re

import pytest

import lib.ptx
from lib import ptx
from lib.ptx.core.decode import FORMS, MNEMONICS, OPCODES, listed

from ..conftest import function_of

README = (lib.ptx.__path__[0] + "/README.md")


def test_readme_has_the_list():
    with open(README, encoding="utf-8") as file:
        text = file.read()
    section = text.partition("### What is missing, by name\n\n")[2].partition("\n\n")[0]
    assert section == listed()


def test_nothing_that_is_there_is_listed():
    assert not MNEMONICS.keys() & OPCODES.keys()
    assert {name for name, _ in FORMS} <= {name.partition(".")[0] for name in OPCODES}


@pytest.mark.parametrize("opcode", [
    *(f"{name}.b32" for name in MNEMONICS), *(f"{name}.{part}.b32" for name, part in FORMS)])
def test_each_is_named_with_its_line(opcode):
    text = (".version 8.7\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{\n"
            f".reg .b32 %a;\n{opcode} %a, %a;\nret;\n}}\n")
    name = re.escape(opcode.partition(".")[0])
    with pytest.raises(ptx.UnsupportedInstruction, match=f"PTX line 7 .*: {name} .*not emulated"):
        function_of(text)


def test_what_is_no_instruction_at_all():
    text = (".version 8.7\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{\n"
            ".reg .b32 %a;\nxorr.b32 %a, %a, %a;\nret;\n}\n")
    with pytest.raises(ptx.UnsupportedInstruction, match="knows no 'xorr'; the nearest: xor"):
        function_of(text)
