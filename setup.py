"""The emulator as a package of its own: lib/ptx becomes `warplens`, lib/compiler a part of it.

Imports of `lib` are rewritten while the wheel is built, so nothing called `lib` is installed.
`pip wheel .` builds it, and leaves nothing behind; the book itself needs no installation.
"""

from __future__ import annotations

import ast
import atexit
import re
import shutil
import sys
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

NAME = "warplens"
ROOT = Path(__file__).parent
PLACES = {NAME: "lib/ptx", f"{NAME}.compiler": "lib/compiler"}
EXTRA = (
    "cupy-cuda12x", "cuda-pathfinder", "nvidia-cuda-nvrtc-cu12", "nvidia-cuda-runtime-cu12",
    "nvidia-cuda-nvcc-cu12", "nvidia-cuda-cccl-cu12", "nvidia-cuda-nvdisasm", "ml-dtypes",
)  # fmt: skip
REWRITTEN = (
    (r"^(\s*)from lib import ptx(?=\s*(#|$))", rf"\1import {NAME} as ptx"),
    (r"^(\s*)from lib\.ptx\b", rf"\1from {NAME}"),
    (r"^(\s*)from lib\.compiler\b", rf"\1from {NAME}.compiler"),
    (r"^INSTALL = .*$", f'INSTALL = "pip install \'{NAME}[compiler]\'"'),
)


def renamed(text: str, file: str) -> str:
    """Rewrite a module's imports of `lib`, and what it tells people to install.

    Raises
    ------
    ValueError
        If an import of `lib` is left.
    """
    for pattern, put in REWRITTEN:
        text = re.sub(pattern, put, text, flags=re.M)
    for node in ast.walk(ast.parse(text)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        if any(name.partition(".")[0] == "lib" for name in names):
            raise ValueError(f"{file}, line {node.lineno}: an import of lib that isn't rewritten")
    return text


class Build(build_py):
    """Copies modules under their new names."""

    def build_module(self, module, module_file, package):
        """Copy one module."""
        made, copied = super().build_module(module, module_file, package)
        path = Path(made)
        path.write_text(renamed(path.read_text(encoding="utf-8"), module_file), encoding="utf-8")
        return made, copied


def requirement(name: str) -> str:
    """A package's line in requirements.txt."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if re.match(rf"{re.escape(name)}\b(?!-)", line))


# What setuptools works in and would leave here: gone again, unless it was asked for or was there.
for left in (ROOT / "build", ROOT / f"{NAME}.egg-info"):
    if not left.exists() and not {"build", "develop", "egg_info"} & set(sys.argv[1:2]):
        atexit.register(shutil.rmtree, left, ignore_errors=True)

packages = [NAME, *(f"{NAME}.{part}" for part in find_packages(str(ROOT / PLACES[NAME]))),
            f"{NAME}.compiler"]
readme = ROOT / PLACES[NAME] / "README.md"
release = (ROOT / "book/release.py").read_text(encoding="utf-8")
setup(
    name=NAME,
    version=re.search(r'^VERSION = "(.+)"', release, re.M)[1],
    description="Runs CUDA kernels without a GPU: a PTX emulator in NumPy that counts what Nsight "
                "Compute counts and finds races",
    long_description=readme.read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="MIT",
    license_files=["LICENSE"],
    url=re.search(r'^REPOSITORY = "(.+)"', release, re.M)[1],
    python_requires=">=3.11",
    classifiers=[f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13)],
    packages=packages,
    package_dir=PLACES,
    package_data={NAME: ["README.md"]},
    install_requires=[requirement("numpy")],
    extras_require={"compiler": [requirement(name) for name in EXTRA],
                    "mcp": [*(requirement(name) for name in EXTRA), "mcp>=2,<3"]},
    entry_points={
        "console_scripts": [f"{NAME} = {NAME}.compiler.command:main",
                            f"{NAME}-mcp = {NAME}.compiler.mcp_server:main"],
        "pytest11": [f"{NAME} = {NAME}.compiler.pytest_plugin"],
    },
    cmdclass={"build_py": Build},
)
