"""Kernels that nobody here wrote, run on clones: what `foreign.toml` names, what came of it.

The recorded results (``results/foreign.json``) are the emulator's own, of the revision that the set
names; a later run is held against them. Beside them stands what ncu counted on a GPU, and what the
emulator counts of that very machine code (`lib.measure.foreign`).
"""

from __future__ import annotations

import hashlib
import random
import re
import subprocess
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from msgspec.structs import replace

from lib import ptx
from lib.compiler import arguments
from lib.kernels.frozen import FrozenDict, frozen
from lib.ptx.files import text_of
from lib.ptx.mutants import mutants, reports_of, verdict
from lib.ptx.report import grouped
from lib.records import foreign as records
from lib.records.foreign import ENDED, Measured, Mutants, Result

if TYPE_CHECKING:
    from lib.compiler.raw_module import RawModule

# Whether a kernel's operands are right, by what they are and what they were.
Check = Callable[[dict[str, Any], dict[str, Any]], bool]


@dataclass(frozen=True)
class Published:
    """Two cases of one type.

    Attributes
    ----------
    k : int
        Elements along K.
    seed : int
    below : int
        Codes are drawn below this; 0: finite floats of 32 bits, 1 << 16: any half.
    words : tuple of int
        What the B200 gave.
    scales : int
        Scales of A, and of B.
    scales_below : int
        Codes of theirs are drawn below this.
    """

    k: int
    seed: int
    below: int
    words: tuple[int, int]
    scales: int = 0
    scales_below: int = 0


PUBLISHED = {
    "tf32": Published(8, 104, 0, (0xFF800000, 0xFC347E7C)),
    "bf16": Published(16, 104, 0, (0x7F800000, 0x7F800000)),
    "f16": Published(16, 103, 1 << 16, (0x7FFFFFFF, 0x49776BBA)),
    "e4m3": Published(32, 104, 0x7F, (0xEC63D12A, 0x452AF963)),
    "e5m2": Published(32, 300, 0x7C, (0x4D92B09A, 0x4C9C1102)),
    "e2m3": Published(32, 301, 0x40, (0xC29DD800, 0x449D14C1)),
    "e3m2": Published(32, 302, 0x40, (0x52C9EC63, 0xC33B7700)),
    "e2m1": Published(32, 303, 0x10, (0xC1FE0000, 0xDC3B62A3)),
    "nvfp4": Published(64, 700, 0x10, (0x4429730B, 0xC30545D3), scales=4, scales_below=0x77),
}
# Threads and registers of a probe's first warp whose word is the result, as the repository's
# ``hardware_validation/mma_probe/tcgen05.py`` has them: its rows overlap in shared memory. Of NVFP4
# the kernel fills the first row and the first column.
_HALF_ROWS = [(t, r) for t in range(32) for r in range(4 if t < 16 else 2)]
_VALID = {
    "tf32": [(t, r) for t in range(32) for r in range(4)], "bf16": _HALF_ROWS, "f16": _HALF_ROWS,
    "e4m3": [(t, r) for t in (0, 1, 4, 5) for r in range(4)]
    + [(t, r) for t in (8, 9, 12, 13) for r in range(2)],
    "nvfp4": [(0, 0)],
}


def finite(rng: random.Random) -> int:
    """Draw the bits of a finite float of 32 bits."""
    bits = rng.getrandbits(32)
    return bits & 0x807FFFFF if bits & 0x7F800000 == 0x7F800000 else bits


def cases(kind: str) -> np.ndarray:
    """Draw the cases of a type.

    Returns
    -------
    ndarray of uint32, shape (2, 2 K + 1 + 2 scales)
        A, B, C and scales of each.
    """
    one = PUBLISHED[kind]
    rng = random.Random(one.seed)
    if not one.below:
        draw: Callable[[], int] = partial(finite, rng)
    elif one.below == 1 << 16:
        draw = partial(rng.getrandbits, 16)
    else:
        draw = partial(rng.randrange, one.below)
    rows = [
        [draw() for _ in range(2 * one.k)] + [finite(rng)]
        + [rng.randrange(one.scales_below) for _ in range(2 * one.scales)]
        for _ in one.words
    ]
    return np.array(rows, np.uint32)


def written_out(word: str) -> str:
    """Return an argument ``NAME=published:TYPE`` as `lib.compiler.arguments` reads it."""
    match = re.fullmatch(r"(\w+)=published:(\w+)", word)
    if match is None:
        return word
    numbers = cases(match[2])
    sizes = ",".join(map(str, numbers.shape))
    return f"{match[1]}=uint32[{sizes}]:{','.join(map(str, numbers.ravel().tolist()))}"


def right(kind: str, args: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Whether a probe's outputs, (case, thread, register), are the B200's words."""
    threads, registers = zip(*_VALID[kind], strict=True)
    found = args["outputs"][:, list(threads), list(registers)]
    return bool((found == np.array(PUBLISHED[kind].words, np.uint32)[:, None]).all())


PUBLISHED_CHECKS = {f"words_of_{kind}": partial(right, kind) for kind in _VALID}


SET = Path(__file__).with_name("public") / "foreign.toml"
PLACE = "// The kernel's own lines stand here."


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
        As `lib.compiler.arguments` reads them, or ``NAME=published:TYPE`` for cases of
        `published`; NVRTC's, in which ``{clone}`` is the clone's folder and ``{here}`` the one of
        `set.toml`.
    arrays : tuple of str
        Arrays that no argument is, in the form of `args`: what tensor maps are of.
    shared : int
        Dynamic shared memory per block, B.
    cluster : int
        Blocks of a cluster, where the kernel itself doesn't say how many.
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
    driver : str
        A file beside `set.toml` that is compiled in place of `file`: it includes it, or calls its
        kernel from one of its own, `name`, where only the host's code can make its arguments. See
        `driven`.
    lines : tuple of int
        The first and last line of `file` that are compiled, of a script that has its CUDA in a
        string, or that `driver` takes.
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
    cluster: int = 0
    check: str = ""
    mutants: int = 0
    seed: int = 0
    defect: str = ""
    source: str = ""
    equivalent: Mapping[str, str] = field(default_factory=FrozenDict)
    unlike: Mapping[str, str] = field(default_factory=FrozenDict)
    on_gpu: str = ""
    driver: str = ""
    lines: tuple[int, ...] = ()

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
        launched: tuple[Any, ...] = (
            self.revision, self.file, self.name, self.grid, self.block, self.args, self.options,
            self.arrays, self.shared, self.seed)
        if self.driver:
            launched += (text_of(SET.with_name(self.driver)),)
        if self.lines or self.cluster:
            launched += (self.lines, self.cluster)
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
    words = [written_out(word) for word in kernel.args]
    given = arguments.parse(words, kernel.seed, named, encode)
    values = tuple(put(one.value) if isinstance(one.value, np.ndarray) else one.value
                   for one in given)
    named |= {one.name: value for one, value in zip(given, values, strict=True)}
    return Operands(values, named, [one.keeps for one in given])


def is_right(kernel: Foreign, after: dict[str, Any], before: dict[str, Any]) -> bool | None:
    """Whether a kernel's oracle agrees with what its operands were and are; None without one."""
    return CHECKS[kernel.check](after, before) if kernel.check else None


def product(
    of: Callable[[np.ndarray, np.ndarray], np.ndarray] = np.matmul, to: str = "C",
    rtol: float = 2.0**-8, atol: float = 1e-3,
    read: Callable[[dict[str, Any], str], np.ndarray] = lambda args, name: args[name].astype(float),
) -> Check:
    """An oracle: whether a result is α times what `of` makes of A and B, and β times what it was.

    `read` says what a matrix holds. The tolerances are those of bfloat16 rounded once if none are
    given.
    """
    def right(args: dict[str, Any], before: dict[str, Any]) -> bool:
        wanted = args.get("alpha", 1) * of(read(args, "A"), read(args, "B"))
        if "beta" in args:
            wanted += args["beta"] * before[to].astype(float)
        return bool(np.allclose(args[to].astype(float), wanted, rtol=rtol, atol=atol))

    return right


def _by_columns(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b.T


def of_mxfp8(args: dict[str, Any], name: str) -> np.ndarray:
    """A matrix of FP8 with UE8M0 scales per 32 of K.

    Scales are words, (K / 128, rows), with the scale of the lowest K in the lowest byte.
    """
    words = args[f"SF{name}"]
    exponents = words.T.copy().view(np.uint8).reshape(words.shape[1], -1)
    return args[name].astype(float) * np.repeat(np.exp2(exponents.astype(float) - 127), 32, axis=1)


def of_nvfp4(args: dict[str, Any], name: str) -> np.ndarray:
    """A matrix of E2M1 in pairs, (rows, K / 2) bytes, with UE4M3 scales per 16 of K.

    Scales are (rows / 128, K / 64, 32, 4, 4), as ``tcgen05.cp`` takes them: of row 32 i + j and of
    the l-th group of 16 in the order j, i, l.
    """
    import ml_dtypes

    codes, scales = args[name], args[f"SF{name}"]
    halves = np.array([0, 1, 2, 3, 4, 6, 8, 12], float)
    table = np.concatenate([halves, -halves]) / 2
    numbers = table[np.stack([codes & 15, codes >> 4], axis=-1)].reshape(len(codes), -1)
    blocks = scales.view(ml_dtypes.float8_e4m3fn).astype(float)
    blocks = blocks.transpose(0, 3, 2, 1, 4).reshape(len(codes), -1)
    return numbers * np.repeat(blocks, 16, axis=1)


CHECKS: dict[str, Check] = {
    "gemm": product(rtol=1e-4, atol=1e-4), "product": product(),
    # C, (M, N), of A, (K, M), and B, (K, N); and (N, M) of A, (M, K), and B, (N, K).
    "across": product(lambda a, b: a.T @ b), "transposed_gemm": product(lambda a, b: b @ a.T),
    "into_floats": product(_by_columns, "D", 1e-4, 1e-4),
    # What accumulators of 16 bits lose on sums below 32: a product that is left out of a sum of K
    # is larger than that nine times in ten.
    "half_gemm": product(to="D", rtol=0, atol=0.04),
    "mxfp8": product(_by_columns, read=of_mxfp8),
    "nvfp4": product(_by_columns, rtol=2.0**-11, atol=1e-4, read=of_nvfp4),  # halves
    **PUBLISHED_CHECKS,
}


@lru_cache
def kernels(path: Path = SET) -> tuple[Foreign, ...]:
    """The kernels of the set."""
    document = tomllib.loads(text_of(path))
    found = []
    for one in document["kernel"]:
        found.append(Foreign(**frozen(one), seed=document["seed"]))
    return tuple(found)


class Cloned(Protocol):
    """What is looked for in a clone."""

    @property
    def repository(self) -> str: ...
    @property
    def revision(self) -> str: ...
    @property
    def file(self) -> str: ...


def clone_of(kernel: Cloned, folder: Path) -> Path:
    """The clone of a kernel's or a file's repository in a folder, ``NAME`` or ``OWNER/NAME``.

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

    clone = clone_of(kernel, folder)
    path = clone / kernel.file
    expressions = [kernel.name] if "<" in kernel.name else []
    options = [each.replace("{clone}", str(clone)).replace("{here}", str(SET.parent))
               for each in kernel.options]
    if kernel.driver:
        return RawModule(code=driven(kernel, path), options=options, arch=arch,
                         name_expressions=expressions)
    if kernel.lines:
        with tempfile.TemporaryDirectory() as place:
            part = Path(place, path.stem + ".cu")  # what stands there as if it were a file
            part.write_text("\n" * (kernel.lines[0] - 1) + _taken(kernel, path), encoding="utf-8")
            return RawModule(path=part, options=options, name_expressions=expressions, arch=arch)
    return RawModule(path=path, options=options, name_expressions=expressions, arch=arch)


def driven(kernel: Foreign, path: Path) -> str:
    """A driver's source: what includes the file, or has its lines as a function of the device.

    Raises
    ------
    ValueError
        If these lines have not the one ``__global__`` that is to be ``__device__``, or the driver
        no place for them.
    """
    ours = text_of(SET.with_name(kernel.driver))
    if not kernel.lines:
        return ours
    theirs = _taken(kernel, path)
    if theirs.count("__global__") != 1 or ours.count(PLACE) != 1:
        raise ValueError(f"{kernel.key}: lines {kernel.lines[0]} to {kernel.lines[1]} of {path} "
                         f"have no one __global__, or {kernel.driver} has no line {PLACE!r}")
    behind = ours[: ours.index(PLACE)].count("\n") + 2
    placed = "\n".join([f'#line {kernel.lines[0]} "{path.name}"',  # that messages and hazards name
                        theirs.replace("__global__", "__device__"),
                        f'#line {behind} "{kernel.driver}"'])
    return ours.replace(PLACE, placed)


def _taken(kernel: Foreign, path: Path) -> str:
    """The lines of a file that are compiled."""
    first, last = kernel.lines
    return "\n".join(text_of(path).splitlines()[first - 1 : last])


def run(kernel: Foreign, folder: Path) -> Result:
    """Run a kernel and a sample of its mutants."""
    try:
        module = module_of(kernel, folder, kernel.arch)
        function = module.get_function(kernel.name)
        launch, right = _launch(kernel, function)
    except ptx.Error as error:
        return Result(ended=f"{type(error).__name__}: {error}", right=None,
                      hazards=_hazards(error.hazards), counters={},
                      mutants=Mutants(tried=0, unseen=()))
    return Result(ended=ENDED, right=right, hazards=_hazards(launch.hazards),
                  counters=launch.traced.counters(),
                  mutants=_mutants(kernel, module, function, bool(launch.hazards)))


def _hazards(found: Iterable[ptx.Hazard]) -> tuple[str, ...]:
    return tuple(sorted({f"{one.kind}: {' and '.join(filter(None, (one.first, one.second)))}"
                         for one in grouped(found)}))


def _launch(kernel: Foreign, function: Any, **settings: Any) -> tuple[ptx.Launch, bool | None]:
    made, before = operands(kernel), operands(kernel).named
    settings.setdefault("races", True)
    if kernel.cluster:
        settings["cluster"] = kernel.cluster
    launch = function(kernel.grid, kernel.block, made.values, kernel.shared, **settings)
    return launch, is_right(kernel, made.named, before)


def _mutants(kernel: Foreign, module: Any, function: Any, reports: bool) -> Mutants:
    """Try a sample of mutants, of a kernel that itself `reports` something or nothing."""
    if not kernel.mutants:
        return Mutants(tried=0, unseen=())
    known = reports_of(_attempt(kernel, function)) if reports else set()
    every = list(mutants(module.ptx, function.name))
    chosen = random.Random(kernel.seed).sample(every, min(kernel.mutants, len(every)))
    unseen = []
    for mutant in chosen:
        changed = ptx.Module(mutant.text, module.arch).get_function(function.name)
        if not verdict(_attempt(kernel, changed), known=known):
            unseen.append(str(mutant))
    return Mutants(tried=len(chosen), unseen=tuple(unseen))


def _attempt(kernel: Foreign, function: Any) -> Callable[..., tuple[ptx.Launch, bool]]:
    def attempt(**settings: Any) -> tuple[ptx.Launch, bool]:
        launch, right = _launch(kernel, function, **settings)
        return launch, right is not False

    return attempt


def recorded(path: Path = records.FILE) -> dict[str, Result]:
    """What earlier runs gave, by `Foreign.key`; empty if nothing is recorded.

    Raises
    ------
    RecordError
        If the record can't be read, or was edited since it was written.
    """
    found = records.read(path)
    return dict(found.kernels) if found else {}


def write(results: dict[str, Result], path: Path = records.FILE) -> None:
    """Record results; what is recorded of files stays."""
    before = records.read(path) or records.Foreign(kernels={})
    records.write(replace(before, kernels=results), path)


def differences(now: Result, before: Result) -> list[str]:
    """What a run says otherwise than the record, one line each."""
    parts: list[tuple[str, Any, Any]] = [
        ("ended", now.ended, before.ended), ("right", now.right, before.right),
        ("hazards", now.hazards, before.hazards), ("mutants", now.mutants, before.mutants),
    ]
    names = dict.fromkeys([*now.counters, *before.counters])
    parts += [(name, now.counters.get(name), before.counters.get(name)) for name in names]
    return [f"{part}: {here}, and recorded is {there}"
            for part, here, there in parts if here != there]


def profiled(kernel: Foreign, record: Mapping[str, Result]) -> Measured | None:
    """What is recorded of a kernel on a GPU; None if nothing is, or it is of another launch."""
    result = record.get(kernel.key)
    found = result.gpu if result else None
    return found if found and found.launch == kernel.digest else None


def counted_otherwise(found: Measured) -> list[str]:
    """The counters of which a GPU's ncu and the emulator say different things."""
    return [name for name, number in found.ncu.items() if found.emulated[name] != number]


def unexplained(kernel: Foreign, found: Measured) -> list[str]:
    """The counters that differ and for which no reason is given, and reasons for equal ones."""
    return sorted({*counted_otherwise(found)} ^ {*kernel.unlike})


def strange(kernel: Foreign, found: Measured) -> str:
    """What a GPU has otherwise than the emulator and than the set says; empty if nothing."""
    parts = [f"{name}: told and found differ" for name in unexplained(kernel, found)]
    if found.right != found.emulated_right:
        parts.append(f"right: {found.right}, emulated {found.emulated_right}")
    elif found.right is False and not kernel.on_gpu:
        parts.append("wrong, and the set doesn't say why")
    return "; ".join(parts)


def gpu_outcome(kernel: Foreign, found: Measured) -> str:
    """How ncu's counters compare to the emulator's, in a few words."""
    unlike = counted_otherwise(found)
    parts = [f"{len(found.ncu) - len(unlike)} of {len(found.ncu)} counters alike"]
    parts += [f"{name}: ncu {found.ncu[name]:,}, emulated {found.emulated[name]:,}"
              + ("" if name in kernel.unlike else " (no reason is known)") for name in unlike]
    if found.right is False:
        also = "and in the emulator" if found.emulated_right is False else "ALONE"
        parts.append(f"WRONG on the GPU {also}")
    return "; ".join(parts)


def outcome(result: Result) -> str:
    """A result in a few words."""
    parts = [result.ended.partition(": kernel")[0]]
    if result.right is not None:
        parts.append("right" if result.right else "WRONG")
    parts.append(", ".join(result.hazards) or "no hazard")
    tried = result.mutants.tried
    if tried:
        parts.append(f"{tried - len(result.mutants.unseen)} of {tried} mutants found")
    return "; ".join(parts)
