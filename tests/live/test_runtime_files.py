"""The copies of the runtime are those that are named, and renewing makes them again."""

import gzip
import hashlib
import io
import json
import re
import tarfile
import zipfile

import pytest

from book import runtime_files
from book.runtime_files import FOLDER, gzipped, manifest, renew

MOST_BYTES = 10_000_000  # of a click, with the emulator and a chapter's kernels
ROOM_FOR_OURS = 600_000


@pytest.mark.parametrize("name", manifest())
def test_a_copy_is_the_one_that_is_named(name):
    found = manifest()[name]
    stored = (FOLDER / found["file"]).read_bytes()
    assert len(stored) == found["bytes"]
    assert hashlib.sha256(stored).hexdigest() == found["sha256"]
    told = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert re.search(rf"`{re.escape(found['file'])}` .*`{found['sha256']}`", told)
    unpacked = gzip.decompress(stored) if found["file"].endswith(".gzip") else stored
    assert len(unpacked) == found["unpacked"]


def test_the_copies_are_small_enough():
    total = sum(entry["bytes"] for entry in manifest().values())
    assert total <= MOST_BYTES - ROOM_FOR_OURS


def test_nothing_else_lies_beside_them():
    named = {entry["file"] for entry in manifest().values()}
    others = {path.name for path in FOLDER.iterdir()} - named
    assert {name.partition("-")[0] for name in others} == {
        "README.md", "manifest.json", "LICENSE", "LICENSES"}


def test_numpy_is_the_one_of_pyodides_lock_file():
    lock = json.loads(gzip.decompress((FOLDER / "pyodide-lock.json.gzip").read_bytes()))
    numpy = lock["packages"]["numpy"]
    assert list(lock["packages"]) == ["numpy"]
    assert numpy["sha256"] == manifest()[numpy["file_name"]]["sha256"]
    named = runtime_files.__doc__
    assert f"pyodide@{lock['info']['version']}" in named


@pytest.fixture
def packages(tmp_path):
    """A package of Pyodide's form, and a wheel that carries another: (package, wheels)."""
    wheel = b"a wheel"
    digest = hashlib.sha256(wheel).hexdigest()
    lock = {"info": {"version": "1"}, "packages": {
        "numpy": {"name": "numpy", "file_name": "numpy.whl", "sha256": digest, "depends": ["x"]},
        "other": {}}}
    package, wheels = tmp_path / "package.tgz", tmp_path / "wheels.whl"
    with tarfile.open(package, "w:gz") as archive:
        for name in (*runtime_files.PACKED, *runtime_files.STORED, runtime_files.LOCK):
            data = json.dumps(lock).encode() if name == runtime_files.LOCK else name.encode()
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    with zipfile.ZipFile(wheels, "w") as archive:
        archive.writestr("assets/numpy.whl", wheel)
    return package, wheels


def test_renewing_writes_copies_and_manifest(packages, tmp_path):
    renew(*packages, tmp_path)
    written = json.loads((tmp_path / "manifest.json").read_text())
    assert set(written) == {*runtime_files.PACKED, *runtime_files.STORED, "numpy.whl",
                            runtime_files.LOCK}
    for found in written.values():
        stored = (tmp_path / found["file"]).read_bytes()
        assert hashlib.sha256(stored).hexdigest() == found["sha256"]
    lock = json.loads(gzip.decompress((tmp_path / "pyodide-lock.json.gzip").read_bytes()))
    assert list(lock["packages"]) == ["numpy"] and lock["packages"]["numpy"]["depends"] == []


def test_renewing_refuses_another_numpy(packages, tmp_path):
    package, wheels = packages
    with zipfile.ZipFile(wheels, "w") as archive:
        archive.writestr("assets/numpy.whl", b"another wheel")
    with pytest.raises(ValueError, match="digest"):
        renew(package, wheels, tmp_path)


def test_packing_gives_the_same_bytes_each_time():
    assert gzipped(b"abc") == gzipped(b"abc")
