"""``python -m lib``: the project from the command line.

Exit status: 0 all well; 1 a result was wrong or a check failed; 2 bad input, one line says what;
130 the reader has interrupted it.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import NoReturn

from lib.cli import interruption  # noqa: F401 - before what is slow to load
from lib.compiler import streams

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
    return streams.ended(lambda: _run(sys.argv[1:] if argv is None else argv))


def parse(argv: list[str]) -> argparse.Namespace:
    """Read the words of a command; its `run` carries it out.

    Raises
    ------
    SystemExit
        With status 2 for words that no command takes, one line said; with 0 behind ``--help``.
    """
    # Here, so that an interruption while it is loaded is an interruption like any other.
    try:
        commands = importlib.import_module("lib.cli.commands")
    except ImportError as error:
        if "kernels.own." in (error.name or ""):
            raise SystemExit(streams.failed(error)) from error
        if (error.name or "lib").partition(".")[0] == "lib":
            raise
        raise SystemExit(streams.failed(
            f"{error.name} is missing here; make book makes .venv, and .venv/bin/python -m lib "
            "has it")) from error
    parser = Parser(
        prog="python -m lib", description="Run, trace, measure and record the kernels of this book."
    )
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_commands(subparsers)
    asked = argv[0] if argv else "--help"
    for command, module in AUTHORING.items():
        if asked not in (command, "-h", "--help"):
            continue
        try:
            importlib.import_module(module).add_command(subparsers)
        except ModuleNotFoundError as error:  # `make book` installs nothing of the tests
            if asked == command:
                raise SystemExit(streams.failed(
                    f"{command} needs {error.name}: pip install -r requirements-dev.txt"
                )) from error
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
    try:
        status: int = options.run(options)
        return status
    except MemoryError as error:
        return streams.failed(f"{options.command}: too large for the memory here: {error}")
    except commands.bad_input() as error:
        return streams.failed(error)
    except commands.wrong_results() as error:
        return streams.failed(error, 1)


if __name__ == "__main__":
    sys.exit(main())
