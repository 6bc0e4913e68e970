"""Python interpreters of this machine, by the releases that the project promises.

One is found by its name on the path (`python3.12`), among pyenv's, or because `PYTHONS` names it
(paths, divided as in `PATH`).
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

RELEASES = ("3.11", "3.12", "3.13")
_SAY = ("import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2]); "
        "print(sys.base_prefix); print(sys._base_executable)")


@functools.cache
def found(release: str) -> Path | None:
    """The interpreter of a release, or None. One that can't make an environment doesn't count."""
    asked = [Path(one) for one in os.environ.get("PYTHONS", "").split(os.pathsep) if one]
    for python, around in [*((str(one), {}) for one in asked), (f"python{release}", {}),
                           (f"python{release}", _pyenv(release))]:
        place = shutil.which(python)
        if place is None:
            continue
        done = subprocess.run([place, "-c", _SAY], capture_output=True, text=True, check=False,
                              env={**os.environ, **around})
        said = done.stdout.split("\n")
        if done.returncode == 0 and said[0] == release:
            return Path(said[2])
    return None


def _pyenv(release: str) -> dict[str, str]:
    """What makes pyenv's shims take a release of theirs, if it has one."""
    if shutil.which("pyenv") is None:
        return {}
    listed = subprocess.run(["pyenv", "versions", "--bare"], capture_output=True, text=True,
                            check=False).stdout.split()
    ours = [one for one in listed if one.startswith(f"{release}.")]
    return {"PYENV_VERSION": ours[-1]} if ours else {}
