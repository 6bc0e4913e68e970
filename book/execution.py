"""Execute notebooks: one warm process, and a fork of it for each notebook.

Jupyter starts a process for each notebook, which imports NumPy, Matplotlib and CuPy
before its first cell, and hands each output through sockets. Here a process imports them once and
forks, and the notebook's cells run in IPython's shell within the fork. What comes out is the same:
streams, displayed data, results, errors.

Beside the outputs comes what they depend on, which modules and files of the repository, and how
much work they were: see `Executed`.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from book.children import end_with_parent
from lib.ptx.files import text_of

ROOT = Path(__file__).resolve().parent.parent
# Imported before the fork: what every chapter needs and none changes. Nothing of the repository is
# among them, so that a notebook's modules are those that it asked for.
WARM = (
    "numpy", "matplotlib.figure", "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg", "ml_dtypes", "tqdm.auto", "book.cells",
)
# Loads the driver where there is one, and no fork may share that.
WARM_WITHOUT_GPU = ("cupy", "cuda.pathfinder")
# New objects between two rounds of Python's collector in a notebook's process. By default they are
# 700 (2000 from Python 3.13 on), which decoding a kernel makes in a millisecond, all of them to
# stay: a fifth of a chapter's time went into rounds that found next to nothing.
COLLECTED_AFTER = 2_000_000
# How cuda-pathfinder looks for the toolkit's headers: a Python that imports nothing of the
# repository, and is started in every notebook.
PROBE = "cuda.pathfinder."


class Ended(RuntimeError):
    """The process that forks for notebooks ended before they were done."""


@dataclass(frozen=True)
class Executed:
    """What came of one notebook.

    Attributes
    ----------
    notebook : NotebookNode
        With its outputs, as far as it got.
    error : str
        Empty, or which cell failed and how.
    used : list of str
        Modules of the repository that were imported and files of it that were opened: paths from
        its root. ``"*"`` among them where a Python of its own was started, which may use any.
    work : dict of str to int
        How much was done: what `lib` reports by ``sys.audit("gemm.…", count)``.
    seconds : float
        CPU time, subprocesses included.
    """

    notebook: NotebookNode
    error: str
    used: list[str]
    work: dict[str, int]
    seconds: float


def execute(
    paths: Iterable[Path], *, timeout: float, workers: int = 1, root: Path = ROOT,
    env: Mapping[str, str] | None = None, kernels: Iterable[str] = (),
) -> Iterator[tuple[Path, Executed]]:
    """Execute notebooks, each in its own folder and in a process of its own.

    Parameters
    ----------
    paths : iterable of Path
        They are begun in this order.
    timeout : float
        Seconds that a cell may take.
    workers : int
        How many run at the same time.
    root : Path
        The repository, for `Executed.used`.
    env : mapping, optional
        The environment; this process's own if not given.
    kernels : iterable of str
        Names in the catalogue; others are passed over. These kernels are compiled first, together
        and side by side, which is quicker than each when a cell asks for it.

    Yields
    ------
    (Path, Executed)
        Each notebook when it is done.

    Raises
    ------
    Ended
        If the process that forks is ended from outside.
    """
    paths = list(paths)
    with tempfile.TemporaryDirectory() as folder:
        results = [Path(folder, f"{i}.json") for i in range(len(paths))]
        order = {
            "jobs": [[str(path.resolve()), str(result)]
                     for path, result in zip(paths, results, strict=True)],
            "timeout": timeout, "workers": workers, "root": str(root.resolve()),
            "kernels": list(kernels),
        }
        # A process of its own: this one may have threads, and a fork of those is no safe place.
        command = [sys.executable, "-m", "book.execution"]
        # One thread each: as many notebooks run at once as there are CPUs.
        env = {"OPENBLAS_NUM_THREADS": "1", **(os.environ if env is None else env),
               "MPLBACKEND": "agg"}
        with subprocess.Popen(command, cwd=ROOT, env=env, text=True, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as process:
            try:
                process.stdin.write(json.dumps(order))
                process.stdin.close()
                for line in process.stdout:
                    number = int(line)
                    document = json.loads(text_of(results[number]))
                    notebook = nbformat.from_dict(document.pop("notebook"))
                    yield paths[number], Executed(notebook, **document)
            except BaseException:  # whoever asked has enough: a disk that is full, say
                process.terminate()
                raise
        if process.returncode:
            raise Ended("the process that executes notebooks ended with status "
                        f"{process.returncode}; run the command again")


def cpus() -> int:
    """How many CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def main() -> int:
    """Read an order of `execute` from standard input; write the number of each job that is done."""
    order = json.load(sys.stdin)
    no_gpu = os.environ.get("CUDA_VISIBLE_DEVICES") == ""
    for name in (*WARM, *(WARM_WITHOUT_GPU if no_gpu else ())):
        importlib.import_module(name)
    if order["kernels"]:
        _compile(order["kernels"], order["root"], order["workers"])
    # What is imported stays: no fork looks through it, and so none copies it.
    gc.freeze()
    gc.set_threshold(COLLECTED_AFTER, *gc.get_threshold()[1:])
    running: dict[int, int] = {}
    begun = 0
    while begun < len(order["jobs"]) or running:
        if begun < len(order["jobs"]) and len(running) < order["workers"]:
            running[_fork(_run, *order["jobs"][begun], order)] = begun
            begun += 1
        else:
            pid, status = os.wait()
            number = running.pop(pid)
            if status:
                notebook, result = order["jobs"][number]
                code = os.waitstatus_to_exitcode(status)
                _write(result, json.loads(text_of(Path(notebook))),
                       f"the process ended with status {code}", [], {}, 0.0)
            try:
                print(number, flush=True)
            except BrokenPipeError:  # whoever asked is gone, and with it the use of the rest
                os._exit(1)
    return 0


def _fork(work: Callable[..., None], *arguments: Any) -> int:
    """Let a fork of this process do some work and end; return its id."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        end_with_parent()
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # the jobs' numbers alone go there
        work(*arguments)
        status = 0
    except OSError as error:  # a full disk
        print(error, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _compile(kernels: Iterable[str], root: str, workers: int) -> None:
    """Let forks compile the variants of some kernels.

    Where one doesn't compile, the chapter that asks for it fails and says so.
    """
    if not Path(root, "lib", "kernels", "build.py").is_file():
        return  # a book without kernels, such as the tests'
    for pid in [_fork(_compile_share, kernels, root, share, workers) for share in range(workers)]:
        os.waitpid(pid, 0)


def _compile_share(kernels: Iterable[str], root: str, share: int, shares: int) -> None:
    sys.path.insert(0, root)
    from lib.kernels.build import prepare
    from lib.kernels.catalogue import KERNELS

    prepare([KERNELS[name] for name in kernels if name in KERNELS], share, shares)


def _run(notebook: str, result: str, order: Mapping[str, Any]) -> None:
    """Execute one notebook and write its result."""
    from book import cells

    document = nbformat.reads(text_of(notebook), as_version=4)
    os.chdir(Path(notebook).parent)
    sys.path[0] = ""  # as in a kernel: the notebook's own folder
    record = Record(order["root"])
    sys.addaudithook(record)
    error = cells.run(document, order["timeout"])
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(use.ru_utime + use.ru_stime for use in spent)
    _write(result, document, error, record.used(), record.work, seconds)


def _write(result: str, notebook: Any, error: str, used: list[str], work: Mapping[str, int],
           seconds: float) -> None:
    Path(result).write_text(json.dumps({
        "notebook": notebook, "error": error, "used": used, "work": work, "seconds": seconds,
    }), encoding="utf-8")


class Record:
    """An audit hook that keeps which files of the repository are opened, and what work is done.

    Parameters
    ----------
    root : str
        The repository.
    """

    def __init__(self, root: str) -> None:
        self._root = root + os.sep
        self._opened: set[str] = set()
        self.work: dict[str, int] = {}

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Keep what is of interest."""
        if event == "open":
            path, mode, flags = arguments
            writes = set(mode) & set("wax+") if mode else flags & (os.O_WRONLY | os.O_RDWR)
            if not writes and not isinstance(path, int):
                self._opened.add(os.path.abspath(os.fsdecode(path)))
        elif event == "subprocess.Popen":
            program, words = arguments[0] or arguments[1][0], arguments[1]
            if (os.path.basename(os.fsdecode(program)).startswith("python")
                    and not any(str(word).startswith(PROBE) for word in words)):
                self._opened.add("*")
        elif event.startswith("gemm."):
            name = event.removeprefix("gemm.")
            self.work[name] = self.work.get(name, 0) + arguments[0]

    def used(self) -> list[str]:
        """The files, from the root: those opened and those of the modules imported so far."""
        modules = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
        every = self._opened | {os.path.abspath(file) for file in modules if file}
        inside = {path.removeprefix(self._root) for path in every if path.startswith(self._root)}
        return sorted(
            {path for path in inside if not path.startswith((".", "_build")) and
             not path.endswith(".pyc")} | (every & {"*"})
        )


if __name__ == "__main__":
    end_with_parent()
    # A signal from the keyboard reaches the forks, too.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        sys.exit(main())
    except OSError as error:
        sys.exit(str(error))
