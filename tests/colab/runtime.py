"""Google Colab's runtimes, played: an environment filled as Colab publishes it, and its kernel."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell

from book import release

HERE, ROOT = Path(__file__).parent, release.ROOT
PLAY_T4 = ("from tests import played\n\n"
           "played.play(played.T4)\n"
           "played.play_cupy(played.T4)")
# Of this process's environment the kernel must not have.
LEFT_OUT = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")


@dataclass(frozen=True)
class Runtime:
    """A played Colab runtime.

    Attributes
    ----------
    name : {"cpu", "gpu"}
    python : Path
        Of its environment.
    content : Path
        Its ``/content``.
    kernels : KernelSpecManager
        Knows the kernel ``colab``.
    env : dict
        The kernel's environment.
    """

    name: str
    python: Path
    content: Path
    kernels: KernelSpecManager
    env: dict[str, str]

    def versions(self) -> dict[str, str]:
        """Name to version of what is installed there."""
        listed = output(self.python, "-m", "pip", "list", "--format=json")
        return {one["name"]: one["version"] for one in json.loads(listed)}

    def execute(self, notebook: nbformat.NotebookNode) -> None:
        """Run all cells, the outputs put in place; an error in one raises."""
        if all(cell.cell_type != "code" for cell in notebook.cells):
            return  # what leads on from an old name
        setup = notebook.cells[first_code(notebook)]
        assert "/content/" in setup.source
        setup.source = setup.source.replace("/content/", f"{self.content}/")
        if self.name == "gpu":
            notebook.cells.insert(first_code(notebook) + 1, new_code_cell(PLAY_T4))
        manager = AsyncKernelManager(kernel_name="colab", kernel_spec_manager=self.kernels)
        client = NotebookClient(notebook, km=manager, timeout=600,
                                resources={"metadata": {"path": str(self.content)}})
        # nbclient ends only kernels whose manager it made itself, unless it is told to.
        client.execute(env=self.env, cleanup_kc=True)


def first_code(notebook: nbformat.NotebookNode) -> int:
    """Index of the first code cell."""
    return next(i for i, cell in enumerate(notebook.cells) if cell.cell_type == "code")


def output(*command: object, **options: object) -> str:
    return subprocess.run([str(word) for word in command], check=True, text=True,
                          stdout=subprocess.PIPE, **options).stdout


def commit_tree(folder: Path) -> None:
    """Make `folder` a repository that holds this working tree at the revision readers get."""
    listed = output("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    output("git", "init", "-q", "-b", release.REVISION, cwd=folder)
    output("git", "add", "--all", cwd=folder)
    output("git", "-c", "user.name=played", "-c", "user.email=played@example.org",
           "commit", "-q", "-m", "the working tree", cwd=folder)


def redirected(origin: Path) -> dict[str, str]:
    """Environment in which git fetches from `origin` in place of the published repository."""
    return {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": f"url.file://{origin}.insteadOf",
            "GIT_CONFIG_VALUE_0": release.REPOSITORY}


def make(name: str, base: str, folder: Path, origin: Path) -> Runtime:
    """Make a runtime as one gets it: its environment clean, nothing fetched yet.

    Parameters
    ----------
    name : {"cpu", "gpu"}
    base : str
        The Python that its environment is made with.
    folder : Path
        Where; it is there and empty.
    origin : Path
        What git fetches in place of the published repository.
    """
    output(base, "-m", "venv", folder / "env")
    python = folder / "env" / "bin" / "python"
    output(python, "-m", "pip", "install", "-q", "--disable-pip-version-check",
           "-r", HERE / f"runtime-{name}.txt")
    spec = folder / "kernels" / "colab"
    spec.mkdir(parents=True)
    (spec / "kernel.json").write_text(json.dumps({
        "display_name": "Colab", "language": "python",
        "argv": [str(python), str(HERE / "kernel.py"), "-f", "{connection_file}"],
    }))
    programs, content = folder / "bin", folder / "content"
    programs.mkdir()
    content.mkdir()
    if name == "gpu":
        (programs / "nvidia-smi").write_text("#!/bin/sh\necho 'GPU 0: Tesla T4 (UUID: GPU-0)'\n")
        (programs / "nvidia-smi").chmod(0o755)
    env = {key: value for key, value in os.environ.items() if key not in LEFT_OUT} | {
        "PATH": f"{programs}:{python.parent}:{os.environ['PATH']}", **redirected(origin),
    }
    return Runtime(name, python, content, KernelSpecManager(kernel_dirs=[str(spec.parent)]), env)
