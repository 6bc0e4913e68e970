"""The copies of the runtime are those that are named, and renewing makes them again."""

import gzip
import hashlib
import io
import json
import marshal
import re
import zipfile

import pytest

from book import runtime_files
from book.runtime_files import FOLDER, compiled, manifest

MAX_BYTES = 10_000_000  # of a click, with the emulator and a chapter's kernels
ROOM_FOR_OURS = 600_000


@pytest.mark.parametrize("name", manifest())
def test_a_copy_is_the_one_that_is_named(name):
    found = manifest()[name]
    stored = (FOLDER / found["file"]).read_bytes()
    assert len(stored) == found["bytes"]
    assert hashlib.sha256(stored).hexdigest() == found["sha256"]
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert re.search(rf"`{re.escape(found['file'])}` .*`{found['sha256']}`", text)
    unpacked = gzip.decompress(stored) if found["file"].endswith(".gzip") else stored
    assert len(unpacked) == found["unpacked"]


def test_the_copies_are_small_enough():
    total = sum(entry["bytes"] for entry in manifest().values())
    assert total <= MAX_BYTES - ROOM_FOR_OURS


def test_nothing_else_lies_beside_them():
    named = {entry["file"] for entry in manifest().values()}
    others = {path.name for path in FOLDER.iterdir()} - named
    assert {name.partition("-")[0] for name in others} == {
        "README.md", "manifest.json", "LICENSE", "LICENSES"}


def test_numpy_is_the_one_of_pyodides_lock_file():
    lock = json.loads(gzip.decompress((FOLDER / "pyodide-lock.json.gzip").read_bytes()))
    numpy = lock["packages"]["numpy"]
    assert list(lock["packages"]) == ["numpy"]
    # Of the compiled wheel; the original's is told beside it, and was checked when it was renewed.
    assert numpy["sha256"] == manifest()[numpy["file_name"]]["sha256"]
    assert lock["info"]["python"].startswith("3.12.")
    named = runtime_files.__doc__
    assert f"pyodide@{lock['info']['version']}" in named


def archived(**files):
    """A zip of texts by their names, in which two underscores stand for a slash."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in files.items():
            stem, _, ending = name.replace("__", "/").rpartition("_")
            archive.writestr(f"{stem}.{ending}", text)
    return made.getvalue()


@pytest.mark.parametrize("name", [
    "python_stdlib.zip", "numpy-2.0.2-cp312-cp312-pyodide_2024_0_wasm32.whl"])
def test_what_is_compiled_is_bytecode_of_pyodides_python_and_never_checked_for_sources(name):
    with zipfile.ZipFile(FOLDER / name) as archive:
        names = archive.namelist()
        codes = [archive.read(one) for one in names if one.endswith(".pyc")]
    assert len(codes) > 100 and not [one for one in names if one.endswith(".py")]
    # 3531 is that of Python 3.12 (importlib._bootstrap_external); flags 1: by hash, unchecked.
    assert {code[:8] for code in codes} == {
        (3531).to_bytes(2, "little") + b"\r\n" + (1).to_bytes(4, "little")}


def test_compiling_leaves_out_sources_docstrings_and_what_is_not_used():
    text = '"""Said."""\nassert False\nx = 1\n'
    given = archived(a_py=text, pyodide__b_py=text, unittest__c_py=text, pdb_py=text, d__e_so="so",
                     d__f_pyi=text, numpy__f2py__g_py=text, numpy__lib__h_py=text)
    made = compiled(given, "/lib/x.zip", 2)
    assert made == compiled(given, "/lib/x.zip", 2)
    with zipfile.ZipFile(io.BytesIO(made)) as archive:
        assert archive.namelist() == ["a.pyc", "d/e.so", "numpy/lib/h.pyc", "pyodide/b.pyc"]
        codes = [marshal.loads(archive.read(one)[16:]) for one in ("a.pyc", "pyodide/b.pyc")]
    assert codes[0].co_filename == "/lib/x.zip/a.py"
    assert "Said." not in codes[0].co_consts and "Said." in codes[1].co_consts
    found = {}
    exec(codes[0], found)
    assert found["x"] == 1
    with pytest.raises(AssertionError):
        exec(codes[1], {})


