"""Run the code of warplens's README as it is printed, with an interpreter that has it installed.

    python tools/warplens_readme.py PYTHON

Python's blocks are one program, the shell's follow it, all in an empty folder. It needs the
standard library alone: a test runs it, and so does the release, on what the test index gave it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "lib" / "ptx" / "README.md"
CLEAN = "ran to its end; races: none found, "


class ReadmeFails(RuntimeError):
    """A block of the README ended in an error, or found a hazard."""


def blocks(text: str) -> list[tuple[str, str]]:
    """The language and the text of each block of code, in their order."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S)


def run(python: Path, folder: Path, readme: Path = README) -> str:
    """Run a README's blocks; return what they wrote.

    Parameters
    ----------
    python : Path
        The interpreter. Commands that lie beside it are found first.
    folder : Path
        Empty: where the README's files are made.

    Raises
    ------
    ReadmeFails
        If a block fails, if a launch has a hazard, or if no block is left of one language.
    """
    found = blocks(readme.read_text(encoding="utf-8"))
    if {kind for kind, _ in found} - {"text"} != {"python", "sh"}:
        raise ReadmeFails(f"{readme.name} has blocks of {sorted({kind for kind, _ in found})}; it "
                          "should have Python's and the shell's")
    program = folder / "readme.py"
    program.write_text("".join(text for kind, text in found if kind == "python"), encoding="utf-8")
    said = [_ran([str(python), str(program)], python, folder)]
    said += [_ran(["sh", "-ec", text], python, folder) for kind, text in found if kind == "sh"]
    launches = [text.count(CLEAN) for text in said]
    if 0 in launches:
        raise ReadmeFails("a block launched nothing that is clean:\n" + "\n".join(said))
    return "\n".join(said)


def _ran(words: list[str], python: Path, folder: Path) -> str:
    """What a program wrote, with the interpreter's commands found first and no modules of ours."""
    around = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    around["PATH"] = os.pathsep.join([str(python.parent), around.get("PATH", os.defpath)])
    around.setdefault("XDG_CACHE_HOME", str(folder / "cache"))
    done = subprocess.run(words, cwd=folder, env=around, capture_output=True, text=True,
                          check=False)
    if done.returncode:
        raise ReadmeFails(f"{words[0]} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as empty:
        try:
            print(run(Path(sys.argv[1]).absolute(), Path(empty)))
        except ReadmeFails as error:
            sys.exit(f"warplens_readme: {error}")
