"""Findings as annotations of a pull request: what the Action of the repository runs.

`python -m warplens.compiler.annotations FILE`: each line of FILE is what the command takes, a file
first, such as ``kernels/sum.cu --grid 4 --block 256 --arg x=float32[1024] … --races``.
"""

from __future__ import annotations

import argparse
import io
import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path, PurePath
from typing import Any

from lib.compiler import command
from lib.ptx.files import text_of


def workflow_commands(document: dict[str, Any]) -> Iterator[str]:
    """GitHub's workflow commands for what is wrong in the command's JSON."""
    file = document["file"]
    for launch in document["launches"]:
        for error in launch["errors"]:
            yield _command(file, "", f"{error['kind']}: {error['message']}", error["notes"])
        for one in launch["hazards"]:
            for place in dict.fromkeys((one["second"], one["first"])):
                yield _command(file, place, f"{one['kind']}: {one['message']}",
                               [one["advice"]] if one["advice"] else [])
    for said in document["over_budget"]:
        yield _command(file, "", said, [])


def _command(file: str, place: str, message: str, notes: Sequence[str]) -> str:
    name, _, line = place.rpartition(":")
    path = PurePath(file) if name in ("", PurePath(file).name) else PurePath(file).parent / name
    where = f"file={_escaped(str(path))}" + (f",line={line}" if line.isdecimal() else "")
    text = "\n".join([message, *notes]).replace("%", "%25").replace("\r", "").replace("\n", "%0A")
    return f"::error {where}::{text}"


def _escaped(text: str) -> str:
    for letter, put in (("%", "%25"), (":", "%3A"), (",", "%2C"), ("\n", "%0A"), ("\r", "%0D")):
        text = text.replace(letter, put)
    return text


def main(argv: Sequence[str] | None = None) -> int:
    """Run each kernel of a file, print the annotations, and return the worst status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", type=Path, help="a file with the command's words, a line each")
    options = parser.parse_args(argv)
    try:
        lines = text_of(options.kernels).split("\n")
    except OSError as error:
        print(f"error: {options.kernels}: {error.strerror}", file=sys.stderr)
        return 2
    worst = 0
    for line in lines:
        words = shlex.split(line, comments=True)
        if not words:
            continue
        printed = io.StringIO()
        with redirect_stdout(printed):
            status = command.main([*words, "--json"])
        worst = max(worst, status)
        print(f"{'clean' if status == 0 else 'not clean'}: {line.strip()}")
        if status == 1:
            print(*workflow_commands(json.loads(printed.getvalue())), sep="\n")
    return worst


if __name__ == "__main__":
    sys.exit(main())
