"""The emulator as a package: built, installed into an empty environment, used outside of here.

What the package needs is linked from this environment.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from lib.paths import ROOT
from tools import warplens_readme

NAME = "warplens"
RELEASES = ("3.11", "3.12", "3.13")  # of Python, that are promised
KERNEL = """
import importlib.util, pathlib, sys
import {name}
assert importlib.util.find_spec("lib") is None
assert pathlib.Path({name}.__file__).is_relative_to(sys.prefix)
import numpy
text = '''.version 8.0
.target sm_80
.address_size 64
.visible .entry twice(.param .u64 x) {{
    .reg .b32 %t, %v; .reg .b64 %x;
    mov.u32 %t, %tid.x; ld.param.u64 %x, [x]; mad.wide.u32 %x, %t, 4, %x;
    ld.global.u32 %v, [%x]; add.u32 %v, %v, %v; st.global.u32 [%x], %v; ret;
}}'''
x = numpy.arange(64, dtype=numpy.uint32)
launch = {name}.Module(text).get_function("twice")(1, 64, (x,), races=True)
assert (x == 2 * numpy.arange(64)).all() and launch.clean
print(launch)
"""
CUDA = """
#include <cstdio>
__global__ void mirrored(const float* x, float* y)
{
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    y[threadIdx.x] = s[63 - threadIdx.x];
}
int main() { mirrored<<<1, 64>>>(nullptr, nullptr); }
"""
TEST = """
import numpy as np

def test_mirrored(emulate):
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    emulate("mirrored.cu", allow=["race"])(1, 64, (x, y))
    assert (y == x[::-1]).all()
"""
WORDS = ("mirrored.cu", "--block", "64", "--arg", "float32[64]:arange", "--arg", "float32[64]",
         "--races", "--json")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel, built from a clean clone: the files that git tracks, as they are now."""
    source, made = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for file in run("git", "ls-files", "-z", cwd=ROOT).strip("\0").split("\0"):
        if not file.startswith(("chapters/", "results/")) and (ROOT / file).is_file():
            (source / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, source / file)
    before = sorted(source.rglob("*"))
    found = built(source, made)
    assert sorted(source.rglob("*")) == before, "a build leaves something behind"
    return found


def built(source: Path, folder: Path) -> Path:
    """The wheel of a folder's files, at one date."""
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-index",
        "--no-build-isolation", "-w", folder, source, SOURCE_DATE_EPOCH="1700000000")
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def with_compiler(wheel, tmp_path_factory) -> Path:
    """A clean environment with the wheel and what ``[compiler]`` brings; its folder."""
    folder = tmp_path_factory.mktemp("compiler") / "env"
    needed = with_what_they_need(requirements(wheel, "compiler") | {"pytest"})
    assert {"cupy-cuda12x", "ml-dtypes"} <= needed and "matplotlib" not in needed
    environment(folder, wheel, needed)
    return folder


def run(*words, cwd=None, status=0, **more):
    """Run a program; return its output."""
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True,
                          check=False, env=plain | more)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def environment(folder: Path, wheel: Path, needed: set[str]) -> Path:
    """An empty environment with the wheel and links to what it needs; returns its Python."""
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps",
        "--no-index", wheel)
    site = next((folder / "lib").glob("python*/site-packages"))
    for name in needed:
        for file in importlib.metadata.distribution(name).files:
            if ".." not in file.parts and file.suffix != ".pyc":
                link(file.locate().resolve(), site / file)
    return python


def link(file: Path, place: Path) -> None:
    """Link a file to a place that has none yet."""
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(file)


def with_what_they_need(names: set[str]) -> set[str]:
    """Distributions, and all that those need."""
    found, left = set(), set(names)
    while left:
        name = left.pop()
        found.add(name)
        for line in importlib.metadata.distribution(name).requires or ():
            other = re.match(r"[\w.-]+", line)[0]
            if "extra ==" not in line and installed(other) and other not in found:
                left.add(other)
    return found


def installed(name: str) -> bool:
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def requirements(wheel: Path, extra: str = "") -> set[str]:
    """What the wheel's metadata ask for."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        lines = archive.read(name).decode().splitlines()
    asked = (line.removeprefix("Requires-Dist: ") for line in lines if line.startswith("Requires-"
                                                                                      "Dist:"))
    return {re.match(r"[\w.-]+", line)[0] for line in asked
            if "extra ==" not in line or extra and f'"{extra}"' in line.replace("'", '"')}


def test_nothing_called_lib_is_in_the_wheel(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        tops = {name.partition("/")[0] for name in names}
        assert tops == {NAME, wheel.name.rsplit("-", 3)[0] + ".dist-info"}
        assert {f"{NAME}/README.md", f"{NAME}/launch.py", f"{NAME}/isa/mma.py",
                f"{NAME}/compiler/cu_file.py"} <= set(names)
        texts = [archive.read(name).decode() for name in names if name.endswith(".py")]
    assert not any(re.search(r"^\s*(?:from|import) lib\b", text, re.M) for text in texts)


def test_the_same_files_give_the_same_wheel(wheel, tmp_path):
    """Or a rehearsal could not say that the index has what was built."""
    shutil.copytree(ROOT / "lib", tmp_path / "lib", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "book").mkdir()
    for file in ("setup.py", "pyproject.toml", "requirements.txt", "LICENSE", "book/release.py"):
        shutil.copy(ROOT / file, tmp_path / file)
    assert built(tmp_path, tmp_path / "made").read_bytes() == wheel.read_bytes()


def test_numpy_is_all_that_the_emulator_needs(wheel, tmp_path):
    assert requirements(wheel) == {"numpy"}
    python = environment(tmp_path / "env", wheel, {"numpy"})
    run(sys.executable, "-m", "pip", "--python", python, "check")
    (tmp_path / "kernel.py").write_text(KERNEL.format(name=NAME))
    said = run(python, "kernel.py", cwd=tmp_path)
    assert "kernel 'twice' ran to its end; races: none found, " in said
    (tmp_path / "mirrored.cu").write_text(CUDA)
    said = run(tmp_path / "env/bin" / NAME, *WORDS, cwd=tmp_path, status=2)
    assert said.startswith("error:") and f"pip install '{NAME}[compiler]'" in said


def test_the_extra_brings_the_compiler_the_command_and_the_plugin(
    with_compiler, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    python = with_compiler / "bin/python"
    (tmp_path / "mirrored.cu").write_text(CUDA)
    command = json.loads(run(with_compiler / "bin" / NAME, *WORDS, cwd=tmp_path, status=1))
    (launch,) = command["launches"]
    assert launch["hazards"][0]["first"] == "mirrored.cu:6" and launch["merged"]
    assert any((tmp_path / "cache" / NAME).iterdir())
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(TEST)
    assert "1 passed" in run(python, "-m", "pytest", "-q", "test_it.py", cwd=tmp_path)


def test_a_plain_header_of_another_type_is_taken(with_compiler, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "narrow.cu").write_text(
        "#include <cuda_bf16.h>\n__global__ void f(__nv_bfloat16* x) { x[0] = x[1]; }\n")
    run(with_compiler / "bin" / NAME, "narrow.cu", "--arg", "bfloat16[2]:ones", cwd=tmp_path)


def test_the_readme_s_code_runs_as_it_is_printed(wheel, tmp_path):
    """From top to bottom, in a clean environment: of each release of Python in CI's matrix."""
    python = environment(tmp_path / "env", wheel, with_what_they_need(
        requirements(wheel, "compiler")))
    (tmp_path / "empty").mkdir()
    said = warplens_readme.run(python, tmp_path / "empty")
    assert said.count(warplens_readme.CLEAN) == 3


def test_the_release_s_interpreters_are_those_of_the_matrix_and_of_the_wheel(wheel):
    jobs = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text("utf-8"))["jobs"]
    assert tuple(jobs["test"]["strategy"]["matrix"]["python"]) == RELEASES
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        lines = archive.read(name).decode().splitlines()
    assert f"Requires-Python: >={RELEASES[0]}" in lines
    assert {line for line in lines if line.startswith("Classifier: Programming Language")} == {
        f"Classifier: Programming Language :: Python :: {one}" for one in RELEASES}


@pytest.mark.parametrize("text, complaint", [
    ("```python\nprint(1)\n```\n", "Python's and the shell's"),
    ("```python\nprint(1)\n```\n```sh\necho no\n```\n", "launched nothing"),
    ("```python\nraise SystemExit(3)\n```\n```sh\ntrue\n```\n", "ended with 3"),
    (f"```python\nprint('{warplens_readme.CLEAN}')\n```\n```sh\nfalse\n```\n", "ended with 1"),
])
def test_a_readme_that_fails_is_told(text, complaint, tmp_path):
    (tmp_path / "README.md").write_text(text)
    with pytest.raises(warplens_readme.ReadmeFails, match=complaint):
        warplens_readme.run(Path(sys.executable), tmp_path, tmp_path / "README.md")


def test_an_import_that_would_be_left_is_refused(monkeypatch):
    monkeypatch.setattr("setuptools.setup", lambda **_: None)
    import runpy

    renamed = runpy.run_path(str(ROOT / "setup.py"))["renamed"]
    assert renamed("from lib.ptx.report import x\n", "a.py") == f"from {NAME}.report import x\n"
    with pytest.raises(ValueError, match="a.py, line 1"):
        renamed("from lib.kernels import spec\n", "a.py")
