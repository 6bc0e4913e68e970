"""Whether a version computes the right thing, and which instantiation a shape gets."""

from __future__ import annotations

from dataclasses import replace

from lib.kernels.spec import Variant
from lib.plotting.display import table
from lib.problem import ITEM_BYTES, Problem
from lib.run import device
from lib.topics.results.correctness.model import SIZES, findings
from lib.topics.version import Version, by_kind, measured_on

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
    names = variants or tuple(v.name for v in version.kernel.variants)
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
    """Print what is wrong with a reader's kernel (`lib.topics.results.correctness.model`)."""
    chosen = version.kernel.variant(variant)
    print("\n".join(findings(version.kernel, chosen, text, sizes, sms)))


def _checked_on(version: Version, variant: Variant) -> str:
    """The evidence label of what `check` runs: here on the GPU, or in the emulator."""
    if device.runs(version.kernel, variant):
        return measured_on()
    why = f", since {device.why_not(version.kernel, variant)}" if device.available() else ""
    return f"emulated: {version.kernel.needs(variant)} code in the PTX emulator{why}"
