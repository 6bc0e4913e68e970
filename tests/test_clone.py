"""A clone may lie anywhere: in a path with spaces and umlauts the commands do the same."""

import os
import shutil
import subprocess
import sys

import pytest

from lib.paths import ROOT
from tests.links import unpacked

LOCALES = {
    "UTF-8": {},
    "C": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
}
BUNDLE = """
from book.panel.bundler import bundle
from lib.kernels.catalogue import find
from lib.panel.bundle import loads
from lib.paths import ROOT
text = bundle(find("01_naive")).dumps()
assert '"@/cuda/01_naive.cu' in text.replace("\\\\", ""), "the kernel's file isn't named"
assert not any(part in text for part in ("Ordner", "\\\\u00fc", "\\\\303")), "a folder is told"
[mistake, *_] = [m for one in loads(text).instances.values() for m in one.mistakes]
assert mistake.file == str(ROOT / "cuda/01_naive.cu"), mistake.file
"""


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clones") / "mein Ordner ü"
    for name in ("lib", "cuda", "book"):
        shutil.copytree(ROOT / name, folder / name,
                        ignore=shutil.ignore_patterns("__pycache__", "runtime", "static"))
    return folder


def play(clone, *words, **more):
    return subprocess.run([sys.executable, *words], cwd=clone, env={**os.environ, **more},
                          capture_output=True, encoding="utf-8", check=False)


@pytest.mark.parametrize("locale", LOCALES)
def test_a_kernel_of_the_book_is_checked(locale, clone):
    done = play(clone, "-m", "lib", "check", "01_naive", "--shape", "32x32x32", "--races",
                "--backend", "emulator", **LOCALES[locale])
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert "values: right" in done.stdout


def test_a_reader_s_own_is_emulated_with_its_headers_and_linked(clone):
    (clone / "meine Köpfe").mkdir()
    (clone / "meine Köpfe" / "größe.cuh").write_text("#define SIZE 32\n")
    (clone / "mein Kern.cu").write_text(
        '#include "größe.cuh"\n__global__ void f(int* x)\n{\n    x[threadIdx.x] = SIZE;\n}\n',
        encoding="utf-8")
    words = ["mein Kern.cu", "-I", "meine Köpfe", "--block", "32", "--arg", "int32[32]:zeros"]
    done = play(clone, "-m", "lib", "emulate", *words, "--link")
    assert done.returncode == 0 and "mein Kern.cu:4" in done.stdout, done.stderr
    [link] = [line for line in done.stdout.splitlines() if "#k=" in line]
    request = unpacked(link.split()[-1])
    assert '.file\t1 "mein Kern.cu"' in request["ptx"]
    assert not any(part in str(request) for part in ("Ordner", "\\303"))


def test_what_a_page_carries_says_nothing_of_the_folder(clone):
    done = play(clone, "-c", BUNDLE)
    assert done.returncode == 0, done.stderr
