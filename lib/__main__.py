"""``python -m lib``: the project from the command line.

Exit status: 0 all well; 1 a result was wrong or a check failed; 2 bad input, one line says what.
"""

from __future__ import annotations

import argparse
import importlib
import sys

from lib import cli, ptx

# Commands for whoever writes the book. Their modules need Jupyter's libraries, which a machine
# that only measures may lack, so each is loaded when its command is asked for.
AUTHORING = {"notebooks": "lib.notebooks", "stamp": "lib.release"}


def main(argv: list[str] | None = None) -> int:
    """Run one command; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m lib", description="Run, trace, measure and record the kernels of this book."
    )
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    cli.add_command(subparsers)
    argv = sys.argv[1:] if argv is None else argv
    asked = argv[0] if argv else "--help"
    for command, module in AUTHORING.items():
        if asked in (command, "-h", "--help"):
            importlib.import_module(module).add_command(subparsers)
    options = parser.parse_args(argv)
    try:
        return options.run(options)
    except cli.BAD_INPUT as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except ptx.Error as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
