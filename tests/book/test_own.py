"""The page "Write your own" is played: its commands, in its order, in a checkout of their own."""

import re
import shlex
import subprocess
import sys

import nbformat

from lib.kernels.catalogue import CATALOGUE
from lib.paths import CHAPTERS, ROOT
from tests.book.test_new import NAME, scratch  # noqa: F401 - the fixture
from tests.test_commands import ON_A_GPU, named

PAGE = CHAPTERS / "own.ipynb"
CELLS = nbformat.read(PAGE, 4).cells
COMMANDS = [command.replace("29_mine", NAME)
            for cell in CELLS if cell.cell_type == "markdown"
            # What stands in blocks; a command that a sentence names is one of these again.
            for block in re.findall(r"(?s)```.*?```", cell.source) for command in named(block)]


def test_the_page_begins_with_the_version_and_ends_with_the_book():
    assert COMMANDS[0] == f"make new NAME={NAME}" and COMMANDS[-1] == "make book"
    used = {command.split()[3] for command in COMMANDS if command.startswith("python -m lib")}
    assert {"check", "trace", "resources", "diff", "emulate", "bench", "profile", "timeline",
            "record", "results"} == used


def test_all_its_commands_do_what_the_page_says(scratch):  # noqa: F811
    for command in COMMANDS:
        program, *words = shlex.split(command)
        if program == "make":
            subprocess.run(["make", "-n", *words], cwd=ROOT, check=True, capture_output=True)
            if words[0] != "new":
                continue
            # What the recipe calls, where it may write.
            words = ["-m", "lib", "new", NAME]
            (scratch / "chapters" / f"{NAME}.ipynb").unlink(missing_ok=True)
        done = subprocess.run([sys.executable, *words], cwd=scratch, capture_output=True, text=True,
                              check=False)
        if words[2] in ON_A_GPU:
            assert done.returncode == 2 and done.stderr.startswith("error: no GPU here"), command
            assert done.stderr.count("\n") == 1
        else:
            assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        if words[2] == "check":
            assert f"{NAME}/first" in done.stdout and "right: error" in done.stdout
        if words[2] == "emulate":
            assert "races: none found, " in done.stdout and f"{NAME}.cu:" in done.stdout
    assert NAME not in CATALOGUE  # this checkout is as it was


def test_its_kernel_races_until_the_barrier_is_there():
    [*_, wrong, mended] = [cell.outputs[0].text for cell in CELLS
                           if cell.cell_type == "code" and cell.outputs]
    assert wrong.startswith("right: True") and "races: 3 found" in wrong
    assert "What to do: __syncthreads() between the two lines" in wrong
    assert mended.startswith("right: True") and "races: none found" in mended
