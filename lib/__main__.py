"""``python -m lib``: the project from the command line.

Exit status: 0 all well; 1 a result was wrong or a check failed; 2 bad input, one line says what;
130 the reader has interrupted it.
"""

from __future__ import annotations

import argparse
import codecs
import importlib
import io
import os
import sys
from typing import NoReturn

# Commands for whoever writes the book. Their modules need Jupyter's libraries, which a machine
# that only measures may lack, so each is loaded when its command is asked for.
AUTHORING = {"notebooks": "book.notebooks", "stamp": "book.release", "release": "book.releasing",
             "new": "book.new"}


class Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """End with status 2."""
        self.exit(2, f"error: {message}; {self.prog} --help lists what there is\n")


def main(argv: list[str] | None = None) -> int:
    """Run one command; return its exit status."""
    _prepare_streams()
    try:
        return _run(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever read our output has seen enough
        _drop_output()
        return 0
    except OSError as error:  # a full disk, a file that can't be written
        if error.filename is None:
            _drop_output()
        where = f"{error.filename}: " if error.filename else ""
        print(f"error: {where}{error.strerror or error}", file=sys.stderr)
        return 2


def parse(argv: list[str]) -> argparse.Namespace:
    """Read the words of a command; its `run` carries it out.

    Raises
    ------
    SystemExit
        With status 2 for words that no command takes, one line said; with 0 behind ``--help``.
    """
    # Here, so that an interruption while it is loaded is an interruption like any other.
    commands = importlib.import_module("lib.cli.commands")
    parser = Parser(
        prog="python -m lib", description="Run, trace, measure and record the kernels of this book."
    )
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_commands(subparsers)
    asked = argv[0] if argv else "--help"
    for command, module in AUTHORING.items():
        if asked in (command, "-h", "--help"):
            importlib.import_module(module).add_command(subparsers)
    options, unknown = parser.parse_known_args(argv)
    if unknown:  # said by the command, whose --help lists what it takes
        hint = ("; a variant is written NAME/VARIANT"
                if unknown[0].partition("=")[0] == "--variant" else "")
        subparsers.choices[options.command].error(
            f"unrecognized arguments: {' '.join(unknown)}{hint}")
    return options


def _run(argv: list[str]) -> int:
    options = parse(argv)
    commands = importlib.import_module("lib.cli.commands")
    if sys.stdout is None:
        print("error: there is no standard output to write to", file=sys.stderr)
        return 2
    try:
        status = options.run(options)
        sys.stdout.flush()
        return status
    except MemoryError as error:
        print(f"error: {options.command}: too large for the memory here: {error}", file=sys.stderr)
        return 2
    except commands.bad_input() as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except commands.wrong_results() as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _prepare_streams() -> None:
    """Let messages go nowhere where there is no standard error, and let any output be written."""
    if sys.stderr is None:  # print would take standard output in its place
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # ASCII is what a C locale has, and no terminal of today: as in Python's UTF-8 mode.
            plain = codecs.lookup(stream.encoding).name == "ascii"
            stream.reconfigure(encoding="utf-8" if plain else None, errors="replace")


def _drop_output() -> None:
    """Let what is left to write go nowhere: Python would try again when it ends."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
