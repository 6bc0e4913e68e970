"""Install what a lock has: ``python tools/install.py requirements-dev``, in an environment.

A file whose hash is not the lock's ends it. Where the lock has nothing for this system or this
Python, one line says so, and the bounds of the file ending with ``.txt`` are taken instead.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PIP = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
OTHER = "DO NOT MATCH THE HASHES"  # what pip says of a file that is not the lock's
NONE = ("No matching distribution found", "ResolutionImpossible", "is not supported",
        "require a different python version", "all requirements must have their versions pinned")


def main(argv: list[str]) -> int:
    """Install; return the exit status."""
    lock, bounds = (ROOT / f"{argv[0]}.{end}" for end in ("lock", "txt"))
    done = subprocess.run([*PIP, "--require-hashes", "-r", str(lock)], text=True, check=False,
                          stderr=subprocess.PIPE)
    if done.returncode == 0 or OTHER in done.stderr or not any(
            sign in done.stderr for sign in NONE):
        sys.stderr.write(done.stderr)
        return done.returncode
    reason = next(line for line in done.stderr.splitlines() if any(sign in line for sign in NONE))
    print(f"{lock.name} doesn't fit Python {sys.version_info[0]}.{sys.version_info[1]} here "
          f"({reason.removeprefix('ERROR: ')}): installing within the bounds of {bounds.name}",
          file=sys.stderr)
    return subprocess.run([*PIP, "-r", str(bounds)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
