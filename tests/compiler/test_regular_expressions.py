"""What reads a user's text takes time in proportion to it, whatever the text repeats.

Texts of 20,000 characters repeat what makes regular expressions go back: blanks, comments,
brackets, quotes, parts of numbers and names, behind what an expression begins with.
"""

from __future__ import annotations

import re
import signal
from contextlib import contextmanager

import pytest

from lib import ptx
from lib.compiler import arguments, raw_module
from lib.compiler.cu_file import kernels_of
from lib.compiler.signature import of_kernel

SIZE = 20_000
SECONDS = 1.5  # of this process; linear ones take a hundredth
UNITS = (" ", "\n", " \n", "// \n", "/", "/*", "/* */ ", "\\\n", "a", "0", "a ", "a:", "a,",
    "0_", "a.", "-", "# ", '"', '\\"', "'", 'R"', "(", "[", "{", "<", "; ", "%", "@a ", "[%a+1",
    "std ", "ld.shared ", "a<")
HEADS = ("", "a", "@a ", "/*0000*/ ", '#include "', "#define a", 'R"a(', "[%a", "ld.shared.b32 ",
    "x=a[1]:", "a(1): ", "%", '.file 1 "', "Compiling entry function 'x'")


@contextmanager
def limited(seconds: float):
    def stop(number, frame):
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@pytest.mark.parametrize("unit", UNITS)
def test_what_reads_a_text_is_linear(unit):
    """The functions around them, on a kernel behind, and before, so many of each."""
    many = unit * (SIZE // len(unit))
    kernel = "__global__ void k(float* x) { x[0] = 1; }\n"
    head = HEADS[UNITS.index(unit) % len(HEADS)]
    for text in (head + many, f"// {many}\n{kernel}", f"{kernel}\n{many}",
                 f'#define A "{many}"\n{kernel}', many):
        for read in (kernels_of, raw_module._is_ptx, of_whole_module, of_words, of_parameters):
            with limited(SECONDS):
                read(text)


def of_whole_module(text: str) -> None:
    with pytest.raises(ptx.Error):
        ptx.Module(text).get_function("k")


def of_words(text: str) -> None:
    try:
        arguments.parse([text])
    except ValueError:
        pass


def of_parameters(text: str) -> None:
    of_kernel("k", text)


def test_a_slow_one_is_seen():
    with pytest.raises(TimeoutError), limited(0.15):
        re.match(r"(?:\s|//[^\n]*)*x", "// \n" * 40)
