"""The page "Write your own" is played: its commands, in its order, in a checkout of their own."""

import json
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


# What they print and how they end, of one process: each would load the library anew.
PLAY = """
import contextlib, io, json, sys
from lib.__main__ import main
played = []
for words in json.load(sys.stdin):
    with (contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")) as out,
          contextlib.redirect_stderr(io.StringIO()) as err):
        status = main(words)
        out.seek(0)
        played.append((status, out.read(), err.getvalue()))
json.dump(played, sys.stdout)
"""


def test_all_its_commands_do_what_the_page_says(scratch):  # noqa: F811
    def run(*words, **options):
        return subprocess.run([sys.executable, *words], cwd=scratch, capture_output=True, text=True,
                              check=True, **options).stdout

    python = []
    for command in dict.fromkeys(COMMANDS):
        program, *words = shlex.split(command)
        if program == "make":
            subprocess.run(["make", "-n", *words], cwd=ROOT, check=True, capture_output=True)
        else:
            assert (program, *words[:2]) == ("python", "-m", "lib")
            python.append(words[2:])
    # What the recipe of its first calls, where it may write.
    (scratch / "chapters" / f"{NAME}.ipynb").unlink(missing_ok=True)
    run("-m", "lib", "new", NAME)
    said = json.loads(run("-c", PLAY, input=json.dumps(python)))
    for (name, *_), (status, out, err) in zip(python, said, strict=True):
        if name in ON_A_GPU:
            assert status == 2 and err.startswith("error: no GPU here"), name
            assert err.count("\n") == 1
        else:
            assert status == 0, f"{name}: {out}{err}"
        if name == "check":
            assert f"{NAME}/first" in out and "right: error" in out
        if name == "emulate":
            assert "races: none found, " in out and f"{NAME}.cu:" in out
    assert NAME not in CATALOGUE  # this checkout is as it was


def test_its_kernel_races_until_the_barrier_is_there():
    [*_, wrong, mended] = [cell.outputs[0].text for cell in CELLS
                           if cell.cell_type == "code" and cell.outputs]
    assert wrong.startswith("right: True") and "races: 3 found" in wrong
    assert "What to do: __syncthreads() between the two lines" in wrong
    assert mended.startswith("right: True") and "races: none found" in mended
