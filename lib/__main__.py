"""``python -m lib``: the project from the command line.

Exit status: 0 all well; 1 a result was wrong or a check failed; 2 bad input, one line says what.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys

from lib import cli, ptx
from lib.problem import WrongResult

# Commands for whoever writes the book. Their modules need Jupyter's libraries, which a machine
# that only measures may lack, so each is loaded when its command is asked for.
AUTHORING = {"notebooks": "book.notebooks", "stamp": "book.release"}


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
        status = options.run(options)
        sys.stdout.flush()
        return status
    except cli.BAD_INPUT as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except MemoryError as error:
        print(f"error: {options.command}: too large for the memory here: {error}", file=sys.stderr)
        return 2
    except (ptx.Error, WrongResult) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(main())
