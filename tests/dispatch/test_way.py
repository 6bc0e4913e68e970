"""The way of a problem from the command line to its launch: few files to read to follow it."""

import sys

import pytest

from lib.__main__ import main
from lib.dispatch.fit import Fit
from lib.dispatch.plan import Plan
from lib.kernels.grid import Launch, Workspace
from lib.problem import Problem
from lib.run.prepared import Prepared, Step

# The problem, and what is decided from it.
CARRIED = (Problem, Fit, Plan, Launch, Workspace, Prepared, Step)
# The most files of lib that `check`'s problem enters before it is launched.
MAX_ENTERED = 8


def entered(command):
    """Files of lib that a problem enters on its way from a command's parsing to its launch.

    That is: files with a function that is given the problem, or what is decided from it, as an
    argument or inside of one, until the emulator is called. Compiling is given none, and the
    emulator itself is left out. Methods of the problem's own count as its file.
    """
    found, launched = set(), []

    def note(frame, event, _):
        module, code = frame.f_globals.get("__name__", ""), frame.f_code
        if event != "call" or launched or not module.startswith("lib."):
            return
        if module.startswith("lib.ptx."):
            launched.extend([module] * (code.co_name == "__call__"))
            return
        many = code.co_argcount + code.co_kwonlyargcount
        many += bool(code.co_flags & 4) + bool(code.co_flags & 8)  # *args, **kwargs
        given = [frame.f_locals.get(name) for name in code.co_varnames[:many]]
        for one in list(given):
            given += one.values() if isinstance(one, dict) else (
                one if isinstance(one, tuple | list) else ())
        if any(isinstance(one, CARRIED) for one in given):
            found.add(module)

    sys.setprofile(note)
    try:
        assert main(command) == 0
    finally:
        sys.setprofile(None)
    assert launched == ["lib.ptx.launch"]
    return found


@pytest.mark.parametrize("stem, decides", [
    ("02_shared_tile", set()), ("15_turing_limit/tile_128x256", set()),
    ("hopper", {"lib.dispatch.cost"}),
])
def test_a_problem_enters_few_files_on_its_way_to_its_launch(stem, decides, capsys):
    files = entered(["check", stem, "--shape", "33x57x75", "--backend", "emulator"])
    assert files >= {"lib.run.runner", "lib.dispatch.plan", "lib.dispatch.fit"} | decides
    assert len(files) <= MAX_ENTERED, sorted(files)
