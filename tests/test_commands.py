"""What pages and READMEs tell a reader to type: collected from them, and tried.

A new command is found by itself. What needs a GPU has to be refused for want of one and for nothing
else; what is written with a placeholder, or changes the repository, is read by the command's own
parser.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from book.release import SETUP_TAGS
from lib import __main__ as command_line
from lib.compiler import command as emulator
from lib.measure import counters
from lib.paths import ROOT
from lib.run import device

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "lib/ptx/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "book").glob("*/README.md")),
    *sorted((ROOT / "chapters").glob("*.md")),
    *sorted((ROOT / "chapters").glob("*.ipynb")),
]
PROGRAM = re.compile(r"(?:\.venv/bin/)?python3?\s+-m\s+\S|(?:make|warplens)\s+\S")
# What stands for a reader's own: a word in capitals, a version that is still to be written.
PLACEHOLDER = re.compile(r"(?<![\w-])(?:[A-Z]{3,}(?:[/=][A-Z]+)?|M×N×K|29_mine)(?![\w=])|…")
ON_A_GPU = ("bench", "profile", "timeline", "record", "launch")
# They write into the repository or need others' sources; tests/show/test_zoo.py runs the zoo.
PARSED = ("notebooks", "stamp", "release", "new", "rivals", "foreign", "zoo")
# Mentioned by name, with nothing behind it.
BY_NAME = ("emulate", "foreign", "resources", "timeline")
KERNEL = """
template <int COLUMNS, int ROWS>
__global__ void gemm(int n, const float* A, const float* B, float* C)
{
    const int column = threadIdx.x % COLUMNS, row = blockIdx.y * 16 + threadIdx.x / COLUMNS;
    if (blockIdx.x == 0 && row < n) C[row * n + column] = A[row * n + column] + B[row];
}
"""


SCALE = """
template <class T>
__global__ void scale(T* x, T factor, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}
"""


def texts(path: Path) -> Iterator[str]:
    """The pieces of a page that may name a command: its Markdown, and what its cells print."""
    if path.suffix == ".md":
        yield path.read_text(encoding="utf-8")
        return
    for cell in nbformat.read(path, 4).cells:
        if cell.cell_type == "markdown":
            yield cell.source
        elif cell.metadata.get("tags") != SETUP_TAGS:
            # In code a command stands in a comment, to its line's end.
            yield from (f"`{line}`" for line in re.findall(r"#.*?(python -m .*)", cell.source))
            for output in cell.outputs:
                yield from (output.get("text", ""), *output.get("data", {}).values())


def named(text: str) -> Iterator[str]:
    """The commands that a text names, in code spans and in blocks of code."""
    blocks = re.findall(r"(?m)^```\w*\n((?:.*\n)*?)```", text)
    blocks += re.findall(r"(?m)((?:^    .*\n?)+)", text)
    for block in blocks:
        for line in block.replace("\\\n", " ").splitlines():
            if PROGRAM.match(line.strip()):
                yield " ".join(line.partition(" # ")[0].split())
    for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", text):
        if PROGRAM.match(span):
            yield " ".join(span.split())


COMMANDS = sorted({
    (str(path.relative_to(ROOT)), command)
    for path in PAGES for text in texts(path) for command in named(text)
})


def test_commands_are_found_on_every_kind_of_page():
    pages = {page for page, _ in COMMANDS}
    assert {"README.md", "CONTRIBUTING.md", "docs/chapters.md", "lib/ptx/README.md",
            "chapters/index.ipynb", "chapters/scoreboard.ipynb"} <= pages
    text = "`make\nbook`\n\n    make serve  # there\n\n```\nmake \\\n    new\n```\n`made`, make up"
    assert sorted(named(text)) == ["make book", "make new", "make serve"]


@pytest.mark.parametrize(("page", "command"), COMMANDS, ids=[" | ".join(one) for one in COMMANDS])
def test_a_command_that_is_printed_is_taken(page, command, tmp_path, monkeypatch, capsys):
    # What a page leaves out: "…".
    program, *words = (word for word in shlex.split(command) if word != "…")
    whole = "…" not in command and not PLACEHOLDER.search(command)
    if program == "make":
        subprocess.run(["make", "-n", *words], cwd=ROOT, check=True, capture_output=True)
    elif program == "warplens":
        assert_emulates(words, tmp_path, monkeypatch, whole)
    elif words[1] != "lib":
        assert importlib.util.find_spec(words[1]), f"no module {words[1]}"
    elif words[2:] in ([name] for name in BY_NAME):
        with pytest.raises(SystemExit) as end:
            command_line.main([*words[2:], "--help"])
        assert end.value.code == 0
    else:
        assert_taken(words[2:], tmp_path, monkeypatch, capsys, whole)


def assert_taken(words: list[str], folder: Path, monkeypatch, capsys, whole: bool) -> None:
    """The command line takes the words, and runs what is whole and may run here."""
    options = command_line.parse(words)
    if options.command == "emulate":
        assert_emulates(words[1:], folder, monkeypatch, whole)
    elif whole and options.command not in PARSED and "--record" not in words:
        monkeypatch.setattr(device, "why_unusable", lambda: "no GPU here: none at all")
        monkeypatch.chdir(folder)
        status, said = command_line.main(words), capsys.readouterr().err
        refused = (2, "error: no GPU here: none at all\n")
        # Pairs are listed anywhere; with sizes they are timed.
        timed = options.command in ON_A_GPU or options.command == "pairs" and options.sizes
        assert (status, said) == (refused if timed else (0, ""))


def assert_emulates(words: list[str], folder: Path, monkeypatch, whole: bool) -> None:
    """The emulator takes the words, and runs a kernel by them where they are whole."""
    parser = argparse.ArgumentParser()
    emulator.add_arguments(parser)
    file = parser.parse_args(words).file
    if whole and not file.endswith(".py"):  # these want Triton, numba or a script of one's own
        monkeypatch.chdir(folder)
        Path(file).write_text(SCALE if file == "scale.cu" else KERNEL)
        assert emulator.main(words) == 0


def test_messages_name_commands_that_there_are():
    lines = [line for folder in ("lib", "book") for file in (ROOT / folder).rglob("*.py")
             for line in re.findall(r"python -m lib (\w+)", file.read_text(encoding="utf-8"))]
    there = subprocess.run([sys.executable, "-m", "lib", "--help"], cwd=ROOT, check=True,
                           capture_output=True, text=True).stdout
    assert len(lines) > 40
    assert all(re.search(rf"(?m)^    {name}\b", there) for name in {*lines} - {"COMMAND"})


@pytest.mark.parametrize("words", [
    "01_naive --shape 64", "22_few_tiles/bf16_column --shape 512,256,128",
    "04_register_tile --shape 100x99x101 --alpha 0.1 --beta=-3",
])
def test_an_exported_file_names_the_command_that_makes_it_again(words, capsys):
    assert command_line.main(["export", *words.split()]) == 0
    text = capsys.readouterr().out
    [again] = re.findall(r"Made by: python -m lib (.*)", text)
    assert command_line.main(shlex.split(again)) == 0
    assert capsys.readouterr().out == text


def test_a_kernel_of_others_that_the_set_lacks_is_refused_by_its_name(tmp_path, capsys):
    assert command_line.main(["foreign", "--folder", str(tmp_path), "nobody/knows"]) == 2
    assert "no kernel of the set has nobody/knows in its name" in capsys.readouterr().err


def test_a_profiler_launches_the_shapes_that_it_was_asked_for(monkeypatch):
    launched = []

    def profile(metrics, command, *_, **__):
        assert command_line.main(list(command)) == 0
        raise counters.ProfilerMissing("no counters here")

    monkeypatch.setattr(counters.device, "cupy", lambda: None)
    monkeypatch.setattr(counters.ncu, "profile", profile)
    monkeypatch.setattr("lib.measure.launch.launch_once",
                        lambda ours, problem, *_: launched.append(problem.shape))
    shapes = [(64, 64, 64), (100, 99, 101)]
    with pytest.raises(counters.ProfilerMissing):
        counters.counters("01_naive", "swapped", shapes, metrics=counters.CYCLES)
    assert launched == ["64x64x64", "100x99x101"]
