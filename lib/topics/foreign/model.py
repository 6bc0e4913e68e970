"""Kernels that nobody here wrote, run on clones: what `set.toml` names, and what came of it.

The recorded results (``results/foreign.json``) are the emulator's own, of the revision that the set
names; a later run is held against them. Beside them stands what ncu counted on a GPU, and what the
emulator counts of that very machine code (`lib.measure.foreign`).
"""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lib import ptx
from lib.compiler import arguments
from lib.paths import RESULTS
from lib.ptx.mutants import mutants, verdict
from lib.ptx.report import grouped

if TYPE_CHECKING:
    from lib.compiler.raw_module import RawModule

SET = Path(__file__).with_name("set.toml")
FILE = RESULTS / "foreign.json"


@dataclass(frozen=True)
class Foreign:
    """A kernel of somebody else's.

    Attributes
    ----------
    repository, revision, file, name : str
        Where it is, on GitHub, and what it is called.
    arch : str
    grid, block : tuple of int
    args, options : tuple of str
        As `lib.compiler.arguments` reads them; NVRTC's.
    arrays : tuple of str
        Arrays that no argument is, in the form of `args`: what tensor maps are of.
    shared : int
        Dynamic shared memory per block, B.
    check : str
        One of `CHECKS`, or empty.
    mutants, seed : int
        How many mutants are tried, and which.
    defect : str
        What is wrong with it, in a sentence, if something is.
    source : str
        The file whose lines `defect` names, where it isn't `file`, which includes it.
    equivalent : mapping of str to str
        Why mutants that pass unseen change nothing, by the beginning of what they are called.
    unlike : mapping of str to str
        Why a GPU counts otherwise than the emulator, by counter.
    on_gpu : str
        What became of it on a GPU, in a sentence, where it did not end with a right result.
    """

    repository: str
    revision: str
    file: str
    name: str
    arch: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    args: tuple[str, ...]
    options: tuple[str, ...] = ()
    arrays: tuple[str, ...] = ()
    shared: int = 0
    check: str = ""
    mutants: int = 0
    seed: int = 0
    defect: str = ""
    source: str = ""
    equivalent: Mapping[str, str] = field(default_factory=dict)
    unlike: Mapping[str, str] = field(default_factory=dict)
    on_gpu: str = ""

    def unexplained(self, unseen: Iterable[str]) -> list[str]:
        """Mutants that passed unseen, and for which no reason is given."""
        return [each for each in unseen if not each.startswith(tuple(self.equivalent))]

    @property
    def key(self) -> str:
        """What its results are recorded under."""
        return f"{self.repository}:{self.name}"

    @property
    def digest(self) -> str:
        """Fingerprint of what is launched, and with what: numbers of another launch are no more."""
        launched = (self.revision, self.file, self.name, self.grid, self.block, self.args,
                    self.options, self.arrays, self.shared, self.seed)
        return hashlib.sha256(repr(launched).encode()).hexdigest()[:16]


class Operands(NamedTuple):
    """What a kernel is launched with.

    Attributes
    ----------
    values : tuple
        The arguments.
    named : dict
        The same and the arrays that maps are of, by name.
    maps : list
        What must live as long as the values are used.
    """

    values: tuple[Any, ...]
    named: dict[str, Any]
    maps: list[Any]


def operands(
    kernel: Foreign, put: Callable[[np.ndarray], Any] = lambda array: array,
    encode: Callable[..., Any] = ptx.tensor_map,
) -> Operands:
    """Make a kernel's arguments, the same ones each time.

    Parameters
    ----------
    kernel : Foreign
    put : callable
        Takes each array to where the kernel runs.
    encode : callable
        Makes tensor maps of such arrays.
    """
    others = arguments.parse(list(kernel.arrays), kernel.seed + 1)
    named = {one.name: put(one.value) for one in others}
    given = arguments.parse(list(kernel.args), kernel.seed, named, encode)
    values = tuple(put(one.value) if isinstance(one.value, np.ndarray) else one.value
                   for one in given)
    named |= {one.name: value for one, value in zip(given, values, strict=True)}
    return Operands(values, named, [one.keeps for one in given])


def is_right(kernel: Foreign, after: dict[str, Any], before: dict[str, Any]) -> bool | None:
    """Whether a kernel's oracle agrees with what its operands were and are; None without one."""
    return CHECKS[kernel.check](after, before) if kernel.check else None


def gemm(args: dict[str, Any], before: dict[str, Any]) -> bool:
    """Whether C is α·A·B + β·C."""
    wanted = args["alpha"] * (args["A"].astype(float) @ args["B"]) + args["beta"] * before["C"]
    return bool(np.allclose(args["C"], wanted, rtol=1e-4, atol=1e-4))


def half_gemm(args: dict[str, Any], before: dict[str, Any]) -> bool:
    """Whether D is α·A·B + β·C, up to what accumulators of 16 bits lose on sums below 32.

    One product left out of a sum of K is larger than the tolerance nine times in ten.
    """
    wanted = args["alpha"] * (args["A"].astype(float) @ args["B"].astype(float))
    return bool(np.allclose(args["D"], wanted + args["beta"] * before["C"], rtol=0, atol=0.04))


def transposed_gemm(args: dict[str, Any], before: dict[str, Any]) -> bool:
    """Whether C, (N, M), is B·Aᵀ of A, (M, K), and B, (N, K), in bfloat16 rounded once."""
    wanted = args["B"].astype(float) @ args["A"].astype(float).T
    return bool(np.allclose(args["C"].astype(float), wanted, rtol=2.0**-8, atol=1e-3))


def product(args: dict[str, Any], before: dict[str, Any]) -> bool:
    """Whether C is A·B, in bfloat16 rounded once."""
    wanted = args["A"].astype(float) @ args["B"].astype(float)
    return bool(np.allclose(args["C"].astype(float), wanted, rtol=2.0**-8, atol=1e-3))


CHECKS = {"gemm": gemm, "half_gemm": half_gemm, "transposed_gemm": transposed_gemm,
          "product": product}


@lru_cache
def kernels(path: Path = SET) -> tuple[Foreign, ...]:
    """The kernels of the set."""
    document = tomllib.loads(path.read_text())
    return tuple(
        Foreign(**{name: tuple(value) if isinstance(value, list) else value
                   for name, value in one.items()}, seed=document["seed"])
        for one in document["kernel"]
    )


def clone_of(kernel: Foreign, folder: Path) -> Path:
    """The clone of a kernel's repository in a folder, ``NAME`` or ``OWNER/NAME``.

    Raises
    ------
    ValueError
        If it isn't there, or is of another revision; the message says how to get it.
    """
    name = kernel.repository.rpartition("/")[2]
    found = next((place for place in (folder / kernel.repository, folder / name)
                  if (place / kernel.file).is_file()), None)
    if found is None:
        raise ValueError(
            f"{folder} has no {name} with {kernel.file}: git clone https://github.com/"
            f"{kernel.repository} there, and git checkout {kernel.revision}")
    if (found / ".git").exists():
        said = subprocess.run(["git", "-C", str(found), "rev-parse", "HEAD"],
                              capture_output=True, text=True, check=False).stdout.strip()
        if said != kernel.revision:
            raise ValueError(f"{found} is at {said[:12]}, and the set is of {kernel.revision[:12]}:"
                             f" git checkout {kernel.revision}")
    return found


def module_of(kernel: Foreign, folder: Path, arch: str) -> RawModule:
    """Compile a kernel from the clone of its repository.

    Raises
    ------
    ValueError
        As `clone_of` does.
    CompileException
        If NVRTC refuses the file.
    """
    from lib.compiler.raw_module import RawModule  # loads CuPy

    path = clone_of(kernel, folder) / kernel.file
    expressions = [kernel.name] if "<" in kernel.name else []
    return RawModule(path=path, options=kernel.options, name_expressions=expressions, arch=arch)


def run(kernel: Foreign, folder: Path) -> dict[str, Any]:
    """Run a kernel and a sample of its mutants.

    Returns
    -------
    dict
        ended: "ran to its end", or the error and its message; right: whether the oracle agrees,
        None without one; hazards: their kinds and lines; counters: `Trace.counters`; mutants:
        tried, and those that passed unseen.
    """
    try:
        module = module_of(kernel, folder, kernel.arch)
        function = module.get_function(kernel.name)
        launch, right = _launch(kernel, function)
    except ptx.Error as error:
        return {"ended": f"{type(error).__name__}: {error}", "right": None,
                "hazards": _hazards(error.hazards, None), "counters": {},
                "mutants": {"tried": 0, "unseen": []}}
    return {"ended": "ran to its end", "right": right, "hazards": _hazards(launch.hazards, launch),
            "counters": launch.trace.counters(), "mutants": _mutants(kernel, module, function)}


def _hazards(found: Iterable[ptx.Hazard], launch: ptx.Launch | None) -> list[str]:
    return sorted({f"{one.kind}: {' and '.join(filter(None, (one.first, one.second)))}"
                   for one in grouped(found, launch.code if launch else None)})


def _launch(kernel: Foreign, function: Any, **settings: Any) -> tuple[ptx.Launch, bool | None]:
    made, before = operands(kernel), operands(kernel).named
    settings.setdefault("races", True)
    launch = function(kernel.grid, kernel.block, made.values, kernel.shared, **settings)
    return launch, is_right(kernel, made.named, before)


def _mutants(kernel: Foreign, module: Any, function: Any) -> dict[str, Any]:
    if not kernel.mutants:
        return {"tried": 0, "unseen": []}
    every = list(mutants(module.ptx, function.name))
    chosen = random.Random(kernel.seed).sample(every, min(kernel.mutants, len(every)))
    unseen = []
    for mutant in chosen:
        changed = ptx.Module(mutant.text, module.arch).get_function(function.name)

        def attempt(changed: Any = changed, **settings: Any) -> tuple[ptx.Launch, bool]:
            launch, right = _launch(kernel, changed, **settings)
            return launch, right is not False

        if not verdict(attempt):
            unseen.append(str(mutant))
    return {"tried": len(chosen), "unseen": unseen}


def recorded(path: Path = FILE) -> dict[str, Any]:
    """What earlier runs gave, by `Foreign.key`; empty if nothing is recorded."""
    return json.loads(path.read_text()) if path.exists() else {}


def write(results: dict[str, Any], path: Path = FILE) -> None:
    """Record results."""
    path.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")


def differences(now: dict[str, Any], before: dict[str, Any]) -> list[str]:
    """What a run says otherwise than the record, one line each."""
    found = [f"{part}: {now[part]}, and recorded is {before[part]}"
             for part in ("ended", "right", "hazards", "mutants") if now[part] != before[part]]
    names: Sequence[str] = [*dict.fromkeys([*now["counters"], *before["counters"]])]
    return found + [
        f"{name}: {now['counters'].get(name)}, and recorded is {before['counters'].get(name)}"
        for name in names if now["counters"].get(name) != before["counters"].get(name)
    ]


def profiled(kernel: Foreign, record: Mapping[str, Any]) -> dict[str, Any] | None:
    """What is recorded of a kernel on a GPU; None if nothing is, or it is of another launch."""
    found = record.get(kernel.key, {}).get("gpu")
    return found if found and found["launch"] == kernel.digest else None


def counted_otherwise(found: Mapping[str, Any]) -> list[str]:
    """The counters of which a GPU's ncu and the emulator say different things."""
    return [name for name, number in found["ncu"].items() if found["emulated"][name] != number]


def unexplained(kernel: Foreign, found: Mapping[str, Any]) -> list[str]:
    """The counters that differ and for which no reason is given, and reasons for equal ones."""
    return sorted({*counted_otherwise(found)} ^ {*kernel.unlike})


def strange(kernel: Foreign, found: Mapping[str, Any]) -> str:
    """What a GPU has otherwise than the emulator and than the set says; empty if nothing."""
    parts = [f"{name}: told and found differ" for name in unexplained(kernel, found)]
    if found["right"] != found["emulated_right"]:
        parts.append(f"right: {found['right']}, emulated {found['emulated_right']}")
    elif found["right"] is False and not kernel.on_gpu:
        parts.append("wrong, and the set doesn't say why")
    return "; ".join(parts)


def told_of_gpu(kernel: Foreign, found: Mapping[str, Any]) -> str:
    """How ncu's counters compare to the emulator's, in a few words."""
    unlike = counted_otherwise(found)
    parts = [f"{len(found['ncu']) - len(unlike)} of {len(found['ncu'])} counters alike"]
    parts += [f"{name}: ncu {found['ncu'][name]:,}, emulated {found['emulated'][name]:,}"
              + ("" if name in kernel.unlike else " (no reason is known)") for name in unlike]
    if found["right"] is False:
        also = "and in the emulator" if found["emulated_right"] is False else "ALONE"
        parts.append(f"WRONG on the GPU {also}")
    return "; ".join(parts)


def told(result: dict[str, Any]) -> str:
    """A result in a few words."""
    parts = [result["ended"].partition(": kernel")[0]]
    if result["right"] is not None:
        parts.append("right" if result["right"] else "WRONG")
    parts.append(", ".join(result["hazards"]) or "no hazard")
    tried = result["mutants"]["tried"]
    if tried:
        parts.append(f"{tried - len(result['mutants']['unseen'])} of {tried} mutants found")
    return "; ".join(parts)
