"""What is wrong with a reader's kernel, if anything: its result, its races, what it costs.

The text takes the place of the version's file and runs in the emulator, beside the version itself.
"""

from __future__ import annotations

from dataclasses import replace

from lib import ptx
from lib.compiler.nvrtc import CompileError
from lib.kernels.spec import Kernel, Variant
from lib.problem import ITEM_BYTES, Problem
from lib.ptx.report import hazard_lines
from lib.run import device
from lib.run.runner import Run, run
from lib.show.display import table
from lib.show.version import Version, by_kind, measured_on

# Several blocks, and a tile at each edge that C does not fill: sides that let rows of floats and of
# halves begin on 16 bytes. In a second run α, β and what C holds matter.
SIZES = (136, 72, 40)
SCALARS = ((1.0, 0.0), (0.5, -2.0))
EMPTY = "Nothing to verify yet: write the whole kernel file, changed, into the text."


def findings(
    kernel: Kernel, variant: Variant, text: str, sizes: tuple[int, int, int], sms: int | None,
) -> list[str]:
    """Say what is wrong with a kernel's text, or what it costs more and less than the book's.

    Parameters
    ----------
    kernel : Kernel
    variant : Variant
        Whose template arguments and launch it is run with.
    text : str
        The CUDA text, in place of the version's file.
    sizes : (int, int, int), optional
        M, N and K: as many steps, and tiles per block, as a mistake needs to show.
    sms : int, optional
        What a persistent kernel's tiles are dealt to; by default those of the book's GPU.

    Returns
    -------
    list of str
        Lines; the first says the verdict, ``"right: "`` where nothing is wrong.
    """
    if not text.strip():
        return [EMPTY]
    done: Run | None = None
    for alpha, beta in SCALARS:
        problem = variant.problem(*sizes, alpha, beta)
        where = f"{problem.shape}, α = {alpha:g}, β = {beta:g}"
        try:
            ran = run(kernel, problem, variant=variant, backend="emulator", source=text, races=True,
                      sms=sms)
        except CompileError as error:
            return ["It does not compile:", *str(error).splitlines()]
        except ptx.Error as error:
            return [f"It stops at {where}:", str(error)]
        if not ran.verdict.ok:
            return [f"The result is {ran.verdict} ({where}).", *_suspicious(ran)]
        if hazards := _suspicious(ran):
            return [f"The result is right in this order of warps, but not in every one ({where}):",
                    *hazards]
        done = done or ran
    assert done is not None  # SCALARS is not empty
    return _costs(kernel, variant, done, sms)


def _suspicious(ran: Run) -> list[str]:
    launch = ran.launch
    return hazard_lines(launch.findings, launch.sources) if launch else []


def _costs(kernel: Kernel, variant: Variant, mine: Run, sms: int | None) -> list[str]:
    """The verdict of a right kernel, and the counters in which it differs from the version's."""
    problem = mine.problem
    usual = run(kernel, problem, variant=variant, backend="emulator", sms=sms)
    ours, theirs = mine.trace.counters(), usual.trace.counters()
    differ = [f"  {name.replace('_', ' '):<28} {value:>12,} {theirs.get(name, 0):>12,}"
              for name, value in ours.items() if value != theirs.get(name, 0)]
    verdict = f"right: {len(SCALARS)} runs at {problem.shape}, no race"
    if not differ:
        return [f"{verdict}; every counter is {kernel.stem}/{variant.name}'s"]
    return [f"{verdict}; it differs from {kernel.stem}/{variant.name} in",
            f"  {'emulated':<28} {'yours':>12} {'the book':>12}", *differ]


# What every version must get right: square, ragged, one wide, and the ends of K, α and β.
CHECKED = (
    Problem(128, 128, 128), Problem(100, 99, 101), Problem(33, 65, 31, 0.5, -2.0),
    Problem(1, 70, 40, 1.0, 1.0), Problem(70, 1, 40, -2.0, 0.5), Problem(31, 33, 1),
    Problem(64, 64, 0, 1.0, 0.5),
)


def checked(variant: Variant) -> tuple[Problem, ...]:
    """The problems that an instantiation is checked on: `CHECKED`, with rows that it takes.

    Where it refuses others, they are multiples of 16 bytes.
    """
    if not variant.row_bytes or variant.packing:
        return CHECKED
    unit = variant.row_bytes // ITEM_BYTES[variant.dtype]
    return tuple(replace(one, N=-(-one.N // unit) * unit, K=-(-one.K // unit) * unit)
                 for one in CHECKED)


def check(version: Version, *variants: str) -> None:
    """Run variants, all if none is named, on `CHECKED` and display the errors' bounds.

    Where rows must be multiples of 16 bytes, on shapes whose rows are.
    """
    rows = []
    names = version.named(variants)
    ran: dict[str, list[str]] = {}
    for name in names:
        ran.setdefault(_checked_on(version, version.kernel.variant(name)), []).append(name)
    first = version.kernel.fastest
    for problem in checked(first):
        row: list[object] = [problem.shape.replace("x", "×"), f"{problem.alpha:g}",
                             f"{problem.beta:g}"]
        for name in names:
            done = version.run(problem, name, trace=False)
            row.append(f"under {done.problem.tolerance:.1e}" if done.verdict.ok
                       else f"**{done.verdict}**")
        rows.append(row)
    head = ["M×N×K", "α", "β", *(f"error, {name}" for name in names)]
    if len(names) > 2 and all(len(set(row[3:])) == 1 for row in rows):
        head[3:] = [f"error of each: {', '.join(names)}"]
        rows = [row[:4] for row in rows]
    table(head, rows, f"{by_kind(ran)}; error relative to float64, in norm; C held NaN where β = 0")


def verify(
    version: Version, text: str, variant: str | None = None,
    sizes: tuple[int, int, int] = SIZES, sms: int | None = None,
) -> None:
    """Print what is wrong with a reader's kernel (`lib.show.correctness`)."""
    chosen = version.kernel.variant(variant)
    print("\n".join(findings(version.kernel, chosen, text, sizes, sms)))


def _checked_on(version: Version, variant: Variant) -> str:
    """The evidence label of what `check` runs: here on the GPU, or in the emulator."""
    if device.runs(version.kernel, variant):
        return measured_on()
    why = f", since {device.why_not(version.kernel, variant)}" if device.available() else ""
    return f"emulated: {version.kernel.needs(variant)} code in the PTX emulator{why}"
