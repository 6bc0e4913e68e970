"""Write the locks: every package of the book and of its tests at one version, with its hashes.

``requirements.lock`` is what `make book` installs, ``requirements-dev.lock`` what `make test` adds
to it, each for Python 3.11 to 3.13 on any system. The bounds stand in the files ending with
``.txt``, which Colab and the package take. Versions of the present locks stay where they fit,
unless this is called with ``--upgrade``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OLDEST = "3.11"
HEAD = "# Written by `make lock` from {}.txt. Each file that may be installed has its hash here.\n"


def packages(text: str) -> list[str]:
    """The entries of a lock: a requirement with its hashes each."""
    return [entry for entry in text.replace("\\\n", "\0").splitlines()
            if entry and not entry.startswith(("#", "-"))]


def main(argv: list[str]) -> int:
    """Write both; return the exit status."""
    known: set[str] = set()
    for stem in ("requirements", "requirements-dev"):
        lock = ROOT / f"{stem}.lock"
        status = subprocess.run(
            [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal",
             "--python-version", OLDEST, "--generate-hashes", "--no-header", "--no-annotate",
             *argv, *(["--constraint", "requirements.lock"] if known else []),
             f"{stem}.txt", "--output-file", lock.name], cwd=ROOT, check=False).returncode
        if status:
            return status
        entries = [one for one in packages(lock.read_text(encoding="utf-8")) if one not in known]
        first = "-r requirements.lock\n" if known else ""
        known |= set(entries)
        lock.write_text(HEAD.format(stem) + first + "".join(
            one.replace("\0", "\\\n") + "\n" for one in entries), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
