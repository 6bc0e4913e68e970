"""A stand-in for ``cupy.RawModule`` where there is no GPU: the same calls, on NumPy arrays.

>>> module = RawModule(code=source, name_expressions=["scale<float>"])        # doctest: +SKIP
>>> scale = module.get_function("scale<float>")                               # doctest: +SKIP
>>> launch = scale((4,), (256,), (x, np.float32(2), x.size))                  # doctest: +SKIP

NVRTC compiles the source to PTX and the emulator runs it. A launch returns what the emulator saw:
counters, traced addresses, hazards. Memory accesses are counted as the machine code has them, into
which ptxas may merge several of the PTX; that takes ptxas and nvdisasm, and `Kernel.counted` says
where they are missing.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from lib import ptx
from lib.compiler import merging
from lib.compiler.arch import TARGETS, check_any_arch, nearest_target
from lib.compiler.compiled import of_ptx
from lib.compiler.cu_file import CudaFile, Declared, kernels_of
from lib.compiler.nvrtc import CompileError, compile_nvrtc
from lib.compiler.signature import check_arguments, of_kernel, plain_name
from lib.compiler.toolkit import INSTALL, ToolMissing, toolkit_includes
from lib.ptx.files import text_of
from lib.ptx.report import hazards_document

try:
    from cupy.cuda.compiler import CompileException
except ModuleNotFoundError as missing:
    raise ImportError(f"compiling CUDA needs CuPy and NVRTC: run {INSTALL}") from missing

_NOT_EMULATED = (
    "the emulator runs PTX: pass code= (CUDA C++ or PTX), or the path of a .ptx or .cu file"
)
# Of the source; or, with a word before it, of what the compiler makes of it.
_WARNING = re.compile(
    r"^(?P<made>warning: )?(?P<file>[^\n(]+)\((?P<line>\d+)\): [Ww]arning[^:\n]*: (?P<text>.*)",
    re.M,
)
_CUDA_SUFFIXES = (".cu", ".cuh")


@dataclass(frozen=True)
class Watch:
    """Who wants to know of each launch of a `Kernel`."""

    tell: Callable[[ptx.Launch], Any]  # called with each launch that ran to its end
    defaults: Mapping[str, Any]  # options of launches that don't give them


WATCHES: list[Watch] = []


class RawModule:
    """CUDA C++ or PTX, ready to launch without a GPU.

    Parameters
    ----------
    code : str, optional
        CUDA C++, or PTX (which begins with a ``.version``). This or `path`, as in CuPy.
    path : str or Path, optional
        A ``.ptx`` file, or (which CuPy has not) a ``.cu`` as nvcc takes it: what of it is the
        host's is left out, see `lib.compiler.cu_file`. A cubin is machine code and can't be
        emulated.
    options : sequence of str
        NVRTC's options. The architecture is `arch`'s business; headers of the toolkit are found.
    backend : {"nvrtc"}
        CuPy's other one, ``"nvcc"``, is not here.
    name_expressions : sequence of str, optional
        Templates to instantiate, as in CuPy: ``["scale<float>"]``.
    arch : str
        What to compile for: ``"sm_75"`` or any later one that NVRTC knows. Those that no counter
        was calibrated on are counted by the rules of the nearest one: `Kernel.counted` says so.

    Attributes
    ----------
    ptx : str
        The PTX text that it runs.
    warnings : list of str
        What NVRTC warns of, in the source itself and of what it makes of the source.

    Raises
    ------
    ValueError
        If not exactly one of `code` and `path` is given, or `backend` or `arch` is unknown.
    cupy.cuda.compiler.CompileException
        If NVRTC refuses the source; CuPy's own exception, with NVRTC's message.
    ptx.Error
        If PTX can't be read.
    """

    def __init__(
        self,
        *,
        code: str | None = None,
        path: str | Path | None = None,
        options: Sequence[str] = (),
        backend: str = "nvrtc",
        name_expressions: Sequence[str] | None = None,
        arch: str = "sm_75",
    ) -> None:
        if (code is None) == (path is None):
            raise ValueError("give either code or path, not both")
        if backend != "nvrtc":
            raise ValueError(f"backend {backend!r} is not emulated; use 'nvrtc'")
        if path is not None:
            if Path(path).suffix not in (".ptx", *_CUDA_SUFFIXES):
                raise ValueError(f"{path}: {_NOT_EMULATED}")
            code = text_of(path, errors="replace")
            if Path(path).suffix == ".ptx" and not _is_ptx(code):
                raise ptx.ParseError(f"{path} is no PTX: it doesn't begin with .version")
        if not isinstance(code, str):
            raise TypeError(f"code must be a str, not {type(code).__name__}")
        for name, given in (("options", options), ("name_expressions", name_expressions)):
            if isinstance(given, str):
                raise TypeError(f"{name} must be a sequence of str: [{given!r}]")
        self.code, self.options, self.arch = code, tuple(options), check_any_arch(arch)
        self.name_expressions = tuple(name_expressions or ())
        self._names: dict[str, str] = {}
        self._file: CudaFile | None = None
        self._log = ""
        if path is not None and Path(path).suffix in _CUDA_SUFFIXES:
            self._file = CudaFile(path, self.options)
        self.ptx = code if _is_ptx(code) else self._compile()
        self._module = ptx.Module(self.ptx, sources=self.texts(), folders=self._folders())

    def get_function(self, name: str) -> Kernel:
        """Return a kernel: by its name expression, or by its name.

        The plain name of a kernel that isn't ``extern "C"``, or of a template, will do where there
        is one such kernel.

        Call it as CuPy's: ``kernel(grid, block, args, shared_mem=0)``; the emulator's own options
        (`watch`, `races`, `schedule`, `landing`, …) follow by keyword. It returns a `ptx.Launch`.
        A Python float becomes the parameter's type here. CuPy passes it as a double, so for a
        ``float`` parameter write ``numpy.float32(x)``, and both agree.

        Raises
        ------
        ptx.Error
            If there is none of that name; the message suggests the nearest.
        """
        entries = self._module.program.entries
        wanted = self._names.get(name, name)
        if wanted not in entries:
            called = [entry for entry in entries if plain_name(entry) == name]
            if len(called) > 1:
                raise ptx.Error(
                    f"{len(called)} kernels are called '{name}'; name one of them: "
                    f"{', '.join(map(repr, self._names or called))}"
                )
            wanted = called[0] if called else wanted
        if wanted not in entries:
            self._explain_missing(name)
        written = self._declared().get(name.partition("<")[0].strip().rpartition("::")[2])
        return Kernel(self._module.get_function(wanted), self.ptx,
                      written.parameters if written else None, self._traps())

    def _traps(self) -> list[str]:
        """Why NVRTC may have made a trap of code: what it warns of, with the lines that call it."""
        reasons = []
        for row in _WARNING.finditer(self._log):
            if not row["made"]:
                continue
            called = _function_at(Path(row["file"]), int(row["line"]))
            calls = [f"{PurePath(name).name}:{number}" for name, text in self.texts().items()
                     for number, line in enumerate(text.split("\n"), 1)
                     if called and re.search(rf"\b{re.escape(called)}\s*\(", line)]
            where = f" ({called}, called at {', '.join(calls)})" if calls else ""
            reasons.append(f"NVRTC made a trap of it: {row['text']}{where}")
        return list(dict.fromkeys(reasons))

    def _declared(self) -> dict[str, Declared]:
        """The kernels that the source has."""
        return self._file.declared if self._file else kernels_of(self.code)

    def _explain_missing(self, name: str) -> None:
        """Say of a kernel that the PTX has not how to get it, or which are nearest.

        Raises
        ------
        ptx.Error
        """
        template = name.partition("<")[0].strip()
        declared = self._declared()
        found = declared.get(template.rpartition("::")[2])
        if found is not None and found.template:
            wanted = name if "<" in name else f"{name}<{found.template}>"
            raise ptx.Error(
                f"kernel '{template}' is a template that nothing instantiates: name it with its "
                f"arguments, {wanted} (--kernel on the command line, name_expressions=[…] of a "
                "RawModule)"
            )
        known = list(dict.fromkeys([*self._names, *map(plain_name, self._module.program.entries),
                                    *declared]))
        near = difflib.get_close_matches(name, known, 3, 0.4) or known[:5]
        raise ptx.Error(f"no kernel '{name}'; " + (
            f"the nearest: {', '.join(near)}" if near else f"there is none: {self._of_none()}"))

    def _of_none(self) -> str:
        """What a source without kernels lacks."""
        return "the PTX has no .entry" if _is_ptx(self.code) else "no __global__ in the source"

    def kernels(self) -> list[str]:
        """Return the names of the module's kernels, as the PTX has them."""
        return list(self._module.program.entries)

    def only_kernel(self) -> str:
        """Return the name of the module's kernel, where there is one.

        Raises
        ------
        ValueError
            If there are none or several; the message names them, templates included.
        """
        entries = self.kernels()
        declared = self._declared()
        names = {plain_name(entry): "" for entry in entries}
        names |= _templates(declared)
        if len(entries) == len(names) == 1:
            return entries[0]
        if not names:
            raise ValueError(f"there is no kernel: {self._of_none()}")
        # A template compiles without its headers until it is named: both are said at once.
        lack = self._file.elsewhere() if self._file is not None else ""
        raise ValueError(_choose(names) + f"\n{lack}" * bool(lack))

    def get_global(self, name: str) -> np.ndarray:
        """Return the bytes of a ``__device__`` variable; launches read and write them in place."""
        return self._module.get_global(name)

    def variables(self) -> dict[str, str]:
        """The ``__constant__`` and ``__device__`` variables that were compiled, by plain name."""
        variables = self._module.program.variables.values()
        return {plain_name(each.name): each.name for each in variables
                if each.space in ("global", "const") and each.count > 0}

    def texts(self) -> dict[str, str]:
        """The source's text, by the names that the PTX has for its files."""
        if self._file is not None:
            return self._file.texts
        return {} if _is_ptx(self.code) else {"module.cu": self.code}

    def _folders(self) -> list[str]:
        """Where reports may read lines of headers: the folders of ``-I``, given or the toolkit's.

        PTX that was not compiled here may name any file; for it there are those given alone.
        """
        options = self.options if _is_ptx(self.code) else (*self.options, *toolkit_includes())
        return [option[2:] for option in options if option[:2] == "-I"]

    def _compile(self) -> str:
        virtual, file = self.arch.replace("sm_", "compute_"), self._file
        try:
            if file is not None:
                made = file.compile([file.qualified(each) for each in self.name_expressions],
                                    virtual)
            else:
                options = [f"-arch={virtual}", "-lineinfo", *toolkit_includes(), *self.options]
                if not any("std=" in option for option in options):
                    options.append("--std=c++17")
                made = compile_nvrtc(self.code, self.name_expressions, options, "module.cu")
        except CompileError as error:
            said, names = str(error), _templates(file.declared if file else {})
            if file and file.elsewhere() and not self.name_expressions and any(names.values()):
                said = f"{_choose(names)}\n{said}"  # the next thing that would be missed
            raise CompileException(said, self.code, str(file.path) if file else "module.cu",
                                   self.options, "nvrtc") from None
        self._names = dict(zip(self.name_expressions, made.names, strict=True))
        self._log = made.log
        return made.ptx.decode()

    @property
    def warnings(self) -> list[str]:
        own = {PurePath(name).name for name in self.texts()}
        found = dict.fromkeys(
            f"{PurePath(row['file']).name}:{row['line']}: {row['text']}"
            for row in _WARNING.finditer(self._log)
            if row["made"] or PurePath(row["file"]).name in own
        )
        return [*(self._file.libraries() if self._file else ()), *found]


class Kernel:
    """A kernel of a `RawModule`: a `ptx.Function` that knows what ptxas makes of its accesses.

    Parameters
    ----------
    function : ptx.Function
    text : str
        The module's PTX.
    parameters : str, optional
        Its parameters as the source has them, for a kernel whose name doesn't tell their types.
    traps : sequence of str
        Why the compiler may have made a trap of code.

    Attributes
    ----------
    text : str
        The module's PTX.
    signature : tuple of Type
        The parameters' types, as far as they are known.
    counted : str
        How launches count memory accesses: as the machine code has them, or as the PTX has them
        and why.
    """

    def __init__(self, function: ptx.Function, text: str, parameters: str | None = None,
                 traps: Sequence[str] = ()) -> None:
        self.function, self.name, self.text = function, function.name, text
        self._traps = tuple(traps)
        self.signature = of_kernel(function.name, parameters)

    def __call__(self, grid: Any, block: Any, args: Any, shared_mem: int = 0, **options: Any
                 ) -> ptx.Launch:
        """Run it in the emulator; see `ptx.Function`.

        Raises
        ------
        ptx.LaunchError
            If an argument is not of the parameter's type.
        """
        args = tuple(args)
        check_arguments(self.name, self.signature, args)
        for watch in WATCHES:
            options = {**watch.defaults, **options}
        if options.get("trace", True):
            options.setdefault("merge", self.merge)
            options.setdefault("ffma", self._made[1])
        try:
            launch = self.function(grid, block, args, shared_mem, **options)
        except ptx.Error as error:
            if "the kernel trapped" in str(error):
                for reason in self._traps:
                    error.add_note(reason)
            raise
        for watch in WATCHES:
            watch.tell(launch)
        return launch

    @property
    def merge(self) -> Mapping[int, merging.Merged | None] | None:
        """What ptxas makes of the accesses, or None if it can't be known: `counted` says why."""
        return self._made[0]

    @property
    def counted(self) -> str:
        return self._made[2]

    @cached_property
    def _made(
        self,
    ) -> tuple[Mapping[int, merging.Merged | None] | None, Mapping[int, int] | None, str]:
        machine = self.function.module.program.machine
        arch = machine.partition(",")[0]
        rules = "" if arch in TARGETS else f", by the rules of {nearest_target(arch)}"
        try:
            made = of_ptx(merging.alone(self.text, self.name), self.name, machine)
            return made.merge, made.ffma, "as the machine code has them" + rules
        except (ToolMissing, CompileError) as reason:
            return None, None, f"as the PTX has them, for want of machine code: {reason}"


def open_kernel(name: str | None, **given: Any) -> tuple[RawModule, Kernel]:
    """A kernel by its name, or the only one, of a `RawModule` made of what is `given`."""
    module = RawModule(name_expressions=expressions(name), **given)
    return module, module.get_function(name or module.only_kernel())


def expressions(name: str | None) -> list[str]:
    """What a kernel's name asks to instantiate."""
    return [name] if name and "<" in name else []


def stopped_document(kernel: str, error: ptx.Error) -> dict[str, Any]:
    """A launch that the emulator stopped, as `lib.ptx.report.document` has one that ended."""
    return {"kernel": kernel, "ended": "stopped", "errors": [
        {"kind": type(error).__name__, "message": str(error),
         "notes": list(getattr(error, "__notes__", ()))}],
        "hazards": hazards_document(error.hazards)}


def _templates(declared: Mapping[str, Declared]) -> dict[str, str]:
    """Of each kernel by its name the template's parameters, in brackets; empty if it is none."""
    return {name: f"<{one.template}>" if one.template else "" for name, one in declared.items()}


def _choose(names: Mapping[str, str]) -> str:
    return f"name a kernel; there are: {', '.join(name + names[name] for name in names)}"


def _function_at(header: Path, line: int) -> str:
    """The function of a header that a line of it is in, or begins; empty if it can't be told."""
    try:
        rows = text_of(header, errors="replace").split("\n")
    except OSError:
        return ""
    for row in reversed(rows[:line]):
        if name := re.search(r"\b(\w+)\s*\([^()]*fragment", row):
            return name[1]
    return ""


def _is_ptx(code: str) -> bool:
    """Whether text is PTX: its first word that is no comment is ``.version``."""
    return re.match(r"(?:\s++|//[^\n]*+|/\*.*?\*/)*+\.version\b", code, re.DOTALL) is not None
