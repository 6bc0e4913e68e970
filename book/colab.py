"""What a chapter needs on Google Colab, and only what is missing there.

Colab brings CuPy of one CUDA major or the other, and wheels of the toolkit that came with other
packages. A second CuPy over the first breaks both, and NVRTC, its headers and ptxas must be of one
release, so what is there decides what is added. The first cell of a notebook has fetched this
checkout, or found it: one that is broken or older than what is published is renewed first. All of
it works before anything is installed.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent

# What Colab itself runs on, and the kernel has imported: another release would need a restart.
LEFT_ALONE = frozenset({"ipywidgets", "matplotlib", "numpy", "tqdm"})
# Only the pages are made with these; no chapter imports them.
BOOK_ONLY = frozenset({
    "jupyter-book", "math-core", "sphinx-notfound-page", "sphinxext-opengraph"})

NO_GPU = """\
No GPU in this Colab runtime. To get one: Runtime → Change runtime type → T4 GPU → Save, then run
this cell again. Until then the emulator runs the kernels: the same CUDA sources, slower, with the
same answers. Timings on the page are then the recorded ones."""


def missing(requirements: Iterable[str], installed: Mapping[str, str]) -> list[str]:
    """What pip must install so that the chapters run.

    Parameters
    ----------
    requirements : iterable of str
        Lines of requirements.txt.
    installed : mapping of str to str
        Canonical name to version of the distributions that are there.

    Returns
    -------
    list of str
        Requirements to hand to pip, none of which touches an installed CuPy or an installed part of
        the toolkit. Toolkit parts are of the CUDA major of the installed CuPy and of the release of
        the installed NVRTC, where there is one.
    """
    cupies = [name for name in installed if re.fullmatch(r"cupy(-cuda\d+x)?", name)]
    cupy = min(cupies, default=None)
    major = 13 if cupy == "cupy-cuda13x" else 12
    suffix = "-cu12" if major == 12 else ""
    nvrtc = installed.get(f"nvidia-cuda-nvrtc{suffix}")
    wanted = []
    for line in requirements:
        line = line.split("#", 1)[0].strip()
        if not line or line.startswith("-"):
            continue
        requirement = Requirement(line)
        name = canonicalize_name(requirement.name)
        if name in BOOK_ONLY:
            continue
        if name.startswith("cupy"):
            if cupy is None:
                wanted.append(line)
            continue
        if name.endswith("-cu12"):
            part = name.removesuffix("-cu12")
            if f"{part}{suffix}" in installed:
                continue
            if nvrtc is not None and part != "nvidia-cuda-cccl":
                release = ".".join(nvrtc.split(".")[:2])
                wanted.append(f"{part}{suffix}=={release}.*")
            elif major == 12:
                wanted.append(line)
            else:
                wanted.append(f"{part}==13.*")
                if part == "nvidia-cuda-nvcc" and "nvidia-cuda-crt" not in installed:
                    wanted.append("nvidia-cuda-crt==13.*")
            continue
        version = installed.get(name)
        fits = version is not None and requirement.specifier.contains(version, prereleases=True)
        if not fits and (version is None or name not in LEFT_ALONE):
            wanted.append(line)
    return wanted


def installed_distributions() -> dict[str, str]:
    """Canonical name to version of every distribution of this Python."""
    return {
        canonicalize_name(distribution.metadata["Name"]): distribution.version
        for distribution in importlib.metadata.distributions()
        if distribution.metadata["Name"]
    }


def has_gpu() -> bool:
    """Whether NVIDIA's driver answers and lists a GPU."""
    try:
        listing = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return False
    return listing.returncode == 0 and "GPU 0" in listing.stdout


def renew(root: Path) -> bool:
    """Exchange a checkout that is broken or older than what is published; tell whether it was.

    The old one is kept beside the new one. What this kernel has imported of it stays.

    Raises
    ------
    SystemExit
        If a broken one can't be fetched anew.
    """
    def git(*words: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", "-C", root, *words], capture_output=True, text=True,
                              check=False)

    def said(*words: str) -> str:
        return git(*words).stdout.strip()

    lost = git("diff", "--name-only", "--diff-filter=D", "HEAD")
    whole = lost.returncode == 0 and not lost.stdout
    address = said("remote", "get-url", "origin")
    branch = said("symbolic-ref", "--short", "HEAD")  # none: a release, which stays as it is
    if whole and (not branch or "lib" in sys.modules):
        return False
    newest = said("ls-remote", "origin", f"refs/heads/{branch}").partition("\t")[0]
    if whole and not newest:
        print(f"Could not ask {address} for a newer revision: going on with what is here.")
    if whole and newest in ("", said("rev-parse", "HEAD")):
        return False
    part, before = (root.with_name(f"{root.name}{end}")
                    for end in (".part", time.strftime("-until-%Y%m%d-%H%M%S")))
    shutil.rmtree(part, ignore_errors=True)
    done = git("clone", "-q", "--depth=1", address, part,
               f"--branch={branch or said('describe', '--tags', '--exact-match')}")
    if done.returncode:
        why = done.stderr.strip().partition("\n")[0]
        sys.exit(f"Could not fetch {address} ({why}). Run this cell again.")
    root.rename(before)
    part.rename(root)
    os.chdir(root / "chapters")
    print(f"Fetched the book's library anew; what was here is now in {before}.")
    return True


def prepare(root: Path = ROOT) -> None:
    """On Colab renew the checkout, install what is missing, and say how to choose a GPU.

    Elsewhere do nothing.
    """
    if "google.colab" not in sys.modules:
        return
    if renew(root):
        for name in [name for name in sys.modules if name.partition(".")[0] == "book"]:
            del sys.modules[name]
        importlib.invalidate_caches()
        importlib.import_module("book.colab").prepare_packages(root)
    else:
        prepare_packages(root)


def prepare_packages(root: Path) -> None:
    """Install what is missing, and say how to choose a GPU."""
    lines = (root / "requirements.txt").read_text(encoding="utf-8").splitlines()
    wanted = missing(lines, installed_distributions())
    if wanted:
        print("Installing", ", ".join(wanted))
        pip = [sys.executable, "-m", "pip", "install", "--quiet", *wanted]
        if subprocess.run(pip, check=False).returncode:
            sys.exit("pip could not install them. Run this cell again.")
        # Folders that pip has just made are else not looked for again.
        importlib.invalidate_caches()
    if not has_gpu():
        print(NO_GPU)
